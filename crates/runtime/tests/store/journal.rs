//! The file itself.

use super::*;
use fedkin_runtime::store::{Disk, DiskFault, Recovery, ServerStore};

/// A journal with these values, one frame each, and where each frame begins; the last place is the end.
fn written(values: &[&[u8]]) -> (Vec<u8>, Vec<usize>) {
    let disk = ShakyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    let mut places = vec![journal.len() as usize];
    for value in values {
        journal.append(&[("k", value)]).unwrap();
        places.push(journal.len() as usize);
    }
    (disk.contents(&path()).unwrap(), places)
}

const THREE: [&[u8]; 3] = [b"one", b"two, longer", b"three"];

#[test]
fn entries_come_back_in_order_with_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/journal");
    let (mut journal, entries) = Journal::open(&path).unwrap();
    assert!(entries.is_empty() && journal.is_empty());
    let big = vec![0; 300_000];
    journal.append(&[("a", b"1"), ("", b""), ("ключ/ü", &big)]).unwrap();
    journal.append(&[]).unwrap();
    journal.append(&[("a", b"2")]).unwrap();
    assert_eq!((journal.frames(), journal.is_empty()), (2, false));
    assert_eq!(journal.len(), std::fs::metadata(&path).unwrap().len());
    drop(journal);
    let (journal, entries) = Journal::open(&path).unwrap();
    let keys: Vec<&str> = entries.iter().map(|entry| &*entry.key).collect();
    assert_eq!(keys, ["a", "", "ключ/ü", "a"]);
    assert_eq!(values(&entries), [&b"1"[..], b"", &big[..], b"2"]);
    assert_eq!(journal.recovery(), Recovery::default());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
}

#[test]
fn a_second_opener_is_told_which_file_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let (mut journal, _) = Journal::open(&path).unwrap();
    for _ in 0..2 {
        let text = Journal::open(&path).unwrap_err().to_string();
        let expected =
            format!("{} is in use by another process (process {}): wait", path.display(), std::process::id());
        assert!(text.starts_with(&expected), "{text}");
        // A compaction gives the name to another file: the lock must not go with the old one.
        journal.compact(&[("k", b"v")]).unwrap();
    }
    drop(journal);
    Journal::open(&path).unwrap();
}

#[test]
fn a_last_frame_torn_at_any_byte_is_cut_and_said_so() {
    let (bytes, places) = written(&THREE);
    for end in places[2]..places[3] {
        let disk = ShakyDisk::default();
        disk.plant(&path(), &bytes[..end]);
        let (mut journal, entries) = open(&disk).unwrap();
        assert_eq!(values(&entries), &THREE[..2], "cut at {end}");
        assert_eq!(journal.recovery().cut_bytes, (end - places[2]) as u64);
        // Shorter than what was torn: nothing of that may be left behind it.
        journal.append(&[("k", b"")]).unwrap();
        drop(journal);
        let (journal, entries) = open(&disk).unwrap();
        assert_eq!(values(&entries), [THREE[0], THREE[1], b""]);
        assert_eq!(journal.recovery().cut_bytes, 0);
    }
}

#[test]
fn damage_of_any_byte_before_the_last_frame_is_refused_with_its_place() {
    let (bytes, places) = written(&THREE);
    for at in 0..places[2] {
        for bit in [0x01, 0x80] {
            let mut bad = bytes.clone();
            bad[at] ^= bit;
            let error = open_bytes(&bad).unwrap_err();
            let frame = places.iter().rev().find(|place| **place <= at).copied().unwrap_or(0);
            match &error {
                StoreError::Damaged { offset, .. } => assert_eq!(*offset as usize, frame, "{at}: {error}"),
                StoreError::OtherVersion { .. } => assert!((8..12).contains(&at), "{at}: {error}"),
                _ => panic!("byte {at}: {error}"),
            }
            assert!(error.to_string().contains("node/journal"), "{error}");
        }
    }
}

#[test]
fn damage_of_any_byte_in_the_last_frame_drops_that_frame_alone() {
    let (bytes, places) = written(&THREE);
    for at in places[2]..places[3] {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        let (journal, entries) = open_bytes(&bad).unwrap();
        assert_eq!(values(&entries), &THREE[..2], "byte {at}");
        assert_eq!(journal.recovery().cut_bytes as usize, places[3] - places[2]);
    }
}

