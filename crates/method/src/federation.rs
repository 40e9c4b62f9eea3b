//! Who takes part: clients with their server and cluster, and the graph of servers.
//!
//! All of it is public to the run. Ids are dense numbers in the byte order of the names; names are used
//! at the edges only.

use fedkin_graph::Topology;
use thiserror::Error;

/// What everybody may know of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Position in the roster.
    pub id: u32,
    /// The server it is attached to.
    pub server: u32,
    /// The cluster whose model it learns.
    pub cluster: u32,
    /// Number of records D_k.
    pub samples: u32,
}

/// One line of a roster before ids are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The client's name, unique.
    pub name: String,
    /// Index into the server names.
    pub server: u32,
    /// Index into the cluster names.
    pub cluster: u32,
    /// Number of records.
    pub samples: u32,
}

/// The roster and the graph of servers.
#[derive(Debug, Clone)]
pub struct Federation {
    members: Vec<Member>,
    client_names: Vec<String>,
    server_names: Vec<String>,
    cluster_names: Vec<String>,
    topology: Topology,
    by_server: Vec<Vec<u32>>,
}

/// Why a roster was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FederationError {
    /// No client at all.
    #[error("the federation has no clients")]
    Empty,
    /// Two clients of the same name.
    #[error("client {0:?} appears twice")]
    Duplicate(String),
    /// A client without data.
    #[error("client {0:?} has no samples (D_k = 0): every client needs at least one training record")]
    NoSamples(String),
    /// A cluster nobody belongs to.
    #[error("cluster {0:?} has no client: leave it out or give it one")]
    EmptyCluster(String),
    /// An index outside the names.
    #[error("client {0:?} names a server or cluster that is not in the federation")]
    Unknown(String),
    /// The graph has another number of servers than there are names.
    #[error("the graph has {graph} servers but {names} are named")]
    Servers {
        /// Nodes of the graph.
        graph: usize,
        /// Names given.
        names: usize,
    },
}

impl Federation {
    /// Checks a roster and gives ids in the byte order of the client names.
    /// `order[id]` is the position the client had in `entries`.
    pub fn new(
        entries: Vec<Entry>,
        server_names: Vec<String>,
        cluster_names: Vec<String>,
        topology: Topology,
    ) -> Result<(Self, Vec<usize>), FederationError> {
        if entries.is_empty() {
            return Err(FederationError::Empty);
        }
        if topology.len() != server_names.len() {
            return Err(FederationError::Servers { graph: topology.len(), names: server_names.len() });
        }
        let mut used = vec![false; cluster_names.len()];
        for entry in &entries {
            if entry.server as usize >= server_names.len() || entry.cluster as usize >= cluster_names.len() {
                return Err(FederationError::Unknown(entry.name.clone()));
            }
            if entry.samples == 0 {
                return Err(FederationError::NoSamples(entry.name.clone()));
            }
            used[entry.cluster as usize] = true;
        }
        if let Some(empty) = used.iter().position(|used| !used) {
            return Err(FederationError::EmptyCluster(cluster_names[empty].clone()));
        }
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|&a, &b| entries[a].name.as_bytes().cmp(entries[b].name.as_bytes()));
        if let Some(pair) = order.windows(2).find(|pair| entries[pair[0]].name == entries[pair[1]].name) {
            return Err(FederationError::Duplicate(entries[pair[0]].name.clone()));
        }
        let members = order
            .iter()
            .enumerate()
            .map(|(id, &at)| {
                let entry = &entries[at];
                Member { id: id as u32, server: entry.server, cluster: entry.cluster, samples: entry.samples }
            })
            .collect();
        let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
        let client_names = order.iter().map(|&at| std::mem::take(&mut names[at])).collect();
        Ok((Self::index(members, client_names, server_names, cluster_names, topology), order))
    }

    fn index(
        members: Vec<Member>,
        client_names: Vec<String>,
        server_names: Vec<String>,
        cluster_names: Vec<String>,
        topology: Topology,
    ) -> Self {
        let mut by_server = vec![Vec::new(); server_names.len()];
        for member in &members {
            by_server[member.server as usize].push(member.id);
        }
        Self { members, client_names, server_names, cluster_names, topology, by_server }
    }

    /// All clients by id.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The ids of a server's clients, sorted.
    pub fn clients_of(&self, server: u32) -> &[u32] {
        &self.by_server[server as usize]
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.server_names.len()
    }

    /// Number of clusters Q.
    pub fn clusters(&self) -> usize {
        self.cluster_names.len()
    }

    /// The graph of servers.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The name of a client.
    pub fn client_name(&self, id: u32) -> &str {
        &self.client_names[id as usize]
    }

    /// The id of the client with this name.
    pub fn find_client(&self, name: &str) -> Option<u32> {
        self.client_names
            .binary_search_by(|probe| probe.as_bytes().cmp(name.as_bytes()))
            .ok()
            .map(|i| i as u32)
    }

    /// All client names by id.
    pub fn client_names(&self) -> &[String] {
        &self.client_names
    }

    /// All server names by id.
    pub fn server_names(&self) -> &[String] {
        &self.server_names
    }

    /// All cluster names by id.
    pub fn cluster_names(&self) -> &[String] {
        &self.cluster_names
    }

    /// The same clients in other clusters: one number per client, an index into the names. A cluster may be empty.
    pub fn clustered(&self, cluster: &[u32], names: Vec<String>) -> Result<Self, FederationError> {
        let mut members = self.members.clone();
        for (member, place) in members.iter_mut().zip(0..) {
            let number = cluster.get(place).copied().filter(|number| (*number as usize) < names.len());
            let unknown = || FederationError::Unknown(self.client_names[place].clone());
            member.cluster = number.ok_or_else(unknown)?;
        }
        let (clients, servers) = (self.client_names.clone(), self.server_names.clone());
        Ok(Self::index(members, clients, servers, names, self.topology.clone()))
    }

    /// Every client at a server of its own that has its name, in a graph of clients.
    pub fn each_alone(&self, topology: Topology) -> Result<Self, FederationError> {
        let (graph, names) = (topology.len(), self.client_names.len());
        if graph != names {
            return Err(FederationError::Servers { graph, names });
        }
        let mut members = self.members.clone();
        for member in &mut members {
            member.server = member.id;
        }
        let clients = self.client_names.clone();
        Ok(Self::index(members, clients.clone(), clients, self.cluster_names.clone(), topology))
    }

    /// The same clients as a method sees them: clusters merged, edges dropped, servers merged.
    #[must_use]
    pub fn arranged(&self, arrange: Arrange) -> Self {
        let mut members = self.members.clone();
        let (mut servers, mut clusters) = (self.server_names.clone(), self.cluster_names.clone());
        let mut topology = self.topology.clone();
        if arrange.one_cluster {
            for member in &mut members {
                member.cluster = 0;
            }
            clusters = vec!["all".into()];
        }
        if arrange.no_edges {
            topology = Topology::none(servers.len());
        }
        if arrange.one_server {
            for member in &mut members {
                member.server = 0;
            }
            servers = vec!["cloud".into()];
            topology = Topology::none(1);
        }
        Self::index(members, self.client_names.clone(), servers, clusters, topology)
    }
}

