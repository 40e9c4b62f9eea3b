//! Heart disease in patients of four hospitals: `heart-disease`.
//!
//! A client is a hospital, a record is a patient, the target is whether the narrowing of an artery was found (`num` above
//! 0), or its degree 0 to 4. Hospitals did not measure the same things: a hole is filled in by the hospital itself and marked
//! by an indicator (see `impute`), and every hospital has the same columns. A cholesterol or blood pressure of 0 is a hole,
//! too. Numbers are scaled by the constants written here, so nothing about anybody's records is needed to compute a feature.

use crate::error::{At, DataError, Place};
use crate::options::FRACTION;
use crate::prepare::check;
use crate::prepare::impute::{self, Filler, Form, Public};
use crate::public::catalogue::{self, Known};
use crate::public::places::SetPlace;
use crate::registry::{About, Source, Variants};
use crate::world::roster::Roster;
use crate::world::schema::{Feature, Schema};
use crate::world::{Client, World, assemble};
use crate::{Request, Task, topology};
use fedkin_learner::{Dataset, model};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::{Kind, Preset, settings};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "heart-disease";
const HOSPITALS: [&str; 4] = ["cleveland", "hungarian", "switzerland", "va"];
const PLACE: SetPlace = SetPlace {
    set: NAME,
    folder: NAME,
    expected: "processed.cleveland.data, processed.hungarian.data, processed.switzerland.data and processed.va.data",
};
/// Degrees of narrowing in the files.
const DEGREES: u32 = 5;

const fn number(name: &'static str, centre: f64, scale: f64, usual: f64, holes: bool) -> Public {
    Public { name, form: Form::Number { centre, scale }, usual, holes }
}

const fn one_of(name: &'static str, values: &'static [f64], usual: f64, holes: bool) -> Public {
    Public { name, form: Form::OneOf(values), usual, holes }
}

/// The columns of the files, the target left out. Centres and scales are round numbers near what is usual in adults; `usual`
/// is what a doctor would call unremarkable.
const COLUMNS: &[Public] = &[
    number("age", 55.0, 10.0, 55.0, false),
    number("sex", 0.0, 1.0, 1.0, false),
    one_of("cp", &[1.0, 2.0, 3.0, 4.0], 4.0, false),
    number("trestbps", 130.0, 20.0, 130.0, true),
    number("chol", 220.0, 50.0, 220.0, true),
    number("fbs", 0.0, 1.0, 0.0, true),
    one_of("restecg", &[0.0, 1.0, 2.0], 0.0, true),
    number("thalach", 140.0, 25.0, 140.0, true),
    number("exang", 0.0, 1.0, 0.0, true),
    number("oldpeak", 0.0, 1.0, 0.0, true),
    one_of("slope", &[1.0, 2.0, 3.0], 1.0, true),
    number("ca", 0.0, 1.0, 0.0, true),
    one_of("thal", &[3.0, 6.0, 7.0], 3.0, true),
];
/// Columns in which 0 is no measurement.
const NEVER_ZERO: [&str; 2] = ["trestbps", "chol"];

settings! {
    /// `[data]` of heart disease.
    pub struct HeartDisease {
        path: Option<PathBuf> => Kind::Path, Preset::Absent,
            "folder of the four files (absent: heart-disease in the folder that FEDKIN_DATA names)";
        test_fraction: f64 => FRACTION, Preset::Number(0.3),
            "share of a hospital's patients with and without disease that is kept for testing";
        train_records: Option<usize> => Kind::Integer { least: 1, most: 100_000 }, Preset::Absent,
            "at most so many training patients of each hospital, drawn from those not kept for testing (absent: all)";
    }
}

/// One patient.
struct Patient {
    cells: Vec<Option<f64>>,
    degree: u32,
}

impl Source for HeartDisease {
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "heart disease in patients of four hospitals, one hospital per client; missing values are filled in there";
    const PUBLIC: Option<&'static Known> = Some(&catalogue::HEART);

