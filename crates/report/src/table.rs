//! The comparison table, for the page and for the terminal.

use std::fmt::Write as _;

use super::number::{Rounded, estimate};
use super::{Better, Column, Table, TableRow};

/// A table ready to print: baselines first, numbers rounded, best ones marked.
pub(super) struct Prepared<'a> {
    pub rows: Vec<PreparedRow<'a>>,
}

pub(super) struct PreparedRow<'a> {
    pub label: &'a str,
    pub baseline: bool,
    /// One per column of the table, however many the row had.
    pub cells: Vec<Option<Cell>>,
}

#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub text: Rounded,
    pub best: bool,
}

pub(super) fn prepare(table: &Table) -> Prepared<'_> {
    let mut rows: Vec<&TableRow> = table.rows.iter().collect();
    rows.sort_by_key(|row| !row.baseline);
    let mut prepared: Vec<PreparedRow<'_>> = rows
        .iter()
        .map(|row| PreparedRow {
            label: &row.label,
            baseline: row.baseline,
            cells: (0..table.columns.len())
                .map(|index| {
                    let value = row.cells.get(index).copied().flatten()?;
                    Some(Cell { text: estimate(value.mean, value.stderr), best: false })
                })
                .collect(),
        })
        .collect();
    for (index, column) in table.columns.iter().enumerate() {
        let mean = |row: &TableRow| {
            let value = row.cells.get(index).copied().flatten()?;
            value.mean.is_finite().then_some(value.mean)
        };
        let Some(best) = best_of(column, rows.iter().filter_map(|row| mean(row))) else { continue };
        // Those that print the same as the best are as good: the reader could not see why not.
        let printed: Vec<String> = rows
            .iter()
            .zip(&prepared)
            .filter(|(row, _)| mean(row) == Some(best))
            .filter_map(|(_, ready)| Some(ready.cells[index].as_ref()?.text.mean.clone()))
            .collect();
        for row in &mut prepared {
            if let Some(cell) = &mut row.cells[index] {
                cell.best = printed.contains(&cell.text.mean);
            }
        }
    }
    Prepared { rows: prepared }
}

/// The best of at least two values; one alone has beaten nobody.
fn best_of(column: &Column, values: impl Iterator<Item = f64>) -> Option<f64> {
    let better = column.better?;
    let values: Vec<f64> = values.collect();
    if values.len() < 2 {
        return None;
    }
    values.into_iter().reduce(|a, b| match better {
        Better::Lower => a.min(b),
        Better::Higher => a.max(b),
    })
}

/// Name, unit, and an arrow to the good end.
pub(super) fn heading(column: &Column) -> String {
    let mut text = column.name.clone();
    if !column.unit.is_empty() {
        let _ = write!(text, " ({})", column.unit);
    }
    match column.better {
        Some(Better::Lower) => text.push_str(" ↓"),
        Some(Better::Higher) => text.push_str(" ↑"),
        None => {}
    }
    text
}

/// What the marks mean; only those that occur.
pub(super) fn key(table: &Table, best: &str) -> String {
    let has = |wanted| table.columns.iter().any(|column| column.better == Some(wanted));
    let mut parts = Vec::new();
    if has(Better::Lower) {
        parts.push("↓ lower is better".to_owned());
    }
    if has(Better::Higher) {
        parts.push("↑ higher is better".to_owned());
    }
    if !parts.is_empty() {
        parts.push(format!("{best} best"));
    }
    let cells = || table.rows.iter().flat_map(|row| row.cells.iter().flatten());
    if cells().any(|cell| cell.stderr.is_some_and(f64::is_finite)) {
        parts.push("± one standard error".to_owned());
    }
    parts.join(", ")
}

/// Splits a column's cells so that the decimal points stand under each other: pads each mean on
/// both sides and each error on the left. `digit` and `point` are the blanks as wide as a digit
/// and as a decimal point.
pub(super) fn aligned(cells: &[Option<&Cell>], digit: char, point: char) -> Vec<Option<(String, String)>> {
    let split = |text: &str| {
        let whole = text.chars().take_while(|c| *c != '.').count();
        (whole, text.chars().count() - whole)
    };
    let numbers = || cells.iter().flatten().filter(|cell| cell.text.is_number());
    let widest = |part: &dyn Fn(&Cell) -> usize| numbers().map(|cell| part(cell)).max().unwrap_or(0);
    let whole = widest(&|cell| split(&cell.text.mean).0);
    let fraction = widest(&|cell| split(&cell.text.mean).1);
    let error = widest(&|cell| cell.text.error.as_ref().map_or(0, |error| error.chars().count()));
    cells
        .iter()
        .map(|cell| {
            let cell = (*cell)?;
            if !cell.text.is_number() {
                return Some((cell.text.mean.clone(), String::new()));
            }
            let (before, after) = split(&cell.text.mean);
            let mut mean: String = std::iter::repeat_n(digit, whole - before).collect();
            mean.push_str(&cell.text.mean);
            for place in after..fraction {
                mean.push(if place == 0 { point } else { digit });
            }
            let own = cell.text.error.clone().unwrap_or_default();
            let mut tail = if own.is_empty() { String::new() } else { "± ".to_owned() };
            tail.push_str(&own);
            if error > 0 {
                let missing = error + 2 - tail.chars().count();
                tail.extend(std::iter::repeat_n(digit, missing));
            }
            Some((mean, tail))
        })
        .collect()
}

