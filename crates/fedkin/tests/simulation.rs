//! The library front: what it refuses, what it gives, and that it is the engine of the command line.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use fedkin::data::sources::ClusteredRegression;
use fedkin::learner::{Logistic, Output, Ridge, Tree};
use fedkin::method::{
    FedAvg, FedAvgSettings, Local, LocalSettings, PersFlAgnostic, PersFlAgnosticSettings, Pgfl, PgflSettings,
    Tau,
};
use fedkin::privacy::{BoundSource, Protection};
use fedkin::rooms::settings::Settings;
use fedkin::{Control, Evaluate, Federation, PrivacySettings, Simulation};
use std::sync::atomic::AtomicBool;

fn federation() -> Federation {
    let law = ClusteredRegression { dimension: 6, ..ClusteredRegression::default() };
    fedkin::load(&law, Output::Number, 5).unwrap()
}

fn pgfl(federation: Federation) -> Simulation {
    let settings = PgflSettings { inter_cluster: Tau::Fixed(0.1), ..PgflSettings::default() };
    Simulation::new(federation).method::<Pgfl>(settings).learner(Ridge::default()).rounds(20).seed(5)
}

#[track_caller]
fn refused(simulation: &Simulation) -> String {
    let Err(error) = simulation.run() else { panic!("this is to be refused") };
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string()
}

