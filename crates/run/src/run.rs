//! `fedkin run`: one method, its repeats, one run directory.

use crate::artifacts::ledger::SampledReleases;
use crate::artifacts::lock::RunLock;
use crate::artifacts::metrics::{self, Metrics};
use crate::artifacts::{atomic, graphs, ledger, make_folder, models};
use crate::control::Control;
use crate::directory::{CHECKPOINTS, RunDirectory};
use crate::error::Error;
use crate::ledger::{AccountRow, Book, Charged};
use crate::outcome::{Outcome, refusals, worth};
use crate::plan::Plan;
use crate::repeat::{Resume, measured, run_on, run_repeat};
use crate::running::Running;
use crate::summary::{Finished, LedgerSummary, PrivacySummary, final_values, spreads};
use crate::warning::Warning;
use crate::{learnt, predict};
use fedkin_data::World;
use fedkin_method::round::Results;
use fedkin_numeric::codec::Codec;
use fedkin_privacy::{Cost, Line, Trust};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A run that has ended and whose files are written, but for the report: what there is to draw.
pub struct Ended<'a> {
    /// The run directory.
    pub path: &'a Path,
    /// What was run.
    pub plan: &'a Plan,
    /// What the run says of itself.
    pub finished: &'a Finished,
    /// The measurements of all repeats.
    pub metrics: &'a Metrics,
    /// The first repeat, with its data and models.
    pub first: &'a Outcome,
    /// The data of the first repeat.
    pub world: &'a World,
}

/// Draws a run that has ended into its directory, before the run counts as complete.
pub type Draw<'a> = dyn Fn(&Ended<'_>) -> Result<(), Error> + 'a;

/// The interval between checkpoints, if there are any.
pub fn checkpoint_interval(plan: &Plan) -> Option<Duration> {
    let seconds = plan.config.run.checkpoint_seconds;
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(1e9)))
}

/// Runs a plan into a directory, going on from what is there. A complete run is not run again.
pub fn run(
    plan: &Plan,
    out: &Path,
    base: &Path,
    control: &Control<'_>,
    draw: &Draw<'_>,
) -> Result<Finished, Error> {
    let directory = RunDirectory::new(out);
    let started = Instant::now();
    let _lock = directory.claim(&plan.registry, &plan.config)?;
    if let Some(done) = directory.summary()? {
        let world = plan.world(0)?;
        if hex::encode(world.fingerprint) != done.data {
            return Err(Error::Usage(format!(
                "the data changed since the run in {} ended: restore them, or choose another --out",
                out.display()
            )));
        }
        return Ok(done);
    }
    if plan.ledger().is_some() {
        return charged(plan, &directory, base, control, started, draw);
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
    let finished = write(plan, &directory, base, &outcomes, None, started, draw)?;
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
    draw: &Draw<'_>,
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
    let finished = write(plan, directory, base, &[outcome], Some((&book, &charged)), started, draw)?;
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
        atomic::remove_unfinished(&folder)?;
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
        draw: &Draw<'_>,
    ) -> Result<Finished, Error> {
        let mut outcome = measured(plan, world, live)?;
        outcome.warnings.extend(warnings);
        let mut finished = write(plan, &self.directory, base, &[outcome], None, self.started, draw)?;
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
    draw: &Draw<'_>,
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
    let federation =
        crate::kin::settled(plan.kin.infer().is_some(), &plan.arranged(&world.federation), kin.as_ref());
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
        let cloud =
            world.federation.arranged(fedkin_method::Arrange { one_server: true, ..Default::default() });
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
    predict::write_guide(path, world, &federation, plan.learners_of(world)?.as_deref())?;
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
        data: hex::encode(world.fingerprint),
        base: base.to_path_buf(),
        size: [clients, world.federation.servers(), plan.clusters(world)],
        warnings,
    };
    draw(&Ended { path, plan, finished: &finished, metrics: &all, first, world })?;
    Ok(finished)
}

impl PrivacySummary {
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
    fn new(line: &Line, federation: &fedkin_method::Federation) -> Self {
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
