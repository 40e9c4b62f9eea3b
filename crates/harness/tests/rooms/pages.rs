//! The page of each crate: what it is for, what it may use, where to begin.

use crate::workspace::Member;
use std::collections::BTreeSet;
use std::path::Path;

const FOR: &str = "## What it is for";
const USES: &str = "## What it may use";
const BEGIN: &str = "## Where to begin";

/// Everything that is wrong with the page of a crate, a sentence each. `crates` has the names of all crates.
pub(crate) fn wrong(member: &Member, page: Option<&str>, crates: &BTreeSet<&str>) -> Vec<String> {
    let name = &member.name;
    let Some(page) = page else {
        return vec![format!(
            "{name} has no README.md: write one with the headings {FOR:?}, {USES:?}, {BEGIN:?}"
        )];
    };
    let mut problems = Vec::new();
    for heading in [FOR, USES, BEGIN] {
        match section(page, heading) {
            None => problems.push(format!("the page of {name} has no heading {heading:?}: add it")),
            Some(text) if text.trim().is_empty() => {
                problems.push(format!("the page of {name} says nothing below {heading:?}"));
            }
            Some(_) => {}
        }
    }
    if !problems.is_empty() {
        return problems;
    }
    let named: BTreeSet<&str> = code(section(page, USES).unwrap_or_default())
        .into_iter()
        .filter(|word| crates.contains(word) || word.starts_with("fedkin-"))
        .collect();
    let used: BTreeSet<&str> = member.normal.iter().map(String::as_str).collect();
    for missing in used.difference(&named) {
        problems.push(format!("{name} depends on {missing}: its page must say so below {USES:?}"));
    }
    for other in named.difference(&used) {
        problems.push(format!(
            "the page of {name} names {other} below {USES:?}, which is no dependency: drop it"
        ));
    }
    let begin = code(section(page, BEGIN).unwrap_or_default());
    let files: Vec<&&str> = begin.iter().filter(|word| is_file(word)).collect();
    if files.is_empty() {
        problems.push(format!("the page of {name} names no file below {BEGIN:?}: name the first to read"));
    }
    for file in files.into_iter().filter(|file| !member.folder.join(file).exists()) {
        problems.push(format!("the page of {name} names {file}, which is not in its folder"));
    }
    problems
}

/// The text between a heading and the next.
fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let start = page.match_indices(heading).map(|(at, _)| at).find(|&at| {
        let line = page[at..].lines().next().unwrap_or_default();
        line.trim_end() == heading && (at == 0 || page[..at].ends_with('\n'))
    })?;
    let text = &page[start + heading.len()..];
    Some(text.find("\n#").map_or(text, |end| &text[..end]))
}

/// What stands between single backticks.
fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn is_file(word: &str) -> bool {
    !word.contains(char::is_whitespace)
        && (word.ends_with('/') || Path::new(word).extension().is_some_and(|e| e == "rs"))
}
