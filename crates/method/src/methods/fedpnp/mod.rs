//! `FedPnP`: every client has its own model, and the server denoises all of them over a graph of clients.
//!
//! Paper: Plug-and-play federated learning with graph denoisers (`FedPnP`); equation numbers are its. With the models of the
//! clients as rows of Omega, a round is
//!
//! ```text
//! omega_k = argmin f_k(w) + (mu/2) |w - Psi_k|^2,   by E epochs of mini-batches from Psi_k        (9), at the clients
//! Psi     = filter(Omega)                                                                       (11), at the server
//! ```
//!
//! with a filter of [`denoise`](fedkin_graph::denoise) whose strength falls from nu0 to beta (decision 5 of the specification: the
//! printed rule alternates). The default filter weights clients by size and has both limits: `beta = 0` is local training and
//! `beta -> infinity` is `FedAvg` (`FedProx` with mu > 0), for clients of any sizes.
//!
//! A local step that gets shorter while the filter stays as it is changes what is solved: with r for the length of the steps,
//! a point that a round leaves alone has `2 beta1 L Psi = -r P grad f(Psi)`, so differences cost `beta1 / r` against losses, and
//! all models become one as r falls. With `paced` the weights fall as the learning rate does, and the balance stays.
//!
//! | symbol | here |
//! |---|---|
//! | mu | `pull` |
//! | beta1, beta2, tau | `beta1`, `beta2`, `tau` |
//! | nu0, eta | `nu0`, `eta`; `paced` is ours |
//! | E | `epochs` |
//! | A | `graph`, and for nearest neighbours `neighbours`, `weak`, `statistics` |
//!
//! The graph comes from statistics that clients tell in a step of its own, through the gate like anything else: disclosed, or
//! with `dp-sgd` a noisy sum of clipped records (means of features and shares of labels, no higher moments). Or it comes from
//! models, which the server has anyway; or from losses that clients tell of each other's models (`rewards`). Until there is
//! one, every client trains alone.
//!
//! Running statistics of batch norm are averaged with positive weights, or stay a client's own: a filter may have negative
//! entries, and a variance must not become negative.

mod filter;
mod graph;
mod settings;
mod setup;

use self::filter::Ready;
pub use self::settings::{FedPnpSettings, GraphSource, RunningStatistics, Statistic};
use self::settings::{Resolved, Source, UNPACED};
use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Halt, Label, Now, Personal, Phase, ROUND, Run, Seats, ServerKin,
    ServerView, Who,
};
use crate::federation::{Federation, Member};
use crate::registry::{Context, Method};
use fedkin_graph::Sparse;
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Abilities, Dataset, Learner, Pull};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::Weights;
use fedkin_numeric::rng::PublicRng;
use fedkin_numeric::{record, scale};
use fedkin_privacy::{Anchor, Anchored, Cost, Draws, Gate, Protection, Refusal, Released};
use std::sync::Arc;

/// Statistics are asked for.
const SETUP: Label = Label::new(1);
/// Losses of others' models are asked for.
const PROBE: Label = Label::new(2);

record! {
    /// The last model of a client, what it is served, and what it told last.
    pub struct Seat { omega: Weights, psi: Weights, told: Vec<f64> }
    /// A graph of clients by position: pairs one after the other, their weights, and the weight between all.
    pub struct Edges { ends: Box<[u32]>, weights: Vec<f64>, everywhere: f64 }
    /// Where all begin, the graph, and why the run cannot go on.
    pub struct Central {
        start: Weights,
        graph: Option<Edges>,
        halt: Option<Halt>,
        /// All models, while clients are asked about them.
        menu: Box<[Weights]>,
        strength: f64,
        ready: Ready,
    }
    /// Models of all clients, for a probe.
    pub struct Others { models: Box<[Weights]> }
    /// What a client is served, and its step on a Poisson sample: `w <- keep w - share g - pull (w - psi)`.
    /// At the set-up `share` is one record's part of a mean.
    pub struct Down { psi: Weights, keep: f64, share: f64, pull: f64 }
    /// A model, or what was asked for otherwise.
    pub struct Up { model: Weights, told: Vec<f64> }
    /// The model after the last local step.
    pub struct Memory { model: Weights }
}

