//! The page. Everything it needs is in the file: style, figures, values.

use std::fmt::Write as _;

use super::number::{exact, rounded_up};
use super::palette::Palette;
use super::svg::{Drawing, Width, colours, escape, rules};
use super::table::{aligned, key, prepare};
use super::{
    Better, Chart, Claim, Picture, Privacy, Report, Table, Verdict, bars, chart, distribution, heat, hover,
    kin, network, stacks, topology,
};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// Blanks as wide as a digit and as a full stop.
const FIGURE_SPACE: char = '\u{2007}';
const PUNCTUATION_SPACE: char = '\u{2008}';

/// Every figure of a report in page order, with ids that can be file names.
pub(super) fn drawings(report: &Report, pictures: &[Picture], width: Width) -> Vec<Drawing> {
    let palette = palette(report);
    let charts = report.charts.iter().map(|chart| chart::draw(chart, &palette, width));
    let spreads = report.distributions.iter().map(|one| distribution::draw(one, &palette, width));
    let labels = report.labels.iter().map(|labels| stacks::draw(labels, width));
    let learnt = pictures.iter().map(|picture| match picture {
        Picture::Graphs(graphs) => topology::draw(graphs, width),
        Picture::Heat(maps) => heat::draw(maps, width),
        Picture::Bars(values) => bars::draw(values, width),
        Picture::Kin(graph) => kin::draw(graph, width),
    });
    let graph = report.graph.iter().map(|graph| network::draw(graph, width));
    let mut all: Vec<Drawing> = charts.chain(spreads).chain(labels).chain(learnt).chain(graph).collect();
    let mut used: Vec<String> = Vec::new();
    for drawing in &mut all {
        let stem = stem(&drawing.id);
        let mut name = stem.clone();
        let mut number = 2;
        while used.contains(&name) {
            name = format!("{stem}-{number}");
            number += 1;
        }
        used.push(name.clone());
        drawing.id = name;
    }
    all
}

fn palette(report: &Report) -> Palette {
    let lines = report.charts.iter().flat_map(|chart| &chart.series);
    let groups = report.distributions.iter().flat_map(|one| &one.groups);
    let methods = lines.map(|series| series.method.as_str()).chain(groups.map(|group| group.1.as_str()));
    Palette::new(methods, &report.colours)
}

/// A name that is safe as a file name and as an HTML id.
fn stem(id: &str) -> String {
    let mut name = String::new();
    for c in id.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "figure".to_owned() } else { name.to_owned() }
}

pub(super) fn page(report: &Report, pictures: &[Picture]) -> String {
    let mut body = String::new();
    let _ = writeln!(body, "<header>\n<h1>{}</h1>", escape(&report.title));
    if !report.lead.is_empty() {
        let _ = writeln!(body, "<p class=\"lead\">{}</p>", escape(&report.lead));
    }
    facts(&mut body, &report.facts);
    if let Some(spent) = &report.privacy {
        headline(&mut body, spent);
    }
    body.push_str("</header>\n");
    claims(&mut body, &report.claims);
    if let Some(table) = &report.table {
        comparison(&mut body, table, "How the methods compare");
    }
    for table in &report.by_client {
        comparison(&mut body, table, "What each client gets");
    }
    figures(&mut body, report, pictures);
    if let Some(table) = &report.tuning {
        comparison(&mut body, table, "How the settings were chosen");
    }
    if let Some(spent) = &report.privacy {
        privacy(&mut body, spent);
    }
    if !report.notes.is_empty() {
        body.push_str("<section>\n<h2>Notes</h2>\n");
        for note in &report.notes {
            let _ = writeln!(body, "<p>{}</p>", escape(note));
        }
        body.push_str("</section>\n");
    }
    if !report.config.is_empty() {
        let _ = writeln!(
            body,
            "<section>\n<h2>Configuration</h2>\n<details>\n<summary>The resolved configuration; \
             run it again to get this page again</summary>\n<pre>{}</pre>\n</details>\n</section>",
            escape(&report.config)
        );
    }
    let script =
        if report.charts.is_empty() { String::new() } else { format!("<script>\n{SCRIPT}</script>\n") };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>\n{}{STYLE}{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n{script}</body>\n</html>\n",
        escape(&report.title),
        variables(),
        rules(&|name| format!("var(--{name})")),
    )
}

/// Both sets of colours as CSS variables.
fn variables() -> String {
    let own = [
        ("panel", "#f4f6f8", "#20262d"),
        ("good", "#00704f", "#3fd0a4"),
        ("doubt", "#8a5a00", "#f2b53a"),
        ("bad", "#b03a00", "#ff9166"),
    ];
    let all = colours().into_iter().chain(own.map(|(name, light, dark)| (name.to_owned(), light, dark)));
    let (mut light, mut dark) = (String::new(), String::new());
    for (name, on_white, on_black) in all {
        let _ = write!(light, "--{name}:{on_white};");
        let _ = write!(dark, "--{name}:{on_black};");
    }
    format!(
        ":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n@media print{{:root{{{light}}}}}\n"
    )
}

