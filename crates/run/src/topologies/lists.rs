//! Edge lists: CSV with a header, and plain lines `from to weight` with or without the sections of Pajek.

use super::collect::{Collector, fits};
use super::{Named, refuse, whole};
use crate::Error;
use crate::artifacts::graphs::field;
use fedkin_data::DataError;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// The edges by name; a node without an edge stands with weight 0 beside another. Where nodes would not appear in
/// their order, a chain of weight 0 comes first: rows of other files belong to them by place.
pub(super) fn csv_text(named: &Named) -> String {
    let mut text = String::from("a,b,weight\n");
    let name = |place: usize| field(&named.nodes[place]);
    let mut seen = 0;
    let in_order = named.graph.edges(0.0).all(|(i, j, _)| {
        let follows = i <= seen && j <= seen.max(i + 1);
        seen = seen.max(j + 1);
        follows
    });
    if !in_order {
        for place in 1..named.nodes.len() {
            let _ = writeln!(text, "{},{},0", name(place - 1), name(place));
        }
    }
    for (i, j, weight) in named.graph.edges(0.0) {
        let _ = writeln!(text, "{},{},{weight:?}", name(i), name(j));
    }
    for (place, count) in named.graph.neighbours(0.0).into_iter().enumerate() {
        if count == 0 {
            let other = usize::from(place == 0).min(named.nodes.len() - 1);
            let _ = writeln!(text, "{},{},0", name(place), name(other));
        }
    }
    text
}

pub(super) fn read_csv(path: &Path) -> Result<Named, Error> {
    let table = fedkin_data::csv::read(path, &|_| true)?;
    if !(2..=3).contains(&table.columns.len()) {
        let found = table.columns.len();
        return Err(refuse(
            path,
            format!("an edge list has the columns a,b,weight or a,b; this file has {found}"),
        ));
    }
    if let Some(column) = table.columns.get(2).filter(|column| column.name.parse::<f64>().is_ok()) {
        let message =
            format!("the first line is a header, such as a,b,weight, but it ends in {:?}", column.name);
        return Err(refuse(path, message));
    }
    let mut collector = Collector::default();
    for row in 0..table.rows {
        let wrong = |message: String| Error::Data(DataError::Record { place: table.place(row), message });
        let cell = |column: usize| table.columns[column].word(row).unwrap_or_default().trim();
        let (a, b) = (cell(0), cell(1));
        if a.is_empty() || b.is_empty() {
            return Err(wrong("an edge needs the names of two nodes".into()));
        }
        let weight = match table.columns.get(2) {
            None => 1.0,
            Some(_) => number(cell(2)).map_err(&wrong)?,
        };
        let (a, b) = (collector.node(a), collector.node(b));
        collector.edge(a, b, weight).map_err(wrong)?;
    }
    collector.finish(true).map_err(|message| refuse(path, message))
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("the weight {text:?} is not a number"))
}

pub(super) fn read_text(path: &Path) -> Result<Named, Error> {
    parse(&whole(path)?).map_err(|message| refuse(path, message))
}

/// What the lines of a section are.
#[derive(PartialEq)]
enum Section {
    Nodes,
    Edges,
    Other,
}

fn parse(text: &str) -> Result<Named, String> {
    let mut section = Section::Edges;
    let mut listed: Option<Vec<String>> = None;
    let mut lines: Vec<(usize, &str, &str, f64)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (at, line) = (at + 1, line.trim());
        if line.is_empty() || line.starts_with(['%', '#']) {
            continue;
        }
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(name) = first.strip_prefix('*') {
            section = match name.to_lowercase().as_str() {
                "vertices" => {
                    let count = words.next().and_then(|word| word.parse().ok());
                    let count = count.ok_or_else(|| format!("line {at}: *Vertices needs their number"))?;
                    fits(count).map_err(|message| format!("line {at}: {message}"))?;
                    listed = Some((1..=count).map(|place: usize| place.to_string()).collect());
                    Section::Nodes
                }
                "arcs" | "edges" => Section::Edges,
                "arcslist" | "edgeslist" | "matrix" => {
                    return Err(format!(
                        "line {at}: *{name} is not read: write *Edges with lines `from to weight`"
                    ));
                }
                _ => Section::Other,
            };
            continue;
        }
        match section {
            Section::Other => {}
            Section::Nodes => {
                let names = listed.as_mut().and_then(|names| {
                    let place = first.parse::<usize>().ok()?.checked_sub(1)?;
                    names.get_mut(place)
                });
                let name = names.ok_or_else(|| format!("line {at}: there is no vertex {first:?}"))?;
                if let Some(called) = label(line[first.len()..].trim()) {
                    *name = called.to_string();
                }
            }
            Section::Edges => {
                let to = words.next();
                let to =
                    to.ok_or_else(|| format!("line {at}: `from to weight` is expected, found {line:?}"))?;
                let weight = match words.next() {
                    None => 1.0,
                    Some(text) => number(text).map_err(|message| format!("line {at}: {message}"))?,
                };
                lines.push((at, first, to, weight));
            }
        }
    }
    if lines.is_empty() && listed.is_none() {
        return Err("there is no edge in the file: lines `from to weight` are expected".into());
    }
    let distinct: BTreeSet<&String> = listed.iter().flatten().collect();
    if listed.as_ref().is_some_and(|names| names.len() != distinct.len()) {
        return Err("two vertices have the same label: give every one its own".into());
    }
    collect(listed.as_deref(), &lines)
}

