//! Other TOML files with sections whose tables are fixed, such as the config of a node.

use super::diagnostic::{ConfigError, Diagnostic};
use super::tree::{self, Branch, Node, values};
use super::{Parsed, Section, Source, VERSION};
use fedkin_settings::{Param, Settings, Value, suggest};

/// Such a file while it is read: everything that is wrong is reported with its place.
pub struct Plain {
    parsed: Parsed,
    diagnostics: Vec<Diagnostic>,
}

impl Plain {
    /// Reads the text, its `version` and the names of its sections.
    pub fn new(source: &Source, tables: &[(&str, &[Param])]) -> Result<Self, ConfigError> {
        let mut found = Self { parsed: Parsed::new(source)?, diagnostics: Vec::new() };
        found.version();
        found.names(tables);
        Ok(found)
    }

    fn version(&mut self) {
        match self.parsed.root.get("version").map(Node::value) {
            Some(Value::Integer(VERSION)) => {}
            Some(other) => {
                let message = format!("version {other} is not known: this Fedkin reads version {VERSION}");
                self.report(&["version"], false, message);
            }
            None => {
                let message =
                    format!("the version of the format is missing: write `version = {VERSION}` at the top");
                self.report(&["version"], false, message);
            }
        }
    }

    fn names(&mut self, tables: &[(&str, &[Param])]) {
        let known = || std::iter::once("version").chain(tables.iter().map(|table| table.0));
        let mut unknown = Vec::new();
        for (name, node) in &self.parsed.root {
            if known().any(|known| known == name) {
                continue;
            }
            let home = tables.iter().find(|(_, params)| params.iter().any(|param| param.name == name));
            let hint = match home {
                Some((section, _)) => format!("; did you mean `{section}.{name}`?"),
                None => suggest(name, known()),
            };
            let what = if node.table().is_some() { "section" } else { "key" };
            unknown.push((name.clone(), format!("unknown {what}{hint}")));
        }
        for (name, message) in unknown {
            self.report(&[&name], true, message);
        }
    }

    /// One section; one that is absent is read as an empty one. `None` where something is wrong with it.
    pub fn section<T: Settings>(&mut self, name: &str) -> Option<Section<T>> {
        let empty = Branch::new();
        let node = self.parsed.root.get(name);
        let Some(branch) = node.map_or(Some(&empty), Node::table) else {
            let found = node.map(|node| node.value().to_string()).unwrap_or_default();
            self.report(&[name], false, format!("expected a section [{name}], found {found}"));
            return None;
        };
        match Section::check(&values(branch)) {
            Ok(section) => Some(section),
            Err(problems) => {
                for problem in problems {
                    let path: Vec<&str> =
                        std::iter::once(name).chain(problem.path.iter().map(String::as_str)).collect();
                    self.report(&path, problem.message.starts_with("unknown key"), problem.message);
                }
                None
            }
        }
    }

    /// Everything that was wrong.
    pub fn faults(self) -> ConfigError {
        ConfigError::new(self.diagnostics)
    }

    /// Whether nothing was.
    pub fn fine(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// One problem that only the reader of the sections can see, at a key of the text.
    pub fn wrong(&self, path: &[&str], message: String) -> ConfigError {
        ConfigError::new(vec![self.diagnostic(path, false, message)])
    }

    fn report(&mut self, path: &[&str], at_key: bool, message: String) {
        let diagnostic = self.diagnostic(path, at_key, message);
        self.diagnostics.push(diagnostic);
    }

    fn diagnostic(&self, path: &[&str], at_key: bool, message: String) -> Diagnostic {
        let origin = tree::origin(&self.parsed.root, path, at_key);
        Diagnostic::new(&self.parsed.source, origin.as_ref(), path.join("."), message)
    }
}
