//! Auditing a claim of privacy: runs the real mechanism on neighbouring data sets and bounds epsilon from below.
//!
//! One client is run again and again with fresh private randomness, on a data set and on a neighbouring one, in
//! the surroundings of a rehearsal. How well the two can be told apart bounds epsilon from below with a stated
//! confidence; the ledger's price of the same releases is the claim it is compared with. See `docs/audit.md`.

pub mod fixtures;
mod measure;
mod neighbours;
mod report;
mod space;
#[cfg(test)]
mod tests;

use fedkin_data::World;
use fedkin_learner::Dataset;
use fedkin_method::round::AnyMethod;
use fedkin_method::round::audit::{Draw, Ground, Layout, Scene, Want};
use fedkin_privacy::audit::{Direction, Examined, Scores, examine, largest_bound};
use fedkin_privacy::{
    Account, Charge, LastStep, OneShot, Prices, Privacy, Sampler, Trust, epsilon_of_gaussian,
};
use fedkin_run::{Control, Error, Plan};
use fedkin_runtime::Threads;
use fixtures::Fixture;
use measure::{Method, Scored};
use neighbours::{Pair, Records};
pub use report::{Claim, Neighbour, Report, Verdict};
use space::Space;
use std::sync::Arc;

/// How many rounds are audited where nobody says: more take longer and show little more.
pub const ROUNDS: u32 = 20;
/// How many runs on each data set where nobody says.
pub const RUNS: u32 = 20_000;
/// The pairs of data sets of an audit, two data sets each.
const PAIRS: u32 = 2;
/// Runs per pair and candidate of the search.
const SEARCH_RUNS: u32 = 2;

/// What an audit is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Runs on each data set; half of them choose the threshold, half of them count.
    pub runs: u32,
    /// Rounds from the first; `None` for [`ROUNDS`] or all, whichever is less.
    pub rounds: Option<u32>,
    /// The audit's own randomness; `None` takes the config's seed.
    pub seed: Option<u64>,
    /// The chance that the bounds hold, all together.
    pub confidence: f64,
    /// The audited client; `None` takes the one that spends most.
    pub client: Option<String>,
}

impl Options {
    /// Runs in all, for a progress bar.
    pub fn work(&self) -> u64 {
        u64::from(self.runs) * u64::from(2 * PAIRS)
    }
}

/// What is audited: a config, or a fixture whose verdict is known.
pub struct Subject {
    plan: Plan,
    fixture: Option<&'static Fixture>,
}

impl Subject {
    /// The method of a config.
    pub fn config(plan: Plan) -> Self {
        Self { plan, fixture: None }
    }

    /// The name of the run.
    pub fn name(&self) -> &str {
        self.fixture.map_or(self.plan.name(), |fixture| fixture.name)
    }
}

/// Audits a subject.
pub fn audit(subject: &Subject, options: &Options, control: &Control<'_>) -> Result<Report, Error> {
    let plan = &subject.plan;
    if !plan.privacy.demanded() {
        return Err(Error::Usage(
            "privacy.mechanism = \"none\" claims nothing, so there is nothing to audit: set it to \"zcdp\", or \"one-shot\" \
             where graphs are learnt"
                .into(),
        ));
    }
    if options.runs < 20 {
        return Err(Error::Usage("an audit needs at least 20 runs: half of them choose a threshold".into()));
    }
    if !(options.confidence > 0.0 && options.confidence < 1.0) {
        return Err(Error::Usage("the confidence lies between 0 and 1, such as 0.95".into()));
    }
    let world = if subject.fixture.is_some() { Fixture::world(plan)? } else { plan.world(0)? };
    let client = match &options.client {
        None => None,
        Some(name) => Some(world.federation.find_client(name).ok_or_else(|| {
            Error::Usage(format!(
                "there is no client {name:?}; leave --client out to take the one that spends most"
            ))
        })?),
    };
    let task = Task { subject, options, control, world: &world, client };
    if let Some(broken) = subject.fixture.and_then(|fixture| fixture.broken) {
        let conflict = |message| Error::Conflict { place: subject.name().to_string(), message };
        let method = plan.built(&broken, plan.privacy).map_err(conflict)?;
        return task.run(method, plan.built(&broken, silenced(plan.privacy)).ok());
    }
    // A method that cannot do without noise is scored by projection.
    task.run(Arc::clone(&plan.method), plan.built(&plan.row, silenced(plan.privacy)).ok())
}

