//! Image sets by class: every image keeps the number of its class, and a partitioner deals the images of the training part
//! to clients. The set's own test part becomes a public hold-out where the config asks for one.

use super::sets::{Images, Part, Set};
use super::settings::{ByClass, Images as Keys};
use super::tasks::{Scale, pixel_names};
use crate::error::DataError;
use crate::partition::{Deal, Pool, Twist};
use crate::prepare::parallel::InOrder;
use crate::prepare::split::cut;
use crate::topology::{self, GraphKind};
use crate::world::roster::{Roster, numbered};
use crate::world::schema::Schema;
use crate::world::{Client, World, assemble};
use crate::{Request, Task};
use fedkin_learner::{Dataset, DatasetError};
use fedkin_numeric::rng::{PublicRng, Random};
use rayon::prelude::*;
use std::sync::Arc;

/// Deals the images of a set by class.
pub(crate) fn load(
    request: &Request<'_>,
    set: &'static Set,
    keys: &Keys,
    settings: &ByClass,
) -> Result<World, DataError> {
    let (seed, classes) = (request.seed, set.classes.len());
    if request.task != Task::Classes(classes as u32) {
        let message = format!(
            "{} has {classes} classes to tell apart: set [model] kind = \"softmax\" or \"net\", and leave `classes` out; or set \
             partition = \"tasks\" for binary tasks",
            set.name
        );
        return Err(DataError::config("source", message));
    }
    let partition = request.partition(&keys.partition)?;
    let servers = if request.topology.kind == GraphKind::Unstated {
        vec!["server".to_string()]
    } else {
        topology::drawn_servers(request.topology, None)?
    };
    let topology = topology::build(request.topology, &servers, true, seed, request.require_connected)?;
    let images = set.images(keys.path.as_deref(), request.base)?;
    let [_, height, width] = images.shape;
    let labels = images.train.labels();
    let pool = Pool { labels: &labels, classes, square: height == width };
    let Deal { clients, cluster, clusters } = partition.deal(pool, seed)?.checked(&keys.partition, pool)?;
    let count = clients.len();
    if count < servers.len() {
        let message =
            format!("{count} clients cannot stand at {} servers: every server needs one", servers.len());
        return Err(DataError::config("clients", message));
    }
    let scale = Scale::of(keys.scale, set, &images);
    let ByClass { test_fraction, validation_fraction, holdout: wanted } = *settings;
    let clients = numbered("client", count, 3)
        .into_par_iter()
        .zip(clients)
        .enumerate()
        .map(|(id, (name, held))| {
            let mut rng = PublicRng::named(seed, "world/split", 0, id as u32);
            let parts = cut(held.len(), test_fraction, validation_fraction, &mut rng);
            let twist = &clusters[cluster[id] as usize].1;
            let some = |picks: &[usize]| {
                let picks: Vec<u32> = picks.iter().map(|&at| held[at]).collect();
                if picks.is_empty() {
                    return Ok(None);
                }
                records(&images.train, &images, &labels, &picks, &scale, twist).map(|set| Some(Arc::new(set)))
            };
            let refuse = |source| DataError::Records { client: name.clone(), source };
            let train = some(&parts.train).map_err(refuse)?.ok_or_else(|| refuse(DatasetError::Empty))?;
            Ok::<_, DataError>(Client {
                server: (id * servers.len() / count) as u32,
                cluster: cluster[id],
                train,
                test: some(&parts.test).map_err(refuse)?,
                validation: some(&parts.validation).map_err(refuse)?,
                scaling: Vec::new(),
                learner: None,
                name,
            })
        })
        .in_order()?;
    let holdout = holdout(wanted, seed, set, &images, &scale)?;
    let schema = Schema { features: pixel_names(&images), target: "class".into(), shape: Some(images.shape) };
    let clusters = clusters.into_iter().map(|(name, _)| name).collect();
    let world = assemble(clients, Roster { servers, clusters, topology }, None, schema)?;
    Ok(world.with_public(holdout, set.classes.iter().map(ToString::to_string).collect()))
}

/// Images of one client with their classes.
fn records(
    part: &Part,
    images: &Images,
    labels: &[u32],
    picks: &[u32],
    scale: &Scale,
    twist: &Twist,
) -> Result<Dataset, DatasetError> {
    let pixels = images.pixels();
    let mut features = Vec::with_capacity(picks.len() * pixels);
    for &image in picks {
        let raw = part.image(image, pixels);
        match twist {
            Twist::Turn(quarters) if *quarters > 0 => {
                scale.extend(&turned(raw, images.shape, *quarters), &mut features);
            }
            _ => scale.extend(raw, &mut features),
        }
    }
    let target = |image: &u32| {
        let class = labels[*image as usize];
        f64::from(if let Twist::Rename(names) = twist { names[class as usize] } else { class })
    };
    Dataset::new(pixels, features, picks.iter().map(target).collect())
}

/// A square image turned to the left by quarters.
fn turned(raw: &[u8], [_, side, _]: [usize; 3], quarters: u32) -> Vec<u8> {
    let place = |row: usize, column: usize| match quarters % 4 {
        0 => (row, column),
        1 => (column, side - 1 - row),
        2 => (side - 1 - row, side - 1 - column),
        _ => (side - 1 - column, row),
    };
    let mut all = Vec::with_capacity(raw.len());
    for plane in raw.chunks_exact(side * side) {
        for at in 0..side * side {
            let (row, column) = place(at / side, at % side);
            all.push(plane[row * side + column]);
        }
    }
    all
}

/// The public records that the config asks for, drawn from the set's own test part.
fn holdout(
    wanted: usize,
    seed: u64,
    set: &Set,
    images: &Images,
    scale: &Scale,
) -> Result<Option<Arc<Dataset>>, DataError> {
    if wanted == 0 {
        return Ok(None);
    }
    let labels = images.test.labels();
    if wanted > labels.len() {
        let message =
            format!("{wanted} records are wanted but the test part of {} has {}", set.name, labels.len());
        return Err(DataError::config("holdout", message));
    }
    let mut picks: Vec<u32> = (0..labels.len() as u32).collect();
    PublicRng::named(seed, "world/holdout", 0, 0).shuffle(&mut picks);
    picks.truncate(wanted);
    picks.sort_unstable();
    let all = records(&images.test, images, &labels, &picks, scale, &Twist::None)
        .map_err(|source| DataError::Records { client: "hold-out".into(), source })?;
    Ok(Some(Arc::new(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_quarters_are_none_and_one_goes_to_the_left() {
        // 0 1      1 3
        // 2 3  ->  0 2
        let raw = [0, 1, 2, 3, 10, 11, 12, 13];
        assert_eq!(turned(&raw, [2, 2, 2], 1), [1, 3, 0, 2, 11, 13, 10, 12]);
        let mut again = raw.to_vec();
        for quarters in [1, 2, 3, 2] {
            again = turned(&again, [2, 2, 2], quarters);
        }
        assert_eq!(again, raw);
    }
}
