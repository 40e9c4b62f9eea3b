//! `PersFL` for any model: kin are found by re-training, and only predictions couple the clients.
//!
//! Paper: Jung, `SarcheshmehPour` and Mohammadi, Personalized federated learning via active sampling, Algorithm 2.
//!
//! Each round a *target* t with hypothesis h draws B *candidates*. In the step PROBE each of them re-trains h on its own
//! records; in SELECT the target takes the best of what they fitted, by its own loss:
//!
//! ```text
//! h_b  = argmin over g of  eta L_b(g) + (1/|D|) sum over x in D of (g(x) - h(x))^2      (6)
//! b*   = argmin L_t(h_b)                                                               (7)
//! h   <- h_{b*}                                                 if the guard accepts L_t(h_{b*})
//! ```
//!
//! (6) is one weighted fit of a model of the *target's* kind: the candidate's records with weights eta/m, the points of D
//! with weights 1/|D| and the labels h(x). Nothing else is asked of a model, so a tree here and a ridge model there
//! learn in one federation. For a logistic model both terms are cross-entropies, the second with h(x) as a soft label.
//!
//! | symbol | here |
//! |---|---|
//! | B | `candidates` |
//! | eta | `learning_rate` |
//! | R | `run.rounds`: exactly so many rounds, two steps each |
//! | D, D^(t) in the paper | `public` points that everybody can draw; with `public = 0` a candidate's own held-out inputs |
//! | L | mean squared error; for labels 0 and 1, of the probability |
//!
//! The server holds every h. With public points it labels them and sends labels, and no candidate sees a model of a
//! target. Without, it sends h itself, and the candidate labels inputs of its own that it keeps out of the fit. What
//! leaves a candidate is the fitted model (**a nearest-neighbour model is its records**), what leaves a target is an index
//! and a loss, and with `start = "own"` first a model of its own records: all of it is disclosed, and the ledger says so.
//! Clients keep nothing.
//!
//! Models that interpolate do not work: with a leaf for every record both terms of (6) vanish together, and h moves at
//! single points only. Leaves of ten records, or averages, do.
//!
//! Reductions: eta -> 0 leaves the predictions on D as they are where the model can represent them; eta -> infinity is
//! the candidate's model alone.

mod exchange;
mod mine;
mod settings;
#[cfg(test)]
mod tests;

use super::candidates;
use super::guard::{Accept, Watch};
use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Label, Now, Personal, Phase, Run, Seats, ServerKin, ServerView, Who,
};
use crate::families::Families;
use crate::federation::{Federation, Member};
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Dataset, Family, mean_squared_error};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::record;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Gate, Refusal, Released};
use mine::Mine;
pub use settings::{AgnosticStart, PersFlAgnosticSettings, PublicLaw};
use std::sync::Arc;

/// Targets send a model of their own records to begin with.
const SETUP: Label = Label::new(0);
/// Candidates re-train the targets' hypotheses.
const PROBE: Label = Label::new(1);
/// Targets choose among what was fitted.
const SELECT: Label = Label::new(2);

/// The method.
#[derive(Debug, Clone)]
pub struct PersFlAgnostic {
    families: Families,
    candidates: u32,
    learning_rate: f64,
    accept: Accept,
    start: AgnosticStart,
    public: u32,
    law: PublicLaw,
    held_out: f64,
}

record! {
    /// What the server counts: models that were fitted for targets, and targets.
    pub struct Central { queries: u64, targets: u32 }
    /// What the server keeps for one client.
    pub struct Seat {
        /// Its number of records.
        rows: u32,
        /// As a target: which kind of model it has, its hypothesis, and the guard.
        kind: u32,
        model: Vec<f64>,
        watch: Watch,
        /// What it is offered, and by whom.
        offers: Box<[Vec<f64>]>,
        from: Box<[u32]>,
        /// Whose offers it took, and how often, by position.
        kin: Box<[(u32, u32)]>,
        /// As a candidate: its targets, and what it is asked; then what it fitted.
        targets: Box<[u32]>,
        probes: Box<[Probe]>,
        fitted: Box<[Vec<f64>]>,
    }
    /// A hypothesis to re-train: the kind of the target's model, and its labels of the public points or, where there
    /// are none, the hypothesis itself.
    pub struct Probe { kind: u32, shown: Vec<f64> }
    /// PROBE: hypotheses to re-train. SELECT: models to choose from. At the end: the client's own model.
    pub struct Down { probes: Box<[Probe]>, models: Box<[Vec<f64>]> }
    /// SETUP: a model of the client's records. PROBE: one model per hypothesis. SELECT: the best model and its loss.
    pub struct Up { models: Box<[Vec<f64>]>, choice: u32, loss: f64 }
}

/// Whether a client is to get a model.
fn is_target(run: &Run, id: u32) -> bool {
    run.targets.as_ref().is_none_or(|targets| targets.binary_search(&id).is_ok())
}

/// The number of features.
fn columns(run: &Run) -> usize {
    run.columns.unwrap_or(run.dimension)
}

