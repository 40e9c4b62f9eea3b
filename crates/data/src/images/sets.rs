//! Image sets in memory: what is fixed about one, and its images. A file is decoded once per process.

use crate::error::DataError;
use crate::public::places::SetPlace;
use fedkin_settings::{Setting, Value};
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
    pub(crate) expected: &'static str,
    /// Mean and deviation of each channel that are published for pixels from 0 to 1.
    pub(crate) published: &'static [(f64, f64)],
    /// Folders to look in below the one that `FEDKIN_DATA` names, the first that is there.
    pub(crate) folders: &'static [&'static str],
    /// The files in the folder that are there: all of them, or none is read.
    pub(crate) files: fn(&Path) -> Option<Vec<PathBuf>>,
    pub(crate) decode: fn(&[PathBuf], usize) -> Result<Images, DataError>,
}

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
