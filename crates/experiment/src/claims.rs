//! What a paper claims, decided by paired differences of the measured curves.
//!
//! A check is `A < B` or `A > B`, with curve labels on both sides and, optionally, ` @ x` for a round (or a
//! swept value) other than the last; B may be a number, which A is compared with as shown; or `zcdp < N`: no client spent more than that; or `A @ x1 < A @ x2` between points. "Holds" needs a
//! difference in the claimed direction that Student's t tells from zero at 5 %, two-sided; "fails" the same in the other;
//! otherwise the claim is fragile.

use crate::compare::CurveResult;
use fedkin_config::Claim;
use fedkin_measure::{Shown, paired};
use fedkin_numeric::statistics::{moments, student};
use fedkin_report::Verdict;
use fedkin_run::Error;
use fedkin_settings::suggest;
use serde::Serialize;

/// A difference that chance alone makes this rarely decides a claim.
const LEVEL: f64 = 0.05;

/// A claim with what was found.
#[derive(Debug, Clone, Serialize)]
pub struct ClaimResult {
    /// What the paper says.
    pub text: String,
    /// Whether it holds here.
    pub verdict: Verdict,
    /// The numbers.
    pub evidence: String,
}

/// Decides every claim; `at` is where curves are read that a check names without a point.
pub(crate) fn judge(
    claims: &[Claim],
    curves: &[CurveResult],
    shown: Shown,
    at: Option<f64>,
) -> Result<Vec<ClaimResult>, Error> {
    claims
        .iter()
        .map(|claim| {
            let Some(check) = &claim.check else {
                let evidence = "no check is given for this claim".to_string();
                return Ok(ClaimResult { text: claim.text.clone(), verdict: Verdict::Untested, evidence });
            };
            let (verdict, evidence) = decide(check, curves, shown, at)?;
            Ok(ClaimResult { text: claim.text.clone(), verdict, evidence })
        })
        .collect()
}

fn decide(
    check: &str,
    curves: &[CurveResult],
    shown: Shown,
    at: Option<f64>,
) -> Result<(Verdict, String), Error> {
    let bad = |what: String| Error::Usage(format!("paper.claims check {check:?}: {what}"));
    if let Some(limit) = check.strip_prefix("zcdp < ") {
        let limit: f64 = limit.trim().parse().map_err(|_| bad(format!("{limit:?} is not a number")))?;
        return Ok(spent(limit, curves));
    }
    let (left, less, right) = if let Some((left, right)) = check.split_once(" < ") {
        (left, true, right)
    } else if let Some((left, right)) = check.split_once(" > ") {
        (left, false, right)
    } else {
        return Err(bad("expected `A < B` or `A > B`".into()));
    };
    let (a, at_a) = point(left, curves, at).map_err(bad)?;
    // A label that is a number comes before the number.
    let (gap, at_b, pairs) = match right.trim().parse::<f64>() {
        Ok(limit) if curves.iter().all(|curve| curve.label != right.trim()) => {
            let over = moments(&a.iter().map(|value| shown.value(*value) - limit).collect::<Vec<_>>());
            (over, limit.to_string(), "")
        }
        _ => {
            let (b, at_b) = point(right, curves, at).map_err(bad)?;
            (paired(a, b, shown), at_b, "paired, ")
        }
    };
    let (Some(stderr), Some(test)) = (gap.stderr, student(gap, a.len())) else {
        let evidence =
            format!("{at_a} minus {at_b}: {:.2} {}; one repeat has no error bar", gap.mean, shown.unit());
        return Ok((Verdict::Untested, evidence));
    };
    let toward = if less { -gap.mean } else { gap.mean };
    let verdict = match (test.p < LEVEL, toward > 0.0) {
        (true, true) => Verdict::Holds,
        (true, false) => Verdict::Fails,
        (false, _) => Verdict::Fragile,
    };
    // Decibels and percents are read to two places, plain numbers around 1 to three.
    let (unit, places) = match shown.unit() {
        "" => (String::new(), 3),
        unit => (format!(" {unit}"), 2),
    };
    let evidence = format!(
        "{at_a} minus {at_b}: {:+.places$} ± {:.places$}{unit}, 95 % from {:+.places$} to {:+.places$}, p {} ({pairs}{} repeats)",
        gap.mean,
        stderr,
        test.interval.0,
        test.interval.1,
        probability(test.p),
        a.len()
    );
    Ok((verdict, evidence))
}

/// Small probabilities by their size alone.
fn probability(p: f64) -> String {
    match p {
        ..1e-4 => "< 0.0001".to_string(),
        ..0.01 => format!("{p:.4}"),
        _ => format!("{p:.2}"),
    }
}

fn spent(limit: f64, curves: &[CurveResult]) -> (Verdict, String) {
    let most = curves.iter().map(|curve| &curve.privacy).max_by(|a, b| a.zcdp.total_cmp(&b.zcdp));
    let Some(privacy) = most else { return (Verdict::Untested, "no curve spent anything".into()) };
    let verdict = if privacy.zcdp < limit { Verdict::Holds } else { Verdict::Fails };
    let evidence = format!(
        "the client that paid most paid {:.3} zCDP, the mean is {:.3} (last repeat; only rounds it took part in count)",
        privacy.zcdp, privacy.mean_zcdp
    );
    (verdict, evidence)
}

fn point<'a>(
    text: &str,
    curves: &'a [CurveResult],
    read_at: Option<f64>,
) -> Result<(&'a [f64], String), String> {
    let (label, at) = match text.split_once(" @ ") {
        Some((label, x)) => {
            let x: f64 = x.trim().parse().map_err(|_| format!("{x:?} is not a number"))?;
            (label.trim(), Some(x))
        }
        None => (text.trim(), None),
    };
    let curve = curves.iter().find(|curve| curve.label == label).ok_or_else(|| {
        format!("no curve {label:?}{}", suggest(label, curves.iter().map(|c| c.label.as_str())))
    })?;
    let i = match at {
        // Where the table is read: the last point, or the last up to a limit.
        None => curve.points.iter().rposition(|p| read_at.is_none_or(|at| p.x <= at)).unwrap_or(0),
        // The nearest point that was evaluated.
        Some(x) => curve
            .points
            .iter()
            .enumerate()
            .min_by(|(_, p), (_, q)| (p.x - x).abs().total_cmp(&(q.x - x).abs()))
            .map_or(0, |(i, _)| i),
    };
    Ok((&curve.values[i], format!("{label} at {}", curve.points[i].x)))
}
