//! The reference of all keys as Markdown, from the tables that check them.

use super::{RowSummary, Tables, VERSION, sections};
use fedkin_settings::{Param, Preset, Settings};
use std::fmt::Write as _;

/// Every section and key: what it accepts, its default, what it does.
pub fn reference(tables: &Tables<'_>) -> String {
    let mut text = format!(
        "# Config reference\n\n\
         A config is TOML and starts with `version = {VERSION}`. Paths are relative to the config file. \
         Any key can be set on the command line: `--set section.key=value`.\n"
    );
    let fixed = |name: &str| sections::FIXED.iter().find(|row| row.0 == name);
    for name in sections::NAMES {
        match *name {
            "data" => selected(&mut text, "data", "source", "Where the records come from.", tables.sources),
            "model" => selected(&mut text, "model", "kind", "What each client fits.", tables.models),
            "learner" => {
                heading(
                    &mut text,
                    "[learner.NAME]",
                    "What some clients fit instead of what `[model]` says; optional, one table for each name, which letters, \
                     digits, - and _ make up. `kind` is required and selects the same other keys as in `[model]`. A client \
                     fits the learner that its records or the roster name (`data.learner`; the word `model` means `[model]`), \
                     else the one whose `clients` name it, else the one whose `clusters` name its cluster, else `[model]`. A \
                     table that no client has is an error, and so is a `[model]` that none has.",
                );
                table(&mut text, super::LearnerKeys::PARAMS, &[]);
            }
            "algorithm" => {
                selected(&mut text, "algorithm", "name", "How the models are learnt.", tables.algorithms);
            }
            "topology" => {
                heading(&mut text, "[topology]", "The graph of servers.");
                table(&mut text, tables.topology, &[]);
            }
            "curve" => {
                heading(&mut text, "[[curve]]", "One line of a figure; optional, repeated for each curve.");
                table(
                    &mut text,
                    sections::CurveKeys::PARAMS,
                    &[
                        (
                            "set",
                            "a table of keys with their section",
                            "empty",
                            "what differs from the base; a table replaces what was there, and keys that only the former \
                     algorithm, data source or kind of model knows leave with it",
                        ),
                        (
                            "grid",
                            "a table of keys with lists of values",
                            "empty",
                            "settings to try: all combinations are run, the best by `[tune]` is taken for what is reported",
                        ),
                        (
                            "along",
                            "a list of such tables, one for each value of `[sweep]`",
                            "empty",
                            "what differs besides at each value of the sweep",
                        ),
                    ],
                );
            }
            "tune" => {
                heading(
                    &mut text,
                    "[tune]",
                    "How the settings of a curve's `grid` are compared; optional where a curve has one.",
                );
                table(&mut text, sections::Tune::PARAMS, &[]);
            }
            "quick" => {
                heading(
                    &mut text,
                    "[quick]",
                    "Keys with their section and the values they have with `fedkin reproduce --quick`: fewer rounds, clients or \
                     repeats for a first look; optional. What a curve sets itself stays as it is.",
                );
            }
            "sweep" => {
                heading(&mut text, "[sweep]", "One key that takes several values; optional.");
                table(
                    &mut text,
                    sections::SweepKeys::PARAMS,
                    &[("values", "a list of what the key accepts", "*required*", "the values, one run each")],
                );
            }
            "paper" => {
                heading(&mut text, "[paper]", "What the experiment reproduces; optional.");
                table(
                    &mut text,
                    sections::PaperKeys::PARAMS,
                    &[(
                        "claims",
                        "a list of tables { text, check }",
                        "empty",
                        "what the paper claims, each written as [[paper.claims]]",
                    )],
                );
                rows(&mut text, "claims.", sections::Claim::PARAMS);
            }
            name => {
                if let Some((_, summary, params)) = fixed(name) {
                    heading(&mut text, &format!("[{name}]"), summary);
                    table(&mut text, params, &[]);
                }
            }
        }
    }
    text
}

fn heading(text: &mut String, title: &str, summary: &str) {
    let _ = write!(text, "\n## `{title}`\n\n{summary}\n");
}

fn selected(text: &mut String, section: &str, selector: &str, summary: &str, rows: &[RowSummary<'_>]) {
    heading(text, &format!("[{section}]"), summary);
    let _ = write!(
        text,
        "\n`{selector}` is required and selects the other keys.\n\n| {selector} | |\n|---|---|\n"
    );
    for (name, summary, _) in rows {
        let _ = writeln!(text, "| `\"{name}\"` | {} |", cell(summary));
    }
    for (name, _, params) in rows.iter().filter(|row| !row.2.is_empty()) {
        let _ = write!(text, "\n### `{selector} = \"{name}\"`\n");
        table(text, params, &[]);
    }
}

fn table(text: &mut String, params: &[Param], more: &[(&str, &str, &str, &str)]) {
    if params.is_empty() && more.is_empty() {
        return;
    }
    text.push_str("\n| key | accepts | default | |\n|---|---|---|---|\n");
    rows(text, "", params);
    for (name, accepts, default, help) in more {
        let _ = writeln!(text, "| `{name}` | {} | {default} | {} |", cell(accepts), cell(help));
    }
}

/// One row per key; keys of inner tables follow theirs.
fn rows(text: &mut String, prefix: &str, params: &[Param]) {
    for param in params {
        let default = match param.preset {
            Preset::Required => "*required*".to_string(),
            preset => preset.shown().map_or_else(|| "absent".into(), |value| format!("`{value}`")),
        };
        let (name, accepts) = (format!("{prefix}{}", param.name), cell(&param.kind.to_string()));
        let _ = writeln!(text, "| `{name}` | {accepts} | {} | {} |", cell(&default), cell(param.help));
        for inner in param.kind.tables() {
            rows(text, &format!("{name}."), inner);
        }
    }
}

/// A bar or a line break would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
