//! Adjacency matrices as heat maps, one colour scale for all or one for each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::number::significant;
use super::palette::{HEAT_COLOURS, cluster_slot};
use super::panels::{Head, MOST, classes, clipped, columns, grid, legend, plural, ranks};
use super::svg::{self, Anchor, Canvas, Width, escape, short, text_width};
use super::topology::{Drawing, edges};

/// More cells than this each way could not be told apart; several nodes then share one.
const CELLS: usize = 120;
/// Up to this many nodes a cell can be pointed at.
const POINTED: usize = 60;
/// Cells that can be pointed at, in all maps together: each is an element of the page.
const ELEMENTS: usize = 9000;
/// The coloured strip that shows the class of a row.
const STRIP: f64 = 8.0;
/// Rows this high can carry a name.
const NAMED: f64 = 10.0;

/// How weights become colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeatScale {
    /// Zero to the largest weight of all graphs: colours compare between maps.
    Shared,
    /// Zero to the largest weight of each graph: for graphs that differ by a factor.
    Own,
}

/// Heat maps ready to be drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatMaps {
    /// File stem.
    pub id: String,
    /// The question the figure answers.
    pub title: String,
    /// Names of the nodes, in the order of the rows.
    pub nodes: Vec<String>,
    /// Classes of the nodes, in the same order.
    pub labels: Option<Vec<u32>>,
    /// Nodes that share a row; one unless there are very many.
    pub nodes_per_cell: usize,
    /// How weights become colours.
    pub scale: HeatScale,
    /// The maps.
    pub maps: Vec<HeatMap>,
    /// Graphs that are not drawn, because there are too many.
    pub left_out: usize,
}

/// One map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Whose graph it is.
    pub title: String,
    /// A remark.
    pub note: Option<String>,
    /// Number of edges.
    pub edges: usize,
    /// Row, column (not below the row) and weight, the largest where several share a cell.
    pub cells: Vec<(u32, u32, f64)>,
}

impl Drawing<'_> {
    /// Heat maps of the graphs. Rows are in `order` if it names every node once, else by class if
    /// there are classes, else as given.
    #[must_use]
    pub fn heat(&self, id: &str, title: &str, order: Option<&[usize]>, scale: HeatScale) -> HeatMaps {
        let count = self.nodes.len();
        let labels = self.labels.filter(|labels| labels.len() == count);
        let order = order.filter(|order| is_permutation(order, count)).map_or_else(
            || {
                let mut order: Vec<usize> = (0..count).collect();
                if let Some(labels) = labels {
                    order.sort_by_key(|node| labels[*node]);
                }
                order
            },
            <[usize]>::to_vec,
        );
        let mut row = vec![0; count];
        for (position, node) in order.iter().enumerate() {
            row[*node] = position;
        }
        let nodes_per_cell = count.div_ceil(CELLS).max(1);
        let shown = &self.panels[..self.panels.len().min(MOST)];
        let maps = shown
            .iter()
            .map(|panel| {
                let mut cells: BTreeMap<(u32, u32), f64> = BTreeMap::new();
                let mut total = 0;
                for (_, (a, b, weight)) in edges(panel.weights, count, self.threshold) {
                    let (a, b) = (row[a] / nodes_per_cell, row[b] / nodes_per_cell);
                    let cell = cells.entry((a.min(b) as u32, a.max(b) as u32)).or_insert(0.0);
                    *cell = cell.max(weight);
                    total += 1;
                }
                HeatMap {
                    title: panel.title.clone(),
                    note: panel.note.clone(),
                    edges: total,
                    cells: cells.into_iter().map(|((a, b), weight)| (a, b, weight)).collect(),
                }
            })
            .collect();
        HeatMaps {
            id: id.to_owned(),
            title: title.to_owned(),
            nodes: order.iter().map(|node| self.nodes[*node].clone()).collect(),
            labels: labels.map(|labels| order.iter().map(|node| labels[*node]).collect()),
            nodes_per_cell,
            scale,
            maps,
            left_out: self.panels.len() - shown.len(),
        }
    }
}

fn is_permutation(order: &[usize], count: usize) -> bool {
    let mut seen = vec![false; count];
    order.len() == count
        && order.iter().all(|node| seen.get_mut(*node).is_some_and(|seen| !std::mem::replace(seen, true)))
}

/// The heat maps as a standalone light picture, on one scale.
#[must_use]
pub fn heat_svg(drawing: &Drawing<'_>, order: Option<&[usize]>) -> String {
    drawing.heat("heat", "", order, HeatScale::Shared).svg()
}

