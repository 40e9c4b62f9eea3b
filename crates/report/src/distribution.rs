//! One value per client: a pile of dots over a box, one row per method.
//!
//! Dots show every client while there are few; beyond that each dot stands for the same share of
//! the clients, so that the shape reads the same for a hundred clients and for a hundred thousand.

use std::fmt::Write as _;

use super::number::significant;
use super::palette::Palette;
use super::scale::Axis;
use super::svg::{Anchor, Canvas, Drawing, Width};
use super::{Distribution, Scale};

/// Up to this many clients each has its own dot.
const EVERY_CLIENT: usize = 300;
/// Dots per row beyond that: one for each half per cent.
const QUANTILES: usize = 200;
const PILE: f64 = 64.0;
const BOX: f64 = 14.0;
/// Values spread over more than this ratio are shown on a log axis.
const LOG_RATIO: f64 = 200.0;

struct Group<'a> {
    label: &'a str,
    slot: usize,
    /// Finite values, ascending.
    values: Vec<f64>,
    missing: usize,
}

pub(super) fn draw(distribution: &Distribution, palette: &Palette, width: Width) -> Drawing {
    let total = width.pixels();
    let groups = ready(distribution, palette);
    let scale = suitable_scale(&groups);
    let (left, right) = (8.0, total - 12.0);
    let values = groups.iter().flat_map(|group| group.values.iter().copied());
    let axis = Axis::over(values, scale, 0.03, (left, right));

    let head = if width == Width::Wide { 22.0 } else { 38.0 };
    let row_height = head + PILE + BOX + 26.0;
    let bottom = row_height * groups.len().max(1) as f64;
    let mut canvas = Canvas::new(total, bottom + 48.0);
    for tick in axis.ticks(if width == Width::Wide { 7 } else { 4 }) {
        let Some(x) = axis.place(tick.value) else { continue };
        // Not through the headings.
        for row in 0..groups.len() {
            let top = row_height * row as f64;
            canvas.line((x, top + head), (x, top + row_height), "g-grid");
        }
        canvas.text((x, bottom + 18.0), Anchor::Middle, "g-small", &tick.label);
    }
    canvas.line((left, bottom), (right, bottom), "g-axis");
    let unit = if scale == Scale::Log { ", log scale" } else { "" };
    let name = format!("{}{unit}", distribution.x_label);
    canvas.text((f64::midpoint(left, right), bottom + 40.0), Anchor::Middle, "g-text", &name);

    let radius = dot_radius(&groups, &axis);
    for (index, group) in groups.iter().enumerate() {
        let top = row_height * index as f64;
        heading(&mut canvas, group, top, total, width);
        dots(&mut canvas, group, &axis, top + head + PILE, radius);
        quartiles(&mut canvas, group, &axis, top + head + PILE + 5.0);
    }
    if groups.is_empty() {
        canvas.text((total / 2.0, bottom / 2.0), Anchor::Middle, "g-small", "No data to draw");
    }
    Drawing {
        id: distribution.id.clone(),
        title: distribution.title.clone(),
        caption: caption(&groups),
        canvas,
    }
}

fn ready<'a>(distribution: &'a Distribution, palette: &Palette) -> Vec<Group<'a>> {
    let methods: Vec<&str> = distribution.groups.iter().map(|group| group.1.as_str()).collect();
    let slots = palette.for_figure(&methods);
    distribution
        .groups
        .iter()
        .zip(slots)
        .map(|((label, _, values), slot)| {
            let mut finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
            finite.sort_by(f64::total_cmp);
            Group { label, slot, missing: values.len() - finite.len(), values: finite }
        })
        .collect()
}

fn suitable_scale(groups: &[Group<'_>]) -> Scale {
    let low = groups.iter().filter_map(|group| group.values.first()).fold(f64::INFINITY, |a, b| a.min(*b));
    let high = groups.iter().filter_map(|group| group.values.last()).fold(0.0, |a: f64, b| a.max(*b));
    if low > 0.0 && low.is_finite() && high / low > LOG_RATIO { Scale::Log } else { Scale::Linear }
}

/// The value below which a share of the sorted values lies, interpolated.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = share.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let weight = position - below as f64;
    Some(sorted[below] + weight * (sorted[above] - sorted[below]))
}

/// What the dots stand at.
fn beads(group: &Group<'_>) -> Vec<f64> {
    if group.values.len() <= EVERY_CLIENT {
        return group.values.clone();
    }
    (0..QUANTILES)
        .filter_map(|step| quantile(&group.values, (step as f64 + 0.5) / QUANTILES as f64))
        .collect()
}

/// Sorts beads into columns one dot wide.
fn columns(group: &Group<'_>, axis: &Axis, radius: f64) -> Vec<(f64, usize)> {
    let mut piles: Vec<(f64, usize)> = Vec::new();
    for value in beads(group) {
        let Some(x) = axis.place(value) else { continue };
        let column = ((x - axis.start) / (2.0 * radius)).floor();
        match piles.last_mut() {
            Some((last, count)) if (*last - column).abs() < 0.5 => *count += 1,
            _ => piles.push((column, 1)),
        }
    }
    piles
}

