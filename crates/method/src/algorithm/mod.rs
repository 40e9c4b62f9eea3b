//! The one abstraction: a method is a few pure steps around a seat.
//!
//! A run is a sequence of steps over a graph of servers with clients attached. In each step a server
//! plans whom to ask, every asked client answers with something released, the server folds the answers in
//! a fixed order, shares one message with its neighbours, and mixes theirs into its state. What a server
//! keeps for one client is its *seat*. One method is one file of
//! [`methods`](crate::methods).

mod cells;
mod closed;
mod halt;
mod seats;

pub use cells::Cells;
pub use closed::{Closed, Counts, Verdict};
pub use fedkin_privacy::{DELIVER, Label, ROUND};
pub use halt::{Halt, Reject};
pub use seats::Seats;

/// What a client of a method is asked.
pub type Ask<'a, A> = fedkin_privacy::Ask<'a, <A as Algorithm>::Common, <A as Algorithm>::Down>;

use crate::federation::{Federation, Member};
use crate::robust::Robust;
use fedkin_learner::Dataset;
use fedkin_learner::model::Unsolved;
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::{Codec, Door};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Cost, Draws, Gate, Privacy, Refusal, Released};
use std::sync::Arc;

/// What a run fixes for every method.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// All public randomness follows from it.
    pub seed: u64,
    /// Number of rounds.
    pub rounds: u32,
    /// How many clients a server asks per round; all where absent.
    pub clients_per_server: Option<u32>,
    /// Squared norm above which an upload is rejected.
    pub max_norm2: f64,
    /// Number of parameters of a model.
    pub dimension: usize,
    /// Number of clusters Q.
    pub clusters: usize,
    /// What protects the uploads.
    pub privacy: Privacy,
    /// The clients that models are wanted for, by id and sorted; all where absent. For methods that can leave some out.
    pub targets: Option<Arc<[u32]>>,
    /// A graph of clients that the run brings, by id, the smaller first; for methods that take one.
    pub kin: Option<Arc<[(u32, u32, f64)]>>,
    /// Number of columns of the records, where it is known.
    pub columns: Option<usize>,
    /// Which of the run's learners each client has, by id; the first where absent.
    pub learners: Option<Arc<[u32]>>,
}

impl Run {
    /// Which of the run's learners a client has.
    pub fn learner(&self, client: u32) -> usize {
        self.learners.as_ref().and_then(|all| all.get(client as usize)).map_or(0, |number| *number as usize)
    }
}

/// The public world as one server sees it.
#[derive(Debug, Clone, Copy)]
pub struct ServerView<'a> {
    /// What the run fixes.
    pub run: &'a Run,
    /// The server.
    pub id: u32,
    /// Its clients by id: C_s.
    pub members: &'a [Member],
    /// Its neighbours by id, itself left out.
    pub neighbours: &'a [u32],
}

impl ServerView<'_> {
    /// The participants the config asks for: everyone, or so many at random.
    pub fn draw(&self, rng: &mut PublicRng) -> Who {
        match self.run.clients_per_server {
            Some(count) if (count as usize) < self.members.len() => {
                Who::Some(rng.choose(self.members.len() as u32, count))
            }
            _ => Who::All,
        }
    }
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Ask clients under this label.
    Ask(Label),
    /// Give every client its served model and end.
    Deliver,
}

/// Who is asked, by position in the server's list of clients, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// All clients of the server.
    All,
    /// These.
    Some(Vec<u32>),
}

/// Where in a run a server is.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// The step, from 1.
    pub step: u32,
    /// What it is about.
    pub label: Label,
    /// Who and where.
    pub at: ServerView<'a>,
}

impl Now<'_> {
    /// The public stream of the step, for what a plan draws.
    pub fn rng(&self) -> PublicRng {
        PublicRng::named(self.at.run.seed, "plan", self.step, self.at.id)
    }

    /// The participants the config asks for.
    pub fn draw(&self) -> Who {
        self.at.draw(&mut self.rng())
    }
}

/// Takes the named models of a client one by one.
pub type Personal<'a> = dyn FnMut(&'static str, &[f64]) + 'a;
/// Takes the models a server holds: cluster, name, parameters.
pub type Held<'a> = dyn FnMut(u32, &'static str, &[f64]) + 'a;
/// The shares of a server and its neighbours, by server id.
pub type Shares<'a, A> = [(u32, &'a <A as Algorithm>::Share)];

