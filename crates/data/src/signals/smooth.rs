//! Signals that are smooth on a known graph: equation (33) of the FedGL paper.

use super::pairs;
use crate::error::DataError;
use crate::options::Each;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{Cholesky, add_diagonal};
use fedkin_settings::{Kind, Preset, settings};

settings! {
    /// How many signals of each client, and how smooth they are.
    pub struct SmoothSignals {
        samples: Each<usize>
            => Kind::Either(&[
                Kind::Integer { least: 1, most: 10_000_000 },
                Kind::List(&Kind::Integer { least: 1, most: 10_000_000 }),
            ]),
            Preset::Integer(100),
            "records of every client, or a list with one number per client";
        // Without any noise the precision matrix has no inverse.
        noise: f64 => Kind::Number { least: 0.0, most: 1e6, open: true }, Preset::Number(0.1),
            "deviation of the signals' noise: their covariance is the inverse of the Laplacian + noise^2 times identity";
        test_samples: usize => Kind::Integer { least: 0, most: 10_000_000 }, Preset::Integer(0),
            "test records of every client";
    }
}

impl SmoothSignals {
    /// The numbers of training records, one per client.
    pub(super) fn counts(&self, clients: usize) -> Result<Vec<usize>, DataError> {
        self.samples.per_client("samples", clients)
    }
}

/// The law N(0, (L + noise^2 I)^-1) of signals on a graph with Laplacian L.
pub(super) struct Smooth {
    factor: Cholesky,
}

impl Smooth {
    /// Factors the precision matrix; the message says why that cannot be done.
    pub(super) fn new(graph: &[f64], nodes: usize, noise: f64) -> Result<Self, DataError> {
        let diagonal = |i: usize| i * (i + 1) / 2 + i;
        let mut precision = vec![0.0; nodes * (nodes + 1) / 2];
        for ((a, b), weight) in pairs(nodes).zip(graph) {
            precision[diagonal(a)] += weight;
            precision[diagonal(b)] += weight;
            precision[b * (b + 1) / 2 + a] = -weight;
        }
        add_diagonal(&mut precision, nodes, noise * noise);
        let factor = Cholesky::factor(precision, nodes).ok_or_else(|| {
            let message = format!("{noise} is too small next to the weights of the graph: raise it");
            DataError::config("noise", message)
        })?;
        Ok(Self { factor })
    }

    /// So many records from this stream. More of them begin with the same ones.
    pub(super) fn draw(&self, samples: usize, rng: &mut PublicRng) -> Vec<f64> {
        let nodes = self.factor.order();
        let mut rows = Vec::with_capacity(samples * nodes);
        for _ in 0..samples {
            let start = rows.len();
            rows.extend((0..nodes).map(|_| rng.normal()));
            self.factor.solve_transposed(&mut rows[start..]);
        }
        rows
    }
}

/// Training and test records of one client. The streams are its own, and apart from each other: neither the other
/// clients nor the numbers of records change the records that are there already.
pub(super) fn signals(
    (graph, nodes): (&[f64], usize),
    noise: f64,
    [samples, test_samples]: [usize; 2],
    (seed, client): (u64, u32),
) -> Result<[Vec<f64>; 2], DataError> {
    let law = Smooth::new(graph, nodes, noise)?;
    let draw = |purpose, count| law.draw(count, &mut PublicRng::named(seed, purpose, 0, client));
    Ok([draw("world/signals", samples), draw("world/signals/test", test_samples)])
}

/// Refuses what no machine holds, before the allocator does it less politely.
pub(super) fn fits(nodes: usize, samples: &[usize], test_samples: usize) -> Result<(), DataError> {
    const MOST_BYTES: f64 = (1u64 << 36) as f64;
    let records =
        samples.iter().map(|&count| count as f64).sum::<f64>() + (samples.len() * test_samples) as f64;
    let bytes = 8.0 * nodes as f64 * (records + samples.len() as f64 * nodes as f64);
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let message = format!(
        "{} clients with {records} records of {nodes} nodes take about {:.0} GB: lower one of the numbers",
        samples.len(),
        bytes / 1e9
    );
    Err(DataError::config("samples", message))
}
