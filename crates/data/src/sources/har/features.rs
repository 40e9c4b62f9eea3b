//! Numbers that describe a window of motion: the same list for every window of every person.
//!
//! The signals are acceleration of the body (g) and turning (rad/s), six channels in all, and the total acceleration
//! with gravity in it. All scales are constants written here, chosen from the units and not fitted to records: nothing
//! about anybody's data is needed to compute a feature.
//!
//! | features | how many | what |
//! |---|---:|---|
//! | `level` | 6 | logarithm of a channel's standard deviation |
//! | `jerk` | 6 | logarithm of the standard deviation of a channel's steps from sample to sample |
//! | `skew` | 6 | third standardised moment of a channel, at most 3 in size |
//! | `band` | 36 | logarithm of a channel's root mean square in six bands of frequency |
//! | `size` | 4 | logarithms of mean and standard deviation of the length of body acceleration and of turning |
//! | `together` | 6 | correlations of the three axes of body acceleration, and of turning |
//! | `gravity` | 6 | mean of the total acceleration by axis, and its squares |
//!
//! A logarithm stands for `(ln(value + floor) - ln(usual)) / 1.5` with the floor at the sensor's noise.

use super::windows::{CHANNELS, STEPS};
use fedkin_numeric::ln;

/// Bands in frequency bins of 50 / 128 Hz: up to 0.8, 1.6, 2.3, 3.9, 7.8 and 25 Hz.
const BANDS: [(usize, usize); 6] = [(1, 2), (3, 4), (5, 6), (7, 10), (11, 20), (21, 63)];
const AXES: [&str; 3] = ["x", "y", "z"];
const MOVING: [&str; 2] = ["body", "turn"];
/// Noise floor and usual size of body acceleration (g) and of turning (rad/s).
const SIZES: [(f64, f64); 2] = [(1e-3, 0.05), (1e-2, 0.3)];
/// A factor e^1.5 is one unit.
const SPREAD: f64 = 1.5;
/// The mean of total acceleration in units of this.
const TILT: f64 = 0.5;

/// The names of the features, in order.
pub(super) fn names() -> Vec<String> {
    let mut names = Vec::new();
    for signal in MOVING {
        for axis in AXES {
            for what in ["level", "jerk", "skew"] {
                names.push(format!("{what}-{signal}-{axis}"));
            }
            names.extend((1..=BANDS.len()).map(|band| format!("band-{signal}-{axis}-{band}")));
        }
    }
    for signal in MOVING {
        names.extend([format!("size-{signal}-mean"), format!("size-{signal}-spread")]);
        names.extend(["xy", "xz", "yz"].map(|pair| format!("together-{signal}-{pair}")));
    }
    names.extend(AXES.map(|axis| format!("gravity-{axis}")));
    names.extend(AXES.map(|axis| format!("gravity-{axis}-squared")));
    names
}

/// The features of one window: channels one after the other, in units of `scale`.
pub(super) fn of(window: &[i16], scale: f64, transform: &Transform) -> Vec<f64> {
    let channels: Vec<Vec<f64>> = window
        .chunks_exact(STEPS)
        .map(|channel| channel.iter().map(|&value| f64::from(value) * scale).collect())
        .collect();
    debug_assert_eq!(channels.len(), CHANNELS);
    let mut features = Vec::with_capacity(70);
    for (signal, sizes) in SIZES.into_iter().enumerate() {
        for channel in &channels[3 * signal..3 * signal + 3] {
            let (mean, deviation) = moments(channel);
            let steps: Vec<f64> = channel.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let third = channel.iter().map(|value| (value - mean) * (value - mean) * (value - mean));
            let third = third.sum::<f64>() / STEPS as f64;
            let cube = deviation * deviation * deviation;
            features.push(logarithm(deviation, sizes));
            features.push(logarithm(moments(&steps).1, sizes));
            features.push(if cube > 0.0 { (third / cube).clamp(-3.0, 3.0) } else { 0.0 });
            let power = transform.power(channel);
            for (from, to) in BANDS {
                let sum: f64 = power[from..=to].iter().sum();
                features.push(logarithm((2.0 * sum).sqrt() / STEPS as f64, sizes));
            }
        }
    }
    for (signal, sizes) in SIZES.into_iter().enumerate() {
        let [x, y, z] = [0, 1, 2].map(|axis| &channels[3 * signal + axis]);
        let lengths: Vec<f64> =
            (0..STEPS).map(|t| (x[t] * x[t] + y[t] * y[t] + z[t] * z[t]).sqrt()).collect();
        let (mean, deviation) = moments(&lengths);
        features.extend([logarithm(mean, sizes), logarithm(deviation, sizes)]);
        features.extend([(x, y), (x, z), (y, z)].map(|(a, b)| correlation(a, b)));
    }
    let gravity = [6, 7, 8].map(|channel| moments(&channels[channel]).0 / TILT);
    features.extend(gravity);
    features.extend(gravity.map(|mean| mean * mean));
    features
}

