//! Regularisers: what is added to the loss of a client so that its parameters stay small, few, or few by groups.
//!
//! With a strength s, and a for the share of the l1 norm in an elastic net:
//!
//! | regulariser | R(w) | smooth part | `shrink(w, t)` |
//! |---|---|---|---|
//! | none | 0 | 0 | w |
//! | squared norm | `s \|w\|^2` | all of it | w |
//! | l1 | `s sum_j abs(w_j)` | 0 | `sign(w_j) max(abs(w_j) - t, 0)` |
//! | elastic net | `s (a sum_j abs(w_j) + (1 - a) \|w\|^2)` | `s (1 - a) \|w\|^2` | as l1, with a t for t |
//! | group | `s sum_g sqrt(len_g) \|w_g\|` | 0 | `w_g max(1 - t sqrt(len_g) / \|w_g\|, 0)` |
//!
//! `shrink(w, t)` is the proximal map of t times the part that is not smooth, taken at strength 1:
//!
//! ```text
//! shrink(v, t) = argmin over w of t N(w) + (1/2) |w - v|^2,      R = s (smooth + N)
//! ```
//!
//! A proximal gradient step of length h on a problem of strength s therefore shrinks by t = h s.

use fedkin_numeric::{axpy, dot, norm2, scale};
use std::sync::Arc;

/// Which coordinates form a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Groups {
    /// So many coordinates each, in order; the last group is what remains and may be shorter.
    Equal(usize),
    /// Groups of these lengths, in order.
    Lengths(Arc<[usize]>),
}

impl Groups {
    /// Why so many parameters cannot be grouped this way, where they cannot.
    fn check(&self, dimension: usize) -> Result<(), String> {
        match self {
            Groups::Equal(0) => Err("groups of 0 coordinates hold nothing: give a size of at least 1".into()),
            Groups::Equal(_) => Ok(()),
            Groups::Lengths(lengths) => {
                if let Some(at) = lengths.iter().position(|length| *length == 0) {
                    return Err(format!("group {} has a length of 0: leave it out", at + 1));
                }
                let sum = lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(*length));
                if sum == Some(dimension) {
                    return Ok(());
                }
                let sum = sum.map_or("too many".into(), |sum| sum.to_string());
                Err(format!(
                    "the lengths of the groups add up to {sum}, but the model has {dimension} parameters (a bias is \
                     one of them): give lengths that add up to {dimension}"
                ))
            }
        }
    }

    /// The groups of a vector. Coordinates that belong to none are left out.
    fn each<'a>(&'a self, w: &'a [f64]) -> impl Iterator<Item = &'a [f64]> {
        let mut at = 0;
        self.lengths(w.len()).map(move |length| {
            let group = &w[at..at + length];
            at += length;
            group
        })
    }

    /// The lengths of the groups, cut where the vector ends.
    fn lengths(&self, dimension: usize) -> impl Iterator<Item = usize> {
        let mut left = dimension;
        let mut number = 0;
        std::iter::from_fn(move || {
            let length = match self {
                Groups::Equal(size) => (*size).max(1),
                Groups::Lengths(lengths) => *lengths.get(number)?,
            };
            number += 1;
            let length = length.min(left);
            left -= length;
            (length > 0).then_some(length)
        })
    }
}

/// A regulariser, without its strength.
#[derive(Debug, Clone, PartialEq)]
pub enum Regulariser {
    /// Nothing is added.
    None,
    /// The squared Euclidean norm, without a factor 1/2.
    SquaredNorm,
    /// The sum of absolute values, which sets coordinates to zero.
    L1,
    /// A mixture of the two.
    ElasticNet {
        /// Share of the sum of absolute values, from 0 to 1; the rest is the squared norm.
        l1_share: f64,
    },
    /// The sum of the norms of groups, each times the square root of its length, which sets whole groups to zero.
    Group {
        /// Which coordinates belong together.
        groups: Groups,
    },
}

impl Regulariser {
    /// Whether it is one of so many parameters; the error says what to change.
    pub fn check(&self, dimension: usize) -> Result<(), String> {
        match self {
            Regulariser::None | Regulariser::SquaredNorm | Regulariser::L1 => Ok(()),
            Regulariser::ElasticNet { l1_share } if (0.0..=1.0).contains(l1_share) => Ok(()),
            Regulariser::ElasticNet { l1_share } => {
                Err(format!("the share of the l1 norm in an elastic net is {l1_share}: give one from 0 to 1"))
            }
            Regulariser::Group { groups } => groups.check(dimension),
        }
    }

