//! The theory panel of `FedGL`: the bounds of Theorems 1 and 2 beside the measured sums, one gradient step a round as
//! in their proofs (K = 1).
//!
//! ```text
//! B_r      the largest distance between two graphs that a run visits, the consensus included
//! B_w      the same on the extended set: B_r (1 + 2 xi)
//! f_i^min  the least of g_i, since the tie to the consensus can be zero
//! Delta    (23) with sqrt(p), as (53) has it; in print it is sqrt(rho)
//! sigma    the noise of (60)
//! ```
//!
//! The proofs hold gamma fixed, where (20) changes `f_i` in every round.

use super::{Panel, Theory, set};
use fedkin_config::{Override, Parsed};
use fedkin_learner::signals::{Smooth, degrees, means, nodes_of};
use fedkin_method::round::Progress;
use fedkin_method::{Algorithm, Consensus, FedGl, FedGlSettings, Igl};
use fedkin_numeric::distance2;
use fedkin_numeric::statistics::moments;
use fedkin_privacy::Privacy;
use fedkin_report::{Chart, Point, Scale, Series};
use fedkin_run::{Control, Error, Plan, Registry, Stage};
use fedkin_settings::{Settings, Value};
use rayon::prelude::*;
use std::path::Path;

const METHOD: &str = FedGl::<Consensus>::NAME;
const REPEATS: u32 = 10;
/// As many steps as the paper takes in 8 rounds of 25.
const STEPS: u32 = 200;
/// The claimed epsilon of the noisy runs.
const EPSILON: f64 = 1.0;
/// Graphs of a run whose distances are compared: every so many rounds.
const STRIDE: usize = 10;

/// What one run did.
#[derive(Default)]
struct Trace {
    /// Squared moves up to each round: of all clients, and of the consensus.
    clients: Vec<f64>,
    consensus: Vec<f64>,
    /// `B_r`.
    widest: f64,
    least_degree: f64,
    largest_gamma: f64,
}

/// A run and its bounds up to each round.
struct Bounded {
    trace: Trace,
    clients: Vec<f64>,
    consensus: Vec<f64>,
}

fn graph_of(plan: &Plan) -> Result<Smooth, Error> {
    let smooth = plan.families.first().signals().copied();
    smooth.ok_or_else(|| Error::Usage(format!("the theory panel of {METHOD} needs model.kind = \"graph\"")))
}

/// Follows a run from the graph that everything starts from.
fn follow(plan: &Plan, repeat: u32, start: &[f64]) -> Result<Trace, Error> {
    let world = plan.world(repeat)?;
    let Stage { mut live, .. } = plan.start(&world, repeat)?;
    let count = world.train.len();
    let mut now: Vec<Vec<f64>> = vec![start.to_vec(); count + 1];
    let mut visited = vec![start.to_vec()];
    let mut degree = vec![0.0; nodes_of(start.len()).unwrap_or(0)];
    let mut trace = Trace { least_degree: f64::INFINITY, ..Trace::default() };
    let (mut moved, mut shifted) = (0.0, 0.0);
    while live.step()? != Progress::Ended {
        let mut next: Vec<Vec<f64>> = now.clone();
        live.own_models(&mut |id, graph| next[id as usize] = graph.to_vec());
        live.held(&mut |_, _, name, graph| {
            if name == "consensus" {
                next[count] = graph.to_vec();
            }
        });
        moved += now[..count].iter().zip(&next).map(|(a, b)| distance2(a, b)).sum::<f64>();
        shifted += distance2(&now[count], &next[count]);
        trace.clients.push(moved);
        trace.consensus.push(shifted);
        for graph in &next[..count] {
            degrees(graph, &mut degree);
            trace.least_degree = degree.iter().copied().fold(trace.least_degree, f64::min);
            let gamma = 1.0 / (distance2(graph, &next[count]).sqrt() + 1e-6);
            trace.largest_gamma = trace.largest_gamma.max(gamma);
        }
        now = next;
        if trace.clients.len().is_multiple_of(STRIDE) || trace.clients.len() < STRIDE {
            visited.extend(now.iter().cloned());
        }
    }
    for (i, a) in visited.iter().enumerate() {
        let widest = visited[..i].iter().map(|b| distance2(a, b)).fold(0.0, f64::max);
        trace.widest = trace.widest.max(widest.sqrt());
    }
    Ok(trace)
}

