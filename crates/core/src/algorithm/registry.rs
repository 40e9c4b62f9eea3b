//! The one table of methods: command-line help, config validation, reference documentation and the
//! conformance tests come from it. Adding a method is one file and one row here.

use super::{
    Admm, Algorithm, AsStar, Average, Centralized, Consensus, Context, FedAvg, FedBn, FedGl, FedPnp, FedProx,
    GFedMtl, INFERRED, Ifca, Igl, Inferred, Local, PFedMe, PerFedAvg, PersFl, PersFlAgnostic, Pgfl,
    SingleStep,
};
use crate::federation::Arrange;
use crate::params::{Param, Values, suggest};

/// A method that can be built from a config.
pub trait Method: Algorithm {
    /// Its own parameters: defaults, ranges and meaning.
    const PARAMS: &'static [Param];
    /// Builds it from validated values.
    fn build(values: &Values, context: &Context) -> Result<Self, String>;
}

/// What the table says of a method.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name in a config.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Its own parameters.
    pub params: &'static [Param],
    /// How it sees the federation.
    pub arrange: Arrange,
    /// Whether the graph of servers must be connected.
    pub needs_connected: bool,
    /// Whether only a simulation may run it.
    pub simulation_only: bool,
    /// Whether it learns graphs from signals, and not models of targets.
    pub graphs: bool,
    /// The names of a client's models; the first is its own.
    pub personal: &'static [&'static str],
}

/// Does something with a method whose type is known only at run time.
pub trait Visitor {
    /// What comes out.
    type Output;
    /// Called with the built method.
    fn visit<A: Algorithm>(self, algorithm: A) -> Self::Output;
}

macro_rules! registry {
    ($($name:literal: $method:ty, connected: $connected:literal, $arrange:expr, $summary:literal;)*) => {
        /// All methods.
        pub const TABLE: &[Row] = &[$(Row {
            name: $name,
            summary: $summary,
            params: <$method as Method>::PARAMS,
            arrange: $arrange,
            needs_connected: $connected,
            simulation_only: <$method as Algorithm>::SIMULATION_ONLY,
            graphs: <$method as Algorithm>::GRAPHS,
            personal: <$method as Algorithm>::PERSONAL,
        }),*];

        /// Builds the method of this name and hands it to the visitor.
        pub fn visit<V: Visitor>(name: &str, values: &Values, context: &Context, visitor: V) -> Result<V::Output, String> {
            if context.infer.is_some() {
                return inferred(name, values, context, visitor);
            }
            match name {
                $($name => Ok(visitor.visit(<$method as Method>::build(values, context)?)),)*
                _ => Err(unknown(name)),
            }
        }
    };
}

const AS_IS: Arrange = Arrange { one_cluster: false, no_edges: false, one_server: false };

