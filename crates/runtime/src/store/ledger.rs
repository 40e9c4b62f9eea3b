//! The lines of all chains, as they lie in `ledger.log` and in the journal.

use super::disk::{Disk, How, System};
use super::error::StoreError;
use super::frame::{Entry, Frames, Next};
use fedkin_numeric::codec::{Codec, Reader};
use fedkin_privacy::{Chain, ChainLine};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which chain: a client's name and the fingerprint of its data.
pub(super) type Which = (String, [u8; 32]);

/// Some lines of one chain.
pub(super) type Batch = (Which, Box<[ChainLine]>);

/// Lines of one chain as they are written.
pub(super) struct Encoded<'a> {
    pub(super) count: u64,
    /// The number of the first.
    pub(super) first: u64,
    pub(super) bytes: &'a [u8],
}

pub(super) const JOURNAL: &str = "journal";
pub(super) const LEDGER: &str = "ledger.log";
pub(super) const STATE: &str = "state/";
const LINES: &str = "lines/";
const HEAD: &str = "head/";

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| bytes)
}

/// A journal's key: a kind, a run or fingerprint, a client. The name is last, whatever it contains.
fn key(kind: &str, name: &[u8; 32], client: &str) -> String {
    format!("{kind}{}/{client}", hex::encode(name))
}

fn split(key: &str, kind: &str) -> Option<Which> {
    let (name, client) = key.strip_prefix(kind)?.split_once('/')?;
    Some((client.to_owned(), unhex(name)?))
}

pub(super) fn state_key(run: &[u8; 32], client: &str) -> String {
    key(STATE, run, client)
}

pub(super) fn lines_key((client, fingerprint): &Which) -> String {
    key(LINES, fingerprint, client)
}

pub(super) fn head_key((client, fingerprint): &Which) -> String {
    key(HEAD, fingerprint, client)
}

/// Of which chain this is a head.
pub(super) fn as_head(entry: &Entry) -> Option<Which> {
    split(&entry.key, HEAD)
}

/// Of which chain these are lines, and the lines.
pub(super) fn as_lines(path: &Path, entry: &Entry) -> Result<Option<Batch>, StoreError> {
    let Some(which) = split(&entry.key, LINES) else { return Ok(None) };
    match Codec::from_bytes(&entry.bytes) {
        Ok(lines) => Ok(Some((which, lines))),
        Err(_) => Err(StoreError::damaged(path, 0, format!("the lines of {} cannot be read", entry.key))),
    }
}

/// Of which chain these are lines, and the lines without reading them: to be moved as they are.
pub(super) fn encoded<'a>(path: &Path, entry: &'a Entry) -> Result<Option<(Which, Encoded<'a>)>, StoreError> {
    let Some(which) = split(&entry.key, LINES) else { return Ok(None) };
    // A list begins with its length, and a line with its number.
    match entry.bytes.split_first_chunk().map(|(count, bytes)| (u64::from_le_bytes(*count), bytes)) {
        Some((0, _)) => Ok(None),
        Some((count, bytes)) if bytes.len() >= 8 => {
            let first = u64::get(&mut Reader::new(bytes)).unwrap_or_default();
            Ok(Some((which, Encoded { count, first, bytes })))
        }
        _ => Err(StoreError::damaged(path, 0, format!("the lines of {} cannot be read", entry.key))),
    }
}

/// One line and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerLine {
    /// The client.
    pub client: String,
    /// The fingerprint of its data.
    pub fingerprint: [u8; 32],
    /// The line.
    pub line: ChainLine,
}

/// All lines of a vault, each once, those of one chain in order. Reads from disk as it goes on.
///
/// The lines are as written: follow them with a [`Chain`](fedkin_privacy::Chain) to verify them.
#[derive(Debug)]
pub struct Lines {
    files: std::vec::IntoIter<(PathBuf, Frames)>,
    present: Option<(PathBuf, Frames)>,
    only: Option<String>,
    /// The last line seen of each chain: a crash may have left lines in both files.
    seen: BTreeMap<Which, u64>,
    /// What the journal knows of chains whose lines have moved to `ledger.log`.
    heads: BTreeMap<Which, Chain>,
    ready: std::vec::IntoIter<LedgerLine>,
}

/// Reads the ledgers of a vault, also while a process works with it: takes no lock and changes nothing.
pub fn read_ledger(folder: &Path) -> Result<Lines, StoreError> {
    Lines::open(&System, folder, None)
}

impl Lines {
    pub(super) fn open(disk: &dyn Disk, folder: &Path, only: Option<&Which>) -> Result<Self, StoreError> {
        let open = |name| {
            let path = folder.join(name);
            let storage = disk.open(&path, How::Read).map_err(StoreError::file("open", &path))?;
            Frames::open(&path, storage).map(|frames| (path, frames))
        };
        // The journal first: lines that move to the ledger after this are still in the file opened here.
        let journal = open(JOURNAL)?;
        let ledger = open(LEDGER)?;
        Ok(Self {
            files: vec![ledger, journal].into_iter(),
            present: None,
            only: only.map(lines_key),
            seen: BTreeMap::new(),
            heads: BTreeMap::new(),
            ready: Vec::new().into_iter(),
        })
    }

    /// Once all lines were read: how far each chain was when lines last moved to `ledger.log`, by client and
    /// fingerprint. A chain that is not as far has lost lines.
    pub fn heads(&self) -> impl Iterator<Item = (&str, &[u8; 32], &Chain)> {
        self.heads.iter().map(|((client, fingerprint), chain)| (&**client, fingerprint, chain))
    }

    /// The next frame's lines; `false` at the end.
    fn fill(&mut self) -> Result<bool, StoreError> {
        let Some((path, frames)) = &mut self.present else {
            self.present = self.files.next();
            return Ok(self.present.is_some());
        };
        let entries = match frames.next()? {
            Next::Frame(entries) => entries,
            Next::Bad => {
                frames.torn()?;
                self.present = None;
                return Ok(true);
            }
            Next::End => {
                self.present = None;
                return Ok(true);
            }
        };
        let mut ready = Vec::new();
        for entry in entries.iter().filter(|entry| self.only.as_ref().is_none_or(|key| *key == entry.key)) {
            if let Some(which) = as_head(entry) {
                let damaged =
                    |_| StoreError::damaged(path, 0, format!("the end of {} cannot be read", entry.key));
                self.heads.insert(which, Chain::from_bytes(&entry.bytes).map_err(damaged)?);
            }
            let Some((which, lines)) = as_lines(path, entry)? else { continue };
            let seen = self.seen.entry(which.clone()).or_default();
            for line in lines {
                if line.seq > *seen {
                    *seen = line.seq;
                    ready.push(LedgerLine { client: which.0.clone(), fingerprint: which.1, line });
                }
            }
        }
        self.ready = ready.into_iter();
        Ok(true)
    }
}

impl Iterator for Lines {
    type Item = Result<LedgerLine, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(line) = self.ready.next() {
                return Some(Ok(line));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.present = None;
                    self.files = Vec::new().into_iter();
                    return Some(Err(error));
                }
            }
        }
    }
}
