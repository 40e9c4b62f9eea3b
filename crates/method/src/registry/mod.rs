//! What a config may name. A [`Row`] says what a method is and how it is built: command-line help, config validation,
//! reference documentation, conformance and fault tests come from it. A [`Registry`] has all rows of a program: those of
//! [`methods`](crate::methods), and what the program adds.

mod context;
mod facts;
mod tables;
mod typed;

pub use crate::methods::native;
pub use context::Context;
pub use facts::{Baseline, Colours, EdgeMeaning};
pub use tables::Registry;
pub use typed::{Targets, Typed};

pub(crate) use context::{NO_GRAPH, privacy_of_graphs};
pub(crate) use typed::TARGETS;

use crate::algorithm::Algorithm;
use crate::federation::Arrange;
use crate::robust::Aggregation;
use crate::round::AnyMethod;
use fedkin_learner::{Abilities, refusal};
use fedkin_privacy::Protection;
use fedkin_settings::{Named, Param, Settings, Table, Values};
use std::sync::Arc;

/// A method that can be built from a config.
pub trait Method: Algorithm {
    /// Its own settings: defaults, ranges and meaning.
    type Settings: Settings;
    /// What it needs of a learner.
    const NEEDS: Abilities;
    /// The mechanisms that cover its uploads; none where empty. Other methods name it where they refuse one of these.
    const COVERED_BY: &'static [Protection] = &[];

    /// Whether its servers can put uploads together other than by their mean (`[robust]`).
    const ROBUST: bool = false;

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
#[allow(clippy::struct_excessive_bools)] // A table of facts, each of them yes or no.
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
    /// Whether `[robust]` is for it.
    pub robust: bool,
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
            robust: M::ROBUST,
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

    /// Whether the method can do what `[robust]` asks for.
    fn can_be_robust(&self, context: &Context) -> Result<(), String> {
        let robust = &context.robust;
        if !robust.is_on() {
            return Ok(());
        }
        if !self.robust || context.infer.is_some() {
            let able = context.registry.methods.iter().filter(|row| row.robust).map(|row| row.name);
            let why = if self.robust { " with kin.clusters = \"infer\"" } else { "" };
            return Err(format!(
                "[robust] is for {}; {}{why} has no cells of models that could be put together otherwise: leave the section out",
                able.collect::<Vec<_>>().join(", "),
                self.name
            ));
        }
        if robust.neighbours != Aggregation::Mean && (self.arrange.one_server || self.arrange.no_edges) {
            return Err(format!(
                "robust.neighbours is for servers with neighbours, and those of {} have none",
                self.name
            ));
        }
        let unread = |key: &str, wanted: Aggregation| {
            (robust.aggregation != wanted && robust.neighbours != wanted)
                .then(|| format!("robust.{key} is for aggregation = {:?} and is not read", wanted.word()))
        };
        if robust.radius.is_some()
            && let Some(problem) = unread("radius", Aggregation::CentredClipping)
        {
            return Err(problem);
        }
        Ok(())
    }

    /// Builds the method from validated values.
    pub fn build(&self, values: &Values, context: &Context) -> Result<Arc<dyn AnyMethod>, String> {
        self.able(context)?;
        self.can_be_robust(context)?;
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
