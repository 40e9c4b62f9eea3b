//! Numbers for people: as many digits as their error allows.

/// A mean with its standard error, such as `-18.23 ± 0.05`.
pub(crate) fn estimate(mean: f64, stderr: Option<f64>) -> String {
    // A mean of equal numbers has an error of a last bit.
    match stderr.filter(|error| error.is_finite() && *error > 1e-12 * mean.abs()) {
        Some(error) if mean.is_finite() => {
            // Two digits of the error say what it is worth; more than twelve are noise.
            let digits = (1 - error.log10().floor() as i32).clamp(0, 12) as usize;
            if mean.abs() >= 1e7 || (mean != 0.0 && mean.abs() < 1e-4) {
                format!("{mean:.3e} ± {error:.1e}")
            } else {
                format!("{mean:.digits$} ± {error:.digits$}")
            }
        }
        _ => plain(mean),
    }
}

/// Four significant digits.
pub(crate) fn plain(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !size.is_finite() {
        return value.to_string();
    }
    if !(1e-4..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let digits = (3 - size.log10().floor() as i32).max(0) as usize;
    format!("{value:.digits$}")
}

/// A count, or a mean of counts.
pub(crate) fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.1}") }
}

/// Six decimals, for values that are read by machines as often as by people.
pub(crate) fn digits(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e9).contains(&size) { format!("{value:.6e}") } else { format!("{value:.6}") }
}

/// A duration in the unit one would say it in.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 100.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours} h {minutes:02} min") } else { format!("{minutes} min {seconds:02} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_error() {
        assert_eq!(estimate(-18.2342, Some(0.0521)), "-18.234 ± 0.052");
        assert_eq!(estimate(1234.5, Some(60.0)), "1234 ± 60");
        assert_eq!(estimate(0.5, None), "0.5000");
        assert_eq!(estimate(f64::NAN, Some(0.1)), "NaN");
        assert_eq!(estimate(1.0, Some(0.0)), "1.000");
        assert_eq!(estimate(6.0 / 7.0, Some(5e-17)), "0.8571");
        assert_eq!(estimate(6.2e-10, Some(1.2e-10)), "6.200e-10 ± 1.2e-10");
    }

    #[test]
    fn sizes_and_durations_read_well() {
        assert_eq!(plain(12345.0), "12345");
        assert_eq!(plain(0.000_001), "1.000e-6");
        assert_eq!(plain(0.0), "0");
        assert_eq!((count(6.0), count(6.25)), ("6".into(), "6.2".into()));
        assert_eq!(duration(3.24), "3.2 s");
        assert_eq!(duration(125.0), "2 min 05 s");
        assert_eq!(duration(7300.0), "2 h 01 min");
    }
}