impl Central {
    /// The last model of a client. One that never answered still has the first.
    fn known<'a>(&'a self, seat: &'a Seat) -> &'a Weights {
        if seat.omega.is_empty() { &self.start } else { &seat.omega }
    }
}

/// The method.
#[derive(Debug, Clone)]
pub struct FedPnp {
    settings: Resolved,
}

impl Method for FedPnp {
    type Settings = FedPnpSettings;
    const NEEDS: Abilities = Abilities::PARAMETERS.and(Abilities::DESCEND);
    const COVERED_BY: &'static [Protection] = &[Protection::DpSgd];

    fn build(settings: FedPnpSettings, context: &Context) -> Result<Self, String> {
        Ok(Self { settings: Resolved::new(settings, context)? })
    }

    fn takes_client_graph(settings: &FedPnpSettings) -> bool {
        settings.graph == GraphSource::File
    }

    fn caveat(settings: &FedPnpSettings, context: &Context, rounds: u32) -> Option<&'static str> {
        settings.outlasts_training(rounds, &context.registry.denoisers).then_some(UNPACED)
    }
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Setup,
    Round(u32),
    Probe(u32),
    End,
}

impl FedPnp {
    /// What step `step` is, in a run of so many rounds; none is done before the first.
    fn turn(&self, step: u32, rounds: u32) -> Turn {
        if step == 0 {
            return Turn::Round(0);
        }
        let mut left = step;
        if self.settings.asks_first() {
            if left == 1 {
                return Turn::Setup;
            }
            left -= 1;
        }
        if !self.settings.probes() {
            return if left <= rounds { Turn::Round(left) } else { Turn::End };
        }
        for round in 1..=rounds {
            if left == 1 {
                return Turn::Round(round);
            }
            left -= 1;
            // A graph after the last round would serve nobody.
            if self.settings.due(round) && round < rounds {
                if left == 1 {
                    return Turn::Probe(round);
                }
                left -= 1;
            }
        }
        Turn::End
    }

    /// The round that a step belongs to.
    fn round(&self, step: u32, rounds: u32) -> u32 {
        match self.turn(step, rounds) {
            Turn::Setup => 0,
            Turn::Round(round) | Turn::Probe(round) => round,
            Turn::End => rounds,
        }
    }

    /// The graph that is due now, where there is a new one.
    fn graph(&self, server: &Central, seats: &Seats<'_, Seat>, turn: Turn) -> Option<Sparse> {
        let all = || seats.iter().collect::<Vec<&Seat>>();
        match (self.settings.source, turn) {
            (Source::SetupStatistics(told), Turn::Setup) => graph::from_told(&self.settings, told, &all()),
            (Source::Rewards, Turn::Probe(_)) => graph::from_losses(&self.settings, &all()),
            (Source::Learned | Source::FedGl, Turn::Round(round)) if self.settings.due(round) => {
                let models: Vec<&[f64]> =
                    all().into_iter().map(|seat| server.known(seat).as_slice()).collect();
                graph::from_models(&self.settings, &models)
            }
            _ => None,
        }
    }
}

impl Anchored<Others, Down> for FedPnp {
    fn anchor<'a>(ask: &'a Ask<'_, Self>) -> Anchor<'a> {
        let Down { psi, keep, share, pull } = ask.down();
        Anchor { served: psi, keep: *keep, share: *share, pull: *pull }
    }
}

/// Whether a server sends what belongs to such a step, for models of this length.
fn lengths_fit(length: usize, label: Label, Down { psi, .. }: &Down, Others { models }: &Others) -> bool {
    if label == SETUP {
        return psi.is_empty() && models.is_empty();
    }
    if label == PROBE {
        return psi.is_empty() && models.iter().all(|model| model.len() == length);
    }
    psi.len() == length && models.is_empty()
}

