//! A server's half of a step: plan, ask, fold, close, mix, settle.

use super::client::{Client, Scratch};
use crate::algorithm::{
    Algorithm, DELIVER, FoundKin, Held, Label, Now, Personal, Phase, Reject, Run, ServerView, Shares, Who,
};
use crate::algorithm::{Cells, Closed, Counts, Seats, Verdict};
use crate::federation::{Federation, Member};
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink};
use fedkin_numeric::rng::PublicRng;
use fedkin_privacy::{Refusal, Tally, proofs};

/// Clients are folded in chunks of this many seats, in id order within one, and chunks are merged in order.
/// Part of the definition of the result: another number gives other bits.
pub const CHUNK: usize = 256;

#[derive(Debug, Default)]
struct Fold {
    cells: Cells,
    tally: Tally,
    counts: Counts,
}

/// A server with the seats of its clients.
pub struct Server<A: Algorithm> {
    id: u32,
    members: Vec<Member>,
    neighbours: Vec<u32>,
    state: A::Server,
    seats: Vec<A::Seat>,
    touched: Vec<u32>,
    verdicts: Vec<Verdict>,
    /// The positions with a verdict, sorted: where few of many take part, nobody else is looked at.
    asked: Vec<u32>,
    folds: Vec<Fold>,
    common: A::Common,
    step: u32,
    label: Label,
}

impl<A: Algorithm> Server<A> {
    /// What the method keeps at this server.
    pub fn state(&self) -> &A::Server {
        &self.state
    }

    /// What it keeps for its clients, in the order of `members`.
    pub fn seats(&self) -> &[A::Seat] {
        &self.seats
    }

    /// Who was found to be kin of whom, by client id; nothing where the method does not find out.
    pub fn kin(&self, algorithm: &A, run: &Run) -> Option<FoundKin> {
        let found = algorithm.kin(&self.state, &self.seats, self.view(run))?;
        let id = |position: u32| self.members.get(position as usize).map(|member| member.id);
        let edges = found.edges.iter().filter_map(|&(a, b, worth)| Some((id(a)?, id(b)?, worth)));
        let clusters =
            self.members.iter().zip(&found.clusters).map(|(member, &cluster)| (member.id, cluster));
        Some(FoundKin { edges: edges.collect(), clusters: clusters.collect() })
    }

    /// A server before the first step.
    pub fn open(algorithm: &A, run: &Run, federation: &Federation, id: u32) -> Self {
        let members: Vec<Member> =
            federation.clients_of(id).iter().map(|&k| federation.members()[k as usize]).collect();
        let neighbours = federation.topology().neighbours(id).to_vec();
        let at = ServerView { run, id, members: &members, neighbours: &neighbours };
        let state = algorithm.open(at, &mut PublicRng::named(run.seed, "open", 0, id));
        let seats = members.iter().map(|member| algorithm.seat(at, member)).collect();
        let (cells, length) = algorithm.cells(at);
        let folds = (0..members.len().div_ceil(CHUNK))
            .map(|_| Fold { cells: Cells::of(cells, length, algorithm.robust()), ..Fold::default() })
            .collect();
        let verdicts = vec![Verdict::NotAsked; members.len()];
        let common = A::Common::default();
        let (touched, asked) = (Vec::new(), Vec::new());
        Self {
            id,
            members,
            neighbours,
            state,
            seats,
            touched,
            verdicts,
            asked,
            folds,
            common,
            step: 0,
            label: DELIVER,
        }
    }

    /// The server's number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its clients by id.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Its neighbours by id.
    pub fn neighbours(&self) -> &[u32] {
        &self.neighbours
    }

    /// What became of each client in the current step.
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// The broadcast of the current step.
    pub fn common(&self) -> &A::Common {
        &self.common
    }

    /// The public world as this server sees it.
    pub fn view<'a>(&'a self, run: &'a Run) -> ServerView<'a> {
        ServerView { run, id: self.id, members: &self.members, neighbours: &self.neighbours }
    }

    /// Begins a step: plans it and makes the broadcast.
    pub fn begin(&mut self, algorithm: &A, run: &Run, step: u32) -> Phase {
        let phase = algorithm.phase(&self.state, step, run);
        let Phase::Ask(label) = phase else { return phase };
        self.step = step;
        self.label = label;
        for &position in &self.asked {
            self.verdicts[position as usize] = Verdict::NotAsked;
        }
        self.touched.clear();
        let at = ServerView { run, id: self.id, members: &self.members, neighbours: &self.neighbours };
        let now = Now { step, label, at };
        let mut seats = Seats::new(&mut self.seats, &mut self.touched);
        match algorithm.plan(&mut self.state, &mut seats, now) {
            Who::All => {
                if self.asked.len() < self.members.len() {
                    self.asked = (0..self.members.len() as u32).collect();
                }
            }
            Who::Some(mut positions) => {
                if !positions.is_sorted() {
                    positions.sort_unstable();
                }
                self.asked = positions;
            }
        }
        for &position in &self.asked {
            self.verdicts[position as usize] = Verdict::Asked;
        }
        self.common = algorithm.common(&self.state, now);
        phase
    }

