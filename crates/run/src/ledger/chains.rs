//! The chains of a vault, followed line by line.

use crate::error::Error;
use fedkin_privacy::{Chain, Sampler, Trust};
use fedkin_runtime::store::{LedgerLine, StoreError, read_ledger};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the lines of one chain say together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Past {
    pub(super) chain: Chain,
    /// The runs that left lines.
    pub(super) runs: BTreeSet<[u8; 32]>,
    pub(super) nature: Nature,
    pub(super) refusals: u64,
}

/// What a promise about some releases can be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Nature {
    /// Something left without noise.
    pub(super) disclosed: bool,
    /// Something left by a mechanism that is not the plain Gaussian.
    pub(super) other: bool,
    /// What the weakest price rests on.
    pub(super) doubt: Doubt,
}

/// What a price rests on, the weakest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doubt {
    /// A bound that is enforced.
    #[default]
    None,
    /// A bound that was taken on trust.
    Assumed,
    /// A bound that a learner claimed of itself.
    Claimed,
    /// A claim that an audit has refuted: the noise protects nobody to a known degree.
    Refuted,
}

impl Nature {
    /// Adds a release by its mechanism and the words of its bound.
    pub(super) fn see(&mut self, mechanism: &[u8], bound: &[u8], units: u64) {
        self.disclosed |= units == 0;
        self.other |= !Sampler::is_gaussian(&String::from_utf8_lossy(mechanism));
        for (trust, doubt) in [
            (Trust::Assumed, Doubt::Assumed),
            (Trust::Claimed, Doubt::Claimed),
            (Trust::Refuted, Doubt::Refuted),
        ] {
            if bound == trust.words().as_bytes() {
                self.doubt = self.doubt.max(doubt);
            }
        }
    }

    /// Whether no epsilon holds.
    pub(super) fn open(self) -> bool {
        self.disclosed || self.doubt == Doubt::Refuted
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            disclosed: self.disclosed || other.disclosed,
            other: self.other || other.other,
            doubt: self.doubt.max(other.doubt),
        }
    }
}

/// Chains by client and fingerprint.
pub(super) type Chains = BTreeMap<(String, [u8; 32]), Past>;

/// A ledger that does not hold is a broken promise; anything else can be put right.
pub(super) fn fault(error: StoreError) -> Error {
    match error {
        StoreError::Ledger { path, client, broken } => Error::ClaimFailed(format!(
            "the ledger of client {client:?} in {} is broken at {broken}",
            path.display()
        )),
        StoreError::Damaged { .. } | StoreError::Missing { .. } => Error::ClaimFailed(error.to_string()),
        _ => Error::Usage(error.to_string()),
    }
}

/// Reads all chains of a vault without a lock, following every hash; `each` sees every line and the chain it ends.
pub(super) fn read(folder: &Path, each: &mut dyn FnMut(&LedgerLine, &Chain)) -> Result<Chains, Error> {
    let mut chains = Chains::new();
    let broken = |client: &str, broken| {
        fault(StoreError::Ledger { path: folder.to_path_buf(), client: client.to_string(), broken })
    };
    let mut lines = read_ledger(folder).map_err(fault)?;
    for entry in lines.by_ref() {
        let entry = entry.map_err(fault)?;
        let key = (entry.client.clone(), entry.fingerprint);
        let past = chains.entry(key).or_insert_with_key(|(client, fingerprint)| Past {
            chain: Chain::start(client, fingerprint),
            ..Past::default()
        });
        let line = &entry.line;
        past.chain.follow(line).map_err(|why| broken(&entry.client, why))?;
        past.runs.insert(line.run);
        if line.is_release() {
            past.nature.see(&line.mechanism, &line.bound, line.units);
        } else if *line.mechanism == *fedkin_privacy::ChainLine::REFUSED.as_bytes() {
            past.refusals += line.count;
        }
        each(&entry, &past.chain);
    }
    for (client, fingerprint, known) in lines.heads() {
        let head = chains.get(&(client.to_string(), *fingerprint)).map(|past| &past.chain.head);
        if head.is_none_or(|head| head.is_behind(&known.head)) {
            let seq = head.map_or(0, |head| head.seq) + 1;
            let why = "it was moved to ledger.log and is not there any more";
            return Err(broken(client, fedkin_privacy::Broken { seq, why }));
        }
    }
    Ok(chains)
}
