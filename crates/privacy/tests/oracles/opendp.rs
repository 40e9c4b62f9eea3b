//! Against the `opendp` crate: the zCDP price of a Gaussian and its conversion, computed live.

use fedkin_privacy::{Bound, Gaussian, Mechanism, Sampler, delta_of_zcdp, epsilon_of_zcdp, zcdp_of_epsilon};
use opendp::combinators::make_zCDP_to_approxDP;
use opendp::domains::AtomDomain;
use opendp::measurements::make_gaussian;
use opendp::measures::ZeroConcentratedDivergence;
use opendp::metrics::AbsoluteDistance;

const SIGMAS: [f64; 6] = [0.05, 0.3, 1.0, 4.0, 20.0, 300.0];

#[test]
fn the_tight_conversion_agrees() {
    let mut compared = 0;
    for sigma in SIGMAS {
        let gaussian = make_gaussian::<_, _, ZeroConcentratedDivergence>(
            AtomDomain::<f64>::new_non_nan(),
            AbsoluteDistance::<f64>::default(),
            sigma,
            None,
        )
        .unwrap();
        let profile = make_zCDP_to_approxDP(gaussian.clone()).unwrap().map(&1.0).unwrap();
        let zcdp = gaussian.map(&1.0).unwrap();
        assert!((zcdp * 2.0 * sigma * sigma - 1.0).abs() < 1e-9);
        for exponent in [1, 2, 3, 5, 6, 8, 10, 12, 15] {
            let delta = libm::pow(10.0, -f64::from(exponent));
            let (ours, theirs) = (epsilon_of_zcdp(zcdp, delta), profile.epsilon(delta).unwrap());
            let at = format!("sigma {sigma}, delta {delta}: {ours} and {theirs}");
            // Theirs is searched for in delta, to a relative 1e-10 or so.
            assert!(ours >= theirs - 1e-9 * theirs.max(1.0), "{at}");
            assert!(ours <= theirs + 1e-6 * theirs.max(1.0), "{at}");
            let (ours, theirs) = (delta_of_zcdp(zcdp, theirs), profile.delta(theirs).unwrap());
            assert!(ours >= theirs * (1.0 - 1e-6) && ours <= theirs * (1.0 + 1e-6), "{at}: {ours} {theirs}");
            let spendable = zcdp_of_epsilon(profile.epsilon(delta).unwrap(), delta);
            assert!(spendable <= zcdp * (1.0 + 1e-6), "{at}: {spendable} {zcdp}");
            compared += 1;
        }
    }
    assert_eq!(compared, 54);
}

/// Our Gaussian charges at least what theirs does for the same noise.
#[test]
fn a_gaussian_costs_the_same() {
    for budget in [1e-6, 0.001, 0.3, 2.0] {
        for sensitivity in [1e-3, 1.0, 50.0] {
            let ours = Gaussian::vector(Bound::assumed(sensitivity), budget, 1, Sampler::Float).unwrap();
            let theirs = make_gaussian::<_, _, ZeroConcentratedDivergence>(
                AtomDomain::<f64>::new_non_nan(),
                AbsoluteDistance::<f64>::default(),
                ours.sigma(),
                None,
            )
            .unwrap();
            let price = theirs.map(&sensitivity).unwrap();
            assert!(ours.cost().zcdp() >= price, "{} {price}", ours.cost().zcdp());
            assert!(ours.cost().zcdp() <= price * (1.0 + 1e-9) + 1e-12);
        }
    }
}
