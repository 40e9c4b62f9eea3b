//! What a simulation has come to.

use crate::{Error, Federation, Warning};
use fedkin_method::round::Results;
use fedkin_method::{FoundKin, Member};
use fedkin_privacy::Prices;
use fedkin_run::artifacts::models::{Own, models_sha256};
use fedkin_run::predict::{Answer, answers};
use fedkin_run::{Outcome, Plan, PrivacySummary};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Models, metrics and accounts of all clients.
pub struct Trained {
    plan: Arc<Plan>,
    outcome: Outcome,
    federation: Federation,
    results: Box<dyn Results>,
    own: Own,
    learners: Option<Arc<[u32]>>,
}

impl Trained {
    pub(crate) fn new(
        plan: Arc<Plan>,
        (outcome, federation, results): (Outcome, Federation, Box<dyn Results>),
    ) -> Self {
        let own = Own::of(results.as_ref(), federation.federation.client_names());
        // The plan has looked at the same federation when it began.
        let learners = plan.learners_of(&federation).unwrap_or_default();
        Self { plan, outcome, federation, results, own, learners }
    }

    /// Who took part, with which records.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// How many rounds were run.
    pub fn rounds(&self) -> u32 {
        self.outcome.rounds
    }

    /// All clients that have a model, in the order of their names. Methods may learn for some clients only.
    pub fn clients(&self) -> impl Iterator<Item = Client<'_>> {
        self.own.names.iter().enumerate().filter_map(|(at, name)| self.at(at, name))
    }

    /// The client of this name, where it has a model.
    pub fn client(&self, name: &str) -> Option<Client<'_>> {
        let at = self.own.names.iter().position(|known| known == name)?;
        self.at(at, name)
    }

    fn at(&self, at: usize, name: &str) -> Option<Client<'_>> {
        let id = self.federation.federation.find_client(name)?;
        Some(Client { trained: self, id, at })
    }

    /// The mean over clients of a metric after the last round, such as `mse.client` or `accuracy.served`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.history(name).last().map(|(_, value)| *value)
    }

    /// All metrics after the last round: means over clients, with decibels beside what is shown in them.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        fedkin_run::final_values(self.plan.registry().metrics(), &self.outcome.metrics).0
    }

    /// A metric over the rounds in which it was measured.
    pub fn history(&self, name: &str) -> Vec<(u32, f64)> {
        let rows = self.outcome.metrics.rows();
        let rows = rows.filter(|row| row.node.is_empty() && row.metric == name);
        rows.map(|row| (row.round, row.value)).collect()
    }

    /// What was spent, under which promise.
    pub fn privacy(&self) -> PrivacySummary {
        PrivacySummary::new(&self.plan, &self.outcome.spent)
    }

    /// Who was found to be kin of whom, by client id; nothing where the method does not find out.
    pub fn kin(&self) -> Option<FoundKin> {
        self.results.kin()
    }

    /// What you should know of the run.
    pub fn warnings(&self) -> Vec<Warning> {
        let worth = self.privacy().doubt();
        Warning::distinct(self.outcome.warnings.iter().cloned().chain(worth))
    }

    /// SHA-256 of the clients' own models in the order of their names: two runs are equal if it is.
    pub fn models_sha256(&self) -> String {
        models_sha256((0..self.own.names.len()).map(|at| self.own.model(at)))
    }

    /// Models, accounts and ledger as the engine has them.
    pub fn results(&self) -> &dyn Results {
        self.results.as_ref()
    }
}

/// One client of a simulation that was run.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    trained: &'a Trained,
    id: u32,
    /// Its place among those with models.
    at: usize,
}

impl<'a> Client<'a> {
    fn member(&self) -> &'a Member {
        &self.trained.federation.federation.members()[self.id as usize]
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        self.trained.federation.federation.client_name(self.id)
    }

    /// The name of its server.
    pub fn server(&self) -> &'a str {
        &self.trained.federation.federation.server_names()[self.member().server as usize]
    }

    /// The name of its cluster.
    pub fn cluster(&self) -> &'a str {
        &self.trained.federation.federation.cluster_names()[self.member().cluster as usize]
    }

    /// Its own model.
    pub fn model(&self) -> &'a [f64] {
        self.trained.own.model(self.at)
    }

    /// All its models, by the names that the method gives them; the first is its own.
    pub fn models(&self) -> Vec<(&'static str, Vec<f64>)> {
        let names = self.trained.plan.row.personal;
        let mut models = Vec::new();
        self.trained.results.models(&mut |id, which, model| {
            if let Some(name) = names.get(which).filter(|_| id == self.id) {
                models.push((*name, model.to_vec()));
            }
        });
        models
    }

    /// A metric of this client after the last round; nothing where it was not measured, as for very many clients.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let column = self.trained.outcome.columns.iter().position(|column| column == name)?;
        let value = *self.trained.outcome.rows.get(self.id as usize)?.get(column)?;
        (!value.is_nan()).then_some(value)
    }

    /// Its own model's predictions for records, row by row: numbers, probabilities of label 1, or the likeliest class.
    pub fn predict(&self, features: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.answers(features)?.into_iter().map(|answer| answer.value).collect())
    }

    /// The probabilities of all classes for records, row by row; empty lists where no classes are told apart.
    pub fn probabilities(&self, features: &[f64]) -> Result<Vec<Vec<f64>>, Error> {
        Ok(self.answers(features)?.into_iter().map(|answer| answer.probabilities).collect())
    }

    fn answers(&self, features: &[f64]) -> Result<Vec<Answer>, Error> {
        let trained = self.trained;
        let family = trained.plan.family_of(trained.learners.as_deref(), self.id);
        let scaling = &trained.federation.scaling[self.id as usize];
        answers(family, self.model(), scaling, trained.federation.schema.columns(), features.to_vec())
    }

    /// The epsilon that it has spent at `privacy.delta`; nothing where no epsilon holds.
    pub fn epsilon(&self) -> Option<f64> {
        let summary = self.trained.privacy();
        summary.epsilon?;
        let account = self.trained.outcome.accounts.get(self.id as usize)?;
        Some(Prices::default().epsilon(account, summary.delta))
    }
}