impl HeatMaps {
    /// The standalone light picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let drawing = draw(self, Width::Wide);
        drawing.canvas.standalone(&drawing.title, &drawing.caption)
    }

    fn side(&self) -> usize {
        self.nodes.len().div_ceil(self.nodes_per_cell.max(1))
    }
}

/// Sizes that all maps of a figure share.
struct Frame {
    side: usize,
    cell: f64,
    /// Where the matrix starts, from the panel's corner.
    left: f64,
    top: f64,
    names: bool,
    pointed: bool,
}

pub(super) fn draw(heat: &HeatMaps, width: Width) -> svg::Drawing {
    let mut canvas = Canvas::new(width.pixels(), 0.0);
    let largest = |map: &HeatMap| map.cells.iter().map(|cell| cell.2).fold(0.0, f64::max);
    let most = heat.maps.iter().map(largest).fold(0.0, f64::max);
    let mut head = scale_bar(&mut canvas, heat.scale, most);
    if let Some(labels) = &heat.labels {
        head += legend(&mut canvas, &classes(labels), head);
    }
    let frame = frame(heat, width);
    let heads: Vec<Head<'_>> = heat
        .maps
        .iter()
        .map(|map| {
            let mut remarks = vec![format!("{} edge{}", map.edges, plural(map.edges))];
            if heat.scale == HeatScale::Own {
                let _ = write!(remarks[0], ", largest {}", significant(largest(map), 3));
            }
            remarks.extend(map.note.clone().filter(|note| !note.is_empty()));
            Head { title: &map.title, remarks }
        })
        .collect();
    let tall = frame.top + frame.cell * frame.side as f64;
    let grid = grid(&mut canvas, &heads, width, head, tall);
    canvas.height = grid.bottom + 2.0;
    for (map, corner) in heat.maps.iter().zip(&grid.corners) {
        let high = if heat.scale == HeatScale::Shared { most } else { largest(map) };
        matrix(&mut canvas, heat, map, &frame, high, *corner);
    }
    if heat.maps.is_empty() {
        canvas.height += 40.0;
        canvas.text((canvas.width / 2.0, head + 24.0), Anchor::Middle, "g-small", "No graph to draw");
    }
    svg::Drawing { id: heat.id.clone(), title: heat.title.clone(), caption: caption(heat, &frame), canvas }
}

/// The scale in words and colours; gives the height used.
fn scale_bar(canvas: &mut Canvas, scale: HeatScale, most: f64) -> f64 {
    let (left, wide, tall) = (92.0, 22.0, 12.0);
    canvas.text((0.0, 13.0), Anchor::Start, "g-text", "weight");
    let low = 48.0;
    canvas.rect((low, 3.0), (wide, tall), "g-none");
    for level in 0..HEAT_COLOURS.len() {
        canvas.rect((left + wide * level as f64, 3.0), (wide, tall), &format!("g-h{level}"));
    }
    let right = left + wide * HEAT_COLOURS.len() as f64;
    canvas.text((low + wide / 2.0, 30.0), Anchor::Middle, "g-small", "none");
    let (half, full) = match scale {
        HeatScale::Shared => (significant(most / 2.0, 2), significant(most, 2)),
        HeatScale::Own => (String::new(), "largest of the graph".to_owned()),
    };
    canvas.text((left, 30.0), Anchor::Start, "g-small", "0");
    canvas.text((f64::midpoint(left, right), 30.0), Anchor::Middle, "g-small", &half);
    canvas.text((right, 30.0), Anchor::End, "g-small", &full);
    44.0
}

fn frame(heat: &HeatMaps, width: Width) -> Frame {
    let side = heat.side();
    let (_, across) = columns(heat.maps.len(), width);
    // One map alone need not fill the page.
    let across = across.min(520.0);
    let strip = if heat.labels.is_some() { STRIP } else { 0.0 };
    let longest = heat.nodes.iter().map(|name| text_width(name, 10.0)).fold(0.0, f64::max) + 6.0;
    let fitting = |margin: f64| {
        let cell = (across - margin) / side.max(1) as f64;
        // Whole or half pixels are crisp; below two, the rounding would waste too much of the room.
        let cell = match cell {
            large if large >= 8.0 => large.floor(),
            middle if middle >= 2.0 => (2.0 * middle).floor() / 2.0,
            small => small,
        };
        cell.min(56.0)
    };
    let margin = longest.min(0.25 * across);
    let names = heat.nodes_per_cell == 1 && fitting(margin + strip) >= NAMED;
    let left = if names { margin + strip } else { strip };
    let cells: usize = heat.maps.iter().map(|map| 2 * map.cells.len()).sum();
    let pointed = width == Width::Wide && heat.nodes.len() <= POINTED && cells <= ELEMENTS;
    Frame { side, cell: fitting(left), left, top: strip, names, pointed }
}

