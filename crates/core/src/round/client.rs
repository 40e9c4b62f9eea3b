//! A client's half of a step.

use super::Key;
use super::mutants::{Mutant, active};
use crate::algorithm::{Algorithm, Label, Run};
use crate::buffers::Buffers;
use crate::codec::{Codec, Count, Damaged, Digest};
use crate::privacy::{Account, Charge, Gate, Refusal, Statement};
use std::borrow::Cow;
use std::sync::Arc;

/// What a client is asked: all of it is known to the server. Only the machine makes one.
pub struct Ask<'a, A: Algorithm> {
    step: u32,
    label: Label,
    common: &'a A::Common,
    down: &'a A::Down,
}

impl<'a, A: Algorithm> Ask<'a, A> {
    pub(in crate::round) fn new(step: u32, label: Label, common: &'a A::Common, down: &'a A::Down) -> Self {
        Self { step, label, common, down }
    }

    /// The step, from 1.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// What the step is about.
    pub fn label(&self) -> Label {
        self.label
    }

    /// What every asked client of the server got.
    pub fn common(&self) -> &'a A::Common {
        self.common
    }

    /// What this client got.
    pub fn down(&self) -> &'a A::Down {
        self.down
    }

    fn feed(&self, digest: &mut Digest) {
        self.step.put(digest);
        self.label.kind.put(digest);
        self.label.part.put(digest);
        self.common.put(digest);
        self.down.put(digest);
    }
}

/// Where the memories of clients lie that do not fit into the machine's. One place for each client; what was put last is
/// what is there. A shelf that fails gives no bytes and says so: whoever runs the clients ends the run.
pub trait Shelf: Send + Sync {
    /// Keeps these bytes.
    fn put(&self, place: u32, bytes: &[u8]);
    /// Gives back what was kept.
    fn get(&self, place: u32) -> Vec<u8>;
    /// What went wrong first, in words.
    fn failure(&self) -> Option<String>;
}

/// Makes a shelf for so many clients, or says why there is none.
pub type MakeShelf = fn(usize) -> Result<Arc<dyn Shelf>, String>;

/// A client's memory, here or on a shelf.
pub(crate) enum Kept<M> {
    Here(M),
    Away(Arc<dyn Shelf>, u32),
}

impl<M: Codec + Clone + Default> Kept<M> {
    /// To look at. Bytes that a failing shelf has lost count as nothing remembered: its owner ends the run.
    pub(crate) fn look(&self) -> Cow<'_, M> {
        match self {
            Kept::Here(memory) => Cow::Borrowed(memory),
            Kept::Away(shelf, place) => Cow::Owned(M::from_bytes(&shelf.get(*place)).unwrap_or_default()),
        }
    }

    /// Replaces it, wherever it is.
    pub(crate) fn set(&mut self, memory: M) {
        match self {
            Kept::Here(here) => *here = memory,
            Kept::Away(shelf, place) => shelf.put(*place, &memory.to_bytes()),
        }
    }
}

/// A client: its data in the method's form, its private memory, what it has spent.
pub struct Client<A: Algorithm> {
    pub(crate) local: A::Local,
    pub(crate) memory: Kept<A::Memory>,
    pub(crate) account: Account,
    /// This run summed up, where somebody wants to know.
    statement: Option<Box<Statement>>,
    secret: [u8; 32],
    version: u64,
}

impl<A: Algorithm> Client<A> {
    /// A client before the first step. Its private randomness follows from `secret`: drawn from the operating
    /// system once and kept, or [`simulated_secret`](crate::rng::simulated_secret) where a run is to be repeated.
    pub fn new(local: A::Local, run: &Run, secret: [u8; 32]) -> Self {
        let account = Account { budget: run.privacy.budget_units(), ..Account::default() };
        Self { local, memory: Kept::Here(A::Memory::default()), account, statement: None, secret, version: 0 }
    }

    /// The same client before the first step again, with other private randomness: for audits, which run one
    /// client thousands of times.
    pub fn renew(&mut self, run: &Run, secret: [u8; 32]) {
        self.version += 1;
        self.memory.set(A::Memory::default());
        self.account = Account { budget: run.privacy.budget_units(), ..Account::default() };
        self.secret = secret;
    }

    /// How many numbers its memory has, where it is not on a shelf.
    pub fn remembers(&self) -> usize {
        let mut count = Count::default();
        if let Kept::Here(memory) = &self.memory {
            memory.put(&mut count);
        }
        count.0
    }

    /// Puts its memory on a shelf, from now on.
    pub fn shelve(&mut self, shelf: &Arc<dyn Shelf>, place: u32) {
        shelf.put(place, &self.memory.look().to_bytes());
        self.memory = Kept::Away(Arc::clone(shelf), place);
    }

