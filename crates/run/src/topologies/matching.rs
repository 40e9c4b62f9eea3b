//! Bringing two graphs, or a graph and labels, together by the names of the nodes.

use super::{Named, refuse};
use crate::Error;
use fedkin_data::DataError;
use fedkin_graph::{Weighted, pairs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// So many names are listed before "and more".
const LISTED: usize = 5;

/// The graph of `other` with its nodes in the order of `first`; `here` and `there` are what the two are called in an
/// error. A graph whose file had no names is taken to have its nodes in the order of the other.
pub fn matched(first: &Named, here: &str, other: &Named, there: &str) -> Result<Weighted, Error> {
    if (first.numbered || other.numbered) && first.nodes.len() == other.nodes.len() {
        return Ok(other.graph.clone());
    }
    let set = |named: &Named| named.nodes.iter().cloned().collect::<BTreeSet<String>>();
    let (mine, theirs) = (set(first), set(other));
    if mine != theirs {
        let lacks = |who: &str, names: Vec<&String>| {
            (!names.is_empty())
                .then(|| format!("{who} has no {}", listing(names.into_iter().map(String::as_str))))
        };
        let parts = [
            lacks(there, mine.difference(&theirs).collect()),
            lacks(here, theirs.difference(&mine).collect()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        return Err(Error::Usage(format!(
            "the graphs have not the same nodes: {}; graphs are compared node by node, by name",
            parts.join(", and ")
        )));
    }
    let places: BTreeMap<&str, usize> = other.nodes.iter().map(String::as_str).zip(0..).collect();
    let order: Vec<usize> =
        first.nodes.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
    let weights = pairs::all(order.len()).map(|(i, j)| other.graph.weight(order[i], order[j])).collect();
    Weighted::new(order.len(), weights).map_err(|error| Error::Usage(error.to_string()))
}

fn listing<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(LISTED);
    let text = names[..names.len() - more].join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// What each node is known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// The label of every node, as a place in `names`.
    pub labels: Vec<u32>,
    /// The distinct labels, sorted.
    pub names: Vec<String>,
}

/// Reads a CSV file with a line `node,label` for each of these nodes.
pub fn labels(path: &Path, nodes: &[String]) -> Result<Labels, Error> {
    let table = fedkin_data::csv::read(path, &|_| true)?;
    let [node, label] = table.columns.as_slice() else {
        let found = table.columns.len();
        return Err(refuse(path, format!("labels stand in two columns, node,label; this file has {found}")));
    };
    let known: BTreeSet<&str> = nodes.iter().map(String::as_str).collect();
    let mut given: BTreeMap<&str, &str> = BTreeMap::new();
    for row in 0..table.rows {
        let wrong =
            |message: String| Err(Error::Data(DataError::Record { place: table.place(row), message }));
        let (node, label) =
            (node.word(row).unwrap_or_default().trim(), label.word(row).unwrap_or_default().trim());
        if !known.contains(node) {
            return wrong(format!("the graph has no node {node:?}: take the line out, or correct the name"));
        }
        if label.is_empty() {
            return wrong(format!("node {node:?} has no label"));
        }
        if let Some(before) = given.insert(node, label)
            && before != label
        {
            return wrong(format!(
                "node {node:?} has the label {label:?} here and {before:?} before: keep one"
            ));
        }
    }
    let missing: Vec<&str> =
        nodes.iter().map(String::as_str).filter(|node| !given.contains_key(node)).collect();
    if !missing.is_empty() {
        return Err(refuse(path, format!("there is no label for {}", listing(missing.into_iter()))));
    }
    let distinct: BTreeSet<&str> = given.values().copied().collect();
    let numbers: BTreeMap<&str, u32> = distinct.iter().copied().zip(0..).collect();
    let labels = nodes
        .iter()
        .filter_map(|node| given.get(node.as_str()).and_then(|label| numbers.get(label)).copied());
    Ok(Labels { labels: labels.collect(), names: distinct.into_iter().map(String::from).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str], weights: &[f64]) -> Named {
        let graph = Weighted::new(names.len(), weights.to_vec()).unwrap();
        Named::new(names.iter().map(ToString::to_string).collect(), graph).unwrap()
    }

    #[test]
    fn nodes_are_matched_by_name() {
        let first = named(&["a", "b", "c"], &[1.0, 2.0, 3.0]);
        let turned = named(&["c", "a", "b"], &[2.0, 3.0, 1.0]);
        assert_eq!(matched(&first, "x", &turned, "y").unwrap(), first.graph);
        let bare = Named::numbered(turned.graph.clone());
        assert_eq!(matched(&first, "x", &bare, "y").unwrap(), turned.graph);
        assert_eq!(matched(&bare, "x", &first, "y").unwrap(), first.graph);
        let other = named(&["a", "b", "z"], &[0.0; 3]);
        let text = matched(&first, "x", &other, "y").unwrap_err().to_string();
        assert!(text.contains("y has no \"c\", and x has no \"z\""), "{text}");
        let short = Named::numbered(Weighted::new(2, vec![1.0]).unwrap());
        assert!(
            matched(&first, "x", &short, "y")
                .unwrap_err()
                .to_string()
                .contains("y has no \"a\", \"b\", \"c\"")
        );
    }

    #[test]
    fn every_node_has_one_label() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            labels(&path, &["a".to_string(), "b".to_string(), "c".to_string()])
        };
        let found = read("node,label\nc,y\na,x\nb,y\n").unwrap();
        assert_eq!(found, Labels { labels: vec![0, 1, 1], names: vec!["x".into(), "y".into()] });
        for (text, expected) in [
            ("node,label\na,x\n", "no label for \"b\", \"c\""),
            ("node,label\na,x\nd,x\n", "labels.csv:3: the graph has no node \"d\""),
            ("node,label\na,\n", "labels.csv:2: node \"a\" has no label"),
            ("node,label\na,x\na,y\n", "labels.csv:3: node \"a\" has the label \"y\" here and \"x\" before"),
            ("node\na\n", "this file has 1"),
        ] {
            let found = read(text).unwrap_err().to_string();
            assert!(found.contains(expected), "{found}");
        }
    }
}
