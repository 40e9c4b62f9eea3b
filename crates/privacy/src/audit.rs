//! What many runs on two neighbouring data sets say about epsilon: the statistics of an audit.
//!
//! A run is reduced to one score, and the auditor says "the second data set" where the score is above a
//! threshold. Whatever the score, (epsilon, delta) privacy demands
//!
//! ```text
//! TPR <= e^epsilon FPR + delta,      so      epsilon >= ln((TPR - delta) / FPR)
//! ```
//!
//! for the rates of right and wrong alarms, and the same with the data sets exchanged. Both rates are measured,
//! so their Clopper-Pearson bounds take their place. The threshold is chosen on other runs than those that are
//! counted; the confidence would not hold otherwise.

use fedkin_numeric::{exp, ln};

/// The regularised incomplete beta function `I_x(a, b)` for positive a and b, by its continued fraction.
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let gamma = libm::lgamma;
    let front = exp(gamma(a + b) - gamma(a) - gamma(b) + a * ln(x) + b * libm::log1p(-x));
    // The fraction converges fast on one side of the mean only; the other one is its mirror image.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// Lentz's evaluation of the continued fraction of the incomplete beta function.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..10_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        value *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// Clopper and Pearson's lower bound on a rate: `hits` of `trials` were seen; wrong with probability at most `alpha`.
pub fn rate_at_least(hits: u32, trials: u32, alpha: f64) -> f64 {
    if hits == 0 || trials == 0 {
        return 0.0;
    }
    let (a, b) = (f64::from(hits), f64::from(trials - hits.min(trials)) + 1.0);
    // I_p(hits, trials - hits + 1) is the chance of so many hits or more; it grows with p.
    bisect(|p| incomplete_beta(a, b, p) > alpha).0
}

/// Clopper and Pearson's upper bound on a rate.
pub fn rate_at_most(hits: u32, trials: u32, alpha: f64) -> f64 {
    if hits >= trials {
        return 1.0;
    }
    let (a, b) = (f64::from(hits) + 1.0, f64::from(trials - hits));
    // 1 - I_p(hits + 1, trials - hits) is the chance of so few hits or fewer; it falls with p.
    bisect(|p| 1.0 - incomplete_beta(a, b, p) < alpha).1
}

/// The place in [0, 1] where a test turns true, from below and from above.
fn bisect(turned: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if turned(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low, high)
}

/// The distance of two normal means, in standard deviations, at which these rates of right and wrong alarms
/// are the best that can be had.
fn normal_distance(right: f64, wrong: f64) -> f64 {
    let quantile = |rate: f64| {
        // Beyond 38 standard deviations a tail is no longer a number.
        let (mut low, mut high) = (-38.0, 38.0);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if 0.5 * libm::erfc(-middle / std::f64::consts::SQRT_2) < rate {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    };
    (quantile(right) - quantile(wrong)).max(0.0)
}

/// How many alarms were right and wrong, and of how many runs each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alarms {
    /// Alarms among runs that deserved one.
    pub right: u32,
    /// Alarms among runs that did not.
    pub wrong: u32,
    /// Runs of each kind.
    pub runs: u32,
}

impl Alarms {
    /// The lower bound on epsilon; each of the two rates may be wrong with probability `alpha`.
    pub fn epsilon(self, delta: f64, alpha: f64) -> f64 {
        let gain = rate_at_least(self.right, self.runs, alpha) - delta;
        if gain <= 0.0 {
            return 0.0;
        }
        ln(gain / rate_at_most(self.wrong, self.runs, alpha)).max(0.0)
    }

    /// The same for a claim about Gaussian releases. Composed, they are as hard to tell apart as two normal
    /// variables whose means lie mu standard deviations apart, so the rates bound mu from below, with the same
    /// confidence, and closer than they bound epsilon.
    pub fn mu(self, alpha: f64) -> f64 {
        if self.right == 0 || self.runs == 0 {
            return 0.0;
        }
        normal_distance(
            rate_at_least(self.right, self.runs, alpha),
            rate_at_most(self.wrong, self.runs, alpha),
        )
    }
}

