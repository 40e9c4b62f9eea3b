//! UCI HAR as its home gives it: the archive `UCI HAR Dataset.zip` of text files, one signal of all windows in each.

use super::windows::{ACTIVITIES, CHANNELS, Parts, STEPS};
use crate::error::DataError;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use zip::ZipArchive;

/// Windows are kept as whole multiples of this: far below what the sensors resolve.
const UNIT: f64 = 1.0 / 4096.0;
const SIGNALS: [&str; CHANNELS] = [
    "body_acc_x",
    "body_acc_y",
    "body_acc_z",
    "body_gyro_x",
    "body_gyro_y",
    "body_gyro_z",
    "total_acc_x",
    "total_acc_y",
    "total_acc_z",
];

/// All windows, those of the training subjects first, in the order of the files.
pub(super) fn read(file: &Path) -> Result<Parts, DataError> {
    let input = File::open(file).map_err(|source| DataError::io(file, source))?;
    let mut archive = ZipArchive::new(BufReader::new(input)).map_err(|error| broken(file, &error))?;
    let mut parts = Parts { samples: Vec::new(), activity: Vec::new(), subject: Vec::new(), scale: UNIT };
    for half in ["train", "test"] {
        let small = |values: Vec<f64>, what: &str, most: usize| {
            let number = |value: &f64| value.fract() == 0.0 && (1.0..=most as f64).contains(value);
            match values.iter().position(|value| !number(value)) {
                None => Ok(values.iter().map(|value| *value as u8).collect::<Vec<u8>>()),
                Some(at) => {
                    let message = format!(
                        "{what} of window {} ({half}) is {}; it goes from 1 to {most}",
                        at + 1,
                        values[at]
                    );
                    Err(DataError::file(file, message))
                }
            }
        };
        let activity = numbers(file, &mut archive, &format!("{half}/y_{half}.txt"))?;
        let subject = numbers(file, &mut archive, &format!("{half}/subject_{half}.txt"))?;
        let count = activity.len();
        let activity = small(activity, "the activity", ACTIVITIES.len())?;
        parts.activity.extend(activity.iter().map(|number| number - 1));
        parts.subject.extend(small(subject, "the subject", usize::from(u8::MAX))?);
        let mut channels = Vec::with_capacity(CHANNELS);
        for signal in SIGNALS {
            let name = format!("{half}/Inertial Signals/{signal}_{half}.txt");
            let values = numbers(file, &mut archive, &name)?;
            if values.len() != count * STEPS {
                let message =
                    format!("{name} holds {} numbers; {count} windows of {STEPS} are expected", values.len());
                return Err(DataError::file(file, message));
            }
            let whole: Vec<f64> = values.iter().map(|value| (value / UNIT).round()).collect();
            if whole.iter().any(|value| value.abs() > f64::from(i16::MAX)) {
                return Err(DataError::file(
                    file,
                    format!("{name} holds a value beyond 8: is the file damaged?"),
                ));
            }
            channels.push(whole);
        }
        for window in 0..count {
            let of_window =
                channels.iter().flat_map(|channel| &channel[window * STEPS..(window + 1) * STEPS]);
            parts.samples.extend(of_window.map(|value| *value as i16));
        }
    }
    if parts.subject.len() != parts.activity.len() || parts.subject.is_empty() {
        let message =
            format!("{} subjects do not go with {} activities", parts.subject.len(), parts.activity.len());
        return Err(DataError::file(file, message));
    }
    Ok(parts)
}

/// The finite numbers of a member whose name ends so.
fn numbers(
    file: &Path,
    archive: &mut ZipArchive<BufReader<File>>,
    ending: &str,
) -> Result<Vec<f64>, DataError> {
    let names = archive.file_names().filter_map(Result::ok);
    let name = names.map(String::from).find(|name| name.ends_with(ending) && !name.starts_with("__MACOSX"));
    let name = name.ok_or_else(|| broken(file, &format!("it holds no {ending}")))?;
    let entry = archive.by_name(&name).map_err(|error| broken(file, &error))?;
    let mut numbers = Vec::new();
    for (line, at) in BufReader::new(entry).lines().zip(1..) {
        let line = line.map_err(|error| broken(file, &error))?;
        for cell in line.split_ascii_whitespace() {
            let value = cell.parse::<f64>().ok().filter(|value| value.is_finite());
            let refuse = || DataError::file(file, format!("{ending}:{at}: {cell:?} is not a finite number"));
            numbers.push(value.ok_or_else(refuse)?);
        }
    }
    Ok(numbers)
}

fn broken(file: &Path, error: &dyn std::fmt::Display) -> DataError {
    DataError::file(
        file,
        format!("this is not the archive of UCI HAR, or it is damaged ({error}): fetch it again"),
    )
}