/// The largest dot whose highest pile still fits; the same for all rows, so that they compare.
fn dot_radius(groups: &[Group<'_>], axis: &Axis) -> f64 {
    let mut radius = 4.0;
    while radius > 0.6 {
        let highest = groups
            .iter()
            .flat_map(|group| columns(group, axis, radius))
            .map(|(_, count)| count)
            .max()
            .unwrap_or(0);
        if highest as f64 * 2.0 * radius <= PILE {
            break;
        }
        radius -= 0.1;
    }
    radius
}

fn dots(canvas: &mut Canvas, group: &Group<'_>, axis: &Axis, floor: f64, radius: f64) {
    let class = format!("g-bead g-f{}", group.slot);
    for (column, count) in columns(group, axis, radius) {
        let x = axis.start + (column + 0.5) * 2.0 * radius;
        // All clients at one value: even the smallest dots would leave the row.
        let step = (2.0 * radius).min(PILE / count as f64);
        for level in 0..count {
            let y = floor - radius - level as f64 * step;
            canvas.circle((x, y), radius * 0.92, &class);
        }
    }
}

fn quartiles(canvas: &mut Canvas, group: &Group<'_>, axis: &Axis, top: f64) {
    let at = |share| quantile(&group.values, share).map(|value| axis.clamped(value));
    let (Some(p5), Some(q1), Some(median), Some(q3), Some(p95)) =
        (at(0.05), at(0.25), at(0.5), at(0.75), at(0.95))
    else {
        return;
    };
    let middle = top + BOX / 2.0;
    let thin = format!("g-thin g-s{}", group.slot);
    canvas.line((p5, middle), (q1, middle), &thin);
    canvas.line((q3, middle), (p95, middle), &thin);
    for end in [p5, p95] {
        canvas.line((end, middle - 4.0), (end, middle + 4.0), &thin);
    }
    let class = format!("g-box g-f{0} g-s{0}", group.slot);
    canvas.rect((q1, top), (q3 - q1, BOX), &class);
    canvas.line((median, top - 1.0), (median, top + BOX + 1.0), "g-median");
}

fn heading(canvas: &mut Canvas, group: &Group<'_>, top: f64, total: f64, width: Width) {
    canvas.marker((13.0, top + 11.0), 4.5, group.slot, &format!("g-f{}", group.slot));
    canvas.text((24.0, top + 15.5), Anchor::Start, "g-bold", group.label);
    let facts = match (0.5, 0.05, 0.95) {
        _ if group.values.is_empty() => "no finite value".to_owned(),
        (half, low, high) => {
            let text = |share| {
                quantile(&group.values, share).map_or_else(String::new, |value| significant(value, 3))
            };
            format!("median {}, 90 % within {} to {}", text(half), text(low), text(high))
        }
    };
    match width {
        Width::Wide => canvas.text((total - 12.0, top + 15.5), Anchor::End, "g-small", &facts),
        Width::Narrow => canvas.text((24.0, top + 32.0), Anchor::Start, "g-small", &facts),
    }
}

fn caption(groups: &[Group<'_>]) -> String {
    let most = groups.iter().map(|group| group.values.len()).max().unwrap_or(0);
    let missing: usize = groups.iter().map(|group| group.missing).sum();
    let mut text = if most > EVERY_CLIENT {
        format!("{most} clients; each dot is half a per cent of them.")
    } else {
        format!("One dot per client ({most}).")
    };
    text.push_str(" Box: quartiles and median; whiskers: 5th and 95th percentile.");
    if missing > 0 {
        let noun = if missing == 1 { "value is" } else { "values are" };
        let _ = write!(text, " {missing} {noun} left out (not finite).");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: Vec<f64>) -> Distribution {
        Distribution {
            id: "d".into(),
            title: "t".into(),
            x_label: "error".into(),
            groups: vec![("a".into(), "pgfl".into(), values)],
        }
    }

    #[test]
    fn quantiles_interpolate() {
        let sorted = [0.0, 1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&sorted, 0.5), Some(2.0));
        assert_eq!(quantile(&sorted, 0.125), Some(0.5));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn thousands_of_clients_make_no_more_dots() {
        let values = (0..50_000).map(|i| f64::from(i % 997)).collect();
        let drawing = draw(&sample(values), &Palette::default(), Width::Wide);
        let svg = drawing.canvas.inline("");
        assert!(svg.matches("<circle").count() <= QUANTILES + 1);
        assert!(drawing.caption.contains("50000 clients"));
    }

    #[test]
    fn nothing_finite_is_said_not_drawn() {
        let drawing = draw(&sample(vec![f64::NAN, f64::INFINITY]), &Palette::default(), Width::Wide);
        assert!(drawing.canvas.inline("").contains("no finite value"));
        assert!(drawing.caption.contains("2 values are left out"));
    }

    #[test]
    fn equal_values_stay_in_their_row() {
        let drawing = draw(&sample(vec![1.0; 300]), &Palette::default(), Width::Narrow);
        assert!(!drawing.canvas.inline("").contains("cy=\"-"));
    }
}
