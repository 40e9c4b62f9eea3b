//! Small multiples: a grid of panels with a title, remarks and a picture each, and their legends.

use super::label::flow;
use super::palette::{CLUSTER_COLOURS, cluster_slot};
use super::svg::{Anchor, Canvas, Width, text_width, wrapped};

/// More panels than this are a wall; the rest are counted in the caption.
pub(super) const MOST: usize = 24;
const GAP: f64 = 18.0;
/// How much wider bold letters run.
const BOLD: f64 = 1.1;

/// What stands above a panel's picture.
pub(super) struct Head<'a> {
    pub title: &'a str,
    /// One remark each, wrapped if need be.
    pub remarks: Vec<String>,
}

/// Where the pictures go: upper left corners, and the size that all share.
pub(super) struct Grid {
    pub corners: Vec<(f64, f64)>,
    pub bottom: f64,
}

/// Columns of the grid, and the width of each.
pub(super) fn columns(panels: usize, width: Width) -> (usize, f64) {
    let count = match (width, panels) {
        (_, 0 | 1) | (Width::Narrow, 2) => 1,
        (Width::Narrow, _) | (Width::Wide, 2 | 4) => 2,
        (Width::Wide, 3 | 5 | 6 | 9) => 3,
        (Width::Wide, _) => 4,
    };
    (count, (width.pixels() - GAP * (count - 1) as f64) / count as f64)
}

/// Writes the heads and says where the pictures of the given height go below them.
pub(super) fn grid(canvas: &mut Canvas, heads: &[Head<'_>], width: Width, top: f64, height: f64) -> Grid {
    let (count, across) = columns(heads.len(), width);
    let mut corners = Vec::with_capacity(heads.len());
    let mut y = top;
    for row in heads.chunks(count) {
        let lines: Vec<Vec<String>> = row
            .iter()
            .map(|head| head.remarks.iter().flat_map(|remark| wrapped(remark, across - 6.0, 12.0)).collect())
            .collect();
        let most = lines.iter().map(Vec::len).max().unwrap_or(0);
        let down = 20.0 + 16.0 * most as f64 + 6.0;
        for (column, (head, lines)) in row.iter().zip(&lines).enumerate() {
            let x = (across + GAP) * column as f64;
            let title = clipped(head.title, across / BOLD, 13.0);
            canvas.text((x, y + 14.0), Anchor::Start, "g-bold", &title);
            for (index, line) in lines.iter().enumerate() {
                let line = clipped(line, across, 12.0);
                canvas.text((x, y + 31.0 + 16.0 * index as f64), Anchor::Start, "g-small", &line);
            }
            corners.push((x, y + down));
        }
        y += down + height + GAP;
    }
    Grid { corners, bottom: (y - GAP).max(top) }
}

/// A text cut to a width, with an ellipsis where something is missing.
pub(super) fn clipped(text: &str, width: f64, size: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if text_width(&kept, size) + size > width {
            kept.pop();
            break;
        }
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// What a legend entry shows before its words.
pub(super) enum Key {
    /// A stroke of this class.
    Stroke(&'static str),
    /// A node of the colour of this place.
    Node(usize),
}

/// Writes legend entries in rows; gives the height used.
pub(super) fn legend(canvas: &mut Canvas, entries: &[(Key, String)], top: f64) -> f64 {
    let sign = |key: &Key| if matches!(key, Key::Stroke(_)) { 30.0 } else { 18.0 };
    let widths: Vec<f64> =
        entries.iter().map(|(key, text)| sign(key) + text_width(text, 13.0) + 18.0).collect();
    let places = flow(&widths, canvas.width);
    for ((key, text), (x, row)) in entries.iter().zip(&places) {
        let y = top + 11.0 + 20.0 * *row as f64;
        match key {
            Key::Stroke(class) => canvas.push(format_args!(
                r#"<path class="{class}" stroke-width="3" d="M{x} {y}h22"/>"#,
                x = super::svg::short(*x)
            )),
            Key::Node(rank) => {
                canvas.circle((x + 6.0, y), 5.5, &format!("g-k{} g-node", cluster_slot(*rank)));
            }
        }
        canvas.text((x + sign(key), y + 4.5), Anchor::Start, "g-text", text);
    }
    places.last().map_or(0.0, |(_, row)| 20.0 * (*row as f64 + 1.0) + 10.0)
}

/// The classes of a graph's nodes: for every node the rank of its label, and the distinct labels.
pub(super) fn ranks(labels: &[u32]) -> (Vec<usize>, Vec<u32>) {
    let mut distinct = labels.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let ranks = labels.iter().map(|label| distinct.partition_point(|other| other < label)).collect();
    (ranks, distinct)
}

/// Legend entries for node classes; the last colour stands for all further ones.
pub(super) fn classes(labels: &[u32]) -> Vec<(Key, String)> {
    let (ranks, distinct) = ranks(labels);
    let last = CLUSTER_COLOURS.len() - 1;
    let size = |rank: usize| ranks.iter().filter(|other| **other == rank).count();
    let mut entries: Vec<(Key, String)> = distinct
        .iter()
        .enumerate()
        .take(if distinct.len() > last + 1 { last } else { last + 1 })
        .map(|(rank, label)| (Key::Node(rank), format!("class {label} ({})", size(rank))))
        .collect();
    if distinct.len() > last + 1 {
        let nodes = ranks.iter().filter(|rank| **rank >= last).count();
        entries.push((Key::Node(last), format!("{} further classes ({nodes})", distinct.len() - last)));
    }
    entries
}

pub(super) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(clipped("short", 100.0, 13.0), "short");
        let cut = clipped("a name that goes on and on", 80.0, 13.0);
        assert!(cut.ends_with('…') && text_width(&cut, 13.0) <= 80.0 + 13.0, "{cut}");
        assert_eq!(clipped("wide", 1.0, 13.0), "…");
    }

    #[test]
    fn panels_keep_off_each_other() {
        for panels in 1..=MOST {
            for width in [Width::Wide, Width::Narrow] {
                let heads: Vec<Head<'_>> =
                    (0..panels).map(|_| Head { title: "t", remarks: vec!["r".into()] }).collect();
                let mut canvas = Canvas::new(width.pixels(), 0.0);
                let (_, across) = columns(panels, width);
                let grid = grid(&mut canvas, &heads, width, 10.0, 50.0);
                assert_eq!(grid.corners.len(), panels);
                for (index, a) in grid.corners.iter().enumerate() {
                    assert!(a.0 + across <= width.pixels() + 1e-9 && a.1 + 50.0 <= grid.bottom + 1e-9);
                    for b in &grid.corners[..index] {
                        assert!((a.0 - b.0).abs() >= across || (a.1 - b.1).abs() >= 50.0);
                    }
                }
            }
        }
    }

    #[test]
    fn more_classes_than_colours_share_the_last() {
        let labels: Vec<u32> = (0..20).map(|i| 3 * i).collect();
        let entries = classes(&labels);
        assert_eq!(entries.len(), CLUSTER_COLOURS.len());
        assert_eq!(entries[8].1, "12 further classes (12)");
        assert_eq!(classes(&[7, 7, 2])[1].1, "class 7 (2)");
    }
}
