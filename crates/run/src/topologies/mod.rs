//! Weighted graphs with names for their nodes, as files that other tools read and write.
//!
//! | ending | what it holds | read | written |
//! |---|---|---|---|
//! | `.graphml` | nodes with `name`, edges with `weight` | yes | yes |
//! | `.npz` | `weights` (upper triangle row by row) or `adjacency`, and `nodes` | yes | yes, `weights` and `nodes` |
//! | `.json` | `{"nodes": [..], "weights": [..]}`; `w` for `weights`, or `adjacency` | yes | yes |
//! | `.csv` | an edge list with a header: `a,b,weight` | yes | yes |
//! | `.txt`, `.net`, `.dat`, `.edges` | lines `from to weight`, with or without the sections of Pajek | yes | no |
//!
//! Graphs are undirected: of two directions, and of an edge that is listed twice, the larger weight counts. An edge
//! without a weight has weight 1. Nodes without an edge stand in a CSV file as edges of weight 0.

mod arrays;
mod collect;
mod graphml;
mod json;
mod lists;
mod matching;
mod summary;

pub use matching::{Labels, labels, matched};
pub use summary::{Community, Degrees, Divided, Found, Piece, Spectrum, Strong, Summary};

use crate::Error;
use crate::artifacts::atomic;
use fedkin_data::DataError;
use fedkin_graph::Weighted;
use fedkin_settings::suggest;
use std::collections::BTreeSet;
use std::path::Path;

/// More nodes than this have more pairs than a machine wants to hold: 50 million weights.
const MOST_NODES: usize = 10_000;
/// The endings that are read.
const ENDINGS: [&str; 8] = ["graphml", "npz", "json", "csv", "txt", "net", "dat", "edges"];

/// A graph and what its nodes are called.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// One name per node, all different.
    pub nodes: Vec<String>,
    /// The weights.
    pub graph: Weighted,
    /// The file had no names: nodes are called after their places, 1, 2, .., and match others by place.
    pub numbered: bool,
}

impl Named {
    /// A graph with names. The error says what is wrong with them.
    pub fn new(nodes: Vec<String>, graph: Weighted) -> Result<Self, String> {
        if nodes.len() != graph.nodes() {
            return Err(format!("there are {} names for {} nodes", nodes.len(), graph.nodes()));
        }
        let mut seen = BTreeSet::new();
        for name in &nodes {
            if name.is_empty() {
                return Err("a node has no name: give every node one".into());
            }
            if !seen.insert(name) {
                return Err(format!("two nodes are called {name:?}: give every node a name of its own"));
            }
        }
        Ok(Self { nodes, graph, numbered: false })
    }

    /// A graph whose nodes have no names.
    pub fn numbered(graph: Weighted) -> Self {
        let nodes = (1..=graph.nodes()).map(|place| place.to_string()).collect();
        Self { nodes, graph, numbered: true }
    }
}

/// Reads a graph; the ending of the name says how.
pub fn read(path: &Path) -> Result<Named, Error> {
    let named = match ending(path).as_str() {
        "graphml" => graphml::read(path)?,
        "npz" => arrays::read(path)?,
        "json" => json::read(path)?,
        "csv" => lists::read_csv(path)?,
        "txt" | "net" | "dat" | "edges" => lists::read_text(path)?,
        other => return Err(unknown(path, other, "read", &ENDINGS)),
    };
    if named.nodes.len() < 2 {
        let found = if named.nodes.is_empty() { "no node" } else { "one node" };
        return Err(refuse(path, format!("the graph has {found}: at least two are needed")));
    }
    Ok(named)
}

/// Writes a graph; the ending of the name says how. The same graph gives the same bytes.
pub fn write(path: &Path, named: &Named) -> Result<(), Error> {
    let bytes = match ending(path).as_str() {
        "graphml" => graphml::text(named).into_bytes(),
        "npz" => arrays::bytes(named).map_err(|message| refuse(path, message))?,
        "json" => json::text(named).into_bytes(),
        "csv" => lists::csv_text(named).into_bytes(),
        other => return Err(unknown(path, other, "written", &ENDINGS[..4])),
    };
    Ok(atomic::write(path, &bytes)?)
}

