//! Lines with error bands.

use super::label::{flow, spread};
use super::palette::Palette;
use super::scale::{Axis, fits};
use super::svg::{Anchor, Canvas, Drawing, Width, polyline, short, text_width, wrapped};
use super::{Chart, Point, Range, Scale, Series};

/// More lines than this and the eye cannot follow one; the rest go grey.
pub const EMPHASISED: usize = 6;
/// Up to this many points each gets a marker; beyond, a few along the line.
const MARK_ALL: usize = 15;
/// Lines of the same method in one figure share its colour and differ by dashes.
const DASHES: [&str; 4] = ["", "2 3.5", "9 3 2 3", "14 4"];
const DASHED: &str = "6 4";
const TEXT: f64 = 13.0;
/// How much wider bold letters run.
const BOLD: f64 = 1.1;
const ROW: f64 = 20.0;

/// A series made ready: sorted, thinned, split where points are missing.
struct Line<'a> {
    series: &'a Series,
    segments: Vec<Vec<Point>>,
    slot: usize,
    dashes: &'static str,
}

impl Line<'_> {
    fn points(&self) -> impl Iterator<Item = &Point> {
        self.segments.iter().flatten()
    }

    /// The classes of its stroke.
    fn stroke(&self, weight: &str) -> String {
        if self.series.quiet { "g-quiet".to_owned() } else { format!("{weight} g-s{}", self.slot) }
    }
}