    /// The step's work in independent pieces; every chunk must be run or fed before `close`.
    pub fn chunks<'a>(
        &'a mut self,
        algorithm: &'a A,
        run: &'a Run,
    ) -> impl Iterator<Item = Chunk<'a, A>> + 'a {
        let Self {
            id, members, neighbours, state, seats, verdicts, asked, folds, common, step, label, ..
        } = self;
        let (state, common, members): (&A::Server, &A::Common, &[Member]) = (state, common, members);
        let mut asked: &[u32] = asked;
        let at = ServerView { run, id: *id, members, neighbours };
        let now = Now { step: *step, label: *label, at };
        let parts = members.chunks(CHUNK).zip(seats.chunks_mut(CHUNK)).zip(verdicts.chunks_mut(CHUNK));
        parts.zip(folds).enumerate().map(move |(number, (((members, seats), verdicts), fold))| {
            let first = number * CHUNK;
            let end = first + CHUNK;
            // Mostly all of them: no search.
            let last = asked.last().is_none_or(|&p| (p as usize) < end);
            let own = if last { asked.len() } else { asked.partition_point(|&p| (p as usize) < end) };
            let (own, later) = asked.split_at(own);
            asked = later;
            Chunk { algorithm, state, common, now, members, seats, verdicts, asked: own, first, fold }
        })
    }

    /// All answers are in: merges the chunks in order and makes the share for the neighbours.
    pub fn close(&mut self, algorithm: &A, run: &Run, tally: &mut Tally) -> (A::Share, Counts) {
        let at = ServerView { run, id: self.id, members: &self.members, neighbours: &self.neighbours };
        let now = Now { step: self.step, label: self.label, at };
        let (verdicts, asked) = (&self.verdicts[..], &self.asked[..]);
        let mut counts = Counts::default();
        let mut seats = Seats::new(&mut self.seats, &mut self.touched);
        let Some((first, later)) = self.folds.split_first_mut() else {
            let (cells, length) = algorithm.cells(at);
            let (empty, closed) = (Cells::new(cells, length), Closed { now, verdicts, asked, counts });
            return (algorithm.close(&mut self.state, &mut seats, &closed, &empty), counts);
        };
        for fold in later {
            first.cells.merge(&fold.cells);
            first.tally.merge(&mut fold.tally);
            counts.add(fold.counts);
        }
        counts.add(first.counts);
        tally.merge(&mut first.tally);
        let closed = Closed { now, verdicts, asked, counts };
        (algorithm.close(&mut self.state, &mut seats, &closed, &first.cells), counts)
    }

    /// Mixes the shares of the neighbours and this server, sorted by server id.
    pub fn mix(&mut self, algorithm: &A, run: &Run, shares: &Shares<'_, A>) {
        let at = ServerView { run, id: self.id, members: &self.members, neighbours: &self.neighbours };
        algorithm.mix(&mut self.state, Now { step: self.step, label: self.label, at }, shares);
    }

    /// A client's models by name, given what it would be served now.
    pub fn personal(
        &self,
        algorithm: &A,
        run: &Run,
        position: usize,
        client: &Client<A>,
        scratch: &mut Scratch<A>,
        out: &mut Personal<'_>,
    ) {
        let now = Now { step: self.step, label: DELIVER, at: self.view(run) };
        let (seat, member) = (&self.seats[position], &self.members[position]);
        let memory = client.state().memory();
        if algorithm.personal_in_place(&self.state, now, member, &memory, out) {
            return;
        }
        algorithm.serve(&self.state, seat, now, member, &mut scratch.down);
        let common = algorithm.common(&self.state, now);
        let ask = proofs::ask(self.step, DELIVER, &common, &scratch.down);
        algorithm.personal(client.local(), &memory, ask, out);
    }

    /// The broadcast that goes with the last message.
    pub fn farewell(&self, algorithm: &A, run: &Run) -> A::Common {
        algorithm.common(&self.state, Now { step: self.step, label: DELIVER, at: self.view(run) })
    }

    /// The last message to a client.
    pub fn serve(&self, algorithm: &A, run: &Run, position: usize, out: &mut A::Down) {
        let now = Now { step: self.step, label: DELIVER, at: self.view(run) };
        algorithm.serve(&self.state, &self.seats[position], now, &self.members[position], out);
    }

    /// The models the server holds per cluster.
    pub fn held(&self, algorithm: &A, run: &Run, out: &mut Held<'_>) {
        algorithm.held(&self.state, run, out);
    }

    /// Writes what must survive a restart between two steps.
    pub fn save<S: Sink>(&self, sink: &mut S) {
        self.state.put(sink);
        for seat in &self.seats {
            seat.put(sink);
        }
    }

    /// Reads what `save` wrote.
    pub fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        self.state = A::Server::get(reader)?;
        for seat in &mut self.seats {
            *seat = A::Seat::get(reader)?;
        }
        Ok(())
    }
}

