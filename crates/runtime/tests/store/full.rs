//! A disk without room: a real one where the test may mount it, a simulated one always.

use super::*;
use fedkin_runtime::store::{Commit, Secret, ServerStore, Vault};

/// A file system of a few kilobytes, gone when dropped.
struct TinyDisk(tempfile::TempDir);

impl TinyDisk {
    fn mount(kilobytes: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"])
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(folder))
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

/// Commits until there is no room, then again after room was made.
fn fill_and_free(open: &dyn Fn() -> Result<Vault, StoreError>, take_room: &dyn Fn(), make_room: &dyn Fn()) {
    let mut vault = open().unwrap();
    let state = vec![5; 3000];
    let mut good = 0;
    let commit = |vault: &mut Vault, step| {
        let lines = release(&mut vault.account("a", &DATA), step, 1);
        vault.commit(&RUN, &[Commit { client: "a", fingerprint: DATA, state: &state, lines: &lines }])
    };
    take_room();
    let error = loop {
        match commit(&mut vault, good) {
            Ok(()) => good += 1,
            Err(error) => break error,
        }
        assert!(good < 10_000);
    };
    assert!(error.disk_full(), "{error}");
    let text = error.to_string();
    assert!(text.contains("journal: the disk is full") && text.contains("free some space"), "{text}");
    assert!(good > 0);
    for _ in 0..3 {
        assert!(commit(&mut vault, good).unwrap_err().disk_full());
        assert_eq!(vault.account("a", &DATA).spent, u64::from(good));
    }
    // Compaction needs room as well. Whether it succeeds or not, nothing is lost.
    let compacted = vault.compact();
    assert!(compacted.is_ok() || compacted.unwrap_err().disk_full());
    drop(vault);
    let mut vault = open().unwrap();
    assert_eq!(vault.account("a", &DATA).spent, u64::from(good));
    assert_eq!(vault.lines("a", &DATA).unwrap().count(), good as usize);
    assert_eq!(vault.state(&RUN, "a"), Some(&state[..]));
    while commit(&mut vault, good).is_ok() {
        good += 1;
    }
    make_room();
    commit(&mut vault, good).unwrap();
    vault.compact().unwrap();
    commit(&mut vault, good + 1).unwrap();
    drop(vault);
    assert_eq!(open().unwrap().account("a", &DATA).spent, u64::from(good) + 2);
}

#[test]
fn a_full_disk_stops_commits_and_a_retry_works_once_there_is_room() {
    let disk = ShakyDisk::default();
    fill_and_free(
        &|| Vault::open_on(Arc::new(disk.clone()), Path::new("vault"), Secret::Os),
        &|| disk.set_capacity(40_000),
        &|| disk.set_capacity(400_000),
    );
}

#[test]
fn a_real_full_disk_stops_commits_and_a_retry_works_once_there_is_room() {
    let Some(disk) = TinyDisk::mount(256) else {
        crate::skipped::skipped("no right to mount a small file system; the simulated disk alone was tried");
        return;
    };
    let ballast = disk.0.path().join("ballast");
    fill_and_free(
        &|| Vault::open(&disk.0.path().join("vault"), Secret::Os),
        &|| std::fs::write(&ballast, vec![1; 160 << 10]).unwrap(),
        &|| std::fs::remove_file(&ballast).unwrap(),
    );
    // A server beside it.
    let folder = disk.0.path().join("server");
    let (mut server, _) = ServerStore::open(&folder).unwrap();
    server.commit(&[b"small".to_vec()]).unwrap();
    let error = server.commit(&[vec![1; 1 << 20]]).unwrap_err();
    assert!(error.disk_full(), "{error}");
    assert!(server.snapshot(&vec![1; 1 << 20]).unwrap_err().disk_full());
    assert!(!folder.join("journal.unfinished").exists());
    server.commit(&[b"more".to_vec()]).unwrap();
    drop(server);
    assert_eq!(ServerStore::open(&folder).unwrap().1.deltas, [b"small".to_vec(), b"more".to_vec()]);
}