fn logarithm(value: f64, (floor, usual): (f64, f64)) -> f64 {
    ln((value + floor) / usual) / SPREAD
}

/// Mean and deviation over n.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    (mean, spread.sqrt())
}

/// 0 where one of the two does not vary.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let ((mean_a, deviation_a), (mean_b, deviation_b)) = (moments(a), moments(b));
    let product = deviation_a * deviation_b;
    if product <= 0.0 {
        return 0.0;
    }
    let sum: f64 = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    sum / a.len() as f64 / product
}

/// The discrete Fourier transform of 128 values.
pub(super) struct Transform {
    /// cos and sin of 2 pi j / 128.
    turns: Vec<(f64, f64)>,
}

impl Transform {
    pub(super) fn new() -> Self {
        // Half angles by square roots alone, then products: no elementary function whose bits a machine may choose.
        let mut cosine = 0.0f64;
        let mut angle = STEPS / 4;
        while angle > 1 {
            cosine = f64::midpoint(1.0, cosine).sqrt();
            angle /= 2;
        }
        let sine = (1.0 - cosine * cosine).sqrt();
        let mut turns = vec![(1.0, 0.0)];
        for j in 1..STEPS {
            let (c, s) = turns[j - 1];
            turns.push((c * cosine - s * sine, s * cosine + c * sine));
        }
        Self { turns }
    }

    /// The squared sizes of the first half of the coefficients.
    fn power(&self, values: &[f64]) -> Vec<f64> {
        // Decimation in time: bits of the position reversed, then pairs, fours, eights.
        let bits = STEPS.trailing_zeros();
        let mut z: Vec<(f64, f64)> =
            (0..STEPS).map(|i| (values[i.reverse_bits() >> (usize::BITS - bits)], 0.0)).collect();
        let mut half = 1;
        while half < STEPS {
            let stride = STEPS / (2 * half);
            for start in (0..STEPS).step_by(2 * half) {
                for j in 0..half {
                    let (c, s) = self.turns[j * stride];
                    let (re, im) = z[start + j + half];
                    // Times exp(-2 pi i j / (2 half)).
                    let (re, im) = (re * c + im * s, im * c - re * s);
                    let (a, b) = z[start + j];
                    z[start + j] = (a + re, b + im);
                    z[start + j + half] = (a - re, b - im);
                }
            }
            half *= 2;
        }
        z[..STEPS / 2].iter().map(|(re, im)| re * re + im * im).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_agrees_with_its_definition() {
        let values: Vec<f64> = (0..STEPS).map(|i| f64::from((i * i * 7 % 31) as u8) - 12.0).collect();
        let power = Transform::new().power(&values);
        for (k, power) in power.iter().enumerate() {
            let angle = |t: usize| 2.0 * std::f64::consts::PI * (k * t % STEPS) as f64 / STEPS as f64;
            let re: f64 = values.iter().enumerate().map(|(t, x)| x * angle(t).cos()).sum();
            let im: f64 = values.iter().enumerate().map(|(t, x)| x * angle(t).sin()).sum();
            assert!((re * re + im * im - power).abs() < 1e-6 * (1.0 + power), "{k}");
        }
    }

    #[test]
    fn a_pure_tone_is_in_its_band_and_stillness_is_at_the_floor() {
        let tone = |t: usize| (8192.0 * (2.0 * std::f64::consts::PI * 5.0 * t as f64 / 128.0).sin()) as i16;
        let mut window = vec![0i16; CHANNELS * STEPS];
        for (t, value) in window.iter_mut().enumerate().take(STEPS) {
            *value = tone(t);
        }
        let features = of(&window, 1.0 / 4096.0, &Transform::new());
        let names = names();
        assert_eq!(features.len(), names.len());
        let get = |name: &str| features[names.iter().position(|known| known == name).unwrap()];
        // A sine of amplitude 2 has the root mean square sqrt(2), all of it in bin 5.
        let loud = ((2f64.sqrt() + 1e-3) / 0.05).ln() / 1.5;
        assert!((get("level-body-x") - loud).abs() < 1e-3 && (get("band-body-x-3") - loud).abs() < 1e-3);
        let floor = (1e-3f64 / 0.05).ln() / 1.5;
        assert!((get("band-body-x-1") - floor).abs() < 0.2);
        assert_eq!(get("level-body-y"), get("band-body-z-6"));
        assert!((get("level-body-y") - floor).abs() < 1e-12);
        assert!(features.iter().all(|value| value.is_finite()));
        assert_eq!(get("together-body-xy"), 0.0);
    }
}