#[test]
fn what_a_compaction_left_is_never_taken_for_a_torn_write() {
    let disk = ShakyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&[("k", b"old")]).unwrap();
    journal.compact(&[("k", b"live"), ("l", b"too")]).unwrap();
    let base = journal.len_after_compaction() as usize;
    drop(journal);
    let bytes = disk.contents(&path()).unwrap();
    assert_eq!(bytes.len(), base);
    for at in 0..base {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        open_bytes(&bad).unwrap_err();
        open_bytes(&bytes[..at]).unwrap_err();
    }
    assert_eq!(values(&open_bytes(&bytes).unwrap().1), [&b"live"[..], b"too"]);
}

#[test]
fn frames_that_are_doubled_moved_left_out_or_from_elsewhere_are_refused() {
    let (bytes, places) = written(&THREE);
    let (other, _) = written(&THREE);
    let frame = |n: usize| &bytes[places[n]..places[n + 1]];
    let head = &bytes[..places[0]];
    let with = |frames: &[&[u8]]| open_bytes(&[&[head], frames].concat().concat());
    with(&[frame(0), frame(1), frame(2)]).unwrap();
    for order in [
        &[0, 0, 1, 2][..],
        &[0, 1, 1, 2],
        &[0, 1, 2, 2],
        &[0, 1, 2, 0],
        &[1, 0, 2],
        &[0, 2, 1],
        &[0, 2],
        &[1],
        &[1, 2],
    ] {
        let frames: Vec<&[u8]> = order.iter().map(|n| frame(*n)).collect();
        let error = with(&frames).unwrap_err();
        assert!(
            matches!(&error, StoreError::Damaged { what, .. } if what.contains("belongs")),
            "{order:?}: {error}"
        );
    }
    // The same frames of another file, which has another salt: in the middle refused, at the end never read.
    with(&[&other[places[0]..places[1]], frame(1), frame(2)]).unwrap_err();
    let (_, entries) = with(&[frame(0), frame(1), &other[places[2]..places[3]]]).unwrap();
    assert_eq!(values(&entries), &THREE[..2]);
}

#[test]
fn a_frame_from_before_a_compaction_does_not_come_back() {
    let disk = ShakyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&[("k", b"old")]).unwrap();
    let old = disk.contents(&path()).unwrap();
    let frame = &old[journal.len_after_compaction() as usize..];
    journal.compact(&[]).unwrap();
    journal.append(&[("k", b"new")]).unwrap();
    let now = disk.contents(&path()).unwrap();
    let (_, entries) = open_bytes(&[&now[..], frame].concat()).unwrap();
    assert_eq!(values(&entries), [b"new"]);
    // In the place of the frame that is there now.
    let (_, entries) =
        open_bytes(&[&now[..journal.len_after_compaction() as usize], frame].concat()).unwrap();
    assert!(entries.is_empty());
}

/// A journal that forks (an older copy that went on by itself) has frames with the same numbers.
#[test]
fn a_frame_of_a_fork_is_refused() {
    let (bytes, places) = written(&THREE[..1]);
    let fork = |value: &[u8]| {
        let disk = ShakyDisk::default();
        disk.plant(&path(), &bytes);
        let (mut journal, _) = open(&disk).unwrap();
        journal.append(&[("k", value)]).unwrap();
        journal.append(&[("k", b"last!")]).unwrap();
        disk.contents(&path()).unwrap()
    };
    let (one, two) = (fork(b"left"), fork(b"rite"));
    let middle = places[1] + (one.len() - places[1]) / 2 - 1..;
    let start = one.windows(5).rposition(|part| part == b"last!").unwrap() - 13 - 56;
    assert!(middle.contains(&start));
    let error = open_bytes(&[&one[..start], &two[start..]].concat()).unwrap_err().to_string();
    assert!(error.contains("frame 3 stands where frame 3 belongs"), "{error}");
}

