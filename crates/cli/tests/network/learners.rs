//! Clients with different learners: nodes on a broker end with the bits of one process.

use crate::bench::Bench;
use crate::conformance::same;
use crate::net::{SMALL, ready};
use std::fmt::Write;

#[test]
fn two_clusters_with_two_losses_give_the_bits_of_one_process() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let table = "[learner.robust]\nkind = \"ridge\"\nhuber = 0.5\nclusters = [\"cluster-1\"]\n";
    bench.write("losses.toml", format!("{SMALL}{table}"));
    same(&bench, "losses", &["losses.toml"], &[]);
}

#[test]
fn a_tree_here_and_a_ridge_model_there_give_the_bits_of_one_process() {
    if !ready() {
        return;
    }
    let bench = Bench::new();
    let mut text = "who,at,fits,x,z,y\n".to_string();
    for (i, who) in "abcdef".chars().enumerate() {
        for r in 0..10 {
            let (x, z) = (r % 7, (r * 5 + i * 3) % 8);
            let (at, fits) = [("n", ""), ("s", "trees")][i % 2];
            writeln!(text, "{who},{at},{fits},{x},{z},{}", 2 * x + z).unwrap();
        }
    }
    bench.write("records.csv", text);
    bench.write(
        "trees.toml",
        "version = 1\n[run]\nname = \"trees\"\nrounds = 4\n[data]\nsource = \"csv\"\npath = \"records.csv\"\n\
         client = \"who\"\nserver = \"at\"\nlearner = \"fits\"\ntarget = \"y\"\n[model]\nkind = \"ridge\"\n\
         [learner.trees]\nkind = \"tree\"\nleaf = 2\n[algorithm]\nname = \"persfl-agnostic\"\ncandidates = 2\n\
         [network]\nresend = 0.2\n",
    );
    same(&bench, "trees", &["trees.toml"], &[]);
}
