//! Image sets: binary tasks on their classes, one per cluster, or all classes dealt to clients by a law.

mod cifar;
mod known;
mod labelled;
mod sets;
mod settings;
mod source;
mod tasks;

pub use sets::Class;
pub use settings::{ByClass, Images, Pixels};
pub use source::{Cifar10, Cifar10Tasks, Mnist, MnistTasks, OrganAMnist, OrganAMnistTasks};
