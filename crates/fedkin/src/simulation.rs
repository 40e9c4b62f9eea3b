//! A method that trains on a federation in this process.

use crate::learner::{Family, Known, LearnerKind};
use crate::method::Method;
use crate::trained::Trained;
use crate::{Control, Error, Federation, Finished, PrivacySettings, Registry};
use fedkin_config::{Evaluate, Kin, Parsed, Participation, Run};
use fedkin_data::Source;
use fedkin_data::sources::Memory;
use fedkin_deploy::{Deployment, Hosts, Roster};
use fedkin_run::{Brought, Plan, Running, measured};
use fedkin_runtime::transport::Network;
use fedkin_settings::{Settings, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Until nodes of one process send again.
const RESEND: Duration = Duration::from_millis(100);

/// What the run is called in messages, and in a run directory.
const NAME: &str = "simulation";
/// The section that says what clients fit.
const MODEL: &str = "model";

/// Builds a family once it is known what the records say of themselves.
type Build = Arc<dyn Fn(Known) -> Result<Arc<dyn Family>, String> + Send + Sync>;

/// What clients fit.
#[derive(Clone)]
enum Fitted {
    /// By settings of a kind.
    Keys(Build, BTreeMap<String, Value>),
    /// As a value.
    Value(Arc<dyn Family>),
}

/// A run in this process, put together call by call: a method and a learner are required, everything else has a default.
/// Nothing is checked before [`run`](Self::run), [`run_in`](Self::run_in) or [`start`](Self::start).
///
/// The same federation, settings and seed give the same models to the bit, on any number of threads.
#[derive(Clone)]
#[must_use = "a simulation trains when `run` is called"]
pub struct Simulation {
    federation: Federation,
    registry: Registry,
    method: Option<(String, BTreeMap<String, Value>)>,
    /// By place: `model`, or the name of a learner that some clients have.
    learners: BTreeMap<String, Fitted>,
    run: Run,
    participation: Participation,
    kin: Kin,
    privacy: PrivacySettings,
    evaluate: Evaluate,
}

impl Simulation {
    /// A simulation on this federation, of 100 rounds with seed 0.
    pub fn new(federation: Federation) -> Self {
        Self {
            federation,
            registry: Registry::native(),
            method: None,
            learners: BTreeMap::new(),
            run: Run { name: NAME.into(), rounds: 100, ..Run::default() },
            participation: Participation::default(),
            kin: Kin::default(),
            privacy: PrivacySettings::default(),
            evaluate: Evaluate::default(),
        }
    }

    /// Chooses from this registry instead of what comes with Fedkin.
    pub fn registry(mut self, registry: &Registry) -> Self {
        self.registry = registry.clone();
        self
    }

    /// The method, by its type. Its row must be in the registry.
    #[allow(clippy::needless_pass_by_value, reason = "settings are written out in the call")]
    pub fn method<M: Method>(self, settings: M::Settings) -> Self {
        self.method_named(M::NAME, &settings)
    }

    /// The method, by the name of its row: for reductions such as PGFL with one cluster, whose settings are those of
    /// another method.
    pub fn method_named(mut self, name: impl Into<String>, settings: &impl Settings) -> Self {
        self.method = Some((name.into(), settings.values()));
        self
    }

    /// What every client fits, by the settings of a learner.
    pub fn learner<K: LearnerKind<Settings = K> + Settings>(self, keys: K) -> Self {
        self.learner_named(MODEL, keys)
    }

    /// What the clients fit whose records name this learner (see
    /// [`FederationBuilder::learner`](crate::FederationBuilder::learner)).
    pub fn learner_named<K: LearnerKind<Settings = K> + Settings>(
        mut self,
        name: impl Into<String>,
        keys: K,
    ) -> Self {
        let values = keys.values();
        self.learners
            .insert(name.into(), Fitted::Keys(Arc::new(move |known| K::build(&keys, known)), values));
        self
    }

    /// What every client fits, as a value of one's own.
    pub fn family(self, family: impl Family) -> Self {
        self.family_named(MODEL, family)
    }

    /// What the clients fit whose records name this learner, as a value of one's own.
    pub fn family_named(mut self, name: impl Into<String>, family: impl Family) -> Self {
        self.learners.insert(name.into(), Fitted::Value(Arc::new(family)));
        self
    }

    /// How many rounds to train.
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.run.rounds = rounds;
        self
    }

    /// What all public random numbers follow from.
    pub fn seed(mut self, seed: u64) -> Self {
        self.run.seed = seed;
        self
    }

    /// How many clients a server asks each round; all where nothing is said.
    pub fn clients_per_server(mut self, count: u32) -> Self {
        self.participation.clients_per_server = Some(count);
        self
    }

    /// What protects the uploads; nothing where nothing is said.
    pub fn privacy(mut self, privacy: PrivacySettings) -> Self {
        self.privacy = privacy;
        self
    }

    /// Who is kin of whom, where the federation does not say or says it wrong.
    pub fn kin(mut self, kin: Kin) -> Self {
        self.kin = kin;
        self
    }

    /// What is measured, and when; everything after every round where nothing is said.
    pub fn evaluate(mut self, evaluate: Evaluate) -> Self {
        self.evaluate = evaluate;
        self
    }

    /// The other settings of a run: its name, repeats and limits. Rounds and seed are among them.
    pub fn settings(mut self, run: Run) -> Self {
        self.run = run;
        self
    }

    fn known(&self) -> Known {
        let classes = self.federation.classes.len();
        Known { classes: (classes > 0).then_some(classes), shape: self.federation.schema.shape }
    }

    /// Checks everything and builds the method.
    fn plan(&self) -> Result<Plan, Error> {
        let missing = |what: &str| conflict(NAME, what.into());
        let (method, keys) = self.method.as_ref().ok_or_else(|| {
            missing("no method was chosen: call `method`, or `method_named` with the name of a row")
        })?;
        if !self.learners.contains_key(MODEL) {
            return Err(missing(
                "nothing says what clients fit: call `learner`, or `family` with one of your own",
            ));
        }
        let named = |selector: &str, name: &str, keys: &BTreeMap<String, Value>| {
            let mut keys = keys.clone();
            keys.insert(selector.into(), Value::Text(name.into()));
            keys
        };
        let mut sections = vec![
            ("run".to_string(), self.run.values()),
            ("data".to_string(), named("source", Memory::NAME, &BTreeMap::new())),
            ("algorithm".to_string(), named("name", method, keys)),
            ("participation".to_string(), self.participation.values()),
            ("kin".to_string(), self.kin.values()),
            ("privacy".to_string(), self.privacy.values()),
            ("evaluate".to_string(), self.evaluate.values()),
        ];
        let mut brought = Brought::default();
        for (place, fitted) in &self.learners {
            let section = if place == MODEL { MODEL.to_string() } else { format!("learner.{place}") };
            let (family, keys) = match fitted {
                Fitted::Keys(build, keys) => {
                    (build(self.known()).map_err(|message| conflict(&section, message))?, keys.clone())
                }
                Fitted::Value(family) => (Arc::clone(family), BTreeMap::new()),
            };
            let name = family.name().to_string();
            // A learner without a row is known to this run alone.
            let keys =
                if self.registry.core().learners.get(&name).is_some() { keys } else { BTreeMap::new() };
            sections.push((section, named("kind", &name, &keys)));
            brought.insert(place.clone(), family);
        }
        let parsed = Parsed::typed(NAME, sections);
        Plan::in_memory(&self.registry, &parsed, &brought, self.federation.clone())
    }

    /// Trains to the end.
    pub fn run(&self) -> Result<Trained, Error> {
        let mut rounds = self.start()?;
        for round in &mut rounds {
            round?;
        }
        Ok(rounds.trained())
    }

    /// Trains round by round: an iterator that a program watches and may leave at any time.
    ///
    /// ```
    /// # use fedkin::{Federation, Simulation, learner::Ridge, method::{FedAvg, FedAvgSettings}};
    /// # let federation = Federation::builder()
    /// #     .client("a", 1, vec![1.0, 2.0], vec![2.0, 4.0]).client("b", 1, vec![3.0], vec![6.0]).build()?;
    /// let simulation = Simulation::new(federation)
    ///     .method::<FedAvg>(FedAvgSettings::default())
    ///     .learner(Ridge::default())
    ///     .rounds(30);
    /// let mut rounds = simulation.start()?;
    /// while let Some(round) = rounds.next() {
    ///     let round = round?;
    ///     if round.metric("train_loss.client").is_some_and(|loss| loss < 1e-3) {
    ///         break;
    ///     }
    /// }
    /// let trained = rounds.trained();
    /// # Ok::<(), fedkin::Error>(())
    /// ```
    pub fn start(&self) -> Result<Rounds, Error> {
        let plan = Arc::new(self.plan()?);
        let running = Running::start(Arc::clone(&plan), 0, true, &unwatched())?;
        Ok(Rounds { plan, running, failed: false, seen: 0 })
    }

    /// Trains into a run directory with models, metrics, ledger and report, or goes on from what is there: what `fedkin run`
    /// does with a config. Learners must have a row in the registry.
    pub fn run_in(&self, directory: &Path, control: &Control<'_>) -> Result<Finished, Error> {
        let plan = self.plan()?;
        for (place, fitted) in &self.learners {
            let named = match fitted {
                Fitted::Keys(build, _) => {
                    let family = build(self.known()).map_err(|message| conflict(place, message))?;
                    self.registry.core().learners.get(family.name()).is_some()
                }
                Fitted::Value(_) => false,
            };
            if !named {
                let message = "this learner is known to this program alone, and a run directory names what can be built \
                               again: add its row to the registry (`Registry::add_learner`) and set it by `learner`, or call \
                               `run`";
                return Err(conflict(place, message.into()));
            }
        }
        fedkin_experiment::run(&plan, directory, Path::new(""), control)
    }
}

