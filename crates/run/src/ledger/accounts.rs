//! `accounts.jsonl` of a run directory: what every client let out in the run, one JSON object a line.

use super::book::Charged;
use super::chains::{Doubt, Nature};
use crate::artifacts::ArtifactError;
use crate::artifacts::ledger::SampledReleases;
use fedkin_privacy::{Account, Entry, Statement, Trust};
use serde::{Deserialize, Serialize};
use std::path::Path;

pub(super) const NAME: &str = "accounts.jsonl";

/// One client of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AccountRow {
    pub(crate) client: String,
    /// Digest of its training records.
    pub(crate) data: String,
    /// Runs on the same data, this one included, as far as its ledger knows.
    pub(crate) runs: u64,
    /// Units of 1e-12 zCDP spent on these data in all, this run included.
    pub(crate) units: u64,
    /// Of that, before this run.
    pub(crate) units_before: u64,
    /// Releases on these data in all.
    pub(crate) releases: u64,
    pub(crate) not_private: bool,
    pub(crate) gaussian: bool,
    pub(crate) assumed: bool,
    /// The words of a price that rests on what a learner claims, where that is the weakest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claimed: Option<String>,
    /// The words of a price that is a claim refuted by an audit, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refuted: Option<String>,
    /// Releases from Poisson samples on these data in all, those priced alike together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sampled: Vec<SampledReleases>,
    /// What left in this run, by kind.
    pub(crate) kinds: Vec<KindRow>,
    /// The end of its ledger, where there is one that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<HeadRow>,
}

/// Releases of one kind, or refusals for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KindRow {
    pub(crate) what: String,
    pub(crate) mechanism: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) bound: String,
    pub(crate) count: u64,
    pub(crate) numbers: u32,
    pub(crate) sigma: [f64; 2],
    pub(crate) units: u64,
    /// First and last round.
    pub(crate) rounds: [u32; 2],
}

/// The end of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeadRow {
    pub(crate) lines: u64,
    pub(crate) hash: String,
}

impl KindRow {
    fn new(entry: &Entry) -> Self {
        Self {
            what: entry.what.to_string(),
            mechanism: entry.mechanism.to_string(),
            bound: entry.bound.to_string(),
            count: entry.count,
            numbers: entry.size,
            sigma: [entry.sigma_least, entry.sigma_most],
            units: entry.units,
            rounds: [entry.first, entry.last],
        }
    }
}

impl AccountRow {
    /// What a client's statement and account say, and its ledger where it has one.
    pub(crate) fn new(
        client: &str,
        data: &[u8; 32],
        statement: &Statement,
        account: &Account,
        charged: Option<&Charged>,
    ) -> Self {
        let mut nature = Nature::default();
        for entry in statement.releases() {
            // A sum with no price has no release with one.
            nature.see(entry.mechanism.as_bytes(), entry.bound.as_bytes(), entry.units);
        }
        let nature = charged.map_or(nature, |charged| charged.nature.and(nature));
        Self {
            client: client.to_string(),
            data: hex::encode(data),
            runs: charged.map_or(1, |charged| charged.runs),
            units: account.spent,
            units_before: charged.map_or(0, |charged| charged.before),
            releases: account.releases,
            not_private: nature.disclosed,
            gaussian: !nature.other,
            assumed: nature.doubt == Doubt::Assumed,
            claimed: (nature.doubt == Doubt::Claimed).then(|| Trust::Claimed.words().to_string()),
            refuted: (nature.doubt == Doubt::Refuted).then(|| Trust::Refuted.words().to_string()),
            sampled: account.sampled.iter().map(SampledReleases::new).collect(),
            kinds: statement.entries.iter().map(KindRow::new).collect(),
            head: charged
                .map(|charged| HeadRow { lines: charged.head.seq, hash: hex::encode(charged.head.hash) }),
        }
    }
}

/// Writes the file of a run directory.
pub(crate) fn write(directory: &Path, rows: &[AccountRow]) -> Result<(), ArtifactError> {
    crate::artifacts::ledger::write(&directory.join(NAME), rows)
}

/// Reads the file of a run directory.
pub(super) fn read(directory: &Path) -> Result<Vec<AccountRow>, ArtifactError> {
    let path = directory.join(NAME);
    let text = std::fs::read_to_string(&path).map_err(ArtifactError::file("read", &path))?;
    let row = |(at, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| ArtifactError::damaged(&path, format!("line {}: {error}", at + 1)))
    };
    text.lines().enumerate().map(row).collect()
}
