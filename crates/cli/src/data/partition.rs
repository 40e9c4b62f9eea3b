//! `fedkin data partition`: clients by labels.

use super::Partition;
use crate::failure::Failure;
use crate::input;
use crate::ledger::aligned;
use crate::output::{self, count};
use fedkin::rooms::config::Source;
use fedkin::rooms::data::{ClientLabels, LabelCounts};
use fedkin::rooms::method::{FedAvg, Star};
use fedkin::rooms::report::{Stacks, png};
use fedkin::rooms::run::{Plan, Registry};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// So many clients are shown in the table; files and JSON have all.
const SHOWN: usize = 100;
/// So many clients are named in a warning.
const NAMED: usize = 4;

#[derive(Serialize)]
struct Dealt<'a> {
    #[serde(flatten)]
    counts: &'a LabelCounts,
    /// Records of the public hold-out.
    holdout: usize,
    warnings: &'a [String],
}

/// Shows how the records of a config are dealt.
pub(crate) fn partition(registry: &Registry, args: &Partition) -> Result<(), Failure> {
    let (config, base, set) = match (&args.file, &args.source) {
        (Some(file), _) => (input::read(file)?, input::base(file), args.set.clone()),
        (None, None) => {
            let message =
                "name a config, or a source with --source, such as --source mnist --set partition=iid";
            return Err(Failure::Usage(message.into()));
        }
        (None, Some(name)) => {
            registry.data().source(name)?;
            // Keys without a table are those of [data].
            let set = args.set.iter().map(|set| {
                let key = set.split('=').next().unwrap_or_default();
                if key.contains('.') { set.clone() } else { format!("data.{set}") }
            });
            let text = format!(
                "version = 1\n[run]\nname = \"partition\"\nrounds = 1\n[data]\nsource = {name:?}\n[model]\nkind = \"softmax\"\n\
                 [algorithm]\nname = {:?}\n",
                FedAvg::NAME
            );
            (Source { name: format!("--source {name}"), text }, PathBuf::new(), set.collect())
        }
    };
    let plan = Plan::load(registry, &config, &base, &input::overrides(&set)?, &[])?;
    let world = plan.world(args.repeat)?;
    let counts = world.label_counts().ok_or_else(|| {
        Failure::Usage(
            "the targets of these records are numbers, not classes: there are no labels to count".into(),
        )
    })?;
    let warnings = warnings(&counts);
    if let Some(file) = &args.csv {
        write(file, csv(&counts).as_bytes())?;
    }
    if let Some(file) = &args.out {
        write(file, &picture(&counts, &plan.config.data_source, file)?)?;
    }
    if args.json {
        let holdout = world.holdout.as_ref().map_or(0, |set| set.rows());
        return output::json(&Dealt { counts: &counts, holdout, warnings: &warnings });
    }
    let mut text = table(&counts);
    if let Some(set) = &world.holdout {
        let _ = writeln!(text, "hold-out: {}", count(set.rows(), "record"));
    }
    for file in args.csv.iter().chain(&args.out) {
        let _ = writeln!(text, "written {}", file.display());
    }
    output::say(&text)?;
    for warning in &warnings {
        output::warn(warning);
    }
    Ok(())
}

/// The classes of a client that something is the matter with.
type Find<'a> = dyn Fn(&ClientLabels) -> Vec<usize> + 'a;

