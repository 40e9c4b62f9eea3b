//! Every native learner passes the suite for learners, and learners that are wrong do not.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use fedkin_harness::learner_suite;
use fedkin_learner::hypothesis::Kind;
use fedkin_learner::model::neural::{Goal, Layer, Net};
use fedkin_learner::model::{Loss, Model, NetModel, Softmax, Unsolved};
use fedkin_learner::{
    Abilities, Failure, Family, Groups, Hypotheses, Learner, Linear, NetFamily, Reached, Regulariser,
    SoftmaxFamily, Terms,
};
use fedkin_learner::{Dataset, Output};
use fedkin_numeric::buffers::Buffers;
use std::sync::Arc;

const COLUMNS: usize = 4;

fn linear(loss: Loss, regulariser: Regulariser) -> Linear {
    Linear::regularised(Model { loss, regularisation: 0.8, bias: false, feature_norm: None }, regulariser)
}

#[test]
fn linear_learners_with_every_regulariser() {
    for loss in [Loss::Squared, Loss::Huber(0.6), Loss::Logistic, Loss::Poisson, Loss::Quantile(0.3)] {
        for regulariser in [
            Regulariser::SquaredNorm,
            Regulariser::None,
            Regulariser::L1,
            Regulariser::ElasticNet { l1_share: 0.4 },
            Regulariser::Group { groups: Groups::Equal(2) },
        ] {
            learner_suite(&linear(loss, regulariser), COLUMNS, loss.is_smooth()).unwrap();
        }
    }
}

#[test]
fn softmax_and_nets() {
    let softmax = Softmax { classes: 3, regularisation: 0.8, bias: true, feature_norm: None };
    learner_suite(&SoftmaxFamily::new(softmax), COLUMNS, true).unwrap();
    let layers: Vec<Layer> =
        ["dense 6", "relu", "dense 3"].iter().map(|words| Layer::parse(words).unwrap()).collect();
    let net = Net::new([COLUMNS, 1, 1], &layers, Goal::CrossEntropy).unwrap();
    learner_suite(&NetFamily::new(NetModel::new(net)), COLUMNS, true).unwrap();
}

#[test]
fn trees_neighbours_and_forests() {
    let forest = Kind::Forest { trees: 3, leaf: 2, depth: 8 };
    for kind in [Kind::Tree { leaf: 2, depth: 8 }, Kind::Neighbours { count: 3 }, forest] {
        for output in [Output::Number, Output::Probability, Output::Classes(3)] {
            learner_suite(&Hypotheses::of(kind, output), COLUMNS, true).unwrap();
        }
    }
}

/// A ridge model with one thing wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wrong {
    Gradient,
    Prox,
    Claim,
    Bits,
}

#[derive(Debug)]
struct WrongFamily(Wrong, Linear);

impl Family for WrongFamily {
    fn name(&self) -> &'static str {
        "wrong"
    }
    fn has(&self) -> Abilities {
        let plain =
            Abilities::PARAMETERS.and(Abilities::VALUE).and(Abilities::GRADIENT).and(Abilities::PREDICT);
        if self.0 == Wrong::Claim { plain.and(Abilities::RECORDS) } else { plain }
    }
    fn join(&self, data: &Arc<Dataset>, terms: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        Ok(Box::new(WrongLearner(self.0, self.1.join(data, terms)?)))
    }
    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64])) {
        self.1.predict(w, data, each);
    }
}

struct WrongLearner(Wrong, Box<dyn Learner>);

impl Learner for WrongLearner {
    fn rows(&self) -> usize {
        self.1.rows()
    }
    fn dimension(&self) -> usize {
        self.1.dimension()
    }
    fn loss(&self, w: &[f64], buffers: &mut Buffers) -> Result<f64, Failure> {
        self.1.smooth(w, buffers)
    }
    fn gradient(
        &self,
        w: &[f64],
        factor: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Failure> {
        self.1.gradient(w, factor, out, buffers)?;
        if self.0 == Wrong::Gradient {
            out[1] *= 1.001;
        }
        Ok(())
    }
    fn prox(
        &self,
        centre: &[f64],
        weight: f64,
        out: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<Reached, Failure> {
        // What an earlier call left must not matter.
        let before = out[0];
        let reached = self.1.prox(centre, weight, out, buffers)?;
        match self.0 {
            Wrong::Prox => out[0] += 1e-3,
            Wrong::Bits => out[0] += 1e-15 * before,
            Wrong::Gradient | Wrong::Claim => {}
        }
        Ok(reached)
    }
}

#[test]
fn a_learner_that_is_wrong_is_told_what_is() {
    for (wrong, told) in [
        (Wrong::Gradient, "differences give"),
        (Wrong::Prox, "is better by"),
        (Wrong::Claim, "gradients of single records"),
        (Wrong::Bits, "other bits"),
    ] {
        let family = WrongFamily(wrong, linear(Loss::Squared, Regulariser::SquaredNorm));
        let message = learner_suite(&family, COLUMNS, true).unwrap_err();
        assert!(message.contains(told), "{wrong:?}: {message}");
    }
}