    /// What the client has spent.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Begins where earlier runs on the same data have ended, with a secret of this run's own.
    pub fn begin_at(&mut self, spent: u64, releases: u64, secret: [u8; 32]) {
        (self.account.spent, self.account.releases, self.secret) = (spent, releases, secret);
    }

    /// Sums up what leaves from now on.
    pub fn keep_statement(&mut self) {
        self.statement.get_or_insert_default();
    }

    /// What left since, by kind.
    pub fn statement(&self) -> Option<&Statement> {
        self.statement.as_deref()
    }

    /// A number that moves whenever the memory may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Writes what must survive a restart.
    pub fn save<S: crate::codec::Sink>(&self, sink: &mut S) {
        self.memory.look().put(sink);
        self.account.put(sink);
        self.statement.is_some().put(sink);
        if let Some(statement) = &self.statement {
            statement.put(sink);
        }
    }

    /// Reads what `save` wrote.
    pub fn restore(&mut self, reader: &mut crate::codec::Reader<'_>) -> Result<(), crate::codec::Damaged> {
        self.version += 1;
        self.memory.set(A::Memory::get(reader)?);
        self.account = Account::get(reader)?;
        self.statement = Option::<Statement>::get(reader)?.map(Box::new);
        Ok(())
    }

    /// Answers an ask. On a refusal nothing is charged and the memory stays as it was. The error is what the server
    /// sees of it; the desk and the statement keep the client's own reason.
    #[allow(clippy::inline_always)] // A call would pass the ask through memory, and wait for it there.
    #[inline(always)]
    pub(in crate::round) fn answer(
        &mut self,
        algorithm: &A,
        run: &Run,
        ask: Ask<'_, A>,
        desk: &mut Desk,
        spare: A::Up,
    ) -> Result<A::Up, Refusal> {
        self.version += 1;
        let mut fetched = match &self.memory {
            Kept::Here(_) => None,
            away @ Kept::Away(..) => Some(away.look().into_owned()),
        };
        let shelved = fetched.is_some();
        let backup = (self.account.budget.is_some() && !shelved).then(|| self.memory.look().into_owned());
        let (step, label, common, down) = (ask.step, ask.label, ask.common, ask.down);
        let again = || Ask::<A>::new(step, label, common, down);
        let asked = |digest: &mut Digest| {
            if !active(Mutant::NoiseWithoutAsk) {
                again().feed(digest);
            }
        };
        let mut gate = Gate::open(
            Key::new(),
            &self.account,
            &mut desk.pending,
            &self.secret,
            step,
            &asked,
            run.privacy.demanded(),
        );
        let memory = match (&mut fetched, &mut self.memory) {
            (Some(memory), _) | (None, Kept::Here(memory)) => memory,
            (None, Kept::Away(..)) => {
                desk.refusal = Some(Refusal::Unsolved);
                return Err(Refusal::Unsolved.shown(&run.privacy));
            }
        };
        desk.refusal = None;
        match algorithm.client(&self.local, memory, ask, &mut gate, &mut desk.buffers, spare) {
            Ok(released) => {
                let up = A::finish(released.into_inner(), &again());
                if let Some(memory) = fetched {
                    self.memory.set(memory);
                }
                self.account.pay(&desk.pending);
                if let Some(statement) = &mut self.statement {
                    statement.pay(step, &desk.pending);
                }
                Ok(up)
            }
            Err(refusal) => {
                desk.pending.clear();
                if let Some(backup) = backup {
                    self.memory.set(backup);
                }
                if let Some(statement) = &mut self.statement {
                    statement.refuse(step, refusal);
                }
                desk.refusal = Some(refusal);
                Err(refusal.shown(&run.privacy))
            }
        }
    }
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

/// Buffers of one thread, reused from client to client.
pub struct Scratch<A: Algorithm> {
    /// The last broadcast that was read.
    pub(in crate::round) broadcast: Option<Broadcast<A>>,
    pub(in crate::round) down: A::Down,
    /// An earlier answer, for its memory.
    pub(in crate::round) spare: A::Up,
    pub(in crate::round) desk: Desk,
}

/// What a client works with while it answers.
#[derive(Default)]
pub(in crate::round) struct Desk {
    /// What the last answer was charged.
    pending: Vec<Charge>,
    /// Why the last answer was a refusal, in the client's own words.
    pub(in crate::round) refusal: Option<Refusal>,
    buffers: Buffers,
}

impl<A: Algorithm> Scratch<A> {
    /// What the last answer was charged; nothing where it was a refusal.
    pub fn charges(&self) -> &[Charge] {
        &self.desk.pending
    }
}

impl<A: Algorithm> Default for Scratch<A> {
    fn default() -> Self {
        let (broadcast, down, spare, desk) = Default::default();
        Self { broadcast, down, spare, desk }
    }
}