/// The frame of a figure.
struct Frame {
    x: Axis,
    y: Axis,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

pub(super) fn draw(chart: &Chart, palette: &Palette, width: Width) -> Drawing {
    let total = width.pixels();
    let mut skipped = 0;
    let lines = ready(chart, palette, total, &mut skipped);
    let (bold, rest) = lines.split_at(lines.len().min(EMPHASISED));

    let plot_height = if width == Width::Wide { 330.0 } else { 240.0 };
    let widest = bold.iter().map(|line| BOLD * text_width(&line.series.label, TEXT)).fold(0.0, f64::max);
    let direct = width == Width::Wide && !bold.is_empty() && widest < 0.27 * total;
    let legend = if direct { Vec::new() } else { legend_places(bold, total) };
    let legend_rows = legend.last().map_or(0, |(_, row)| row + 1);
    let grey = grey_names(rest, total);

    let above = (legend_rows + grey.len()) as f64 * ROW;
    let head = if above > 0.0 { above + 6.0 } else { 0.0 };
    let top = head + 24.0;
    let bottom = top + plot_height;
    let mut canvas = Canvas::new(total, bottom + 44.0);

    let y = y_axis(chart, &lines, (bottom, top));
    let y_ticks = y.ticks(if width == Width::Wide { 6 } else { 5 });
    let tick_width = y_ticks.iter().map(|tick| text_width(&tick.label, 12.0)).fold(0.0, f64::max);
    let left = tick_width + 10.0;
    let right = total - if direct { widest + 30.0 } else { 12.0 };
    let values = lines.iter().flat_map(|line| line.points().map(|point| point.x));
    let x = Axis::over(values, chart.x_scale, 0.0, (left, right));
    let frame = Frame { x, y, left, right, top, bottom };

    for (line, (offset, row)) in bold.iter().zip(&legend) {
        legend_entry(&mut canvas, line, *offset, *row as f64 * ROW + 12.0);
    }
    for (index, text) in grey.iter().enumerate() {
        let y = (legend_rows + index) as f64 * ROW + 12.0;
        canvas.text((0.0, y), Anchor::Start, "g-small", text);
    }
    axes(&mut canvas, chart, &frame, &y_ticks, width);
    for line in rest {
        for segment in &line.segments {
            canvas.path(&polyline(&placed(segment, &frame)), "g-rest");
        }
    }
    // Bands below all lines, so that none hides a line.
    for range in &chart.ranges {
        shade(&mut canvas, range, bold, &frame);
    }
    for line in bold {
        bands(&mut canvas, line, &frame);
    }
    for (index, line) in bold.iter().enumerate() {
        strokes(&mut canvas, line, &frame, index, bold.len());
    }
    if direct {
        end_labels(&mut canvas, bold, &frame);
    }
    if lines.is_empty() {
        let middle = (f64::midpoint(left, right), f64::midpoint(top, bottom));
        canvas.text(middle, Anchor::Middle, "g-small", "No data to draw");
    }
    canvas.attributes = hover_attributes(&frame);

    let mut caption = chart.caption.trim().to_owned();
    if lines.iter().any(|line| line.points().any(|point| error_of(point).is_some())) {
        // Between few points a band is drawn as if there were more: the bars say where something was measured.
        let few = lines.iter().any(|line| {
            line.points().count() <= MARK_ALL && line.points().any(|point| error_of(point).is_some())
        });
        let name = if few { "Bars and bands" } else { "Bands" };
        sentence(&mut caption, &format!("{name}: mean ± one standard error."));
    }
    if skipped > 0 {
        let reason = if chart.x_scale == Scale::Log || chart.y_scale == Scale::Log {
            "not finite, or not positive on a logarithmic axis"
        } else {
            "not finite"
        };
        let noun = if skipped == 1 { "point is" } else { "points are" };
        sentence(&mut caption, &format!("{skipped} {noun} left out ({reason})."));
    }
    Drawing { id: chart.id.clone(), title: chart.title.clone(), caption, canvas }
}

fn sentence(text: &mut String, addition: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(addition);
}

fn error_of(point: &Point) -> Option<f64> {
    point.stderr.filter(|error| error.is_finite() && *error > 0.0)
}

/// Sorts by x, splits where a point has no place, thins, and drops what is empty.
fn ready<'a>(chart: &'a Chart, palette: &Palette, total: f64, skipped: &mut usize) -> Vec<Line<'a>> {
    let methods: Vec<&str> = chart.series.iter().map(|series| series.method.as_str()).collect();
    let slots = palette.for_figure(&methods);
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (series, slot) in chart.series.iter().zip(slots) {
        let mut points = series.points.clone();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let has_place = |point: &Point| fits(chart.x_scale, point.x) && fits(chart.y_scale, point.mean);
        *skipped += points.iter().filter(|point| !has_place(point)).count();
        let segments: Vec<Vec<Point>> = points
            .split(|point| !has_place(point))
            .filter(|segment| !segment.is_empty())
            .map(|segment| thin(segment, total as usize))
            .collect();
        if segments.is_empty() {
            continue;
        }
        let twins =
            lines.iter().filter(|line| line.slot == slot && line.series.dashed == series.dashed).count();
        let dashes = if series.dashed && twins == 0 { DASHED } else { DASHES[twins % DASHES.len()] };
        lines.push(Line { series, segments, slot, dashes });
    }
    lines
}

/// Keeps the lowest and highest point of each column when there are more points than pixels: what
/// would be drawn over itself goes, spikes stay.
pub(super) fn thin(points: &[Point], columns: usize) -> Vec<Point> {
    if points.len() <= 2 * columns.max(1) {
        return points.to_vec();
    }
    let size = points.len().div_ceil(columns.max(1));
    let mut kept = Vec::new();
    for chunk in points.chunks(size) {
        let by_mean = |a: &&usize, b: &&usize| chunk[**a].mean.total_cmp(&chunk[**b].mean);
        let indices: Vec<usize> = (0..chunk.len()).collect();
        let low = indices.iter().min_by(by_mean).copied().unwrap_or(0);
        let high = indices.iter().max_by(by_mean).copied().unwrap_or(0);
        kept.push(chunk[low.min(high)]);
        if low != high {
            kept.push(chunk[low.max(high)]);
        }
    }
    // The ends carry the message: where it started and where it arrived.
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        if kept.first() != Some(first) {
            kept.insert(0, *first);
        }
        if kept.last() != Some(last) {
            kept.push(*last);
        }
    }
    kept
}

