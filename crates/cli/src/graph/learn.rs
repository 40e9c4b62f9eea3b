//! `fedkin graph learn`.

use crate::failure::Failure;
use crate::ledger::aligned;
use crate::output::{self, DOUBT, Facts, count, paint, wrapped};
use crate::privacy::{positive, size};
use crate::progress::watched_by;
use clap::Args;
use fedkin::rooms::experiment::learning::{
    Degrees, Folder, Input, Learnt, Protected, Settings, Shield, Sources, Summary, learn as work,
    selection_fits,
};
use fedkin::rooms::report::number::{digits, plain};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// So many clients are shown; the JSON has all.
const SHOWN: usize = 40;

pub(super) const ABOUT: &str = "\
Signals have one column per node and one row per record, the same nodes for every client. Files: CSV with a header \
(gzip is fine), Parquet, NPZ (array `signals`) and AFNI text (.1D, .1D.gz), one file per client; or one table with \
--client. Mean squared differences that were computed before are read from NPZ or JSON (`zbar`, one row per client, pairs \
in the order 1-2, 1-3, .., 2-3, ..).

One client alone solves 2 zbar'w - alpha sum log(degrees) + 2 beta |w|^2. Several are tied to a consensus graph c by \
rho |w - c| each, and lambda |c|_1 keeps it sparse. What is not given follows from the data, and the output says how.";

/// `fedkin graph learn`
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Learn {
    /// Signals, one file per client; or one table with --client
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The column of the table that says whose a record is
    #[arg(long, value_name = "COLUMN")]
    client: Option<String>,
    /// The columns that are nodes, between commas [default: all]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    nodes: Vec<String>,
    /// Bring each node of each client to mean 0 and deviation 1
    #[arg(long)]
    standardise: bool,
    /// At most so many records of each client, from the first on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Weight of the logarithms of the degrees
    #[arg(long, value_name = "A", default_value = "2", allow_negative_numbers = true, value_parser = positive)]
    alpha: f64,
    /// Weight of the squared weights: more gives more and weaker edges [default: about 6 neighbours per node]
    #[arg(long, value_name = "B", allow_negative_numbers = true, value_parser = positive, conflicts_with = "density")]
    beta: Option<f64>,
    /// Search for the beta that gives this share of all pairs an edge
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = share)]
    density: Option<f64>,
    /// How strongly graphs are tied to the consensus [default: a tenth of what fuses them]
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = size)]
    rho: Option<f64>,
    /// How sparse the consensus is [default: a tenth of what empties it]
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = size)]
    lambda: Option<f64>,
    /// Choose beta, rho, lambda and the threshold by records that are held out
    #[arg(long)]
    select: bool,
    /// Every client for itself, without a consensus
    #[arg(long)]
    alone: bool,
    /// Distance from the optimality conditions at which the solver ends
    #[arg(long, value_name = "E", default_value = "1e-9", allow_negative_numbers = true, value_parser = positive)]
    tolerance: f64,
    /// Rounds after which it ends in any case
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: u32,
    /// An edge is a weight above this share of its graph's largest [default: 1e-4]
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = part)]
    threshold: Option<f64>,
    /// Epsilon: each client releases its statistic once, with noise
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = positive, requires = "clip")]
    epsilon: Option<f64>,
    /// Every record, less its mean over the nodes, is scaled down to at most this norm
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = positive, requires = "epsilon")]
    clip: Option<f64>,
    /// Delta, the chance that the promise fails [default: 1e-5]
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = delta, requires = "epsilon")]
    delta: Option<f64>,
    /// What held-out halves follow from, and the noise if given [default: 0, and noise that nobody can repeat]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write graphs (GraphML, NPZ), pictures and a summary to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

fn part(text: &str) -> Result<f64, String> {
    size(text).and_then(|x| if x < 1.0 { Ok(x) } else { Err("must be below 1".into()) })
}

fn share(text: &str) -> Result<f64, String> {
    positive(text).and_then(|x| if x <= 1.0 { Ok(x) } else { Err("must be above 0 and at most 1".into()) })
}

fn delta(text: &str) -> Result<f64, String> {
    positive(text).and_then(|x| if x <= 0.5 { Ok(x) } else { Err("must be above 0 and at most 0.5".into()) })
}

#[derive(Serialize)]
struct LearntJson<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    out: Option<&'a PathBuf>,
}

impl Learn {
    fn settings(&self) -> Settings {
        let shield = self.epsilon.zip(self.clip).map(|(epsilon, clip)| Shield {
            epsilon,
            clip,
            delta: self.delta.unwrap_or(1e-5),
            seeded: self.seed.is_some(),
        });
        Settings {
            alpha: self.alpha,
            beta: self.beta,
            density: self.density,
            rho: self.rho,
            lambda: self.lambda,
            select: self.select,
            alone: self.alone,
            tolerance: self.tolerance,
            rounds: self.rounds,
            threshold: self.threshold,
            seed: self.seed.unwrap_or(0),
            shield,
        }
    }
}

