//! The privacy a run asks for.

use super::accountant::gaussian_zcdp_of_epsilon;
use super::bound::Bound;
use super::clip::Clip;
use super::mechanism::{Gaussian, SampledSum, Sampler};
use fedkin_numeric::{ln, power};
use fedkin_settings::{Kind, Preset, choice, settings};
use std::path::PathBuf;

choice! {
    /// What protects the uploads of a run. Each word stands for a mechanism of this module; there are no others.
    pub enum Protection {
        /// Nothing.
        None = "none",
        /// Gaussian noise accounted in zCDP.
        Zcdp = "zcdp",
        /// Clipped and noisy gradients of a secret sample.
        DpSgd = "dp-sgd",
        /// One noisy scatter matrix.
        OneShot = "one-shot",
        /// The noise of the `FedGL` paper.
        Paper = "paper",
    }
}

choice! {
    /// Where the bound on one record's gradient comes from.
    pub enum BoundSource {
        /// It is taken on trust.
        Assumed = "assumed",
        /// Clipped features enforce it.
        Enforced = "enforced",
    }
}

settings! {
    /// The keys of `[privacy]`.
    pub struct PrivacySettings {
        mechanism: Protection => Kind::Choice(Protection::WORDS), Preset::Text("none"),
            "what protects an upload: nothing, Gaussian noise accounted in zCDP, clipped and noisy gradients of a secret sample of the records, one noisy scatter matrix from which all graphs follow, or the noise of the FedGL paper, which an audit has refuted";
        initial_budget: f64 => Kind::Number { least: 0.0, most: 1e3, open: true }, Preset::Number(0.001),
            "zcdp: zCDP of round 0 (phi_0); round n spends `initial_budget / growth^n`";
        growth: f64 => Kind::Number { least: 0.5, most: 1.0, open: false }, Preset::Number(0.99),
            "zcdp: factor of the noise variance per round (zeta)";
        bound: BoundSource => Kind::Choice(BoundSource::WORDS), Preset::Text("enforced"),
            "zcdp: whether the gradient bound is taken on trust or enforced by clipped features";
        gradient_bound: Option<f64> => Kind::ABOVE_ZERO, Preset::Absent,
            "zcdp: the assumed bound on the norm of one record's gradient (C)";
        clip: Option<f64> => Kind::ABOVE_ZERO, Preset::Absent,
            "dp-sgd: the gradient of every record is scaled down to at most this norm; one-shot: every record, less its mean over the nodes; paper: every record's squared differences (25 where absent)";
        epsilon: Option<f64> => Kind::Number { least: 0.0, most: 1e3, open: true }, Preset::Absent,
            "one-shot: epsilon of the one release at `delta`, priced exactly; paper: what the paper claims for the whole run";
        noise_multiplier: Option<f64> => Kind::Number { least: SampledSum::LEAST, most: 1e6, open: false }, Preset::Absent,
            "dp-sgd: standard deviation of the noise on a sum of clipped gradients, over the clip";
        budget: Option<f64> => Kind::Number { least: 0.0, most: 1e3, open: true }, Preset::Absent,
            "zCDP a client may spend in all, sampled releases counted as if nothing were sampled; beyond it the client refuses";
        sampler: Sampler => Kind::Choice(Sampler::WORDS), Preset::Text("discrete"),
            "what draws the noise: exact whole numbers on a grid; floating point or none at all in simulations only";
        ledger: Option<PathBuf> => Kind::Path, Preset::Absent,
            "folder of a ledger that spans runs: `budget` is then for all runs on the same data together";
        delta: f64 => Kind::Number { least: 0.0, most: 0.5, open: true }, Preset::Number(1e-5),
            "delta at which epsilon is reported";
        unit: Unit => Kind::Choice(Unit::WORDS), Preset::Text("record"),
            "what a neighbouring data set differs in: one record of one client is replaced, or all of them";
    }
}

/// The privacy of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Privacy {
    /// Uploads leave as they are; the ledger says so.
    #[default]
    None,
    /// Gaussian noise with the schedule of the PGFL paper.
    Zcdp(Zcdp),
    /// Clipped gradients of a Poisson sample of the records, with Gaussian noise on their sum.
    DpSgd(DpSgd),
    /// One release of a scatter matrix, from which everything later follows.
    OneShot(OneShot),
    /// The noise of the `FedGL` paper: in the last of many steps alone. Refuted by an audit.
    Paper(LastStep),
}

/// One release per client and run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneShot {
    /// The largest norm of one record.
    pub clip: Clip,
    /// zCDP of the release: the largest whose exact epsilon is what was asked for.
    pub price: f64,
    /// What a client may spend in all.
    pub budget: Option<f64>,
    /// What draws the noise.
    pub sampler: Sampler,
}

