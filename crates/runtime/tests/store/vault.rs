//! The directory of a client process.

use super::*;
use fedkin_privacy::Refusal;
use fedkin_runtime::store::{Commit, Disk, Secret, Vault, read_ledger};

fn step(vault: &mut Vault, client: &str, number: u32) -> Chain {
    let mut chain = vault.account(client, &DATA);
    let lines = release(&mut chain, number, 10);
    let state = format!("{client} after {number}");
    vault
        .commit(&RUN, &[Commit { client, fingerprint: DATA, state: state.as_bytes(), lines: &lines }])
        .unwrap();
    chain
}

fn lines(vault: &Vault, client: &str) -> Vec<ChainLine> {
    vault.lines(client, &DATA).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_ledger_spans_runs_and_processes_and_belongs_to_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("client");
    let mut vault = Vault::open(&folder, Secret::Os).unwrap();
    assert_eq!(vault.account("a/b", &DATA), Chain::start("a/b", &DATA));
    step(&mut vault, "a/b", 1);
    drop(vault);
    let mut vault = Vault::open(&folder, Secret::Os).unwrap();
    let other_run = [9; 32];
    let mut chain = vault.account("a/b", &DATA);
    let more = chain.extend(&[charge(5), charge(6)], &other_run, 1, &[1; 32]);
    let commit = Commit { client: "a/b", fingerprint: DATA, state: b"other run", lines: &more };
    vault.commit(&other_run, &[commit]).unwrap();
    let mut new_data = vault.account("a/b", &[8; 32]);
    let refused = new_data.refuse(Refusal::Budget, &RUN, 2, &[2; 32]);
    vault
        .commit(&RUN, &[Commit { client: "a/b", fingerprint: [8; 32], state: b"last", lines: &refused }])
        .unwrap();
    vault.compact().unwrap();
    drop(vault);
    let vault = Vault::open(&folder, Secret::Os).unwrap();
    assert_eq!(vault.account("a/b", &DATA), chain);
    assert_eq!((chain.spent, chain.releases, chain.head.seq), (21, 3, 3));
    assert_eq!(vault.account("a/b", &[8; 32]), new_data);
    assert_eq!((new_data.spent, new_data.releases, new_data.head.seq), (0, 0, 1));
    assert_eq!(vault.accounts().count(), 2);
    assert_eq!(vault.state(&RUN, "a/b"), Some(&b"last"[..]));
    assert_eq!(vault.state(&other_run, "a/b"), Some(&b"other run"[..]));
    assert_eq!(vault.state(&RUN, "a"), None);
    assert_eq!(lines(&vault, "a/b").len(), 3);
    // Readable beside the process that works with it.
    assert_eq!(read_ledger(&folder).unwrap().map(Result::unwrap).count(), 4);
    let text = Vault::open(&folder, Secret::Os).unwrap_err().to_string();
    assert!(text.contains("is in use by another process"), "{text}");
}

#[test]
fn the_secret_is_made_once_and_kept_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("client");
    let vault = Vault::open(&folder, Secret::Os).unwrap();
    let secrets = [vault.secret("a"), vault.secret("b")];
    assert_ne!(secrets[0], secrets[1]);
    drop(vault);
    let vault = Vault::open(&folder, Secret::Os).unwrap();
    assert_eq!(secrets, [vault.secret("a"), vault.secret("b")]);
    assert!(!format!("{vault:?}").contains("secret"));
    drop(vault);
    let other = tempfile::tempdir().unwrap();
    assert_ne!(Vault::open(other.path(), Secret::Os).unwrap().secret("a"), secrets[0]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
            names.push(entry.file_name().into_string().unwrap());
        }
        names.sort();
        assert_eq!(names, ["journal", "ledger.log", "lock", "secret"]);
    }
    let text = Vault::open(&folder, Secret::Given([0; 32])).unwrap_err().to_string();
    assert!(text.contains("has a secret of its own"), "{text}");
    std::fs::remove_file(folder.join("secret")).unwrap();
    let text = Vault::open(&folder, Secret::Os).unwrap_err().to_string();
    assert!(text.contains("secret is missing"), "{text}");
    assert!(!folder.join("secret").exists());
    std::fs::write(folder.join("secret"), b"short").unwrap();
    Vault::open(&folder, Secret::Os).unwrap_err();
}

