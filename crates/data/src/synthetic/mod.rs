//! Clustered linear regression: the standard experiments of the PGFL, `GFedMtl` and `PersFL` papers, with all their knobs.
//!
//! | symbol | meaning | key |
//! |---|---|---|
//! | d | number of features, x ~ N(0, I) | `dimension` |
//! | w0 | common model, uniform on the unit sphere | |
//! | gamma | shift of a cluster: its model is w0 (1 + gamma), gamma ~ U(-spread, spread) | `spread`, `gamma` |
//! | w | model of a cluster that shares nothing with the others, U(-range, range) per coordinate | `models`, `range` |
//! | `n_c` | clients of a cluster | `sizes` |
//! | `D_k` | records of client k, uniform on whole numbers | `samples` |
//! | noise | variance of client k's noise: y = x'w + sqrt(noise) N(0, 1) | `noise`, `noise_law` |
//!
//! Every client has a stream of its own, so clients are drawn in parallel and do not depend on each other.
//! Test records follow the training records in the stream: asking for them does not change the training.

mod params;
pub(crate) mod shifted;

pub(crate) use params::PARAMS;

use crate::error::DataError;
use crate::options::{self, Clients};
use crate::parallel::InOrder;
use crate::roster::{Roster, cluster_names, draw_clusters, equal_clusters, numbered, random_clusters};
use crate::schema::{Feature, Schema};
use crate::topology;
use crate::world::{Client, World, assemble};
use crate::{Request, Task};
use fedkin_core::Dataset;
use fedkin_core::numeric;
use fedkin_core::params::{Value, Values};
use fedkin_core::rng::{PublicRng, Random};
use rayon::prelude::*;
use std::sync::Arc;

pub(crate) const NAME: &str = "synthetic.clustered-regression";

const SPREAD: f64 = 0.15;
const PER_COORDINATE: &str = "per-coordinate";

enum NoiseLaw {
    Uniform,
    LogUniform,
}

/// How the models of the clusters are drawn.
enum Models {
    /// A common model times 1 + gamma.
    Shifted,
    /// Every coordinate in (-range, range).
    Uniform(f64),
}

impl Models {
    fn read(values: &Values) -> Result<Self, DataError> {
        let uniform = values.text("models") == Some("uniform");
        match (uniform, values.number("range")) {
            (true, Some(range)) => {
                // Both have a preset, so a key that would do nothing shows by another value.
                for (key, changed) in [
                    ("spread", values.number("spread").is_some_and(|spread| spread != SPREAD)),
                    ("gamma", values.text("gamma") == Some(PER_COORDINATE)),
                ] {
                    if changed {
                        let message = "this key shifts a common model and does nothing with models = \"uniform\": remove it";
                        return Err(DataError::config(key, message));
                    }
                }
                Ok(Self::Uniform(range))
            }
            (true, None) => {
                let message = "this key is required with models = \"uniform\": how far a coordinate reaches from zero, as in `range = 5`";
                Err(DataError::config("range", message))
            }
            (false, Some(_)) => {
                let message = "this key is of models = \"uniform\": set that as well, or remove it";
                Err(DataError::config("range", message))
            }
            (false, None) => Ok(Self::Shifted),
        }
    }
}

enum TestSamples {
    AsTrain,
    Count(usize),
}

/// The checked knobs.
struct Plan {
    dimension: usize,
    clusters: usize,
    models: Models,
    samples: (u32, u32),
    noise: (f64, f64),
    noise_law: NoiseLaw,
    test: TestSamples,
    seed: u64,
}

impl Plan {
    fn read(values: &Values, seed: u64) -> Result<Self, DataError> {
        let noise = options::numbers(values, "noise", (0.01, 0.022))?;
        let noise_law = match values.text("noise_law") {
            Some("log-uniform") if noise.0 <= 0.0 => {
                return Err(DataError::config("noise", "a log-uniform law needs a variance above 0"));
            }
            Some("log-uniform") => NoiseLaw::LogUniform,
            Some("fixed") if noise.0 < noise.1 => {
                let message = "a fixed law needs one number, as in `noise = 0.01`, not a range";
                return Err(DataError::config("noise", message));
            }
            _ => NoiseLaw::Uniform,
        };
        let test = match values.get("test_samples") {
            Some(Value::Text(word)) if word == "train" => TestSamples::AsTrain,
            Some(Value::Integer(count)) => TestSamples::Count(*count as usize),
            _ => TestSamples::Count(0),
        };
        Ok(Self {
            dimension: values.integer("dimension").unwrap_or(60) as usize,
            clusters: values.integer("clusters").unwrap_or(3) as usize,
            models: Models::read(values)?,
            samples: options::counts(values, "samples", (2, 9))?,
            noise,
            noise_law,
            test,
            seed,
        })
    }

    /// Refuses what no machine holds, before the allocator does it less politely.
    fn fits(&self, clients: usize) -> Result<(), DataError> {
        const MOST_BYTES: f64 = (1u64 << 40) as f64;
        const MOST_CLIENT: f64 = (1u64 << 32) as f64;
        let (least, most) = (f64::from(self.samples.0), f64::from(self.samples.1));
        let bytes = |samples: f64| {
            let tested = if let TestSamples::Count(count) = self.test { count as f64 } else { samples };
            (samples + tested) * (self.dimension as f64 + 1.0) * 8.0
        };
        let total = clients as f64 * bytes(f64::midpoint(least, most));
        if total <= MOST_BYTES && bytes(most) <= MOST_CLIENT {
            return Ok(());
        }
        let message = format!(
            "{clients} clients with up to {most} records of {} features take about {:.0} GB: lower one of the numbers",
            self.dimension,
            total / 1e9
        );
        Err(DataError::config("samples", message))
    }

