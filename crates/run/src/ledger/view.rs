//! A ledger for people: a row per client and data, the largest first in line.

use super::accounts::{self, AccountRow};
use super::chains::{self, Doubt, Nature, Past};
use super::place::Place;
use crate::artifacts::ledger::SampledReleases;
use crate::directory::RunDirectory;
use crate::error::Error;
use fedkin_privacy::{Account, ChainLine, Prices, Trust};
use fedkin_settings::suggest;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What was read, for `--json` as well. `heads` of such a file can be remembered and compared later.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    /// Where.
    pub place: PathBuf,
    /// How many hash chains were followed to their end; 0 where a run kept no ledger that lasts.
    pub chains_verified: usize,
    /// At this delta.
    pub delta: f64,
    /// The client and data with the weakest guarantee, as a number of `chains`.
    pub largest: Option<usize>,
    /// By client and data.
    pub chains: Vec<Held>,
    /// The lines of one client, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Details>,
}

/// What one client spent on one set of data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The client.
    pub client: String,
    /// Digest of its training records.
    pub data: String,
    /// Runs on them.
    pub runs: u64,
    /// Lines of the chain; of a run without one, kinds of releases.
    pub lines: u64,
    /// Releases, disclosures included.
    pub releases: u64,
    /// Messages that said no instead.
    pub refusals: u64,
    /// zCDP in all.
    pub zcdp: f64,
    /// By the tight conversion; absent where something left without noise: there is no guarantee.
    pub epsilon: Option<f64>,
    /// By exact composition, where every release is Gaussian.
    pub epsilon_gaussian: Option<f64>,
    /// `enforced`, `assumed, not enforced`, `claimed by the learner, not checked`, `not private`, or empty where nothing left.
    pub bound: String,
    /// The hash of the last line; absent where there is no chain.
    pub head: Option<String>,
}

/// One line of one client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Details {
    /// Short digest of the data it is about.
    pub data: String,
    /// Its number.
    pub line: u64,
    /// Short name of the run.
    pub run: String,
    /// The step, the last one where the line stands for several.
    pub step: u32,
    /// What left, or why nothing did.
    pub what: String,
    /// By which mechanism.
    pub mechanism: String,
    /// Whether the bound behind the price is enforced.
    pub bound: String,
    /// Least standard deviation of the noise.
    pub sigma: f64,
    /// Numbers in one message.
    pub numbers: u32,
    /// The price.
    pub zcdp: f64,
    /// What was spent so far.
    pub total: f64,
    /// Short digest of what left.
    pub sent: String,
}

fn zcdp(units: u64) -> f64 {
    fedkin_privacy::Cost::from_units(units).zcdp()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The guarantee behind some releases.
struct Promise {
    account: Account,
    nature: Nature,
}

impl Promise {
    fn words(&self) -> &'static str {
        match self {
            Self { account: Account { releases: 0, .. }, .. } => "",
            Self { nature: Nature { disclosed: true, .. }, .. } => "not private",
            Self { nature: Nature { doubt: Doubt::Refuted, .. }, .. } => Trust::Refuted.words(),
            Self { nature: Nature { doubt: Doubt::Claimed, .. }, .. } => Trust::Claimed.words(),
            Self { nature: Nature { doubt: Doubt::Assumed, .. }, .. } => Trust::Assumed.words(),
            Self { nature: Nature { doubt: Doubt::None, .. }, .. } => Trust::Enforced.words(),
        }
    }

    fn epsilon(&self, delta: f64, prices: &mut Prices) -> (Option<f64>, Option<f64>) {
        if self.nature.open() {
            return (None, None);
        }
        let exact = (!self.nature.other).then(|| prices.epsilon_gaussian(&self.account, delta));
        (Some(prices.epsilon(&self.account, delta)), exact)
    }
}

impl Held {
    fn of_chain(client: &str, data: &[u8; 32], past: &Past, delta: f64, prices: &mut Prices) -> Self {
        let promise = Promise { account: past.chain.account(None), nature: past.nature };
        let (epsilon, epsilon_gaussian) = promise.epsilon(delta, prices);
        Self {
            client: client.to_string(),
            data: hex::encode(data),
            runs: past.runs.len() as u64,
            lines: past.chain.head.seq,
            releases: past.chain.releases,
            refusals: past.refusals,
            zcdp: zcdp(past.chain.spent),
            epsilon,
            epsilon_gaussian,
            bound: promise.words().to_string(),
            head: Some(hex::encode(past.chain.head.hash)),
        }
    }

