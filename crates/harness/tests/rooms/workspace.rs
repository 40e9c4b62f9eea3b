//! The crates of the workspace as cargo knows them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rooms from the bottom to the top: a crate may use those before it.
pub(crate) const ROOMS: &[&str] = &[
    "fedkin-numeric",
    "fedkin-settings",
    "fedkin-graph",
    "fedkin-privacy",
    "fedkin-learner",
    "fedkin-method",
    "fedkin-data",
    "fedkin-config",
    "fedkin-measure",
    "fedkin-runtime",
    "fedkin-run",
    "fedkin-report",
    "fedkin-deploy",
    "fedkin-node",
    "fedkin-experiment",
    "fedkin",
    "fedkin-cli",
    HARNESS,
];

/// The crate that has nothing but tests.
pub(crate) const HARNESS: &str = "fedkin-harness";

/// A crate, and what it depends on within the workspace other than for its tests.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// What a program that uses the crate is built with.
    pub(crate) normal: Vec<String>,
    /// What only its build script uses.
    pub(crate) build: Vec<String>,
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The crates of the workspace, in the order of their names.
pub(crate) fn members() -> Vec<Member> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let names: Vec<String> = packages.iter().map(|package| text(&package["name"])).collect();
    let mut members: Vec<Member> = packages
        .iter()
        .map(|package| {
            let used = |kind: Option<&str>| {
                let mut all: Vec<String> = package["dependencies"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|dependency| dependency["kind"].as_str() == kind)
                    .map(|dependency| text(&dependency["name"]))
                    .filter(|name| names.contains(name))
                    .collect();
                all.sort();
                all.dedup();
                all
            };
            Member {
                name: text(&package["name"]),
                folder: Path::new(&text(&package["manifest_path"])).parent().unwrap().to_path_buf(),
                normal: used(None),
                build: used(Some("build")),
            }
        })
        .collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    members
}

/// Everything that is wrong with who uses whom, a sentence each.
pub(crate) fn wrong(rooms: &[&str], members: &[Member]) -> Vec<String> {
    let floor = |name: &str| rooms.iter().position(|room| *room == name);
    let mut problems = Vec::new();
    for member in members {
        let name = &member.name;
        let Some(own) = floor(name) else {
            problems.push(format!(
                "{name} is in no room: decide which crates may use it, and add it to ROOMS in \
                 crates/harness/tests/rooms/workspace.rs, below all of them and above all it uses"
            ));
            continue;
        };
        for used in member.normal.iter().chain(&member.build) {
            match floor(used) {
                _ if used == HARNESS => problems.push(format!(
                    "{name} depends on {HARNESS}, which has nothing but tests: make it a dev-dependency"
                )),
                Some(other) if other == own => problems.push(format!("{name} depends on itself")),
                Some(other) if other > own => problems.push(format!(
                    "{name} depends on {used}, which is further up: move what both need down, or the user of it up"
                )),
                // An unknown crate has a sentence of its own.
                _ => {}
            }
        }
    }
    problems
}
