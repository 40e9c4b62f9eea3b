//! The client half that PGFL, GFedMtl and the single-step update share, around any server rule.
//!
//! Client objective (4) is one proximal step around one vector, so the dual lives in the seat:
//!
//! ```text
//! (4)  w_k   = argmin f_k(w) + (rho/2) |w - v_k|^2,      v_k = w_s + phi_k / rho
//! (12) w~_k  = w_k + noise
//! (8)  w~_sq = mean over the chosen clients of the cell of  w~_k - phi_k / rho
//! (5)  phi_k <- phi_k + rho (w - w~_k),                  w the rule's choice
//! ```
//!
//! | symbol | here |
//! |---|---|
//! | rho | `penalty` |
//! | phi_k | `Seat::dual` |
//! | v_k | `Down::centre` |
//! | w~_k | `Up::model` |
//! | `lambda / abs(C_s)` | `strength` |
//! | C | `bound`, the norm of one record's gradient; sensitivity of (4) is 2 C / (rho D_k), (43), or 2 C / rho for `unit = "client"` |
//!
//! After `dual -= rho w~_k`, `-dual / rho` is what (8) averages, and `dual += rho w` completes (5): no
//! upload is kept. The dual is computed from the perturbed model: from the exact one it would leak.
//! An empty cell (no chosen client of the cluster) uses the model the server last served for it.
//!
//! **Missing clients** (ours; rounds with a deadline). By (5) phi_k is the gradient of f_k where the client was heard
//! last, so its dual speaks for it while it is away: (8) takes w - phi_k / rho for it, as if it had answered with the model
//! w of the dual step, and phi_k stays. Where everybody is heard now and then, the fixed points are those without silence;
//! and so they are for those who fall silent once the models have settled. A dual is the gradient of another
//! place once the models have moved on: from a step of `|phi_k| / (2 rho)` on it is left out, as is a client that was never heard.

use crate::algorithm::{Algorithm, Ask, Cells, Closed, Held, Now, Personal, Run, Seats, ServerView, Shares};
use crate::families::Families;
use crate::federation::{Federation, Member};
use crate::registry::{Context, Method, privacy_of_graphs};
use crate::robust::{Liars, Robust};
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Abilities, Dataset, Learner, Terms, proofs as learner_bounds};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::Codec;
use fedkin_numeric::rng::PublicRng;
use fedkin_numeric::{axpy, blend, distance2, norm2, record, scale, update};
use fedkin_privacy::{
    Bound, Cost, Gate, Gaussian, Mechanism, Privacy, Protection, Refusal, Released, Zcdp, proofs,
};
use fedkin_settings::{Kind, Param, Preset, Settings};
use std::sync::Arc;

/// rho, as every method of the family declares it.
pub(super) const PENALTY: Param = Param {
    name: "penalty",
    kind: Kind::ABOVE_ZERO,
    preset: Preset::Number(5.0),
    help: "weight of the proximal term (rho); with dual = \"served\" values up to about 0.5 diverge",
};

/// How long the averaged read-out remembers.
pub(super) const READOUT: Param = Param {
    name: "readout_memory",
    kind: Kind::Number { least: 0.0, most: 0.9999, open: false },
    preset: Preset::Number(0.95),
    help: "memory per round of the averaged served model that is handed over at the end",
};

/// A dual speaks for a missing client until the model has moved by the dual's own step, `|phi_k| / rho`, over this. A larger
/// number gives up sooner: that costs what those know who fall silent for good, a smaller one what early silence distorts.
const STALE: f64 = 2.0;

