//! `HARBox`: five activities of 121 people with phones of their own: `harbox`.
//!
//! A folder for each person, named by number, with files such as `Call_train.txt`: rows of ten numbers, a time stamp and nine
//! axes, one hundred rows for each window of two seconds. A client is a person; a record is a window as 900 numbers, step by
//! step. Windows do not overlap, so training and test windows are drawn at random.

use crate::error::{At, DataError, Place};
use crate::formats::csv::open;
use crate::options::FRACTION;
use crate::prepare::check;
use crate::prepare::parallel::InOrder;
use crate::prepare::split::{VALIDATION, cut};
use crate::prepare::standardise::Scaling;
use crate::public::catalogue::{self, Known};
use crate::public::places::{SetPlace, plain_or_packed};
use crate::registry::{About, Source, Variants};
use crate::world::roster::Roster;
use crate::world::schema::{Feature, Schema};
use crate::world::{Client, World, assemble};
use crate::{Request, Task, topology};
use fedkin_learner::{Dataset, model};
use fedkin_numeric::rng::PublicRng;
use fedkin_settings::{Kind, Preset, settings};
use rayon::prelude::*;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "harbox";
const ACTIVITIES: [&str; 5] = ["Call", "Hop", "typing", "Walk", "Wave"];
const CLASSES: usize = ACTIVITIES.len();
const STEPS: usize = 100;
const AXES: usize = 9;
const COLUMNS: usize = STEPS * AXES;
const PLACE: SetPlace = SetPlace {
    set: NAME,
    folder: NAME,
    expected: "a folder for each person, 1, 2 and so on, with Call_train.txt, Hop_train.txt, typing_train.txt, \
               Walk_train.txt and Wave_train.txt",
};

settings! {
    /// `[data]` of `HARBox`.
    pub struct HarBox {
        path: Option<PathBuf> => Kind::Path, Preset::Absent,
            "folder of the people's folders (absent: harbox in the folder that FEDKIN_DATA names)";
        users: Vec<u32> => Kind::List(&Kind::Integer { least: 0, most: 100_000 }), Preset::Absent,
            "people by number, one client each (absent: all that have a folder)";
        test_fraction: f64 => FRACTION, Preset::Number(0.25),
            "share of each person's windows kept for testing; at least one stays for training";
        validation_fraction: f64 => param VALIDATION;
        standardise: bool => Kind::Flag, Preset::Flag(false),
            "bring each feature to mean 0 and deviation 1, each client by its own training windows: nothing about them \
             leaves it";
    }
}

impl Source for HarBox {
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "five activities of up to 121 people from the motion sensors of their own phones, one person per client";
    const PUBLIC: Option<&'static Known> = Some(&catalogue::HARBOX);

