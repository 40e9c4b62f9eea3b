//! The methods, one file or folder each, and the table of those that come with Fedkin. Adding one is a file and a row.
//!
//! Families of methods share their steps: [`Admm`] (PGFL, `GFedMtl` and the single step differ in a [`Rule`]) and [`Star`]
//! (one server, one model for all). What they share beside: `training` (local gradient steps), `candidates` and `guard`
//! (active sampling), `scale` (the scale of gradients).

mod admm;
mod agnostic;
mod candidates;
mod centralized;
mod fedavg;
mod fedbn;
mod fedgl;
mod fedpnp;
mod fedprox;
mod gfedmtl;
mod guard;
mod ifca;
mod igl;
mod infer;
mod local;
mod per_fedavg;
mod persfl;
mod pfedme;
mod pgfl;
mod scale;
mod single_step;
mod star;
mod training;

pub use admm::{Admm, AdmmKeys, Rule};
pub use agnostic::{AgnosticStart, PersFlAgnostic, PersFlAgnosticSettings, PublicLaw};
pub use centralized::{Centralized, CentralizedSettings};
pub use fedavg::{FedAvg, FedAvgSettings};
pub use fedbn::{FedBn, FedBnSettings};
pub use fedgl::{Average, Consensus, FedGl, FedGlAverageSettings, FedGlSettings, SolverName, SolverSettings};
pub use fedpnp::{FedPnp, FedPnpSettings, GraphSource, RunningStatistics, Statistic};
pub use fedprox::{FedProx, FedProxSettings};
pub use gfedmtl::{GFedMtl, GFedMtlSettings, NeighbourSum};
pub use guard::Accept;
pub use ifca::{Averaging, Divisor, Ifca, IfcaSettings, IfcaStart};
pub use igl::{Igl, IglSettings};
pub use infer::{Infer, Inferred};
pub use local::{Local, LocalSettings};
pub use per_fedavg::{Order, PerFedAvg, PerFedAvgSettings};
pub use persfl::{PersFl, PersFlSettings, PersFlStart, Sampling};
pub use pfedme::{PFedMe, PFedMeSettings};
pub use pgfl::{Dual, Pgfl, PgflSettings, Tau, TauDecay};
pub use scale::GradientScale;
pub use single_step::{SingleStep, SingleStepSettings};
pub use star::{AsStar, Star};
pub use training::{Batches, Sampled, Weighting};

use crate::federation::Arrange;
use crate::registry::{Baseline, EdgeMeaning, Methods, Row};

const AS_IS: Arrange = Arrange { one_cluster: false, no_edges: false, one_server: false };
const ONE_CLUSTER: Arrange = Arrange { one_cluster: true, ..AS_IS };
const NO_EDGES: Arrange = Arrange { no_edges: true, ..AS_IS };
const ONE_SERVER: Arrange = Arrange { one_server: true, ..AS_IS };
/// One model for all at one server.
const STAR: Arrange = Arrange { one_cluster: true, one_server: true, ..AS_IS };

/// The methods that come with Fedkin.
pub fn native() -> Methods {
    let rows = [
        Row::of::<Admm<Pgfl>>("pgfl", "personal models per cluster over a graph of servers, with inter-cluster learning and zCDP").connected().inferring::<Inferred>().colour(0).variants(&[("adaptive", 2), ("pgfl-0", 5)]),
        Row::of::<Admm<GFedMtl>>("gfedmtl", "graph federated multitask learning: inter-cluster steps at the server and between servers").connected().colour(8),
        Row::of::<Admm<SingleStep>>("single-step", "the papers' single-step server update, for comparison with the multi-step one").connected().colour(9),
        Row::of::<Admm<Pgfl>>("gfl", "graph federated learning: one model for all, PGFL with Q = 1").arranged(ONE_CLUSTER).connected().colour(1).baseline(Baseline::OneModel),
        Row::of::<Admm<GFedMtl>>("gfed", "the GFedMtl paper's baseline: one model for all, GFedMtl with Q = 1").arranged(ONE_CLUSTER).connected(),
        Row::of::<Admm<GFedMtl>>("gfedmtl-alone", "the GFedMtl paper's other baseline: GFedMtl at each server alone").arranged(NO_EDGES),
        Row::of::<Admm<Pgfl>>("clusterfl", "clustered learning at each server alone, PGFL without edges").arranged(NO_EDGES).colour(3),
        Row::of::<Admm<Pgfl>>("one-cloud", "PGFL with all clients at one server, where that is allowed").arranged(ONE_SERVER).inferring::<Inferred>().colour(7),
        Row::of::<AsStar<FedAvg>>("fedavg", "federated averaging: one model for all from local gradient steps, with DP-SGD").arranged(STAR).colour(9).baseline(Baseline::OneModel),
        Row::of::<AsStar<FedProx>>("fedprox", "federated averaging whose clients are pulled towards the served model, with DP-SGD").arranged(STAR).colour(11),
        Row::of::<FedPnp>("fedpnp", "personal models denoised over a graph of clients: from local training to one model for all").arranged(ONE_SERVER).colour(7).edges(EdgeMeaning::Denoising),
        Row::of::<AsStar<FedBn>>("fedbn", "federated averaging of all but the norms of a net, which every client keeps to itself").arranged(STAR),
        Row::of::<AsStar<PerFedAvg>>("per-fedavg", "a model for all from which one gradient step leads to a good model for each (meta-learning)").arranged(STAR),
        Row::of::<AsStar<PFedMe>>("pfedme", "personal models tied to a model for all by a squared distance (Moreau envelopes)").arranged(STAR),
        Row::of::<FedGl<Consensus>>("fedgl", "a graph for every client and a consensus graph for all, learnt together from signals").arranged(STAR).colour(10),
        Row::of::<FedGl<Average>>("fedgl-average", "one graph for all clients: federated averaging of the same objective").arranged(STAR),
        Row::of::<Igl>("igl", "every client learns its graph alone; nothing leaves").baseline(Baseline::Alone),
        Row::of::<PersFl>("persfl", "personal models by active sampling: ask a few others for a step, keep what helps").arranged(ONE_SERVER).edges(EdgeMeaning::Reward),
        Row::of::<Ifca>("ifca", "iterative federated clustering: every client trains the one of k models that fits it best").arranged(ONE_SERVER),
        Row::of::<PersFlAgnostic>("persfl-agnostic", "personal models of any kind by active sampling: trees, neighbours, forests, linear models, also mixed").arranged(ONE_SERVER),
        Row::of::<Local>("local", "every client alone; nothing leaves").colour(4).baseline(Baseline::Alone),
        Row::of::<Centralized>("centralized", "all records of a cluster at one place; simulation only").arranged(ONE_SERVER).colour(6).variants(&[("oracle", 6), ("centralised", 6)]).baseline(Baseline::Pooled),
        Row::of::<Centralized>("pooled", "all records of all clients at one place: one model for all; simulation only").arranged(STAR).colour(6).baseline(Baseline::Pooled),
    ];
    let mut methods = Methods::new("algorithm");
    for row in rows {
        // A test holds that no name is there twice.
        let added = methods.add(row);
        debug_assert!(added.is_ok());
    }
    methods
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_the_table_and_names_its_models() {
        let methods = native();
        assert_eq!(methods.iter().count(), 23);
        assert!(methods.iter().all(|row| !row.personal.is_empty()));
        assert_eq!(
            methods.find("pglf").unwrap_err().to_string(),
            "unknown algorithm \"pglf\"; did you mean `pgfl`?"
        );
    }
}
