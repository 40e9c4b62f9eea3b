//! `fedkin ledger`: what clients spent on their data, and whether it can be believed.

use crate::args::{self, LedgerCommand};
use crate::failure::Failure;
use crate::output::{self, BAD, DOUBT, GOOD, STRONG, count, paint};
use fedkin::rooms::report::number;
use fedkin::rooms::run::Error;
use fedkin::rooms::run::ledger::{Details, Held, Verified, View, verify};
use std::fmt::Write;

/// So many rows are shown; the JSON has all.
const SHOWN: usize = 200;

/// Shows a ledger, or verifies some.
pub(crate) fn ledger(args: &args::Ledger) -> Result<(), Failure> {
    if let Some(LedgerCommand::Verify(args)) = &args.command {
        return checked(args);
    }
    let Some(place) = &args.place else {
        return Err(Failure::Usage("name a run directory or the folder of a ledger".into()));
    };
    if let Some(delta) = args.delta
        && !(delta > 0.0 && delta < 1.0)
    {
        return Err(Failure::Usage(format!("--delta {delta} is not between 0 and 1")));
    }
    let view = View::read(place, args.client.as_deref(), args.delta)?;
    if args.json {
        return output::json(&view);
    }
    output::say(&text(&view, args.client.as_deref()))
}

fn checked(args: &args::Verify) -> Result<(), Failure> {
    let verified = verify(&args.places, &args.head)?;
    if args.json {
        output::json(&verified)?;
    } else {
        output::say(&verdict(&verified))?;
    }
    match verified.faults.as_slice() {
        [] => Ok(()),
        [fault] => Err(Error::ClaimFailed(fault.what.clone()).into()),
        [fault, rest @ ..] => {
            Err(Error::ClaimFailed(format!("{}; and {} more", fault.what, rest.len())).into())
        }
    }
}

fn verdict(verified: &Verified) -> String {
    let mut text = String::new();
    for fault in &verified.faults {
        let _ = writeln!(text, "{} {}", paint(BAD, "does not hold:"), fault.what);
    }
    let word =
        if verified.faults.is_empty() { paint(GOOD, "chains verified:") } else { "chains verified:".into() };
    let _ = writeln!(text, "{word} {}, {}", verified.chains, count(verified.lines as usize, "line"));
    if verified.remembered > 0 {
        let _ = writeln!(text, "remembered ends found in them: {}", verified.remembered);
    }
    if verified.elsewhere > 0 {
        let _ = writeln!(text, "remembered ends of clients that are not here: {}", verified.elsewhere);
    }
    if verified.remembered == 0 && verified.faults.is_empty() {
        text.push_str(
            "no older end was given to compare with: a whole folder that was put back from a copy would not show\n",
        );
    }
    text
}

fn text(view: &View, client: Option<&str>) -> String {
    let mut text = headline(view);
    let rows: Vec<&Held> =
        view.chains.iter().filter(|row| client.is_none_or(|name| row.client == name)).collect();
    text.push('\n');
    text.push_str(&table(&rows));
    if rows.len() > SHOWN {
        let _ = writeln!(text, "and {} more: --json has all", rows.len() - SHOWN);
    }
    if client.is_some() {
        text.push('\n');
        text.push_str(&lines(&view.lines));
    }
    text.push('\n');
    if view.chains_verified > 0 {
        let _ = writeln!(text, "{} {}", paint(GOOD, "chains verified:"), view.chains_verified);
    } else if view.chains.iter().any(|row| row.head.is_some()) {
        text.push_str(
            "these are the ends when the run was charged: `fedkin ledger verify LEDGER RUN` compares them\n",
        );
    } else {
        text.push_str(
            "no chain to verify: the run kept its ledger for itself; `privacy.ledger` keeps one that lasts\n",
        );
    }
    text
}

/// The bound of a price that was refuted.
const REFUTED: &str = "refuted by audit: no guarantee";

