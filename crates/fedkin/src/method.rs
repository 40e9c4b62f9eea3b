//! Methods by type, each with its settings, and what an own method is made of.
//!
//! A type names a method, its settings are a struct with defaults: `method::<Pgfl>(PgflSettings::default())`. Reductions
//! that share the settings of another method are named instead: [`Simulation::method_named`](crate::Simulation::method_named).

pub use fedkin_method::registry::{Method, Methods, Row};
pub use fedkin_method::{
    Accept, Admm, AdmmKeys, AgnosticStart, Algorithm, AsStar, Averaging, Batches, Centralized,
    CentralizedSettings, Context, Divisor, Dual, FedAvgSettings, FedBnSettings, FedGlAverageSettings,
    FedGlSettings, FedPnp, FedPnpSettings, FedProxSettings, GFedMtlSettings, GradientScale, GraphSource,
    Ifca, IfcaSettings, IfcaStart, Igl, IglSettings, Local, LocalSettings, NeighbourSum, Now, Order,
    PFedMeSettings, PerFedAvgSettings, PersFl, PersFlAgnostic, PersFlAgnosticSettings, PersFlSettings,
    PersFlStart, PgflSettings, PublicLaw, Rule, RunningStatistics, Sampled, Sampling, ServerView,
    SingleStepSettings, SolverName, SolverSettings, Star, Statistic, Targets, Tau, TauDecay, Weighting,
};

use fedkin_method as rules;

/// PGFL: personal models per cluster over a graph of servers.
pub type Pgfl = Admm<rules::Pgfl>;
/// Graph federated multitask learning.
pub type GFedMtl = Admm<rules::GFedMtl>;
/// The papers' single-step server update.
pub type SingleStep = Admm<rules::SingleStep>;
/// Federated averaging.
pub type FedAvg = AsStar<rules::FedAvg>;
/// Federated averaging with a pull towards the served model.
pub type FedProx = AsStar<rules::FedProx>;
/// Federated averaging of all but the norms of a net.
pub type FedBn = AsStar<rules::FedBn>;
/// A model for all from which one gradient step leads to a good one for each.
pub type PerFedAvg = AsStar<rules::PerFedAvg>;
/// Personal models tied to a model for all by a squared distance.
pub type PFedMe = AsStar<rules::PFedMe>;
/// A graph for every client and a consensus graph for all.
pub type FedGl = rules::FedGl<rules::Consensus>;
/// One graph for all clients.
pub type FedGlAverage = rules::FedGl<rules::Average>;
