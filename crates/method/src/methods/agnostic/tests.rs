//! (6) as a weighted fit, and what the method refuses.

use super::*;
use crate::federation::Entry;
use crate::registry::{Context, Method};
use fedkin_graph::Topology;
use fedkin_learner::Hypotheses;
use fedkin_learner::hypothesis::{Fitted, Kind as Fit, Sample};
use fedkin_learner::model::{Loss, Model};
use fedkin_privacy::Privacy;
use fedkin_settings::{Settings, Value, Values};
use std::collections::BTreeMap;

const RIDGE: Model = Model { loss: Loss::Squared, regularisation: 1e-9, bias: true, feature_norm: None };

fn method(kind: Fit, set: &[(&str, Value)]) -> PersFlAgnostic {
    let raw: BTreeMap<String, Value> =
        set.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
    let values = Values::check(PersFlAgnosticSettings::PARAMS, &raw).unwrap();
    let context = Context::new(Families::one(Hypotheses::new(kind, false)), Privacy::None);
    PersFlAgnostic::from_values(&values, &context).unwrap()
}

fn run() -> Run {
    Run {
        seed: 4,
        rounds: 3,
        clients_per_server: None,
        max_norm2: 1e12,
        dimension: 2,
        clusters: 1,
        privacy: Privacy::None,
        targets: None,
        kin: None,
        columns: None,
        learners: None,
    }
}

fn records(rows: usize) -> Arc<Dataset> {
    let mut rng = PublicRng::named(7, "records", 0, 0);
    let features: Vec<f64> = (0..2 * rows).map(|_| rng.between(-1.0, 1.0)).collect();
    let targets = features.chunks_exact(2).map(|x| x[0] - 0.5 * x[1] + 0.1 * rng.normal()).collect();
    Arc::new(Dataset::new(2, features, targets).unwrap())
}

fn joined(method: &PersFlAgnostic, data: &Arc<Dataset>) -> Mine {
    let (run, member) = (run(), Member { id: 0, server: 0, cluster: 0, samples: data.rows() as u32 });
    let at = ServerView { run: &run, id: 0, members: &[member], neighbours: &[] };
    method.join(data, at, &member).unwrap()
}

/// What a candidate fits to a hypothesis.
fn stepped(kind: Fit, mine: &Mine, h: &dyn Fn(&[f64]) -> f64) -> Vec<f64> {
    let labels: Vec<f64> = mine.points().chunks_exact(2).map(h).collect();
    mine.retrained(&Hypotheses::new(kind, false), &labels).unwrap()
}

#[test]
fn weights_are_eta_over_m_and_one_over_the_points() {
    let kind = Fit::Tree { leaf: 1, depth: 9 };
    let mine = joined(&method(kind, &[("learning_rate", Value::Number(3.0))]), &records(20));
    assert_eq!((mine.targets.len(), mine.points().len(), mine.weights.len()), (20, 200, 120));
    assert!(mine.weights[..20].iter().all(|w| *w == 3.0 / 20.0));
    assert!(mine.weights[20..].iter().all(|w| *w == 0.01));
}

#[test]
fn without_public_points_half_of_the_records_lend_their_inputs_only() {
    let kind = Fit::Tree { leaf: 1, depth: 9 };
    let data = records(5);
    let own = method(kind, &[("public", Value::Integer(0))]);
    let mine = joined(&own, &data);
    // Records 2 and 4 of five.
    assert_eq!(mine.targets, [0, 2, 4].map(|i| data.targets()[i]));
    assert_eq!(mine.points(), [data.row(1), data.row(3)].concat());
    assert!(mine.weights[3..].iter().all(|w| *w == 0.5));
    // One record cannot be parted.
    let alone = joined(&own, &records(1));
    assert_eq!((alone.targets.len(), alone.points().len()), (1, 2));
}

/// eta -> 0: what is kept are the predictions on D, where the model can represent them.
#[test]
fn no_weight_on_records_leaves_the_predictions_as_they_are() {
    let line = |x: &[f64]| 2.0 - x[0] + 3.0 * x[1];
    let step = |x: &[f64]| if x[0] > 0.1 { 1.0 } else { -2.0 };
    for (kind, h) in [
        (Fit::Linear(RIDGE), &line as &dyn Fn(&[f64]) -> f64),
        (Fit::Tree { leaf: 1, depth: 64 }, &step),
        (Fit::Tree { leaf: 10, depth: 64 }, &step),
    ] {
        let mine = joined(&method(kind, &[("learning_rate", Value::Number(1e-12))]), &records(20));
        let model = stepped(kind, &mine, h);
        let fitted = Fitted::read(&model, 2).unwrap();
        for x in mine.points().chunks_exact(2) {
            assert!((fitted.predict(x) - h(x)).abs() < 1e-6, "{kind:?} at {x:?}");
        }
    }
}

