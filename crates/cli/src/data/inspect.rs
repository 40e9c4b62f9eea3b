//! `fedkin data inspect`.

use super::Inspect;
use crate::failure::Failure;
use crate::output;
use fedkin::rooms::data::Options;

/// Summarises a file.
pub(crate) fn inspect(args: &Inspect) -> Result<(), Failure> {
    let options = Options { client: args.client.clone(), target: args.target.clone() };
    let found = fedkin::rooms::data::inspect(&args.file, &options)?;
    if args.json { output::json(&found) } else { output::say(&found.to_string()) }
}
