//! Steps that are made from gradients. What all learners have to stand is a suite of the crate `fedkin-harness`.

use super::*;
use crate::model::{Loss, Model};
use fedkin_numeric::distance2;
use fedkin_numeric::rng::Random;

const COLUMNS: usize = 4;

/// Records with counts as targets, or labels.
fn records(family: &dyn Family, rows: usize) -> Arc<Dataset> {
    let mut rng = PublicRng::named(3, "learner suite", rows as u32, 0);
    let features: Vec<f64> = (0..rows * COLUMNS).map(|_| 0.7 * rng.normal()).collect();
    let most = if family.output() == Output::Probability { 2 } else { 4 };
    let targets = (0..rows).map(|_| f64::from(rng.below(most))).collect();
    Arc::new(Dataset::new(COLUMNS, features, targets).unwrap())
}

fn point(length: usize, seed: u32) -> Vec<f64> {
    let mut rng = PublicRng::named(5, "point", seed, 0);
    (0..length).map(|_| 0.5 * rng.normal()).collect()
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
