//! The gate: the one way out of a client.

use super::ledger::{Account, Charge, Cost};
use super::mechanism::Mechanism;
use super::released::Released;
use crate::codec::{Codec, Count, Digest};
use crate::rng::PrivateRng;
use crate::round::Key;
use thiserror::Error;

/// Why a client sent nothing. A refusal is an answer like an upload, and costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The release would exceed the client's budget.
    #[error("the privacy budget is spent")]
    Budget,
    /// The run demands privacy and this value would leave without it.
    #[error("the run demands privacy and this value has no mechanism")]
    NotPrivate,
    /// The mechanism cannot be built for this client (for example, no positive sensitivity).
    #[error("no mechanism can be built for this release")]
    NoMechanism,
    /// The client's own problem was not solved.
    #[error("the client's problem was not solved")]
    Unsolved,
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
    asked: &'a dyn Fn(&mut Digest),
    demands_privacy: bool,
    /// Scratch space of this thread. Its contents are whatever an earlier client left: write before reading.
    pub work: &'a mut Vec<f64>,
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
    ) -> Self {
        pending.clear();
        Self { account, pending, secret, step, asked, demands_privacy, work }
    }

    /// Releases a value through a mechanism and notes the charge.
    pub fn release<M: Mechanism>(
        &mut self,
        what: &'static str,
        mechanism: &M,
        mut value: M::Value,
    ) -> Result<Released<M::Value>, Refusal> {
        let cost = mechanism.cost();
        let all = self.pending.iter().fold(cost, |sum, charge| sum.plus(charge.cost));
        if !self.account.affords(all) {
            return Err(Refusal::Budget);
        }
        // The stream is named by the step, the number of the release and what was asked: the same noise
        // never covers two different values, and a crash before the commit draws the same noise again.
        let mut noise = self.stream("noise", self.pending.len() as u32);
        mechanism.apply(&mut value, &mut noise);
        self.pending.push(Charge {
            what,
            mechanism: M::NAME,
            trust: Some(mechanism.trust()),
            sigma: mechanism.sigma(),
            cost,
            size: M::size(&value) as u32,
        });
        Ok(Released::new(value))
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
        };
        self.pending.push(charge);
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
