//! Commands that only look: methods, data, configs, completions.

use crate::args::{self, Args};
use crate::failure::Failure;
use crate::input;
use crate::output::{self, Facts, STRONG, count, paint};
use clap::CommandFactory;
use fedkin::rooms::config;
use fedkin::rooms::experiment::Prepared;
use fedkin::rooms::method::registry::Row;
use fedkin::rooms::run::{Plan, Registry};
use fedkin::rooms::settings::{Param, Preset};
use serde::Serialize;
use std::fmt::Write as _;

/// A method as JSON.
#[derive(Serialize)]
struct Method {
    name: &'static str,
    summary: &'static str,
    needs_connected: bool,
    simulation_only: bool,
    models: &'static [&'static str],
    parameters: Vec<Parameter>,
}

/// A parameter as JSON: keys of inner tables are joined by a point.
#[derive(Serialize)]
struct Parameter {
    name: String,
    default: Option<String>,
    required: bool,
    range: String,
    help: &'static str,
}

/// All methods as JSON.
#[derive(Serialize)]
struct Methods {
    algorithms: Vec<Method>,
}

/// Lists the methods, or shows one.
pub(crate) fn algorithms(registry: &Registry, args: &args::Algorithms) -> Result<(), Failure> {
    match &args.name {
        None if args.json => {
            output::json(&Methods { algorithms: registry.methods().iter().map(method).collect() })
        }
        None => {
            let mut facts = Facts::default();
            for row in registry.methods() {
                facts.add(row.name, row.summary);
            }
            output::say(&format!("{}\nfedkin algorithms NAME shows the parameters of one.", facts.text()))
        }
        Some(name) => {
            let row = registry.methods().find(name).map_err(|error| Failure::Usage(error.to_string()))?;
            let found = method(row);
            if args.json { output::json(&found) } else { output::say(&described(&found)) }
        }
    }
}

fn method(row: &Row) -> Method {
    let mut parameters = Vec::new();
    collect("", row.params, &mut parameters);
    Method {
        name: row.name,
        summary: row.summary,
        needs_connected: row.needs_connected,
        simulation_only: row.simulation_only,
        models: row.personal,
        parameters,
    }
}

/// Keys of inner tables follow theirs.
fn collect(prefix: &str, params: &[Param], into: &mut Vec<Parameter>) {
    for param in params {
        let name = format!("{prefix}{}", param.name);
        into.push(Parameter {
            name: name.clone(),
            default: param.preset.value().map(|value| value.to_string()),
            required: matches!(param.preset, Preset::Required),
            range: param.kind.to_string(),
            help: param.help,
        });
        for inner in param.kind.tables() {
            collect(&format!("{name}."), inner, into);
        }
    }
}

fn described(method: &Method) -> String {
    let mut facts = Facts::default();
    facts.add(method.name, method.summary);
    facts.add("models", format!("{}; the first is the client's own", method.models.join(", ")));
    facts.add("graph", if method.needs_connected { "must be connected" } else { "may be in pieces" });
    if method.simulation_only {
        facts.add("needs", "raw records at one place: simulation only");
    }
    let mut text = facts.text();
    if method.parameters.is_empty() {
        text.push_str("\nIt has no parameters of its own.\n");
        return text;
    }
    let _ = writeln!(text, "\n{}", paint(STRONG, "[algorithm]"));
    for parameter in &method.parameters {
        let default = match (&parameter.default, parameter.required) {
            (Some(value), _) => format!("default {value}"),
            (None, true) => "required".into(),
            (None, false) => "optional".into(),
        };
        let _ = writeln!(text, "{}  {default}", paint(STRONG, &parameter.name));
        for part in [parameter.range.as_str(), parameter.help] {
            for line in output::wrapped(part, output::WIDTH - 4) {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    text
}

/// Checks a config with all its curves, and the data of its first repeat.
pub(crate) fn check(registry: &Registry, args: &args::Check) -> Result<(), Failure> {
    let parsed = input::parse(&args.file)?;
    let overrides = input::overrides(&args.set)?;
    let base = input::base(&args.file);
    let prepared = Prepared::of(registry, &parsed, &base, &overrides)?;
    prepared.suits()?;
    for doubt in prepared.doubts() {
        output::warn(doubt);
    }
    let plan = Plan::of(registry, &parsed, &base, &overrides, &[])?;
    let world = plan.world(0)?;
    let mut facts = Facts::default();
    facts.add("config", format!("{} is fine", parsed.name()));
    facts.add("method", plan.row.name);
    facts.add(
        "data",
        format!(
            "{}, {}, {}, {}",
            count(world.train.len(), "client"),
            count(world.federation.servers(), "server"),
            count(world.federation.clusters(), "cluster"),
            count(world.schema.features.len(), "feature")
        ),
    );
    facts.add(
        "to run",
        format!("{}, {}", count(plan.rounds() as usize, "round"), count(plan.repeats() as usize, "repeat")),
    );
    output::say(&facts.text())
}

/// Prints the reference of all keys.
pub(crate) fn reference(registry: &Registry) -> Result<(), Failure> {
    output::say(&config::reference(&registry.tables()))
}

/// Prints a completion script.
pub(crate) fn completions(args: &args::Completions) -> Result<(), Failure> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "fedkin", &mut script);
    output::say(&String::from_utf8_lossy(&script))
}
