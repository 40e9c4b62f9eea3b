//! The bound for replaced records against the divergence of the two mixtures, integrated with no thought but care:
//! Simpson's rule on densities, none of the accountant's formulas.

use fedkin_privacy::{Neighbours, ORDERS, Renyi};

fn normal(x: f64, mean: f64) -> f64 {
    libm::exp(-0.5 * (x - mean) * (x - mean)) / libm::sqrt(std::f64::consts::TAU)
}

/// The Renyi divergence of two mixtures of two unit Gaussians, one of them at 0, in one dimension.
fn divergence(order: f64, rate: f64, to: f64, from: f64) -> f64 {
    let (low, high, steps) = (-30.0, 30.0 + 2.0 * order * to.abs().max(from.abs()), 200_000);
    let width = (high - low) / f64::from(steps);
    let sum: f64 = (0..=steps)
        .map(|i| {
            let x = low + width * f64::from(i);
            let p = (1.0 - rate) * normal(x, 0.0) + rate * normal(x, to);
            let q = (1.0 - rate) * normal(x, 0.0) + rate * normal(x, from);
            let weight = if i == 0 || i == steps {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            };
            let value = if p > 0.0 && q > 0.0 {
                libm::exp(order * libm::log(p) + (1.0 - order) * libm::log(q))
            } else {
                0.0
            };
            weight * value
        })
        .sum();
    libm::log(sum * width / 3.0) / (order - 1.0)
}

fn bound(order: u32, rate: f64, reach: f64) -> f64 {
    let at = ORDERS.iter().position(|known| *known == order).unwrap();
    Renyi::sampled_gaussian(1.0 / reach, rate, Neighbours::Replace).values()[at]
}

#[test]
fn the_bound_is_the_integral_of_the_worst_pair() {
    for order in [2, 3, 5, 8, 16, 32] {
        for rate in [0.01, 0.1, 0.5, 0.9] {
            for reach in [0.1, 0.25, 0.5, 1.0] {
                if f64::from(order) * reach > 16.0 {
                    continue; // Plain densities underflow where the mass would be.
                }
                let exact = divergence(f64::from(order), rate, reach, -reach);
                let ours = bound(order, rate, reach);
                let at = format!("order {order}, rate {rate}, reach {reach}: {ours}, integral {exact}");
                // Simpson's own error is about 1e-13 of F; below 1e-10 its logarithm holds few digits.
                assert!(ours >= exact - 1e-12, "{at}");
                assert!(ours <= exact + 1e-9 * exact + 1e-12, "{at}");
            }
        }
    }
}

/// The proof says that no other pair of contributions within the clip is worse: look for one, in the plane.
#[test]
fn no_other_pair_of_contributions_is_worse() {
    /// The divergence in two dimensions: contributions of these lengths at this angle.
    fn plane(order: i32, rate: f64, first: f64, second: f64, cosine: f64) -> f64 {
        let (from, to, steps) = (-9.0, 9.0 + 2.0 * f64::from(order) * first, 360);
        let width = (to - from) / f64::from(steps);
        let sine = libm::sqrt(1.0 - cosine * cosine);
        let mut sum = 0.0;
        for i in 0..=steps {
            for j in 0..=steps {
                let (x, y) = (from + width * f64::from(i), -9.0 + 18.0 / f64::from(steps) * f64::from(j));
                let p = 1.0 - rate + rate * libm::exp(first * x - 0.5 * first * first);
                let along = second * (cosine * x + sine * y);
                let q = 1.0 - rate + rate * libm::exp(along - 0.5 * second * second);
                sum += normal(x, 0.0)
                    * normal(y, 0.0)
                    * libm::pow(p, f64::from(order))
                    * libm::pow(q, f64::from(1 - order));
            }
        }
        libm::log(sum * width * 18.0 / f64::from(steps)) / f64::from(order - 1)
    }
    let (order, rate, reach) = (4, 0.2, 0.8);
    let worst = bound(order as u32, rate, reach);
    let mut closest = 0.0_f64;
    for cosine in [-1.0, -0.9, -0.5, 0.0, 0.7, 1.0] {
        for first in [0.0, 0.4, 0.8] {
            for second in [0.0, 0.4, 0.8] {
                let other = plane(order, rate, first, second, cosine);
                assert!(other <= worst + 1e-9, "{first} {second} {cosine}: {other} above {worst}");
                closest = closest.max(other);
            }
        }
    }
    assert!((closest - worst).abs() < 1e-6, "the worst pair is among them: {closest} {worst}");
}

/// In the limit of few records and much noise a replacement costs as much as twice the distance, four times the
/// divergence; and a sample of everybody is no sample.
#[test]
fn replacing_lies_between_one_and_two_changes() {
    for (rate, reach) in [(0.001, 0.1), (0.01, 0.5), (0.3, 1.0)] {
        let add = Renyi::sampled_gaussian(1.0 / reach, rate, Neighbours::AddRemove);
        let replace = Renyi::sampled_gaussian(1.0 / reach, rate, Neighbours::Replace);
        for ((a, r), order) in add.values().iter().zip(replace.values()).zip(ORDERS) {
            assert!(r >= a, "order {order}, rate {rate}: {r} below {a}");
        }
    }
    let replace = Renyi::sampled_gaussian(100.0, 0.001, Neighbours::Replace);
    let add = Renyi::sampled_gaussian(100.0, 0.001, Neighbours::AddRemove);
    assert!((replace.values()[0] / add.values()[0] / 4.0 - 1.0).abs() < 1e-3);
    let whole = Renyi::sampled_gaussian(2.0, 1.0, Neighbours::Replace);
    assert_eq!(whole, Renyi::gaussian(1.0));
}
