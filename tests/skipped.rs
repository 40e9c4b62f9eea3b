//! Tests that cannot run here, and where they find public data sets. Included by whoever needs it: there is no crate for
//! two functions. No test returns early otherwise; `crates/cli/tests/skips.rs` looks.

#![allow(clippy::print_stderr, clippy::unwrap_used, dead_code)]

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Says that the calling test, or a part of it, does not run, and why: on standard error, and in the file that
/// `FEDKIN_SKIPPED` names, from which `scripts/test` counts.
pub(crate) fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_string();
    eprintln!("SKIPPED: {test}: {why}");
    if let Some(list) = std::env::var_os("FEDKIN_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(list);
        file.and_then(|mut file| writeln!(file, "{test}: {why}")).unwrap();
    }
}

/// The folder of a public data set: in the one that `FEDKIN_DATA` names, or in `../shared/data` beside the repository.
/// Where it is missing the test is skipped; with `FEDKIN_REQUIRE_DATA=1` it fails instead.
pub(crate) fn real_data(set: &str) -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = std::env::var_os("FEDKIN_DATA").filter(|root| !root.is_empty()).map_or(shared, PathBuf::from);
    let folder = root.join(set);
    if folder.is_dir() {
        return Some(folder);
    }
    let missing = format!("{} (data not found; set FEDKIN_DATA)", folder.display());
    let required = std::env::var_os("FEDKIN_REQUIRE_DATA").is_some_and(|word| word == "1");
    assert!(!required, "FEDKIN_REQUIRE_DATA=1, and {missing}");
    skipped(&missing);
    None
}
