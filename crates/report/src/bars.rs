//! One named value each, as bars from zero.

use serde::{Deserialize, Serialize};

use super::Scale;
use super::number::significant;
use super::panels::clipped;
use super::scale::Axis;
use super::svg::{self, Anchor, Canvas, Width, escape, short, text_width};

/// More than this are drawn as thin columns, names under the pointer.
const ROWS: usize = 40;
const ROW: f64 = 24.0;

/// A bar chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// File stem.
    pub id: String,
    /// The question the figure answers.
    pub title: String,
    /// Name of the measure, with its unit.
    pub label: String,
    /// Name and value, in the order of the bars.
    pub values: Vec<(String, f64)>,
    /// What to see.
    pub caption: String,
}

impl Bars {
    /// The standalone light picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let drawing = draw(self, Width::Wide);
        drawing.canvas.standalone(&drawing.title, &drawing.caption)
    }
}

pub(super) fn draw(bars: &Bars, width: Width) -> svg::Drawing {
    let canvas = if bars.values.len() > ROWS { thin(bars, width) } else { rows(bars, width) };
    svg::Drawing { id: bars.id.clone(), title: bars.title.clone(), caption: bars.caption.clone(), canvas }
}

/// From zero to the values, whichever side of it they are on.
fn axis(bars: &Bars, span: (f64, f64)) -> Axis {
    let finite = bars.values.iter().map(|value| value.1).filter(|value| value.is_finite());
    let axis = Axis::over(finite.chain([0.0]), Scale::Linear, 0.0, span);
    // All zero: bars of no length, but an axis that starts at zero as well.
    if axis.low < 0.0 && bars.values.iter().all(|value| value.1.is_nan() || value.1 >= 0.0) {
        Axis { low: 0.0, ..axis }
    } else {
        axis
    }
}

fn rows(bars: &Bars, width: Width) -> Canvas {
    let total = width.pixels();
    let name = bars.values.iter().map(|(name, _)| text_width(name, 13.0)).fold(0.0, f64::max);
    let left = name.min(0.35 * total) + 10.0;
    let figures: Vec<String> = bars.values.iter().map(|(_, value)| significant(*value, 3)).collect();
    let figure = figures.iter().map(|text| text_width(text, 12.0)).fold(0.0, f64::max);
    let right = total - figure - 8.0;
    let axis = axis(bars, (left, right));
    let mut canvas = Canvas::new(total, ROW * bars.values.len().max(1) as f64 + 34.0);
    let bottom = canvas.height - 34.0;
    let zero = axis.clamped(0.0);
    for (index, ((name, value), figure)) in bars.values.iter().zip(&figures).enumerate() {
        let top = ROW * index as f64;
        let baseline = top + ROW / 2.0 + 4.5;
        canvas.text((left - 8.0, baseline), Anchor::End, "g-text", &clipped(name, left - 10.0, 13.0));
        let end = if value.is_finite() { axis.clamped(*value) } else { zero };
        canvas.rect((zero.min(end), top + 4.0), ((end - zero).abs(), ROW - 8.0), "g-f0");
        canvas.text((end.max(zero) + 6.0, baseline), Anchor::Start, "g-small", figure);
    }
    if bars.values.is_empty() {
        canvas.text((total / 2.0, 16.0), Anchor::Middle, "g-small", "No data to draw");
    }
    canvas.line((zero, 0.0), (zero, bottom), "g-axis");
    canvas.text((f64::midpoint(left, right), bottom + 22.0), Anchor::Middle, "g-text", &bars.label);
    canvas
}

fn thin(bars: &Bars, width: Width) -> Canvas {
    let total = width.pixels();
    let (top, bottom) = (26.0, 226.0);
    let axis = axis(bars, (bottom, top));
    let ticks = axis.ticks(4);
    let left = ticks.iter().map(|tick| text_width(&tick.label, 12.0)).fold(0.0, f64::max) + 8.0;
    let mut canvas = Canvas::new(total, bottom + 26.0);
    canvas.text((0.0, 13.0), Anchor::Start, "g-text", &bars.label);
    for tick in ticks {
        let y = axis.clamped(tick.value);
        canvas.line((left, y), (total, y), "g-grid");
        canvas.text((left - 6.0, y + 4.0), Anchor::End, "g-small", &tick.label);
    }
    let zero = axis.clamped(0.0);
    let step = (total - left) / bars.values.len() as f64;
    for (index, (name, value)) in bars.values.iter().enumerate().filter(|(_, (_, value))| value.is_finite()) {
        let end = axis.clamped(*value);
        canvas.push(format_args!(
            r#"<rect class="g-f0" x="{:.2}" y="{}" width="{:.2}" height="{}"><title>{}: {}</title></rect>"#,
            left + step * index as f64,
            short(zero.min(end)),
            (0.85 * step).max(step - 2.0),
            short((end - zero).abs()),
            escape(name),
            significant(*value, 3)
        ));
    }
    canvas.line((left, zero), (total, zero), "g-axis");
    let words = format!("{} bars, names under the pointer", bars.values.len());
    canvas.text((total, bottom + 20.0), Anchor::End, "g-small", &words);
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Bars {
        Bars {
            id: "gamma".into(),
            title: "t".into(),
            label: "gamma".into(),
            values: values.iter().enumerate().map(|(i, v)| (format!("<c{i}>"), *v)).collect(),
            caption: String::new(),
        }
    }

    /// Widths of the bars.
    fn lengths(svg: &str) -> Vec<f64> {
        svg.split("<rect class=\"g-f0\"")
            .skip(1)
            .filter_map(|rest| rest.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect()
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let svg = sample(&[1.0, 2.0, 4.0, 0.0]).svg();
        let found = lengths(&svg);
        assert_eq!(found.len(), 4);
        assert!(
            (found[1] - 2.0 * found[0]).abs() < 0.2 && (found[2] - 4.0 * found[0]).abs() < 0.4,
            "{found:?}"
        );
        assert_eq!(found[3], 0.0);
        assert!(svg.contains("&lt;c0&gt;") && !svg.contains("<c0>"));
    }

    #[test]
    fn any_values_can_be_drawn() {
        let many: Vec<f64> = (0..200).map(|i| f64::from(i % 7) - 2.0).collect();
        for values in [&[][..], &[0.0, 0.0], &[f64::NAN, 1.0], &[-1.0, -2.0], &many] {
            for width in [Width::Wide, Width::Narrow] {
                let svg = draw(&sample(values), width).canvas.standalone("", "");
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert!(crate::png(&svg, 300).is_ok());
            }
        }
        assert!(lengths(&sample(&[0.0, 0.0]).svg()).iter().all(|length| *length == 0.0));
        assert!(sample(&[f64::NAN]).svg().contains("not finite"));
    }
}
