//! The keys of `[model]`: `kind` selects one of these tables.

use super::NETS;
use crate::signals::{Records, Smooth};
use fedkin_settings::{Kind, Param, Preset, choice, settings};

/// Trees grow no deeper, whatever the config says.
pub const DEEPEST: u32 = 64;

choice! {
    /// What the targets of trees, neighbours and forests are.
    pub enum Task { Regression = "regression", Classification = "classification" }
}

choice! {
    /// What a net is fitted by.
    pub enum NetLoss { CrossEntropy = "cross-entropy", Squared = "squared" }
}

choice! {
    /// The kinds of model that one federation can mix.
    pub enum Each { Tree = "tree", Knn = "knn", Forest = "forest", Ridge = "ridge", Logistic = "logistic" }
}

const REGULARISATION: Param = Param {
    name: "regularisation",
    kind: Kind::FROM_ZERO,
    preset: Preset::Number(0.01),
    help: "weight of |w|^2 (lambda), shared by the clients of a server",
};
const BIAS: Param = Param {
    name: "bias",
    kind: Kind::Flag,
    preset: Preset::Flag(false),
    help: "add a constant feature, regularised like the others",
};
const HUBER: Param = Param {
    name: "huber",
    kind: Kind::ABOVE_ZERO,
    preset: Preset::Absent,
    help: "residuals above this count linearly, which bounds the gradient; absent: all are squared",
};
const FEATURE_NORM: Param = Param {
    name: "feature_norm",
    kind: Kind::ABOVE_ZERO,
    preset: Preset::Absent,
    help: "scale every feature vector down to at most this norm, which bounds the gradient; absent: none is scaled",
};
const CLASSES: Param = Param {
    name: "classes",
    kind: Kind::Integer { least: 2, most: 1000 },
    preset: Preset::Absent,
    help: "how many classes; their labels go from 0 to one less; absent: as many as the data source knows",
};
const TASK: Param = Param {
    name: "task",
    kind: Kind::Choice(Task::WORDS),
    preset: Preset::Unwritten(&Preset::Text("regression")),
    help: "whether targets are numbers, or labels 0 and 1",
};
const LEAF: Param = Param {
    name: "leaf",
    kind: Kind::Integer { least: 1, most: 1_000_000 },
    preset: Preset::Unwritten(&Preset::Integer(10)),
    help: "least number of records in a leaf of a tree",
};
const DEPTH: Param = Param {
    name: "depth",
    kind: Kind::Integer { least: 1, most: DEEPEST as i64 },
    preset: Preset::Unwritten(&Preset::Integer(DEEPEST as i64)),
    help: "most splits of a tree from the root to a leaf",
};
const NEIGHBOURS: Param = Param {
    name: "neighbours",
    kind: Kind::Integer { least: 1, most: 1_000_000 },
    preset: Preset::Unwritten(&Preset::Integer(5)),
    help: "how many of the nearest records are averaged",
};
const TREES: Param = Param {
    name: "trees",
    kind: Kind::Integer { least: 1, most: 10_000 },
    preset: Preset::Unwritten(&Preset::Integer(20)),
    help: "how many trees are averaged",
};

choice! {
    /// Which regulariser.
    pub enum Penalty {
        SquaredNorm = "squared-norm", L1 = "l1", ElasticNet = "elastic-net", Group = "group", None = "none",
    }
}

settings! {
    /// What all linear models begin with.
    pub struct Weight {
        regularisation: f64 => param REGULARISATION;
        bias: bool => param BIAS;
    }
}

settings! {
    /// What else all linear models have in common.
    pub struct Product {
        feature_norm: Option<f64> => param FEATURE_NORM;
        regulariser: Penalty => Kind::Choice(Penalty::WORDS), Preset::Unwritten(&Preset::Text("squared-norm")),
            "what `regularisation` weighs: |w|^2, the sum of absolute values, a mixture of the two, or norms of groups";
        l1_share: Option<f64> => Kind::SHARE, Preset::Absent,
            "elastic-net: share of the sum of absolute values, the rest is |w|^2; absent: half";
        group_size: Option<usize> => Kind::COUNT, Preset::Absent,
            "group: so many neighbouring parameters belong together";
        group_lengths: Vec<usize> => Kind::List(&Kind::COUNT), Preset::Absent,
            "group: the lengths of the groups, one after the other, where they differ";
    }
}

