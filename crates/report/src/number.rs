//! Numbers as text, with no more digits than their error allows.
//!
//! The page, the figures and the terminal round alike. What differs is the writing: a page has a real minus and raised
//! powers of ten, a terminal what can be typed and pasted.

/// A real minus sign is as wide as a plus; a hyphen is not, and columns would not line up.
const MINUS: &str = "\u{2212}";
const NOT_FINITE: &str = "not finite";
/// What an exponent is made of, as typed and as raised.
const RAISED: [(char, char); 11] = [
    ('-', '⁻'),
    ('0', '⁰'),
    ('1', '¹'),
    ('2', '²'),
    ('3', '³'),
    ('4', '⁴'),
    ('5', '⁵'),
    ('6', '⁶'),
    ('7', '⁷'),
    ('8', '⁸'),
    ('9', '⁹'),
];

/// A mean and its error, rounded to the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounded {
    /// The mean.
    pub mean: String,
    /// Its error, if it has one.
    pub error: Option<String>,
}

impl Rounded {
    /// Whether there is a number to line up with others.
    pub(super) fn is_number(&self) -> bool {
        self.mean != NOT_FINITE
    }

    /// `mean ± error`, or the mean alone.
    #[must_use]
    pub fn joined(&self) -> String {
        match &self.error {
            Some(error) => format!("{} ± {error}", self.mean),
            None => self.mean.clone(),
        }
    }

    /// The same for a terminal, such as `-18.23 ± 0.05`.
    #[must_use]
    pub fn typed(&self) -> String {
        typed(&self.joined())
    }
}

/// Rounds a mean to the place its standard error reaches: one digit of error, two if it starts
/// with 1 (where one digit would be off by up to a half). Without an error, four digits.
#[must_use]
pub fn estimate(mean: f64, stderr: Option<f64>) -> Rounded {
    if !mean.is_finite() {
        return Rounded { mean: NOT_FINITE.to_owned(), error: None };
    }
    let Some(error) = stderr.filter(|error| error.is_finite() && *error >= 0.0) else {
        return Rounded { mean: significant(mean, 4), error: None };
    };
    // A mean of equal numbers has an error of a last bit.
    if error <= 1e-12 * mean.abs() {
        return Rounded { mean: significant(mean, 4), error: Some("0".to_owned()) };
    }
    let power = exponent_of(mean.abs().max(error));
    let (unit, suffix) = if written_out(power) {
        (1.0, String::new())
    } else {
        (10_f64.powi(power), format!("×10{}", superscript(power)))
    };
    let (mean, error) = (mean / unit, error / unit);
    let place = exponent_of(error);
    let digits = if error / 10_f64.powi(place) < 2.0 { 2 } else { 1 };
    let decimals = digits - 1 - place;
    Rounded { mean: fixed(mean, decimals) + &suffix, error: Some(fixed(error, decimals) + &suffix) }
}

/// `value` with the given number of significant digits; whole numbers below a million as they are.
pub(super) fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return NOT_FINITE.to_owned();
    }
    if value == 0.0 || (value.fract() == 0.0 && value.abs() < 1e6) {
        return fixed(value, 0);
    }
    let power = exponent_of(value.abs());
    if written_out(power) { fixed(value, digits - 1 - power) } else { powered(value, digits) }
}

/// Whether a number of this size is read best without a power of ten.
fn written_out(power: i32) -> bool {
    (-4..6).contains(&power)
}

/// `value` as digits times a power of ten.
fn powered(value: f64, digits: i32) -> String {
    let power = exponent_of(value.abs());
    format!("{}×10{}", fixed(value / 10_f64.powi(power), digits - 1), superscript(power))
}

/// Four significant digits for a terminal, trailing zeros and all digits before the point included, so that numbers
/// in a column are of one kind.
#[must_use]
pub fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let power = exponent_of(value.abs());
    typed(&if written_out(power) { fixed(value, (3 - power).max(0)) } else { powered(value, 4) })
}

/// A count, or a mean of counts.
#[must_use]
pub fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.1}") }
}

/// Six decimals, for values that are read by machines as often as by people.
#[must_use]
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e9).contains(&size) { format!("{value:.6e}") } else { format!("{value:.6}") }
}

/// A duration in the unit one would say it in.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds < 100.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours} h {minutes:02} min") } else { format!("{minutes} min {seconds:02} s") }
}

/// A number of the page as it is typed: a hyphen for the minus and `e-7` for a power of ten.
fn typed(text: &str) -> String {
    text.replace(MINUS, "-").replace("×10", "e").chars().map(lowered).collect()
}

/// A parameter as it was set: up to six digits, no trailing zeros, and a power of ten as such.
pub(super) fn exact(value: f64) -> String {
    let text = significant(value, 6);
    let (digits, power) = match text.split_once('×') {
        Some((digits, power)) => (digits, Some(power)),
        None => (text.as_str(), None),
    };
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    match power {
        Some(power) if digits == "1" => power.to_owned(),
        Some(power) => format!("{digits}×{power}"),
        None => digits.to_owned(),
    }
}

