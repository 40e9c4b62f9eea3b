//! Several methods on the same worlds: curves over rounds or over a swept key, with paired differences.

use crate::artifacts::metrics::Metrics;
use crate::axis::Axis;
use crate::by_client::{self, ByClient};
use crate::claims::{self, ClaimResult};
use crate::config::{self, Config, Curve, Override, Source};
use crate::error::Error;
use crate::plan::{Plan, tables};
use crate::repeat::{Control, Resume, distinct, run_repeat};
use crate::report::Point;
use crate::run::{PrivacySummary, RunDirectory, checkpoint_interval};
use crate::scorer::{Metric, Shown};
use crate::spending::{ASSUMED, INTERPOLATES, REFUTED, is_spent};
use crate::statistics::{Estimate, estimate};
use crate::theory::{self, Theory};
use fedkin_core::params::Value;
use fedkin_core::privacy::Trust;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// One curve with what it was made of.
#[derive(Debug, Clone, Serialize)]
pub struct CurveResult {
    /// Its name.
    pub label: String,
    /// Its colour key.
    pub method: String,
    /// The headline metric over x.
    pub points: Vec<Point>,
    /// All metrics after the last round that is read (for a sweep, of its last value), as shown.
    pub r#final: BTreeMap<String, Point>,
    /// What its clients spent in the last repeat (of the swept value that cost most).
    pub privacy: PrivacySummary,
    /// By swept value, or once: epsilon of the client that spent most in any repeat; absent where nothing protects.
    pub epsilon: Vec<Option<f64>>,
    /// By point, then by repeat: the headline metric before it is shown.
    #[serde(skip)]
    pub values: Vec<Vec<f64>>,
    /// By metric, then by repeat: the last value before it is shown.
    #[serde(skip)]
    pub last: BTreeMap<String, Vec<f64>>,
    /// By metric, then by client: means over repeats as shown, where clients are few and learn a graph each or give
    /// probabilities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_client: BTreeMap<String, Vec<Point>>,
    /// Every client's value of the headline metric after the first repeat.
    #[serde(skip)]
    pub clients: Vec<f64>,
}

/// What a comparison gave: `--json` of `fedkin reproduce`.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The experiment.
    pub name: String,
    /// Where its report is.
    pub run: PathBuf,
    /// The headline metric.
    pub metric: String,
    /// Its unit as shown.
    pub unit: &'static str,
    /// What x is: `round`, the number that `evaluate.against` names, or the swept key.
    pub x: String,
    /// Repeats with seeds of their own.
    pub repeats: u32,
    /// Wall-clock time.
    pub seconds: f64,
    /// The curves.
    pub curves: Vec<CurveResult>,
    /// What the paper claims and what was found.
    pub claims: Vec<ClaimResult>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The names of the clients of `by_client`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
    /// How the metric is shown.
    #[serde(skip)]
    pub shown: Shown,
    /// What curves are drawn over, and where they are read.
    #[serde(skip)]
    pub axis: Axis,
    /// The base config.
    #[serde(skip)]
    pub config: Config,
    /// What theory says beside what was measured.
    #[serde(skip)]
    pub theory: Theory,
    /// The graphs that were learnt in the first repeat.
    #[serde(skip)]
    pub pictures: Vec<crate::report::Picture>,
    /// Name, clusters per server, edges: the world of the first repeat.
    #[serde(skip)]
    pub graph: Option<crate::report::ServerGraph>,
}

struct Job {
    plan: Arc<Plan>,
    curve: usize,
    point: usize,
    repeat: u32,
    name: String,
}

struct Done {
    curve: usize,
    point: usize,
    metrics: Metrics,
    privacy: PrivacySummary,
    clients: Vec<f64>,
    by_client: ByClient,
    names: Vec<String>,
    warnings: Vec<String>,
    pictures: Vec<crate::report::Picture>,
    graph: Option<crate::report::ServerGraph>,
}

/// A comparison that is ready to run.
pub struct Prepared {
    source: Source,
    base: PathBuf,
    overrides: Vec<Override>,
    config: Config,
    curves: Vec<Curve>,
    jobs: Vec<Job>,
}

