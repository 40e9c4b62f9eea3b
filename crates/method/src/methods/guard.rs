//! Which step a target takes: the best offered one as printed, or only where it is not far worse than usual.
//!
//! Algorithm 1 takes the least bad of B steps. When no candidate is kin, that step leads away, and with few candidates
//! a run can blow up. The guard refuses a step whose loss is above three times a running geometric mean of the losses
//! that were accepted. Losses fall over many orders of magnitude, so a plain mean would remember the first ones for ever.
//! Taking improvements only would stall where a model has more parameters than a target has records: on the way down
//! the own loss rises again and again.

use fedkin_numeric::{exp, ln, record};
use fedkin_settings::{Kind, Param, Preset, choice};

choice! {
    /// Which of the offered steps a target takes.
    pub enum Accept {
        /// The best one, unless it is far worse than usual.
        Guard = "guard",
        /// The least bad one, as printed.
        Paper = "paper",
    }
}

/// `accept`, as every method with offers declares it; what is offered is said in the help of each.
pub(super) const ACCEPT: Param = Param {
    name: "accept",
    kind: Kind::Choice(Accept::WORDS),
    preset: Preset::Text("guard"),
    help: "refuse a best step far worse than usual, or take the least bad one as printed",
};

record! {
    /// What the server remembers of a target's accepted losses.
    pub struct Watch {
        /// Running geometric mean of accepted losses; nothing before the first.
        mean: Option<f64>,
        /// Refusals in a row.
        refused: u32,
    }
}

/// A loss above so many times the mean is refused.
const FACTOR: f64 = 3.0;
/// How much of the mean's logarithm stays when a loss is accepted.
const KEEP: f64 = 0.7;
/// After so many refusals in a row the next step is taken, and the mean starts anew.
const PATIENCE: u32 = 20;
/// A loss of zero has no logarithm.
const LEAST: f64 = 1e-300;

impl Watch {
    /// Whether a step with this loss is taken.
    pub fn accepts(&mut self, loss: f64) -> bool {
        let loss = loss.max(LEAST);
        match self.mean {
            Some(mean) if self.refused < PATIENCE => {
                if loss > FACTOR * mean {
                    self.refused += 1;
                    return false;
                }
                self.mean = Some(exp(KEEP * ln(mean) + (1.0 - KEEP) * ln(loss)));
            }
            _ => self.mean = Some(loss),
        }
        self.refused = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_refused_above_three_times_the_mean_and_taken_after_twenty_refusals() {
        let mut watch = Watch::default();
        assert!(watch.accepts(2.0));
        assert!(watch.accepts(6.0), "three times the mean is not above it");
        // The mean is now 2^0.7 6^0.3 = 2.781.
        assert!(watch.accepts(8.3));
        let mut watch = Watch::default();
        assert!(watch.accepts(1.0));
        for _ in 0..PATIENCE {
            assert!(!watch.accepts(100.0));
        }
        assert!(watch.accepts(100.0));
        assert_eq!(watch.mean, Some(100.0));
        assert!(watch.accepts(299.0) && !watch.accepts(1e6));
    }

    #[test]
    fn a_loss_of_zero_does_not_end_the_world() {
        let mut watch = Watch::default();
        assert!(watch.accepts(0.0) && watch.accepts(0.0));
        assert!(watch.mean.is_some_and(|mean| mean > 0.0));
    }
}
