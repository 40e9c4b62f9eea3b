//! `PersFL`: a client finds its kin by probing, and learns from the steps that help it.
//!
//! Paper: Jung, `SarcheshmehPour` and Mohammadi, Personalized federated learning via active sampling, Algorithm 1.
//!
//! Each round a *target* t with model w draws B *candidates*. In the step PROBE each of them sends its gradient at w; in
//! SELECT the target is offered the models these gradients lead to, and answers with the best by its own loss:
//!
//! ```text
//! w_b  = w - eta grad L_b(w)              (1)   for every candidate b
//! b*   = argmin L_t(w_b)                  (3)
//! w   <- w_{b*}                                 if the guard accepts L_t(w_{b*})
//! ```
//!
//! | symbol | here |
//! |---|---|
//! | B | `candidates` |
//! | eta | `learning_rate` |
//! | R | `run.rounds`: exactly so many rounds, two steps each |
//! | `grad L` | `gradient_scale`: "mean" is (2/m) X'(Xw - y) as printed; "sum" is X'(Xw - y), which the published curves need |
//! | C | `sampling`: who may be drawn |
//!
//! The paper trains one client; here any number of targets is trained at once, each with a model of its own at the
//! server. What leaves a candidate are gradients, what leaves a target is an index and a loss: all of it is disclosed,
//! none of it is private, and the ledger says so. Clients keep nothing. The server has every gradient and every model,
//! so it applies the chosen step itself.
//!
//! `sampling = "cluster"` draws from the roster's own cluster of the target: the paper's oracle with `candidates = 1`.
//!
//! With rewards ("bandit", "graph") a target tells the losses of all B steps, the server remembers what each candidate
//! was worth to it (`worth`), asks those again that were worth most, and averages the good steps. With "graph" that lasts
//! for `warm_up` rounds; then rewards are cut into groups (`cut`), which train one model each with all their members,
//! one query per client and round, and part with members that do not belong (`groups`).
//!
//! Reductions: one candidate from a cluster of identical clients is gradient descent; with B = n - 1 every other
//! client is asked in every round.

mod cut;
mod draw;
mod exchange;
mod groups;
mod settings;
mod worth;

use super::guard::{Accept, Watch};
use super::scale::GradientScale;
use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Label, Now, Personal, Phase, Run, Seats, ServerKin, ServerView, Who,
};
use crate::families::Families;
use crate::federation::{Federation, Member};
use crate::sent_as_released;
pub use draw::Sampling;
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Dataset, Learner, Terms};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::record;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Gate, Refusal, Released};
use groups::{Groups, World};
pub use settings::{PersFlSettings, PersFlStart};
use std::sync::Arc;
use worth::Worth;

/// Candidates send gradients at the targets' models.
const PROBE: Label = Label::new(0);
/// Targets choose among the steps.
const SELECT: Label = Label::new(1);

/// Members of a group send gradient and loss at its model.
const GATHER: Label = Label::new(2);
/// Clients score the models of groups.
const CHECK: Label = Label::new(3);

/// Above this many clients, rewards of all pairs are more than a server should keep.
const MOST_PAIRED: usize = 10_000;

/// So many tries of a pair count for how sure the bandit is of it.
const CAP: f64 = 3.0;
/// Steps up to so many times the least loss are averaged, where rewards are remembered.
const GOOD: f64 = 2.0;

/// The method.
#[derive(Debug, Clone)]
pub struct PersFl {
    families: Families,
    candidates: u32,
    learning_rate: f64,
    sampling: Sampling,
    accept: Accept,
    gradient_scale: GradientScale,
    start: PersFlStart,
    /// Rounds of probing before groups are formed, where they are.
    warm_up: u32,
    watched: bool,
}