/// What a server does with its aggregates: the particular part of a method.
pub trait Rule: Sized + Send + Sync + 'static {
    /// The method's name on the wire.
    const NAME: &'static str;
    /// Its keys, those of [`AdmmKeys`] among them.
    type Settings: Settings;
    /// What a server keeps.
    type State: Codec + Send + Sync;
    /// What it tells its neighbours.
    type Share: Codec + Default + Send + Sync;

    /// The rule, and the keys that every method of the family has, from settings that passed their table.
    fn build(settings: Self::Settings, context: &Context) -> Result<(Self, AdmmKeys), String>;
    /// The state before the first step: all models zero.
    fn open(&self, at: ServerView<'_>) -> Self::State;
    /// Takes the aggregates (8), one after the other by cluster.
    fn close(&self, state: &mut Self::State, now: Now<'_>, aggregates: Vec<f64>) -> Self::Share;
    /// Takes the shares of the neighbourhood, this server's own among them, by server id.
    fn mix(&self, state: &mut Self::State, now: Now<'_>, shares: &[(u32, &Self::Share)]);
    /// The models served to the clients, one after the other by cluster.
    fn served<'a>(&self, state: &'a Self::State) -> &'a [f64];
    /// The models in the dual step (5).
    fn dual<'a>(&self, state: &'a Self::State) -> &'a [f64] {
        self.served(state)
    }
    /// What to try when the iteration diverges.
    const ADVICE: &'static str = "raise `algorithm.penalty`";
}

/// The keys that every method of the family has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdmmKeys {
    /// Weight of the proximal term (rho).
    pub penalty: f64,
    /// Memory per round of the averaged served model.
    pub readout_memory: f64,
}

/// A method of the family: shared client half, particular server rule.
#[derive(Debug, Clone)]
pub struct Admm<R> {
    pub(super) rule: R,
    pub(super) families: Families,
    pub(super) penalty: f64,
    readout_memory: f64,
    /// The noise, and the bound on a record's gradient for each of the families.
    noise: Option<(Zcdp, Vec<Bound>)>,
    robust: Robust,
    liars: Option<Liars>,
}

/// A client's learner, and which of the run's families it is of.
pub struct Mine {
    pub(super) learner: Box<dyn Learner>,
    family: usize,
}

impl Mine {
    /// The client's learner.
    pub fn learner(&self) -> &dyn Learner {
        &*self.learner
    }
}

/// What the shared client half needs of a learner.
pub(super) const NEEDS: Abilities = Abilities::PARAMETERS.and(Abilities::PROX);

record! {
    /// What the server keeps for one client: phi_k; and while it is missing, the model of the dual step at its first miss.
    pub struct Seat { dual: Vec<f64>, since: Vec<f64> }
    /// What a client gets: v_k in a round; the served models at the end.
    pub struct Down { centre: Vec<f64>, averaged: Vec<f64> }
    /// What a client sends: its perturbed model.
    pub struct Up { model: Vec<f64> }
    /// The client's exact model. It feeds no later upload: the next step starts from the centre.
    pub struct Memory { model: Vec<f64> }
}

impl<R: Rule> Method for Admm<R> {
    type Settings = R::Settings;
    const NEEDS: Abilities = NEEDS;
    const COVERED_BY: &'static [Protection] = &[Protection::Zcdp];
    const ROBUST: bool = true;

    fn build(settings: R::Settings, context: &Context) -> Result<Self, String> {
        let (rule, keys) = R::build(settings, context)?;
        Self::new(rule, keys, context)
    }
}

impl<R: Rule> Admm<R> {
    /// Puts a rule together with the shared parameters; an enforced bound must exist where one is asked for.
    pub fn new(rule: R, keys: AdmmKeys, context: &Context) -> Result<Self, String> {
        let noise = match context.privacy {
            Privacy::None => None,
            Privacy::Zcdp(zcdp) => {
                let bounds = context.families.all().map(|family| learner_bounds::step(family, zcdp.assumed));
                Some((zcdp, bounds.collect::<Result<Vec<Bound>, String>>()?))
            }
            Privacy::OneShot(_) | Privacy::Paper(_) => {
                return Err(privacy_of_graphs(R::NAME, Protection::Zcdp));
            }
            Privacy::DpSgd(_) => {
                return Err(format!(
                    "{} sends the solution of a client's problem and has no gradients to clip: set \
                     privacy.mechanism = \"zcdp\" for it, or use {}",
                    R::NAME,
                    context.covered(&[Protection::DpSgd])
                ));
            }
        };
        let AdmmKeys { penalty, readout_memory } = keys;
        let (robust, liars) = (context.robust.clone(), context.liars.clone());
        Ok(Self { rule, families: context.families.clone(), penalty, readout_memory, noise, robust, liars })
    }

