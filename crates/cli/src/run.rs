//! `fedkin run`: one method as a config says.

use crate::args::{self, Runtime};
use crate::failure::Failure;
use crate::input::{self, Start, shell_word};
use crate::output::{self, DOUBT, Facts, count};
use crate::{network, progress};
use fedkin::rooms::config::Config;
use fedkin::rooms::measure::{MetricTable, Shown};
use fedkin::rooms::method::registry::Row;
use fedkin::rooms::privacy::Sampler;
use fedkin::rooms::report::number;
use fedkin::rooms::run::{Finished, Plan, Registry, SampledReleases};
use serde::Serialize;
use std::path::Path;

/// The JSON of a run: what the library says of it, and how this call began.
#[derive(Serialize)]
struct RunJson<'a> {
    #[serde(flatten)]
    finished: &'a Finished,
    start: &'static str,
}

/// Trains, or goes on training, or says that all is done.
pub(crate) fn run(registry: &Registry, args: &args::Run) -> Result<(), Failure> {
    let training = &args.training;
    let parsed = input::parse(&args.file)?;
    let overrides = input::overrides(&training.set)?;
    input::threads(training.threads)?;
    // Curves and sweeps are checked with the rest, although only the base is run here.
    let whole = parsed.load(&overrides, &registry.tables()).map_err(fedkin::rooms::run::Error::from)?;
    let base = input::base(&args.file);
    let plan = Plan::of(registry, &parsed, &base, &overrides, &[])?;
    if let Some(doubt) = plan.doubt() {
        output::warn(doubt);
    }
    let out = input::out(training, plan.name());
    let start = Start::of(&out);
    // The run remembers where its data are, whatever folder a later command starts from.
    let anchor = std::env::current_dir().map_or(base.clone(), |here| here.join(&base));
    let row = plan.row;
    let finished = match args.runtime {
        Runtime::Nats => network::launch(args, plan, &out, &anchor)?,
        Runtime::Local => {
            if let Some(flag) = [("--url", args.url.is_some()), ("--processes", args.processes.is_some())]
                .iter()
                .find(|(_, given)| *given)
            {
                return Err(Failure::Usage(format!("{} is for --runtime nats", flag.0)));
            }
            let rounds = u64::from(plan.rounds()) * u64::from(plan.repeats());
            progress::watched(plan.name(), rounds, |control| {
                fedkin::rooms::experiment::run(&plan, &out, &anchor, control)
            })?
            .map_err(|error| input::interrupted(error, checkpoints(&plan.config)))?
        }
    };
    if training.json {
        // What was said before the run began is not said again.
        output::warn_aside(finished.warnings.iter().filter(|warning| !warning.is_said_before()));
        return output::json(&RunJson { finished: &finished, start: start.word() });
    }
    output::say(&summary(registry.metrics(), &finished, start, &row, &out, &also(&whole, &args.file, &out)))
}

/// Whether a run with this config can be resumed.
pub(crate) fn checkpoints(config: &Config) -> bool {
    config.run.checkpoint_seconds > 0.0
}

/// What else the file is good for.
fn also(config: &Config, file: &Path, out: &Path) -> Vec<String> {
    if config.curves.is_empty() && config.sweep.is_none() {
        return Vec::new();
    }
    let what = match (&config.curves[..], &config.sweep) {
        ([], _) => "the sweep of the file".to_string(),
        (curves, _) => count(curves.len(), "curve") + " of the file, compared",
    };
    let file = shell_word(&file.to_string_lossy());
    let out = shell_word(&format!("{}-compared", out.display()));
    vec![format!("fedkin reproduce {file} --out {out}   ({what})")]
}

fn summary(
    metrics: &MetricTable,
    finished: &Finished,
    start: Start,
    row: &Row,
    out: &Path,
    also: &[String],
) -> String {
    let [clients, servers, clusters] = finished.size;
    let mut facts = Facts::default();
    match start {
        Start::Fresh => {}
        Start::Resumed => {
            facts.add("resumed", "from the last checkpoint");
        }
        Start::Complete => {
            facts.add("complete", "this run was complete already; nothing was run again");
        }
    }
    facts.add("method", format!("{}: {}", finished.algorithm, row.summary));
    facts.add(
        "on",
        format!("{}, {}, {}", count(clients, "client"), count(servers, "server"), count(clusters, "cluster")),
    );
    facts.add(
        "trained",
        format!(
            "{}, {}, {}",
            count(finished.rounds as usize, "round"),
            count(finished.repeats as usize, "repeat"),
            number::duration(finished.seconds)
        ),
    );
    facts.list("final", finals(metrics, finished, row.graphs));
    let apart = apart(metrics, finished);
    if !apart.is_empty() {
        facts.list("over clients", apart);
    }
    facts.add("privacy", privacy(finished));
    if let Some(from) = finished.privacy.refused_from {
        let many = finished.privacy.refused_clients;
        facts.add("refused", format!("{many} of {}, from round {from} on", count(clients, "client")));
    }
    if let Some(ledger) = &finished.privacy.ledger {
        let place = shell_word(&ledger.folder.to_string_lossy());
        facts.add("ledger", format!("charged to {place}"));
    }
    facts.add("models", format!("sha256 {}", finished.models_sha256));
    for warning in &finished.warnings {
        facts.styled("warning", DOUBT, output::wrapped(&warning.to_string(), output::WIDTH - 10).join("\n"));
    }
    facts.add("written", out.display().to_string());
    facts.add("report", out.join("report.html").display().to_string());
    let next = std::iter::once(format!("fedkin report {} --open", shell_word(&out.to_string_lossy())));
    facts.list("next", next.chain(also.iter().cloned()));
    facts.text()
}

