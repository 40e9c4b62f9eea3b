//! Binary tasks on image sets: each cluster tells one group of classes from another.
//!
//! A client of a cluster has `D_k` images of each side of its task, dealt from shuffled piles so that no two
//! clients share an image until a pile is used up. The test set of a cluster is all test images of its
//! classes, shared by its clients.

use super::sets::{Class, Images, Part, Set};
use super::settings::{Images as Keys, Pixels, Tasks};
use crate::error::DataError;
use crate::options::Range;
use crate::prepare::parallel::InOrder;
use crate::world::roster::{Roster, cluster_names, draw_clusters, numbered};
use crate::world::schema::{Feature, Schema};
use crate::world::{Client, World, assemble};
use crate::{Request, topology};
use fedkin_learner::Dataset;
use fedkin_numeric as numeric;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::suggest;
use rayon::prelude::*;
use std::sync::Arc;

/// What a cluster tells apart: the classes with target 0 and those with target 1.
type Sides = [Vec<usize>; 2];

fn sides(given: &[Vec<Vec<Class>>], set: &Set) -> Result<Vec<Sides>, DataError> {
    let wrong = |at: usize, what: String| Err(DataError::config("tasks", format!("task {}: {what}", at + 1)));
    let mut tasks = Vec::with_capacity(given.len());
    for (at, sides) in given.iter().enumerate() {
        if sides.len() != 2 {
            return wrong(at, format!("a task has two sides, as in [[1], [8]]; {} were given", sides.len()));
        }
        let mut read: Sides = [Vec::new(), Vec::new()];
        for (side, target) in sides.iter().zip(&mut read) {
            for class in side {
                let Some(known) = set.class(class) else {
                    let name = if let Class::Name(name) = class { name.clone() } else { class.to_string() };
                    let hint = suggest(&name, set.classes.iter().copied());
                    return wrong(at, format!("{} has no class {class}{hint}", set.name));
                };
                target.push(known);
            }
        }
        if read.iter().any(Vec::is_empty) {
            return wrong(at, "each side needs at least one class".into());
        }
        let mut all: Vec<usize> = read.concat();
        all.sort_unstable();
        if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong(
                at,
                format!("class {} appears twice: an image has one target", set.classes[twice[0]]),
            );
        }
        tasks.push(read);
    }
    if tasks.is_empty() {
        return Err(DataError::config("tasks", "give at least one task, as in [[[1], [8]]]"));
    }
    Ok(tasks)
}

/// Deals images from one shuffled pile per class; an empty pile is shuffled anew.
struct Dealer {
    piles: Vec<Pile>,
}

struct Pile {
    order: Vec<u32>,
    next: usize,
    rng: PublicRng,
}

impl Dealer {
    fn new(part: &Part, seed: u64) -> Self {
        let pile = |(class, images): (usize, &Vec<u32>)| {
            let mut rng = PublicRng::named(seed, "world/images", 0, class as u32);
            let mut order = images.clone();
            rng.shuffle(&mut order);
            Pile { order, next: 0, rng }
        };
        Self { piles: part.by_class.iter().enumerate().map(pile).collect() }
    }

    /// `count` images of one side, none of them twice. The side has that many: the caller has checked.
    fn deal(&mut self, side: &[usize], count: u32, rng: &mut PublicRng) -> Vec<u32> {
        let mut dealt = Vec::with_capacity(count as usize);
        let mut left: Vec<u32> = side.iter().map(|&class| self.piles[class].order.len() as u32).collect();
        for _ in 0..count {
            // A class by its share of the images that the client does not have yet.
            let total: u32 = left.iter().sum();
            if total == 0 {
                break;
            }
            let mut pick = rng.below(total);
            let mut at = 0;
            while pick >= left[at] {
                pick -= left[at];
                at += 1;
            }
            left[at] -= 1;
            dealt.push(self.piles[side[at]].draw(&dealt));
        }
        dealt
    }
}

impl Pile {
    /// The next image that is not among `held`; at least one image of the pile is not.
    fn draw(&mut self, held: &[u32]) -> u32 {
        loop {
            if self.next == self.order.len() {
                self.rng.shuffle(&mut self.order);
                self.next = 0;
            }
            let image = self.order[self.next];
            self.next += 1;
            if !held.contains(&image) {
                return image;
            }
        }
    }
}

/// What becomes of the bytes of an image.
pub(crate) enum Scale {
    /// From 0 to 1.
    Unit,
    /// Of norm 1.
    Norm,
    /// Less a mean, over a deviation, by channel; and the pixels of a channel.
    Published(&'static [(f64, f64)], usize),
}

impl Scale {
    pub(crate) fn of(pixels: Pixels, set: &'static Set, images: &Images) -> Self {
        match pixels {
            Pixels::Unit => Self::Unit,
            Pixels::Norm => Self::Norm,
            Pixels::Published => Self::Published(set.published, images.shape[1] * images.shape[2]),
        }
    }

