//! Several methods on the same worlds: curves over rounds or over a swept key, with paired differences.

mod collect;

use crate::axis::Axis;
use crate::by_client::{self, ByClient};
use crate::claims::ClaimResult;
use crate::pictures;
use crate::theory::{self, Theory};
use crate::tuning::{self, Grid, Scored, Tuning};
use fedkin_config::{Config, Curve, Kin, LearnerTable, Override, Parsed, Source};
use fedkin_measure::{MetricTable, Shown, Spread};
use fedkin_method::Baseline;
use fedkin_report::Point;
use fedkin_run::artifacts::metrics::Metrics;
use fedkin_run::{
    ASSUMED, Control, Error, Plan, PrivacySummary, REFUTED, Registry, Resume, RunDirectory, Warning,
    checkpoint_interval, run_repeat,
};
use fedkin_settings::{Value, Values};
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
    /// The name of its method.
    #[serde(skip)]
    pub algorithm: String,
    /// What it stands for beside the others, where it is a baseline.
    #[serde(skip)]
    pub baseline: Option<Baseline>,
    /// Its headline metric: a curve may show another of the models than the others do.
    pub metric: String,
    /// The headline metric over x.
    pub points: Vec<Point>,
    /// All metrics after the last round that is read (for a sweep, of its last value), as shown.
    pub r#final: BTreeMap<String, Point>,
    /// Standard deviation of the headline metric over clients (for a sweep, at its last value), mean over repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
    /// The same over the worst tenth of the clients, as a mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_decile: Option<f64>,
    /// Both by swept value, or once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<Option<Spread>>,
    /// Both for every metric after the last round (for a sweep, of its last value).
    #[serde(skip)]
    pub spreads: BTreeMap<String, Spread>,
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
    /// How the settings of curves with a grid were chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tuning: Vec<Tuning>,
    /// What the paper claims and what was found.
    pub claims: Vec<ClaimResult>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// The names of the clients of `by_client`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
    /// How the metric is shown.
    #[serde(skip)]
    pub shown: Shown,
    /// All metrics that there are.
    #[serde(skip)]
    pub metrics: Arc<MetricTable>,
    /// The colours of methods.
    #[serde(skip)]
    pub colours: Vec<(String, usize)>,
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
    pub pictures: Vec<fedkin_report::Picture>,
    /// Records of each client by label in the first repeat.
    #[serde(skip)]
    pub labels: Option<fedkin_report::Stacks>,
    /// Name, clusters per server, edges: the world of the first repeat.
    #[serde(skip)]
    pub graph: Option<fedkin_report::ServerGraph>,
}

#[derive(Clone)]
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
    spreads: BTreeMap<String, Spread>,
    names: Vec<String>,
    warnings: Vec<Warning>,
    pictures: Vec<fedkin_report::Picture>,
    labels: Option<fedkin_report::Stacks>,
    graph: Option<fedkin_report::ServerGraph>,
}

/// A comparison that is ready to run.
pub struct Prepared {
    registry: Registry,
    parsed: Parsed,
    base: PathBuf,
    overrides: Vec<Override>,
    config: Config,
    curves: Vec<Curve>,
    /// The curves without a grid.
    jobs: Vec<Job>,
    grids: Vec<Grid>,
}

/// What is run of one curve at one swept value.
fn repeats(plan: &Arc<Plan>, curve: usize, point: usize, name: impl Fn(u32) -> String) -> Vec<Job> {
    let job = |repeat| Job { plan: Arc::clone(plan), curve, point, repeat, name: name(repeat) };
    (0..plan.repeats()).map(job).collect()
}

fn trial(curve: usize, point: usize, repeat: u32) -> String {
    format!("tune-{curve:02}-{point:04}-{repeat:04}")
}

impl Prepared {
    /// Reads an experiment with its curves and its sweep; checks everything before anything runs.
    pub fn new(
        registry: &Registry,
        source: &Source,
        base: &Path,
        overrides: &[Override],
    ) -> Result<Self, Error> {
        Self::of(registry, &Parsed::new(source)?, base, overrides)
    }