#[test]
fn an_unknown_version_and_a_foreign_file_are_named() {
    let (mut bytes, _) = written(&THREE);
    bytes[8] = 9;
    let text = open_bytes(&bytes).unwrap_err().to_string();
    assert_eq!(
        text,
        "node/journal has format 9, but this Fedkin reads format 2: use the version that wrote it"
    );
    let text = open_bytes(&[b'x'; 100]).unwrap_err().to_string();
    assert!(text.contains("this is not a journal of Fedkin"), "{text}");
    let text = open_bytes(b"").unwrap_err().to_string();
    assert!(text.contains("shorter than its header"), "{text}");
}

#[test]
fn bytes_that_look_like_frames_do_not_confuse_a_journal() {
    let (inner, places) = written(&THREE);
    let (bytes, outer) = written(&[&inner]);
    assert_eq!(values(&open_bytes(&bytes).unwrap().1), [&inner[..]]);
    // Torn, with whole frames of another journal inside.
    let (_, entries) = open_bytes(&bytes[..outer[1] - 1]).unwrap();
    assert!(entries.is_empty());
    let (_, entries) = open_bytes(&[&bytes[..], &inner[places[0]..]].concat()).unwrap();
    assert_eq!(entries.len(), 1);
}

#[test]
fn a_search_behind_a_bad_frame_reaches_over_its_windows() {
    let big = vec![0xf7; 5 << 19];
    let (mut bytes, places) = written(&[&big, b"small"]);
    bytes[places[0] + 9] ^= 0xff;
    let error = open_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains(&format!("one at byte {} after it is good", places[1])), "{error}");
    assert!(open_bytes(&bytes[..places[1] + 3]).unwrap().1.is_empty());
}

#[test]
fn a_failed_commit_leaves_the_journal_usable_and_writes_its_frame_again() {
    for fault in [DiskFault::Full, DiskFault::Broken] {
        for step in 0..2 {
            for seed in 0..20 {
                let disk = ShakyDisk::new(seed);
                let (mut journal, _) = open(&disk).unwrap();
                journal.append(&[("k", b"kept")]).unwrap();
                let before = journal.len();
                disk.fail_after(step, fault);
                let error = journal.append(&[("k", &[1; 1000])]).unwrap_err();
                assert_eq!(error.disk_full(), fault == DiskFault::Full);
                assert_eq!(disk.contents(&path()).unwrap().len() as u64, before);
                journal.append(&[("k", &[1; 1000])]).unwrap();
                disk.power_cut();
                let (_, entries) = open(&disk).unwrap();
                assert_eq!(values(&entries), [&b"kept"[..], &[1; 1000]], "{fault:?} {step} {seed}");
            }
        }
    }
}

/// The pages are called clean after a failed sync. A journal that only synced again would lose the commit.
#[test]
fn the_shaky_disk_forgets_what_a_failed_sync_dropped() {
    use fedkin_runtime::store::{Flush, How};
    let lost = (0..50).any(|seed| {
        let disk = ShakyDisk::new(seed);
        let mut file = disk.open(&path(), How::Fresh).unwrap();
        disk.sync_folder(Path::new("node")).unwrap();
        file.write_at(0, &[1; 10]).unwrap();
        disk.fail_after(0, DiskFault::Broken);
        file.sync(Flush::Data).unwrap_err();
        file.sync(Flush::Data).unwrap();
        disk.power_cut();
        disk.contents(&path()).unwrap().is_empty()
    });
    assert!(lost);
}

