//! The proximal step of a linear model with any regulariser.
//!
//! ```text
//! prox(v) = argmin over w of (1/D) sum_i loss(x_i'w, y_i) + R(w) + (penalty/2) |w - v|^2
//! ```
//!
//! | loss | R smooth | R with l1 or groups |
//! |---|---|---|
//! | squared, Huber, logistic, Poisson | [`Prox`] | accelerated proximal gradient to the accuracy asked for |
//! | quantile | [`Prox`] | dual active-set method, conditions to 1e-12 (1e-9 where records are nearly dependent) |

use super::prox::{self, Prox};
use super::quantile::Pinball;
use super::{Loss, Model};
use crate::Dataset;
use crate::generic::{self, Reached, Unreached, Work};
use crate::regulariser::Regulariser;
use crate::unsolved::Unsolved;
use fedkin_numeric::{distance2, norm2};
use std::sync::Arc;

/// A client's problem with its regulariser, ready to be solved for any centre.
#[derive(Debug, Clone)]
pub struct RegularisedProx {
    model: Model,
    data: Arc<Dataset>,
    regulariser: Regulariser,
    strength: f64,
    penalty: f64,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Exact(Prox),
    Gradient,
    Kinked(Pinball),
}

/// Memory of a solution, which keeps its allocation.
#[derive(Debug, Clone, Default)]
pub struct ProxWork {
    numbers: Vec<f64>,
    generic: Work,
}

impl RegularisedProx {
    /// Prepares the problem of prepared `data`; the regulariser has this strength, whatever `model.regularisation` says.
    pub fn new(
        model: &Model,
        data: Arc<Dataset>,
        regulariser: Regulariser,
        strength: f64,
        penalty: f64,
    ) -> Result<Self, Unsolved> {
        if regulariser.check(data.columns()).is_err() {
            return Err(Unsolved("its regulariser is not one of so many parameters"));
        }
        if !(strength >= 0.0 && strength.is_finite() && penalty >= 0.0 && penalty.is_finite()) {
            return Err(Unsolved("its regularisation and its penalty are no finite numbers of at least 0"));
        }
        let smooth = strength * regulariser.squared_share();
        prox::check_curvature(2.0 * smooth + penalty)?;
        prox::check(model.loss, &data)?;
        let form = match model.loss {
            _ if regulariser.is_smooth() || strength == 0.0 => {
                Form::Exact(Prox::new(model, Arc::clone(&data), smooth, penalty)?)
            }
            Loss::Squared | Loss::Huber(_) | Loss::Logistic | Loss::Poisson => Form::Gradient,
            Loss::Quantile(level) => {
                let rows = data.rows();
                Form::Kinked(Pinball::new(level, &data, vec![1.0 / rows as f64; rows])?)
            }
        };
        Ok(Self { model: *model, data, regulariser, strength, penalty, form })
    }

    /// The number of parameters.
    pub fn dimension(&self) -> usize {
        self.data.columns()
    }

    /// Whether the step is solved to rounding whatever accuracy is asked for.
    pub fn is_exact(&self) -> bool {
        match self.form {
            Form::Exact(_) | Form::Kinked(_) => true,
            Form::Gradient => false,
        }
    }

    /// Writes `prox(centre)` to `out`. `accuracy` is that of [`generic::prox`]; exact forms do not use it, and report the
    /// residual that their own tolerance allows.
    pub fn solve(
        &self,
        centre: &[f64],
        accuracy: f64,
        out: &mut [f64],
        work: &mut ProxWork,
    ) -> Result<Reached, Unreached> {
        let smooth = self.strength * self.regulariser.squared_share();
        let curvature = 2.0 * smooth + self.penalty;
        let exact = Reached { residual: 1e-12 * (1.0 + self.penalty * norm2(centre).sqrt()), iterations: 0 };
        match &self.form {
            Form::Exact(prox) => {
                prox.solve(centre, out, &mut work.numbers)?;
                Ok(exact)
            }
            Form::Kinked(pinball) => {
                for (out, centre) in out.iter_mut().zip(centre) {
                    *out = self.penalty / curvature * centre;
                }
                let norm = (&self.regulariser, self.strength);
                pinball.solve_with(&self.data, curvature, norm, out, &mut work.numbers)?;
                Ok(exact)
            }
            Form::Gradient => {
                let numbers = &mut work.numbers;
                let mut objective = |w: &[f64], gradient: &mut [f64]| {
                    self.model.gradient(&self.data, smooth, w, 1.0, gradient, numbers);
                    self.model.objective(&self.data, smooth, w)
                };
                let shrink = |w: &mut [f64], t: f64| self.regulariser.shrink(w, self.strength * t);
                generic::prox(
                    &mut objective,
                    Some(&shrink),
                    centre,
                    self.penalty,
                    accuracy,
                    out,
                    &mut work.generic,
                )
            }
        }
    }
}

