//! Shifted classes: clients of a cluster share a multinomial logistic model and stand at the same place of feature space, so
//! that their records show whose kin they are.
//!
//! | symbol | meaning | key |
//! |---|---|---|
//! | C, d | number of classes and of features | `classes`, `dimension` |
//! | s | scales of a cluster's features: exp(`scales` N(0, 1)) | `scales` |
//! | m | where a cluster stands: `shift` times N(0, 1) in every coordinate | `shift` |
//! | W | model of a cluster: a common N(0, 1) matrix, plus `spread` times one of its own | `spread` |
//! | x | features, m + s u with u ~ N(0, I) | |
//! | y | class c with probability proportional to exp(`sharpness` `W_c` u / sqrt(d)) | `sharpness` |
//!
//! Every client has a stream of its own; validation and test records follow the training records in it.

use super::{
    Client, Clients, DataError, Feature, Roster, Schema, World, assemble, cluster_names, equal_clusters,
    numbered,
};
use crate::options::{self, CLIENTS, COUNT_RANGE};
use crate::topology;
use crate::{Request, Task};
use fedkin_core::numeric;
use fedkin_core::params::{Kind, Param, Preset, Values};
use fedkin_core::rng::{PublicRng, Random};
use fedkin_core::{Dataset, DatasetError};
use std::sync::Arc;

pub(crate) const NAME: &str = "synthetic.shifted-classes";

const FROM_ZERO: Kind = Kind::Number { least: 0.0, most: 1e6, open: false };
const RECORDS: Kind = Kind::Integer { least: 0, most: 1_000_000 };

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "clients_per_server",
        kind: CLIENTS,
        preset: Preset::Integer(20),
        help: "number of clients of every server, or a list with one number per server",
    },
    Param {
        name: "clusters",
        kind: Kind::Integer { least: 1, most: 100_000 },
        preset: Preset::Integer(4),
        help: "number of clusters, all as large as each other or one client larger",
    },
    Param {
        name: "classes",
        kind: Kind::Integer { least: 2, most: 1_000 },
        preset: Preset::Integer(5),
        help: "number of classes",
    },
    Param {
        name: "dimension",
        kind: Kind::Integer { least: 1, most: 10_000 },
        preset: Preset::Integer(10),
        help: "number of features",
    },
    Param {
        name: "samples",
        kind: COUNT_RANGE,
        preset: Preset::Absent,
        help: "training records of a client, uniform in [from, to], or one number (default 40)",
    },
    Param {
        name: "validation_samples",
        kind: RECORDS,
        preset: Preset::Integer(0),
        help: "validation records of a client, for choosing parameters",
    },
    Param {
        name: "test_samples",
        kind: Kind::Integer { least: 1, most: 1_000_000 },
        preset: Preset::Integer(200),
        help: "test records of a client",
    },
    Param {
        name: "shift",
        kind: FROM_ZERO,
        preset: Preset::Number(1.0),
        help: "how far apart the clusters stand, against features of scale 1",
    },
    Param {
        name: "scales",
        kind: FROM_ZERO,
        preset: Preset::Number(0.3),
        help: "how much the scales of a feature differ between clusters: deviation of their logarithm",
    },
    Param {
        name: "spread",
        kind: FROM_ZERO,
        preset: Preset::Number(1.0),
        help: "size of a cluster's own part of its model, against the common part of size 1",
    },
    Param {
        name: "sharpness",
        kind: FROM_ZERO,
        preset: Preset::Number(4.0),
        help: "how surely the features decide the class; at 0 classes are drawn by lot",
    },
];

/// Number of classes and of features.
pub(crate) fn size(values: &Values) -> (usize, usize) {
    let whole = |key: &str, preset: i64| values.integer(key).unwrap_or(preset) as usize;
    (whole("classes", 5), whole("dimension", 10))
}

/// Where a cluster stands, and its model: one row per class.
struct Cluster {
    place: Vec<f64>,
    scales: Vec<f64>,
    rows: Vec<Vec<f64>>,
}

struct Plan {
    classes: usize,
    dimension: usize,
    samples: (u32, u32),
    validation: usize,
    test: usize,
    shift: f64,
    scales: f64,
    spread: f64,
    sharpness: f64,
    seed: u64,
}

impl Plan {
    fn read(values: &Values, seed: u64) -> Result<Self, DataError> {
        let (classes, dimension) = size(values);
        let count = |key: &str, preset: i64| values.integer(key).unwrap_or(preset) as usize;
        Ok(Self {
            classes,
            dimension,
            samples: options::counts(values, "samples", (40, 40))?,
            validation: count("validation_samples", 0),
            test: count("test_samples", 200),
            shift: values.number("shift").unwrap_or(1.0),
            scales: values.number("scales").unwrap_or(0.3),
            spread: values.number("spread").unwrap_or(1.0),
            sharpness: values.number("sharpness").unwrap_or(4.0),
            seed,
        })
    }

