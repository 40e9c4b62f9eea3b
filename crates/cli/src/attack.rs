//! `fedkin attack`: what lying clients do to the others, with and without each defence.

use crate::failure::Failure;
use crate::output::{self, count};
use crate::{args, input};
use fedkin::rooms::experiment::attack::{self, Attack, AttackReport};
use fedkin::rooms::run::{Plan, Registry};
use std::fmt::Write;

/// Runs a config with and without liars under every defence.
pub(crate) fn attack(registry: &Registry, args: &args::Attack) -> Result<(), Failure> {
    let overrides = input::overrides(&args.set)?;
    input::threads(args.threads)?;
    let source = input::read(&args.file)?;
    let plan = Plan::load(registry, &source, &input::base(&args.file), &overrides, &[])?;
    let kind = Attack::named(&args.kind)
        .ok_or_else(|| Failure::Usage(format!("unknown kind of attack {:?}", args.kind)))?;
    let report = attack::attack(&plan, kind, args.liars)?;
    if args.json { output::json(&report) } else { output::say(&told(&report)) }
}

fn told(report: &AttackReport) -> String {
    let mut text = format!(
        "{}, method {}: {} of {} lie ({}), {}; {} of the honest clients\n\n",
        report.name,
        report.algorithm,
        report.liars,
        count(report.clients, "client"),
        report.kind,
        count(report.repeats as usize, "repeat"),
        report.metric
    );
    let _ = writeln!(
        text,
        "{:<18}{:>12}{:>10}{:>12}{:>10}{:>10}",
        "aggregation", "all honest", "cost", "attacked", "harm", "moved"
    );
    for defence in &report.defences {
        let _ = writeln!(
            text,
            "{:<18}{:>12.3e}{:>10.2}{:>12.3e}{:>10.2}{:>10.1}{}",
            defence.aggregation,
            defence.honest,
            defence.cost,
            defence.attacked,
            defence.harm,
            defence.moved,
            defence.stopped.as_ref().map_or_else(String::new, |why| format!("  stopped: {why}"))
        );
    }
    text.push_str(
        "\ncost and harm: how much worse than the honest run with plain means (dB for errors, a difference otherwise);\n\
         moved: distance of the honest clients' models from those of the honest run with the same defence, in dB",
    );
    text
}