impl Simulation {
    /// Trains on nodes of this process, one for each server and one for each client, that talk over this network only:
    /// [`Memory`](crate::transport::Memory), or a program's own. The models are those of [`run`](Self::run), to the bit,
    /// whatever the network loses, doubles or delays. Metrics are taken once, after the last round.
    pub fn run_over(&self, network: impl Network + 'static) -> Result<Trained, Error> {
        let plan = self.plan()?;
        let world = plan.world(0)?;
        let roster = Roster::of(&plan, &world, &Hosts::Each)?;
        let mut deployment = Deployment::new(plan, roster)?;
        // In one process an answer takes no time; what was lost is sent again soon.
        deployment.resend = deployment.resend.min(RESEND);
        let deployment = Arc::new(deployment);
        let state = tempfile::tempdir()
            .map_err(|error| Error::Usage(format!("no folder for the state of the nodes: {error}")))?;
        let collected = deployment.over(network, state.path())?;
        let mut outcome = measured(&deployment.plan, world, Box::new(collected))?;
        let plan = Arc::new(self.plan()?);
        match outcome.end.take() {
            Some((federation, results)) => Ok(Trained::new(plan, (outcome, federation, results))),
            None => Err(Error::Usage("the nodes left no models".into())),
        }
    }
}

fn conflict(place: &str, message: String) -> Error {
    Error::Conflict { place: place.into(), message }
}

