//! All servers and clients of a federation in one process, and the one loop over a step: begin, ask, close, mix, settle.
//!
//! Local runs, audits and replays of what nodes have decided go through it; they differ in who answers and in what is
//! kept of it.

use super::local::RunFault;
use super::pool::{self, Pool};
use super::{CHUNK, Chunk, Client, Scratch, Server, Stop};
use crate::algorithm::{Algorithm, Counts, Phase, Run};
use crate::federation::{Federation, Member};
use fedkin_learner::Dataset;
use fedkin_numeric::rng::simulated_secret;
use fedkin_privacy::{Account, Tally};
use std::ops::Range;
use std::sync::Arc;

/// Numbers touched in a step below which threads cost more than they bring.
const WORTH_THREADS: usize = 100_000;

/// Numbers of one client above which its work is shared out on its own, not in chunks of many clients.
pub(super) const HEAVY: usize = 2_000;

/// A federation between two steps, or in one.
pub struct Steps<A: Algorithm> {
    algorithm: Arc<A>,
    run: Run,
    servers: Vec<Server<A>>,
    /// By server, in the order of the server's members; none where answers come from elsewhere.
    clients: Vec<Vec<Client<A>>>,
    pool: Arc<dyn Pool>,
    step: u32,
    scratch: Scratch<A>,
    tally: Tally,
    /// One per thread, where few clients have much to do.
    waves: Vec<Scratch<A>>,
}

/// What `Chunk::run` does, with as many clients at a time as there are scratches. The answers are folded in id order.
fn run_wide<A: Algorithm>(
    algorithm: &A,
    run: &Run,
    pool: &dyn Pool,
    chunk: &mut Chunk<'_, A>,
    clients: &mut [Client<A>],
    waves: &mut [Scratch<A>],
) {
    chunk.clear();
    let mut asked: Vec<(usize, &mut Client<A>)> =
        clients.iter_mut().enumerate().filter(|(i, _)| chunk.is_asked(*i)).collect();
    for wave in asked.chunks_mut(waves.len()) {
        let seen: &Chunk<'_, A> = chunk;
        let items = wave.iter_mut().zip(waves.iter_mut());
        let answers =
            pool::map(pool, items, |((i, client), scratch)| seen.ask(*i, algorithm, run, client, scratch));
        for (((i, _), scratch), answer) in wave.iter().zip(waves.iter_mut()).zip(answers) {
            chunk.fold_in(*i, answer, scratch);
        }
    }
}

/// What closing a step gives.
pub struct ClosedStep<A: Algorithm> {
    /// The share of every server, in order.
    pub shares: Vec<A::Share>,
    /// What became of the asked clients.
    pub counts: Counts,
    /// Why the run cannot go on, where it cannot.
    pub stop: Option<Stop>,
}

impl<A: Algorithm> Steps<A> {
    /// Opens these servers of a federation without clients: answers come from elsewhere.
    pub fn of_servers(
        algorithm: Arc<A>,
        run: Run,
        federation: &Federation,
        ids: Range<u32>,
        pool: Arc<dyn Pool>,
    ) -> Self {
        let open = |id| Server::open(&*algorithm, &run, federation, id);
        let servers = pool::map(&*pool, ids, open);
        Self {
            clients: servers.iter().map(|_| Vec::new()).collect(),
            algorithm,
            run,
            servers,
            pool,
            step: 0,
            scratch: Scratch::default(),
            tally: Tally::default(),
            waves: Vec::new(),
        }
    }

    /// Opens the servers and lets every client join; `data` is by client id.
    pub fn new(
        algorithm: Arc<A>,
        run: Run,
        federation: &Federation,
        data: &[Arc<Dataset>],
        pool: Arc<dyn Pool>,
    ) -> Result<Self, RunFault> {
        let mut this = Self::of_servers(algorithm, run, federation, 0..federation.servers() as u32, pool);
        let (algorithm, run) = (&*this.algorithm, &this.run);
        let join = |server: &Server<A>, member: &Member| {
            algorithm
                .join(&data[member.id as usize], server.view(run), member)
                .map(|local| Client::new(local, run, simulated_secret(run.seed, member.id)))
                .map_err(|unsolved| RunFault::unsolved(federation, member, &unsolved))
        };
        let size = if run.dimension > HEAVY { 1 } else { CHUNK };
        let pieces = this
            .servers
            .iter()
            .flat_map(|server| server.members().chunks(size).map(move |members| (server, members)));
        let joined = pool::map(&*this.pool, pieces, |(server, members)| {
            members.iter().map(|member| join(server, member)).collect::<Result<Vec<_>, RunFault>>()
        });
        // The first fault by place is told, not the first by time: all results are there before one is looked at.
        let mut joined = joined.into_iter();
        for (server, clients) in this.servers.iter().zip(&mut this.clients) {
            clients.reserve_exact(server.members().len());
            for part in joined.by_ref().take(server.members().len().div_ceil(size)) {
                clients.extend(part?);
            }
        }
        Ok(this)
    }