#[test]
fn a_lost_or_older_part_of_the_directory_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let [now, old] = ["now", "old"].map(|name| home.path().join(name));
    let open = || Vault::open(&now, Secret::Os);
    let mut vault = open().unwrap();
    step(&mut vault, "a", 1);
    vault.compact().unwrap();
    copy(&now, &old);
    step(&mut vault, "a", 2);
    vault.compact().unwrap();
    let known = vault.account("a", &DATA).head;
    drop(vault);
    open().unwrap();
    let refused_with = |name: &str, wanted: &str| {
        let saved = std::fs::read(now.join(name)).unwrap();
        std::fs::copy(old.join(name), now.join(name)).unwrap();
        let text = open().unwrap_err().to_string();
        assert!(text.contains("client \"a\"") && text.contains(wanted), "{text}");
        std::fs::remove_file(now.join(name)).unwrap();
        let text = open().unwrap_err().to_string();
        assert!(text.contains(name) && text.contains("is missing"), "{text}");
        std::fs::write(now.join(name), saved).unwrap();
        open().unwrap();
    };
    refused_with("ledger.log", "line 2: it was moved to ledger.log and is not there any more");
    refused_with("journal", "line 2: ledger.log has it, but the journal is older");
    // The whole directory rolled back holds together; a head that a server remembers tells.
    let vault = Vault::open(&old, Secret::Os).unwrap();
    let head = vault.account("a", &DATA).head;
    assert!(head.seq < known.seq && head.is_behind(&known));
    assert!(!vault.passed("a", &DATA, &known).unwrap());
    assert!(open().unwrap().passed("a", &DATA, &head).unwrap());
    assert!(open().unwrap().passed("a", &DATA, &Chain::start("a", &DATA).head).unwrap());
    // So it does when the rolled-back client goes on by itself.
    let mut fork = vault;
    for number in 0..3 {
        let mut chain = fork.account("a", &DATA);
        let lines = chain.extend(&[charge(1)], &RUN, 50 + number, &[0; 32]);
        fork.commit(&RUN, &[Commit { client: "a", fingerprint: DATA, state: b"", lines: &lines }]).unwrap();
    }
    assert!(!fork.account("a", &DATA).head.is_behind(&known));
    assert!(!fork.passed("a", &DATA, &known).unwrap());
}

