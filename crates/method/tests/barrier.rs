//! The type barrier from outside: every way to forge or launder a [`Released`] that we could think of must not
//! compile, each for its own reason (core spec, "What leaks unless it passes the gate" and lesson 5).
//!
//! What the barrier is for: a method written in good faith cannot let data out beside the gate, and a reviewer
//! of a method has to look at `release`, `disclose` and the sensitivities only. What it is not: `unsafe` code
//! can do anything (the workspace forbids it), what builds an upload may still read a global or a lock inside a
//! message type, and the choice to refuse is free. `barrier/outside.rs` holds those ways, compiled, so that nobody
//! believes otherwise. Learners and rows of tables come from outside, too: no gate and no certificate gets to them.
//!
//! The expected messages are in `barrier/*.stderr`; `TRYBUILD=overwrite cargo test -p fedkin-core --test
//! barrier` writes them anew after a change of compiler. Then read them: a case must fail for its own reason.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::disallowed_methods
)]

#[macro_use]
#[path = "barrier/parts/method.rs"]
mod parts;

#[path = "barrier/claimed.rs"]
mod claimed;
#[path = "barrier/honest.rs"]
mod honest;
#[path = "barrier/outside.rs"]
mod outside;

#[test]
fn forging_and_laundering_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/barrier/forge_*.rs");
    cases.compile_fail("tests/barrier/launder_*.rs");
    cases.compile_fail("tests/barrier/price_*.rs");
    cases.compile_fail("tests/barrier/spy_*.rs");
}
