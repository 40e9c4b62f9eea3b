//! Whatever ends a run early, the same command goes on and ends with the same models.

use crate::bench::{Bench, Ran};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Two repeats of some tenths of a second each, with a checkpoint every 20 ms.
const LONG: &str = r#"
version = 1
[run]
name = "long"
rounds = 3000
repeats = 2
checkpoint_seconds = 0.02
[data]
source = "synthetic.clustered-regression"
clients_per_server = 10
dimension = 20
[topology]
graph = { kind = "ring", servers = 5 }
[model]
kind = "ridge"
[algorithm]
name = "pgfl"
[participation]
clients_per_server = 3
[evaluate]
every = 100
[privacy]
mechanism = "zcdp"
initial_budget = 1e-3
growth = 1.0
bound = "assumed"
gradient_bound = 1.0
"#;

fn start(bench: &Bench, out: &str, more: &[&str]) -> Child {
    let arguments = [&["run", "long.toml", "--out", out, "--json"], more].concat();
    bench.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

fn sha(bench: &Bench, out: &str) -> (String, serde_json::Value, String) {
    let told = bench.json(&["run", "long.toml", "--out", out, "--json"]);
    let text = |key: &str| told[key].as_str().unwrap().to_string();
    (text("models_sha256"), told["final"].clone(), text("start"))
}

/// The rounds that the checkpoints of a directory hold; the place of the number is part of the format.
fn rounds(folder: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(folder.join("checkpoints")) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "bin")).map(|path| round(&path)).collect()
}

fn round(checkpoint: &PathBuf) -> u64 {
    let bytes = fs::read(checkpoint).unwrap();
    u64::from_le_bytes(bytes[76..84].try_into().unwrap())
}

/// A number in [0, 1) that differs from run to run.
fn chance() -> f64 {
    RandomState::new().hash_one(0u8) as f64 / 2f64.powi(64)
}

/// Clients that pick their cluster are killed in the middle of it, and end in the same ones.
#[test]
fn clusters_that_are_found_survive_kills() {
    let bench = Bench::new();
    let plain = LONG.split("[privacy]").next().unwrap();
    bench.write("long.toml", format!("{plain}[kin]\nclusters = \"infer\"\nwarm_up = 200\nforming = 500\n"));
    let (models, metrics, _) = sha(&bench, "whole");
    let mut from_checkpoint = 0;
    for trial in 0..4 {
        let out = format!("killed-{trial}");
        let mut child = start(&bench, &out, &[]);
        let deadline = Instant::now() + Duration::from_secs(20);
        while rounds(&bench.path(&out)).iter().max().is_none_or(|round| *round < 150 * (trial + 1)) {
            if child.try_wait().unwrap().is_some() || Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (again, told, how) = sha(&bench, &out);
        from_checkpoint += u32::from(how != "fresh");
        assert_eq!((again, told), (models.clone(), metrics.clone()), "{trial}");
        assert_eq!(bench.read(&format!("{out}/clusters.csv")), bench.read("whole/clusters.csv"));
    }
    assert!(from_checkpoint > 0, "no kill came in time");
}

#[test]
fn twenty_kills_at_random_moments_change_no_bit() {
    const ROUNDS: f64 = 3000.0;
    let bench = Bench::new();
    bench.write("long.toml", LONG);
    let (models, metrics, how) = sha(&bench, "whole");
    assert_eq!(how, "fresh");
    let (mut in_time, mut from_checkpoint) = (0, 0);
    for trial in 0..20 {
        let out = format!("killed-{trial}");
        let folder = bench.path(&out);
        // A moment of the run, not of the clock: other tests make the machine faster and slower. One in ten
        // comes before the first checkpoint.
        let moment = ROUNDS * (chance() - 0.1).max(0.0);
        let delay = Duration::from_secs_f64(0.03 * chance());
        let mut child = start(&bench, &out, &[]);
        let begun = Instant::now();
        let early = || rounds(&folder).iter().all(|&round| (round as f64) < moment);
        while moment > 0.0 && early() && !folder.join("summary.json").exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "trial {trial}: round {moment} never came");
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(delay);
        child.kill().unwrap();
        finish(child);
        let killed_in_time = !folder.join("summary.json").exists();
        let kept = rounds(&folder);
        in_time += u32::from(killed_in_time);
        let (again, last, how) = sha(&bench, &out);
        if killed_in_time && kept.iter().any(|&round| round > 0) {
            from_checkpoint += 1;
            assert_eq!(how, "resumed", "trial {trial}");
        }
        assert_eq!(again, models, "trial {trial}: killed with checkpoints at {kept:?}");
        assert_eq!(last, metrics, "trial {trial}: killed with checkpoints at {kept:?}");
    }
    eprintln!("{in_time} of 20 kills came in the middle of the run, {from_checkpoint} left a checkpoint");
    // A kill may come late on a busy machine; without kills in the middle the test shows nothing.
    assert!(in_time >= 15 && from_checkpoint >= 10, "{in_time} in time, {from_checkpoint} with a checkpoint");
}

