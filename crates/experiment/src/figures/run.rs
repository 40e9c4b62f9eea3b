//! The report of one run.

use super::{better, facts, model_name, privacy, privacy_box};
use crate::axis::Axis;
use crate::pictures;
use fedkin_data::World;
use fedkin_measure::{MetricTable, Shown, Spread, estimate};
use fedkin_report::{Chart, Column, Distribution, Estimate, Point, Report, Scale, Series, Table, TableRow};
use fedkin_run::artifacts::metrics::Metrics;
use fedkin_run::spending::{REFUTED, is_score};
use fedkin_run::{Finished, Outcome, Plan, Warning};
use std::collections::BTreeMap;

/// The report of one run.
pub(crate) fn of_run(
    plan: &Plan,
    finished: &Finished,
    metrics: &Metrics,
    outcome: &Outcome,
    world: &World,
) -> Report {
    let mut families: BTreeMap<&str, BTreeMap<&str, BTreeMap<u32, Vec<f64>>>> = BTreeMap::new();
    for row in metrics.rows().filter(|row| row.node.is_empty()) {
        if let Some((family, model)) = row.metric.split_once('.').filter(|_| is_score(row.metric)) {
            let rounds = families.entry(family).or_default().entry(model).or_default();
            rounds.entry(row.round).or_default().push(row.value);
        }
    }
    let table = plan.registry.metrics();
    let axis_x = Axis::new(&plan.config);
    let counted = axis_x.counts(metrics);
    let mut charts = Vec::new();
    let mut distributions = Vec::new();
    for (family, models) in &families {
        let shown = table.shown(family);
        let series = models
            .iter()
            .map(|(model, rounds)| Series {
                label: if *model == "kin" { "found clusters".to_string() } else { format!("{model} model") },
                method: (*model).to_string(),
                points: rounds
                    .iter()
                    .filter_map(|(round, values)| {
                        let Estimate { mean, stderr } = estimate(values, shown);
                        let x = match &counted {
                            None => f64::from(*round),
                            Some(counted) => *counted.get(round)?,
                        };
                        Some(Point { x, mean, stderr })
                    })
                    .collect(),
                dashed: false,
                quiet: false,
            })
            .collect();
        // Measured once, after the last round: the table and the distribution say it all.
        let curve = models.values().any(|rounds| rounds.len() > 1) && !(is_kin(models) && *family != "found");
        charts.extend(curve.then(|| Chart {
            id: (*family).to_string(),
            title: table.question(family).to_string(),
            x_label: if counted.is_some() { axis_x.words().into() } else { "round".into() },
            y_label: table.axis(family),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            ranges: Vec::new(),
            series,
            caption: if is_kin(models) {
                "The clusters that clients were found to belong to, against the true ones.".into()
            } else {
                "client: what each client computed last; served: what it would get now; averaged: a running mean of that; active: clients of this round only.".into()
            },
        }));
        let groups: Vec<(String, String, Vec<f64>)> = outcome
            .columns
            .iter()
            .enumerate()
            .filter(|(_, name)| name.split('.').next() == Some(family) && !name.ends_with(".active"))
            .map(|(c, name)| {
                let values =
                    outcome.rows.iter().map(|row| shown.value(row[c])).filter(|x| x.is_finite()).collect();
                (format!("{} model", model_name(name)), model_name(name).to_string(), values)
            })
            .filter(|(_, _, values): &(_, _, Vec<f64>)| !values.is_empty())
            .collect();
        if !groups.is_empty() {
            distributions.push(Distribution {
                id: format!("{family}-clients"),
                title: "How is it for each client?".into(),
                x_label: format!("{} of each client after the last round", table.axis(family)),
                groups,
            });
        }
    }
    charts.extend(privacy::charts(metrics, &outcome.ledger, plan.delta()));
    distributions.extend(privacy::clients(metrics, plan.delta()));
    let [clients, servers, clusters] = finished.size;
    let mut facts = facts(&plan.config);
    facts.extend([
        ("algorithm".to_string(), plan.row.name.to_string()),
        ("clients".to_string(), clients.to_string()),
        ("servers".to_string(), servers.to_string()),
        ("clusters".to_string(), clusters.to_string()),
        ("seconds".to_string(), format!("{:.1}", finished.seconds)),
        ("models_sha256".to_string(), finished.models_sha256.clone()),
    ]);
    // The page has a box of its own for a bound that is assumed.
    let notes = finished.warnings.iter().filter(|warning| **warning != Warning::Assumed);
    let mut notes: Vec<String> = notes.map(ToString::to_string).collect();
    if finished.privacy.epsilon.is_none() && plan.doubt() == Some(REFUTED) {
        if !finished.warnings.contains(&Warning::Refuted) {
            notes.push(Warning::Refuted.to_string());
        }
    } else if finished.privacy.epsilon.is_none() && plan.privacy.demanded() {
        notes.push(
            "Earlier runs on the same data let something out without noise that protects: no epsilon holds."
                .into(),
        );
    } else if finished.privacy.epsilon.is_none() {
        notes.push(
            "No mechanism protects the uploads: the models that left the clients are not private.".into(),
        );
    }
    let mut pictures = pictures::of_run(plan, outcome, plan.name());
    pictures.extend(pictures::kin(plan, outcome));
    Report {
        title: plan.name().to_string(),
        lead: format!(
            "{}: {} clients at {} servers in {} clusters, {} rounds. {}.",
            plan.row.name, clients, servers, clusters, finished.rounds, plan.row.summary
        ),
        facts,
        claims: Vec::new(),
        table: Some(run_table(table, finished)),
        by_client: spread_table(table, outcome)
            .into_iter()
            .chain(client_table(plan, outcome, world))
            .collect(),
        tuning: None,
        charts,
        distributions,
        labels: pictures::labels(plan, world),
        graph: (!plan.row.graphs).then(|| pictures::server_graph(world)),
        pictures,
        privacy: finished.privacy.epsilon.map(|_| privacy_box(&finished.privacy)),
        notes,
        config: plan.config.resolved(),
        colours: plan.registry.colours(),
    }
}

