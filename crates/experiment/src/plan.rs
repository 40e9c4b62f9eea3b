//! A config turned into things that can run.

use crate::config::{self, Config, Override, Source, Tables};
use crate::error::Error;
use crate::kin::Given;
use crate::scorer::{EDGE, Global, Scorer, Wanted};
use fedkin_core::Federation;
use fedkin_core::algorithm::registry::{self, Row};
use fedkin_core::algorithm::{Context, Run};
use fedkin_core::model::{Loss, Model, Problem};
use fedkin_core::params::{Value, Values, suggest};
use fedkin_core::privacy::Privacy;
use fedkin_core::rng::repeat_seed;
use fedkin_core::signals::Records;
use fedkin_data::{GRAPH_PARAMS, Request, SOURCES, Task, TopologySpec, World, node_names, topology_spec};
use fedkin_runtime::{Live, start};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// The tables every config is checked against.
pub fn tables() -> Tables<'static> {
    static SOURCE_ROWS: LazyLock<Vec<config::Row<'static>>> =
        LazyLock::new(|| SOURCES.iter().map(|row| (row.name, row.summary, row.params)).collect());
    static METHOD_ROWS: LazyLock<Vec<config::Row<'static>>> =
        LazyLock::new(|| registry::TABLE.iter().map(|row| (row.name, row.summary, row.params)).collect());
    Tables { sources: &SOURCE_ROWS, algorithms: &METHOD_ROWS, topology: GRAPH_PARAMS }
}

/// One run as configured: one method, any number of repeats.
pub struct Plan {
    /// The config with every default.
    pub config: Config,
    /// The method's row of the registry.
    pub row: &'static Row,
    /// What the clients fit.
    pub problem: Problem,
    /// What protects the uploads.
    pub privacy: Privacy,
    pub(crate) base: PathBuf,
    place: String,
    pub(crate) topology: TopologySpec,
    /// Clusters and graphs of clients that the data do not have.
    pub kin: Given,
}

/// Builds a method and lets it go: whether its parameters fit together.
struct Nothing;

impl registry::Visitor for Nothing {
    type Output = ();
    fn visit<A: fedkin_core::algorithm::Algorithm>(self, _: A) {}
}

/// What the clients of a config fit; the number of classes is the config's, or the one its data source knows.
pub(crate) fn problem_of(config: &Config) -> Result<Problem, String> {
    Problem::knowing(&config.model, fedkin_data::known(&config.data_source, &config.data))
}

/// Builds a method and asks whether it can work with a federation.
struct Suits<'a> {
    federation: &'a Federation,
    run: &'a Run,
}

impl registry::Visitor for Suits<'_> {
    type Output = Result<(), String>;
    fn visit<A: fedkin_core::algorithm::Algorithm>(self, algorithm: A) -> Self::Output {
        algorithm.suits(self.federation, self.run)
    }
}

/// Builds a method and asks how many rounds are done after a step.
struct RoundsAfter<'a>(u32, &'a Run);

impl registry::Visitor for RoundsAfter<'_> {
    type Output = u32;
    fn visit<A: fedkin_core::algorithm::Algorithm>(self, algorithm: A) -> u32 {
        algorithm.rounds(self.0, self.1)
    }
}

/// Which clients the key `targets` of a method names: nothing where it has no such key, or all.
fn targets(values: &Values, federation: &Federation) -> Result<Option<Arc<[u32]>>, String> {
    let names: Vec<&Value> = match values.get("targets") {
        None => return Ok(None),
        Some(Value::Text(word)) if word == "all" => return Ok(None),
        Some(Value::List(names)) => names.iter().collect(),
        Some(one) => vec![one],
    };
    if names.is_empty() {
        return Err("algorithm.targets is empty: name at least one client, or say \"all\"".into());
    }
    let mut ids = Vec::new();
    for name in names {
        let Value::Text(name) = name else { continue };
        let id = federation.find_client(name).ok_or_else(|| {
            let near = suggest(name, federation.client_names().iter().map(String::as_str));
            format!("algorithm.targets: no client is called {name:?}{near}")
        })?;
        ids.push(id);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids.into()))
}

/// A world with a method running in it.
pub struct Stage {
    /// The run.
    pub live: Box<dyn Live>,
    /// What is measured.
    pub scorer: Scorer,
}

impl Plan {
    /// Reads a config file's text with overrides; relative paths start at `base`.
    pub fn load(
        source: &Source,
        base: &Path,
        overrides: &[Override],
        sets: &[&[Override]],
    ) -> Result<Self, Error> {
        let config = config::load_variant(source, overrides, sets, &tables())?;
        Self::new(config, base, &source.name)
    }

