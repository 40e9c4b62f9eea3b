//! `fedkin demo` and `fedkin reproduce`: an experiment with all its curves.

use crate::args::{self, Training};
use crate::failure::Failure;
use crate::input::{self, shell_word};
use crate::output::{self, BAD, DOUBT, FAINT, Facts, GOOD, count, paint};
use crate::progress;
use crate::run::checkpoints;
use fedkin::rooms::config::{Override, Parsed, Source};
use fedkin::rooms::experiment::{Comparison, CurveResult, Prepared, figures, library};
use fedkin::rooms::measure::paired;
use fedkin::rooms::method::Baseline;
use fedkin::rooms::report::{Verdict, number, text_table};
use fedkin::rooms::run::Registry;
use fedkin::rooms::settings::Value;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The built-in experiment of `fedkin demo`.
const DEMO: &str = "demo";

/// The JSON of a comparison: what the library says of it, and where its report is.
#[derive(Serialize)]
struct ComparisonJson<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    report: &'a Path,
}

/// Runs the demonstration.
pub(crate) fn demo(registry: &Registry, args: &args::Demo) -> Result<(), Failure> {
    let training = Training { set: Vec::new(), out: args.out.clone(), threads: None, json: args.json };
    let (comparison, report) = compare(registry, &parsed(&built_in(DEMO)?)?, Path::new(""), &[], &training)?;
    if args.json {
        return tell(&comparison, &report);
    }
    let mut text = body(&comparison);
    if let Some(line) = reading(&comparison) {
        let _ = writeln!(text, "\n{line}");
    }
    output::say(&format!("{text}\n{}", closing(&comparison, &report, &["fedkin new my-wards".to_string()])))
}

/// Runs an experiment of the library or of a file, or lists the library.
pub(crate) fn reproduce(registry: &Registry, args: &args::Reproduce) -> Result<(), Failure> {
    let Some(experiment) = args.experiment.as_deref().filter(|_| !args.list) else {
        return list(args.training.json);
    };
    let training = &args.training;
    let mut overrides = input::overrides(&training.set)?;
    if let Some(repeats) = args.repeats {
        overrides.push(Override { key: "run.repeats".into(), value: Value::Integer(i64::from(repeats)) });
    }
    input::threads(training.threads)?;
    let (source, base) = find(experiment)?;
    let parsed = parsed(&source)?;
    if args.quick {
        // The command line has the last word.
        let mut quick = quick(registry, &parsed)?;
        quick.append(&mut overrides);
        overrides = quick;
    }
    let (comparison, report) = compare(registry, &parsed, &base, &overrides, training)?;
    if training.json {
        return tell(&comparison, &report);
    }
    output::say(&format!("{}\n{}", body(&comparison), closing(&comparison, &report, &[])))
}

/// What `[quick]` of an experiment sets, under a name of its own: it is another run than the whole one.
fn quick(registry: &Registry, parsed: &Parsed) -> Result<Vec<Override>, Failure> {
    let config = parsed.load(&[], &registry.tables()).map_err(fedkin::rooms::run::Error::from)?;
    if config.quick.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has no [quick] section, so there is no quick profile: run it without --quick, or shorten it yourself, as with \
             --set run.rounds=10 --repeats 1",
            parsed.name()
        )));
    }
    let mut sets = config.quick;
    if !sets.iter().any(|set| set.key == "run.name") {
        let name = format!("{}-quick", config.run.name);
        sets.push(Override { key: "run.name".into(), value: Value::Text(name) });
    }
    Ok(sets)
}

/// A path means a file; a word means the library, unless a file of that name is there and no experiment.
fn find(experiment: &str) -> Result<(Source, PathBuf), Failure> {
    let path = Path::new(experiment);
    let is_path = experiment.contains(['/', '\\']) || path.extension().is_some_and(|e| e == "toml");
    if is_path || (path.is_file() && library::find(experiment).is_err()) {
        return Ok((input::read(path)?, input::base(path)));
    }
    Ok((built_in(experiment)?, PathBuf::new()))
}

fn built_in(name: &str) -> Result<Source, Failure> {
    let experiment = library::find(name)?;
    Ok(Source { name: experiment.name.into(), text: experiment.text.into() })
}

fn parsed(source: &Source) -> Result<Parsed, Failure> {
    Ok(Parsed::new(source).map_err(fedkin::rooms::run::Error::from)?)
}

fn compare(
    registry: &Registry,
    parsed: &Parsed,
    base: &Path,
    overrides: &[Override],
    training: &Training,
) -> Result<(Comparison, PathBuf), Failure> {
    let prepared = Prepared::of(registry, parsed, base, overrides)?;
    for doubt in prepared.doubts() {
        output::warn(doubt);
    }
    let out = input::out(training, prepared.name());
    let comparison =
        progress::watched(prepared.name(), prepared.rounds(), |control| prepared.run(&out, control))?
            .map_err(|error| input::interrupted(error, checkpoints(prepared.config())))?;
    let report = figures::report_comparison(&comparison)?;
    Ok((comparison, report))
}

