//! What several clients have of several kinds, as stacked bars side by side.

use super::Scale;
use super::label::flow;
use super::palette::{CLUSTER_COLOURS, METHOD_COLOURS};
use super::panels::clipped;
use super::scale::Axis;
use super::svg::{self, Anchor, Canvas, Width, text_width};
use serde::{Deserialize, Serialize};

/// More rows than this are not drawn: the caption says how many are missing.
const MOST: usize = 400;

/// Stacked bars, one for each row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stacks {
    /// The question the figure answers.
    pub title: String,
    /// What is counted.
    pub label: String,
    /// The names of the parts, in the order of the stack.
    pub parts: Vec<String>,
    /// The name of each row and how much it has of each part.
    pub rows: Vec<(String, Vec<usize>)>,
    /// What to see.
    pub caption: String,
}

/// Sizes that follow from the number of rows.
struct Look {
    row: f64,
    gap: f64,
    /// Class and size of the names; none where rows are too thin for letters.
    name: Option<(&'static str, f64)>,
}

impl Look {
    fn of(rows: usize) -> Self {
        match rows {
            0..=40 => Self { row: 21.0, gap: 5.0, name: Some(("g-text", 13.0)) },
            41..=120 => Self { row: 13.0, gap: 2.5, name: Some(("g-tiny", 10.0)) },
            _ => Self { row: 4.0, gap: 0.5, name: None },
        }
    }
}

impl Stacks {
    /// The standalone light picture.
    #[must_use]
    pub fn svg(&self) -> String {
        self.draw(Width::Wide).standalone(&self.title, &self.caption)
    }

    fn draw(&self, width: Width) -> Canvas {
        let rows = &self.rows[..self.rows.len().min(MOST)];
        let total = width.pixels();
        let look = Look::of(rows.len());
        let sums: Vec<usize> = rows.iter().map(|(_, parts)| parts.iter().sum()).collect();
        let wide = |texts: &mut dyn Iterator<Item = &str>, size: f64| {
            texts.map(|text| text_width(text, size)).fold(0.0, f64::max)
        };
        let figures: Vec<String> = sums.iter().map(usize::to_string).collect();
        let (mut left, mut right) = (4.0, total - 12.0);
        if let Some((_, size)) = look.name {
            left = wide(&mut rows.iter().map(|(name, _)| name.as_str()), size).min(0.3 * total) + 10.0;
            right = total - wide(&mut figures.iter().map(String::as_str), size) - 10.0;
        }
        let widths: Vec<f64> = self.parts.iter().map(|part| 20.0 + text_width(part, 13.0) + 14.0).collect();
        let places = flow(&widths, total);
        let head = places.last().map_or(0.0, |(_, row)| 22.0 * (*row as f64 + 1.0) + 10.0);
        let bottom = head + look.row * rows.len().max(1) as f64;
        let missing = self.rows.len() - rows.len();
        let mut canvas = Canvas::new(total, bottom + if missing > 0 { 58.0 } else { 40.0 });
        for (slot, (part, (x, row))) in self.parts.iter().zip(&places).enumerate() {
            let y = 22.0 * *row as f64;
            canvas.rect((*x, y + 2.0), (13.0, 13.0), &fill(slot));
            canvas.text((x + 19.0, y + 13.0), Anchor::Start, "g-text", part);
        }
        let values = sums.iter().map(|sum| *sum as f64).chain([0.0]);
        let axis = Axis::over(values, Scale::Linear, 0.0, (left, right));
        let axis = Axis { low: 0.0, ..axis };
        for tick in axis.ticks(6) {
            let x = axis.clamped(tick.value);
            canvas.line((x, head), (x, bottom + 4.0), "g-grid");
            canvas.text((x, bottom + 18.0), Anchor::Middle, "g-small", &tick.label);
        }
        for (index, ((name, parts), figure)) in rows.iter().zip(&figures).enumerate() {
            let top = head + look.row * index as f64;
            let mut sum = 0;
            for (slot, part) in parts.iter().enumerate().filter(|(_, part)| **part > 0) {
                let (from, to) = (axis.clamped(sum as f64), axis.clamped((sum + part) as f64));
                canvas.rect((from, top + look.gap / 2.0), (to - from, look.row - look.gap), &fill(slot));
                sum += part;
            }
            if let Some((class, size)) = look.name {
                let baseline = top + look.row / 2.0 + 0.36 * size;
                canvas.text((left - 8.0, baseline), Anchor::End, class, &clipped(name, left - 10.0, size));
                let small = if size > 12.0 { "g-small" } else { class };
                canvas.text((axis.clamped(sum as f64) + 6.0, baseline), Anchor::Start, small, figure);
            }
        }
        if rows.is_empty() {
            canvas.text((total / 2.0, head + 14.0), Anchor::Middle, "g-small", "No data to draw");
        }
        canvas.line((left, head), (left, bottom), "g-axis");
        canvas.text((f64::midpoint(left, right), bottom + 35.0), Anchor::Middle, "g-text", &self.label);
        if missing > 0 {
            let words = format!("the first {} of {}", rows.len(), self.rows.len());
            canvas.text((total, bottom + 53.0), Anchor::End, "g-small", &words);
        }
        canvas
    }
}

pub(super) fn draw(stacks: &Stacks, width: Width) -> svg::Drawing {
    svg::Drawing {
        id: "labels".into(),
        title: stacks.title.clone(),
        caption: stacks.caption.clone(),
        canvas: stacks.draw(width),
    }
}

/// The colour of a part: those of methods first, then the paler ones.
fn fill(slot: usize) -> String {
    if slot < METHOD_COLOURS.len() {
        return format!("g-f{slot}");
    }
    format!("g-k{}", (slot - METHOD_COLOURS.len()) % CLUSTER_COLOURS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: usize) -> Stacks {
        Stacks {
            title: "t".into(),
            label: "records".into(),
            parts: (0..3).map(|part| format!("<{part}>")).collect(),
            rows: (0..rows).map(|row| (format!("client-{row:03}"), vec![row + 1, 0, 10])).collect(),
            caption: String::new(),
        }
    }

    #[test]
    fn a_bar_has_a_piece_for_every_part_that_is_there() {
        let svg = sample(5).svg();
        // One for each entry of the legend, and two for each row: the middle part is empty everywhere.
        assert_eq!(svg.matches("<rect class=\"g-f").count(), 3 + 10);
        assert!(svg.contains("&lt;0&gt;") && !svg.contains("<0>"));
    }

    #[test]
    fn many_rows_are_thin_and_too_many_are_counted() {
        let height = |rows: usize| sample(rows).draw(Width::Wide).height;
        assert!(height(100) < 1500.0 && height(300) < 1500.0 && height(10) < 320.0);
        assert!(sample(500).svg().contains("the first 400 of 500"));
        assert!(sample(0).svg().contains("No data"));
    }
}
