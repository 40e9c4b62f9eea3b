//! Chains that were changed behind the store's back, and what readers say of them.

use super::{View, verify};
use crate::Error;
use fedkin_numeric::codec::Codec;
use fedkin_privacy::{Chain, ChainLine, Charge, Cost, Trust};
use fedkin_runtime::store::{Commit, Journal, Secret, Vault};
use std::path::Path;
use tempfile::TempDir;

const DATA: [u8; 32] = [3; 32];
const RUN: [u8; 32] = [4; 32];

fn charge(mechanism: &'static str, units: u64) -> Charge {
    let (trust, cost) = ((units > 0).then_some(Trust::Enforced), Cost::from_units(units));
    Charge { what: "model", mechanism, trust, sigma: 0.5, cost, size: 3, steps: 1, sampled: None }
}

/// Two clients, four lines each, half of them moved to `ledger.log`.
fn vault(folder: &Path) {
    let mut vault = Vault::open(folder, Secret::Given([0; 32])).unwrap();
    for step in 1..=4 {
        for client in ["ann", "bob"] {
            let mut chain = vault.account(client, &DATA);
            let lines = chain.extend(&[charge("gaussian", 5_000_000_000)], &RUN, step, &[step as u8; 32]);
            let commit = Commit { client, fingerprint: DATA, state: &[], lines: &lines };
            vault.commit(&RUN, &[commit]).unwrap();
        }
        if step == 2 {
            vault.compact().unwrap();
        }
    }
}

/// Writes a journal again with other entries; its checksums are in order.
fn forge(path: &Path, mut change: impl FnMut(&str, Vec<u8>) -> Option<Vec<u8>>) {
    let (mut journal, entries) = Journal::open(path).unwrap();
    let entries: Vec<(String, Vec<u8>)> = entries
        .into_iter()
        .filter_map(|entry| Some((entry.key.clone(), change(&entry.key, entry.bytes)?)))
        .collect();
    let pairs: Vec<(&str, &[u8])> = entries.iter().map(|(key, bytes)| (&**key, &**bytes)).collect();
    journal.compact(&pairs).unwrap();
}

fn untrue<T: std::fmt::Debug>(result: Result<T, Error>, words: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.exit_code(), 3, "{error}");
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} in {text}");
}

#[test]
fn a_ledger_is_read_while_somebody_holds_it() {
    let folder = TempDir::new().unwrap();
    vault(folder.path());
    let _held = Vault::open(folder.path(), Secret::Given([0; 32])).unwrap();
    let view = View::read(folder.path(), Some("bob"), Some(1e-6)).unwrap();
    assert_eq!((view.chains_verified, view.lines.len()), (2, 4));
    assert_eq!((view.chains[1].zcdp, view.chains[1].lines, view.lines[3].total), (0.02, 4, 0.02));
    assert!(view.chains[0].epsilon > view.chains[0].epsilon_gaussian);
    let verified = verify(&[folder.path().to_path_buf()], &[]).unwrap();
    assert_eq!((verified.chains, verified.lines, verified.faults.len()), (2, 8, 0));
}

#[test]
fn a_changed_line_is_named_with_its_client() {
    for (file, step, broken) in [("journal", 3, "line 4"), ("ledger.log", 1, "line 2")] {
        let folder = TempDir::new().unwrap();
        vault(folder.path());
        forge(&folder.path().join(file), |key, bytes| {
            if !key.starts_with("lines/") || !key.ends_with("/bob") {
                return Some(bytes);
            }
            let mut lines = Box::<[ChainLine]>::from_bytes(&bytes).unwrap();
            lines.iter_mut().filter(|line| line.step == step).for_each(|line| line.sigma = 9.0);
            Some(lines.to_bytes())
        });
        untrue(
            View::read(folder.path(), None, None),
            &["client \"bob\"", broken, "the line before it was changed"],
        );
        let faults = verify(&[folder.path().to_path_buf()], &[]).unwrap().faults;
        assert!(faults.len() == 1 && faults[0].what.contains("\"bob\""), "{faults:?}");
    }
}

