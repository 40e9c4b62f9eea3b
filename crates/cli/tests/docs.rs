//! Every command that the README and the guide show is run, in order, in one folder per file.
//!
//! - A `console` block holds commands after `$ `. Each must end with code 0, or with the code that a comment at its
//!   end states: `# exit 2`. A line that ends in `\` goes on in the next. Other lines are output and not compared.
//! - A block with `file=NAME` after its language is written to that file first, as the text around it says.
//! - An `sh` block holds commands too large for a test, or that need data of their own; only their options are
//!   checked.
//!
//! Commands that build Fedkin are passed over; any command not named below fails the test.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Run as they are, beside `fedkin`.
const HARMLESS: &[&str] = &["cat", "head", "ls", "sed", "tail", "wc"];
/// Belong to getting and building Fedkin: passed over, with all that follows on the line.
const BUILD: &[&str] = &["cargo", "cd", "export", "git"];
/// What a line ends with to state its exit code.
const EXIT: &str = "# exit ";

/// What a file asks for, in order.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    /// Run this and expect this code.
    Run { command: String, code: i32, line: usize },
    /// Check the options of this, without running it.
    Parse { command: String, line: usize },
    /// Write this file.
    Write { name: String, text: String },
}

fn actions(page: &str) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let mut words = info.split_whitespace();
        let language = words.next().unwrap_or_default();
        let file = words.find_map(|word| word.strip_prefix("file="));
        let block: Vec<(usize, &str)> =
            lines.by_ref().take_while(|(_, line)| !line.trim_start().starts_with("```")).collect();
        if let Some(name) = file {
            let text = block.iter().flat_map(|(_, line)| [line, "\n"]).collect();
            actions.push(Action::Write { name: name.to_string(), text });
            continue;
        }
        for (command, line) in commands(language, &block) {
            match language {
                "console" => {
                    let code = command.rsplit_once(EXIT).map_or(0, |(_, code)| code.trim().parse().unwrap());
                    actions.push(Action::Run { command, code, line });
                }
                _ => actions.push(Action::Parse { command, line }),
            }
        }
    }
    actions
}

/// The commands of a block with the number of their line, continued lines joined.
fn commands(language: &str, block: &[(usize, &str)]) -> Vec<(String, usize)> {
    let mut commands = Vec::new();
    let mut rest = block.iter();
    while let Some((number, line)) = rest.next() {
        let first = match language {
            "console" => line.strip_prefix("$ "),
            "sh" => Some(line.trim()).filter(|line| !line.is_empty() && !line.starts_with('#')),
            _ => None,
        };
        let Some(first) = first else { continue };
        let mut command = first.to_string();
        while let Some(head) = command.strip_suffix('\\') {
            let next = rest.next().map_or("", |(_, line)| line.trim_start());
            command = format!("{head}{next}");
        }
        commands.push((command, number + 1));
    }
    commands
}

/// The first word of every part of a command line.
fn programs(command: &str) -> Vec<&str> {
    let parts = command.split(['|', ';', '&']).map(str::trim).filter(|part| !part.is_empty());
    // `NAME=value` before a command sets a variable for it.
    parts.filter_map(|part| part.split_whitespace().find(|word| !word.contains('='))).collect()
}

fn is_fedkin(program: &str) -> bool {
    program == "fedkin" || program.ends_with("/release/fedkin")
}

/// What is left to run of a command: `None` where it belongs to building Fedkin.
fn runnable(command: &str) -> Result<Option<String>, String> {
    let programs = programs(command);
    let builds = |program: &&&str| BUILD.contains(*program) || program.starts_with("./scripts/");
    if programs.iter().any(|program| builds(&program)) {
        return Ok(None);
    }
    if let Some(other) = programs.iter().find(|program| !is_fedkin(program) && !HARMLESS.contains(*program)) {
        return Err(format!("`{other}` is neither fedkin nor one of {HARMLESS:?}"));
    }
    // No browser is opened, and the program is found by its name.
    let words = command.split(' ').filter(|word| *word != "--open");
    Ok(Some(words.map(|word| if is_fedkin(word) { "fedkin" } else { word }).collect::<Vec<_>>().join(" ")))
}

fn shell(command: &str, folder: &Path) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_fedkin"));
    let mut path = program.parent().unwrap().as_os_str().to_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