/// A run of at most [`CHUNK`] neighbouring seats: the unit of parallel work.
pub struct Chunk<'a, A: Algorithm> {
    algorithm: &'a A,
    state: &'a A::Server,
    common: &'a A::Common,
    now: Now<'a>,
    /// The clients of the chunk.
    pub members: &'a [Member],
    seats: &'a mut [A::Seat],
    verdicts: &'a mut [Verdict],
    /// Positions at the server, and that of the chunk's first seat.
    asked: &'a [u32],
    first: usize,
    fold: &'a mut Fold,
}

impl<A: Algorithm> Chunk<'_, A> {
    /// How many clients of the chunk are asked.
    pub fn asked(&self) -> usize {
        self.asked.iter().filter(|&&position| self.is_asked(position as usize - self.first)).count()
    }

    /// Whether the client at this place is asked and has not answered.
    pub fn is_asked(&self, i: usize) -> bool {
        self.verdicts[i] == Verdict::Asked
    }

    /// Turns an answer away that could not even be read.
    pub fn reject(&mut self, i: usize, reason: Reject) {
        self.fold.counts.rejected += 1;
        self.verdicts[i] = Verdict::Rejected(reason);
    }

    /// Goes on without a client that has not answered.
    pub fn miss(&mut self, i: usize) {
        self.fold.counts.missing += 1;
        self.verdicts[i] = Verdict::Missing;
    }

    /// Empties the fold; before the first answer of a step.
    pub fn clear(&mut self) {
        self.fold.cells.clear();
        self.fold.counts = Counts::default();
    }

    /// Asks every planned client of the chunk in turn and folds the answers: the loop of one process.
    pub fn run(&mut self, clients: &mut [Client<A>], scratch: &mut Scratch<A>) {
        self.clear();
        // Answers stay in registers from one client to the next; through the scratch they would wait in memory.
        let mut spare = std::mem::take(&mut scratch.spare);
        for &position in self.asked {
            let i = position as usize - self.first;
            if self.is_asked(i) {
                let client = &mut clients[i];
                let answer = self.ask_with(i, self.algorithm, self.now.at.run, client, scratch, spare);
                self.fold.tally.count(scratch.charges());
                self.take(i, answer.as_ref().map_err(|refusal| *refusal));
                spare = answer.unwrap_or_default();
            }
        }
        scratch.spare = spare;
    }

    /// Folds what [`Self::ask`] has just given, with the scratch it was given by. In id order, as `run` does it:
    /// answers may be computed beside each other, and the bits are the same.
    pub fn fold_in(&mut self, i: usize, answer: Result<A::Up, Refusal>, scratch: &mut Scratch<A>) {
        self.fold.tally.count(scratch.charges());
        self.take(i, answer.as_ref().map_err(|refusal| *refusal));
        scratch.spare = answer.unwrap_or_default();
    }

    /// What a client would answer in this place, without folding it: `run` does both at once. The method and
    /// what the run fixes may differ from the chunk's, so that an audit can ask a client the same thing twice.
    pub fn ask(
        &self,
        i: usize,
        algorithm: &A,
        run: &Run,
        client: &mut Client<A>,
        scratch: &mut Scratch<A>,
    ) -> Result<A::Up, Refusal> {
        let spare = std::mem::take(&mut scratch.spare);
        self.ask_with(i, algorithm, run, client, scratch, spare)
    }

    #[allow(clippy::inline_always)] // As `Client::answer`.
    #[inline(always)]
    fn ask_with(
        &self,
        i: usize,
        algorithm: &A,
        run: &Run,
        client: &mut Client<A>,
        scratch: &mut Scratch<A>,
        spare: A::Up,
    ) -> Result<A::Up, Refusal> {
        self.down(i, &mut scratch.down);
        let ask = proofs::ask(self.now.step, self.now.label, self.common, &scratch.down);
        let mut answer =
            client.answer(algorithm, run, ask, (&mut scratch.answer, &mut scratch.buffers), spare)?;
        algorithm.lie(self.members[i].id, &mut answer, &ask);
        Ok(answer)
    }

    /// The message for the client at this place of the chunk.
    pub fn down(&self, i: usize, out: &mut A::Down) {
        self.algorithm.down(self.state, &self.seats[i], self.now, &self.members[i], out);
    }

    /// Takes one answer: door, seat, fold. Answers must come in id order.
    pub fn take(&mut self, i: usize, answer: Result<&A::Up, Refusal>) {
        let up = match answer {
            Ok(up) => up,
            Err(refusal) => {
                self.fold.counts.refused += 1;
                self.verdicts[i] = Verdict::Refused(refusal);
                return;
            }
        };
        if let Err(reject) = self.algorithm.check(&self.seats[i], self.now, up) {
            return self.reject(i, reject);
        }
        let (seat, cells) = (&mut self.seats[i], &mut self.fold.cells);
        self.algorithm.absorb(self.state, seat, self.now, &self.members[i], up, cells);
        self.fold.counts.values += 1;
        self.verdicts[i] = Verdict::Value;
    }

    /// After `mix`: brings the seats of the folded clients up to date.
    pub fn settle(&mut self) {
        for &position in self.asked {
            let i = position as usize - self.first;
            if self.verdicts[i] == Verdict::Value {
                self.algorithm.settle(self.state, &mut self.seats[i], self.now, &self.members[i]);
            }
        }
    }
}