/// The largest bound that so many counted runs of each kind can show: every alarm right, none wrong.
pub fn largest_bound(runs: u32, delta: f64, alpha: f64) -> f64 {
    Alarms { right: runs, wrong: 0, runs }.epsilon(delta, alpha)
}

/// Which of the two data sets an alarm names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The second, by a high score.
    Second,
    /// The first, by a low score.
    First,
}

/// What one direction of a test found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// Which data set an alarm names.
    pub direction: Direction,
    /// The threshold of the score.
    pub threshold: f64,
    /// The counted alarms.
    pub alarms: Alarms,
    /// The lower bound on epsilon.
    pub epsilon: f64,
}

/// What a test found: all of it holds together with the stated confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Examined {
    /// Alarms that name the second data set, and alarms that name the first.
    pub directions: [Finding; 2],
    /// The lower bound on mu, for a claim about Gaussian releases.
    pub mu: f64,
}

impl Examined {
    /// How many rates must hold together: two for each direction, and two for mu.
    pub const RATES: u32 = 6;

    /// The direction with the larger bound.
    pub fn best(&self) -> Finding {
        let [second, first] = self.directions;
        if first.epsilon > second.epsilon { first } else { second }
    }
}

/// The scores of equally many runs on the first and on the second data set; a high one speaks for the second.
#[derive(Debug, Clone, Copy)]
pub struct Scores<'a> {
    /// Runs on the first data set.
    pub first: &'a [f64],
    /// Runs on the second.
    pub second: &'a [f64],
}

/// Thresholds from the first half of the runs, alarms from the second. Each of the [`Examined::RATES`] rates
/// may be wrong with probability `alpha`.
pub fn examine(scores: Scores<'_>, delta: f64, alpha: f64) -> Examined {
    let half = scores.first.len().min(scores.second.len()) / 2;
    let (first, counted_first) = scores.first.split_at(half);
    let (second, counted_second) = scores.second.split_at(half);
    let runs = counted_first.len().min(counted_second.len());
    let (counted_first, counted_second) = (&counted_first[..runs], &counted_second[..runs]);
    let flipped = |scores: &[f64]| scores.iter().map(|score| -score).collect::<Vec<f64>>();
    let count = |threshold: f64, right: &[f64], wrong: &[f64]| {
        let above = |scores: &[f64]| scores.iter().filter(|score| **score > threshold).count() as u32;
        Alarms { right: above(right), wrong: above(wrong), runs: runs as u32 }
    };
    let find = |direction, sign: f64, right: &[f64], wrong: &[f64], counted: [&[f64]; 2]| {
        let threshold = threshold(right, wrong, delta, alpha);
        let alarms = count(threshold, counted[0], counted[1]);
        Finding { direction, threshold: sign * threshold, alarms, epsilon: alarms.epsilon(delta, alpha) }
    };
    let directions = [
        find(Direction::Second, 1.0, second, first, [counted_second, counted_first]),
        find(
            Direction::First,
            -1.0,
            &flipped(first),
            &flipped(second),
            [&flipped(counted_first), &flipped(counted_second)],
        ),
    ];
    let middle = middle(first, second);
    Examined { directions, mu: count(middle, counted_second, counted_first).mu(alpha) }
}

fn sorted(scores: &[f64]) -> Vec<f64> {
    let mut scores: Vec<f64> = scores.iter().copied().filter(|score| !score.is_nan()).collect();
    scores.sort_unstable_by(f64::total_cmp);
    scores
}

fn above(sorted: &[f64], threshold: f64) -> usize {
    sorted.len() - sorted.partition_point(|score| *score <= threshold)
}

/// The threshold for mu: half-way between the two medians. Where epsilon is decided far out in a tail, mu is
/// measured best in the middle, where both kinds of alarm are frequent.
fn middle(first: &[f64], second: &[f64]) -> f64 {
    let median = |scores: &[f64]| sorted(scores).get(scores.len() / 2).copied().unwrap_or(0.0);
    0.5 * (median(first) + median(second))
}