    /// The same of a text that was read already.
    pub fn of(
        registry: &Registry,
        parsed: &Parsed,
        base: &Path,
        overrides: &[Override],
    ) -> Result<Self, Error> {
        let config = parsed.load(overrides, &registry.tables())?;
        // Before hours of work: whether there is theory of this method.
        theory::wanted(&config)?;
        let curves = if config.curves.is_empty() {
            vec![Curve { label: config.algorithm.clone(), ..Curve::default() }]
        } else {
            config.curves.clone()
        };
        let points = config.sweep.as_ref().map_or(1, |sweep| sweep.values.len());
        let load = |sets: &[&[Override]]| -> Result<Arc<Plan>, Error> {
            let plan = Arc::new(Plan::of(registry, parsed, base, overrides, sets)?);
            if plan.ledger().is_some() {
                return Err(Error::Usage(
                    "privacy.ledger is for `fedkin run`: the curves of a comparison draw and use the same data \
                     side by side; remove it to compare"
                        .into(),
                ));
            }
            Ok(plan)
        };
        let (mut jobs, mut grids) = (Vec::new(), Vec::new());
        for (c, curve) in curves.iter().enumerate() {
            if let Some(tune) = config.tune.as_ref().filter(|tune| tune.enabled && !curve.grid.is_empty()) {
                let hurry = tune.rounds.map(|rounds| Override {
                    key: "run.rounds".into(),
                    value: Value::Integer(rounds.into()),
                });
                let hurry: Vec<Override> = hurry.into_iter().collect();
                let points = curve.points();
                let plans =
                    points.iter().map(|point| load(&[&curve.set, point])).collect::<Result<Vec<_>, _>>()?;
                let trials = points.iter().map(|point| load(&[&curve.set, point, &hurry]));
                let trials = trials.collect::<Result<Vec<_>, _>>()?;
                tuning::check(&plans[0], &curve.label)?;
                let metric = tuning::metric_of(&plans[0], tune);
                let shown = registry.metrics().shown(&metric);
                grids.push(Grid { curve: c, points, trials, plans, metric, shown });
                continue;
            }
            for point in 0..points {
                let step: Vec<Override> = config.sweep.iter().filter_map(|sweep| sweep.step(point)).collect();
                let plan = load(&[&curve.set, curve.at(point), &step])?;
                jobs.extend(repeats(&plan, c, point, |repeat| format!("{c:02}-{point:02}-{repeat:04}")));
            }
        }
        let (parsed, base) = (parsed.clone(), base.to_path_buf());
        let (registry, overrides) = (registry.clone(), overrides.to_vec());
        Ok(Self { registry, parsed, base, overrides, config, curves, jobs, grids })
    }

    /// The name of the experiment.
    pub fn name(&self) -> &str {
        &self.config.run.name
    }

    /// The config of the experiment.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What to warn of before anything is spent, each once: see [`Plan::doubt`].
    pub fn doubts(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        for doubt in self.plans().filter_map(Plan::doubt) {
            if !all.contains(&doubt) {
                all.push(doubt);
            }
        }
        // What privacy is worth comes first.
        all.sort_by_key(|doubt| [ASSUMED, REFUTED].iter().position(|first| first == doubt).unwrap_or(2));
        all
    }

    /// What there is to run, each once.
    fn plans(&self) -> impl Iterator<Item = &Plan> {
        let plain = self.jobs.iter().filter(|job| job.repeat == 0).map(|job| &job.plan);
        plain.chain(self.grids.iter().flat_map(|grid| &grid.plans)).map(AsRef::as_ref)
    }

    /// Whether the methods can work with the data of their first repeat: what does not suit is said at once, not after hours
    /// of the curves before it. Curves whose data are others than those of the first are left to their turn.
    pub fn suits(&self) -> Result<(), Error> {
        type Learners = BTreeMap<String, LearnerTable>;
        fn tables(plan: &Plan) -> ([&str; 2], [&Values; 3], &Kin, &Learners) {
            let config = &plan.config;
            (
                [&config.data_source, &config.model_kind],
                [&config.data, &config.topology, &config.model],
                &config.kin,
                &config.learners,
            )
        }
        let Some(first) = self.plans().next() else { return Ok(()) };
        let world = first.world(0)?;
        let same = |plan: &&Plan| tables(plan) == tables(first);
        self.plans().filter(same).try_for_each(|plan| plan.suits(&world))
    }

    /// How many rounds there are to run in all.
    pub fn rounds(&self) -> u64 {
        let tries = u64::from(self.config.tune.as_ref().map_or(0, |tune| tune.repeats));
        let of_grid = |grid: &Grid| {
            let trials: u64 = grid.trials.iter().map(|plan| tries * u64::from(plan.rounds())).sum();
            trials + u64::from(grid.plans[0].rounds()) * u64::from(grid.plans[0].repeats())
        };
        self.jobs.iter().map(|job| u64::from(job.plan.rounds())).sum::<u64>()
            + self.grids.iter().map(of_grid).sum::<u64>()
    }

