//! A client's answer, from what it is asked to the record that is committed before anything leaves.
//!
//! 1. [`Ask`]: what a server wants to know; all of it is public.
//! 2. [`ClientState::answer`] opens a [`Gate`](super::Gate) and lets the method work; what passed the gate comes back with
//!    the charges, or nothing is charged and a [`Refusal`](super::Refusal) comes back.
//! 3. [`LastAnswer::commit`] adds the lines of the ledger and keeps the bytes. Who drives the client stores the state
//!    together with these lines, and sends only then; the same ask is answered with the same bytes for ever.
//!
//! Nothing here knows what is asked or what is learnt: messages are type parameters.

mod ask;
mod client;
mod last;
mod memory;

pub use ask::{Ask, DELIVER, Label, ROUND};
pub use client::{AnswerScratch, ClientState};
pub use last::{Asked, LastAnswer, Sent, sent_digest};
pub use memory::{MakeSpill, Spill};