/// Every metric once: in decibels where it has them, in percent where it is a share.
fn finals(metrics: &MetricTable, finished: &Finished, graphs: bool) -> Vec<String> {
    let has = |name: &str| finished.r#final.contains_key(name);
    let thing = if graphs { "graph" } else { "model" };
    let mut rows: Vec<(String, String)> = Vec::new();
    for (name, &mean) in &finished.r#final {
        let (metric, model) = name.split_once('.').unwrap_or((name, ""));
        if has(&format!("{metric}_db.{model}")) || has(&format!("{metric}_log10.{model}")) {
            continue;
        }
        let stderr = finished.stderr.get(name).copied();
        let suffixed = |suffix: &str| metric.strip_suffix(suffix);
        let (plain, own_unit) = match (suffixed("_db"), suffixed("_log10")) {
            (Some(plain), _) => (plain, " dB"),
            (_, Some(plain)) => (plain, " log10"),
            _ => (metric, ""),
        };
        let (scale, unit) = match metrics.shown(name) {
            Shown::Percent => (100.0, " %"),
            _ => (1.0, own_unit),
        };
        let value = match metric {
            "rejected" | "refused" => number::count(mean),
            _ => number::estimate(scale * mean, stderr.map(|error| scale * error)).typed() + unit,
        };
        rows.push((words(metrics, plain, model, thing), value));
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.into_iter().map(|(name, value)| format!("{name:width$}  {value:>16}")).collect()
}

/// How far clients are apart, where models give probabilities: of accuracy alone, which everybody reads first.
fn apart(metrics: &MetricTable, finished: &Finished) -> Vec<String> {
    let families = ["accuracy.", "global_accuracy.", "stopped_accuracy."];
    let rows = finished.std.iter().filter(|(name, _)| families.iter().any(|family| name.starts_with(family)));
    rows.filter_map(|(name, std)| {
        let (metric, model) = name.split_once('.')?;
        let worst = finished.worst_decile.get(name)?;
        Some(format!("{}: std {std:.1} %, worst decile {worst:.1} %", words(metrics, metric, model, "model")))
    })
    .collect()
}

/// `nmsd` of `served` in words. Counts have no model.
fn words(metrics: &MetricTable, metric: &str, model: &str, thing: &str) -> String {
    match (metric, model) {
        ("rejected" | "refused", _) => format!("{metric} uploads, last round with any"),
        ("snr", _) => "signal to noise of an upload".to_string(),
        ("found", "kin") => "clients in the right cluster".to_string(),
        ("clusters", "kin") => "clusters found".to_string(),
        ("merged", "kin") => "found clusters that hold two true ones".to_string(),
        ("nmi", "kin") => "NMI of found and true clusters".to_string(),
        ("rand", "kin") => "Rand index of found and true clusters".to_string(),
        ("fmi", "kin") => "Fowlkes-Mallows of found and true".to_string(),
        ("kkt", _) => "distance from the optimality conditions".to_string(),
        (metric, model) => {
            let name = match metric {
                "step_times_lipschitz" => "step times Lipschitz constant (1 at most)",
                "consensus_moved" => "squared move of the consensus",
                "moved" => "squared move of the graphs",
                // A metric as its row calls it, or a number that a method counts.
                other => metrics.of(other).map_or(other, |row| row.word),
            };
            if model.is_empty() { name.to_string() } else { format!("{name} of the {model} {thing}") }
        }
    }
}

/// The guarantee in one line.
fn privacy(finished: &Finished) -> String {
    let privacy = &finished.privacy;
    if privacy.releases == 0 {
        return "nothing left a client".into();
    }
    let Some(epsilon) = privacy.epsilon else {
        if privacy.bound.starts_with("refuted") {
            return "NOT PRIVATE: the noise is that of a paper whose claim was refuted by an audit".into();
        }
        return match &privacy.ledger {
            Some(ledger) if ledger.disclosed_before > 0 => {
                "NOT PRIVATE: earlier runs on the same data let something out without noise that protects"
                    .into()
            }
            _ => "no mechanism: uploads are not private".into(),
        };
    };
    let bound = match privacy.bound.as_str() {
        "" => String::new(),
        words => format!(", bound {words}"),
    };
    let runs = match &privacy.ledger {
        Some(ledger) if ledger.runs > 1 => format!(" in {} runs on the same data", ledger.runs),
        _ => String::new(),
    };
    // Where epsilon was asked for, it was that of the exact composition.
    let exact = privacy.epsilon_gaussian.filter(|_| privacy.mechanism == "one-shot");
    let exact = exact
        .map_or_else(String::new, |epsilon| format!(", {} by exact composition", number::plain(epsilon)));
    let price = if privacy.sampled.is_empty() {
        format!("{} zCDP{exact}", number::plain(privacy.zcdp))
    } else {
        let sampled: Vec<String> = privacy.sampled.iter().map(SampledReleases::words).collect();
        sampled.join(", ")
    };
    let sampler = if privacy.sampler == Sampler::Float.name() { "; simulation: float sampler" } else { "" };
    format!(
        "epsilon {} at delta {} for the client that spent most ({}, {price}{runs}{bound}{sampler})",
        number::plain(epsilon),
        privacy.delta,
        privacy.mechanism,
    )
}