/// The privacy of a method that answers without noise: the means.
fn silenced(privacy: Privacy) -> Privacy {
    match privacy {
        // What these add noise to is nothing that the method sends without them.
        Privacy::OneShot(once) => Privacy::OneShot(OneShot { sampler: Sampler::None, ..once }),
        Privacy::Paper(paper) => Privacy::Paper(LastStep { sampler: Sampler::None, ..paper }),
        Privacy::None | Privacy::Zcdp(_) | Privacy::DpSgd(_) => Privacy::None,
    }
}

/// Where the noise stands in a message.
fn layout(plan: &Plan, columns: usize) -> Layout {
    match (plan.families.first().signals(), plan.privacy) {
        (Some(smooth), Privacy::OneShot(_)) => Layout::symmetric(smooth.nodes(columns).unwrap_or(0)),
        (Some(smooth), Privacy::Paper(_)) => Layout::graph(smooth.dimension(columns)),
        _ => Layout::default(),
    }
}

/// An audit with its data.
pub(crate) struct Task<'a> {
    subject: &'a Subject,
    options: &'a Options,
    control: &'a Control<'a>,
    world: &'a World,
    client: Option<u32>,
}

impl Task<'_> {
    /// Audits a method, with the same one without noise beside it.
    fn run(&self, method: Arc<dyn AnyMethod>, quiet: Option<Arc<dyn AnyMethod>>) -> Result<Report, Error> {
        let (plan, options) = (&self.subject.plan, self.options);
        let (data, columns) = (&self.world.train[..], self.world.schema.columns());
        let (federation, run) = plan.run_of(self.world, 0)?;
        let steps = options.rounds.unwrap_or_else(|| plan.rounds().min(ROUNDS)).min(plan.rounds());
        let seed = options.seed.unwrap_or_else(|| plan.seed(0));
        let ground = Ground {
            run: &run,
            federation: &federation,
            data,
            steps,
            quiet: silenced(plan.privacy),
            layout: layout(plan, columns),
            pool: Arc::new(Threads),
        };
        let name = method.name().to_string();
        let scene = &*method.scene(quiet, &ground, self.client)?;
        let member = scene.member();
        let own = &data[member.id as usize];
        let preview = Preview::of(scene, own, seed)?;
        let claim = preview.claim(plan);
        let mut report = Report {
            name: self.subject.name().to_string(),
            algorithm: name,
            client: federation.client_name(member.id).to_string(),
            records: member.samples,
            rounds: scene.rounds(),
            all_rounds: plan.rounds(),
            releases: preview.answers,
            claim,
            bound: 0.0,
            bound_gaussian: None,
            exact: None,
            cap: 0.0,
            confidence: options.confidence,
            runs: options.runs,
            seed,
            verdict: Verdict::Holds,
            reason: String::new(),
            worst: None,
            neighbours: Vec::new(),
        };
        if preview.answers == 0 {
            report.reason = "nothing left the client in these rounds".into();
            return Ok(report);
        }
        // All rates of all pairs must hold together.
        let alpha = (1.0 - options.confidence) / f64::from(Examined::RATES * PAIRS);
        report.cap = largest_bound(options.runs - options.runs / 2, plan.delta(), alpha);
        for (number, pair) in (0..).zip(self.pairs(scene, &preview, seed)?) {
            report.neighbours.push(self.examine(scene, &pair, number, &preview, alpha, seed)?);
        }
        report.judge(preview.gaussian());
        Ok(report)
    }

    fn pairs(&self, scene: &dyn Scene, preview: &Preview, seed: u64) -> Result<Vec<Pair>, Error> {
        let member = scene.member();
        let (plan, data) = (&self.subject.plan, &self.world.train[..]);
        let learners = plan.learners_of(self.world)?;
        let space = Space::of(plan, plan.family_of(learners.as_deref(), member.id), data)?;
        let records = Records {
            own: &data[member.id as usize],
            all: data,
            client: member.id,
            space: &space,
            hint: &preview.last,
            seed,
        };
        let distance = |data: &[Arc<Dataset>; 2]| measure::distance2(scene, data, seed, SEARCH_RUNS);
        let mut pairs = vec![neighbours::worst(&records, &distance)?];
        // Records of the same cluster are what the client could have held; of anybody, where it is alone in it.
        let all = self.world.federation.members();
        let kin = |member: &fedkin_method::Member| member.cluster == all[records.client as usize].cluster;
        let mut peers: Vec<u32> = all.iter().filter(|other| kin(other)).map(|other| other.id).collect();
        if peers.len() < 2 {
            peers = all.iter().map(|other| other.id).collect();
        }
        pairs.extend(neighbours::typical(&records, &peers, &distance)?);
        Ok(pairs)
    }

    fn examine(
        &self,
        scene: &dyn Scene,
        pair: &Pair,
        number: u32,
        preview: &Preview,
        alpha: f64,
        seed: u64,
    ) -> Result<Neighbour, Error> {
        let (options, delta) = (self.options, self.subject.plan.delta());
        let untold = Control { stop: self.control.stop, tick: &|| {} };
        let method = measure::learn(scene, pair, number, seed, &untold)?;
        let runs =
            |truth| measure::scores(scene, pair, &method, truth, options.runs, (seed, number), self.control);
        let (first, second) = (runs(0)?, runs(1)?);
        let of = |runs: &[Scored]| runs.iter().map(|run| run.score).collect::<Vec<f64>>();
        let found = examine(Scores { first: &of(&first), second: &of(&second) }, delta, alpha);
        let best = found.best();
        let gaussian = |mu: f64| epsilon_of_gaussian(0.5 * mu * mu, delta);
        let exact = matches!(method, Method::Exact).then(|| {
            let distances = || first.iter().chain(&second).map(|run| run.distance2);
            let least = distances().fold(f64::INFINITY, f64::min);
            let most = distances().fold(0.0, f64::max);
            [epsilon_of_gaussian(0.5 * least, delta), epsilon_of_gaussian(0.5 * most, delta)]
        });
        Ok(Neighbour {
            kind: pair.kind,
            what: pair.what.clone(),
            score: if exact.is_some() { "likelihood ratio" } else { "projection" },
            bound: best.epsilon,
            bound_gaussian: preview.gaussian().then(|| gaussian(found.mu)),
            exact,
            direction: match best.direction {
                Direction::Second => "second",
                Direction::First => "first",
            },
            right_alarms: best.alarms.right,
            wrong_alarms: best.alarms.wrong,
            counted: best.alarms.runs,
        })
    }
}

