//! Small worlds and drivers for the tests of this crate.
#![allow(dead_code)]

use fedkin_core::algorithm::{Context, Run};
use fedkin_core::graph::Topology;
use fedkin_core::model::{Loss, Model};
use fedkin_core::privacy::{Bound, Privacy, Zcdp};
use fedkin_core::rng::{PublicRng, Random};
use fedkin_core::{Dataset, Entry, Federation};
use std::sync::Arc;

/// Clustered regression on a few servers: 4 servers in a ring, unequal, 3 clusters, d features.
pub struct Small {
    pub federation: Federation,
    pub data: Vec<Arc<Dataset>>,
    pub run: Run,
    pub context: Context,
}

pub fn small(seed: u64, clients: usize, dimension: usize, rounds: u32) -> Small {
    let mut rng = PublicRng::named(seed, "small world", 0, 0);
    let models: Vec<Vec<f64>> = (0..3).map(|_| (0..dimension).map(|_| rng.normal()).collect()).collect();
    let mut entries = Vec::new();
    let mut data = Vec::new();
    for k in 0..clients {
        let samples = 1 + rng.below(6);
        let cluster = if k < 3 { k as u32 } else { rng.below(3) };
        let mut features = Vec::new();
        let mut targets = Vec::new();
        for _ in 0..samples {
            let x: Vec<f64> = (0..dimension).map(|_| rng.normal()).collect();
            let y: f64 = x.iter().zip(&models[cluster as usize]).map(|(x, w)| x * w).sum();
            targets.push(y + 0.1 * rng.normal());
            features.extend(x);
        }
        data.push(Arc::new(Dataset::new(dimension, features, targets).unwrap()));
        entries.push(Entry { name: format!("c{k:05}"), server: rng.below(4), cluster, samples });
    }
    let names = |prefix: &str, count: usize| (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let (federation, _) = Federation::new(entries, names("s", 4), names("q", 3), Topology::ring(4)).unwrap();
    let model = Model { loss: Loss::Squared, regularisation: 0.01, bias: false, feature_norm: None };
    let run = Run {
        seed,
        rounds,
        clients_per_server: None,
        max_norm2: 1e12,
        dimension,
        clusters: 3,
        privacy: Privacy::None,
    };
    Small { federation, data, run, context: Context { model, privacy: Privacy::None } }
}

impl Small {
    /// Noise as in the paper's Fig 3, bound on trust.
    pub fn private(mut self) -> Self {
        let zcdp =
            Zcdp { initial_budget: 0.01, growth: 0.98, assumed: Some(Bound::assumed(0.05)), budget: None };
        self.run.privacy = Privacy::Zcdp(zcdp);
        self.context.privacy = self.run.privacy;
        self
    }

    pub fn some(mut self, clients_per_server: u32) -> Self {
        self.run.clients_per_server = Some(clients_per_server);
        self
    }
}