    fn about(&self, _: Variants<'_>) -> About {
        About {
            known: model::Known { classes: Some(CLASSES), shape: Some([COLUMNS, 1, 1]) },
            path: self.path.clone(),
            by_client: self.standardise,
            validation: self.validation_fraction > 0.0,
        }
    }

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        check::has_targets(request.task, NAME)?;
        if request.task != Task::Classes(CLASSES as u32) {
            let message = format!(
                "{NAME} has {CLASSES} activities to tell apart: set [model] kind = \"softmax\" or \"net\", and leave `classes` out"
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
        let users = users(&PLACE.find(self.path.as_deref(), request.base)?, &self.users)?;
        let scaling = if self.standardise { Scaling::ByClient(vec![true; COLUMNS]) } else { Scaling::Never };
        let clients = users
            .into_par_iter()
            .map(|(user, folder)| {
                let name = format!("user-{user:03}");
                let windows = Windows::read(&name, &folder)?;
                let mut rng = PublicRng::named(request.seed, "world/split", 0, user);
                let parts =
                    cut(windows.targets.len(), self.test_fraction, self.validation_fraction, &mut rng);
                let [mut train, mut validation, mut test] =
                    [&parts.train, &parts.validation, &parts.test].map(|picks| windows.rows(picks));
                let scaling = scaling.apply(COLUMNS, &mut train, [&mut validation, &mut test]);
                let dataset = |features: Vec<f64>, picks: &[usize]| {
                    if picks.is_empty() {
                        return Ok(None);
                    }
                    let targets = picks.iter().map(|&at| windows.targets[at]).collect();
                    let records = Dataset::new(COLUMNS, features, targets);
                    records
                        .map(|set| Some(Arc::new(set)))
                        .map_err(|source| DataError::Records { client: name.clone(), source })
                };
                let empty = || DataError::client(&name, "there is no window to train with");
                let train = dataset(train, &parts.train)?.ok_or_else(empty)?;
                let (validation, test) =
                    (dataset(validation, &parts.validation)?, dataset(test, &parts.test)?);
                Ok::<_, DataError>(Client {
                    name,
                    server: 0,
                    cluster: 0,
                    train,
                    test,
                    validation,
                    scaling,
                    learner: None,
                })
            })
            .in_order()?;
        let axes = ["acc-x", "acc-y", "acc-z", "turn-x", "turn-y", "turn-z", "field-x", "field-y", "field-z"];
        let names = (0..STEPS).flat_map(|step| axes.map(|axis| format!("{axis}-{step:03}")));
        let schema = Schema {
            features: names.map(Feature::number).collect(),
            target: "activity".into(),
            shape: Some([COLUMNS, 1, 1]),
        };
        let roster = Roster { servers: vec![server], clusters: vec!["all".into()], topology };
        let classes = ACTIVITIES.iter().map(ToString::to_string).collect();
        Ok(assemble(clients, roster, None, schema)?.with_public(None, classes))
    }
}

/// The wanted people by number with their folders.
fn users(folder: &Path, wanted: &[u32]) -> Result<Vec<(u32, PathBuf)>, DataError> {
    let mut known: Vec<(u32, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|_| PLACE.missing(folder.to_path_buf()))? {
        let path = entry.map_err(|source| DataError::io(folder, source))?.path();
        let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|_| path.is_dir()) {
            known.push((number, path));
        }
    }
    known.sort_unstable();
    if known.is_empty() {
        return Err(PLACE.missing(folder.to_path_buf()));
    }
    if wanted.is_empty() {
        return Ok(known);
    }
    let mut users = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let found = known.iter().find(|(number, _)| number == wanted);
        let refuse = |what: &str| DataError::config("users", format!("{wanted} {what}"));
        let user = found.ok_or_else(|| refuse(&format!("has no folder in {}", folder.display())))?;
        if users.contains(user) {
            return Err(refuse("is listed twice: drop one"));
        }
        users.push(user.clone());
    }
    users.sort_unstable();
    Ok(users)
}

/// The windows of one person.
struct Windows {
    features: Vec<f64>,
    targets: Vec<f64>,
}

impl Windows {
    fn read(name: &str, folder: &Path) -> Result<Self, DataError> {
        let mut windows = Self { features: Vec::new(), targets: Vec::new() };
        for (activity, class) in ACTIVITIES.into_iter().zip(0u32..) {
            // Not everybody did everything.
            if let Some(file) = plain_or_packed(folder, &format!("{activity}_train.txt")) {
                windows.append(&file, f64::from(class))?;
            }
        }
        if windows.targets.is_empty() {
            let message =
                format!("{} holds none of the files of a person, such as Call_train.txt", folder.display());
            return Err(DataError::client(name, message));
        }
        Ok(windows)
    }

    fn append(&mut self, file: &Path, class: f64) -> Result<(), DataError> {
        let mut steps = 0;
        for (line, at) in BufReader::new(open(file)?).lines().zip(1..) {
            let line = line.map_err(|source| DataError::io(file, source))?;
            let cells: Vec<&str> = line.split([' ', '\t', ',']).filter(|cell| !cell.is_empty()).collect();
            if cells.is_empty() {
                continue;
            }
            let refuse = |message: String| DataError::Record {
                place: Place { file: file.to_path_buf(), at: At::Line(at) },
                message,
            };
            if cells.len() != 1 + AXES {
                let message =
                    format!("a row has a time stamp and {AXES} axes; here are {} numbers", cells.len());
                return Err(refuse(message));
            }
            for cell in &cells[1..] {
                let value = cell.trim().parse::<f64>().ok().filter(|value| value.is_finite());
                self.features.push(value.ok_or_else(|| refuse(format!("{cell:?} is not a finite number")))?);
            }
            steps += 1;
        }
        if steps == 0 || steps % STEPS != 0 {
            let message = format!(
                "windows have {STEPS} rows, and {steps} rows are no whole number of them: is the file cut off?"
            );
            return Err(DataError::file(file, message));
        }
        self.targets.resize(self.targets.len() + steps / STEPS, class);
        Ok(())
    }

    fn rows(&self, picks: &[usize]) -> Vec<f64> {
        picks.iter().flat_map(|&at| &self.features[at * COLUMNS..(at + 1) * COLUMNS]).copied().collect()
    }
}
