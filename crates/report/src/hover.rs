//! The values behind a chart, for the page's hover script.

use std::fmt::Write as _;

use super::chart::thin;
use super::number::{estimate, significant};
use super::palette::Palette;
use super::scale::fits;
use super::{Chart, Point};

/// More points than this per line would make the page heavy and could not be hit by a pointer.
const POINTS: usize = 400;

/// JSON that is safe inside a `<script>` element: per line its label, colour and
/// `[x, mean, x as text, mean as text]`.
pub(super) fn data(chart: &Chart, palette: &Palette) -> String {
    let methods: Vec<&str> = chart.series.iter().map(|series| series.method.as_str()).collect();
    let slots = palette.for_figure(&methods);
    let mut json = format!("{{\"x\":{},\"series\":[", quoted(&chart.x_label));
    for (index, (series, slot)) in chart.series.iter().zip(slots).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let label = quoted(&series.label);
        let _ = write!(json, "{comma}{{\"label\":{label},\"slot\":{slot},\"points\":[");
        let mut points: Vec<Point> = series
            .points
            .iter()
            .filter(|point| fits(chart.x_scale, point.x) && fits(chart.y_scale, point.mean))
            .copied()
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        for (index, point) in thin(&points, POINTS / 2).iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(
                json,
                "{comma}[{:e},{:e},{},{}]",
                point.x,
                point.mean,
                quoted(&significant(point.x, 4)),
                quoted(&estimate(point.mean, point.stderr).joined())
            );
        }
        json.push_str("]}");
    }
    json.push_str("]}");
    json
}

fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            // `</script>` inside a string would end the element.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c if c.is_control() => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_string_cannot_leave_its_script() {
        assert_eq!(quoted("</script>"), "\"\\u003c/script\\u003e\"");
        assert_eq!(quoted("a\"b\\\n"), "\"a\\\"b\\\\\\u000a\"");
    }
}
