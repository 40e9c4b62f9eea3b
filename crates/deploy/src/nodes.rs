//! The names under which nodes talk to each other.

use super::Roster;
use fedkin_method::Federation;
use std::collections::BTreeSet;

/// The node of every server and of every client. All nodes derive the same names from the roster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// The node of each server of the arranged federation, by id. It is the server's name, with `server-` before
    /// it where a host has that name already.
    pub servers: Vec<String>,
    /// The host of each client, by id.
    pub hosts: Vec<String>,
}

impl Nodes {
    /// Names the nodes of a federation as the method sees it.
    pub fn new(roster: &Roster, arranged: &Federation) -> Self {
        let hosts: Vec<String> = roster.clients.iter().map(|client| client.host.clone()).collect();
        let mut taken: BTreeSet<String> = hosts.iter().cloned().collect();
        let mut servers = Vec::with_capacity(arranged.servers());
        for name in arranged.server_names() {
            let mut node = name.clone();
            while !taken.insert(node.clone()) {
                node.insert_str(0, "server-");
            }
            servers.push(node);
        }
        Self { servers, hosts }
    }

    /// Every host once, in byte order, with the ids of its clients.
    pub fn by_host(&self) -> Vec<(&str, Vec<u32>)> {
        let mut order: Vec<(&str, u32)> = self.hosts.iter().map(String::as_str).zip(0..).collect();
        order.sort_unstable();
        let mut hosts: Vec<(&str, Vec<u32>)> = Vec::new();
        for (host, id) in order {
            match hosts.last_mut() {
                Some((last, ids)) if *last == host => ids.push(id),
                _ => hosts.push((host, vec![id])),
            }
        }
        hosts
    }

    /// The hosts of a server's clients, each once, in byte order.
    pub fn hosts_of(&self, arranged: &Federation, server: u32) -> Vec<&str> {
        let hosts: BTreeSet<&str> =
            arranged.clients_of(server).iter().map(|&id| self.hosts[id as usize].as_str()).collect();
        hosts.into_iter().collect()
    }

    /// The server nodes of some clients, each once, in byte order.
    pub fn servers_of(&self, arranged: &Federation, clients: &[u32]) -> Vec<&str> {
        let members = arranged.members();
        let servers: BTreeSet<&str> =
            clients.iter().map(|&id| self.servers[members[id as usize].server as usize].as_str()).collect();
        servers.into_iter().collect()
    }

    /// The nodes of a server's neighbours, by id.
    pub fn neighbours_of(&self, arranged: &Federation, server: u32) -> Vec<&str> {
        let neighbours = arranged.topology().neighbours(server);
        neighbours.iter().map(|&id| self.servers[id as usize].as_str()).collect()
    }
}
