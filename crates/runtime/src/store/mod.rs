//! What a node keeps: committed before anything is sent, whole after any crash, refused when damaged.
//!
//! - [`Journal`]: an append-only file of checksummed frames, one fsync per commit.
//! - [`Vault`]: a client process: its secret, the states of its clients, their ledgers over all runs.
//! - [`ServerStore`]: a server: a snapshot and what happened since.
//! - [`Disk`]: the file operations beneath; [`ShakyDisk`] is one that fails, tears and forgets on demand.
//!
//! Plain blocking I/O: call it from a thread that may wait. Local file systems only: a network file system
//! that drops locks or reorders renames gives none of these guarantees.

mod disk;
mod error;
mod frame;
mod journal;
mod ledger;
mod opening;
mod server;
mod shaky;
mod vault;

pub use disk::{Disk, Flush, Guard, How, NotLocked, Storage, System};
pub use error::StoreError;
pub use frame::Entry;
pub use journal::{Journal, Recovery};
pub use ledger::{LedgerLine, Lines, read_ledger};
pub use server::{ServerStore, StoredRecords};
pub use shaky::{DiskFault, ShakyDisk};
pub use vault::{Commit, Secret, Vault};