/// The private algorithm of the `FedGL` paper as printed: epsilon and delta split evenly over the rounds, noise in the
/// last step of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastStep {
    /// The claimed epsilon of the run.
    pub epsilon: f64,
    /// The claimed delta of the run.
    pub delta: f64,
    /// C: the largest norm of the squared differences of one record.
    pub clip: f64,
    /// What a client may spend in all, by the claim.
    pub budget: Option<f64>,
    /// What draws the noise.
    pub sampler: Sampler,
}

impl OneShot {
    /// The keys it needs.
    pub const REQUIRED: &'static [&'static str] = &["clip", "epsilon"];

    fn new(keys: &PrivacySettings) -> Result<Self, String> {
        let need = |key: &str| format!("mechanism = \"one-shot\" needs `{key}`");
        let clip = keys.clip.ok_or_else(|| need("clip"))?;
        let clip = Clip::new(clip)
            .filter(|clip| clip.norm().is_finite())
            .ok_or("`clip` must be a finite number that can be clipped to")?;
        let epsilon = keys.epsilon.ok_or_else(|| need("epsilon"))?;
        Ok(Self {
            clip,
            price: whole(gaussian_zcdp_of_epsilon(epsilon, keys.delta)),
            budget: keys.budget,
            sampler: keys.sampler,
        })
    }
}

/// A price that is charged as it is: in whole units of 1e-12, rounded down, so that what is charged keeps to epsilon.
fn whole(price: f64) -> f64 {
    ((price * 1e12).floor() - 1.0) / 1e12
}

impl LastStep {
    /// C where the config does not say, section V-A of the paper.
    pub const CLIP: f64 = 25.0;

    fn new(keys: &PrivacySettings) -> Result<Self, String> {
        Ok(Self {
            epsilon: keys.epsilon.ok_or("mechanism = \"paper\" needs `epsilon`")?,
            delta: keys.delta,
            clip: keys.clip.unwrap_or(Self::CLIP),
            budget: keys.budget,
            sampler: keys.sampler,
        })
    }

    /// The noise on an upload of this length in one of `rounds` rounds, with step size `step` and so many records:
    /// (58) and (60). The sensitivity lacks a factor sqrt 2, and forgets all steps but the last.
    pub fn gaussian(&self, step: f64, samples: usize, length: usize, rounds: u32) -> Option<Gaussian> {
        let sensitivity = Bound::refuted(2.0 * step * self.clip / samples as f64);
        Gaussian::vector(sensitivity, self.price(rounds), length, self.sampler)
    }

    /// zCDP by the claim: sigma is sensitivity times sqrt(2 ln(1.25 / `delta_t`)) / `epsilon_t`.
    pub fn price(&self, rounds: u32) -> f64 {
        let (epsilon, delta) = (self.epsilon / f64::from(rounds), self.delta / f64::from(rounds));
        epsilon * epsilon / (4.0 * ln(1.25 / delta))
    }
}

choice! {
    /// What is protected: how much of one client's data a neighbouring data set replaces.
    #[derive(Default)]
    pub enum Unit {
        /// One record.
        #[default]
        Record = "record",
        /// All records of the client.
        Client = "client",
    }
}

impl Unit {
    /// What is replaced, in words.
    pub fn words(self) -> &'static str {
        match self {
            Unit::Record => "one record of one client is replaced",
            Unit::Client => "all records of one client are replaced",
        }
    }
}

/// Dynamic zCDP: round n (from 1) spends `initial_budget / growth^n`, Section IV of the PGFL paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zcdp {
    /// phi_0
    pub initial_budget: f64,
    /// zeta
    pub growth: f64,
    /// The bound on one record's gradient where it is assumed; `None` asks the model for an enforced one.
    pub assumed: Option<Bound>,
    /// What a client may spend in all.
    pub budget: Option<f64>,
    /// What draws the noise.
    pub sampler: Sampler,
    /// What is protected.
    pub unit: Unit,
}

/// DP-SGD: what protects the sum of the gradients of a sample. The sampling rate belongs to the method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DpSgd {
    /// The largest norm of one record's gradient.
    pub clip: Clip,
    /// Standard deviation of the noise over the clip.
    pub multiplier: f64,
    /// What a client may spend in all, in zCDP as if nothing were sampled.
    pub budget: Option<f64>,
    /// What draws the noise.
    pub sampler: Sampler,
}

impl DpSgd {
    /// The keys it needs.
    pub const REQUIRED: &'static [&'static str] = &["clip", "noise_multiplier"];

    fn new(keys: &PrivacySettings) -> Result<Self, String> {
        let need = |key: &str| format!("mechanism = \"dp-sgd\" needs `{key}`");
        let clip = keys.clip.ok_or_else(|| need("clip"))?;
        if keys.unit == Unit::Client {
            return Err("mechanism = \"dp-sgd\" clips and samples records, so it protects unit = \"record\" and no whole client".into());
        }
        let sampler = keys.sampler;
        let clip = Clip::new(clip).ok_or("`clip` is too small to clip to")?;
        if clip.norm().is_infinite() && sampler != Sampler::None {
            return Err(
                "an infinite `clip` bounds nothing that noise could cover: it is for sampler = \"none\""
                    .into(),
            );
        }
        Ok(Self {
            clip,
            multiplier: keys.noise_multiplier.ok_or_else(|| need("noise_multiplier"))?,
            budget: keys.budget,
            sampler,
        })
    }

    /// The mechanism for sums of gradients of this length over samples of this rate.
    pub fn sum(&self, rate: f64, length: usize) -> Option<SampledSum> {
        SampledSum::gaussian(self.clip, self.multiplier, rate, length, self.sampler)
    }
}

