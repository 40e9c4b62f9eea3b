//! Modules that import each other: nobody can read or change one of them without the other.

use crate::source::{Named, Placed, TestFile, Token, files, tree, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The parts of a module's path from the root of its crate, which is empty.
type At = Vec<String>;

/// The modules of one crate, without its tests.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    /// By path; the root has the empty one.
    modules: BTreeMap<At, Module>,
    /// Lines that no test covers.
    pub(crate) lines: usize,
}

#[derive(Debug, Default)]
struct Module {
    /// What its file brings in: a name, and the path behind it from the root. A name may be `*`.
    uses: Vec<(String, At)>,
    /// Every path in it that begins at the root of the crate or at a module above, from the root.
    paths: Vec<At>,
    /// Every word in it.
    words: BTreeSet<String>,
    /// The names of its public items.
    items: BTreeSet<String>,
}

/// Two modules of one folder that import each other, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    /// The module above both; empty for the root of the crate.
    pub(crate) folder: String,
    pub(crate) one: String,
    pub(crate) other: String,
}

impl Crate {
    /// The modules below a folder with sources.
    pub(crate) fn read(folder: &Path) -> Self {
        let texts: BTreeMap<PathBuf, String> = files(folder, ".rs")
            .into_iter()
            .map(|path| {
                let text = std::fs::read_to_string(&path).unwrap();
                (path.strip_prefix(folder).unwrap().to_path_buf(), text)
            })
            .collect();
        Self::from_texts(&texts)
    }

    /// The modules of files by their paths, which begin below `src`.
    pub(crate) fn from_texts(texts: &BTreeMap<PathBuf, String>) -> Self {
        let products: BTreeMap<&PathBuf, _> =
            texts.iter().map(|(path, text)| (path, without_tests(text))).collect();
        // A module of tests may have a folder of its own.
        let mut tests: Vec<PathBuf> = Vec::new();
        for (path, product) in &products {
            for file in &product.only_tests {
                match file {
                    TestFile::At(name) => tests.push(path.with_file_name(name)),
                    TestFile::Module(name) => {
                        let below: PathBuf = module_of(path).iter().collect::<PathBuf>().join(name);
                        tests.extend([below.with_extension("rs"), below]);
                    }
                }
            }
        }
        let mut all = Self::default();
        for (path, product) in products {
            if tests.iter().any(|test| path.starts_with(test)) {
                continue;
            }
            all.lines += product.lines;
            all.add(&module_of(path), &product.tokens);
        }
        all
    }

    fn add(&mut self, file: &At, tokens: &[Placed]) {
        let mut at = file.clone();
        self.modules.entry(at.clone()).or_default();
        // Modules in braces within the file: the depth at which each began.
        let (mut depth, mut inline) = (0_usize, Vec::new());
        let mut here = 0;
        while here < tokens.len() {
            let word = tokens[here].word();
            let after = |sign: char| tokens.get(here + 2).is_some_and(|token| token.is(sign));
            if word == Some("mod") && (after('{') || after(';')) {
                let name = tokens[here + 1].word().unwrap_or_default().to_string();
                if after('{') {
                    at.push(name);
                    self.modules.entry(at.clone()).or_default();
                    inline.push(depth);
                    depth += 1;
                }
                here += 3;
                continue;
            }
            match tokens[here].token {
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => {
                    depth = depth.saturating_sub(1);
                    if inline.last() == Some(&depth) {
                        inline.pop();
                        at.pop();
                    }
                }
                _ => {}
            }
            let module = self.modules.entry(at.clone()).or_default();
            if let Some(word) = word {
                module.words.insert(word.to_string());
                module.items.extend(public_item(&tokens[here..]));
            }
            let inner = here > 0 && tokens[here - 1].token == Token::Colons;
            // `pub(in crate::a)` says who may see an item, and imports nothing.
            let sight = here > 0 && tokens[here - 1].word() == Some("in");
            let leads = matches!(word, Some("crate" | "super")) && !inner && !sight;
            if word == Some("use") || leads {
                let (paths, end) = tree(tokens, here + usize::from(word == Some("use")));
                for path in paths {
                    let full = from_root(&at, &path);
                    if word == Some("use") {
                        module.uses.push((path.name.clone(), full.clone()));
                    }
                    if path.parts.first().is_some_and(|first| first == "crate" || first == "super") {
                        module.paths.push(if path.name == "*" {
                            [full, vec!["*".into()]].concat()
                        } else {
                            full
                        });
                    }
                    module.words.insert(path.name);
                }
                here = end.max(here + 1);
                continue;
            }
            here += 1;
        }
    }

    /// The names of the direct children of a module.
    fn children(&self, folder: &[String]) -> BTreeSet<&str> {
        let below = |at: &&At| at.len() == folder.len() + 1 && at.starts_with(folder);
        self.modules.keys().filter(below).filter_map(|at| at.last()).map(String::as_str).collect()
    }

