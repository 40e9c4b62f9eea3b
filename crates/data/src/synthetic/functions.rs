//! Clustered functions: clients of a cluster see the same curved function of a few features, and few records each.
//!
//! | symbol | meaning | key |
//! |---|---|---|
//! | d | number of features, x uniform in [-1, 1] each | `dimension` |
//! | f | function of a cluster: the mean over j of `sqrt(2 d) sin(bend (s x_j + phase))`, s = 1 or -1, phase uniform in [-1, 1] | `bend` |
//! | m | records of a client, uniform on whole numbers | `samples` |
//! | noise | y = f(x) + sqrt(noise) N(0, 1) | `noise` |
//!
//! f has variance about 1 whatever d is. With classes the label is 1 where f(x) and its noise are above 0.
//! Every client has a stream of its own; test records follow the training records in it.

use crate::error::DataError;
use crate::options::{CLIENTS, COUNT_RANGE, Each, Range};
use crate::registry::Source;
use crate::world::roster::{Roster, cluster_names, draw_clusters, numbered};
use crate::world::schema::{Feature, Schema};
use crate::world::{Client, World, assemble};
use crate::{Request, Task, topology};
use fedkin_learner::Dataset;
use fedkin_numeric as numeric;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::{Kind, Preset, settings};
use std::sync::Arc;

settings! {
    /// `[data]` of clustered functions.
    pub struct ClusteredFunctions {
        clients_per_server: Each<usize> => CLIENTS, Preset::Integer(60),
            "number of clients of every server, or a list with one number per server";
        clusters: usize => Kind::Integer { least: 1, most: 100_000 }, Preset::Integer(3),
            "number of clusters; the cluster of a client is uniform, and no cluster is empty";
        dimension: usize => Kind::Integer { least: 1, most: 10_000 }, Preset::Integer(2),
            "number of features";
        samples: Range<u32> => COUNT_RANGE, Preset::Integer(20),
            "training records of a client, uniform in [from, to], or one number";
        bend: f64 => Kind::Number { least: 0.0, most: 1e3, open: true }, Preset::Number(3.0),
            "how fast functions turn: the angle that a feature of 1 adds to a sine";
        noise: f64 => Kind::Number { least: 0.0, most: 1e12, open: false }, Preset::Number(0.01),
            "variance of the noise on a function's value";
        test_samples: usize => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Integer(50),
            "test records of a client";
    }
}

/// The settings of a world with its task and its seed.
struct Plan<'a> {
    settings: &'a ClusteredFunctions,
    classes: bool,
    seed: u64,
}

/// One sign and one phase per feature.
type Function = Vec<(f64, f64)>;

impl Plan<'_> {
    /// Refuses what no machine holds, before the allocator does it less politely.
    fn fits(&self, clients: usize) -> Result<(), DataError> {
        const MOST_BYTES: f64 = (1u64 << 40) as f64;
        let rows = f64::from(self.settings.samples.to) + self.settings.test_samples as f64;
        let bytes = clients as f64 * rows * (self.settings.dimension as f64 + 1.0) * 8.0;
        if bytes <= MOST_BYTES {
            return Ok(());
        }
        let message = format!(
            "{clients} clients with up to {rows} records of {} features take about {:.0} GB: lower one of the numbers",
            self.settings.dimension,
            bytes / 1e9
        );
        Err(DataError::config("samples", message))
    }

    fn function(&self, cluster: usize) -> Function {
        let mut rng = PublicRng::named(self.seed, "functions/cluster", 0, cluster as u32);
        let mut one = |_| (if rng.below(2) == 0 { 1.0 } else { -1.0 }, rng.between(-1.0, 1.0));
        (0..self.settings.dimension).map(&mut one).collect()
    }

    fn value(&self, function: &Function, x: &[f64]) -> f64 {
        let mut sum = 0.0;
        for ((sign, phase), x) in function.iter().zip(x) {
            sum += numeric::sin(self.settings.bend * (sign * x + phase));
        }
        sum * (2.0 / self.settings.dimension as f64).sqrt()
    }

    fn records(
        &self,
        count: usize,
        function: &Function,
        rng: &mut PublicRng,
    ) -> Result<Dataset, fedkin_learner::DatasetError> {
        let (mut features, mut targets) = (Vec::with_capacity(count * self.settings.dimension), Vec::new());
        let deviation = self.settings.noise.sqrt();
        for _ in 0..count {
            let start = features.len();
            features.extend((0..self.settings.dimension).map(|_| rng.between(-1.0, 1.0)));
            let y = self.value(function, &features[start..]) + deviation * rng.normal();
            targets.push(if self.classes { f64::from(u8::from(y > 0.0)) } else { y });
        }
        Dataset::new(self.settings.dimension, features, targets)
    }

    fn client(
        &self,
        id: usize,
        function: &Function,
    ) -> Result<(Dataset, Dataset), fedkin_learner::DatasetError> {
        let mut rng = PublicRng::named(self.seed, "functions/client", 0, id as u32);
        let Range { from, to } = self.settings.samples;
        let samples = (from + rng.below(to - from + 1)) as usize;
        let train = self.records(samples, function, &mut rng)?;
        Ok((train, self.records(self.settings.test_samples, function, &mut rng)?))
    }
}

impl Source for ClusteredFunctions {
    const NAME: &'static str = "synthetic.clustered-functions";
    const SUMMARY: &'static str = "curved functions of a few features, one per cluster, with few records per client; numbers or classes";

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        crate::prepare::check::has_targets(request.task, Self::NAME)?;
        let plan = Plan { settings: self, classes: request.task == Task::Classification, seed: request.seed };
        let per_server = &self.clients_per_server;
        let servers = topology::drawn_servers(request.topology, per_server.servers())?;
        let topology =
            topology::build(request.topology, &servers, true, request.seed, request.require_connected)?;
        let server_of = per_server.servers_of_clients(servers.len())?;
        plan.fits(server_of.len())?;
        let clusters = self.clusters;
        let functions: Vec<Function> = (0..clusters).map(|q| plan.function(q)).collect();
        let cluster_of = draw_clusters("clusters", server_of.len(), clusters, request.seed)?;
        let clients = numbered("client", server_of.len(), 6)
            .into_iter()
            .enumerate()
            .map(|(id, name)| {
                let cluster = cluster_of[id];
                match plan.client(id, &functions[cluster as usize]) {
                    Ok((train, test)) => Ok(Client {
                        name,
                        server: server_of[id],
                        cluster,
                        train: Arc::new(train),
                        test: Some(Arc::new(test)),
                        validation: None,
                        scaling: Vec::new(),
                        learner: None,
                    }),
                    Err(source) => Err(DataError::Records { client: name, source }),
                }
            })
            .collect::<Result<Vec<Client>, DataError>>()?;
        let schema = Schema {
            features: numbered("x", self.dimension, 1).into_iter().map(Feature::number).collect(),
            target: "y".into(),
            shape: None,
        };
        // The functions are no models that a linear one could be compared with: no truth is given.
        assemble(clients, Roster { servers, clusters: cluster_names(clusters), topology }, None, schema)
    }
}
