//! What a client process keeps, over all runs. One directory, mode 0700:
//!
//! | file | mode | contents |
//! |---|---|---|
//! | `secret` | 0600 | 32 bytes of OS entropy, made once; absent where the caller gives its own |
//! | `journal` | 0600 | last state by (run, client), new ledger lines, and the heads of all chains |
//! | `ledger.log` | 0600 | older ledger lines; only ever appended to |
//! | `lock` | 0600 | held while a process works here; holds its id |
//! | `*.unfinished` | 0600 | a file being written; removed when the vault is opened |
//!
//! A commit is one frame of the journal: states, ledger lines and whatever the caller put into the states (its
//! outbox) are durable together or not at all. A compaction first copies the lines to `ledger.log`, then
//! rewrites the journal with the states and the heads alone. A crash between the two leaves lines in both
//! files, which is noticed by their numbers. As the journal knows every head, a `ledger.log` that was removed
//! or cut is noticed, and as the lines are numbered, so is a journal older than its `ledger.log`. A copy of
//! the *whole* directory is not: there the servers remember the head.
//!
//! The secret and the states are as private as the data: whoever reads the secret can subtract the noise.

use super::disk::{Disk, Flush, Guard, How, System};
use super::error::StoreError;
use super::frame::{Frames, Next};
use super::journal::{Journal, Recovery, beside, lock};
use super::ledger::{self, JOURNAL, LEDGER, LedgerLine, Lines, Which};
use super::opening::{Contents, Held, broken_in, start};
use fedkin_numeric::codec::Codec;
use fedkin_privacy::{Chain, ChainLine, Head};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the secret of the process comes from.
#[derive(Clone, Copy)]
pub enum Secret {
    /// Drawn from the operating system once and kept in the vault.
    Os,
    /// Given each time and kept nowhere: for simulations, where everything follows from a seed.
    Given([u8; 32]),
}

/// What one client commits.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// Its name.
    pub client: &'a str,
    /// The fingerprint of its data.
    pub fingerprint: [u8; 32],
    /// Everything it needs to go on after a restart, outbox included.
    pub state: &'a [u8],
    /// What it is about to send cost, from [`Chain::extend`] or [`Chain::refuse`].
    pub lines: &'a [ChainLine],
}

/// The open directory. Memory holds the last states and one head per chain, however long the runs are.
pub struct Vault {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    journal: Journal,
    ledger: Journal,
    secret: [u8; 32],
    states: BTreeMap<String, Vec<u8>>,
    chains: BTreeMap<Which, Held>,
    _lock: Box<dyn Guard>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Lines are moved in frames of about this size.
const BATCH: usize = 1 << 20;

impl Vault {
    /// Opens or makes a vault on the system's disk; verifies every chain.
    pub fn open(folder: &Path, secret: Secret) -> Result<Self, StoreError> {
        Self::open_on(Arc::new(System), folder, secret)
    }

    /// The same on another disk.
    pub fn open_on(disk: Arc<dyn Disk>, folder: &Path, secret: Secret) -> Result<Self, StoreError> {
        disk.make_folder(folder).map_err(StoreError::file("make the folder", folder))?;
        let lock = lock(&*disk, &folder.join("lock"), folder)?;
        // The journal is made last: where it is, the others have been.
        let has_journal = there(&*disk, &folder.join(JOURNAL))?;
        if has_journal && !there(&*disk, &folder.join(LEDGER))? {
            return Err(missing(
                folder,
                LEDGER,
                "it holds what was spent: restore the directory from a copy",
            ));
        }
        let path = folder.join(LEDGER);
        let mut logs: BTreeMap<Which, Chain> = BTreeMap::new();
        let mut ledger = Journal::scan(disk.clone(), &path, &mut |entry| {
            let Some((which, lines)) = ledger::as_lines(&path, &entry)? else {
                return Err(StoreError::damaged(&path, 0, format!("{:?} does not belong here", entry.key)));
            };
            let client = which.0.clone();
            let chain = logs.entry(which).or_insert_with_key(start);
            let followed = lines.iter().try_for_each(|line| chain.follow(line));
            followed.map_err(|broken| broken_in(folder, &client, broken))
        })?;
        if !has_journal {
            if !ledger.is_empty() || ledger.recovery().cut_bytes > 0 {
                return Err(missing(
                    folder,
                    JOURNAL,
                    "ledger.log has lines: restore the directory from a copy",
                ));
            }
            ledger.settle()?;
        }
        let secret = match secret {
            Secret::Os => os_secret(&*disk, folder, has_journal)?,
            Secret::Given(_) if there(&*disk, &folder.join("secret"))? => {
                let what = "this directory has a secret of its own: open it with that".into();
                return Err(StoreError::Refused { path: folder.to_path_buf(), what });
            }
            Secret::Given(secret) => secret,
        };
        let mut contents = Contents::new(folder, logs);
        let mut journal =
            Journal::scan(disk.clone(), &folder.join(JOURNAL), &mut |entry| contents.take(entry))?;
        let (states, chains) = contents.finish()?;
        // Nothing is cut before everything has been found in order.
        ledger.settle()?;
        journal.settle()?;
        Ok(Self { disk, folder: folder.to_path_buf(), journal, ledger, secret, states, chains, _lock: lock })
    }

