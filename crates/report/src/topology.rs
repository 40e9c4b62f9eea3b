//! Learnt graphs side by side: what they share and what each has for itself.
//!
//! All panels use one layout, so that a node is found in the same place everywhere. Edges of a
//! panel are gathered into a few strokes by colour and weight: thousands of them stay one small
//! file.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::layout::{Link, bounds, fitted, layout, separate, strongest, unit};
use super::number::significant;
use super::palette::cluster_slot;
use super::panels::{Head, Key, MOST, classes, clipped, columns, grid, legend, plural, ranks};
use super::svg::{self, Anchor, Canvas, Width, escape, short, text_width};

/// Up to this many nodes carry their names, if there is room.
const NAMED: usize = 34;
/// Names longer than this are cut.
const NAME: f64 = 110.0;
/// Edges drawn per panel, and in all panels together.
const EDGES: usize = 3000;
const ALL_EDGES: usize = 15_000;
/// Steps of width and opacity.
const LEVELS: usize = 8;

/// Graphs over the same nodes, to be drawn beside each other.
#[derive(Debug, Clone)]
pub struct Drawing<'a> {
    /// Names of the nodes.
    pub nodes: &'a [String],
    /// Where the nodes are, y upwards; without it, or with another number of positions than nodes,
    /// the sum of all graphs is laid out.
    pub positions: Option<&'a [[f64; 2]]>,
    /// Classes of the nodes; ignored unless there is one per node.
    pub labels: Option<&'a [u32]>,
    /// The graphs.
    pub panels: Vec<Panel<'a>>,
    /// An edge is a weight above this, and above zero.
    pub threshold: f64,
}

/// One graph. Weights are the row-major upper triangle: (0,1), (0,2), .., (1,2), ..
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    /// Whose graph it is.
    pub title: String,
    /// Its weights; what is missing at the end is zero.
    pub weights: &'a [f64],
    /// The graph whose edges are common; without it edges have one neutral colour.
    pub consensus: Option<&'a [f64]>,
    /// A remark below the title.
    pub note: Option<String>,
}

/// Graphs ready to be drawn: laid out, and thinned to what a picture can show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// File stem.
    pub id: String,
    /// The question the figure answers.
    pub title: String,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Places of the nodes in the unit square, y downwards.
    pub places: Vec<[f64; 2]>,
    /// Classes of the nodes.
    pub labels: Option<Vec<u32>>,
    /// The graphs.
    pub graphs: Vec<DrawnGraph>,
    /// Graphs that are not drawn, because there are too many.
    pub left_out: usize,
}

/// The edges of one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawnGraph {
    /// Whose graph it is.
    pub title: String,
    /// A remark.
    pub note: Option<String>,
    /// Number of edges, drawn or not.
    pub edges: usize,
    /// How many of them the consensus has too; absent without a consensus.
    pub common: Option<usize>,
    /// Whether this is the consensus itself.
    pub consensus: bool,
    /// Nodes, weight, and whether the consensus has it: the heaviest edges.
    pub links: Vec<(u32, u32, f64, bool)>,
}

/// The edges of a weight vector over `count` nodes, with their place in it.
pub(super) fn edges(weights: &[f64], count: usize, threshold: f64) -> impl Iterator<Item = (usize, Link)> {
    let pairs = (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)));
    pairs
        .zip(weights)
        .enumerate()
        .filter(move |(_, (_, weight))| weight.is_finite() && **weight > threshold.max(0.0))
        .map(|(index, ((a, b), weight))| (index, (a, b, *weight)))
}

