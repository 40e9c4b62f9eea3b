//! `fedkin data fetch`.

use super::{Fetch, list::folder};
use crate::failure::Failure;
use crate::output::{self, Facts};
use fedkin::rooms::data::{FetchNews, FetchRequest, native};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::PathBuf;

#[derive(Serialize)]
struct Done {
    set: &'static str,
    folder: PathBuf,
    /// Files that were there already, with the right content.
    there: Vec<String>,
    /// Files that were fetched and checked.
    fetched: Vec<String>,
}

/// Gets a set.
pub(crate) fn fetch(args: &Fetch) -> Result<(), Failure> {
    let known = native().catalogued(&args.name)?;
    let Some(to) = args.to.clone().or_else(folder) else {
        return Err(Failure::Usage(
            "where to? Name a folder with --to DIR, or set the environment variable FEDKIN_DATA to one"
                .into(),
        ));
    };
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template("{msg} {bytes} of {total_bytes}, {bytes_per_sec}") {
        bar.set_style(style);
    }
    let (mut there, mut fetched) = (Vec::new(), Vec::new());
    let request = FetchRequest { known, to: &to, from: args.from.as_deref() };
    let result = fedkin::rooms::data::fetch(&request, &mut |news| match news {
        FetchNews::There(file) => there.push(file.to_string()),
        FetchNews::Verified(file) => fetched.push(file.to_string()),
        FetchNews::Bytes(file, count, total) => {
            bar.set_message(file.to_string());
            bar.set_length(total.unwrap_or(count));
            bar.set_position(count);
        }
        FetchNews::Again(file, count) => {
            output::warn(&format!("{file}: the line broke after {count} bytes, going on from there"));
        }
    });
    bar.finish_and_clear();
    let folder = result?;
    let done = Done { set: known.name, folder, there, fetched };
    if args.json {
        return output::json(&done);
    }
    let mut facts = Facts::default();
    facts.add("set", done.set).list("fetched", done.fetched).list("there", done.there);
    facts.add("in", done.folder.display().to_string()).add("licence", known.licence);
    if super::list::folder().is_none_or(|data| data != to) {
        facts.add("next", format!("set FEDKIN_DATA to {}", to.display()));
    }
    output::say(&facts.text())
}