/// The sum over clients of g at the start less its least value.
fn height(smooth: &Smooth, alone: &Plan, repeat: u32, start: &[f64]) -> Result<f64, Error> {
    let world = alone.world(repeat)?;
    let Stage { mut live, .. } = alone.start(&world, repeat)?;
    while live.step()? != Progress::Ended {}
    let mut total = 0.0;
    let mut work = Vec::new();
    live.own_models(&mut |id, graph| {
        if let Ok(own) = means(smooth, &world.train[id as usize], None) {
            total += smooth.value(&own.zbar, start, &mut work) - smooth.value(&own.zbar, graph, &mut work);
        }
    });
    Ok(total)
}

struct Constants {
    step: f64,
    momentum: f64,
    rho: f64,
    lambda: f64,
    /// Standard deviation of the noise on a gradient, and the bound on a record.
    noise: f64,
    record: f64,
}

fn constants(plan: &Plan, settings: &FedGlSettings, samples: f64) -> Constants {
    let FedGlSettings { rho, lambda, solving } = settings;
    let (noise, record) = match plan.privacy {
        // (60), with what (58) takes for the sensitivity.
        Privacy::Paper(paper) => {
            (2.0 * paper.clip / samples / (2.0 * paper.price(plan.rounds())).sqrt(), paper.clip)
        }
        _ => (0.0, 0.0),
    };
    Constants { step: solving.step, momentum: solving.momentum, rho: *rho, lambda: *lambda, noise, record }
}

/// (21), (22); with noise (29), (30). Sums up to round T, so the bounds are T times those in print.
fn bounds(
    smooth: &Smooth,
    with: &Constants,
    height: f64,
    pairs: usize,
    clients: f64,
    trace: Trace,
) -> Bounded {
    let (p, nodes) = (pairs as f64, nodes_of(pairs).unwrap_or(2) as f64);
    let wide = trace.widest;
    let delta = height + with.lambda * p.sqrt() * wide;
    let keep = 1.0 - with.momentum * with.momentum;
    let gradient = 2.0 * with.record
        + (4.0 * smooth.beta + with.rho * trace.largest_gamma) * wide * (1.0 + 2.0 * with.momentum)
        + smooth.alpha * (2.0 * nodes * (nodes - 1.0)).sqrt() / trace.least_degree;
    // What one round of noise adds, before it is scaled for clients (31) and for the consensus.
    let noisy = 2.0 * (2.0 * p).sqrt() * clients * with.noise * (with.momentum * wide + with.step * gradient)
        + 4.0 * p * clients * with.noise * with.noise;
    let at = |round: usize| 2.0 * delta + if with.noise > 0.0 { round as f64 * noisy } else { 0.0 };
    let rounds = 1..=trace.clients.len();
    Bounded {
        clients: rounds.clone().map(|round| at(round) * with.step / keep).collect(),
        consensus: rounds.map(|round| at(round) * wide / (with.rho * clients)).collect(),
        trace,
    }
}

/// The method, and its panel.
pub(super) const PANEL: (&str, Panel) = (METHOD, panel);

