//! One suite for all native learners: what they say they can do, they do, and what they do fits together.

use super::*;
use crate::hypothesis::Kind;
use crate::model::neural::{Goal, Layer, Net};
use crate::model::{Loss, Model, NetModel, Softmax};
use crate::numeric::{distance2, norm2};
use crate::rng::Random;

const COLUMNS: usize = 4;

/// Records whose targets suit the family.
fn records(family: &dyn Family, rows: usize) -> Arc<Dataset> {
    let mut rng = PublicRng::named(3, "learner suite", rows as u32, 0);
    let features: Vec<f64> = (0..rows * COLUMNS).map(|_| 0.7 * rng.normal()).collect();
    let target = |rng: &mut PublicRng| match family.output() {
        Output::Probability => f64::from(rng.below(2)),
        Output::Classes(classes) => f64::from(rng.below(classes as u32)),
        // Counts are numbers, too.
        Output::Number | Output::Graph => f64::from(rng.below(4)),
    };
    let targets = (0..rows).map(|_| target(&mut rng)).collect();
    Arc::new(Dataset::new(COLUMNS, features, targets).unwrap())
}

fn regularisers() -> [Regulariser; 5] {
    [
        Regulariser::SquaredNorm,
        Regulariser::None,
        Regulariser::L1,
        Regulariser::ElasticNet { l1_share: 0.4 },
        Regulariser::Group { groups: Groups::Equal(2) },
    ]
}

/// Every native learner, linear ones with every regulariser.
fn families() -> Vec<Arc<dyn Family>> {
    let losses = [Loss::Squared, Loss::Huber(0.6), Loss::Logistic, Loss::Poisson, Loss::Quantile(0.3)];
    let mut all: Vec<Arc<dyn Family>> = Vec::new();
    for loss in losses {
        for regulariser in regularisers() {
            let model = Model { loss, regularisation: 0.8, bias: false, feature_norm: None };
            all.push(Arc::new(Linear::regularised(model, regulariser)));
        }
    }
    let softmax = Softmax { classes: 3, regularisation: 0.8, bias: true, feature_norm: None };
    all.push(Arc::new(SoftmaxFamily::new(softmax)));
    let layers: Vec<Layer> =
        ["dense 6", "relu", "dense 3"].iter().map(|words| Layer::parse(words).unwrap()).collect();
    let net = Net::new([COLUMNS, 1, 1], &layers, Goal::CrossEntropy).unwrap();
    all.push(Arc::new(NetFamily::new(NetModel::new(net))));
    let forest = Kind::Forest { trees: 3, leaf: 2, depth: 8 };
    for kind in [Kind::Tree { leaf: 2, depth: 8 }, Kind::Neighbours { count: 3 }, forest] {
        for output in [Output::Number, Output::Probability, Output::Classes(3)] {
            all.push(Arc::new(Hypotheses::of(kind, output)));
        }
    }
    all
}

fn named(family: &dyn Family) -> String {
    format!("{family:?}")
}

fn point(length: usize, seed: u32) -> Vec<f64> {
    let mut rng = PublicRng::named(5, "point", seed, 0);
    (0..length).map(|_| 0.5 * rng.normal()).collect()
}

#[test]
fn a_learner_does_what_its_family_says_and_nothing_else() {
    for family in families() {
        let (data, name) = (records(&*family, 12), named(&*family));
        let learner = family.join(&data, Terms::among(2).weighing(1.5)).unwrap();
        let mut buffers = Buffers::default();
        let length = family.dimension(COLUMNS);
        let (w, mut out) = (point(length, 0), vec![0.0; length]);
        let can = |ability| family.has().with_fallbacks().contain(ability);
        let missing = |result: Result<(), Failure>| matches!(result, Err(Failure::Missing(_)));
        assert_eq!(missing(learner.value(&w, &mut buffers).map(|_| ())), !can(Abilities::VALUE), "{name}");
        assert_eq!(missing(learner.gradient(&w, 1.0, &mut out, &mut buffers)), !can(Abilities::GRADIENT));
        let rows: Vec<u32> = (0..4).collect();
        let batch = learner.batch_gradient(&rows, &mut w.clone(), &mut out, &mut buffers);
        assert_eq!(missing(batch.map(|_| ())), !can(Abilities::BATCHES), "{name}");
        let record = learner.record_gradient(0, &w, &mut out, &mut buffers);
        assert_eq!(missing(record), !can(Abilities::RECORDS), "{name}");
        let prox = learner.prox(&w, 1.5, &mut out, &mut buffers);
        assert_eq!(missing(prox.map(|_| ())), !can(Abilities::PROX), "{name}");
        let mut predicted = 0;
        let model = if can(Abilities::PARAMETERS) { w } else { family.constant(COLUMNS) };
        family.predict(&model, &data, &mut |_, _| predicted += 1);
        assert_eq!(predicted == data.rows(), can(Abilities::PREDICT), "{name}");
        assert!(!can(Abilities::PARAMETERS) || family.is_model(&model, COLUMNS, data.rows()), "{name}");
    }
}