#[test]
fn lines_that_are_gone_are_noticed() {
    let folder = TempDir::new().unwrap();
    vault(folder.path());
    forge(&folder.path().join("journal"), |key, bytes| {
        (!key.starts_with("lines/") || key.ends_with("ann")).then_some(bytes)
    });
    let view = View::read(folder.path(), None, None).unwrap();
    assert_eq!(view.chains[1].lines, 2, "the end alone is missed only by those who remember it");
    forge(&folder.path().join("ledger.log"), |key, bytes| key.ends_with("ann").then_some(bytes));
    untrue(View::read(folder.path(), None, None), &["\"bob\"", "line 1", "not there any more"]);
}

#[test]
fn a_refuted_price_among_others_leaves_no_epsilon() {
    let folder = TempDir::new().unwrap();
    vault(folder.path());
    let mut vault = Vault::open(folder.path(), Secret::Given([0; 32])).unwrap();
    let mut chain: Chain = vault.account("ann", &DATA);
    let spent = chain.spent;
    let refuted = Charge { trust: Some(Trust::Refuted), ..charge("discrete gaussian", 5) };
    let lines = chain.extend(&[refuted], &[8; 32], 1, &[1; 32]);
    vault
        .commit(&[8; 32], &[Commit { client: "ann", fingerprint: DATA, state: &[], lines: &lines }])
        .unwrap();
    drop(vault);
    let view = View::read(folder.path(), Some("ann"), None).unwrap();
    assert_eq!(view.largest, Some(0));
    let ann = &view.chains[0];
    assert_eq!((ann.epsilon, ann.epsilon_gaussian), (None, None));
    assert_eq!(ann.bound, "refuted by audit: no guarantee");
    assert_eq!(view.lines.last().unwrap().bound, ann.bound);
    assert!(ann.zcdp > fedkin_privacy::Cost::from_units(spent).zcdp());
    assert!(view.chains[1].epsilon.is_some(), "the others are as they were");
}

#[test]
fn a_claimed_price_among_others_is_said_to_be_claimed() {
    let folder = TempDir::new().unwrap();
    vault(folder.path());
    let mut vault = Vault::open(folder.path(), Secret::Given([0; 32])).unwrap();
    let mut chain: Chain = vault.account("ann", &DATA);
    let priced = |trust| Charge { trust: Some(trust), ..charge("discrete gaussian", 5) };
    let lines = chain.extend(&[priced(Trust::Claimed), priced(Trust::Assumed)], &[8; 32], 1, &[1; 32]);
    vault
        .commit(&[8; 32], &[Commit { client: "ann", fingerprint: DATA, state: &[], lines: &lines }])
        .unwrap();
    drop(vault);
    let view = View::read(folder.path(), Some("ann"), None).unwrap();
    assert_eq!(view.chains[0].bound, "claimed by the learner, not checked");
    assert!(view.chains[0].epsilon.is_some(), "as for a bound that is assumed");
}

#[test]
fn a_disclosure_among_gaussians_is_not_private() {
    let folder = TempDir::new().unwrap();
    vault(folder.path());
    let mut vault = Vault::open(folder.path(), Secret::Given([0; 32])).unwrap();
    let mut chain: Chain = vault.account("ann", &DATA);
    let lines = chain.extend(&[charge("disclosed", 0)], &[8; 32], 1, &[1; 32]);
    vault
        .commit(&[8; 32], &[Commit { client: "ann", fingerprint: DATA, state: &[], lines: &lines }])
        .unwrap();
    let view = View::read(folder.path(), None, None).unwrap();
    assert_eq!(view.largest, Some(0));
    let ann = &view.chains[0];
    assert_eq!(
        (ann.epsilon, ann.epsilon_gaussian, ann.bound.as_str(), ann.runs),
        (None, None, "not private", 2)
    );
    assert!(view.chains[1].epsilon.is_some());
}
