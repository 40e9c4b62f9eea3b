//! A repeat as it runs: one step after the other, measured where the config says so.
//!
//! Whoever drives it decides when to stop and what to keep: [`run_on`](crate::repeat::run_on) goes to the end and writes
//! checkpoints, a program may look between any two rounds.

use crate::artifacts::checkpoint::Identity;
use crate::artifacts::metrics::{Measurement, Metrics};
use crate::control::Control;
use crate::discovery::{Discovery, discover};
use crate::error::Error;
use crate::outcome::{self, Closing, Outcome};
use crate::plan::{Plan, Stage};
use crate::spending::Spending;
use crate::stopping::{Stopping, Stops};
use crate::warning::Warning;
use fedkin_data::World;
use fedkin_measure::Scorer;
use fedkin_method::Counts;
use fedkin_method::round::{CHUNK, Live, Opening, Progress, Results, Summary};
use fedkin_numeric::codec::{Codec, Damaged, Encoder, Reader};
use std::ops::Deref;

/// Above this many clients, found clusters are compared with the true ones after the last round only.
const KIN_EACH: usize = 1000;

/// Above this many clients, statements are kept only where there is something to account for.
const STATEMENTS: usize = 100_000;

/// What one step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stepped {
    /// How many of the configured rounds are done.
    pub round: u32,
    /// Whether the step completed a round; some methods have several steps in one.
    pub whole: bool,
    /// Whether metrics were taken after it.
    pub measured: bool,
    /// What became of those who were asked; nothing where the run has ended.
    pub counts: Option<Counts>,
}

/// A repeat between two of its steps. `P` is a plan, borrowed or shared.
pub struct Running<P: Deref<Target = Plan>> {
    plan: P,
    repeat: u32,
    /// Whether data and models are kept in the outcome.
    keep: bool,
    world: World,
    live: Box<dyn Live>,
    scorer: Scorer,
    columns: Vec<String>,
    metrics: Metrics,
    ended: bool,
    watch: Watch,
    stopping: Option<Stopping>,
    /// The true clusters, where they are known.
    known: Option<Vec<u32>>,
    spending: Spending,
    /// What a first stage has found, where there was one.
    discovery: Option<Discovery>,
}

impl<P: Deref<Target = Plan>> Running<P> {
    /// Loads or draws the data of a repeat, finds out who is kin first where the config says so, and starts.
    pub fn start(plan: P, repeat: u32, keep: bool, control: &Control<'_>) -> Result<Self, Error> {
        let (world, discovery) = discover(&plan, plan.world(repeat)?, repeat, control)?;
        let mut running = Self::new(plan, repeat, world, None, keep)?;
        running.discovery = discovery;
        Ok(running)
    }

    /// Starts a repeat on data that are at hand, where `openings` say where earlier runs on them have ended. `keep` keeps
    /// the data and the models in the outcome.
    pub fn new(
        plan: P,
        repeat: u32,
        world: World,
        openings: Option<&[Opening]>,
        keep: bool,
    ) -> Result<Self, Error> {
        let Stage { mut live, scorer } = plan.start(&world, repeat)?;
        if let Some(openings) = openings {
            live.begin_at(openings);
        }
        if openings.is_some() || (keep && (plan.privacy.demanded() || world.train.len() <= STATEMENTS)) {
            live.keep_statements();
        }
        let columns = scorer.names();
        let stopping = Stopping::new(&plan, &columns, world.train.len())?;
        Ok(Self {
            repeat,
            keep,
            live,
            scorer,
            columns,
            metrics: Metrics::default(),
            ended: false,
            watch: Watch::default(),
            stopping,
            known: crate::kin::known(&world),
            spending: Spending::new(&plan),
            discovery: None,
            world,
            plan,
        })
    }

    /// What a checkpoint of this repeat belongs to.
    pub(crate) fn identity(&self) -> Identity {
        Identity { config: self.plan.config.fingerprint(), data: self.world.fingerprint }
    }

