//! UCI HAR: thirty people walk, climb, sit, stand and lie with a phone at the waist: `uci-har`.
//!
//! A client is a person, a record is a window of 2.56 s, the target is one of six activities. Windows overlap by half, so the
//! division into training and test records goes by runs, stretches of time without a break (see `windows`): no sample of a
//! test window is in a training window. Where a person did an activity in a single run, that run is for training.

mod features;
mod official;
mod windows;

use crate::error::DataError;
use crate::options::FRACTION;
use crate::prepare::check;
use crate::prepare::split::{Parts, VALIDATION, share};
use crate::prepare::standardise::Scaling;
use crate::public::catalogue::{self, Known};
use crate::public::places::SetPlace;
use crate::registry::{About, Source, Variants};
use crate::world::roster::Roster;
use crate::world::schema::{Feature, Schema};
use crate::world::{Client, World, assemble};
use crate::{Request, Task, topology};
use fedkin_learner::{Dataset, model};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::{Kind, Param, Preset, choice, settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windows::{ACTIVITIES, CHANNELS, STEPS, Windows};

const NAME: &str = "uci-har";
const CLASSES: usize = ACTIVITIES.len();
const FILE: &str = "uci_har_inertial_i16.npz";
const OFFICIAL: &str = "UCI HAR Dataset.zip";
const PLACE: SetPlace =
    SetPlace { set: NAME, folder: NAME, expected: "uci_har_inertial_i16.npz or \"UCI HAR Dataset.zip\"" };

choice! {
    /// What a record consists of.
    pub enum Features {
        /// 70 numbers per window.
        Summary = "summary",
        /// The samples themselves.
        Raw = "raw",
    }
}

settings! {
    /// `[data]` of UCI HAR.
    pub struct UciHar {
        path: Option<PathBuf> => Kind::Path, Preset::Absent,
            "folder of \"UCI HAR Dataset.zip\" or uci_har_inertial_i16.npz (absent: uci-har in the folder that FEDKIN_DATA names)";
        features: Features => Kind::Choice(Features::WORDS), Preset::Text("summary"),
            "summary: 70 numbers per window (levels, jerks, bands of frequency, correlations, gravity) scaled by constants; \
             raw: the 1152 samples, in g and rad/s, or the first `steps` of each channel";
        steps: Option<usize> => Kind::Integer { least: 1, most: STEPS as i64 }, Preset::Absent,
            "raw: so many samples of each of the 9 channels from the start of a window; 100 give the 900 features of the \
             FedPnP paper (absent: all 128)";
        subjects: Option<Vec<u32>> => Kind::List(&Kind::Integer { least: 1, most: 255 }), Preset::Absent,
            "people by number, one client each (absent: all 30)";
        test_fraction: f64 => FRACTION, Preset::Number(0.5),
            "share of a person's runs of each activity that is kept for testing; at least one stays for training";
        train_windows: Option<usize> => Kind::Integer { least: 1, most: 100_000 }, Preset::Absent,
            "at most so many training windows of each activity, drawn from the training runs (absent: all of them)";
        validation_fraction: f64 => param Param {
            help: "share of a person's training runs of each activity that is set aside for choosing parameters; at least one \
                   stays for training",
            ..VALIDATION
        };
        standardise: bool => Kind::Flag, Preset::Flag(false),
            "bring each feature to mean 0 and deviation 1, each client by its own training windows: nothing about them \
             leaves it";
    }
}

impl Source for UciHar {
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str =
        "six activities of thirty people from a phone's motion sensors, one person per client";
    const PUBLIC: Option<&'static Known> = Some(&catalogue::UCI_HAR);

    fn about(&self, _: Variants<'_>) -> About {
        let columns = self.shown().map_or(0, |shown| shown.names().len());
        About {
            known: model::Known { classes: Some(CLASSES), shape: Some([columns, 1, 1]) },
            path: self.path.clone(),
            by_client: self.standardise,
            validation: self.validation_fraction > 0.0,
        }
    }

    /// Reads the windows and divides each person's runs.
    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
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
        let windows = Windows::load(&file_of(&PLACE.find(self.path.as_deref(), request.base)?)?)?;
        let shown = self.shown()?;
        let names = shown.names();
        let columns = names.len();
        let schema = Schema {
            features: names.into_iter().map(Feature::number).collect(),
            target: "activity".into(),
            shape: Some([columns, 1, 1]),
        };
        let scaling = if self.standardise { Scaling::ByClient(vec![true; columns]) } else { Scaling::Never };
        let mut clients = Vec::new();
        for subject in subjects(self.subjects.as_deref(), &windows)? {
            let name = format!("subject-{subject:02}");
            let mut rng = PublicRng::named(request.seed, "world/split", 0, u32::from(subject));
            let shares = Shares { test: self.test_fraction, validation: self.validation_fraction };
            let parts = divide(&runs_of(&windows, subject), shares, self.train_windows, &mut rng);
            let [mut train, mut validation, mut test] =
                [&parts.train, &parts.validation, &parts.test].map(|picks| rows(&windows, picks, shown));
            let scaling = scaling.apply(columns, &mut train, [&mut validation, &mut test]);
            let dataset = |features: Vec<f64>, picks: &[usize]| {
                let targets = picks.iter().map(|&at| f64::from(windows.activity[at])).collect();
                Dataset::new(columns, features, targets)
                    .map(Arc::new)
                    .map_err(|source| DataError::Records { client: name.clone(), source })
            };
            let some = |features, picks: &[usize]| match picks {
                [] => Ok(None),
                picks => dataset(features, picks).map(Some),
            };
            let train = dataset(train, &parts.train)?;
            let (validation, test) = (some(validation, &parts.validation)?, some(test, &parts.test)?);
            clients.push(Client {
                name,
                server: 0,
                cluster: 0,
                train,
                test,
                validation,
                scaling,
                learner: None,
            });
        }
        let roster = Roster { servers: vec![server], clusters: vec!["all".into()], topology };
        let classes = ACTIVITIES.iter().map(ToString::to_string).collect();
        Ok(assemble(clients, roster, None, schema)?.with_public(None, classes))
    }
}