    /// Begins the next step at all servers; false where all of them have delivered and there is none.
    pub fn begin(&mut self) -> bool {
        let (algorithm, run, step) = (&*self.algorithm, &self.run, self.step + 1);
        let begin = |server: &mut Server<A>| server.begin(algorithm, run, step) == Phase::Deliver;
        let delivered = if self.worth_threads() {
            pool::map(&*self.pool, &mut self.servers, begin).into_iter().all(|delivered| delivered)
        } else {
            // Every server begins, whatever the others say.
            self.servers.iter_mut().map(begin).fold(true, |all, delivered| all & delivered)
        };
        if !delivered {
            self.step = step;
        }
        !delivered
    }

    /// Asks every planned client and folds the answers.
    pub fn ask(&mut self) {
        let parallel = self.worth_threads();
        let (algorithm, run) = (&*self.algorithm, &self.run);
        let work = self
            .servers
            .iter_mut()
            .zip(&mut self.clients)
            .flat_map(|(server, clients)| server.chunks(algorithm, run).zip(clients.chunks_mut(CHUNK)));
        let ask = |scratch: &mut Scratch<A>, (mut chunk, clients): (Chunk<'_, A>, &mut [Client<A>])| {
            chunk.run(clients, scratch);
        };
        if !parallel {
            let scratch = &mut self.scratch;
            return work.for_each(|item| ask(scratch, item));
        }
        let mut work: Vec<_> = work.collect();
        let threads = self.pool.threads();
        if run.dimension > HEAVY && work.len() < threads {
            self.waves.resize_with(threads, Scratch::default);
            for (chunk, clients) in &mut work {
                run_wide(algorithm, run, &*self.pool, chunk, clients, &mut self.waves);
            }
        } else {
            pool::map_with(&*self.pool, work, Scratch::default, ask);
        }
    }