    /// All that must survive a restart.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut bytes = Encoder::default();
        self.metrics.put(&mut bytes);
        self.ended.put(&mut bytes);
        self.watch.put(&mut bytes);
        if let Some(stopping) = &self.stopping {
            stopping.stops.put(&mut bytes);
        }
        bytes.0.extend(self.live.save());
        bytes.0
    }

    /// Goes on from what `save` wrote.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        let mut reader = Reader::new(bytes);
        self.metrics = Metrics::get(&mut reader)?;
        self.ended = bool::get(&mut reader)?;
        self.watch = Watch::get(&mut reader)?;
        if let Some(stopping) = &mut self.stopping {
            let stops = Stops::get(&mut reader)?;
            if stopping.fits(&stops) {
                stopping.stops = stops;
            }
        }
        let left = reader.left();
        self.live.restore(reader.take(left)?)
    }

    /// Which repeat it is.
    pub fn repeat(&self) -> u32 {
        self.repeat
    }

    /// Whether there is nothing more to do.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// How many of the configured rounds are done.
    pub fn rounds(&self) -> u32 {
        self.live.rounds()
    }

    /// How many steps were run.
    pub fn steps(&self) -> u32 {
        self.live.steps()
    }

    /// The models and accounts as they are now.
    pub fn results(&self) -> &dyn Results {
        self.live.as_ref()
    }

    /// What was measured so far.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The data.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Runs the next step and measures where that is due. Once the run has ended there is none.
    pub fn step(&mut self) -> Result<Stepped, Error> {
        let before = self.live.rounds();
        if self.ended {
            return Ok(Stepped { round: before, whole: false, measured: false, counts: None });
        }
        let progress = self
            .live
            .step()
            .map_err(|fault| Error::of(fault, &self.plan.arranged(&self.world.federation)))?;
        let round = self.live.rounds();
        // A round may have several steps, and only its last one is looked at.
        let whole = round > before;
        let due = round.is_multiple_of(self.plan.every()) || round == self.plan.rounds();
        let (measured, counts) = match progress {
            Progress::Ended => {
                self.ended = true;
                // A method may end before the configured rounds, between two evaluations.
                (!due, None)
            }
            Progress::Round(counts) => {
                self.watch.see(round, self.live.as_ref());
                for (metric, count) in [("refused", counts.refused), ("rejected", counts.rejected)] {
                    if count > 0 {
                        self.push(metric, f64::from(count));
                    }
                }
                (whole && due, Some(counts))
            }
        };
        if measured {
            self.measure();
        }
        Ok(Stepped { round, whole, measured, counts })
    }

    fn push(&mut self, metric: &str, value: f64) {
        let (repeat, round) = (self.repeat, self.live.rounds());
        self.metrics.push(Measurement { repeat, round, node: "", metric, value });
    }

    fn measure(&mut self) {
        let summaries = match &mut self.stopping {
            None => self.live.evaluate(&self.scorer),
            Some(stopping) => {
                // Every client's row is needed anyway: models are looked at once.
                let rows = self.live.rows(&self.scorer);
                stopping.see(&rows);
                Summary::of_chunks(self.columns.len(), rows.chunks(CHUNK))
            }
        };
        let (repeat, round) = (self.repeat, self.live.rounds());
        let metrics = &mut self.metrics;
        let mut push =
            |metric: &str, value: f64| metrics.push(Measurement { repeat, round, node: "", metric, value });
        let stopped = self.stopping.iter().flat_map(Stopping::columns);
        let stopped = stopped.flat_map(|(name, values)| {
            let rows = values.chunks(CHUNK).map(|chunk| chunk.iter().map(|value| [*value]));
            Summary::of_chunks(1, rows).into_iter().map(move |summary| (name, summary))
        });
        let measured = self.columns.iter().map(String::as_str).zip(summaries);
        for (name, summary) in measured.chain(stopped).filter(|(_, summary)| summary.count > 0) {
            push(name, summary.mean());
        }
        // Dividing many clients into clusters may take longer than a round.
        let last = self.ended || round == self.plan.rounds();
        let look = self.known.as_deref().filter(|known| last || known.len() <= KIN_EACH);
        let live = self.live.as_ref();
        for (name, value) in live.gauges().into_iter().chain(outcome::kin_scores(live, look)) {
            push(&name, value);
        }
        self.spending.measure(live, repeat == 0, &mut push);
    }

    /// What the repeat gave, as far as it went. Data and models stand in the outcome where they are to be kept.
    pub(crate) fn outcome(self) -> Outcome {
        let keep = self.keep;
        let (mut outcome, world, live) = self.finish();
        outcome.end = keep.then_some((world, live));
        outcome
    }

    /// What the repeat gave, as far as it went, its data, and its models.
    pub fn finish(mut self) -> (Outcome, World, Box<dyn Results>) {
        let (plan, world, live) = (&self.plan, self.world, self.live);
        let statements = live.statements();
        let mut warnings: Vec<Warning> = self
            .watch
            .warning()
            .into_iter()
            .chain(outcome::turned_away(plan, &self.metrics, statements.as_deref()))
            .collect();
        warnings.extend(crate::pieces::warning(plan, &world, live.as_ref()));
        warnings.extend(outcome::unstable(&self.metrics));
        if let Some(discovery) = &self.discovery {
            let (repeat, round) = (self.repeat, live.rounds());
            for (metric, value) in outcome::scores(Some(&discovery.kin), self.known.as_deref()) {
                self.metrics.push(Measurement { repeat, round, node: "", metric: &metric, value });
            }
        }
        let closing = Closing {
            plan,
            repeat: self.repeat,
            keep: self.keep,
            world: &world,
            scorer: &self.scorer,
            stopping: self.stopping.as_ref(),
        };
        let mut outcome = closing.outcome(live.as_ref(), self.metrics, warnings);
        outcome.discovery = self.discovery;
        (outcome, world, live)
    }
}

