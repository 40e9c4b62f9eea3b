//! `fedkin data list`.

use super::List;
use crate::failure::Failure;
use crate::ledger::aligned;
use crate::output::{self, BAD, DOUBT, FAINT, Facts, GOOD, paint};
use fedkin::rooms::data::catalogue::{Form, Known, Presence, content_sum};
use fedkin::rooms::data::native;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct Listed {
    /// The folder that `FEDKIN_DATA` names.
    folder: Option<PathBuf>,
    sets: Vec<Set>,
}

#[derive(Serialize)]
struct Set {
    name: &'static str,
    what: &'static str,
    records: &'static str,
    licence: &'static str,
    home: &'static str,
    fetchable: bool,
    /// "present", "partial" or "absent".
    state: &'static str,
    folder: Option<PathBuf>,
    files: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    folder: &'static str,
    name: &'static str,
    sha256: Option<&'static str>,
    present: bool,
    /// With --check: whether the sum is the known one.
    verified: Option<bool>,
}

/// Lists the sets, or shows one.
pub(crate) fn list(args: &List) -> Result<(), Failure> {
    let folder = folder();
    let wanted: Vec<&'static Known> = match &args.name {
        Some(name) => vec![native().catalogued(name)?],
        None => native().catalogue().collect(),
    };
    let sets: Vec<Set> = wanted.iter().map(|known| describe(known, folder.as_deref(), args.check)).collect();
    if args.json {
        return output::json(&Listed { folder, sets });
    }
    let text = match sets.as_slice() {
        [set] if args.name.is_some() => one(set),
        sets => table(sets, folder.as_deref(), args.check),
    };
    output::say(&text)
}

/// The folder that `FEDKIN_DATA` names.
pub(super) fn folder() -> Option<PathBuf> {
    std::env::var_os("FEDKIN_DATA").filter(|data| !data.is_empty()).map(PathBuf::from)
}

fn describe(known: &'static Known, data: Option<&Path>, check: bool) -> Set {
    let presence = data.map_or(Presence::Absent, |data| known.presence(data));
    let (state, folder) = match presence {
        Presence::Present(folder) => ("present", Some(folder)),
        Presence::Partial(folder, _) => ("partial", Some(folder)),
        Presence::Absent => ("absent", None),
    };
    let files = known.forms.iter().flat_map(|form| entries(form, data, check)).collect();
    let Known { name, what, records, licence, home, .. } = *known;
    Set { name, what, records, licence, home, fetchable: !known.downloads.is_empty(), state, folder, files }
}

fn entries(form: &'static Form, data: Option<&Path>, check: bool) -> Vec<Entry> {
    let path = |name: &str| {
        let folder = data?.join(form.folder);
        [folder.join(name), folder.join(format!("{name}.gz"))].into_iter().find(|path| path.is_file())
    };
    let entry = |file: &'static fedkin::rooms::data::catalogue::KnownFile| {
        let there = path(file.name);
        let sha256 = Some(file.sha256).filter(|sum| !sum.is_empty());
        let verified = there
            .as_ref()
            .filter(|_| check)
            .and_then(|path| sha256.map(|sum| content_sum(path).is_ok_and(|found| found == sum)));
        Entry { folder: form.folder, name: file.name, sha256, present: there.is_some(), verified }
    };
    form.files.iter().map(entry).collect()
}

/// What is said of a set's files on this machine.
fn verdict(set: &Set, checked: bool) -> String {
    if set.files.iter().any(|file| file.verified == Some(false)) {
        return paint(BAD, "damaged");
    }
    let verified = set.files.iter().filter(|file| file.verified == Some(true)).count();
    match set.state {
        "present" if verified > 0 => paint(GOOD, "verified"),
        "present" if checked => paint(GOOD, "present, no sum known"),
        "present" => paint(GOOD, "present"),
        "partial" => paint(DOUBT, "partial"),
        _ if set.fetchable => "fetch it".into(),
        _ => paint(FAINT, "absent"),
    }
}

fn table(sets: &[Set], folder: Option<&Path>, checked: bool) -> String {
    let rows: Vec<Vec<String>> = sets
        .iter()
        .map(|set| vec![set.name.into(), set.records.into(), set.licence.into(), verdict(set, checked)])
        .collect();
    let mut text = aligned(&["set", "records", "licence", "here"], &rows, &[]);
    text.push('\n');
    let place = folder.map_or_else(
        || "FEDKIN_DATA is not set: it names the folder above the folders of the sets".to_string(),
        |folder| format!("looked in {} (FEDKIN_DATA)", folder.display()),
    );
    text.push_str(&place);
    text.push('\n');
    text.push_str("fedkin data list NAME shows a set in full, fedkin data fetch NAME gets it\n");
    text
}

fn one(set: &Set) -> String {
    let mut facts = Facts::default();
    facts.add("set", set.name).add("what", set.what).add("records", set.records).add("licence", set.licence);
    facts.add("home", set.home);
    let place = set.folder.as_ref().map_or_else(String::new, |folder| format!(" in {}", folder.display()));
    facts.add("here", format!("{}{place}", verdict(set, false)));
    facts.list(
        "files",
        set.files.iter().map(|file| {
            let state = match (file.present, file.verified) {
                (_, Some(true)) => paint(GOOD, "verified"),
                (_, Some(false)) => paint(BAD, "damaged"),
                (true, None) => "present".into(),
                (false, None) => paint(FAINT, "absent"),
            };
            let sum = file.sha256.map_or_else(String::new, |sum| format!("\n  sha256 {sum}"));
            format!("{}/{}  {state}{sum}", file.folder, file.name)
        }),
    );
    if set.fetchable {
        facts.add("to get it", format!("fedkin data fetch {}", set.name));
    } else {
        facts.add("to get it", "by hand, from its home");
    }
    facts.text()
}
