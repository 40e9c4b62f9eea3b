//! Personal models for the members of a federation, learnt together over a graph.
//!
//! A [`Federation`] is who takes part, with which records: from arrays ([`Federation::builder`]) or from any data source
//! ([`load`]). A [`Simulation`] trains on it in this process: one method, one learner, so many rounds. What comes out is a
//! [`Trained`]: models, predictions and metrics of every client, what privacy was spent, and what you should know.
//!
//! ```
//! use fedkin::learner::Ridge;
//! use fedkin::method::{Pgfl, PgflSettings};
//! use fedkin::{Federation, Simulation};
//!
//! // Two wards on each of two sites; one column, one target.
//! let federation = Federation::builder()
//!     .client("a1", 1, vec![1.0, 2.0], vec![2.1, 3.9]).server("east").cluster("steep")
//!     .client("a2", 1, vec![3.0], vec![0.1]).server("east").cluster("flat")
//!     .client("b1", 1, vec![1.5, 0.5], vec![3.1, 0.8]).server("west").cluster("steep").test(vec![1.0], vec![2.0])
//!     .client("b2", 1, vec![2.0], vec![-0.1]).server("west").cluster("flat")
//!     .edge("east", "west")
//!     .build()?;
//!
//! let trained = Simulation::new(federation)
//!     .method::<Pgfl>(PgflSettings { penalty: 2.0, ..PgflSettings::default() })
//!     .learner(Ridge::default())
//!     .rounds(50)
//!     .run()?;
//!
//! let b1 = trained.client("b1").unwrap();
//! assert!((b1.model()[0] - 2.0).abs() < 0.2);
//! assert!((b1.predict(&[2.0])?[0] - 4.0).abs() < 0.4);
//! assert!(trained.metric("mse.client").unwrap() < 0.1);
//! # Ok::<(), fedkin::Error>(())
//! ```
//!
//! # Bring your own
//!
//! - A **learner** is a [`learner::Family`] that makes a [`learner::Learner`] for each client: a loss and its gradient are
//!   enough. [`Simulation::family`] takes it as a value; a [`learner::LearnerRow`] in a [`Registry`] gives it a name in
//!   configs.
//! - A **method** is a [`method::Algorithm`], or a rule for a family of methods ([`method::Rule`], [`method::Star`]); its
//!   [`method::Row`] goes into a [`Registry`].
//! - A **transport** is a [`transport::Network`] whose ends carry payloads between nodes: [`Simulation::run_over`].
//! - A **denoiser** is a [`denoise::Denoiser`] with a [`denoise::DenoiserRow`]; metrics, data sources and partitioners likewise.
//!
//! `fedkin_cli::main(&registry)` is the whole command line with these rows, nodes on many machines included, and the crate
//! `fedkin-harness` puts an own method through conformance and fault tests. The folder `examples` has a program for each.
//!
//! # Where things are
//!
//! [`rooms`] has the crates below, from kernels to experiments: each says at its top what it is for. This crate puts a front
//! before them.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod federation;
pub mod learner;
pub mod method;
mod simulation;
mod trained;

pub use federation::{load, load_over};
pub use fedkin_config::{Evaluate, Kin, Run};
pub use fedkin_data as data;
pub use fedkin_data::{World as Federation, WorldBuilder as FederationBuilder};
pub use fedkin_graph::denoise;
pub use fedkin_learner::Dataset;
pub use fedkin_numeric::record;
pub use fedkin_privacy as privacy;
pub use fedkin_privacy::PrivacySettings;
pub use fedkin_run::{Control, Error, Finished, Registry, Warning};
pub use fedkin_runtime::transport;
pub use fedkin_settings::{Kind, Preset, choice, settings};
pub use simulation::{Round, Rounds, Simulation};
pub use trained::{Client, Trained};

/// Everything below this front, crate by crate, from the bottom up.
pub mod rooms {
    pub use fedkin_config as config;
    pub use fedkin_data as data;
    pub use fedkin_deploy as deploy;
    pub use fedkin_experiment as experiment;
    pub use fedkin_graph as graph;
    pub use fedkin_learner as learner;
    pub use fedkin_measure as measure;
    pub use fedkin_method as method;
    pub use fedkin_numeric as numeric;
    pub use fedkin_privacy as privacy;
    pub use fedkin_report as report;
    pub use fedkin_run as run;
    pub use fedkin_runtime as runtime;
    pub use fedkin_settings as settings;
}
