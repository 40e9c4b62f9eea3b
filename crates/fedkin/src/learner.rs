//! What a client fits: native learners as structs of settings, and what an own learner is made of.

pub use fedkin_learner::model::settings::{
    Each, Forest, Graph, Knn, Logistic, Mixed, Net, Penalty, Poisson, Product, Quantile, Ridge, Softmax,
    Task, Tree, Weight,
};
pub use fedkin_learner::model::{Known, Unsolved};
pub use fedkin_learner::registry::LearnerKind;
pub use fedkin_learner::{
    Abilities, Failure, Family, Groups, Learner, LearnerRow, Learners, Output, Precision, Pull, Reached,
    Regulariser, Role, Share, Space, Terms,
};
pub use fedkin_method::Families;
pub use fedkin_numeric::buffers::Buffers;
