//! The theory panel of PGFL: Theorem 2's bound beside the measured left side, the measured rate beside
//! Theorem 1's word "linear".
//!
//! Theorem 2, (28): the squared distance between the models served with and without inter-cluster learning
//! is at most `sum_i prod_{j>i} (1 - tau_j) tau_i eta`, which telescopes to `eta (1 - prod_i (1 - tau_i))`.
//! eta is the largest squared distance between the clusters' own solutions, (29). The panel runs without
//! noise and with everyone taking part, so that the expectation is over the data alone.

use super::{Panel, Theory, set};
use fedkin_config::{Override, Parsed};
use fedkin_method::round::Progress;
use fedkin_method::{Admm, Algorithm, Centralized, Pgfl};
use fedkin_numeric::statistics::moments;
use fedkin_numeric::{decibel, distance2, power};
use fedkin_report::{Chart, Point, Scale, Series};
use fedkin_run::{Control, Error, Plan, Registry, Stage};
use fedkin_settings::Value;
use rayon::prelude::*;
use std::path::Path;

const REPEATS: u32 = 10;
const ROUNDS: u32 = 200;
/// Where a run without inter-cluster learning counts as arrived: far behind what is shown.
const LIMIT: u32 = 600;
const START: f64 = 0.4;
const DECAY: f64 = 0.98;

/// Served models of every round, all servers and clusters one after the other.
type Path2 = Vec<Vec<f64>>;

fn settings(tau: Value, rounds: u32) -> Vec<Override> {
    vec![
        set("run.rounds", Value::Integer(i64::from(rounds))),
        set("algorithm.inter_cluster", tau),
        set("privacy.mechanism", Value::Text("none".into())),
        set("participation.clients_per_server", Value::Integer(i64::from(u32::MAX))),
    ]
}

fn decaying() -> Value {
    let table = [("start".to_string(), Value::Number(START)), ("decay".to_string(), Value::Number(DECAY))];
    Value::Table(table.into())
}

fn served(plan: &Plan, repeat: u32) -> Result<Path2, Error> {
    let world = plan.world(repeat)?;
    let Stage { mut live, .. } = plan.start(&world, repeat)?;
    let mut rounds = Vec::new();
    while live.step()? != Progress::Ended {
        let mut models = Vec::new();
        live.held(&mut |_, _, name, model| {
            if name == "served" {
                models.extend_from_slice(model);
            }
        });
        rounds.push(models);
    }
    Ok(rounds)
}

/// (29)
fn largest_distance(models: &[f64], dimension: usize) -> f64 {
    let clusters: Vec<&[f64]> = models.chunks_exact(dimension).collect();
    let pairs = clusters.iter().flat_map(|a| clusters.iter().map(|b| distance2(a, b)));
    pairs.fold(0.0, f64::max)
}

struct Measured {
    /// By schedule, by round: the largest squared distance over servers and clusters, over eta.
    pull: [Vec<f64>; 2],
    /// By round: squared distance of the models without inter-cluster learning from their limit.
    gap: Vec<f64>,
}

/// The method, and its panel.
pub(super) const PANEL: (&str, Panel) = (Admm::<Pgfl>::NAME, panel);

/// Runs the panel for the PGFL config in `parsed`.
fn panel(
    registry: &Registry,
    parsed: &Parsed,
    base: &Path,
    overrides: &[Override],
    control: &Control<'_>,
) -> Result<Theory, Error> {
    let plan = |sets: &[Override]| Plan::of(registry, parsed, base, overrides, &[sets]);
    let alone = plan(&settings(Value::Number(0.0), LIMIT))?;
    let schedules = [plan(&settings(Value::Number(START), ROUNDS))?, plan(&settings(decaying(), ROUNDS))?];
    let pooled = plan(&[
        set("algorithm.name", Value::Text(Centralized::NAME.into())),
        settings(Value::Number(0.0), 1).swap_remove(2),
    ])?;
    let measured: Vec<Measured> = (0..REPEATS)
        .into_par_iter()
        .map(|repeat| {
            let own = served(&alone, repeat)?;
            let solutions = served(&pooled, repeat)?;
            let dimension = alone.dimension(alone.world(repeat)?.schema.columns());
            let eta = largest_distance(&solutions[0], dimension);
            let mut pull = [Vec::new(), Vec::new()];
            for (pull, plan) in pull.iter_mut().zip(&schedules) {
                let mixed = served(plan, repeat)?;
                *pull = own
                    .iter()
                    .zip(&mixed)
                    .map(|(a, b)| {
                        let cells = a.chunks_exact(dimension).zip(b.chunks_exact(dimension));
                        cells.map(|(a, b)| distance2(a, b)).fold(0.0, f64::max) / eta
                    })
                    .collect();
            }
            let limit = own.last().cloned().unwrap_or_default();
            let gap = own.iter().map(|models| distance2(models, &limit)).collect();
            (control.tick)();
            Ok(Measured { pull, gap })
        })
        .collect::<Result<_, Error>>()?;
    Ok(Theory { charts: vec![pull_chart(&measured), rate_chart(&measured)], notes: notes(&measured) })
}

