//! The sum of one clipped vector per record over a Poisson sample, with Gaussian noise: one step of DP-SGD.
//!
//! Every record is in the sample with probability q, independently and secretly; its vector is scaled down to norm C;
//! the sum gets noise of deviation sigma = multiplier C (Abadi et al. 2016).
//!
//! **On the grid** every clipped vector is rounded to multiples of the step *before* it is added. A rounded vector has norm
//! at most C + sqrt(n) step / 2, whatever the others are, and the sum of whole numbers of steps is exact (below 2^53 of
//! them, which is checked): no rounding depends on who else was sampled. The noise is calibrated to that longer norm, so the
//! multiplier that is charged is not above the true one. This is the grid of a plain Gaussian for sensitivity 2 C and price
//! 2 / multiplier^2: what replacing a record costs if nothing is sampled.
//!
//! **Price on the grid.** The accountant's divergences are integrals over continuous Gaussians; here they are sums over the grid.
//! At a whole order the integrand is analytic in a strip (`accountant/sampled.rs` bounds it there), so by Poisson's formula, with the
//! line of integration shifted by d against each frequency of the dual grid, sum and integral differ by a relative
//! 2^(a/2) exp(-2 pi d s) for each of the shortest frequencies, with s the deviation in steps and d the height of the strip in
//! deviations. s is at least 2^19 sqrt(n) times the multiplier and d is pi/2 times the multiplier where that is small:
//! with a multiplier of at least 0.02 the exponent is below -2000 sqrt(n), nothing beside the roundings that the
//! accountant adds, also over all frequencies in n dimensions. Smaller multipliers are refused.
//!
//! **Not more often than stated.** A record is taken where 64 random bits lie below q 2^64, rounded down.

use super::{Bound, Gaussian, Mechanism, Noise, Perturbed, Sampler, Trust};
use crate::PrivateRng;
use crate::clip::Clip;
use crate::ledger::{Cost, Draws};
use crate::refusal::Refusal;
use fedkin_numeric::axpy;

/// Whole numbers up to here are exact as floating-point numbers.
const EXACT: f64 = (1u64 << 53) as f64;

/// A sum over a Poisson sample of a client's records, with or without protection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledSum {
    rate: f64,
    length: usize,
    shield: Option<Shield>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Shield {
    clip: Clip,
    multiplier: f64,
    gaussian: Gaussian<Vec<f64>>,
    cost: Cost,
}

impl SampledSum {
    /// The least noise multiplier that is priced.
    pub const LEAST: f64 = 0.02;

    /// Clipped vectors of this length and noise of `multiplier` times the clip. `None` where a rate is not in (0, 1], or where
    /// a clip that noise is to follow is not finite or a multiplier not at least [`SampledSum::LEAST`] and finite.
    pub fn gaussian(clip: Clip, multiplier: f64, rate: f64, length: usize, sampler: Sampler) -> Option<Self> {
        if sampler != Sampler::None && (multiplier < Self::LEAST || multiplier.is_nan()) {
            return None;
        }
        let sensitivity: Bound = clip.bound().times(2.0);
        let gaussian = Gaussian::vector(sensitivity, 2.0 / (multiplier * multiplier), length, sampler)?;
        let cost = if sampler == Sampler::None {
            Cost::default()
        } else {
            Draws { multiplier, rate, steps: 1 }.unsampled()?
        };
        Self::of(rate, length, Some(Shield { clip, multiplier, gaussian, cost }))
    }

    /// The sum as it is: a disclosure.
    pub fn plain(rate: f64, length: usize) -> Option<Self> {
        Self::of(rate, length, None)
    }

    fn of(rate: f64, length: usize, shield: Option<Shield>) -> Option<Self> {
        (rate > 0.0 && rate <= 1.0).then_some(Self { rate, length, shield })
    }

    /// The chance of a record to be in a sample.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// How many numbers the sum has.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether it protects at all.
    pub fn private(&self) -> bool {
        self.shield.is_some_and(|shield| shield.gaussian.private())
    }

    /// What one release costs if nothing is sampled.
    pub fn cost(&self) -> Cost {
        self.shield.map_or_else(Cost::default, |shield| shield.cost)
    }

    /// Standard deviation of the noise.
    pub fn sigma(&self) -> f64 {
        self.shield.map_or(0.0, |shield| shield.gaussian.sigma())
    }

