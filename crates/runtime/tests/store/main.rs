//! What the stores promise: nothing acknowledged is lost, nothing damaged is taken for good.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crash;
mod full;
mod journal;
mod random;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
mod vault;

use fedkin_privacy::{Chain, ChainLine, Charge, Cost, Trust};
use fedkin_runtime::store::{Entry, Journal, ShakyDisk, StoreError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RUN: [u8; 32] = [3; 32];
const DATA: [u8; 32] = [7; 32];

fn path() -> PathBuf {
    PathBuf::from("node/journal")
}

fn open(disk: &ShakyDisk) -> Result<(Journal, Vec<Entry>), StoreError> {
    Journal::open_on(Arc::new(disk.clone()), &path())
}

/// Opens a journal with these bytes on a disk of its own.
fn open_bytes(bytes: &[u8]) -> Result<(Journal, Vec<Entry>), StoreError> {
    let disk = ShakyDisk::default();
    disk.plant(&path(), bytes);
    open(&disk)
}

fn values(entries: &[Entry]) -> Vec<&[u8]> {
    entries.iter().map(|entry| &*entry.bytes).collect()
}

fn charge(units: u64) -> Charge {
    Charge {
        what: "model",
        mechanism: "gaussian",
        trust: Some(Trust::Enforced),
        sigma: 0.5,
        cost: Cost::from_units(units),
        steps: 1,
        sampled: None,
        size: 3,
    }
}

fn release(chain: &mut Chain, step: u32, units: u64) -> Vec<ChainLine> {
    chain.extend(&[charge(units)], &RUN, step, &[step as u8; 32])
}

/// Copies a directory of plain files.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
