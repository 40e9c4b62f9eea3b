//! One repeat of one method, from the first round or from a checkpoint to the end.

use crate::artifacts::checkpoint;
use crate::artifacts::metrics::{Metrics, Row};
use crate::error::Error;
use crate::kin::{Discovery, Scores};
use crate::plan::Plan;
use crate::running::Running;
use crate::scorer::Scorer;
use crate::spending;
use crate::spread::Spread;
use crate::stopping::Stopping;
use crate::warning::Warning;
use fedkin_core::algorithm::FoundKin;
use fedkin_core::privacy::{Account, Draws, Line, Prices, Refusal, Statement, Trust};
use fedkin_core::round::Results;
use fedkin_data::World;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How the outside watches and stops work.
pub struct Control<'a> {
    /// Set by the outside to stop after the current round.
    pub stop: &'a AtomicBool,
    /// Called after every round, from any thread.
    pub tick: &'a (dyn Fn() + Sync),
}

impl Control<'_> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What the clients of a repeat have spent.
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    /// Largest zCDP of a client: the guarantee.
    pub largest_zcdp: f64,
    /// Mean zCDP over clients.
    pub mean_zcdp: f64,
    /// Largest epsilon of a client, by the tight conversion of zCDP or Renyi divergences.
    pub largest_epsilon: f64,
    /// Largest epsilon of a client, by exact composition of Gaussians or Renyi divergences.
    pub largest_epsilon_gaussian: f64,
    /// Mean epsilon over clients.
    pub mean_epsilon: f64,
    /// At this delta.
    pub delta: f64,
    /// Releases in all, disclosures included.
    pub releases: u64,
    /// The releases from Poisson samples of the client with the largest epsilon.
    pub sampled: Box<[Draws]>,
}

/// What the price of an account depends on; accounts are grouped by it.
pub(crate) fn price_key(account: &Account) -> (u64, Vec<[u64; 3]>) {
    let bits = |draws: &Draws| [draws.multiplier.to_bits(), draws.rate.to_bits(), draws.steps];
    (account.spent, account.sampled.iter().map(bits).collect())
}

impl Spent {
    fn of(accounts: &[Account], delta: f64) -> Self {
        let zcdp = |account: &Account| account.total().zcdp();
        let count = accounts.len() as f64;
        // Totals repeat (all clients pay the same per round), so few conversions are needed.
        let mut prices = Prices::default();
        let mut known: BTreeMap<_, (f64, u64)> = BTreeMap::new();
        let (mut largest, mut exact, mut sampled) = (0.0f64, 0.0f64, Box::default());
        for account in accounts {
            let (_, number) = known.entry(price_key(account)).or_insert_with(|| {
                let epsilon = prices.epsilon(account, delta);
                exact = exact.max(prices.epsilon_gaussian(account, delta));
                if epsilon > largest {
                    (largest, sampled) = (epsilon, account.sampled.clone());
                }
                (epsilon, 0)
            });
            *number += 1;
        }
        // In the order of the totals, the same whoever comes first.
        let sum: f64 = known.values().flat_map(|(epsilon, number)| (0..*number).map(move |_| epsilon)).sum();
        Self {
            largest_zcdp: accounts.iter().map(zcdp).fold(0.0, f64::max),
            mean_zcdp: accounts.iter().map(zcdp).sum::<f64>() / count,
            largest_epsilon: largest,
            largest_epsilon_gaussian: exact,
            mean_epsilon: sum / count,
            delta,
            releases: accounts.iter().map(|account| account.releases).sum(),
            sampled,
        }
    }
}

/// What a repeat gave.
pub struct Outcome {
    /// Which repeat.
    pub repeat: u32,
    /// Means over clients by round.
    pub metrics: Metrics,
    /// How many rounds were run.
    pub rounds: u32,
    /// Names of the columns of `rows`.
    pub columns: Vec<String>,
    /// Every client's metrics after the last round, by client id; empty above the limit.
    pub rows: Vec<Vec<f64>>,
    /// How far clients are apart, by column; nothing above the limit of clients, or where nobody looks at single ones.
    pub spreads: BTreeMap<String, Spread>,
    /// What was spent.
    pub spent: Spent,
    /// The ledger.
    pub ledger: Vec<Line>,
    /// What left each client, by kind, where it was kept.
    pub statements: Option<Vec<Statement>>,
    /// What each client has spent on its data, by client id.
    pub accounts: Vec<Account>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// The data, and the run after its last round.
    pub end: Option<(World, Box<dyn Results>)>,
    /// What a first stage has found, where there was one.
    pub(crate) discovery: Option<Discovery>,
}

