//! Scores by metrics that a program has added: functions of a client's model and its test records.

use super::Wanted;
use super::metric::{OwnMetric, family};
use fedkin_data::World;
use fedkin_learner::Dataset;
use fedkin_method::{Families, Member};
use std::sync::Arc;

struct Column {
    name: String,
    measure: OwnMetric,
    model: usize,
}

pub(super) struct OwnScorer {
    columns: Vec<Column>,
    families: Families,
    learners: Option<Arc<[u32]>>,
    test: Vec<Option<Arc<Dataset>>>,
}

impl OwnScorer {
    /// Nothing where a program has added no metric, or there are no test records.
    pub(super) fn new(
        world: &World,
        families: &Families,
        learners: Option<Arc<[u32]>>,
        personal: &[&'static str],
        wanted: &Wanted<'_>,
    ) -> Option<Self> {
        let asked = wanted.headline.map(family);
        let mut columns = Vec::new();
        for row in wanted.metrics.iter().filter(|row| !row.on_demand || asked == Some(row.name)) {
            let Some(measure) = row.own else { continue };
            for (model, &name) in personal.iter().enumerate() {
                if wanted.models.is_empty() || wanted.models.iter().any(|wanted| wanted == name) {
                    columns.push(Column { name: format!("{}.{name}", row.name), measure, model });
                }
            }
        }
        let measured = !columns.is_empty() && world.test.iter().any(Option::is_some);
        measured.then(|| Self { columns, families: families.clone(), learners, test: world.test.clone() })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|column| column.name.clone())
    }

    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn score(&self, member: &Member, which: usize, model: &[f64], row: &mut [f64]) {
        let id = member.id as usize;
        let own = self.learners.as_ref().and_then(|all| all.get(id)).map_or(0, |number| *number as usize);
        let (Some(family), Some(Some(test))) = (self.families.get(own), self.test.get(id)) else { return };
        for (place, column) in row.iter_mut().zip(&self.columns).filter(|(_, column)| column.model == which) {
            *place = (column.measure)(family, model, test);
        }
    }
}
