//! What an operator does: looks, stops, goes on, reads metrics.

use crate::bench::Bench;
use crate::net::{
    Kind, LONG, SMALL, SOON, Started, await_step, broker, interrupted, local, nats, node, node_files, ready,
    result, signal, small, start, step, until,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

#[test]
fn status_tells_how_far_everybody_is() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    bench.write("small.toml", small(5000));
    let mut launcher = start(&bench, &nats(&["small.toml", "--out", "out"]));
    await_step(&bench, "out", 40);
    let file = node_files(&bench, "out")[0].1.clone();
    let ask = || bench.json(&["status", "--config", &file, "--json"]);
    let steps = |told: &serde_json::Value| -> Vec<u64> {
        let nodes = told["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["servers"][0]["step"].as_u64().unwrap_or(0)).collect()
    };
    until("three servers have said something", SOON, || steps(&ask()).iter().all(|step| *step > 0));
    let told = ask();
    assert_eq!((&told["rounds"], told["nodes"].as_array().unwrap().len()), (&5000.into(), 3));
    assert!(told["lag"].as_u64().unwrap() < 5000);
    for (i, node) in told["nodes"].as_array().unwrap().iter().enumerate() {
        let server = &node["servers"][0];
        assert_eq!(server["server"], format!("server-{i:03}"), "{told}");
        assert_eq!((&server["clients"], &server["joined"]), (&4.into(), &4.into()), "{told}");
        assert_eq!(server["listed"].as_array().unwrap().len(), 4);
        assert!(node["seconds_ago"].as_f64().unwrap() < 60.0);
    }
    // Said in hellos, which are rarer than steps.
    until("what was spent is told", SOON, || {
        let told = ask();
        let spent = |node: &serde_json::Value| node["servers"][0]["most_spent"].as_u64().unwrap() > 0;
        told["nodes"].as_array().unwrap().iter().all(spent)
    });
    let before = steps(&told);
    until("steps grow", SOON, || steps(&ask()).iter().zip(&before).all(|(now, before)| now > before));
    let text = bench.good(&["status", "--config", &file]);
    for word in ["server-000", "server-001", "server-002", "4 of 4", "5000 rounds", "waits for"] {
        assert!(text.contains(word), "no {word:?} in\n{text}");
    }
    // A server that stands still is behind the others' patience, and the others name it.
    let held = crate::net::of_kind(&bench, Kind::Client)[0];
    signal("STOP", &[held]);
    until("the wait is told", SOON, || bench.good(&["status", "--config", &file]).contains("(silent "));
    signal("CONT", &[held]);
    assert!(launcher.runs());
}

#[test]
fn an_interrupted_launcher_says_how_to_go_on_and_does() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    bench.write("small.toml", small(400));
    let command = nats(&["small.toml", "--out", "out"]);
    let ran = interrupted(&bench, &command, "out", 20);
    assert!(ran.err.contains("interrupted at round "), "{}", ran.err);
    assert!(ran.err.trim_end().ends_with(&command.join(" ")), "{}", ran.err);
    let at = step(&bench, "out");
    let told = start(&bench, &command).told();
    assert_eq!(told["start"], "resumed");
    assert!((20..400).contains(&at), "{at}");
    let whole = local(&bench, &["small.toml", "--out", "local"]);
    assert_eq!(result(&told), result(&whole));
    assert_eq!(bench.read("out/ledger.jsonl"), bench.read("local/ledger.jsonl"));
    let again = start(&bench, &command).told();
    assert_eq!((&again["start"], result(&again)), (&"complete".into(), result(&whole)));
}

/// The status line and the body of a page.
fn page(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_string()))
}