    /// Adds the features of one image.
    pub(crate) fn extend(&self, raw: &[u8], features: &mut Vec<f64>) {
        let start = features.len();
        features.extend(raw.iter().map(|&pixel| f64::from(pixel) / 255.0));
        match self {
            Self::Unit => {}
            Self::Norm => {
                let length = numeric::norm2(&features[start..]).sqrt();
                // A black image has no direction and stays black.
                if length > 0.0 {
                    numeric::scale(1.0 / length, &mut features[start..]);
                }
            }
            Self::Published(constants, plane) => {
                for (channel, (mean, deviation)) in features[start..].chunks_exact_mut(*plane).zip(*constants)
                {
                    for pixel in channel {
                        *pixel = (*pixel - mean) / deviation;
                    }
                }
            }
        }
    }
}

/// Images of a client or a test set with their targets.
fn records(
    part: &Part,
    pixels: usize,
    picks: &[(u32, bool)],
    scale: &Scale,
) -> Result<Dataset, fedkin_learner::DatasetError> {
    let mut features = Vec::with_capacity(picks.len() * pixels);
    for (image, _) in picks {
        scale.extend(part.image(*image, pixels), &mut features);
    }
    Dataset::new(pixels, features, picks.iter().map(|(_, positive)| f64::from(u8::from(*positive))).collect())
}

/// All test images of a task in the order of the file, or a drawn part of them.
fn test_set(
    images: &Images,
    sides: &Sides,
    limit: Option<usize>,
    scale: &Scale,
    rng: &mut PublicRng,
) -> Result<Option<Arc<Dataset>>, fedkin_learner::DatasetError> {
    let mut picks: Vec<(u32, bool)> = Vec::new();
    for (classes, positive) in sides.iter().zip([false, true]) {
        for &class in classes {
            picks.extend(images.test.by_class[class].iter().map(|&image| (image, positive)));
        }
    }
    picks.sort_unstable();
    if let Some(limit) = limit.filter(|&limit| limit < picks.len()) {
        rng.shuffle(&mut picks);
        picks.truncate(limit);
        picks.sort_unstable();
    }
    if picks.is_empty() {
        return Ok(None);
    }
    records(&images.test, images.pixels(), &picks, scale).map(|set| Some(Arc::new(set)))
}

/// Deals the images of a set to the clients of a drawn federation.
pub(crate) fn load(
    request: &Request<'_>,
    set: &'static Set,
    keys: &Keys,
    settings: &Tasks,
) -> Result<World, DataError> {
    let seed = request.seed;
    if let crate::Task::Classes(classes) = request.task
        && classes != 2
    {
        let message = format!(
            "the tasks of {} have 2 classes, not {classes}: set model.classes = 2, or partition = \"dirichlet\" or another law \
                 for all {} classes",
            set.name,
            set.classes.len()
        );
        return Err(DataError::config("source", message));
    }
    let tasks = sides(&settings.classes, set)?;
    let Range { from: least, to: most } = settings.images_per_class;
    let (limit, per_server) = (settings.test_limit, &settings.clients_per_server);
    let servers = topology::drawn_servers(request.topology, per_server.servers())?;
    let topology = topology::build(request.topology, &servers, true, seed, request.require_connected)?;
    let server_of = per_server.servers_of_clients(servers.len())?;
    let cluster_of = draw_clusters("tasks", server_of.len(), tasks.len(), seed)?;
    let images = set.images(keys.path.as_deref(), request.base)?;
    let scale = Scale::of(keys.scale, set, &images);
    for side in tasks.iter().flatten() {
        let there: usize = side.iter().map(|&class| images.train.by_class[class].len()).sum();
        if (most as usize) > there {
            let names: Vec<&str> = side.iter().map(|&class| set.classes[class]).collect();
            let message = format!(
                "a client wants up to {most} images of {} but there are {there}: lower the range",
                names.join(", ")
            );
            return Err(DataError::config("images_per_class", message));
        }
    }
    // Dealing goes in the order of the clients; only then can the pixels be converted in parallel.
    let mut dealer = Dealer::new(&images.train, seed);
    let dealt: Vec<Vec<(u32, bool)>> = cluster_of
        .iter()
        .enumerate()
        .map(|(id, &cluster)| {
            let mut rng = PublicRng::named(seed, "world/client", 0, id as u32);
            let count = least + rng.below(most - least + 1);
            let [negative, positive] = &tasks[cluster as usize];
            let (zeros, ones) =
                (dealer.deal(negative, count, &mut rng), dealer.deal(positive, count, &mut rng));
            zeros.into_iter().zip(ones).flat_map(|(zero, one)| [(zero, false), (one, true)]).collect()
        })
        .collect();
    let refuse = |client: &str, source| DataError::Records { client: client.to_string(), source };
    let tests = tasks
        .par_iter()
        .zip(cluster_names(tasks.len()))
        .enumerate()
        .map(|(at, (sides, name))| {
            let mut rng = PublicRng::named(seed, "world/test", 0, at as u32);
            test_set(&images, sides, limit, &scale, &mut rng).map_err(|source| refuse(&name, source))
        })
        .in_order()?;
    let clients = numbered("client", server_of.len(), 6)
        .into_par_iter()
        .enumerate()
        .map(|(id, name)| {
            let train = records(&images.train, images.pixels(), &dealt[id], &scale)
                .map_err(|source| refuse(&name, source))?;
            let cluster = cluster_of[id];
            let test = tests[cluster as usize].clone();
            Ok::<_, DataError>(Client {
                name,
                server: server_of[id],
                cluster,
                train: Arc::new(train),
                test,
                validation: None,
                scaling: Vec::new(),
                learner: None,
            })
        })
        .in_order()?;
    let schema = Schema { features: pixel_names(&images), target: "class".into(), shape: Some(images.shape) };
    assemble(clients, Roster { servers, clusters: cluster_names(tasks.len()), topology }, None, schema)
}

pub(crate) fn pixel_names(images: &Images) -> Vec<Feature> {
    let [channels, rows, columns] = images.shape;
    let words: &[&str] = if channels == 3 { &["red", "green", "blue"] } else { &["pixel"] };
    let name =
        |word: &str, at: usize| Feature::number(format!("{word}-{:02}-{:02}", at / columns, at % columns));
    words.iter().flat_map(|word| (0..rows * columns).map(move |at| name(word, at))).collect()
}