    /// R(w) with this strength.
    pub fn value(&self, w: &[f64], strength: f64) -> f64 {
        strength
            * match self {
                Regulariser::None => 0.0,
                Regulariser::SquaredNorm => norm2(w),
                Regulariser::L1 => absolute(w),
                Regulariser::ElasticNet { l1_share } => l1_share * absolute(w) + (1.0 - l1_share) * norm2(w),
                Regulariser::Group { groups } => {
                    let mut sum = 0.0;
                    for group in groups.each(w) {
                        sum += (group.len() as f64).sqrt() * norm2(group).sqrt();
                    }
                    sum
                }
            }
    }

    /// The part of R(w) that is not smooth, with this strength.
    pub fn kinks(&self, w: &[f64], strength: f64) -> f64 {
        match self {
            Regulariser::None | Regulariser::SquaredNorm => 0.0,
            Regulariser::ElasticNet { l1_share } => strength * l1_share * absolute(w),
            Regulariser::L1 | Regulariser::Group { .. } => self.value(w, strength),
        }
    }

    /// The factor of |w|^2: with a strength s the smooth part is `s squared_share() |w|^2`.
    pub fn squared_share(&self) -> f64 {
        match self {
            Regulariser::None | Regulariser::L1 | Regulariser::Group { .. } => 0.0,
            Regulariser::SquaredNorm => 1.0,
            Regulariser::ElasticNet { l1_share } => 1.0 - l1_share,
        }
    }

    /// Adds the gradient of the smooth part with this strength.
    pub fn add_gradient(&self, w: &[f64], strength: f64, out: &mut [f64]) {
        axpy(2.0 * strength * self.squared_share(), w, out);
    }

    /// The proximal map of t times the part that is not smooth, in place.
    pub fn shrink(&self, w: &mut [f64], t: f64) {
        match self {
            Regulariser::None | Regulariser::SquaredNorm => {}
            Regulariser::L1 => soften(w, t),
            // Nothing of it is left to shrink by, not even an infinite t.
            Regulariser::ElasticNet { l1_share } if *l1_share == 0.0 => {}
            Regulariser::ElasticNet { l1_share } => soften(w, l1_share * t),
            Regulariser::Group { groups } => {
                let mut rest = w;
                for length in groups.lengths(rest.len()) {
                    let (group, later) = rest.split_at_mut(length);
                    let (size, by) = (norm2(group).sqrt(), t * (length as f64).sqrt());
                    if size <= by {
                        group.fill(0.0);
                    } else {
                        scale(1.0 - by / size, group);
                    }
                    rest = later;
                }
            }
        }
    }

    /// Replaces v by a generalised derivative of `shrink(., t)` at a point, times v. It is symmetric, with eigenvalues from
    /// 0 to 1.
    pub fn shrink_slope(&self, at: &[f64], t: f64, v: &mut [f64]) {
        match self {
            Regulariser::None | Regulariser::SquaredNorm => {}
            Regulariser::L1 => keep_large(at, t, v),
            Regulariser::ElasticNet { l1_share } if *l1_share == 0.0 => {}
            Regulariser::ElasticNet { l1_share } => keep_large(at, l1_share * t, v),
            Regulariser::Group { groups } => {
                let mut rest = v;
                for group in groups.each(at) {
                    let (v, later) = rest.split_at_mut(group.len());
                    let (size, by) = (norm2(group).sqrt(), t * (group.len() as f64).sqrt());
                    if size <= by {
                        v.fill(0.0);
                    } else {
                        // (1 - b/n) v + (b/n) u u'v with the direction u = z / n.
                        let along = dot(group, v) * by / (size * size * size);
                        scale(1.0 - by / size, v);
                        axpy(along, group, v);
                    }
                    rest = later;
                }
            }
        }
    }

    /// Whether it has a gradient everywhere: then `shrink` changes nothing.
    pub fn is_smooth(&self) -> bool {
        match self {
            Regulariser::None | Regulariser::SquaredNorm => true,
            Regulariser::ElasticNet { l1_share } => *l1_share == 0.0,
            Regulariser::L1 | Regulariser::Group { .. } => false,
        }
    }
}