    /// The model of every cluster.
    fn models(&self, values: &Values) -> Vec<Vec<f64>> {
        let mut rng = PublicRng::named(self.seed, "world/models", 0, 0);
        if let Models::Uniform(range) = self.models {
            let model = |_| (0..self.dimension).map(|_| rng.between(-range, range)).collect();
            return (0..self.clusters).map(model).collect();
        }
        let spread = values.number("spread").unwrap_or(SPREAD);
        let per_coordinate = values.text("gamma") == Some(PER_COORDINATE);
        let common = direction(self.dimension, &mut rng);
        (0..self.clusters)
            .map(|_| {
                let mut gamma = rng.between(-spread, spread);
                let mut shifted = Vec::with_capacity(common.len());
                for (j, w) in common.iter().enumerate() {
                    if per_coordinate && j > 0 {
                        gamma = rng.between(-spread, spread);
                    }
                    shifted.push(w * (1.0 + gamma));
                }
                shifted
            })
            .collect()
    }

    /// The cluster of every client.
    fn clusters(&self, values: &Values, clients: usize) -> Result<Vec<u32>, DataError> {
        let draw = match values.text("sizes") {
            Some("equal") => equal_clusters,
            Some("random") => random_clusters,
            _ => draw_clusters,
        };
        draw("clusters", clients, self.clusters, self.seed)
    }

    fn client(
        &self,
        id: usize,
        model: &[f64],
    ) -> Result<(Dataset, Option<Dataset>), fedkin_core::DatasetError> {
        let mut rng = PublicRng::named(self.seed, "world/client", 0, id as u32);
        let (least, most) = self.samples;
        let samples = (least + rng.below(most - least + 1)) as usize;
        let variance = match (&self.noise_law, self.noise) {
            (NoiseLaw::Uniform, (low, high)) => rng.between(low, high),
            (NoiseLaw::LogUniform, (low, high)) => {
                numeric::exp(rng.between(numeric::ln(low), numeric::ln(high))).clamp(low, high)
            }
        };
        let train = records(samples, model, variance.sqrt(), &mut rng)?;
        let test = match self.test {
            TestSamples::AsTrain => samples,
            TestSamples::Count(count) => count,
        };
        let test = if test > 0 { Some(records(test, model, variance.sqrt(), &mut rng)?) } else { None };
        Ok((train, test))
    }
}

/// Uniform on the unit sphere.
fn direction(dimension: usize, rng: &mut PublicRng) -> Vec<f64> {
    loop {
        let mut vector: Vec<f64> = (0..dimension).map(|_| rng.normal()).collect();
        let length = numeric::norm2(&vector).sqrt();
        // The zero vector has no direction; it has probability zero, but not in floating point.
        if length > 0.0 {
            for x in &mut vector {
                *x /= length;
            }
            return vector;
        }
    }
}

fn records(
    samples: usize,
    model: &[f64],
    deviation: f64,
    rng: &mut PublicRng,
) -> Result<Dataset, fedkin_core::DatasetError> {
    // Exact capacities: a million clients keep what is allocated here.
    let mut features = Vec::with_capacity(samples * model.len());
    let mut targets = Vec::with_capacity(samples);
    for _ in 0..samples {
        let start = features.len();
        features.extend((0..model.len()).map(|_| rng.normal()));
        targets.push(numeric::dot(&features[start..], model) + deviation * rng.normal());
    }
    Dataset::new(model.len(), features, targets)
}

/// Draws the world.
pub(crate) fn load(request: &Request<'_>) -> Result<World, DataError> {
    let values = request.values;
    if matches!(request.task, Task::Classification | Task::Classes(_)) {
        let message = format!("{NAME} has real targets, not classes: use a regression model such as ridge");
        return Err(DataError::config("source", message));
    }
    crate::signals::check::has_targets(request.task, NAME)?;
    let plan = Plan::read(values, request.seed)?;
    let per_server = Clients::read(values, 15);
    let servers = topology::drawn_servers(request.topology, per_server.servers())?;
    let topology =
        topology::build(request.topology, &servers, true, request.seed, request.require_connected)?;
    let server_of = per_server.servers_of_clients(servers.len())?;
    let models = plan.models(values);
    plan.fits(server_of.len())?;
    let cluster_of = plan.clusters(values, server_of.len())?;
    let names = numbered("client", server_of.len(), 6);
    let clients = names
        .into_par_iter()
        .enumerate()
        .map(|(id, name)| {
            let cluster = cluster_of[id];
            match plan.client(id, &models[cluster as usize]) {
                Ok((train, test)) => Ok(Client {
                    name,
                    server: server_of[id],
                    cluster,
                    train: Arc::new(train),
                    test: test.map(Arc::new),
                    validation: None,
                    scaling: Vec::new(),
                }),
                Err(source) => Err(DataError::Records { client: name, source }),
            }
        })
        .in_order()?;
    let schema = Schema {
        features: numbered("x", plan.dimension, 1).into_iter().map(Feature::number).collect(),
        target: "y".into(),
        shape: None,
    };
    assemble(
        clients,
        Roster { servers, clusters: cluster_names(models.len()), topology },
        Some(models),
        schema,
    )
}
