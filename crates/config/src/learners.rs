//! `[learner.NAME]`: what some clients fit instead of what `[model]` says.

use super::check::Checker;
use super::tree::{Body, Branch, Node};
use super::{ClusterSource, Config};
use fedkin_method::DEFAULT;
use fedkin_settings::{Kind, Param, Preset, Settings, Values, settings};
use std::collections::BTreeMap;

/// The section.
pub(super) const SECTION: &str = "learner";

settings! {
    /// The keys of `[learner.NAME]` beside those of its kind: who has it.
    pub struct LearnerKeys {
        clients: Vec<String> => Kind::List(&Kind::Text), Preset::Absent, "names of clients that fit this";
        clusters: Vec<String> => Kind::List(&Kind::Text), Preset::Absent,
            "names of clusters whose clients fit this, where `clients` of no other table names them";
    }
}

/// One `[learner.NAME]`: a kind with the keys that `[model]` has for it, and who fits that.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnerTable {
    /// `kind`
    pub kind: String,
    /// The keys of that kind.
    pub values: Values,
    /// Who has it, beside the clients whose records name it.
    pub keys: LearnerKeys,
}

impl Config {
    /// `[model]` and all `[learner.NAME]`, each with the path of its section.
    pub(super) fn all_learners(&self) -> impl Iterator<Item = (Vec<&str>, &str, &Values)> {
        let tables = self.learners.iter();
        let tables = tables.map(|(name, table)| (vec![SECTION, name], table.kind.as_str(), &table.values));
        std::iter::once((vec![DEFAULT], self.model_kind.as_str(), &self.model)).chain(tables)
    }
}

impl Checker<'_> {
    /// All tables, by name.
    pub(super) fn learners(&mut self) -> BTreeMap<String, LearnerTable> {
        let mut all = BTreeMap::new();
        for (name, node) in self.branch(SECTION).unwrap_or_default() {
            let path = [SECTION, name.as_str()];
            let Some(branch) = node.table() else {
                let message = format!(
                    "expected tables, each written as [{SECTION}.NAME], found {} = {}",
                    name,
                    node.value()
                );
                self.report_key(&path, message);
                continue;
            };
            if name == DEFAULT {
                let message = format!("{DEFAULT:?} means what [{DEFAULT}] says: choose another name");
                self.report_key(&path, message);
                continue;
            }
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || !name.chars().all(plain) {
                let message = format!("{name:?} cannot name a learner: use letters, digits, - and _");
                self.report_key(&path, message);
                continue;
            }
            if let Some(table) = self.learner(&path, branch) {
                all.insert(name, table);
            }
        }
        all
    }

    fn learner(&mut self, path: &[&str], branch: &Branch) -> Option<LearnerTable> {
        let (mut who, mut rest) = (Branch::new(), Branch::new());
        for (key, node) in branch {
            let own = LearnerKeys::PARAMS.iter().any(|param| param.name == key);
            if own { &mut who } else { &mut rest }.insert(key.clone(), node.clone());
        }
        let keys = self.keys(path, &who);
        let also: &[Param] = LearnerKeys::PARAMS;
        let (kind, values) = self.chosen(path, "kind", "kind of model", self.tables.models, rest, also)?;
        Some(LearnerTable { kind, values, keys: keys? })
    }

    /// Whether the tables say of each client and each cluster once what it fits.
    pub(super) fn claims(&mut self, config: &Config) {
        let infer = config.kin.clusters == Some(ClusterSource::Infer);
        let mut known: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for (name, LearnerTable { keys, .. }) in &config.learners {
            if infer && !keys.clusters.is_empty() {
                let message = "kin.clusters = \"infer\" finds the clusters on the way, and what a client fits is known before: \
                               name its `clients`";
                self.report(&[SECTION, name, "clusters"], message.to_string());
            }
            for (key, what, names) in
                [("clients", "client", &keys.clients), ("clusters", "cluster", &keys.clusters)]
            {
                for claimed in names {
                    let Some(other) = known.insert((key, claimed), name).filter(|other| other != name) else {
                        continue;
                    };
                    let message = format!(
                        "{what} {claimed:?} stands in `{key}` of [{SECTION}.{other}] and of [{SECTION}.{name}]: leave it in one"
                    );
                    self.report(&[SECTION, name, key], message);
                }
            }
        }
    }
}

