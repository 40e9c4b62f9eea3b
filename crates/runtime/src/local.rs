//! One process, all cores: servers, then chunks of clients in id order. Nothing is encoded; buffers are
//! reused; the bits do not depend on the number of threads.

use crate::live::Progress;
use crate::scores::{Judge, Scene, Scores, Summary};
use crate::shelf::FileShelf;
use fedkin_core::algorithm::{Algorithm, FoundKin, Phase, Run};
use fedkin_core::codec::{Bytes, Codec, Damaged, Reader};
use fedkin_core::numeric::norm2;
use fedkin_core::privacy::{Account, Ledger, Line, Refusal, Statement, Tally};
use fedkin_core::rng::simulated_secret;
use fedkin_core::round::{CHUNK, Chunk, Client, Counts, Scratch, Server, Shelf, Verdict};
use fedkin_core::{Dataset, Federation, Member};
use rayon::prelude::*;
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Numbers touched in a step below which threads cost more than they bring.
const WORTH_THREADS: usize = 100_000;

/// Numbers of one client above which its work is shared out on its own, not in chunks of many clients.
const HEAVY: usize = 2_000;

/// Why a run cannot start or go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The method's parameters do not fit together.
    #[error("{0}")]
    Config(String),
    /// A client's problem has no unique solution.
    #[error("client {client:?}: {reason}; a `model.regularisation` above 0 gives one")]
    Unsolved {
        /// Which client.
        client: String,
        /// What is wrong.
        reason: String,
    },
    /// No client could answer.
    #[error("nobody answered in round {round}: {reason}")]
    Silent {
        /// The round.
        round: u32,
        /// What the clients said.
        reason: String,
    },
    /// The method cannot go on.
    #[error("stopped in round {round}: {reason}")]
    Stopped {
        /// The round.
        round: u32,
        /// The client whose training diverged, where that is why; the reason calls it by its number.
        client: Option<u32>,
        /// Cause and remedy.
        reason: String,
    },
    /// Every upload of a round was turned away.
    #[error("diverged: all {uploads} uploads of round {round} were rejected ({reason}); {advice}")]
    Diverged {
        /// The round.
        round: u32,
        /// How many uploads.
        uploads: u32,
        /// Why they were rejected.
        reason: &'static str,
        /// What to try.
        advice: &'static str,
    },
}

/// What a client has spent before a run, and the secret of its noise in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Units of 1e-12 zCDP.
    pub spent: u64,
    /// Releases.
    pub releases: u64,
    /// What its private random numbers follow from.
    pub secret: [u8; 32],
}

/// A run of one method.
pub struct Simulation<A: Algorithm> {
    algorithm: A,
    run: Run,
    servers: Vec<Server<A>>,
    /// By server, in the order of the server's members.
    clients: Vec<Vec<Client<A>>>,
    ledger: Ledger,
    step: u32,
    ended: bool,
    scratch: Scratch<A>,
    tally: Tally,
    /// One per thread, where few clients have much to do.
    waves: Vec<Scratch<A>>,
    scores: Mutex<Scores>,
    /// How many bytes of clients' memories may stay in this machine's; above, they go to a file.
    limit: Option<u64>,
    shelf: Option<Arc<FileShelf>>,
}

/// What `Chunk::run` does, with as many clients at a time as there are scratches. The answers are folded in id order.
fn run_wide<A: Algorithm>(
    algorithm: &A,
    run: &Run,
    chunk: &mut Chunk<'_, A>,
    clients: &mut [Client<A>],
    waves: &mut [Scratch<A>],
) {
    chunk.clear();
    let mut asked: Vec<(usize, &mut Client<A>)> =
        clients.iter_mut().enumerate().filter(|(i, _)| chunk.is_asked(*i)).collect();
    for wave in asked.chunks_mut(waves.len()) {
        let seen: &Chunk<'_, A> = chunk;
        let answers: Vec<_> = wave
            .par_iter_mut()
            .zip(waves.par_iter_mut())
            .map(|((i, client), scratch)| seen.ask(*i, algorithm, run, client, scratch))
            .collect();
        for (((i, _), scratch), answer) in wave.iter().zip(waves.iter_mut()).zip(answers) {
            chunk.fold_in(*i, answer, scratch);
        }
    }
}