/// The table as lines for a terminal. The best of a column carries a `*`.
#[must_use]
pub fn text_table(table: &Table) -> String {
    let prepared = prepare(table);
    let names: Vec<String> = prepared
        .rows
        .iter()
        .map(|row| if row.baseline { format!("{} (baseline)", row.label) } else { row.label.to_owned() })
        .collect();
    let mut lines: Vec<String> = padded("", &names, false);
    for (index, column) in table.columns.iter().enumerate() {
        let cells: Vec<Option<&Cell>> = prepared.rows.iter().map(|row| row.cells[index].as_ref()).collect();
        let texts: Vec<String> = aligned(&cells, ' ', ' ')
            .into_iter()
            .zip(&cells)
            .map(|(parts, cell)| match parts {
                Some((mean, tail)) => {
                    let star = if cell.is_some_and(|cell| cell.best) { " *" } else { "  " };
                    let tail = if tail.is_empty() { tail } else { format!(" {tail}") };
                    // A terminal's copy should paste into a spreadsheet: a plain hyphen.
                    format!("{mean}{tail}{star}").replace('\u{2212}', "-")
                }
                None => "-  ".to_owned(),
            })
            .collect();
        let heading = format!("{}  ", heading(column));
        for (line, text) in lines.iter_mut().zip(padded(&heading, &texts, true)) {
            line.push_str("  ");
            line.push_str(&text);
        }
    }
    let mut text = String::new();
    if !table.caption.is_empty() {
        let _ = writeln!(text, "{}", table.caption);
    }
    for line in lines {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let key = key(table, "*");
    if !key.is_empty() {
        let _ = writeln!(text, "{key}");
    }
    text
}

/// Heading and texts, all as wide as the widest.
fn padded(heading: &str, texts: &[String], right: bool) -> Vec<String> {
    let all = || std::iter::once(heading).chain(texts.iter().map(String::as_str));
    let width = all().map(|text| text.chars().count()).max().unwrap_or(0);
    all().map(|text| if right { format!("{text:>width$}") } else { format!("{text:<width$}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Estimate;
    use super::*;

    fn row(label: &str, baseline: bool, cells: &[Option<(f64, Option<f64>)>]) -> TableRow {
        let cell = |value: &Option<(f64, Option<f64>)>| value.map(|(mean, stderr)| Estimate { mean, stderr });
        TableRow { label: label.into(), baseline, cells: cells.iter().map(cell).collect() }
    }

    fn table() -> Table {
        let column = |name: &str, unit: &str, better| Column { name: name.into(), unit: unit.into(), better };
        Table {
            caption: "After 300 rounds".into(),
            columns: vec![
                column("error", "dB", Some(Better::Lower)),
                column("accuracy", "%", Some(Better::Higher)),
                column("rounds", "", None),
            ],
            rows: vec![
                row(
                    "pgfl",
                    false,
                    &[Some((-18.234, Some(0.052))), Some((91.0, Some(0.4))), Some((300.0, None))],
                ),
                row("local", true, &[Some((-9.8, Some(0.3))), Some((91.04, Some(0.5))), None]),
                row("gfl", false, &[Some((f64::NAN, None)), Some((80.0, Some(1.1)))]),
            ],
        }
    }

    #[test]
    fn the_baseline_comes_first_and_the_rest_keep_their_order() {
        let table = table();
        let labels: Vec<&str> = prepare(&table).rows.iter().map(|row| row.label).collect();
        assert_eq!(labels, ["local", "pgfl", "gfl"]);
    }

    #[test]
    fn ties_are_all_best_and_what_is_not_finite_never_is() {
        let table = table();
        let prepared = prepare(&table);
        let best: Vec<Vec<bool>> = prepared
            .rows
            .iter()
            .map(|row| row.cells.iter().map(|cell| cell.as_ref().is_some_and(|cell| cell.best)).collect())
            .collect();
        assert_eq!(best[0], [false, true, false]);
        assert_eq!(best[1], [true, true, false]);
        assert_eq!(best[2], [false, false, false]);
    }

    #[test]
    fn the_terminal_table_lines_up() {
        let text = text_table(&table());
        let lines: Vec<&str> = text.lines().collect();
        let column = |line: &str, c: char| line.chars().position(|x| x == c);
        assert_eq!(column(lines[2], '±'), column(lines[3], '±'));
        assert_eq!(column(lines[2], '.'), column(lines[3], '.'));
        assert!(lines[3].contains("-18.23 ± 0.05 *"), "{text}");
        assert!(lines[5].starts_with("↓ lower is better, ↑ higher is better, * best"), "{text}");
    }

    #[test]
    fn an_empty_table_is_no_panic() {
        let empty = Table { caption: String::new(), columns: vec![], rows: vec![] };
        assert_eq!(text_table(&empty).trim(), "");
    }
}
