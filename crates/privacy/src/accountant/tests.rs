//! Known figures, limits, order and round trips.

use super::*;
use proptest::prelude::*;

/// The figures of the privacy and PGFL specs.
#[test]
fn known_conversions() {
    assert!((epsilon_of_zcdp(1.939, 1e-5) - 10.53).abs() < 0.01);
    assert!((epsilon_of_gaussian(1.939, 1e-5) - 9.81).abs() < 0.005);
    // sigma 4, sensitivity 1: rho = 1/32
    assert!((epsilon_of_zcdp(1.0 / 32.0, 1e-5) - 1.01).abs() < 0.005);
    assert!((epsilon_of_gaussian(1.0 / 32.0, 1e-5) - 0.926).abs() < 0.0005);
    assert!((textbook_epsilon(1.0 / 32.0, 1e-5) - 1.23).abs() < 0.005);
    assert!((analytic_sigma(0.926_3, 1e-5, 1.0) - 4.0).abs() < 0.001);
}

#[test]
fn what_has_no_price_costs_infinity_and_nothing_costs_nothing() {
    for delta in [0.0, 1.0, -1.0, f64::NAN] {
        assert_eq!(epsilon_of_zcdp(0.1, delta), f64::INFINITY);
        assert_eq!(epsilon_of_gaussian(0.1, delta), f64::INFINITY);
        assert_eq!(textbook_epsilon(0.1, delta), f64::INFINITY);
        assert_eq!(Renyi::gaussian(1.0).epsilon(delta).0, f64::INFINITY);
        assert_eq!(zcdp_of_epsilon(1.0, delta), 0.0);
        assert_eq!(gaussian_zcdp_of_epsilon(1.0, delta), 0.0);
    }
    for zcdp in [f64::NAN, f64::INFINITY] {
        assert_eq!(epsilon_of_zcdp(zcdp, 1e-5), f64::INFINITY);
        assert_eq!(epsilon_of_gaussian(zcdp, 1e-5), f64::INFINITY);
        assert_eq!((delta_of_zcdp(zcdp, 1.0), delta_of_gaussian(zcdp, 1.0)), (1.0, 1.0));
    }
    for multiplier in [0.0, -1.0, f64::NAN] {
        assert_eq!(
            Renyi::sampled_gaussian(multiplier, 0.1, Neighbours::Replace).epsilon(1e-5).0,
            f64::INFINITY
        );
    }
    for rate in [-0.1, 1.1, f64::NAN] {
        assert_eq!(Renyi::sampled_gaussian(1.0, rate, Neighbours::AddRemove).epsilon(1e-5).0, f64::INFINITY);
    }
    assert_eq!((epsilon_of_zcdp(0.0, 1e-5), epsilon_of_gaussian(0.0, 1e-5)), (0.0, 0.0));
    assert_eq!((delta_of_zcdp(0.0, 0.0), delta_of_gaussian(0.0, 0.0)), (0.0, 0.0));
    assert_eq!(Renyi::zero().epsilon(1e-9).0, 0.0);
    assert_eq!(Renyi::gaussian(1e-9).times(0), Renyi::zero());
}

#[test]
fn a_sample_of_all_is_a_gaussian_and_a_sample_of_none_is_free() {
    for multiplier in [0.3, 1.0, 7.0] {
        let all = |neighbours| Renyi::sampled_gaussian(multiplier, 1.0, neighbours);
        let same = |a: &Renyi, b: &Renyi| {
            a.values().iter().zip(b.values()).all(|(a, b)| (a / b - 1.0).abs() < 1e-13)
        };
        assert!(same(&all(Neighbours::AddRemove), &Renyi::gaussian(multiplier)));
        assert!(same(&all(Neighbours::Replace), &Renyi::gaussian(0.5 * multiplier)));
        for neighbours in [Neighbours::AddRemove, Neighbours::Replace] {
            assert_eq!(Renyi::sampled_gaussian(multiplier, 0.0, neighbours), Renyi::zero());
            // Nearly all, nearly the same, at the lowest order and with some noise.
            let nearly = Renyi::sampled_gaussian(multiplier, 1.0 - 1e-9, neighbours).values()[0];
            let all = all(neighbours).values()[0];
            assert!(multiplier < 1.0 || (nearly / all - 1.0).abs() < 1e-6, "{multiplier}: {nearly} {all}");
        }
    }
}