/// A method. See the module's text for the order of the steps; each is a pure function of its arguments.
pub trait Algorithm: Sized + Send + Sync + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// Raised whenever messages or bits change.
    const VERSION: u16 = 1;
    /// The kinds of step it has.
    const LABELS: &'static [&'static str] = &["round"];
    /// The names `personal` uses; the first is the client's own model.
    const PERSONAL: &'static [&'static str];
    /// Which of them are the same for all clients of one server and cluster; none where empty.
    const SHARED: &'static [bool] = &[];
    /// Which of them follow from the client's data and memory alone, whatever it is served; none where empty.
    const KEPT: &'static [bool] = &[];
    /// Whether it learns graphs of the columns, and not models of targets.
    const GRAPHS: bool = false;
    /// Needs raw data at a server: only a simulation may run it.
    const SIMULATION_ONLY: bool = false;

    /// A client's data in the method's form, factors included; rebuilt by `join`, never stored.
    type Local: Send + Sync;
    /// Private client state that must survive a restart; `()` for most.
    type Memory: Codec + Default + Clone + Send + Sync;
    /// What a server keeps.
    type Server: Codec + Send + Sync;
    /// What a server keeps for one client.
    type Seat: Codec + Send + Sync;
    /// What every asked client of a server gets.
    type Common: Codec + Default + Send + Sync;
    /// What one client gets.
    type Down: Codec + Default + Send + Sync;
    /// What the gate lets out of one client: a value, or several side by side.
    type Raw;
    /// What one client sends.
    type Up: Codec + Default + Send + Sync;
    /// What a server sends to its neighbours.
    type Share: Codec + Default + Send + Sync;

    /// The state of a server before the first step.
    fn open(&self, at: ServerView<'_>, rng: &mut PublicRng) -> Self::Server;

    /// The seat of a client before the first step.
    fn seat(&self, at: ServerView<'_>, member: &Member) -> Self::Seat;

    /// What step `step` is. With several servers a function of `step` alone, or they disagree about the end.
    fn phase(&self, _server: &Self::Server, step: u32, run: &Run) -> Phase {
        if step <= run.rounds { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    /// How many of the configured rounds are done after this step; most methods have one step in a round.
    fn rounds(&self, step: u32, _run: &Run) -> u32 {
        step
    }

    /// Whether a federation is one this method can work with, before anything starts: what is wrong and what to do.
    fn suits(&self, _federation: &Federation, _run: &Run) -> Result<(), String> {
        Ok(())
    }

    /// Whom to ask. May write what it drew (candidates, fresh models): that is committed with the plan.
    fn plan(&self, _server: &mut Self::Server, _seats: &mut Seats<'_, Self::Seat>, now: Now<'_>) -> Who {
        now.draw()
    }

    /// The broadcast of a step, and of the last message.
    fn common(&self, _server: &Self::Server, _now: Now<'_>) -> Self::Common {
        Self::Common::default()
    }

    /// The rest for one client. Reads its own seat only; `out` holds an older message: overwrite all of it.
    fn down(
        &self,
        _server: &Self::Server,
        _seat: &Self::Seat,
        _now: Now<'_>,
        _member: &Member,
        _out: &mut Self::Down,
    ) {
    }

    /// The last message: what the client is served.
    fn serve(
        &self,
        server: &Self::Server,
        seat: &Self::Seat,
        now: Now<'_>,
        member: &Member,
        out: &mut Self::Down,
    ) {
        self.down(server, seat, now, member, out);
    }

    /// Whether lengths and indices of an upload are right.
    fn fits(&self, seat: &Self::Seat, now: Now<'_>, up: &Self::Up) -> bool;

    /// The door: shape, finite, norm.
    fn check(&self, seat: &Self::Seat, now: Now<'_>, up: &Self::Up) -> Result<(), Reject> {
        if !self.fits(seat, now, up) {
            return Err(Reject::Shape);
        }
        let mut door = Door::default();
        up.put(&mut door);
        if !door.norm2.is_finite() {
            Err(Reject::NotFinite)
        } else if door.norm2 > now.at.run.max_norm2 {
            Err(Reject::Norm)
        } else {
            Ok(())
        }
    }

    /// How uploads are put together, where that is not their mean: the fold then keeps them side by side.
    fn robust(&self) -> Option<&Robust> {
        None
    }

    /// Alters the upload of a client that lies, in simulations of an attack: nothing where a method knows no liar.
    fn lie(&self, _client: u32, _up: &mut Self::Up, _ask: &Ask<'_, Self>) {}

    /// How many cells the fold has and how long a cell is.
    fn cells(&self, at: ServerView<'_>) -> (usize, usize) {
        (at.run.clusters, at.run.dimension)
    }

    /// Takes one upload into its seat and the fold; in parallel over chunks, in id order within one.
    fn absorb(
        &self,
        server: &Self::Server,
        seat: &mut Self::Seat,
        now: Now<'_>,
        member: &Member,
        up: &Self::Up,
        sum: &mut Cells,
    );

    /// All uploads are in: the one place that sees every seat. Methods with one server end here.
    fn close(
        &self,
        server: &mut Self::Server,
        seats: &mut Seats<'_, Self::Seat>,
        closed: &Closed<'_>,
        sum: &Cells,
    ) -> Self::Share;

    /// The neighbours' shares are in, this server's own among them.
    fn mix(&self, _server: &mut Self::Server, _now: Now<'_>, _shares: &Shares<'_, Self>) {}

    /// After `mix`, once per client whose upload was folded; in parallel.
    fn settle(&self, _server: &Self::Server, _seat: &mut Self::Seat, _now: Now<'_>, _member: &Member) {}

    /// The models a server holds per cluster, for the run directory.
    fn held(&self, _server: &Self::Server, _run: &Run, _out: &mut Held<'_>) {}

    /// Brings a client's data into the method's form.
    fn join(&self, data: &Arc<Dataset>, at: ServerView<'_>, member: &Member)
    -> Result<Self::Local, Unsolved>;

    /// Whether lengths and indices of what a server asks, or serves, are right. The client looks before it works.
    fn fits_ask(&self, _mine: &Self::Local, _ask: &Ask<'_, Self>) -> bool {
        true
    }

    /// A client's answer: what passed the gate. `scratch` and `spare`, an older upload, hold what others left: overwrite,
    /// never read. `memory` is written only once nothing can be refused any more.
    fn client<'g>(
        &self,
        mine: &Self::Local,
        memory: &mut Self::Memory,
        ask: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        scratch: &mut Buffers,
        spare: Self::Up,
    ) -> Result<Released<'g, Self::Raw>, Refusal>;

    /// The upload, from what passed the gate and what was asked. It sees nothing else, neither the method nor the client,
    /// so whatever it does costs nothing. Methods whose uploads are what passed write
    /// [`sent_as_released!`](crate::sent_as_released).
    fn finish(raw: Self::Raw, ask: &Ask<'_, Self>) -> Self::Up;

    /// What a client's answer in this step costs it, known before anything runs. `None` where a method cannot say;
    /// then no budget can be planned for it.
    fn price(&self, _member: &Member, _step: u32) -> Option<Cost> {
        None
    }

    /// The releases from Poisson samples behind that price, where there are any: they may be worth less than it.
    fn draws(&self, _member: &Member, _step: u32) -> Option<Draws> {
        None
    }

    /// Standard deviation per number of the noise on a client's answer in this step, where the answer is the first of
    /// `PERSONAL` as the client keeps it and noise on top. `None` where it is anything else or nothing is added. For
    /// simulations, which know both.
    fn noise(&self, _member: &Member, _length: usize, _step: u32) -> Option<f64> {
        None
    }

    /// The client's models in the order of `PERSONAL`, given what it is served; empty where it has none.
    fn personal(
        &self,
        mine: &Self::Local,
        memory: &Self::Memory,
        served: Ask<'_, Self>,
        out: &mut Personal<'_>,
    );

    /// What `personal` gives for what `serve` would serve now, read where it lies: nothing is copied.
    /// False, and nothing given, where a method does not know how.
    fn personal_in_place(
        &self,
        _server: &Self::Server,
        _now: Now<'_>,
        _member: &Member,
        _memory: &Self::Memory,
        _out: &mut Personal<'_>,
    ) -> bool {
        false
    }

    /// Numbers about a server's work for the metrics of a run, such as an objective: nothing that was not released.
    fn gauges(&self, _server: &Self::Server, _out: &mut dyn FnMut(&'static str, f64)) {}

    /// Who was found to be kin of whom at a server, where a method finds out: nothing that was not released.
    fn kin(&self, _server: &Self::Server, _seats: &[Self::Seat], _at: ServerView<'_>) -> Option<ServerKin> {
        None
    }

    /// Why a run cannot go on, where it cannot: looked at when a step is closed, and the run then stops
    /// ([`stop`](crate::round::Stop)).
    fn complaint(&self, _server: &Self::Server) -> Option<Halt> {
        None
    }

    /// What to try when uploads grow beyond the bound.
    fn advice(&self) -> &'static str {
        ""
    }
}

/// For methods that send what the gate let out as it is: stands in the implementation of [`Algorithm`] for `Raw` and
/// `finish`.
#[macro_export]
macro_rules! sent_as_released {
    () => {
        type Raw = Self::Up;

        #[inline]
        fn finish(raw: Self::Up, _: &$crate::Ask<'_, Self>) -> Self::Up {
            raw
        }
    };
}

/// Kin among the clients of a server, by position in its list of clients.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerKin {
    /// Pairs (smaller position first) with what the one was worth to the other: the higher, the closer.
    pub edges: Vec<(u32, u32, f64)>,
    /// The cluster each client was found to belong to, numbered from 0; empty where a method finds none.
    pub clusters: Vec<u32>,
}

/// Kin by client id, of one server or of all together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundKin {
    /// Pairs with what the one was worth to the other, the smaller id first.
    pub edges: Vec<(u32, u32, f64)>,
    /// Clients and the cluster each was found to belong to, by id.
    pub clusters: Vec<(u32, u32)>,
}

impl FoundKin {
    /// What all servers found: edges and clients by id, of whom found any.
    pub fn of_all(parts: impl IntoIterator<Item = Option<FoundKin>>) -> Option<Self> {
        let mut all: Option<Self> = None;
        for part in parts.into_iter().flatten() {
            let all = all.get_or_insert_default();
            all.edges.extend(part.edges);
            all.clusters.extend(part.clusters);
        }
        if let Some(all) = &mut all {
            all.edges.sort_by_key(|&(a, b, _)| (a, b));
            all.clusters.sort_unstable();
        }
        all
    }
}
