//! What lying clients do to the others, with and without each defence: runs side by side in one process.
//!
//! Every defence has a run in which all are honest and one in which some lie, on the same data and with the same seeds. What is
//! told is the mean of the headline metric over the clients that are honest in both.

use fedkin_data::{Task, World};
use fedkin_learner::Dataset;
use fedkin_measure::Scorer;
use fedkin_method::round::{Progress, RunFault};
use fedkin_method::{Aggregation, Liars, Lie, Robust};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{decibel, distance2, norm2};
use fedkin_run::{Error, Plan};
use fedkin_settings::{Setting, Value};
use serde::Serialize;
use std::sync::Arc;

/// What a liar does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Sends its model with the other sign.
    SignFlip,
    /// Sends its model times -10.
    Scale,
    /// Learns from turned targets: numbers with the other sign, classes moved by one.
    LabelFlip,
    /// Half of its records have a mark in the first column and one target.
    Backdoor,
    /// Sends back what it was served.
    FreeRider,
}

/// The factor of an upload that is scaled.
const SCALE: f64 = -10.0;
/// The mark of a backdoor: the first column of a record.
const MARK: f64 = 5.0;
/// The target of marked records, where targets are numbers.
const MARKED: f64 = 5.0;

impl Attack {
    /// All, with their words.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::SignFlip, "sign-flip"),
        (Self::Scale, "scale"),
        (Self::LabelFlip, "label-flip"),
        (Self::Backdoor, "backdoor"),
        (Self::FreeRider, "free-rider"),
    ];

    /// The attack of this name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == word).map(|(attack, _)| *attack)
    }

    /// Its name.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(attack, _)| *attack == self).map_or("", |(_, name)| name)
    }

    fn lie(self) -> Option<Lie> {
        match self {
            Self::SignFlip => Some(Lie::Times(-1.0)),
            Self::Scale => Some(Lie::Times(SCALE)),
            Self::FreeRider => Some(Lie::FreeRide),
            Self::LabelFlip | Self::Backdoor => None,
        }
    }

    /// The records that a liar learns from.
    fn spoil(self, data: &Dataset, classes: usize) -> Result<Dataset, Error> {
        let (mut features, mut targets) = (data.features().to_vec(), data.targets().to_vec());
        let turned = |target: f64| match classes {
            0 => -target,
            _ => (target + 1.0) % classes as f64,
        };
        match self {
            Self::LabelFlip => targets = targets.iter().map(|target| turned(*target)).collect(),
            Self::Backdoor => {
                for (row, target) in features.chunks_exact_mut(data.columns()).zip(&mut targets).step_by(2) {
                    row[0] = MARK;
                    *target = if classes == 0 { MARKED } else { 0.0 };
                }
            }
            _ => {}
        }
        Dataset::new(data.columns(), features, targets).map_err(|error| invalid(error.to_string()))
    }
}

fn invalid(message: String) -> Error {
    Error::Conflict { place: "attack".into(), message }
}

/// What one defence comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DefenceResult {
    /// Its word in `[robust]`.
    pub aggregation: String,
    /// The mean of the metric where nobody lies.
    pub honest: f64,
    /// The same with liars.
    pub attacked: f64,
    /// How much worse than the undefended honest run, with liars: in dB where the metric is an error.
    pub harm: f64,
    /// The same without liars: what the defence costs.
    pub cost: f64,
    /// How far the honest clients' models move from those of the honest run with the same defence, NMSD in dB.
    pub moved: f64,
    /// Why the attacked run stopped, where it did.
    pub stopped: Option<String>,
}

/// What an attack comes to under all defences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttackReport {
    /// The run.
    pub name: String,
    /// The method.
    pub algorithm: String,
    /// What liars do.
    pub kind: String,
    /// How many lie, of so many clients.
    pub liars: u32,
    /// All clients.
    pub clients: usize,
    /// Data sets that were drawn.
    pub repeats: u32,
    /// What is measured.
    pub metric: String,
    /// By defence, the plain mean first.
    pub defences: Vec<DefenceResult>,
}

/// What honest clients have in the end.
struct Ended {
    scores: Vec<f64>,
    models: Vec<Vec<f64>>,
    stopped: Option<String>,
}