fn facts(body: &mut String, facts: &[(String, String)]) {
    if facts.is_empty() {
        return;
    }
    body.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(body, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
    }
    body.push_str("</dl>\n");
}

fn claims(body: &mut String, claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let verdicts = [Verdict::Holds, Verdict::Fragile, Verdict::Fails, Verdict::Untested];
    let summary: Vec<String> = verdicts
        .into_iter()
        .filter(|verdict| count(*verdict) > 0)
        .map(|verdict| format!("{} {}", count(verdict), wording(verdict, count(verdict)).0))
        .collect();
    let _ = writeln!(
        body,
        "<section>\n<h2>What was claimed, and what came out</h2>\n<p class=\"muted\">Of {} claim{}: {}.</p>\n<ul class=\"claims\">",
        claims.len(),
        if claims.len() == 1 { "" } else { "s" },
        summary.join(", ")
    );
    for claim in claims {
        let (_, sign, class) = wording(claim.verdict, 1);
        let word = capitalised(wording(claim.verdict, 1).0);
        let _ = writeln!(
            body,
            "<li><span class=\"verdict {class}\">{sign} {word}</span><div><p>{}</p><p class=\"muted\">{}</p></div></li>",
            escape(&claim.text),
            escape(&claim.evidence)
        );
    }
    body.push_str("</ul>\n</section>\n");
}