impl Prepared {
    /// Reads an experiment with its curves and its sweep; checks everything before anything runs.
    pub fn new(source: &Source, base: &Path, overrides: &[Override]) -> Result<Self, Error> {
        let config = config::load(source, overrides, &tables())?;
        let curves = if config.curves.is_empty() {
            vec![Curve { label: config.algorithm.clone(), method: None, set: Vec::new(), along: Vec::new() }]
        } else {
            config.curves.clone()
        };
        let points = config.sweep.as_ref().map_or(1, |sweep| sweep.values.len());
        let mut jobs = Vec::new();
        for (c, curve) in curves.iter().enumerate() {
            for point in 0..points {
                let step: Vec<Override> = config.sweep.iter().filter_map(|sweep| sweep.step(point)).collect();
                let plan =
                    Arc::new(Plan::load(source, base, overrides, &[&curve.set, curve.at(point), &step])?);
                if plan.ledger().is_some() {
                    return Err(Error::Usage(
                        "privacy.ledger is for `fedkin run`: the curves of a comparison draw and use the same data \
                         side by side; remove it to compare"
                            .into(),
                    ));
                }
                for repeat in 0..plan.repeats() {
                    let plan = Arc::clone(&plan);
                    jobs.push(Job {
                        plan,
                        curve: c,
                        point,
                        repeat,
                        name: format!("{c:02}-{point:02}-{repeat:04}"),
                    });
                }
            }
        }
        let (source, base) = (source.clone(), base.to_path_buf());
        Ok(Self { source, base, overrides: overrides.to_vec(), config, curves, jobs })
    }

    /// The name of the experiment.
    pub fn name(&self) -> &str {
        self.config.run.text("name").unwrap_or("experiment")
    }