fn matrix(canvas: &mut Canvas, heat: &HeatMaps, map: &HeatMap, frame: &Frame, high: f64, corner: (f64, f64)) {
    let (cell, side) = (frame.cell, frame.side);
    let (left, top) = (corner.0 + frame.left, corner.1 + frame.top);
    let whole = cell * side as f64;
    canvas.rect((left, top), (whole, whole), "g-none");
    if let Some(labels) = &heat.labels {
        let (ranks, _) = ranks(labels);
        let along = cell / heat.nodes_per_cell as f64;
        let mut from = 0;
        while let Some(rank) = ranks.get(from) {
            let size = ranks[from..].iter().take_while(|other| *other == rank).count();
            let (start, length) = (along * from as f64, along * size as f64);
            let class = format!("g-k{}", cluster_slot(*rank));
            canvas.rect((left - STRIP, top + start), (STRIP - 3.0, length), &class);
            canvas.rect((left + start, top - STRIP), (length, STRIP - 3.0), &class);
            from += size;
        }
    }
    if frame.names {
        for (index, name) in heat.nodes.iter().enumerate() {
            let name =
                clipped(name, frame.left - if heat.labels.is_some() { STRIP } else { 0.0 } - 4.0, 10.0);
            let y = top + cell * (index as f64 + 0.5) + 3.5;
            let x = left - if heat.labels.is_some() { STRIP } else { 0.0 } - 4.0;
            canvas.text((x, y), Anchor::End, "g-tiny", &name);
        }
    }
    let level = |weight: f64| {
        let levels = HEAT_COLOURS.len();
        ((weight / high * levels as f64).ceil() as usize).clamp(1, levels) - 1
    };
    canvas.push(format_args!(
        r#"<g transform="translate({} {}) scale({})" shape-rendering="crispEdges">"#,
        short(left),
        short(top),
        precise(cell)
    ));
    if frame.pointed {
        for &(a, b, weight) in &map.cells {
            let (one, other) = (name(heat, a), name(heat, b));
            let words = format!("{one} – {other}: {}", significant(weight, 3));
            for (x, y) in [(b, a), (a, b)] {
                canvas.push(format_args!(
                    r#"<rect class="g-h{}" x="{x}" y="{y}" width="1" height="1"><title>{}</title></rect>"#,
                    level(weight),
                    escape(&words)
                ));
            }
        }
    } else {
        for (level, data) in runs(map, &level).iter().enumerate().filter(|(_, data)| !data.is_empty()) {
            canvas.push(format_args!(r#"<path class="g-h{level}" d="{data}"/>"#));
        }
    }
    canvas.push(format_args!("</g>"));
}

fn name(heat: &HeatMaps, index: u32) -> &str {
    heat.nodes.get(index as usize).map_or("", String::as_str)
}

/// Path data per colour; neighbours of one colour in a row are one box.
fn runs(map: &HeatMap, level: &dyn Fn(f64) -> usize) -> Vec<String> {
    let mut both: Vec<(u32, u32, usize)> =
        map.cells.iter().flat_map(|&(a, b, weight)| [(a, b, level(weight)), (b, a, level(weight))]).collect();
    both.sort_unstable();
    both.dedup();
    let mut paths = vec![String::new(); HEAT_COLOURS.len()];
    let mut start = 0;
    while let Some(&(row, column, colour)) = both.get(start) {
        let length = both[start..]
            .iter()
            .zip(column..)
            .take_while(|((r, c, l), expected)| *r == row && c == expected && *l == colour)
            .count();
        let _ = write!(paths[colour], "M{column} {row}h{length}v1h-{length}z");
        start += length.max(1);
    }
    paths
}

/// A factor needs more digits than a length: it is multiplied by the number of cells.
fn precise(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn caption(heat: &HeatMaps, frame: &Frame) -> String {
    let nodes = heat.nodes.len();
    let mut text = format!("Rows and columns are the {nodes} node{}", plural(nodes));
    text.push_str(if heat.labels.is_some() { ", with their classes at the edge." } else { "." });
    if heat.nodes_per_cell > 1 {
        let _ = write!(
            text,
            " Each cell is the largest weight among {0} by {0} pairs of nodes.",
            heat.nodes_per_cell
        );
    }
    if heat.scale == HeatScale::Own {
        text.push_str(" Each graph has its own scale.");
    }
    if frame.pointed {
        text.push_str(" Names and weights show under the pointer.");
    }
    if heat.left_out > 0 {
        let verb = if heat.left_out == 1 { " is" } else { "s are" };
        let _ = write!(text, " {} more graph{verb} not drawn.", heat.left_out);
    }
    text
}