registry! {
    "pgfl": Admm<Pgfl>, connected: true, AS_IS,
        "personal models per cluster over a graph of servers, with inter-cluster learning and zCDP";
    "gfedmtl": Admm<GFedMtl>, connected: true, AS_IS,
        "graph federated multitask learning: inter-cluster steps at the server and between servers";
    "single-step": Admm<SingleStep>, connected: true, AS_IS,
        "the papers' single-step server update, for comparison with the multi-step one";
    "gfl": Admm<Pgfl>, connected: true, Arrange { one_cluster: true, ..AS_IS },
        "graph federated learning: one model for all, PGFL with Q = 1";
    "gfed": Admm<GFedMtl>, connected: true, Arrange { one_cluster: true, ..AS_IS },
        "the GFedMtl paper's baseline: one model for all, GFedMtl with Q = 1";
    "gfedmtl-alone": Admm<GFedMtl>, connected: false, Arrange { no_edges: true, ..AS_IS },
        "the GFedMtl paper's other baseline: GFedMtl at each server alone";
    "clusterfl": Admm<Pgfl>, connected: false, Arrange { no_edges: true, ..AS_IS },
        "clustered learning at each server alone, PGFL without edges";
    "one-cloud": Admm<Pgfl>, connected: false, Arrange { one_server: true, ..AS_IS },
        "PGFL with all clients at one server, where that is allowed";
    "fedavg": AsStar<FedAvg>, connected: false, Arrange { one_cluster: true, one_server: true, ..AS_IS },
        "federated averaging: one model for all from local gradient steps, with DP-SGD";
    "fedprox": AsStar<FedProx>, connected: false, Arrange { one_cluster: true, one_server: true, ..AS_IS },
        "federated averaging whose clients are pulled towards the served model, with DP-SGD";
    "fedpnp": FedPnp, connected: false, Arrange { one_server: true, ..AS_IS },
        "personal models denoised over a graph of clients: from local training to one model for all";
    "fedbn": AsStar<FedBn>, connected: false, Arrange { one_cluster: true, one_server: true, ..AS_IS },
        "federated averaging of all but the norms of a net, which every client keeps to itself";
    "per-fedavg": AsStar<PerFedAvg>, connected: false, Arrange { one_cluster: true, one_server: true, ..AS_IS },
        "a model for all from which one gradient step leads to a good model for each (meta-learning)";
    "pfedme": AsStar<PFedMe>, connected: false, Arrange { one_cluster: true, one_server: true, ..AS_IS },
        "personal models tied to a model for all by a squared distance (Moreau envelopes)";
    "fedgl": FedGl<Consensus>, connected: false, Arrange { one_cluster: true, one_server: true, ..AS_IS },
        "a graph for every client and a consensus graph for all, learnt together from signals";
    "fedgl-average": FedGl<Average>, connected: false, Arrange { one_cluster: true, one_server: true, ..AS_IS },
        "one graph for all clients: federated averaging of the same objective";
    "igl": Igl, connected: false, AS_IS,
        "every client learns its graph alone; nothing leaves";
    "persfl": PersFl, connected: false, Arrange { one_server: true, ..AS_IS },
        "personal models by active sampling: ask a few others for a step, keep what helps";
    "ifca": Ifca, connected: false, Arrange { one_server: true, ..AS_IS },
        "iterative federated clustering: every client trains the one of k models that fits it best";
    "persfl-agnostic": PersFlAgnostic, connected: false, Arrange { one_server: true, ..AS_IS },
        "personal models of any kind by active sampling: trees, neighbours, forests, linear models, also mixed";
    "local": Local, connected: false, AS_IS,
        "every client alone; nothing leaves";
    "centralized": Centralized, connected: false, Arrange { one_server: true, ..AS_IS },
        "all records of a cluster at one place; simulation only";
    "pooled": Centralized, connected: false, Arrange { one_cluster: true, one_server: true, ..AS_IS },
        "all records of all clients at one place: one model for all; simulation only";
}

/// The variants of methods that find the clusters on the way.
fn inferred<V: Visitor>(
    name: &str,
    values: &Values,
    context: &Context,
    visitor: V,
) -> Result<V::Output, String> {
    if !INFERRED.contains(&name) {
        return Err(format!(
            "kin.clusters = \"infer\" is for {}; {name} takes clusters that are known: those of the data, or a file \
             that another run has written (kin.clusters = \"runs/.../clusters.csv\")",
            INFERRED.join(" and ")
        ));
    }
    Ok(visitor.visit(<Inferred as Method>::build(values, context)?))
}

/// The row of a method.
pub fn find(name: &str) -> Result<&'static Row, String> {
    TABLE.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> String {
    format!("unknown algorithm {name:?}{}", suggest(name, TABLE.iter().map(|row| row.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_unknown_ones_get_a_suggestion() {
        for (i, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..i].iter().all(|other| other.name != row.name));
            assert!(!row.personal.is_empty());
        }
        assert_eq!(find("pglf").unwrap_err(), "unknown algorithm \"pglf\"; did you mean `pgfl`?");
    }
}