/// What a model says of points that stand row after row; nothing where the numbers are no model of this family.
fn labels_of(family: &dyn Family, model: &[f64], points: &[f64], columns: usize) -> Option<Vec<f64>> {
    let rows = points.len() / columns;
    let data = Dataset::new(columns, points.to_vec(), vec![0.0; rows]).ok()?;
    let mut labels = Vec::with_capacity(rows);
    family.predict(model, &data, &mut |_, value| labels.extend(value.first()));
    (labels.len() == rows).then_some(labels)
}

/// What re-trained hypotheses are called in the ledger.
const MODELS: &str = "fitted models";
const RECORDS: &str = "fitted models (nearest-neighbour models hold the client's records)";

impl PersFlAgnostic {
    /// Whether targets begin with a model of their own records.
    fn own(&self) -> bool {
        self.start == AgnosticStart::Own
    }

    /// The public points: everybody draws the same.
    fn points(&self, run: &Run) -> Vec<f64> {
        let mut rng = PublicRng::named(run.seed, "persfl-agnostic/public points", 0, 0);
        let draw = |_| match self.law {
            PublicLaw::Normal => rng.normal(),
            PublicLaw::Uniform => rng.between(-1.0, 1.0),
        };
        (0..self.public as usize * columns(run)).map(draw).collect()
    }

    /// The name of what a client lets out.
    fn named(&self, kinds: impl Iterator<Item = usize>) -> &'static str {
        let mut kinds = kinds.filter_map(|kind| self.families.get(kind));
        if kinds.any(Family::holds_records) { RECORDS } else { MODELS }
    }

    /// Most records behind a fitted model.
    fn rows(&self, seat: &Seat) -> usize {
        seat.rows as usize * if self.public == 0 { 2 } else { 1 } + self.public as usize
    }
}

