//! The image sets: their files, classes and standard tasks. A file is decoded once per process.

use crate::array::{Array, Numbers};
use crate::cifar;
use crate::error::DataError;
use crate::idx;
use crate::npz::Npz;
use crate::places::{SetPlace, plain_or_packed};
use fedkin_core::params::Value;
use fedkin_core::settings::Setting;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// What is fixed about an image set.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) classes: &'static [&'static str],
    /// The files, in words.
    expected: &'static str,
    /// Mean and deviation of each channel that are published for pixels from 0 to 1.
    pub(crate) published: &'static [(f64, f64)],
    /// Folders to look in below the one that `FEDKIN_DATA` names, the first that is there.
    folders: &'static [&'static str],
    /// The files in the folder that are there: all of them, or none is read.
    files: fn(&Path) -> Option<Vec<PathBuf>>,
    decode: fn(&[PathBuf], usize) -> Result<Images, DataError>,
}

pub(crate) static MNIST: Set = Set {
    name: "mnist",
    classes: &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
    expected: "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte \
               (each also as .gz)",
    published: &[(0.1307, 0.3081)],
    folders: &["mnist"],
    files: idx_files,
    decode: decode_idx,
};

pub(crate) static ORGANS: Set = Set {
    name: "organamnist",
    classes: &[
        "bladder",
        "femur-left",
        "femur-right",
        "heart",
        "kidney-left",
        "kidney-right",
        "liver",
        "lung-left",
        "lung-right",
        "pancreas",
        "spleen",
    ],
    expected: "organamnist.npz",
    // What the set's own benchmark uses.
    published: &[(0.5, 0.5)],
    folders: &["organamnist"],
    files: npz_files,
    decode: decode_npz,
};

pub(crate) static CIFAR: Set = Set {
    name: "cifar10",
    classes: &["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
    expected: "data_batch_1.bin to data_batch_5.bin and test_batch.bin, or train_batch_1.bin and so on of a subset (each also \
               as .gz)",
    published: &[(0.491_399_68, 0.247_032_23), (0.482_158_41, 0.243_485_13), (0.446_530_91, 0.261_587_84)],
    folders: &["cifar10", "cifar-10-batches-bin", "cifar10-subset"],
    files: cifar::files,
    decode: cifar::decode,
};

impl Set {
    /// Channels, height, width.
    pub(crate) fn shape(&self) -> [usize; 3] {
        // Colour images are those of CIFAR.
        if self.published.len() == 3 { [3, 32, 32] } else { [1, 28, 28] }
    }
}

/// A class as a config names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// By its number, from 0 on.
    Number(usize),
    /// By its name.
    Name(String),
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

impl Setting for Class {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Text(name)) => Ok(Self::Name(name.clone())),
            other => usize::read(other).map(Self::Number),
        }
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::Number(number) => number.write(),
            Self::Name(name) => name.write(),
        }
    }
}

/// A decoded set.
#[derive(Debug)]
pub(crate) struct Images {
    /// Channels, height, width.
    pub(crate) shape: [usize; 3],
    pub(crate) train: Part,
    pub(crate) test: Part,
}

/// The training or the test half.
#[derive(Debug)]
pub(crate) struct Part {
    /// All images one after the other.
    pub(crate) pixels: Vec<u8>,
    /// The images of each class, in the order of the file.
    pub(crate) by_class: Vec<Vec<u32>>,
}

impl Part {
    pub(crate) fn empty(classes: usize) -> Self {
        Self { pixels: Vec::new(), by_class: vec![Vec::new(); classes] }
    }

    /// The class of each image.
    pub(crate) fn labels(&self) -> Vec<u32> {
        let mut labels = vec![0; self.by_class.iter().map(Vec::len).sum()];
        for (images, class) in self.by_class.iter().zip(0..) {
            for &image in images {
                labels[image as usize] = class;
            }
        }
        labels
    }

    /// The bytes of one image.
    pub(crate) fn image(&self, image: u32, pixels: usize) -> &[u8] {
        &self.pixels[image as usize * pixels..][..pixels]
    }
}

impl Images {
    pub(crate) fn pixels(&self) -> usize {
        self.shape.iter().product()
    }
}

