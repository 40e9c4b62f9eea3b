//! A config written out in full, and its fingerprint.

use super::{ClusterSource, Config, FoundBy, Override, Section, VERSION, learners, sections};
use fedkin_settings::{Param, Settings, Value, Values};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Keys that change what a run is called, how often it saves or what it keeps, but no number in it.
const IDLE: &[&str] = &[
    "run.name",
    "run.checkpoint_seconds",
    "run.repeats",
    "evaluate.per_client_limit",
    "evaluate.metric",
    "evaluate.against",
    "evaluate.at",
    // One process waits for nobody.
    "network.mode",
    "network.quorum",
    "network.deadline",
    "network.resend",
];

/// Keys that say where a file is. What stands in the file counts, through the roster or the data.
const PATHS: &[&str] =
    &["data.path", "data.schema", "topology.edges", "kin.clusters", "kin.graph", "privacy.ledger"];

/// The lines of one section: key and literal.
type Lines = Vec<(String, String)>;

impl Config {
    /// The config as TOML with every default filled in; loads back to an equal config.
    pub fn resolved(&self) -> String {
        let mut text = format!("version = {VERSION}\n");
        for (section, lines) in self.sections() {
            let _ = write!(text, "\n[{section}]\n");
            push_lines(&mut text, &lines);
        }
        for curve in &self.curves {
            let mut lines = vec![("label".to_string(), quoted(&curve.label))];
            lines.extend(curve.method.iter().map(|method| ("method".to_string(), quoted(method))));
            text.push_str("\n[[curve]]\n");
            push_lines(&mut text, &lines);
            let table = |sets: &[Override]| {
                let set = |set: &Override| format!("{} = {}", quoted(&set.key), literal(&set.value));
                format!("{{ {} }}", sets.iter().map(set).collect::<Vec<_>>().join(", "))
            };
            if !curve.set.is_empty() {
                let _ = writeln!(text, "set = {}", table(&curve.set));
            }
            if !curve.grid.is_empty() {
                let row = |(key, values): &(String, Vec<Value>)| {
                    format!("{} = {}", quoted(key), literal(&Value::List(values.clone())))
                };
                let rows: Vec<String> = curve.grid.iter().map(row).collect();
                let _ = writeln!(text, "grid = {{ {} }}", rows.join(", "));
            }
            if !curve.along.is_empty() {
                let along: Vec<String> = curve.along.iter().map(|sets| table(sets)).collect();
                let _ = writeln!(text, "along = [{}]", along.join(", "));
            }
        }
        if let Some(tune) = &self.tune {
            text.push_str("\n[tune]\n");
            push_lines(&mut text, &lines_of(tune));
        }
        if let Some(sweep) = &self.sweep {
            let values = literal(&Value::List(sweep.values.clone()));
            let mut lines = vec![("key".to_string(), quoted(&sweep.key)), ("values".to_string(), values)];
            lines.extend(sweep.at_round.iter().map(|round| ("at_round".to_string(), round.to_string())));
            text.push_str("\n[sweep]\n");
            push_lines(&mut text, &lines);
        }
        if !self.quick.is_empty() {
            let line = |set: &Override| (quoted(&set.key), literal(&set.value));
            let lines: Vec<_> = self.quick.iter().map(line).collect();
            text.push_str("\n[quick]\n");
            push_lines(&mut text, &lines);
        }
        if let Some(paper) = &self.paper {
            let mut lines = vec![("title".to_string(), quoted(&paper.title))];
            lines.extend(paper.source.iter().map(|source| ("source".to_string(), quoted(source))));
            if paper.theory {
                lines.push(("theory".to_string(), "true".to_string()));
            }
            text.push_str("\n[paper]\n");
            push_lines(&mut text, &lines);
            for claim in &paper.claims {
                let mut lines = vec![("text".to_string(), quoted(&claim.text))];
                lines.extend(claim.check.iter().map(|check| ("check".to_string(), quoted(check))));
                text.push_str("\n[[paper.claims]]\n");
                push_lines(&mut text, &lines);
            }
        }
        text
    }