/// eta -> infinity: what remains is the candidate's own model.
#[test]
fn all_weight_on_records_is_the_candidates_own_model() {
    let data = records(20);
    let kind = Fit::Linear(RIDGE);
    let mine = joined(&method(kind, &[("learning_rate", Value::Number(1e12))]), &data);
    let model = stepped(kind, &mine, &|_| 50.0);
    let (features, targets) = (data.features(), data.targets());
    let own = kind.fit(&Sample { columns: 2, features, targets, weights: &[1.0; 20] }, 1).unwrap();
    for (a, b) in model.iter().zip(&own) {
        assert!((a - b).abs() < 1e-6, "{model:?} and {own:?}");
    }
}

/// For a linear model (6) has a closed form: least squares on both halves.
#[test]
fn a_linear_step_is_stationary() {
    let kind = Fit::Linear(RIDGE);
    let data = records(12);
    let mine = joined(&method(kind, &[("learning_rate", Value::Number(0.7))]), &data);
    let h = |x: &[f64]| (3.0 * x[0]).sin();
    let model = stepped(kind, &mine, &h);
    let fitted = Fitted::read(&model, 2).unwrap();
    let mut gradient = [0.0; 3];
    let rows = data.features().chunks_exact(2).chain(mine.points().chunks_exact(2));
    for (i, x) in rows.enumerate() {
        let (weight, y) = if i < 12 { (0.7 / 12.0, mine.targets[i]) } else { (0.01, h(x)) };
        let slope = 2.0 * weight * (fitted.predict(x) - y);
        for (g, x) in gradient.iter_mut().zip([x[0], x[1], 1.0]) {
            *g += slope * x;
        }
    }
    assert!(gradient.iter().all(|g| g.abs() < 1e-6), "{gradient:?}");
}

/// The documented failure: with a leaf for every record both halves of (6) are met, and h moves at the candidate's own
/// records only.
#[test]
fn a_tree_that_interpolates_moves_at_single_points_only() {
    let data = records(20);
    let moved = |leaf: u32| {
        let kind = Fit::Tree { leaf, depth: 64 };
        let uniform = ("public_law", Value::Text("uniform".into()));
        let mine = joined(&method(kind, &[uniform]), &data);
        let model = stepped(kind, &mine, &|_| 5.0);
        let fitted = Fitted::read(&model, 2).unwrap();
        let at = |points: &[f64]| {
            let off = points.chunks_exact(2).filter(|x| (fitted.predict(x) - 5.0).abs() > 1e-9);
            off.count() as f64 / (points.len() / 2) as f64
        };
        (at(mine.points()), at(data.features()))
    };
    assert_eq!(moved(1), (0.0, 1.0), "D stays where it was, and the candidate's records are met exactly");
    let (points, _) = moved(10);
    assert!(
        points > 0.5,
        "leaves of ten records carry what a candidate knows to the points around: {points}"
    );
    assert!(Fit::Tree { leaf: 1, depth: 64 }.interpolates() && Fit::Neighbours { count: 1 }.interpolates());
    assert!(
        !Fit::Tree { leaf: 10, depth: 64 }.interpolates() && !Fit::Tree { leaf: 1, depth: 3 }.interpolates()
    );
}

#[test]
fn steps_are_setup_then_pairs() {
    let method = method(Fit::Neighbours { count: 3 }, &[]);
    let (server, run) = (Central::default(), run());
    let phases: Vec<Phase> = (1..=8).map(|step| method.phase(&server, step, &run)).collect();
    let ask = Phase::Ask;
    let pairs = [ask(PROBE), ask(SELECT)];
    assert_eq!(phases, [vec![ask(SETUP)], pairs.repeat(3), vec![Phase::Deliver]].concat());
    assert_eq!((1..=7).map(|step| method.rounds(step, &run)).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2, 3]);
}

#[test]
fn federations_that_are_too_small_are_refused_with_a_remedy() {
    let federation = |clients: usize| {
        let entry = |i| Entry { name: format!("c{i}"), server: 0, cluster: 0, samples: 5 };
        let (s, q) = (vec!["s".to_string()], vec!["q".to_string()]);
        Federation::new((0..clients).map(entry).collect(), s, q, Topology::none(1)).unwrap().0
    };
    let method = method(Fit::Neighbours { count: 3 }, &[("candidates", Value::Integer(4))]);
    assert!(method.suits(&federation(5), &run()).is_ok());
    let text = method.suits(&federation(4), &run()).unwrap_err();
    assert!(text.contains("candidates = 4") && text.contains("3 or less"), "{text}");
    assert!(method.suits(&federation(1), &run()).unwrap_err().contains("one client only"));
}

#[test]
fn what_leaves_is_named_for_what_it_is() {
    let near = method(Fit::Neighbours { count: 3 }, &[]);
    assert!(near.named([0].into_iter()).contains("hold the client's records"));
    let tree = method(Fit::Tree { leaf: 10, depth: 9 }, &[]);
    assert_eq!(tree.named([0].into_iter()), "fitted models");
}