    /// Checks what spans several sections.
    pub fn new(config: Config, base: &Path, place: &str) -> Result<Self, Error> {
        let conflict = |message: String| Error::Conflict { place: place.to_string(), message };
        let row = registry::find(&config.algorithm).map_err(conflict)?;
        let problem = problem_of(&config).map_err(conflict)?;
        if row.graphs != matches!(problem, Problem::Graph(_)) {
            let kind = config.model.text("kind").unwrap_or_default();
            let (does, remedy) = if row.graphs {
                ("learns graphs", "set model.kind = \"graph\", or name a method of linear models")
            } else {
                (
                    "fits linear models",
                    "set model.kind = \"ridge\" or \"logistic\", or algorithm.name = \"fedgl\"",
                )
            };
            return Err(conflict(format!(
                "algorithm.name = {:?} {does}, and model.kind is {kind:?}: {remedy} (`fedkin algorithms` lists all)",
                row.name
            )));
        }
        let privacy = Privacy::new(&config.privacy).map_err(conflict)?;
        let topology = topology_spec(&config.topology, base)?;
        let by_client = match config.data.get("standardise") {
            Some(Value::Flag(on)) => *on,
            Some(Value::Text(word)) => word == "client",
            _ => false,
        };
        if privacy.demanded() && by_client {
            return Err(conflict(
                "data.standardise by client lets one record move all others, so no sensitivity is known: \
                 standardise by agreed constants (a CSV file), or set privacy.mechanism = \"none\""
                    .into(),
            ));
        }
        if config.privacy.get("ledger").is_some()
            && config.run.integer("repeats").is_some_and(|repeats| repeats > 1)
        {
            return Err(conflict(
                "privacy.ledger is for run.repeats = 1: repeats draw data of their own, and each would be charged; \
                 use one seed per run, or remove the ledger"
                    .into(),
            ));
        }
        let kin = Given::new(&config.kin, base);
        let plan = Self {
            row,
            problem,
            privacy,
            base: base.to_path_buf(),
            place: place.to_string(),
            topology,
            kin,
            config,
        };
        // A method refuses parameters that do not fit together before any data is read.
        registry::visit(row.name, &plan.config.algorithm_values, &plan.context(), Nothing)
            .map_err(conflict)?;
        plan.check_discovery()?;
        Ok(plan)
    }

    /// The file the config came from, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// What a method is built with besides its own parameters.
    pub fn context(&self) -> Context {
        Context { problem: self.problem.clone(), privacy: self.privacy, infer: self.kin.infer() }
    }

    /// The name of the run.
    pub fn name(&self) -> &str {
        self.config.run.text("name").unwrap_or("run")
    }

    /// How many rounds.
    pub fn rounds(&self) -> u32 {
        self.config.run.integer("rounds").unwrap_or(1) as u32
    }

    /// How many Monte Carlo repeats.
    pub fn repeats(&self) -> u32 {
        self.config.run.integer("repeats").unwrap_or(1) as u32
    }

    /// The seed of a repeat.
    pub fn seed(&self, repeat: u32) -> u64 {
        repeat_seed(self.config.run.integer("seed").unwrap_or(0) as u64, repeat)
    }

    /// Rounds between two evaluations.
    pub fn every(&self) -> u32 {
        self.config.evaluate.integer("every").unwrap_or(1) as u32
    }

    /// The folder of the ledger that spans runs, where there is one.
    pub fn ledger(&self) -> Option<PathBuf> {
        self.config.privacy.text("ledger").map(|folder| self.base.join(folder))
    }

    /// The delta at which epsilon is reported.
    pub fn delta(&self) -> f64 {
        self.config.privacy.number("delta").unwrap_or(1e-5)
    }

    /// The names of the nodes whose graphs are learnt; nothing where models are.
    pub(crate) fn nodes(&self, world: &World) -> Option<Vec<String>> {
        let Problem::Graph(smooth) = &self.problem else { return None };
        let columns = world.schema.columns();
        Some(match smooth.records {
            Records::Signals => world.schema.features.iter().map(|feature| feature.name.clone()).collect(),
            Records::Distances => node_names(smooth.nodes(columns)?),
        })
    }

    /// Above this a weight of a graph is an edge.
    pub fn threshold(&self) -> f64 {
        self.config.evaluate.number("threshold").unwrap_or(EDGE)
    }

    /// What the targets are.
    pub(crate) fn task(&self) -> Task {
        match &self.problem {
            // Squared differences have no target either, and are read as any other table.
            Problem::Graph(_) => Task::Signals,
            Problem::Classes(model) => Task::Classes(model.classes as u32),
            Problem::Linear(Model { loss: Loss::Logistic, .. }) => Task::Classification,
            Problem::Agnostic(kinds) if kinds.classes() => Task::Classification,
            Problem::Net(net) if net.classifies() => Task::Classes(net.outputs() as u32),
            Problem::Linear(_) | Problem::Agnostic(_) | Problem::Net(_) => Task::Regression,
        }
    }

