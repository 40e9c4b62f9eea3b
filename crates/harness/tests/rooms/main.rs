//! Holds the architecture: who may use whom among the crates, which modules may import each other, who may name what proves
//! privacy, how large its crate may grow, and that each crate has a page.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod pages;
mod pairs;
mod source;
mod workspace;

use pairs::{Crate, Pair};
use source::{Token, files, tokens, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use workspace::{HARNESS, Member, ROOMS, members, root};

/// As many pairs of modules that import each other a crate may have, and a folder in it.
const MOST_PAIRS: usize = 2;

/// As many lines the crate that keeps privacy may have without its tests: somebody must be able to read all of it.
const MOST_PRIVACY_LINES: usize = 6_000;

/// Crates that touch no file, clock or network, which a stricter clippy.toml holds them to.
const WITHOUT_IO: [&str; 6] = ["numeric", "settings", "graph", "privacy", "learner", "method"];

/// A pair that may stay, and why: crate, folder, one module, the other, the reason.
type Allowed = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// Pairs of modules at the root of a crate or in one of its folders.
const ALLOWED: &[Allowed] = &[
    (
        "config",
        "",
        "check",
        "variants",
        "a variant is a whole config, so reading the variants checks each, and checking a config reads its variants",
    ),
    (
        "config",
        "",
        "overrides",
        "resolved",
        "the resolved config writes the overrides down, and an override is shown as it is written there",
    ),
    ("data", "partition", "dirichlet", "laws", "a law is its settings, which its arithmetic takes"),
    ("data", "partition", "laws", "skew", "a law is its settings, which its arithmetic takes"),
    (
        "deploy",
        "",
        "fingerprint",
        "roster",
        "the fingerprint of a run covers its roster, and a roster names the config it was made for by its digest",
    ),
    (
        "deploy",
        "",
        "nodes",
        "roster",
        "a roster gives the names of its nodes, which are made from the roster",
    ),
    (
        "experiment",
        "",
        "claims",
        "compare",
        "a claim is judged by the results of a comparison, and a comparison reports the claims it was asked to judge",
    ),
    (
        "experiment",
        "audit",
        "neighbours",
        "space",
        "a change of records is measured in a space, and a space says which changes to try",
    ),
    (
        "experiment",
        "figures",
        "by_client",
        "comparison",
        "the figures of a comparison have one by client, drawn in the same way",
    ),
    (
        "experiment",
        "learning",
        "learn",
        "output",
        "what is learnt carries the mark that its files are known by, and the output writes what is learnt",
    ),
    (
        "experiment",
        "learning",
        "learn",
        "select",
        "learning selects its parameters, and the selection finds beta as learning does",
    ),
    (
        "graph",
        "denoise",
        "filters",
        "polynomial",
        "a filter is a response, and a polynomial approximates one",
    ),
    (
        "graph",
        "denoise",
        "operator",
        "variation",
        "an operator has a form for each denoiser, total variation among them, which is prepared as an operator",
    ),
    (
        "harness",
        "faults",
        "checks",
        "scenario",
        "a check compares a scenario with its reference, which the scenario makes",
    ),
    (
        "learner",
        "",
        "model",
        "signals",
        "the keys of graph learning stand with those of all models and take defaults from the solver, which reads the keys",
    ),
    (
        "learner",
        "model",
        "net",
        "settings",
        "a net is made from its settings, which offer the nets that have names",
    ),
    (
        "method",
        "",
        "methods",
        "registry",
        "a method implements the trait of the registry, and the registry hands out the table of native methods",
    ),
    (
        "method",
        "algorithm",
        "closed",
        "halt",
        "a verdict on an upload may be a rejection, and whether to halt is seen from the verdicts of a closed step",
    ),
    (
        "privacy",
        "",
        "accountant",
        "ledger",
        "the accountant converts what a ledger holds, and a line of the ledger names the sampling it is converted by",
    ),
    (
        "privacy",
        "",
        "chain",
        "statement",
        "a statement is written to a chain as lines, and follows the lines of a chain",
    ),
    (
        "runtime",
        "nats",
        "inbox",
        "post",
        "the inbox hands on what the post delivers, and the post opens the inbox",
    ),
];

/// Folders with more pairs than there should be: crate, folder, how many at most. They are printed, and may only become fewer.
const CROWDED: &[(&str, &str, usize)] = &[("method", "round", 4)];

fn nothing(problems: &[String]) {
    assert!(problems.is_empty(), "\n- {}", problems.join("\n- "));
}

fn made_up(name: &str, normal: &[&str]) -> Member {
    let normal = normal.iter().map(ToString::to_string).collect();
    Member { name: name.into(), folder: PathBuf::new(), normal, build: Vec::new() }
}

#[test]
fn crates_use_only_crates_below_them() {
    nothing(&workspace::wrong(ROOMS, &members()));
}

#[test]
fn an_upward_or_cyclic_dependency_is_found() {
    let rooms = ["low", "high"];
    let upward = [made_up("low", &["high"]), made_up("high", &[])];
    let found = workspace::wrong(&rooms, &upward);
    assert!(found.len() == 1 && found[0].contains("low depends on high"), "{found:?}");

    let cycle = [made_up("low", &["high"]), made_up("high", &["low"])];
    assert_eq!(workspace::wrong(&rooms, &cycle), found);

    let itself = workspace::wrong(&rooms, &[made_up("low", &["low"])]);
    assert_eq!(itself, ["low depends on itself"]);

    let script = Member { build: vec!["high".into()], ..made_up("low", &[]) };
    assert_eq!(workspace::wrong(&rooms, &[script]), found);

    let tests = workspace::wrong(ROOMS, &[made_up("fedkin-graph", &[HARNESS])]);
    assert!(tests.len() == 1 && tests[0].contains("nothing but tests"), "{tests:?}");

    let unknown = workspace::wrong(&rooms, &[made_up("attic", &[])]);
    assert!(unknown.len() == 1 && unknown[0].contains("add it to ROOMS"), "{unknown:?}");
    assert!(workspace::wrong(&rooms, &[made_up("low", &[]), made_up("high", &["low"])]).is_empty());
}

/// What is wrong with the pairs of one crate; each allowed pair that is found is ticked off.
fn judged(short: &str, found: &[Pair], allowed: &[Allowed], seen: &mut BTreeSet<usize>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut by_folder: BTreeMap<&str, usize> = BTreeMap::new();
    let crowded = |folder: &str| {
        let known = CROWDED.iter().find(|(name, known, _)| *name == short && *known == folder);
        known.map(|(_, _, most)| *most)
    };
    for pair in found {
        *by_folder.entry(&pair.folder).or_default() += 1;
        let known = allowed.iter().position(|(name, folder, one, other, _)| {
            (*name, *folder, *one, *other) == (short, &*pair.folder, &*pair.one, &*pair.other)
        });
        match known {
            Some(at) => _ = seen.insert(at),
            None if crowded(&pair.folder).is_some() => {}
            None => problems.push(format!(
                "{short}: {} and {} in src/{} import each other: let one of them do without the other",
                pair.one, pair.other, pair.folder
            )),
        }
    }
    for (folder, count) in by_folder {
        let most = crowded(folder).unwrap_or(MOST_PAIRS);
        if count > most {
            problems.push(format!(
                "{short}: {count} pairs of modules in src/{folder} import each other, where {most} are the most"
            ));
        }
    }
    problems
}

#[test]
fn few_modules_import_each_other() {
    let (mut problems, mut seen) = (Vec::new(), BTreeSet::new());
    for member in members() {
        let short = member.folder.file_name().unwrap().to_string_lossy().to_string();
        let modules = Crate::read(&member.folder.join("src"));
        let (top, below) = (modules.pairs(), modules.pairs_below());
        eprintln!("{short}: {} modules, {} pairs, {} in folders", modules.width(), top.len(), below.len());
        for pair in top.iter().chain(&below) {
            eprintln!("    {}: {} and {}", pair.folder, pair.one, pair.other);
        }
        problems.extend(judged(&short, &top, ALLOWED, &mut seen));
        problems.extend(judged(&short, &below, ALLOWED, &mut seen));
    }
    for (_, (name, folder, one, other, _)) in ALLOWED.iter().enumerate().filter(|(at, _)| !seen.contains(at))
    {
        problems.push(format!(
            "{name}: {one} and {other} in src/{folder} no longer import each other: drop the pair from ALLOWED"
        ));
    }
    nothing(&problems);
}

fn texts(files: &[(&str, &str)]) -> Crate {
    Crate::from_texts(&files.iter().map(|(path, text)| (PathBuf::from(path), text.to_string())).collect())
}

fn pair(folder: &str, one: &str, other: &str) -> Pair {
    Pair { folder: folder.into(), one: one.into(), other: other.into() }
}

#[test]
fn every_kind_of_import_counts() {
    let root = "mod a;\nmod b;\nmod c;\nmod d;\nmod e;\npub use b::{Thing as Renamed, Other};\npub use c::*;";
    let crate_of = |a: &str, rest: &[(&str, &str)]| {
        let files: Vec<_> = [("lib.rs", root), ("a.rs", a)].into_iter().chain(rest.iter().copied()).collect();
        texts(&files).pairs()
    };
    // Groups, with groups in them.
    let b = ("b/mod.rs", "use crate::{d, e::{self, X}, a::Y};\npub struct Thing;\npub struct Other;");
    assert_eq!(crate_of("use crate::{e::Z, b::{self, Thing}};", &[b]), [pair("", "a", "b")]);
    // Names of the root, by their new names and by a glob, and paths in the middle of code.
    assert_eq!(crate_of("fn f() { let x: crate::Renamed = g(); }", &[b]), [pair("", "a", "b")]);
    assert_eq!(crate_of("use super::Other;", &[b]), [pair("", "a", "b")]);
    assert_eq!(crate_of("fn f() { crate::Thing; }", &[b]), []);
    let c = ("c.rs", "pub(crate) fn help() {}\nfn g() { crate::a::f(); }");
    assert_eq!(crate_of("fn f() { crate::help(); }", &[c]), [pair("", "a", "c")]);
    // Deep in a folder, `super` may be the root or not.
    let deep = ("d/deep.rs", "use super::super::a;");
    assert_eq!(crate_of("fn f() { super::d::g() }", &[("d.rs", "mod deep;"), deep]), [pair("", "a", "d")]);
    assert_eq!(crate_of("use crate::d;", &[("d.rs", "mod deep;"), ("d/deep.rs", "use super::a;")]), []);
    assert_eq!(
        crate_of("use crate::d;", &[("d.rs", "mod inner { use super::super::a; }")]),
        [pair("", "a", "d")]
    );
    // A glob of the root counts for the names that are used.
    assert_eq!(crate_of("use crate::*;\nfn f() -> Other { g() }", &[b]), [pair("", "a", "b")]);
    // Comments, texts, tests and visibility import nothing.
    for quiet in [
        "// use crate::b;\n/* crate::b::x() /* nested */ */",
        "const X: &str = \"use crate::b;\";\nconst Y: &str = r#\"\"crate::b::x()\"#;",
        "#[cfg(test)]\nmod tests { use crate::b; }",
        "pub(in crate::b) fn f() {}",
        "fn f<'b>(x: &'b str) -> char { '\"' }",
    ] {
        assert_eq!(crate_of(quiet, &[b]), [], "{quiet}");
    }
    let tested = ("a/tests.rs", "use crate::b;");
    assert_eq!(crate_of("#[cfg(test)]\nmod tests;", &[b, tested]), []);
    assert_eq!(crate_of("mod tests;", &[b, tested]), [pair("", "a", "b")]);
    let elsewhere = ("a_tests.rs", "use crate::b;\nuse crate::a;");
    assert_eq!(
        crate_of("#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\nuse crate::a_tests;", &[b, elsewhere]),
        []
    );
    // Files of one folder.
    let folder = [("a/mod.rs", "mod x;\nmod y;\npub use y::Wide;"), ("a/x.rs", "use super::Wide;")];
    let below = |y| {
        texts(&[("lib.rs", "mod a;\npub use a::x::Far;"), folder[0], folder[1], ("a/y.rs", y)]).pairs_below()
    };
    assert_eq!(below("use super::x::Near;"), [pair("a", "x", "y")]);
    assert_eq!(below("use crate::a::x::Near;"), [pair("a", "x", "y")]);
    assert_eq!(below("use crate::Far;"), [pair("a", "x", "y")]);
    assert_eq!(below("use crate::Near;"), []);
}

#[test]
fn a_pair_needs_a_reason_and_a_reason_needs_a_pair() {
    let allowed: &[Allowed] = &[("graph", "", "a", "b", "a reason"), ("graph", "", "c", "d", "a reason")];
    let mut seen = BTreeSet::new();
    assert!(judged("graph", &[pair("", "a", "b")], allowed, &mut seen).is_empty());
    assert!(!seen.contains(&1), "a pair that is gone is not ticked off");
    assert_eq!(judged("graph", &[pair("", "a", "e")], allowed, &mut seen).len(), 1);
    assert_eq!(judged("data", &[pair("", "a", "b")], allowed, &mut seen).len(), 1);
    let many: Vec<Pair> = ["b", "c", "d"].iter().map(|other| pair("", "a", other)).collect();
    assert!(judged("graph", &many, allowed, &mut seen).iter().any(|problem| problem.contains("3 pairs")));
}

/// Files that name the modules from which a release is proved private.
fn names_proofs(text: &str) -> bool {
    tokens(text).iter().any(|placed| placed.token == Token::Word("proofs".into()))
}

#[test]
fn proofs_are_named_where_they_are_kept() {
    assert!(names_proofs("use fedkin_privacy::{Noise, proofs::Proof};"));
    assert!(!names_proofs("// The proofs stand elsewhere.\nconst X: &str = \"proofs\";"));

    let root = root();
    let allowed = ["privacy/src", "learner/src", "method/src", "method/tests/barrier", "harness/tests/rooms"];
    let allowed: Vec<PathBuf> = allowed.iter().map(|path| root.join("crates").join(path)).collect();
    let mut places: Vec<PathBuf> = vec![root.join("examples")];
    for member in members() {
        places.extend(["src", "tests", "examples", "benches"].map(|part| member.folder.join(part)));
    }
    let mut problems = Vec::new();
    for path in places.iter().flat_map(|place| files(place, ".rs")) {
        let may =
            allowed.iter().any(|folder| path.starts_with(folder)) || path.with_extension("") == allowed[3];
        if !may && names_proofs(&std::fs::read_to_string(&path).unwrap()) {
            problems.push(format!(
                "{} names `proofs`: only the crates privacy, learner and method may, so that nobody else can call data \
                 private",
                path.strip_prefix(&root).unwrap().display()
            ));
        }
    }
    nothing(&problems);
}

#[test]
fn the_privacy_crate_stays_small() {
    let example = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n// The end.\n";
    assert_eq!(without_tests(example).lines, 3);

    let lines = Crate::read(&root().join("crates/privacy/src")).lines;
    eprintln!("privacy: {lines} lines without tests");
    assert!(
        lines <= MOST_PRIVACY_LINES,
        "crates/privacy has {lines} lines, where {MOST_PRIVACY_LINES} are the most that can be read as a whole: move what \
         guards no release elsewhere"
    );
}

#[test]
fn every_crate_has_a_page() {
    let members = members();
    let names: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let mut problems = Vec::new();
    for member in &members {
        let page = std::fs::read_to_string(member.folder.join("README.md")).ok();
        problems.extend(pages::wrong(member, page.as_deref(), &names));
    }
    nothing(&problems);
}

#[test]
fn a_page_that_is_wrong_is_found() {
    let names = BTreeSet::from(["fedkin-graph", "fedkin-data"]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf();
    let member = Member { folder, ..made_up("fedkin-data", &["fedkin-graph"]) };
    let page = |uses: &str, begin: &str| {
        format!(
            "# Data\n\n## What it is for\n\nData.\n\n## What it may use\n\n{uses}\n\n## Where to begin\n\n{begin}\n"
        )
    };
    let wrong = |page: &str| pages::wrong(&member, Some(page), &names);
    assert_eq!(wrong(&page("The crate `fedkin-graph`.", "Read `src/lib.rs`.")), [""; 0]);
    assert!(wrong(&page("Nothing.", "Read `src/lib.rs`."))[0].contains("depends on fedkin-graph"));
    let other = page("`fedkin-graph` and `fedkin-clouds`.", "Read `src/lib.rs`.");
    assert!(wrong(&other)[0].contains("names fedkin-clouds"));
    assert!(wrong(&page("`fedkin-graph`", "Read `src/nowhere.rs`."))[0].contains("src/nowhere.rs"));
    assert!(wrong(&page("`fedkin-graph`", "Anywhere."))[0].contains("names no file"));
    assert_eq!(wrong("## What it is for\n\nData.\n").len(), 2);
    assert!(pages::wrong(&member, None, &names)[0].contains("no README.md"));
}

#[test]
fn crates_without_io_share_the_strict_lints() {
    let root = root();
    let strict = root.join("crates/method/clippy.toml").canonicalize().unwrap();
    let mut problems = Vec::new();
    for name in WITHOUT_IO {
        let path = root.join("crates").join(name).join("clippy.toml");
        let linked = name == "method" || path.is_symlink();
        if !linked || path.canonicalize().ok().as_ref() != Some(&strict) {
            problems.push(format!("crates/{name}/clippy.toml must be a link to ../method/clippy.toml"));
        }
    }
    nothing(&problems);
}
