//! Other TOML files with sections whose tables are fixed, such as the config of a node.

use super::diagnostic::{ConfigError, Diagnostic};
use super::tree::{self, Branch, Node, values};
use super::{Source, VERSION};
use fedkin_core::params::{Param, Value, Values, suggest};
use std::collections::BTreeMap;

/// Reads `version` and the sections; everything that is wrong is reported with its place.
///
/// A section that is absent is read as an empty one.
pub(crate) fn sections(
    source: &Source,
    tables: &[(&str, &[Param])],
) -> Result<BTreeMap<String, Values>, ConfigError> {
    let root = tree::parse(&source.text).map_err(|faults| {
        let diagnose = |(origin, message)| Diagnostic::new(source, Some(&origin), String::new(), message);
        ConfigError::new(faults.into_iter().map(diagnose).collect())
    })?;
    let mut found = Found { source, root: &root, diagnostics: Vec::new() };
    match root.get("version").map(Node::value) {
        Some(Value::Integer(VERSION)) => {}
        Some(other) => {
            found.report(
                &["version"],
                false,
                format!("version {other} is not known: this Fedkin reads version {VERSION}"),
            );
        }
        None => {
            let message =
                format!("the version of the format is missing: write `version = {VERSION}` at the top");
            found.report(&["version"], false, message);
        }
    }
    let known = || std::iter::once("version").chain(tables.iter().map(|table| table.0));
    for name in root.keys().filter(|name| known().all(|known| known != name.as_str())) {
        let home = tables.iter().find(|(_, params)| params.iter().any(|param| param.name == name));
        let hint = match home {
            Some((section, _)) => format!("; did you mean `{section}.{name}`?"),
            None => suggest(name, known()),
        };
        let what = if root[name].table().is_some() { "section" } else { "key" };
        found.report(&[name], true, format!("unknown {what}{hint}"));
    }
    let mut sections = BTreeMap::new();
    for (name, params) in tables {
        let empty = Branch::new();
        let node = root.get(*name);
        let Some(branch) = node.map_or(Some(&empty), Node::table) else {
            let found_value = node.map(|node| node.value().to_string()).unwrap_or_default();
            found.report(&[name], false, format!("expected a section [{name}], found {found_value}"));
            continue;
        };
        match Values::check(params, &values(branch)) {
            Ok(values) => {
                sections.insert((*name).to_string(), values);
            }
            Err(problems) => {
                for problem in problems {
                    let path: Vec<&str> =
                        std::iter::once(*name).chain(problem.path.iter().map(String::as_str)).collect();
                    found.report(&path, problem.message.starts_with("unknown key"), problem.message);
                }
            }
        }
    }
    if found.diagnostics.is_empty() { Ok(sections) } else { Err(ConfigError::new(found.diagnostics)) }
}

/// One problem that only the reader of the sections can see, at a key of the text.
pub(crate) fn wrong(source: &Source, path: &[&str], message: String) -> ConfigError {
    let root = tree::parse(&source.text).unwrap_or_default();
    let mut found = Found { source, root: &root, diagnostics: Vec::new() };
    found.report(path, false, message);
    ConfigError::new(found.diagnostics)
}

/// Collects what is wrong.
struct Found<'a> {
    source: &'a Source,
    root: &'a Branch,
    diagnostics: Vec<Diagnostic>,
}

impl Found<'_> {
    fn report(&mut self, path: &[&str], at_key: bool, message: String) {
        let origin = tree::origin(self.root, path, at_key);
        self.diagnostics.push(Diagnostic::new(self.source, origin.as_ref(), path.join("."), message));
    }
}
