//! No test returns early and looks green without saying so: whoever leaves early has asked a function that tells of it
//! through `skipped`, in `tests/skipped.rs`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A function of a test: where it begins, its name, its signature and its lines.
struct Function<'a> {
    line: usize,
    name: &'a str,
    head: String,
    test: bool,
    body: Vec<&'a str>,
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The functions of a file that is formatted: each ends with a bracket as far in as it begins.
fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let words = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let words = words.trim_start_matches("async ").trim_start_matches("unsafe ");
        let Some(rest) = words.strip_prefix("fn ") else { continue };
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let rest = &lines[at..];
        let end = rest.iter().position(|line| indent(line) == indent(lines[at]) && line.trim() == "}");
        let body = rest[..end.unwrap_or(0).max(1)].to_vec();
        let opens = body.iter().position(|line| line.trim_end().ends_with('{')).unwrap_or(0);
        let head = body.iter().take(opens + 1).copied().collect::<Vec<_>>().join(" ");
        let above = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with(['#', '/']));
        let test = above.into_iter().any(|line| line.trim() == "#[test]");
        found.push(Function { line: at + 1, name, head, test, body });
    }
    found
}

fn calls(text: &str, names: &BTreeSet<String>) -> bool {
    let words = |c: char| !c.is_alphanumeric() && c != '_';
    text.match_indices('(').any(|(at, _)| {
        let name = text[..at].rsplit(words).next().unwrap_or_default();
        names.contains(name)
    })
}

/// What stands before an early return: the lines of its `if` or `let`, or of what else it is part of.
fn guard(body: &[&str], at: usize) -> String {
    let begins = |line: &str| {
        ["if ", "let ", "for ", "match ", "} else if "].iter().any(|word| line.starts_with(word))
    };
    let own = indent(body[at]);
    let inner = body[at].trim_start().starts_with("return");
    let first = (0..=at).rev().find(|&i| {
        let line = body[i].trim_start();
        begins(line) && if inner { indent(body[i]) < own } else { indent(body[i]) <= own }
    });
    body[first.unwrap_or(0)..=at].join(" ")
}

/// Early returns of these files that nobody is told of, as `file:line`. All functions of test files count that give
/// nothing back, and of others those that are tests.
fn silent(files: &[(String, String)]) -> Vec<String> {
    let all: Vec<(&str, Function<'_>)> = files
        .iter()
        .flat_map(|(name, text)| functions(text).into_iter().map(move |f| (&**name, f)))
        .collect();
    let mut tell: BTreeSet<String> = ["skipped", "real_data"].map(String::from).into();
    loop {
        let known = tell.len();
        for (_, function) in &all {
            if calls(&function.body[1..].join("\n"), &tell) {
                tell.insert(function.name.into());
            }
        }
        if tell.len() == known {
            break;
        }
    }
    let mut found = Vec::new();
    for (file, function) in &all {
        let counts = function.test || file.contains("/tests/") && !function.head.contains("->");
        // Functions inside of it speak for themselves.
        let inner: Vec<Range<usize>> = functions(&function.body[1..].join("\n"))
            .iter()
            .map(|inner| inner.line..inner.line + inner.body.len())
            .collect();
        let own = |at: &usize| counts && !inner.iter().any(|range| range.contains(at));
        for (at, line) in function.body.iter().enumerate().filter(|(at, _)| own(at)) {
            let code = line.split("//").next().unwrap_or_default();
            let early =
                code.trim() == "return;" || code.contains("{ return }") || code.contains("{ return; }");
            if early && !calls(&guard(&function.body, at), &tell) {
                let told = at > 0 && calls(function.body[at - 1], &tell);
                if !told {
                    found.push(format!("{file}:{}", function.line + at));
                }
            }
        }
    }
    found
}

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn no_test_returns_early_without_a_word() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut tests, mut found) = (0, Vec::new());
    for member in std::fs::read_dir(&crates).unwrap().flatten() {
        let mut paths = Vec::new();
        sources(&member.path().join("src"), &mut paths);
        sources(&member.path().join("tests"), &mut paths);
        let named = |path: PathBuf| {
            let name = path.strip_prefix(&crates).unwrap().display().to_string();
            (name, std::fs::read_to_string(&path).unwrap())
        };
        let files: Vec<(String, String)> = paths.into_iter().map(named).collect();
        tests += files.iter().map(|(_, text)| text.matches("#[test]").count()).sum::<usize>();
        found.extend(silent(&files));
        for (name, text) in
            files.iter().filter(|(name, _)| name.contains("/tests/") && !name.ends_with("skips.rs"))
        {
            let own = text.contains("eprintln!(\"skipped") || text.contains("var_os(\"FEDKIN_DATA\")");
            assert!(!own, "{name} skips in its own way: use tests/skipped.rs");
        }
    }
    assert!(tests > 500, "{tests} tests were looked at");
    assert!(found.is_empty(), "these return early, and nobody is told why (tests/skipped.rs): {found:#?}");
}

#[test]
fn a_silent_return_is_found_and_one_that_is_told_of_is_not() {
    let file = |text: &str| [("x/tests/a.rs".to_string(), text.to_string())];
    let told = "fn ready() -> bool {\n    skipped(\"no broker\");\n    false\n}\n\n#[test]\nfn a() {\n    if !ready() {\n        \
                return;\n    }\n    let Some(folder) = real_data(\"mnist\") else { return };\n}\n";
    assert_eq!(silent(&file(told)), Vec::<String>::new());
    let quiet = "#[test]\nfn a() {\n    let Ok(file) = File::open(\"x\") else { return };\n    if file.is_empty() {\n        \
                 return;\n    }\n}\n";
    assert_eq!(silent(&file(quiet)), ["x/tests/a.rs:3", "x/tests/a.rs:5"]);
    // Beside the tests only they count.
    let elsewhere = [("x/src/a.rs".to_string(), quiet.replace("#[test]\n", ""))];
    assert_eq!(silent(&elsewhere), Vec::<String>::new());
}