    /// Refuses what no machine holds, before the allocator does it less politely.
    fn fits(&self, clients: usize) -> Result<(), DataError> {
        const MOST_BYTES: f64 = (1u64 << 40) as f64;
        let rows = f64::from(self.samples.1) + (self.validation + self.test) as f64;
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

    fn normals(&self, rng: &mut PublicRng) -> Vec<f64> {
        (0..self.dimension).map(|_| rng.normal()).collect()
    }

    fn clusters(&self, count: usize) -> Vec<Cluster> {
        let mut rng = PublicRng::named(self.seed, "shifted/common", 0, 0);
        let common: Vec<Vec<f64>> = (0..self.classes).map(|_| self.normals(&mut rng)).collect();
        (0..count)
            .map(|q| {
                let mut rng = PublicRng::named(self.seed, "shifted/cluster", 0, q as u32);
                let mut place = self.normals(&mut rng);
                numeric::scale(self.shift, &mut place);
                let scales =
                    self.normals(&mut rng).into_iter().map(|x| numeric::exp(self.scales * x)).collect();
                let mut rows = common.clone();
                for row in &mut rows {
                    numeric::axpy(self.spread, &self.normals(&mut rng), row);
                }
                Cluster { place, scales, rows }
            })
            .collect()
    }

    fn records(
        &self,
        count: usize,
        cluster: &Cluster,
        rng: &mut PublicRng,
    ) -> Result<Option<Arc<Dataset>>, DatasetError> {
        if count == 0 {
            return Ok(None);
        }
        let scale = self.sharpness / (self.dimension as f64).sqrt();
        let (mut features, mut targets) =
            (Vec::with_capacity(count * self.dimension), Vec::with_capacity(count));
        let mut weights = Vec::with_capacity(self.classes);
        for _ in 0..count {
            let u = self.normals(rng);
            weights.clear();
            weights.extend(cluster.rows.iter().map(|row| scale * numeric::dot(row, &u)));
            let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for weight in &mut weights {
                *weight = numeric::exp(*weight - most);
            }
            let mut left = rng.between(0.0, weights.iter().sum());
            let class = weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            targets.push(class.unwrap_or(self.classes - 1) as f64);
            let stands = cluster.place.iter().zip(&cluster.scales);
            features.extend(u.iter().zip(stands).map(|(u, (place, scale))| place + scale * u));
        }
        Dataset::new(self.dimension, features, targets).map(|set| Some(Arc::new(set)))
    }

    fn client(&self, id: usize, cluster: &Cluster) -> Result<[Option<Arc<Dataset>>; 3], DatasetError> {
        let mut rng = PublicRng::named(self.seed, "shifted/client", 0, id as u32);
        let (least, most) = self.samples;
        let samples = (least + rng.below(most - least + 1)) as usize;
        let train = self.records(samples, cluster, &mut rng)?;
        // Test records come before those for validation: asking for these does not change what is reported.
        let test = self.records(self.test, cluster, &mut rng)?;
        Ok([train, self.records(self.validation, cluster, &mut rng)?, test])
    }
}

/// Draws the world.
pub(crate) fn load(request: &Request<'_>) -> Result<World, DataError> {
    let values = request.values;
    let plan = Plan::read(values, request.seed)?;
    let fits = match request.task {
        Task::Classes(classes) => classes as usize == plan.classes,
        Task::Classification => plan.classes == 2,
        _ => false,
    };
    if !fits {
        let message = format!(
            "{NAME} has {} classes to tell apart: set [model] kind = \"softmax\", and leave `classes` out there",
            plan.classes
        );
        return Err(DataError::config("source", message));
    }
    let per_server = Clients::read(values, 20);
    let servers = topology::drawn_servers(request.topology, per_server.servers())?;
    let topology =
        topology::build(request.topology, &servers, true, request.seed, request.require_connected)?;
    let server_of = per_server.servers_of_clients(servers.len())?;
    plan.fits(server_of.len())?;
    let count = values.integer("clusters").unwrap_or(4) as usize;
    let clusters = plan.clusters(count);
    let cluster_of = equal_clusters("clusters", server_of.len(), count, request.seed)?;
    let mut clients = Vec::with_capacity(server_of.len());
    for (id, name) in numbered("client", server_of.len(), 2).into_iter().enumerate() {
        let cluster = cluster_of[id];
        let records = plan.client(id, &clusters[cluster as usize]);
        let empty = |source| DataError::Records { client: name.clone(), source };
        let [train, validation, test] = records.map_err(empty)?;
        let train = train.ok_or(DatasetError::Empty).map_err(empty)?;
        let server = server_of[id];
        clients.push(Client { name, server, cluster, train, test, validation, scaling: Vec::new() });
    }
    let schema = Schema {
        features: numbered("x", plan.dimension, 1).into_iter().map(Feature::number).collect(),
        target: "class".into(),
        shape: Some([plan.dimension, 1, 1]),
    };
    let world =
        assemble(clients, Roster { servers, clusters: cluster_names(count), topology }, None, schema)?;
    Ok(world.with_public(None, numbered("class", plan.classes, 1)))
}
