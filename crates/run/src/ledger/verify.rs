//! Whether ledgers hold together, and whether none is behind what others have seen of it.

use super::place::Place;
use super::view::Held;
use super::{accounts, chains};
use crate::error::Error;
use fedkin_runtime::node::read_heads;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What was compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Verified {
    /// Chains followed to their end.
    pub chains: usize,
    /// Their lines.
    pub lines: u64,
    /// Remembered ends of chains that were found in them.
    pub remembered: usize,
    /// Remembered ends of clients whose ledger is at none of the places.
    pub elsewhere: usize,
    /// What does not hold.
    pub faults: Vec<LedgerFault>,
}

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerFault {
    /// Whose ledger, where one is to blame.
    pub client: Option<String>,
    /// The line it is about.
    pub line: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// The end of a chain as somebody remembers it.
struct Memory {
    lines: u64,
    /// Empty where only the number is known.
    hash: String,
    whose: String,
    /// Whoever remembers it knows that the ledger lies here: servers do not.
    here: bool,
    found: bool,
}

#[derive(Deserialize)]
struct Remembered {
    chains: Vec<Held>,
}

/// Follows all chains at these places and compares them with all that is remembered of them: by servers, by runs that
/// were charged to them, and in files that `fedkin ledger --json` wrote.
pub fn verify(places: &[PathBuf], files: &[PathBuf]) -> Result<Verified, Error> {
    let mut memories: BTreeMap<String, Vec<Memory>> = BTreeMap::new();
    let mut vaults = Vec::new();
    let mut remember = |client: String, lines: u64, hash: String, whose: &Path, here: bool| {
        let whose = whose.display().to_string();
        memories.entry(client).or_default().push(Memory { lines, hash, whose, here, found: lines == 0 });
    };
    for path in places {
        let place = Place::find(path)?;
        for folder in &place.heads {
            for (client, known) in read_heads(folder).map_err(chains::fault)? {
                let hash = if known.head == [0; 32] { String::new() } else { hex::encode(known.head) };
                remember(client, known.lines, hash, folder, false);
            }
        }
        if let Some(run) = &place.run {
            for row in accounts::read(run)? {
                if let Some(head) = row.head {
                    remember(row.client, head.lines, head.hash, run, true);
                }
            }
        }
        vaults.extend(place.vaults);
    }
    for file in files {
        let text =
            std::fs::read_to_string(file).map_err(crate::artifacts::ArtifactError::file("read", file))?;
        let view: Remembered = serde_json::from_str(&text).map_err(|error| {
            Error::Usage(format!("{} is not what `fedkin ledger --json` writes: {error}", file.display()))
        })?;
        for row in view.chains {
            if let Some(hash) = row.head {
                remember(row.client, row.lines, hash, file, true);
            }
        }
    }
    if vaults.is_empty() {
        return Err(Error::Usage(
            "there is no chain to verify here: name the state of a client host or the folder of privacy.ledger".into(),
        ));
    }
    vaults.sort();
    vaults.dedup();
    let mut verified = Verified::default();
    let mut furthest: BTreeMap<String, u64> = BTreeMap::new();
    for vault in &vaults {
        let read = chains::read(vault, &mut |entry, chain| {
            for memory in memories.get_mut(&entry.client).into_iter().flatten() {
                let same = || memory.hash.is_empty() || memory.hash == hex::encode(chain.head.hash);
                memory.found |= memory.lines == chain.head.seq && same();
            }
        });
        match read {
            Ok(found) => {
                verified.chains += found.len();
                for ((client, _), past) in found {
                    let lines = past.chain.head.seq;
                    verified.lines += lines;
                    let most = furthest.entry(client).or_default();
                    *most = lines.max(*most);
                }
            }
            Err(Error::ClaimFailed(what)) => {
                verified.faults.push(LedgerFault { client: None, line: None, what });
            }
            Err(error) => return Err(error),
        }
    }
    for (client, all) in &memories {
        let lines = furthest.get(client).copied();
        for memory in all {
            // A server has clients on several hosts: a ledger that is not here may be with another.
            if lines.is_none() && !memory.here {
                verified.elsewhere += 1;
            } else if memory.found {
                verified.remembered += 1;
            } else {
                verified.faults.push(behind(client, lines.unwrap_or(0), memory));
            }
        }
    }
    Ok(verified)
}

fn behind(client: &str, lines: u64, memory: &Memory) -> LedgerFault {
    let Memory { lines: seen, whose, .. } = memory;
    let (line, what) = if lines < *seen {
        (lines + 1, format!("{seen} lines were seen, the ledger has {lines}: an old copy was put back"))
    } else {
        (*seen, "it is not the line that was seen: the ledger was written anew".to_string())
    };
    let what = format!("client {client:?}, line {line}: {what} (remembered in {whose})");
    LedgerFault { client: Some(client.to_string()), line: Some(line), what }
}