/// Runs the panel.
fn panel(
    registry: &Registry,
    parsed: &Parsed,
    base: &Path,
    overrides: &[Override],
    control: &Control<'_>,
) -> Result<Theory, Error> {
    let plan = |sets: &[Override]| Plan::of(registry, parsed, base, overrides, &[sets]);
    let quiet = set("privacy.mechanism", Value::Text("none".into()));
    let single = [
        set("algorithm.solver", Value::Text("paper".into())),
        set("algorithm.inner_steps", Value::Integer(1)),
    ];
    let alone = plan(&[
        quiet.clone(),
        set("algorithm.name", Value::Text(Igl::NAME.into())),
        set("algorithm.solver", Value::Text("exact".into())),
    ])?;
    let [solver, inner] = single;
    let clean =
        plan(&[quiet, solver.clone(), inner.clone(), set("run.rounds", Value::Integer(i64::from(STEPS)))])?;
    let noisy = plan(&[
        set("privacy.mechanism", Value::Text("paper".into())),
        set("privacy.epsilon", Value::Number(EPSILON)),
        set("privacy.sampler", Value::Text("float".into())),
        solver,
        inner,
    ])?;
    let smooth = graph_of(&clean)?;
    let measured: Vec<[Bounded; 2]> = (0..REPEATS)
        .into_par_iter()
        .map(|repeat| {
            let world = clean.world(repeat)?;
            let pairs = clean.dimension(world.schema.columns());
            let nodes = nodes_of(pairs).unwrap_or(2) as f64;
            let start = vec![(smooth.alpha / (2.0 * smooth.beta * (nodes - 1.0))).sqrt(); pairs];
            let height = height(&smooth, &alone, repeat, &start)?;
            let samples = world.train.iter().map(|data| data.rows()).min().unwrap_or(1) as f64;
            let clients = world.train.len() as f64;
            let one = |plan: &Plan| -> Result<Bounded, Error> {
                let trace = follow(plan, repeat, &start)?;
                let settings = FedGlSettings::read(&plan.config.algorithm_values).map_err(Error::Usage)?;
                Ok(bounds(&smooth, &constants(plan, &settings, samples), height, pairs, clients, trace))
            };
            let both = [one(&clean)?, one(&noisy)?];
            (control.tick)();
            Ok(both)
        })
        .collect::<Result<_, Error>>()?;
    Ok(Theory {
        charts: vec![chart(&measured, 0), chart(&measured, 1)],
        notes: (0..2).flat_map(|which| notes(&measured, which)).collect(),
    })
}

const EQUATIONS: [[&str; 2]; 2] = [["(21)", "(22)"], ["(29)", "(30)"]];