impl<A: Algorithm> Simulation<A> {
    /// Opens the servers and lets every client join; `data` is by client id.
    pub fn new(
        algorithm: A,
        run: Run,
        federation: &Federation,
        data: &[Arc<Dataset>],
    ) -> Result<Self, Fault> {
        algorithm.suits(federation, &run).map_err(Fault::Config)?;
        let ids: Vec<u32> = (0..federation.servers() as u32).collect();
        let join = |server: &Server<A>, member: &Member| {
            algorithm
                .join(&data[member.id as usize], server.view(&run), member)
                .map(|local| Client::new(local, &run, simulated_secret(run.seed, member.id)))
                .map_err(|unsolved| Fault::Unsolved {
                    client: federation.client_name(member.id).to_string(),
                    reason: unsolved.0.to_string(),
                })
        };
        // The first fault by place is told, not the first by time: all results are there before one is looked at.
        let opened: Vec<Result<_, Fault>> = ids
            .par_iter()
            .map(|&id| {
                let server = Server::open(&algorithm, &run, federation, id);
                let clients: Vec<Result<Client<A>, Fault>> = server
                    .members()
                    .par_iter()
                    .with_min_len(if run.dimension > HEAVY { 1 } else { CHUNK })
                    .map(|member| join(&server, member))
                    .collect();
                Ok((server, clients.into_iter().collect::<Result<_, Fault>>()?))
            })
            .collect();
        let opened = opened.into_iter().collect::<Result<Vec<_>, Fault>>()?;
        let (servers, clients): (Vec<_>, Vec<Vec<_>>) = opened.into_iter().unzip();
        let ledger = Ledger::default();
        Ok(Self {
            algorithm,
            run,
            servers,
            clients,
            ledger,
            step: 0,
            ended: false,
            scratch: Scratch::default(),
            tally: Tally::default(),
            waves: Vec::new(),
            scores: Mutex::default(),
            limit: None,
            shelf: None,
        })
    }

    /// Lets what clients remember take at most so many bytes of memory; above, it goes to a file.
    pub fn limit_memory(&mut self, bytes: u64) {
        self.limit = Some(bytes);
    }

    /// Moves memories to a file where they have outgrown the limit.
    fn shelve(&mut self) -> Result<(), Fault> {
        let stopped = |round, reason| Fault::Stopped { round, client: None, reason };
        let round = self.rounds();
        if let Some(shelf) = &self.shelf {
            return shelf.failure().map_or(Ok(()), |reason| Err(stopped(round, reason)));
        }
        // What small models leave behind is not worth counting in every round.
        let Some(limit) = self.limit.filter(|_| self.run.dimension > HEAVY) else { return Ok(()) };
        let numbers: usize = self.clients.iter().flatten().map(Client::remembers).sum();
        if numbers as u64 * 8 <= limit {
            return Ok(());
        }
        let clients = self.clients.iter().map(Vec::len).sum();
        let failed = |error: std::io::Error| format!("there is no file for what clients remember: {error}");
        let shelf = Arc::new(FileShelf::new(clients).map_err(|error| stopped(round, failed(error)))?);
        let kept: Arc<dyn Shelf> = shelf.clone();
        self.by_id(|id, client| client.shelve(&kept, id as u32));
        let result = shelf.failure().map_or(Ok(()), |reason| Err(stopped(round, reason)));
        self.shelf = Some(shelf);
        result
    }

