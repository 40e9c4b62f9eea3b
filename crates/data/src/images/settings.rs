//! The settings that all image sets share.

use super::sets::Class;
use crate::options::{Each, FRACTION, Range};
use crate::prepare::split::VALIDATION;
use fedkin_settings::{Kind, Preset, choice, settings};
use std::path::PathBuf;

/// The word of `partition` for binary tasks.
const TASKS: &str = "tasks";

choice! {
    /// What becomes of the bytes of an image.
    pub enum Pixels {
        /// From 0 to 1.
        Unit = "unit",
        /// Of norm 1.
        Norm = "norm",
        /// Less the published mean of their channel, over its deviation.
        Published = "published",
    }
}

settings! {
    /// The keys of all image sets.
    pub struct Images {
        path: Option<PathBuf> => Kind::Path, Preset::Absent,
            "folder of the files (absent: the folder of the source's name in the folder that FEDKIN_DATA names)";
        partition: String => Kind::Text, Preset::Text(TASKS),
            "how images are dealt to clients: tasks for binary tasks, one per cluster, or a law for all classes";
        scale: Pixels => Kind::Choice(Pixels::WORDS), Preset::Text("unit"),
            "pixels from 0 to 1, each image scaled to norm 1, or pixels less the published mean of their channel, over its \
             deviation";
    }
}

settings! {
    /// The keys of images that keep their classes.
    pub struct ByClass {
        test_fraction: f64 => FRACTION, Preset::Number(0.25),
            "partition: share of each client's records kept for testing; at least one stays for training";
        validation_fraction: f64 => param VALIDATION;
        holdout: usize => Kind::Integer { least: 0, most: 1_000_000 }, Preset::Integer(0),
            "partition: so many records of the set's own test part become a public hold-out that no client has";
    }
}

/// Binary tasks on images.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    /// By cluster and side.
    pub(crate) classes: Vec<Vec<Vec<Class>>>,
    pub(crate) images_per_class: Range<u32>,
    pub(crate) clients_per_server: Each<usize>,
    pub(crate) test_limit: Option<usize>,
}

impl Images {
    /// Whether images keep their classes, instead of being sides of binary tasks.
    pub(crate) fn by_class(&self) -> bool {
        self.partition != TASKS
    }
}
