//! The draws against the law itself. All streams are seeded, so a test gives the same answer every time; the
//! error rates are those of a fresh seed.

use super::*;
use crate::PrivateRng;
use fedkin_numeric::rng::PublicRng;

fn stream(number: u32) -> PrivateRng {
    PrivateRng::new(&[7; 32], "noise", 1, number, &|_| {})
}

fn draws(p: u64, q: u64, count: usize, number: u32) -> Vec<i128> {
    let mut out = vec![0; count];
    DiscreteGaussian::new(p, q).unwrap().fill(&mut stream(number), &mut out);
    out
}

/// The standard normal score of a chi-square statistic (Wilson and Hilferty).
fn score(statistic: f64, freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    (libm::cbrt(statistic / freedom) - (1.0 - spread)) / spread.sqrt()
}

/// Pearson's statistic of counts against expectations, and its degrees of freedom.
fn pearson(seen: &[f64], expected: &[f64]) -> (f64, f64) {
    let terms =
        seen.iter().zip(expected).map(|(seen, expected)| (seen - expected) * (seen - expected) / expected);
    (terms.sum(), seen.len() as f64 - 1.0)
}

/// Chi-square against the exact probabilities. Alpha 1e-5 (4.27 deviations, one-sided) for each of six laws.
#[test]
fn small_deviations_follow_the_exact_probabilities() {
    let n = 400_000;
    for (number, (p, q)) in [(3, 10), (1, 2), (1, 1), (7, 3), (12, 1), (1001, 100)].into_iter().enumerate() {
        let sigma = p as f64 / q as f64;
        let weight = |i: i128| fedkin_numeric::exp(-0.5 * (i as f64 / sigma) * (i as f64 / sigma));
        let reach = (40.0 * sigma).ceil() as i128 + 1;
        let total: f64 = (-reach..=reach).map(weight).sum();
        // Single numbers while ten are expected; the rest of each side is one bin.
        let edge = (0..reach).take_while(|&i| n as f64 * weight(i) / total >= 10.0).count() as i128;
        let bins = (2 * edge + 1) as usize;
        let bin = |i: i128| (i.clamp(-edge, edge) + edge) as usize;
        let (mut seen, mut expected) = (vec![0.0; bins], vec![0.0; bins]);
        for i in -reach..=reach {
            expected[bin(i)] += n as f64 * weight(i) / total;
        }
        for i in draws(p, q, n, number as u32) {
            seen[bin(i)] += 1.0;
        }
        let keep: Vec<usize> = (0..bins).filter(|&at| expected[at] >= 1.0).collect();
        let pick = |from: &[f64]| keep.iter().map(|&at| from[at]).collect::<Vec<_>>();
        let (statistic, freedom) = pearson(&pick(&seen), &pick(&expected));
        assert!(score(statistic, freedom) < 4.27, "sigma {p}/{q}: {statistic} for {freedom}");
    }
}

/// Kolmogorov-Smirnov: P(noise <= i) is Phi((i + 1/2) / sigma) up to 1 / (24 sigma^2), far below what the test
/// can see. Alpha 1e-5 (2.47 / sqrt n) for each of four laws.
#[test]
fn large_deviations_follow_the_normal_law() {
    let n = 200_000;
    let laws = [(1_000_000, 1), (123_456_789, 1000), (1 << 40, 1), ((1 << 52) + 12345, 1)];
    for (number, (p, q)) in laws.into_iter().enumerate() {
        let sigma = p as f64 / q as f64;
        let mut all = draws(p, q, n, 100 + number as u32);
        all.sort_unstable();
        let cdf = |i: f64| 0.5 * libm::erfc(-(i + 0.5) / sigma / std::f64::consts::SQRT_2);
        let gap = all
            .iter()
            .enumerate()
            .map(|(at, &i)| {
                let (below, upto) = (cdf(i as f64 - 1.0), cdf(i as f64));
                (below - at as f64 / n as f64).max((at + 1) as f64 / n as f64 - upto)
            })
            .fold(0.0, f64::max);
        assert!(gap * (n as f64).sqrt() < 2.47, "sigma {p}/{q}: {gap}");
    }
}

