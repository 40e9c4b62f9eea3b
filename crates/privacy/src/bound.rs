//! Where a bound comes from.

/// Whether something enforces a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The computation itself guarantees it (a clip, a bounded loss).
    Enforced,
    /// Somebody said so. Ledger, command line and report repeat that.
    Assumed,
    /// The learner said so, and nothing has checked it. Refused where privacy is demanded.
    Claimed,
    /// A paper says so, and an audit has shown that it does not hold: kept to reproduce the paper.
    Refuted,
}

impl Trust {
    /// The words used in ledger and report.
    pub fn words(self) -> &'static str {
        match self {
            Trust::Enforced => "enforced",
            Trust::Assumed => "assumed, not enforced",
            Trust::Claimed => "claimed by the learner, not checked",
            Trust::Refuted => "refuted by audit: no guarantee",
        }
    }
}

/// A bound on the norm of one record's gradient.
///
/// Everybody can assume or claim one. That it is enforced only privacy code says: no function outside of this crate
/// returns such a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    value: f64,
    trust: Trust,
}

impl Bound {
    /// A bound taken on trust.
    pub fn assumed(value: f64) -> Self {
        Self { value, trust: Trust::Assumed }
    }

    /// A bound that a learner states of itself.
    pub fn claimed(value: f64) -> Self {
        Self { value, trust: Trust::Claimed }
    }

    /// A bound that a paper states and an audit has refuted.
    pub fn refuted(value: f64) -> Self {
        Self { value, trust: Trust::Refuted }
    }

    /// A bound that privacy code certifies: a clip, or the [proofs](super::proofs).
    pub(super) fn enforced(value: f64) -> Self {
        Self { value, trust: Trust::Enforced }
    }

    /// The bound.
    pub fn value(self) -> f64 {
        self.value
    }

    /// Where it comes from.
    pub fn trust(self) -> Trust {
        self.trust
    }

    /// The same bound times a factor: a sensitivity derived from a gradient bound by a proof.
    #[must_use]
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, trust: self.trust }
    }
}