    /// Loads or draws the data of a repeat.
    pub fn world(&self, repeat: u32) -> Result<World, Error> {
        let world = self.world_from(&self.config.data_source, &self.config.data, &self.base, repeat)?;
        let world = self.kin.world(world, self.row.needs_connected)?;
        self.problem
            .takes(world.schema.columns())
            .map_err(|message| Error::Conflict { place: self.place.clone(), message })?;
        // A federation that the method cannot work with is refused like data that are wrong.
        self.run(&world.federation, self.problem.dimension(world.schema.columns()), repeat)?;
        Ok(world)
    }

    /// Whether the method can work with a world that another plan has loaded from the same data.
    pub(crate) fn suits(&self, world: &World) -> Result<(), Error> {
        self.run(&world.federation, self.problem.dimension(world.schema.columns()), 0).map(|_| ())
    }

    /// Loads or draws from another `[data]` table, as the data say, without `[kin]`.
    pub(crate) fn world_from(
        &self,
        source: &str,
        values: &Values,
        base: &Path,
        repeat: u32,
    ) -> Result<World, Error> {
        Ok(fedkin_data::load(&Request {
            source,
            values,
            base,
            topology: &self.topology,
            task: self.task(),
            seed: self.seed(repeat),
            // Servers that `[kin]` replaces need not talk to each other.
            require_connected: self.row.needs_connected && !self.kin.replaces().1,
        })?)
    }

    /// How many clusters clients are divided into, by the data or by `[kin]`.
    pub(crate) fn clusters(&self, world: &World) -> usize {
        self.kin.unknown(world.federation.clone()).clusters()
    }

    /// The federation as the method sees it.
    pub(crate) fn arranged(&self, whole: &Federation) -> Federation {
        self.kin.unknown(whole.arranged(self.row.arrange))
    }

    /// The federation as the method sees it, and what is fixed for a repeat: the same for one process that has
    /// everything and for a node that has the roster.
    pub fn run(&self, whole: &Federation, dimension: usize, repeat: u32) -> Result<(Federation, Run), Error> {
        let conflict = |message: String| Error::Conflict { place: self.place.clone(), message };
        let federation = self.arranged(whole);
        let max_norm = self.config.run.number("max_norm").unwrap_or(1e6);
        // Other methods see the graph as one of servers, and nodes have no file of it.
        let takes_file = self.config.algorithm_values.text("graph") == Some("file");
        // One server has all clients: it asks as many as the servers it stands for.
        let merged = if self.row.arrange.one_server { whole.servers() as i64 } else { 1 };
        let run = Run {
            seed: self.seed(repeat),
            rounds: self.rounds(),
            clients_per_server: self
                .config
                .participation
                .integer("clients_per_server")
                .map(|count| u32::try_from(count * merged).unwrap_or(u32::MAX)),
            max_norm2: max_norm * max_norm,
            dimension,
            clusters: federation.clusters(),
            privacy: self.privacy,
            targets: targets(&self.config.algorithm_values, &federation).map_err(conflict)?,
            kin: if takes_file { self.kin.client_graph(&federation)? } else { None },
        };
        let suits = Suits { federation: &federation, run: &run };
        registry::visit(self.row.name, &self.config.algorithm_values, &self.context(), suits)
            .and_then(|suits| suits)
            .map_err(conflict)?;
        Ok((federation, run))
    }

    /// How many of the configured rounds are done after a step.
    pub(crate) fn rounds_after(&self, step: u32, run: &Run) -> u32 {
        let visitor = RoundsAfter(step, run);
        registry::visit(self.row.name, &self.config.algorithm_values, &self.context(), visitor)
            .unwrap_or(step)
    }

    /// Starts the method on a world.
    pub fn start(&self, world: &World, repeat: u32) -> Result<Stage, Error> {
        let dimension = self.problem.dimension(world.schema.columns());
        let (federation, run) = self.run(&world.federation, dimension, repeat)?;
        let mut live = start(
            self.row.name,
            &self.config.algorithm_values,
            &self.context(),
            run,
            &federation,
            &world.train,
        )?;
        let limit = self.config.run.number("state_limit").unwrap_or(1024.0);
        live.limit_memory((limit * f64::from(1 << 20)) as u64);
        Ok(Stage { live, scorer: self.scorer(world) })
    }

    /// What is measured on a world.
    pub fn scorer(&self, world: &World) -> Scorer {
        let wanted: Vec<String> = self
            .config
            .evaluate
            .list("models")
            .iter()
            .filter_map(|value| match value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            })
            .collect();
        let headline = self.config.evaluate.text("metric");
        let threshold = self.threshold();
        let evaluate = &self.config.evaluate;
        let global = evaluate.flag("global").then(|| Global {
            most: evaluate.integer("global_most").map(|most| most as usize),
            seed: self.seed(0),
        });
        let wanted = Wanted { models: &wanted, headline, threshold, global };
        Scorer::new(world, &self.problem, self.row.personal, &wanted)
    }
}
