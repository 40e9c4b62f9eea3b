//! COIL-20 as the FedGL paper uses it: images of turning objects are nodes, their pixels are signals.
//!
//! An object has 72 poses, 5 degrees apart. Each client has a range of 12 poses of every object: `view-1` from 0 to 55
//! degrees, `view-2` from 60 to 115, `view-3` from 120 to 175. Node `o2-p07` is the seventh pose of object 2 within
//! each view, so the same node is another photograph in every client. A record is one pixel, from 0 to 1. The true
//! class of a node is its object.

use super::world::{Seat, assemble_signals, server_of};
use crate::Request;
use crate::error::DataError;
use crate::formats::array::Numbers;
use crate::formats::idx;
use crate::prepare::check;
use crate::public::catalogue::{self, Known};
use crate::public::places::{SetPlace, plain_or_packed};
use crate::registry::{About, Source, Variants};
use crate::world::{Nodes, World};
use fedkin_settings::{Kind, Preset, settings};
use std::path::PathBuf;

const OBJECTS: u32 = 20;
const VIEWS: usize = 3;
/// Poses of an object in one view.
const POSES: usize = 12;

const PLACE: SetPlace = SetPlace {
    set: "coil20",
    folder: "coil20",
    expected: "coil20-images-idx3-ubyte and coil20-labels-idx1-ubyte (each also as .gz)",
};

settings! {
    /// `[data]` of COIL-20.
    pub struct Coil20 {
        path: Option<PathBuf> => Kind::Path, Preset::Absent,
            "folder of the files (absent: coil20 in the folder that FEDKIN_DATA names)";
        objects: Vec<u32> => Kind::List(&Kind::Integer { least: 1, most: OBJECTS as i64 }),
            Preset::List(&[Preset::Integer(1), Preset::Integer(2), Preset::Integer(3), Preset::Integer(4)]),
            "objects by their number from 1 to 20";
    }
}

impl Source for Coil20 {
    const NAME: &'static str = PLACE.set;
    const SUMMARY: &'static str =
        "images of turning objects as nodes, pixels as signals, one range of angles per client";
    const PUBLIC: Option<&'static Known> = Some(&catalogue::COIL20);

    fn about(&self, _: Variants<'_>) -> About {
        About { path: self.path.clone(), ..About::default() }
    }

    /// Deals the poses to three clients.
    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        check::has_none(request.task, PLACE.set)?;
        let topology = server_of(request)?;
        let objects = distinct(&self.objects)?;
        let folder = PLACE.find(self.path.as_deref(), request.base)?;
        let file = |name| plain_or_packed(&folder, name).ok_or_else(|| PLACE.missing(folder.clone()));
        let (images_file, labels_file) =
            (file("coil20-images-idx3-ubyte")?, file("coil20-labels-idx1-ubyte")?);
        let (images, labels) = (idx::read(&images_file)?, idx::read(&labels_file)?);
        let (&[count, height, width], Numbers::Bytes(bytes)) = (images.shape.as_slice(), &images.values)
        else {
            let message = format!(
                "grey images as bytes of shape [n, height, width] are expected, not {:?}",
                images.shape
            );
            return Err(DataError::file(&images_file, message));
        };
        let pixels = height * width;
        if labels.values.len() != count || pixels == 0 {
            let message =
                format!("{count} images of {height} x {width} do not go with {} labels", labels.values.len());
            return Err(DataError::file(&images_file, message));
        }
        // The images of the wanted objects, object by object, poses in the order of the file.
        let mut poses: Vec<Vec<usize>> = Vec::with_capacity(objects.len());
        for &object in objects {
            let label = f64::from(object - 1);
            let own: Vec<usize> = labels
                .values
                .floats()
                .enumerate()
                .filter(|(_, value)| *value == label)
                .map(|(image, _)| image)
                .collect();
            if own.len() < VIEWS * POSES {
                let message = format!(
                    "object {object} (label {label}) has {} images but {VIEWS} views of {POSES} poses are needed",
                    own.len()
                );
                return Err(DataError::file(&labels_file, message));
            }
            poses.push(own);
        }
        let mut seats = Vec::with_capacity(VIEWS);
        for view in 0..VIEWS {
            let nodes: Vec<usize> =
                poses.iter().flat_map(|own| own[view * POSES..(view + 1) * POSES].iter().copied()).collect();
            let signal = |pixel: usize| {
                nodes.iter().map(move |&image| f64::from(bytes[image * pixels + pixel]) / 255.0)
            };
            let rows: Vec<f64> = (0..pixels).flat_map(signal).collect();
            let name = format!("view-{}", view + 1);
            check::varies(&name, nodes.len(), &rows)?;
            seats.push(Seat::new(name, rows));
        }
        let both = || objects.iter().flat_map(|&object| (1..=POSES).map(move |pose| (object, pose)));
        let names = both().map(|(object, pose)| format!("o{object}-p{pose:02}")).collect();
        let labels = both().map(|(object, _)| object).collect();
        let nodes = Nodes { positions: None, labels: Some(labels) };
        assemble_signals(names, seats, topology, None, Some(nodes))
    }
}

/// The objects, at least one and each once.
fn distinct(objects: &[u32]) -> Result<&[u32], DataError> {
    if objects.is_empty() {
        return Err(DataError::config("objects", "name at least one object, as in [1, 2, 3, 4]"));
    }
    if let Some(at) = (1..objects.len()).find(|&at| objects[..at].contains(&objects[at])) {
        return Err(DataError::config(
            "objects",
            format!("object {} is listed twice: drop one", objects[at]),
        ));
    }
    Ok(objects)
}
