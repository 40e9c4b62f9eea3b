//! Names, servers and clusters of worlds that are drawn.

use crate::error::DataError;
use fedkin_graph::Topology;
use fedkin_numeric::rng::{PublicRng, Random};

/// What a federation consists of besides its clients.
#[derive(Debug)]
pub(crate) struct Roster {
    pub(crate) servers: Vec<String>,
    pub(crate) clusters: Vec<String>,
    pub(crate) topology: Topology,
}

/// `prefix-000`, `prefix-001`, ...: wide enough that the byte order of the names is the order of the numbers.
pub(crate) fn numbered(prefix: &str, count: usize, least_width: usize) -> Vec<String> {
    let width = least_width.max(count.saturating_sub(1).to_string().len());
    (0..count).map(|i| format!("{prefix}-{i:0width$}")).collect()
}

/// `cluster-1`, `cluster-2`, ...
pub(crate) fn cluster_names(count: usize) -> Vec<String> {
    let width = count.to_string().len();
    (1..=count).map(|i| format!("cluster-{i:0width$}")).collect()
}

/// The cluster of each client: uniform, given that no cluster is empty.
///
/// Drawn again until that holds. Where that would take too long (hardly more clients than clusters), one
/// random client is first set aside for each cluster.
pub(crate) fn draw_clusters(
    key: &str,
    clients: usize,
    clusters: usize,
    seed: u64,
) -> Result<Vec<u32>, DataError> {
    const TRIES: usize = 1000;
    fillable(key, clients, clusters)?;
    let mut rng = cluster_stream(seed);
    let mut drawn = vec![0; clients];
    for _ in 0..TRIES {
        let mut used = vec![false; clusters];
        for cluster in &mut drawn {
            *cluster = rng.below(clusters as u32);
            used[*cluster as usize] = true;
        }
        if used.iter().all(|&used| used) {
            return Ok(drawn);
        }
    }
    let mut order: Vec<usize> = (0..clients).collect();
    rng.shuffle(&mut order);
    for (cluster, &client) in order.iter().take(clusters).enumerate() {
        drawn[client] = cluster as u32;
    }
    Ok(drawn)
}

/// The cluster of each client: all clusters as large as each other, or one client larger.
pub(crate) fn equal_clusters(
    key: &str,
    clients: usize,
    clusters: usize,
    seed: u64,
) -> Result<Vec<u32>, DataError> {
    fillable(key, clients, clusters)?;
    let mut of_client: Vec<u32> = (0..clients).map(|client| (client % clusters) as u32).collect();
    cluster_stream(seed).shuffle(&mut of_client);
    Ok(of_client)
}

/// The cluster of each client: the clients in a row are cut at distinct random places, then shuffled.
pub(crate) fn random_clusters(
    key: &str,
    clients: usize,
    clusters: usize,
    seed: u64,
) -> Result<Vec<u32>, DataError> {
    fillable(key, clients, clusters)?;
    let mut rng = cluster_stream(seed);
    let mut places: Vec<usize> = (1..clients).collect();
    rng.shuffle(&mut places);
    places.truncate(clusters - 1);
    let mut starts = vec![0; clients];
    for place in places {
        starts[place] = 1;
    }
    let mut cluster = 0;
    let mut of_client: Vec<u32> = starts
        .iter()
        .map(|start| {
            cluster += start;
            cluster
        })
        .collect();
    rng.shuffle(&mut of_client);
    Ok(of_client)
}

fn fillable(key: &str, clients: usize, clusters: usize) -> Result<(), DataError> {
    if clusters > 0 && clusters <= clients {
        return Ok(());
    }
    let message = format!("{clients} clients cannot fill {clusters} clusters: every cluster needs a client");
    Err(DataError::config(key, message))
}

fn cluster_stream(seed: u64) -> PublicRng {
    PublicRng::named(seed, "world/clusters", 0, 0)
}
