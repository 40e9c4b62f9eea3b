//! Data that are wrong are refused with file and place, and nothing is written over.

use crate::bench::Bench;

/// The config for `bad.csv` or another data set, into a directory of its own.
fn refused(bench: &Bench, set: &[&str], words: &[&str]) {
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    bench.refused(&[&["run", "refused.toml", "--out", "runs/refused"], &set[..]].concat(), words);
    // What a check finds is what a run finds.
    bench.refused(&[&["config", "check", "refused.toml"], &set[..]].concat(), words);
    let _ = std::fs::remove_dir_all(bench.path("runs/refused"));
}

fn bench() -> Bench {
    let bench = Bench::with_a_run();
    bench.edit("wards.toml", "refused.toml", &[("\"wards.csv\"", "\"bad.csv\"")]);
    bench.edit("wards.csv", "bad.csv", &[]);
    bench
}

/// The records with line 3 (the second record) replaced.
fn third_line(bench: &Bench, line: &str) {
    let text = bench.read("wards.csv");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = line;
    bench.write("bad.csv", lines.join("\n") + "\n");
}

#[test]
fn records_that_are_wrong_are_named_by_line_and_column() {
    let bench = bench();
    third_line(&bench, "north-1,north,children,nan,1,1,1,5");
    refused(&bench, &[], &["bad.csv:3", "\"age\"", "empty or missing"]);
    third_line(&bench, "north-1,north,children,inf,1,1,1,5");
    refused(&bench, &[], &["bad.csv:3", "\"age\"", "not a finite number"]);
    third_line(&bench, "north-1,north,children,old,1,1,1,5");
    refused(&bench, &[], &["bad.csv:3", "\"age\"", "\"old\""]);
    third_line(&bench, "north-1,north,children,1,1,5");
    refused(&bench, &[], &["bad.csv", "3", "6", "8"]);
    third_line(&bench, "north-1,south,children,1,1,1,1,5");
    refused(&bench, &[], &["bad.csv:3", "north-1", "has server \"south\"", "\"north\""]);
    bench.write("bad.csv", "");
    refused(&bench, &[], &["bad.csv"]);
}

#[test]
fn a_missing_column_or_file_is_named_with_the_likely_one() {
    let bench = bench();
    refused(&bench, &["data.target=stai"], &["bad.csv", "\"stai\"", "`target`", "did you mean `stay`?"]);
    refused(&bench, &["data.client=wart"], &["\"wart\"", "`client`", "did you mean `ward`?"]);
    refused(&bench, &["data.path=absent.csv"], &["cannot read", "absent.csv"]);
}

#[test]
fn labels_other_than_0_and_1_are_refused() {
    let bench = bench();
    refused(&bench, &["model.kind=logistic"], &["bad.csv:2", "\"stay\"", "0", "1"]);
}

#[test]
fn a_client_without_records_is_refused() {
    let bench = bench();
    let text = bench.read("wards.csv");
    let lines = text.lines().enumerate().map(|(i, line)| match i {
        0 => format!("{line},part"),
        _ if line.starts_with("north-2,") => format!("{line},test"),
        _ => format!("{line},train"),
    });
    bench.write("bad.csv", lines.collect::<Vec<_>>().join("\n"));
    let set = ["data.split=part", "data.test_fraction=0"];
    refused(&bench, &set, &["bad.csv:11", "north-2", "has test records only", "give it a training record"]);
    bench.good(&["new", "drawn", "--from", "demo"]);
    bench.edit("drawn/demo.toml", "refused.toml", &[("samples = [2, 9]", "samples = [0, 9]")]);
    refused(&bench, &[], &["refused.toml:", "`data.samples`", "0 is out of range"]);
}

#[test]
fn a_cluster_without_a_client_is_refused() {
    let bench = bench();
    bench.good(&["new", "drawn", "--from", "demo"]);
    bench.edit("drawn/demo.toml", "refused.toml", &[("clusters = 3", "clusters = 151")]);
    refused(
        &bench,
        &[],
        &["clusters", "150 clients cannot fill 151 clusters", "every cluster needs a client"],
    );
}