    /// The child of a folder that a name in it belongs to, itself or by an import in the folder's own file.
    fn owner(&self, folder: &[String], name: &str, steps: usize) -> Option<String> {
        if self.children(folder).contains(name) {
            return Some(name.to_string());
        }
        let module = self.modules.get(folder).filter(|_| steps > 0)?;
        let below = |path: &At| path.len() > folder.len() && path.starts_with(folder);
        for (known, path) in module.uses.iter().filter(|(_, path)| below(path)) {
            let holds = known == name || (known == "*" && self.exports(path, name, steps - 1));
            if holds {
                return self.owner(folder, &path[folder.len()], steps - 1);
            }
        }
        None
    }

    /// Whether a module has something public of this name.
    fn exports(&self, at: &[String], name: &str, steps: usize) -> bool {
        let Some(module) = self.modules.get(at).filter(|_| steps > 0) else { return false };
        module.items.contains(name)
            || self.children(at).contains(name)
            || module.uses.iter().any(|(known, path)| {
                known == name || (known == "*" && path != at && self.exports(path, name, steps - 1))
            })
    }

    /// The path with names that are imported at the root replaced by what stands behind them.
    fn expanded(&self, path: &At) -> At {
        let mut path = path.clone();
        for _ in 0..4 {
            let Some(first) = path.first() else { break };
            if self.children(&[]).contains(first.as_str()) {
                break;
            }
            let Some((_, behind)) = self
                .modules
                .get(&Vec::new())
                .and_then(|root| root.uses.iter().find(|(name, _)| name == first))
            else {
                break;
            };
            path.splice(..1, behind.iter().cloned());
        }
        path
    }

    /// Which children of a folder each child imports.
    fn imports(&self, folder: &[String]) -> BTreeMap<String, BTreeSet<String>> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let below = |at: &At| at.len() > folder.len() && at.starts_with(folder);
        for (at, module) in self.modules.iter().filter(|(at, _)| below(at)) {
            let own = at[folder.len()].clone();
            for path in &module.paths {
                // Below the root, a name of the root may lead back into the folder.
                let path = if folder.is_empty() { path.clone() } else { self.expanded(path) };
                let Some(name) = path.strip_prefix(folder).and_then(<[String]>::first) else { continue };
                let names: Vec<&String> =
                    if name == "*" { module.words.iter().collect() } else { vec![name] };
                let owners = names.into_iter().filter_map(|name| self.owner(folder, name, 8));
                all.entry(own.clone()).or_default().extend(owners.filter(|owner| *owner != own));
            }
        }
        all
    }

    fn pairs_in(&self, folder: &[String]) -> Vec<Pair> {
        let imports = self.imports(folder);
        let back = |one: &str, other: &str| imports.get(other).is_some_and(|all| all.contains(one));
        let mut pairs = Vec::new();
        for (one, all) in &imports {
            for other in all.iter().filter(|other| one < other && back(one, other)) {
                pairs.push(Pair { folder: folder.join("/"), one: one.clone(), other: other.clone() });
            }
        }
        pairs
    }

    /// The pairs among the direct children of the root.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        self.pairs_in(&[])
    }

    /// The pairs among the modules of each folder one level down.
    pub(crate) fn pairs_below(&self) -> Vec<Pair> {
        let folders = self.modules.keys().filter(|at| at.len() == 1);
        folders.flat_map(|folder| self.pairs_in(folder)).collect()
    }

    /// How many direct children the root has.
    pub(crate) fn width(&self) -> usize {
        self.children(&[]).len()
    }
}

/// The module of a file by its path below `src`.
fn module_of(path: &Path) -> At {
    let mut parts: At = path.with_extension("").iter().map(|part| part.to_string_lossy().into()).collect();
    let alone = parts.len() == 1;
    if parts.last().is_some_and(|last| last == "mod" || (alone && (last == "lib" || last == "main"))) {
        parts.pop();
    }
    parts
}

/// The path from the root of the crate of a path in a module.
fn from_root(at: &At, path: &Named) -> At {
    let mut parts = path.parts.as_slice();
    let mut full = at.clone();
    match parts.first().map(String::as_str) {
        Some("crate") => {
            full.clear();
            parts = &parts[1..];
        }
        Some("self") => parts = &parts[1..],
        _ => {
            while let Some(("super", rest)) = parts.split_first().map(|(first, rest)| (first.as_str(), rest))
            {
                full.pop();
                parts = rest;
            }
        }
    }
    full.extend_from_slice(parts);
    full
}

/// The name of a public item that begins here.
fn public_item(tokens: &[Placed]) -> Option<String> {
    const KINDS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];
    if tokens.first()?.word()? != "pub" {
        return None;
    }
    let mut kinds = false;
    for token in tokens.iter().skip(1).take(8) {
        match token.word() {
            Some(word) if KINDS.contains(&word) => kinds = true,
            Some(word) if kinds => return Some(word.to_string()),
            Some("async" | "unsafe" | "crate" | "super" | "in") => {}
            None if token.is('(') || token.is(')') => {}
            _ => return None,
        }
    }
    None
}