type Stamp = Vec<(u64, Option<SystemTime>)>;
type Cache = BTreeMap<(&'static str, Vec<PathBuf>), (Stamp, Arc<Images>)>;

/// Repeats load the same files again and again. Size and time of change are compared, so an edited file is read anew.
static CACHE: Mutex<Cache> = Mutex::new(BTreeMap::new());

impl Set {
    /// The class that a config names.
    pub(crate) fn class(&self, class: &Class) -> Option<usize> {
        match class {
            Class::Number(class) => Some(*class).filter(|&class| class < self.classes.len()),
            Class::Name(name) => self.classes.iter().position(|class| class == name),
        }
    }

    /// The decoded set, from memory where it was decoded before.
    pub(crate) fn images(&self, path: Option<&Path>, base: &Path) -> Result<Arc<Images>, DataError> {
        let place = |folder| SetPlace { set: self.name, folder, expected: self.expected };
        let first = place(self.folders[0]);
        let mut files = (self.files)(&first.find(path, base)?);
        for &folder in &self.folders[1..] {
            if files.is_none() && path.is_none() {
                files = (self.files)(&place(folder).find(None, base)?);
            }
        }
        let Some(files) = files else { return Err(first.missing(first.find(path, base)?)) };
        let mut stamp = Stamp::new();
        for file in &files {
            let about = std::fs::metadata(file).map_err(|source| DataError::io(file, source))?;
            stamp.push((about.len(), about.modified().ok()));
        }
        // The lock is held while decoding: of two repeats that start together, one waits for the other's work.
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (self.name, files);
        if let Some((_, images)) = cache.get(&key).filter(|(known, _)| *known == stamp) {
            return Ok(Arc::clone(images));
        }
        let images = Arc::new((self.decode)(&key.1, self.classes.len())?);
        cache.insert(key, (stamp, Arc::clone(&images)));
        Ok(images)
    }
}

fn idx_files(folder: &Path) -> Option<Vec<PathBuf>> {
    ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
        .iter()
        .map(|name| plain_or_packed(folder, name))
        .collect()
}

fn npz_files(folder: &Path) -> Option<Vec<PathBuf>> {
    // A path straight to the archive is what many will write.
    let candidates = [folder.join("organamnist.npz"), folder.to_path_buf()];
    candidates.into_iter().find(|path| path.is_file()).map(|path| vec![path])
}

fn decode_idx(files: &[PathBuf], classes: usize) -> Result<Images, DataError> {
    let [train_images, train_labels, test_images, test_labels] = files else {
        return Err(DataError::config("path", "four IDX files are expected"));
    };
    let train = half(train_images, idx::read(train_images)?, &idx::read(train_labels)?, classes)?;
    let test = half(test_images, idx::read(test_images)?, &idx::read(test_labels)?, classes)?;
    join(test_images, train, test)
}

fn decode_npz(files: &[PathBuf], classes: usize) -> Result<Images, DataError> {
    let [file] = files else { return Err(DataError::config("path", "one NPZ file is expected")) };
    let mut archive = Npz::open(file)?;
    let mut part = |name: &str| {
        let images = archive.read(&format!("{name}_images"))?;
        half(file, images, &archive.read(&format!("{name}_labels"))?, classes)
    };
    let (train, test) = (part("train")?, part("test")?);
    join(file, train, test)
}

type Half = ([usize; 2], Part);

fn join(file: &Path, (train_side, train): Half, (test_side, test): Half) -> Result<Images, DataError> {
    if train_side != test_side {
        let message =
            format!("test images are {test_side:?} but training images are {train_side:?}: fetch both again");
        return Err(DataError::file(file, message));
    }
    Ok(Images { shape: [1, train_side[0], train_side[1]], train, test })
}

fn half(file: &Path, images: Array, labels: &Array, classes: usize) -> Result<Half, DataError> {
    let (&[count, rows, columns], Numbers::Bytes(pixels)) = (images.shape.as_slice(), images.values) else {
        let message =
            format!("grey images as bytes of shape [n, height, width] are expected, not {:?}", images.shape);
        return Err(DataError::file(file, message));
    };
    if labels.values.len() != count || rows * columns == 0 {
        let message =
            format!("{count} images of {rows} x {columns} do not go with {} labels", labels.values.len());
        return Err(DataError::file(file, message));
    }
    let mut by_class = vec![Vec::new(); classes];
    for (image, label) in labels.values.floats().enumerate() {
        if !(label >= 0.0 && label < classes as f64 && label.fract() == 0.0) {
            let message =
                format!("image {} has the label {label}; labels go from 0 to {}", image + 1, classes - 1);
            return Err(DataError::file(file, message));
        }
        by_class[label as usize].push(image as u32);
    }
    Ok(([rows, columns], Part { pixels, by_class }))
}