impl Outcome {
    /// Who was found to be kin of whom, by the run or by its first stage.
    pub(crate) fn kin(&self) -> Option<FoundKin> {
        let own = self.end.as_ref().and_then(|(_, live)| live.kin());
        own.or_else(|| self.discovery.as_ref().map(|discovery| discovery.kin.clone()))
    }
}

/// A checkpoint file, and how often it is written while the repeat runs (never where absent).
pub(crate) struct Resume<'a> {
    pub path: &'a Path,
    pub every: Option<Duration>,
}

/// Runs one repeat. `keep` keeps the data and the models in the outcome.
pub(crate) fn run_repeat(
    plan: &Plan,
    repeat: u32,
    resume: Option<&Resume<'_>>,
    keep: bool,
    control: &Control<'_>,
) -> Result<Outcome, Error> {
    run_on(Running::start(plan, repeat, keep, control)?, plan, resume, control)
}

/// Runs a repeat that was started to its end, from its checkpoint where there is one.
pub(crate) fn run_on(
    mut running: Running<&Plan>,
    plan: &Plan,
    resume: Option<&Resume<'_>>,
    control: &Control<'_>,
) -> Result<Outcome, Error> {
    let identity = running.identity();
    if let Some(found) = resume.map(|resume| checkpoint::load(resume.path, &identity)).transpose()?.flatten()
    {
        let repeat = running.repeat();
        running.restore(&found.payload).map_err(|_| {
            Error::Usage(format!(
                "the checkpoint of repeat {repeat} cannot be read: delete it to start again"
            ))
        })?;
        (0..running.rounds()).for_each(|_| (control.tick)());
    }
    let save = |running: &Running<&Plan>, resume: &Resume<'_>| {
        checkpoint::save(resume.path, &identity, u64::from(running.steps()), &running.save())
    };
    let mut written = Instant::now();
    while !running.ended() {
        if control.stopped() {
            let kept = if let Some(resume) = resume {
                save(&running, resume)?;
                "the same command goes on from there"
            } else {
                "checkpoints are off, so it starts again"
            };
            let (round, last) = (running.rounds(), plan.rounds());
            return Err(Error::Interrupted(format!("round {round} of {last}; {kept}")));
        }
        let stepped = running.step()?;
        if stepped.whole && stepped.counts.is_some() {
            (control.tick)();
        }
        if let Some(resume) = resume
            && resume.every.is_some_and(|every| written.elapsed() >= every)
        {
            save(&running, resume)?;
            written = Instant::now();
        }
    }
    if let Some(resume) = resume {
        save(&running, resume)?;
    }
    Ok(running.outcome())
}

/// A run that nodes on a network have finished: measured once, after its last round.
pub(crate) fn measured(plan: &Plan, world: World, live: Box<dyn Results>) -> Result<Outcome, Error> {
    let scorer = plan.scorer(&world)?;
    let mut metrics = Metrics::default();
    for (metric, summary) in scorer.names().iter().zip(live.evaluate(&scorer)) {
        if summary.count > 0 {
            metrics.push(Row { repeat: 0, round: live.rounds(), node: "", metric, value: summary.mean() });
        }
    }
    let known = crate::kin::known(&world);
    for (name, value) in live.gauges().into_iter().chain(kin_scores(live.as_ref(), known.as_deref())) {
        metrics.push(Row { repeat: 0, round: live.rounds(), node: "", metric: &name, value });
    }
    let warnings = live.statements().as_deref().and_then(refused).into_iter().collect();
    let closing = Closing { plan, repeat: 0, keep: true, world: &world, scorer: &scorer, stopping: None };
    let mut outcome = closing.outcome(live.as_ref(), metrics, warnings);
    outcome.end = Some((world, live));
    Ok(outcome)
}

/// How near the clusters that were found so far are to those that are known; nothing without either.
pub(crate) fn kin_scores(live: &dyn Results, known: Option<&[u32]>) -> Vec<(String, f64)> {
    if known.is_none() { Vec::new() } else { scores(live.kin().as_ref(), known) }
}

pub(crate) fn scores(kin: Option<&FoundKin>, known: Option<&[u32]>) -> Vec<(String, f64)> {
    let scores = known.and_then(|known| Scores::new(kin?, known));
    scores.map_or_else(Vec::new, |scores| scores.metrics().to_vec())
}

/// A repeat after its last step.
pub(crate) struct Closing<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) repeat: u32,
    pub(crate) keep: bool,
    pub(crate) world: &'a World,
    pub(crate) scorer: &'a Scorer,
    pub(crate) stopping: Option<&'a Stopping>,
}

