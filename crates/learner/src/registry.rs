//! The table of learners: `model.kind` names one of its rows. A program may add rows of its own.

use super::{
    Abilities, Family, Graph, Groups, Hypotheses, Linear, NetFamily, Output, Regulariser, SoftmaxFamily,
    graph, hypotheses, linear, net, softmax,
};
use crate::hypothesis::Kind;
use crate::model::settings::{self as keys, Each, Penalty, Product, Task, Weight};
use crate::model::{Known, Loss, Model, NetModel, Softmax};
use crate::signals::Smooth;
use fedkin_settings::{Named, Param, Settings, Table, Values};
use std::sync::Arc;

/// A learner that can be built from a config.
pub trait LearnerKind {
    /// Its keys.
    type Settings: Settings;
    /// What its learners can do, at most.
    const HAS: Abilities;
    /// Builds it from its keys and what the data say of themselves.
    fn build(keys: &Self::Settings, known: Known) -> Result<Arc<dyn Family>, String>;
}

/// The families that a row builds: one, or several that are dealt to the clients in turn.
pub type Built = Result<Vec<Arc<dyn Family>>, String>;

/// What the table says of a learner.
#[derive(Debug, Clone, Copy)]
pub struct LearnerRow {
    /// Its name: a word of `model.kind`.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The other keys of `[model]`.
    pub params: &'static [Param],
    /// What its learners can do, at most.
    pub has: Abilities,
    build: fn(&Values, Known) -> Built,
}

impl Named for LearnerRow {
    fn name(&self) -> &str {
        self.name
    }
}

impl LearnerRow {
    /// The row of a learner.
    pub const fn of<K: LearnerKind>(name: &'static str, summary: &'static str) -> Self {
        let build: fn(&Values, Known) -> Built = |values, known| {
            K::build(&<K::Settings as Settings>::read(values)?, known).map(|family| vec![family])
        };
        Self { name, summary, params: <K::Settings as Settings>::PARAMS, has: K::HAS, build }
    }

    /// The row of a learner that a program brings as a value: it has no keys, and a config alone cannot build it.
    pub const fn brought(name: &'static str, has: Abilities) -> Self {
        let build: fn(&Values, Known) -> Built =
            |_, _| Err("this learner belongs to the program that trained it: run that program again".into());
        Self { name, summary: "a learner that a program brings as a value", params: &[], has, build }
    }

    /// Builds the learner from values that passed its table.
    pub fn build(&self, values: &Values, known: Known) -> Built {
        (self.build)(values, known)
    }
}

/// All learners.
pub type Learners = Table<LearnerRow>;

/// The learners that come with Fedkin, in the order of the reference.
const NATIVE: &[LearnerRow] = &[
    LearnerRow::of::<keys::Ridge>("ridge", "a linear model of numbers, by squared or Huber loss"),
    LearnerRow::of::<keys::Logistic>("logistic", "a linear model of labels 0 and 1"),
    LearnerRow::of::<keys::Poisson>("poisson", "a linear model of the logarithm of a mean count"),
    LearnerRow::of::<keys::Quantile>("quantile", "a linear model of a quantile, such as the median"),
    LearnerRow::of::<keys::Softmax>("softmax", "a linear model of several classes"),
    LearnerRow::of::<keys::Graph>("graph", "a graph of the columns, learnt from smooth signals"),
    LearnerRow::of::<keys::Tree>("tree", "a regression tree"),
    LearnerRow::of::<keys::Knn>("knn", "the mean of the nearest records"),
    LearnerRow::of::<keys::Forest>("forest", "the mean of many trees"),
    LearnerRow {
        name: "mixed",
        summary: "several of these in one federation, dealt to its clients in turn",
        params: <keys::Mixed as Settings>::PARAMS,
        has: hypotheses::HAS,
        build: |values, _| mixed(&<keys::Mixed as Settings>::read(values)?),
    },
    LearnerRow::of::<keys::Net>("net", "a neural net"),
];

/// The table of these.
pub fn native() -> Learners {
    let mut learners = Learners::new("learner");
    for row in NATIVE {
        // A test holds that no name is there twice.
        let added = learners.add(*row);
        debug_assert!(added.is_ok());
    }
    learners
}

impl Product {
    /// The regulariser that the keys describe.
    fn regulariser(&self) -> Result<Regulariser, String> {
        let given = |key: &str| {
            Err(format!(
                "`{key}` does nothing with regulariser = {:?}: leave it out",
                self.regulariser.word()
            ))
        };
        if self.l1_share.is_some() && self.regulariser != Penalty::ElasticNet {
            return given("l1_share");
        }
        if self.group_size.is_some() && self.regulariser != Penalty::Group {
            return given("group_size");
        }
        if !self.group_lengths.is_empty() && self.regulariser != Penalty::Group {
            return given("group_lengths");
        }
        Ok(match self.regulariser {
            Penalty::None => Regulariser::None,
            Penalty::SquaredNorm => Regulariser::SquaredNorm,
            Penalty::L1 => Regulariser::L1,
            Penalty::ElasticNet => Regulariser::ElasticNet { l1_share: self.l1_share.unwrap_or(0.5) },
            Penalty::Group => match (self.group_size, self.group_lengths.as_slice()) {
                (Some(size), []) => Regulariser::Group { groups: Groups::Equal(size) },
                (None, lengths @ [_, ..]) => Regulariser::Group { groups: Groups::Lengths(lengths.into()) },
                (None, []) => {
                    return Err(
                        "regulariser = \"group\" needs `model.group_size` or `model.group_lengths`".into()
                    );
                }
                (Some(_), _) => {
                    return Err(
                        "`group_size` and `group_lengths` both say what a group is: keep one of them".into(),
                    );
                }
            },
        })
    }

