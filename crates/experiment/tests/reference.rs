//! `docs/reference.md` is generated from the tables that check a config; here it is compared with them.

use fedkin_config as config;
use fedkin_measure::Shown;
use fedkin_run::Registry;
use std::fmt::Write as _;
use std::path::Path;

const REGENERATE: &str = "FEDKIN_UPDATE=1 cargo test --release -p fedkin-experiment --test reference";

/// The config keys, then what the registry knows of each method beyond its keys.
fn page() -> String {
    let mut page = format!(
        "<!-- Generated from the tables that check a config. Do not edit; write it again with\n     {REGENERATE} -->\n\n"
    );
    let registry = Registry::native();
    page.push_str(&config::reference(&registry.tables()));
    page.push_str(
        "\n## Algorithms\n\n\
         What each method sees of the federation, which models a client ends with (its own first), and whether \
         it works outside a simulation.\n\n\
         | name | clusters | servers | graph | models of a client | where |\n|---|---|---|---|---|---|\n",
    );
    for row in registry.methods() {
        let clusters = if row.arrange.one_cluster { "as one" } else { "as given" };
        let servers = if row.arrange.one_server { "as one" } else { "as given" };
        let graph = if row.arrange.no_edges || row.arrange.one_server {
            "not used"
        } else if row.needs_connected {
            "must be connected"
        } else {
            "any"
        };
        let place = if row.simulation_only { "simulation only" } else { "anywhere" };
        let models = row.personal.join(", ");
        let _ = writeln!(page, "| `{}` | {clusters} | {servers} | {graph} | {models} | {place} |", row.name);
    }
    page.push_str(
        "\n## Metrics\n\n\
         What can be measured, and so what `evaluate.metric` may name: `metric.model`, where the model is one of those \
         above. What a metric needs and is not there leaves its column out.\n\n\
         | name | | shown | needs | taken |\n|---|---|---|---|---|\n",
    );
    for row in registry.metrics().as_ref() {
        let shown = match row.shown {
            Shown::Decibel => "dB, lower is better",
            Shown::Log10 => "log10, lower is better",
            Shown::Gain => "dB, higher is better",
            Shown::Percent => "%, higher is better",
            Shown::Plain => "lower is better",
            Shown::Score => "higher is better",
            Shown::Neutral => "neither is better",
        };
        let needs: Vec<&str> = row.needs.iter().map(|need| need.words()).collect();
        let taken = if row.on_demand { "as the headline only" } else { "always" };
        let _ =
            writeln!(page, "| `{}` | {} | {shown} | {} | {taken} |", row.name, row.label, needs.join(", "));
    }
    page
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let expected = page();
    if std::env::var_os("FEDKIN_UPDATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or_else(|| found.lines().count().min(expected.lines().count())) + 1;
    assert!(
        found == expected,
        "docs/reference.md differs from the code at line {line}; write it again with\n  {REGENERATE}"
    );
}
