//! Nodes that do not fit: another config, other data, an old disk. Refused, with both sides named.

use crate::bench::{Bench, Ran};
use crate::net::{
    Kind, LONG, SOON, broker, client_folders, interrupted, nats, node, node_files, ready, small, start, step,
};
use fedkin_runtime::nats::Broker;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn refused(ran: &Ran, words: &[&str]) {
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    for word in words {
        assert!(ran.err.contains(word), "no {word:?} in\n{}", ran.err);
    }
}

/// Every word of sixteen hexadecimal digits.
fn digests(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| word.len() == 16 && word.chars().all(|c| c.is_ascii_hexdigit())).collect()
}

#[test]
fn a_node_with_another_config_is_refused() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    bench.write("small.toml", small(2000));
    let own = broker(&bench);
    let url = own.url();
    let command = nats(&["small.toml", "--out", "out", "--url", &url, "--processes", "5"]);
    interrupted(&bench, &command, "out", 3);
    let files = node_files(&bench, "out");
    let roster: serde_json::Value = serde_json::from_str(&bench.read("out/nodes/roster.json")).unwrap();
    let agreed = roster["config"].as_str().unwrap();
    for (what, from, to) in [("penalty", "penalty = 4.0", "penalty = 4.5"), ("seed", "seed = 5", "seed = 6")]
    {
        bench.edit("out/nodes/experiment.toml", "out/nodes/odd.toml", &[(from, to)]);
        for (kind, file) in [&files[0], files.last().unwrap()] {
            let odd = format!("out/nodes/odd-{what}-{kind:?}.toml");
            bench.edit(file, &odd, &[("\"experiment.toml\"", "\"odd.toml\"")]);
            let ran = node(&bench, &(*kind, odd)).end(SOON);
            refused(&ran, &[agreed]);
            let last = ran.err.trim_end().lines().last().unwrap();
            assert!(digests(last).len() == 2, "{what}: both configs are named in {last:?}");
        }
    }
    // The same directory with another config, as a whole.
    let other = [&command[..], &["--set", "algorithm.penalty=4.5"]].concat();
    refused(
        &start(&bench, &other).end(SOON),
        &["holds a run with another config", "algorithm.penalty", "--out"],
    );
    // The right ones still go on.
    let mut nodes: Vec<_> = files.iter().map(|file| node(&bench, file)).collect();
    crate::net::await_step(&bench, "out", 20);
    assert!(nodes.iter_mut().all(crate::net::Started::runs));
}

#[test]
fn data_that_changed_between_stop_and_resume_are_refused() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    bench.good(&["new"]);
    bench.edit(
        "wards.toml",
        "long.toml",
        &[("rounds = 100", "rounds = 3000"), ("\n[model]\n", "\n[network]\nresend = 0.2\n[model]\n")],
    );
    let command = nats(&["long.toml", "--out", "out"]);
    interrupted(&bench, &command, "out", 5);
    let before = bench.read("wards.csv");
    // One record: it may be a test record, which no node compares, but the run is not the same any more.
    bench.edit("wards.csv", "wards.csv", &[("north-1,north,children,-0.09", "north-1,north,children,-0.08")]);
    let ran = start(&bench, &command).end(LONG);
    refused(&ran, &["the data changed since the run in out began", " then, ", " now", "--out"]);
    // Without a launcher the server notices: all records of a client, training records among them.
    bench.edit("wards.csv", "wards.csv", &[("north-1,north,children,-", "north-1,north,children,-1")]);
    let own = broker(&bench);
    let files = node_files(&bench, "out");
    use_broker(&bench, &files, &own);
    let servers: Vec<_> =
        files.iter().filter(|(kind, _)| *kind == Kind::Server).map(|file| node(&bench, file)).collect();
    let client = files.iter().find(|(kind, _)| *kind == Kind::Client).unwrap();
    let ran = node(&bench, client).end(SOON);
    refused(&ran, &["data fingerprint: ", "north-1", " there, ", " when the run began"]);
    let line = ran.err.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(digests(line).len() == 2, "{line}");
    drop(servers);
    // With the records as they were it goes on.
    bench.write("wards.csv", before);
    let at = step(&bench, "out");
    interrupted(&bench, &command, "out", at + 10);
}

/// Tells nodes of another broker.
fn use_broker(bench: &Bench, files: &[(Kind, String)], own: &Broker) {
    for (_, file) in files {
        let text = bench.read(file);
        let line = text.lines().find(|line| line.starts_with("url = ")).unwrap();
        bench.write(file, text.replace(line, &format!("url = {:?}", own.url())));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_client_with_an_old_disk_is_refused() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    bench.write("small.toml", small(3000));
    let command = nats(&["small.toml", "--out", "out", "--processes", "5"]);
    interrupted(&bench, &command, "out", 5);
    let folder = client_folders(&bench, "out").remove(0);
    copy(&folder, &bench.path("backup"));
    interrupted(&bench, &command, "out", 60);
    fs::rename(&folder, bench.path("newest")).unwrap();
    copy(&bench.path("backup"), &folder);
    let ran = start(&bench, &command).end(LONG);
    refused(&ran, &["ledger: ", " lines there, ", " were seen here", "an old disk was restored"]);
    // By itself as well, without a launcher that speaks for it.
    let files = node_files(&bench, "out");
    let own = broker(&bench);
    use_broker(&bench, &files, &own);
    let _servers: Vec<_> =
        files.iter().filter(|(kind, _)| *kind == Kind::Server).map(|file| node(&bench, file)).collect();
    let first = files.iter().find(|(kind, _)| *kind == Kind::Client).unwrap();
    refused(&node(&bench, first).end(SOON), &["an old disk was restored", " lines there, "]);
    // With the newest disk it goes on.
    fs::remove_dir_all(&folder).unwrap();
    fs::rename(bench.path("newest"), &folder).unwrap();
    let mut client = node(&bench, first);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(client.runs(), "{}", client.said());
}
