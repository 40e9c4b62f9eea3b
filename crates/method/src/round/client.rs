//! A client's half of a step.

use crate::algorithm::{Algorithm, Ask, Personal, Run};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink, Within};
use fedkin_privacy::{Account, AnswerScratch, Charge, ClientState, Refusal, Spill, Statement};
use std::sync::Arc;

/// A client: its data in the method's form, and what it keeps behind its gate.
pub struct Client<A: Algorithm> {
    local: A::Local,
    state: ClientState<A::Memory>,
}

impl<A: Algorithm> Client<A> {
    /// A client before the first step. Its private randomness follows from `secret`: drawn from the operating system once
    /// and stored, or [`simulated_secret`](fedkin_numeric::rng::simulated_secret) where a run is to be repeated.
    pub fn new(local: A::Local, run: &Run, secret: [u8; 32]) -> Self {
        Self { local, state: ClientState::new(run.privacy.budget_units(), secret) }
    }

    /// The same client before the first step again, with other private randomness: for audits, which run one client
    /// thousands of times.
    pub fn renew(&mut self, run: &Run, secret: [u8; 32]) {
        self.state.renew(run.privacy.budget_units(), secret);
    }

    pub(in crate::round) fn local(&self) -> &A::Local {
        &self.local
    }

    pub(in crate::round) fn state(&self) -> &ClientState<A::Memory> {
        &self.state
    }

    pub(in crate::round) fn state_mut(&mut self) -> &mut ClientState<A::Memory> {
        &mut self.state
    }

    /// How many numbers its memory has, where it is not spilled.
    pub fn remembers(&self) -> usize {
        self.state.remembers()
    }

    /// Spills its memory, from now on.
    pub fn spill(&mut self, spill: &Arc<dyn Spill>, place: u32) {
        self.state.spill(spill, place);
    }

    /// What the client has spent.
    pub fn account(&self) -> &Account {
        self.state.account()
    }

    /// Begins where earlier runs on the same data have ended, with a secret of this run's own.
    pub fn begin_at(&mut self, spent: u64, releases: u64, secret: [u8; 32]) {
        self.state.begin_at(spent, releases, secret);
    }

    /// Sums up what leaves from now on.
    pub fn keep_statement(&mut self) {
        self.state.keep_statement();
    }

    /// What left since, by kind.
    pub fn statement(&self) -> Option<&Statement> {
        self.state.statement()
    }

    /// A number that moves whenever the memory may have changed.
    pub fn version(&self) -> u64 {
        self.state.version()
    }

    /// Writes what must survive a restart.
    pub fn save<S: Sink>(&self, sink: &mut S) {
        self.state.save(sink);
    }

    /// Reads what `save` wrote.
    pub fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        self.state.restore(reader)
    }

    /// The client's models, given what it is served.
    pub(in crate::round) fn personal(&self, algorithm: &A, served: Ask<'_, A>, out: &mut Personal<'_>) {
        algorithm.personal(&self.local, &self.state.memory(), served, out);
    }

    /// Answers an ask. On a refusal nothing is charged and the memory stays as it was. The error is what the server sees
    /// of it; the scratch and the statement keep the client's own reason.
    #[allow(clippy::inline_always)] // A call would pass the ask through memory, and wait for it there.
    #[inline(always)]
    pub(in crate::round) fn answer(
        &mut self,
        algorithm: &A,
        run: &Run,
        ask: Ask<'_, A>,
        (scratch, buffers): (&mut AnswerScratch, &mut Buffers),
        spare: A::Up,
    ) -> Result<A::Up, Refusal> {
        let local = &self.local;
        let raw = self.state.answer(&run.privacy, ask, scratch, |memory, gate| {
            if run.privacy.demanded() && !is_honest(algorithm, run, &ask) {
                return Err(Refusal::BadAsk);
            }
            algorithm.client(local, memory, ask, gate, buffers, spare)
        })?;
        Ok(A::finish(raw, &ask))
    }
}

/// How much larger a number of an ask may be than the norm of an upload: the centre of a proximal step is a model plus a
/// scaled dual.
const ASK_BEYOND_UPLOAD: f64 = 4.0;
/// The largest number of an ask where uploads have no bound.
const LARGEST_ASK: f64 = 1e12;

/// Whether an honest server may ask this: numbers, kind of step and round are as in the run. It is judged without a look at
/// the records, so that a refusal tells nothing about them.
fn is_honest<A: Algorithm>(algorithm: &A, run: &Run, ask: &Ask<'_, A>) -> bool {
    let bound = (ASK_BEYOND_UPLOAD * run.max_norm2.sqrt()).min(LARGEST_ASK);
    usize::from(ask.label().kind) < A::LABELS.len()
        && algorithm.rounds(ask.step(), run) <= run.rounds
        && Within::holds(bound, ask.common(), ask.down())
}

/// A broadcast as it came, read and hashed once for all clients of a process.
pub(in crate::round) struct Broadcast<A: Algorithm> {
    bytes: Arc<[u8]>,
    pub(in crate::round) value: A::Common,
    pub(in crate::round) digest: [u8; 32],
}

impl<A: Algorithm> Broadcast<A> {
    /// The broadcast of these bytes: the one at hand, or read anew.
    pub(in crate::round) fn of(bytes: &Arc<[u8]>, last: Option<Self>) -> Result<Self, Damaged> {
        match last {
            Some(last) if Arc::ptr_eq(&last.bytes, bytes) => Ok(last),
            _ => Ok(Self {
                bytes: bytes.clone(),
                value: A::Common::from_bytes(bytes)?,
                digest: *blake3::hash(bytes).as_bytes(),
            }),
        }
    }
}

/// Scratch of one thread, reused from client to client.
pub struct Scratch<A: Algorithm> {
    /// The last broadcast that was read.
    pub(in crate::round) broadcast: Option<Broadcast<A>>,
    pub(in crate::round) down: A::Down,
    /// An earlier answer, for its memory.
    pub(in crate::round) spare: A::Up,
    pub(in crate::round) answer: AnswerScratch,
    pub(in crate::round) buffers: Buffers,
}

impl<A: Algorithm> Scratch<A> {
    /// What the last answer was charged; nothing where it was a refusal.
    pub fn charges(&self) -> &[Charge] {
        self.answer.charges()
    }
}

impl<A: Algorithm> Default for Scratch<A> {
    fn default() -> Self {
        let (broadcast, down, spare, answer, buffers) = Default::default();
        Self { broadcast, down, spare, answer, buffers }
    }
}
