//! How many records of each class each client has.

use super::World;
use fedkin_learner::Dataset;
use serde::Serialize;

/// No table of more classes than this is counted: targets that are whole by chance are no classes.
const MOST: usize = 1000;

/// Records by client and class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabelCounts {
    /// The names of the classes by number.
    pub classes: Vec<String>,
    /// One row for each client, by id.
    pub clients: Vec<ClientLabels>,
}

/// The records of one client by class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientLabels {
    /// The client.
    pub name: String,
    /// Its cluster.
    pub cluster: String,
    /// Training records by class.
    pub train: Vec<usize>,
    /// Validation records by class.
    pub validation: Vec<usize>,
    /// Test records by class.
    pub test: Vec<usize>,
}

impl ClientLabels {
    /// All its records by class.
    pub fn all(&self) -> Vec<usize> {
        (0..self.train.len())
            .map(|class| self.train[class] + self.validation[class] + self.test[class])
            .collect()
    }

    /// Classes that are tested and not trained: no local model can know them.
    pub fn untrained(&self) -> Vec<usize> {
        (0..self.train.len()).filter(|&class| self.train[class] == 0 && self.test[class] > 0).collect()
    }
}

impl World {
    /// The records of each client by class; nothing where targets are no classes.
    pub fn label_counts(&self) -> Option<LabelCounts> {
        let sets = || {
            let others = self.test.iter().chain(&self.validation).flatten();
            self.train.iter().chain(others)
        };
        let mut count = self.classes.len();
        for target in sets().flat_map(|set| set.targets()) {
            if *target < 0.0 || target.fract() != 0.0 || *target >= MOST as f64 {
                return None;
            }
            count = count.max(*target as usize + 1);
        }
        let number = |class: usize| self.classes.get(class).cloned().unwrap_or_else(|| class.to_string());
        let of = |set: Option<&Dataset>| {
            let mut counts = vec![0; count];
            set.iter().flat_map(|set| set.targets()).for_each(|target| counts[*target as usize] += 1);
            counts
        };
        let clients = self.federation.members().iter().map(|member| {
            let id = member.id as usize;
            ClientLabels {
                name: self.federation.client_name(member.id).to_string(),
                cluster: self.federation.cluster_names()[member.cluster as usize].clone(),
                train: of(Some(&self.train[id])),
                validation: of(self.validation.get(id).and_then(|set| set.as_deref())),
                test: of(self.test[id].as_deref()),
            }
        });
        Some(LabelCounts { classes: (0..count).map(number).collect(), clients: clients.collect() })
    }
}