/// What a server behind messages needs beside the steps: one chunk at a time, and parts of its state.
impl<A: Algorithm> Server<A> {
    /// One chunk of the step's work.
    pub(in crate::round) fn chunk<'a>(
        &'a mut self,
        algorithm: &'a A,
        run: &'a Run,
        number: usize,
    ) -> Chunk<'a, A> {
        let at = ServerView { run, id: self.id, members: &self.members, neighbours: &self.neighbours };
        let range = number * CHUNK..((number + 1) * CHUNK).min(self.members.len());
        let place = |end: usize| self.asked.partition_point(|&position| (position as usize) < end);
        let asked = &self.asked[place(range.start)..place(range.end)];
        Chunk {
            algorithm,
            state: &self.state,
            common: &self.common,
            now: Now { step: self.step, label: self.label, at },
            members: &self.members[range.clone()],
            seats: &mut self.seats[range.clone()],
            asked,
            first: range.start,
            verdicts: &mut self.verdicts[range],
            fold: &mut self.folds[number],
        }
    }

    /// How many clients were asked in the current step.
    pub fn asked(&self) -> usize {
        self.asked.len()
    }

    /// The seats that `plan` and `close` have changed in the current step.
    pub(in crate::round) fn touched(&self) -> &[u32] {
        &self.touched
    }

    pub(in crate::round) fn save_state<S: Sink>(&self, sink: &mut S) {
        self.state.put(sink);
    }

    pub(in crate::round) fn load_state(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        self.state = A::Server::get(reader)?;
        Ok(())
    }

    pub(in crate::round) fn save_seat<S: Sink>(&self, position: usize, sink: &mut S) {
        self.seats[position].put(sink);
    }

    pub(in crate::round) fn load_seat(
        &mut self,
        position: usize,
        reader: &mut Reader<'_>,
    ) -> Result<(), Damaged> {
        *self.seats.get_mut(position).ok_or(Damaged)? = A::Seat::get(reader)?;
        Ok(())
    }

    pub(in crate::round) fn set_verdicts(&mut self, verdicts: &[Verdict]) -> Result<(), Damaged> {
        if verdicts.len() != self.verdicts.len() {
            return Err(Damaged);
        }
        self.verdicts.copy_from_slice(verdicts);
        let asked = (0u32..).zip(verdicts).filter(|(_, verdict)| **verdict != Verdict::NotAsked);
        self.asked = asked.map(|(position, _)| position).collect();
        Ok(())
    }

    /// Takes up a step that was begun before a restart.
    pub(in crate::round) fn resume(&mut self, step: u32, label: Label) {
        self.step = step;
        self.label = label;
        self.touched.clear();
    }

    /// Makes the broadcast of the current step again.
    pub(in crate::round) fn broadcast(&mut self, algorithm: &A, run: &Run) {
        let at = ServerView { run, id: self.id, members: &self.members, neighbours: &self.neighbours };
        self.common = algorithm.common(&self.state, Now { step: self.step, label: self.label, at });
    }
}
