//! The sections that every config has, as tables: validation, defaults and the reference come from here.

pub(super) use fedkin_core::model::PARAMS as MODEL;
use fedkin_core::params::{Kind, Param, Preset};
pub(super) use fedkin_core::privacy::PARAMS as PRIVACY;

const ABOVE_ZERO: Kind = Kind::Number { least: 0.0, most: f64::INFINITY, open: true };
const FROM_ZERO: Kind = Kind::Number { least: 0.0, most: f64::INFINITY, open: false };
const COUNT: Kind = Kind::Integer { least: 1, most: u32::MAX as i64 };

const fn param(name: &'static str, kind: Kind, preset: Preset, help: &'static str) -> Param {
    Param { name, kind, preset, help }
}

/// `[run]`
pub(super) const RUN: &[Param] = &[
    param("name", Kind::Text, Preset::Required, "name of the run and of its folder"),
    param(
        "seed",
        Kind::Integer { least: 0, most: i64::MAX },
        Preset::Integer(0),
        "what all public random numbers follow from",
    ),
    param("rounds", COUNT, Preset::Required, "how many rounds to train"),
    param("repeats", COUNT, Preset::Integer(1), "how many times, with seeds of their own, for error bars"),
    param(
        "checkpoint_seconds",
        FROM_ZERO,
        Preset::Number(10.0),
        "seconds between checkpoints; 0 writes none",
    ),
    param("max_norm", ABOVE_ZERO, Preset::Number(1e6), "uploads with a larger norm are rejected"),
    param(
        "state_limit",
        FROM_ZERO,
        Preset::Absent,
        "MiB of memory for what clients remember from round to round in one process (1024 where absent); above, it goes to a \
         temporary file",
    ),
];

/// `[participation]`
pub(super) const PARTICIPATION: &[Param] = &[param(
    "clients_per_server",
    COUNT,
    Preset::Absent,
    "how many clients a server asks each round; absent: all",
)];

/// `[kin]`
pub(super) const KIN: &[Param] = &[
    param(
        "clusters",
        Kind::Either(&[Kind::Choice(&["infer"]), Kind::Path]),
        Preset::Absent,
        "infer: clusters are found on the way; a CSV file with the columns client, cluster replaces those of the data",
    ),
    param(
        "graph",
        Kind::Path,
        Preset::Absent,
        "a graph of clients, such as graphs/kin.graphml of a run: every client is a server of its own on it",
    ),
    param("count", COUNT, Preset::Absent, "infer: how many clusters; absent: as many as the data name"),
    param(
        "by",
        Kind::Choice(&["loss", "rewards"]),
        Preset::Text("loss"),
        "infer: each client picks the model with the least loss in every round, or persfl finds the clusters first",
    ),
    param(
        "search_rounds",
        COUNT,
        Preset::Absent,
        "infer by rewards: rounds of persfl that find the clusters; absent: as many as run.rounds",
    ),
    param(
        "warm_up",
        Kind::Integer { least: 0, most: u32::MAX as i64 },
        Preset::Integer(10),
        "infer by loss: rounds with one model for all, before clients pick",
    ),
    param(
        "forming",
        Kind::Integer { least: 0, most: u32::MAX as i64 },
        Preset::Integer(40),
        "infer by loss: rounds after the warm-up in which clusters borrow nothing from each other",
    ),
    param(
        "start",
        Kind::Number { least: 0.0, most: 1e6, open: false },
        Preset::Number(0.1),
        "infer by loss: size of the random vectors that tell the models apart at first, against the model of the warm-up",
    ),
];

/// `[network]`
pub(super) const NETWORK: &[Param] = &[
    param(
        "mode",
        Kind::Choice(&["strict", "deadline"]),
        Preset::Text("strict"),
        "strict: a step waits for every client asked; deadline: it goes on without the late ones",
    ),
    param(
        "quorum",
        Kind::Number { least: 0.0, most: 1.0, open: true },
        Preset::Number(1.0),
        "with deadlines: share of the clients asked whose answers close a step early",
    ),
    param("deadline", ABOVE_ZERO, Preset::Number(30.0), "with deadlines: seconds after which a step closes"),
    param("resend", ABOVE_ZERO, Preset::Number(2.0), "seconds until an unanswered message is sent again"),
];

