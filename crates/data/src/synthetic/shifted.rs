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
    Client, DataError, Feature, Roster, Schema, World, assemble, cluster_names, equal_clusters, numbered,
};
use crate::options::{CLIENTS, COUNT_RANGE, Each, Range};
use crate::registry::{About, Source, Variants};
use crate::{Request, Task, topology};
use fedkin_learner::model::Known;
use fedkin_learner::{Dataset, DatasetError};
use fedkin_numeric as numeric;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::{Kind, Preset, settings};
use std::sync::Arc;

const FROM_ZERO: Kind = Kind::Number { least: 0.0, most: 1e6, open: false };

settings! {
    /// `[data]` of shifted classes.
    pub struct ShiftedClasses {
        clients_per_server: Each<usize> => CLIENTS, Preset::Integer(20),
            "number of clients of every server, or a list with one number per server";
        clusters: usize => Kind::Integer { least: 1, most: 100_000 }, Preset::Integer(4),
            "number of clusters, all as large as each other or one client larger";
        classes: usize => Kind::Integer { least: 2, most: 1_000 }, Preset::Integer(5),
            "number of classes";
        dimension: usize => Kind::Integer { least: 1, most: 10_000 }, Preset::Integer(10),
            "number of features";
        samples: Range<u32> => COUNT_RANGE, Preset::Integer(40),
            "training records of a client, uniform in [from, to], or one number";
        validation_samples: usize => Kind::Integer { least: 0, most: 1_000_000 }, Preset::Integer(0),
            "validation records of a client, for choosing parameters";
        test_samples: usize => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Integer(200),
            "test records of a client";
        shift: f64 => FROM_ZERO, Preset::Number(1.0),
            "how far apart the clusters stand, against features of scale 1";
        scales: f64 => FROM_ZERO, Preset::Number(0.3),
            "how much the scales of a feature differ between clusters: deviation of their logarithm";
        spread: f64 => FROM_ZERO, Preset::Number(1.0),
            "size of a cluster's own part of its model, against the common part of size 1";
        sharpness: f64 => FROM_ZERO, Preset::Number(4.0),
            "how surely the features decide the class; at 0 classes are drawn by lot";
    }
}

/// Where a cluster stands, and its model: one row per class.
struct Cluster {
    place: Vec<f64>,
    scales: Vec<f64>,
    rows: Vec<Vec<f64>>,
}

/// The settings of a world with its seed.
struct Plan<'a> {
    settings: &'a ShiftedClasses,
    seed: u64,
}

impl Plan<'_> {
    /// Refuses what no machine holds, before the allocator does it less politely.
    fn fits(&self, clients: usize) -> Result<(), DataError> {
        const MOST_BYTES: f64 = (1u64 << 40) as f64;
        let settings = self.settings;
        let rows =
            f64::from(settings.samples.to) + (settings.validation_samples + settings.test_samples) as f64;
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

    fn normals(&self, rng: &mut PublicRng) -> Vec<f64> {
        (0..self.settings.dimension).map(|_| rng.normal()).collect()
    }

    fn clusters(&self, count: usize) -> Vec<Cluster> {
        let mut rng = PublicRng::named(self.seed, "shifted/common", 0, 0);
        let common: Vec<Vec<f64>> = (0..self.settings.classes).map(|_| self.normals(&mut rng)).collect();
        (0..count)
            .map(|q| {
                let mut rng = PublicRng::named(self.seed, "shifted/cluster", 0, q as u32);
                let mut place = self.normals(&mut rng);
                numeric::scale(self.settings.shift, &mut place);
                let scales = self
                    .normals(&mut rng)
                    .into_iter()
                    .map(|x| numeric::exp(self.settings.scales * x))
                    .collect();
                let mut rows = common.clone();
                for row in &mut rows {
                    numeric::axpy(self.settings.spread, &self.normals(&mut rng), row);
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
        let scale = self.settings.sharpness / (self.settings.dimension as f64).sqrt();
        let (mut features, mut targets) =
            (Vec::with_capacity(count * self.settings.dimension), Vec::with_capacity(count));
        let mut weights = Vec::with_capacity(self.settings.classes);
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
            targets.push(class.unwrap_or(self.settings.classes - 1) as f64);
            let stands = cluster.place.iter().zip(&cluster.scales);
            features.extend(u.iter().zip(stands).map(|(u, (place, scale))| place + scale * u));
        }
        Dataset::new(self.settings.dimension, features, targets).map(|set| Some(Arc::new(set)))
    }

    fn client(&self, id: usize, cluster: &Cluster) -> Result<[Option<Arc<Dataset>>; 3], DatasetError> {
        let mut rng = PublicRng::named(self.seed, "shifted/client", 0, id as u32);
        let Range { from, to } = self.settings.samples;
        let samples = (from + rng.below(to - from + 1)) as usize;
        let train = self.records(samples, cluster, &mut rng)?;
        // Test records come before those for validation: asking for these does not change what is reported.
        let test = self.records(self.settings.test_samples, cluster, &mut rng)?;
        Ok([train, self.records(self.settings.validation_samples, cluster, &mut rng)?, test])
    }
}

impl Source for ShiftedClasses {
    const NAME: &'static str = "synthetic.shifted-classes";
    const SUMMARY: &'static str =
        "classes by multinomial logistic models that clusters share; clusters stand apart in feature space";

    fn about(&self, _: Variants<'_>) -> About {
        let known = Known { classes: Some(self.classes), shape: Some([self.dimension, 1, 1]) };
        About { known, validation: self.validation_samples > 0, ..About::default() }
    }

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        let plan = Plan { settings: self, seed: request.seed };
        let fits = match request.task {
            Task::Classes(classes) => classes as usize == self.classes,
            Task::Classification => self.classes == 2,
            _ => false,
        };
        if !fits {
            let message = format!(
                "{} has {} classes to tell apart: set [model] kind = \"softmax\", and leave `classes` out there",
                Self::NAME,
                self.classes
            );
            return Err(DataError::config("source", message));
        }
        let per_server = &self.clients_per_server;
        let servers = topology::drawn_servers(request.topology, per_server.servers())?;
        let topology =
            topology::build(request.topology, &servers, true, request.seed, request.require_connected)?;
        let server_of = per_server.servers_of_clients(servers.len())?;
        plan.fits(server_of.len())?;
        let count = self.clusters;
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
            clients.push(Client {
                name,
                server,
                cluster,
                train,
                test,
                validation,
                scaling: Vec::new(),
                learner: None,
            });
        }
        let schema = Schema {
            features: numbered("x", self.dimension, 1).into_iter().map(Feature::number).collect(),
            target: "class".into(),
            shape: Some([self.dimension, 1, 1]),
        };
        let world =
            assemble(clients, Roster { servers, clusters: cluster_names(count), topology }, None, schema)?;
        Ok(world.with_public(None, numbered("class", self.classes, 1)))
    }
}