#[test]
fn a_simulation_has_the_bits_of_the_same_config() {
    let trained = pgfl(federation()).run().unwrap();
    let text = "version = 1\n[run]\nname = \"same\"\nseed = 5\nrounds = 20\n[data]\n\
                source = \"synthetic.clustered-regression\"\ndimension = 6\n[model]\nkind = \"ridge\"\n[algorithm]\n\
                name = \"pgfl\"\ninter_cluster = 0.1\n";
    let folder = tempfile::tempdir().unwrap();
    let registry = fedkin::Registry::native();
    let source = fedkin::rooms::config::Source { name: "same.toml".into(), text: text.into() };
    let plan = fedkin::rooms::run::Plan::load(&registry, &source, folder.path(), &[], &[]).unwrap();
    let stop = AtomicBool::new(false);
    let control = Control { stop: &stop, tick: &|| {} };
    let out = folder.path().join("out");
    let finished = fedkin::rooms::experiment::run(&plan, &out, folder.path(), &control).unwrap();
    assert_eq!(trained.models_sha256(), finished.models_sha256);
    assert_eq!(trained.metrics(), finished.r#final);
    assert_eq!(trained.rounds(), 20);
}

#[test]
fn rounds_can_be_watched_and_left_between_any_two() {
    let simulation = pgfl(federation());
    let mut rounds = simulation.start().unwrap();
    let early: Vec<_> = rounds.by_ref().take(7).map(Result::unwrap).collect();
    assert_eq!(early.iter().map(|round| round.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert!(early.iter().all(|round| round.counted == 150 && round.metric("nmsd.client").is_some()));
    let left = rounds.trained();
    assert_eq!(left.rounds(), 7);
    assert_eq!(left.metric("nmsd.client"), early[6].metric("nmsd.client"));
    let whole = simulation.run().unwrap();
    assert_eq!(whole.history("nmsd.client").len(), 20);
    assert_eq!(whole.history("nmsd.client")[..7], left.history("nmsd.client"));
    assert_ne!(whole.models_sha256(), left.models_sha256());
    let own = whole.clients().map(|client| client.metric("nmsd.client").unwrap());
    let mean = own.sum::<f64>() / 150.0;
    assert!((mean - whole.metric("nmsd.client").unwrap()).abs() < 1e-12 * mean);
}

#[test]
fn what_is_missing_or_wrong_is_said_with_the_key_to_blame() {
    let bare = Simulation::new(federation());
    assert!(refused(&bare).contains("no method was chosen"));
    assert!(refused(&bare.clone().method::<Pgfl>(PgflSettings::default())).contains("what clients fit"));
    let wrong = PgflSettings { penalty: -1.0, ..PgflSettings::default() };
    let told = refused(&pgfl(federation()).method::<Pgfl>(wrong));
    assert!(told.contains("simulation: `algorithm.penalty`"), "{told}");
    let told = refused(&pgfl(federation()).method_named("pgfk", &()));
    assert!(told.contains("pgfk") && told.contains("did you mean `pgfl`"), "{told}");
    let told = refused(&pgfl(federation()).rounds(0));
    assert!(told.contains("`run.rounds`"), "{told}");
    let told = refused(&pgfl(federation()).learner(Tree::default()));
    assert!(told.contains("parameters that can be averaged") && told.contains("persfl-agnostic"), "{told}");
    // Numbers are no labels, and the first client that has one is named.
    let told = refused(&pgfl(federation()).learner(Logistic::default()));
    assert!(told.contains("client \"client-000000\"") && told.contains("logistic"), "{told}");
}

#[test]
fn clients_of_one_federation_fit_different_learners() {
    let mut builder = Federation::builder();
    for k in 0..8_u8 {
        let x: Vec<f64> = (0..12).map(|i| f64::from((i * 5 + k) % 12) / 6.0 - 1.0).collect();
        let y = x.iter().map(|x| if *x > 0.0 { 1.0 } else { -1.0 }).collect();
        builder = builder.client(format!("c{k}"), 1, x, y);
        if k % 2 == 0 {
            builder = builder.learner("bush");
        }
    }
    let settings = PersFlAgnosticSettings { candidates: 3, ..PersFlAgnosticSettings::default() };
    let trained = Simulation::new(builder.build().unwrap())
        .method::<PersFlAgnostic>(settings)
        .learner(Ridge::default())
        .learner_named("bush", Tree { leaf: 2, ..Tree::default() })
        .rounds(5)
        .run()
        .unwrap();
    let says = |name: &str| trained.client(name).unwrap().predict(&[0.9, -0.9]).unwrap();
    assert!((says("c0")[0] - 1.0).abs() < 0.3 && (says("c0")[1] + 1.0).abs() < 0.3, "{:?}", says("c0"));
    // A line through these steps overshoots at the ends.
    assert!(says("c1")[0] > 1.1, "{:?}", says("c1"));
}

#[test]
fn a_run_directory_is_written_resumed_and_read_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let simulation = pgfl(federation()).evaluate(Evaluate { every: 5, ..Evaluate::default() });
    let stop = AtomicBool::new(false);
    let control = Control { stop: &stop, tick: &|| {} };
    let finished = simulation.run_in(folder.path(), &control).unwrap();
    assert_eq!(finished.models_sha256, simulation.run().unwrap().models_sha256());
    assert!(folder.path().join("report.html").exists());
    let again = simulation.run_in(folder.path(), &control).unwrap();
    assert_eq!(again.models_sha256, finished.models_sha256);
    let told = simulation.clone().rounds(21).run_in(folder.path(), &control).unwrap_err().to_string();
    assert!(told.contains("another config") && told.contains("rounds"), "{told}");
}

#[test]
fn privacy_is_charged_and_shown_per_client() {
    let privacy = PrivacySettings {
        mechanism: Protection::Zcdp,
        bound: BoundSource::Assumed,
        gradient_bound: Some(1.0),
        initial_budget: 1e-3,
        growth: 1.0,
        ..PrivacySettings::default()
    };
    let trained = pgfl(federation()).privacy(privacy).run().unwrap();
    let summary = trained.privacy();
    assert!((summary.zcdp - 20e-3).abs() < 1e-9, "{summary:?}");
    let epsilon = trained.client("client-000000").unwrap().epsilon().unwrap();
    assert_eq!(Some(epsilon), summary.epsilon);
    assert!(trained.warnings().iter().any(|warning| warning.to_string().contains("assumed, not enforced")));
    let open = Simulation::new(federation()).method::<Local>(LocalSettings::default());
    let open = open.learner(Ridge::default()).rounds(1).run().unwrap();
    assert_eq!(open.client("client-000000").unwrap().epsilon(), None);
}

#[test]
fn a_run_that_diverges_ends_with_a_typed_error() {
    let mut settings = FedAvgSettings::default();
    settings.batches.learning_rate = 1e9;
    assert!(settings.validated().is_ok());
    let simulation = Simulation::new(federation()).method::<FedAvg>(settings).learner(Ridge::default());
    let error = simulation.run().err().unwrap();
    assert_eq!(error.exit_code(), 4, "{error}");
    assert!(matches!(error, fedkin::Error::Stopped { .. }), "{error:?}");
}