fn y_axis(chart: &Chart, lines: &[Line<'_>], range: (f64, f64)) -> Axis {
    let values = lines.iter().flat_map(|line| {
        line.points().flat_map(|point| {
            let error = error_of(point).unwrap_or(0.0);
            [point.mean - error, point.mean, point.mean + error]
        })
    });
    let shaded =
        chart.ranges.iter().flat_map(|range| range.points.iter().flat_map(|point| [point.1, point.2]));
    Axis::over(values.chain(shaded), chart.y_scale, 0.04, range)
}

fn axes(canvas: &mut Canvas, chart: &Chart, frame: &Frame, y_ticks: &[super::scale::Tick], width: Width) {
    for tick in y_ticks {
        let Some(y) = frame.y.place(tick.value) else { continue };
        canvas.line((frame.left, y), (frame.right, y), "g-grid");
        canvas.text((frame.left - 7.0, y + 4.0), Anchor::End, "g-small", &tick.label);
    }
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "g-axis");
    let wanted = if width == Width::Wide { 7 } else { 4 };
    for tick in frame.x.ticks(wanted) {
        let Some(x) = frame.x.place(tick.value) else { continue };
        canvas.line((x, frame.bottom), (x, frame.bottom + 4.0), "g-axis");
        canvas.text((x, frame.bottom + 18.0), Anchor::Middle, "g-small", &tick.label);
    }
    let middle = f64::midpoint(frame.left, frame.right);
    canvas.text((middle, frame.bottom + 38.0), Anchor::Middle, "g-text", &chart.x_label);
    // Upright above its axis: a turned label has to be read with a turned head.
    canvas.text((0.0, frame.top - 10.0), Anchor::Start, "g-text", &chart.y_label);
}

fn placed(points: &[Point], frame: &Frame) -> Vec<(f64, f64)> {
    points.iter().filter_map(|point| Some((frame.x.place(point.x)?, frame.y.place(point.mean)?))).collect()
}

/// A range behind the line of its colour; without that line it would have no name and is left out.
fn shade(canvas: &mut Canvas, range: &Range, lines: &[Line<'_>], frame: &Frame) {
    let Some(line) = lines.iter().find(|line| line.series.method == range.method) else { return };
    let mut points = range.points.clone();
    points.retain(|(x, low, high)| fits(frame.x.scale, *x) && low.is_finite() && high.is_finite());
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let upper = points.iter().map(|(x, _, high)| (frame.x.clamped(*x), frame.y.clamped(*high)));
    let lower = points.iter().rev().map(|(x, low, _)| (frame.x.clamped(*x), frame.y.clamped(*low)));
    let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
    if !outline.is_empty() {
        canvas.path(&(polyline(&outline) + "Z"), &format!("g-band g-f{}", line.slot));
    }
}

fn bands(canvas: &mut Canvas, line: &Line<'_>, frame: &Frame) {
    for segment in &line.segments {
        if segment.iter().all(|point| error_of(point).is_none()) {
            continue;
        }
        let edge = |point: &Point, sign: f64| {
            let error = error_of(point).unwrap_or(0.0);
            (frame.x.clamped(point.x), frame.y.clamped(point.mean + sign * error))
        };
        if let [point] = segment.as_slice() {
            canvas.line(edge(point, -1.0), edge(point, 1.0), &format!("g-thin g-s{}", line.slot));
            continue;
        }
        if segment.len() <= MARK_ALL {
            for point in segment.iter().filter(|point| error_of(point).is_some()) {
                canvas.line(edge(point, -1.0), edge(point, 1.0), &format!("g-thin g-s{}", line.slot));
            }
        }
        let upper = segment.iter().map(|point| edge(point, 1.0));
        let lower = segment.iter().rev().map(|point| edge(point, -1.0));
        let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
        canvas.path(&(polyline(&outline) + "Z"), &format!("g-band g-f{}", line.slot));
    }
}

fn strokes(canvas: &mut Canvas, line: &Line<'_>, frame: &Frame, index: usize, count: usize) {
    let all: Vec<(f64, f64)> = placed(&line.points().copied().collect::<Vec<_>>(), frame);
    for segment in &line.segments {
        let points = placed(segment, frame);
        if points.len() > 1 {
            canvas.dashed_path(&polyline(&points), &line.stroke("g-line"), line.dashes);
        }
    }
    if line.series.quiet {
        return;
    }
    let class = format!("g-f{} g-edged", line.slot);
    let lonely = line.segments.iter().filter(|segment| segment.len() == 1).flatten().copied();
    let mut marks: Vec<(f64, f64)> = placed(&lonely.collect::<Vec<_>>(), frame);
    if all.len() <= MARK_ALL {
        marks.clone_from(&all);
    } else {
        // Shifted from line to line, so that markers of close lines do not cover each other.
        let shift = (index as f64 + 0.5) / count.max(1) as f64;
        for step in 0..5 {
            let x = frame.left + (f64::from(step) + shift) / 5.0 * (frame.right - frame.left);
            let next = all.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs()));
            marks.extend(next.filter(|point| (point.0 - x).abs() < 12.0).copied());
        }
    }
    for mark in marks {
        canvas.marker(mark, 4.0, line.slot, &class);
    }
}