    /// What to warn of before anything is spent: curves that claim more privacy than is sure, or that cannot learn much.
    pub fn doubts(&self) -> Vec<&'static str> {
        let of_any = |doubt: &&str| self.jobs.iter().any(|job| job.plan.doubt() == Some(*doubt));
        [ASSUMED, REFUTED, INTERPOLATES].into_iter().filter(of_any).collect()
    }

    /// How many rounds there are to run in all.
    pub fn rounds(&self) -> u64 {
        self.jobs.iter().map(|job| u64::from(job.plan.rounds())).sum()
    }

    /// Runs all curves into a directory, going on from what is there.
    pub fn run(&self, out: &Path, control: &Control<'_>) -> Result<Comparison, Error> {
        let started = Instant::now();
        let directory = RunDirectory::new(out);
        let _lock = directory.claim(&self.config)?;
        let done: Vec<Done> = self
            .jobs
            .par_iter()
            .map(|job| {
                let path = directory.checkpoint(&job.name)?;
                let every = checkpoint_interval(&job.plan);
                let resume = every.map(|every| Resume { path: &path, every: Some(every) });
                let by_client = self.config.sweep.is_none() && by_client::wanted(&job.plan);
                let keep = job.repeat == 0 || by_client;
                let outcome = run_repeat(&job.plan, job.repeat, resume.as_ref(), keep, control)?;
                let names = if by_client { by_client::names(&outcome) } else { Vec::new() };
                let by_client = if by_client { by_client::of(&outcome) } else { ByClient::new() };
                let headline = headline(&job.plan.config, &outcome.metrics);
                let column = outcome.columns.iter().position(|name| *name == headline);
                let clients = column.map_or(Vec::new(), |c| outcome.rows.iter().map(|row| row[c]).collect());
                let graph = outcome.end.as_ref().map(|(world, _)| crate::figures::server_graph(world));
                let pictures = if self.config.sweep.is_none() && job.repeat == 0 {
                    crate::figures::graphs::of_run(&job.plan, &outcome, &self.curves[job.curve].label)
                } else {
                    Vec::new()
                };
                Ok(Done {
                    curve: job.curve,
                    point: job.point,
                    privacy: PrivacySummary::new(&job.plan, &outcome.spent),
                    metrics: outcome.metrics,
                    clients,
                    by_client,
                    names,
                    warnings: outcome.warnings,
                    pictures,
                    graph: graph.filter(|_| job.curve == 0 && job.point == 0 && !job.plan.row.graphs),
                })
            })
            .collect::<Result<_, Error>>()?;
        let mut comparison = self.collect(out, done)?;
        if self.config.paper.as_ref().is_some_and(|paper| paper.theory) {
            comparison.theory =
                theory::panel(&self.config.algorithm, &self.source, &self.base, &self.overrides, control)?;
        }
        comparison.seconds = started.elapsed().as_secs_f64();
        let mut all = Metrics::default();
        let by_round = self.config.sweep.is_none() && comparison.axis.against.is_none();
        for curve in &comparison.curves {
            for (point, values) in curve.points.iter().zip(&curve.values) {
                for (repeat, &value) in values.iter().enumerate() {
                    let metric = format!("{} of {}", comparison.metric, curve.label);
                    let round = if by_round { point.x as u32 } else { 0 };
                    let node = if by_round { String::new() } else { format!("{}={}", comparison.x, point.x) };
                    let row = crate::artifacts::metrics::Row {
                        repeat: repeat as u32,
                        round,
                        node: &node,
                        metric: &metric,
                        value,
                    };
                    all.push(row);
                }
            }
        }
        all.write(&out.join(crate::artifacts::metrics::NAME))?;
        directory.complete(&comparison)?;
        Ok(comparison)
    }

    fn collect(&self, out: &Path, done: Vec<Done>) -> Result<Comparison, Error> {
        let metric = done.first().map_or_else(String::new, |first| headline(&self.config, &first.metrics));
        let shown = Metric::shown(&metric);
        let last_round = self.config.run.integer("rounds").unwrap_or(1) as u32;
        let axis = Axis::new(&self.config);
        let read =
            |done: &Done, metric: &str| at_round(&done.metrics, metric, axis.last_round(&done.metrics)?);
        let mut curves: Vec<CurveResult> = Vec::new();
        for (c, curve) in self.curves.iter().enumerate() {
            let mine: Vec<&Done> = done.iter().filter(|done| done.curve == c).collect();
            // A curve may look at another of the models; it is shown on the axis of the headline.
            let own = self.jobs.iter().find(|job| job.curve == c).map(|job| &job.plan.config);
            let metric = mine
                .first()
                .zip(own)
                .map_or_else(|| metric.clone(), |(first, config)| headline(config, &first.metrics));
            let (x, values) = match &self.config.sweep {
                None => {
                    let repeats: Vec<&Metrics> = mine.iter().map(|done| &done.metrics).collect();
                    axis.curve(&repeats, &metric, last_round)
                }
                Some(sweep) => {
                    let values = (0..sweep.values.len())
                        .map(|point| {
                            let here = mine.iter().filter(|done| done.point == point);
                            here.filter_map(|done| read(done, &metric)).collect()
                        })
                        .collect();
                    (sweep.values.iter().enumerate().map(|(i, value)| number(value, i)).collect(), values)
                }
            };
            let counted = |name: &str| mine.iter().any(|done| names(&done.metrics).iter().any(|n| n == name));
            if let Some(against) = axis.against.as_deref().filter(|name| !counted(name)) {
                return Err(Error::Usage(format!(
                    "evaluate.against {against:?} is not counted by {:?}; counted: {}",
                    curve.label,
                    mine.first().map_or_else(String::new, |done| {
                        let all = names(&done.metrics).into_iter().filter(|name| !name.contains('.'));
                        all.collect::<Vec<_>>().join(", ")
                    })
                )));
            }
            if values.iter().all(Vec::is_empty) {
                return Err(Error::Usage(format!(
                    "evaluate.metric {metric:?} is not measured for {:?}; measured: {}",
                    curve.label,
                    mine.first().map_or_else(String::new, |done| names(&done.metrics).join(", "))
                )));
            }
            let points: Vec<Point> = x
                .iter()
                .zip(&values)
                .map(|(&x, values): (&f64, &Vec<f64>)| {
                    let Estimate { mean, stderr } = estimate(values, shown);
                    Point { x, mean, stderr }
                })
                .collect();
            if self.config.sweep.is_none() && axis.position(&points).is_none() {
                return Err(Error::Usage(format!(
                    "evaluate.at = {} is before the first evaluation of {:?}, at {} {}: raise it, or lower evaluate.every",
                    axis.at.unwrap_or_default(),
                    curve.label,
                    points.first().map_or(f64::NAN, |point| point.x),
                    axis.words()
                )));
            }
            let mut last: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            let final_point = self.config.sweep.as_ref().map_or(0, |sweep| sweep.values.len() - 1);
            for done in mine.iter().filter(|done| done.point == final_point) {
                for name in names(&done.metrics) {
                    if let Some(value) = read(done, &name) {
                        last.entry(name).or_default().push(value);
                    }
                }
            }
            let r#final = last
                .iter()
                .map(|(name, values)| {
                    let Estimate { mean, stderr } = estimate(values, Metric::shown(name));
                    (name.clone(), Point { x: axis.at.unwrap_or(f64::from(last_round)), mean, stderr })
                })
                .collect();
            let method = curve.method.clone().unwrap_or_else(|| self.method(c));
            let epsilon = (0..=final_point)
                .map(|point| {
                    let here = mine.iter().filter(|done| done.point == point);
                    here.filter_map(|done| done.privacy.epsilon).max_by(f64::total_cmp)
                })
                .collect();
            // The last repeat of each swept value, and of these the one that cost most.
            let ends = (0..=final_point).filter_map(|p| mine.iter().rfind(|done| done.point == p));
            let end = ends
                .max_by(|a, b| a.privacy.cost().total_cmp(&b.privacy.cost()))
                .unwrap_or(&mine[mine.len() - 1]);
            let privacy = end.privacy.clone();
            let clients = mine[0].clients.clone();
            let each: Vec<&ByClient> = mine.iter().map(|done| &done.by_client).collect();
            curves.push(CurveResult {
                label: curve.label.clone(),
                method,
                points,
                r#final,
                privacy,
                epsilon,
                values,
                last,
                by_client: by_client::points(&each),
                clients,
            });
        }
        let claims = match &self.config.paper {
            Some(paper) => {
                claims::judge(&paper.claims, &curves, shown, axis.at.filter(|_| self.config.sweep.is_none()))?
            }
            None => Vec::new(),
        };
        let mut warnings: Vec<String> = done.iter().flat_map(|done| done.warnings.iter().cloned()).collect();
        if curves.iter().any(|curve| curve.privacy.bound.starts_with("assumed")) {
            warnings.push(ASSUMED.into());
        }
        if curves.iter().any(|curve| curve.privacy.bound == Trust::Refuted.words()) {
            warnings.push(REFUTED.into());
        }
        let warnings = distinct(warnings);
        Ok(Comparison {
            name: self.name().to_string(),
            run: out.to_path_buf(),
            metric,
            unit: shown.unit(),
            x: self.config.sweep.as_ref().map_or_else(|| axis.name().to_string(), |sweep| sweep.key.clone()),
            repeats: self.config.run.integer("repeats").unwrap_or(1) as u32,
            seconds: 0.0,
            curves,
            clients: done.first().map(|done| done.names.clone()).unwrap_or_default(),
            pictures: done.iter().flat_map(|done| done.pictures.iter().cloned()).collect(),
            claims,
            warnings,
            shown,
            axis,
            config: self.config.clone(),
            theory: Theory::default(),
            graph: done.into_iter().find_map(|done| done.graph),
        })
    }

    fn method(&self, curve: usize) -> String {
        let job = self.jobs.iter().find(|job| job.curve == curve);
        job.map_or_else(String::new, |job| job.plan.row.name.to_string())
    }
}

/// The metric that a config's curve shows.
fn headline(config: &Config, metrics: &Metrics) -> String {
    if let Some(metric) = config.evaluate.text("metric") {
        return metric.to_string();
    }
    let first = metrics.rows().find(|row| row.metric.contains('.'));
    first.map_or_else(String::new, |row| row.metric.to_string())
}

/// A metric at a round, or its last value up to there.
fn at_round(metrics: &Metrics, metric: &str, round: u32) -> Option<f64> {
    metrics
        .rows()
        .filter(|row| row.node.is_empty() && row.metric == metric && row.round <= round)
        .max_by_key(|row| row.round)
        .map(|row| row.value)
}

fn names(metrics: &Metrics) -> Vec<String> {
    let of_all = metrics.rows().filter(|row| row.node.is_empty() && !is_spent(row.metric));
    let mut names: Vec<String> = of_all.map(|row| row.metric.to_string()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A swept value as a coordinate: itself where it is a number, else its position.
fn number(value: &Value, position: usize) -> f64 {
    match value {
        Value::Number(x) => *x,
        Value::Integer(x) => *x as f64,
        _ => position as f64,
    }
}