    fn about(&self, _: Variants<'_>) -> About {
        let known = model::Known { classes: Some(2), shape: None };
        About { known, path: self.path.clone(), ..About::default() }
    }

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        check::has_targets(request.task, NAME)?;
        let degrees = match request.task {
            Task::Classification | Task::Classes(2) => false,
            Task::Classes(DEGREES) => true,
            _ => {
                let message = format!(
                    "{NAME} asks whether there is disease: set [model] kind = \"logistic\", or \"softmax\" with classes = 2, or \
                 {DEGREES} for its degree"
                );
                return Err(DataError::config("source", message));
            }
        };
        let server = "server".to_string();
        let topology = topology::build(
            request.topology,
            std::slice::from_ref(&server),
            false,
            request.seed,
            request.require_connected,
        )?;
        let folder = PLACE.find(self.path.as_deref(), request.base)?;
        let features = impute::names(COLUMNS);
        let mut clients = Vec::with_capacity(HOSPITALS.len());
        for (hospital, id) in HOSPITALS.into_iter().zip(0..) {
            let file = folder.join(format!("processed.{hospital}.data"));
            if !file.is_file() {
                return Err(PLACE.missing(folder));
            }
            let patients = read(&file)?;
            let mut rng = PublicRng::named(request.seed, "world/split", 0, id);
            let (train, test) = divide(&patients, self.test_fraction, self.train_records, &mut rng);
            let cells = |picks: &[usize]| -> Vec<&[Option<f64>]> {
                picks.iter().map(|&at| patients[at].cells.as_slice()).collect()
            };
            let filler = Filler::fit(COLUMNS, &cells(&train));
            let dataset = |picks: &[usize]| {
                let target = |degree: u32| f64::from(if degrees { degree } else { degree.min(1) });
                let targets = picks.iter().map(|&at| target(patients[at].degree)).collect();
                Dataset::new(features.len(), filler.rows(&cells(picks)), targets)
                    .map(Arc::new)
                    .map_err(|source| DataError::Records { client: hospital.into(), source })
            };
            let test = if test.is_empty() { None } else { Some(dataset(&test)?) };
            clients.push(Client {
                name: hospital.into(),
                server: 0,
                cluster: 0,
                train: dataset(&train)?,
                test,
                validation: None,
                scaling: Vec::new(),
                learner: None,
            });
        }
        let schema = Schema {
            features: features.into_iter().map(Feature::number).collect(),
            target: if degrees { "num" } else { "disease" }.into(),
            shape: None,
        };
        assemble(
            clients,
            Roster { servers: vec![server], clusters: vec!["all".into()], topology },
            None,
            schema,
        )
    }
}

/// Training and test patients: a share of those with and of those without disease is for testing.
fn divide(
    patients: &[Patient],
    fraction: f64,
    limit: Option<usize>,
    rng: &mut PublicRng,
) -> (Vec<usize>, Vec<usize>) {
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for ill in [false, true] {
        let mut order: Vec<usize> =
            (0..patients.len()).filter(|&at| (patients[at].degree > 0) == ill).collect();
        rng.shuffle(&mut order);
        let count = ((order.len() as f64 * fraction).round() as usize).min(order.len().saturating_sub(1));
        test.extend(order.drain(..count));
        train.extend(order);
    }
    if let Some(limit) = limit {
        rng.shuffle(&mut train);
        train.truncate(limit);
    }
    // Back in the order of the file, so that only membership is random.
    train.sort_unstable();
    test.sort_unstable();
    (train, test)
}

/// Reads `age,sex,...,num` without a header; `?` is a hole.
fn read(file: &Path) -> Result<Vec<Patient>, DataError> {
    let text = std::fs::read(file).map_err(|source| DataError::io(file, source))?;
    let text = std::str::from_utf8(&text)
        .map_err(|_| DataError::file(file, "this is not text: is it one of the `processed` files?"))?;
    let mut patients = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let place = || Place { file: file.to_path_buf(), at: At::Line(number) };
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if line.trim().is_empty() {
            continue;
        }
        let [inputs @ .., degree] = cells.as_slice() else { continue };
        if inputs.len() != COLUMNS.len() {
            let message = format!("the record has {} cells; {} are expected", cells.len(), COLUMNS.len() + 1);
            return Err(DataError::Record { place: place(), message });
        }
        let refuse = |column: &str, message: String| DataError::Cell {
            place: place(),
            column: column.to_string(),
            message,
        };
        let degree =
            degree.parse::<f64>().ok().filter(|d| d.fract() == 0.0 && (0.0..f64::from(DEGREES)).contains(d));
        let degree =
            degree.ok_or_else(|| refuse("num", format!("a degree from 0 to {} is expected", DEGREES - 1)))?;
        let mut patient = Patient { cells: Vec::with_capacity(inputs.len()), degree: degree as u32 };
        for (column, cell) in COLUMNS.iter().zip(inputs) {
            patient.cells.push(value(column, cell).map_err(|message| refuse(column.name, message))?);
        }
        patients.push(patient);
    }
    if patients.is_empty() {
        return Err(DataError::file(file, "there is no record"));
    }
    Ok(patients)
}

/// One cell; nothing where it is a hole.
fn value(column: &Public, cell: &str) -> Result<Option<f64>, String> {
    let parsed = match cell {
        "?" => None,
        _ => Some(
            cell.parse::<f64>()
                .ok()
                .filter(|value| value.is_finite())
                .ok_or_else(|| format!("{cell:?} is neither a number nor ?: correct the cell"))?,
        ),
    };
    let found = parsed.filter(|value| *value != 0.0 || !NEVER_ZERO.contains(&column.name));
    match (found, column.form) {
        (None, _) if !column.holes => Err("it is missing, which this column never is: fill it in".into()),
        (Some(value), Form::OneOf(values)) if !values.contains(&value) => {
            Err(format!("{value} is none of the column's values {values:?}"))
        }
        _ => Ok(found),
    }
}