/// The last eight bits of a wide law are uniform to within exp(-2 pi^2 (sigma / 256)^2). A sampler that rounds
/// floating-point numbers of 53 bits fails this above 2^53. Alpha 1e-5 each.
#[test]
fn the_last_bits_of_wide_noise_are_uniform() {
    let n = 256 * 2000;
    for (number, p) in [1_000_003, 1 << 40, (1 << 55) + 1].into_iter().enumerate() {
        let mut seen = vec![0.0; 256];
        for i in draws(p, 1, n, 200 + number as u32) {
            seen[(i & 255) as usize] += 1.0;
        }
        let (statistic, freedom) = pearson(&seen, &vec![n as f64 / 256.0; 256]);
        assert!(score(statistic, freedom).abs() < 4.42, "sigma {p}: {statistic}");
    }
}

/// Mean, variance, fourth moment and sign, each within 4.42 deviations (1e-5, two-sided), for six laws.
#[test]
fn moments_and_symmetry() {
    let n = 300_000;
    let laws = [(3, 10), (1, 1), (5, 2), (1_000_000, 1), (1 << 40, 1), (1 << 56, 1)];
    for (number, (p, q)) in laws.into_iter().enumerate() {
        let sigma = p as f64 / q as f64;
        let all = draws(p, q, n, 300 + number as u32);
        // The moments of the law; above 2 they are the normal ones to 1e-15.
        let moment = |power: u32| -> f64 {
            if sigma > 3.0 {
                return [1.0, 0.0, 1.0, 0.0, 3.0, 0.0, 15.0, 0.0, 105.0][power as usize];
            }
            let weight = |i: i32| fedkin_numeric::exp(-0.5 * f64::from(i * i) / sigma / sigma);
            let total: f64 = (-150..=150).map(weight).sum();
            (-150..=150).map(|i| weight(i) * fedkin_numeric::power(f64::from(i) / sigma, power)).sum::<f64>()
                / total
        };
        for power in [1, 2, 3, 4] {
            let mean =
                all.iter().map(|&i| fedkin_numeric::power(i as f64 / sigma, power)).sum::<f64>() / n as f64;
            let spread = ((moment(2 * power) - moment(power) * moment(power)) / n as f64).sqrt();
            let off = (mean - moment(power)) / spread;
            assert!(off.abs() < 4.42, "sigma {p}/{q}, moment {power}: {off} deviations");
        }
        let signed = all.iter().filter(|&&i| i != 0).count() as f64;
        let negative = all.iter().filter(|&&i| i < 0).count() as f64;
        assert!(
            (2.0 * negative - signed).abs() < 4.42 * signed.sqrt(),
            "sigma {p}/{q}: {negative} of {signed}"
        );
    }
}

/// The same bits on every machine: printed once by this test, and kept.
#[test]
fn golden_draws() {
    assert_eq!(draws(7, 3, 12, 0), GOLDEN_SMALL);
    assert_eq!(draws(1_000_000, 1, 5, 0), GOLDEN_MILLION);
    assert_eq!(draws(1 << 40, 1, 4, 0), GOLDEN_WIDE);
}

const GOLDEN_SMALL: [i128; 12] = [1, -4, -1, -1, -1, -1, 1, -1, -6, 1, -2, -1];
const GOLDEN_MILLION: [i128; 5] = [-22_766, 566_050, -1_980_306, 813_728, -1_862_542];
const GOLDEN_WIDE: [i128; 4] = [-25_032_434_349, 622_379_028_466, -2_177_370_058_670, 894_704_430_327];

#[test]
fn a_law_needs_a_positive_deviation_of_moderate_size() {
    for (p, q) in [(0, 1), (1, 0), (LARGEST + 1, 1), (1, LARGEST + 1)] {
        assert_eq!(DiscreteGaussian::new(p, q), None);
    }
    assert!(DiscreteGaussian::new(LARGEST, LARGEST).is_some());
}

