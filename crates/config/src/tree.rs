//! The config as a tree that remembers where every key and value came from.

use super::diagnostic::Origin;
use fedkin_settings::Value;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The keys of one table.
pub(super) type Branch = BTreeMap<String, Node>;

/// One value with its two origins.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Where its key stands.
    pub(super) key: Origin,
    /// Where the value stands.
    pub(super) at: Origin,
    /// The value.
    pub(super) body: Body,
}

/// A value whose parts keep their origins.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// A number, flag or text.
    Leaf(Value),
    /// Several values.
    List(Vec<Node>),
    /// Named values.
    Table(Branch),
}

/// A place in the text and what is wrong there.
pub(super) type SyntaxFault = (Origin, String);

impl Node {
    /// A value that came from somewhere else than the file.
    pub(super) fn new(origin: &Origin, value: &Value) -> Self {
        let body = match value {
            Value::List(items) => Body::List(items.iter().map(|item| Self::new(origin, item)).collect()),
            Value::Table(table) => Body::Table(
                table.iter().map(|(key, value)| (key.clone(), Self::new(origin, value))).collect(),
            ),
            leaf => Body::Leaf(leaf.clone()),
        };
        Self { key: origin.clone(), at: origin.clone(), body }
    }

    /// The plain value, without origins.
    pub(super) fn value(&self) -> Value {
        match &self.body {
            Body::Leaf(value) => value.clone(),
            Body::List(items) => Value::List(items.iter().map(Node::value).collect()),
            Body::Table(branch) => Value::Table(values(branch)),
        }
    }

    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Leaf(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The keys, if it is a table.
    pub(super) fn table(&self) -> Option<&Branch> {
        match &self.body {
            Body::Table(branch) => Some(branch),
            _ => None,
        }
    }
}

/// The plain values of a table.
pub(super) fn values(branch: &Branch) -> BTreeMap<String, Value> {
    branch.iter().map(|(key, node)| (key.clone(), node.value())).collect()
}

/// Where a path stands: its value or its key, or the nearest table above where it is missing.
pub(super) fn origin(root: &Branch, path: &[&str], at_key: bool) -> Option<Origin> {
    let mut origin = None;
    let mut branch = Some(root);
    let mut items: Option<&[Node]> = None;
    for (depth, part) in path.iter().enumerate() {
        let node = match (branch, items) {
            (Some(branch), _) => branch.get(*part),
            (None, Some(items)) => {
                part.parse::<usize>().ok().and_then(|number| items.get(number.checked_sub(1)?))
            }
            (None, None) => None,
        };
        let Some(node) = node else { break };
        let whole = depth + 1 == path.len();
        // A table spans its whole text: its key is the better place to point at.
        let key = at_key || !whole || matches!(node.body, Body::Table(_));
        origin = Some(if key { &node.key } else { &node.at });
        branch = node.table();
        items = match &node.body {
            Body::List(items) => Some(items),
            _ => None,
        };
    }
    origin.cloned()
}

/// The table at a path, if there is one.
pub(super) fn table_mut<'a>(root: &'a mut Branch, path: &[&str]) -> Option<&'a mut Branch> {
    path.iter().try_fold(root, |branch, part| match branch.get_mut(*part) {
        Some(Node { body: Body::Table(inner), .. }) => Some(inner),
        _ => None,
    })
}

/// Puts a value at a path, making the tables on the way.
pub(super) fn insert(branch: &mut Branch, path: &[&str], node: Node) {
    match path {
        [] => {}
        [last] => {
            branch.insert((*last).to_string(), node);
        }
        [first, rest @ ..] => {
            let empty = Node { key: node.key.clone(), at: node.at.clone(), body: Body::Table(Branch::new()) };
            let child = branch.entry((*first).to_string()).or_insert_with(|| empty.clone());
            // A number that turns into a table, such as a constant that becomes a schedule.
            if child.table().is_none() {
                *child = empty;
            }
            if let Body::Table(inner) = &mut child.body {
                insert(inner, rest, node);
            }
        }
    }
}

/// Reads a whole document; every fault, not only the first.
pub(super) fn parse(text: &str) -> Result<Branch, Vec<SyntaxFault>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut faults: Vec<SyntaxFault> = Vec::new();
        let mut last_line = None;
        for error in &errors {
            let span = error.span().unwrap_or(text.len()..text.len());
            // After its first slip the parser guesses about the rest of the line.
            let line = text.bytes().take(span.start).filter(|byte| *byte == b'\n').count();
            if last_line.replace(line) != Some(line) {
                let message = error.message().trim_end_matches(", expected nothing");
                faults.push((Origin::File(span), format!("not valid TOML: {message}")));
            }
        }
        return Err(faults);
    }
    let mut faults = Vec::new();
    let branch = convert_table(document.get_ref(), &mut faults);
    if faults.is_empty() { Ok(branch) } else { Err(faults) }
}

/// Reads one value, as after `key =`.
pub(super) fn parse_value(text: &str) -> Result<Value, String> {
    let parsed = DeValue::parse(text).map_err(|error| error.message().to_string())?;
    // A date is a bare word here: no key takes one.
    if matches!(parsed.get_ref(), DeValue::Datetime(_)) {
        return Ok(Value::Text(text.to_string()));
    }
    let mut faults = Vec::new();
    let body = convert(&parsed, &mut faults);
    match faults.into_iter().next() {
        Some((_, message)) => Err(message),
        None => Ok(Node { key: Origin::File(0..0), at: Origin::File(0..0), body }.value()),
    }
}

fn convert_table(table: &DeTable<'_>, faults: &mut Vec<SyntaxFault>) -> Branch {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let body = convert(value, faults);
        let key_text: &std::borrow::Cow<'_, str> = key.get_ref();
        (key_text.to_string(), Node { key: Origin::File(key.span()), at: Origin::File(value.span()), body })
    };
    table.iter().map(entry).collect()
}

fn convert(value: &Spanned<DeValue<'_>>, faults: &mut Vec<SyntaxFault>) -> Body {
    let mut fault = |message: String| {
        faults.push((Origin::File(value.span()), message));
        Body::Leaf(Value::Flag(false))
    };
    match value.get_ref() {
        DeValue::String(text) => Body::Leaf(Value::Text(text.to_string())),
        DeValue::Boolean(flag) => Body::Leaf(Value::Flag(*flag)),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Body::Leaf(Value::Integer(number)),
            Err(_) => fault(format!("{integer} does not fit: whole numbers go up to {}", i64::MAX)),
        },
        DeValue::Float(float) => match float.as_str().parse() {
            Ok(number) => Body::Leaf(Value::Number(number)),
            Err(_) => fault(format!("{float} is not a number")),
        },
        DeValue::Datetime(date) => fault(format!("no key takes a date; write \"{date}\" for text")),
        DeValue::Array(items) => Body::List(
            items
                .iter()
                .map(|item| {
                    let at = Origin::File(item.span());
                    Node { key: at.clone(), at, body: convert(item, faults) }
                })
                .collect(),
        ),
        DeValue::Table(table) => Body::Table(convert_table(table, faults)),
    }
}