    /// Runs every point of every grid, and says what is taken: the jobs of the curves that have one.
    fn tune(
        &self,
        directory: &RunDirectory,
        control: &Control<'_>,
    ) -> Result<(Vec<Job>, Vec<Tuning>), Error> {
        let tries = self.config.tune.as_ref().map_or(0, |tune| tune.repeats);
        let mut trials: Vec<(usize, usize, u32)> = Vec::new();
        for (g, grid) in self.grids.iter().enumerate() {
            let of_point = |point| (0..tries).map(move |repeat| (g, point, repeat));
            trials.extend((0..grid.points.len()).flat_map(of_point));
        }
        let scores: Vec<Scored> = trials
            .par_iter()
            .map(|&(g, point, repeat)| {
                let grid = &self.grids[g];
                let plan = &grid.trials[point];
                let path = directory.checkpoint(&trial(grid.curve, point, repeat))?;
                let resume =
                    checkpoint_interval(plan).map(|every| Resume { path: &path, every: Some(every) });
                // Kept as a reported repeat is, so that one can go on from here.
                let outcome = run_repeat(plan, repeat, resume.as_ref(), true, control);
                let label = &self.curves[grid.curve].label;
                tuning::scored(outcome.map(|outcome| outcome.metrics), &grid.metric, label)
            })
            .collect::<Result<_, Error>>()?;
        let (mut jobs, mut told) = (Vec::new(), Vec::new());
        for (g, grid) in self.grids.iter().enumerate() {
            let of_point = |point: usize| -> Vec<Scored> {
                let mine = trials.iter().zip(&scores).filter(|((of, at, _), _)| (*of, *at) == (g, point));
                mine.map(|(_, score)| score.clone()).collect()
            };
            let scores: Vec<Vec<Scored>> = (0..grid.points.len()).map(of_point).collect();
            let (best, tuning) = tuning::choose(&self.curves[grid.curve].label, grid, &scores)?;
            told.push(tuning);
            let (plan, tried) = (&grid.plans[best], &grid.trials[best]);
            let same = plan.config.fingerprint() == tried.config.fingerprint();
            jobs.extend(repeats(plan, grid.curve, 0, |repeat| {
                // A trial that was as long as a reported repeat is one.
                if same && repeat < tries {
                    trial(grid.curve, best, repeat)
                } else {
                    format!("{:02}-grid-{best:04}-{repeat:04}", grid.curve)
                }
            }));
        }
        Ok((jobs, told))
    }

    /// Runs all curves into a directory, going on from what is there.
    pub fn run(&self, out: &Path, control: &Control<'_>) -> Result<Comparison, Error> {
        let started = Instant::now();
        let directory = RunDirectory::new(out);
        let _lock = directory.claim(&self.registry, &self.config)?;
        self.suits()?;
        let (tuned, tuning) = self.tune(&directory, control)?;
        let mut jobs: Vec<Job> = self.jobs.iter().cloned().chain(tuned).collect();
        jobs.sort_by_key(|job| (job.curve, job.point, job.repeat));
        let done: Vec<Done> = jobs
            .par_iter()
            .map(|job| {
                let path = directory.checkpoint(&job.name)?;
                let every = checkpoint_interval(&job.plan);
                let resume = every.map(|every| Resume { path: &path, every: Some(every) });
                let by_client = self.config.sweep.is_none() && job.plan.looks_at_clients();
                let keep = job.repeat == 0 || by_client;
                let outcome = run_repeat(&job.plan, job.repeat, resume.as_ref(), keep, control)?;
                let names = if by_client { by_client::names(&outcome) } else { Vec::new() };
                let by_client = if by_client { by_client::of(&outcome) } else { ByClient::new() };
                let headline = collect::headline(&job.plan.config, &outcome.metrics);
                let column = outcome.columns.iter().position(|name| *name == headline);
                let clients = column.map_or(Vec::new(), |c| outcome.rows.iter().map(|row| row[c]).collect());
                let first = job.curve == 0 && job.point == 0 && job.repeat == 0;
                let world = outcome.end.as_ref().filter(|_| first).map(|(world, _)| world);
                let labels = world.and_then(|world| pictures::labels(&job.plan, world));
                let graph = outcome.end.as_ref().map(|(world, _)| pictures::server_graph(world));
                let pictures = if self.config.sweep.is_none() && job.repeat == 0 {
                    pictures::of_curve(&job.plan, &outcome, &self.curves[job.curve].label)
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
                    spreads: outcome.spreads,
                    names,
                    warnings: outcome.warnings,
                    pictures,
                    labels,
                    graph: graph.filter(|_| job.curve == 0 && job.point == 0 && !job.plan.row.graphs),
                })
            })
            .collect::<Result<_, Error>>()?;
        let mut comparison = self.collect(out, &jobs, done)?;
        comparison.warnings.extend(tuning.iter().filter_map(Tuning::tie));
        comparison.tuning = tuning;
        if let Some(panel) = theory::wanted(&self.config)? {
            comparison.theory = panel(&self.registry, &self.parsed, &self.base, &self.overrides, control)?;
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
                    let row = fedkin_run::artifacts::metrics::Measurement {
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
        all.write(&out.join(fedkin_run::artifacts::metrics::NAME))?;
        directory.complete(&comparison)?;
        Ok(comparison)
    }
}