fn absolute(w: &[f64]) -> f64 {
    let mut sum = 0.0;
    for w in w {
        sum += w.abs();
    }
    sum
}

/// Sets the entries of v to zero where those of the point are at most t.
fn keep_large(at: &[f64], t: f64, v: &mut [f64]) {
    for (at, v) in at.iter().zip(v) {
        if at.abs() <= t {
            *v = 0.0;
        }
    }
}

/// Moves every entry towards zero by t, and no further.
fn soften(w: &mut [f64], t: f64) {
    for w in w {
        // A number that is none stays none, so that it is noticed.
        *w = if *w > t {
            *w - t
        } else if *w < -t {
            *w + t
        } else if w.is_nan() {
            *w
        } else {
            0.0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_numeric::distance2;
    use proptest::prelude::*;

    fn all() -> Vec<Regulariser> {
        vec![
            Regulariser::None,
            Regulariser::SquaredNorm,
            Regulariser::L1,
            Regulariser::ElasticNet { l1_share: 0.3 },
            Regulariser::ElasticNet { l1_share: 0.0 },
            Regulariser::Group { groups: Groups::Equal(3) },
            Regulariser::Group { groups: Groups::Lengths([1, 4, 2, 1].into()) },
        ]
    }

    /// The part that is not smooth, at strength 1.
    fn kinked(regulariser: &Regulariser, w: &[f64]) -> f64 {
        regulariser.value(w, 1.0) - regulariser.squared_share() * norm2(w)
    }

    #[test]
    fn values_of_known_cases() {
        let w = [3.0, 4.0, 0.0, -2.0];
        let value = |regulariser: Regulariser| regulariser.value(&w, 0.5);
        assert_eq!(value(Regulariser::None), 0.0);
        assert_eq!(value(Regulariser::SquaredNorm), 14.5);
        assert_eq!(value(Regulariser::L1), 4.5);
        assert_eq!(value(Regulariser::ElasticNet { l1_share: 0.25 }), 0.25 * 4.5 + 0.75 * 14.5);
        let root = 2f64.sqrt();
        assert_eq!(value(Regulariser::Group { groups: Groups::Equal(2) }), 0.5 * (root * 5.0 + root * 2.0));
        let lengths = Groups::Lengths([3, 1].into());
        assert_eq!(value(Regulariser::Group { groups: lengths }), 0.5 * (3f64.sqrt() * 5.0 + 2.0));
    }

    #[test]
    fn the_smooth_part_has_the_gradient_of_its_differences() {
        for regulariser in all() {
            let w = [0.3, -0.2, 0.5, 0.1];
            let mut gradient = [0.0; 4];
            regulariser.add_gradient(&w, 0.7, &mut gradient);
            for j in 0..4 {
                let (mut up, mut down) = (w, w);
                up[j] += 1e-6;
                down[j] -= 1e-6;
                let smooth = |w: &[f64]| 0.7 * regulariser.squared_share() * norm2(w);
                let slope = (smooth(&up) - smooth(&down)) / 2e-6;
                assert!((slope - gradient[j]).abs() < 1e-8, "{regulariser:?}");
            }
        }
    }

    #[test]
    fn the_derivative_of_the_proximal_map_is_that_of_its_differences() {
        let at = [1.5, -0.9, 0.1, 2.0, -0.05, 0.3, 0.02, 1.1];
        let v = [0.3, 1.0, -0.7, 0.2, 0.9, -1.0, 0.4, 0.6];
        for regulariser in all() {
            let along = |h: f64| {
                let mut w = at.to_vec();
                axpy(h, &v, &mut w);
                regulariser.shrink(&mut w, 0.4);
                w
            };
            let mut slope = v;
            regulariser.shrink_slope(&at, 0.4, &mut slope);
            for ((up, down), slope) in along(1e-6).iter().zip(along(-1e-6)).zip(slope) {
                assert!(((up - down) / 2e-6 - slope).abs() < 1e-8, "{regulariser:?}");
            }
        }
    }

    #[test]
    fn impossible_shares_and_groups_are_refused_with_what_to_do() {
        let refused = |regulariser: Regulariser| regulariser.check(6).unwrap_err();
        assert!(refused(Regulariser::ElasticNet { l1_share: 1.5 }).contains("from 0 to 1"));
        assert!(refused(Regulariser::ElasticNet { l1_share: f64::NAN }).contains("from 0 to 1"));
        let groups = |lengths: &[usize]| Regulariser::Group { groups: Groups::Lengths(lengths.into()) };
        assert!(
            refused(groups(&[2, 3])).contains("add up to 5") && refused(groups(&[6, 0])).contains("group 2")
        );
        assert!(refused(groups(&[usize::MAX, 2])).contains("too many"));
        assert!(refused(Regulariser::Group { groups: Groups::Equal(0) }).contains("at least 1"));
        assert!(groups(&[2, 4]).check(6).is_ok());
        assert!(Regulariser::Group { groups: Groups::Equal(4) }.check(6).is_ok());
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for regulariser in all() {
            let mut w = [1.0, f64::NAN, 2.0];
            regulariser.shrink(&mut w, 0.1);
            assert!(w[1].is_nan(), "{regulariser:?}");
        }
    }

    proptest! {
        /// Among all points, the proximal map has the least value; it suffices to look nearby, as the problem is convex.
        /// Convexity also gives more: moving away by e costs at least e^2/2.
        #[test]
        fn the_proximal_map_minimises(
            v in proptest::collection::vec(-3.0..3.0, 8),
            e in proptest::collection::vec(-1.0..1.0, 8),
            t in 0.0..2.0,
            size in prop_oneof![Just(1.0), Just(1e-3)],
        ) {
            for regulariser in all() {
                let mut w: Vec<f64> = v.clone();
                regulariser.shrink(&mut w, t);
                let value = |w: &[f64]| t * kinked(&regulariser, w) + 0.5 * distance2(w, &v);
                let mut other = w.clone();
                axpy(size, &e, &mut other);
                let more = 0.5 * distance2(&w, &other);
                prop_assert!(value(&other) - value(&w) >= more - 1e-12, "{:?}", regulariser);
            }
        }

        /// The optimality condition itself: (v - w) / t is a subgradient of the norm at w.
        #[test]
        fn what_was_taken_away_is_a_subgradient(v in proptest::collection::vec(-3.0..3.0, 8), t in 0.01..2.0) {
            for regulariser in all().iter().filter(|r| !r.is_smooth()) {
                let mut w: Vec<f64> = v.clone();
                regulariser.shrink(&mut w, t);
                let subgradient: Vec<f64> = v.iter().zip(&w).map(|(v, w)| (v - w) / t).collect();
                // Of a norm: the product with w is the norm of w, and no other point exceeds its own norm.
                prop_assert!((dot(&subgradient, &w) - kinked(regulariser, &w)).abs() < 1e-10);
                let other: Vec<f64> = v.iter().rev().copied().collect();
                prop_assert!(dot(&subgradient, &other) <= kinked(regulariser, &other) + 1e-10);
                prop_assert!(dot(&subgradient, &subgradient) <= kinked(regulariser, &subgradient) + 1e-10);
            }
        }

        #[test]
        fn it_is_firmly_non_expansive(
            a in proptest::collection::vec(-3.0..3.0, 8),
            b in proptest::collection::vec(-3.0..3.0, 8),
            t in 0.0..2.0,
        ) {
            for regulariser in all() {
                let (mut p, mut q): (Vec<f64>, Vec<f64>) = (a.clone(), b.clone());
                regulariser.shrink(&mut p, t);
                regulariser.shrink(&mut q, t);
                let apart: Vec<f64> = p.iter().zip(&q).map(|(p, q)| p - q).collect();
                let before: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
                prop_assert!(norm2(&apart) <= dot(&apart, &before) + 1e-12);
            }
        }

        #[test]
        fn nothing_is_the_identity_and_without_end_is_zero(v in proptest::collection::vec(-3.0..3.0, 8)) {
            for regulariser in all() {
                let mut w: Vec<f64> = v.clone();
                regulariser.shrink(&mut w, 0.0);
                prop_assert_eq!(&w, &v);
                for t in [1e9, f64::INFINITY] {
                    let mut w: Vec<f64> = v.clone();
                    regulariser.shrink(&mut w, t);
                    let expected = if regulariser.is_smooth() { v.clone() } else { vec![0.0; 8] };
                    prop_assert_eq!(w, expected);
                }
            }
        }
    }
}
