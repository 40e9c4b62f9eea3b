//! The report of a run: plain data in, one offline HTML page and a set of figures out.
//!
//! Nothing here reads a file, a clock or a random number, so the same data give the same bytes.
//! Every figure is drawn once as SVG; the page colours it by CSS variables (light and dark), the
//! standalone file by literal colours, and [`png`] rasterises the standalone file with a bundled
//! font.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod bars;
mod chart;
mod distribution;
mod heat;
mod hover;
mod html;
mod kin;
mod label;
mod layout;
mod network;
pub mod number;
mod palette;
mod panels;
mod raster;
mod scale;
mod stacks;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod topology;
#[cfg(test)]
mod worlds;

pub use fedkin_numeric::statistics::Estimate;
use serde::{Deserialize, Serialize};

pub use bars::Bars;
pub use chart::EMPHASISED;
pub use heat::{HeatMap, HeatMaps, HeatScale, heat_svg};
pub use kin::{KinFound, KinGraph};
pub use raster::png;
pub use stacks::Stacks;
pub use table::text_table;
pub use topology::{Drawing, DrawnGraph, Panel, Topology, topology_svg};

/// Everything the page shows. Empty parts are left out of the page.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// Name of the run.
    pub title: String,
    /// One paragraph: what was run and what came out.
    pub lead: String,
    /// Name and value: seed, version, rounds, repeats, clients, servers.
    pub facts: Vec<(String, String)>,
    /// What the run was meant to show, and whether it did.
    pub claims: Vec<Claim>,
    /// The methods compared.
    pub table: Option<Table>,
    /// The same client by client.
    #[serde(default)]
    pub by_client: Vec<Table>,
    /// Settings that were tried.
    #[serde(default)]
    pub tuning: Option<Table>,
    /// Curves.
    pub charts: Vec<Chart>,
    /// Spread over clients.
    pub distributions: Vec<Distribution>,
    /// Records of each client by label.
    #[serde(default)]
    pub labels: Option<Stacks>,
    /// Servers, their links and whom they serve.
    pub graph: Option<ServerGraph>,
    /// Graphs that were learnt.
    #[serde(default)]
    pub pictures: Vec<Picture>,
    /// What was spent.
    pub privacy: Option<Privacy>,
    /// Remarks, one paragraph each.
    pub notes: Vec<String>,
    /// The resolved configuration as TOML.
    pub config: String,
    /// Methods and their colours, by number. Where two share one, the earlier one keeps it.
    #[serde(default)]
    pub colours: Vec<(String, usize)>,
}

/// A statement, its verdict and what the verdict rests on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claim {
    /// The statement.
    pub text: String,
    /// What came out.
    pub verdict: Verdict,
    /// The numbers behind the verdict.
    pub evidence: String,
}

/// What a run says about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// True here, by more than the error.
    Holds,
    /// True here, but not by more than the error, or not in every setting.
    Fragile,
    /// Not true here.
    Fails,
    /// This run cannot tell.
    Untested,
}

/// Methods in rows, measures in columns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Table {
    /// What the table compares.
    pub caption: String,
    /// The measures.
    pub columns: Vec<Column>,
    /// The methods; baselines are shown first whatever their place here.
    pub rows: Vec<TableRow>,
}

/// A measure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its unit, empty if it has none.
    pub unit: String,
    /// Which end is good; without it nothing is marked as best.
    pub better: Option<Better>,
}

/// Which end of a measure is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Errors, traffic, time.
    Lower,
    /// Accuracies.
    Higher,
}

/// A method and its measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TableRow {
    /// The method's name.
    pub label: String,
    /// Whether the others are compared with this one.
    pub baseline: bool,
    /// One per column; `None` where the measure does not exist.
    pub cells: Vec<Option<Estimate>>,
}

