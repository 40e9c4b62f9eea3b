//! What may leave a client, at which price, and where that is written down.
//!
//! - [`Released`] is the only thing a client can send; only the [`Gate`] makes one. What the server gets is made of it by a
//!   function without access to anything private.
//! - A [`Mechanism`] is a function together with its privacy map; the map rounds up.
//! - A [`SampledSum`] is a sum over a secret Poisson sample of the records, every term clipped: DP-SGD.
//! - [`DiscreteGaussian`] draws the noise exactly, in whole numbers.
//! - A [`Bound`] says where a sensitivity comes from: enforced by a [`Clip`] or a proof, assumed on trust, or claimed by
//!   a learner.
//! - The [`Ledger`] keeps what was spent in whole units of zCDP; the accountant converts.
//! - [`audit`] bounds epsilon from below by what many runs show.
//! - A [`Chain`] is the ledger of one client's data over all runs; each line seals the ones before it. A
//!   [`Statement`] sums up one run for it.
//! - [`ClientState::answer`] is the way of an answer: from an [`Ask`], through a gate, to charges; [`LastAnswer`] is the
//!   record that is committed before it leaves.
//! - [`proofs`]: sensitivities that rest on what learners and methods do.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

mod accountant;
mod answer;
pub mod audit;
mod bound;
mod chain;
mod clip;
mod descend;
mod discrete;
mod gate;
mod ledger;
mod mechanism;
#[cfg(fedkin_mutants)]
pub mod mutants;
#[cfg(not(fedkin_mutants))]
#[doc(hidden)]
pub mod mutants;
mod plan;
pub mod proofs;
mod refusal;
mod released;
mod rng;
mod statement;

pub use accountant::{
    Neighbours, ORDERS, Prices, Renyi, Sampled, analytic_sigma, delta_of_gaussian, delta_of_zcdp,
    epsilon_of_gaussian, epsilon_of_zcdp, gaussian_sigma, gaussian_zcdp_of_epsilon, textbook_epsilon,
    zcdp_of_epsilon,
};
pub use answer::{
    AnswerScratch, Ask, Asked, ClientState, DELIVER, Label, LastAnswer, MakeSpill, ROUND, Sent, Spill,
    sent_digest,
};
pub use bound::{Bound, Trust};
pub use chain::{Broken, Chain, ChainLine, Head};
pub use clip::{Clip, NotFinite};
pub use descend::{Anchor, Anchored};
pub use discrete::DiscreteGaussian;
pub use gate::Gate;
pub use ledger::{Account, Charge, Cost, Draws, Ledger, Line, Tally};
pub use mechanism::{Gaussian, Mechanism, Perturbed, SampledSum, Sampler, Symmetric};
pub use plan::{BoundSource, DpSgd, LastStep, OneShot, Privacy, PrivacySettings, Protection, Unit, Zcdp};
pub use refusal::Refusal;
pub use released::Released;
pub use rng::PrivateRng;
pub use statement::{Entry, Statement};