/// Central differences of the smooth part; a quantile loss away from its kinks.
#[test]
fn gradients_agree_with_differences_and_records_sum_to_them() {
    let mut compared = 0;
    for family in families().into_iter().filter(|family| family.has().contain(Abilities::GRADIENT)) {
        let (data, name) = (records(&*family, 9), named(&*family));
        let learner = family.join(&data, Terms::among(3)).unwrap();
        let mut buffers = Buffers::default();
        let w = point(learner.dimension(), 1);
        let mut gradient = vec![0.0; w.len()];
        learner.gradient(&w, 1.0, &mut gradient, &mut buffers).unwrap();
        let h = 1e-6;
        for j in 0..w.len() {
            let mut at = |by: f64| {
                let mut moved = w.clone();
                moved[j] += by;
                learner.smooth(&moved, &mut buffers).unwrap()
            };
            let slope = (at(h) - at(-h)) / (2.0 * h);
            assert!((slope - gradient[j]).abs() < 1e-6, "{name} {j}: {slope} {}", gradient[j]);
        }
        let mut sum = vec![0.0; w.len()];
        (0..data.rows()).for_each(|i| learner.record_gradient(i, &w, &mut sum, &mut buffers).unwrap());
        scale(1.0 / data.rows() as f64, &mut sum);
        axpy(2.0 * Share::one_of(3).times(family.squared_norm()), &w, &mut sum);
        assert!(distance2(&sum, &gradient).sqrt() < 1e-12 * (1.0 + norm2(&gradient)), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 26);
}

#[test]
fn one_full_batch_is_a_gradient_step() {
    for family in families().into_iter().filter(|family| family.has().contain(Abilities::GRADIENT)) {
        let data = records(&*family, 7);
        let learner = family.join(&data, Terms::among(3)).unwrap();
        let mut buffers = Buffers::default();
        let w = point(learner.dimension(), 2);
        let mut gradient = vec![0.0; w.len()];
        learner.gradient(&w, 1.0, &mut gradient, &mut buffers).unwrap();
        let mut stepped = w.clone();
        axpy(-0.05, &gradient, &mut stepped);
        learner.shrink(&mut stepped, 0.05);
        let descent = Descent { epochs: 1, batch: 7, rate: 0.05, momentum: 0.0, weight_decay: 0.0 };
        let mut trained = w;
        learner.descend(&mut trained, &descent, None, &mut |_| {}, &mut buffers).unwrap();
        assert!(distance2(&trained, &stepped).sqrt() < 1e-13, "{}", named(&*family));
    }
}

/// w is the step where `w = shrink(w - h (grad f(w) + rho (w - v)), h)`: no element of the subdifferential is left. A
/// quantile loss has no gradient there; it is compared with points around.
#[test]
fn proximal_steps_are_optimal_and_the_same_bits_twice() {
    let weight = 1.7;
    for family in families().into_iter().filter(|family| family.has().contain(Abilities::GRADIENT)) {
        let name = named(&*family);
        for rows in [2, 9] {
            let data = records(&*family, rows);
            let learner = family.join(&data, Terms::among(2).weighing(weight)).unwrap();
            let mut buffers = Buffers::default();
            let centre = point(learner.dimension(), 3);
            let (mut w, mut again) = (centre.clone(), vec![7.0; centre.len()]);
            learner.prox(&centre, weight, &mut w, &mut buffers).unwrap();
            learner.prox(&centre, weight, &mut again, &mut Buffers::default()).unwrap();
            assert_eq!(w, again, "{name}");
            let mut whole =
                |w: &[f64]| learner.value(w, &mut buffers).unwrap() + 0.5 * weight * distance2(w, &centre);
            let least = whole(&w);
            for trial in 0..20 {
                let mut moved = w.clone();
                axpy(1e-4, &point(w.len(), 10 + trial), &mut moved);
                assert!(whole(&moved) >= least - 1e-12, "{name}");
            }
            if !matches!(family.downcast::<Linear>(), Some(linear) if !linear.model().loss.is_smooth()) {
                let mut gradient = vec![0.0; w.len()];
                learner.gradient(&w, 1.0, &mut gradient, &mut buffers).unwrap();
                let mut moved = w.clone();
                for ((moved, (g, w)), c) in moved.iter_mut().zip(gradient.iter().zip(&w)).zip(&centre) {
                    *moved -= 0.1 * (g + weight * (w - c));
                }
                learner.shrink(&mut moved, 0.1);
                assert!(distance2(&moved, &w).sqrt() < 1e-9, "{name}: {}", distance2(&moved, &w).sqrt());
            }
        }
    }
}

/// A learner that brings a loss and gradients alone.
struct Plain(Box<dyn Learner>);

impl Learner for Plain {
    fn rows(&self) -> usize {
        self.0.rows()
    }
    fn dimension(&self) -> usize {
        self.0.dimension()
    }
    fn loss(&self, w: &[f64], buffers: &mut Buffers) -> Result<f64, Failure> {
        self.0.smooth(w, buffers)
    }
    fn gradient(
        &self,
        w: &[f64],
        factor: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        self.0.gradient(w, factor, out, buffers)
    }
}

#[test]
fn a_step_that_is_made_from_gradients_is_near_the_exact_one_and_says_how_near() {
    for loss in [Loss::Squared, Loss::Huber(0.6), Loss::Logistic, Loss::Poisson] {
        let family = Linear::new(Model { loss, regularisation: 0.8, bias: false, feature_norm: None });
        let terms = Terms::among(2).weighing(1.5);
        let data = records(&family, 11);
        let exact = family.join(&data, terms).unwrap();
        let plain = Plain(family.join(&data, terms).unwrap());
        let centre = point(COLUMNS, 4);
        let (mut a, mut b) = (vec![0.0; COLUMNS], vec![0.0; COLUMNS]);
        assert_eq!(exact.prox(&centre, 1.5, &mut a, &mut Buffers::default()).unwrap(), Reached::EXACT);
        let reached = plain.prox(&centre, 1.5, &mut b, &mut Buffers::default()).unwrap();
        assert!(reached.residual > 0.0 && reached.residual < 1e-9, "{loss:?}: {reached:?}");
        assert!(distance2(&a, &b).sqrt() <= reached.residual / 1.5 + 1e-9, "{loss:?}");
    }
}
