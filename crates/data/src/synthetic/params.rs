//! The knobs of the world.

use super::{PER_COORDINATE, SPREAD};
use crate::options::{CLIENTS, COUNT_RANGE};
use fedkin_core::params::{Kind, Param, Preset};

const VARIANCE: Kind = Kind::Number { least: 0.0, most: 1e12, open: false };

/// `[data]` of this source. Keys that came later have no preset, so that older configs keep their fingerprint.
pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "clients_per_server",
        kind: CLIENTS,
        preset: Preset::Integer(15),
        help: "number of clients of every server, or a list with one number per server",
    },
    Param {
        name: "clusters",
        kind: Kind::Integer { least: 1, most: 100_000 },
        preset: Preset::Integer(3),
        help: "number of clusters; the cluster of a client is uniform, and no cluster is empty",
    },
    Param {
        name: "sizes",
        kind: Kind::Choice(&["uniform", "equal", "random"]),
        preset: Preset::Absent,
        help: "sizes of the clusters: of independent uniform draws (default), as equal as possible, or between random cuts",
    },
    Param {
        name: "dimension",
        kind: Kind::Integer { least: 1, most: 10_000_000 },
        preset: Preset::Integer(60),
        help: "number of features",
    },
    Param {
        name: "samples",
        kind: COUNT_RANGE,
        preset: Preset::Absent,
        help: "training records of a client, uniform in [from, to], or one number (default [2, 9])",
    },
    Param {
        name: "models",
        kind: Kind::Choice(&["shifted", "uniform"]),
        preset: Preset::Absent,
        help: "models of the clusters: a common one shifted by `spread` (default), or uniform in (-range, range) per coordinate",
    },
    Param {
        name: "range",
        kind: Kind::Number { least: 0.0, most: 1e6, open: true },
        preset: Preset::Absent,
        help: "how far uniform models reach from zero in every coordinate",
    },
    Param {
        name: "spread",
        kind: Kind::Number { least: 0.0, most: 1e6, open: false },
        preset: Preset::Number(SPREAD),
        help: "a cluster's model is the common one times 1 + gamma, gamma uniform in (-spread, spread)",
    },
    Param {
        name: "gamma",
        kind: Kind::Choice(&["scalar", PER_COORDINATE]),
        preset: Preset::Text("scalar"),
        help: "one gamma per cluster (the papers' collinear models), or one per cluster and coordinate (same energy)",
    },
    Param {
        name: "noise",
        kind: Kind::Either(&[VARIANCE, Kind::List(&VARIANCE)]),
        preset: Preset::Absent,
        help: "variance of a client's noise, drawn in [from, to], or one number (default [0.01, 0.022])",
    },
    Param {
        name: "noise_law",
        kind: Kind::Choice(&["uniform", "fixed", "log-uniform"]),
        preset: Preset::Text("uniform"),
        help: "how the variance of a client is drawn from `noise`; fixed needs one number",
    },
    Param {
        name: "test_samples",
        kind: Kind::Either(&[Kind::Choice(&["none", "train"]), Kind::Integer { least: 1, most: 1_000_000 }]),
        preset: Preset::Text("none"),
        help: "test records of a client: none, as many as it trains on, or a number",
    },
];
