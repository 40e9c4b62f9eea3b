//! What was found against what is known.

use fedkin_data::World;
use fedkin_graph::partition::{agreement, matched_share, merged, parts};
use fedkin_method::FoundKin;

/// The name after the dot of these metrics.
const KIN: &str = "kin";

/// How near found clusters are to the true ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// Share of the clients in the right cluster under the best matching of the clusters' names.
    found: f64,
    nmi: f64,
    rand: f64,
    fmi: f64,
    /// How many clusters have a client.
    clusters: f64,
    /// How many found clusters hold most clients of two true ones or more.
    merged: f64,
}

/// The true cluster of every client by id, where more than one is known: of the model its records were drawn from, or
/// of the roster.
pub fn known(world: &World) -> Option<Vec<u32>> {
    let clusters = match (&world.truth, &world.replaced) {
        (Some(truth), _) => truth.cluster.clone(),
        (None, Some(replaced)) => replaced.cluster.clone(),
        (None, None) => world.federation.members().iter().map(|member| member.cluster).collect(),
    };
    clusters.windows(2).any(|pair| pair[0] != pair[1]).then_some(clusters)
}

impl Scores {
    /// Of the clients whose cluster was found; nothing where no clusters were.
    pub fn new(kin: &FoundKin, known: &[u32]) -> Option<Self> {
        let (found, truth): (Vec<u32>, Vec<u32>) = kin
            .clusters
            .iter()
            .filter_map(|&(client, cluster)| Some((cluster, *known.get(client as usize)?)))
            .unzip();
        let agreed = agreement(&found, &truth)?;
        Some(Self {
            found: matched_share(&found, &truth),
            nmi: agreed.nmi,
            rand: agreed.rand,
            fmi: agreed.fowlkes_mallows,
            clusters: parts(&found) as f64,
            merged: merged(&found, &truth) as f64,
        })
    }

    /// Names of metrics and their values.
    pub(crate) fn metrics(&self) -> [(String, f64); 6] {
        let Self { found, nmi, rand, fmi, clusters, merged } = *self;
        [
            ("found", found),
            ("nmi", nmi),
            ("rand", rand),
            ("fmi", fmi),
            ("clusters", clusters),
            ("merged", merged),
        ]
        .map(|(name, value)| (format!("{name}.{KIN}"), value))
    }
}
