//! Signals that are smooth on a known graph: equation (33) of the FedGL paper.

use super::pairs;
use crate::error::DataError;
use fedkin_core::numeric::{Cholesky, add_diagonal};
use fedkin_core::params::{Kind, Value, Values};
use fedkin_core::rng::{PublicRng, Random};

/// Records of every client, or of each.
pub(super) const SAMPLES: Kind = Kind::Either(&[
    Kind::Integer { least: 1, most: 10_000_000 },
    Kind::List(&Kind::Integer { least: 1, most: 10_000_000 }),
]);

/// The deviation of the noise in (33). Without any noise the precision matrix has no inverse.
pub(super) const NOISE: Kind = Kind::Number { least: 0.0, most: 1e6, open: true };

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

/// One value per client: the same for all, or as listed.
pub(super) fn per_client<T: Copy>(
    values: &Values,
    key: &str,
    clients: usize,
    default: T,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Vec<T>, DataError> {
    match values.get(key) {
        Some(Value::List(list)) if list.len() == clients => {
            Ok(list.iter().map(|item| read(item).unwrap_or(default)).collect())
        }
        Some(Value::List(list)) => {
            let message = format!(
                "{} numbers were given for {clients} clients: give one per client, or one number for all",
                list.len()
            );
            Err(DataError::config(key, message))
        }
        value => Ok(vec![value.and_then(read).unwrap_or(default); clients]),
    }
}

/// The numbers of training records, one per client.
pub(super) fn samples(values: &Values, clients: usize) -> Result<Vec<usize>, DataError> {
    per_client(values, "samples", clients, 100, |value| match value {
        Value::Integer(count) => usize::try_from(*count).ok(),
        _ => None,
    })
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