/// Lines over a common axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chart {
    /// File stem.
    pub id: String,
    /// The question the figure answers.
    pub title: String,
    /// Name of the horizontal axis, with its unit.
    pub x_label: String,
    /// Name of the vertical axis, with its unit.
    pub y_label: String,
    /// Horizontal scale.
    pub x_scale: Scale,
    /// Vertical scale.
    pub y_scale: Scale,
    /// Shaded ranges behind the lines.
    #[serde(default)]
    pub ranges: Vec<Range>,
    /// The lines; the first six are drawn in colour, the rest in grey.
    pub series: Vec<Series>,
    /// What to see.
    pub caption: String,
}

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences, equal lengths.
    Linear,
    /// Equal ratios, equal lengths; values that are not positive are left out.
    Log,
}

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the figure.
    pub label: String,
    /// The key that fixes its colour across all figures.
    pub method: String,
    /// Its points, in any order.
    pub points: Vec<Point>,
    /// Dashed, for references and bounds.
    pub dashed: bool,
    /// Thin and grey, for what stands beside the message.
    #[serde(default)]
    pub quiet: bool,
}

/// A shaded range, such as that of all clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Range {
    /// The key of the line whose colour it has.
    pub method: String,
    /// Where, from, to.
    pub points: Vec<(f64, f64, f64)>,
}

/// One point of a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The mean over repeats.
    pub mean: f64,
    /// Its standard error, if there were repeats.
    pub stderr: Option<f64>,
}

/// One value per client, for several methods.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Distribution {
    /// File stem.
    pub id: String,
    /// The question the figure answers.
    pub title: String,
    /// Name of the measure, with its unit.
    pub x_label: String,
    /// Label, method key, one value per client.
    pub groups: Vec<(String, String, Vec<f64>)>,
}

/// The servers and their links.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerGraph {
    /// The servers.
    pub servers: Vec<ServerNode>,
    /// Links, by index into `servers`.
    pub edges: Vec<(usize, usize)>,
    /// Names of the clusters.
    pub clusters: Vec<String>,
    /// Where to draw the servers; laid out by their links if absent.
    pub positions: Option<Vec<(f64, f64)>>,
}

/// One server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerNode {
    /// Its name.
    pub name: String,
    /// Clients per cluster.
    pub clusters: Vec<u32>,
}

/// What was spent, and what the figures rest on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Privacy {
    /// The mechanism, with its parameters.
    pub mechanism: String,
    /// `enforced`, or `assumed, not enforced`; anything but `enforced` raises a warning.
    pub bound: String,
    /// The delta at which epsilon is stated.
    pub delta: f64,
    /// Epsilon of the client that spent most.
    pub largest_epsilon: f64,
    /// Mean epsilon over clients.
    pub mean_epsilon: f64,
    /// zCDP of the client that spent most.
    pub largest_zcdp: f64,
    /// Mean zCDP over clients.
    pub mean_zcdp: f64,
    /// Number of releases, all clients together.
    pub releases: u64,
    /// Why the run protects nobody by itself, empty where nothing is known against it.
    #[serde(default)]
    pub simulation: String,
    /// Further names and values.
    pub rows: Vec<(String, String)>,
}

/// A standalone figure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    /// File stem: lower-case letters, digits and dashes, different for each figure of a report.
    pub id: String,
    /// The file's text.
    pub svg: String,
}

/// A picture of what was learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Picture {
    /// Graphs over the same nodes.
    Graphs(Topology),
    /// The same as matrices.
    Heat(HeatMaps),
    /// One named value each.
    Bars(Bars),
    /// Clients and their kin.
    Kin(KinGraph),
}

impl Report {
    /// The page: one file, no network, light and dark, readable without scripts.
    #[must_use]
    pub fn html(&self) -> String {
        html::page(self, &self.pictures)
    }

    /// Every figure of the page as a standalone light SVG, in page order.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        html::drawings(self, &self.pictures, svg::Width::Wide)
            .into_iter()
            .map(|drawing| Figure {
                svg: drawing.canvas.standalone(&drawing.title, &drawing.caption),
                id: drawing.id,
            })
            .collect()
    }
}