/// (28) over eta.
fn bound(schedule: usize, round: u32) -> f64 {
    let kept: f64 =
        (1..=round).map(|n| 1.0 - if schedule == 0 { START } else { START * power(DECAY, n) }).product();
    1.0 - kept
}

const NAMES: [&str; 2] = ["tau 0.4", "tau 0.4 x 0.98^n"];

fn pull_chart(measured: &[Measured]) -> Chart {
    let mut series = Vec::new();
    for (schedule, name) in NAMES.iter().enumerate() {
        let points = (0..ROUNDS as usize).map(|n| {
            let values: Vec<f64> = measured.iter().map(|m| m.pull[schedule][n]).collect();
            let estimate = moments(&values);
            Point { x: n as f64 + 1.0, mean: estimate.mean, stderr: estimate.stderr }
        });
        let method = [Admm::<Pgfl>::NAME, "pgfl-decay"][schedule].to_string();
        series.push(Series {
            label: format!("{name}, measured"),
            method: method.clone(),
            points: points.collect(),
            dashed: false,
            quiet: false,
        });
        let points = (1..=ROUNDS).map(|n| Point { x: f64::from(n), mean: bound(schedule, n), stderr: None });
        series.push(Series {
            label: format!("{name}, bound (28)"),
            method,
            points: points.collect(),
            dashed: true,
            quiet: false,
        });
    }
    Chart {
        id: "theorem-2".into(),
        title: "Does Theorem 2 bound the pull of inter-cluster learning?".into(),
        x_label: "round".into(),
        y_label: "squared distance to the models without it, over eta".into(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        ranges: Vec::new(),
        series,
        caption: "Largest over servers and clusters. The theorem starts from the solutions, a run starts from zero.".into(),
    }
}

fn rate_chart(measured: &[Measured]) -> Chart {
    let points = (0..ROUNDS as usize).map(|n| {
        let values: Vec<f64> = measured.iter().map(|m| decibel(m.gap[n] / m.gap[0])).collect();
        let estimate = moments(&values);
        Point { x: n as f64 + 1.0, mean: estimate.mean, stderr: estimate.stderr }
    });
    Chart {
        id: "theorem-1".into(),
        title: "How fast does PGFL converge without inter-cluster learning?".into(),
        x_label: "round".into(),
        y_label: "squared distance to the limit (dB)".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        ranges: Vec::new(),
        series: vec![Series {
            label: "tau 0, measured".into(),
            method: "pgfl-0".into(),
            points: points.collect(),
            dashed: false,
            quiet: false,
        }],
        caption: "A straight line is linear convergence, the word of Theorem 1.".into(),
    }
}

fn notes(measured: &[Measured]) -> Vec<String> {
    let mut notes = Vec::new();
    for (schedule, name) in NAMES.iter().enumerate() {
        let (round, ratio) = (1..=ROUNDS)
            .map(|n| {
                let values: Vec<f64> = measured.iter().map(|m| m.pull[schedule][n as usize - 1]).collect();
                (n, moments(&values).mean / bound(schedule, n))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((0, 0.0));
        let end = measured.iter().map(|m| m.pull[schedule][ROUNDS as usize - 1]).sum::<f64>()
            / measured.len() as f64;
        notes.push(format!(
            "Theorem 2, {name}: the measured pull is {ratio:.2} times the bound (28) at round {round}{}; at round {ROUNDS} it is {end:.2} eta where the bound says {:.2} eta.",
            if ratio > 1.0 { " (violated: a run starts from zero, the proof from the solutions)" } else { "" },
            bound(schedule, ROUNDS)
        ));
    }
    notes.push("The bound is the same eta for both schedules in the end: it cannot tell a decaying tau from a constant one.".into());
    // Late enough that only the slowest mode is left.
    let slopes: Vec<f64> = measured.iter().map(|m| decibel(m.gap[199] / m.gap[99]) / 100.0).collect();
    let slope = moments(&slopes);
    notes.push(format!(
        "Theorem 1 says linear convergence: measured {:.2} ± {:.2} dB per round between rounds 100 and 200 at tau 0.",
        slope.mean,
        slope.stderr.unwrap_or(0.0)
    ));
    notes
}
