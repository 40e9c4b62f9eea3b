//! What a client remembers between steps, in memory or spilled to a disk.

use fedkin_numeric::codec::Codec;
use std::borrow::Cow;
use std::sync::Arc;

/// Where the memories of clients are spilled that do not fit into the machine's. One place for each client; what was put
/// last is what is there. A spill that fails gives no bytes and says so: whoever runs the clients ends the run.
pub trait Spill: Send + Sync {
    /// Stores these bytes.
    fn put(&self, place: u32, bytes: &[u8]);
    /// Gives back what was stored.
    fn get(&self, place: u32) -> Vec<u8>;
    /// What went wrong first, in words.
    fn failure(&self) -> Option<String>;
}

/// Makes a spill for so many clients, or says why there is none.
pub type MakeSpill = fn(usize) -> Result<Arc<dyn Spill>, String>;

/// A client's memory, here or spilled.
pub(super) enum Memory<M> {
    Here(M),
    Spilled(Arc<dyn Spill>, u32),
}

impl<M: Codec + Clone + Default> Memory<M> {
    /// To read. Bytes that a failing spill has lost count as nothing remembered: its owner ends the run.
    pub(super) fn read(&self) -> Cow<'_, M> {
        match self {
            Memory::Here(memory) => Cow::Borrowed(memory),
            Memory::Spilled(spill, place) => {
                Cow::Owned(M::from_bytes(&spill.get(*place)).unwrap_or_default())
            }
        }
    }

    /// Replaces it, wherever it is.
    pub(super) fn write(&mut self, memory: M) {
        match self {
            Memory::Here(here) => *here = memory,
            Memory::Spilled(spill, place) => spill.put(*place, &memory.to_bytes()),
        }
    }
}
