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
//! where w^i comes from E gradient steps of client i from `w_j`.
//!
//! | symbol | here |
//! |---|---|
//! | k | `models`; the number of clusters in the roster where absent |
//! | eta, E | `learning_rate`, `local_steps` |
//! | `n_j` | `divide`: the clients that picked j, or all that answered (the paper's own rule, smaller steps) |
//! | | `restarts`: fresh random models, each trained for `run.rounds`; the restart with the least loss is served |
//!
//! A pick is an argmin over a client's data and a loss is a function of it: both are disclosed with the gradient. Every
//! round asks every client, and k must be known, which is what `PersFL` does without. A client's own model is the one it
//! picks among those served; "first" is model 0, whichever cluster that is (what one published comparison plotted).
//!
//! Reductions: k = 1 with "gradient" is gradient descent on the mean loss; with one client per cluster and right picks
//! every client descends alone.

use super::prepared::Prepared;
use super::registry::Method;
use super::{
    Algorithm, Ask, Cells, Closed, Context, Held, Kin, Now, Personal, Phase, ROUND, Run, Seats, ServerView,
    Who,
};
use crate::dataset::Dataset;
use crate::federation::{Federation, Member};
use crate::model::{Parametric, Unsolved};
use crate::numeric::{axpy, update};
use crate::params::{Kind, Param, Preset, Values};
use crate::privacy::{Gate, Refusal, Released};
use crate::record;
use crate::rng::{PublicRng, Random};
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Ifca {
    model: Parametric,
    models: Option<usize>,
    learning_rate: f64,
    /// Gradient steps of a client where models are averaged.
    local_steps: Option<u32>,
    divide_by_all: bool,
    summed: bool,
    restarts: u32,
    start: Start,
}

/// Where models begin.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Start {
    Uniform(f64),
    Normal(f64),
}

record! {
    /// The models of the restart that runs, and of the best one that is done.
    pub struct Attempts {
        models: Vec<f64>,
        best: Vec<f64>,
        least: Option<f64>,
        /// How many gradients were asked for, and for how many clients.
        queries: u64,
        targets: u32,
    }
    /// The model a client picked last.
    pub struct Picked { model: Option<u32> }
    /// The models, one after the other.
    pub struct Menu { models: Vec<f64> }
    /// The picked model, the gradient at it or the model after the steps, and last the loss before them.
    pub struct Pick { model: u32, numbers: Vec<f64> }
}

impl Method for Ifca {
    const PARAMS: &'static [Param] = &[
        Param {
            name: "models",
            kind: Kind::Integer { least: 1, most: 10_000 },
            preset: Preset::Absent,
            help: "how many models are trained (k); as many as the roster has clusters where absent",
        },
        Param {
            name: "learning_rate",
            kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
            preset: Preset::Number(0.1),
            help: "size of a gradient step (eta)",
        },
        Param {
            name: "averaging",
            kind: Kind::Choice(&["gradient", "model"]),
            preset: Preset::Text("gradient"),
            help: "what clients send: the gradient at the picked model, or the model after `local_steps` steps",
        },
        Param {
            name: "local_steps",
            kind: Kind::Integer { least: 1, most: 100_000 },
            preset: Preset::Integer(1),
            help: "gradient steps of a client in a round, for averaging = \"model\"",
        },
        Param {
            name: "divide",
            kind: Kind::Choice(&["pickers", "all"]),
            preset: Preset::Text("pickers"),
            help: "what the sum over the clients that picked a model is divided by: their number, or that of all",
        },
        Param {
            name: "gradient_scale",
            kind: Kind::Choice(&["mean", "sum"]),
            preset: Preset::Text("mean"),
            help: "gradient of the mean loss of a client, or half its number of records times that",
        },
        Param {
            name: "restarts",
            kind: Kind::Integer { least: 1, most: 1_000 },
            preset: Preset::Integer(1),
            help: "how often to begin with fresh models; each takes all rounds, and the least loss wins",
        },
        Param {
            name: "start",
            kind: Kind::Choice(&["normal", "uniform"]),
            preset: Preset::Text("normal"),
            help: "first models: normal, or uniform in [0, 1), times `start_scale`",
        },
        Param {
            name: "start_scale",
            kind: Kind::Number { least: 0.0, most: 1e9, open: true },
            preset: Preset::Number(1.0),
            help: "how far apart the first models are",
        },
        Param {
            name: "targets",
            kind: Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            preset: Preset::Text("all"),
            help: "the clients whose models are wanted, for scores and for queries per target; all are asked anyway",
        },
    ];

    fn build(values: &Values, context: &Context) -> Result<Self, String> {
        if context.privacy.demanded() {
            return Err(
                "ifca lets picks, losses and gradients out as they are, and has no mechanism for them: set \
                        privacy.mechanism = \"none\", or use pgfl (\"zcdp\") or fedavg (\"dp-sgd\")"
                    .into(),
            );
        }
        let whole = |name: &str| values.integer(name).and_then(|value| u32::try_from(value).ok());
        let scale = values.number("start_scale").unwrap_or(1.0);
        let averages_models = values.text("averaging") == Some("model");
        let local_steps = whole("local_steps").unwrap_or(1);
        if !averages_models && local_steps > 1 {
            return Err("algorithm.local_steps is for averaging = \"model\": a gradient is one step".into());
        }
        Ok(Self {
            model: context.problem.parametric()?,
            models: whole("models").map(|models| models as usize),
            learning_rate: values.number("learning_rate").unwrap_or(0.1),
            local_steps: averages_models.then_some(local_steps),
            divide_by_all: values.text("divide") == Some("all"),
            summed: values.text("gradient_scale") == Some("sum"),
            restarts: whole("restarts").unwrap_or(1),
            start: match values.text("start") {
                Some("uniform") => Start::Uniform(scale),
                _ => Start::Normal(scale),
            },
        })
    }
}

