//! Values set from outside the file: `--set key=value`, and the `set` of a curve.

use super::diagnostic::Origin;
use super::tree::{self, Body, Branch, Node};
use super::{RowSummary, Tables, learners};
use fedkin_settings::Value;

/// One key that is set from outside the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// The key with its section, such as `algorithm.penalty`.
    pub key: String,
    /// Its value.
    pub value: Value,
}

/// Overrides that were given together, with their origins.
pub(super) type Layer = Vec<(String, Node)>;

impl Override {
    /// Reads `key=value`: the value is TOML, and what is no TOML is text, so that words need no quotes.
    pub fn parse(text: &str) -> Result<Self, String> {
        let example = "write it as section.key=value, such as algorithm.penalty=5";
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!("--set {text}: there is no `=`; {example}"));
        };
        let (key, value) = (key.trim(), value.trim());
        let word = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        if !key.split('.').all(word) {
            return Err(format!("--set {text}: `{key}` is not a key; {example}"));
        }
        if value.is_empty() {
            return Err(format!("--set {text}: the value is missing; {example}"));
        }
        let value = match tree::parse_value(value) {
            Ok(value) => value,
            Err(reason) if value.starts_with(['[', '{', '"', '\'']) => {
                return Err(format!("--set {text}: the value is not valid TOML: {reason}"));
            }
            Err(_) => Value::Text(value.to_string()),
        };
        Ok(Self { key: key.to_string(), value })
    }
}

/// Overrides of the command line as a layer.
pub(super) fn layer(overrides: &[Override]) -> Layer {
    let entry = |set: &Override| {
        let origin = Origin::Set(format!("{}={}", set.key, super::resolved::literal(&set.value)));
        (set.key.clone(), Node::new(&origin, &set.value))
    };
    overrides.iter().map(entry).collect()
}

/// The `set` table of a curve as a layer, in the order of the file.
///
/// `algorithm.name = "gfl"` and `"algorithm.name" = "gfl"` mean the same. Below section and key a value
/// is taken whole: a table replaces what was there. Keys of `[learner.NAME]` are set one by one as those of a section.
pub(super) fn flatten(set: &Branch) -> Layer {
    let mut layer = Layer::new();
    for (key, node) in set {
        match &node.body {
            _ if key == learners::SECTION => layer.extend(learners::flattened(node)),
            Body::Table(inner) if !key.contains('.') => {
                layer.extend(inner.iter().map(|(name, node)| (format!("{key}.{name}"), node.clone())));
            }
            _ => layer.push((key.clone(), node.clone())),
        }
    }
    let start = |node: &Node| match &node.key {
        Origin::File(span) => span.start,
        Origin::Set(_) | Origin::Program => 0,
    };
    layer.sort_by_key(|(_, node)| start(node));
    layer
}

/// The tables in which one key selects the others: path, that key, rows. Of learners those that the layer names.
fn selectors<'a>(
    layer: &'a [(String, Node)],
    tables: &Tables<'a>,
) -> Vec<(Vec<&'a str>, &'static str, &'a [RowSummary<'a>])> {
    let fixed = tables.selected().map(|(section, selector, rows)| (vec![section], selector, rows));
    let named = layer.iter().filter_map(|(key, _)| {
        let [section, name, "kind"] = key.split('.').collect::<Vec<_>>()[..] else { return None };
        (section == learners::SECTION).then_some((vec![section, name], "kind", tables.models))
    });
    fixed.into_iter().chain(named).collect()
}

/// Puts a layer on top of what is there.
///
/// Where it names another algorithm, data source or kind of model, keys that only the former one knows leave with it;
/// keys of this layer itself stay and must be known.
pub(super) fn apply(root: &mut Branch, layer: &[(String, Node)], tables: &Tables<'_>) {
    for (section, selector, rows) in selectors(layer, tables) {
        let full = format!("{}.{selector}", section.join("."));
        let chosen = layer.iter().rev().find(|(key, _)| *key == full).and_then(|(_, node)| node.text());
        let params_of = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.2);
        let Some(params) = chosen.and_then(params_of) else { continue };
        let Some(branch) = tree::table_mut(root, &section) else { continue };
        let former = branch.get(selector).and_then(Node::text).and_then(params_of);
        branch.retain(|key, _| {
            let known = key == selector || params.iter().any(|param| param.name == key);
            // A key that no one knew is a slip of the pen: it stays and is reported.
            known || former.is_some_and(|former| former.iter().all(|param| param.name != key))
        });
    }
    for (key, node) in layer {
        let path: Vec<&str> = key.split('.').collect();
        tree::insert(root, &path, node.clone());
    }
}
