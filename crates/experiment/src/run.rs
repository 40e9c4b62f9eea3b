//! `fedkin run`: one method, its repeats, one run directory.

use crate::artifacts::lock::RunLock;
use crate::artifacts::metrics::{self, Metrics};
use crate::artifacts::{ArtifactError, atomic, graphs, learnt, ledger, models};
use crate::config::{self, Config};
use crate::error::Error;
use crate::figures;
use crate::ledger::{AccountRow, Book, Charged};
use crate::plan::Plan;
use crate::registry::Registry;
use crate::repeat::{Control, Outcome, Resume, Spent, measured, refusals, run_on, run_repeat, worth};
use crate::running::Running;
use crate::scorer::{MetricTable, Shown};
use crate::spending::is_spent;
use crate::spread::Spread;
use crate::statistics::estimate;
use crate::warning::Warning;
use fedkin_core::codec::Codec;
use fedkin_core::privacy::{Cost, Draws, Line, Privacy, Trust};
use fedkin_core::round::Results;
use fedkin_data::World;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a finished run says of itself: `summary.json` of its directory, and `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The run directory.
    pub run: PathBuf,
    /// The method.
    pub algorithm: String,
    /// SHA-256 of the clients' own models of the first repeat, in id order.
    pub models_sha256: String,
    /// Rounds run.
    pub rounds: u32,
    /// Repeats run.
    pub repeats: u32,
    /// Wall-clock time of this call.
    pub seconds: f64,
    /// Every metric after the last round: mean over repeats; decibels beside the plain value.
    pub r#final: BTreeMap<String, f64>,
    /// Standard errors of the same, where there are repeats.
    pub stderr: BTreeMap<String, f64>,
    /// Standard deviations over clients of the same, means over the repeats that were looked at; as shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub std: BTreeMap<String, f64>,
    /// Means over the worst tenth of the clients, likewise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub worst_decile: BTreeMap<String, f64>,
    /// What the clients of the first repeat spent.
    pub privacy: PrivacySummary,
    /// Digest of the first repeat's data.
    pub data: String,
    /// The folder that relative paths of the config start from.
    pub base: PathBuf,
    /// Number of clients, servers and clusters.
    pub size: [usize; 3],
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// What was spent, under which promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrivacySummary {
    /// `none`, `zcdp` or `dp-sgd`.
    pub mechanism: String,
    /// What drew the noise, as the ledger calls it; empty where nothing was to be protected.
    #[serde(default)]
    pub sampler: String,
    /// `enforced`, `assumed, not enforced`, `claimed by the learner, not checked`, `refuted by audit: no guarantee`, or empty.
    pub bound: String,
    /// Largest epsilon of a client: the guarantee. Absent where nothing protects the uploads, or nothing that holds.
    pub epsilon: Option<f64>,
    /// The same by exact composition of Gaussians.
    pub epsilon_gaussian: Option<f64>,
    /// At this delta.
    pub delta: f64,
    /// Largest zCDP of a client.
    pub zcdp: f64,
    /// Mean zCDP over clients.
    pub mean_zcdp: f64,
    /// Mean epsilon over clients.
    pub mean_epsilon: Option<f64>,
    /// Releases in all, disclosures included.
    pub releases: u64,
    /// Clients that refused at least once.
    #[serde(default)]
    pub refused_clients: u64,
    /// The round in which the first of them did.
    #[serde(default)]
    pub refused_from: Option<u32>,
    /// The ledger that spans runs, where there is one: all of the above is then for all runs on the same data.
    #[serde(default)]
    pub ledger: Option<LedgerSummary>,
    /// The releases from Poisson samples of the client with the largest epsilon: with `zcdp` for the others, all that
    /// its epsilon follows from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<SampledReleases>,
}

/// What a ledger that spans runs knew before this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerSummary {
    /// Where it is.
    pub folder: PathBuf,
    /// Most runs on a client's data, this one included.
    pub runs: u64,
    /// Largest zCDP of a client before this run.
    pub zcdp_before: f64,
    /// Clients about whose data earlier runs let something out without noise that protects: no epsilon holds for them.
    pub disclosed_before: u64,
}

/// Releases from Poisson samples that are priced alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledReleases {
    /// Standard deviation of the noise over the clip of one record.
    pub noise_multiplier: f64,
    /// The chance of a record to be in a sample.
    pub sampling_rate: f64,
    /// How many releases.
    pub steps: u64,
}

impl SampledReleases {
    /// In words: `200 steps with noise 4.23 times the clip on samples of rate 0.1`.
    pub fn words(&self) -> String {
        format!(
            "{} step{} with noise {} times the clip on samples of rate {}",
            self.steps,
            if self.steps == 1 { "" } else { "s" },
            self.noise_multiplier,
            self.sampling_rate
        )
    }

    pub(crate) fn draws(&self) -> Draws {
        Draws { multiplier: self.noise_multiplier, rate: self.sampling_rate, steps: self.steps }
    }

    pub(crate) fn new(draws: &Draws) -> Self {
        Self { noise_multiplier: draws.multiplier, sampling_rate: draws.rate, steps: draws.steps }
    }
}

impl PrivacySummary {
    /// What it comes down to: epsilon of the largest client; zCDP where no epsilon holds.
    pub(crate) fn cost(&self) -> f64 {
        self.epsilon.unwrap_or(self.zcdp)
    }

    /// What a plan promises and a repeat spent.
    pub fn new(plan: &Plan, spent: &Spent) -> Self {
        let (private, guaranteed) = (plan.privacy.demanded(), plan.guarantees());
        let sampler = if plan.privacy == Privacy::None { "" } else { plan.privacy.sampler().name() };
        let trust = plan.privacy.trust(&plan.families).filter(|_| private);
        Self {
            mechanism: plan.config.privacy.mechanism.word().to_string(),
            sampler: sampler.to_string(),
            bound: trust.map_or("", Trust::words).to_string(),
            epsilon: guaranteed.then_some(spent.largest_epsilon),
            epsilon_gaussian: guaranteed.then_some(spent.largest_epsilon_gaussian),
            delta: spent.delta,
            zcdp: spent.largest_zcdp,
            mean_zcdp: spent.mean_zcdp,
            mean_epsilon: guaranteed.then_some(spent.mean_epsilon),
            releases: spent.releases,
            refused_clients: 0,
            refused_from: None,
            ledger: None,
            sampled: spent.sampled.iter().map(SampledReleases::new).collect(),
        }
    }

    /// What to say of its epsilon, where it is not what it seems.
    pub fn doubt(&self) -> Option<Warning> {
        worth(&self.bound)
    }

    /// Adds who refused, and what a ledger that spans runs knows.
    fn with(mut self, outcome: &Outcome, charged: Option<(&Book, &[Charged])>) -> Self {
        if let Some((clients, from)) = outcome.statements.as_deref().and_then(refusals) {
            (self.refused_clients, self.refused_from) = (clients, Some(from));
        }
        if let Some((book, charged)) = charged {
            let most = charged.iter().map(|charged| charged.before).max().unwrap_or(0);
            let ledger = LedgerSummary {
                folder: book.folder().to_path_buf(),
                runs: charged.iter().map(|charged| charged.runs).max().unwrap_or(1),
                zcdp_before: Cost::from_units(most).zcdp(),
                disclosed_before: charged.iter().filter(|charged| charged.disclosed_before()).count() as u64,
            };
            if ledger.disclosed_before > 0 {
                (self.epsilon, self.epsilon_gaussian, self.mean_epsilon) = (None, None, None);
            }
            if charged.iter().any(Charged::other_before) {
                self.epsilon_gaussian = None;
            }
            // The weakest word holds for the whole.
            let weakest = ["", Trust::Refuted.words(), Trust::Claimed.words()];
            let before = |trust| charged.iter().any(|charged| charged.trusted_before() == Some(trust));
            let weaker = [Trust::Claimed, Trust::Assumed].into_iter().find(|trust| before(*trust));
            if let Some(trust) = weaker.filter(|_| !weakest.contains(&self.bound.as_str())) {
                self.bound = trust.words().to_string();
            }
            self.ledger = Some(ledger);
        }
        self
    }
}

const SUMMARY: &str = "summary.json";
const CONFIG: &str = "config.toml";
const CHECKPOINTS: &str = "checkpoints";

/// A directory that holds one run.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    /// Where it is.
    pub path: PathBuf,
}

impl RunDirectory {
    /// A directory that need not exist yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
    }

    /// The summary, if the run is complete.
    pub fn summary(&self) -> Result<Option<Finished>, Error> {
        let path = self.path.join(SUMMARY);
        match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ArtifactError::File { action: "read", path, source }.into()),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| ArtifactError::Damaged { path, what: error.to_string() }.into()),
        }
    }

    /// The config the run was made with.
    pub fn config(&self, registry: &Registry) -> Result<Option<Config>, Error> {
        let path = self.path.join(CONFIG);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ArtifactError::File { action: "read", path, source }.into()),
            Ok(text) => {
                let source = config::Source { name: path.display().to_string(), text };
                Ok(Some(config::load(&source, &[], &registry.tables())?))
            }
        }
    }

    /// The metrics of a complete run.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        Ok(Metrics::read(&self.path.join(metrics::NAME))?)
    }

    /// Refuses a directory that belongs to another config, naming what differs; claims it otherwise.
    pub(crate) fn claim(&self, registry: &Registry, config: &Config) -> Result<RunLock, Error> {
        if self.path.exists() && !self.path.is_dir() {
            return Err(Error::Usage(format!("{} is a file: choose another --out", self.path.display())));
        }
        if let Some(before) = self.config(registry)? {
            if before.fingerprint() != config.fingerprint() && self.begun() {
                let differences = config.differences(&before).join("\n  ");
                return Err(Error::Usage(format!(
                    "{} holds a run with another config:\n  {differences}\nresume with the config of that run, or choose another --out",
                    self.path.display()
                )));
            }
        } else if self.path.is_dir() {
            let foreign = fs::read_dir(&self.path)
                .map_err(|source| ArtifactError::File { action: "read", path: self.path.clone(), source })?
                .flatten()
                // A process killed in its first moments leaves its lock and an unfinished config.
                .any(|entry| {
                    let name = entry.file_name();
                    let name = name.to_string_lossy();
                    name != "run.lock" && !(name.starts_with('.') && name.ends_with(".unfinished"))
                });
            if foreign {
                return Err(Error::Usage(format!(
                    "{} has files in it but is not a run directory: choose another --out",
                    self.path.display()
                )));
            }
        }
        make_folder(&self.path)?;
        let lock = RunLock::take(&self.path)?;
        for folder in ["models", "models/averaged", "graphs", "figures", CHECKPOINTS] {
            let folder = self.path.join(folder);
            if folder.is_dir() {
                atomic::remove_unfinished(&folder)?;
            }
        }
        atomic::write(&self.path.join(CONFIG), config.resolved().as_bytes())?;
        Ok(lock)
    }

    /// Whether there is anything to lose: a summary or a checkpoint.
    fn begun(&self) -> bool {
        let checkpoints = fs::read_dir(self.path.join(CHECKPOINTS));
        self.path.join(SUMMARY).exists() || checkpoints.is_ok_and(|mut list| list.next().is_some())
    }

    pub(crate) fn checkpoint(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = self.path.join(CHECKPOINTS);
        make_folder(&folder)?;
        Ok(folder.join(format!("{name}.bin")))
    }

    /// Writes the summary last: a directory with one is complete, and checkpoints are no longer needed.
    pub(crate) fn complete<T: Serialize>(&self, summary: &T) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(summary).map_err(|error| Error::Usage(error.to_string()))?;
        atomic::write(&self.path.join(SUMMARY), &text)?;
        let folder = self.path.join(CHECKPOINTS);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ArtifactError::File { action: "remove", path: folder, source: error }.into())
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path)
        .map_err(|source| ArtifactError::File { action: "create", path: path.to_path_buf(), source }.into())
}

/// The interval between checkpoints, if there are any.
pub(crate) fn checkpoint_interval(plan: &Plan) -> Option<Duration> {
    let seconds = plan.config.run.checkpoint_seconds;
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(1e9)))
}

/// Runs a plan into a directory, going on from what is there. A complete run is not run again.
pub fn run(plan: &Plan, out: &Path, base: &Path, control: &Control<'_>) -> Result<Finished, Error> {
    let directory = RunDirectory::new(out);
    let started = Instant::now();
    let _lock = directory.claim(&plan.registry, &plan.config)?;
    if let Some(done) = directory.summary()? {
        let world = plan.world(0)?;
        if hex(&world.fingerprint) != done.data {
            return Err(Error::Usage(format!(
                "the data changed since the run in {} ended: restore them, or choose another --out",
                out.display()
            )));
        }
        return Ok(done);
    }
    if plan.ledger().is_some() {
        return charged(plan, &directory, base, control, started);
    }
    let every = checkpoint_interval(plan);
    let outcomes: Vec<Outcome> = (0..plan.repeats())
        .into_par_iter()
        .map(|repeat| {
            let path = directory.checkpoint(&format!("repeat-{repeat:04}"))?;
            let resume = every.map(|every| Resume { path: &path, every: Some(every) });
            run_repeat(plan, repeat, resume.as_ref(), repeat == 0, control)
        })
        .collect::<Result<_, Error>>()?;
    let finished = write(plan, &directory, base, &outcomes, None, started)?;
    directory.complete(&finished)?;
    Ok(finished)
}

/// A run that is charged to a ledger which spans runs: before anything of it is written.
fn charged(
    plan: &Plan,
    directory: &RunDirectory,
    base: &Path,
    control: &Control<'_>,
    started: Instant,
) -> Result<Finished, Error> {
    let world = plan.world(0)?;
    let Some(mut book) = Book::open(plan, &world)? else {
        return Err(Error::Usage("privacy.ledger is not set".into()));
    };
    let path = directory.checkpoint(&format!("repeat-0000-{}", book.stamp()))?;
    let others = fs::read_dir(directory.path.join(CHECKPOINTS)).into_iter().flatten().flatten();
    let overtaken = !path.exists() && others.count() > 0;
    let resume = checkpoint_interval(plan).map(|every| Resume { path: &path, every: Some(every) });
    let openings = book.openings();
    let running = Running::new(plan, 0, world, Some(&openings), true)?;
    let mut outcome = run_on(running, plan, resume.as_ref(), control)?;
    if overtaken {
        outcome.warnings.push(Warning::BeganAgain);
    }
    let gave = gave(&outcome)?;
    let charged = book.charge(outcome.statements.as_deref().unwrap_or_default(), &gave)?;
    let before = charged.iter().filter(|charged| charged.disclosed_before()).count();
    if before > 0 {
        outcome.warnings.push(Warning::DisclosedBefore { clients: before });
    }
    let finished = write(plan, directory, base, &[outcome], Some((&book, &charged)), started)?;
    directory.complete(&finished)?;
    Ok(finished)
}

/// A digest of what a run gave: models and statements of all clients.
fn gave(outcome: &Outcome) -> Result<[u8; 32], Error> {
    let (Some((_, live)), Some(statements)) = (&outcome.end, &outcome.statements) else {
        return Err(Error::Usage("the run kept nothing to charge".into()));
    };
    let mut hash = blake3::Hasher::new_derive_key("fedkin 2026 what a run gave");
    live.own_models(&mut |_, model| {
        for value in model {
            hash.update(&value.to_le_bytes());
        }
    });
    for statement in statements {
        hash.update(&statement.to_bytes());
    }
    Ok(*hash.finalize().as_bytes())
}

/// A run directory that nodes on this machine work for.
pub struct Claimed {
    directory: RunDirectory,
    started: Instant,
    _lock: RunLock,
}

/// What a directory is good for.
pub enum Claim {
    /// Work is to be done.
    Open(Box<Claimed>),
    /// The run is complete already.
    Complete(Box<Finished>),
}

/// Claims a directory for a run of nodes; refuses one that belongs to another config.
pub fn claim(plan: &Plan, out: &Path) -> Result<Claim, Error> {
    if plan.ledger().is_some() {
        return Err(Error::Usage(
            "privacy.ledger is for runs in one process: client hosts keep ledgers of their own in their state; \
             remove it, or run without --runtime nats"
                .into(),
        ));
    }
    let directory = RunDirectory::new(out);
    let lock = directory.claim(&plan.registry, &plan.config)?;
    if let Some(done) = directory.summary()? {
        return Ok(Claim::Complete(Box::new(done)));
    }
    // Nodes leave state here, which a resume must not mistake for another run's.
    directory.checkpoint("nodes")?;
    Ok(Claim::Open(Box::new(Claimed { directory, started: Instant::now(), _lock: lock })))
}

impl Claimed {
    /// The folder for the nodes' files; it stays when the run is complete.
    pub fn nodes(&self) -> Result<PathBuf, Error> {
        let folder = self.directory.path.join("nodes");
        make_folder(&folder)?;
        Ok(folder)
    }

    /// Writes the directory of a run whose nodes are done.
    pub fn complete(
        &self,
        plan: &Plan,
        base: &Path,
        world: World,
        live: Box<dyn Results>,
        warnings: Vec<Warning>,
    ) -> Result<Finished, Error> {
        let mut outcome = measured(plan, world, live)?;
        outcome.warnings.extend(warnings);
        let mut finished = write(plan, &self.directory, base, &[outcome], None, self.started)?;
        finished.repeats = 1;
        self.directory.complete(&finished)?;
        Ok(finished)
    }
}

fn write(
    plan: &Plan,
    directory: &RunDirectory,
    base: &Path,
    outcomes: &[Outcome],
    charged: Option<(&Book, &[Charged])>,
    started: Instant,
) -> Result<Finished, Error> {
    let path = &directory.path;
    let mut all = Metrics::default();
    for outcome in outcomes {
        all.append(&outcome.metrics);
    }
    all.write(&path.join(metrics::NAME))?;
    let first = &outcomes[0];
    let Some((world, live)) = &first.end else {
        return Err(Error::Usage("the first repeat kept no models".into()));
    };
    let clients = world.train.len();
    let own = models::Own::of(live.as_ref(), world.federation.client_names());
    let folder = path.join("models");
    make_folder(&folder)?;
    models::write_clients(&folder, &own.names, |k| own.model(k))?;
    let kin = first.kin();
    let federation = crate::kin::settled(plan, &plan.arranged(&world.federation), kin.as_ref());
    let mut held: BTreeMap<&'static str, Vec<(String, Vec<f64>)>> = BTreeMap::new();
    live.held(&mut |server, cluster, name, model| {
        let (server, cluster) =
            (&federation.server_names()[server as usize], &federation.cluster_names()[cluster as usize]);
        held.entry(name).or_default().push((format!("{server}/{cluster}"), model.to_vec()));
    });
    for (name, list) in &held {
        let borrowed: Vec<(String, &[f64])> =
            list.iter().map(|(key, model)| (key.clone(), model.as_slice())).collect();
        let folder = if *name == "served" { folder.clone() } else { folder.join(name) };
        make_folder(&folder)?;
        models::write_servers(&folder, &borrowed)?;
    }
    make_folder(&path.join("graphs"))?;
    graphs::write(&path.join("graphs"), &world.federation)?;
    learnt::write(&path.join("graphs"), plan, world, live.as_ref())?;
    if let Some(kin) = &kin {
        crate::kin::write(path, &world.federation, kin)?;
    }
    if let Some(discovery) = &first.discovery {
        // What left the clients before the run's own first round.
        let cloud = world
            .federation
            .arranged(fedkin_core::federation::Arrange { one_server: true, ..Default::default() });
        let lines: Vec<LedgerLine> =
            discovery.ledger.iter().map(|line| LedgerLine::new(line, &cloud)).collect();
        ledger::write(&path.join("discovery.jsonl"), &lines)?;
    }
    let lines: Vec<LedgerLine> = first.ledger.iter().map(|line| LedgerLine::new(line, &federation)).collect();
    ledger::write(&path.join("ledger.jsonl"), &lines)?;
    if let Some(statements) = &first.statements {
        let rows: Vec<AccountRow> = (0..clients)
            .map(|k| {
                let data = charged.map_or_else(
                    || plan.records(&world.train[k], world.test[k].as_deref()),
                    |(book, _)| book.data(k),
                );
                let name = world.federation.client_name(k as u32);
                let charged = charged.map(|(_, all)| &all[k]);
                AccountRow::new(name, &data, &statements[k], &first.accounts[k], charged)
            })
            .collect();
        crate::ledger::write_accounts(path, &rows)?;
    }
    crate::predict::write_guide(path, world, &federation, plan.learners_of(world)?.as_deref())?;
    let (last, stderr) = final_values(plan.registry.metrics(), &all);
    let apart = spreads(plan.registry.metrics(), outcomes);
    let privacy = PrivacySummary::new(plan, &first.spent).with(first, charged);
    let warnings = outcomes.iter().flat_map(|outcome| outcome.warnings.iter().cloned());
    let warnings = Warning::distinct(warnings.chain(worth(&privacy.bound)));
    let finished = Finished {
        run: path.clone(),
        algorithm: plan.row.name.to_string(),
        models_sha256: models::models_sha256((0..own.names.len()).map(|k| own.model(k))),
        rounds: first.rounds,
        repeats: plan.repeats(),
        seconds: started.elapsed().as_secs_f64(),
        r#final: last,
        stderr,
        std: apart.iter().map(|(name, spread)| (name.clone(), spread.std)).collect(),
        worst_decile: apart.iter().map(|(name, spread)| (name.clone(), spread.worst_decile)).collect(),
        privacy,
        data: hex(&world.fingerprint),
        base: base.to_path_buf(),
        size: [clients, world.federation.servers(), plan.clusters(world)],
        warnings,
    };
    figures::write(path, &figures::of_run(plan, &finished, &all, first, world))?;
    Ok(finished)
}

/// How far clients are apart on what is measured on probabilities, over the repeats that were looked at.
fn spreads(table: &MetricTable, outcomes: &[Outcome]) -> BTreeMap<String, Spread> {
    let names = outcomes.iter().flat_map(|outcome| outcome.spreads.keys());
    names
        .filter(|name| table.of_probabilities(name))
        .filter_map(|name| {
            let all: Vec<Spread> = outcomes.iter().filter_map(|one| one.spreads.get(name).copied()).collect();
            Some((name.clone(), Spread::mean(&all)?))
        })
        .collect()
}

/// Means over repeats of the last value of every metric over all clients, and their standard errors; decibels stand
/// beside the plain value. Those over the active clients are of the last round, or absent where nobody's upload counted in
/// it.
pub fn final_values(
    table: &MetricTable,
    metrics: &Metrics,
) -> (BTreeMap<String, f64>, BTreeMap<String, f64>) {
    let mut last: BTreeMap<(&str, u32), (u32, f64)> = BTreeMap::new();
    let mut ends: BTreeMap<u32, u32> = BTreeMap::new();
    for row in metrics.rows().filter(|row| row.node.is_empty() && !is_spent(row.metric)) {
        let end = ends.entry(row.repeat).or_default();
        *end = row.round.max(*end);
        let entry = last.entry((row.metric, row.repeat)).or_insert((0, f64::NAN));
        if row.round >= entry.0 {
            *entry = (row.round, row.value);
        }
    }
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for ((metric, repeat), (round, value)) in last {
        if metric.ends_with(".active") && round < ends[&repeat] {
            continue;
        }
        values.entry(metric).or_default().push(value);
    }
    let (mut means, mut errors) = (BTreeMap::new(), BTreeMap::new());
    for (metric, values) in values {
        let mut put = |name: String, shown: Shown| {
            let estimate = estimate(&values, shown);
            if let Some(error) = estimate.stderr {
                errors.insert(name.clone(), error);
            }
            means.insert(name, estimate.mean);
        };
        put(metric.to_string(), Shown::Plain);
        if let Some((name, model)) = metric.split_once('.') {
            match table.shown(metric) {
                Shown::Decibel | Shown::Gain => put(format!("{name}_db.{model}"), Shown::Decibel),
                Shown::Log10 => put(format!("{name}_log10.{model}"), Shown::Log10),
                _ => {}
            }
        }
    }
    (means, errors)
}

#[derive(Serialize)]
struct LedgerLine {
    step: u32,
    server: String,
    what: String,
    mechanism: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    bound: String,
    clients: u32,
    numbers: u32,
    sigma: [f64; 2],
    zcdp_each: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<SampledReleases>,
}

impl LedgerLine {
    fn new(line: &Line, federation: &fedkin_core::Federation) -> Self {
        Self {
            step: line.step,
            server: federation.server_names()[line.server as usize].clone(),
            what: Line::text(&line.what),
            mechanism: Line::text(&line.mechanism),
            bound: Line::text(&line.bound),
            clients: line.clients,
            numbers: line.size,
            sigma: [line.sigma_least, line.sigma_most],
            zcdp_each: line.units as f64 * 1e-12,
            sampled: (line.draws.steps > 0).then(|| SampledReleases::new(&line.draws)),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