impl Privacy {
    /// The privacy described by `[privacy]`.
    pub fn new(keys: &PrivacySettings) -> Result<Self, String> {
        match keys.mechanism {
            Protection::None => return Ok(Privacy::None),
            Protection::Zcdp => {}
            Protection::DpSgd => return DpSgd::new(keys).map(Privacy::DpSgd),
            Protection::OneShot => return OneShot::new(keys).map(Privacy::OneShot),
            Protection::Paper => return LastStep::new(keys).map(Privacy::Paper),
        }
        let assumed = match (keys.bound, keys.gradient_bound) {
            (BoundSource::Assumed, Some(bound)) => Some(Bound::assumed(bound)),
            (BoundSource::Assumed, None) => return Err("bound = \"assumed\" needs `gradient_bound`".into()),
            (BoundSource::Enforced, Some(_)) => return Err("`gradient_bound` is for bound = \"assumed\"; an enforced bound follows from `model.feature_norm`".into()),
            (BoundSource::Enforced, None) => None,
        };
        Ok(Privacy::Zcdp(Zcdp {
            initial_budget: keys.initial_budget,
            growth: keys.growth,
            assumed,
            budget: keys.budget,
            sampler: keys.sampler,
            unit: keys.unit,
        }))
    }

    /// Whether the run demands privacy of everything that leaves a client.
    pub fn demanded(&self) -> bool {
        self.sampler() != Sampler::None
    }

    /// What draws the noise.
    pub fn sampler(&self) -> Sampler {
        match self {
            Privacy::None => Sampler::None,
            Privacy::Zcdp(zcdp) => zcdp.sampler,
            Privacy::DpSgd(sgd) => sgd.sampler,
            Privacy::OneShot(once) => once.sampler,
            Privacy::Paper(paper) => paper.sampler,
        }
    }

    /// What a client may spend in all, in whole units.
    pub fn budget_units(&self) -> Option<u64> {
        let budget = match self {
            Privacy::None => None,
            Privacy::Zcdp(zcdp) => zcdp.budget,
            Privacy::DpSgd(sgd) => sgd.budget,
            Privacy::OneShot(once) => once.budget,
            Privacy::Paper(paper) => paper.budget,
        };
        // Rounded down: a budget is a ceiling.
        budget.map(|budget| (budget * 1e12).floor() as u64)
    }

    /// The bound behind every price, where the mechanism has one of its own: a clip, or what a paper says. That of zCDP
    /// belongs to the learners.
    pub fn own_bound(&self) -> Option<Bound> {
        match self {
            Privacy::None | Privacy::Zcdp(_) => None,
            Privacy::DpSgd(sgd) => Some(sgd.clip.bound()),
            Privacy::OneShot(once) => Some(once.clip.bound()),
            Privacy::Paper(paper) => Some(Bound::refuted(paper.clip)),
        }
    }

    /// What is protected.
    pub fn unit(&self) -> Unit {
        match self {
            Privacy::Zcdp(zcdp) => zcdp.unit,
            Privacy::None | Privacy::DpSgd(_) | Privacy::OneShot(_) | Privacy::Paper(_) => Unit::Record,
        }
    }
}

impl Zcdp {
    /// phi_n = phi_0 / zeta^n for round n = 1, 2, ...
    pub fn budget_of_round(&self, round: u32) -> f64 {
        self.initial_budget / power(self.growth, round)
    }

    /// What a mean over a client's records is divided by when the unit is replaced: one of D_k terms changes, or
    /// all of them.
    pub fn divisor(&self, samples: usize) -> f64 {
        match self.unit {
            Unit::Record => samples as f64,
            Unit::Client => 1.0,
        }
    }

    /// The noise of round `round` for a vector of this sensitivity and length.
    pub fn gaussian(&self, sensitivity: Bound, round: u32, length: usize) -> Option<Gaussian> {
        Gaussian::vector(sensitivity, self.budget_of_round(round), length, self.sampler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 300 rounds at phi_0 = 0.001, zeta = 0.99 cost 1.939, not the 0.095 the paper states.
    #[test]
    fn the_paper_total_is_1_939() {
        let zcdp = Zcdp {
            initial_budget: 0.001,
            growth: 0.99,
            assumed: None,
            budget: None,
            sampler: Sampler::default(),
            unit: Unit::Record,
        };
        let total: f64 = (1..=300).map(|round| zcdp.budget_of_round(round)).sum();
        assert!((total - 1.939).abs() < 1e-3, "{total}");
    }
}