#[test]
fn a_graph_in_pieces_is_refused_where_it_must_be_whole() {
    let bench = bench();
    bench.write("pieces.csv", "a,b\nnorth,east\nsouth,west\n");
    let set = ["topology.edges=pieces.csv"];
    refused(&bench, &set, &["not connected: 2 pieces", "east, north", "south, west", "add an edge"]);
    bench.good(&[
        "run",
        "refused.toml",
        "--set",
        set[0],
        "--set",
        "algorithm.name=clusterfl",
        "--set",
        "run.rounds=2",
        "--out",
        "runs/pieces",
    ]);
    bench.write("pieces.csv", "a,b\nnorth,east\nsouth,weft\n");
    refused(&bench, &set, &["pieces.csv:3", "\"weft\"", "did you mean `west`?"]);
}

/// Four IDX files with ten tiny images each; the first is then cut short.
#[test]
fn a_truncated_idx_file_is_refused() {
    let bench = bench();
    let images = |count: u32| {
        let mut bytes = vec![0, 0, 8, 3];
        bytes.extend([count, 28, 28].iter().flat_map(|side| side.to_be_bytes()));
        bytes.extend(vec![7; count as usize * 28 * 28]);
        bytes
    };
    let labels: Vec<u8> = [&[0, 0, 8, 1, 0, 0, 0, 10][..], &(0..10).collect::<Vec<u8>>()].concat();
    for part in ["train", "t10k"] {
        bench.write(&format!("digits/{part}-images-idx3-ubyte"), images(10));
        bench.write(&format!("digits/{part}-labels-idx1-ubyte"), &labels);
    }
    bench.write("digits/train-images-idx3-ubyte", &images(10)[..2000]);
    images_config(&bench, "mnist", "digits");
    refused(&bench, &[], &["digits/train-images-idx3-ubyte", "7840 bytes", "1984", "fetch it again"]);
    bench.refused(&["data", "inspect", "digits/train-images-idx3-ubyte"], &["train-images-idx3-ubyte"]);
    bench.write("digits/train-images-idx3-ubyte", [0, 0]);
    refused(&bench, &[], &["train-images-idx3-ubyte"]);
    images_config(&bench, "mnist", "nowhere");
    refused(&bench, &[], &["mnist is not found at", "nowhere", "FEDKIN_DATA"]);
}

#[test]
fn a_truncated_npz_file_is_refused() {
    let bench = bench();
    // The head of an archive whose directory, at the end, was cut off.
    let head = [&b"PK\x03\x04\x14\x00\x00\x00\x00\x00"[..], &[0; 60]].concat();
    bench.write("organs/organamnist.npz", head);
    images_config(&bench, "organamnist", "organs");
    refused(&bench, &[], &["organamnist.npz"]);
    bench.refused(&["data", "inspect", "organs/organamnist.npz"], &["organamnist.npz"]);
}

fn images_config(bench: &Bench, source: &str, path: &str) {
    let config = format!(
        "version = 1\n[run]\nname = \"wards\"\nrounds = 2\n[data]\nsource = \"{source}\"\npath = \"{path}\"\n\
         [topology]\ngraph = {{ servers = 2, kind = \"complete\" }}\n[model]\nkind = \"logistic\"\n\
         [algorithm]\nname = \"pgfl\"\n"
    );
    bench.write("refused.toml", config);
}

#[test]
fn a_run_that_is_complete_notices_changed_data() {
    let bench = Bench::with_a_run();
    bench.edit("wards.csv", "wards.csv", &[("north-1,north,children,-0.09", "north-1,north,children,-0.08")]);
    let again = ["run", "wards.toml", "--set", "run.rounds=5", "--set", "run.repeats=1"];
    bench.refused(&again, &["the data changed since", "runs/wards", "restore them", "--out"]);
}