fn ending(path: &Path) -> String {
    path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn unknown(path: &Path, ending: &str, done: &str, known: &[&str]) -> Error {
    let what = if ending.is_empty() {
        "the name has no ending".to_string()
    } else {
        format!("files that end in .{ending} are not {done}{}", suggest(ending, known.iter().copied()))
    };
    refuse(path, format!("{what}; known are .{}", known.join(", .")))
}

/// An error about a file as a whole.
fn refuse(path: &Path, message: impl Into<String>) -> Error {
    Error::Data(DataError::File { file: path.to_path_buf(), message: message.into() })
}

/// The whole file as text.
fn whole(path: &Path) -> Result<String, Error> {
    let bytes = std::fs::read(path)
        .map_err(|source| Error::Data(DataError::Io { file: path.to_path_buf(), source }))?;
    String::from_utf8(bytes).map_err(|_| refuse(path, "the file is not UTF-8 text: save it as UTF-8"))
}

/// Names of files stay well below what file systems allow.
const MOST_LETTERS: usize = 80;

/// Names of clients as names of files: letters, digits, dots, dashes; no two alike, whatever the case.
pub fn stems(names: &[&str]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut stems = Vec::with_capacity(names.len());
    for name in names {
        let safe = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let text: String = name.chars().take(MOST_LETTERS / 2).map(safe).collect();
        let text = text.trim_start_matches('.');
        let text = if text.is_empty() { "client" } else { text };
        let mut stem = text.to_string();
        let mut number = 2;
        while !seen.insert(stem.to_lowercase()) {
            stem = format!("{text}-{number}");
            number += 1;
        }
        stems.push(stem);
    }
    stems
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn sample() -> Named {
        let nodes = ["ward <1>", "b, \"c\"", "Ä & co", "alone", "e"].map(String::from).to_vec();
        // Node 3 has no edge.
        let weights = vec![1.0, 0.0, 0.0, 1e-9, 0.1 + 0.2, 0.0, 2.5, 0.0, 1.0 / 3.0, 0.0];
        Named::new(nodes, Weighted::new(5, weights).unwrap()).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["g.graphml", "g.npz", "g.json", "g.csv", "deep/G.GraphML"] {
            let path = folder.path().join(name);
            write(&path, &sample()).unwrap();
            let again = read(&path).unwrap();
            assert_eq!(matched(&sample(), "a", &again, "b").unwrap(), sample().graph, "{name}");
            assert!(!again.numbered);
            assert_eq!(again, sample(), "{name}");
            let first = std::fs::read(&path).unwrap();
            write(&path, &sample()).unwrap();
            assert_eq!(first, std::fs::read(&path).unwrap());
        }
    }

    #[test]
    fn names_are_checked() {
        let graph = || Weighted::new(2, vec![1.0]).unwrap();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(Named::new(names(&["a"]), graph()).unwrap_err().contains("1 names for 2 nodes"));
        assert!(Named::new(names(&["a", "a"]), graph()).unwrap_err().contains("\"a\""));
        assert!(Named::new(names(&["a", ""]), graph()).unwrap_err().contains("no name"));
        assert_eq!(Named::numbered(graph()).nodes, ["1", "2"]);
    }

    #[test]
    fn endings_are_known_or_suggested() {
        let text = |path: &str| read(Path::new(path)).unwrap_err().to_string();
        assert!(text("g.graphm").contains("did you mean") && text("g.graphm").contains("graphml"));
        assert!(text("g").contains("no ending"));
        assert!(text("nowhere.csv").contains("cannot read nowhere.csv"));
        assert!(
            write(Path::new("g.txt"), &sample())
                .unwrap_err()
                .to_string()
                .contains(".graphml, .npz, .json, .csv")
        );
    }
}