/// How far clients are apart, where they give probabilities: models in rows, for every metric two columns.
fn spread_table(table: &MetricTable, outcome: &Outcome) -> Option<Table> {
    let known: Vec<(&str, &str, Spread)> = outcome
        .spreads
        .iter()
        .filter(|(name, _)| table.of_probabilities(name))
        .filter_map(|(name, spread)| name.split_once('.').map(|(family, model)| (family, model, *spread)))
        .collect();
    let mut families: Vec<&str> = known.iter().map(|(family, ..)| *family).collect();
    let mut models: Vec<&str> = known.iter().map(|(_, model, _)| *model).collect();
    for names in [&mut families, &mut models] {
        names.sort_unstable();
        names.dedup();
    }
    let cells = |model: &str, family: &str| {
        let spread = known.iter().find(|(f, m, _)| *f == family && *m == model).map(|(.., spread)| spread);
        let cell = |mean: f64| Estimate { mean, stderr: None };
        [spread.map(|spread| cell(spread.std)), spread.map(|spread| cell(spread.worst_decile))]
    };
    let columns = |family: &&str| {
        let unit = table.shown(family).unit().to_string();
        let column = |what: &str| Column {
            name: format!("{}, {what}", table.label(family)),
            unit: unit.clone(),
            better: None,
        };
        [column("std"), column("worst decile")]
    };
    (!known.is_empty()).then(|| Table {
        caption: "How far clients are apart after the last round of the first repeat: standard deviation, and mean over the worst \
                  tenth"
            .into(),
        columns: families.iter().flat_map(columns).collect(),
        rows: models
            .iter()
            .map(|model| TableRow {
                label: format!("{model} model"),
                baseline: false,
                cells: families.iter().flat_map(|family| cells(model, family)).collect(),
            })
            .collect(),
    })
}

/// Clients in rows, where they are few and give probabilities: what the first repeat reached at each of them.
fn client_table(plan: &Plan, outcome: &Outcome, world: &World) -> Option<Table> {
    const MOST: usize = 40;
    if plan.row.graphs || !plan.looks_at_clients() || outcome.rows.len() > MOST || outcome.rows.is_empty() {
        return None;
    }
    let table = plan.registry.metrics();
    let cell = |name: &str, value: f64| {
        value.is_finite().then(|| Estimate { mean: table.shown(name).value(value), stderr: None })
    };
    Some(Table {
        caption: "After the last round of the first repeat".into(),
        columns: outcome
            .columns
            .iter()
            .map(|name| Column {
                name: format!("{} of the {} model", table.label(name), model_name(name)),
                unit: table.shown(name).unit().to_string(),
                // Clients are no rivals.
                better: None,
            })
            .collect(),
        rows: outcome
            .rows
            .iter()
            .zip(world.federation.client_names())
            .map(|(row, name)| TableRow {
                label: name.clone(),
                baseline: false,
                cells: outcome.columns.iter().zip(row).map(|(name, value)| cell(name, *value)).collect(),
            })
            .collect(),
    })
}

/// Whether a family says how near found clusters are to the true ones, and nothing of models: of those only the share
/// of clients in the right cluster is drawn over the rounds.
fn is_kin<T>(models: &BTreeMap<&str, T>) -> bool {
    models.keys().all(|model| *model == "kin")
}

/// Metrics in rows of one run: what each model reached.
fn run_table(table: &MetricTable, finished: &Finished) -> Table {
    let mut families: Vec<&str> = Vec::new();
    let mut models: Vec<&str> = Vec::new();
    for name in finished.r#final.keys() {
        if let Some((family, model)) = name.split_once('.')
            && !family.ends_with("_db")
            && !family.ends_with("_log10")
            && is_score(name)
        {
            families.push(family);
            models.push(model);
        }
    }
    families.sort_unstable();
    families.dedup();
    models.sort_unstable();
    models.dedup();
    let cell = |model: &str, family: &str| {
        let shown = table.shown(family);
        let name = match shown {
            Shown::Decibel => format!("{family}_db.{model}"),
            Shown::Log10 => format!("{family}_log10.{model}"),
            _ => format!("{family}.{model}"),
        };
        let factor = if shown == Shown::Percent { 100.0 } else { 1.0 };
        finished.r#final.get(&name).map(|mean| Estimate {
            mean: factor * mean,
            stderr: finished.stderr.get(&name).map(|error| factor * error),
        })
    };
    Table {
        caption: format!("After round {}", finished.rounds),
        columns: families
            .iter()
            .map(|family| Column {
                name: table.label(family).to_string(),
                unit: table.shown(family).unit().to_string(),
                better: better(table.shown(family)),
            })
            .collect(),
        rows: models
            .iter()
            .map(|model| TableRow {
                label: if *model == "kin" { "kin".to_string() } else { format!("{model} model") },
                baseline: false,
                cells: families.iter().map(|family| cell(model, family)).collect(),
            })
            .collect(),
    }
}
