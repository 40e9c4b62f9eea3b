//! A small SVG writer. Shapes carry classes, never colours: the page fills the classes with CSS
//! variables, the standalone file with literals.

use std::fmt::Write as _;

use super::palette::{CLUSTER_COLOURS, HEAT_COLOURS, METHOD_COLOURS, NEUTRALS};

/// For which column a figure is drawn. Phones get their own drawing: shrinking the wide one would
/// shrink its letters too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Wide,
    Narrow,
}

impl Width {
    /// In units of one CSS pixel.
    pub(super) fn pixels(self) -> f64 {
        match self {
            Self::Wide => 760.0,
            Self::Narrow => 360.0,
        }
    }
}

/// Which side of its position a text lies on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A finished figure with the words around it.
#[derive(Debug, Clone)]
pub(super) struct Drawing {
    pub id: String,
    pub title: String,
    pub caption: String,
    pub canvas: Canvas,
}

/// Shapes on a sheet.
#[derive(Debug, Clone)]
pub(super) struct Canvas {
    pub width: f64,
    pub height: f64,
    /// Further attributes of the inline `<svg>`, already escaped.
    pub attributes: String,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, attributes: String::new(), body: String::new() }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.push(format_args!(
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            short(from.0),
            short(from.1),
            short(to.0),
            short(to.1)
        ));
    }

    pub(super) fn path(&mut self, data: &str, class: &str) {
        self.push(format_args!(r#"<path class="{class}" d="{data}"/>"#));
    }

    /// A path with a dash pattern; an empty pattern is a full line.
    pub(super) fn dashed_path(&mut self, data: &str, class: &str, dashes: &str) {
        if dashes.is_empty() {
            self.path(data, class);
        } else {
            self.push(format_args!(r#"<path class="{class}" stroke-dasharray="{dashes}" d="{data}"/>"#));
        }
    }

    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        self.push(format_args!(
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"/>"#,
            short(x),
            short(y),
            short(width.max(0.0)),
            short(height.max(0.0))
        ));
    }

    pub(super) fn circle(&mut self, (x, y): (f64, f64), radius: f64, class: &str) {
        self.push(format_args!(
            r#"<circle class="{class}" cx="{}" cy="{}" r="{}"/>"#,
            short(x),
            short(y),
            short(radius)
        ));
    }

    /// A text whose baseline starts, ends or is centred at a position.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, content: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        self.push(format_args!(
            r#"<text class="{class}" x="{}" y="{}"{anchor}>{}</text>"#,
            short(x),
            short(y),
            escape(content)
        ));
    }

    /// The marker that goes with a colour.
    pub(super) fn marker(&mut self, (x, y): (f64, f64), radius: f64, slot: usize, class: &str) {
        let r = radius;
        let corners: &[(f64, f64)] = match slot % 6 {
            0 => return self.circle((x, y), r, class),
            1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => &[(0.0, -1.25), (1.15, 0.8), (-1.15, 0.8)],
            3 => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            4 => &[(0.0, 1.25), (1.15, -0.8), (-1.15, -0.8)],
            _ => &[(0.0, -1.25), (1.2, -0.35), (0.75, 1.05), (-0.75, 1.05), (-1.2, -0.35)],
        };
        let points: Vec<(f64, f64)> = corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect();
        self.path(&(polyline(&points) + "Z"), class);
    }

    /// A shape as it is; texts in it must be escaped.
    pub(super) fn push(&mut self, shape: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(shape);
        self.body.push('\n');
    }

    /// For the page: no size of its own, colours from the page.
    pub(super) fn inline(&self, description: &str) -> String {
        format!(
            "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{}>\n{}</svg>",
            short(self.width),
            short(self.height),
            escape(description),
            self.attributes,
            self.body
        )
    }

    /// For a file: with title, size, paper and literal colours.
    pub(super) fn standalone(&self, title: &str, caption: &str) -> String {
        let margin = 16.0;
        let lines = wrapped(title, self.width, 17.0);
        let head = margin + 24.0 * lines.len() as f64 + if lines.is_empty() { 0.0 } else { 6.0 };
        let (width, height) = (self.width + 2.0 * margin, self.height + head + margin);
        let mut heading = String::new();
        for (index, line) in lines.iter().enumerate() {
            let y = margin + 16.0 + 24.0 * index as f64;
            let _ = writeln!(
                heading,
                r#"<text class="g-title" x="{margin}" y="{}">{}</text>"#,
                short(y),
                escape(line)
            );
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n\
             <style>\ntext{{font-family:'Noto Sans','Segoe UI',Helvetica,Arial,sans-serif}}\n{}</style>\n\
             <rect class=\"g-paper\" width=\"{w}\" height=\"{h}\"/>\n{heading}\
             <g transform=\"translate({margin} {})\">\n{}</g>\n</svg>\n",
            escape(title),
            escape(caption),
            rules(&literal),
            short(head),
            self.body,
            w = short(width),
            h = short(height),
        )
    }
}