impl Drawing<'_> {
    /// Lays the graphs out and keeps what a picture can show, for a report or a file.
    #[must_use]
    pub fn topology(&self, id: &str, title: &str) -> Topology {
        let count = self.nodes.len();
        let shown = &self.panels[..self.panels.len().min(MOST)];
        let most = EDGES.min(ALL_EDGES / shown.len().max(1));
        let graphs = shown.iter().map(|panel| self.drawn(panel, most)).collect();
        Topology {
            id: id.to_owned(),
            title: title.to_owned(),
            nodes: self.nodes.to_vec(),
            places: self.places(),
            labels: self.labels.filter(|labels| labels.len() == count).map(<[u32]>::to_vec),
            graphs,
            left_out: self.panels.len() - shown.len(),
        }
    }

    fn drawn(&self, panel: &Panel<'_>, most: usize) -> DrawnGraph {
        let in_consensus = |index: usize| {
            let weight = panel.consensus.and_then(|weights| weights.get(index));
            weight.is_some_and(|weight| *weight > self.threshold.max(0.0))
        };
        let count = self.nodes.len();
        let (mut all, mut common) = (Vec::new(), std::collections::BTreeSet::new());
        for (index, (a, b, weight)) in edges(panel.weights, count, self.threshold) {
            all.push((a, b, weight));
            if in_consensus(index) {
                common.insert((a, b));
            }
        }
        let links = strongest(&all, most)
            .into_iter()
            .map(|(a, b, weight)| (a as u32, b as u32, weight, common.contains(&(a, b))))
            .collect();
        DrawnGraph {
            title: panel.title.clone(),
            note: panel.note.clone(),
            edges: all.len(),
            common: panel.consensus.map(|_| common.len()),
            consensus: panel.consensus.is_some_and(|weights| weights == panel.weights),
            links,
        }
    }

    fn places(&self) -> Vec<[f64; 2]> {
        let count = self.nodes.len();
        if let Some(given) = self.positions.filter(|given| given.len() == count) {
            return unit(&given.iter().map(|[x, y]| [*x, -y]).collect::<Vec<_>>());
        }
        let mut sum = vec![0.0; count * count.saturating_sub(1) / 2];
        for panel in &self.panels {
            // Each graph has one voice, however large its weights are.
            let own: Vec<(usize, Link)> = edges(panel.weights, count, self.threshold).collect();
            let total: f64 = own.iter().map(|(_, link)| link.2).sum();
            for (index, (_, _, weight)) in own {
                sum[index] += weight / total;
            }
        }
        let links: Vec<Link> = edges(&sum, count, 0.0).map(|(_, link)| link).collect();
        layout(count, &links)
    }
}

/// The graphs as a standalone light picture.
#[must_use]
pub fn topology_svg(drawing: &Drawing<'_>) -> String {
    drawing.topology("graphs", "").svg()
}

impl Topology {
    /// The standalone light picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let drawing = draw(self, Width::Wide);
        drawing.canvas.standalone(&drawing.title, &drawing.caption)
    }
}

/// Where things are inside every panel, in pixels from its corner.
struct Plan {
    height: f64,
    radius: f64,
    places: Vec<[f64; 2]>,
    /// Baseline and side of the names that found room.
    names: Vec<Option<(f64, f64, Anchor)>>,
}

pub(super) fn draw(topology: &Topology, width: Width) -> svg::Drawing {
    let mut canvas = Canvas::new(width.pixels(), 0.0);
    let head = legend(&mut canvas, &entries(topology), 0.0);
    let plan = plan(topology, width);
    let heads: Vec<Head<'_>> =
        topology.graphs.iter().map(|graph| Head { title: &graph.title, remarks: remarks(graph) }).collect();
    let grid = grid(&mut canvas, &heads, width, head, plan.height);
    canvas.height = grid.bottom + 2.0;
    for (graph, corner) in topology.graphs.iter().zip(&grid.corners) {
        strokes(&mut canvas, graph, &plan, *corner);
        dots(&mut canvas, topology, graph, &plan, *corner, width);
    }
    if topology.graphs.is_empty() {
        canvas.height += 40.0;
        canvas.text((canvas.width / 2.0, 24.0), Anchor::Middle, "g-small", "No graph to draw");
    }
    svg::Drawing {
        id: topology.id.clone(),
        title: topology.title.clone(),
        caption: caption(topology, &plan),
        canvas,
    }
}

fn entries(topology: &Topology) -> Vec<(Key, String)> {
    let mut entries = Vec::new();
    let any = |wanted: bool| {
        topology
            .graphs
            .iter()
            .filter(|graph| graph.common.is_some() && !graph.consensus)
            .any(|graph| graph.links.iter().any(|link| link.3 == wanted))
    };
    if any(true) {
        entries.push((Key::Stroke("g-common"), "common edge: the consensus has it too".to_owned()));
    }
    if any(false) {
        entries.push((Key::Stroke("g-own"), "own edge of the client".to_owned()));
    }
    if let Some(labels) = &topology.labels {
        entries.extend(classes(labels));
    }
    entries
}

