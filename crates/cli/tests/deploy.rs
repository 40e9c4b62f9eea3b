//! `docs/deploy.md` works when followed literally: `scripts/deploy-trial` does, machine by machine.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout)]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The broker's program, or a word that the test did not run.
fn broker() -> Option<PathBuf> {
    let found = fedkin_runtime::nats::find_broker();
    if let Err(error) = &found {
        skipped::skipped(&error.to_string());
    }
    found.ok()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether a page could be followed, and what was said.
fn follow(broker: &Path, page: Option<&Path>) -> (bool, String) {
    let output = Command::new(root().join("scripts/deploy-trial"))
        .arg(env!("CARGO_BIN_EXE_fedkin"))
        .arg(broker)
        .args(page)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.success(), said.join("\n"))
}

#[test]
fn the_deploy_page_works_when_followed() {
    let Some(broker) = broker() else { return };
    let begun = Instant::now();
    let (followed, said) = follow(&broker, None);
    assert!(followed, "{said}");
    // Every client host has its models: the script's own last word.
    assert!(said.contains("3 client hosts have their models of two runs"), "{said}");
    for line in
        said.lines().filter(|line| line.contains("followed:") || line.contains("no network namespaces"))
    {
        println!("{line}");
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "took {:?}", begun.elapsed());
}

#[test]
fn a_wrong_deploy_page_is_noticed() {
    let Some(broker) = broker() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    for (text, words) in [
        (
            "text\n```console on=hub\n$ true\n$ fedkin server node.toml\n```\n",
            "line 5: on hub: fedkin server node.toml: code 2",
        ),
        ("```console on=moon\n$ true\n```\n", "the page names the machine 'moon'"),
        ("<!-- trial: hope -->\n", "does not know 'hope'"),
        ("```console on=hub\n$ true\n```\n", "its marks are gone"),
    ] {
        std::fs::write(&page, text).unwrap();
        let (followed, said) = follow(&broker, Some(&page));
        assert!(!followed && said.contains(words), "{said}");
    }
}

#[test]
fn links_of_the_pages_on_networks_lead_somewhere() {
    for name in ["docs/deploy.md", "docs/privacy.md", "docs/architecture.md"] {
        let path = root().join(name);
        let page = std::fs::read_to_string(&path).unwrap();
        let targets =
            page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in targets.filter(|target| !target.contains("://")) {
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(file.exists(), "{name}: {target}");
            let there = place.is_empty()
                || headings(&std::fs::read_to_string(&file).unwrap()).contains(&place.into());
            assert!(there, "{name}: {target}");
        }
    }
}

/// The names under which headings can be linked to.
fn headings(page: &str) -> Vec<String> {
    let heading = |line: &str| {
        let text = line.strip_prefix('#')?.trim_start_matches('#').trim().to_lowercase();
        Some(
            text.chars()
                .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-')
                .collect::<String>()
                .replace(' ', "-"),
        )
    };
    page.lines().filter_map(heading).collect()
}