/// What is shown of a window.
#[derive(Clone, Copy)]
enum Shown {
    /// The 70 numbers of `features`.
    Summary,
    /// The first so many samples of each channel.
    Raw(usize),
}

impl UciHar {
    fn shown(&self) -> Result<Shown, DataError> {
        match (self.features, self.steps) {
            (Features::Raw, steps) => Ok(Shown::Raw(steps.unwrap_or(STEPS))),
            (Features::Summary, None) => Ok(Shown::Summary),
            (Features::Summary, Some(_)) => Err(DataError::config(
                "steps",
                "only raw samples can be cut short: set `features = \"raw\"`, or drop the key",
            )),
        }
    }
}

impl Shown {
    fn names(self) -> Vec<String> {
        match self {
            Self::Summary => features::names(),
            Self::Raw(steps) => raw_names(steps),
        }
    }
}

fn file_of(folder: &Path) -> Result<PathBuf, DataError> {
    // A path straight to the archive is what many will write.
    let candidates = [folder.join(FILE), folder.join(OFFICIAL), folder.to_path_buf()];
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| PLACE.missing(folder.to_path_buf()))
}

/// The wanted people in order, each once; all where nobody is named.
fn subjects(wanted: Option<&[u32]>, windows: &Windows) -> Result<Vec<u8>, DataError> {
    let mut known = windows.subject.clone();
    known.sort_unstable();
    known.dedup();
    let Some(wanted) = wanted else { return Ok(known) };
    let mut subjects = Vec::with_capacity(wanted.len());
    for &number in wanted {
        let subject = known.iter().copied().find(|known| u32::from(*known) == number);
        let refuse = |what: &str| DataError::config("subjects", format!("{number} {what}"));
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

/// How much of a person's runs is not for training.
#[derive(Debug, Clone, Copy)]
struct Shares {
    test: f64,
    validation: f64,
}

/// Whole runs of each activity go to one part, and then at most `limit` training windows stay.
fn divide(
    by_activity: &[Vec<Vec<usize>>],
    shares: Shares,
    limit: Option<usize>,
    rng: &mut PublicRng,
) -> Parts {
    let mut parts = Parts::default();
    for runs in by_activity {
        let mut order: Vec<usize> = (0..runs.len()).collect();
        rng.shuffle(&mut order);
        let tested = share(runs.len(), shares.test);
        let validated = share(runs.len() - tested, shares.validation);
        let windows =
            |part: &[usize]| part.iter().flat_map(|&run| &runs[run]).copied().collect::<Vec<usize>>();
        parts.test.extend(windows(&order[..tested]));
        parts.validation.extend(windows(&order[tested..tested + validated]));
        let mut pile = windows(&order[tested + validated..]);
        rng.shuffle(&mut pile);
        pile.truncate(limit.unwrap_or(usize::MAX));
        parts.train.extend(pile);
    }
    // Back in the order of the file, so that only membership is random.
    for part in [&mut parts.train, &mut parts.validation, &mut parts.test] {
        part.sort_unstable();
    }
    parts
}

fn rows(windows: &Windows, picks: &[usize], shown: Shown) -> Vec<f64> {
    let mut rows = Vec::new();
    for &at in picks {
        match shown {
            Shown::Summary => rows.extend_from_slice(windows.features(at)),
            Shown::Raw(steps) => {
                let channels = windows.window(at).chunks_exact(STEPS).flat_map(|channel| &channel[..steps]);
                rows.extend(channels.map(|&value| f64::from(value) * windows.scale));
            }
        }
    }
    rows
}

fn raw_names(steps: usize) -> Vec<String> {
    let signals =
        ["body-x", "body-y", "body-z", "turn-x", "turn-y", "turn-z", "total-x", "total-y", "total-z"];
    debug_assert_eq!(signals.len(), CHANNELS);
    signals.iter().flat_map(|signal| (0..steps).map(move |step| format!("{signal}-{step:03}"))).collect()
}

#[cfg(test)]
#[path = "../../../../../tests/skipped.rs"]
mod skipped;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_runs_go_to_one_side_and_a_single_run_is_for_training() {
        let runs = vec![vec![vec![0, 1, 2], vec![3], vec![4, 5], vec![6, 7]], vec![vec![8, 9]], vec![]];
        for seed in 0..20 {
            let mut rng = PublicRng::named(seed, "test", 0, 0);
            let shares = Shares { test: 0.5, validation: 0.0 };
            let Parts { train, test, .. } = divide(&runs, shares, None, &mut rng);
            assert_eq!(train.len() + test.len(), 10);
            assert!(train.contains(&8) && train.contains(&9));
            for run in &runs[0] {
                let inside = run.iter().filter(|window| test.contains(window)).count();
                assert!(inside == 0 || inside == run.len());
            }
            let again = || PublicRng::named(seed, "test", 0, 0);
            let Parts { train: few, test: same, .. } = divide(&runs, shares, Some(1), &mut again());
            assert_eq!((few.len(), &same), (2, &test));
            let three = divide(&runs, Shares { validation: 0.5, ..shares }, None, &mut again());
            assert_eq!(three.test, test);
            assert!(
                three.validation.len() + three.train.len() == train.len() && !three.validation.is_empty()
            );
            for run in &runs[0] {
                let inside = run.iter().filter(|window| three.validation.contains(window)).count();
                assert!(inside == 0 || inside == run.len());
            }
            assert!(few.iter().all(|window| train.contains(window)));
        }
    }

    /// The number that the set's description gives.
    #[test]
    fn the_real_file_has_857_runs() {
        let Some(folder) = skipped::real_data(NAME) else { return };
        let windows = Windows::load(&folder.join(FILE)).unwrap();
        assert_eq!((windows.run.len(), windows.run.last()), (10299, Some(&856)));
        // Nobody changes what they do within a run.
        let same =
            |i: usize| windows.run[i] != windows.run[i - 1] || windows.activity[i] == windows.activity[i - 1];
        assert!((1..windows.run.len()).all(same));
    }
}
