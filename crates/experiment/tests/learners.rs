//! Learners that a program brings: what is refused, and with which exit code.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use fedkin_config::Source;
use fedkin_learner::model::{Known, Unsolved};
use fedkin_learner::registry::LearnerKind;
use fedkin_learner::{Abilities, Dataset, Failure, Family, Learner, LearnerRow, Output, Reached, Terms};
use fedkin_numeric::buffers::Buffers;
use fedkin_run::{Error, Plan, Registry};
use std::path::Path;
use std::sync::Arc;

/// Fits the mean of the targets, and says of its gradients that they are small.
#[derive(Debug, Clone)]
struct Mean;

impl LearnerKind for Mean {
    type Settings = ();
    const HAS: Abilities = Abilities::PARAMETERS.and(Abilities::PROX).and(Abilities::PREDICT);
    fn build((): &(), _: Known) -> Result<Arc<dyn Family>, String> {
        Ok(Arc::new(Mean))
    }
}

impl Family for Mean {
    fn name(&self) -> &'static str {
        "mean"
    }
    fn has(&self) -> Abilities {
        Self::HAS
    }
    fn output(&self) -> Output {
        Output::Number
    }
    fn dimension(&self, _: usize) -> usize {
        1
    }
    fn join(&self, data: &Arc<Dataset>, _: Terms) -> Result<Box<dyn Learner>, Unsolved> {
        Ok(Box::new(Own(Arc::clone(data))))
    }
    fn predict(&self, w: &[f64], data: &Dataset, each: &mut dyn FnMut(usize, &[f64])) {
        (0..data.rows()).for_each(|row| each(row, w));
    }
    fn claimed_bound(&self) -> Option<f64> {
        Some(0.5)
    }
}

struct Own(Arc<Dataset>);

impl Learner for Own {
    fn rows(&self) -> usize {
        self.0.rows()
    }
    fn dimension(&self) -> usize {
        1
    }
    /// Of the mean of (w - y)^2.
    fn prox(
        &self,
        centre: &[f64],
        weight: f64,
        out: &mut [f64],
        _: &mut Buffers,
    ) -> Result<Reached, Failure> {
        let mean = self.0.targets().iter().sum::<f64>() / self.rows() as f64;
        out[0] = (2.0 * mean + weight * centre[0]) / (2.0 + weight);
        Ok(Reached::EXACT)
    }
}

const ROW: LearnerRow = LearnerRow::of::<Mean>("mean", "the mean of the targets");

const CONFIG: &str = "version = 1\n[run]\nname = \"t\"\nrounds = 30\n\
    [data]\nsource = \"synthetic.clustered-regression\"\nclients_per_server = 4\nclusters = 2\ndimension = 1\n\
    [topology]\ngraph = { kind = \"complete\", servers = 1 }\n[model]\nkind = \"mean\"\n[algorithm]\nname = \"pgfl\"\n";

fn plan(registry: &Registry, text: &str) -> Result<Plan, Error> {
    Plan::load(registry, &Source { name: "t.toml".into(), text: text.into() }, Path::new("."), &[], &[])
}

fn refused(result: Result<Plan, Error>, words: &[&str]) {
    let Err(error) = result else { panic!("accepted, expected {words:?}") };
    assert_eq!(error.exit_code(), 2, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in {error}");
    }
}

fn own() -> Registry {
    let mut registry = Registry::native();
    registry.add_learner(ROW).unwrap();
    registry
}

#[test]
fn a_claimed_bound_is_refused_where_privacy_is_demanded() {
    let registry = own();
    plan(&registry, CONFIG).unwrap().world(0).unwrap();
    let private = format!("{CONFIG}[privacy]\nmechanism = \"zcdp\"\n");
    let words = &[
        "t.toml",
        "\"mean\" claims",
        "at most 0.5",
        "a claim does not count",
        "privacy.bound = \"assumed\"",
    ];
    refused(plan(&registry, &private), words);
    // In a table of its own as well.
    let table = "kind = \"ridge\"\nhuber = 1.0\nfeature_norm = 1.0\n[learner.own]\nkind = \"mean\"\nclusters = [\"cluster-1\"]";
    refused(plan(&registry, &private.replace("kind = \"mean\"", table)), words);
    plan(&registry, &format!("{private}bound = \"assumed\"\ngradient_bound = 0.5\n")).unwrap();
}

#[test]
fn two_rows_of_one_name_are_refused() {
    let mut registry = own();
    let twice = registry.add_learner(ROW).unwrap_err().to_string();
    assert_eq!(
        twice,
        "there are two learners called \"mean\": every row of a registry needs a name of its own"
    );
    let native = LearnerRow::of::<Mean>("ridge", "the mean under another name");
    assert!(registry.add_learner(native).unwrap_err().to_string().contains("two learners called \"ridge\""));
    let method = *registry.methods().find("pgfl").unwrap();
    let method = registry.add_method(method).unwrap_err().to_string();
    assert!(method.contains("two algorithms called \"pgfl\""), "{method}");
    // What was there before is there still.
    plan(&registry, CONFIG).unwrap();
}

/// Names in a refusal come from the registry: those of a program are among them.
#[test]
fn a_missing_ability_is_told_with_the_rows_of_the_program() {
    let text = CONFIG.replace("\"pgfl\"", "\"fedavg\"");
    refused(
        plan(&own(), &text),
        &["fedavg needs", "the learner \"mean\" does not have", "algorithm.name = \"pgfl\""],
    );
    let tree = CONFIG.replace("\"mean\"", "\"tree\"");
    refused(plan(&own(), &tree), &["pgfl needs", "\"tree\"", "\"mean\""]);
}

#[test]
fn a_learner_of_a_program_stands_beside_a_native_one() {
    let table = "kind = \"ridge\"\n[learner.own]\nkind = \"mean\"\nclusters = [\"cluster-1\"]";
    let plan = plan(&own(), &CONFIG.replace("kind = \"mean\"", table)).unwrap();
    let world = plan.world(0).unwrap();
    let mut stage = plan.start(&world, 0).unwrap();
    for _ in 0..30 {
        stage.live.step().unwrap();
    }
    // Without test records: the loss of each client's own learner on its own records.
    assert_eq!(stage.scorer.names()[0], "train_loss.client");
    let found = stage.live.evaluate(&stage.scorer);
    assert!(found[0].count as usize == world.train.len() && found[0].mean().is_finite());
}