settings! {
    /// `kind = "ridge"`
    pub struct Ridge {
        flatten weight: Weight;
        huber: Option<f64> => param HUBER;
        flatten product: Product;
    }
}

settings! {
    /// `kind = "logistic"`
    pub struct Logistic {
        flatten weight: Weight;
        flatten product: Product;
    }
}

settings! {
    /// `kind = "poisson"`
    pub struct Poisson {
        flatten weight: Weight;
        flatten product: Product;
    }
}

settings! {
    /// `kind = "quantile"`
    pub struct Quantile {
        flatten weight: Weight;
        flatten product: Product;
        quantile: f64 => Kind::Number { least: 0.0, most: 0.999_999, open: true }, Preset::Number(0.5),
            "which quantile of the target is predicted; 0.5 is the median";
    }
}

settings! {
    /// `kind = "softmax"`
    pub struct Softmax {
        flatten weight: Weight;
        flatten product: Product;
        classes: Option<usize> => param CLASSES;
    }
}

settings! {
    /// `kind = "graph"`
    pub struct Graph {
        alpha: f64 => Kind::Number { least: 0.0, most: 1e12, open: true },
            Preset::Unwritten(&Preset::Number(Smooth::ALPHA)),
            "weight of the logarithms of the degrees; a matter of scale";
        beta: f64 => Kind::Number { least: 0.0, most: 1e12, open: true },
            Preset::Unwritten(&Preset::Number(Smooth::BETA)),
            "weight of the squared weights; more of it gives more edges";
        records: Records => Kind::Choice(Records::WORDS), Preset::Unwritten(&Preset::Text("signals")),
            "whether a record is one number per node or one squared difference per pair";
    }
}

settings! {
    /// `kind = "tree"`
    pub struct Tree {
        task: Task => param TASK;
        classes: Option<usize> => param CLASSES;
        leaf: u32 => param LEAF;
        depth: u32 => param DEPTH;
    }
}

settings! {
    /// `kind = "knn"`
    pub struct Knn {
        task: Task => param TASK;
        classes: Option<usize> => param CLASSES;
        neighbours: u32 => param NEIGHBOURS;
    }
}

settings! {
    /// `kind = "forest"`
    pub struct Forest {
        task: Task => param TASK;
        classes: Option<usize> => param CLASSES;
        leaf: u32 => param LEAF;
        depth: u32 => param DEPTH;
        trees: u32 => param TREES;
    }
}

settings! {
    /// `kind = "mixed"`
    pub struct Mixed {
        flatten ridge: Ridge;
        kinds: Vec<Each> => Kind::List(&Kind::Choice(Each::WORDS)), Preset::Required,
            "the kinds of model of one federation, dealt to its clients in turn";
        task: Option<Task> => Kind::Choice(Task::WORDS), Preset::Absent,
            "whether targets are numbers, or labels 0 and 1; absent: labels where a kind is logistic";
        leaf: u32 => param LEAF;
        depth: u32 => param DEPTH;
        neighbours: u32 => param NEIGHBOURS;
        trees: u32 => param TREES;
    }
}

settings! {
    /// `kind = "net"`
    pub struct Net {
        classes: Option<usize> => param CLASSES;
        net: Option<String> => Kind::Choice(NETS), Preset::Absent, "a net that needs no description";
        layers: Vec<String> => Kind::List(&Kind::Text), Preset::Absent,
            "its layers in order, such as [\"conv 16 size 5\", \"relu\", \"max-pool 2 stride 2\", \"dense 10\"]";
        input: Vec<usize> => Kind::List(&Kind::Integer { least: 1, most: 1_000_000 }), Preset::Absent,
            "the shape of a record as [channels, height, width]; absent: what the data source knows";
        loss: NetLoss => Kind::Choice(NetLoss::WORDS), Preset::Unwritten(&Preset::Text("cross-entropy")),
            "whether it tells classes apart or predicts a number";
    }
}