/// Waits for a checkpoint in the middle of the run.
fn await_checkpoint(child: &mut Child, folder: &Path) {
    let begun = Instant::now();
    while rounds(folder).iter().all(|&round| round == 0) {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its first checkpoint");
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupt(child: &Child) {
    let done = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_does() {
    let bench = Bench::new();
    bench.write("long.toml", LONG.replace("rounds = 3000", "rounds = 9000"));
    let mut child = start(&bench, "stopped", &[]);
    await_checkpoint(&mut child, &bench.path("stopped"));
    interrupt(&child);
    let ran = finish(child);
    assert_eq!((ran.code, ran.out.as_str()), (Some(130), ""), "{ran:?}");
    assert!(ran.err.contains("\ninterrupted at round "), "{}", ran.err);
    assert!(ran.err.trim_end().ends_with("run long.toml --out stopped --json"), "{}", ran.err);
    assert!(rounds(&bench.path("stopped")).iter().any(|&round| round > 0));
    let (models, metrics, how) = sha(&bench, "stopped");
    assert_eq!(how, "resumed");
    assert_eq!((models, metrics, "fresh".to_string()), sha(&bench, "whole"));
}

/// A directory in the middle of a run, made by interrupting it.
fn half_done(config: &str) -> Bench {
    let bench = Bench::new();
    bench.good(&["new"]);
    bench.write("long.toml", config);
    let mut child = start(&bench, "half", &[]);
    await_checkpoint(&mut child, &bench.path("half"));
    interrupt(&child);
    assert_eq!(finish(child).code, Some(130));
    bench
}

#[test]
fn a_half_done_run_is_not_resumed_with_another_config_or_other_data() {
    let wards = Bench::new();
    wards.good(&["new"]);
    let config = wards
        .read("wards.toml")
        .replace("rounds = 100", "rounds = 2000000\ncheckpoint_seconds = 0.02")
        .replace("\n[model]\n", "\n[evaluate]\nevery = 100000\n\n[model]\n");
    let bench = half_done(&config);
    let resume = ["run", "long.toml", "--out", "half"];
    let other = [&resume[..], &["--set", "algorithm.penalty=4"]].concat();
    bench.refused(&other, &["half holds a run with another config", "algorithm.penalty", "--out"]);
    bench.edit("wards.csv", "wards.csv", &[("north-1,north,children,-0.09", "north-1,north,children,-0.08")]);
    bench.refused(&resume, &["the data changed since", "half/checkpoints", "restore them"]);
}

#[test]
fn a_damaged_checkpoint_is_refused_by_name() {
    // One repeat: another one would rightly go on while this one is refused.
    let bench =
        half_done(&LONG.replace("repeats = 2", "repeats = 1").replace("rounds = 3000", "rounds = 9000"));
    let path = bench.path("half/checkpoints/repeat-0000.bin");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    bench.refused(&["run", "long.toml", "--out", "half"], &["repeat-0000.bin is damaged", "remove it"]);
}

#[test]
fn two_processes_do_not_share_a_directory() {
    let bench = Bench::new();
    bench.write("long.toml", LONG.replace("rounds = 3000", "rounds = 10000000"));
    let mut child = start(&bench, "shared", &[]);
    await_checkpoint(&mut child, &bench.path("shared"));
    let ran = bench.fedkin(&["run", "long.toml", "--out", "shared"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("shared is in use by another process"), "{}", ran.err);
}

#[test]
fn without_checkpoints_an_interruption_says_so() {
    let bench = Bench::new();
    bench.write("long.toml", LONG.replace("rounds = 3000", "rounds = 10000000"));
    let child = start(&bench, "none", &["--set", "run.checkpoint_seconds=0"]);
    while !bench.path("none/config.toml").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    let ran = finish(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.err.contains("kept no checkpoint"), "{}", ran.err);
}

/// A file system of its own, gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir_all(&folder).unwrap();
        let mount = |options: &str| {
            let mut command = Command::new("mount");
            command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&folder).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        mount(&format!("size={size}")).then_some(Self(folder))
    }

    fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_a_run_and_space_lets_it_go_on() {
    let bench = Bench::new();
    bench.write("long.toml", LONG);
    let (models, metrics, _) = sha(&bench, "whole");
    let Some(disk) = SmallDisk::mount(bench.path("runs/refused"), "64k") else {
        crate::skipped::skipped("no right to mount a small file system");
        return;
    };
    bench.write("runs/refused/mine.txt", "mine");
    let out = "runs/refused/full";
    bench.refused(&["run", "long.toml", "--out", out], &["the disk is full", "run the same command again"]);
    disk.grow("20m");
    let (again, last, _) = sha(&bench, out);
    assert_eq!((again, last), (models, metrics));
    assert_eq!(bench.read("runs/refused/mine.txt"), "mine");
}
