//! What a partitioner sees, and what it gives.

use super::KEY;
use crate::error::DataError;
use crate::world::roster::equal_clusters;

/// The records to be dealt, as a partitioner sees them.
#[derive(Debug, Clone, Copy)]
pub struct Pool<'a> {
    /// The class of each record; all 0 where there are none.
    pub labels: &'a [u32],
    /// How many classes there are; 0 where targets are no classes.
    pub classes: usize,
    /// Whether the records are square images.
    pub square: bool,
}

/// What a cluster does to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Twist {
    /// Nothing.
    None,
    /// So many quarter turns to the left.
    Turn(u32),
    /// Class c is called `names[c]`.
    Rename(Vec<u32>),
}

/// What was dealt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deal {
    /// The numbers of the records of each client.
    pub clients: Vec<Vec<u32>>,
    /// The cluster of each client.
    pub cluster: Vec<u32>,
    /// What each cluster does to its records, with its name.
    pub clusters: Vec<(String, Twist)>,
}

impl Deal {
    /// All clients in one cluster that leaves the records as they are.
    pub fn whole(clients: Vec<Vec<u32>>) -> Self {
        Self { cluster: vec![0; clients.len()], clients, clusters: vec![("all".into(), Twist::None)] }
    }

    /// Clients dealt to these clusters, which are as large as each other or one client larger.
    pub fn clustered(
        clients: Vec<Vec<u32>>,
        clusters: Vec<(String, Twist)>,
        seed: u64,
    ) -> Result<Self, DataError> {
        let cluster = equal_clusters("clusters", clients.len(), clusters.len(), seed)?;
        Ok(Self { clients, cluster, clusters })
    }

    /// The same with the records of each client in the order of the file, after a check of what every partitioner
    /// promises.
    pub(crate) fn checked(mut self, name: &str, pool: Pool<'_>) -> Result<Self, DataError> {
        let wrong = |what: String| Err(DataError::config(KEY, format!("partitioner {name:?} {what}")));
        if self.cluster.len() != self.clients.len() {
            let (clusters, clients) = (self.cluster.len(), self.clients.len());
            return wrong(format!("gave the clusters of {clusters} clients but records to {clients}"));
        }
        let mut held = vec![false; pool.labels.len()];
        for (client, records) in self.clients.iter_mut().enumerate() {
            if self.cluster[client] as usize >= self.clusters.len() {
                return wrong(format!("put client {client} into a cluster that it does not have"));
            }
            for &record in records.iter() {
                match held.get_mut(record as usize) {
                    Some(held) if !*held => *held = true,
                    Some(_) => return wrong(format!("dealt record {record} twice")),
                    None => return wrong(format!("dealt record {record} of {}", pool.labels.len())),
                }
            }
            records.sort_unstable();
        }
        for (cluster, twist) in &self.clusters {
            match twist {
                Twist::Turn(_) if !pool.square => {
                    return wrong(format!("turns the records of {cluster:?}, which are no square images"));
                }
                Twist::Rename(names)
                    if names.len() != pool.classes
                        || names.iter().any(|&name| name as usize >= pool.classes) =>
                {
                    return wrong(format!("does not give {cluster:?} a name for each class"));
                }
                _ => {}
            }
        }
        Ok(self)
    }
}
