//! The page. Everything it needs is in the file: style, figures, values.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::number::{exact, rounded_up};
use super::palette::Palette;
use super::svg::{Drawing, Width, colours, rules};
use super::table::{Cell, aligned, key, prepare};
use super::{
    Better, Chart, Claim, Column, Picture, Privacy, Report, Table, Verdict, bars, chart, distribution, heat,
    hover, kin, network, stacks, topology,
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
    let style = format!("{}{STYLE}{}", variables(), rules(&|name| format!("var(--{name})")));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (report.title) }
                style { (PreEscaped(style)) }
            }
            body {
                main { (content(report, pictures)) }
                @if !report.charts.is_empty() {
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    };
    printable(page.into_string() + "\n")
}

/// Control characters have no place on a page and are no markup, so the templates let them through. What ends a line
/// or indents it stays.
fn printable(page: String) -> String {
    let stray =
        |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t') || matches!(c, '\u{fffe}' | '\u{ffff}');
    if page.contains(stray) { page.replace(stray, "\u{fffd}") } else { page }
}

fn content(report: &Report, pictures: &[Picture]) -> Markup {
    html! {
        header {
            h1 { (report.title) }
            @if !report.lead.is_empty() {
                p class="lead" { (report.lead) }
            }
            @if !report.facts.is_empty() {
                dl class="facts" {
                    @for (name, value) in &report.facts {
                        div { dt { (name) } dd { (value) } }
                    }
                }
            }
            @if let Some(spent) = &report.privacy {
                (headline(spent))
            }
        }
        @if !report.claims.is_empty() {
            (claims(&report.claims))
        }
        @if let Some(table) = &report.table {
            (comparison(table, "How the methods compare"))
        }
        @for table in &report.by_client {
            (comparison(table, "What each client gets"))
        }
        (figures(report, pictures))
        @if let Some(table) = &report.tuning {
            (comparison(table, "How the settings were chosen"))
        }
        @if let Some(spent) = &report.privacy {
            (privacy(spent))
        }
        @if !report.notes.is_empty() {
            section {
                h2 { "Notes" }
                @for note in &report.notes {
                    p { (note) }
                }
            }
        }
        @if !report.config.is_empty() {
            section {
                h2 { "Configuration" }
                details {
                    summary { "The resolved configuration; run it again to get this page again" }
                    pre { (report.config) }
                }
            }
        }
    }
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

fn claims(claims: &[Claim]) -> Markup {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let verdicts = [Verdict::Holds, Verdict::Fragile, Verdict::Fails, Verdict::Untested];
    let summary: Vec<String> = verdicts
        .into_iter()
        .filter(|verdict| count(*verdict) > 0)
        .map(|verdict| format!("{} {}", count(verdict), wording(verdict, count(verdict)).0))
        .collect();
    html! {
        section {
            h2 { "What was claimed, and what came out" }
            p class="muted" {
                "Of " (claims.len()) " claim" (ending(claims.len() as u64)) ": " (summary.join(", ")) "."
            }
            ul class="claims" {
                @for claim in claims {
                    @let (word, sign, class) = wording(claim.verdict, 1);
                    li {
                        span class={ "verdict " (class) } { (sign) " " (capitalised(word)) }
                        div {
                            p { (claim.text) }
                            p class="muted" { (claim.evidence) }
                        }
                    }
                }
            }
        }
    }
}

/// What a plural adds.
fn ending(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
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

fn comparison(table: &Table, title: &str) -> Markup {
    let prepared = prepare(table);
    let key = key(table, "bold:");
    let columns: Vec<_> = (0..table.columns.len())
        .map(|index| {
            let cells: Vec<_> = prepared.rows.iter().map(|row| row.cells[index].as_ref()).collect();
            aligned(&cells, FIGURE_SPACE, PUNCTUATION_SPACE)
        })
        .collect();
    html! {
        section {
            h2 { (title) }
            div class="scroll broad" role="region" aria-label="Comparison" tabindex="0" {
                table class="comparison" {
                    caption { (table.caption) }
                    thead {
                        tr {
                            th scope="col" { "Method" }
                            @for column in &table.columns {
                                (heading(column))
                            }
                        }
                    }
                    tbody {
                        @for (index, row) in prepared.rows.iter().enumerate() {
                            tr class=[row.baseline.then_some("baseline")] {
                                th scope="row" {
                                    (row.label)
                                    @if row.baseline {
                                        " " span class="unit" { "baseline" }
                                    }
                                }
                                @for (cell, column) in row.cells.iter().zip(&columns) {
                                    td { (entry(cell.as_ref(), column[index].as_ref())) }
                                }
                            }
                        }
                    }
                }
            }
            @if !key.is_empty() {
                p class="muted" { (capitalised(&key)) "." }
            }
        }
    }
}

/// A measure's name, unit and an arrow to its good end.
fn heading(column: &Column) -> Markup {
    html! {
        th scope="col" {
            (column.name)
            @if !column.unit.is_empty() {
                " " span class="unit" { (column.unit) }
            }
            @match column.better {
                Some(Better::Lower) => { " " abbr title="lower is better" { "↓" } }
                Some(Better::Higher) => { " " abbr title="higher is better" { "↑" } }
                None => {}
            }
        }
    }
}

/// A cell with its texts padded: the mean, in bold where it is the best, and the error.
fn entry(cell: Option<&Cell>, texts: Option<&(String, String)>) -> Markup {
    let (Some(cell), Some((mean, tail))) = (cell, texts) else {
        return html! { "–" };
    };
    html! {
        @if cell.best { strong { (mean) } } @else { (mean) }
        @if !tail.is_empty() {
            " " span class="error" { (tail) }
        }
    }
}

fn figures(report: &Report, pictures: &[Picture]) -> Markup {
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
    let mut drawn = wide.iter().zip(&narrow).enumerate();
    html! {
        @for (title, count) in sections.into_iter().filter(|(_, count)| *count > 0) {
            section {
                h2 { (title) }
                @for (index, (wide, narrow)) in drawn.by_ref().take(count) {
                    (figure(wide, narrow, report.charts.get(index), &palette))
                }
            }
        }
    }
}

/// Both drawings of a figure; where it is a chart, with the values that show under the pointer.
fn figure(wide: &Drawing, narrow: &Drawing, chart: Option<&Chart>, palette: &Palette) -> Markup {
    let (id, title) = (&wide.id, &wide.title);
    let values = chart.map(|_| format!("values-{id}"));
    html! {
        figure id={ "figure-" (id) } {
            h3 { (title) }
            @for (class, drawing) in [("wide", wide), ("narrow", narrow)] {
                div class={ (class) @if chart.is_some() { " hover" } } data-values=[&values] {
                    (PreEscaped(drawing.canvas.inline(title)))
                }
            }
            figcaption { (wide.caption) }
            @if let Some(chart) = chart {
                script type="application/json" id=[&values] { (PreEscaped(hover::data(chart, palette))) }
            }
        }
    }
}

/// What somebody who reads no further must know of the promise: the largest client, and what it rests on.
fn headline(privacy: &Privacy) -> Markup {
    let bound = privacy.bound.trim();
    let trusted = bound != "enforced";
    html! {
        div class=(if trusted { "box" } else { "box calm" }) role="note" {
            "Privacy: ε = " (rounded_up(privacy.largest_epsilon)) " at δ = " (exact(privacy.delta))
            " for the client that spent most."
            @if trusted {
                br;
                strong { "Warning: sensitivity " (bound) "." }
            }
            @if !privacy.simulation.is_empty() {
                br;
                strong { "Simulation:" } " " (privacy.simulation) "."
            }
        }
    }
}

fn privacy(privacy: &Privacy) -> Markup {
    let bound = privacy.bound.trim();
    let largest = rounded_up(privacy.largest_epsilon);
    let delta = exact(privacy.delta);
    let releases = privacy.releases;
    let own = [
        ("Mechanism", privacy.mechanism.clone()),
        ("Sensitivity bound", privacy.bound.clone()),
        ("ε, largest over clients", largest.clone()),
        ("ε, mean over clients (nobody's guarantee)", rounded_up(privacy.mean_epsilon)),
        ("zCDP ρ, largest over clients", rounded_up(privacy.largest_zcdp)),
        ("zCDP ρ, mean over clients", rounded_up(privacy.mean_zcdp)),
        ("δ", delta.clone()),
        ("Releases", releases.to_string()),
    ];
    let rows = privacy.rows.iter().map(|(name, value)| (name.as_str(), value.clone()));
    html! {
        section {
            h2 { "What privacy was spent" }
            @if bound != "enforced" {
                div class="box" role="note" {
                    strong { "Sensitivity " (bound) "." }
                    " Nothing in this run keeps one record's influence within the bound that the noise was \
                     sized for. If the bound does not hold, neither do the figures below."
                }
            }
            p {
                "The client that spent most is at " strong { "ε = " (largest) } " for δ = " (delta) ", after "
                (releases) " release" (ending(releases)) " by all clients together."
            }
            div class="scroll" {
                table class="pairs" {
                    tbody {
                        @for (name, value) in own.into_iter().chain(rows) {
                            tr { th scope="row" { (name) } td { (value) } }
                        }
                    }
                }
            }
            p class="muted" { "Losses are rounded up." }
        }
    }
}
