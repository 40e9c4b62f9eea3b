//! IFCA: as many models as there are clusters; every client trains the one that fits it best.
//!
//! Paper: Ghosh, Chung, Yin and Ramchandran, An efficient framework for clustered federated learning, 2022.
//!
//! In each round every asked client i gets the k models and picks one by its own loss:
//!
//! ```text
//! j(i) = argmin_j L_i(w_j)
//! w_j <- w_j - eta / n_j * sum over i with j(i) = j of grad L_i(w_j)          averaging = "gradient"
//! w_j <- w_j + 1 / n_j * sum over i with j(i) = j of (w^i - w_j)              averaging = "model"
//! ```
//!
//! where w^i comes from E gradient steps of client i from `w_j` on all its records, or from E epochs of mini-batches. Nets
//! take mini-batches, are picked by their mean loss in evaluation mode, and begin as nets do, each model drawn anew.
//!
//! | symbol | here |
//! |---|---|
//! | k | `models`; the number of clusters in the roster where absent |
//! | eta, E | `learning_rate`, `local_steps` or `epochs` |
//! | `n_j` | `divide`: the clients that picked j, or all that answered (the paper's own rule, smaller steps) |
//! | | `restarts`: fresh random models, each trained for `run.rounds`; the restart with the least loss is served |
//!
//! A pick is an argmin over a client's data and a loss is a function of it: both are disclosed with the gradient. Every
//! round asks every client, and k must be known, which is what `PersFL` does without. A client's own model is the one it
//! picks among those served; "first" is model 0, whichever cluster that is (what one published comparison plotted).
//!
//! Reductions: k = 1 with "gradient" is gradient descent on the mean loss; with one client per cluster and right picks
//! every client descends alone; k = 1 with mini-batches is `FedAvg` with uniform weights.

mod settings;

pub use settings::{Averaging, Divisor, IfcaSettings, IfcaStart};

use super::scale::GradientScale;
use super::training::Training;
use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Halt, Held, Now, Personal, Phase, ROUND, Run, Seats, ServerKin,
    ServerView, Who,
};
use crate::families::Families;
use crate::federation::{Federation, Member};
use crate::sent_as_released;
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Dataset, Learner, Terms};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::Weights;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{axpy, record, update};
use fedkin_privacy::{Gate, Refusal, Released};
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Ifca {
    families: Families,
    models: Option<usize>,
    learning_rate: f64,
    work: Work,
    divide: Divisor,
    gradient_scale: GradientScale,
    restarts: u32,
    start: IfcaStart,
    start_scale: f64,
}

/// What a client does with the model it picked.
#[derive(Debug, Clone)]
enum Work {
    /// Sends the gradient there.
    Gradient,
    /// Takes this many steps on all its records and sends the model.
    Steps(u32),
    /// Goes over mini-batches and sends the model.
    Batches(Box<Training>),
}

/// A client's learner, and how many rounds a restart has.
pub struct Mine(Box<dyn Learner>, u32);

record! {
    /// The models of the restart that runs, and of the best one that is done.
    pub struct Attempts {
        models: Weights,
        best: Weights,
        least: Option<f64>,
        /// The client whose training diverged.
        failed: Option<u32>,
        /// How many gradients were asked for, and for how many clients.
        queries: u64,
        targets: u32,
    }
    /// The model a client picked last.
    pub struct Picked { model: Option<u32> }
    /// The models, one after the other.
    pub struct Menu { models: Weights }
    /// The picked model, the gradient at it or the model after the steps, and last the loss before them.
    pub struct Pick { model: u32, numbers: Weights }
}

impl Ifca {
    fn count(&self, run: &Run) -> usize {
        self.models.unwrap_or(run.clusters)
    }

    fn fresh(&self, run: &Run, rng: &mut PublicRng) -> Vec<f64> {
        let family = self.families.first();
        if family.prefers_batches() {
            return (0..self.count(run)).flat_map(|_| family.start(run.dimension, rng)).collect();
        }
        let draw = |_| match self.start {
            IfcaStart::Uniform => self.start_scale * rng.uniform(),
            IfcaStart::Normal => self.start_scale * rng.normal(),
        };
        (0..self.count(run) * run.dimension).map(draw).collect()
    }