/// The pull of the proximal steps by which a fit without curvature goes.
const PULL: f64 = 0.1;
/// Most of these steps.
const STEPS: u32 = 2000;

/// A minimiser of `sum_i weight_i loss(x_i'w, y_i) + R(w)` on prepared data for the loss of a quantile, whose kinks have no
/// gradient to follow. With a squared norm in R it is one solution of the dual. Without, there may be several: exact
/// proximal steps from zero, each around the one before, end at one of them, as the objective is made of pieces.
pub(crate) fn fit_quantile(
    level: f64,
    data: &Dataset,
    weights: &[f64],
    (regulariser, strength): (&Regulariser, f64),
) -> Result<Vec<f64>, Unsolved> {
    let pinball = Pinball::new(level, data, weights.to_vec())?;
    let curvature = 2.0 * strength * regulariser.squared_share();
    let (mut w, mut work) = (vec![0.0; data.columns()], Vec::new());
    if curvature > 0.0 {
        pinball.solve_with(data, curvature, (regulariser, strength), &mut w, &mut work)?;
        return Ok(w);
    }
    for _ in 0..STEPS {
        let before = w.clone();
        pinball.solve_with(data, PULL, (regulariser, strength), &mut w, &mut work)?;
        if distance2(&before, &w) <= 1e-24 * (1.0 + norm2(&w)) {
            return Ok(w);
        }
    }
    Err(Unsolved("its quantile problem did not come to an end"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regulariser::Groups;
    use fedkin_numeric::rng::{PublicRng, Random};
    use fedkin_numeric::{axpy, dot};
    use proptest::prelude::*;

    fn sample(seed: u64, loss: Loss, rows: usize, columns: usize) -> Arc<Dataset> {
        let mut rng = PublicRng::named(seed, "composite test", rows as u32, columns as u32);
        let features = (0..rows * columns).map(|_| rng.normal()).collect();
        let targets = (0..rows).map(|_| match loss {
            Loss::Logistic => f64::from(rng.below(2)),
            Loss::Poisson => f64::from(rng.below(5)),
            Loss::Squared | Loss::Huber(_) | Loss::Quantile(_) => rng.normal(),
        });
        Arc::new(Dataset::new(columns, features, targets.collect()).unwrap())
    }

    fn model(loss: Loss) -> Model {
        Model { loss, regularisation: 0.0, bias: false, feature_norm: None }
    }

    fn kinked() -> [Regulariser; 4] {
        [
            Regulariser::L1,
            Regulariser::ElasticNet { l1_share: 0.5 },
            Regulariser::Group { groups: Groups::Equal(2) },
            Regulariser::Group { groups: Groups::Equal(3) },
        ]
    }

    const SHAPES: [(usize, usize); 7] = [(1, 1), (1, 8), (5, 12), (8, 8), (30, 6), (60, 20), (300, 4)];

    #[test]
    fn smooth_losses_stay_where_a_proximal_gradient_step_starts() {
        for loss in [Loss::Squared, Loss::Huber(0.3), Loss::Logistic, Loss::Poisson] {
            for (rows, columns) in SHAPES {
                let data = sample(1, loss, rows, columns);
                for regulariser in kinked() {
                    let step =
                        RegularisedProx::new(&model(loss), Arc::clone(&data), regulariser.clone(), 0.2, 0.7);
                    let (step, centre) = (step.unwrap(), vec![0.4; columns]);
                    let mut w = vec![f64::NAN; columns];
                    step.solve(&centre, 1e-12, &mut w, &mut ProxWork::default()).unwrap();
                    let mut gradient = vec![0.0; columns];
                    model(loss).gradient(&data, 0.0, &w, 1.0, &mut gradient, &mut Vec::new());
                    regulariser.add_gradient(&w, 0.2, &mut gradient);
                    let mut next = w.clone();
                    for ((next, g), w) in next.iter_mut().zip(&gradient).zip(&w) {
                        *next -= g + 0.7 * (w - 0.4);
                    }
                    regulariser.shrink(&mut next, 0.2);
                    let gap = distance2(&w, &next).sqrt();
                    assert!(gap < 1e-10, "{loss:?} {rows} x {columns} {regulariser:?}: {gap:e}");
                }
            }
        }
    }

    /// The certificate of a quantile step: w = shrink(m + X'a, s/c), a in its box, residuals on the side that a says.
    fn certify(
        level: f64,
        data: &Arc<Dataset>,
        regulariser: &Regulariser,
        strength: f64,
        penalty: f64,
    ) -> Result<(), String> {
        let (rows, columns) = (data.rows(), data.columns());
        let model = model(Loss::Quantile(level));
        let step =
            RegularisedProx::new(&model, Arc::clone(data), regulariser.clone(), strength, penalty).unwrap();
        let (centre, mut w, mut work) = (vec![0.4; columns], vec![f64::NAN; columns], ProxWork::default());
        step.solve(&centre, 1e-12, &mut w, &mut work).map_err(|e| e.to_string())?;
        let curvature = penalty + 2.0 * strength * regulariser.squared_share();
        let mut expected: Vec<f64> = centre.iter().map(|v| penalty / curvature * v).collect();
        let width = 1.0 / rows as f64 / curvature;
        for (i, &a) in work.numbers[..rows].iter().enumerate() {
            axpy(a, data.row(i), &mut expected);
            let residual = data.targets()[i] - dot(data.row(i), &w);
            let [low, high] = [-(1.0 - level) * width, level * width];
            let right =
                (low..=high).contains(&a) && (residual > -1e-9 || a == low) && (residual < 1e-9 || a == high);
            if !right {
                return Err(format!("record {i}: residual {residual:e} at {a} in {low}..{high}"));
            }
        }
        regulariser.shrink(&mut expected, strength / curvature);
        let gap = distance2(&w, &expected).sqrt() / (1.0 + norm2(&w).sqrt());
        if gap < 1e-12 { Ok(()) } else { Err(format!("the point is off by {gap:e}")) }
    }

    #[test]
    fn quantile_steps_are_optimal_with_every_regulariser() {
        for (rows, columns) in SHAPES {
            for (level, strength, penalty) in [(0.5, 0.05, 0.7), (0.1, 0.3, 0.05), (0.9, 0.01, 5.0)] {
                let data = sample(1, Loss::Quantile(level), rows, columns);
                for regulariser in kinked() {
                    if let Err(text) = certify(level, &data, &regulariser, strength, penalty) {
                        panic!("{rows} x {columns}, {level}, {strength}, {penalty}, {regulariser:?}: {text}");
                    }
                }
            }
        }
    }

    proptest! {
        /// Also with few different numbers, so that records tie and depend on each other.
        #[test]
        fn random_quantile_steps_are_optimal(
            seed in 0u64..1000,
            rows in 1usize..40,
            columns in 1usize..16,
            level in 0.02..0.98,
            strength in prop_oneof![Just(1e-3), Just(0.05), Just(0.5)],
            penalty in prop_oneof![Just(0.01), Just(0.3), Just(10.0)],
            which in 0usize..4,
            whole in any::<bool>(),
        ) {
            let mut data = sample(seed, Loss::Quantile(level), rows, columns);
            if whole {
                let round = |x: &[f64]| x.iter().map(|x| x.round()).collect::<Vec<f64>>();
                data = Arc::new(Dataset::new(columns, round(data.features()), round(data.targets())).unwrap());
            }
            let end = certify(level, &data, &kinked()[which], strength, penalty);
            prop_assert!(end.is_ok(), "{:?}", end);
        }
    }

    #[test]
    fn without_a_kink_it_is_the_exact_step_to_the_bit() {
        for loss in [Loss::Squared, Loss::Logistic, Loss::Quantile(0.3)] {
            let data = sample(2, loss, 12, 5);
            let step =
                RegularisedProx::new(&model(loss), Arc::clone(&data), Regulariser::SquaredNorm, 0.1, 0.9)
                    .unwrap();
            assert!(step.is_exact());
            let exact = Prox::new(&model(loss), data, 0.1, 0.9).unwrap();
            let (mut w, mut expected) = ([0.0; 5], [0.0; 5]);
            step.solve(&[0.3; 5], 1e-6, &mut w, &mut ProxWork::default()).unwrap();
            exact.solve(&[0.3; 5], &mut expected, &mut Vec::new()).unwrap();
            assert_eq!(w.map(f64::to_bits), expected.map(f64::to_bits));
        }
    }

    #[test]
    fn steps_are_the_same_twice_and_bad_numbers_are_refused() {
        for loss in [Loss::Poisson, Loss::Quantile(0.3)] {
            let data = sample(3, loss, 20, 6);
            let new = |regulariser, strength, penalty| {
                RegularisedProx::new(&model(loss), Arc::clone(&data), regulariser, strength, penalty)
            };
            let step = new(Regulariser::L1, 0.1, 0.5).unwrap();
            let (mut once, mut twice, mut work) = ([0.0; 6], [0.0; 6], ProxWork::default());
            step.solve(&[0.2; 6], 1e-10, &mut once, &mut work).unwrap();
            step.solve(&[2.0; 6], 1e-10, &mut twice, &mut work).unwrap();
            step.solve(&[0.2; 6], 1e-10, &mut twice, &mut work).unwrap();
            assert_eq!(once.map(f64::to_bits), twice.map(f64::to_bits));
            assert!(step.solve(&[f64::NAN; 6], 1e-10, &mut twice, &mut work).is_err());
            assert!(new(Regulariser::L1, f64::NAN, 0.5).is_err() && new(Regulariser::L1, 0.1, -1.0).is_err());
            assert!(new(Regulariser::L1, 0.1, 0.0).is_err(), "l1 alone leaves the minimiser open");
            assert!(new(Regulariser::Group { groups: Groups::Equal(0) }, 0.1, 0.5).is_err());
        }
    }
}
