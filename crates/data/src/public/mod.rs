//! Public data sets: what their files must be, where they are looked for, and how they are fetched.

pub mod catalogue;
pub(crate) mod fetch;
pub(crate) mod places;
