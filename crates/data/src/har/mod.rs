//! UCI HAR: thirty people walk, climb, sit, stand and lie with a phone at the waist: `uci-har`.
//!
//! A client is a person, a record is a window of 2.56 s, the target is one of six activities. Windows overlap by half, so the
//! division into training and test records goes by runs, stretches of time without a break (see `windows`): no sample of a
//! test window is in a training window. Where a person did an activity in a single run, that run is for training.

mod features;
mod windows;

use crate::error::DataError;
use crate::places::SetPlace;
use crate::roster::Roster;
use crate::schema::{Feature, Schema};
use crate::signals::check;
use crate::standardise::Scaling;
use crate::topology;
use crate::world::{Client, World, assemble};
use crate::{Request, Task};
use fedkin_core::Dataset;
use fedkin_core::params::{Kind, Param, Preset, Value};
use fedkin_core::rng::{PublicRng, Random};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windows::{ACTIVITIES, CHANNELS, STEPS, Windows};

pub(crate) const NAME: &str = "uci-har";
/// How many activities there are.
pub(crate) const CLASSES: usize = ACTIVITIES.len();
const FILE: &str = "uci_har_inertial_i16.npz";
const PLACE: SetPlace = SetPlace { set: NAME, folder: NAME, expected: FILE };

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "path",
        kind: Kind::Path,
        preset: Preset::Absent,
        help: "folder of uci_har_inertial_i16.npz (default: uci-har in the folder that FEDKIN_DATA names)",
    },
    Param {
        name: "features",
        kind: Kind::Choice(&["summary", "raw"]),
        preset: Preset::Text("summary"),
        help: "summary: 70 numbers per window (levels, jerks, bands of frequency, correlations, gravity) scaled by constants; \
               raw: the 1152 samples, in g and rad/s",
    },
    Param {
        name: "subjects",
        kind: Kind::List(&Kind::Integer { least: 1, most: 255 }),
        preset: Preset::Absent,
        help: "people by number, one client each (default: all 30)",
    },
    Param {
        name: "test_fraction",
        kind: Kind::Number { least: 0.0, most: 0.99, open: false },
        preset: Preset::Number(0.5),
        help: "share of a person's runs of each activity that is kept for testing; at least one stays for training",
    },
    Param {
        name: "train_windows",
        kind: Kind::Integer { least: 1, most: 100_000 },
        preset: Preset::Absent,
        help: "at most so many training windows of each activity, drawn from the training runs (default: all of them)",
    },
    Param {
        name: "standardise",
        kind: Kind::Flag,
        preset: Preset::Flag(false),
        help: "bring each feature to mean 0 and deviation 1, each client by its own training windows: nothing about them \
               leaves it",
    },
];

/// Reads the windows and divides each person's runs.
pub(crate) fn load(request: &Request<'_>) -> Result<World, DataError> {
    let values = request.values;
    check::has_targets(request.task, NAME)?;
    if request.task != Task::Classes(CLASSES as u32) {
        let message = format!(
            "{NAME} has {CLASSES} activities to tell apart: set [model] kind = \"softmax\", and leave `classes` out"
        );
        return Err(DataError::config("source", message));
    }
    let server = "server".to_string();
    let topology = topology::build(
        request.topology,
        std::slice::from_ref(&server),
        false,
        request.seed,
        request.require_connected,
    )?;
    let windows = Windows::load(&file_of(&PLACE.find(values.text("path"), request.base)?)?)?;
    let raw = values.text("features") == Some("raw");
    let schema = Schema {
        features: if raw { raw_names() } else { features::names() }
            .into_iter()
            .map(Feature::number)
            .collect(),
        target: "activity".into(),
    };
    let columns = schema.features.len();
    let scaling =
        if values.flag("standardise") { Scaling::ByClient(vec![true; columns]) } else { Scaling::Never };
    let mut clients = Vec::new();
    for subject in subjects(values.list("subjects"), values.get("subjects").is_some(), &windows)? {
        let name = format!("subject-{subject:02}");
        let mut rng = PublicRng::named(request.seed, "world/split", 0, u32::from(subject));
        let fraction = values.number("test_fraction").unwrap_or(0.5);
        let limit = values.integer("train_windows").map(|limit| limit as usize);
        let (train, test) = divide(&runs_of(&windows, subject), fraction, limit, &mut rng);
        let (mut train_rows, mut test_rows) = (rows(&windows, &train, raw), rows(&windows, &test, raw));
        let scaling = scaling.apply(columns, &mut train_rows, &mut test_rows);
        let dataset = |features: Vec<f64>, picks: &[usize]| {
            let targets = picks.iter().map(|&at| f64::from(windows.activity[at])).collect();
            Dataset::new(columns, features, targets)
                .map(Arc::new)
                .map_err(|source| DataError::Records { client: name.clone(), source })
        };
        let train = dataset(train_rows, &train)?;
        let test = if test.is_empty() { None } else { Some(dataset(test_rows, &test)?) };
        clients.push(Client { name, server: 0, cluster: 0, train, test, scaling });
    }
    assemble(clients, Roster { servers: vec![server], clusters: vec!["all".into()], topology }, None, schema)
}