/// Runs a plan under every defence, with and without liars.
pub fn attack(plan: &Plan, kind: Attack, liars: u32) -> Result<AttackReport, Error> {
    let mut defences: Vec<DefenceResult> = Vec::new();
    let (mut clients, mut metric) = (0, String::new());
    let repeats = plan.repeats();
    let mut totals = vec![[0.0; 4]; Aggregation::WORDS.len()];
    let mut stops: Vec<Option<String>> = vec![None; totals.len()];
    for repeat in 0..repeats {
        let world = plan.world(repeat)?;
        clients = world.train.len();
        if liars as usize * 2 >= clients {
            return Err(invalid(format!("{liars} liars of {clients} clients are no minority: use fewer")));
        }
        let mut who = PublicRng::named(plan.seed(repeat), "liars", 0, 0).choose(clients as u32, liars);
        who.sort_unstable();
        let classes = match plan.task() {
            Task::Regression => 0,
            _ => plan.families.first().output().classes().max(2),
        };
        let spoilt = spoilt(&world, &who, kind, classes)?;
        let lying = kind.lie().map(|lie| Liars { clients: who.clone().into(), lie });
        for (i, word) in Aggregation::WORDS.iter().enumerate() {
            let robust = defence(plan, word)?;
            let honest = ended(plan, &robust, None, &world, repeat, &who, &mut metric)?;
            let attacked = ended(plan, &robust, lying.clone(), &spoilt, repeat, &who, &mut metric)?;
            totals[i][0] += mean(&honest.scores);
            totals[i][1] += mean(&attacked.scores);
            totals[i][2] +=
                honest.models.iter().zip(&attacked.models).map(|(a, b)| distance2(a, b)).sum::<f64>();
            totals[i][3] += honest.models.iter().map(|model| norm2(model)).sum::<f64>();
            stops[i] = stops[i].take().or(attacked.stopped);
        }
    }
    let errors = metric.starts_with("nmsd") || metric.starts_with("mse") || metric.starts_with("loss");
    for ((word, total), stopped) in Aggregation::WORDS.iter().zip(&totals).zip(stops) {
        let (honest, attacked) = (total[0] / f64::from(repeats), total[1] / f64::from(repeats));
        let plain = totals[0][0] / f64::from(repeats);
        let worse = |value: f64| if errors { decibel(value) - decibel(plain) } else { plain - value };
        defences.push(DefenceResult {
            aggregation: (*word).to_string(),
            honest,
            attacked,
            harm: worse(attacked),
            cost: worse(honest),
            moved: decibel(total[2] / total[3]),
            stopped,
        });
    }
    Ok(AttackReport {
        name: plan.name().into(),
        algorithm: plan.row.name.into(),
        kind: kind.word().into(),
        liars,
        clients,
        repeats,
        metric,
        defences,
    })
}

/// The config's section with this aggregation.
fn defence(plan: &Plan, word: &str) -> Result<Robust, Error> {
    let own = (*plan.config.robust).clone();
    let aggregation = Aggregation::read(Some(&Value::Text(word.into()))).map_err(invalid)?;
    if aggregation == Aggregation::Mean {
        return Ok(Robust::default());
    }
    let radius = own.radius.filter(|_| aggregation == Aggregation::CentredClipping);
    Ok(Robust { aggregation, radius, ..own })
}

fn spoilt(world: &World, who: &[u32], kind: Attack, classes: usize) -> Result<World, Error> {
    let mut world = world.clone();
    if kind.lie().is_none() {
        for &id in who {
            let data = &mut world.train[id as usize];
            *data = Arc::new(kind.spoil(data, classes)?);
        }
    }
    Ok(world)
}

/// Runs to the end, or as far as it goes.
fn ended(
    plan: &Plan,
    robust: &Robust,
    liars: Option<Liars>,
    world: &World,
    repeat: u32,
    who: &[u32],
    metric: &mut String,
) -> Result<Ended, Error> {
    let method = plan.attacked(robust.clone(), liars).map_err(invalid)?;
    let mut stage = plan.start_with(method, world, repeat)?;
    let mut stopped = None;
    loop {
        match stage.live.step() {
            Ok(Progress::Ended) => break,
            Ok(Progress::Round(_)) => {}
            Err(RunFault::Stopped(why)) => {
                stopped = Some(why.to_string());
                break;
            }
            Err(fault) => return Err(fault.into()),
        }
    }
    let (column, name) = headline(plan, &stage.scorer);
    *metric = name;
    let honest = |id: usize| who.binary_search(&(id as u32)).is_err();
    let rows = stage.live.rows(&stage.scorer);
    let scores = rows.iter().enumerate().filter(|(id, _)| honest(*id)).filter_map(|(_, row)| row.get(column));
    let scores = scores.copied().filter(|score| !score.is_nan()).collect();
    let mut models = vec![Vec::new(); world.train.len()];
    stage.live.models(&mut |id, which, model| {
        if which == 0 && honest(id as usize) {
            models[id as usize] = model.to_vec();
        }
    });
    Ok(Ended { scores, models, stopped })
}

/// The column of the headline metric; the first where the config names none.
fn headline(plan: &Plan, scorer: &Scorer) -> (usize, String) {
    let names = scorer.names();
    let wanted = plan.config.evaluate.metric.as_deref();
    let column = names.iter().position(|name| Some(name.as_str()) == wanted).unwrap_or(0);
    (column, names.get(column).cloned().unwrap_or_default())
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}