    /// The model with the least loss and that loss; the first of equals.
    fn pick(
        &self,
        mine: &dyn Learner,
        models: &[f64],
        losses: &mut Vec<f64>,
        buffers: &mut Buffers,
    ) -> Option<(usize, f64)> {
        mine.values(models, losses, buffers).ok()?;
        let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]))?;
        // A number among those of a net: the message stays at four bytes each.
        self.families.first().round(losses);
        Some((best, losses[best]))
    }
}

impl Algorithm for Ifca {
    const NAME: &'static str = "ifca";
    const VERSION: u16 = 2;
    const LABELS: &'static [&'static str] = &["restart"];
    const PERSONAL: &'static [&'static str] = &["client", "first"];
    type Local = Mine;
    type Memory = ();
    type Server = Attempts;
    type Seat = Picked;
    type Common = Menu;
    type Down = Menu;
    type Up = Pick;
    type Share = ();

    sent_as_released!();

    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Attempts {
        let targets = at.run.targets.as_ref().map_or(at.members.len(), |targets| targets.len()) as u32;
        Attempts { models: Weights(self.fresh(at.run, rng)), targets, ..Attempts::default() }
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) -> Picked {
        Picked::default()
    }

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        let (models, clients) = (self.count(run), federation.members().len());
        if models > clients {
            return Err(format!(
                "algorithm.models = {models}, but there are {clients} clients: a model that nobody picks stays as it was \
                 drawn; set it to {clients} or less"
            ));
        }
        self.families.one_space(federation, run)?;
        match &self.work {
            Work::Batches(training) => training.suits(federation, run),
            Work::Gradient => self.families.one_shrinkage(federation, run),
            Work::Steps(_) => Ok(()),
        }
    }

    fn phase(&self, _: &Attempts, step: u32, run: &Run) -> Phase {
        let restart = (step - 1) / run.rounds.max(1);
        if restart < self.restarts { Phase::Ask(ROUND.part(restart)) } else { Phase::Deliver }
    }

    fn plan(&self, server: &mut Attempts, _: &mut Seats<'_, Picked>, now: Now<'_>) -> Who {
        let mut rng = now.rng();
        let who = now.at.draw(&mut rng);
        if now.step > 1 && (now.step - 1).is_multiple_of(now.at.run.rounds) {
            server.models = Weights(self.fresh(now.at.run, &mut rng));
        }
        server.queries += match &who {
            Who::All => now.at.members.len() as u64,
            Who::Some(some) => some.len() as u64,
        };
        who
    }

    fn common(&self, server: &Attempts, _: Now<'_>) -> Menu {
        Menu { models: server.models.clone() }
    }

    fn down(&self, _: &Attempts, _: &Picked, _: Now<'_>, _: &Member, out: &mut Menu) {
        out.models.clear();
    }

    fn serve(&self, server: &Attempts, _: &Picked, now: Now<'_>, member: &Member, out: &mut Menu) {
        out.models.clear();
        if now.at.run.targets.as_ref().is_none_or(|targets| targets.binary_search(&member.id).is_ok()) {
            out.models.extend_from_slice(if server.best.is_empty() { &server.models } else { &server.best });
        }
    }

    fn fits(&self, _: &Picked, now: Now<'_>, up: &Pick) -> bool {
        (up.model as usize) < self.count(now.at.run) && up.numbers.len() == now.at.run.dimension + 1
    }

    fn cells(&self, at: ServerView<'_>) -> (usize, usize) {
        // The loss rides along as one more number.
        (self.count(at.run), at.run.dimension + 1)
    }

    fn absorb(&self, _: &Attempts, seat: &mut Picked, _: Now<'_>, _: &Member, up: &Pick, sum: &mut Cells) {
        seat.model = Some(up.model);
        sum.add(up.model as usize, 1.0, 1.0, &up.numbers);
    }

    fn close(&self, server: &mut Attempts, _: &mut Seats<'_, Picked>, closed: &Closed<'_>, sum: &Cells) {
        let run = closed.now.at.run;
        let d = run.dimension;
        let answers: f64 = (0..sum.len()).map(|cell| sum.weight(cell)).sum();
        let mut loss = 0.0;
        server.failed = Halt::first_diverged(closed);
        for (cell, model) in server.models.chunks_exact_mut(d).enumerate() {
            let Some(total) = sum.sum(cell) else { continue };
            let pickers = sum.weight(cell);
            let by = match self.divide {
                Divisor::Pickers => pickers,
                Divisor::All => answers,
            };
            loss += total[d];
            if let Work::Gradient = self.work {
                axpy(-self.learning_rate / by, &total[..d], model);
                let parts = pickers / by * self.learning_rate / closed.now.at.members.len() as f64;
                self.families.first().shrink(model, parts);
            } else {
                // The mean of (w^i - w_j), with as many of them zero as did not pick j where all are counted.
                update(model, &total[..d], |w, sum| w + (sum - pickers * w) / by);
                self.families.first().round(model);
            }
        }
        // Restarts are compared by what clients said in the last round.
        let last = closed.now.step.is_multiple_of(run.rounds);
        if last && answers > 0.0 && server.least.is_none_or(|least| loss / answers < least) {
            server.least = Some(loss / answers);
            server.best.clone_from(&server.models);
        }
    }

    fn held(&self, server: &Attempts, run: &Run, out: &mut Held<'_>) {
        // Models are no clusters of the roster: they are held only where the two can be told apart by number.
        let models = if server.best.is_empty() { &server.models } else { &server.best };
        for (cell, model) in models.chunks_exact(run.dimension).enumerate().take(run.clusters) {
            out(cell as u32, "model", model);
        }
    }

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, member: &Member) -> Result<Mine, Unsolved> {
        let family = self.families.of(at.run, member.id);
        Ok(Mine(family.join(data, Terms::among(at.members.len()))?, at.run.rounds))
    }

    fn fits_ask(&self, Mine(mine, ..): &Mine, ask: &Ask<'_, Self>) -> bool {
        let length = mine.dimension();
        let (common, down) = (&ask.common().models, &ask.down().models);
        !common.is_empty() && common.len().is_multiple_of(length) && down.len().is_multiple_of(length)
    }

    fn client<'g>(
        &self,
        Mine(mine, rounds): &Mine,
        (): &mut (),
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        spare: Pick,
    ) -> Result<Released<'g, Pick>, Refusal> {
        let (models, length) = (&ask.common().models, mine.dimension());
        let mut numbers = spare.numbers.0;
        let (picked, loss) = self.pick(&**mine, models, &mut numbers, scratch).ok_or(Refusal::Unsolved)?;
        let model = &models[picked * length..(picked + 1) * length];
        let scale = self.gradient_scale.factor(mine.rows());
        numbers.clear();
        match &self.work {
            Work::Gradient => {
                numbers.resize(length, 0.0);
                mine.gradient(model, scale, &mut numbers, scratch)?;
            }
            Work::Steps(steps) => {
                numbers.extend_from_slice(model);
                let mut gradient = vec![0.0; length];
                for _ in 0..*steps {
                    mine.gradient(&numbers, scale, &mut gradient, scratch)?;
                    axpy(-self.learning_rate, &gradient, &mut numbers);
                    mine.shrink(&mut numbers, self.learning_rate * scale);
                }
            }
            Work::Batches(training) => {
                numbers.extend_from_slice(model);
                // Every restart begins with the first learning rate.
                let round = (ask.step() - 1) % (*rounds).max(1) + 1;
                let mut rng = gate.rng("mini-batches");
                training.descend(&**mine, round, None, &mut rng, &mut numbers, scratch)?;
            }
        }
        numbers.push(loss);
        gate.disclose(
            "picked model, its loss, and a step from it",
            Pick { model: picked as u32, numbers: Weights(numbers) },
        )
    }

    fn personal(&self, Mine(mine, ..): &Mine, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        let (models, length) = (&served.down().models, mine.dimension());
        if let Some((picked, _)) = self.pick(&**mine, models, &mut Vec::new(), &mut Buffers::default()) {
            out("client", &models[picked * length..(picked + 1) * length]);
            out("first", &models[..length]);
        } else {
            out("client", &[]);
            out("first", &[]);
        }
    }

    fn gauges(&self, server: &Attempts, out: &mut dyn FnMut(&'static str, f64)) {
        out("queries", server.queries as f64 / f64::from(server.targets));
    }

    fn kin(&self, _: &Attempts, seats: &[Picked], _: ServerView<'_>) -> Option<ServerKin> {
        let clusters: Option<Vec<u32>> = seats.iter().map(|seat| seat.model).collect();
        Some(ServerKin { edges: Vec::new(), clusters: clusters? })
    }

    fn complaint(&self, server: &Attempts) -> Option<Halt> {
        server.failed.map(|client| Halt::Diverged { client })
    }

    fn advice(&self) -> &'static str {
        "lower `algorithm.learning_rate`"
    }
}
