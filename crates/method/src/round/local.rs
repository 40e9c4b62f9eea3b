//! A run in one process: servers, then chunks of clients in id order. Nothing is encoded; buffers are
//! reused; the bits do not depend on the number of threads.

use super::live::{Live, Models, Progress, Results, means};
use super::pool::{Pool, Serial};
use super::scores::{Judge, Scene, Scores, Summary};
use super::steps::{ClosedStep, HEAVY, Steps};
use super::{Client, Scratch, Server, Stop, Stopped};
use crate::algorithm::{Algorithm, FoundKin, Held, Run, Verdict};
use crate::federation::{Federation, Member};
use fedkin_learner::Dataset;
use fedkin_learner::model::Unsolved;
use fedkin_numeric::codec::{Codec, Damaged, Encoder, Reader};
use fedkin_numeric::norm2;
use fedkin_privacy::{Account, Ledger, Line, MakeSpill, Spill, Statement};
use std::sync::Arc;
use thiserror::Error;

/// Why a run cannot start or go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunFault {
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
    /// What clients remember cannot be kept.
    #[error("round {round}: {reason}")]
    Memory {
        /// The round.
        round: u32,
        /// What is wrong.
        reason: String,
    },
    /// The run cannot go on.
    #[error("{0}")]
    Stopped(Stopped),
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

impl RunFault {
    /// A client that could not join.
    pub(super) fn unsolved(federation: &Federation, member: &Member, unsolved: &Unsolved) -> Self {
        let client = federation.client_name(member.id).to_string();
        Self::Unsolved { client, reason: unsolved.0.to_string() }
    }
}

/// Scores from one evaluation to the next. Whoever evaluates reads and writes them, never a client: nothing private
/// passes here.
#[allow(clippy::disallowed_types)]
type SharedScores = std::sync::Mutex<Scores>;

/// A run of one method.
pub struct Simulation<A: Algorithm> {
    steps: Steps<A>,
    ledger: Ledger,
    ended: bool,
    stop: Option<Stop>,
    scores: SharedScores,
    /// How many bytes of clients' memories may stay in this machine's; above, they go to a spill.
    limit: Option<(u64, MakeSpill)>,
    spill: Option<Arc<dyn Spill>>,
}

impl<A: Algorithm> Simulation<A> {
    /// Opens the servers and lets every client join; `data` is by client id.
    pub fn new(
        algorithm: Arc<A>,
        run: Run,
        federation: &Federation,
        data: &[Arc<Dataset>],
        pool: Arc<dyn Pool>,
    ) -> Result<Self, RunFault> {
        algorithm.suits(federation, &run).map_err(RunFault::Config)?;
        let steps = Steps::new(algorithm, run, federation, data, pool)?;
        Ok(Self {
            steps,
            ledger: Ledger::default(),
            ended: false,
            stop: None,
            scores: SharedScores::default(),
            limit: None,
            spill: None,
        })
    }

    /// Moves memories to a spill where they have outgrown the limit.
    fn shelve(&mut self) -> Result<(), RunFault> {
        let stopped = |round, reason| RunFault::Memory { round, reason };
        let round = self.rounds();
        if let Some(spill) = &self.spill {
            return spill.failure().map_or(Ok(()), |reason| Err(stopped(round, reason)));
        }
        // What small models leave behind is not worth counting in every round.
        let Some((limit, make)) = self.limit.filter(|_| self.steps.run().dimension > HEAVY) else {
            return Ok(());
        };
        let numbers: usize = self.steps.clients().iter().flatten().map(Client::remembers).sum();
        if numbers as u64 * 8 <= limit {
            return Ok(());
        }
        let spill = make(self.count()).map_err(|reason| stopped(round, reason))?;
        self.by_id(|id, client| client.spill(&spill, id as u32));
        let result = spill.failure().map_or(Ok(()), |reason| Err(stopped(round, reason)));
        self.spill = Some(spill);
        result
    }

