//! Disks that run full: the node says so, sends nothing, loses nothing, and goes on by itself.

use crate::rogue::{Rogue, Seen};
use crate::site::{Proc, SMALL, Site, eventually, sha};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A disk of four megabytes; gone with the test.
struct Tiny {
    folder: TempDir,
}

impl Tiny {
    /// `None`: this user may not mount.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(folder.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            crate::skipped::skipped("no right to mount a small file system");
            return None;
        }
        Some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    fn fill(&self) {
        let mut file = File::create(self.ballast()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// The node stands still, and says where and why; then it goes on.
fn stands_still_until_freed(node: &Proc, disk: &Tiny) {
    let path = disk.path().display().to_string();
    let (status, health) = {
        eventually("trouble", || node.page("/health").0 == 503, || node.log());
        node.page("/health")
    };
    assert_eq!(status, 503);
    assert!(health.contains(&path) && health.contains("the disk is full"), "{health}");
    node.must_have_said(&[("level", "ERROR"), ("message", "the disk is full"), ("error", &path)]);
    assert!(node.counter("full_disk", &[]) >= 1);
    let stored = |folder: &Path| -> u64 {
        let mut folders = vec![folder.to_path_buf()];
        let mut sum = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.file_name().is_some_and(|name| name == "journal") {
                    sum += path.metadata().unwrap().len();
                }
            }
        }
        sum
    };
    let sent = node.counter("sent_bytes", &[]);
    std::thread::sleep(Duration::from_millis(300));
    // What did not fit was cut off again.
    let before = stored(disk.path());
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(stored(disk.path()), before);
    assert!(node.counter("sent_bytes", &[]) == sent, "it talks without a record");
    disk.free();
    eventually("health", || node.page("/health") == (200, "ok\n".to_string()), || node.log());
    node.await_line(&[("message", "there is space on the disk again")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_halts_a_node_until_there_is_space_and_changes_nothing() {
    let (Some(of_server), Some(of_host)) = (Tiny::new(), Tiny::new()) else { return };
    let experiment = SMALL.replace("dimension = 4", "dimension = 300").replace("rounds = 8", "rounds = 6");
    let states = BTreeMap::from([
        ("server-000".to_string(), of_server.path().to_path_buf()),
        ("host-0".to_string(), of_host.path().to_path_buf()),
    ]);
    let blocks = |names: &[String]| fedkin_deploy::Hosts::Blocks(4).assign(names);
    let Some(site) = Site::with(&experiment, blocks, &states) else { return };
    let expected = site.alone();
    let mut server = site.start(&["server-000"]);
    let mut host = site.start(&["host-0"]);
    let mut others = [site.start(&["server-001"]), site.start(&["host-2"]), site.start(&["host-3"])];
    // The test answers for host-1, so that nothing ends before it says so.
    let mut rogue = Rogue::new(&site, "host-1").await;
    rogue.holds = true;
    let mut last = 0;
    loop {
        let answers = match rogue.next().await {
            Seen::Answers(answers) => answers,
            Seen::Held => break,
            Seen::Over => panic!("dismissed without a word"),
        };
        let step = answers[0].step;
        let again = step <= last;
        last = step;
        if step == 2 && !again {
            // The answers that are missing close the step: the server must write, and cannot.
            of_server.fill();
            rogue.say(&answers);
            rogue.flush().await;
            tokio::task::block_in_place(|| stands_still_until_freed(&server, &of_server));
        } else if step == 3 && !again {
            // The next ask must be answered by host-0, which cannot write.
            of_host.fill();
            rogue.say(&answers);
            rogue.flush().await;
            tokio::task::block_in_place(|| stands_still_until_freed(&host, &of_host));
        } else if step == 5 && !again {
            // Killed on a full disk, and started again on it: it fails or waits, and loses nothing.
            of_server.fill();
            rogue.say(&answers);
            rogue.flush().await;
            tokio::task::block_in_place(|| {
                eventually("trouble", || server.page("/health").0 == 503, || server.log());
            });
            server.kill();
            of_server.free();
            server = site.start(&["server-000"]);
        } else {
            rogue.say(&answers);
        }
    }
    // The run is over but for the results, which need space as well.
    of_server.fill();
    rogue.holds = false;
    rogue.behave().await;
    server.await_line(&[("level", "ERROR"), ("message", "results are kept in memory")]);
    assert!(server.is_running());
    of_server.free();
    server.must_end_well();
    host.must_end_well();
    others.iter_mut().for_each(Proc::must_end_well);
    let mut models = site.models(&["host-0", "host-2", "host-3"]);
    models.extend(rogue.models());
    assert_eq!(sha(&models, 12), expected);
}