/// What goes wrong when a page is followed.
fn follow(page: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for action in actions(page) {
        let (command, expected, line) = match action {
            Action::Write { name, text } => {
                let file = folder.path().join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
                continue;
            }
            Action::Run { command, code, line } => (command, code, line),
            // The help is asked for last, so everything before it has been understood.
            Action::Parse { command, line } => {
                let command = command.split(" #").next().unwrap_or_default();
                (format!("{command} --help"), 0, line)
            }
        };
        match runnable(&command) {
            Ok(None) => {}
            Ok(Some(runnable)) => {
                let (code, said) = shell(&runnable, folder.path());
                if code != Some(expected) {
                    wrong.push(format!(
                        "line {line}: `{command}` ended with {code:?}, not {expected}\n{said}"
                    ));
                }
            }
            Err(reason) => wrong.push(format!("line {line}: `{command}`: {reason}")),
        }
    }
    wrong
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check(name: &str) {
    let page = fs::read_to_string(root().join(name)).unwrap();
    let wrong = follow(&page);
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

#[test]
fn the_tutorial_works_when_followed() {
    check("docs/guide/tutorial.md");
}

#[test]
fn the_how_tos_work_when_followed() {
    check("docs/guide/howto.md");
}

#[test]
fn the_page_on_data_works_when_followed() {
    check("docs/guide/data.md");
}

#[test]
fn the_page_on_graphs_works_when_followed() {
    check("docs/guide/graphs.md");
}

#[test]
fn the_page_on_kin_works_when_followed() {
    check("docs/guide/kin.md");
}

#[test]
fn the_audit_page_works_when_followed() {
    check("docs/audit.md");
}

#[test]
fn the_readme_works_when_followed() {
    check("README.md");
}

#[test]
fn every_page_of_the_guide_is_followed() {
    let mut pages: Vec<String> = fs::read_dir(root().join("docs/guide"))
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort_unstable();
    assert_eq!(
        pages,
        ["data.md", "graphs.md", "howto.md", "kin.md", "library.md", "tutorial.md"],
        "give a new page its test here"
    );
}

/// The programs themselves are run by the tests of the crate `fedkin`.
#[test]
fn the_page_of_the_library_lists_every_example() {
    let page = fs::read_to_string(root().join("docs/guide/library.md")).unwrap();
    let examples = fs::read_dir(root().join("examples")).unwrap().flatten();
    let names: Vec<String> = examples
        .filter_map(|entry| entry.file_name().into_string().ok()?.strip_suffix(".rs").map(Into::into))
        .collect();
    assert!(names.len() >= 4, "{names:?}");
    for name in names {
        let shown = [format!("(../../examples/{name}.rs)"), format!("--example {name}")];
        assert!(shown.iter().all(|shown| page.contains(shown.as_str())), "{name}");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut wrong = Vec::new();
    for name in [
        "README.md",
        "docs/README.md",
        "docs/audit.md",
        "docs/reproductions.md",
        "docs/guide/tutorial.md",
        "docs/guide/howto.md",
        "docs/guide/data.md",
        "docs/guide/graphs.md",
        "docs/guide/kin.md",
        "docs/guide/library.md",
    ] {
        let path = root().join(name);
        let page = fs::read_to_string(&path).unwrap();
        for target in
            page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
        {
            let file = target.split_once('#').map_or(target, |(file, _)| file);
            let outside = target.contains("://") || file.is_empty();
            if !outside && !path.parent().unwrap().join(file).exists() {
                wrong.push(format!("{name}: {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "links to nothing:\n{}", wrong.join("\n"));
}

#[test]
fn a_wrong_page_is_noticed() {
    let page = "text\n```console\n$ fedkin algorithms\n$ fedkin run none.toml\noutput\n```\n\
                ```sh\nfedkin run x.toml --sett a=b\n```\n```console\n$ rm -r x\n```\n";
    let wrong = follow(page);
    assert_eq!(wrong.len(), 3, "{wrong:#?}");
    assert!(wrong[0].starts_with("line 4: `fedkin run none.toml` ended with Some(2), not 0"), "{}", wrong[0]);
    assert!(wrong[1].contains("--sett"), "{}", wrong[1]);
    assert!(wrong[2].contains("`rm` is neither"), "{}", wrong[2]);
}

#[test]
fn what_a_page_asks_for_is_read_as_written() {
    let page = "```toml file=a/b.toml\nversion = 1\n```\n```console\n$ cargo build\n$ fedkin run \\\n    a/b.toml   # exit 2\n```\n\
                ```sh\n# a comment\nfedkin reproduce million\n```\n```text\n$ not a command\n```\n";
    let run = |command: &str, code, line| Action::Run { command: command.into(), code, line };
    assert_eq!(
        actions(page),
        [
            Action::Write { name: "a/b.toml".into(), text: "version = 1\n".into() },
            run("cargo build", 0, 5),
            run("fedkin run a/b.toml   # exit 2", 2, 6),
            Action::Parse { command: "fedkin reproduce million".into(), line: 11 },
        ]
    );
    assert_eq!(runnable("./scripts/test"), Ok(None));
    assert_eq!(runnable("./target/release/fedkin report r --open"), Ok(Some("fedkin report r".to_string())));
}