impl Closing<'_> {
    /// What it gave, without data and models.
    pub(crate) fn outcome(
        &self,
        live: &dyn Results,
        mut metrics: Metrics,
        warnings: Vec<Warning>,
    ) -> Outcome {
        let Self { plan, repeat, keep, world, scorer, stopping } = *self;
        let mut columns = scorer.names();
        let limit = plan.config.evaluate.per_client_limit;
        let looked = keep || (!plan.row.graphs && crate::by_client::wanted(plan));
        let mut rows = if world.train.len() <= limit && looked { live.rows(scorer) } else { Vec::new() };
        for (name, values) in stopping.filter(|_| !rows.is_empty()).into_iter().flat_map(Stopping::columns) {
            columns.push(name.to_string());
            rows.iter_mut().zip(values).for_each(|(row, value)| row.push(*value));
        }
        let spread = |(c, name): (usize, &String)| {
            let values: Vec<f64> = rows.iter().map(|row| row[c]).collect();
            Some((name.clone(), Spread::of(&values, plan.registry.metrics().shown(name))?))
        };
        let spreads = columns.iter().enumerate().filter_map(spread).collect();
        for (k, row) in rows.iter().enumerate().filter(|_| keep) {
            let node = world.federation.client_name(k as u32);
            for (metric, &value) in
                columns.iter().zip(row).filter(|(name, value)| !value.is_nan() && !name.ends_with(".active"))
            {
                metrics.push(Row { repeat, round: live.rounds(), node, metric, value });
            }
        }
        let accounts = live.accounts();
        for (k, account) in
            accounts.iter().enumerate().take(rows.len()).filter(|_| keep && plan.privacy.demanded())
        {
            let node = world.federation.client_name(k as u32);
            if account.sampled.is_empty() {
                let value = account.total().zcdp();
                metrics.push(Row { repeat, round: live.rounds(), node, metric: spending::SPENT, value });
            }
        }
        Outcome {
            repeat,
            metrics,
            rounds: live.rounds(),
            columns,
            rows,
            spreads,
            spent: Spent::of(&accounts, plan.delta()),
            ledger: if keep { live.ledger().lines.clone() } else { Vec::new() },
            statements: if keep { live.statements() } else { None },
            accounts,
            warnings,
            end: None,
            discovery: None,
        }
    }
}

/// What became of uploads that did not count.
pub(crate) fn turned_away(plan: &Plan, metrics: &Metrics, statements: Option<&[Statement]>) -> Vec<Warning> {
    let of =
        |metric: &'static str| metrics.rows().filter(move |row| row.metric == metric).map(|row| row.value);
    let mut warnings = Vec::new();
    if let Some(last) = of("rejected").last() {
        let penalty = plan.row.params.iter().any(|param| param.name == "penalty");
        let total = of("rejected").sum::<f64>() as u64;
        warnings.push(Warning::Rejected { last: last as u64, total, penalty });
    }
    if let Some(statements) = statements {
        warnings.extend(refused(statements));
    } else {
        let times = of("refused").sum::<f64>() as u64;
        warnings.extend((times > 0).then_some(Warning::RefusedTimes { times }));
    }
    warnings
}

/// Where the step of the FedGL paper's Algorithm 1 is longer than its Proposition 1 allows.
pub(crate) fn unstable(metrics: &Metrics) -> Option<Warning> {
    let steps = metrics.rows().filter(|row| row.metric == "step_times_lipschitz").map(|row| row.value);
    let times = steps.fold(0.0, f64::max);
    (times > 1.0).then_some(Warning::LongStep { times })
}

/// How many clients refused, and in which round the first did.
pub(crate) fn refusals(statements: &[Statement]) -> Option<(u64, u32)> {
    let first = statements.iter().filter_map(Statement::refusals).map(|(_, first)| (1, first));
    first.reduce(|a, b| (a.0 + b.0, a.1.min(b.1)))
}

/// The same as a warning.
fn refused(statements: &[Statement]) -> Option<Warning> {
    let (clients, from) = refusals(statements)?;
    let reasons = statements.iter().flat_map(|statement| &statement.entries);
    let budget =
        reasons.filter(|entry| !entry.is_release()).all(|entry| entry.what == Refusal::Budget.words());
    Some(Warning::Refused { clients, of: statements.len(), from, budget })
}

/// What an epsilon is worth, where it is not what it seems: said wherever it is shown.
pub(crate) fn worth(bound: &str) -> Option<Warning> {
    if bound.starts_with("assumed") {
        Some(Warning::Assumed)
    } else {
        (bound == Trust::Refuted.words()).then_some(Warning::Refuted)
    }
}