impl Ifca {
    fn count(&self, run: &Run) -> usize {
        self.models.unwrap_or(run.clusters)
    }

    fn fresh(&self, run: &Run, rng: &mut PublicRng) -> Vec<f64> {
        let draw = |_| match self.start {
            Start::Uniform(scale) => scale * rng.uniform(),
            Start::Normal(scale) => scale * rng.normal(),
        };
        (0..self.count(run) * run.dimension).map(draw).collect()
    }

    /// The model with the least loss and that loss; the first of equals.
    fn pick(&self, mine: &Prepared, models: &[f64], losses: &mut Vec<f64>) -> Option<(usize, f64)> {
        self.model.objectives(&mine.data, mine.strength, models, losses);
        let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]))?;
        Some((best, losses[best]))
    }
}

impl Algorithm for Ifca {
    const NAME: &'static str = "ifca";
    const LABELS: &'static [&'static str] = &["restart"];
    const PERSONAL: &'static [&'static str] = &["client", "first"];
    type Local = Prepared;
    type Memory = ();
    type Server = Attempts;
    type Seat = Picked;
    type Common = Menu;
    type Down = Menu;
    type Up = Pick;
    type Share = ();

    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Attempts {
        let targets = at.run.targets.as_ref().map_or(at.members.len(), |targets| targets.len()) as u32;
        Attempts { models: self.fresh(at.run, rng), targets, ..Attempts::default() }
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
        Ok(())
    }

    fn phase(&self, _: &Attempts, step: u32, run: &Run) -> Phase {
        let restart = (step - 1) / run.rounds.max(1);
        if restart < self.restarts { Phase::Ask(ROUND.part(restart)) } else { Phase::Deliver }
    }

    fn plan(
        &self,
        server: &mut Attempts,
        _: &mut Seats<'_, Picked>,
        now: Now<'_>,
        rng: &mut PublicRng,
    ) -> Who {
        let who = now.at.draw(rng);
        if now.step > 1 && (now.step - 1).is_multiple_of(now.at.run.rounds) {
            server.models = self.fresh(now.at.run, rng);
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
        for (cell, model) in server.models.chunks_exact_mut(d).enumerate() {
            let Some(total) = sum.sum(cell) else { continue };
            let pickers = sum.weight(cell);
            let by = if self.divide_by_all { answers } else { pickers };
            loss += total[d];
            if self.local_steps.is_some() {
                // The mean of (w^i - w_j), with as many of them zero as did not pick j where all are counted.
                update(model, &total[..d], |w, sum| w + (sum - pickers * w) / by);
            } else {
                axpy(-self.learning_rate / by, &total[..d], model);
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

    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, _: &Member) -> Result<Prepared, Unsolved> {
        Ok(Prepared::new(&self.model, data, at))
    }

    fn fits_ask(&self, mine: &Prepared, ask: &Ask<'_, Self>) -> bool {
        let length = self.model.length(&mine.data);
        let (common, down) = (&ask.common().models, &ask.down().models);
        !common.is_empty() && common.len().is_multiple_of(length) && down.len().is_multiple_of(length)
    }

    fn client(
        &self,
        mine: &Prepared,
        (): &mut (),
        ask: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        spare: Pick,
    ) -> Result<Released<Pick>, Refusal> {
        let (models, length) = (&ask.common().models, self.model.length(&mine.data));
        let mut numbers = spare.numbers;
        let (picked, loss) = self.pick(mine, models, &mut numbers).ok_or(Refusal::Unsolved)?;
        let model = &models[picked * length..(picked + 1) * length];
        let scale = if self.summed { 0.5 * mine.data.rows() as f64 } else { 1.0 };
        numbers.clear();
        match self.local_steps {
            None => {
                numbers.resize(length, 0.0);
                self.model.gradients(&mine.data, mine.strength, model, scale, &mut numbers, gate.work);
            }
            Some(steps) => {
                numbers.extend_from_slice(model);
                let mut gradient = vec![0.0; length];
                for _ in 0..steps {
                    self.model.gradients(
                        &mine.data,
                        mine.strength,
                        &numbers,
                        scale,
                        &mut gradient,
                        gate.work,
                    );
                    axpy(-self.learning_rate, &gradient, &mut numbers);
                }
            }
        }
        numbers.push(loss);
        gate.disclose("picked model, its loss, and a step from it", Pick { model: picked as u32, numbers })
    }

    fn personal(&self, mine: &Prepared, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        let (models, length) = (&served.down().models, self.model.length(&mine.data));
        if let Some((picked, _)) = self.pick(mine, models, &mut Vec::new()) {
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

    fn kin(&self, _: &Attempts, seats: &[Picked], _: ServerView<'_>) -> Option<Kin> {
        let clusters: Option<Vec<u32>> = seats.iter().map(|seat| seat.model).collect();
        Some(Kin { edges: Vec::new(), clusters: clusters? })
    }

    fn advice(&self) -> &'static str {
        "lower `algorithm.learning_rate`"
    }
}