/// A control that nobody uses.
fn unwatched() -> Control<'static> {
    static GO_ON: AtomicBool = AtomicBool::new(false);
    Control { stop: &GO_ON, tick: &|| {} }
}

/// One round that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Which one, from 1.
    pub number: u32,
    /// Clients whose uploads counted.
    pub counted: u32,
    /// Clients that refused to answer.
    pub refused: u32,
    /// Clients whose uploads were rejected.
    pub rejected: u32,
    /// Means over clients of what was measured after it; empty where nothing was.
    pub metrics: BTreeMap<String, f64>,
}

impl Round {
    /// A metric by its name, such as `mse.client`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).copied()
    }
}

/// A simulation between two rounds.
#[must_use = "rounds are run as the iterator is advanced"]
pub struct Rounds {
    plan: Arc<Plan>,
    running: Running<Arc<Plan>>,
    failed: bool,
    /// Rows of the metrics that earlier rounds have given.
    seen: usize,
}

impl Iterator for Rounds {
    type Item = Result<Round, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut counted = [0; 3];
        while !(self.failed || self.running.ended()) {
            match self.running.step() {
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
                Ok(stepped) => {
                    let Some(counts) = stepped.counts else { continue };
                    // A round may have several steps.
                    for (sum, count) in
                        counted.iter_mut().zip([counts.values, counts.refused, counts.rejected])
                    {
                        *sum += count;
                    }
                    if stepped.whole {
                        return Some(Ok(self.round(stepped.round, counted)));
                    }
                }
            }
        }
        None
    }
}

impl Rounds {
    fn round(&mut self, number: u32, [counted, refused, rejected]: [u32; 3]) -> Round {
        let rows = self.running.metrics().rows().skip(self.seen);
        let rows = rows.filter(|row| row.node.is_empty() && row.metric.contains('.'));
        let metrics = rows.map(|row| (row.metric.to_string(), row.value)).collect();
        self.seen = self.running.metrics().len();
        Round { number, counted, refused, rejected, metrics }
    }

    /// What the rounds so far have come to.
    pub fn trained(self) -> Trained {
        Trained::new(self.plan, self.running.finish())
    }
}
