//! A config turned into things that can run.

mod learners;
mod records;
mod search;

use crate::error::Error;
use crate::kin::Given;
use crate::learners::{Named, families_of, task_of};
use crate::registry::{Brought, Registry};
use fedkin_config::{Config, Override, Parsed, Source};
use fedkin_data::{About, Request, Task, TopologySpec, World, node_names, topology_spec};
use fedkin_learner::signals::Records;
use fedkin_learner::{Abilities, Family};
use fedkin_measure::{Global, Scorer, Wanted};
use fedkin_method::registry::Row;
use fedkin_method::round::{AnyMethod, Live};
use fedkin_method::{Context, Families, Federation, Liars, Robust, Run, Targets};
use fedkin_numeric::rng::repeat_seed;
use fedkin_privacy::Privacy;
use fedkin_runtime::{Threads, file_spill};
use fedkin_settings::{Values, suggest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One run as configured: one method, any number of repeats.
pub struct Plan {
    /// The config with every default.
    pub config: Config,
    /// The method's row of the registry.
    pub row: Row,
    /// The method, built once for all repeats.
    pub method: Arc<dyn AnyMethod>,
    /// What the config was read with.
    pub registry: Registry,
    /// What the clients fit.
    pub families: Families,
    /// What protects the uploads.
    pub privacy: Privacy,
    /// Where relative paths of the config start.
    pub base: PathBuf,
    place: String,
    /// The graph of servers as the config describes it.
    pub topology: TopologySpec,
    /// Clusters and graphs of clients that the data do not have.
    pub kin: Given,
    /// Records that a program holds, where the config names none.
    given: Option<Box<World>>,
}

/// The clients that a method's settings want models for: nothing where that is all.
fn target_ids(targets: Targets, federation: &Federation) -> Result<Option<Arc<[u32]>>, String> {
    let Targets::Named(names) = targets else { return Ok(None) };
    if names.is_empty() {
        return Err("algorithm.targets is empty: name at least one client, or say \"all\"".into());
    }
    let mut ids = Vec::new();
    for name in &names {
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
        registry: &Registry,
        source: &Source,
        base: &Path,
        overrides: &[Override],
        sets: &[&[Override]],
    ) -> Result<Self, Error> {
        Self::of(registry, &Parsed::new(source)?, base, overrides, sets)
    }

    /// The same of a text that was read already.
    pub fn of(
        registry: &Registry,
        parsed: &Parsed,
        base: &Path,
        overrides: &[Override],
        sets: &[&[Override]],
    ) -> Result<Self, Error> {
        let config = parsed.load_variant(overrides, sets, &registry.tables())?;
        Self::new(registry, config, base, parsed.name())
    }

    /// Checks what spans several sections.
    pub fn new(registry: &Registry, config: Config, base: &Path, place: &str) -> Result<Self, Error> {
        let families = families_of(registry, &config, &Brought::default());
        let families = families.map_err(|message| Error::Conflict { place: place.to_string(), message })?;
        Self::with(registry, config, base, place, families)
    }

    /// A plan for records that a program holds, with learners that it brings. The config's data source is
    /// [`Memory`](fedkin_data::sources::Memory); a learner that is no row of the registry is known to this plan alone.
    pub fn in_memory(
        registry: &Registry,
        parsed: &Parsed,
        brought: &Brought,
        world: World,
    ) -> Result<Self, Error> {
        let registry = registry.with_brought(brought);
        let config = parsed.load_variant(&[], &[], &registry.tables())?;
        let place = parsed.name();
        let families = families_of(&registry, &config, brought);
        let families = families.map_err(|message| Error::Conflict { place: place.to_string(), message })?;
        let plan = Self::with(&registry, config, Path::new(""), place, families)?;
        let plan = Self { given: Some(Box::new(world)), ..plan };
        plan.world(0).map(|_| plan)
    }

    /// The same with what clients fit.
    pub(crate) fn with(
        registry: &Registry,
        config: Config,
        base: &Path,
        place: &str,
        families: Families,
    ) -> Result<Self, Error> {
        let conflict = |message: String| Error::Conflict { place: place.to_string(), message };
        let row = *registry.methods().find(&config.algorithm).map_err(|error| conflict(error.to_string()))?;
        let privacy = Privacy::new(&config.privacy).map_err(conflict)?;
        let topology = topology_spec(&config.topology, base)?;
        if privacy.demanded() && registry.data().about(&config.data_source, &config.data).by_client {
            return Err(conflict(
                "data.standardise by client lets one record move all others, so no sensitivity is known: \
                 standardise by agreed constants (a CSV file), or set privacy.mechanism = \"none\""
                    .into(),
            ));
        }
        if config.privacy.ledger.is_some() && config.run.repeats > 1 {
            return Err(conflict(
                "privacy.ledger is for run.repeats = 1: repeats draw data of their own, and each would be charged; \
                 use one seed per run, or remove the ledger"
                    .into(),
            ));
        }
        if let Some(headline) = &config.evaluate.metric {
            registry.metrics().check(headline).map_err(conflict)?;
        }
        let kin = Given::new(&config.kin, base);
        let known = Arc::clone(registry.core());
        let context = Context {
            families: families.clone(),
            privacy,
            infer: kin.infer(),
            robust: (*config.robust).clone(),
            liars: None,
            registry: known,
        };
        // A method refuses parameters that do not fit together before any data is read.
        let method = row.build(&config.algorithm_values, &context).map_err(conflict)?;
        let plan = Self {
            row,
            method,
            registry: registry.clone(),
            families,
            privacy,
            base: base.to_path_buf(),
            place: place.to_string(),
            topology,
            kin,
            config,
            given: None,
        };
        plan.check_discovery()?;
        Ok(plan)
    }

    /// Whether a program holds the records: nobody has looked at their targets when they were read.
    pub fn is_in_memory(&self) -> bool {
        self.given.is_some()
    }

    /// What the config was read with.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The file the config came from, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What methods are built with, under this privacy.
    pub(crate) fn context(&self, privacy: Privacy) -> Context {
        let registry = Arc::clone(self.registry.core());
        Context {
            families: self.families.clone(),
            privacy,
            infer: self.kin.infer(),
            robust: (*self.config.robust).clone(),
            liars: None,
            registry,
        }
    }

    /// A method with the plan's parameters and model, under another privacy.
    pub fn built(&self, row: &Row, privacy: Privacy) -> Result<Arc<dyn AnyMethod>, String> {
        row.build(&self.config.algorithm_values, &self.context(privacy))
    }

    /// The same run with uploads put together otherwise, or with clients that lie: for simulations of an attack.
    pub fn attacked(&self, robust: Robust, liars: Option<Liars>) -> Result<Arc<dyn AnyMethod>, String> {
        let context = Context { robust, liars, ..self.context(self.privacy) };
        self.row.build(&self.config.algorithm_values, &context)
    }

    /// Whether the clients of a method are worth a look one by one: few, with a graph each, or with probabilities to be
    /// judged.
    pub fn looks_at_clients(&self) -> bool {
        let judged = |family: &dyn Family| {
            let parametric = family.has().contain(Abilities::PARAMETERS);
            parametric && (family.output().classes() > 0 || !family.is_linear())
        };
        self.row.graphs || self.families.all().any(judged)
    }

    /// The name of the run.
    pub fn name(&self) -> &str {
        &self.config.run.name
    }

    /// How many rounds.
    pub fn rounds(&self) -> u32 {
        self.config.run.rounds
    }

    /// How many Monte Carlo repeats.
    pub fn repeats(&self) -> u32 {
        self.config.run.repeats
    }

    /// The seed of a repeat.
    pub fn seed(&self, repeat: u32) -> u64 {
        repeat_seed(self.config.run.seed, repeat)
    }

    /// Rounds between two evaluations.
    pub fn every(&self) -> u32 {
        self.config.evaluate.every
    }

    /// The folder of the ledger that spans runs, where there is one.
    pub fn ledger(&self) -> Option<PathBuf> {
        self.config.privacy.ledger.as_ref().map(|folder| self.base.join(folder))
    }

    /// The delta at which epsilon is reported.
    pub fn delta(&self) -> f64 {
        self.config.privacy.delta
    }

    /// The names of the nodes whose graphs are learnt; nothing where models are.
    pub fn nodes(&self, world: &World) -> Option<Vec<String>> {
        let smooth = self.families.first().signals()?;
        let columns = world.schema.columns();
        Some(match smooth.records {
            Records::Signals => world.schema.features.iter().map(|feature| feature.name.clone()).collect(),
            Records::Distances => node_names(smooth.nodes(columns)?),
        })
    }

    /// Above this a weight of a graph is an edge.
    pub fn threshold(&self) -> f64 {
        self.config.evaluate.threshold
    }

    /// What the targets are.
    pub fn task(&self) -> Task {
        task_of(&self.families)
    }

    /// The number of parameters for this many columns.
    pub fn dimension(&self, columns: usize) -> usize {
        self.families.first().dimension(columns)
    }

    /// What `[data]` says of the records before anybody looks at them.
    pub fn about(&self) -> About {
        self.registry.data().about(&self.config.data_source, &self.config.data)
    }

    /// Loads or draws the data of a repeat.
    pub fn world(&self, repeat: u32) -> Result<World, Error> {
        let world = match &self.given {
            Some(world) => (**world).clone(),
            None => self.world_from(&self.config.data_source, &self.config.data, &self.base, repeat)?,
        };
        let world = self.kin.world(world, self.row.needs_connected)?;
        for family in self.families.all() {
            family
                .takes(world.schema.columns())
                .map_err(|message| Error::Conflict { place: self.place.clone(), message })?;
        }
        // A federation that the method cannot work with is refused like data that are wrong.
        let (_, run) = self.run_of(&world, repeat)?;
        self.check_all_targets(&world, run.learners.as_deref())?;
        Ok(world)
    }

    /// Whether the method can work with a world that another plan has loaded from the same data.
    pub fn suits(&self, world: &World) -> Result<(), Error> {
        self.run_of(world, 0).map(|_| ())
    }

    /// Loads or draws from another `[data]` table, as the data say, without `[kin]`.
    pub fn world_from(
        &self,
        source: &str,
        values: &Values,
        base: &Path,
        repeat: u32,
    ) -> Result<World, Error> {
        Ok(fedkin_data::load(&Request {
            registry: self.registry.data(),
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
    /// everything and for a node that has the roster. `named` are the learners that records or roster name.
    pub fn run(
        &self,
        whole: &Federation,
        named: Named<'_>,
        columns: usize,
        repeat: u32,
    ) -> Result<(Federation, Run), Error> {
        let conflict = |message: String| Error::Conflict { place: self.place.clone(), message };
        let federation = self.arranged(whole);
        let max_norm = self.config.run.max_norm;
        // Other methods see the graph as one of servers, and nodes have no file of it.
        let values = &self.config.algorithm_values;
        let takes_graph = (self.row.typed.takes_client_graph)(values).map_err(conflict)?;
        let targets = (self.row.typed.targets)(values).map_err(conflict)?;
        // One server has all clients: it asks as many as the servers it stands for.
        let merged = if self.row.arrange.one_server { whole.servers() as u32 } else { 1 };
        let run = Run {
            seed: self.seed(repeat),
            rounds: self.rounds(),
            clients_per_server: self
                .config
                .participation
                .clients_per_server
                .map(|count| count.saturating_mul(merged)),
            max_norm2: max_norm * max_norm,
            dimension: self.dimension(columns),
            columns: Some(columns),
            learners: self.learners(whole, named)?,
            clusters: federation.clusters(),
            privacy: self.privacy,
            targets: target_ids(targets, &federation).map_err(conflict)?,
            kin: if takes_graph { self.kin.client_graph(&federation)? } else { None },
        };
        self.method.suits(&federation, &run).map_err(conflict)?;
        Ok((federation, run))
    }

    /// The same of a world that is at hand.
    pub fn run_of(&self, world: &World, repeat: u32) -> Result<(Federation, Run), Error> {
        self.run(&world.federation, world.learners.as_deref(), world.schema.columns(), repeat)
    }

    /// How many of the configured rounds are done after a step.
    pub fn rounds_after(&self, step: u32, run: &Run) -> u32 {
        self.method.rounds(step, run)
    }

    /// Starts the method on a world.
    pub fn start(&self, world: &World, repeat: u32) -> Result<Stage, Error> {
        self.start_with(Arc::clone(&self.method), world, repeat)
    }

    /// The same with another method that this plan has built.
    pub fn start_with(&self, method: Arc<dyn AnyMethod>, world: &World, repeat: u32) -> Result<Stage, Error> {
        let (federation, run) = self.run_of(world, repeat)?;
        let mut live = method.simulate(run, &federation, &world.train, Arc::new(Threads))?;
        live.limit_memory((self.config.run.state_limit * f64::from(1 << 20)) as u64, file_spill);
        Ok(Stage { live, scorer: self.scorer(world)? })
    }

    /// What is measured on a world.
    pub fn scorer(&self, world: &World) -> Result<Scorer, Error> {
        let evaluate = &self.config.evaluate;
        let wanted = Wanted {
            models: &evaluate.models,
            headline: evaluate.metric.as_deref(),
            metrics: self.registry.metrics(),
            threshold: evaluate.threshold,
            global: evaluate.global.then(|| Global { most: evaluate.global_most, seed: self.seed(0) }),
        };
        let learners = self.learners_of(world)?;
        Ok(Scorer::new(world, &self.families, learners, self.row.personal, &wanted))
    }
}