/// The rules for every class a figure uses; `colour` says how a colour is written.
pub(super) fn rules(colour: &dyn Fn(&str) -> String) -> String {
    let (ink, muted, grid, paper) = (colour("ink"), colour("muted"), colour("grid"), colour("paper"));
    let mut css = format!(
        ".g-paper{{fill:{paper}}}\n\
         .g-title{{font-size:17px;font-weight:bold;fill:{ink}}}\n\
         .g-text{{font-size:13px;fill:{ink}}}\n\
         .g-bold{{font-size:13px;font-weight:bold;fill:{ink}}}\n\
         .g-small{{font-size:12px;fill:{muted}}}\n\
         .g-name{{font-size:11px;fill:{ink};stroke:{paper};stroke-width:3px;paint-order:stroke;stroke-linejoin:round}}\n\
         .g-grid{{stroke:{grid};stroke-width:1px}}\n\
         .g-axis{{stroke:{muted};stroke-width:1px;fill:none}}\n\
         .g-edge{{stroke:{muted};stroke-width:1.2px;stroke-opacity:.55}}\n\
         .g-faint{{stroke:{muted};stroke-width:.7px;stroke-opacity:.35}}\n\
         .g-rest{{stroke:{muted};stroke-width:1px;stroke-opacity:.5;fill:none}}\n\
         .g-dot{{fill:{muted}}}\n\
         .g-median{{stroke:{ink};stroke-width:2.5px}}\n\
         .g-line{{fill:none;stroke-width:2px;stroke-linejoin:round;stroke-linecap:round}}\n\
         .g-thin{{fill:none;stroke-width:1.2px}}\n\
         .g-quiet{{fill:none;stroke:{muted};stroke-width:1.2px}}\n\
         .g-band{{fill-opacity:.17;stroke:none}}\n\
         .g-box{{fill-opacity:.22;stroke-width:1.2px}}\n\
         .g-bead{{fill-opacity:.75}}\n\
         .g-edged{{stroke:{paper};stroke-width:1px}}\n\
         .g-tiny{{font-size:10px;fill:{muted}}}\n\
         .g-point{{fill:{ink};stroke:{paper};stroke-width:1px}}\n\
         .g-node{{stroke:{ink};stroke-width:.9px}}\n\
         .g-common,.g-own,.g-plain{{fill:none;stroke-linecap:round}}\n\
         .g-plain{{stroke:{muted}}}\n\
         .g-none{{fill:{}}}\n",
        colour("none")
    );
    let _ = writeln!(css, ".g-common{{stroke:{}}}\n.g-own{{stroke:{}}}", colour("s0"), colour("s1"));
    for level in 0..HEAT_COLOURS.len() {
        let _ = writeln!(css, ".g-h{level}{{fill:{}}}", colour(&format!("h{level}")));
    }
    for slot in 0..METHOD_COLOURS.len() {
        let hue = colour(&format!("s{slot}"));
        let _ = writeln!(css, ".g-s{slot}{{stroke:{hue}}}\n.g-f{slot}{{fill:{hue}}}");
    }
    for slot in 0..CLUSTER_COLOURS.len() {
        let hue = colour(&format!("k{slot}"));
        let _ = writeln!(css, ".g-k{slot}{{fill:{hue}}}");
    }
    css
}

/// Name and the two variants of every colour.
pub(super) fn colours() -> Vec<(String, &'static str, &'static str)> {
    let neutrals = NEUTRALS.iter().map(|(name, light, dark)| ((*name).to_owned(), *light, *dark));
    let methods = METHOD_COLOURS.iter().enumerate().map(|(i, (l, d))| (format!("s{i}"), *l, *d));
    let clusters = CLUSTER_COLOURS.iter().enumerate().map(|(i, (l, d))| (format!("k{i}"), *l, *d));
    let heat = HEAT_COLOURS.iter().enumerate().map(|(i, (l, d))| (format!("h{i}"), *l, *d));
    neutrals.chain(methods).chain(clusters).chain(heat).collect()
}

fn literal(name: &str) -> String {
    colours()
        .into_iter()
        .find(|(known, ..)| known == name)
        .map_or_else(|| "#000000".to_owned(), |(_, light, _)| light.to_owned())
}

/// Text made safe for element content and quoted attributes of HTML and XML. Control characters
/// have no place in XML 1.0, not even escaped.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// A length to a tenth of a pixel, without trailing zeros.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Path data through points.
pub(super) fn polyline(points: &[(f64, f64)]) -> String {
    let mut data = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = write!(data, "{}{} {}", if index == 0 { "M" } else { "L" }, short(*x), short(*y));
    }
    data
}

/// How wide a text will be, about; a little generous, because the reader's font is not known.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.3,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.38,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.92,
            c if c.is_ascii_uppercase() => 0.68,
            c if c.is_ascii() => 0.58,
            c if c < '\u{2e80}' => 0.62,
            _ => 1.05,
        })
        .sum();
    ems * size
}

/// Breaks a text into lines of at most `width`.
pub(super) fn wrapped(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
