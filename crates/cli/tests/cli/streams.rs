//! Standard output may close, fill up or be a file; none of that is a panic.

use crate::bench::{Bench, Ran};
use std::fs::OpenOptions;
use std::process::Stdio;

const LOUD: [&[&str]; 5] = [
    &["config", "reference"],
    &["algorithms"],
    &["algorithms", "--json"],
    &["completions", "bash"],
    &["reproduce", "--list"],
];

#[test]
fn a_reader_that_leaves_is_no_error() {
    let bench = Bench::new();
    for arguments in LOUD {
        let mut child =
            bench.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error_with_a_reason() {
    let bench = Bench::new();
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
        crate::skipped::skipped("this system has no /dev/full");
        return;
    };
    for arguments in LOUD {
        let mut command = bench.command(arguments);
        let ran: Ran =
            command.stdout(full.try_clone().unwrap()).stderr(Stdio::piped()).output().unwrap().into();
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.err.starts_with("error: cannot write to standard output"), "{}", ran.err);
    }
}

#[test]
fn colours_stay_away_from_files_and_pipes() {
    let bench = Bench::with_a_run();
    for arguments in [&["algorithms", "pgfl"][..], &["report", "runs/wards"], &["--help"]] {
        assert!(!bench.good(arguments).contains('\u{1b}'), "{arguments:?}");
    }
    let ran = bench.fedkin(&["run", "absent.toml"]);
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
}