    fn model(&self, weight: &Weight, loss: Loss) -> Model {
        let (regularisation, bias) = (weight.regularisation, weight.bias);
        Model { loss, regularisation, bias, feature_norm: self.feature_norm }
    }

    fn linear(&self, weight: &Weight, loss: Loss) -> Result<Arc<dyn Family>, String> {
        Ok(Arc::new(Linear::regularised(self.model(weight, loss), self.regulariser()?)))
    }
}

impl LearnerKind for keys::Ridge {
    type Settings = Self;
    const HAS: Abilities = linear::HAS;
    fn build(keys: &Self, _: Known) -> Result<Arc<dyn Family>, String> {
        keys.product.linear(&keys.weight, keys.huber.map_or(Loss::Squared, Loss::Huber))
    }
}

impl LearnerKind for keys::Logistic {
    type Settings = Self;
    const HAS: Abilities = linear::HAS;
    fn build(keys: &Self, _: Known) -> Result<Arc<dyn Family>, String> {
        keys.product.linear(&keys.weight, Loss::Logistic)
    }
}

impl LearnerKind for keys::Poisson {
    type Settings = Self;
    const HAS: Abilities = linear::HAS;
    fn build(keys: &Self, _: Known) -> Result<Arc<dyn Family>, String> {
        keys.product.linear(&keys.weight, Loss::Poisson)
    }
}

impl LearnerKind for keys::Quantile {
    type Settings = Self;
    const HAS: Abilities = linear::HAS;
    fn build(keys: &Self, _: Known) -> Result<Arc<dyn Family>, String> {
        keys.product.linear(&keys.weight, Loss::Quantile(keys.quantile))
    }
}

impl LearnerKind for keys::Softmax {
    type Settings = Self;
    const HAS: Abilities = softmax::HAS;
    fn build(keys: &Self, known: Known) -> Result<Arc<dyn Family>, String> {
        if keys.product.regulariser()? != Regulariser::SquaredNorm {
            return Err(
                "kind = \"softmax\" is regularised by the squared norm: leave `regulariser` out".into()
            );
        }
        Ok(Arc::new(SoftmaxFamily::new(Softmax::new(keys, known.classes)?)))
    }
}

impl LearnerKind for keys::Graph {
    type Settings = Self;
    const HAS: Abilities = graph::HAS;
    fn build(keys: &Self, _: Known) -> Result<Arc<dyn Family>, String> {
        Ok(Arc::new(Graph::new(Smooth { alpha: keys.alpha, beta: keys.beta, records: keys.records })))
    }
}

/// A hypothesis of numbers, of labels 0 and 1, or of several classes.
fn hypothesis(
    kind: Kind,
    task: Task,
    classes: Option<usize>,
    known: Known,
) -> Result<Arc<dyn Family>, String> {
    let output = match (task, classes, known.classes) {
        (Task::Regression, Some(_), _) => {
            return Err("`classes` is for task = \"classification\": set that, or leave it out".into());
        }
        (Task::Regression, None, _) => Output::Number,
        (Task::Classification, Some(classes), _) | (Task::Classification, None, Some(classes))
            if classes > 2 =>
        {
            Output::Classes(classes)
        }
        (Task::Classification, ..) => Output::Probability,
    };
    Ok(Arc::new(Hypotheses::of(kind, output)))
}

impl LearnerKind for keys::Tree {
    type Settings = Self;
    const HAS: Abilities = hypotheses::HAS;
    fn build(keys: &Self, known: Known) -> Result<Arc<dyn Family>, String> {
        hypothesis(Kind::Tree { leaf: keys.leaf, depth: keys.depth }, keys.task, keys.classes, known)
    }
}

impl LearnerKind for keys::Knn {
    type Settings = Self;
    const HAS: Abilities = hypotheses::HAS;
    fn build(keys: &Self, known: Known) -> Result<Arc<dyn Family>, String> {
        hypothesis(Kind::Neighbours { count: keys.neighbours }, keys.task, keys.classes, known)
    }
}

impl LearnerKind for keys::Forest {
    type Settings = Self;
    const HAS: Abilities = hypotheses::HAS;
    fn build(keys: &Self, known: Known) -> Result<Arc<dyn Family>, String> {
        let kind = Kind::Forest { trees: keys.trees, leaf: keys.leaf, depth: keys.depth };
        hypothesis(kind, keys.task, keys.classes, known)
    }
}