/// How a method rewrites the federation before it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrange {
    /// All clients learn one model (Q = 1).
    pub one_cluster: bool,
    /// Servers do not talk to each other.
    pub no_edges: bool,
    /// All clients are attached to one server.
    pub one_server: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, server: u32, cluster: u32) -> Entry {
        Entry { name: name.into(), server, cluster, samples: 2 }
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    fn small() -> Federation {
        let entries = vec![entry("b", 1, 0), entry("a", 0, 1), entry("c", 1, 1)];
        let (federation, order) =
            Federation::new(entries, names(&["s", "t"]), names(&["x", "y"]), Topology::ring(2)).unwrap();
        assert_eq!(order, [1, 0, 2]);
        federation
    }

    #[test]
    fn ids_follow_the_byte_order_of_names() {
        let federation = small();
        assert_eq!(federation.client_names(), ["a", "b", "c"]);
        assert_eq!(federation.members()[1], Member { id: 1, server: 1, cluster: 0, samples: 2 });
        assert_eq!(federation.clients_of(1), [1, 2]);
        assert_eq!(federation.find_client("c"), Some(2));
        assert_eq!(federation.find_client("d"), None);
    }

    #[test]
    fn bad_rosters_are_refused() {
        let build =
            |entries| Federation::new(entries, names(&["s"]), names(&["x"]), Topology::none(1)).unwrap_err();
        assert_eq!(build(vec![]), FederationError::Empty);
        assert_eq!(build(vec![entry("a", 0, 0), entry("a", 0, 0)]), FederationError::Duplicate("a".into()));
        assert_eq!(build(vec![entry("a", 1, 0)]), FederationError::Unknown("a".into()));
        let none = Entry { samples: 0, ..entry("a", 0, 0) };
        assert_eq!(build(vec![none]), FederationError::NoSamples("a".into()));
        let empty =
            Federation::new(vec![entry("a", 0, 0)], names(&["s"]), names(&["x", "y"]), Topology::none(1));
        assert_eq!(empty.unwrap_err(), FederationError::EmptyCluster("y".into()));
    }

    #[test]
    fn clients_move_to_other_clusters_and_to_servers_of_their_own() {
        let moved = small().clustered(&[1, 1, 1], names(&["p", "q"])).unwrap();
        assert!(moved.members().iter().all(|member| member.cluster == 1));
        assert_eq!((moved.clusters(), moved.clients_of(1)), (2, &[1, 2][..]));
        let wrong = |clusters: &[u32]| small().clustered(clusters, names(&["p"])).unwrap_err();
        assert_eq!(wrong(&[0, 0]), FederationError::Unknown("c".into()));
        assert_eq!(wrong(&[0, 1, 0]), FederationError::Unknown("b".into()));
        let alone = small().each_alone(Topology::star(3)).unwrap();
        assert_eq!((alone.server_names(), alone.clients_of(2)), (small().client_names(), &[2][..]));
        assert_eq!(alone.members()[1].cluster, small().members()[1].cluster);
        let few = small().each_alone(Topology::none(2)).unwrap_err();
        assert_eq!(few, FederationError::Servers { graph: 2, names: 3 });
    }

    #[test]
    fn arranging_rewrites_the_roster_and_keeps_the_clients() {
        let cloud = small().arranged(Arrange { one_server: true, one_cluster: true, no_edges: false });
        assert_eq!((cloud.servers(), cloud.clusters()), (1, 1));
        assert_eq!(cloud.clients_of(0), [0, 1, 2]);
        assert_eq!(
            small().arranged(Arrange { no_edges: true, ..Arrange::default() }).topology().edges().count(),
            0
        );
    }
}
