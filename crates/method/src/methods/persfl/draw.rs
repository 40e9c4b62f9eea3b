//! Who is asked for a step.

use super::{PersFl, client_of};
use crate::algorithm::{Algorithm, Run};
use crate::federation::{Federation, Member};
use crate::methods::candidates;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::choice;

choice! {
    /// Who may be drawn.
    pub enum Sampling {
        /// Anybody else.
        Uniform = "uniform",
        /// Anybody else of the roster's own cluster.
        Cluster = "cluster",
        /// Those that were worth most, and those of which little is known.
        Bandit = "bandit",
        /// The same for a while; then groups of kin train together.
        Graph = "graph",
    }
}

impl Sampling {
    /// Whether rewards decide who is asked, so that targets tell all their losses.
    pub(super) fn remembers(self) -> bool {
        matches!(self, Sampling::Bandit | Sampling::Graph)
    }

    /// How many candidates are asked where nobody says.
    pub(super) fn candidates(self) -> u32 {
        // Rewards make small draws worth while.
        if self.remembers() { 5 } else { 20 }
    }

    /// The size of a step where nobody says.
    pub(super) fn learning_rate(self) -> f64 {
        // With rewards the steps of several kin are averaged: they can be longer.
        if self.remembers() { 0.1 } else { 0.01 }
    }
}

/// Adds `count` candidates of a target from all others: sorted, without repetition, never the target itself.
pub(super) fn uniform(count: u32, target: usize, clients: usize, rng: &mut PublicRng, out: &mut Vec<u32>) {
    let drawn = rng.choose(clients as u32 - 1, count);
    out.extend(drawn.into_iter().map(|c| c + u32::from(c as usize >= target)));
}

/// The same from the target's own cluster in the roster.
pub(super) fn of_cluster(
    count: u32,
    target: usize,
    members: &[Member],
    rng: &mut PublicRng,
    out: &mut Vec<u32>,
) {
    let own = members[target].cluster;
    let kin = |&c: &u32| c as usize != target && members[c as usize].cluster == own;
    let others: Vec<u32> = (0..members.len() as u32).filter(kin).collect();
    let drawn = rng.choose(others.len() as u32, count);
    out.extend(drawn.into_iter().map(|c| others[c as usize]));
}

/// Whether every target has as many others to ask as it wants to.
pub(super) fn possible(
    sampling: Sampling,
    count: u32,
    federation: &Federation,
    run: &Run,
) -> Result<(), String> {
    let members = federation.members();
    if sampling != Sampling::Cluster || members.len() < 2 {
        return candidates::enough(PersFl::NAME, count, members.len());
    }
    let mut sizes = vec![0u32; federation.clusters()];
    for member in members {
        sizes[member.cluster as usize] += 1;
    }
    let targets = run.targets.as_ref().map_or(members.len(), |targets| targets.len());
    for target in 0..targets {
        let member = &members[client_of(run, target)];
        let others = sizes[member.cluster as usize] - 1;
        if count > others {
            return Err(format!(
                "algorithm.candidates = {count}, but client {:?} has {others} others in its cluster {:?}: set it to \
                 {} or less, or algorithm.sampling = \"uniform\"",
                federation.client_name(member.id),
                federation.cluster_names()[member.cluster as usize],
                others.max(1)
            ));
        }
    }
    Ok(())
}