impl Algorithm for PersFlAgnostic {
    const NAME: &'static str = "persfl-agnostic";
    const LABELS: &'static [&'static str] = &["setup", "probe", "select"];
    const PERSONAL: &'static [&'static str] = &["client"];
    type Local = Mine;
    type Memory = ();
    type Server = Central;
    type Seat = Seat;
    type Common = ();
    type Down = Down;
    type Raw = (Box<[Vec<f64>]>, (u32, f64));
    type Up = Up;
    type Share = ();

    fn open(&self, at: ServerView<'_>, _: &mut PublicRng) -> Central {
        let targets = at.members.iter().filter(|member| is_target(at.run, member.id)).count();
        Central { queries: 0, targets: targets as u32 }
    }

    fn seat(&self, at: ServerView<'_>, member: &Member) -> Seat {
        let begins = is_target(at.run, member.id) && !self.own();
        Seat {
            rows: member.samples,
            kind: at.run.learner(member.id) as u32,
            model: if begins {
                self.families.of(at.run, member.id).constant(columns(at.run))
            } else {
                Vec::new()
            },
            ..Seat::default()
        }
    }

    fn phase(&self, _: &Central, step: u32, run: &Run) -> Phase {
        let step = if self.own() { step } else { step + 1 };
        match step {
            1 => Phase::Ask(SETUP),
            _ if step > 1 + 2 * run.rounds => Phase::Deliver,
            _ if step.is_multiple_of(2) => Phase::Ask(PROBE),
            _ => Phase::Ask(SELECT),
        }
    }

    fn rounds(&self, step: u32, run: &Run) -> u32 {
        let done = if self.own() { step.saturating_sub(1) } else { step };
        (done / 2).min(run.rounds)
    }

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.families.one_output(federation, run, |_| 0)?;
        candidates::enough(Self::NAME, self.candidates, federation.members().len())
    }

    fn plan(&self, _: &mut Central, seats: &mut Seats<'_, Seat>, now: Now<'_>) -> Who {
        let those = |wanted: &dyn Fn(usize) -> bool| {
            Who::Some((0..now.at.members.len()).filter(|&i| wanted(i)).map(|i| i as u32).collect())
        };
        match now.label {
            SETUP => those(&|i| is_target(now.at.run, now.at.members[i].id)),
            SELECT => those(&|i| !seats.get(i).offers.is_empty()),
            _ => self.draw(seats, now),
        }
    }

    fn down(&self, _: &Central, seat: &Seat, now: Now<'_>, _: &Member, out: &mut Down) {
        *out = match now.label {
            PROBE => Down { probes: seat.probes.clone(), models: Box::default() },
            SELECT => Down { probes: Box::default(), models: seat.offers.clone() },
            _ => Down::default(),
        };
    }

    fn serve(&self, _: &Central, seat: &Seat, _: Now<'_>, _: &Member, out: &mut Down) {
        *out = Down { probes: Box::default(), models: Box::from([seat.model.clone()]) };
    }

    fn fits(&self, seat: &Seat, now: Now<'_>, up: &Up) -> bool {
        let (columns, rows) = (columns(now.at.run), self.rows(seat));
        let of_kind = |model: &Vec<f64>, kind: u32| {
            self.families.get(kind as usize).is_some_and(|family| family.is_model(model, columns, rows))
        };
        match now.label {
            SETUP => up.models.len() == 1 && of_kind(&up.models[0], seat.kind),
            PROBE => {
                up.models.len() == seat.probes.len()
                    && up.models.iter().zip(&seat.probes).all(|(model, probe)| of_kind(model, probe.kind))
            }
            _ => up.models.is_empty() && (up.choice as usize) < seat.offers.len() && up.loss >= 0.0,
        }
    }

    fn cells(&self, _: ServerView<'_>) -> (usize, usize) {
        (0, 0)
    }

    fn absorb(&self, _: &Central, seat: &mut Seat, now: Now<'_>, _: &Member, up: &Up, _: &mut Cells) {
        match now.label {
            SETUP => seat.model.clone_from(&up.models[0]),
            PROBE => seat.fitted.clone_from(&up.models),
            _ => {
                let choice = up.choice as usize;
                if self.accept == Accept::Paper || seat.watch.accepts(up.loss) {
                    exchange::count(&mut seat.kin, seat.from[choice]);
                    seat.model = std::mem::take(&mut seat.offers[choice]);
                }
                (seat.offers, seat.from) = (Box::default(), Box::default());
            }
        }
    }

    fn close(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, closed: &Closed<'_>, _: &Cells) {
        if closed.now.label == PROBE {
            exchange::deal(server, seats, closed);
        }
    }

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, member: &Member) -> Result<Mine, Unsolved> {
        Ok(Mine::new(self, data, at, member))
    }

    fn fits_ask(&self, mine: &Mine, ask: &Ask<'_, Self>) -> bool {
        let columns = mine.data().columns();
        let of = |kind: usize, model: &Vec<f64>| {
            let readable = |family| labels_of(family, model, &vec![0.0; columns], columns).is_some();
            model.iter().all(|x| x.is_finite()) && self.families.get(kind).is_some_and(readable)
        };
        let reads = |model: &Vec<f64>| of(mine.kind(), model);
        let probes = ask.down().probes.iter().all(|probe| {
            (probe.kind as usize) < self.families.count()
                && if self.public == 0 {
                    of(probe.kind as usize, &probe.shown)
                } else {
                    probe.shown.len() == self.public as usize && probe.shown.iter().all(|y| y.is_finite())
                }
        });
        // What is served to a client that is no target is empty.
        probes && (ask.label() != SELECT || ask.down().models.iter().all(reads))
    }

    fn client<'g>(
        &self,
        mine: &Mine,
        (): &mut (),
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        _: &mut Buffers,
        _: Up,
    ) -> Result<Released<'g, Self::Raw>, Refusal> {
        match ask.label() {
            SETUP => {
                let family = self.families.get(mine.kind()).ok_or(Refusal::Unsolved)?;
                let model = mine.alone(family).map_err(|_| Refusal::Unsolved)?;
                let models = gate.disclose(self.named([mine.kind()].into_iter()), Box::from([model]))?;
                Ok(models.zip(gate.nothing()))
            }
            PROBE => {
                let mut models = Vec::with_capacity(ask.down().probes.len());
                for probe in &ask.down().probes {
                    let family = self.families.get(probe.kind as usize).ok_or(Refusal::Unsolved)?;
                    let labels;
                    let labels = if self.public == 0 {
                        let columns = mine.data().columns();
                        labels = labels_of(family, &probe.shown, mine.points(), columns)
                            .ok_or(Refusal::Unsolved)?;
                        &labels
                    } else {
                        &probe.shown
                    };
                    models.push(mine.retrained(family, labels).map_err(|_| Refusal::Unsolved)?);
                }
                let named = self.named(ask.down().probes.iter().map(|probe| probe.kind as usize));
                let models = gate.disclose(named, models.into_boxed_slice())?;
                Ok(models.zip(gate.nothing()))
            }
            _ => {
                let mut best: Option<(u32, f64)> = None;
                for (number, model) in ask.down().models.iter().enumerate() {
                    let family = self.families.get(mine.kind()).ok_or(Refusal::Unsolved)?;
                    let loss = mean_squared_error(family, mine.data(), model);
                    if loss.is_nan() {
                        return Err(Refusal::Unsolved);
                    }
                    if best.is_none_or(|(_, least)| loss < least) {
                        best = Some((number as u32, loss));
                    }
                }
                let (choice, loss) = best.ok_or(Refusal::Unsolved)?;
                let both = gate.disclose("choice", choice)?.zip(gate.disclose("loss", loss)?);
                Ok(gate.nothing::<Box<_>>().zip(both))
            }
        }
    }

    fn finish((models, (choice, loss)): Self::Raw, _: &Ask<'_, Self>) -> Up {
        Up { models, choice, loss }
    }

    fn personal(&self, _: &Mine, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        let model = served.down().models.first().map_or(&[][..], Vec::as_slice);
        out("client", model);
    }

    fn gauges(&self, server: &Central, out: &mut dyn FnMut(&'static str, f64)) {
        out("queries", server.queries as f64 / f64::from(server.targets));
    }

    fn kin(&self, _: &Central, seats: &[Seat], _: ServerView<'_>) -> Option<ServerKin> {
        Some(exchange::kin(seats))
    }

    fn advice(&self) -> &'static str {
        "raise `run.max_norm`: a fitted model may hold records"
    }
}
