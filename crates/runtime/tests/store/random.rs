//! Random commits, compactions, failures and crashes against a model in memory.

use super::*;
use fedkin_runtime::store::{Commit, DiskFault, Secret, Vault};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Act {
    /// Which clients, how many charges each.
    Commit(Vec<(u8, u8)>),
    Compact,
    Kill,
    PowerCut,
    /// The operation after this many good ones fails so.
    Fail(u64, DiskFault),
    Room(Option<u16>),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let fault = prop_oneof![Just(DiskFault::Crash), Just(DiskFault::Full), Just(DiskFault::Broken)];
    let act = prop_oneof![
        6 => prop::collection::vec((0..4u8, 0..3u8), 1..4).prop_map(Act::Commit),
        2 => Just(Act::Compact),
        1 => Just(Act::Kill),
        2 => Just(Act::PowerCut),
        4 => (0..12u64, fault).prop_map(|(good, fault)| Act::Fail(good, fault)),
        1 => prop::option::of(0..4000u16).prop_map(Act::Room),
    ];
    prop::collection::vec(act, 1..60)
}

/// By client: its state and all its lines.
type Model = BTreeMap<String, (Vec<u8>, Vec<ChainLine>)>;

fn found(vault: &Vault) -> Model {
    let mut model = Model::new();
    for client in (0..4).map(|number| format!("c{number}")) {
        let lines: Vec<ChainLine> = vault.lines(&client, &DATA).unwrap().collect::<Result<_, _>>().unwrap();
        let chain = Chain::start(&client, &DATA).verify(&lines).unwrap();
        assert_eq!(vault.account(&client, &DATA), chain);
        if let Some(state) = vault.state(&RUN, &client) {
            model.insert(client, (state.to_vec(), lines));
        } else {
            assert!(lines.is_empty());
        }
    }
    model
}

/// By client: in which act its state was written, and its number of lines.
fn brief(model: &Model) -> Vec<(&str, u8, usize)> {
    model.iter().map(|(client, (state, lines))| (&**client, state[0], lines.len())).collect()
}

fn check(seed: u64, acts: &[Act]) {
    let disk = ShakyDisk::new(seed);
    let open = || Vault::open_on(Arc::new(disk.clone()), Path::new("vault"), Secret::Os);
    let mut vault = Some(open().unwrap());
    let secret = vault.as_ref().unwrap().secret("x");
    let mut sure = Model::new();
    // Commits that failed: a crash may still bring up one of them, whole.
    let mut maybe: Vec<Model> = Vec::new();
    for (number, act) in acts.iter().enumerate() {
        let mut restart = false;
        match act {
            Act::Commit(clients) => {
                let Some(vault) = &mut vault else { continue };
                let mut next = sure.clone();
                let mut parts = BTreeMap::new();
                for (client, charges) in clients {
                    let client = format!("c{client}");
                    let mut chain = vault.account(&client, &DATA);
                    let charges = vec![charge(u64::from(*charges) + 1); *charges as usize];
                    let lines = chain.extend(&charges, &RUN, number as u32, &[number as u8; 32]);
                    let state = vec![number as u8; 40 + number * 7 % 300];
                    parts.insert(client, (state, lines));
                }
                for (client, (state, lines)) in &parts {
                    let entry = next.entry(client.clone()).or_default();
                    entry.0.clone_from(state);
                    entry.1.extend_from_slice(lines);
                }
                let commits: Vec<Commit<'_>> = parts
                    .iter()
                    .map(|(client, (state, lines))| Commit { client, fingerprint: DATA, state, lines })
                    .collect();
                if vault.commit(&RUN, &commits).is_ok() {
                    sure = next;
                    maybe.clear();
                } else {
                    maybe.push(next);
                }
            }
            Act::Compact => {
                if let Some(vault) = &mut vault {
                    let _ = vault.compact();
                }
            }
            Act::Kill | Act::PowerCut => {
                vault = None;
                if matches!(act, Act::Kill) {
                    disk.kill();
                } else {
                    disk.power_cut();
                }
                restart = true;
            }
            Act::Fail(good, fault) => disk.fail_after(*good, *fault),
            Act::Room(room) => disk.set_capacity(room.map_or(u64::MAX, u64::from)),
        }
        if let Some(vault) = &vault {
            for client in (0..4).map(|number| format!("c{number}")) {
                let known = sure.get(&client);
                assert_eq!(vault.state(&RUN, &client), known.map(|(state, _)| &**state));
                let last = known.and_then(|(_, lines)| lines.last());
                assert_eq!(vault.account(&client, &DATA).spent, last.map_or(0, |line| line.spent));
            }
        }
        if restart || vault.is_none() {
            // Opening may meet a fault as well, and is tried again then.
            vault = match open() {
                Ok(vault) => Some(vault),
                Err(StoreError::File { .. }) => None,
                Err(error) => panic!("{number}: {error}"),
            };
            if let Some(vault) = &vault {
                let found = found(vault);
                assert!(
                    found == sure || maybe.contains(&found),
                    "{number}: found {:?}, but {:?} was acknowledged",
                    brief(&found),
                    brief(&sure)
                );
                assert_eq!(vault.secret("x"), secret);
                sure = found;
                maybe.clear();
            }
        }
    }
    drop(vault);
    disk.set_capacity(u64::MAX);
    disk.calm();
    disk.power_cut();
    let mut vault = open().unwrap();
    let last = found(&vault);
    assert!(last == sure || maybe.contains(&last), "at the end");
    vault.compact().unwrap();
    drop(vault);
    assert_eq!(found(&open().unwrap()), last);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_is_there_and_nothing_in_parts(seed: u64, acts in acts()) {
        check(seed, &acts);
    }
}
