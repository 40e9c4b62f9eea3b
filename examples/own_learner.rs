//! An own learner, Poisson regression with an l1 penalty, under every command of `fedkin` and every method whose needs it
//! meets: `own_learner run CONFIG --set algorithm.name=pgfl`, with `--runtime nats` on nodes that talk through a broker.

use fedkin::learner::{
    Abilities, Buffers, Failure, Family, Known, Learner, LearnerKind, LearnerRow, Terms, Unsolved,
};
use fedkin::{Dataset, Kind, Preset, settings};
use fedkin_numeric::{axpy, dot, exp};
use std::{process::ExitCode, sync::Arc};

settings! {
    /// The keys of `[model]` with `kind = "counts"`: counts with the mean `exp(x'w)`.
    pub struct Counts {
        l1: f64 => Kind::FROM_ZERO, Preset::Number(0.05), "weight of the sum of absolute values";
    }
}

impl LearnerKind for Counts {
    type Settings = Self;
    const HAS: Abilities =
        Abilities::PARAMETERS.and(Abilities::VALUE).and(Abilities::GRADIENT).and(Abilities::PREDICT);
    fn build(keys: &Self, _: Known) -> Result<Arc<dyn Family>, String> {
        Ok(Arc::new(keys.clone()))
    }
}

/// The public half.
impl Family for Counts {
    fn name(&self) -> &'static str {
        "counts"
    }
    fn has(&self) -> Abilities {
        <Self as LearnerKind>::HAS
    }
    fn shrink(&self, w: &mut [f64], t: f64) {
        for w in w {
            *w = w.signum() * (w.abs() - t * self.l1).max(0.0);
        }
    }
    fn join(&self, data: &Arc<Dataset>, terms: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        Ok(Box::new(Client { data: Arc::clone(data), own: Self { l1: terms.share.times(self.l1) } }))
    }
    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64])) {
        (0..data.rows()).for_each(|i| each(i, &[exp(dot(data.row(i), w))]));
    }
}

/// The private half: a client's records and its share of the penalty.
struct Client {
    data: Arc<Dataset>,
    own: Counts,
}

impl Learner for Client {
    fn rows(&self) -> usize {
        self.data.rows()
    }
    fn dimension(&self) -> usize {
        self.data.columns()
    }
    fn loss(&self, w: &[f64], _: &mut Buffers) -> Result<f64, Failure> {
        let fits = (0..self.rows()).map(|i| (dot(self.data.row(i), w), self.data.targets()[i]));
        Ok(fits.map(|(log_mean, y)| exp(log_mean) - y * log_mean).sum::<f64>() / self.rows() as f64)
    }
    fn gradient(&self, w: &[f64], factor: f64, out: &mut [f64], _: &mut Buffers) -> Result<(), Failure> {
        out.fill(0.0);
        for (i, y) in self.data.targets().iter().enumerate() {
            let row = self.data.row(i);
            axpy(factor * (exp(dot(row, w)) - y) / self.rows() as f64, row, out);
        }
        Ok(())
    }
    fn kinks(&self, w: &[f64]) -> f64 {
        self.own.l1 * w.iter().map(|w| w.abs()).sum::<f64>()
    }
    fn has_kinks(&self) -> bool {
        self.own.l1 > 0.0
    }
    fn shrink(&self, w: &mut [f64], t: f64) {
        Family::shrink(&self.own, w, t);
    }
}

fn main() -> ExitCode {
    let row = LearnerRow::of::<Counts>("counts", "an example: Poisson regression with an l1 penalty");
    fedkin_cli::main_with(|registry| registry.add_learner(row))
}