    /// A digest of everything that decides the numbers of a run.
    ///
    /// Not of the name, of how often it is repeated or saved, of what is kept per client, of the headline
    /// metric, nor of the paper: a run may be continued with other ones.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = blake3::Hasher::new();
        hash.update(format!("fedkin config {VERSION}\n").as_bytes());
        for (key, value) in self.deciding() {
            hash.update(format!("{key} = {value}\n").as_bytes());
        }
        *hash.finalize().as_bytes()
    }

    /// The same for a run on many machines, without the paths: key and value of everything that all nodes must
    /// agree on. The graph, the schema and the constants of a standardisation are in the roster.
    pub fn agreed(&self) -> BTreeMap<String, String> {
        let mut all = self.keys(|key| {
            let decides = !IDLE.contains(&key) || (key.starts_with("network.") && key != "network.resend");
            decides && !PATHS.contains(&key)
        });
        if let Some(Value::Text(word)) = self.data.get("standardise")
            && word != "client"
        {
            all.insert("data.standardise".into(), "constants of the roster".into());
        }
        if let Some(clusters) = &self.kin.clusters {
            let found = match clusters {
                ClusterSource::Infer => ClusterSource::INFER,
                ClusterSource::File(_) => "of the roster",
            };
            all.insert("kin.clusters".into(), found.into());
        }
        if self.kin.graph.is_some() {
            all.insert("kin.graph".into(), "of the roster".into());
        }
        all
    }

    /// A digest of everything that decides what leaves the clients of a run in one process, the records aside: not of
    /// paths, of what is measured, nor of how a result is reported.
    pub fn release_fingerprint(&self) -> [u8; 32] {
        let mut hash = blake3::Hasher::new();
        hash.update(format!("fedkin release {VERSION}\n").as_bytes());
        let reports =
            |key: &str| key.starts_with("evaluate.") || key.starts_with("network.") || key == "privacy.delta";
        for (key, value) in self.keys(|key| !IDLE.contains(&key) && !PATHS.contains(&key) && !reports(key)) {
            hash.update(format!("{key} = {value}\n").as_bytes());
        }
        *hash.finalize().as_bytes()
    }

    /// What decides the numbers and differs from another config, one sentence a key.
    pub fn differences(&self, before: &Config) -> Vec<String> {
        let (now, before) = (self.deciding(), before.deciding());
        let mut keys: Vec<&String> = now.keys().chain(before.keys()).collect();
        keys.sort();
        keys.dedup();
        keys.into_iter()
            .filter_map(|key| match (before.get(key), now.get(key)) {
                (Some(old), Some(new)) if old == new => None,
                (Some(old), Some(new)) => Some(format!("`{key}` was {old} and is now {new}")),
                (Some(old), None) => Some(format!("`{key}` was {old} and is now absent")),
                (None, Some(new)) => Some(format!("`{key}` was absent and is now {new}")),
                (None, None) => None,
            })
            .collect()
    }

    fn deciding(&self) -> BTreeMap<String, String> {
        let mut all = self.keys(|key| !IDLE.contains(&key));
        for curve in &self.curves {
            let set: Vec<String> =
                curve.set.iter().map(|set| format!("{} = {}", set.key, literal(&set.value))).collect();
            all.insert(format!("curve.{}", curve.label), format!("{{ {} }}", set.join(", ")));
            for (key, values) in &curve.grid {
                all.insert(
                    format!("curve.{}.grid.{key}", curve.label),
                    literal(&Value::List(values.clone())),
                );
            }
        }
        if let Some(tune) = &self.tune {
            all.extend(lines_of(tune).into_iter().map(|(key, value)| (format!("tune.{key}"), value)));
        }
        if let Some(sweep) = &self.sweep {
            all.insert("sweep.key".into(), quoted(&sweep.key));
            all.insert("sweep.values".into(), literal(&Value::List(sweep.values.clone())));
        }
        all
    }

    /// Keys with their section, and their values.
    fn keys(&self, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (section, lines) in self.sections() {
            let full = lines.into_iter().map(|(key, value)| (format!("{section}.{key}"), value));
            all.extend(full.filter(|(key, _)| wanted(key)));
        }
        for (key, preset) in sections::ONCE_IN_EVERY_MODEL {
            let key = format!("model.{key}");
            if let Some(value) = preset.value().filter(|_| wanted(&key)) {
                all.entry(key).or_insert_with(|| literal(&value));
            }
        }
        all
    }

    /// The sections that are never absent, in the order of the reference.
    fn sections(&self) -> Vec<(String, Lines)> {
        let with = |key: &str, name: &str, values: &Values| {
            let mut lines = vec![(key.to_string(), quoted(name))];
            lines.extend(in_order(values, &[]));
            lines
        };
        let model = |kind: &str, values: &Values| {
            let mut lines = vec![("kind".to_string(), quoted(kind))];
            lines.extend(in_order(values, params_of_model(kind)));
            lines
        };
        let mut all = vec![
            ("run", self.run.lines()),
            ("data", with("source", &self.data_source, &self.data)),
            ("topology", in_order(&self.topology, &[])),
            ("model", model(&self.model_kind, &self.model)),
            ("algorithm", with("name", &self.algorithm, &self.algorithm_values)),
            ("participation", self.participation.lines()),
            ("privacy", self.privacy.lines()),
            ("evaluate", self.evaluate.lines()),
            ("network", self.network.lines()),
        ];
        let kin = self.kin_lines();
        if !kin.is_empty() {
            all.insert(all.len() - 3, ("kin", kin));
        }
        let robust = self.robust.lines();
        if !robust.is_empty() {
            all.insert(all.len() - 2, ("robust", robust));
        }
        let mut all: Vec<(String, Lines)> =
            all.into_iter().map(|(section, lines)| (section.to_string(), lines)).collect();
        let tables = self.learners.iter().map(|(name, table)| {
            let mut lines = model(&table.kind, &table.values);
            lines.extend(lines_of(&table.keys));
            (format!("{}.{name}", learners::SECTION), lines)
        });
        let after = all.iter().position(|(section, _)| section == "algorithm").unwrap_or(all.len());
        all.splice(after..after, tables);
        all
    }

    /// `[kin]` without the keys that nobody reads: most runs have none.
    fn kin_lines(&self) -> Lines {
        let infer = self.kin.clusters == Some(ClusterSource::Infer);
        let mut lines = self.kin.lines();
        lines.retain(|(key, _)| match key.as_str() {
            "by" => infer,
            "warm_up" | "forming" | "start" => infer && self.kin.by == FoundBy::Loss,
            _ => true,
        });
        lines
    }
}

