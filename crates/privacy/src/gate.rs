//! The gate: the one way out of a client.

use super::bound::Trust;
use super::ledger::{Account, Charge, Cost};
use super::mechanism::{Mechanism, SampledSum};
use super::refusal::Refusal;
use super::released::{Brand, Released};
use crate::PrivateRng;
use fedkin_numeric::codec::{Codec, Count, Digest};
use fedkin_numeric::rng::Random;
use std::marker::PhantomData;

/// What one client may do in one step: release, disclose, draw private randomness.
///
/// Charges are kept aside until the machine commits them together with the bytes that leave; a step that
/// ends in a refusal pays nothing. `'g` stands for this gate alone: what passed it is [`Released<'g, _>`](Released).
pub struct Gate<'g> {
    account: &'g Account,
    pending: &'g mut Vec<Charge>,
    secret: &'g [u8; 32],
    step: u32,
    /// How many releases there were in this step; charges that are alike are one, so their number is not it.
    number: u32,
    asked: &'g dyn Fn(&mut Digest),
    demands_privacy: bool,
    failed: Option<Refusal>,
    brand: Brand<'g>,
}

impl<'g> Gate<'g> {
    /// Opens the gate for one client and step; only [`ClientState::answer`](crate::ClientState::answer) does.
    pub(crate) fn open(
        account: &'g Account,
        pending: &'g mut Vec<Charge>,
        secret: &'g [u8; 32],
        step: u32,
        asked: &'g dyn Fn(&mut Digest),
        demands_privacy: bool,
    ) -> Self {
        pending.clear();
        let (number, failed, brand) = (0, None, PhantomData);
        Self { account, pending, secret, step, number, asked, demands_privacy, failed, brand }
    }

    pub(super) fn brand(&self) -> Brand<'g> {
        self.brand
    }

    /// Notes, for the client's own people, why a constant is released in place of a value. To refuse instead would tell
    /// the server about the records, for nothing.
    pub fn failed(&mut self, why: Refusal) {
        self.failed = Some(why);
    }

    /// What [`failed`](Self::failed) noted.
    pub(crate) fn failure(&self) -> Option<Refusal> {
        self.failed
    }

    /// Releases a value through a mechanism and notes the charge.
    pub fn release<M: Mechanism>(
        &mut self,
        what: &'static str,
        mechanism: &M,
        mut value: M::Value,
    ) -> Result<Released<'g, M::Value>, Refusal> {
        // A price that rests on the word of the learner protects nobody from a learner that errs.
        if self.demands_privacy && (!mechanism.private() || mechanism.trust() == Trust::Claimed) {
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
        Ok(Released::new(value, self.brand))
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
        each: impl FnMut(usize, &mut [f64]),
    ) -> Result<Released<'g, Vec<f64>>, Refusal> {
        let (mut total, mut one) = (vec![0.0; sum.length()], vec![0.0; sum.length()]);
        self.sum_sample(what, sum, records, (&mut total, &mut one), each)?;
        Ok(Released::new(total, self.brand))
    }

    /// Writes such a sum to `total` and notes the charge; both buffers are as long as the sum.
    pub(super) fn sum_sample(
        &mut self,
        what: &'static str,
        sum: &SampledSum,
        records: usize,
        (total, one): (&mut Vec<f64>, &mut [f64]),
        mut each: impl FnMut(usize, &mut [f64]),
    ) -> Result<(), Refusal> {
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
        total.fill(0.0);
        for record in 0..records {
            if sum.takes(sample.bits()) {
                one.fill(0.0);
                each(record, one);
                sum.add(one, total);
            }
        }
        sum.perturb(total, &mut noise)?;
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
        Ok(())
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
    pub fn disclose<T: Codec>(&mut self, what: &'static str, value: T) -> Result<Released<'g, T>, Refusal> {
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
        Ok(Released::new(value, self.brand))
    }

    /// The default of a type: "done", or the place of something that is not part of this answer. A constant, so not a
    /// release, and the only thing that passes without being written down.
    pub fn nothing<T: Default + Codec>(&mut self) -> Released<'g, T> {
        Released::new(T::default(), self.brand)
    }

    /// A release through a mechanism where there is one, a disclosure where there is none.
    pub fn pass<M: Mechanism<Value: Codec>>(
        &mut self,
        what: &'static str,
        mechanism: Option<&M>,
        value: M::Value,
    ) -> Result<Released<'g, M::Value>, Refusal> {
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