record! {
    /// What the server knows of all targets.
    pub struct Central {
        /// The models of the targets, one after the other.
        models: Vec<f64>,
        /// The candidates of this round, as many for every target, one target after the other.
        candidates: Box<[u32]>,
        /// Which of the models a candidate was shown belongs to the target, in the same order.
        places: Box<[u32]>,
        /// The targets that clients are candidates for, client by client.
        probes: Box<[u32]>,
        /// By client: its gradients, in the order of its targets; empty where it did not answer.
        gradients: Box<[Vec<f64>]>,
        /// Queries so far.
        queries: u64,
        /// What clients were worth to targets, where that decides who is asked.
        worth: Worth,
        /// Groups of kin, once they are formed.
        groups: Groups,
    }
    /// What the server keeps for one client.
    pub struct Seat {
        /// How many models it was sent, and of a candidate, where its list of targets begins.
        offered: u32,
        first: u32,
        /// Its last answer.
        choice: u32,
        numbers: Vec<f64>,
        /// The guard of a target.
        watch: Watch,
    }
    /// PROBE of one target: its model.
    pub struct Common { model: Vec<f64> }
    /// PROBE: the models of the targets, where there are several. SELECT: the steps to choose from, and where rewards
    /// are remembered the model as it is. GATHER and CHECK: models of groups. At the end: the client's own model.
    pub struct Down { models: Vec<f64> }
    /// PROBE: one gradient per model. SELECT: the best step and its loss, or all losses. GATHER: gradient and loss.
    /// CHECK: losses.
    pub struct Up { choice: u32, numbers: Vec<f64> }
}

/// The number of a client among the targets.
fn target_of(run: &Run, id: u32) -> Option<usize> {
    match &run.targets {
        None => Some(id as usize),
        Some(targets) => targets.binary_search(&id).ok(),
    }
}

/// Whether all candidates get the same model.
fn single(run: &Run) -> bool {
    run.targets.as_ref().is_some_and(|targets| targets.len() == 1)
}

/// The client behind a number of a target.
fn client_of(run: &Run, target: usize) -> usize {
    run.targets.as_ref().map_or(target, |targets| targets[target] as usize)
}