fn file_of(folder: &Path) -> Result<PathBuf, DataError> {
    // A path straight to the archive is what many will write.
    let candidates = [folder.join(FILE), folder.to_path_buf()];
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| PLACE.missing(folder.to_path_buf()))
}

/// The wanted people in order, each once.
fn subjects(list: &[Value], given: bool, windows: &Windows) -> Result<Vec<u8>, DataError> {
    let mut known = windows.subject.clone();
    known.sort_unstable();
    known.dedup();
    if !given {
        return Ok(known);
    }
    let mut subjects = Vec::with_capacity(list.len());
    for value in list {
        let subject = match value {
            Value::Integer(number) => u8::try_from(*number).ok().filter(|number| known.contains(number)),
            _ => None,
        };
        let refuse = |what: &str| DataError::config("subjects", format!("{value} {what}"));
        let subject = subject.ok_or_else(|| refuse("is not among the people of the file"))?;
        if subjects.contains(&subject) {
            return Err(refuse("is listed twice: drop one"));
        }
        subjects.push(subject);
    }
    if subjects.is_empty() {
        return Err(DataError::config("subjects", "name at least one person, as in [1, 3]"));
    }
    subjects.sort_unstable();
    Ok(subjects)
}

/// A person's windows by activity and run. A run in which the activity changes is one of the activity it begins with.
fn runs_of(windows: &Windows, subject: u8) -> Vec<Vec<Vec<usize>>> {
    let mut by_run: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for at in (0..windows.subject.len()).filter(|&at| windows.subject[at] == subject) {
        by_run.entry(windows.run[at]).or_default().push(at);
    }
    let mut by_activity = vec![Vec::new(); CLASSES];
    for run in by_run.into_values() {
        by_activity[usize::from(windows.activity[run[0]])].push(run);
    }
    by_activity
}

/// Training and test windows: whole runs of each activity go to one side, and then at most `limit` training windows stay.
fn divide(
    by_activity: &[Vec<Vec<usize>>],
    fraction: f64,
    limit: Option<usize>,
    rng: &mut PublicRng,
) -> (Vec<usize>, Vec<usize>) {
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for runs in by_activity {
        let mut order: Vec<usize> = (0..runs.len()).collect();
        rng.shuffle(&mut order);
        let count = ((runs.len() as f64 * fraction).round() as usize).min(runs.len().saturating_sub(1));
        let (kept, learnt) = order.split_at(count);
        test.extend(kept.iter().flat_map(|&run| &runs[run]));
        let mut pile: Vec<usize> = learnt.iter().flat_map(|&run| &runs[run]).copied().collect();
        rng.shuffle(&mut pile);
        pile.truncate(limit.unwrap_or(usize::MAX));
        train.extend(pile);
    }
    // Back in the order of the file, so that only membership is random.
    train.sort_unstable();
    test.sort_unstable();
    (train, test)
}

fn rows(windows: &Windows, picks: &[usize], raw: bool) -> Vec<f64> {
    let mut rows = Vec::new();
    for &at in picks {
        if raw {
            rows.extend(windows.window(at).iter().map(|&value| f64::from(value) * windows.scale));
        } else {
            rows.extend_from_slice(windows.features(at));
        }
    }
    rows
}

fn raw_names() -> Vec<String> {
    let signals =
        ["body-x", "body-y", "body-z", "turn-x", "turn-y", "turn-z", "total-x", "total-y", "total-z"];
    debug_assert_eq!(signals.len(), CHANNELS);
    signals.iter().flat_map(|signal| (0..STEPS).map(move |step| format!("{signal}-{step:03}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_runs_go_to_one_side_and_a_single_run_is_for_training() {
        let runs = vec![vec![vec![0, 1, 2], vec![3], vec![4, 5], vec![6, 7]], vec![vec![8, 9]], vec![]];
        for seed in 0..20 {
            let mut rng = PublicRng::named(seed, "test", 0, 0);
            let (train, test) = divide(&runs, 0.5, None, &mut rng);
            assert_eq!(train.len() + test.len(), 10);
            assert!(train.contains(&8) && train.contains(&9));
            for run in &runs[0] {
                let inside = run.iter().filter(|window| test.contains(window)).count();
                assert!(inside == 0 || inside == run.len());
            }
            let (few, same) = divide(&runs, 0.5, Some(1), &mut PublicRng::named(seed, "test", 0, 0));
            assert_eq!((few.len(), same), (2, test));
            assert!(few.iter().all(|window| train.contains(window)));
        }
    }

    /// The number that the set's description gives.
    #[test]
    fn the_real_file_has_857_runs() {
        let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let file = std::env::var_os("FEDKIN_DATA").map_or(shared, PathBuf::from).join(NAME).join(FILE);
        if !file.is_file() {
            eprintln!("skipped: there is no {}; set FEDKIN_DATA to test with it", file.display());
            return;
        }
        let windows = Windows::load(&file).unwrap();
        assert_eq!((windows.run.len(), windows.run.last()), (10299, Some(&856)));
        // Nobody changes what they do within a run.
        let same =
            |i: usize| windows.run[i] != windows.run[i - 1] || windows.activity[i] == windows.activity[i - 1];
        assert!((1..windows.run.len()).all(same));
    }
}
