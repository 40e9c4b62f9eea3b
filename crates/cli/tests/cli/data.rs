//! Public data and their partitions, as a user meets them.

use crate::bench::Bench;
use std::net::TcpListener;

/// CIFAR-10 records of 400 grey images, one class after the other.
fn images() -> Vec<u8> {
    (0..400usize).flat_map(|i| std::iter::once((i % 10) as u8).chain(vec![(i % 251) as u8; 3072])).collect()
}

/// A folder with images in it and a config that deals them.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("cifar/train_batch_1.bin", images());
    bench.write("cifar/test_batch.bin", images());
    bench.write(
        "cifar.toml",
        "version = 1\n[run]\nname = \"cifar\"\nrounds = 1\n[data]\nsource = \"cifar10\"\npath = \"cifar\"\n\
         partition = \"dirichlet\"\nalpha = 0.2\nclients = 5\nsamples = 60\nvalidation_fraction = 0.2\nholdout = 30\n\
         [model]\nkind = \"softmax\"\nregularisation = 0.1\n[algorithm]\nname = \"fedavg\"\nlearning_rate = 0.1\n",
    );
    bench
}

#[test]
fn a_partition_is_shown_as_table_picture_csv_and_json() {
    let bench = bench();
    let ran =
        bench.fedkin(&["data", "partition", "cifar.toml", "--out", "labels.svg", "--csv", "labels.csv"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].contains("airplane") && lines[0].ends_with("test"), "{}", ran.out);
    let all: Vec<&str> = lines[6].split_whitespace().collect();
    assert_eq!((all[0], &all[all.len() - 4..]), ("all", &["300", "180", "45", "75"][..]), "{}", ran.out);
    assert!(ran.out.contains("hold-out: 30 records") && ran.out.contains("written labels.svg"));
    // Label skew leaves classes out: that is fine, and said.
    assert!(
        ran.err.contains("warning: ") && ran.err.contains("lack training records of some classes"),
        "{}",
        ran.err
    );
    assert!(bench.read("labels.svg").contains("truck"));
    let counted: usize = bench
        .read("labels.csv")
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse::<usize>().unwrap())
        .sum();
    assert_eq!(counted, 300);
    let json = bench.json(&["data", "partition", "cifar.toml", "--json"]);
    assert_eq!((json["clients"].as_array().unwrap().len(), json["holdout"].as_u64()), (5, Some(30)));
    assert_eq!(json["classes"][9], "truck");
    assert!(json["warnings"][0].as_str().unwrap().contains("of 5 clients"));
    let set = ["--set", "path=cifar", "--set", "partition=iid", "--set", "clients=4", "--out", "labels.png"];
    bench.good(&[&["data", "partition", "--source", "cifar10"], &set[..]].concat());
    assert!(std::fs::read(bench.path("labels.png")).unwrap().starts_with(b"\x89PNG"));
    bench.good(&["run", "cifar.toml"]);
}

#[test]
fn partitions_that_cannot_be_are_refused() {
    let bench = bench();
    let refuse = |set: &[&str], words: &[&str]| {
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        bench.refused(&[&["data", "partition", "cifar.toml"], &set[..]].concat(), words);
        bench.refused(&[&["run", "cifar.toml", "--out", "runs/refused"], &set[..]].concat(), words);
        let _ = std::fs::remove_dir_all(bench.path("runs/refused"));
    };
    refuse(&["data.partition=dirichlett"], &["partition", "did you mean `dirichlet`?"]);
    refuse(
        &["data.by=label", "data.least=59"],
        &["Dirichlet(0.2)", "5 clients", "at least 59 of the 300 records", "1000 draws", "raise `alpha`"],
    );
    refuse(&["data.samples=81"], &["5 clients with 81 records each want 405 records but there are 400"]);
    bench.write("cifar/train_batch_1.bin", &images()[..5000]);
    refuse(&[], &["train_batch_1.bin", "3073", "5000 bytes"]);
    bench.refused(&["data", "partition", "cifar.toml", "--out", "labels.gif"], &["train_batch_1.bin"]);
    bench.write("cifar/train_batch_1.bin", [&[10], &images()[1..]].concat());
    refuse(&[], &["image 1 has the label 10"]);
    bench.refused(&["data", "partition"], &["--source"]);
    bench.refused(&["data", "partition", "--source", "cifar"], &["did you mean `cifar10`?"]);
}

#[test]
fn sets_are_listed_and_what_is_here_is_checked() {
    let bench = Bench::new();
    let said = bench.good(&["data", "list"]);
    for word in ["mnist", "CC BY-SA 3.0", "uci-har", "FEDKIN_DATA is not set"] {
        assert!(said.contains(word), "{said}");
    }
    bench.write("sets/organamnist/organamnist.npz", b"not the real one");
    let list = |arguments: &[&str]| {
        let output = bench.command(arguments).env("FEDKIN_DATA", bench.path("sets")).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let one = list(&["data", "list", "organamnist", "--check"]);
    for word in ["damaged", "7c8c8b0753e2c0d7", "medmnist.com", "fedkin data fetch organamnist"] {
        assert!(one.contains(word), "{one}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&list(&["data", "list", "--check", "--json"])).unwrap();
    let set = json["sets"].as_array().unwrap().iter().find(|set| set["name"] == "organamnist").unwrap();
    assert_eq!(
        (set["state"].as_str(), set["files"][0]["verified"].as_bool()),
        (Some("present"), Some(false))
    );
    bench.refused(&["data", "list", "organmnist"], &["did you mean `organamnist`?"]);
}

#[test]
fn what_cannot_be_fetched_is_refused() {
    let bench = Bench::new();
    bench.refused(&["data", "fetch", "mnist"], &["--to DIR", "FEDKIN_DATA"]);
    bench.refused(&["data", "fetch", "minst", "--to", "sets"], &["did you mean `mnist`?"]);
    bench.refused(&["data", "fetch", "harbox", "--to", "sets"], &["cannot be fetched", "1/Call_train.txt"]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = format!("http://{closed}");
    bench.refused(
        &["data", "fetch", "mnist", "--to", "sets", "--from", &closed],
        &["mnist was not fetched", "train-images-idx3-ubyte.gz", "Without a network", "--from FOLDER"],
    );
    bench.write("here/organamnist.npz", b"not the real one");
    bench.refused(
        &["data", "fetch", "organamnist", "--to", "sets", "--from", "here"],
        &["organamnist.npz has the wrong SHA-256", "expected 7c8c8b0753e2c0d7", "found "],
    );
    bench.write("here/cifar-10-binary.tar.gz", b"not the real one");
    bench.refused(
        &["data", "fetch", "cifar10", "--to", "sets", "--from", "here"],
        &["cifar-10-binary.tar.gz has the wrong SHA-256", "expected c4a38c50a1bc5f3a"],
    );
    bench.write("here/train-images-idx3-ubyte.gz", b"\x1f\x8b\x08\x00 this is no gzip");
    bench.refused(&["data", "fetch", "mnist", "--to", "sets", "--from", "here"], &["damaged or breaks off"]);
}