/// The weakest guarantee: never the mean.
fn headline(view: &View) -> String {
    let Some(row) = view.largest.and_then(|at| view.chains.get(at)) else {
        return "nothing left a client\n".into();
    };
    let name = &row.client;
    let mut text = match row.epsilon {
        None => {
            let open = view
                .chains
                .iter()
                .filter(|other| other.epsilon.is_none() && other.bound == row.bound)
                .count();
            let (what, end) = if row.bound == REFUTED {
                ("the price is a claim that an audit has refuted", "no epsilon holds")
            } else {
                ("something left without noise", "epsilon is infinite")
            };
            format!(
                "{}: {what} at {open} of {}, {name} among them; {end}\n",
                paint(BAD, "NOT PRIVATE"),
                count(view.chains.len(), "client"),
            )
        }
        Some(epsilon) => {
            let exact = row
                .epsilon_gaussian
                .map_or_else(String::new, |exact| format!(", {} by exact composition", number::plain(exact)));
            format!(
                "{} at delta {} for {name}, the client that spent most: {} zCDP{exact}\n",
                paint(STRONG, &format!("epsilon {}", number::plain(epsilon))),
                view.delta,
                number::plain(row.zcdp),
            )
        }
    };
    if view.chains.iter().any(|row| row.bound.starts_with("assumed")) {
        let _ = writeln!(
            text,
            "{}: these prices hold only if the bound does, and nothing enforces it",
            paint(DOUBT, "BOUND ASSUMED, NOT ENFORCED")
        );
    }
    if view.chains.iter().any(|row| row.bound.starts_with("claimed")) {
        let _ = writeln!(
            text,
            "{}: these prices hold only if the learner is right about itself",
            paint(DOUBT, "BOUND CLAIMED, NOT CHECKED")
        );
    }
    text
}

fn table(rows: &[&Held]) -> String {
    let shown = &rows[..rows.len().min(SHOWN)];
    let head = [
        "client", "data", "runs", "lines", "releases", "refusals", "zCDP", "epsilon", "exact", "bound",
        "head",
    ];
    let epsilon = |row: &Held, value: Option<f64>| match (row.releases, row.epsilon, value) {
        (0, ..) => String::new(),
        (_, None, _) if row.bound == REFUTED => "none".into(),
        (_, None, _) => "infinite".into(),
        (.., value) => value.map_or_else(String::new, number::plain),
    };
    let short = |text: &str| text.get(..8).unwrap_or(text).to_string();
    let cells: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            vec![
                row.client.clone(),
                short(&row.data),
                row.runs.to_string(),
                row.lines.to_string(),
                row.releases.to_string(),
                row.refusals.to_string(),
                number::plain(row.zcdp),
                epsilon(row, row.epsilon),
                epsilon(row, row.epsilon_gaussian),
                match row.bound.as_str() {
                    "assumed, not enforced" => "ASSUMED".into(),
                    "claimed by the learner, not checked" => "CLAIMED".into(),
                    "not private" => "NOT PRIVATE".into(),
                    REFUTED => "REFUTED".into(),
                    word => word.to_string(),
                },
                row.head.as_deref().map_or_else(|| "none".into(), short),
            ]
        })
        .collect();
    aligned(&head, &cells, &[2, 3, 4, 5, 6, 7, 8])
}

fn lines(lines: &[Details]) -> String {
    let head = [
        "line",
        "run",
        "data",
        "step",
        "what",
        "mechanism",
        "bound",
        "sigma",
        "numbers",
        "zCDP",
        "total",
        "sent",
    ];
    let cells: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            vec![
                line.line.to_string(),
                line.run.clone(),
                line.data.clone(),
                line.step.to_string(),
                line.what.clone(),
                line.mechanism.clone(),
                match line.bound.as_str() {
                    REFUTED => "REFUTED".into(),
                    word if word.starts_with("assumed") => "ASSUMED".into(),
                    word if word.starts_with("claimed") => "CLAIMED".into(),
                    word => word.to_string(),
                },
                number::plain(line.sigma),
                line.numbers.to_string(),
                number::plain(line.zcdp),
                number::plain(line.total),
                line.sent.clone(),
            ]
        })
        .collect();
    aligned(&head, &cells, &[0, 3, 7, 8, 9, 10])
}

/// Columns side by side; those named are numbers and end on one line.
pub(crate) fn aligned(head: &[&str], rows: &[Vec<String>], numbers: &[usize]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let parts = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if numbers.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        parts.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    let mut text = line(&head.iter().map(ToString::to_string).collect::<Vec<_>>());
    for row in rows {
        text.push_str(&line(row));
    }
    text
}
