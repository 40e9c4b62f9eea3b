//! The sections that every config has: validation, defaults, types and the reference come from here.

use fedkin_method::Robust;
use fedkin_privacy::PrivacySettings;
use fedkin_settings::{Kind, Param, Preset, Setting, Settings, Value, choice, settings};
use std::path::PathBuf;

const FROM_ZERO: Kind = Kind::Integer { least: 0, most: u32::MAX as i64 };

settings! {
    /// `[run]`
    pub struct Run {
        name: String => Kind::Text, Preset::Required, "name of the run and of its folder";
        seed: u64 => Kind::Integer { least: 0, most: i64::MAX }, Preset::Integer(0),
            "what all public random numbers follow from";
        rounds: u32 => Kind::COUNT, Preset::Required, "how many rounds to train";
        repeats: u32 => Kind::COUNT, Preset::Integer(1), "how many times, with seeds of their own, for error bars";
        checkpoint_seconds: f64 => Kind::FROM_ZERO, Preset::Number(10.0), "seconds between checkpoints; 0 writes none";
        max_norm: f64 => Kind::ABOVE_ZERO, Preset::Number(1e6), "uploads with a larger norm are rejected";
        state_limit: f64 => Kind::FROM_ZERO, Preset::Unwritten(&Preset::Number(1024.0)),
            "MiB of memory for what clients remember from round to round in one process; above, it goes to a temporary file";
    }
}

settings! {
    /// `[participation]`
    pub struct Participation {
        clients_per_server: Option<u32> => Kind::COUNT, Preset::Absent,
            "how many clients a server asks each round; absent: all";
    }
}

/// Where the clusters of clients come from, if not from the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterSource {
    /// They are found on the way.
    Infer,
    /// A file names them.
    File(PathBuf),
}

impl ClusterSource {
    /// The word for clusters that are found.
    pub(super) const INFER: &'static str = "infer";
}

impl Setting for ClusterSource {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        let word = String::read(value)?;
        Ok(if word == Self::INFER { Self::Infer } else { Self::File(word.into()) })
    }
    fn write(&self) -> Option<Value> {
        match self {
            Self::Infer => Some(Value::Text(Self::INFER.into())),
            Self::File(path) => path.write(),
        }
    }
}

choice! {
    /// How clusters are found.
    pub enum FoundBy {
        /// Each client picks the model with the least loss.
        Loss = "loss",
        /// A run of `PersFL` finds them first.
        Rewards = "rewards",
    }
}

settings! {
    /// `[kin]`
    pub struct Kin {
        clusters: Option<ClusterSource> => Kind::Either(&[Kind::Choice(&[ClusterSource::INFER]), Kind::Path]), Preset::Absent,
            "infer: clusters are found on the way; a CSV file with the columns client, cluster replaces those of the data";
        graph: Option<PathBuf> => Kind::Path, Preset::Absent,
            "a graph of clients, such as graphs/kin.graphml of a run: every client is a server of its own on it";
        count: Option<usize> => Kind::COUNT, Preset::Absent,
            "infer: how many clusters; absent: as many as the data name";
        by: FoundBy => Kind::Choice(FoundBy::WORDS), Preset::Text("loss"),
            "infer: each client picks the model with the least loss in every round, or a first stage of active sampling finds the clusters";
        search_rounds: Option<u32> => Kind::COUNT, Preset::Absent,
            "infer by rewards: rounds of active sampling that find the clusters; absent: as many as run.rounds";
        warm_up: u32 => FROM_ZERO, Preset::Integer(10),
            "infer by loss: rounds with one model for all, before clients pick";
        forming: u32 => FROM_ZERO, Preset::Integer(40),
            "infer by loss: rounds after the warm-up in which clusters borrow nothing from each other";
        start: f64 => Kind::Number { least: 0.0, most: 1e6, open: false }, Preset::Number(0.1),
            "infer by loss: size of the random vectors that tell the models apart at first, against the model of the warm-up";
    }
}

choice! {
    /// Whether a step waits for every client asked.
    pub enum Waiting {
        /// It waits for all.
        Strict = "strict",
        /// It goes on without the late ones.
        Deadline = "deadline",
    }
}

settings! {
    /// `[network]`
    pub struct Network {
        mode: Waiting => Kind::Choice(Waiting::WORDS), Preset::Text("strict"),
            "strict: a step waits for every client asked; deadline: it goes on without the late ones";
        quorum: f64 => Kind::Number { least: 0.0, most: 1.0, open: true }, Preset::Number(1.0),
            "with deadlines: share of the clients asked whose answers close a step early";
        deadline: f64 => Kind::ABOVE_ZERO, Preset::Number(30.0), "with deadlines: seconds after which a step closes";
        resend: f64 => Kind::ABOVE_ZERO, Preset::Number(2.0), "seconds until an unanswered message is sent again";
    }
}

