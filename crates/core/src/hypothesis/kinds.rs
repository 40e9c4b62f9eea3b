//! Which kinds of hypothesis the clients of a run fit.

use super::{DEEPEST, Kind};
use crate::model::Model;
use crate::params::{Value, Values};

/// The kinds that `[model] kinds` can name.
pub const WORDS: &[&str] = &["tree", "knn", "forest", "ridge", "logistic"];
/// Keys of `[model]` that belong to these kinds alone.
pub const KEYS: &[&str] = &["kinds", "task", "leaf", "depth", "neighbours", "trees"];
/// More kinds in one federation than this are refused.
const MOST: usize = 4;

/// One kind for all clients, or several that are dealt to the clients in turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kinds {
    list: [Kind; MOST],
    count: usize,
    classes: bool,
}

impl Kinds {
    /// The same kind for everybody.
    pub fn one(kind: Kind, classes: bool) -> Self {
        Self { list: [kind; MOST], count: 1, classes }
    }

    /// From the values of `[model]`.
    pub fn new(values: &Values) -> Result<Self, String> {
        let word = values.text("kind").unwrap_or_default();
        let named: Vec<&str> = match (word, values.list("kinds")) {
            ("mixed", []) => {
                return Err(
                    "kind = \"mixed\" needs a list of kinds, such as kinds = [\"tree\", \"ridge\"]".into()
                );
            }
            ("mixed", list) => list
                .iter()
                .filter_map(|value| match value {
                    Value::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect(),
            (_, []) => vec![word],
            (_, _) => return Err(format!("`kinds` belongs to kind = \"mixed\", and kind is {word:?}")),
        };
        if named.len() > MOST {
            return Err(format!(
                "`kinds` names {} kinds: at most {MOST} fit into one federation",
                named.len()
            ));
        }
        // A logistic model says what the targets are.
        let classes = match values.text("task") {
            Some("regression") if named.contains(&"logistic") => {
                return Err(
                    "task = \"regression\" has targets that a logistic model cannot fit: use ridge".into()
                );
            }
            Some(task) => task == "classification",
            None => named.contains(&"logistic"),
        };
        let kinds: Vec<Kind> = named.iter().map(|name| kind(name, values)).collect::<Result<_, String>>()?;
        let mut all = Self::one(kinds[0], classes);
        all.list[..kinds.len()].copy_from_slice(&kinds);
        all.count = kinds.len();
        Ok(all)
    }

    /// The kinds, each once.
    pub fn all(&self) -> &[Kind] {
        &self.list[..self.count]
    }

    /// Which of them a client has.
    pub fn number_of(&self, client: u32) -> usize {
        client as usize % self.count
    }

    /// The kind of a client.
    pub fn of(&self, client: u32) -> &Kind {
        &self.list[self.number_of(client)]
    }

    /// Whether the targets are labels 0 and 1.
    pub fn classes(&self) -> bool {
        self.classes
    }

    /// Whether some of them can pass through every record.
    pub fn interpolate(&self) -> bool {
        self.all().iter().any(Kind::interpolates)
    }
}

fn kind(name: &str, values: &Values) -> Result<Kind, String> {
    let whole = |key: &str, otherwise: u32| {
        values.integer(key).and_then(|x| u32::try_from(x).ok()).unwrap_or(otherwise)
    };
    let (leaf, depth) = (whole("leaf", 10), whole("depth", DEEPEST).min(DEEPEST));
    Ok(match name {
        "knn" => Kind::Neighbours { count: whole("neighbours", 5) },
        "forest" => Kind::Forest { trees: whole("trees", 20), leaf, depth },
        "ridge" | "logistic" => Kind::Linear(Model::of(name, values)?),
        _ => Kind::Tree { leaf, depth },
    })
}