/// Like [`significant`] with three digits, but never below `value`: a privacy loss must not be
/// understated by rounding.
pub(super) fn rounded_up(value: f64) -> String {
    if value.is_infinite() && value > 0.0 {
        return "∞".to_owned();
    }
    if !value.is_finite() || value <= 0.0 {
        return significant(value, 3);
    }
    let unit = 10_f64.powi(exponent_of(value) - 2);
    let steps = value / unit;
    // The tolerance keeps an exact 0.3 from becoming 0.301 by a stray last bit.
    significant((steps - 1e-9).ceil() * unit, 3)
}

/// `value` with `decimals` places; negative places round to tens, hundreds and so on.
pub(super) fn fixed(value: f64, decimals: i32) -> String {
    let text = if decimals < 0 {
        let unit = 10_f64.powi(-decimals);
        format!("{:.0}", (value / unit).round() * unit)
    } else {
        format!("{value:.*}", decimals as usize)
    };
    match text.strip_prefix('-') {
        // No minus before a zero.
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        Some(rest) => format!("{MINUS}{rest}"),
        None => text,
    }
}

/// The power of ten at or below a positive number.
pub(super) fn exponent_of(positive: f64) -> i32 {
    // log10 of 1000 may come out a bit below 3; the nudge is far smaller than any digit shown.
    (positive.log10() + 1e-12).floor() as i32
}

/// An integer in raised digits.
pub(super) fn superscript(power: i32) -> String {
    let raised = |c: char| RAISED.iter().find(|pair| pair.0 == c).map_or(c, |pair| pair.1);
    power.to_string().chars().map(raised).collect()
}

fn lowered(c: char) -> char {
    RAISED.iter().find(|pair| pair.1 == c).map_or(c, |pair| pair.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_error() {
        assert_eq!(estimate(-18.2345, Some(0.0512)).joined(), "−18.23 ± 0.05");
        assert_eq!(estimate(-18.2341, Some(0.0151)).joined(), "−18.234 ± 0.015");
        assert_eq!(estimate(12_345.0, Some(2310.0)).joined(), "12000 ± 2000");
        assert_eq!(estimate(0.3, Some(12.0)).joined(), "0 ± 12");
        assert_eq!(estimate(0.123_456, None).joined(), "0.1235");
        assert_eq!(estimate(300.0, None).joined(), "300");
        assert_eq!(estimate(2.5, Some(0.0)).joined(), "2.500 ± 0");
        assert_eq!(estimate(6.0 / 7.0, Some(5e-17)).joined(), "0.8571 ± 0");
        assert_eq!(estimate(0.0, Some(0.0)).joined(), "0 ± 0");
        assert_eq!(estimate(f64::NAN, Some(0.1)).joined(), "not finite");
        assert_eq!(estimate(1.0, Some(f64::NAN)).joined(), "1");
    }

    #[test]
    fn very_small_and_very_large_numbers_use_powers_of_ten() {
        assert_eq!(estimate(1.234e-7, Some(3e-9)).joined(), "1.23×10⁻⁷ ± 0.03×10⁻⁷");
        assert_eq!(significant(2.5e9, 3), "2.50×10⁹");
    }

    #[test]
    fn a_terminal_gets_the_same_digits_as_they_are_typed() {
        assert_eq!(estimate(-18.2342, Some(0.0521)).typed(), "-18.23 ± 0.05");
        assert_eq!(estimate(1234.5, Some(60.0)).typed(), "1230 ± 60");
        assert_eq!(estimate(0.5, None).typed(), "0.5000");
        assert_eq!(estimate(f64::NAN, Some(0.1)).typed(), "not finite");
        assert_eq!(estimate(6.2e-10, Some(1.2e-10)).typed(), "6.2e-10 ± 1.2e-10");
        assert_eq!(
            (plain(12345.0), plain(2.0), plain(-0.4384)),
            ("12345".into(), "2.000".into(), "-0.4384".into())
        );
        assert_eq!((plain(0.000_001), plain(-2.5e9)), ("1.000e-6".into(), "-2.500e9".into()));
        assert_eq!((plain(0.0), plain(f64::INFINITY)), ("0".into(), "inf".into()));
    }

    #[test]
    fn counts_and_durations_read_well() {
        assert_eq!((count(6.0), count(6.25)), ("6".into(), "6.2".into()));
        assert_eq!(duration(3.24), "3.2 s");
        assert_eq!(duration(125.0), "2 min 05 s");
        assert_eq!(duration(7300.0), "2 h 01 min");
    }

    #[test]
    fn zero_has_no_sign_and_minus_is_a_minus() {
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(-1.5, 1), "−1.5");
    }

    #[test]
    fn parameters_are_shown_as_they_were_set() {
        assert_eq!(exact(1e-5), "10⁻⁵");
        assert_eq!(exact(2.5e-6), "2.5×10⁻⁶");
        assert_eq!(exact(0.05), "0.05");
        assert_eq!(exact(10.0), "10");
    }

    #[test]
    fn privacy_loss_is_never_understated() {
        assert_eq!(rounded_up(1.2301), "1.24");
        assert_eq!(rounded_up(0.3), "0.300");
        assert_eq!(rounded_up(12.0), "12");
        assert_eq!(rounded_up(f64::INFINITY), "∞");
    }
}
