//! What one repeat of one method gave.

use crate::artifacts::metrics::{Measurement, Metrics};
use crate::discovery::Discovery;
use crate::kin::Scores;
use crate::plan::Plan;
use crate::spending::{self, price_key};
use crate::stopping::Stopping;
use crate::warning::Warning;
use fedkin_data::World;
use fedkin_measure::{Scorer, Spread};
use fedkin_method::FoundKin;
use fedkin_method::round::Results;
use fedkin_privacy::{Account, Draws, Line, Prices, Refusal, Statement, Trust};
use std::collections::BTreeMap;

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
    pub fn kin(&self) -> Option<FoundKin> {
        let own = self.end.as_ref().and_then(|(_, live)| live.kin());
        own.or_else(|| self.discovery.as_ref().map(|discovery| discovery.kin.clone()))
    }
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
        let looked = keep || (!plan.row.graphs && plan.looks_at_clients());
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
                metrics.push(Measurement { repeat, round: live.rounds(), node, metric, value });
            }
        }
        let accounts = live.accounts();
        for (k, account) in
            accounts.iter().enumerate().take(rows.len()).filter(|_| keep && plan.privacy.demanded())
        {
            let node = world.federation.client_name(k as u32);
            if account.sampled.is_empty() {
                let value = account.total().zcdp();
                metrics.push(Measurement {
                    repeat,
                    round: live.rounds(),
                    node,
                    metric: spending::SPENT,
                    value,
                });
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
pub(crate) fn refused(statements: &[Statement]) -> Option<Warning> {
    let (clients, from) = refusals(statements)?;
    let reasons = statements.iter().flat_map(|statement| &statement.entries);
    let budget =
        reasons.filter(|entry| !entry.is_release()).all(|entry| entry.what == Refusal::Budget.words());
    Some(Warning::Refused { clients, of: statements.len(), from, budget })
}

/// What an epsilon is worth, where it is not what it seems: said wherever it is shown.
pub fn worth(bound: &str) -> Option<Warning> {
    if bound.starts_with("assumed") {
        Some(Warning::Assumed)
    } else {
        (bound == Trust::Refuted.words()).then_some(Warning::Refuted)
    }
}