/// Whoever rewrites a file with good checksums still has the chain to reckon with.
#[test]
fn an_edited_ledger_is_refused_with_client_and_line() {
    let folder = Path::new("vault");
    let build = |edit: &dyn Fn(&mut Vec<ChainLine>)| {
        let disk = ShakyDisk::default();
        let open = || Vault::open_on(Arc::new(disk.clone()), folder, Secret::Given([1; 32]));
        let mut vault = open().unwrap();
        for number in 1..=4 {
            step(&mut vault, "ward-3", number);
        }
        vault.compact().unwrap();
        let mut kept = lines(&vault, "ward-3");
        drop(vault);
        edit(&mut kept);
        disk.remove(&folder.join("ledger.log")).unwrap();
        let (mut ledger, _) = Journal::open_on(Arc::new(disk.clone()), &folder.join("ledger.log")).unwrap();
        let key = format!("lines/{}/ward-3", "07".repeat(32));
        let bytes = fedkin_numeric::codec::Codec::to_bytes(&kept.into_boxed_slice());
        ledger.append(&[(&key, &bytes)]).unwrap();
        drop(ledger);
        open().map(drop)
    };
    build(&|_| {}).unwrap();
    let broken = |edit: &dyn Fn(&mut Vec<ChainLine>)| match build(edit) {
        Err(error @ StoreError::Ledger { .. }) => {
            let text = error.to_string();
            assert!(text.contains("client \"ward-3\" in vault is broken at line"), "{text}");
            let StoreError::Ledger { broken, .. } = error else { unreachable!() };
            broken.seq
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(broken(&|lines| lines[1].size += 1), 3);
    assert_eq!(broken(&|lines| drop(lines.remove(1))), 2);
    assert_eq!(broken(&|lines| lines.swap(1, 2)), 2);
    assert_eq!(broken(&|lines| lines.truncate(3)), 4);
    // A last line, or a whole chain, that was made anew: the journal knows the head.
    assert_eq!(broken(&|lines| lines[3].size += 1), 4);
    assert_eq!(
        broken(&|lines| {
            let mut chain = Chain::start("ward-3", &DATA);
            *lines = (1..=4).flat_map(|number| release(&mut chain, number, 1)).collect();
        }),
        4
    );
}

#[test]
fn lines_that_do_not_follow_are_not_committed() {
    let disk = ShakyDisk::default();
    let open = || Vault::open_on(Arc::new(disk.clone()), Path::new("vault"), Secret::Given([1; 32]));
    let mut vault = open().unwrap();
    step(&mut vault, "a", 1);
    let frames = vault.frames();
    let mut chain = vault.account("a", &DATA);
    let first = release(&mut chain, 2, 1);
    let second = release(&mut chain, 3, 1);
    let good = Commit { client: "a", fingerprint: DATA, state: b"new", lines: &first };
    let refuse = |vault: &mut Vault, run: &[u8; 32], commits: &[Commit<'_>]| {
        let text = vault.commit(run, commits).unwrap_err().to_string();
        assert!(text.starts_with("refused to commit to vault: client \"a\": "), "{text}");
        assert_eq!((vault.frames(), vault.state(&RUN, "a")), (frames, Some(&b"a after 1"[..])));
    };
    refuse(&mut vault, &RUN, &[Commit { lines: &second, ..good }]);
    refuse(&mut vault, &RUN, &[good, good]);
    refuse(&mut vault, &RUN, &[Commit { fingerprint: [0; 32], ..good }]);
    refuse(&mut vault, &[0; 32], &[good]);
    vault.commit(&RUN, &[good, Commit { lines: &second, ..good }]).unwrap();
    assert_eq!(vault.account("a", &DATA), chain);
}

#[test]
fn a_thousand_clients_are_one_frame_and_one_sync() {
    let disk = ShakyDisk::default();
    let open = || Vault::open_on(Arc::new(disk.clone()), Path::new("vault"), Secret::Given([1; 32]));
    let mut vault = open().unwrap();
    let names: Vec<String> = (0..1000).map(|number| format!("client-{number}")).collect();
    let lines: Vec<Vec<ChainLine>> =
        names.iter().map(|name| release(&mut Chain::start(name, &DATA), 1, 3)).collect();
    let commits: Vec<Commit<'_>> = names
        .iter()
        .zip(&lines)
        .map(|(client, lines)| Commit { client, fingerprint: DATA, state: client.as_bytes(), lines })
        .collect();
    let before = (vault.frames(), disk.operations());
    vault.commit(&RUN, &commits).unwrap();
    let after = (vault.frames(), disk.operations());
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 2), "one write, one sync");
    disk.power_cut();
    let vault = open().unwrap();
    for name in &names {
        assert_eq!(vault.state(&RUN, name), Some(name.as_bytes()));
        assert_eq!(vault.account(name, &DATA).spent, 3);
    }
}

#[test]
fn ten_thousand_commits_keep_the_journal_bounded_and_grow_the_ledger_by_lines_alone() {
    let disk = ShakyDisk::default();
    let open = || Vault::open_on(Arc::new(disk.clone()), Path::new("vault"), Secret::Given([1; 32]));
    let mut vault = open().unwrap();
    let state = vec![7; 4000];
    let (mut longest, mut compactions, mut written) = (0, 0, 0);
    for number in 0..10_000u32 {
        let mut chain = vault.account("a", &DATA);
        let lines = release(&mut chain, number, 1);
        written += fedkin_numeric::codec::Codec::to_bytes(&lines[0]).len() as u64;
        vault
            .commit(&RUN, &[Commit { client: "a", fingerprint: DATA, state: &state, lines: &lines }])
            .unwrap();
        longest = longest.max(vault.bytes_on_disk().0);
        if vault.due() {
            vault.compact().unwrap();
            compactions += 1;
            assert!(vault.bytes_on_disk().0 < 5000);
        }
    }
    vault.compact().unwrap();
    assert!(compactions >= 4 && longest < (8 << 20) + 10_000, "{compactions} {longest}");
    let (_, ledger) = vault.bytes_on_disk();
    assert!(ledger > written && ledger < written + 300 * (compactions + 2), "{ledger} {written}");
    drop(vault);
    let vault = open().unwrap();
    assert_eq!(vault.account("a", &DATA).spent, 10_000);
    assert_eq!(lines(&vault, "a").len(), 10_000);
}
