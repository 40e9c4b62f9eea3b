//! A crash after every single file operation, with and without a power cut.

use super::*;
use fedkin_runtime::store::{Commit, DiskFault, Secret, ServerStore, Vault};

/// Runs `act` on a fresh disk with a crash after 0, 1, 2, ... operations until it gets through, then lets
/// `check` look at what the next process finds.
fn every_crash(
    prepare: impl Fn(&ShakyDisk),
    act: impl Fn(&ShakyDisk) -> Result<(), StoreError>,
    check: impl Fn(&ShakyDisk, bool, &str),
) -> u64 {
    for good in 0.. {
        let mut through = true;
        for seed in 0..12 {
            let disk = ShakyDisk::new(seed);
            prepare(&disk);
            disk.fail_after(good, DiskFault::Crash);
            through = act(&disk).is_ok();
            disk.calm();
            let power = seed % 4 != 0;
            if power {
                disk.power_cut();
            } else {
                disk.kill();
            }
            check(&disk, through, &format!("crash after {good} operations, seed {seed}"));
        }
        if through {
            return good;
        }
    }
    unreachable!()
}

#[test]
fn making_a_journal() {
    let steps = every_crash(
        |_| {},
        |disk| open(disk).map(drop),
        |disk, _, at| {
            let (mut journal, entries) = open(disk).unwrap_or_else(|error| panic!("{at}: {error}"));
            assert!(entries.is_empty());
            journal.append(&[("k", b"v")]).unwrap();
            disk.power_cut();
            assert_eq!(open(disk).unwrap().1.len(), 1, "{at}");
        },
    );
    assert!(steps >= 6, "folder, file, write, sync, rename, sync of the folder: {steps}");
}

#[test]
fn appending_and_compacting() {
    let prepare = |disk: &ShakyDisk| {
        let (mut journal, _) = open(disk).unwrap();
        journal.append(&[("a", b"1"), ("b", b"1")]).unwrap();
        journal.append(&[("a", b"2")]).unwrap();
    };
    let compact = |disk: &ShakyDisk| {
        let (mut journal, _) = open(disk)?;
        journal.compact(&[("a", b"2"), ("b", b"1")])?;
        journal.append(&[("b", b"3")])
    };
    let steps = every_crash(prepare, compact, |disk, through, at| {
        let (_, entries) = open(disk).unwrap_or_else(|error| panic!("{at}: {error}"));
        let mut last = std::collections::BTreeMap::new();
        last.extend(entries.iter().map(|entry| (&*entry.key, &*entry.bytes)));
        assert_eq!(last["a"], b"2", "{at}");
        assert!(last["b"] == b"3" || (!through && last["b"] == b"1"), "{at}");
    });
    assert!(steps >= 8, "{steps}");
}

#[test]
fn a_server_with_a_snapshot() {
    let folder = Path::new("server");
    let open = |disk: &ShakyDisk| ServerStore::open_on(Arc::new(disk.clone()), folder);
    let prepare = |disk: &ShakyDisk| {
        let (mut store, _) = open(disk).unwrap();
        store.commit(&[b"1".to_vec()]).unwrap();
    };
    let act = |disk: &ShakyDisk| {
        let (mut store, _) = open(disk)?;
        store.commit(&[b"2".to_vec()])?;
        store.snapshot(b"12")?;
        store.commit(&[b"3".to_vec()])
    };
    every_crash(prepare, act, |disk, through, at| {
        let (_, kept) = open(disk).unwrap_or_else(|error| panic!("{at}: {error}"));
        let all = [kept.snapshot.unwrap_or_default(), kept.deltas.concat()].concat();
        assert!(all == b"123" || (!through && (all == b"1" || all == b"12")), "{at}: {all:?}");
    });
}

#[test]
fn making_a_vault_draws_one_secret() {
    let open = |disk: &ShakyDisk| Vault::open_on(Arc::new(disk.clone()), Path::new("vault"), Secret::Os);
    let steps = every_crash(
        |_| {},
        |disk| open(disk).map(drop),
        |disk, _, at| {
            let secret = open(disk).unwrap_or_else(|error| panic!("{at}: {error}")).secret("a");
            disk.power_cut();
            assert_eq!(open(disk).unwrap().secret("a"), secret, "{at}");
        },
    );
    assert!(steps > 15, "{steps}");
}

/// Commits and a compaction of a vault: states and ledgers stay together, and no line is lost or doubled.
#[test]
fn committing_to_and_compacting_a_vault() {
    let open =
        |disk: &ShakyDisk| Vault::open_on(Arc::new(disk.clone()), Path::new("vault"), Secret::Given([1; 32]));
    let step = |vault: &mut Vault, step: u32| {
        let names = ["a", "b"];
        let lines: Vec<Vec<ChainLine>> = names
            .iter()
            .map(|name| release(&mut vault.account(name, &DATA), step, u64::from(step)))
            .collect();
        let state = step.to_le_bytes();
        let commits: Vec<Commit<'_>> = names
            .iter()
            .zip(&lines)
            .map(|(client, lines)| Commit { client, fingerprint: DATA, state: &state, lines })
            .collect();
        vault.commit(&RUN, &commits)
    };
    let prepare = |disk: &ShakyDisk| {
        let mut vault = open(disk).unwrap();
        step(&mut vault, 1).unwrap();
        vault.compact().unwrap();
        step(&mut vault, 2).unwrap();
    };
    let act = |disk: &ShakyDisk| {
        let mut vault = open(disk)?;
        step(&mut vault, 3)?;
        vault.compact()?;
        step(&mut vault, 4)?;
        vault.compact()
    };
    let steps = every_crash(prepare, act, |disk, through, at| {
        let mut vault = open(disk).unwrap_or_else(|error| panic!("{at}: {error}"));
        for _ in 0..2 {
            for client in ["a", "b"] {
                let state = vault.state(&RUN, client).unwrap();
                let last = u32::from_le_bytes(state.try_into().unwrap());
                assert!(if through { last == 4 } else { (2..=4).contains(&last) }, "{at}");
                let chain = vault.account(client, &DATA);
                let sum = u64::from(last * (last + 1) / 2);
                assert_eq!((chain.head.seq, chain.spent), (u64::from(last), sum), "{at}");
                let lines: Vec<ChainLine> =
                    vault.lines(client, &DATA).unwrap().collect::<Result<_, _>>().unwrap();
                assert_eq!(Chain::start(client, &DATA).verify(&lines), Ok(chain), "{at}");
            }
            // Making up for an interrupted compaction doubles nothing.
            vault.compact().unwrap();
        }
    });
    assert!(steps > 20, "{steps}");
}