    fn of_account(row: &AccountRow, delta: f64, prices: &mut Prices) -> Self {
        let promise = Promise {
            account: Account {
                spent: row.units,
                releases: row.releases,
                budget: None,
                sampled: row.sampled.iter().map(SampledReleases::draws).collect(),
            },
            nature: Nature {
                disclosed: row.not_private,
                other: !row.gaussian,
                doubt: match (&row.refuted, &row.claimed, row.assumed) {
                    (Some(_), ..) => Doubt::Refuted,
                    (None, Some(_), _) => Doubt::Claimed,
                    (None, None, true) => Doubt::Assumed,
                    (None, None, false) => Doubt::None,
                },
            },
        };
        let (epsilon, epsilon_gaussian) = promise.epsilon(delta, prices);
        let refused = row.kinds.iter().filter(|kind| kind.mechanism == ChainLine::REFUSED);
        Self {
            client: row.client.clone(),
            data: row.data.clone(),
            runs: row.runs,
            lines: row.head.as_ref().map_or(row.kinds.len() as u64, |head| head.lines),
            releases: row.releases,
            refusals: refused.map(|kind| kind.count).sum(),
            zcdp: zcdp(row.units),
            epsilon,
            epsilon_gaussian,
            bound: promise.words().to_string(),
            head: row.head.as_ref().map(|head| head.hash.clone()),
        }
    }
}

impl View {
    /// Reads the ledgers at a place, following every hash; `client` asks for one client's lines. Without a delta,
    /// that of the run is taken, or 1e-5. Works while a node runs.
    pub fn read(path: &Path, client: Option<&str>, delta: Option<f64>) -> Result<Self, Error> {
        let place = Place::find(path)?;
        let of_run = || RunDirectory::new(path).summary().ok().flatten().map(|summary| summary.privacy.delta);
        let delta = delta.or_else(of_run).unwrap_or(1e-5);
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        let mut verified = 0;
        let mut prices = Prices::default();
        for vault in &place.vaults {
            let found = chains::read(vault, &mut |entry, chain| {
                if client == Some(entry.client.as_str()) {
                    lines.push(details(&entry.fingerprint, &entry.line, chain.spent));
                }
            })?;
            verified += found.len();
            rows.extend(
                found
                    .iter()
                    .map(|((client, data), past)| Held::of_chain(client, data, past, delta, &mut prices)),
            );
        }
        if let Some(run) = &place.run {
            for row in accounts::read(run)? {
                rows.push(Held::of_account(&row, delta, &mut prices));
                if client == Some(row.client.as_str()) {
                    lines.extend(of_run_lines(&row));
                }
            }
        }
        if place.vaults.is_empty() && place.run.is_none() {
            return Err(Error::Usage(format!(
                "{} is the state of a server, which remembers the ends of its clients' ledgers only: give it to \
                 `fedkin ledger verify` together with the state of a client host",
                path.display()
            )));
        }
        if let Some(name) = client
            && !rows.iter().any(|row| row.client == name)
        {
            let hint = suggest(name, rows.iter().map(|row| row.client.as_str()));
            return Err(Error::Usage(format!("{} has no client {name:?}{hint}", path.display())));
        }
        // No guarantee is the weakest; then the most spent.
        let weight = |row: &Held| (row.bound == "not private", row.epsilon.is_none(), row.zcdp);
        let largest = (0..rows.len())
            .filter(|&at| rows[at].releases > 0)
            .reduce(|a, b| if weight(&rows[b]) > weight(&rows[a]) { b } else { a });
        Ok(Self { place: path.to_path_buf(), chains_verified: verified, delta, largest, chains: rows, lines })
    }
}

fn details(data: &[u8; 32], line: &ChainLine, spent: u64) -> Details {
    Details {
        data: hex::encode(&data[..4]),
        line: line.seq,
        run: hex::encode(&line.run[..4]),
        step: line.step,
        what: text(&line.what),
        mechanism: text(&line.mechanism),
        bound: text(&line.bound),
        sigma: line.sigma,
        numbers: line.size,
        zcdp: zcdp(line.units),
        total: zcdp(spent),
        sent: hex::encode(&line.sent[..4]),
    }
}

/// The kinds of a run, as lines.
fn of_run_lines(row: &AccountRow) -> Vec<Details> {
    let mut total = row.units_before;
    let line = |(at, kind): (usize, &accounts::KindRow)| {
        total = total.saturating_add(kind.units);
        Details {
            data: row.data.get(..8).unwrap_or_default().to_string(),
            line: at as u64 + 1,
            run: String::new(),
            step: kind.rounds[1],
            what: format!("{}, {} times", kind.what, kind.count),
            mechanism: kind.mechanism.clone(),
            bound: kind.bound.clone(),
            sigma: kind.sigma[0],
            numbers: kind.numbers,
            zcdp: zcdp(kind.units),
            total: zcdp(total),
            sent: String::new(),
        }
    };
    row.kinds.iter().enumerate().map(line).collect()
}