    /// (8), and what the rule makes of it.
    pub(super) fn gather(
        &self,
        server: &mut (R::State, Vec<f64>),
        closed: &Closed<'_>,
        sum: &Cells,
    ) -> R::Share {
        let run = closed.now.at.run;
        let mut aggregates = self.rule.served(&server.0).to_vec();
        for (cluster, aggregate) in aggregates.chunks_exact_mut(run.dimension).enumerate() {
            sum.mean_into(cluster, aggregate);
        }
        self.rule.close(&mut server.0, closed.now, aggregates)
    }

    /// What (8) takes of a client is cut to the bound of its cell, and so is what its seat keeps of it: `-dual / rho` is that
    /// term. A dual cannot grow from round to round by lies.
    fn shorten_duals(&self, seats: &mut Seats<'_, Seat>, closed: &Closed<'_>, sum: &Cells) {
        for position in closed.values() {
            let cluster = closed.now.at.members[position].cluster as usize;
            let Some(longest) = sum.longest(cluster) else { continue };
            let length = norm2(&seats.get(position).dual).sqrt() / self.penalty;
            if length > longest {
                scale(longest / length, &mut seats.get_mut(position).dual);
            }
        }
    }

    /// The terms of (8) of those who are missing.
    fn speak_for_the_missing(
        &self,
        server: &(R::State, Vec<f64>),
        seats: &mut Seats<'_, Seat>,
        closed: &Closed<'_>,
        sum: &mut Cells,
    ) {
        let models = self.rule.dual(&server.0);
        let mut term = Vec::new();
        for position in closed.missing() {
            let member = &closed.now.at.members[position];
            let model = &models[of_cluster(models, member.cluster, closed.now.at.run)];
            if seats.get(position).since.is_empty() {
                seats.get_mut(position).since.extend_from_slice(model);
            }
            let seat = seats.get(position);
            let moved = STALE * self.penalty * distance2(model, &seat.since).sqrt();
            if moved < norm2(&seat.dual).sqrt() {
                term.clear();
                term.extend_from_slice(model);
                axpy(-1.0 / self.penalty, &seat.dual, &mut term);
                sum.add(member.cluster as usize, 1.0, 1.0, &term);
            }
        }
    }

    /// The second half of (5), for a client of this cluster.
    pub(super) fn update_dual(
        &self,
        server: &(R::State, Vec<f64>),
        dual: &mut [f64],
        cluster: u32,
        run: &Run,
    ) {
        let models = self.rule.dual(&server.0);
        axpy(self.penalty, &models[of_cluster(models, cluster, run)], dual);
    }

    /// The mechanism of one client in one round, (12) and (47).
    fn mechanism(
        &self,
        samples: usize,
        family: usize,
        length: usize,
        round: u32,
    ) -> Result<Option<Gaussian>, Refusal> {
        let Some((zcdp, bounds)) = &self.noise else { return Ok(None) };
        let bound = bounds.get(family).ok_or(Refusal::NoMechanism)?;
        let sensitivity = proofs::proximal_step(*bound, self.penalty, zcdp.divisor(samples));
        zcdp.gaussian(sensitivity, round, length).map(Some).ok_or(Refusal::NoMechanism)
    }
}

pub(super) fn of_cluster(models: &[f64], cluster: u32, run: &Run) -> std::ops::Range<usize> {
    let start = cluster as usize * run.dimension;
    debug_assert!(start + run.dimension <= models.len());
    start..start + run.dimension
}