fedkin_numeric::record! {
    /// Notices a slow divergence long before the models are large: the servers' models move further from
    /// round to round instead of less. Looked at every tenth round.
    struct Watch {
        models: Vec<f64>,
        moves: Vec<f64>,
    }
}

impl Watch {
    const EVERY: u32 = 10;
    /// So many looks in a row must each show growth.
    const LOOKS: usize = 12;
    /// Above this many numbers looking costs more than it tells.
    const LIMIT: usize = 200_000;

    fn see(&mut self, round: u32, live: &dyn Results) {
        if !round.is_multiple_of(Self::EVERY) && !(round + 1).is_multiple_of(Self::EVERY) {
            return;
        }
        let mut models = Vec::new();
        live.held(&mut |_, _, name, model| {
            if name == "served" && models.len() < Self::LIMIT {
                models.extend_from_slice(model);
            }
        });
        if round.is_multiple_of(Self::EVERY) && self.models.len() == models.len() {
            self.moves.push(fedkin_numeric::distance2(&self.models, &models));
        }
        self.models = models;
    }

    fn warning(&self) -> Option<Warning> {
        let recent = self.moves.len().checked_sub(Self::LOOKS + 1)?;
        let recent = &self.moves[recent..];
        let (first, last) = (recent[0], recent[Self::LOOKS]);
        // Noise moves models up and down; a divergence grows look after look.
        let growing = recent.windows(2).filter(|pair| pair[1] > pair[0]).count() >= Self::LOOKS - 1;
        (growing && first > 0.0 && last > 2.0 * first).then(|| Warning::Diverging {
            times: (last / first).sqrt(),
            rounds: Self::LOOKS as u32 * Self::EVERY,
        })
    }
}
