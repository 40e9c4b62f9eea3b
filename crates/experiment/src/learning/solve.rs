//! The methods of a run, driven in one process on data of a good scale.

use super::Parameters;
use fedkin_learner::signals::{self, Records, Smooth};
use fedkin_learner::{Dataset, Graph};
use fedkin_method::round::{Cause, Opening, Progress, RunFault, Stop, Stopped};
use fedkin_method::{
    Algorithm, Consensus, Context, FedGl, FedGlSettings, Igl, IglSettings, Run, SolverSettings, registry,
};
use fedkin_method::{Families, Federation};
use fedkin_numeric::scale;
use fedkin_privacy::Privacy;
use fedkin_run::{Control, Error};
use fedkin_runtime::Threads;
use fedkin_settings::Settings;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Norms of uploads are bounded by the data here, not by the network.
const ANY_NORM: f64 = 1e300;

/// Records of all clients, divided by a power of two.
pub(super) struct Stage<'a> {
    pub federation: &'a Federation,
    pub data: Vec<Arc<Dataset>>,
    pub smooth: Smooth,
    /// What squared differences were divided by: a power of four.
    pub unit: f64,
    pub seed: u64,
    pub tolerance: f64,
    pub rounds: u32,
    /// What protects the records, in their unit, and the secrets of the noise.
    pub privacy: Option<(Privacy, Vec<[u8; 32]>)>,
}

/// What came out, in the unit of the data as they were given.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Solution {
    /// By client id.
    pub graphs: Vec<Vec<f64>>,
    pub consensus: Option<Vec<f64>>,
    pub rounds: u32,
    /// Whether the solver met its tolerance.
    pub converged: bool,
}

/// The power of four nearest to a mean squared difference.
pub(super) fn unit_of(mean: f64) -> f64 {
    let exponent = (0.5 * mean.log2()).round();
    if exponent.is_finite() { 4f64.powi(exponent.clamp(-500.0, 500.0) as i32) } else { 1.0 }
}

impl<'a> Stage<'a> {
    /// Divides the records by the root of `unit`, or distances by `unit`.
    pub(super) fn new(
        federation: &'a Federation,
        data: &[Arc<Dataset>],
        (alpha, records): (f64, Records),
        unit: f64,
    ) -> Result<Self, Error> {
        let factor = match records {
            Records::Signals => 1.0 / unit.sqrt(),
            Records::Distances => 1.0 / unit,
        };
        let scaled = |(id, data): (usize, &Arc<Dataset>)| {
            if factor == 1.0 {
                return Ok(Arc::clone(data));
            }
            let mut features = data.features().to_vec();
            scale(factor, &mut features);
            Dataset::new(data.columns(), features, data.targets().to_vec()).map(Arc::new).map_err(|error| {
                Error::Usage(format!("client {:?}: {error}", federation.client_name(id as u32)))
            })
        };
        Ok(Self {
            federation,
            data: data.iter().enumerate().map(scaled).collect::<Result<_, Error>>()?,
            smooth: Smooth { alpha, beta: 1.0, records },
            unit,
            seed: 0,
            tolerance: 1e-9,
            rounds: 1,
            privacy: None,
        })
    }