fn remarks(graph: &DrawnGraph) -> Vec<String> {
    let counted = match graph.common.filter(|_| !graph.consensus && graph.edges > 0) {
        Some(common) if common == graph.edges => format!("{common} edge{}, all common", plural(common)),
        Some(common) => format!("{common} common + {} own edges", graph.edges - common.min(graph.edges)),
        None => format!("{} edge{}", graph.edges, plural(graph.edges)),
    };
    let mut remarks = vec![counted];
    if graph.links.len() < graph.edges {
        remarks.push(format!("the heaviest {} are drawn", graph.links.len()));
    }
    remarks.extend(graph.note.clone().filter(|note| !note.is_empty()));
    remarks
}

fn caption(topology: &Topology, plan: &Plan) -> String {
    let (graphs, nodes) = (topology.graphs.len(), topology.nodes.len());
    let mut text = format!(
        "{graphs} graph{} over the same {nodes} node{}, each node in one place throughout. The heavier an \
         edge, the wider and stronger its line, relative to the heaviest of its graph.",
        plural(graphs),
        plural(nodes)
    );
    if plan.names.iter().any(Option::is_none) {
        text.push_str(" Names show under the pointer.");
    }
    if topology.left_out > 0 {
        let _ = write!(
            text,
            " {} more graph{} not drawn.",
            topology.left_out,
            match topology.left_out {
                1 => " is",
                _ => "s are",
            }
        );
    }
    text
}

fn plan(topology: &Topology, width: Width) -> Plan {
    let (_, across) = columns(topology.graphs.len(), width);
    let count = topology.nodes.len();
    let [x, y] = bounds(&topology.places);
    let shape = (y.1 - y.0) / (x.1 - x.0).max(1e-9);
    let highest = if topology.graphs.len() == 1 { 480.0 } else { across };
    let least = if count <= 2 { 0.3 } else { 0.55 };
    let height = (across * if shape.is_finite() { shape.clamp(least, 1.0) } else { least }).min(highest);
    let radius = (0.14 * (across * height / count.max(1) as f64).sqrt()).clamp(1.3, 5.5);
    let margin = if count <= NAMED {
        // Room for a name below the lowest node and half a name beside the outermost.
        let longest = topology.nodes.iter().map(|name| text_width(name, 11.0)).fold(0.0, f64::max);
        let few = if count <= 3 { 0.2 * across } else { 0.0 };
        (radius + (0.5 * longest).min(0.1 * across).max(few).max(3.0), radius + 14.0)
    } else {
        (radius + 3.0, radius + 3.0)
    };
    let mut places = topology.places.clone();
    places.resize(count, [0.5, 0.5]);
    let mut places = fitted(&places, margin, (across, height), 1.25);
    separate(&mut places, 2.0 * radius + 2.0, if count <= 400 { 200 } else { 20 });
    let places = fitted(&places, margin, (across, height), 1.25);
    let names = names(&topology.nodes, &places, radius, (across, height));
    Plan { height, radius, places, names }
}

/// A box: left, top, right, bottom.
type Area = [f64; 4];

fn meet(a: Area, b: Area) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// Finds each name a place beside its node that covers neither a node nor another name. If most
/// find none, nobody gets one: a few names among many look like a choice.
fn names(
    nodes: &[String],
    places: &[[f64; 2]],
    radius: f64,
    (across, height): (f64, f64),
) -> Vec<Option<(f64, f64, Anchor)>> {
    let none = vec![None; nodes.len()];
    if nodes.len() > NAMED {
        return none;
    }
    let dots: Vec<Area> =
        places.iter().map(|[x, y]| [x - radius, y - radius, x + radius, y + radius]).collect();
    let mut taken: Vec<Area> = Vec::new();
    let mut found = none.clone();
    for (index, [x, y]) in places.iter().enumerate() {
        let name = clipped(&nodes[index], NAME, 11.0);
        let wide = text_width(&name, 11.0);
        let off = radius + 3.0;
        let places = [
            (*x, y + off + 8.0, Anchor::Middle, -0.5),
            (*x, y - off, Anchor::Middle, -0.5),
            (x + off, y + 4.0, Anchor::Start, 0.0),
            (x - off, y + 4.0, Anchor::End, -1.0),
            (x + 0.7 * off, y + 0.7 * off + 6.0, Anchor::Start, 0.0),
            (x - 0.7 * off, y + 0.7 * off + 6.0, Anchor::End, -1.0),
            (x + 0.7 * off, y - 0.7 * off, Anchor::Start, 0.0),
            (x - 0.7 * off, y - 0.7 * off, Anchor::End, -1.0),
        ];
        let free = places.into_iter().find_map(|(at, baseline, anchor, shift)| {
            let left = at + shift * wide;
            let area = [left, baseline - 8.5, left + wide, baseline + 2.5];
            let inside =
                area[0] >= -6.0 && area[2] <= across + 6.0 && area[1] >= 0.0 && area[3] <= height + 4.0;
            let clear = !taken.iter().chain(&dots).any(|other| meet(area, *other));
            (inside && clear).then_some(((at, baseline, anchor), area))
        });
        if let Some((place, area)) = free {
            taken.push(area);
            found[index] = Some(place);
        }
    }
    if taken.len() * 10 >= nodes.len() * 8 { found } else { none }
}