impl LearnerKind for keys::Net {
    type Settings = Self;
    const HAS: Abilities = net::HAS;
    fn build(keys: &Self, known: Known) -> Result<Arc<dyn Family>, String> {
        Ok(Arc::new(NetFamily::new(NetModel::of(keys, known.classes, known.shape)?)))
    }
}

/// More kinds in one mix than this are refused.
const MOST: usize = 4;

/// The families of `kind = "mixed"`: all of them are hypotheses, linear models too, so that each reads any other.
fn mixed(keys: &keys::Mixed) -> Built {
    let named = &keys.kinds;
    if named.is_empty() {
        return Err("kind = \"mixed\" needs a list of kinds, such as kinds = [\"tree\", \"ridge\"]".into());
    }
    if named.len() > MOST {
        return Err(format!("`kinds` names {} kinds: at most {MOST} fit into one federation", named.len()));
    }
    // A logistic model says what the targets are.
    let logistic = named.contains(&Each::Logistic);
    if logistic && keys.task == Some(Task::Regression) {
        return Err("task = \"regression\" has targets that a logistic model cannot fit: use ridge".into());
    }
    if logistic && keys.ridge.huber.is_some() {
        return Err("`huber` belongs to kind = \"ridge\", and `kinds` has a logistic model".into());
    }
    if keys.ridge.product.regulariser()? != Regulariser::SquaredNorm {
        return Err(
            "kind = \"mixed\" regularises linear models by the squared norm: leave `regulariser` out".into(),
        );
    }
    let classes = keys.task.map_or(logistic, |task| task == Task::Classification);
    let (leaf, depth) = (keys.leaf, keys.depth);
    let model = |loss| keys.ridge.product.model(&keys.ridge.weight, loss);
    let kind = |each: &Each| match each {
        Each::Tree => Kind::Tree { leaf, depth },
        Each::Knn => Kind::Neighbours { count: keys.neighbours },
        Each::Forest => Kind::Forest { trees: keys.trees, leaf, depth },
        Each::Ridge => Kind::Linear(model(keys.ridge.huber.map_or(Loss::Squared, Loss::Huber))),
        Each::Logistic => Kind::Linear(model(Loss::Logistic)),
    };
    Ok(named.iter().map(|each| Arc::new(Hypotheses::new(kind(each), classes)) as Arc<dyn Family>).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_settings::Value;

    fn build(kind: &str, pairs: &[(&str, Value)]) -> Built {
        let row = NATIVE.iter().find(|row| row.name == kind).unwrap();
        let raw = pairs.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
        row.build(&Values::check(row.params, &raw).unwrap(), Known::default())
    }

    fn refused(kind: &str, pairs: &[(&str, Value)]) -> String {
        build(kind, pairs).unwrap_err()
    }

    #[test]
    fn every_row_builds_a_learner_of_its_name_and_abilities() {
        assert!(Table::of("learner", NATIVE.iter().copied()).is_ok(), "names are unique");
        for row in NATIVE {
            let pairs = match row.name {
                "softmax" => vec![("classes", Value::Integer(3))],
                "net" => vec![
                    ("classes", Value::Integer(2)),
                    ("input", Value::List(vec![Value::Integer(4), Value::Integer(1), Value::Integer(1)])),
                    ("layers", Value::List(vec![Value::Text("dense 2".into())])),
                ],
                "mixed" => {
                    vec![("kinds", Value::List(vec![Value::Text("tree".into()), Value::Text("knn".into())]))]
                }
                _ => Vec::new(),
            };
            for family in build(row.name, &pairs).unwrap() {
                assert_eq!(family.has().without(row.has), Abilities::NONE, "{}", row.name);
                assert!(row.name == "mixed" || family.name() == row.name, "{}", row.name);
            }
        }
    }

    #[test]
    fn keys_that_do_not_fit_together_are_refused() {
        let words =
            |words: &[&str]| Value::List(words.iter().map(|word| Value::Text((*word).into())).collect());
        let text = |word: &str| Value::Text(word.into());
        assert!(refused("softmax", &[]).contains("needs `model.classes`"));
        assert!(refused("net", &[("classes", Value::Integer(2))]).contains("`model.layers`"));
        assert!(refused("mixed", &[("kinds", words(&[]))]).contains("needs a list of kinds"));
        assert!(refused("mixed", &[("kinds", words(&["tree"; 5]))]).contains("at most 4"));
        let logistic = ("kinds", words(&["logistic"]));
        assert!(refused("mixed", &[logistic.clone(), ("task", text("regression"))]).contains("use ridge"));
        assert!(refused("mixed", &[logistic, ("huber", Value::Number(1.0))]).contains("`huber` belongs to"));
        assert!(refused("ridge", &[("l1_share", Value::Number(0.3))]).contains("`l1_share` does nothing"));
        assert!(refused("ridge", &[("regulariser", text("group"))]).contains("needs `model.group_size`"));
        assert!(build("quantile", &[("regulariser", text("l1"))]).is_ok());
    }
}