/// Learns graphs and shows what came out.
pub(crate) fn learn(args: &Learn) -> Result<(), Failure> {
    let sources = Sources {
        files: args.files.clone(),
        client: args.client.clone(),
        nodes: args.nodes.clone(),
        standardise: args.standardise,
        limit: args.limit.map(|limit| limit as usize),
    };
    let input = Input::read(&sources)?;
    let settings = args.settings();
    let (steps, unit) = if settings.select {
        (selection_fits(&settings, input.world.train.len()), "fits")
    } else {
        (u64::from(settings.rounds), "rounds at most")
    };
    let folder = args.out.as_deref().map(Folder::claim).transpose()?;
    let mut learnt = watched_by("graphs", steps, unit, |control| work(&input, &settings, control))??;
    if let Some(folder) = &folder {
        folder.write(&mut learnt)?;
    }
    if args.json {
        output::json(&LearntJson { summary: &learnt.summary, out: args.out.as_ref() })?;
        output::warn_aside(&learnt.summary.warnings);
        return Ok(());
    }
    output::say(&text(&learnt, args.out.as_ref()))
}

fn text(learnt: &Learnt, out: Option<&PathBuf>) -> String {
    let summary = &learnt.summary;
    let mut facts = Facts::default();
    let clients = count(summary.clients.len(), "client");
    let what = match (&summary.consensus, summary.clients.len()) {
        (None, 1) => format!("one client alone, {} nodes", summary.nodes),
        (None, _) => format!("{clients}, each alone, {} nodes", summary.nodes),
        (Some(_), _) => format!("{clients} and their consensus, {} nodes", summary.nodes),
    };
    facts.add("graphs", format!("{what} ({})", summary.method));
    facts.add("alpha", neat(summary.alpha));
    let chosen = &summary.chosen;
    facts.add("beta", with(summary.beta, Some(&chosen.beta)));
    if let (Some(rho), Some(lambda)) = (summary.rho, summary.lambda) {
        facts.add("rho", with(rho, chosen.rho.as_ref()));
        facts.add("lambda", with(lambda, chosen.lambda.as_ref()));
    }
    facts.add("threshold", with(summary.threshold, Some(&chosen.threshold)));
    if let Some(selected) = &summary.selected {
        let agreed = selected
            .agreement
            .map_or_else(String::new, |kappa| format!("; kappa of halves {}", plain(kappa)));
        facts.add(
            "selected",
            format!(
                "of {} by {} of the records, log-likelihood {} per record{agreed}",
                count(selected.tried, "setting"),
                count(2 * selected.splits as usize, "random half").replace("halfs", "halves"),
                plain(selected.log_likelihood)
            ),
        );
    }
    if let Some(privacy) = &summary.privacy {
        facts.add("privacy", protected(privacy));
    }
    facts.add("objective", digits(summary.objective));
    let verdict = if summary.kkt <= summary.tolerance { "below" } else { "above" };
    facts.add(
        "kkt",
        format!(
            "{:.1e}, {verdict} the tolerance of {:e}, after {}",
            summary.kkt,
            summary.tolerance,
            count(summary.rounds as usize, "round")
        ),
    );
    let mut text = facts.text() + "\n" + &table(summary);
    if !summary.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &summary.warnings {
        let lines = wrapped(warning, output::WIDTH - 9).join("\n         ");
        let _ = writeln!(text, "{} {lines}", paint(DOUBT, "warning:"));
    }
    if let Some(out) = out {
        let pictures =
            if summary.files.iter().any(|file| file == "graphs.png") { ", graphs.png, heat.png" } else { "" };
        let _ = writeln!(text, "\nwritten to {}: graphs/{pictures}, summary.json", out.display());
    }
    text
}

fn with(value: f64, how: Option<&String>) -> String {
    match how {
        Some(how) => format!("{} ({how})", neat(value)),
        None => neat(value),
    }
}

/// As it was typed where that is short, else four digits.
fn neat(value: f64) -> String {
    [format!("{value}"), format!("{value:e}")]
        .into_iter()
        .find(|text| text.len() <= 5)
        .unwrap_or_else(|| plain(value))
}

fn protected(privacy: &Protected) -> String {
    format!(
        "epsilon {}, delta {:e}, clip {}: {}\n{} leaves each client, once; all graphs follow from it",
        neat(privacy.epsilon),
        privacy.delta,
        neat(privacy.clip),
        privacy.unit,
        privacy.leaves
    )
}

fn table(summary: &Summary) -> String {
    let tied = summary.consensus.is_some();
    let mut head = vec!["client", "records", "edges", "density", "components", "least", "mean", "most"];
    if tied {
        head.extend(["distance", "gamma"]);
    }
    let row =
        |name: &str, records: String, edges: usize, density: f64, components: usize, degrees: Degrees| {
            let degrees = [degrees.min, degrees.mean, degrees.max].map(plain);
            let mut row = vec![
                name.to_string(),
                records,
                edges.to_string(),
                format!("{density:.3}"),
                components.to_string(),
            ];
            row.extend(degrees);
            row
        };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for client in summary.clients.iter().take(SHOWN) {
        let records = client.records.to_string();
        let mut row =
            row(&client.name, records, client.edges, client.density, client.components, client.degrees);
        row.extend(client.distance.into_iter().chain(client.gamma).map(plain));
        rows.push(row);
    }
    if let Some(consensus) = &summary.consensus {
        let records = String::new();
        let mut row = row(
            "consensus",
            records,
            consensus.edges,
            consensus.density,
            consensus.components,
            consensus.degrees,
        );
        row.extend([String::new(), String::new()]);
        rows.push(row);
    }
    let numbers: Vec<usize> = (1..head.len()).collect();
    let mut text = aligned(&head, &rows, &numbers);
    if summary.clients.len() > SHOWN {
        let _ = writeln!(text, "and {} more clients: --json has all", summary.clients.len() - SHOWN);
    }
    text.push_str("\nleast, mean, most: degrees");
    if tied {
        text.push_str("; distance: from the consensus, and gamma is one over it");
    }
    text.push('\n');
    text
}
