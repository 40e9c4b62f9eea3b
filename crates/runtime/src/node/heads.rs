//! What servers remember of their clients' ledgers from one run to the next: an old copy of a client's disk that is
//! put back between two runs shows fewer lines than were seen here.

use crate::store::{ServerStore, StoreError, StoredRecords};
use fedkin_method::round::Known;
use fedkin_numeric::codec::Codec;
use std::collections::BTreeMap;
use std::path::Path;

/// The furthest each client was seen, by name and the digest of its data.
#[derive(Debug)]
pub(super) struct Heads {
    store: ServerStore,
    seen: BTreeMap<(Vec<u8>, [u8; 32]), Known>,
    changed: bool,
}

/// On disk.
type Rows = Box<[(Box<[u8]>, Known)]>;

fn rows_of(folder: &Path, kept: StoredRecords) -> Result<Rows, StoreError> {
    let damaged = |_| StoreError::damaged(folder, 0, "the heads of the clients' ledgers cannot be read");
    kept.snapshot.map_or_else(|| Ok(Rows::default()), |bytes| Rows::from_bytes(&bytes).map_err(damaged))
}

/// What servers remember of their clients' ledgers: the folder `heads` of their state. Works while they run.
pub fn read_heads(folder: &Path) -> Result<Vec<(String, Known)>, StoreError> {
    let rows = rows_of(folder, StoredRecords::read(folder)?)?.into_iter();
    Ok(rows.map(|(name, known)| (String::from_utf8_lossy(&name).into_owned(), known)).collect())
}

impl Heads {
    pub(super) fn open(folder: &Path) -> Result<Self, StoreError> {
        let (store, kept) = ServerStore::open(folder)?;
        let rows = rows_of(folder, kept)?.into_iter();
        let seen = rows.map(|(name, known)| ((name.into_vec(), known.data), known)).collect();
        Ok(Self { store, seen, changed: false })
    }

    /// What is remembered of a client: one entry for each set of data it has shown.
    pub(super) fn of<'a>(&'a self, client: &'a str) -> impl Iterator<Item = &'a Known> + 'a {
        let name = client.as_bytes().to_vec();
        self.seen
            .range((name, [0; 32])..)
            .take_while(move |((name, _), _)| name == client.as_bytes())
            .map(|(_, k)| k)
    }

    /// Notes how far a client was seen. It never goes back.
    pub(super) fn note(&mut self, client: &str, known: &Known) {
        let seen = self.seen.entry((client.as_bytes().to_vec(), known.data)).or_default();
        let further = known.lines > seen.lines || known.lines == seen.lines && seen.head == [0; 32];
        if further && seen != known {
            *seen = known.clone();
            self.changed = true;
        }
    }

    /// Makes it durable.
    pub(super) fn keep(&mut self) -> Result<(), StoreError> {
        if !self.changed {
            return Ok(());
        }
        let rows: Rows =
            self.seen.iter().map(|((name, _), known)| (name.clone().into(), known.clone())).collect();
        self.store.snapshot(&rows.to_bytes())?;
        self.changed = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(data: u8, lines: u64, head: u8) -> Known {
        Known { data: [data; 32], lines, head: [head; 32], ..Known::default() }
    }

    #[test]
    fn heads_last_and_never_go_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut heads = Heads::open(folder.path()).unwrap();
        heads.note("ann", &known(1, 5, 9));
        heads.note("ann", &known(2, 3, 9));
        heads.note("bob", &known(1, 7, 0));
        heads.note("ann", &known(1, 4, 8));
        // The hash that was not known is learnt; one that was known stays.
        heads.note("bob", &known(1, 7, 6));
        heads.note("bob", &known(1, 7, 5));
        heads.keep().unwrap();
        let read = read_heads(folder.path()).unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!(read[2], ("bob".to_string(), known(1, 7, 6)));
        drop(heads);
        let heads = Heads::open(folder.path()).unwrap();
        assert_eq!(heads.of("ann").cloned().collect::<Vec<_>>(), [known(1, 5, 9), known(2, 3, 9)]);
        assert_eq!(heads.of("bob").cloned().collect::<Vec<_>>(), [known(1, 7, 6)]);
        assert_eq!(heads.of("an").count(), 0);
    }
}
