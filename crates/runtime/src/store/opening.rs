//! What a vault's journal holds, compared with `ledger.log` while it is read.

use super::error::StoreError;
use super::frame::Entry;
use super::ledger::{self, JOURNAL, Which};
use fedkin_numeric::codec::Codec;
use fedkin_privacy::{Broken, Chain};
use std::collections::BTreeMap;
use std::path::Path;

/// What the vault remembers of a chain.
pub(super) struct Held {
    pub(super) chain: Chain,
    /// The last line that is in `ledger.log`.
    pub(super) logged: u64,
}

/// What the journal holds, while it is read and compared with `ledger.log`.
pub(super) struct Contents<'a> {
    folder: &'a Path,
    states: BTreeMap<String, Vec<u8>>,
    logs: BTreeMap<Which, Chain>,
    chains: BTreeMap<Which, Meeting>,
}

/// A chain of the journal on its way to the place where `ledger.log` ends.
struct Meeting {
    chain: Chain,
    log: Chain,
    met: bool,
}

impl Meeting {
    fn look(&mut self) -> Result<(), Broken> {
        if self.chain.head.seq == self.log.head.seq {
            if self.chain != self.log {
                let why = "the journal and ledger.log disagree about it";
                return Err(Broken { seq: self.log.head.seq, why });
            }
            self.met = true;
        }
        Ok(())
    }
}

/// States by key, and chains.
type Read = (BTreeMap<String, Vec<u8>>, BTreeMap<Which, Held>);

impl<'a> Contents<'a> {
    pub(super) fn new(folder: &'a Path, logs: BTreeMap<Which, Chain>) -> Self {
        Self { folder, states: BTreeMap::new(), logs, chains: BTreeMap::new() }
    }

    fn meeting(&mut self, which: &Which) -> &mut Meeting {
        let logs = &self.logs;
        self.chains.entry(which.clone()).or_insert_with(|| {
            let log = logs.get(which).cloned().unwrap_or_else(|| start(which));
            Meeting { chain: start(which), met: log.head.seq == 0, log }
        })
    }

    pub(super) fn take(&mut self, entry: Entry) -> Result<(), StoreError> {
        let path = self.folder.join(JOURNAL);
        let folder = self.folder;
        if let Some(which) = ledger::as_head(&entry) {
            let Ok(chain) = Chain::from_bytes(&entry.bytes) else {
                return Err(StoreError::damaged(&path, 0, format!("{:?} cannot be read", entry.key)));
            };
            let meeting = self.meeting(&which);
            meeting.chain = chain;
            meeting.met = false;
            return meeting.look().map_err(|broken| broken_in(folder, &which.0, broken));
        }
        if let Some((which, lines)) = ledger::as_lines(&path, &entry)? {
            let meeting = self.meeting(&which);
            let follow = |line| meeting.chain.follow(line).and_then(|()| meeting.look());
            return lines.iter().try_for_each(follow).map_err(|broken| broken_in(folder, &which.0, broken));
        }
        if !entry.key.starts_with(ledger::STATE) {
            return Err(StoreError::damaged(&path, 0, format!("{:?} does not belong here", entry.key)));
        }
        self.states.insert(entry.key, entry.bytes);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Read, StoreError> {
        let known: Vec<Which> = self.logs.keys().cloned().collect();
        for which in known {
            self.meeting(&which);
        }
        let mut chains = BTreeMap::new();
        for (which, Meeting { chain, log, met }) in self.chains {
            if !met {
                let (seq, why) = if log.head.seq > chain.head.seq {
                    (chain.head.seq + 1, "ledger.log has it, but the journal is older")
                } else {
                    (log.head.seq + 1, "it was moved to ledger.log and is not there any more")
                };
                return Err(broken_in(self.folder, &which.0, Broken { seq, why }));
            }
            chains.insert(which, Held { chain, logged: log.head.seq });
        }
        Ok((self.states, chains))
    }
}

pub(super) fn start((client, fingerprint): &Which) -> Chain {
    Chain::start(client, fingerprint)
}

pub(super) fn broken_in(folder: &Path, client: &str, broken: Broken) -> StoreError {
    StoreError::Ledger { path: folder.to_path_buf(), client: client.to_owned(), broken }
}
