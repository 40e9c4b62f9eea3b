//! What generic code may not know: the names of methods, and settings by their keys. All sources are read as text, without
//! comments and tests.
#![allow(clippy::unwrap_used)]

use fedkin_config::{Evaluate, Kin, Network, Participation, Run, Tune};
use fedkin_privacy::PrivacySettings;
use fedkin_run::Registry;
use fedkin_settings::{Param, Settings};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A text of a source file, and what stands before it.
#[derive(Debug, Clone, PartialEq)]
struct Literal {
    line: usize,
    text: String,
    /// The end of the code before it, without blanks.
    before: String,
}

/// Code without comments: characters and texts.
enum Token {
    Code(char),
    Text(String),
}

/// Cuts a source into code and texts; comments are left out.
fn tokens(source: &str) -> Vec<(usize, Token)> {
    let chars: Vec<char> = source.chars().collect();
    let (mut found, mut i, mut line) = (Vec::new(), 0, 1);
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    while i < chars.len() {
        let (c, start) = (chars[i], line);
        let word_before = i > 0 && (at(i - 1).is_alphanumeric() || at(i - 1) == '_');
        let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            let mut depth = 0;
            loop {
                match (at(i), at(i + 1)) {
                    ('/', '*') => (depth, i) = (depth + 1, i + 1),
                    ('*', '/') => (depth, i) = (depth - 1, i + 1),
                    ('\n', _) => line += 1,
                    _ => {}
                }
                i += 1;
                if depth == 0 || i >= chars.len() {
                    break;
                }
            }
        } else if c == 'r' && !word_before && at(i + 1 + hashes) == '"' {
            let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let rest: String = chars[i + 2 + hashes..].iter().collect();
            let text = rest.split(&end).next().unwrap_or_default().to_string();
            line += text.matches('\n').count();
            i += 2 + hashes + text.chars().count() + end.len();
            found.push((start, Token::Text(text)));
        } else if c == '"' {
            let mut text = String::new();
            i += 1;
            while i < chars.len() && chars[i] != '"' {
                match (chars[i], at(i + 1)) {
                    // A line that goes on without its blanks.
                    ('\\', '\n') => {
                        i += 1;
                        while at(i).is_whitespace() {
                            line += usize::from(at(i) == '\n');
                            i += 1;
                        }
                        continue;
                    }
                    ('\\', other) => {
                        text.push(if other == 'n' { '\n' } else { other });
                        i += 1;
                    }
                    (other, _) => text.push(other),
                }
                line += usize::from(at(i) == '\n');
                i += 1;
            }
            i += 1;
            found.push((start, Token::Text(text)));
        } else if c == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'') {
            // A character; otherwise it is a lifetime.
            i += if at(i + 1) == '\\' { 3 } else { 2 };
            while i < chars.len() && chars[i] != '\'' {
                i += 1;
            }
            i += 1;
        } else {
            line += usize::from(c == '\n');
            if !c.is_whitespace() {
                found.push((start, Token::Code(c)));
            }
            i += 1;
        }
    }
    found
}

const TEST: &str = "#[cfg(test)]";

/// The texts of a source outside its tests, and the modules in files of their own that are tests.
fn literals(source: &str) -> (Vec<Literal>, Vec<String>) {
    let tokens = tokens(source);
    let (mut found, mut modules, mut code, mut i) = (Vec::new(), Vec::new(), String::new(), 0);
    while i < tokens.len() {
        match &tokens[i] {
            (line, Token::Text(text)) => {
                found.push(Literal { line: *line, text: text.clone(), before: code.clone() });
                code.push('"');
            }
            (_, Token::Code(c)) => code.push(*c),
        }
        i += 1;
        if !code.ends_with(TEST) {
            continue;
        }
        // The item that follows: up to its semicolon, or the end of its braces.
        let (mut item, mut depth) = (String::new(), 0);
        while i < tokens.len() {
            if let (_, Token::Code(c)) = &tokens[i] {
                item.push(*c);
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                if depth == 0 && (*c == ';' || *c == '}') {
                    break;
                }
            }
            i += 1;
        }
        i += 1;
        let name = item.strip_prefix("pub(crate)").unwrap_or(&item).strip_prefix("mod");
        modules.extend(name.and_then(|name| name.strip_suffix(';')).map(str::to_string));
    }
    (found, modules)
}

