//! `fedkin graph inspect`.

use super::{Inspect, names};
use crate::failure::Failure;
use crate::ledger::aligned;
use crate::output::{self, DOUBT, Facts, count, paint};
use fedkin::rooms::report::number::plain;
use fedkin::rooms::run::topologies::{Summary, read};
use serde::Serialize;

/// So many eigenvalues, pieces and names are shown; the JSON has all.
const SHOWN: usize = 8;

#[derive(Serialize)]
struct InspectedJson<'a> {
    graphs: &'a [Summary],
}

/// Shows one graph in full, or several side by side.
pub(crate) fn inspect(args: &Inspect) -> Result<(), Failure> {
    let mut graphs = Vec::with_capacity(args.files.len());
    for file in &args.files {
        graphs.push(Summary::of(&file.display().to_string(), &read(file)?, args.threshold));
    }
    if args.json {
        return output::json(&InspectedJson { graphs: &graphs });
    }
    match graphs.as_slice() {
        [graph] => output::say(&one(graph)),
        graphs => output::say(&table(graphs)),
    }
}

fn one(graph: &Summary) -> String {
    let mut facts = Facts::default();
    facts.add("graph", &graph.file).add("nodes", graph.nodes.to_string());
    let above = if graph.threshold > 0.0 { format!(" above {}", graph.threshold) } else { String::new() };
    facts.add("edges", format!("{}{above}, density {}", graph.edges, plain(graph.density)));
    let degrees = graph.degrees;
    facts.add(
        "degrees",
        format!("{} to {}, mean {}", plain(degrees.min), plain(degrees.max), plain(degrees.mean)),
    );
    facts.list(
        "strongest",
        graph.strongest.iter().map(|strong| {
            format!("{}: {} over {}", strong.node, plain(strong.degree), count(strong.edges, "edge"))
        }),
    );
    let pieces = &graph.components;
    match pieces.as_slice() {
        [_] => facts.add("components", "1: the graph is connected"),
        _ => facts
            .add("components", format!("{}: {}", pieces.len(), paint(DOUBT, "the graph is not connected"))),
    };
    if pieces.len() > 1 {
        facts.list(
            "",
            pieces
                .iter()
                .take(SHOWN)
                .map(|piece| format!("{}: {}", count(piece.size, "node"), names(&piece.nodes, SHOWN))),
        );
        if pieces.len() > SHOWN {
            facts.add("", format!("and {} more: --json has all", pieces.len() - SHOWN));
        }
    }
    match &graph.spectrum {
        None => facts.add("spectrum", "left out: the graph is too large for it, or its weights are"),
        Some(spectrum) => {
            let first: Vec<String> = spectrum.values.iter().take(SHOWN).map(|value| plain(*value)).collect();
            let more = if spectrum.values.len() > SHOWN { ", .." } else { "" };
            facts
                .add("connectivity", format!("{} (algebraic)", plain(spectrum.algebraic_connectivity)))
                .add("spectrum", format!("{}{more}; largest {}", first.join(", "), plain(spectrum.largest)))
        }
    };
    facts.text()
}

fn table(graphs: &[Summary]) -> String {
    let head = [
        "graph",
        "nodes",
        "edges",
        "density",
        "least",
        "mean",
        "most",
        "components",
        "connectivity",
        "largest",
    ];
    let rows: Vec<Vec<String>> = graphs
        .iter()
        .map(|graph| {
            let value = |pick: fn(&fedkin::rooms::run::topologies::Spectrum) -> f64| {
                graph.spectrum.as_ref().map_or_else(String::new, |spectrum| plain(pick(spectrum)))
            };
            vec![
                graph.file.clone(),
                graph.nodes.to_string(),
                graph.edges.to_string(),
                plain(graph.density),
                plain(graph.degrees.min),
                plain(graph.degrees.mean),
                plain(graph.degrees.max),
                graph.components.len().to_string(),
                value(|spectrum| spectrum.algebraic_connectivity),
                value(|spectrum| spectrum.largest),
            ]
        })
        .collect();
    let mut text = aligned(&head, &rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    text.push_str("\nleast, mean, most: degrees; connectivity, largest: eigenvalues of the Laplacian\n");
    text
}