    /// Runs the next step on all servers.
    fn next(&mut self) -> Result<Progress, RunFault> {
        if let Some(stop) = &self.stop {
            return Err(self.fault(stop));
        }
        if self.ended || !self.steps.begin() {
            self.ended = true;
            return Ok(Progress::Ended);
        }
        let step = self.steps.step();
        self.steps.ask();
        let ledger = &mut self.ledger;
        let ClosedStep { shares, counts, stop } =
            self.steps.close(|server, tally| ledger.record(step, server, tally));
        self.stop = stop;
        if let Some(stop) = &self.stop {
            return Err(self.fault(stop));
        }
        self.steps.mix(&shares);
        self.shelve()?;
        Ok(Progress::Round(counts))
    }

    fn fault(&self, stop: &Stop) -> RunFault {
        RunFault::Stopped(Stopped::new(stop.clone(), self.steps.algorithm(), self.steps.run()))
    }

    /// The method.
    pub fn algorithm(&self) -> &A {
        self.steps.algorithm()
    }

    /// What the run fixes.
    pub fn run(&self) -> &Run {
        self.steps.run()
    }

    /// All servers by id.
    pub fn servers(&self) -> &[Server<A>] {
        self.steps.servers()
    }

    fn count(&self) -> usize {
        self.steps.clients().iter().map(Vec::len).sum()
    }

    fn by_id(&mut self, mut each: impl FnMut(usize, &mut Client<A>)) {
        for (server, clients) in self.steps.pairs_mut() {
            for (member, client) in server.members().iter().zip(clients) {
                each(member.id as usize, client);
            }
        }
    }

    fn judged<T: Send>(
        &self,
        judge: &dyn Judge,
        start: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, &Member, &[f64]) + Sync,
    ) -> Vec<T> {
        let scene = Scene {
            algorithm: self.algorithm(),
            run: self.run(),
            servers: self.servers(),
            clients: self.steps.clients(),
            pool: if self.steps.worth_threads() { self.steps.pool() } else { &Serial },
        };
        // After a panic in a judge the kept scores may be half written: start afresh.
        let mut scores = self.scores.lock().unwrap_or_else(|broken| {
            let mut scores = broken.into_inner();
            *scores = Scores::default();
            scores
        });
        scores.judged(&scene, judge, start, each)
    }
}

impl<A: Algorithm> Results for Simulation<A> {
    fn steps(&self) -> u32 {
        self.steps.step()
    }

    fn rounds(&self) -> u32 {
        self.algorithm().rounds(self.steps.step(), self.run())
    }

    fn evaluate(&self, judge: &dyn Judge) -> Vec<Summary> {
        let empty = || vec![Summary::default(); judge.columns()];
        let parts = self.judged(judge, empty, |part, _, row| Summary::add_row(part, row));
        parts.into_iter().fold(empty(), |mut all, part| {
            Summary::add_all(&mut all, &part);
            all
        })
    }

    fn rows(&self, judge: &dyn Judge) -> Vec<Vec<f64>> {
        let parts = self.judged(judge, Vec::new, |part: &mut Vec<(u32, Vec<f64>)>, member, row| {
            part.push((member.id, row.to_vec()));
        });
        let mut rows = vec![Vec::new(); self.count()];
        for (id, row) in parts.into_iter().flatten() {
            rows[id as usize] = row;
        }
        rows
    }

