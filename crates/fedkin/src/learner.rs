//! What a client fits: native learners as structs of settings, and what an own learner is made of.

pub use fedkin_core::buffers::Buffers;
pub use fedkin_core::learner::registry::LearnerKind;
pub use fedkin_core::learner::{
    Abilities, Failure, Families, Family, Groups, Learner, LearnerRow, Learners, Output, Precision, Pull,
    Reached, Regulariser, Role, Share, Space, Terms,
};
pub use fedkin_core::model::settings::{
    Each, Forest, Graph, Knn, Logistic, Mixed, Net, Penalty, Poisson, Product, Quantile, Ridge, Softmax,
    Task, Tree, Weight,
};
pub use fedkin_core::model::{Known, Unsolved};