/// The partial sums of exp(-1/2): in whole numbers, and one apart, so that one place decides nothing.
#[test]
fn the_constant_of_one_half_encloses_the_exponential() {
    let terms = |upto: u64| {
        let (mut term, mut sum) = (i128::from(HALF_SCALE), 0);
        for n in 0..=upto {
            sum += if n % 2 == 0 { term } else { -term };
            assert_eq!(term % i128::from(2 * (n + 1)) == 0, n < 16, "term {n} is whole up to 16");
            term /= i128::from(2 * (n + 1));
        }
        sum
    };
    assert_eq!(terms(15), i128::from(HALF_SUM));
    assert_eq!(terms(16), i128::from(HALF_SUM) + 1);
    let value = HALF_SUM as f64 / HALF_SCALE as f64;
    assert!((value - fedkin_numeric::exp(-0.5)).abs() < 1e-15);
}

/// The rare branch, entered on purpose: 1 - 1/34 + 1/(34 36) - ... Alpha 1e-5, two-sided.
#[test]
fn the_count_goes_on_where_one_word_does_not_decide() {
    let (n, mut expected, mut term) = (400_000, 0.0, 1.0);
    for step in 17..40 {
        expected += if step % 2 == 1 { term } else { -term };
        term /= 2.0 * f64::from(step);
    }
    let mut rng = stream(400);
    let mut coins = Coins::new(&mut rng);
    let hits = (0..n).filter(|_| coins.exp_minus_half_from(17)).count() as f64;
    let spread = (f64::from(n) * expected * (1.0 - expected)).sqrt();
    assert!((hits - f64::from(n) * expected).abs() < 4.42 * spread, "{hits} of {n}, expected {expected}");
}

/// Bernoulli events against exp, alpha 1e-5 (two-sided) each of sixteen.
#[test]
fn events_have_the_probability_of_the_exponential() {
    let n = 200_000;
    let mut rng = stream(401);
    let mut coins = Coins::new(&mut rng);
    let wide = (1u64 << 56) - 5;
    for (rest, p) in [(0, 7), (1, 7), (6, 7), (7, 7), (wide / 3, wide), (wide - 1, wide), (1, wide), (5, 11)]
    {
        let x = rest as f64 / p as f64;
        for (what, expected) in [("x", fedkin_numeric::exp(-x)), ("x^2/2", fedkin_numeric::exp(-0.5 * x * x))]
        {
            let event = |coins: &mut Coins<'_, _>| match what {
                "x" => coins.exp_minus(rest, p),
                _ => coins.exp_minus_half_square(rest, p),
            };
            let hits = (0..n).filter(|_| event(&mut coins)).count() as f64;
            let spread = (f64::from(n) * expected * (1.0 - expected)).sqrt();
            let off = (hits - f64::from(n) * expected).abs();
            assert!(off <= 4.42 * spread + 1e-6, "exp(-{what}) at {rest}/{p}: {hits} of {n}");
        }
    }
}

/// For a bound of 3 2^62 a word that is only multiplied gives 0 mod 3 half of the time: the rejection is what
/// makes it a third. Alpha 1e-5 each.
#[test]
fn numbers_below_a_bound_are_uniform() {
    let n = 300_000;
    let mut rng = PublicRng::named(1, "below", 0, 0);
    for (bound, parts) in [(3u64 << 62, 3u64), (3, 3), (1000, 10), ((1 << 63) + 1, 2)] {
        let mut coins = Coins::new(&mut rng);
        let mut seen = vec![0.0; parts as usize];
        for _ in 0..n {
            let number = coins.below(bound);
            assert!(number < bound);
            seen[(number % parts) as usize] += 1.0;
        }
        let (statistic, freedom) = pearson(&seen, &vec![f64::from(n) / parts as f64; parts as usize]);
        assert!(score(statistic, freedom) < 4.27, "bound {bound}: {seen:?}");
    }
    let mut coins = Coins::new(&mut rng);
    assert_eq!((0..100).map(|_| coins.below(1)).sum::<u64>(), 0);
}