    /// The name in the ledger.
    pub fn name(&self) -> &'static str {
        match self.shield.map(|shield| shield.gaussian.sampler()) {
            None => "disclosed",
            Some(Sampler::Discrete) => "sampled discrete gaussian",
            Some(Sampler::Float) => "sampled gaussian (float)",
            Some(Sampler::None) => Sampler::None.name(),
        }
    }

    /// The clip is enforced.
    pub fn trust(&self) -> Option<Trust> {
        self.private().then_some(Trust::Enforced)
    }

    /// What the price of a release depends on: noise multiplier and rate.
    pub fn priced(&self) -> Option<(f64, f64)> {
        self.shield.filter(|_| self.private()).map(|shield| (shield.multiplier, self.rate))
    }

    /// Whether the sum over so many records is exact where it has to be.
    pub(crate) fn holds(&self, records: usize) -> bool {
        match &self.shield {
            Some(Shield { clip, gaussian: Gaussian { noise: Noise::Grid(grid), .. }, .. }) => {
                let longest = clip.norm() / grid.step() + Vec::<f64>::coordinates(self.length).sqrt();
                records as f64 * longest < EXACT
            }
            _ => true,
        }
    }

    /// Whether a record with these random bits is in the sample.
    pub(crate) fn takes(&self, bits: u64) -> bool {
        // A product with a power of two is exact, and 2^64 is out of the bits' reach.
        u128::from(bits) < (self.rate * (1u128 << 64) as f64) as u128
    }

    /// Adds one record's vector, clipped. A vector that is not finite has no direction and counts as zero where a clip holds:
    /// to refuse would tell that such a record is there.
    pub(crate) fn add(&self, one: &mut [f64], total: &mut [f64]) {
        if let Some(shield) = &self.shield {
            if shield.clip.apply(one).is_err() && shield.clip.norm().is_finite() {
                return;
            }
            if let Noise::Grid(grid) = &shield.gaussian.noise {
                grid.round(one);
            }
        }
        axpy(1.0, one, total);
    }

    /// Adds the noise.
    pub(crate) fn perturb(&self, total: &mut Vec<f64>, noise: &mut PrivateRng) -> Result<(), Refusal> {
        match &self.shield {
            Some(shield) => shield.gaussian.apply(total, noise),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_numeric::norm2;
    use fedkin_numeric::rng::{PublicRng, Random};
    use proptest::prelude::*;

    fn clip(norm: f64) -> Clip {
        Clip::new(norm).unwrap()
    }

    fn discrete(norm: f64, multiplier: f64, length: usize) -> SampledSum {
        SampledSum::gaussian(clip(norm), multiplier, 0.5, length, Sampler::Discrete).unwrap()
    }

    fn grid(sum: &SampledSum) -> (f64, f64) {
        let gaussian = sum.shield.unwrap().gaussian;
        (gaussian.step().unwrap(), gaussian.sigma())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Noise over the norm of a rounded vector is at least the multiplier, and hardly more.
        #[test]
        fn the_multiplier_is_not_overstated(
            norm in -30.0f64..30.0, multiplier in -5.6f64..12.0, length in 1usize..2_000_000,
        ) {
            let (norm, multiplier) = (libm::exp2(norm), libm::exp2(multiplier));
            let sum = discrete(norm, multiplier, length);
            let (step, sigma) = grid(&sum);
            let longest = norm + 0.5 * (length as f64).sqrt() * step;
            prop_assert!(sigma / longest >= multiplier);
            prop_assert!(sigma / norm < multiplier * (1.0 + 1e-4));
            prop_assert!(sum.cost().zcdp() >= 2.0 / (multiplier * multiplier));
        }
    }

    /// Whatever a record is replaced by, the noiseless sum moves by 2 clip at most (and the rounding to the grid), and reaches it.
    #[test]
    fn the_clip_of_every_record_binds() {
        let mut rng = PublicRng::named(4, "sampled sum", 0, 0);
        for sampler in [Sampler::None, Sampler::Discrete] {
            let (norm, length) = (0.7, 5);
            let sum = SampledSum::gaussian(clip(norm), 1.0, 1.0, length, sampler).unwrap();
            let mut largest = 0.0f64;
            for trial in 0..500 {
                let rows: Vec<Vec<f64>> =
                    (0..40).map(|_| (0..length).map(|_| 3.0 * rng.normal()).collect()).collect();
                let total = |place: usize, with: &[f64]| {
                    let mut total = vec![0.0; length];
                    for (i, row) in rows.iter().enumerate() {
                        let mut one = if i == place { with.to_vec() } else { row.clone() };
                        sum.add(&mut one, &mut total);
                    }
                    total
                };
                let place = trial % 40;
                let outlier: Vec<f64> = match trial % 4 {
                    0 => rows[place].iter().map(|x| -1e9 * x).collect(),
                    1 => vec![f64::INFINITY; length],
                    2 => vec![0.0, f64::NAN, 0.0, 1.0, 2.0],
                    _ => vec![1e300; length],
                };
                let (a, b) = (total(place, &rows[place]), total(place, &outlier));
                let gap: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
                largest = largest.max(norm2(&gap).sqrt());
            }
            assert!(largest <= 2.0 * norm * (1.0 + 1e-5) && largest > 1.99 * norm, "{sampler:?}: {largest}");
        }
    }

    /// Terms on the grid add up to the same bits in any order: no rounding depends on the sample.
    #[test]
    fn sums_on_the_grid_are_exact() {
        let sum = discrete(0.3, 1.0, 3);
        let mut rng = PublicRng::named(5, "sampled sum", 0, 0);
        let rows: Vec<Vec<f64>> = (0..1000).map(|_| (0..3).map(|_| rng.normal()).collect()).collect();
        let total = |rows: &mut dyn Iterator<Item = &Vec<f64>>| {
            let mut total = vec![0.0; 3];
            rows.for_each(|row| sum.add(&mut row.clone(), &mut total));
            total
        };
        assert_eq!(total(&mut rows.iter()), total(&mut rows.iter().rev()));
        assert!(sum.holds(1_000_000) && !sum.holds(1 << 40));
    }

    /// 400,000 draws per rate: the share taken is within 4.42 deviations (alpha 1e-5 each, two-sided).
    #[test]
    fn records_are_taken_at_the_stated_rate() {
        let n = 400_000;
        for rate in [1e-4, 0.01, 0.3, 0.9] {
            let sum = SampledSum::plain(rate, 1).unwrap();
            let mut rng = PublicRng::named(6, "rate", 0, 0);
            let taken = (0..n).filter(|_| sum.takes(rng.bits())).count() as f64;
            let off = (taken - f64::from(n) * rate) / (f64::from(n) * rate * (1.0 - rate)).sqrt();
            assert!(off.abs() < 4.42, "rate {rate}: {off} deviations");
        }
        let all = SampledSum::plain(1.0, 1).unwrap();
        assert!(all.takes(u64::MAX) && all.takes(0));
        // Below 2^-64 nothing is taken: less often than stated, never more.
        assert!(!SampledSum::plain(1e-30, 1).unwrap().takes(0));
        let half = SampledSum::plain(0.5, 1).unwrap();
        assert!(half.takes((1 << 63) - 1) && !half.takes(1 << 63));
    }

    #[test]
    fn what_has_no_price_cannot_be_built() {
        let build =
            |norm, multiplier, rate| SampledSum::gaussian(clip(norm), multiplier, rate, 3, Sampler::Discrete);
        assert!(build(1.0, 1.0, 0.5).is_some_and(|sum| sum.private() && sum.priced() == Some((1.0, 0.5))));
        for (norm, multiplier, rate) in [
            (f64::INFINITY, 1.0, 0.5),
            (1.0, 0.0, 0.5),
            (1.0, 0.019, 0.5),
            (1.0, f64::NAN, 0.5),
            (1.0, f64::INFINITY, 0.5),
            (1.0, 1.0, 0.0),
            (1.0, 1.0, 1.1),
            (1.0, 1.0, f64::NAN),
        ] {
            assert!(build(norm, multiplier, rate).is_none(), "{norm} {multiplier} {rate}");
        }
        // Without noise it is a disclosure under another name.
        let none = SampledSum::gaussian(clip(f64::INFINITY), 1.0, 0.5, 3, Sampler::None).unwrap();
        assert_eq!(
            (none.private(), none.priced(), none.cost(), none.trust()),
            (false, None, Cost::default(), None)
        );
    }
}
