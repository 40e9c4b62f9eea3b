//! A client between two asks, and how it answers one.

use super::ask::Ask;
use super::memory::{Memory, Spill};
use crate::gate::Gate;
use crate::ledger::{Account, Charge};
use crate::mutants::{Mutant, active};
use crate::plan::Privacy;
use crate::refusal::Refusal;
use crate::released::Released;
use crate::statement::Statement;
use fedkin_numeric::codec::{Codec, Count, Damaged, Digest, Reader, Sink};
use std::borrow::Cow;
use std::sync::Arc;

/// What a client keeps behind its gate: what it remembers, what it has spent, and the secret its randomness follows from.
pub struct ClientState<M> {
    memory: Memory<M>,
    account: Account,
    /// This run summed up, where somebody wants to know.
    statement: Option<Box<Statement>>,
    secret: [u8; 32],
    version: u64,
}

/// Scratch of one thread for answers, reused from client to client.
#[derive(Default)]
pub struct AnswerScratch {
    /// What the last answer was charged.
    charges: Vec<Charge>,
    /// Why the last answer was a refusal, in the client's own words.
    refusal: Option<Refusal>,
    /// Why a constant stands in the last answer, in the client's own words.
    failure: Option<Refusal>,
}

impl AnswerScratch {
    /// What the last answer was charged; nothing where it was a refusal.
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// Why the last answer was a refusal: the client's own reason, not what the server sees of it.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// Why a constant left in the last answer where a value could not be computed: for the client's own people.
    pub fn failure(&self) -> Option<Refusal> {
        self.failure
    }
}

impl<M: Codec + Clone + Default> ClientState<M> {
    /// A client before the first step. Its private randomness follows from `secret`: drawn from the operating system once
    /// and stored, or [`simulated_secret`](fedkin_numeric::rng::simulated_secret) where a run is to be repeated.
    pub fn new(budget: Option<u64>, secret: [u8; 32]) -> Self {
        let account = Account { budget, ..Account::default() };
        Self { memory: Memory::Here(M::default()), account, statement: None, secret, version: 0 }
    }

    /// The same client before the first step again, with other private randomness: for audits, which run one client
    /// thousands of times.
    pub fn renew(&mut self, budget: Option<u64>, secret: [u8; 32]) {
        self.version += 1;
        self.memory.write(M::default());
        self.account = Account { budget, ..Account::default() };
        self.secret = secret;
    }

    /// What it remembers.
    pub fn memory(&self) -> Cow<'_, M> {
        self.memory.read()
    }

    /// How many numbers its memory has, where it is not spilled.
    pub fn remembers(&self) -> usize {
        let mut count = Count::default();
        if let Memory::Here(memory) = &self.memory {
            memory.put(&mut count);
        }
        count.0
    }

    /// Spills its memory, from now on.
    pub fn spill(&mut self, spill: &Arc<dyn Spill>, place: u32) {
        spill.put(place, &self.memory.read().to_bytes());
        self.memory = Memory::Spilled(Arc::clone(spill), place);
    }

    /// What the client has spent.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Begins where the client's ledger ends.
    pub fn continue_account(&mut self, account: Account) {
        self.account = account;
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

    /// Reads what it remembers from stored state; what was spent is known from the ledger.
    pub fn restore_memory(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        self.version += 1;
        self.memory.write(M::get(reader)?);
        Ok(())
    }

    /// Writes all that must survive a restart.
    pub fn save<S: Sink>(&self, sink: &mut S) {
        self.memory.read().put(sink);
        self.account.put(sink);
        self.statement.is_some().put(sink);
        if let Some(statement) = &self.statement {
            statement.put(sink);
        }
    }

    /// Reads what `save` wrote.
    pub fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        self.restore_memory(reader)?;
        self.account = Account::get(reader)?;
        self.statement = Option::<Statement>::get(reader)?.map(Box::new);
        Ok(())
    }

    /// Answers an ask: `work` gets the client's memory and a gate of its own, and returns what passed that gate. On a
    /// refusal nothing is charged and the memory stays as it was. The error is what the server sees of it; scratch and
    /// statement keep the client's own reason.
    #[allow(clippy::inline_always)] // A call would pass the ask through memory, and wait for it there.
    #[inline(always)]
    pub fn answer<C: Codec, D: Codec, U>(
        &mut self,
        privacy: &Privacy,
        ask: Ask<'_, C, D>,
        scratch: &mut AnswerScratch,
        work: impl for<'g> FnOnce(&mut M, &mut Gate<'g>) -> Result<Released<'g, U>, Refusal>,
    ) -> Result<U, Refusal> {
        self.version += 1;
        let mut fetched = match &self.memory {
            Memory::Here(_) => None,
            spilled @ Memory::Spilled(..) => Some(spilled.read().into_owned()),
        };
        let spilled = fetched.is_some();
        let backup = (self.account.budget.is_some() && !spilled).then(|| self.memory.read().into_owned());
        let step = ask.step();
        let asked = |digest: &mut Digest| {
            if !active(Mutant::NoiseWithoutAsk) {
                ask.feed(digest);
            }
        };
        let mut gate =
            Gate::open(&self.account, &mut scratch.charges, &self.secret, step, &asked, privacy.demanded());
        let memory = match (&mut fetched, &mut self.memory) {
            (Some(memory), _) | (None, Memory::Here(memory)) => memory,
            (None, Memory::Spilled(..)) => {
                scratch.refusal = Some(Refusal::Unsolved);
                return Err(Refusal::Unsolved.shown(privacy));
            }
        };
        (scratch.refusal, scratch.failure) = (None, None);
        match work(memory, &mut gate) {
            Ok(released) => {
                let value = released.into_inner();
                scratch.failure = gate.failure();
                if let Some(memory) = fetched {
                    self.memory.write(memory);
                }
                self.account.pay(&scratch.charges);
                if let Some(statement) = &mut self.statement {
                    statement.pay(step, &scratch.charges);
                }
                Ok(value)
            }
            Err(refusal) => {
                scratch.charges.clear();
                if let Some(backup) = backup {
                    self.memory.write(backup);
                }
                if let Some(statement) = &mut self.statement {
                    statement.refuse(step, refusal);
                }
                scratch.refusal = Some(refusal);
                Err(refusal.shown(privacy))
            }
        }
    }
}