    /// Hands out the chunks of the server at this place, each with the position of its first client, its clients and a
    /// scratch: for whoever answers in their place, or wants to see what they say. Every chunk is to be cleared and fed,
    /// as [`Chunk::run`] does.
    pub fn feed<E>(
        &mut self,
        at: usize,
        mut each: impl FnMut(usize, Chunk<'_, A>, &mut [Client<A>], &mut Scratch<A>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (algorithm, run) = (&*self.algorithm, &self.run);
        let clients =
            self.clients[at].chunks_mut(CHUNK).chain(std::iter::repeat_with(<&mut [Client<A>]>::default));
        for (number, (chunk, clients)) in self.servers[at].chunks(algorithm, run).zip(clients).enumerate() {
            each(number * CHUNK, chunk, clients, &mut self.scratch)?;
        }
        Ok(())
    }

    /// All answers are in: closes the step at every server. `record` gets what was charged at each. Where the run cannot
    /// go on, nothing is to be mixed.
    pub fn close(&mut self, mut record: impl FnMut(u32, &mut Tally)) -> ClosedStep<A> {
        let parallel = self.worth_threads();
        let (algorithm, run, step) = (&*self.algorithm, &self.run, self.step);
        let mut counts = Counts::default();
        let mut shares = Vec::with_capacity(self.servers.len());
        let mut stops = Vec::new();
        let mut keep = |server: &Server<A>, (share, count): (A::Share, Counts), tally: &mut Tally| {
            counts.add(count);
            shares.push(share);
            stops.extend(Stop::find(algorithm, server, step, count));
            record(server.id(), tally);
        };
        if parallel {
            let closed = pool::map(&*self.pool, &mut self.servers, |server| {
                let mut tally = Tally::default();
                (server.close(algorithm, run, &mut tally), tally)
            });
            for (server, (closed, mut tally)) in self.servers.iter().zip(closed) {
                keep(server, closed, &mut tally);
            }
        } else {
            for server in &mut self.servers {
                let closed = server.close(algorithm, run, &mut self.tally);
                keep(server, closed, &mut self.tally);
            }
        }
        ClosedStep { shares, counts, stop: Stop::first(stops) }
    }

    /// Begins a step at the server at this place alone; false where it delivers.
    pub(super) fn begin_at(&mut self, at: usize, step: u32) -> bool {
        self.servers[at].begin(&self.algorithm, &self.run, step) != Phase::Deliver
    }

    /// Closes the step of the server at this place alone.
    pub(super) fn close_at(&mut self, at: usize) -> A::Share {
        self.servers[at].close(&self.algorithm, &self.run, &mut Tally::default()).0
    }

    /// Every server of the federation mixes its own share and those of its neighbours, and brings its seats up to date.
    pub fn mix(&mut self, shares: &[A::Share]) {
        let parallel = self.worth_threads();
        let (algorithm, run) = (&*self.algorithm, &self.run);
        let mix = |server: &mut Server<A>| {
            if server.neighbours().is_empty() {
                return server.mix(algorithm, run, &[(server.id(), &shares[server.id() as usize])]);
            }
            let mut near: Vec<(u32, &A::Share)> = Vec::with_capacity(server.neighbours().len() + 1);
            near.extend(server.neighbours().iter().map(|&p| (p, &shares[p as usize])));
            let own = near.partition_point(|(p, _)| *p < server.id());
            near.insert(own, (server.id(), &shares[server.id() as usize]));
            server.mix(algorithm, run, &near);
        };
        if parallel {
            pool::map(&*self.pool, &mut self.servers, mix);
            let chunks = self.servers.iter_mut().flat_map(|server| server.chunks(algorithm, run));
            pool::map(&*self.pool, chunks, |mut chunk| chunk.settle());
        } else {
            self.servers.iter_mut().for_each(mix);
            for server in &mut self.servers {
                server.chunks(algorithm, run).for_each(|mut chunk| chunk.settle());
            }
        }
    }

    /// The same at the server at this place, with these shares by server id.
    pub fn mix_at(&mut self, at: usize, shares: &[(u32, &A::Share)]) {
        let server = &mut self.servers[at];
        server.mix(&self.algorithm, &self.run, shares);
        server.chunks(&self.algorithm, &self.run).for_each(|mut chunk| chunk.settle());
    }

    /// Whether a step has enough to do for several threads.
    pub(super) fn worth_threads(&self) -> bool {
        let clients: usize = match self.run.clients_per_server {
            Some(count) => self.servers.len() * count as usize,
            None => self.clients.iter().map(Vec::len).sum(),
        };
        clients * self.run.dimension > WORTH_THREADS && self.pool.threads() > 1
    }

    /// The method.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// What the run fixes.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The servers by id.
    pub fn servers(&self) -> &[Server<A>] {
        &self.servers
    }

    /// The clients by server, in the order of the server's members.
    pub fn clients(&self) -> &[Vec<Client<A>>] {
        &self.clients
    }

    /// The steps that were begun.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// What each client has spent, by client id.
    pub fn accounts(&self) -> Vec<Account> {
        let mut accounts = vec![Account::default(); self.clients.iter().map(Vec::len).sum()];
        for (server, clients) in self.servers.iter().zip(&self.clients) {
            for (member, client) in server.members().iter().zip(clients) {
                accounts[member.id as usize] = client.account().clone();
            }
        }
        accounts
    }

    /// The method, to be kept beside.
    pub fn shared(&self) -> Arc<A> {
        Arc::clone(&self.algorithm)
    }

    pub(super) fn pool(&self) -> &dyn Pool {
        &*self.pool
    }

    /// Goes on after this step.
    pub(super) fn resume_after(&mut self, step: u32) {
        self.step = step;
    }

    /// Every server with its clients.
    pub(super) fn pairs_mut(&mut self) -> impl Iterator<Item = (&mut Server<A>, &mut [Client<A>])> {
        self.servers.iter_mut().zip(self.clients.iter_mut().map(Vec::as_mut_slice))
    }
}