fn chart(measured: &[[Bounded; 2]], which: usize) -> Chart {
    let rounds = measured.iter().map(|both| both[which].trace.clients.len()).min().unwrap_or(0);
    let line = |label: String, method: &str, dashed: bool, of: &dyn Fn(&Bounded) -> &Vec<f64>| {
        let points = (0..rounds).map(|n| {
            let values: Vec<f64> = measured.iter().map(|both| of(&both[which])[n]).collect();
            let estimate = moments(&values);
            Point { x: n as f64 + 1.0, mean: estimate.mean, stderr: estimate.stderr }
        });
        Series {
            label,
            method: method.into(),
            // A logarithm has no place for a sum that is still zero.
            points: points.filter(|point| point.mean > 0.0).collect(),
            dashed,
            quiet: false,
        }
    };
    let [first, second] = EQUATIONS[which];
    Chart {
        id: format!("theorem-{}", which + 1),
        title: ["Does Theorem 1 bound how far the graphs move?", "Does Theorem 2 bound it with noise?"]
            [which]
            .into(),
        x_label: "rounds T".into(),
        y_label: "sum of squared moves up to round T".into(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        ranges: Vec::new(),
        series: vec![
            line("clients, measured".into(), METHOD, false, &|run| &run.trace.clients),
            line(format!("clients, bound {first}"), METHOD, true, &|run| &run.clients),
            line("consensus, measured".into(), "fedgl-consensus", false, &|run| &run.trace.consensus),
            line(format!("consensus, bound {second}"), "fedgl-consensus", true, &|run| &run.consensus),
        ],
        caption: format!(
            "One gradient step a round, as in the proofs; {} worlds. B_r is what the runs themselves span.",
            measured.len()
        ),
    }
}

fn notes(measured: &[[Bounded; 2]], which: usize) -> Vec<String> {
    let [first, second] = EQUATIONS[which];
    let mut notes = Vec::new();
    for (name, equation, of) in [
        (
            "clients",
            first,
            (|run: &Bounded| (run.trace.clients.clone(), run.clients.clone())) as fn(&Bounded) -> _,
        ),
        ("consensus", second, |run: &Bounded| (run.trace.consensus.clone(), run.consensus.clone())),
    ] {
        let ratios: Vec<(f64, bool)> = measured
            .iter()
            .map(|both| {
                let (sums, bounds): (Vec<f64>, Vec<f64>) = of(&both[which]);
                let broken = sums.iter().zip(&bounds).any(|(sum, bound)| sum > bound);
                (sums.last().zip(bounds.last()).map_or(f64::NAN, |(sum, bound)| sum / bound), broken)
            })
            .collect();
        let least = ratios.iter().map(|(ratio, _)| *ratio).fold(f64::INFINITY, f64::min);
        let most = ratios.iter().map(|(ratio, _)| *ratio).fold(0.0, f64::max);
        let broken = ratios.iter().filter(|(_, broken)| *broken).count();
        let noise = if which == 1 {
            format!(", noise of (60) at a claimed epsilon of {EPSILON}")
        } else {
            String::new()
        };
        notes.push(format!(
            "Theorem {}{noise}, {name}: at the end the measured sum is {least:.1e} to {most:.1e} of the bound {equation}; \
             the bound is exceeded on the way in {broken} of {} runs.",
            which + 1,
            ratios.len()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_learner::signals::Records;

    /// (21), (22), (29) to (31) by hand for numbers that make every term visible.
    #[test]
    fn bounds_are_those_of_the_theorems() {
        let smooth = Smooth { alpha: 2.0, beta: 0.5, records: Records::Signals };
        let trace = || Trace {
            clients: vec![0.0; 3],
            consensus: vec![0.0; 3],
            widest: 2.0,
            least_degree: 0.5,
            largest_gamma: 4.0,
        };
        let mut with =
            Constants { step: 0.01, momentum: 0.5, rho: 3.0, lambda: 0.1, noise: 0.0, record: 0.0 };
        // 4 nodes, 6 pairs, 5 clients; the sum of heights is 7.
        let delta = 7.0 + 0.1 * 6f64.sqrt() * 2.0;
        let clean = bounds(&smooth, &with, 7.0, 6, 5.0, trace());
        for round in 0..3 {
            assert!((clean.clients[round] - 2.0 * delta * 0.01 / 0.75).abs() < 1e-12);
            assert!((clean.consensus[round] - 2.0 * 2.0 * delta / (3.0 * 5.0)).abs() < 1e-12);
        }
        (with.noise, with.record) = (0.3, 25.0);
        let noisy = bounds(&smooth, &with, 7.0, 6, 5.0, trace());
        let gradient = 50.0 + (2.0 + 12.0) * 4.0 + 2.0 * 24f64.sqrt() / 0.5;
        let inner = 2.0 * 12f64.sqrt() * 5.0 * 0.3 * (0.5 * 2.0 + 0.01 * gradient) + 4.0 * 6.0 * 5.0 * 0.09;
        for round in 0..3 {
            let rounds = round as f64 + 1.0;
            let clients = (2.0 * delta + rounds * inner) * 0.01 / 0.75;
            let consensus = (2.0 * delta + rounds * inner) * 2.0 / (3.0 * 5.0);
            assert!((noisy.clients[round] - clients).abs() < 1e-9, "{} {clients}", noisy.clients[round]);
            assert!((noisy.consensus[round] - consensus).abs() < 1e-9);
        }
    }
}