/// One run on the client's own data: what it is charged.
struct Preview {
    answers: u32,
    charges: Vec<Charge>,
    last: Vec<f64>,
}

impl Preview {
    fn of(scene: &dyn Scene, own: &Arc<Dataset>, seed: u64) -> Result<Self, Error> {
        let mut lane = scene.lane(&[Arc::clone(own), Arc::clone(own)], 0)?;
        let mut preview = Self { answers: 0, charges: Vec::new(), last: Vec::new() };
        let draw = Draw { seed, purpose: "preview", pair: 0, number: 0 };
        lane.play(0, draw, Want::default(), &mut |moment| {
            preview.answers += u32::from(!moment.charges.is_empty());
            preview.charges.extend_from_slice(&moment.charges);
            preview.last.clone_from(&moment.sent);
        });
        Ok(preview)
    }

    /// Whether every release is Gaussian, so that the exact composition is claimed.
    fn gaussian(&self) -> bool {
        self.charges.iter().all(|charge| Sampler::is_gaussian(charge.mechanism))
    }

    fn claim(&self, plan: &Plan) -> Claim {
        let delta = plan.delta();
        let mut account = Account::default();
        for charge in &self.charges {
            account.plan(charge.cost, charge.draws().as_ref());
        }
        let mut prices = Prices::default();
        let known = |charge: &Charge| charge.sampled.is_some() || Sampler::is_gaussian(charge.mechanism);
        let epsilon = if let Privacy::Paper(paper) = plan.privacy {
            // Its own words: equal parts of epsilon and delta for every round, added up.
            paper.epsilon * f64::from(self.answers) / f64::from(plan.rounds())
        } else if self.charges.iter().all(known) {
            prices.epsilon_gaussian(&account, delta)
        } else {
            prices.epsilon(&account, delta)
        };
        let zcdp = account.total().zcdp();
        // The weakest word holds for the whole.
        let words = [Trust::Refuted, Trust::Claimed, Trust::Assumed, Trust::Enforced];
        let trust = words.into_iter().find(|trust| self.charges.iter().any(|c| c.trust == Some(*trust)));
        Claim { epsilon, delta, zcdp, trust: trust.map_or(String::new(), |trust| trust.words().to_string()) }
    }
}