    /// The secret of one client: what its private random numbers follow from.
    pub fn secret(&self, client: &str) -> [u8; 32] {
        let mut hash = blake3::Hasher::new_keyed(&self.secret);
        *hash.update(b"fedkin client secret\0").update(client.as_bytes()).finalize().as_bytes()
    }

    /// What a client released about these data, over all runs: extend it and commit the lines.
    pub fn account(&self, client: &str, fingerprint: &[u8; 32]) -> Chain {
        let which = (client.to_owned(), *fingerprint);
        self.chains.get(&which).map_or_else(|| start(&which), |held| held.chain.clone())
    }

    /// All chains with at least one line, by client and fingerprint.
    pub fn accounts(&self) -> impl Iterator<Item = (&str, &[u8; 32], &Chain)> {
        self.chains.iter().map(|((client, fingerprint), held)| (&**client, fingerprint, &held.chain))
    }

    /// The last state that a client committed in a run.
    pub fn state(&self, run: &[u8; 32], client: &str) -> Option<&[u8]> {
        self.states.get(&ledger::state_key(run, client)).map(Vec::as_slice)
    }

    /// Commits a group of clients together: one frame, one fsync. Only when this has returned may their
    /// messages leave. When it fails nothing is committed, and the same call can be repeated.
    pub fn commit(&mut self, run: &[u8; 32], commits: &[Commit<'_>]) -> Result<(), StoreError> {
        let mut next: BTreeMap<Which, Chain> = BTreeMap::new();
        let mut entries: Vec<(String, std::borrow::Cow<'_, [u8]>)> = Vec::with_capacity(2 * commits.len());
        for commit in commits {
            entries.push((ledger::state_key(run, commit.client), commit.state.into()));
            if commit.lines.is_empty() {
                continue;
            }
            let which = (commit.client.to_owned(), commit.fingerprint);
            entries
                .push((ledger::lines_key(&which), Box::<[ChainLine]>::from(commit.lines).to_bytes().into()));
            let chain = next.entry(which).or_insert_with_key(|which| self.account(&which.0, &which.1));
            for line in commit.lines {
                let follows = chain.follow(line).map_err(|broken| broken.to_string());
                follows
                    .and_then(
                        |()| if line.run == *run { Ok(()) } else { Err("a line of another run".into()) },
                    )
                    .map_err(|what| StoreError::Refused {
                        path: self.folder.clone(),
                        what: format!("client {:?}: {what}", commit.client),
                    })?;
            }
        }
        let pairs: Vec<(&str, &[u8])> = entries.iter().map(|(key, bytes)| (&**key, &**bytes)).collect();
        self.journal.append(&pairs)?;
        for (key, bytes) in entries.into_iter().filter(|(key, _)| key.starts_with(ledger::STATE)) {
            let state = self.states.entry(key).or_default();
            state.clear();
            state.extend_from_slice(&bytes);
        }
        for (which, chain) in next {
            self.chains.entry(which).or_insert_with(|| Held { chain: Chain::default(), logged: 0 }).chain =
                chain;
        }
        Ok(())
    }

    /// Whether a compaction is worth its price.
    pub fn due(&self) -> bool {
        self.journal.due()
    }

    /// Moves the ledger lines to `ledger.log` and keeps the last states only. A failure or a crash at any
    /// point loses nothing; commits go on, and the same call can be repeated.
    pub fn compact(&mut self) -> Result<(), StoreError> {
        self.move_lines()?;
        let heads: Vec<(String, Vec<u8>)> = self
            .chains
            .iter()
            .map(|(which, held)| (ledger::head_key(which), held.chain.to_bytes()))
            .collect();
        let live: Vec<(&str, &[u8])> = heads
            .iter()
            .map(|(key, bytes)| (key, bytes))
            .chain(&self.states)
            .map(|(key, bytes)| (&**key, &**bytes))
            .collect();
        self.journal.compact(&live)
    }

    fn move_lines(&mut self) -> Result<(), StoreError> {
        let path = self.folder.join(JOURNAL);
        let storage = self.disk.open(&path, How::Read).map_err(StoreError::file("open", &path))?;
        let mut frames = Frames::open(&path, storage)?;
        let mut batch = Batch::default();
        while frames.at < self.journal.len() {
            let Next::Frame(entries) = frames.next()? else {
                return Err(StoreError::damaged(&path, frames.at, "a frame changed since it was written"));
            };
            for entry in &entries {
                // Lines that were committed together move together: all of them are there already, or none.
                let Some((which, lines)) = ledger::encoded(&path, entry)? else { continue };
                if lines.first > self.chains.get(&which).map_or(0, |held| held.logged) {
                    batch.bytes += entry.bytes.len();
                    let (count, all) = batch.lines.entry(which).or_default();
                    *count += lines.count;
                    all.extend_from_slice(lines.bytes);
                }
            }
            if batch.bytes >= BATCH {
                self.flush(&mut batch)?;
            }
        }
        self.flush(&mut batch)
    }

    fn flush(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        let lines = std::mem::take(batch).lines;
        let entries: Vec<(String, Vec<u8>)> = lines
            .iter()
            .map(|(which, (count, all))| (ledger::lines_key(which), [&count.to_le_bytes(), &**all].concat()))
            .collect();
        let pairs: Vec<(&str, &[u8])> = entries.iter().map(|(key, bytes)| (&**key, &**bytes)).collect();
        self.ledger.append(&pairs)?;
        for (which, (count, _)) in lines {
            if let Some(held) = self.chains.get_mut(&which) {
                held.logged += count;
            }
        }
        Ok(())
    }

    /// The lines of one chain in order, read from disk.
    pub fn lines(
        &self,
        client: &str,
        fingerprint: &[u8; 32],
    ) -> Result<impl Iterator<Item = Result<ChainLine, StoreError>> + use<>, StoreError> {
        let which = (client.to_owned(), *fingerprint);
        let lines = Lines::open(&*self.disk, &self.folder, Some(&which))?;
        Ok(lines.map(|line| line.map(|LedgerLine { line, .. }| line)))
    }

    /// Whether a chain once ended at this head: what a client asks itself when a server remembers one. Where
    /// it did not, the disk was rolled back or the ledger written anew.
    pub fn passed(&self, client: &str, fingerprint: &[u8; 32], head: &Head) -> Result<bool, StoreError> {
        if head.seq == 0 {
            return Ok(Chain::start(client, fingerprint).head == *head);
        }
        let now = self.account(client, fingerprint).head;
        if now.seq <= head.seq {
            return Ok(now == *head);
        }
        for line in self.lines(client, fingerprint)? {
            let line = line?;
            if line.seq == head.seq {
                return Ok(line.hash() == head.hash);
            }
        }
        Ok(false)
    }

    /// The lengths of `journal` and `ledger.log`.
    pub fn bytes_on_disk(&self) -> (u64, u64) {
        (self.journal.len(), self.ledger.len())
    }

    /// The number of frames ever committed to the journal.
    pub fn frames(&self) -> u64 {
        self.journal.frames()
    }

    /// What opening had to put right in the journal.
    pub fn recovery(&self) -> Recovery {
        self.journal.recovery()
    }
}

/// Lines on their way to `ledger.log`.
#[derive(Default)]
struct Batch {
    /// How many of each chain, and their encoding.
    lines: BTreeMap<Which, (u64, Vec<u8>)>,
    bytes: usize,
}

fn missing(folder: &Path, name: &str, what: &'static str) -> StoreError {
    StoreError::Missing { path: folder.join(name), what }
}

fn there(disk: &dyn Disk, path: &Path) -> Result<bool, StoreError> {
    disk.exists(path).map_err(StoreError::file("look for", path))
}

fn os_secret(disk: &dyn Disk, folder: &Path, in_use: bool) -> Result<[u8; 32], StoreError> {
    let path = folder.join("secret");
    let mut secret = [0; 32];
    if there(disk, &path)? {
        let storage = disk.open(&path, How::Read).map_err(StoreError::file("open", &path))?;
        if storage.length().map_err(StoreError::file("read", &path))? != 32 {
            return Err(StoreError::damaged(&path, 0, "a secret has 32 bytes"));
        }
        storage.read_at(0, &mut secret).map_err(StoreError::file("read", &path))?;
        // The process before may have died before its name was durable.
        disk.sync_folder(folder).map_err(StoreError::file("sync the folder", folder))?;
        return Ok(secret);
    }
    if in_use {
        let what =
            "this directory is in use already: restore it from a copy, or give the secret it was made with";
        return Err(missing(folder, "secret", what));
    }
    getrandom::fill(&mut secret).map_err(|error| StoreError::file("draw", &path)(error.into()))?;
    let unfinished = beside(&path, ".unfinished");
    let write = || {
        let mut storage = disk.open(&unfinished, How::Fresh)?;
        storage.write_at(0, &secret)?;
        storage.sync(Flush::All)?;
        disk.rename(&unfinished, &path)?;
        disk.sync_folder(folder)
    };
    write().map_err(StoreError::file("write", &path))?;
    Ok(secret)
}