/// `[evaluate]`
pub(super) const EVALUATE: &[Param] = &[
    param("every", COUNT, Preset::Integer(1), "rounds from one evaluation to the next"),
    param(
        "models",
        Kind::List(&Kind::Text),
        Preset::Absent,
        "which personal models to evaluate; absent: all",
    ),
    param("metric", Kind::Text, Preset::Absent, "the headline metric; absent: the first of the task"),
    param(
        "against",
        Kind::Text,
        Preset::Absent,
        "what the metric is drawn over: a number that a method counts, such as \"queries\"; absent: rounds",
    ),
    param(
        "at",
        ABOVE_ZERO,
        Preset::Absent,
        "a comparison's table and claims read the last evaluation up to here, in rounds or in what `against` names; \
         absent: the last",
    ),
    param(
        "threshold",
        FROM_ZERO,
        Preset::Absent,
        "graphs: a weight above this is an edge (0.0001 where absent)",
    ),
    param(
        "per_client_limit",
        Kind::Integer { least: 0, most: i64::MAX },
        Preset::Integer(1000),
        "one metrics row per client only up to this many clients",
    ),
    param(
        "global",
        Kind::Flag,
        Preset::Absent,
        "models of classes: measure every client's model also on the public hold-out, or without one on the test records of \
         all clients; absent: false",
    ),
    param(
        "global_most",
        COUNT,
        Preset::Absent,
        "with `global`: at most so many of those records, drawn evenly by the seed; absent: all",
    ),
    param(
        "early_stopping",
        Kind::Flag,
        Preset::Absent,
        "models of classes: report also `stopped_accuracy`, each client's test accuracy in the evaluated round of its least \
         validation loss; models on disk are those of the last round all the same; absent: false",
    ),
];

/// `[[curve]]`, without `set`, whose keys are those of the other sections.
pub(super) const CURVE: &[Param] = &[
    param("label", Kind::Text, Preset::Required, "name of the curve in legends and tables"),
    param(
        "method",
        Kind::Text,
        Preset::Absent,
        "colour key: curves of one method look alike in every figure",
    ),
];

/// `[tune]`
pub(super) const TUNE: &[Param] = &[
    param(
        "metric",
        Kind::Choice(&["validation_accuracy", "validation_log_loss"]),
        Preset::Text("validation_accuracy"),
        "what the points of a curve's `grid` are compared by, on the model that the curve shows; never test records",
    ),
    param(
        "repeats",
        COUNT,
        Preset::Integer(1),
        "how many repeats every point is run; they have the seeds, and so the data, of the first repeats that are reported",
    ),
    param(
        "rounds",
        COUNT,
        Preset::Absent,
        "how many rounds every point is run; absent: as many as run.rounds",
    ),
    param(
        "enabled",
        Kind::Flag,
        Preset::Flag(true),
        "false: grids are left out, and curves run as they are set",
    ),
];

/// `[sweep]`, without `values`, which are whatever the key takes.
pub(super) const SWEEP: &[Param] = &[
    param("key", Kind::Text, Preset::Required, "the key to vary, with its section"),
    param("at_round", COUNT, Preset::Absent, "the round whose metric is drawn; absent: the last"),
];

/// `[paper]`, without `claims`.
pub(super) const PAPER: &[Param] = &[
    param("title", Kind::Text, Preset::Required, "title of the paper"),
    param("source", Kind::Text, Preset::Absent, "where to find it, and which figure this is"),
    param("theory", Kind::Flag, Preset::Flag(false), "draw the paper's bounds beside what was measured"),
];

/// One entry of `claims` in `[paper]`.
pub(super) const CLAIM: &[Param] = &[
    param("text", Kind::Text, Preset::Required, "what the paper says"),
    param("check", Kind::Text, Preset::Absent, "the condition on the curves that decides it"),
];

/// The sections whose table is fixed and that a `--set` may reach.
pub(super) const FIXED: &[(&str, &str, &[Param])] = &[
    ("run", "What to call it, how long, from which seed.", RUN),
    ("model", "What each client fits.", MODEL),
    ("participation", "Who is asked in a round.", PARTICIPATION),
    ("kin", "Who is kin of whom, where the data do not say or say it wrong.", KIN),
    ("privacy", "What noise is added, and what it promises.", PRIVACY),
    ("evaluate", "What is measured, and when.", EVALUATE),
    ("network", "How machines wait for each other; a run in one process does not read it.", NETWORK),
];

/// All sections, in the order of the reference and of a resolved config.
pub(super) const NAMES: &[&str] = &[
    "run",
    "data",
    "topology",
    "model",
    "algorithm",
    "participation",
    "kin",
    "privacy",
    "evaluate",
    "network",
    "curve",
    "tune",
    "sweep",
    "quick",
    "paper",
];