/// The table, and the claims where there are some.
fn body(comparison: &Comparison) -> String {
    let mut table = text_table(&figures::table(comparison));
    let (tables, pairs) = figures::clients(comparison);
    for one in &tables {
        let _ = write!(table, "\n{}", text_table(one));
    }
    if let Some(tried) = figures::tuning(comparison) {
        let _ = write!(table, "\n{}", text_table(&tried));
    }
    if !pairs.is_empty() {
        table.push('\n');
    }
    for line in pairs.iter().flat_map(|pair| output::wrapped(pair, output::WIDTH)) {
        let _ = writeln!(table, "{line}");
    }
    if comparison.claims.is_empty() { table } else { format!("{table}\n{}", claims(comparison)) }
}

fn tell(comparison: &Comparison, report: &Path) -> Result<(), Failure> {
    // What was said before the run began is not said again.
    output::warn_aside(comparison.warnings.iter().filter(|warning| !warning.is_said_before()));
    output::json(&ComparisonJson { comparison, report })
}

/// What the numbers of the demonstration say, in words.
fn reading(comparison: &Comparison) -> Option<String> {
    // The method that the experiment is about, and one model for all.
    let personal = comparison.curves.iter().find(|curve| curve.algorithm == comparison.config.algorithm)?;
    let global = comparison.curves.iter().find(|curve| curve.baseline == Some(Baseline::OneModel))?;
    let distance = distance(personal, global, comparison)?;
    Some(format!("{} is {distance} than {}.", personal.label, global.label))
}

/// How much better or worse one curve ends than another, over the same seeds.
fn distance(a: &CurveResult, b: &CurveResult, comparison: &Comparison) -> Option<String> {
    let gap = paired(a.values.last()?, b.values.last()?, comparison.shown);
    let better = (gap.mean > 0.0) == comparison.shown.higher_is_better();
    let unit = if comparison.unit.is_empty() { String::new() } else { format!(" {}", comparison.unit) };
    let word = if better { "better" } else { "worse" };
    Some(format!("{}{unit} {word}", number::estimate(gap.mean.abs(), gap.stderr).typed()))
}

/// Every claim with a word for what was found; the colour repeats the word.
fn claims(comparison: &Comparison) -> String {
    let mut text = String::new();
    for claim in &comparison.claims {
        let (word, style) = match claim.verdict {
            Verdict::Holds => ("HOLDS", GOOD),
            Verdict::Fragile => ("FRAGILE", DOUBT),
            Verdict::Fails => ("FAILS", BAD),
            Verdict::Untested => ("UNTESTED", FAINT),
        };
        let pad = " ".repeat(10 - word.len());
        let lines = output::wrapped(&claim.text, output::WIDTH - 10);
        for (i, line) in lines.iter().enumerate() {
            let head = if i == 0 { paint(style, word) + &pad } else { " ".repeat(10) };
            let _ = writeln!(text, "{head}{line}");
        }
        for line in output::wrapped(&claim.evidence, output::WIDTH - 10) {
            let _ = writeln!(text, "{}{}", " ".repeat(10), paint(FAINT, &line));
        }
    }
    text
}

/// The last lines: what it took, what to know, what was written where, what to do next.
fn closing(comparison: &Comparison, report: &Path, next: &[String]) -> String {
    let mut facts = Facts::default();
    facts.add(
        "trained",
        format!(
            "{}, {}, {}",
            count(comparison.curves.len(), "curve"),
            count(comparison.repeats as usize, "repeat"),
            number::duration(comparison.seconds)
        ),
    );
    if let Some(privacy) = privacy(comparison) {
        facts.add("privacy", privacy);
    }
    for warning in &comparison.warnings {
        facts.styled("warning", DOUBT, output::wrapped(&warning.to_string(), output::WIDTH - 10).join("\n"));
    }
    facts.add("written", comparison.run.display().to_string());
    facts.add("report", report.display().to_string());
    let open = format!("fedkin report {} --open", shell_word(&comparison.run.to_string_lossy()));
    facts.list("next", std::iter::once(open).chain(next.iter().cloned()));
    facts.text()
}

/// The guarantees in one line: of the client that spent most, over all that was compared.
fn privacy(comparison: &Comparison) -> Option<String> {
    let all: Vec<f64> =
        comparison.curves.iter().flat_map(|curve| curve.epsilon.iter().copied().flatten()).collect();
    let (least, most) = all.iter().fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
    let first = comparison.curves.iter().find(|curve| curve.privacy.epsilon.is_some())?;
    let range = match (number::plain(least), number::plain(most)) {
        (least, most) if least == most => most,
        (least, most) => format!("{least} to {most}"),
    };
    Some(format!("epsilon {range} at delta {} for the client that spent most", first.privacy.delta))
}

fn list(json: bool) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Row {
        name: &'static str,
        summary: &'static str,
    }
    #[derive(Serialize)]
    struct List {
        experiments: Vec<Row>,
    }
    if json {
        let rows = library::all().iter().map(|found| Row { name: found.name, summary: found.summary });
        return output::json(&List { experiments: rows.collect() });
    }
    let mut facts = Facts::default();
    for experiment in library::all() {
        facts.add(experiment.name, output::wrapped(experiment.summary, output::WIDTH - 20).join("\n"));
    }
    output::say(&format!("{}\nfedkin reproduce NAME runs one of them.", facts.text()))
}
