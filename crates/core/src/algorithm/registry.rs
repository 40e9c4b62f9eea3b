//! The table of methods: command-line help, config validation, reference documentation, conformance and fault tests come
//! from it. Adding a native method is one file and one row here; a program adds rows of its own to its table.

use super::{
    Admm, Algorithm, AsStar, Average, Baseline, Centralized, Colours, Consensus, Context, EdgeMeaning,
    FedAvg, FedBn, FedGl, FedPnp, FedProx, GFedMtl, Ifca, Igl, Inferred, Local, PFedMe, PerFedAvg, PersFl,
    PersFlAgnostic, Pgfl, SingleStep, Targets, Typed,
};
use crate::federation::Arrange;
use crate::learner::{Abilities, refusal};
use crate::params::{Param, Values};
use crate::privacy::Protection;
use crate::round::AnyMethod;
use crate::settings::Settings;
use crate::table::{Named, Table};
use std::sync::Arc;

/// A method that can be built from a config.
pub trait Method: Algorithm {
    /// Its own settings: defaults, ranges and meaning.
    type Settings: Settings;
    /// What it needs of a learner.
    const NEEDS: Abilities;
    /// The mechanisms that cover its uploads; none where empty. Other methods name it where they refuse one of these.
    const COVERED_BY: &'static [Protection] = &[];

    /// Builds it from settings that passed their table.
    fn build(settings: Self::Settings, context: &Context) -> Result<Self, String>;

    /// Builds it from checked values.
    fn from_values(values: &Values, context: &Context) -> Result<Self, String> {
        Self::build(Self::Settings::read(values)?, context)
    }

    /// The clients that models are wanted for.
    fn targets(_settings: &Self::Settings) -> Targets {
        Targets::All
    }

    /// Whether the run is to bring a graph of clients.
    fn takes_client_graph(_settings: &Self::Settings) -> bool {
        false
    }

    /// What to warn of before a run of so many rounds starts: what is to be expected, and what to do about it.
    fn caveat(_settings: &Self::Settings, _context: &Context, _rounds: u32) -> Option<&'static str> {
        None
    }
}

/// Builds a method from validated values and forgets its type.
type Build = fn(&Values, &Context) -> Result<Arc<dyn AnyMethod>, String>;

fn build<M: Method>(values: &Values, context: &Context) -> Result<Arc<dyn AnyMethod>, String> {
    Ok(Arc::new(M::from_values(values, context)?))
}

/// What the table says of a method, and how it is built.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name in a config.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Its own parameters.
    pub params: &'static [Param],
    /// What its settings say, for code that does not know their type.
    pub typed: Typed,
    /// How it sees the federation.
    pub arrange: Arrange,
    /// Whether the graph of servers must be connected.
    pub needs_connected: bool,
    /// Whether only a simulation may run it.
    pub simulation_only: bool,
    /// Whether it learns graphs from signals, and not models of targets.
    pub graphs: bool,
    /// What it needs of a learner.
    pub needs: Abilities,
    /// The names of a client's models; the first is its own.
    pub personal: &'static [&'static str],
    /// The mechanisms that cover its uploads.
    pub covered_by: &'static [Protection],
    /// What it stands for beside others, where it is a baseline.
    pub baseline: Option<Baseline>,
    /// What the weights of edges between clients say.
    pub edges: EdgeMeaning,
    /// How it is drawn.
    pub colours: Colours,
    build: Build,
    infer: Option<Build>,
}

impl Named for Row {
    fn name(&self) -> &str {
        self.name
    }
}

impl Row {
    /// The row of a method that sees the federation as it is.
    pub const fn of<M: Method>(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            params: <M::Settings as Settings>::PARAMS,
            typed: Typed::of::<M>(),
            needs: M::NEEDS,
            arrange: AS_IS,
            needs_connected: false,
            simulation_only: M::SIMULATION_ONLY,
            graphs: M::GRAPHS,
            personal: M::PERSONAL,
            covered_by: M::COVERED_BY,
            baseline: None,
            edges: EdgeMeaning::Worth,
            colours: Colours { own: None, variants: &[] },
            build: build::<M>,
            infer: None,
        }
    }

    /// The same with another view of the federation.
    #[must_use]
    pub const fn arranged(self, arrange: Arrange) -> Self {
        Self { arrange, ..self }
    }

    /// The same for a graph of servers that must be connected.
    #[must_use]
    pub const fn connected(self) -> Self {
        Self { needs_connected: true, ..self }
    }

    /// The same where `M` serves a run whose clusters are found on the way (`kin.clusters = "infer"`).
    #[must_use]
    pub const fn inferring<M: Method>(self) -> Self {
        Self { infer: Some(build::<M>), ..self }
    }

    /// Whether clusters can be found on the way.
    pub fn infers(&self) -> bool {
        self.infer.is_some()
    }

    /// Whether the learners of a run can do what the method needs.
    fn able(&self, context: &Context) -> Result<(), String> {
        let mut lacking =
            context.families.placed().filter(|(_, family)| !family.has().lack(self.needs).is_empty());
        lacking.next().map_or(Ok(()), |(place, family)| {
            Err(refusal(
                (self.name, self.needs),
                (family.name(), family.has()),
                place,
                family.why_not(family.has().lack(self.needs)),
                context.registry.methods.iter().map(|row| (row.name, row.needs)),
                context.registry.learners.iter().map(|row| (row.name, row.has)),
            ))
        })
    }

    /// Builds the method from validated values.
    pub fn build(&self, values: &Values, context: &Context) -> Result<Arc<dyn AnyMethod>, String> {
        self.able(context)?;
        if context.infer.is_none() {
            return (self.build)(values, context);
        }
        let infer = self.infer.ok_or_else(|| {
            let able: Vec<&str> =
                context.registry.methods.iter().filter(|row| row.infers()).map(|row| row.name).collect();
            format!(
                "kin.clusters = \"infer\" is for {}; {} takes clusters that are known: those of the data, or a file \
                 that another run has written (kin.clusters = \"runs/.../clusters.csv\")",
                able.join(" and "),
                self.name
            )
        })?;
        infer(values, context)
    }
}

/// Methods by name.
pub type Methods = Table<Row>;

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
