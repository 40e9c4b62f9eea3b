//! The accountant against others: Google's dp-accounting (a grid in `dp_accounting.csv`, written by
//! `scripts/oracles/dp_accounting_grid.py`), the `opendp` crate (live), and plain numerical integration.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::disallowed_methods
)]

mod dp_accounting;
mod integral;
mod opendp;
