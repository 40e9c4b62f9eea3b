//! Clipping: what enforces a bound.

use super::bound::Bound;
use thiserror::Error;

/// A vector with an infinite or undefined number has no norm and is not clipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a vector to be clipped holds a number that is not finite")]
pub struct NotFinite;

/// Scales a vector down where its Euclidean norm exceeds a bound, and leaves it as it is where it does not.
///
/// The norm of the *result*, taken exactly, is at most the bound: what rounding may add is taken off before.
/// A vector within a few roundings of the bound may therefore lose its last bits. An infinite bound changes
/// no bit and enforces nothing finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip(f64);

impl Clip {
    /// A clip to this norm, above 0 and at most infinite; `None` for anything else.
    pub fn new(norm: f64) -> Option<Self> {
        // Below, a scaled number could fall under the smallest normal one, where roundings are not relative.
        (norm >= 1e-250).then_some(Self(norm))
    }

    /// The norm that it clips to.
    pub fn norm(self) -> f64 {
        self.0
    }

    /// The bound that the clip enforces on one vector. Who is handed it has still to clip, so it stays in the crate.
    pub(crate) fn bound(self) -> Bound {
        Bound::enforced(self.0)
    }

    /// Clips one vector: an update as a whole, or the gradient of one record.
    pub fn apply(self, vector: &mut [f64]) -> Result<(), NotFinite> {
        if vector.iter().any(|x| !x.is_finite()) {
            return Err(NotFinite);
        }
        let largest = vector.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        if self.0.is_infinite() || largest == 0.0 {
            return Ok(());
        }
        // Powers of two bring the largest number near 1, so that no square over- or underflows.
        let shift = libm::ilogb(largest);
        let (down, up) = (-(shift / 2), -(shift - shift / 2));
        let near_one = |x: f64| libm::scalbn(libm::scalbn(x, down), up);
        let norm = vector.iter().map(|&x| near_one(x) * near_one(x)).sum::<f64>().sqrt();
        let bound = near_one(self.0);
        // A sum of n squares, its root, a quotient and a product: the relative error of all is below (n + 8)
        // roundings. Beyond 2^40 numbers this would be worth a second thought.
        let doubt = (vector.len() as f64 + 8.0) * f64::EPSILON;
        if norm * (1.0 + doubt) <= bound {
            return Ok(());
        }
        let factor = bound / norm * (1.0 - 2.0 * doubt);
        for x in vector {
            // Where the product is too small to be rounded relatively, it is far below the bound's last bit.
            *x *= factor;
        }
        Ok(())
    }

    /// Clips every row of a matrix that is stored row after row: one record each.
    pub fn records(self, rows: &mut [f64], width: usize) -> Result<(), NotFinite> {
        if rows.iter().any(|x| !x.is_finite()) {
            return Err(NotFinite);
        }
        for row in rows.chunks_mut(width.max(1)) {
            self.apply(row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether the norm is at most `bound`, a power of two: each number in whole multiples of 2^-62 of it,
    /// rounded up.
    fn within(vector: &[f64], bound: f64) -> bool {
        let whole = |x: f64| (x.abs() / bound * (1u64 << 62) as f64).ceil() as u128;
        vector.iter().map(|&x| whole(x) * whole(x)).sum::<u128>() <= 1u128 << 124
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_result_is_never_longer(
            direction in prop::collection::vec(-1.0f64..1.0, 1..40),
            size in -12i32..12,
            power in -40i32..40,
        ) {
            let bound = libm::ldexp(1.0, power);
            let mut vector: Vec<f64> = direction.iter().map(|x| x * bound * libm::ldexp(1.0, size)).collect();
            let before = vector.clone();
            let clip = Clip::new(bound).unwrap();
            clip.apply(&mut vector).unwrap();
            prop_assert!(within(&vector, bound));
            let norm = before.iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm < bound * (1.0 - 1e-13) {
                prop_assert_eq!(&vector, &before);
            } else {
                // The same direction, and nothing given away.
                let left = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
                prop_assert!(left > norm.min(bound) * (1.0 - 1e-12));
                for (a, b) in vector.iter().zip(&before) {
                    prop_assert!((a * norm - b * left).abs() <= 1e-12 * norm * left);
                }
            }
            let once = vector.clone();
            clip.apply(&mut vector).unwrap();
            prop_assert!(within(&vector, bound) && (vector[0] - once[0]).abs() <= 1e-13 * bound);
        }
    }

    /// Vectors on the bound itself: some roundings would leave them longer than it.
    #[test]
    fn the_last_bit_is_on_the_safe_side() {
        let mut rng = fedkin_numeric::rng::PublicRng::named(1, "clip", 0, 0);
        let (mut longer, mut naive_longer) = (0, 0);
        for _ in 0..2000 {
            let vector: Vec<f64> = (0..7).map(|_| fedkin_numeric::rng::Random::normal(&mut rng)).collect();
            let mut ours = vector.clone();
            Clip::new(0.5).unwrap().apply(&mut ours).unwrap();
            longer += u32::from(!within(&ours, 0.5));
            let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
            let naive: Vec<f64> = vector.iter().map(|x| x * (0.5 / norm)).collect();
            naive_longer += u32::from(!within(&naive, 0.5));
        }
        assert_eq!(longer, 0);
        assert!(naive_longer > 200, "the check would not notice: {naive_longer}");
    }

    #[test]
    fn extremes() {
        let clip =
            |norm: f64, mut vector: Vec<f64>| Clip::new(norm).unwrap().apply(&mut vector).map(|()| vector);
        let odd = vec![1e300, -0.0, 5e-324, f64::MAX];
        let same = clip(f64::INFINITY, odd.clone()).unwrap();
        assert!(same.iter().zip(&odd).all(|(a, b)| a.to_bits() == b.to_bits()));
        let scaled = clip(1.0, odd).unwrap();
        assert!(within(&scaled, 1.0) && scaled[3] > 0.99);
        assert_eq!(clip(1.0, vec![3e-200, 4e-200]).unwrap(), [3e-200, 4e-200]);
        let tiny = clip(1e-200, vec![3e-200, 4e-200]).unwrap();
        assert!((tiny[0] / 0.6e-200 - 1.0).abs() < 1e-13);
        assert_eq!(clip(1.0, vec![0.0; 3]).unwrap(), [0.0; 3]);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(clip(1.0, vec![0.0, bad]), Err(NotFinite));
            assert_eq!(clip(f64::INFINITY, vec![0.0, bad]), Err(NotFinite));
        }
        for bad in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(Clip::new(bad), None);
        }
    }

    #[test]
    fn records_are_clipped_one_by_one_or_not_at_all() {
        let clip = Clip::new(1.0).unwrap();
        let mut rows = vec![0.3, 0.4, 3.0, 4.0];
        clip.records(&mut rows, 2).unwrap();
        let bound = clip.bound();
        assert_eq!((bound.value(), bound.trust()), (1.0, crate::Trust::Enforced));
        assert_eq!(rows[..2], [0.3, 0.4]);
        assert!((rows[2] - 0.6).abs() < 1e-14 && (rows[3] - 0.8).abs() < 1e-14);
        let mut bad = vec![3.0, 4.0, f64::NAN, 0.0];
        assert_eq!(clip.records(&mut bad, 2), Err(NotFinite));
        assert_eq!(bad[..2], [3.0, 4.0], "nothing was changed");
    }
}