impl<T: Settings> Section<T> {
    /// Its keys and values in the order of the table.
    fn lines(&self) -> Lines {
        in_order(self.values(), T::PARAMS)
    }
}

/// The table of a kind of model, for the order of its keys.
fn params_of_model(kind: &str) -> &'static [Param] {
    fedkin_learner::registry::native().get(kind).map_or(&[], |row| row.params)
}

/// The keys and values of settings that have no section of their own kept, in the order of their table.
fn lines_of<T: Settings>(settings: &T) -> Lines {
    let values = settings.values();
    T::PARAMS.iter().filter_map(|param| Some((bare(param.name), literal(values.get(param.name)?)))).collect()
}

/// The keys in the order of their table; by name where the table is not at hand.
fn in_order(values: &Values, params: &[Param]) -> Lines {
    let mut lines: Vec<(&str, &Value)> = values.iter().collect();
    lines.sort_by_key(|(key, _)| params.iter().position(|param| param.name == *key));
    lines.into_iter().map(|(key, value)| (bare(key), literal(value))).collect()
}

fn push_lines(text: &mut String, lines: &[(String, String)]) {
    for (key, value) in lines {
        let _ = writeln!(text, "{key} = {value}");
    }
}

/// A value as TOML.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Number(x) if x.is_nan() => "nan".to_string(),
        // Shortest digits that read back to the same bits, and always with a point or an exponent.
        Value::Number(x) => format!("{x:?}"),
        Value::Integer(x) => x.to_string(),
        Value::Flag(x) => x.to_string(),
        Value::Text(text) => quoted(text),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) if table.is_empty() => "{}".to_string(),
        Value::Table(table) => {
            let items: Vec<String> =
                table.iter().map(|(key, value)| format!("{} = {}", bare(key), literal(value))).collect();
            format!("{{ {} }}", items.join(", "))
        }
    }
}

fn bare(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain { key.to_string() } else { quoted(key) }
}

/// Text as a basic TOML string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
