//! An old copy of a client's disk that is put back between two runs: the ledger would forget what was spent.

use crate::site::{PATIENCE, Proc, SMALL, Site, plan};
use fedkin_deploy::{Hosts, Roster};
use std::fs;
use std::path::Path;

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

const HOSTS: [&str; 2] = ["host-0", "host-1"];

/// The same records in a run of so many rounds.
fn begin(site: &Site, rounds: u32) -> Vec<Proc> {
    let plan = plan(&SMALL.replace("rounds = 8", &format!("rounds = {rounds}")));
    let roster = Roster::of(&plan, &plan.world(0).unwrap(), &Hosts::Blocks(2)).unwrap();
    fs::write(site.path("experiment.toml"), plan.config.resolved()).unwrap();
    fs::write(site.path("roster.json"), roster.to_json()).unwrap();
    ["server-000", "server-001"].iter().chain(&HOSTS).map(|node| site.start(&[node])).collect()
}

#[test]
fn a_disk_restored_between_two_runs_is_refused() {
    let Some(site) = Site::new(SMALL, 2) else { return };
    let state = site.config("host-0").state.clone();
    begin(&site, 4).iter_mut().for_each(Proc::must_end_well);
    copy(&state, &site.path("backup"));
    begin(&site, 5).iter_mut().for_each(Proc::must_end_well);
    fs::rename(&state, site.path("newest")).unwrap();
    copy(&site.path("backup"), &state);
    let mut nodes = begin(&site, 6);
    let status = nodes[2].ended(PATIENCE);
    assert_eq!(status.code(), Some(2), "{}", nodes[2].log());
    assert!(
        nodes[2].log().contains("ledger: 4 lines there, 9 were seen here; an old disk was restored"),
        "{}",
        nodes[2].log()
    );
    // With its newest disk the client goes on, and the run with it.
    fs::remove_dir_all(&state).unwrap();
    fs::rename(site.path("newest"), &state).unwrap();
    nodes[2] = site.start(&["host-0"]);
    nodes.iter_mut().for_each(Proc::must_end_well);
}
