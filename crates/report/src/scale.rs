//! From values to positions, and which values deserve a tick.

use super::Scale;
use super::number::{exponent_of, fixed, superscript};

/// An axis: a range of values laid along a range of positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    pub scale: Scale,
    pub start: f64,
    pub end: f64,
}

/// A value worth a mark.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub value: f64,
    pub label: String,
}

/// Whether a value has a place on a scale.
pub(super) fn fits(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

impl Axis {
    /// An axis over the values that fit its scale; `padding` is the share of empty room at either
    /// end. Without values, or with only one, the range is opened around it.
    pub(super) fn over(
        values: impl Iterator<Item = f64>,
        scale: Scale,
        padding: f64,
        (start, end): (f64, f64),
    ) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| fits(scale, *value)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = if scale == Scale::Log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if scale == Scale::Log {
            let span = (high / low).log10();
            let room = if span < 1e-9 { 0.5 } else { span * padding };
            low /= 10_f64.powf(room);
            high *= 10_f64.powf(room);
        } else if high - low <= 1e-12 * low.abs().max(high.abs()) {
            let room = if low == 0.0 { 0.5 } else { low.abs() * 0.1 };
            low -= room;
            high += room;
        } else {
            let room = (high - low) * padding;
            // A measure that starts near zero is read against zero.
            let from_zero = padding > 0.0 && low >= 0.0 && low < 0.25 * high;
            low = if from_zero { 0.0 } else { low - room };
            high += room;
        }
        Self { low, high, scale, start, end }
    }

    /// The position of a value, if it fits the scale. Values outside the range stop at its ends.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        fits(self.scale, value).then(|| self.clamped(value))
    }

    /// The position of a value, where one that does not fit (zero on a log axis) goes to the low
    /// end: the lower edge of an error band may well lie below zero.
    pub(super) fn clamped(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Log => 0.0,
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.start + share * (self.end - self.start)
    }

    /// About `wanted` ticks at round values.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high, wanted),
            Scale::Log => log_ticks(self.low, self.high, wanted),
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    let raw = (high - low) / wanted.max(1) as f64;
    if !raw.is_finite() || raw <= 0.0 {
        return Vec::new();
    }
    let power = exponent_of(raw);
    let mantissa = raw / 10_f64.powi(power);
    // The bounds are the geometric means of neighbouring factors.
    let (factor, power) = match mantissa {
        m if m <= 1.42 => (1.0, power),
        m if m <= 3.17 => (2.0, power),
        m if m <= 7.08 => (5.0, power),
        _ => (1.0, power + 1),
    };
    let step = factor * 10_f64.powi(power);
    let tolerance = 1e-9;
    let first = (low / step - tolerance).ceil() as i64;
    let last = (high / step + tolerance).floor() as i64;
    let largest = exponent_of(low.abs().max(high.abs()));
    // Either all ticks carry a power of ten or none does.
    let shared = if largest >= 6 || power < -4 { largest } else { 0 };
    (first..=last)
        .map(|index| {
            let value = index as f64 * step;
            let decimals = (shared - power).max(0);
            let digits = fixed(value / 10_f64.powi(shared), decimals);
            let label = if shared == 0 || value == 0.0 {
                if value == 0.0 { "0".to_owned() } else { digits }
            } else {
                format!("{digits}×10{}", superscript(shared))
            };
            Tick { value, label }
        })
        .collect()
}

/// Powers of ten; over less than two decades also 2 and 5 times them; over a sliver, round values.
fn log_ticks(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    let tolerance = 1e-9;
    let first = (low.log10() - tolerance).ceil() as i32;
    let last = (high.log10() + tolerance).floor() as i32;
    let decades = (high / low).log10();
    if decades >= 2.0 {
        let stride = (f64::from(last - first + 1) / wanted.max(2) as f64).ceil().max(1.0) as i32;
        let plain = first >= -3 && last <= 4;
        return (first..=last)
            .filter(|power| power.rem_euclid(stride) == 0)
            .map(|power| Tick {
                value: 10_f64.powi(power),
                label: if plain {
                    fixed(10_f64.powi(power), (-power).max(0))
                } else {
                    format!("10{}", superscript(power))
                },
            })
            .collect();
    }
    let ticks: Vec<Tick> = (first - 1..=last)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| (factor, power)))
        .filter_map(|(factor, power)| {
            let value = factor * 10_f64.powi(power);
            let inside = value >= low * (1.0 - tolerance) && value <= high * (1.0 + tolerance);
            let label = if (-4..6).contains(&power) {
                fixed(value, (-power).max(0))
            } else if factor > 1.0 {
                format!("{factor:.0}×10{}", superscript(power))
            } else {
                format!("10{}", superscript(power))
            };
            inside.then_some(Tick { value, label })
        })
        .collect();
    if ticks.len() >= 3 { ticks } else { linear_ticks(low, high, wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(&linear_ticks(0.0, 300.0, 6)), ["0", "50", "100", "150", "200", "250", "300"]);
        assert_eq!(labels(&linear_ticks(-18.4, 0.3, 5)), ["−15", "−10", "−5", "0"]);
        assert_eq!(labels(&linear_ticks(0.0, 0.031, 3)), ["0", "0.01", "0.02", "0.03"]);
        assert_eq!(labels(&linear_ticks(0.0, 2.1e7, 2)), ["0", "1×10⁷", "2×10⁷"]);
    }

    #[test]
    fn log_ticks_are_powers_of_ten() {
        assert_eq!(labels(&log_ticks(0.01, 100.0, 6)), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(&log_ticks(3e-7, 2e-2, 6)), ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²"]);
        assert_eq!(labels(&log_ticks(0.9, 21.0, 6)), ["1", "2", "5", "10", "20"]);
        assert!(log_ticks(1e-12, 1.0, 6).len() <= 7);
    }

    #[test]
    fn an_axis_without_values_or_with_one_still_has_a_range() {
        for scale in [Scale::Linear, Scale::Log] {
            for values in [vec![], vec![f64::NAN], vec![3.0]] {
                let axis = Axis::over(values.into_iter(), scale, 0.05, (0.0, 100.0));
                assert!(axis.low < axis.high && axis.low.is_finite() && axis.high.is_finite());
                assert!(!axis.ticks(5).is_empty());
            }
        }
    }

    #[test]
    fn what_has_no_place_gets_none() {
        let axis = Axis::over([1.0, 100.0].into_iter(), Scale::Log, 0.0, (0.0, 10.0));
        assert_eq!(axis.place(0.0), None);
        assert_eq!(axis.place(f64::INFINITY), None);
        assert!((axis.place(10.0).unwrap_or(0.0) - 5.0).abs() < 1e-9);
        assert!(axis.clamped(-1.0).abs() < 1e-9);
    }
}