/// Tiny rates and much noise: the small value is not lost in one plus it. The limit is a q^2 (e^(c^2) - 1) / 2.
#[test]
fn small_prices_keep_their_digits() {
    let (rate, multiplier) = (1e-7, 100.0);
    let square = rate * rate * 1e-4;
    for (neighbours, factor) in [(Neighbours::AddRemove, 1.0), (Neighbours::Replace, 4.0)] {
        let value = Renyi::sampled_gaussian(multiplier, rate, neighbours).values()[0];
        assert!((value / (factor * square) - 1.0).abs() < 1e-3, "{value} {square}");
    }
}

/// No panic, no NaN, nothing slow: any positive noise has a price.
#[test]
fn extreme_noise_has_a_price() {
    for multiplier in [1e-300, 1e-9, 1e-3, 1e3, 1e9, 1e300] {
        for rate in [1e-300, 1e-9, 0.5, 1.0 - f64::EPSILON] {
            for neighbours in [Neighbours::AddRemove, Neighbours::Replace] {
                let curve = Renyi::sampled_gaussian(multiplier, rate, neighbours);
                assert!(curve.values().iter().all(|value| *value >= 0.0), "{multiplier} {rate}");
                assert!(curve.epsilon(1e-6).0 >= 0.0);
            }
        }
    }
    for zcdp in [1e-300, 1e-12, 1e6, 1e12, 1e200] {
        for delta in [1e-300, 1e-15, 0.9] {
            let (tight, exact) = (epsilon_of_zcdp(zcdp, delta), epsilon_of_gaussian(zcdp, delta));
            assert!(
                tight >= 0.0 && exact >= 0.0 && exact <= tight * (1.0 + 1e-9) + 1e-9,
                "{zcdp} {delta}: {exact} {tight}"
            );
        }
    }
}

#[test]
fn sampling_takes_less_noise_and_keeps_the_promise() {
    for neighbours in [Neighbours::AddRemove, Neighbours::Replace] {
        let sampled = Sampled { rate: 0.02, clip: 0.5, neighbours, rounds: 500 };
        let sigma = sampled.sigma(2.0, 1e-6);
        let epsilon = sampled.epsilon(sigma, 1e-6);
        assert!(epsilon <= 2.0 && epsilon > 2.0 - 1e-5, "{epsilon}");
        let all = Sampled { rate: 1.0, ..sampled }.sigma(2.0, 1e-6);
        assert!(sigma < 0.2 * all, "{sigma} {all}");
        assert_eq!(Sampled { rate: 0.0, ..sampled }.sigma(2.0, 1e-6), 0.0);
        assert_eq!(Sampled { rounds: 0, ..sampled }.epsilon(0.1, 1e-6), 0.0);
    }
    assert_eq!(
        Sampled { rate: 0.5, clip: 1.0, neighbours: Neighbours::Replace, rounds: 1 }.sigma(0.0, 1e-6),
        f64::INFINITY
    );
}