    fn signal_to_noise(&self) -> Option<f64> {
        let mut scratch = Scratch::default();
        let (mut sum, mut count) = (0.0, 0u64);
        for (server, clients) in self.servers().iter().zip(self.steps.clients()) {
            for (position, client) in clients.iter().enumerate() {
                if server.verdicts()[position] != Verdict::Value {
                    continue;
                }
                let member = &server.members()[position];
                let sigma = self.algorithm().noise(member, self.run().dimension, self.steps.step())?;
                let mut add = |name: &'static str, model: &[f64]| {
                    if name == A::PERSONAL[0] {
                        sum += norm2(model) / (model.len() as f64 * sigma * sigma);
                    }
                };
                server.personal(self.algorithm(), self.run(), position, client, &mut scratch, &mut add);
                count += 1;
            }
        }
        (count > 0).then(|| sum / count as f64)
    }

    fn gauges(&self) -> Vec<(String, f64)> {
        let mut all = Vec::new();
        for server in self.servers() {
            self.algorithm().gauges(server.state(), &mut |name, value| all.push((name, value)));
        }
        means(all)
    }

    fn kin(&self) -> Option<FoundKin> {
        FoundKin::of_all(self.servers().iter().map(|server| server.kin(self.algorithm(), self.run())))
    }

    fn models(&self, out: &mut dyn FnMut(u32, usize, &[f64])) {
        let mut places = vec![(0u32, 0u32); self.count()];
        for (s, server) in self.servers().iter().enumerate() {
            for (position, member) in server.members().iter().enumerate() {
                places[member.id as usize] = (s as u32, position as u32);
            }
        }
        let mut scratch = Scratch::default();
        for (id, (s, position)) in places.into_iter().enumerate() {
            let (server, position) = (&self.servers()[s as usize], position as usize);
            let client = &self.steps.clients()[s as usize][position];
            let mut which = 0;
            let mut each = |_: &'static str, model: &[f64]| {
                out(id as u32, which, model);
                which += 1;
            };
            server.personal(self.algorithm(), self.run(), position, client, &mut scratch, &mut each);
        }
    }

    fn held(&self, out: &mut Models<'_>) {
        for server in self.servers() {
            let id = server.id();
            let each: &mut Held<'_> = &mut |cluster, name, model| out(id, cluster, name, model);
            server.held(self.algorithm(), self.run(), each);
        }
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn accounts(&self) -> Vec<Account> {
        self.steps.accounts()
    }

    fn statements(&self) -> Option<Vec<Statement>> {
        let mut all = vec![Statement::default(); self.count()];
        for (server, clients) in self.servers().iter().zip(self.steps.clients()) {
            for (member, client) in server.members().iter().zip(clients) {
                all[member.id as usize] = client.statement()?.clone();
            }
        }
        Some(all)
    }
}

impl<A: Algorithm> Live for Simulation<A> {
    fn step(&mut self) -> Result<Progress, RunFault> {
        self.next()
    }

    fn limit_memory(&mut self, bytes: u64, make: MakeSpill) {
        self.limit = Some((bytes, make));
    }

    fn begin_at(&mut self, openings: &[Opening]) {
        self.by_id(|id, client| {
            let Opening { spent, releases, secret } = openings[id];
            client.begin_at(spent, releases, secret);
        });
    }

    fn keep_statements(&mut self) {
        self.by_id(|_, client| client.keep_statement());
    }

    fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    fn verdicts(&self, server: u32) -> &[Verdict] {
        self.servers()[server as usize].verdicts()
    }

    fn state(&self, server: u32) -> Vec<u8> {
        let mut bytes = Encoder::default();
        self.servers()[server as usize].save(&mut bytes);
        bytes.0
    }

    fn save(&self) -> Vec<u8> {
        let mut bytes = Encoder::default();
        self.steps.step().put(&mut bytes);
        self.ended.put(&mut bytes);
        for (server, clients) in self.servers().iter().zip(self.steps.clients()) {
            server.save(&mut bytes);
            for client in clients {
                client.save(&mut bytes);
            }
        }
        self.ledger.lines.clone().into_boxed_slice().put(&mut bytes);
        bytes.0
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        let mut reader = Reader::new(bytes);
        self.steps.resume_after(u32::get(&mut reader)?);
        self.ended = bool::get(&mut reader)?;
        for (server, clients) in self.steps.pairs_mut() {
            server.restore(&mut reader)?;
            for client in clients {
                client.restore(&mut reader)?;
            }
        }
        self.ledger.lines = Box::<[Line]>::get(&mut reader)?.into_vec();
        if reader.left() == 0 { Ok(()) } else { Err(Damaged) }
    }
}
