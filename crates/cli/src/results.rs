//! `fedkin report` and `fedkin predict`: what to do with a run that is there.

use crate::args;
use crate::failure::Failure;
use crate::output::{self, Facts};
use fedkin::rooms::experiment::figures;
use fedkin::rooms::report::number;
use fedkin::rooms::run::Registry;
use fedkin::rooms::run::predict::{self, Prediction, Predictions};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes the report of a run and, if asked, opens it.
pub(crate) fn report(args: &args::Report) -> Result<(), Failure> {
    let page = figures::report_run(&args.run)?;
    let mut facts = Facts::default();
    facts.add("report", page.display().to_string());
    facts.add("figures", args.run.join("figures").display().to_string());
    output::say(&facts.text())?;
    if args.open { open(&page) } else { Ok(()) }
}

/// Hands a file to whatever the desktop opens pages with.
fn open(page: &Path) -> Result<(), Failure> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    Command::new(program)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(|_| ())
        .map_err(|error| {
            Failure::Usage(format!("cannot start {program} ({error}): open {} in a browser", page.display()))
        })
}

/// The JSON of predictions.
#[derive(Serialize)]
struct PredictionsJson<'a> {
    run: &'a Path,
    client: &'a str,
    model: &'a str,
    predictions: &'a [Prediction],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Score<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

#[derive(Serialize)]
struct Score<'a> {
    metric: &'a str,
    value: f64,
}

/// Predicts for every record of a file.
pub(crate) fn predict(registry: &Registry, args: &args::Predict) -> Result<(), Failure> {
    let found = predict::predict(registry, &args.run, &args.client, &args.data, args.model.as_deref())?;
    if args.json {
        return output::json(&PredictionsJson {
            run: &args.run,
            client: &found.client,
            model: &found.model,
            predictions: &found.rows,
            error: found.error.as_ref().map(|(metric, value)| Score { metric, value: *value }),
            note: found.note.as_deref(),
        });
    }
    output::say(&listing(&found))
}

/// All predictions as columns, then what they are worth.
fn listing(found: &Predictions) -> String {
    let targets = found.rows.iter().any(|row| row.target.is_some());
    let mut text = format!("{:>8}  {:>14}", "row", "predicted");
    if targets {
        let _ = write!(text, "  {:>14}", "target");
    }
    text.push('\n');
    for row in &found.rows {
        let _ = write!(text, "{:>8}  {:>14}", row.row, number::digits(row.value));
        if targets {
            let _ = write!(text, "  {:>14}", row.target.map_or("-".into(), number::digits));
        }
        text.push('\n');
    }
    let mut facts = Facts::default();
    facts.add("model", format!("{} of {}", found.model, found.client));
    if let Some((metric, value)) = &found.error {
        facts.add(metric, number::plain(*value));
    }
    if let Some(note) = &found.note {
        facts.add("note", output::wrapped(note, output::WIDTH - 10).join("\n"));
    }
    format!("{text}\n{}", facts.text())
}
