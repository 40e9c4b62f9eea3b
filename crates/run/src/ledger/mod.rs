//! Ledgers: what clients let out, over all runs on their data.
//!
//! - `book` is the ledger of a run in one process with `privacy.ledger`: it is opened before the first round and
//!   charged before anything of the run is written.
//! - `accounts` is `accounts.jsonl` of a run directory: what each client let out in this run.
//! - [`View`] reads a ledger for people, wherever it lies, and follows its hashes.
//! - [`verify`] compares ledgers with what others remember of them.

mod accounts;
mod book;
mod chains;
mod place;
#[cfg(test)]
mod tests;
mod verify;
mod view;

pub(crate) use accounts::{AccountRow, write as write_accounts};
pub(crate) use book::{Book, Charged};
pub use verify::{LedgerFault, Verified, verify};
pub use view::{Details, Held, View};