/// All texts of the crates outside their tests, by path below `crates/`.
fn of_all_crates() -> Vec<(String, Vec<Literal>)> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                into.push(path);
            }
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in std::fs::read_dir(crates).unwrap() {
        let source = folder.unwrap().path().join("src");
        if source.is_dir() {
            walk(&source, &mut files);
        }
    }
    files.sort();
    let (mut found, mut tests) = (Vec::new(), BTreeSet::new());
    for file in &files {
        let (literals, modules) = literals(&std::fs::read_to_string(file).unwrap());
        let stem = file.file_stem().unwrap().to_string_lossy().to_string();
        let folder = file.parent().unwrap();
        let below = if ["mod", "lib", "main"].contains(&stem.as_str()) {
            folder.to_path_buf()
        } else {
            folder.join(stem)
        };
        tests.extend(modules.into_iter().map(|module| below.join(module)));
        found.push((file.clone(), literals));
    }
    let is_test =
        |file: &Path| tests.iter().any(|test| file.with_extension("") == *test || file.starts_with(test));
    let named = |(file, literals): (PathBuf, Vec<Literal>)| {
        let path = file.strip_prefix(crates).unwrap().to_string_lossy().replace('\\', "/");
        (path, literals)
    };
    found.into_iter().filter(|(file, _)| !is_test(file)).map(named).collect()
}

/// Where rows are declared.
const REGISTRY: &str = "method/src/methods/mod.rs";

/// The files of a method that are not called as it is.
const FILES: [(&str, &str); 2] =
    [("persfl-agnostic", "method/src/methods/agnostic/"), ("fedgl-average", "method/src/methods/fedgl/")];

/// Words that are also something else: the file, the word, and what it is there.
const ALSO: [(&str, &str, &str); 3] = [
    ("method/src/methods/fedpnp/settings.rs", "fedgl", "a word of its own key `graph`"),
    ("method/src/methods/fedpnp/settings.rs", "local", "a word of its own key `running_statistics`"),
    ("experiment/src/library.rs", "persfl-agnostic", "an experiment of that name"),
];

/// Names that are words of plain English: they are looked for as whole texts only.
const ENGLISH: [&str; 4] = ["local", "pooled", "centralized", "single-step"];

/// Whether a file is the method's own.
fn is_own(path: &str, name: &str) -> bool {
    let stem = name.replace('-', "_");
    ["method/src/methods/", "experiment/src/theory/"]
        .iter()
        .any(|folder| path == format!("{folder}{stem}.rs") || path.starts_with(&format!("{folder}{stem}/")))
        || FILES.iter().any(|(of, folder)| *of == name && path.starts_with(folder))
}

/// The methods that a text names: as a whole, or as a word of a sentence.
fn named<'a>(text: &str, names: &[&'a str]) -> Vec<&'a str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words: Vec<&str> = text.split(|c| !word(c)).collect();
    let found = |name: &&&str| text == **name || (!ENGLISH.contains(name) && words.contains(name));
    names.iter().filter(found).copied().collect()
}

