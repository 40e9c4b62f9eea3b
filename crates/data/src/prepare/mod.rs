//! What is done to records on the way into a world: checks, splits, missing values, scales.

pub(crate) mod check;
pub(crate) mod impute;
pub(crate) mod parallel;
pub(crate) mod split;
pub(crate) mod standardise;
