//! What may leave a client, at which price, and where that is written down.
//!
//! - [`Released`] is the only thing a client can send; only the [`Gate`] makes one.
//! - A [`Mechanism`] is a function together with its privacy map; the map rounds up.
//! - A [`Bound`] says where a sensitivity comes from: enforced by a clip, or assumed on trust.
//! - The [`Ledger`] keeps what was spent in whole units of zCDP; the accountant converts.
//! - A [`Chain`] is the ledger of one client's data over all runs; each line seals the ones before it.

mod accountant;
mod bound;
mod chain;
mod gate;
mod ledger;
mod mechanism;
mod plan;
mod released;

pub use accountant::{epsilon_of_gaussian, epsilon_of_zcdp};
pub use bound::{Bound, Trust};
pub use chain::{Broken, Chain, ChainLine, Head};
pub use gate::{Gate, Refusal};
pub use ledger::{Account, Charge, Cost, Ledger, Line, Tally};
pub use mechanism::{Gaussian, Mechanism};
pub use plan::{PARAMS, Privacy, Zcdp};
pub use released::Released;