#[test]
fn no_method_is_named_outside_its_own_files_and_the_registry() {
    let registry = Registry::native();
    let names: Vec<&str> = registry.methods().iter().map(|row| row.name).collect();
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    let files = of_all_crates();
    assert!(files.len() > 250, "{} files were read", files.len());
    for (path, literals) in files.iter().filter(|(path, _)| path != REGISTRY) {
        for literal in literals {
            for name in named(&literal.text, &names) {
                let also = ALSO.iter().position(|(file, word, _)| file == path && *word == name);
                used.extend(also);
                used.extend(
                    FILES
                        .iter()
                        .position(|(of, folder)| *of == name && path.starts_with(folder))
                        .map(|i| i + ALSO.len()),
                );
                if also.is_none() && !is_own(path, name) {
                    wrong.push(format!("{path}:{}: {name:?} in {:?}", literal.line, literal.text));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "what is particular to a method belongs to its file or row:\n{}",
        wrong.join("\n")
    );
    assert_eq!(used.len(), ALSO.len() + FILES.len(), "an exception that nothing needs: {used:?}");
}

/// Where settings have keys: the tables, and what reads configs with them.
const CONFIG_LAYER: [&str; 3] = ["settings/src/params.rs", "settings/src/settings.rs", "config/src/"];

/// Keys that are those of other files: the file, the key, and whose it is.
const OTHERS: [(&str, &str, &str); 2] = [
    ("run/src/topologies/json.rs", "nodes", "a graph as JSON"),
    ("cli/src/privacy/mod.rs", "epsilon", "the head of a line of output"),
];

/// Whether a text is the key of something that is looked up.
fn is_looked_up(literal: &Literal) -> bool {
    let calls = [".get(", ".number(", ".integer(", ".flag(", ".text(", ".list(", ".table(", ".contains_key("];
    calls.iter().any(|call| literal.before.ends_with(call))
}

#[test]
fn no_setting_is_read_by_its_key_outside_the_config_layer() {
    let registry = Registry::native();
    let mut tables: Vec<Vec<Param>> = Vec::new();
    let sections =
        [Run::PARAMS, Participation::PARAMS, Kin::PARAMS, Evaluate::PARAMS, Network::PARAMS, Tune::PARAMS];
    tables.extend(sections.into_iter().chain([PrivacySettings::PARAMS]).map(<[Param]>::to_vec));
    tables.extend(registry.methods().iter().map(|row| row.params.to_vec()));
    tables.extend(registry.core().learners.iter().map(|row| row.params.to_vec()));
    tables.extend(registry.data().sources.iter().map(|row| registry.data().params(row)));
    tables.extend(registry.data().partitioners.iter().map(|row| row.params.to_vec()));
    let keys: BTreeSet<&str> = tables.iter().flatten().map(|param| param.name).collect();
    assert!(keys.len() > 100, "{} keys are known", keys.len());
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for (path, literals) in of_all_crates() {
        if CONFIG_LAYER.iter().any(|layer| path.starts_with(layer)) {
            continue;
        }
        for literal in literals.iter().filter(|one| keys.contains(one.text.as_str()) && is_looked_up(one)) {
            match OTHERS.iter().position(|(file, key, _)| *file == path && *key == literal.text) {
                Some(other) => _ = used.insert(other),
                None => wrong.push(format!("{path}:{}: {:?}", literal.line, literal.text)),
            }
        }
    }
    assert!(wrong.is_empty(), "settings are read from their structs:\n{}", wrong.join("\n"));
    assert_eq!(used.len(), OTHERS.len(), "an exception that nothing needs: {used:?}");
}

#[test]
fn the_search_finds_what_it_is_for() {
    let source = r##"
        //! "fedavg" in a comment
        /* "fedavg" /* and inside */ "fedavg" */
        fn f(values: &Values) {
            if row.name == "fedavg" { g('"', '\'', "a \"fedavg\" b"); }
            let x: &'static str = r#"name = "fedavg" "#;
            values.get("penalty");
            let y = "use \
                     fedavg";
        }
        #[cfg(test)]
        mod apart;
        #[cfg(test)]
        mod tests {
            fn t() { f("fedavg"); values.get("penalty"); }
        }
        const AFTER: &str = "not-fedavg, fedavg_x or FedAvg, but local";
        const WHOLE: &str = "local";
    "##;
    let (found, modules) = literals(source);
    assert_eq!(modules, ["apart"]);
    let names = ["fedavg", "local"];
    let hits: Vec<(usize, &str)> = found
        .iter()
        .flat_map(|one| named(&one.text, &names).into_iter().map(|name| (one.line, name)))
        .collect();
    assert_eq!(hits, [(5, "fedavg"), (5, "fedavg"), (6, "fedavg"), (8, "fedavg"), (18, "local")]);
    let keys: Vec<(usize, &str)> =
        found.iter().filter(|one| is_looked_up(one)).map(|one| (one.line, one.text.as_str())).collect();
    assert_eq!(keys, [(7, "penalty")]);
    assert!(
        is_own("method/src/methods/per_fedavg.rs", "per-fedavg")
            && is_own("experiment/src/theory/pgfl.rs", "pgfl")
    );
    assert!(
        !is_own("method/src/methods/mod.rs", "fedavg") && !is_own("method/src/methods/fedavg.rs", "local")
    );
}
