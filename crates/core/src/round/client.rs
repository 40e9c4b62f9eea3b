//! A client's half of a step.

use super::Key;
use crate::algorithm::{Algorithm, Label, Run};
use crate::codec::{Codec, Digest};
use crate::federation::Member;
use crate::privacy::{Account, Charge, Gate, Refusal};
use crate::rng::simulated_secret;

/// What a client is asked: all of it is known to the server. Only the machine makes one.
pub struct Ask<'a, A: Algorithm> {
    /// The step, from 1.
    pub step: u32,
    /// What the step is about.
    pub label: Label,
    /// What every asked client of the server got.
    pub common: &'a A::Common,
    /// What this client got.
    pub down: &'a A::Down,
    seal: Seal,
}

struct Seal;

impl<'a, A: Algorithm> Ask<'a, A> {
    pub(in crate::round) fn new(step: u32, label: Label, common: &'a A::Common, down: &'a A::Down) -> Self {
        Self { step, label, common, down, seal: Seal }
    }

    /// A digest of everything asked.
    pub fn digest(&self) -> [u8; 32] {
        let Seal = self.seal;
        let mut digest = Digest::default();
        self.step.put(&mut digest);
        self.label.0.put(&mut digest);
        self.common.put(&mut digest);
        self.down.put(&mut digest);
        digest.finish()
    }
}

/// Where a client's private randomness comes from.
#[derive(Debug, Clone, Copy)]
pub enum Secret {
    /// From the run's seed, so that a simulation can be repeated.
    Simulated(u64),
    /// Drawn from the operating system once and kept.
    Kept([u8; 32]),
}

impl Secret {
    fn bytes(&self, client: u32) -> [u8; 32] {
        match self {
            Secret::Simulated(seed) => simulated_secret(*seed, client),
            Secret::Kept(bytes) => *bytes,
        }
    }
}

/// A client: its data in the method's form, its private memory, what it has spent.
pub struct Client<A: Algorithm> {
    pub(crate) local: A::Local,
    pub(crate) memory: A::Memory,
    pub(crate) account: Account,
}

impl<A: Algorithm> Client<A> {
    /// A client before the first step.
    pub fn new(local: A::Local, run: &Run) -> Self {
        let account = Account { budget: run.privacy.budget_units(), ..Account::default() };
        Self { local, memory: A::Memory::default(), account }
    }

    /// What the client has spent.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Writes what must survive a restart.
    pub fn save<S: crate::codec::Sink>(&self, sink: &mut S) {
        self.memory.put(sink);
        self.account.put(sink);
    }

    /// Reads what `save` wrote.
    pub fn restore(&mut self, reader: &mut crate::codec::Reader<'_>) -> Result<(), crate::codec::Damaged> {
        self.memory = A::Memory::get(reader)?;
        self.account = Account::get(reader)?;
        Ok(())
    }

    /// Answers an ask. On a refusal nothing is charged and the memory stays as it was.
    pub(in crate::round) fn answer(
        &mut self,
        algorithm: &A,
        run: &Run,
        secret: Secret,
        member: &Member,
        ask: Ask<'_, A>,
        scratch: &mut Scratch<A>,
    ) -> Result<A::Up, Refusal> {
        let backup = self.account.budget.is_some().then(|| self.memory.clone());
        let (step, label, common, down) = (ask.step, ask.label, ask.common, ask.down);
        let digest = || Ask::<A>::new(step, label, common, down).digest();
        let seed = || secret.bytes(member.id);
        let mut gate = Gate::open(
            Key::new(),
            &self.account,
            &mut scratch.pending,
            &seed,
            step,
            &digest,
            run.privacy.demanded(),
            &mut scratch.work,
        );
        let spare = std::mem::take(&mut scratch.up);
        match algorithm.client(&self.local, &mut self.memory, ask, &mut gate, spare) {
            Ok(released) => {
                self.account.pay(&scratch.pending);
                Ok(released.into_inner())
            }
            Err(refusal) => {
                scratch.pending.clear();
                if let Some(backup) = backup {
                    self.memory = backup;
                }
                Err(refusal)
            }
        }
    }
}

/// Buffers of one thread, reused from client to client.
pub struct Scratch<A: Algorithm> {
    pub(in crate::round) down: A::Down,
    pub(in crate::round) up: A::Up,
    pub(in crate::round) pending: Vec<Charge>,
    pub(in crate::round) work: Vec<f64>,
}

impl<A: Algorithm> Default for Scratch<A> {
    fn default() -> Self {
        Self { down: A::Down::default(), up: A::Up::default(), pending: Vec::new(), work: Vec::new() }
    }
}