/// The threshold that promises the largest bound. Only the power of the test depends on it.
fn threshold(right: &[f64], wrong: &[f64], delta: f64, alpha: f64) -> f64 {
    let (right, wrong) = (sorted(right), sorted(wrong));
    let (Some(&top), runs) = (wrong.last(), right.len() as u32) else { return 0.0 };
    let count = wrong.len() as f64;
    let mean = wrong.iter().sum::<f64>() / count;
    let spread = (wrong.iter().map(|score| (score - mean) * (score - mean)).sum::<f64>() / count).sqrt();
    // Few wrong alarms are worth most, so the candidates lie densely there; beyond the highest wrong score
    // their number is guessed from a normal tail.
    let mut candidates: Vec<f64> = (0..=12).map(|step| top + 0.25 * f64::from(step) * spread).collect();
    let mut alarms = 1;
    while alarms < wrong.len() {
        candidates.push(wrong[wrong.len() - 1 - alarms]);
        alarms += 1 + alarms / 5;
    }
    let promise = |at: f64| {
        let tail = if spread > 0.0 {
            0.5 * libm::erfc((at - mean) / spread / std::f64::consts::SQRT_2)
        } else {
            0.0
        };
        let wrong = (above(&wrong, at) as f64).max(count * tail).round() as u32;
        Alarms { right: above(&right, at) as u32, wrong: wrong.min(runs), runs }.epsilon(delta, alpha)
    };
    let mut best = (top, -1.0);
    for at in candidates {
        let bound = promise(at);
        if bound > best.1 {
            best = (at, bound);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epsilon_of_gaussian;
    use fedkin_numeric::rng::{PublicRng, Random};

    /// Scores of a Gaussian mechanism whose means lie `mu` standard deviations apart.
    fn gaussian(mu: f64, runs: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut rng = PublicRng::named(seed, "audit test", 0, 0);
        let mut draw = |mean: f64| (0..runs).map(|_| mean + rng.normal()).collect::<Vec<f64>>();
        (draw(0.0), draw(mu))
    }

    /// The bounds on epsilon and mu of an audit with this chance of error in all.
    fn bounds(mu: f64, runs: usize, seed: u64, delta: f64, alpha: f64) -> (f64, f64) {
        let (first, second) = gaussian(mu, runs, seed);
        let scores = Scores { first: &first, second: &second };
        let found = examine(scores, delta, alpha / f64::from(Examined::RATES));
        (found.best().epsilon, found.mu)
    }

    fn truth(mu: f64, delta: f64) -> f64 {
        epsilon_of_gaussian(0.5 * mu * mu, delta)
    }

    /// scipy 1.x, `beta.ppf(a, k, n - k + 1)` and `beta.ppf(1 - a, k + 1, n - k)`.
    #[test]
    fn rates_agree_with_scipy() {
        for (hits, trials, alpha, low, high) in [
            (1, 10, 0.05, 0.005_116_196_891_823_701, 0.394_163_302_436_504_66),
            (7, 10, 0.025, 0.347_547_149_940_002_7, 0.933_260_488_822_265_5),
            (0, 20, 0.05, 0.0, 0.139_108_340_668_265_16),
            (50, 100, 0.025, 0.398_321_129_503_300_95, 0.601_678_870_496_699),
            (10, 10_000, 0.006_25, 0.000_384_396_395_707_735_85, 0.002_098_871_686_697_863_5),
            (4999, 5000, 0.006_25, 0.998_565_600_296_328_2, 0.999_998_746_078_183_4),
            (5000, 5000, 0.006_25, 0.998_985_480_210_484_9, 1.0),
            (137, 20_000, 0.001, 0.005_187_092_054_383_577, 0.008_849_481_243_910_143),
            (3, 3, 0.05, 0.368_403_149_864_038_7, 1.0),
        ] {
            let found = (rate_at_least(hits, trials, alpha), rate_at_most(hits, trials, alpha));
            let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * b.max(1e-3);
            assert!(close(found.0, low) && close(found.1, high), "{hits} of {trials}: {found:?}");
        }
        // scipy, `betainc(a, b, x)`.
        for (a, b, x, value) in [
            (0.5, 0.5, 0.3, 0.369_010_119_565_545_36),
            (2.0, 3.0, 0.4, 0.524_8),
            (5000.0, 1.0, 0.999, 0.006_721_111_959_865_588),
            (10.0, 9991.0, 0.002, 0.995_036_525_204_631_9),
            (300.0, 700.0, 0.31, 0.756_418_682_731_544_3),
            (1e4, 1e4, 0.5, 0.5),
            (1.0, 1.0, 0.25, 0.25),
        ] {
            let found = incomplete_beta(a, b, x);
            assert!((found - value).abs() < 1e-10, "I_{x}({a}, {b}): {found}");
        }
    }

    /// 100 audits at 99.9 %: one that is right exceeds the truth in any of them with probability at most 0.1.
    #[test]
    fn a_gaussian_with_a_known_epsilon_is_bounded_from_below() {
        for mu in [0.3, 1.0, 2.0, 4.0] {
            for seed in 0..25 {
                let (epsilon, distance) = bounds(mu, 2000, seed, 1e-5, 0.001);
                let truth = truth(mu, 1e-5);
                assert!(epsilon <= truth, "mu {mu}, seed {seed}: {epsilon} above {truth}");
                assert!(distance <= mu, "mu {mu}, seed {seed}: {distance}");
            }
        }
    }

    /// Means of 10 audits of 20,000 runs, half of them counted, at 95 %.
    #[test]
    fn the_bounds_are_a_good_part_of_the_truth() {
        for (mu, delta) in [(0.5, 0.01), (1.0, 0.01), (1.0, 1e-3), (2.0, 0.01), (2.0, 1e-3)] {
            let found: Vec<(f64, f64)> = (0..10).map(|seed| bounds(mu, 20_000, seed, delta, 0.05)).collect();
            let epsilon = found.iter().map(|found| found.0).sum::<f64>() / 10.0;
            let distance = found.iter().map(|found| found.1).sum::<f64>() / 10.0;
            let truth = truth(mu, delta);
            assert!(epsilon > 0.5 * truth, "mu {mu}, delta {delta}: {epsilon} of {truth}");
            assert!(distance > 0.85 * mu, "mu {mu}: {distance} {found:?}");
        }
    }

    #[test]
    fn half_the_noise_is_noticed() {
        for claimed in [0.5, 1.0, 1.5] {
            let (epsilon, distance) = bounds(2.0 * claimed, 20_000, 3, 0.01, 0.05);
            assert!(epsilon > truth(claimed, 0.01), "claimed {claimed}: {epsilon}");
            assert!(distance > 1.5 * claimed, "claimed {claimed}: {distance}");
        }
        // And the whole noise is not, by the same runs.
        for claimed in [0.5, 1.0, 1.5] {
            let (epsilon, distance) = bounds(claimed, 20_000, 3, 0.01, 0.05);
            assert!(epsilon <= truth(claimed, 0.01) && distance <= claimed);
        }
    }

    /// 20 audits at 99.9 %: a right one fails here with probability at most 0.02.
    #[test]
    fn equal_data_sets_show_nothing() {
        for seed in 0..20 {
            assert_eq!(bounds(0.0, 4000, seed, 1e-5, 0.001), (0.0, 0.0), "seed {seed}");
        }
    }

    #[test]
    fn scores_that_never_overlap_reach_the_cap() {
        let first = vec![0.0; 1000];
        let second = vec![1.0; 1000];
        let found = examine(Scores { first: &first, second: &second }, 1e-5, 0.01);
        let cap = largest_bound(500, 1e-5, 0.01);
        assert_eq!(found.directions.map(|found| found.epsilon), [cap, cap]);
        assert!(cap > 4.0);
    }

    #[test]
    fn broken_scores_do_no_harm() {
        for (first, second) in
            [(vec![], vec![]), (vec![f64::NAN; 9], vec![f64::NAN; 9]), (vec![1.0], vec![2.0])]
        {
            let found = examine(Scores { first: &first, second: &second }, 1e-5, 0.01);
            assert!(found.directions.iter().all(|found| found.epsilon == 0.0), "{found:?}");
        }
    }
}