/// The keys of all tables of a `set`, with the names of their tables.
pub(super) fn flattened(node: &Node) -> Vec<(String, Node)> {
    let Body::Table(tables) = &node.body else { return vec![(SECTION.into(), node.clone())] };
    let keys = |(name, node): (&String, &Node)| match &node.body {
        Body::Table(inner) if !name.contains('.') => {
            inner.iter().map(|(key, node)| (format!("{SECTION}.{name}.{key}"), node.clone())).collect()
        }
        _ => vec![(format!("{SECTION}.{name}"), node.clone())],
    };
    tables.iter().flat_map(keys).collect()
}

#[cfg(test)]
mod tests {
    use crate::native::tables;
    use crate::{Config, ConfigError, Override, Source, load, load_variant};
    use fedkin_settings::Value;

    const TEXT: &str = r#"version = 1
[run]
name = "t"
rounds = 2
[data]
source = "synthetic.clustered-regression"
[topology]
graph = { kind = "complete", servers = 1 }
[model]
kind = "ridge"
[learner.robust]
kind = "ridge"
huber = 1.0
clusters = ["cluster-2"]
[algorithm]
name = "pgfl"
"#;

    fn read(text: &str, sets: &[&str]) -> Result<Config, ConfigError> {
        let sets: Vec<Override> = sets.iter().map(|set| Override::parse(set).unwrap()).collect();
        load(&Source { name: "t.toml".into(), text: text.into() }, &sets, &tables())
    }

    #[test]
    fn tables_round_trip_and_count_in_the_fingerprint() {
        let config = read(TEXT, &[]).unwrap();
        let table = &config.learners["robust"];
        assert_eq!((table.kind.as_str(), table.values.get("huber")), ("ridge", Some(&Value::Number(1.0))));
        assert_eq!(table.keys.clusters, ["cluster-2"]);
        let again = read(&config.resolved(), &[]).unwrap();
        assert_eq!((&again, again.fingerprint()), (&config, config.fingerprint()));
        let (before, after) = TEXT.split_once("[learner").unwrap();
        let plain =
            read(&format!("{before}[algorithm]{}", after.split_once("[algorithm]").unwrap().1), &[]).unwrap();
        assert!(!plain.resolved().contains("learner"));
        let mut prints = vec![plain.fingerprint(), config.fingerprint()];
        for set in [
            "learner.robust.huber=2.0",
            "learner.robust.clusters=[\"cluster-1\"]",
            "learner.robust.clients=[\"c\"]",
        ] {
            prints.push(read(TEXT, &[set]).unwrap().fingerprint());
        }
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), 5);
        let said = config.differences(&plain).join("\n");
        assert!(said.contains("`learner.robust.huber` was absent and is now 1.0"), "{said}");
    }

    /// As in `[model]`: keys that only the former kind knows leave with it.
    #[test]
    fn another_kind_takes_the_keys_of_the_former_along() {
        let config = read(TEXT, &["learner.robust.kind=poisson"]).unwrap();
        let table = &config.learners["robust"];
        assert_eq!((table.kind.as_str(), table.values.get("huber")), ("poisson", None));
        assert_eq!(table.keys.clusters, ["cluster-2"]);
        let slip = read(TEXT, &["learner.robust.kind=poisson", "learner.robust.huber=2.0"]).unwrap_err();
        assert!(slip.to_string().contains("`huber` is a key of ridge"), "{slip}");
        let new = read(TEXT, &["learner.more.kind=logistic"]).unwrap();
        assert_eq!(new.learners.keys().collect::<Vec<_>>(), ["more", "robust"]);
    }

    #[test]
    fn a_curve_sets_keys_of_a_table_one_by_one() {
        let text = format!(
            "{TEXT}\n[[curve]]\nlabel = \"x\"\nset = {{ learner.robust.huber = 3.0, run.seed = 4 }}\n"
        );
        let config = read(&text, &[]).unwrap();
        let source = Source { name: "t.toml".into(), text };
        let varied = load_variant(&source, &[], &[&config.curves[0].set], &tables()).unwrap();
        let table = &varied.learners["robust"];
        assert_eq!((table.kind.as_str(), table.values.get("huber")), ("ridge", Some(&Value::Number(3.0))));
        assert_eq!(table.keys.clusters, ["cluster-2"]);
    }
}
