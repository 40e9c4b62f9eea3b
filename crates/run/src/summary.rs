//! What a finished run says of itself.

use crate::artifacts::ledger::SampledReleases;
use crate::artifacts::metrics::Metrics;
use crate::outcome::{Outcome, Spent, worth};
use crate::plan::Plan;
use crate::spending::is_spent;
use crate::warning::Warning;
use fedkin_measure::{MetricTable, Shown, Spread, estimate};
use fedkin_privacy::{Privacy, Trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

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

impl PrivacySummary {
    /// What it comes down to: epsilon of the largest client; zCDP where no epsilon holds.
    pub fn cost(&self) -> f64 {
        self.epsilon.unwrap_or(self.zcdp)
    }

    /// What a plan promises and a repeat spent.
    pub fn new(plan: &Plan, spent: &Spent) -> Self {
        let (private, guaranteed) = (plan.privacy.demanded(), plan.guarantees());
        let sampler = if plan.privacy == Privacy::None { "" } else { plan.privacy.sampler().name() };
        let trust = plan.families.trust(&plan.privacy).filter(|_| private);
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
}

/// How far clients are apart on what is measured on probabilities, over the repeats that were looked at.
pub(crate) fn spreads(table: &MetricTable, outcomes: &[Outcome]) -> BTreeMap<String, Spread> {
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