settings! {
    /// `[evaluate]`
    pub struct Evaluate {
        every: u32 => Kind::COUNT, Preset::Integer(1), "rounds from one evaluation to the next";
        models: Vec<String> => Kind::List(&Kind::Text), Preset::Absent,
            "which personal models to evaluate; absent: all";
        metric: Option<String> => Kind::Text, Preset::Absent, "the headline metric; absent: the first of the task";
        against: Option<String> => Kind::Text, Preset::Absent,
            "what the metric is drawn over: a number that a method counts, such as \"queries\"; absent: rounds";
        at: Option<f64> => Kind::ABOVE_ZERO, Preset::Absent,
            "a comparison's table and claims read the last evaluation up to here, in rounds or in what `against` names; absent: the last";
        threshold: f64 => Kind::FROM_ZERO, Preset::Unwritten(&Preset::Number(1e-4)),
            "graphs: a weight above this is an edge";
        per_client_limit: usize => Kind::Integer { least: 0, most: i64::MAX }, Preset::Integer(1000),
            "one metrics row per client only up to this many clients";
        global: bool => Kind::Flag, Preset::Unwritten(&Preset::Flag(false)),
            "models of classes: measure every client's model also on the public hold-out, or without one on the test records of all clients";
        global_most: Option<usize> => Kind::COUNT, Preset::Absent,
            "with `global`: at most so many of those records, drawn evenly by the seed; absent: all";
        early_stopping: bool => Kind::Flag, Preset::Unwritten(&Preset::Flag(false)),
            "models of classes: report also `stopped_accuracy`, each client's test accuracy in the evaluated round of its least validation loss; models on disk are those of the last round all the same";
    }
}

settings! {
    /// `[[curve]]`, without `set`, whose keys are those of the other sections.
    pub struct CurveKeys {
        label: String => Kind::Text, Preset::Required, "name of the curve in legends and tables";
        method: Option<String> => Kind::Text, Preset::Absent,
            "colour key: curves of one method look alike in every figure";
    }
}

choice! {
    /// What the points of grids are compared by.
    pub enum TuneMetric {
        /// The share of validation records that are told right.
        Accuracy = "validation_accuracy",
        /// The cross-entropy of validation records.
        LogLoss = "validation_log_loss",
    }
}

settings! {
    /// `[tune]`: how the points of grids are compared.
    pub struct Tune {
        metric: TuneMetric => Kind::Choice(TuneMetric::WORDS), Preset::Text("validation_accuracy"),
            "what the points of a curve's `grid` are compared by, on the model that the curve shows; never test records";
        repeats: u32 => Kind::COUNT, Preset::Integer(1),
            "how many repeats every point is run; they have the seeds, and so the data, of the first repeats that are reported";
        rounds: Option<u32> => Kind::COUNT, Preset::Absent,
            "how many rounds every point is run; absent: as many as run.rounds";
        enabled: bool => Kind::Flag, Preset::Flag(true),
            "false: grids are left out, and curves run as they are set";
    }
}

settings! {
    /// `[sweep]`, without `values`, which are whatever the key takes.
    pub struct SweepKeys {
        key: String => Kind::Text, Preset::Required, "the key to vary, with its section";
        at_round: Option<u32> => Kind::COUNT, Preset::Absent, "the round whose metric is drawn; absent: the last";
    }
}

settings! {
    /// `[paper]`, without `claims`.
    pub struct PaperKeys {
        title: String => Kind::Text, Preset::Required, "title of the paper";
        source: Option<String> => Kind::Text, Preset::Absent, "where to find it, and which figure this is";
        theory: bool => Kind::Flag, Preset::Flag(false), "draw the paper's bounds beside what was measured";
    }
}

settings! {
    /// One claim of a paper: an entry of `claims` in `[paper]`.
    pub struct Claim {
        text: String => Kind::Text, Preset::Required, "what the paper says";
        check: Option<String> => Kind::Text, Preset::Absent, "the condition on the curves that decides it";
    }
}

/// The sections whose table is fixed and that a `--set` may reach.
pub(super) const FIXED: &[(&str, &str, &[Param])] = &[
    ("run", "What to call it, how long, from which seed.", Run::PARAMS),
    ("participation", "Who is asked in a round.", Participation::PARAMS),
    ("kin", "Who is kin of whom, where the data do not say or say it wrong.", Kin::PARAMS),
    ("privacy", "What noise is added, and what it promises.", PrivacySettings::PARAMS),
    ("robust", "What bounds how far one lying client, or server, can move the others.", Robust::PARAMS),
    ("evaluate", "What is measured, and when.", Evaluate::PARAMS),
    ("network", "How machines wait for each other; a run in one process does not read it.", Network::PARAMS),
];

/// Keys that stood in every `[model]` before each kind had a table of its own, with the default they had. Configs that
/// were written out in full then have them whatever their kind, and fingerprints count them.
pub(super) const ONCE_IN_EVERY_MODEL: &[(&str, Preset)] =
    &[("regularisation", Preset::Number(0.01)), ("bias", Preset::Flag(false))];

/// All sections, in the order of the reference and of a resolved config.
pub(super) const NAMES: &[&str] = &[
    "run",
    "data",
    "topology",
    "model",
    "learner",
    "algorithm",
    "participation",
    "kin",
    "privacy",
    "robust",
    "evaluate",
    "network",
    "curve",
    "tune",
    "sweep",
    "quick",
    "paper",
];
