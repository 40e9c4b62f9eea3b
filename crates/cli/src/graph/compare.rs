//! `fedkin graph compare`.

use super::Compare;
use crate::failure::Failure;
use crate::output::{self, Facts};
use fedkin::rooms::report::number::plain;
use fedkin::rooms::run::topologies::{Found, read};

/// Judges a graph by the true one.
pub(crate) fn compare(args: &Compare) -> Result<(), Failure> {
    let (graph, truth) = (read(&args.file)?, read(&args.truth)?);
    let (file, truth_file) = (args.file.display().to_string(), args.truth.display().to_string());
    let found = Found::of((&file, &graph), (&truth_file, &truth), args.threshold)?;
    if args.json { output::json(&found) } else { output::say(&text(&found)) }
}

fn text(found: &Found) -> String {
    let mut facts = Facts::default();
    facts.add("graph", &found.file).add("truth", &found.truth);
    let how = if found.by_place { "place: a file has no names" } else { "name" };
    facts.add("nodes", format!("{}, matched by {how}", found.nodes));
    facts.add(
        "edges",
        format!(
            "{} found, {} of them true; {} true, {} of them missed (weights above {})",
            found.hits + found.extra,
            found.hits,
            found.hits + found.missed,
            found.missed,
            found.threshold
        ),
    );
    facts.add("MCC", plain(found.mcc));
    facts.add("precision", plain(found.precision));
    facts.add("recall", plain(found.recall));
    facts.add("F1", plain(found.f1));
    match (found.relative_error, found.scale_free_error, found.scale) {
        (Some(raw), Some(free), Some(scale)) => facts
            .add("relative error", plain(raw))
            .add("scale-free", format!("{} after the weights times {}", plain(free), plain(scale))),
        _ => facts.add("relative error", "none: the truth has no edge"),
    };
    facts.text()
}