fn power_of_ten(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low..high).prop_map(|exponent| libm::pow(10.0, exponent))
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(200))]

    /// exact <= tight <= textbook; each grows with the price and falls with delta.
    #[test]
    fn conversions_are_in_order(zcdp in power_of_ten(-10.0, 4.0), delta in power_of_ten(-14.0, -1.0), more in 1.01..3.0) {
        let all = |zcdp: f64, delta: f64| [epsilon_of_gaussian(zcdp, delta), epsilon_of_zcdp(zcdp, delta), textbook_epsilon(zcdp, delta)];
        let here = all(zcdp, delta);
        prop_assert!(here[0] <= here[1] * (1.0 + 1e-12) && here[1] <= here[2] * (1.0 + 1e-12), "{here:?}");
        for ((here, dearer), looser) in here.into_iter().zip(all(zcdp * more, delta)).zip(all(zcdp, f64::min(delta * more, 0.5))) {
            prop_assert!(dearer >= here && looser <= here * (1.0 + 1e-12), "{here} {dearer} {looser}");
        }
    }

    /// There and back: nothing gained, and next to nothing lost.
    #[test]
    fn inverses_are_on_the_safe_side(epsilon in power_of_ten(-3.0, 2.0), delta in power_of_ten(-12.0, -2.0), rounds in 1_u64..100_000) {
        for (zcdp, back) in [
            (zcdp_of_epsilon(epsilon, delta), epsilon_of_zcdp as fn(f64, f64) -> f64),
            (gaussian_zcdp_of_epsilon(epsilon, delta), epsilon_of_gaussian),
        ] {
            let again = back(zcdp, delta);
            prop_assert!(zcdp > 0.0 && again <= epsilon && again >= epsilon * (1.0 - 1e-9), "{epsilon} {again}");
        }
        let sigma = gaussian_sigma(epsilon, delta, 3.0, rounds);
        let again = Sampled { rate: 1.0, clip: 3.0, neighbours: Neighbours::AddRemove, rounds }.epsilon(sigma, delta);
        prop_assert!(again <= epsilon && again >= epsilon * (1.0 - 1e-9), "{epsilon} {again}");
        for (delta_of, epsilon_of) in [(delta_of_zcdp as fn(f64, f64) -> f64, epsilon_of_zcdp as fn(f64, f64) -> f64), (delta_of_gaussian, epsilon_of_gaussian)] {
            let zcdp = 0.3 * epsilon;
            let at = epsilon_of(zcdp, delta);
            let delta_again = delta_of(zcdp, at);
            prop_assert!(at == 0.0 || (delta_again / delta - 1.0).abs() < 1e-6, "{delta} {delta_again}");
        }
    }

    /// Composition in any grouping; a Gaussian's curve is its zCDP.
    #[test]
    fn composition_adds(a in 0.5..5.0, b in 0.5..5.0) {
        let (first, second) = (Renyi::gaussian(a), Renyi::gaussian(b));
        let both = first.plus(&second);
        let together = Renyi::zcdp(0.5 / (a * a) + 0.5 / (b * b));
        for (x, y) in both.values().iter().zip(together.values()) {
            prop_assert!((x / y - 1.0).abs() < 1e-13);
        }
        for (x, y) in first.times(3).values().iter().zip(first.plus(&first).plus(&first).values()) {
            prop_assert!((x / y - 1.0).abs() < 1e-13);
        }
    }
}

proptest! {
    #![proptest_config(config(40))]

    /// A higher rate, less noise, more rounds or a smaller delta never cost less; replacing never costs less than removing.
    #[test]
    fn sampled_prices_are_in_order(multiplier in 0.4..8.0, rate in 0.001..0.9, delta in power_of_ten(-10.0, -3.0), rounds in 1_u64..2000) {
        let price = |multiplier, rate, neighbours, rounds, delta| {
            Renyi::sampled_gaussian(multiplier, rate, neighbours).times(rounds).epsilon(delta).0
        };
        for neighbours in [Neighbours::AddRemove, Neighbours::Replace] {
            let here = price(multiplier, rate, neighbours, rounds, delta);
            prop_assert!(price(multiplier, 1.1 * rate, neighbours, rounds, delta) >= here);
            prop_assert!(price(1.1 * multiplier, rate, neighbours, rounds, delta) <= here);
            prop_assert!(price(multiplier, rate, neighbours, 2 * rounds, delta) >= here);
            prop_assert!(price(multiplier, rate, neighbours, rounds, 0.5 * delta) >= here);
            let curve = Renyi::sampled_gaussian(multiplier, rate, neighbours);
            prop_assert!(curve.values().is_sorted(), "a divergence grows with its order");
            let epsilon = curve.epsilon(delta).0;
            prop_assert!(curve.delta(epsilon) <= delta * (1.0 + 1e-9));
        }
        let removed = price(multiplier, rate, Neighbours::AddRemove, rounds, delta);
        prop_assert!(price(multiplier, rate, Neighbours::Replace, rounds, delta) >= removed);
    }
}
