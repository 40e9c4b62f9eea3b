//! What makes two nodes members of the same run.

use super::Roster;
use fedkin_config::Config;

/// Separates this digest from all others.
const PURPOSE: &str = "fedkin run fingerprint 1";
const CONFIG: &str = "fedkin config fingerprint 1";

/// A digest of everything that all nodes of a run must agree on: the config without paths, names and what else
/// decides no result, and the roster with graph, schema and hosts.
///
/// The config is the experiment's own: what a node overrides of `[data]` is its own affair.
pub fn run_fingerprint(config: &Config, roster: &Roster) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key(PURPOSE);
    agreed(&mut hash, config);
    part(&mut hash, b"roster");
    part(&mut hash, roster.to_json().as_bytes());
    *hash.finalize().as_bytes()
}

/// The config's share of it, for people and for the roster: 16 hexadecimal digits. Runs with different fingerprints
/// have different subjects, so two nodes with different configs never meet; by this each notices by itself.
pub fn config_id(config: &Config) -> String {
    let mut hash = blake3::Hasher::new_derive_key(CONFIG);
    agreed(&mut hash, config);
    hex::encode(&hash.finalize().as_bytes()[..8])
}

fn agreed(hash: &mut blake3::Hasher, config: &Config) {
    for (key, value) in config.agreed() {
        part(hash, key.as_bytes());
        part(hash, value.as_bytes());
    }
}

fn part(hash: &mut blake3::Hasher, bytes: &[u8]) {
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

/// The name of a run in subjects: the first 16 hexadecimal digits of its fingerprint.
pub fn run_id(fingerprint: &[u8; 32]) -> String {
    hex::encode(&fingerprint[..8])
}