/// The process dies after a failed sync, before it could cut or after; what the next one reads must be durable,
/// and what it does not read must not come back.
#[test]
fn what_opening_reports_survives_a_power_cut_right_after() {
    let mut seen = [0; 2];
    for seed in 0..60 {
        for (fault, before) in [(DiskFault::Broken, 1), (DiskFault::Broken, 0), (DiskFault::Crash, 1)] {
            let disk = ShakyDisk::new(seed);
            let (mut journal, _) = open(&disk).unwrap();
            for _ in 0..before {
                journal.append(&[("k", b"first")]).unwrap();
            }
            disk.fail_after(1, fault);
            disk.fail_after(2 + seed % 2, DiskFault::Crash);
            let error = journal.append(&[("k", &[2; 500])]).unwrap_err();
            assert!(error.to_string().contains("sync"), "{error}");
            drop(journal);
            disk.calm();
            disk.kill();
            let (_, found) = open(&disk).unwrap();
            seen[found.len() - before] += 1;
            disk.power_cut();
            assert_eq!(open(&disk).unwrap().1, found, "{seed}");
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "both ends must have been tried: {seen:?}");
}

#[test]
fn a_journal_that_cannot_be_cut_back_says_so_until_it_is_opened_again() {
    let disk = ShakyDisk::new(1);
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&[("k", b"kept")]).unwrap();
    disk.fail_after(1, DiskFault::Crash);
    journal.append(&[("k", b"lost")]).unwrap_err();
    for _ in 0..2 {
        let text = journal.append(&[("k", b"more")]).unwrap_err().to_string();
        assert!(text.contains("cannot be used any more after an earlier failure"), "{text}");
        assert!(matches!(journal.compact(&[]), Err(StoreError::Poisoned { .. })));
    }
    disk.kill();
    drop(journal);
    let (mut journal, entries) = open(&disk).unwrap();
    assert_eq!(values(&entries)[0], b"kept");
    journal.append(&[("k", b"more")]).unwrap();
}

#[test]
fn nothing_is_acknowledged_on_a_name_that_may_vanish() {
    for seed in 0..40 {
        let disk = ShakyDisk::new(seed);
        let (mut journal, _) = open(&disk).unwrap();
        journal.append(&[("k", b"1")]).unwrap();
        // The last step of a compaction: the sync of the folder.
        let before = disk.operations();
        journal.compact(&[("k", b"1")]).unwrap();
        let steps = disk.operations() - before;
        disk.fail_after(steps - 1, DiskFault::Broken);
        journal.compact(&[("k", b"1")]).unwrap_err();
        disk.fail_after(0, DiskFault::Broken);
        journal.append(&[("k", b"2")]).unwrap_err();
        journal.append(&[("k", b"2")]).unwrap();
        disk.power_cut();
        assert_eq!(values(&open(&disk).unwrap().1), [b"1", b"2"]);
    }
}

#[test]
fn compaction_is_due_by_size_and_by_growth_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let (mut journal, _) = Journal::open(&path).unwrap();
    let mib = vec![1; 1 << 20];
    for _ in 0..8 {
        assert!(!journal.due());
        journal.append(&[("k", &mib)]).unwrap();
    }
    assert!(journal.due());
    let live: Vec<(&str, &[u8])> = vec![("k", &mib); 3];
    journal.compact(&live).unwrap();
    assert_eq!(journal.len(), journal.len_after_compaction());
    for _ in 0..9 {
        assert!(!journal.due());
        journal.append(&[("k", &mib)]).unwrap();
    }
    let (length, base) = (journal.len(), journal.len_after_compaction());
    drop(journal);
    let (mut journal, entries) = Journal::open(&path).unwrap();
    assert_eq!((journal.len(), journal.len_after_compaction(), entries.len()), (length, base, 12));
    journal.append(&[("k", &mib)]).unwrap();
    assert!(journal.due());
    // A leftover of a killed process goes away.
    drop(journal);
    let unfinished = folder.path().join("journal.unfinished");
    std::fs::write(&unfinished, b"half").unwrap();
    Journal::open(&path).unwrap();
    assert!(!unfinished.exists());
}

#[test]
fn a_server_gets_back_its_snapshot_and_what_came_after() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, kept) = ServerStore::open(folder.path()).unwrap();
    assert_eq!((kept.snapshot, kept.deltas.len()), (None, 0));
    store.commit(&[b"a".to_vec()]).unwrap();
    store.commit(&[b"b".to_vec()]).unwrap();
    assert!(matches!(ServerStore::open(folder.path()), Err(StoreError::Locked { .. })));
    drop(store);
    let (mut store, kept) = ServerStore::open(folder.path()).unwrap();
    assert_eq!((kept.snapshot, kept.deltas), (None, vec![b"a".to_vec(), b"b".to_vec()]));
    store.snapshot(b"ab").unwrap();
    store.commit(&[b"c".to_vec()]).unwrap();
    drop(store);
    let (store, kept) = ServerStore::open(folder.path()).unwrap();
    assert_eq!((kept.snapshot, kept.deltas), (Some(b"ab".to_vec()), vec![b"c".to_vec()]));
    assert!(!store.due());
}