impl Algorithm for PersFl {
    const NAME: &'static str = "persfl";
    const VERSION: u16 = 3;
    const LABELS: &'static [&'static str] = &["probe", "select", "gather", "check"];
    const PERSONAL: &'static [&'static str] = &["client"];
    type Local = Box<dyn Learner>;
    type Memory = ();
    type Server = Central;
    type Seat = Seat;
    type Common = Common;
    type Down = Down;
    type Up = Up;
    type Share = ();

    sent_as_released!();

    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Central {
        let targets = at.run.targets.as_ref().map_or(at.members.len(), |targets| targets.len());
        let mut models = vec![0.0; targets * at.run.dimension];
        match self.start {
            PersFlStart::Zero => {}
            PersFlStart::Uniform => models.iter_mut().for_each(|w| *w = rng.uniform()),
            PersFlStart::Normal => models.iter_mut().for_each(|w| *w = rng.normal()),
        }
        let clients = at.members.len();
        let worth =
            if self.sampling.remembers() { Worth::unknown(targets, clients) } else { Worth::default() };
        Central { models, gradients: vec![Vec::new(); clients].into(), worth, ..Central::default() }
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) -> Seat {
        Seat::default()
    }

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.families.one_space(federation, run)?;
        self.families.one_shrinkage(federation, run)?;
        draw::possible(self.sampling, self.candidates, federation, run)?;
        let clients = federation.members().len();
        if self.sampling.remembers() && clients > MOST_PAIRED {
            return Err(format!(
                "algorithm.sampling by rewards keeps a number for every pair, too many for {clients} clients: use at most \
                 {MOST_PAIRED}, or sampling = \"uniform\""
            ));
        }
        if self.sampling == Sampling::Graph && run.targets.is_some() {
            return Err(
                "algorithm.sampling = \"graph\" finds kin among all clients: set targets = \"all\", or \
                        sampling = \"bandit\""
                    .into(),
            );
        }
        if self.sampling == Sampling::Graph && run.rounds <= self.warm_up {
            return Err(format!(
                "algorithm.warm_up = {} leaves nothing of run.rounds = {} for the groups: raise the rounds, or lower it",
                self.warm_up, run.rounds
            ));
        }
        Ok(())
    }

    fn rounds(&self, step: u32, _: &Run) -> u32 {
        if self.grouped(step) { step - self.warm_up } else { step / 2 }
    }

    fn phase(&self, server: &Central, step: u32, run: &Run) -> Phase {
        match step {
            _ if self.rounds(step - 1, run) >= run.rounds => Phase::Deliver,
            _ if self.grouped(step) => Phase::Ask(server.groups.label()),
            _ if step % 2 == 1 => Phase::Ask(PROBE),
            _ => Phase::Ask(SELECT),
        }
    }

    fn plan(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, now: Now<'_>) -> Who {
        if now.label == PROBE {
            return self.draw(server, seats, now);
        }
        if self.grouped(now.step) {
            let (asked, queries) = server.groups.lay_out(now.at.members.len());
            server.queries += queries;
            let d = now.at.run.dimension;
            for &i in &asked {
                seats.get_mut(i as usize).offered = (server.groups.sent(i as usize, d).len() / d) as u32;
            }
            return Who::Some(asked);
        }
        let run = now.at.run;
        let mut asked = Vec::new();
        for target in 0..server.models.len() / run.dimension {
            let offered = self.offers(server, run.dimension, target).count() as u32;
            if offered > 0 {
                let client = client_of(run, target);
                seats.get_mut(client).offered = offered;
                asked.push(client as u32);
            }
        }
        Who::Some(asked)
    }

    fn common(&self, server: &Central, now: Now<'_>) -> Common {
        let broadcast = now.label == PROBE && single(now.at.run);
        Common { model: if broadcast { server.models.clone() } else { Vec::new() } }
    }

    #[inline]
    fn down(&self, server: &Central, seat: &Seat, now: Now<'_>, member: &Member, out: &mut Down) {
        out.models.clear();
        if now.label != PROBE || !single(now.at.run) {
            self.own_part(server, seat, now, member, &mut out.models);
        }
    }

    fn serve(&self, server: &Central, _: &Seat, now: Now<'_>, member: &Member, out: &mut Down) {
        out.models.clear();
        out.models.extend_from_slice(Self::model_of(server, now.at.run, member.id));
    }

    fn fits(&self, seat: &Seat, now: Now<'_>, up: &Up) -> bool {
        let (offered, d) = (seat.offered as usize, now.at.run.dimension);
        match now.label {
            PROBE => up.numbers.len() == offered * d,
            GATHER => up.numbers.len() == d + 1,
            CHECK => up.numbers.len() == offered,
            _ => {
                let losses = if self.sampling.remembers() { offered + 1 } else { 1 };
                up.choice < seat.offered && up.numbers.len() == losses
            }
        }
    }

    fn cells(&self, _: ServerView<'_>) -> (usize, usize) {
        (0, 0)
    }

    #[inline]
    fn absorb(&self, _: &Central, seat: &mut Seat, _: Now<'_>, _: &Member, up: &Up, _: &mut Cells) {
        seat.choice = up.choice;
        seat.numbers.clone_from(&up.numbers);
    }

    fn close(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, closed: &Closed<'_>, _: &Cells) {
        let run = closed.now.at.run;
        if closed.now.label == PROBE {
            for position in closed.values() {
                std::mem::swap(&mut server.gradients[position], &mut seats.get_mut(position).numbers);
            }
            return;
        }
        let members = closed.now.at.members;
        if self.grouped(closed.now.step) {
            let mut answers: Vec<&[f64]> = vec![&[]; members.len()];
            closed.values().for_each(|position| answers[position] = &seats.get(position).numbers);
            let parts = members.len() as f64;
            let shrink = |w: &mut [f64], rate: f64| self.families.first().shrink(w, rate / parts);
            let rate = self.learning_rate;
            let world = World { members, warm: &server.models, d: run.dimension, rate, shrink: &shrink };
            server.groups.close(&answers, &world);
            return;
        }
        for position in closed.values() {
            if let Some(target) = target_of(run, position as u32) {
                self.choose(server, seats.get_mut(position), run, target, members.len());
            }
        }
        if self.sampling == Sampling::Graph && closed.now.step == 2 * self.warm_up {
            let labels = cut::groups(&server.worth.closeness(members.len()), members.len());
            server.groups = Groups::new(&labels, &server.models, run.dimension, self.watched);
        }
    }

    fn join(
        &self,
        data: &Arc<Dataset>,
        at: ServerView<'_>,
        member: &Member,
    ) -> Result<Self::Local, Unsolved> {
        self.families.of(at.run, member.id).join(data, Terms::among(at.members.len()))
    }

    fn fits_ask(&self, mine: &Self::Local, ask: &Ask<'_, Self>) -> bool {
        let length = mine.dimension();
        let broadcast = ask.common().model.len();
        ask.down().models.len().is_multiple_of(length) && (broadcast == 0 || broadcast == length)
    }

    fn client<'g>(
        &self,
        mine: &Self::Local,
        (): &mut (),
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        spare: Up,
    ) -> Result<Released<'g, Up>, Refusal> {
        let (models, mut numbers) = (&ask.down().models, spare.numbers);
        if ask.label() == PROBE {
            let broadcast = &ask.common().model;
            let models = if broadcast.is_empty() { models } else { broadcast };
            let scale = self.gradient_scale.factor(mine.rows());
            numbers.resize(models.len(), 0.0);
            mine.gradients(models, scale, &mut numbers, scratch)?;
            return gate.disclose("gradients", Up { choice: 0, numbers });
        }
        if ask.label() == GATHER {
            numbers.resize(models.len(), 0.0);
            mine.gradients(models, 1.0, &mut numbers, scratch)?;
            let mut loss = Vec::new();
            mine.values(models, &mut loss, scratch)?;
            numbers.extend(loss);
            return gate.disclose("gradient and loss", Up { choice: 0, numbers });
        }
        mine.values(models, &mut numbers, scratch)?;
        if ask.label() == CHECK {
            return gate.disclose("losses of models", Up { choice: 0, numbers });
        }
        // The last is the model as it is.
        let offered = numbers.len() - usize::from(self.sampling.remembers());
        let best = (0..offered).min_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
        let choice = best.ok_or(Refusal::Unsolved)?;
        if self.sampling.remembers() {
            return gate.disclose("losses of steps", Up { choice: choice as u32, numbers });
        }
        let loss = numbers[choice];
        numbers.clear();
        numbers.push(loss);
        gate.disclose("choice and loss", Up { choice: choice as u32, numbers })
    }

    fn personal(&self, _: &Self::Local, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &served.down().models);
    }

    fn personal_in_place(
        &self,
        server: &Central,
        now: Now<'_>,
        member: &Member,
        (): &(),
        out: &mut Personal<'_>,
    ) -> bool {
        out("client", Self::model_of(server, now.at.run, member.id));
        true
    }

    fn gauges(&self, server: &Central, out: &mut dyn FnMut(&'static str, f64)) {
        let targets = (server.candidates.len() / self.candidates as usize).max(1);
        out("queries", server.queries as f64 / targets as f64);
    }

    fn kin(&self, server: &Central, _: &[Seat], at: ServerView<'_>) -> Option<ServerKin> {
        if !self.sampling.remembers() {
            return None;
        }
        let clients = at.members.len();
        let clusters = match (server.groups.is_empty(), &at.run.targets) {
            (false, _) => server.groups.labels(clients),
            (true, None) => cut::groups(&server.worth.closeness(clients), clients),
            (true, Some(_)) => Vec::new(),
        };
        let kin =
            |&(a, b, worth): &(u32, u32, f64)| match (clusters.get(a as usize), clusters.get(b as usize)) {
                (Some(a), Some(b)) => a == b,
                _ => worth > 0.0,
            };
        let mut edges = server.worth.pairs(at.run, clients);
        edges.retain(kin);
        Some(ServerKin { edges, clusters })
    }

    fn advice(&self) -> &'static str {
        "lower `algorithm.learning_rate`, or set `algorithm.accept` to \"guard\""
    }
}