/// Word, sign and class of a verdict; the word agrees with the number of claims.
fn wording(verdict: Verdict, count: usize) -> (&'static str, &'static str, &'static str) {
    match (verdict, count) {
        (Verdict::Holds, 1) => ("holds", "✓", "holds"),
        (Verdict::Holds, _) => ("hold", "✓", "holds"),
        (Verdict::Fragile, _) => ("fragile", "~", "fragile"),
        (Verdict::Fails, 1) => ("fails", "✗", "fails"),
        (Verdict::Fails, _) => ("fail", "✗", "fails"),
        (Verdict::Untested, _) => ("untested", "?", "untested"),
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

fn comparison(body: &mut String, table: &Table, title: &str) {
    let prepared = prepare(table);
    let key = key(table, "bold:");
    let _ = writeln!(
        body,
        "<section>\n<h2>{title}</h2>\n<div class=\"scroll broad\" role=\"region\" \
         aria-label=\"Comparison\" tabindex=\"0\">\n<table class=\"comparison\">\n\
         <caption>{}</caption>\n<thead><tr><th scope=\"col\">Method</th>",
        escape(&table.caption)
    );
    for column in &table.columns {
        let unit = if column.unit.is_empty() {
            String::new()
        } else {
            format!(" <span class=\"unit\">{}</span>", escape(&column.unit))
        };
        let arrow = match column.better {
            Some(Better::Lower) => " <abbr title=\"lower is better\">↓</abbr>",
            Some(Better::Higher) => " <abbr title=\"higher is better\">↑</abbr>",
            None => "",
        };
        let _ = writeln!(body, "<th scope=\"col\">{}{unit}{arrow}</th>", escape(&column.name));
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    let columns: Vec<_> = (0..table.columns.len())
        .map(|index| {
            let cells: Vec<_> = prepared.rows.iter().map(|row| row.cells[index].as_ref()).collect();
            aligned(&cells, FIGURE_SPACE, PUNCTUATION_SPACE)
        })
        .collect();
    for (index, row) in prepared.rows.iter().enumerate() {
        let (class, note) = if row.baseline {
            (" class=\"baseline\"", " <span class=\"unit\">baseline</span>")
        } else {
            ("", "")
        };
        let _ = write!(body, "<tr{class}><th scope=\"row\">{}{note}</th>", escape(row.label));
        for (cell, column) in row.cells.iter().zip(&columns) {
            match (cell, &column[index]) {
                (Some(cell), Some((mean, tail))) => {
                    let mean = if cell.best { format!("<strong>{mean}</strong>") } else { mean.clone() };
                    let tail = if tail.is_empty() {
                        String::new()
                    } else {
                        format!(" <span class=\"error\">{tail}</span>")
                    };
                    let _ = write!(body, "<td>{mean}{tail}</td>");
                }
                _ => body.push_str("<td>–</td>"),
            }
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody>\n</table>\n</div>\n");
    if !key.is_empty() {
        let _ = writeln!(body, "<p class=\"muted\">{}.</p>", capitalised(&escape(&key)));
    }
    body.push_str("</section>\n");
}

fn figures(body: &mut String, report: &Report, pictures: &[Picture]) {
    let palette = palette(report);
    let wide = drawings(report, pictures, Width::Wide);
    let narrow = drawings(report, pictures, Width::Narrow);
    let kin = pictures.iter().all(|picture| matches!(picture, Picture::Kin(_)));
    let learnt = if kin { "The graph of clients" } else { "The graphs that were learnt" };
    let sections = [
        ("Curves", report.charts.len()),
        ("Client by client", report.distributions.len()),
        ("The clients' records", usize::from(report.labels.is_some())),
        (learnt, pictures.len()),
        ("The servers", usize::from(report.graph.is_some())),
    ];
    let mut from = 0;
    for (heading, count) in sections.into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(body, "<section>\n<h2>{heading}</h2>");
        for index in from..from + count {
            figure(body, &wide[index], &narrow[index], report.charts.get(index), &palette);
        }
        body.push_str("</section>\n");
        from += count;
    }
}

fn figure(body: &mut String, wide: &Drawing, narrow: &Drawing, chart: Option<&Chart>, palette: &Palette) {
    let (id, title) = (&wide.id, &wide.title);
    let values = format!("values-{id}");
    let (hover, script) = match chart {
        Some(chart) => (
            format!(" hover\" data-values=\"{values}"),
            format!(
                "<script type=\"application/json\" id=\"{values}\">{}</script>\n",
                hover::data(chart, palette)
            ),
        ),
        None => (String::new(), String::new()),
    };
    let _ = writeln!(
        body,
        "<figure id=\"figure-{id}\">\n<h3>{}</h3>\n<div class=\"wide{hover}\">{}</div>\n<div class=\"narrow{hover}\">{}</div>\n<figcaption>{}</figcaption>\n{script}</figure>",
        escape(title),
        wide.canvas.inline(title),
        narrow.canvas.inline(title),
        escape(&wide.caption)
    );
}

/// What somebody who reads no further must know of the promise: the largest client, and what it rests on.
fn headline(body: &mut String, privacy: &Privacy) {
    let bound = privacy.bound.trim();
    let trusted = bound != "enforced";
    let mut lines = vec![format!(
        "Privacy: ε = {} at δ = {} for the client that spent most.",
        rounded_up(privacy.largest_epsilon),
        exact(privacy.delta)
    )];
    if trusted {
        lines.push(format!("<strong>Warning: sensitivity {}.</strong>", escape(bound)));
    }
    if !privacy.simulation.is_empty() {
        lines.push(format!("<strong>Simulation:</strong> {}.", escape(&privacy.simulation)));
    }
    let class = if trusted { "box" } else { "box calm" };
    let _ = writeln!(body, "<div class=\"{class}\" role=\"note\">{}</div>", lines.join("<br>"));
}

fn privacy(body: &mut String, privacy: &Privacy) {
    body.push_str("<section>\n<h2>What privacy was spent</h2>\n");
    if privacy.bound.trim() != "enforced" {
        let _ = writeln!(
            body,
            "<div class=\"box\" role=\"note\"><strong>Sensitivity {}.</strong> Nothing in this run \
             keeps one record's influence within the bound that the noise was sized for. If the bound does \
             not hold, neither do the figures below.</div>",
            escape(privacy.bound.trim())
        );
    }
    let delta = exact(privacy.delta);
    let _ = writeln!(
        body,
        "<p>The client that spent most is at <strong>ε = {}</strong> for δ = {delta}, after {} release{} by all \
         clients together.</p>",
        rounded_up(privacy.largest_epsilon),
        privacy.releases,
        if privacy.releases == 1 { "" } else { "s" }
    );
    let own = [
        ("Mechanism", privacy.mechanism.clone()),
        ("Sensitivity bound", privacy.bound.clone()),
        ("ε, largest over clients", rounded_up(privacy.largest_epsilon)),
        ("ε, mean over clients (nobody's guarantee)", rounded_up(privacy.mean_epsilon)),
        ("zCDP ρ, largest over clients", rounded_up(privacy.largest_zcdp)),
        ("zCDP ρ, mean over clients", rounded_up(privacy.mean_zcdp)),
        ("δ", delta),
        ("Releases", privacy.releases.to_string()),
    ];
    let rows = privacy.rows.iter().map(|(name, value)| (name.as_str(), value.clone()));
    body.push_str("<div class=\"scroll\"><table class=\"pairs\"><tbody>\n");
    for (name, value) in own.into_iter().chain(rows) {
        let _ = writeln!(body, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escape(name), escape(&value));
    }
    body.push_str("</tbody></table></div>\n<p class=\"muted\">Losses are rounded up.</p>\n</section>\n");
}