impl<R: Rule> Algorithm for Admm<R> {
    const NAME: &'static str = R::NAME;
    const VERSION: u16 = 2;
    const PERSONAL: &'static [&'static str] = &["client", "served", "averaged"];
    const SHARED: &'static [bool] = &[false, true, true];
    const KEPT: &'static [bool] = &[true, false, false];
    type Local = Mine;
    type Memory = Memory;
    /// The rule's state and the averaged served models.
    type Server = (R::State, Vec<f64>);
    type Seat = Seat;
    type Common = ();
    type Down = Down;
    type Raw = Vec<f64>;
    type Up = Up;
    type Share = R::Share;

    fn open(&self, at: ServerView<'_>, _: &mut PublicRng) -> Self::Server {
        (self.rule.open(at), vec![0.0; at.run.clusters * at.run.dimension])
    }

    fn seat(&self, at: ServerView<'_>, _: &Member) -> Seat {
        Seat { dual: vec![0.0; at.run.dimension], since: Vec::new() }
    }

    fn down(&self, server: &Self::Server, seat: &Seat, now: Now<'_>, member: &Member, out: &mut Down) {
        let served = self.rule.served(&server.0);
        let served = &served[of_cluster(served, member.cluster, now.at.run)];
        let share = 1.0 / self.penalty;
        out.centre.clear();
        out.centre.extend_from_slice(served);
        update(&mut out.centre, &seat.dual, |w, dual| w + dual * share);
        out.averaged.clear();
    }

    fn serve(&self, server: &Self::Server, _: &Seat, now: Now<'_>, member: &Member, out: &mut Down) {
        let served = self.rule.served(&server.0);
        let range = of_cluster(served, member.cluster, now.at.run);
        out.centre.clear();
        out.centre.extend_from_slice(&served[range.clone()]);
        out.averaged.clear();
        out.averaged.extend_from_slice(&server.1[range]);
    }

    fn fits(&self, _: &Seat, now: Now<'_>, up: &Up) -> bool {
        up.model.len() == now.at.run.dimension
    }

    fn robust(&self) -> Option<&Robust> {
        Some(&self.robust)
    }

    fn lie(&self, client: u32, up: &mut Up, ask: &Ask<'_, Self>) {
        if let Some(liars) = &self.liars {
            liars.alter(client, &mut up.model, &ask.down().centre);
        }
    }

    fn absorb(
        &self,
        _: &Self::Server,
        seat: &mut Seat,
        _: Now<'_>,
        member: &Member,
        up: &Up,
        sum: &mut Cells,
    ) {
        seat.since.clear();
        axpy(-self.penalty, &up.model, &mut seat.dual);
        sum.add(member.cluster as usize, 1.0, -1.0 / self.penalty, &seat.dual);
    }

    fn close(
        &self,
        server: &mut Self::Server,
        seats: &mut Seats<'_, Seat>,
        closed: &Closed<'_>,
        sum: &Cells,
    ) -> R::Share {
        self.shorten_duals(seats, closed, sum);
        if closed.counts.missing == 0 {
            return self.gather(server, closed, sum);
        }
        let mut sum = sum.clone();
        self.speak_for_the_missing(server, seats, closed, &mut sum);
        self.gather(server, closed, &sum)
    }

    fn mix(&self, server: &mut Self::Server, now: Now<'_>, shares: &Shares<'_, Self>) {
        self.rule.mix(&mut server.0, now, shares);
        blend(&mut server.1, self.rule.served(&server.0), window(self.readout_memory, now.step));
    }

    fn settle(&self, server: &Self::Server, seat: &mut Seat, now: Now<'_>, member: &Member) {
        self.update_dual(server, &mut seat.dual, member.cluster, now.at.run);
    }

    fn held(&self, server: &Self::Server, run: &Run, out: &mut Held<'_>) {
        let served = self.rule.served(&server.0).chunks_exact(run.dimension);
        for (cluster, (served, averaged)) in served.zip(server.1.chunks_exact(run.dimension)).enumerate() {
            out(cluster as u32, "served", served);
            out(cluster as u32, "averaged", averaged);
        }
    }

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.families.one_space(federation, run)
    }

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, member: &Member) -> Result<Mine, Unsolved> {
        let terms = Terms::among(at.members.len()).weighing(self.penalty);
        let learner = self.families.of(at.run, member.id).join(data, terms)?;
        Ok(Mine { learner, family: at.run.learner(member.id) })
    }

    fn fits_ask(&self, mine: &Mine, ask: &Ask<'_, Self>) -> bool {
        let (centre, averaged) = (ask.down().centre.len(), ask.down().averaged.len());
        centre == mine.learner.dimension() && (averaged == 0 || averaged == centre)
    }

    fn client<'g>(
        &self,
        mine: &Mine,
        memory: &mut Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        mut spare: Up,
    ) -> Result<Released<'g, Vec<f64>>, Refusal> {
        let learner = &*mine.learner;
        let mechanism = self.mechanism(learner.rows(), mine.family, learner.dimension(), ask.step())?;
        spare.model.resize(learner.dimension(), 0.0);
        let centre = &ask.down().centre;
        match learner.prox(centre, self.penalty, &mut spare.model, scratch) {
            Ok(_) => {}
            // A refusal would tell, for nothing, that these records lead here: what was asked leaves, with noise.
            Err(failure) if mechanism.as_ref().is_some_and(Mechanism::private) => {
                gate.failed(failure.into());
                spare.model.clone_from(centre);
            }
            Err(failure) => return Err(failure.into()),
        }
        memory.model.clone_from(&spare.model);
        gate.pass("model", mechanism.as_ref(), spare.model)
    }

    #[inline]
    fn finish(model: Vec<f64>, _: &Ask<'_, Self>) -> Up {
        Up { model }
    }

    fn personal(&self, _: &Mine, memory: &Memory, served: Ask<'_, Self>, out: &mut Personal<'_>) {
        name(memory, &served.down().centre, &served.down().averaged, out);
    }

    fn personal_in_place(
        &self,
        server: &Self::Server,
        now: Now<'_>,
        member: &Member,
        memory: &Memory,
        out: &mut Personal<'_>,
    ) -> bool {
        let served = self.rule.served(&server.0);
        let range = of_cluster(served, member.cluster, now.at.run);
        name(memory, &served[range.clone()], &server.1[range], out);
        true
    }

    fn price(&self, member: &Member, step: u32) -> Option<Cost> {
        // The length decides about the grid, not about the price.
        let mechanism = self.mechanism(member.samples as usize, 0, 1, step).ok()?;
        Some(mechanism.map_or_else(Cost::default, |mechanism| mechanism.cost()))
    }

    fn noise(&self, member: &Member, length: usize, step: u32) -> Option<f64> {
        // Learners with bounds of their own have noise of their own.
        let one =
            self.noise.as_ref().is_some_and(|(_, bounds)| bounds.windows(2).all(|two| two[0] == two[1]));
        let mechanism = self.mechanism(member.samples as usize, 0, length, step).ok()?.filter(|_| one)?;
        mechanism.private().then(|| mechanism.sigma())
    }

    fn advice(&self) -> &'static str {
        R::ADVICE
    }
}

/// A client's models by name.
pub(super) fn name(memory: &Memory, served: &[f64], averaged: &[f64], out: &mut Personal<'_>) {
    if memory.model.is_empty() {
        // A client that was never chosen still has its first model, zero.
        out("client", &vec![0.0; served.len()]);
    } else {
        out("client", &memory.model);
    }
    out("served", served);
    out("averaged", averaged);
}

/// The weight of the newest value in an exponential average whose window grows at the start.
pub(super) fn window(memory: f64, step: u32) -> f64 {
    (1.0 - memory).max(1.0 / f64::from(step))
}