    /// Solves for all graphs to the end: tied to a consensus graph, or every client alone.
    pub(super) fn solve(&self, parameters: Parameters, control: &Control<'_>) -> Result<Solution, Error> {
        let tolerance = self.tolerance.clamp(1e-13, 1.0);
        let solving = SolverSettings { tolerance, ..SolverSettings::default() };
        let checked = match parameters.tie {
            Some((rho, lambda)) => {
                FedGlSettings { rho: rho / self.unit, lambda: lambda / self.unit, solving }.validated()
            }
            None => IglSettings { solving }.validated(),
        };
        let methods = registry::native();
        let row = methods.find(method(parameters)).map_err(|error| Error::Usage(error.to_string()))?;
        let values = checked.map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Error::Usage(all.join("; "))
        })?;
        let smooth = Smooth { beta: parameters.beta / (self.unit * self.unit), ..self.smooth };
        let privacy = self.privacy.as_ref().map_or(Privacy::None, |(privacy, _)| *privacy);
        let federation = self.federation.arranged(row.arrange);
        let run = Run {
            seed: self.seed,
            rounds: self.rounds,
            clients_per_server: None,
            max_norm2: ANY_NORM,
            dimension: smooth.dimension(self.data.first().map_or(0, |data| data.columns())),
            clusters: federation.clusters(),
            privacy,
            targets: None,
            kin: None,
            columns: None,
            learners: None,
        };
        let context = Context::new(Families::one(Graph::new(smooth)), privacy);
        let built = row.build(&values, &context).map_err(Error::Usage)?;
        let mut live = built.simulate(run, &federation, &self.data, Arc::new(Threads)).map_err(plain)?;
        if let Some((_, secrets)) = &self.privacy {
            let opening = |secret: &[u8; 32]| Opening { spent: 0, releases: 0, secret: *secret };
            live.begin_at(&secrets.iter().map(opening).collect::<Vec<_>>());
        }
        let mut last = 0;
        loop {
            if control.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted(format!("round {last}; nothing was written")));
            }
            match live.step().map_err(plain)? {
                Progress::Ended => break,
                Progress::Round(counts) if counts.refused + counts.rejected > 0 => {
                    return Err(Error::Usage(format!(
                        "{} of {} clients could not solve for their graphs in round {}: are there records beyond all \
                         measure, or a beta of another scale than the data?",
                        counts.refused + counts.rejected,
                        self.data.len(),
                        live.steps()
                    )));
                }
                Progress::Round(_) => {
                    last = live.steps();
                    (control.tick)();
                }
            }
        }
        let back = |graph: &[f64]| graph.iter().map(|w| w / self.unit).collect::<Vec<f64>>();
        let mut graphs = Vec::with_capacity(self.data.len());
        live.own_models(&mut |_, graph| graphs.push(back(graph)));
        let mut consensus = None;
        live.held(&mut |_, _, name, graph| {
            if name == "consensus" {
                consensus = Some(back(graph));
            }
        });
        let kkt = live.gauges().into_iter().find(|(name, _)| *name == "kkt");
        // A method without a consensus solves every graph in one step.
        let converged = consensus.is_none() || kkt.is_some_and(|(_, kkt)| kkt <= self.tolerance);
        // The release before the rounds is none of them.
        let rounds = live.steps() - u32::from(self.privacy.is_some());
        Ok(Solution { graphs, consensus, rounds, converged })
    }
}

/// The method that solves with these parameters: tied to a consensus graph, or every client alone.
pub(super) fn method(parameters: Parameters) -> &'static str {
    if parameters.tie.is_some() { FedGl::<Consensus>::NAME } else { Igl::NAME }
}

/// Without advice on keys that this command has not.
fn plain(fault: RunFault) -> Error {
    match fault {
        RunFault::Unsolved { client, reason } => Error::Usage(format!("client {client:?}: {reason}")),
        RunFault::Stopped(Stopped { stop: Stop { cause: Cause::Silent { .. }, .. }, .. }) => Error::Usage(
            "no client could solve for its graph: beta is of another scale than the data; leave --beta out to see one \
             that is not"
                .into(),
        ),
        other => Error::Fault(other),
    }
}

/// The graph of a client alone.
pub(super) fn alone(alpha: f64, beta: f64, zbar: &[f64]) -> Result<Vec<f64>, Error> {
    let unit = unit_of(zbar.iter().sum::<f64>() / zbar.len().max(1) as f64);
    let mut graph: Vec<f64> = zbar.iter().map(|z| 2.0 * z / unit).collect();
    let curvature = 4.0 * beta / (unit * unit);
    signals::solve(alpha, curvature, &mut graph, &mut Vec::new(), &mut Vec::new())
        .map_err(|unsolved| Error::Usage(unsolved.0.to_string()))?;
    scale(1.0 / unit, &mut graph);
    Ok(graph)
}