fn end_labels(canvas: &mut Canvas, lines: &[Line<'_>], frame: &Frame) {
    let ends: Vec<(f64, f64)> = lines
        .iter()
        .map(|line| {
            let last = line.points().last();
            last.map_or((frame.right, frame.bottom), |point| {
                (frame.x.clamped(point.x), frame.y.clamped(point.mean))
            })
        })
        .collect();
    let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
    let heights = spread(&wanted, 17.0, frame.top + 2.0, frame.bottom - 2.0);
    for ((line, end), y) in lines.iter().zip(&ends).zip(heights) {
        let label = frame.right + 22.0;
        let leader = [(end.0 + 2.0, end.1), (frame.right + 6.0, end.1), (label - 4.0, y)];
        canvas.dashed_path(&polyline(&leader), &line.stroke("g-thin"), "2 2");
        let letters = if line.series.quiet { "g-small" } else { "g-bold" };
        canvas.text((label, y + 4.5), Anchor::Start, letters, &line.series.label);
    }
}

const SAMPLE: f64 = 34.0;

fn legend_places(lines: &[Line<'_>], total: f64) -> Vec<(f64, usize)> {
    let widths: Vec<f64> =
        lines.iter().map(|line| SAMPLE + text_width(&line.series.label, TEXT) + 16.0).collect();
    flow(&widths, total)
}

fn legend_entry(canvas: &mut Canvas, line: &Line<'_>, x: f64, y: f64) {
    canvas.dashed_path(&polyline(&[(x, y), (x + SAMPLE - 8.0, y)]), &line.stroke("g-line"), line.dashes);
    if !line.series.quiet {
        let centre = (x + (SAMPLE - 8.0) / 2.0, y);
        canvas.marker(centre, 4.0, line.slot, &format!("g-f{} g-edged", line.slot));
    }
    canvas.text((x + SAMPLE, y + 4.5), Anchor::Start, "g-text", &line.series.label);
}

fn grey_names(rest: &[Line<'_>], total: f64) -> Vec<String> {
    if rest.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = rest.iter().map(|line| line.series.label.as_str()).collect();
    wrapped(&format!("In grey: {}", names.join(", ")), total, 12.0)
}

/// What the page's script needs to turn a pointer position into a value.
fn hover_attributes(frame: &Frame) -> String {
    let axis = |axis: &Axis| {
        let kind = if axis.scale == Scale::Log { "log" } else { "linear" };
        format!("{:e} {:e} {kind} {} {}", axis.low, axis.high, short(axis.start), short(axis.end))
    };
    format!(r#" data-x="{}" data-y="{}""#, axis(&frame.x), axis(&frame.y))
}
