//! Functions of one number, in place.

use super::lanes::{Lanes, fused};

/// Beyond this the tangent is one to the last bit of a 32-bit number.
const FLAT: f32 = 9.01;
/// Numerator and denominator of `tanh x = x P(x^2) / Q(x^2)`, fitted to the least relative error on |x| <= 9.02.
const P: [f32; 5] = [1.0, 0.133_797_39, 0.003_494_059_7, 2.058_385_9e-5, 1.331_952_1e-8];
const Q: [f32; 5] = [1.0, 0.467_130_54, 0.025_871_17, 0.000_328_313_24, 7.762_219e-7];

/// Hyperbolic tangent with a relative error below 4e-7 (tested), from products and one division: the same bits
/// everywhere.
#[inline]
pub(super) fn tanh(x: f32) -> f32 {
    // Not `clamp`: a number that is not finite must come out as such.
    let x = if x > FLAT { FLAT } else { x };
    let x = if x < -FLAT { -FLAT } else { x };
    let s = x * x;
    let series = |c: &[f32; 5]| fused(fused(fused(fused(c[4], s, c[3]), s, c[2]), s, c[1]), s, c[0]);
    let y = x * series(&P) / series(&Q);
    let y = if y > 1.0 { 1.0 } else { y };
    if y < -1.0 { -1.0 } else { y }
}

pub(super) fn tanh_forward(x: &mut [Lanes]) {
    for x in x {
        *x = Lanes::of(|i| tanh(x.0[i]));
    }
}

/// `g (1 - y^2)` with the outputs y.
pub(super) fn tanh_back(y: &[Lanes], g: &mut [Lanes]) {
    for (g, y) in g.iter_mut().zip(y) {
        *g = Lanes::of(|i| g.0[i] * fused(-y.0[i], y.0[i], 1.0));
    }
}

/// One or zero. Products with it are faster than a choice between two numbers, which becomes a masked store.
#[inline]
fn one_if(keep: bool) -> f32 {
    f32::from(u8::from(keep))
}

pub(super) fn relu_forward(x: &mut [Lanes]) {
    for x in x {
        // A number that is not one passes, so that a diverged net is seen.
        *x = Lanes::of(|i| x.0[i] * one_if(x.0[i] >= 0.0));
    }
}

/// `g` where the output y is positive.
pub(super) fn relu_back(y: &[Lanes], g: &mut [Lanes]) {
    for (g, y) in g.iter_mut().zip(y) {
        *g = Lanes::of(|i| g.0[i] * one_if(y.0[i] > 0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_is_close_odd_and_bounded() {
        let mut worst = 0.0f64;
        for i in 1..=2_400_000 {
            let x = i as f32 * 5e-6;
            let (y, exact) = (tanh(x), libm::tanh(f64::from(x)));
            worst = worst.max((f64::from(y) / exact - 1.0).abs());
            assert!(y <= 1.0 && tanh(-x) == -y, "tanh {x} = {y}");
        }
        assert!(worst < 4e-7, "relative error {worst}");
        assert_eq!((tanh(0.0), tanh(1e30), tanh(f32::NEG_INFINITY)), (0.0, 1.0, -1.0));
        assert!(tanh(f32::NAN).is_nan());
    }
}
