//! JSON: an object with `weights` (or `w`), or with `adjacency`, and with `nodes` where they have names.

use super::collect::{from_adjacency, from_weights, with_names};
use super::{Named, refuse, whole};
use crate::Error;
use serde_json::{Map, Value, json};
use std::path::Path;

/// One object on one line.
pub(super) fn text(named: &Named) -> String {
    let mut object = Map::new();
    object.insert("nodes".into(), json!(named.nodes));
    object.insert("weights".into(), json!(named.graph.weights()));
    Value::Object(object).to_string() + "\n"
}

pub(super) fn read(path: &Path) -> Result<Named, Error> {
    parse(&whole(path)?).map_err(|message| refuse(path, message))
}

fn parse(text: &str) -> Result<Named, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))?;
    let object =
        value.as_object().ok_or(r#"an object such as {"nodes": [..], "weights": [..]} is expected"#)?;
    let names = object.get("nodes").filter(|nodes| !nodes.is_null()).map(names).transpose()?;
    let weights = ["weights", "w"].into_iter().find_map(|key| Some((key, object.get(key)?)));
    let graph = match (weights, object.get("adjacency")) {
        (Some((key, weights)), _) => from_weights(numbers(weights, key)?)?,
        (None, Some(rows)) => {
            let rows = rows.as_array().ok_or("`adjacency` must be a list of rows")?;
            let mut matrix = Vec::new();
            for (at, row) in rows.iter().enumerate() {
                let row = numbers(row, &format!("row {} of adjacency", at + 1))?;
                if row.len() != rows.len() {
                    let (found, expected) = (row.len(), rows.len());
                    return Err(format!("row {} of `adjacency` has {found} numbers, not {expected}", at + 1));
                }
                matrix.extend(row);
            }
            from_adjacency(rows.len(), &matrix)?
        }
        (None, None) => {
            let keys: Vec<&str> = object.keys().map(String::as_str).collect();
            return Err(format!(
                "there is neither `weights` nor `w` nor `adjacency`; the object has {}",
                if keys.is_empty() { "no keys".into() } else { keys.join(", ") }
            ));
        }
    };
    with_names(names, graph)
}

fn names(value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or("`nodes` must be a list of names")?;
    let name = |value: &Value| match value {
        Value::String(name) => Ok(name.trim().to_string()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("`nodes` must be a list of names, but {value} is none")),
    };
    list.iter().map(name).collect()
}

fn numbers(value: &Value, what: &str) -> Result<Vec<f64>, String> {
    let list = value.as_array().ok_or_else(|| format!("`{what}` must be a list of numbers"))?;
    if list.first().is_some_and(Value::is_array) {
        return Err(format!(
            "`{what}` holds {} lists: this file has several graphs, write the one that is meant to a file of its own",
            list.len()
        ));
    }
    let number = |value: &Value| {
        value.as_f64().ok_or_else(|| format!("`{what}` must hold numbers, but {value} is none"))
    };
    list.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_that_are_read() {
        let plain = parse(r#"{"w": [1, 0, 0.5]}"#).unwrap();
        assert!(plain.numbered);
        assert_eq!(
            (plain.nodes, plain.graph.weights()),
            (["1", "2", "3"].map(String::from).to_vec(), &[1.0, 0.0, 0.5][..])
        );
        let square = parse(r#"{"nodes": ["a", 7], "adjacency": [[0, 2], [3, 0]]}"#).unwrap();
        assert_eq!(
            (square.nodes, square.graph.weights()),
            (["a", "7"].map(String::from).to_vec(), &[3.0][..])
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("[1]", "an object such as"),
            ("{", "not JSON"),
            (r#"{"zbar": [1]}"#, "the object has zbar"),
            (r#"{"weights": [1, 2]}"#, "2 weights are those of no graph"),
            (r#"{"weights": [1, "x", 2]}"#, "\"x\" is none"),
            (r#"{"weights": [1, -2, 2]}"#, "nodes 1 and 3 is -2"),
            (r#"{"w": [[1, 2, 3], [1, 2, 3]]}"#, "`w` holds 2 lists"),
            (r#"{"weights": [1], "nodes": ["a"]}"#, "1 names for 2 nodes"),
            (r#"{"adjacency": [[0, 1], [1]]}"#, "row 2 of `adjacency` has 1 numbers, not 2"),
            (r#"{"adjacency": [[1, 1], [1, 0]]}"#, "row 1 of the adjacency links a node to itself"),
            (r#"{"adjacency": [[0, 1], [-1, 0]]}"#, "nodes 1 and 2 is -1"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(expected), "{found}");
        }
    }
}
