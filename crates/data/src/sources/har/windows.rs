//! The windows of UCI HAR as the file has them, and the runs they were cut from. A file is decoded once per process.
//!
//! Windows of 128 samples overlap by half. The file does not say which follow each other in time, but it keeps their order: a
//! window belongs to the run of the one before it where both are of one person and the later half of the one is, bit for bit,
//! the earlier half of the other.

use super::features::{self, Transform};
use super::official;
use crate::error::DataError;
use crate::formats::array::{Array, Numbers};
use crate::formats::npz::Npz;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Signals of a window: body acceleration, turning, total acceleration, three axes each.
pub(super) const CHANNELS: usize = 9;
/// Samples of a window.
pub(super) const STEPS: usize = 128;
/// What people did.
pub(super) const ACTIVITIES: [&str; 6] =
    ["walking", "upstairs", "downstairs", "sitting", "standing", "laying"];
const WINDOW: usize = CHANNELS * STEPS;

/// The decoded file.
#[derive(Debug)]
pub(super) struct Windows {
    samples: Vec<i16>,
    /// The value of one unit of a sample.
    pub(super) scale: f64,
    pub(super) activity: Vec<u8>,
    pub(super) subject: Vec<u8>,
    /// The number of the run of each window, from 0.
    pub(super) run: Vec<u32>,
    /// The features of all windows.
    features: Vec<f64>,
    width: usize,
}

type Stamp = (PathBuf, u64, Option<SystemTime>);

/// Repeats load the same file again and again. Size and time of change are compared, so another file is read anew.
static CACHE: Mutex<Option<(Stamp, Arc<Windows>)>> = Mutex::new(None);

impl Windows {
    /// The decoded file, from memory where it was decoded before.
    pub(super) fn load(file: &Path) -> Result<Arc<Self>, DataError> {
        let about = std::fs::metadata(file).map_err(|source| DataError::io(file, source))?;
        let stamp = (file.to_path_buf(), about.len(), about.modified().ok());
        // The lock is held while decoding: of two repeats that start together, one waits for the other's work.
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, windows)) = cache.as_ref()
            && *known == stamp
        {
            return Ok(Arc::clone(windows));
        }
        let zip = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip"));
        let windows = Arc::new(Self::of(if zip { official::read(file)? } else { Parts::read(file)? }));
        *cache = Some((stamp, Arc::clone(&windows)));
        Ok(windows)
    }

    fn of(parts: Parts) -> Self {
        let Parts { samples, activity, subject, scale } = parts;
        let run = runs(&samples, &subject);
        let transform = Transform::new();
        let rows: Vec<Vec<f64>> =
            samples.par_chunks(WINDOW).map(|window| features::of(window, scale, &transform)).collect();
        let width = rows.first().map_or(0, Vec::len);
        Self { samples, scale, activity, subject, run, features: rows.concat(), width }
    }

    /// The samples of a window, channel by channel.
    pub(super) fn window(&self, at: usize) -> &[i16] {
        &self.samples[at * WINDOW..(at + 1) * WINDOW]
    }

    /// The features of a window.
    pub(super) fn features(&self, at: usize) -> &[f64] {
        &self.features[at * self.width..(at + 1) * self.width]
    }
}

/// What a file says of the windows.
pub(super) struct Parts {
    pub(super) samples: Vec<i16>,
    pub(super) activity: Vec<u8>,
    pub(super) subject: Vec<u8>,
    pub(super) scale: f64,
}

impl Parts {
    fn read(file: &Path) -> Result<Self, DataError> {
        let refuse = |message: String| DataError::file(file, message);
        let mut archive = Npz::open(file)?;
        let Array { shape, values } = archive.read("x")?;
        let &[count, CHANNELS, STEPS] = shape.as_slice() else {
            return Err(refuse(format!(
                "`x` has the shape {shape:?}; windows of {CHANNELS} channels and {STEPS} samples are expected"
            )));
        };
        if count == 0 {
            return Err(refuse("there is no window".into()));
        }
        let whole = |value: f64| value.fract() == 0.0 && (-32768.0..=32767.0).contains(&value);
        if let Some(at) = values.floats().position(|value| !whole(value)) {
            return Err(refuse(format!(
                "window {} of `x` holds a value that is no 16-bit number",
                at / WINDOW + 1
            )));
        }
        let samples: Vec<i16> = values.floats().map(|value| value as i16).collect();
        let activity = bytes(file, &mut archive, "y", count, 0..=ACTIVITIES.len() as u8 - 1)?;
        let subject = bytes(file, &mut archive, "subject", count, 1..=u8::MAX)?;
        let scale =
            archive.read("scale")?.values.floats().next().filter(|scale| scale.is_finite() && *scale > 0.0);
        let scale = scale.ok_or_else(|| refuse("`scale` is no number above 0".into()))?;
        Ok(Self { samples, activity, subject, scale })
    }
}

/// One small whole number per window.
fn bytes(
    file: &Path,
    archive: &mut Npz,
    name: &str,
    count: usize,
    range: std::ops::RangeInclusive<u8>,
) -> Result<Vec<u8>, DataError> {
    let Numbers::Bytes(values) = archive.read(name)?.values else {
        return Err(DataError::file(file, format!("`{name}` does not hold bytes")));
    };
    if values.len() != count {
        let message = format!("{count} windows do not go with {} values of `{name}`", values.len());
        return Err(DataError::file(file, message));
    }
    if let Some(at) = values.iter().position(|value| !range.contains(value)) {
        let message = format!(
            "window {}: `{name}` is {}; it goes from {} to {}",
            at + 1,
            values[at],
            range.start(),
            range.end()
        );
        return Err(DataError::file(file, message));
    }
    Ok(values)
}

/// The run of each window, by the overlaps.
fn runs(samples: &[i16], subject: &[u8]) -> Vec<u32> {
    let window = |at: usize| &samples[at * WINDOW..(at + 1) * WINDOW];
    let mut run = vec![0; subject.len()];
    for at in 1..subject.len() {
        let goes_on = subject[at] == subject[at - 1] && follows(window(at - 1), window(at));
        run[at] = run[at - 1] + u32::from(!goes_on);
    }
    run
}

/// Whether the later half of a window is the earlier half of the next one, in every channel.
fn follows(before: &[i16], after: &[i16]) -> bool {
    let half = STEPS / 2;
    before.chunks_exact(STEPS).zip(after.chunks_exact(STEPS)).all(|(a, b)| a[half..] == b[..half])
}
