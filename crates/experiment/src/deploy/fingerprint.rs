//! What makes two nodes members of the same run.

use super::Roster;
use crate::config::Config;

/// Separates this digest from all others.
const PURPOSE: &str = "fedkin run fingerprint 1";

/// A digest of everything that all nodes of a run must agree on: the config without paths, names and what else
/// decides no result, and the roster with graph, schema and hosts.
///
/// The config is the experiment's own: what a node overrides of `[data]` is its own affair.
pub fn run_fingerprint(config: &Config, roster: &Roster) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key(PURPOSE);
    let mut part = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for (key, value) in config.agreed() {
        part(key.as_bytes());
        part(value.as_bytes());
    }
    part(b"roster");
    part(roster.to_json().as_bytes());
    *hash.finalize().as_bytes()
}

/// The name of a run in subjects: the first 16 hexadecimal digits of its fingerprint.
pub fn run_id(fingerprint: &[u8; 32]) -> String {
    crate::run::hex(&fingerprint[..8])
}