impl Algorithm for FedPnp {
    const NAME: &'static str = "fedpnp";
    const LABELS: &'static [&'static str] = &["round", "set-up", "probe"];
    const PERSONAL: &'static [&'static str] = &["omega", "psi"];
    const KEPT: &'static [bool] = &[true, false];
    /// The learner, and the records as they came.
    type Local = (Box<dyn Learner>, Arc<Dataset>);
    type Memory = Memory;
    type Server = Central;
    type Seat = Seat;
    type Common = Others;
    type Down = Down;
    /// What comes of noisy sums, or an upload as it is; the other is empty.
    type Raw = (Vec<f64>, Up);
    type Up = Up;
    type Share = ();

    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Central {
        let start = Weights(self.settings.training.family().start(at.run.dimension, rng));
        let ids: Vec<u32> = at.members.iter().map(|member| member.id).collect();
        let graph = match (self.settings.source, &at.run.kin) {
            (Source::File, Some(edges)) => graph::from_run(&self.settings, edges, &ids),
            (Source::Clusters, _) => graph::clusters(&self.settings, at.members),
            (Source::Complete, _) => graph::complete(ids.len()),
            _ => None,
        };
        Central { start, graph: graph.as_ref().map(Edges::of), ..Central::default() }
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) -> Seat {
        Seat::default()
    }

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.settings.suits(federation, run)
    }

    fn phase(&self, _: &Central, step: u32, run: &Run) -> Phase {
        match self.turn(step, run.rounds) {
            Turn::Setup => Phase::Ask(SETUP),
            Turn::Round(_) => Phase::Ask(ROUND),
            Turn::Probe(_) => Phase::Ask(PROBE),
            Turn::End => Phase::Deliver,
        }
    }

    fn rounds(&self, step: u32, run: &Run) -> u32 {
        self.round(step, run.rounds)
    }

    fn plan(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, now: Now<'_>) -> Who {
        if now.label == ROUND {
            return now.draw();
        }
        if now.label == PROBE {
            server.menu = seats.iter().map(|seat| server.known(seat).clone()).collect();
        }
        Who::All
    }

    fn common(&self, server: &Central, now: Now<'_>) -> Others {
        if now.label == PROBE { Others { models: server.menu.clone() } } else { Others::default() }
    }

    fn down(&self, server: &Central, seat: &Seat, now: Now<'_>, member: &Member, out: &mut Down) {
        let settings = &self.settings;
        if now.label == SETUP || now.label == PROBE {
            *out = Down { share: settings.training.part(member.samples), ..Down::default() };
            return;
        }
        out.psi.clone_from(if seat.psi.is_empty() { &server.start } else { &seat.psi });
        let round = self.round(now.step, now.at.run.rounds);
        (out.keep, out.share) = settings.training.sampled_step(round, now.at, member);
        out.pull = settings.training.rate(round) * settings.pull;
    }

    fn fits(&self, _: &Seat, now: Now<'_>, up: &Up) -> bool {
        if now.label == ROUND {
            return up.model.len() == now.at.run.dimension && up.told.is_empty();
        }
        // How many columns records have is not known here; what is too short or too long counts as nothing told.
        up.model.is_empty()
            && !up.told.is_empty()
            && (now.label != PROBE || up.told.len() == now.at.members.len())
    }

    fn cells(&self, _: ServerView<'_>) -> (usize, usize) {
        (0, 0)
    }

    fn absorb(&self, _: &Central, seat: &mut Seat, now: Now<'_>, _: &Member, up: &Up, _: &mut Cells) {
        if now.label == ROUND {
            seat.omega.clone_from(&up.model);
        } else {
            seat.told.clone_from(&up.told);
        }
    }

    fn close(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, closed: &Closed<'_>, _: &Cells) {
        server.halt = Halt::first_diverged(closed).map(|client| Halt::Diverged { client });
        let at = closed.now.at;
        let turn = self.turn(closed.now.step, at.run.rounds);
        if let Some(graph) = self.graph(server, seats, turn) {
            server.graph = Some(Edges::of(&graph));
        }
        server.menu = Box::default();
        if closed.now.label == ROUND
            && let Err(wrong) = self.filter(server, seats, at, self.round(closed.now.step, at.run.rounds))
        {
            let wrong = Halt::Method { cause: wrong.to_string(), remedy: String::new() };
            server.halt.get_or_insert(wrong);
        }
    }

    fn join(
        &self,
        data: &Arc<Dataset>,
        at: ServerView<'_>,
        member: &Member,
    ) -> Result<Self::Local, Unsolved> {
        Ok((self.settings.training.join(data, at, member)?, Arc::clone(data)))
    }

    fn fits_ask(&self, (learner, _): &Self::Local, ask: &Ask<'_, Self>) -> bool {
        lengths_fit(learner.dimension(), ask.label(), ask.down(), ask.common())
    }

    fn client<'g>(
        &self,
        (learner, data): &Self::Local,
        memory: &mut Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        _: Up,
    ) -> Result<Released<'g, Self::Raw>, Refusal> {
        let training = &self.settings.training;
        if ask.label() == SETUP {
            return self.statistics(data, gate);
        }
        if ask.label() == PROBE {
            return Self::losses(&**learner, &ask, gate, scratch);
        }
        let psi = &ask.down().psi;
        if training.batches.is_some() {
            let mut model = psi.0.clone();
            let round = self.round(ask.step(), u32::MAX);
            let mut rng = gate.rng("mini-batches");
            let pull = Some(Pull { centre: psi, weight: self.settings.pull });
            training.descend(&**learner, round, pull, &mut rng, &mut model, scratch)?;
            let model = Weights(model);
            let released = gate.disclose("model", Up { model: model.clone(), told: Vec::new() })?;
            memory.model = model;
            return Ok(gate.nothing::<Vec<f64>>().zip(released));
        }
        let model = training.sampled_steps::<Self>(&**learner, &ask, gate, scratch)?;
        memory.model = Weights(model.value().clone());
        Ok(model.zip(gate.nothing()))
    }

    fn finish((mut sum, rest): Self::Raw, ask: &Ask<'_, Self>) -> Up {
        if sum.is_empty() {
            return rest;
        }
        if ask.label() == ROUND {
            return Up { model: Weights(sum), ..rest };
        }
        scale(ask.down().share, &mut sum);
        Up { told: sum, ..rest }
    }

    fn price(&self, _: &Member, step: u32) -> Option<Cost> {
        let training = &self.settings.training;
        match self.turn(step, u32::MAX) {
            Turn::Setup if training.is_private() => training.sum(1).map(|sum| sum.cost()),
            Turn::Setup | Turn::Probe(_) => Some(Cost::default()),
            Turn::Round(_) | Turn::End => training.price(),
        }
    }

    fn draws(&self, _: &Member, step: u32) -> Option<Draws> {
        let draws = self.settings.training.draws()?;
        Some(match self.turn(step, u32::MAX) {
            Turn::Setup => Draws { steps: 1, ..draws },
            _ => draws,
        })
    }

    fn personal(&self, _: &Self::Local, memory: &Memory, served: Ask<'_, Self>, out: &mut Personal<'_>) {
        let psi = &served.down().psi;
        out("omega", if memory.model.is_empty() { psi } else { &memory.model });
        out("psi", psi);
    }

    fn gauges(&self, server: &Central, out: &mut dyn FnMut(&'static str, f64)) {
        out("filter strength", server.strength);
    }

    fn kin(&self, server: &Central, _: &[Seat], _: ServerView<'_>) -> Option<ServerKin> {
        let graph = server.graph.as_ref()?;
        Some(ServerKin { edges: graph.iter().collect(), clusters: Vec::new() })
    }

    fn complaint(&self, server: &Central) -> Option<Halt> {
        server.halt.clone()
    }

    fn advice(&self) -> &'static str {
        "lower `algorithm.learning_rate`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_models_of_the_own_length_are_worked_with() {
        let fits = |label, psi: usize, models: &[usize]| {
            let down = Down { psi: Weights(vec![0.5; psi]), ..Down::default() };
            let models = models.iter().map(|&length| Weights(vec![0.5; length])).collect();
            lengths_fit(3, label, &down, &Others { models })
        };
        assert!(fits(SETUP, 0, &[]) && fits(PROBE, 0, &[3, 3]) && fits(ROUND, 3, &[]));
        assert!(!fits(SETUP, 3, &[]) && !fits(SETUP, 0, &[3]));
        assert!(!fits(PROBE, 3, &[3]) && !fits(PROBE, 0, &[3, 2]));
        assert!(!fits(ROUND, 2, &[]) && !fits(ROUND, 0, &[]) && !fits(ROUND, 3, &[3]));
    }
}
