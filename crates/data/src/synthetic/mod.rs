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

mod functions;
mod params;
pub(crate) mod shifted;

pub use functions::ClusteredFunctions;
pub use params::{ClusteredRegression, Gamma, Models, NoiseLaw, Sizes, TestSamples};
pub use shifted::ShiftedClasses;

use crate::error::DataError;
use crate::options::Range;
use crate::prepare::parallel::InOrder;
use crate::registry::Source;
use crate::world::roster::{Roster, cluster_names, draw_clusters, equal_clusters, numbered, random_clusters};
use crate::world::schema::{Feature, Schema};
use crate::world::{Client, World, assemble};
use crate::{Request, Task, topology};
use fedkin_learner::Dataset;
use fedkin_numeric as numeric;
use fedkin_numeric::rng::{PublicRng, Random};
use rayon::prelude::*;
use std::sync::Arc;

/// The settings, checked against each other.
struct Plan<'a> {
    settings: &'a ClusteredRegression,
    /// How far uniform models reach, where they are uniform.
    range: Option<f64>,
    seed: u64,
}

impl ClusteredRegression {
    /// How far uniform models reach; nothing where models are shifted.
    fn range(&self) -> Result<Option<f64>, DataError> {
        match (self.models, self.range) {
            (Models::Uniform, Some(range)) => {
                let preset = Self::default();
                // Both have a preset, so a key that would do nothing shows by another value.
                for (key, changed) in
                    [("spread", self.spread != preset.spread), ("gamma", self.gamma != preset.gamma)]
                {
                    if changed {
                        let message = "this key shifts a common model and does nothing with models = \"uniform\": remove it";
                        return Err(DataError::config(key, message));
                    }
                }
                Ok(Some(range))
            }
            (Models::Uniform, None) => {
                let message = "this key is required with models = \"uniform\": how far a coordinate reaches from zero, as in `range = 5`";
                Err(DataError::config("range", message))
            }
            (Models::Shifted, Some(_)) => {
                let message = "this key is of models = \"uniform\": set that as well, or remove it";
                Err(DataError::config("range", message))
            }
            (Models::Shifted, None) => Ok(None),
        }
    }
}

impl<'a> Plan<'a> {
    fn new(settings: &'a ClusteredRegression, seed: u64) -> Result<Self, DataError> {
        let Range { from, to } = settings.noise;
        match settings.noise_law {
            NoiseLaw::LogUniform if from <= 0.0 => {
                return Err(DataError::config("noise", "a log-uniform law needs a variance above 0"));
            }
            NoiseLaw::Fixed if from < to => {
                let message = "a fixed law needs one number, as in `noise = 0.01`, not a range";
                return Err(DataError::config("noise", message));
            }
            _ => {}
        }
        Ok(Self { settings, range: settings.range()?, seed })
    }

    /// How many test records a client with so many training records has.
    fn tested(&self, samples: usize) -> usize {
        match self.settings.test_samples {
            TestSamples::None => 0,
            TestSamples::AsTrain => samples,
            TestSamples::Count(count) => count,
        }
    }

    /// Refuses what no machine holds, before the allocator does it less politely.
    fn fits(&self, clients: usize) -> Result<(), DataError> {
        const MOST_BYTES: f64 = (1u64 << 40) as f64;
        const MOST_CLIENT: f64 = (1u64 << 32) as f64;
        let Range { from, to } = self.settings.samples;
        let (least, most) = (f64::from(from), f64::from(to));
        let bytes = |samples: f64| {
            let tested = match self.settings.test_samples {
                TestSamples::None => 0.0,
                TestSamples::AsTrain => samples,
                TestSamples::Count(count) => count as f64,
            };
            (samples + tested) * (self.settings.dimension as f64 + 1.0) * 8.0
        };
        let total = clients as f64 * bytes(f64::midpoint(least, most));
        if total <= MOST_BYTES && bytes(most) <= MOST_CLIENT {
            return Ok(());
        }
        let message = format!(
            "{clients} clients with up to {most} records of {} features take about {:.0} GB: lower one of the numbers",
            self.settings.dimension,
            total / 1e9
        );
        Err(DataError::config("samples", message))
    }

    /// The model of every cluster.
    fn models(&self) -> Vec<Vec<f64>> {
        let ClusteredRegression { dimension, clusters, spread, gamma, .. } = *self.settings;
        let mut rng = PublicRng::named(self.seed, "world/models", 0, 0);
        if let Some(range) = self.range {
            let model = |_| (0..dimension).map(|_| rng.between(-range, range)).collect();
            return (0..clusters).map(model).collect();
        }
        let per_coordinate = gamma == Gamma::PerCoordinate;
        let common = direction(dimension, &mut rng);
        (0..clusters)
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
    fn clusters(&self, clients: usize) -> Result<Vec<u32>, DataError> {
        let draw = match self.settings.sizes {
            Sizes::Equal => equal_clusters,
            Sizes::Random => random_clusters,
            Sizes::Uniform => draw_clusters,
        };
        draw("clusters", clients, self.settings.clusters, self.seed)
    }

    fn client(
        &self,
        id: usize,
        model: &[f64],
    ) -> Result<(Dataset, Option<Dataset>), fedkin_learner::DatasetError> {
        let mut rng = PublicRng::named(self.seed, "world/client", 0, id as u32);
        let Range { from, to } = self.settings.samples;
        let samples = (from + rng.below(to - from + 1)) as usize;
        let Range { from: low, to: high } = self.settings.noise;
        let variance = match self.settings.noise_law {
            NoiseLaw::Uniform | NoiseLaw::Fixed => rng.between(low, high),
            NoiseLaw::LogUniform => {
                numeric::exp(rng.between(numeric::ln(low), numeric::ln(high))).clamp(low, high)
            }
        };
        let train = records(samples, model, variance.sqrt(), &mut rng)?;
        let test = self.tested(samples);
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
) -> Result<Dataset, fedkin_learner::DatasetError> {
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

impl Source for ClusteredRegression {
    const NAME: &'static str = "synthetic.clustered-regression";
    const SUMMARY: &'static str =
        "clustered linear regression with known models, as in the PGFL and GFedMtl papers";

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        if matches!(request.task, Task::Classification | Task::Classes(_)) {
            let message =
                format!("{} has real targets, not classes: use a regression model such as ridge", Self::NAME);
            return Err(DataError::config("source", message));
        }
        crate::prepare::check::has_targets(request.task, Self::NAME)?;
        let plan = Plan::new(self, request.seed)?;
        let per_server = &self.clients_per_server;
        let servers = topology::drawn_servers(request.topology, per_server.servers())?;
        let topology =
            topology::build(request.topology, &servers, true, request.seed, request.require_connected)?;
        let server_of = per_server.servers_of_clients(servers.len())?;
        let models = plan.models();
        plan.fits(server_of.len())?;
        let cluster_of = plan.clusters(server_of.len())?;
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
                        learner: None,
                    }),
                    Err(source) => Err(DataError::Records { client: name, source }),
                }
            })
            .in_order()?;
        let schema = Schema {
            features: numbered("x", self.dimension, 1).into_iter().map(Feature::number).collect(),
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
}