    /// Runs the next step on all servers.
    pub fn step(&mut self) -> Result<Progress, Fault> {
        if self.ended {
            return Ok(Progress::Ended);
        }
        let step = self.step + 1;
        let (algorithm, run) = (&self.algorithm, &self.run);
        let parallel = self.worth_threads();
        let begin = |server: &mut Server<A>| server.begin(algorithm, run, step) == Phase::Deliver;
        let delivered = if parallel {
            let all: Vec<bool> = self.servers.par_iter_mut().map(begin).collect();
            all.into_iter().all(|delivered| delivered)
        } else {
            // Every server begins, whatever the others say.
            self.servers.iter_mut().map(begin).fold(true, |all, delivered| all & delivered)
        };
        if delivered {
            self.ended = true;
            return Ok(Progress::Ended);
        }
        self.step = step;
        let work = self
            .servers
            .iter_mut()
            .zip(&mut self.clients)
            .flat_map(|(server, clients)| server.chunks(algorithm, run).zip(clients.chunks_mut(CHUNK)));
        let ask = |scratch: &mut Scratch<A>, (mut chunk, clients): (Chunk<'_, A>, &mut [Client<A>])| {
            chunk.run(clients, scratch);
        };
        if parallel {
            let mut work: Vec<_> = work.collect();
            let threads = rayon::current_num_threads();
            if run.dimension > HEAVY && work.len() < threads {
                self.waves.resize_with(threads, Scratch::default);
                for (chunk, clients) in &mut work {
                    run_wide(algorithm, run, chunk, clients, &mut self.waves);
                }
            } else {
                work.into_par_iter().for_each_init(Scratch::default, ask);
            }
        } else {
            let scratch = &mut self.scratch;
            work.for_each(|item| ask(scratch, item));
        }
        let mut counts = Counts::default();
        let mut shares = Vec::with_capacity(self.servers.len());
        let mut close = |server: &Server<A>, (share, count): (A::Share, Counts), tally: &mut Tally| {
            counts.add(count);
            shares.push(share);
            self.ledger.record(step, server.id(), tally);
        };
        if parallel {
            let closed = self.servers.par_iter_mut().map(|server| {
                let mut tally = Tally::default();
                (server.close(algorithm, run, &mut tally), tally)
            });
            let closed: Vec<_> = closed.collect();
            for (server, (closed, mut tally)) in self.servers.iter().zip(closed) {
                close(server, closed, &mut tally);
            }
        } else {
            for server in &mut self.servers {
                let closed = server.close(algorithm, run, &mut self.tally);
                close(server, closed, &mut self.tally);
            }
        }
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
            self.servers.par_iter_mut().for_each(mix);
            let chunks: Vec<_> =
                self.servers.iter_mut().flat_map(|server| server.chunks(algorithm, run)).collect();
            chunks.into_par_iter().for_each(|mut chunk| chunk.settle());
        } else {
            self.servers.iter_mut().for_each(mix);
            for server in &mut self.servers {
                server.chunks(algorithm, run).for_each(|mut chunk| chunk.settle());
            }
        }
        self.shelve()?;
        if let Some(reason) = self.complaint() {
            return Err(Fault::Stopped { round: self.rounds(), client: self.lost(), reason });
        }
        if counts.values == 0 && counts.rejected > 0 {
            return Err(self.diverged(counts));
        }
        if counts.values == 0
            && let Some(reason) = self.silenced()
        {
            return Err(Fault::Silent { round: self.rounds(), reason: reason.to_string() });
        }
        Ok(Progress::Round(counts))
    }

    /// The first client whose training diverged in the last step.
    fn lost(&self) -> Option<u32> {
        self.servers.iter().find_map(|server| {
            let lost = |verdict: &Verdict| *verdict == Verdict::Refused(Refusal::Diverged);
            let place = server.verdicts().iter().position(lost)?;
            server.members().get(place).map(|member| member.id)
        })
    }

    /// Why nobody answers, where it is not a spent budget: nothing will change in later rounds.
    fn silenced(&self) -> Option<Refusal> {
        self.servers.iter().flat_map(Server::verdicts).find_map(|verdict| match verdict {
            Verdict::Refused(refusal) if *refusal != Refusal::Budget => Some(*refusal),
            _ => None,
        })
    }

    fn diverged(&self, counts: Counts) -> Fault {
        let reason = self.servers.iter().flat_map(Server::verdicts).find_map(|verdict| match verdict {
            Verdict::Rejected(reason) => Some(*reason),
            _ => None,
        });
        Fault::Diverged {
            round: self.rounds(),
            uploads: counts.rejected,
            reason: reason.unwrap_or("unknown"),
            advice: self.algorithm.advice(),
        }
    }

    fn worth_threads(&self) -> bool {
        let clients: usize = match self.run.clients_per_server {
            Some(count) => self.servers.len() * count as usize,
            None => self.clients.iter().map(Vec::len).sum(),
        };
        clients * self.run.dimension > WORTH_THREADS && rayon::current_num_threads() > 1
    }

    /// Why the run cannot go on, where a server says so.
    pub fn complaint(&self) -> Option<String> {
        self.servers.iter().find_map(|server| self.algorithm.complaint(server.state()))
    }

    /// Numbers about the servers' work, by name: means over the servers that have them.
    pub fn gauges(&self) -> Vec<(String, f64)> {
        let mut all: Vec<(&'static str, f64, f64)> = Vec::new();
        for server in &self.servers {
            self.algorithm.gauges(server.state(), &mut |name, value| match all
                .iter_mut()
                .find(|(known, ..)| *known == name)
            {
                Some((_, sum, count)) => (*sum, *count) = (*sum + value, *count + 1.0),
                None => all.push((name, value, 1.0)),
            });
        }
        all.into_iter().map(|(name, sum, count)| (name.to_string(), sum / count)).collect()
    }

    /// Who was found to be kin of whom, over all servers; nothing where the method does not find out.
    pub fn kin(&self) -> Option<FoundKin> {
        FoundKin::of_all(self.servers.iter().map(|server| server.kin(&self.algorithm, &self.run)))
    }

    /// How many steps were run.
    pub fn steps(&self) -> u32 {
        self.step
    }

    /// How many of the configured rounds are done.
    pub fn rounds(&self) -> u32 {
        self.algorithm.rounds(self.step, &self.run)
    }

    /// The method.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// What the run fixes.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// All servers by id.
    pub fn servers(&self) -> &[Server<A>] {
        &self.servers
    }

    /// What was released.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
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

    fn by_id(&mut self, mut each: impl FnMut(usize, &mut Client<A>)) {
        for (server, clients) in self.servers.iter().zip(&mut self.clients) {
            for (member, client) in server.members().iter().zip(clients) {
                each(member.id as usize, client);
            }
        }
    }

    /// Begins where earlier runs on the same data have ended, by client id. Before the first step.
    pub fn begin_at(&mut self, openings: &[Opening]) {
        self.by_id(|id, client| {
            let Opening { spent, releases, secret } = openings[id];
            client.begin_at(spent, releases, secret);
        });
    }

    /// Sums up what leaves every client from now on.
    pub fn keep_statements(&mut self) {
        self.by_id(|_, client| client.keep_statement());
    }

    /// What left every client, by client id; nothing where it was not kept.
    pub fn statements(&self) -> Option<Vec<Statement>> {
        let mut all = vec![Statement::default(); self.clients.iter().map(Vec::len).sum()];
        for (server, clients) in self.servers.iter().zip(&self.clients) {
            for (member, client) in server.members().iter().zip(clients) {
                all[member.id as usize] = client.statement()?.clone();
            }
        }
        Some(all)
    }

    fn judged<T: Send>(
        &self,
        judge: &dyn Judge,
        start: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, &Member, &[f64]) + Sync,
    ) -> Vec<T> {
        let scene = Scene {
            algorithm: &self.algorithm,
            run: &self.run,
            servers: &self.servers,
            clients: &self.clients,
            threads: self.worth_threads(),
        };
        // After a panic in a judge the kept scores may be half written: start afresh.
        let mut scores = self.scores.lock().unwrap_or_else(|broken| {
            let mut scores = broken.into_inner();
            *scores = Scores::default();
            scores
        });
        scores.judged(&scene, judge, start, each)
    }

    /// Means over the clients of every column of the judge.
    pub fn evaluate(&self, judge: &dyn Judge) -> Vec<Summary> {
        let empty = || vec![Summary::default(); judge.columns()];
        let parts = self.judged(judge, empty, |part, _, row| {
            for (summary, value) in part.iter_mut().zip(row) {
                if !value.is_nan() {
                    summary.sum += value;
                    summary.count += 1;
                }
            }
        });
        parts.into_iter().fold(empty(), |mut all, part| {
            for (all, part) in all.iter_mut().zip(part) {
                all.sum += part.sum;
                all.count += part.count;
            }
            all
        })
    }

    /// Every client's row of the judge, by client id.
    pub fn rows(&self, judge: &dyn Judge) -> Vec<Vec<f64>> {
        let parts = self.judged(judge, Vec::new, |part: &mut Vec<(u32, Vec<f64>)>, member, row| {
            part.push((member.id, row.to_vec()));
        });
        let mut rows = vec![Vec::new(); self.clients.iter().map(Vec::len).sum()];
        for (id, row) in parts.into_iter().flatten() {
            rows[id as usize] = row;
        }
        rows
    }

    /// The mean of |w|^2 / (n sigma^2) over the clients whose uploads counted in the last step: w is what the client
    /// computed, n its numbers and sigma the noise on each. `None` where the method does not send a model with
    /// noise, or nobody answered.
    pub fn signal_to_noise(&self) -> Option<f64> {
        let mut scratch = Scratch::default();
        let (mut sum, mut count) = (0.0, 0u64);
        for (server, clients) in self.servers.iter().zip(&self.clients) {
            for (position, client) in clients.iter().enumerate() {
                if server.verdicts()[position] != Verdict::Value {
                    continue;
                }
                let member = &server.members()[position];
                let sigma = self.algorithm.noise(member, self.run.dimension, self.step)?;
                let mut add = |name: &'static str, model: &[f64]| {
                    if name == A::PERSONAL[0] {
                        sum += norm2(model) / (model.len() as f64 * sigma * sigma);
                    }
                };
                server.personal(&self.algorithm, &self.run, position, client, &mut scratch, &mut add);
                count += 1;
            }
        }
        (count > 0).then(|| sum / count as f64)
    }

    /// Every client's own model (the first of its named models), by client id.
    pub fn own_models(&self, out: &mut dyn FnMut(u32, &[f64])) {
        let mut places = vec![(0u32, 0u32); self.clients.iter().map(Vec::len).sum()];
        for (s, server) in self.servers.iter().enumerate() {
            for (position, member) in server.members().iter().enumerate() {
                places[member.id as usize] = (s as u32, position as u32);
            }
        }
        let mut scratch = Scratch::default();
        for (id, (s, position)) in places.into_iter().enumerate() {
            let (server, client) = (&self.servers[s as usize], &self.clients[s as usize][position as usize]);
            server.personal(
                &self.algorithm,
                &self.run,
                position as usize,
                client,
                &mut scratch,
                &mut |name, model| {
                    if name == A::PERSONAL[0] {
                        out(id as u32, model);
                    }
                },
            );
        }
    }

    /// All that must survive a restart between two steps.
    pub fn save(&self) -> Vec<u8> {
        let mut bytes = Bytes::default();
        self.step.put(&mut bytes);
        self.ended.put(&mut bytes);
        for (server, clients) in self.servers.iter().zip(&self.clients) {
            server.save(&mut bytes);
            for client in clients {
                client.save(&mut bytes);
            }
        }
        self.ledger.lines.clone().into_boxed_slice().put(&mut bytes);
        bytes.0
    }

    /// Goes on from what `save` wrote.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        let mut reader = Reader::new(bytes);
        self.step = u32::get(&mut reader)?;
        self.ended = bool::get(&mut reader)?;
        for (server, clients) in self.servers.iter_mut().zip(&mut self.clients) {
            server.restore(&mut reader)?;
            for client in clients {
                client.restore(&mut reader)?;
            }
        }
        self.ledger.lines = Box::<[Line]>::get(&mut reader)?.into_vec();
        if reader.left() == 0 { Ok(()) } else { Err(Damaged) }
    }
}
