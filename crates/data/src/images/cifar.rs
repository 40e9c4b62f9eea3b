//! CIFAR-10 in its binary form: records of a label byte and 3072 bytes, the red, green and blue plane of 32 x 32 pixels.

use super::sets::{Images, Part};
use crate::error::DataError;
use crate::formats::csv::open;
use crate::public::places::plain_or_packed;
use std::io::Read;
use std::path::{Path, PathBuf};

const SIDE: usize = 32;
const CHANNELS: usize = 3;
const PIXELS: usize = CHANNELS * SIDE * SIDE;
const RECORD: usize = 1 + PIXELS;
/// No file of the set is larger than this many records: a file that is must not fill the memory.
const MOST: u64 = 1_000_000;

/// The files of a folder, the test part last: the five official batches, or as many `train_batch_*` as there are.
pub(crate) fn files(folder: &Path) -> Option<Vec<PathBuf>> {
    let official: Option<Vec<PathBuf>> =
        (1..=5).map(|batch| plain_or_packed(folder, &format!("data_batch_{batch}.bin"))).collect();
    let mut files = official.unwrap_or_else(|| {
        (1..).map_while(|batch| plain_or_packed(folder, &format!("train_batch_{batch}.bin"))).collect()
    });
    if files.is_empty() {
        return None;
    }
    files.push(plain_or_packed(folder, "test_batch.bin")?);
    Some(files)
}

pub(crate) fn decode(files: &[PathBuf], classes: usize) -> Result<Images, DataError> {
    let Some((test, train)) = files.split_last() else {
        return Err(DataError::config("path", "training batches and a test batch are expected"));
    };
    let mut images =
        Images { shape: [CHANNELS, SIDE, SIDE], train: Part::empty(classes), test: Part::empty(classes) };
    for file in train {
        append(file, classes, &mut images.train)?;
    }
    append(test, classes, &mut images.test)?;
    Ok(images)
}

fn append(file: &Path, classes: usize, part: &mut Part) -> Result<(), DataError> {
    let mut bytes = Vec::new();
    open(file)?.take(MOST * RECORD as u64).read_to_end(&mut bytes).map_err(|error| {
        DataError::file(file, format!("the file ends or breaks inside ({error}): fetch it again"))
    })?;
    if bytes.is_empty() || bytes.len() % RECORD != 0 {
        let message = format!(
            "CIFAR-10 records have {RECORD} bytes (a label and 3 x 32 x 32 pixels), and {} bytes are no whole number of them: \
             the file is cut off or of another kind; fetch it again",
            bytes.len()
        );
        return Err(DataError::file(file, message));
    }
    let first = part.pixels.len() / PIXELS;
    part.pixels.reserve(bytes.len() / RECORD * PIXELS);
    for (at, record) in bytes.chunks_exact(RECORD).enumerate() {
        let label = usize::from(record[0]);
        let Some(pile) = part.by_class.get_mut(label) else {
            let message =
                format!("image {} has the label {label}; labels go from 0 to {}", at + 1, classes - 1);
            return Err(DataError::file(file, message));
        };
        pile.push((first + at) as u32);
        part.pixels.extend_from_slice(&record[1..]);
    }
    Ok(())
}
