//! Records that a program holds in memory: a run directory names them, and nobody can load them from there.

use crate::Request;
use crate::error::DataError;
use crate::registry::Source;
use crate::world::World;
use fedkin_settings::settings;

settings! {
    /// `[data]` of records that a program brings ([`World::builder`]).
    pub struct Memory {}
}

impl Source for Memory {
    const NAME: &'static str = "memory";
    const SUMMARY: &'static str =
        "records that a program holds in memory (the library, not the command line)";

    fn load(&self, _: &Request<'_>) -> Result<World, DataError> {
        Err(DataError::config(
            "data.source",
            "records in memory belong to the program that trained on them: run that program again, or write them to a file \
             and set source = \"csv\"",
        ))
    }
}