fn gauge(port: u16, name: &str) -> f64 {
    let (code, text) = page(port, "/metrics").unwrap();
    assert_eq!(code, 200);
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn nodes_by_themselves_stop_go_on_and_are_seen() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    bench.write("small.toml", small(300));
    let mut own = broker(&bench);
    let url = own.url();
    let command = nats(&["small.toml", "--out", "out", "--url", &url, "--processes", "5"]);
    interrupted(&bench, &command, "out", 5);
    let files = node_files(&bench, "out");
    assert_eq!(files.len(), 5);
    let ports: Vec<u16> = [&files[0], &files[4]]
        .iter()
        .map(|(_, file)| {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            bench.write(file, bench.read(file) + &format!("\n[observe]\nlisten = \"127.0.0.1:{port}\"\n"));
            port
        })
        .collect();
    // Steps of these nodes: how far the run was when it was interrupted says nothing of them.
    let before = step(&bench, "out");
    let mut nodes: Vec<Started<'_>> = files.iter().map(|file| node(&bench, file)).collect();
    await_step(&bench, "out", before + 15);
    // The first host of clients is stopped, and everybody waits for it.
    signal("TERM", &[nodes[3].pid()]);
    let ran = nodes[3].end(SOON);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("the same command goes on from the disk"), "{}", ran.err);
    let health = |port: u16| page(port, "/health").unwrap();
    for &port in &ports {
        assert!(gauge(port, "fedkin_step") >= 1.0);
        assert_eq!(gauge(port, "fedkin_connected"), 1.0);
        assert_eq!(health(port), (200, "ok\n".into()));
    }
    assert!(gauge(ports[1], "fedkin_spent_units") > 0.0);
    own.kill();
    for &port in &ports {
        until("health tells of the broker", SOON, || health(port).0 == 503);
        assert!(health(port).1.contains("the broker is out of reach"), "{:?}", health(port));
        assert_eq!(gauge(port, "fedkin_connected"), 0.0);
    }
    let held = step(&bench, "out");
    assert!(held < 300, "the run went on without a host");
    own.restart().unwrap();
    for &port in &ports {
        until("health is good again", SOON, || health(port) == (200, "ok\n".into()));
        assert!(gauge(port, "fedkin_reconnects_total") >= 1.0);
    }
    // A server as well, while it can do nothing.
    signal("TERM", &[nodes[1].pid()]);
    assert_eq!(nodes[1].end(SOON).code, Some(0));
    nodes[1] = node(&bench, &files[1]);
    nodes[3] = node(&bench, &files[3]);
    for node in &mut nodes {
        let ran = node.end(LONG);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    // All nodes are done: the launcher only collects.
    let told = start(&bench, &command).told();
    let whole = local(&bench, &["small.toml", "--out", "local"]);
    assert_eq!(result(&told), result(&whole));
    assert_eq!(bench.read("out/ledger.jsonl"), bench.read("local/ledger.jsonl"));
}

#[test]
fn the_ledgers_of_a_run_on_nodes_are_shown_and_agree_with_its_servers() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    bench.write("small.toml", SMALL);
    start(&bench, &nats(&["small.toml", "--out", "run"])).told();
    let text = bench.good(&["ledger", "run"]);
    assert!(text.contains("chains verified: 12") && text.contains("BOUND ASSUMED, NOT ENFORCED"), "{text}");
    let view = bench.json(&["ledger", "run", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&bench.read("run/summary.json")).unwrap();
    let largest = &view["chains"][view["largest"].as_u64().unwrap() as usize];
    assert_eq!(largest["zcdp"], summary["privacy"]["zcdp"]);
    assert_eq!(largest["epsilon"], summary["privacy"]["epsilon"]);
    let told = bench.json(&["ledger", "verify", "run", "--json"]);
    assert_eq!((&told["chains"], &told["remembered"]), (&12.into(), &12.into()), "{told}");
    let client = largest["client"].as_str().unwrap();
    let lines = bench.good(&["ledger", "run", "--client", client]);
    assert!(lines.contains("gaussian") && lines.contains("model"), "{lines}");
}

#[test]
fn a_budget_that_runs_out_is_told_as_in_one_process() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    bench.write("small.toml", SMALL);
    let arguments = ["small.toml", "--set", "privacy.budget=0.0025"];
    let there = start(&bench, &nats(&[&arguments[..], &["--out", "there"]].concat())).told();
    let here = local(&bench, &[&arguments[..], &["--out", "here"]].concat());
    assert!(here["privacy"]["refused_clients"].as_u64().unwrap() > 0, "{here}");
    assert_eq!(there["privacy"], here["privacy"]);
    let refusals: u64 = bench.json(&["ledger", "there", "--json"])["chains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["refusals"].as_u64().unwrap())
        .sum();
    assert!(refusals > 0);
    assert!(bench.read("there/report.html").contains("Clients that refused"));
}
