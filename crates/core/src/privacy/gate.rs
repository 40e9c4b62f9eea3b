//! The gate: the one way out of a client.

use super::ledger::{Account, Charge, Cost};
use super::mechanism::{Mechanism, SampledSum};
use super::released::Released;
use crate::codec::{Codec, Count, Digest};
use crate::model::neural::Bench;
use crate::rng::{PrivateRng, Random};
use crate::round::Key;
use thiserror::Error;

/// Why a client sent nothing. A refusal is an answer like an upload, and costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{}", self.words())]
pub enum Refusal {
    /// The release would exceed the client's budget.
    Budget,
    /// The run demands privacy and this value would leave without it.
    NotPrivate,
    /// The mechanism cannot be built for this client (for example, no positive sensitivity).
    NoMechanism,
    /// The client's own problem was not solved.
    Unsolved,
    /// The client's training gave numbers that are not finite.
    Diverged,
}

impl Refusal {
    /// The reason as a constant.
    pub fn words(self) -> &'static str {
        match self {
            Refusal::Budget => "the privacy budget is spent",
            Refusal::NotPrivate => "the run demands privacy and this value has no mechanism",
            Refusal::NoMechanism => "no mechanism can be built for this release",
            Refusal::Unsolved => "the client's problem was not solved",
            Refusal::Diverged => "the loss of the client's training grew beyond all bounds",
        }
    }
}

/// What one client may do in one step: release, disclose, draw private randomness.
///
/// Charges are kept aside until the machine commits them together with the bytes that leave; a step that
/// ends in a refusal pays nothing.
pub struct Gate<'a> {
    account: &'a Account,
    pending: &'a mut Vec<Charge>,
    secret: &'a [u8; 32],
    step: u32,
    /// How many releases there were in this step; charges that are alike are one, so their number is not it.
    number: u32,
    asked: &'a dyn Fn(&mut Digest),
    demands_privacy: bool,
    /// Scratch space of this thread. Its contents are whatever an earlier client left: write before reading.
    pub work: &'a mut Vec<f64>,
    /// The same for nets.
    pub bench: &'a mut Bench,
}

impl<'a> Gate<'a> {
    /// Opens the gate for one client and step; only the round machine holds a [`Key`].
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn open(
        _: Key,
        account: &'a Account,
        pending: &'a mut Vec<Charge>,
        secret: &'a [u8; 32],
        step: u32,
        asked: &'a dyn Fn(&mut Digest),
        demands_privacy: bool,
        work: &'a mut Vec<f64>,
        bench: &'a mut Bench,
    ) -> Self {
        pending.clear();
        Self { account, pending, secret, step, number: 0, asked, demands_privacy, work, bench }
    }

    /// Releases a value through a mechanism and notes the charge.
    pub fn release<M: Mechanism>(
        &mut self,
        what: &'static str,
        mechanism: &M,
        mut value: M::Value,
    ) -> Result<Released<M::Value>, Refusal> {
        if self.demands_privacy && !mechanism.private() {
            return Err(Refusal::NotPrivate);
        }
        let cost = mechanism.cost();
        self.afford(cost)?;
        // The stream is named by the step, the number of the release and what was asked: the same noise
        // never covers two different values, and a crash before the commit draws the same noise again.
        let mut noise = self.stream("noise", self.number);
        mechanism.apply(&mut value, &mut noise)?;
        self.note(Charge {
            what,
            mechanism: mechanism.name(),
            trust: mechanism.private().then(|| mechanism.trust()),
            sigma: mechanism.sigma(),
            cost,
            size: M::size(&value) as u32,
            steps: 1,
            sampled: None,
        });
        Ok(Released::new(value))
    }

    /// Releases the sum of one vector per record over a Poisson sample of a client's records, drawn from a private
    /// stream of its own. `each` writes the vector of a record to a buffer of zeros; it is called for the
    /// sampled records alone, in their order, and may depend on that record and on what was released or asked,
    /// on nothing else of the data. Like sums of one answer are one charge, with their number.
    pub fn sampled(
        &mut self,
        what: &'static str,
        sum: &SampledSum,
        records: usize,
        mut each: impl FnMut(usize, &mut [f64]),
    ) -> Result<Released<Vec<f64>>, Refusal> {
        if self.demands_privacy && !sum.private() {
            return Err(Refusal::NotPrivate);
        }
        if !sum.holds(records) {
            return Err(Refusal::NoMechanism);
        }
        let cost = sum.cost();
        self.afford(cost)?;
        let (mut sample, mut noise) =
            (self.stream("poisson sample", self.number), self.stream("noise", self.number));
        let (mut total, mut one) = (vec![0.0; sum.length()], vec![0.0; sum.length()]);
        for record in 0..records {
            if sum.takes(sample.bits()) {
                one.fill(0.0);
                each(record, &mut one);
                sum.add(&mut one, &mut total);
            }
        }
        sum.perturb(&mut total, &mut noise)?;
        self.number += 1;
        let charge = Charge {
            what,
            mechanism: sum.name(),
            trust: sum.trust(),
            sigma: sum.sigma(),
            cost,
            size: total.len() as u32,
            steps: 1,
            sampled: sum.priced(),
        };
        match self.pending.iter_mut().find(|known| known.is_like(&charge) && known.size == charge.size) {
            Some(known) => {
                known.cost = known.cost.plus(cost);
                known.steps += 1;
            }
            None => self.pending.push(charge),
        }
        Ok(Released::new(total))
    }

    fn afford(&self, cost: Cost) -> Result<(), Refusal> {
        let all = self.pending.iter().fold(cost, |sum, charge| sum.plus(charge.cost));
        if self.account.affords(all) { Ok(()) } else { Err(Refusal::Budget) }
    }

    fn note(&mut self, charge: Charge) {
        self.pending.push(charge);
        self.number += 1;
    }

    /// Lets a value out as it is and writes that down; refused where the run demands privacy.
    pub fn disclose<T: Codec>(&mut self, what: &'static str, value: T) -> Result<Released<T>, Refusal> {
        if self.demands_privacy {
            return Err(Refusal::NotPrivate);
        }
        let mut numbers = Count::default();
        value.put(&mut numbers);
        let charge = Charge {
            what,
            mechanism: "disclosed",
            trust: None,
            sigma: 0.0,
            cost: Cost::default(),
            // An index or a flag is one thing that left, too.
            size: numbers.0.max(1) as u32,
            steps: 1,
            sampled: None,
        };
        self.note(charge);
        Ok(Released::new(value))
    }

    /// Something that does not depend on the client's data, such as "done". Not a release.
    pub fn nothing(&mut self) -> Released<()> {
        Released::new(())
    }

    /// A release through a mechanism where there is one, a disclosure where there is none.
    pub fn pass<M: Mechanism<Value: Codec>>(
        &mut self,
        what: &'static str,
        mechanism: Option<&M>,
        value: M::Value,
    ) -> Result<Released<M::Value>, Refusal> {
        if let Some(mechanism) = mechanism {
            return self.release(what, mechanism, value);
        }
        self.disclose(what, value)
    }

    /// Private randomness for mini-batches and the like; never the stream of the noise.
    pub fn rng(&self, purpose: &'static str) -> PrivateRng {
        self.stream(purpose, u32::MAX)
    }

    fn stream(&self, purpose: &str, number: u32) -> PrivateRng {
        PrivateRng::new(self.secret, purpose, self.step, number, self.asked)
    }
}