/// The label of a vertex, in quotes or a word.
fn label(rest: &str) -> Option<&str> {
    let found = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split_whitespace().next(),
    };
    found.map(str::trim).filter(|label| !label.is_empty())
}

fn collect(listed: Option<&[String]>, lines: &[(usize, &str, &str, f64)]) -> Result<Named, String> {
    let mut collector = Collector::default();
    let numbers = lines.iter().flat_map(|&(_, from, to, _)| [from, to]).map(str::parse::<usize>);
    let most = numbers.clone().try_fold(0, |most, number| number.map(|number| most.max(number))).ok();
    let least = numbers.filter_map(Result::ok).min().unwrap_or(1).min(1);
    // Numbered nodes are all there, also those without an edge.
    let places = listed.map(<[String]>::to_vec).or_else(|| {
        let most = most.filter(|&most| fits(most).is_ok())?;
        Some((least..=most).map(|number| number.to_string()).collect())
    });
    for name in places.iter().flatten() {
        collector.node(name);
    }
    for &(at, from, to, weight) in lines {
        let mut place = |name: &str| match listed {
            None => Ok(collector.node(name)),
            Some(names) => name
                .parse::<usize>()
                .ok()
                .and_then(|number| number.checked_sub(1))
                .filter(|&place| place < names.len())
                .ok_or_else(|| {
                    format!("line {at}: there is no vertex {name:?}: they are numbered 1 to {}", names.len())
                }),
        };
        let (from, to) = (place(from)?, place(to)?);
        collector.edge(from, to, weight).map_err(|message| format!("line {at}: {message}"))?;
    }
    collector.finish(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_lines_of_numbered_nodes() {
        let named = parse("1 2 1\r\n2 1 3\r\n\r\n% a remark\r\n5 2\r\n").unwrap();
        assert_eq!(named.nodes, ["1", "2", "3", "4", "5"]);
        assert_eq!(named.graph.edges(0.0).collect::<Vec<_>>(), [(0, 1, 3.0), (1, 4, 1.0)]);
        assert_eq!(parse("0 1 1\n").unwrap().nodes, ["0", "1"]);
        assert_eq!(parse("x y 1\nz x 1").unwrap().nodes, ["x", "y", "z"]);
    }

    #[test]
    fn the_sections_of_pajek() {
        let text = "*Vertices 3\n1 \"Ann B\" 0.1 0.2\n3 Cy\n*Arcs\n1 3 2\n*Edges\n3 1 1\n*Partition x\nfoo\n";
        let named = parse(text).unwrap();
        assert_eq!(named.nodes, ["Ann B", "2", "Cy"]);
        assert_eq!(named.graph.weights(), [0.0, 2.0, 0.0]);
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, expected) in [
            ("", "there is no edge"),
            ("1 2 1\n3\n", "line 2: `from to weight` is expected"),
            ("1 2 x\n", "line 1: the weight \"x\""),
            ("1 2 -1\n", "line 1: the weight of \"1\" and \"2\" is -1"),
            ("1 2 inf\n", "is inf"),
            ("1 1 1\n", "linked to itself"),
            ("*Vertices\n", "line 1: *Vertices needs"),
            ("*Vertices 99999999999\n", "at most 10000"),
            ("*Vertices 2\n9 x\n", "line 2: there is no vertex \"9\""),
            ("*Vertices 2\n1 2\n*Edges\n1 2 1\n", "the same label"),
            ("*Vertices 2\n*Edges\n1 3 1\n", "line 3: there is no vertex \"3\": they are numbered 1 to 2"),
            ("*Matrix\n0 1\n", "*Matrix is not read"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(expected), "{text:?}: {found}");
        }
    }

    #[test]
    fn csv_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edges.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_csv(&path)
        };
        let named = read("from,to\n10,9\n9,100\n").unwrap();
        assert_eq!(named.nodes, ["9", "10", "100"]);
        assert_eq!(named.graph.weights(), [1.0, 1.0, 0.0]);
        let named = read("a,b,weight\nx,y,2\ny,x,1\nz,x,0\n").unwrap();
        assert_eq!((named.nodes.len(), named.graph.weights()), (3, &[2.0, 0.0, 0.0][..]));
        for (text, expected) in [
            ("a,b,weight\nx,,1\n", "edges.csv:2: an edge needs"),
            ("a,b,weight\nx,y,1\n\nx,z,heavy\n", "edges.csv:4: the weight \"heavy\""),
            ("a,b,weight\nx,y,\n", "edges.csv:2: the weight \"\""),
            ("a,b,c,d\n1,2,3,4\n", "this file has 4"),
            ("x,y,1\nx,z,1\n", "the first line is a header"),
            ("a,b,weight\nx,x,1\n", "edges.csv:2: node \"x\" is linked to itself"),
        ] {
            let found = read(text).unwrap_err().to_string();
            assert!(found.contains(expected), "{found}");
        }
    }
}
