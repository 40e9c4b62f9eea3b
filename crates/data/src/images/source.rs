//! The sources that are image sets.
//!
//! Every set has the same keys. Those of binary tasks have defaults of their own in each set: the tasks of the PGFL paper's
//! first figure on it.

use super::sets::{Class, Set};
use super::settings::{ByClass, Images, Tasks};
use super::{known, labelled, tasks};
use crate::Request;
use crate::error::DataError;
use crate::options::{CLIENTS, COUNT_RANGE, Each, Range};
use crate::prepare::check;
use crate::public::catalogue::{self, Known};
use crate::registry::{About, Source, Variants};
use crate::world::World;
use fedkin_learner::model;
use fedkin_settings::{Kind, Param, Preset, Settings as _, settings};

const CLASS: Kind = Kind::Either(&[Kind::Integer { least: 0, most: 255 }, Kind::Text]);

impl Images {
    fn about(&self, set: &Set, variants: Variants<'_>) -> About {
        let path = self.path.clone();
        if !self.by_class() {
            return About { path, ..About::default() };
        }
        let known = model::Known { classes: Some(set.classes.len()), shape: Some(set.shape()) };
        let validation = variants.read::<ByClass>().is_ok_and(|keys| keys.validation_fraction > 0.0);
        About { known, path, by_client: false, validation }
    }

    /// Deals the images; `tasks` are the keys of binary tasks.
    fn load(
        &self,
        request: &Request<'_>,
        set: &'static Set,
        tasks: &[Param],
        read: impl Fn(Variants<'_>) -> Result<Tasks, DataError>,
    ) -> Result<World, DataError> {
        check::has_targets(request.task, set.name)?;
        let now = format!("partition = {:?}", self.partition);
        if self.by_class() {
            request.refuse(tasks, &now, "partition to \"tasks\"")?;
            return labelled::load(request, set, self, &request.variants().read()?);
        }
        let instead = "partition to \"dirichlet\" or another law";
        request.refuse(ByClass::PARAMS, &now, instead)?;
        request.refuse_partitions(&now, instead)?;
        tasks::load(request, set, self, &read(request.variants())?)
    }
}

/// A class against another.
macro_rules! task {
    ($zero:literal, $one:literal) => {
        Preset::List(&[Preset::List(&[Preset::Integer($zero)]), Preset::List(&[Preset::Integer($one)])])
    };
}

macro_rules! image_set {
    (
        $set:path, $public:path, $summary:literal, $what:literal;
        pub struct $name:ident, $tasks:ident {
            tasks: $default:expr, images_per_class: $images:expr, clients_per_server: $clients:literal
        }
    ) => {
        settings! {
            #[doc = concat!("`[data]` of ", $what, ".")]
            pub struct $name {
                flatten images: Images;
            }
        }

        settings! {
            #[doc = concat!("The keys of binary tasks on ", $what, ".")]
            pub struct $tasks {
                tasks: Vec<Vec<Vec<Class>>> => Kind::List(&Kind::List(&Kind::List(&CLASS))), Preset::List($default),
                    "one task per cluster, [[classes with target 0], [classes with target 1]], classes by number or name";
                images_per_class: Range<u32> => COUNT_RANGE, $images,
                    "images a client has of each side of its task, uniform in [from, to], or one number";
                clients_per_server: Each<usize> => CLIENTS, Preset::Integer($clients),
                    "number of clients of every server, or a list with one number per server";
                test_limit: Option<usize> => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Absent,
                    "at most so many test images per cluster, drawn from the seed (absent: all)";
            }
        }

        impl Source for $name {
            const NAME: &'static str = $set.name;
            const SUMMARY: &'static str = $summary;
            const VARIANTS: &'static [&'static [Param]] = &[$tasks::PARAMS, ByClass::PARAMS];
            const PARTITIONED: bool = true;
            const PUBLIC: Option<&'static Known> = Some(&$public);

            fn about(&self, variants: Variants<'_>) -> About {
                self.images.about(&$set, variants)
            }

            fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
                self.images.load(request, &$set, $tasks::PARAMS, |variants| {
                    let $tasks { tasks, images_per_class, clients_per_server, test_limit } = variants.read()?;
                    Ok(Tasks { classes: tasks, images_per_class, clients_per_server, test_limit })
                })
            }
        }
    };
}

image_set! {
    known::MNIST, catalogue::MNIST,
    "handwritten digits: binary tasks, one per cluster, or all 10 classes dealt to clients by a law", "MNIST";
    pub struct Mnist, MnistTasks {
        tasks: &[task!(1, 8), task!(1, 9), task!(7, 8)],
        images_per_class: Preset::List(&[Preset::Integer(2), Preset::Integer(4)]),
        clients_per_server: 15
    }
}

image_set! {
    known::ORGANS, catalogue::ORGANAMNIST,
    "CT images of abdominal organs: binary tasks, one per cluster, or all 11 classes dealt to clients by a law",
    "OrganAMNIST";
    pub struct OrganAMnist, OrganAMnistTasks {
        tasks: &[task!(8, 7), task!(6, 7), task!(5, 7)],
        images_per_class: Preset::Integer(2),
        clients_per_server: 3
    }
}

image_set! {
    known::CIFAR, catalogue::CIFAR10,
    "colour images of animals and vehicles: binary tasks, one per cluster, or all 10 classes dealt to clients by a law",
    "CIFAR-10";
    pub struct Cifar10, Cifar10Tasks {
        tasks: &[task!(3, 5), task!(1, 9), task!(4, 7)],
        images_per_class: Preset::List(&[Preset::Integer(20), Preset::Integer(40)]),
        clients_per_server: 3
    }
}