/// Edges by level of weight, light ones first, own above common of the same level.
fn strokes(canvas: &mut Canvas, graph: &DrawnGraph, plan: &Plan, corner: (f64, f64)) {
    let heaviest = graph.links.iter().map(|link| link.2).fold(0.0, f64::max);
    let mut paths = vec![[String::new(), String::new()]; LEVELS];
    for &(a, b, weight, common) in &graph.links {
        let (Some(from), Some(to)) = (plan.places.get(a as usize), plan.places.get(b as usize)) else {
            continue;
        };
        let level = ((weight / heaviest * LEVELS as f64).ceil() as usize).clamp(1, LEVELS) - 1;
        let data = &mut paths[level][usize::from(!common)];
        let at = |place: &[f64; 2]| format!("{} {}", short(corner.0 + place[0]), short(corner.1 + place[1]));
        let _ = write!(data, "M{}L{}", at(from), at(to));
    }
    // Many edges on little room: thinner and fainter, or they are one dark patch.
    let crowd = (120.0 / graph.links.len().max(1) as f64).powf(0.25).clamp(0.35, 1.0);
    let widest = (0.55 * plan.radius).clamp(1.2, 3.4) * crowd;
    for (level, [common, own]) in paths.iter().enumerate() {
        let share = (level + 1) as f64 / LEVELS as f64;
        let line = (0.25 + 0.75 * share) * widest;
        let strength = (0.3 + 0.65 * share) * (0.5 + 0.5 * crowd);
        let classes = if graph.common.is_some() { ["g-common", "g-own"] } else { ["g-plain"; 2] };
        for (data, class) in [common, own].into_iter().zip(classes) {
            if !data.is_empty() {
                canvas.push(format_args!(
                    r#"<path class="{class}" stroke-width="{line:.2}" stroke-opacity="{strength:.2}" d="{data}"/>"#
                ));
            }
        }
    }
}

fn dots(
    canvas: &mut Canvas,
    topology: &Topology,
    graph: &DrawnGraph,
    plan: &Plan,
    corner: (f64, f64),
    width: Width,
) {
    let classes = topology.labels.as_ref().map(|labels| ranks(labels).0);
    let mut degrees = vec![(0_usize, 0.0); topology.nodes.len()];
    for &(a, b, weight, _) in &graph.links {
        for node in [a, b] {
            if let Some((edges, strength)) = degrees.get_mut(node as usize) {
                *edges += 1;
                *strength += weight;
            }
        }
    }
    for (index, (name, place)) in topology.nodes.iter().zip(&plan.places).enumerate() {
        let (x, y) = (short(corner.0 + place[0]), short(corner.1 + place[1]));
        let class = match classes.as_ref().and_then(|ranks| ranks.get(index)) {
            Some(rank) => format!("g-k{} g-node", cluster_slot(*rank)),
            None => "g-point".to_owned(),
        };
        let radius = short(plan.radius);
        // Phones have no pointer to hover with.
        let title = match (width, degrees[index]) {
            (Width::Narrow, _) => String::new(),
            (Width::Wide, (edges, strength)) => format!(
                "<title>{}: {edges} edge{}, together {}</title>",
                escape(name),
                plural(edges),
                significant(strength, 3)
            ),
        };
        canvas
            .push(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}">{title}</circle>"#));
    }
    for (name, place) in topology.nodes.iter().zip(&plan.names) {
        if let Some((x, y, anchor)) = place {
            let name = clipped(name, NAME, 11.0);
            canvas.text((corner.0 + x, corner.1 + y), *anchor, "g-name", &name);
        }
    }
}
