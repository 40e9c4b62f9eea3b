//! Choosing the settings of a curve from its grid, by validation records alone.
//!
//! Every point is run with the seeds of the first reported repeats, so on their data; the test records of these are measured as
//! in any run, but nothing here reads them.

use fedkin_config::{Override, Tune};
use fedkin_measure::{Estimate, Shown, estimate};
use fedkin_run::artifacts::metrics::Metrics;
use fedkin_run::{Error, Plan, VALIDATION, Warning};
use fedkin_settings::Value;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The points of one curve's grid, each as it is tried and as it would be reported.
pub(crate) struct Grid {
    pub(crate) curve: usize,
    pub(crate) points: Vec<Vec<Override>>,
    pub(crate) trials: Vec<Arc<Plan>>,
    pub(crate) plans: Vec<Arc<Plan>>,
    /// The metric with the model that the curve shows.
    pub(crate) metric: String,
    /// How it is shown.
    pub(crate) shown: Shown,
}

/// What a trial gave: a validation score, or why there is none.
pub(crate) type Scored = Result<f64, String>;

/// One point of a grid.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// The keys and their values.
    pub set: BTreeMap<String, serde_json::Value>,
    /// The validation metric as shown: mean over clients and tuning repeats. Absent where a repeat failed.
    pub score: Option<f64>,
    /// Its standard error over tuning repeats.
    pub stderr: Option<f64>,
    /// Why there is no score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Whether this is what was taken.
    pub taken: bool,
}

/// How the settings of one curve were chosen.
#[derive(Debug, Clone, Serialize)]
pub struct Tuning {
    /// The curve.
    pub label: String,
    /// The validation metric.
    pub metric: String,
    /// Repeats of every point.
    pub repeats: u32,
    /// Rounds of every point.
    pub rounds: u32,
    /// All points, in the order of the grid.
    pub grid: Vec<Tried>,
}

impl Tried {
    /// The settings in words.
    pub fn words(&self) -> String {
        let word = |(key, value): (&String, &serde_json::Value)| {
            let key = key.strip_prefix("algorithm.").unwrap_or(key);
            format!("{key} = {value}")
        };
        self.set.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

impl Tuning {
    /// What to know where other points were as good as the one taken: records or rounds of tuning did not tell them apart.
    pub(crate) fn tie(&self) -> Option<Warning> {
        let best = self.grid.iter().find(|tried| tried.taken)?.score;
        let equal = self.grid.iter().filter(|tried| tried.score.is_some() && tried.score == best).count();
        (equal > 1).then(|| Warning::Tie { curve: self.label.clone(), points: equal })
    }
}

/// The metric that a grid is compared by: on the model of the curve's headline, or the first that is evaluated.
pub(crate) fn metric_of(plan: &Plan, tune: &Tune) -> String {
    let evaluate = &plan.config.evaluate;
    let headline = evaluate.metric.as_deref().and_then(|name| name.split_once('.'));
    let personal = |name: &String| plan.row.personal.iter().find(|model| *model == name).copied();
    let wanted = evaluate.models.iter().find_map(personal);
    let model = headline.map(|(_, model)| model).or(wanted).or(plan.row.personal.first().copied());
    format!("{}.{}", tune.metric.word(), model.unwrap_or_default())
}

/// Refuses to tune without validation records, before anything runs.
pub(crate) fn check(plan: &Plan, label: &str) -> Result<(), Error> {
    if plan.about().validation {
        return Ok(());
    }
    Err(Error::Conflict {
        place: plan.place().to_string(),
        message: format!("the grid of curve {label:?} needs {VALIDATION}"),
    })
}

/// The last value of the metric over all clients; a trial that diverged has none and loses, other errors stop everything.
pub(crate) fn scored(metrics: Result<Metrics, Error>, metric: &str, label: &str) -> Result<Scored, Error> {
    let metrics = match metrics {
        Ok(metrics) => metrics,
        Err(Error::Stopped { sentence, .. }) => return Ok(Err(sentence)),
        Err(error) => return Err(error),
    };
    let of_all = metrics.rows().filter(|row| row.node.is_empty() && row.metric == metric);
    match of_all.max_by_key(|row| row.round) {
        Some(row) if row.value.is_finite() => Ok(Ok(row.value)),
        Some(row) => Ok(Err(format!("its {metric} is {}", row.value))),
        None => Err(Error::Usage(format!(
            "tune.metric: {metric} is not measured for {label:?}: the grid needs {VALIDATION}"
        ))),
    }
}

/// Takes the best point; of equal ones the first.
pub(crate) fn choose(label: &str, grid: &Grid, scores: &[Vec<Scored>]) -> Result<(usize, Tuning), Error> {
    let shown = grid.shown;
    let sign = if shown.higher_is_better() { 1.0 } else { -1.0 };
    let mut tried: Vec<Tried> = Vec::new();
    let mut best: Option<(usize, f64)> = None;
    for (i, (point, scores)) in grid.points.iter().zip(scores).enumerate() {
        let values: Result<Vec<f64>, &String> =
            scores.iter().map(|one| one.as_ref().map(|value| *value)).collect();
        let (score, failed) = match values {
            Ok(values) => (Some(estimate(&values, shown)), None),
            Err(reason) => (None, Some(reason.clone())),
        };
        if let Some(Estimate { mean, .. }) = score
            && best.is_none_or(|(_, so_far)| sign * mean > sign * so_far)
        {
            best = Some((i, mean));
        }
        tried.push(Tried {
            set: point.iter().map(|set| (set.key.clone(), json(&set.value))).collect(),
            score: score.map(|score| score.mean),
            stderr: score.and_then(|score| score.stderr),
            failed,
            taken: false,
        });
    }
    let Some((best, _)) = best else {
        let reason = tried.iter().find_map(|one| one.failed.clone()).unwrap_or_default();
        return Err(Error::Usage(format!(
            "no point of the grid of curve {label:?} ended well; the first: {reason}"
        )));
    };
    tried[best].taken = true;
    let tuning = Tuning {
        label: label.to_string(),
        metric: grid.metric.clone(),
        repeats: scores.first().map_or(0, Vec::len) as u32,
        rounds: grid.trials[best].rounds(),
        grid: tried,
    };
    Ok((best, tuning))
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Number(x) => serde_json::Value::from(*x),
        Value::Integer(x) => serde_json::Value::from(*x),
        Value::Flag(x) => serde_json::Value::from(*x),
        Value::Text(text) => serde_json::Value::from(text.as_str()),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
    }
}