/// What to look at twice: classes that a client cannot learn by itself.
fn warnings(counts: &LabelCounts) -> Vec<String> {
    let names = |classes: &[usize]| {
        let names: Vec<&str> = classes.iter().map(|&class| counts.classes[class].as_str()).collect();
        names.join(", ")
    };
    let mut warnings = Vec::new();
    let absent = |client: &ClientLabels| {
        (0..counts.classes.len()).filter(|&class| client.train[class] == 0).collect::<Vec<_>>()
    };
    let untrained = |client: &ClientLabels| client.untrained();
    let cases: [(&Find<'_>, &str); 2] = [
        (&absent, "lack training records of some classes, as label skew does"),
        (&untrained, "are tested on classes that they have no training record of"),
    ];
    for (find, words) in cases {
        let found: Vec<(&str, Vec<usize>)> = counts
            .clients
            .iter()
            .map(|client| (client.name.as_str(), find(client)))
            .filter(|(_, classes)| !classes.is_empty())
            .collect();
        if found.is_empty() {
            continue;
        }
        let mut examples: Vec<String> =
            found.iter().take(NAMED).map(|(name, classes)| format!("{name}: {}", names(classes))).collect();
        if found.len() > NAMED {
            examples.push(format!("and {} more", found.len() - NAMED));
        }
        warnings.push(format!(
            "{} of {} clients {words} ({})",
            found.len(),
            counts.clients.len(),
            examples.join("; ")
        ));
    }
    let unused: Vec<usize> = (0..counts.classes.len())
        .filter(|&class| counts.clients.iter().all(|client| client.all()[class] == 0))
        .collect();
    if !unused.is_empty() {
        warnings.push(format!("no client has a record of {}", names(&unused)));
    }
    warnings
}

fn table(counts: &LabelCounts) -> String {
    let clustered = counts.clients.iter().any(|client| client.cluster != counts.clients[0].cluster);
    let validated = counts.clients.iter().any(|client| client.validation.iter().any(|count| *count > 0));
    let mut head = vec!["client"];
    if clustered {
        head.push("cluster");
    }
    let texts = head.len();
    head.extend(counts.classes.iter().map(String::as_str));
    head.extend(["all", "train"]);
    if validated {
        head.push("validation");
    }
    head.push("test");
    let line = |name: &str, cluster: &str, parts: [&[usize]; 3]| {
        let mut cells = vec![name.to_string()];
        if clustered {
            cells.push(cluster.to_string());
        }
        let sum = |counts: &[usize]| counts.iter().sum::<usize>();
        cells.extend((0..counts.classes.len()).map(
            |class| match parts.iter().map(|part| part[class]).sum() {
                0 => ".".to_string(),
                count => usize::to_string(&count),
            },
        ));
        let [train, validation, test] = parts.map(sum);
        cells.extend([train + validation + test, train].map(|count| count.to_string()));
        if validated {
            cells.push(validation.to_string());
        }
        cells.push(test.to_string());
        cells
    };
    let mut rows: Vec<Vec<String>> = counts
        .clients
        .iter()
        .take(SHOWN)
        .map(|client| line(&client.name, &client.cluster, [&client.train, &client.validation, &client.test]))
        .collect();
    let total = |part: fn(&ClientLabels) -> &[usize]| -> Vec<usize> {
        (0..counts.classes.len())
            .map(|class| counts.clients.iter().map(|client| part(client)[class]).sum())
            .collect()
    };
    let totals =
        [total(|client| &client.train), total(|client| &client.validation), total(|client| &client.test)];
    rows.push(line("all", "", [&totals[0], &totals[1], &totals[2]]));
    let numbers: Vec<usize> = (texts..head.len()).collect();
    let mut text = aligned(&head, &rows, &numbers);
    if counts.clients.len() > SHOWN {
        let _ = writeln!(
            text,
            "the first {SHOWN} of {} clients: --csv and --json have all",
            counts.clients.len()
        );
    }
    text
}

/// A line for each client, part and class that is there.
fn csv(counts: &LabelCounts) -> String {
    let quoted = |text: &str| {
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_string()
        }
    };
    let mut text = String::from("client,cluster,part,class,records\n");
    for client in &counts.clients {
        let (name, cluster) = (quoted(&client.name), quoted(&client.cluster));
        for (part, by_class) in
            [("train", &client.train), ("validation", &client.validation), ("test", &client.test)]
        {
            if by_class.iter().all(|count| *count == 0) {
                continue;
            }
            for (class, count) in counts.classes.iter().zip(by_class) {
                let _ = writeln!(text, "{name},{cluster},{part},{},{count}", quoted(class));
            }
        }
    }
    text
}

fn picture(counts: &LabelCounts, source: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    let stacks = Stacks {
        title: format!("Which labels each client has: {source}"),
        label: "records".into(),
        parts: counts.classes.clone(),
        rows: counts.clients.iter().map(|client| (client.name.clone(), client.all())).collect(),
        caption: "Records of each client by label: training, validation and test together.".into(),
    };
    let svg = stacks.svg();
    match file.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("svg") => Ok(svg.into_bytes()),
        Some("png") => png(&svg, 1584).map_err(Failure::Unexpected),
        _ => Err(Failure::Usage(format!("{}: a picture ends in .svg or .png", file.display()))),
    }
}

fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    std::fs::write(file, content)
        .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", file.display())))
}
