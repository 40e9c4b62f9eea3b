//! Typed settings: one declaration gives a struct, its defaults, ranges and help, and the check of a config.
//!
//! - [`settings!`] and [`choice!`] declare a struct or an enum together with its table of parameters.
//! - [`Param`], [`Values`], [`Problem`]: a parameter, checked values, and what is wrong with unchecked ones.
//! - [`Table`]: rows by name, of which registries are made; an unknown name is answered with the nearest one.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

mod params;
mod settings;
mod table;

pub use params::*;
pub use settings::*;
pub use table::*;
