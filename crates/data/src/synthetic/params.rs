//! The settings of the world.

use crate::options::{CLIENTS, COUNT_RANGE, Each, Range};
use fedkin_settings::{Kind, Preset, Setting, Value, choice, settings};

const VARIANCE: Kind = Kind::Number { least: 0.0, most: 1e12, open: false };

choice! {
    /// The sizes of the clusters.
    pub enum Sizes {
        /// Of independent uniform draws.
        Uniform = "uniform",
        /// As equal as possible.
        Equal = "equal",
        /// Between random cuts.
        Random = "random",
    }
}

choice! {
    /// How the models of the clusters are drawn.
    pub enum Models {
        /// A common model times 1 + gamma.
        Shifted = "shifted",
        /// Every coordinate in (-range, range).
        Uniform = "uniform",
    }
}

choice! {
    /// What shifts the common model.
    pub enum Gamma {
        /// One gamma per cluster.
        Scalar = "scalar",
        /// One gamma per cluster and coordinate.
        PerCoordinate = "per-coordinate",
    }
}

choice! {
    /// How the variance of a client's noise is drawn from a range.
    pub enum NoiseLaw {
        /// Uniform.
        Uniform = "uniform",
        /// There is one number only.
        Fixed = "fixed",
        /// Its logarithm is uniform.
        LogUniform = "log-uniform",
    }
}

/// How many test records a client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestSamples {
    /// None.
    None,
    /// As many as it trains on.
    AsTrain,
    /// So many.
    Count(usize),
}

impl TestSamples {
    const NONE: &'static str = "none";
    const TRAIN: &'static str = "train";
}

impl Setting for TestSamples {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Text(word)) if word == Self::NONE => Ok(Self::None),
            Some(Value::Text(word)) if word == Self::TRAIN => Ok(Self::AsTrain),
            other => usize::read(other).map(Self::Count),
        }
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::None => Some(Value::Text(Self::NONE.into())),
            Self::AsTrain => Some(Value::Text(Self::TRAIN.into())),
            Self::Count(count) => count.write(),
        }
    }
}

settings! {
    /// `[data]` of clustered linear regression.
    pub struct ClusteredRegression {
        clients_per_server: Each<usize> => CLIENTS, Preset::Integer(15),
            "number of clients of every server, or a list with one number per server";
        clusters: usize => Kind::Integer { least: 1, most: 100_000 }, Preset::Integer(3),
            "number of clusters; the cluster of a client is uniform, and no cluster is empty";
        sizes: Sizes => Kind::Choice(Sizes::WORDS), Preset::Text("uniform"),
            "sizes of the clusters: of independent uniform draws, as equal as possible, or between random cuts";
        dimension: usize => Kind::Integer { least: 1, most: 10_000_000 }, Preset::Integer(60),
            "number of features";
        samples: Range<u32> => COUNT_RANGE, Preset::List(&[Preset::Integer(2), Preset::Integer(9)]),
            "training records of a client, uniform in [from, to], or one number";
        models: Models => Kind::Choice(Models::WORDS), Preset::Text("shifted"),
            "models of the clusters: a common one shifted by `spread`, or uniform in (-range, range) per coordinate";
        range: Option<f64> => Kind::Number { least: 0.0, most: 1e6, open: true }, Preset::Absent,
            "how far uniform models reach from zero in every coordinate";
        spread: f64 => Kind::Number { least: 0.0, most: 1e6, open: false }, Preset::Number(0.15),
            "a cluster's model is the common one times 1 + gamma, gamma uniform in (-spread, spread)";
        gamma: Gamma => Kind::Choice(Gamma::WORDS), Preset::Text("scalar"),
            "one gamma per cluster (the papers' collinear models), or one per cluster and coordinate (same energy)";
        noise: Range<f64> => Kind::Either(&[VARIANCE, Kind::List(&VARIANCE)]),
            Preset::List(&[Preset::Number(0.01), Preset::Number(0.022)]),
            "variance of a client's noise, drawn in [from, to], or one number";
        noise_law: NoiseLaw => Kind::Choice(NoiseLaw::WORDS), Preset::Text("uniform"),
            "how the variance of a client is drawn from `noise`; fixed needs one number";
        test_samples: TestSamples
            => Kind::Either(&[
                Kind::Choice(&[TestSamples::NONE, TestSamples::TRAIN]),
                Kind::Integer { least: 1, most: 1_000_000 },
            ]),
            Preset::Text("none"),
            "test records of a client: none, as many as it trains on, or a number";
    }
}
