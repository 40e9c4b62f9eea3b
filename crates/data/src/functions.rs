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
use crate::options::{self, CLIENTS, COUNT_RANGE, Clients};
use crate::roster::{Roster, cluster_names, draw_clusters, numbered};
use crate::schema::{Feature, Schema};
use crate::topology;
use crate::world::{Client, World, assemble};
use crate::{Request, Task};
use fedkin_core::Dataset;
use fedkin_core::numeric;
use fedkin_core::params::{Kind, Param, Preset, Values};
use fedkin_core::rng::{PublicRng, Random};
use std::sync::Arc;

pub(crate) const NAME: &str = "synthetic.clustered-functions";

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "clients_per_server",
        kind: CLIENTS,
        preset: Preset::Integer(60),
        help: "number of clients of every server, or a list with one number per server",
    },
    Param {
        name: "clusters",
        kind: Kind::Integer { least: 1, most: 100_000 },
        preset: Preset::Integer(3),
        help: "number of clusters; the cluster of a client is uniform, and no cluster is empty",
    },
    Param {
        name: "dimension",
        kind: Kind::Integer { least: 1, most: 10_000 },
        preset: Preset::Integer(2),
        help: "number of features",
    },
    Param {
        name: "samples",
        kind: COUNT_RANGE,
        preset: Preset::Absent,
        help: "training records of a client, uniform in [from, to], or one number (default 20)",
    },
    Param {
        name: "bend",
        kind: Kind::Number { least: 0.0, most: 1e3, open: true },
        preset: Preset::Number(3.0),
        help: "how fast functions turn: the angle that a feature of 1 adds to a sine",
    },
    Param {
        name: "noise",
        kind: Kind::Number { least: 0.0, most: 1e12, open: false },
        preset: Preset::Number(0.01),
        help: "variance of the noise on a function's value",
    },
    Param {
        name: "test_samples",
        kind: Kind::Integer { least: 1, most: 1_000_000 },
        preset: Preset::Integer(50),
        help: "test records of a client",
    },
];

/// The checked knobs.
struct Plan {
    dimension: usize,
    samples: (u32, u32),
    bend: f64,
    deviation: f64,
    test: usize,
    classes: bool,
    seed: u64,
}

/// One sign and one phase per feature.
type Function = Vec<(f64, f64)>;

impl Plan {
    fn read(values: &Values, task: Task, seed: u64) -> Result<Self, DataError> {
        Ok(Self {
            dimension: values.integer("dimension").unwrap_or(2) as usize,
            samples: options::counts(values, "samples", (20, 20))?,
            bend: values.number("bend").unwrap_or(3.0),
            deviation: values.number("noise").unwrap_or(0.01).sqrt(),
            test: values.integer("test_samples").unwrap_or(50) as usize,
            classes: task == Task::Classification,
            seed,
        })
    }

    /// Refuses what no machine holds, before the allocator does it less politely.
    fn fits(&self, clients: usize) -> Result<(), DataError> {
        const MOST_BYTES: f64 = (1u64 << 40) as f64;
        let rows = f64::from(self.samples.1) + self.test as f64;
        let bytes = clients as f64 * rows * (self.dimension as f64 + 1.0) * 8.0;
        if bytes <= MOST_BYTES {
            return Ok(());
        }
        let message = format!(
            "{clients} clients with up to {rows} records of {} features take about {:.0} GB: lower one of the numbers",
            self.dimension,
            bytes / 1e9
        );
        Err(DataError::config("samples", message))
    }

    fn function(&self, cluster: usize) -> Function {
        let mut rng = PublicRng::named(self.seed, "functions/cluster", 0, cluster as u32);
        let mut one = |_| (if rng.below(2) == 0 { 1.0 } else { -1.0 }, rng.between(-1.0, 1.0));
        (0..self.dimension).map(&mut one).collect()
    }

    fn value(&self, function: &Function, x: &[f64]) -> f64 {
        let mut sum = 0.0;
        for ((sign, phase), x) in function.iter().zip(x) {
            sum += numeric::sin(self.bend * (sign * x + phase));
        }
        sum * (2.0 / self.dimension as f64).sqrt()
    }

    fn records(
        &self,
        count: usize,
        function: &Function,
        rng: &mut PublicRng,
    ) -> Result<Dataset, fedkin_core::DatasetError> {
        let (mut features, mut targets) = (Vec::with_capacity(count * self.dimension), Vec::new());
        for _ in 0..count {
            let start = features.len();
            features.extend((0..self.dimension).map(|_| rng.between(-1.0, 1.0)));
            let y = self.value(function, &features[start..]) + self.deviation * rng.normal();
            targets.push(if self.classes { f64::from(u8::from(y > 0.0)) } else { y });
        }
        Dataset::new(self.dimension, features, targets)
    }

    fn client(
        &self,
        id: usize,
        function: &Function,
    ) -> Result<(Dataset, Dataset), fedkin_core::DatasetError> {
        let mut rng = PublicRng::named(self.seed, "functions/client", 0, id as u32);
        let (least, most) = self.samples;
        let samples = (least + rng.below(most - least + 1)) as usize;
        let train = self.records(samples, function, &mut rng)?;
        Ok((train, self.records(self.test, function, &mut rng)?))
    }
}

/// Draws the world.
pub(crate) fn load(request: &Request<'_>) -> Result<World, DataError> {
    let values = request.values;
    crate::signals::check::has_targets(request.task, NAME)?;
    let plan = Plan::read(values, request.task, request.seed)?;
    let per_server = Clients::read(values, 60);
    let servers = topology::drawn_servers(request.topology, per_server.servers())?;
    let topology =
        topology::build(request.topology, &servers, true, request.seed, request.require_connected)?;
    let server_of = per_server.servers_of_clients(servers.len())?;
    plan.fits(server_of.len())?;
    let clusters = values.integer("clusters").unwrap_or(3) as usize;
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
                }),
                Err(source) => Err(DataError::Records { client: name, source }),
            }
        })
        .collect::<Result<Vec<Client>, DataError>>()?;
    let schema = Schema {
        features: numbered("x", plan.dimension, 1).into_iter().map(Feature::number).collect(),
        target: "y".into(),
        shape: None,
    };
    // The functions are no models that a linear one could be compared with: no truth is given.
    assemble(clients, Roster { servers, clusters: cluster_names(clusters), topology }, None, schema)
}
