//! Configs as earlier versions wrote them out still load.

use super::native::tables;
use super::*;
use fedkin_learner::model::Known;

fn source(name: &str, text: &str) -> Source {
    Source { name: name.into(), text: text.into() }
}

#[test]
fn configs_that_were_written_out_before_kinds_had_tables_still_load() {
    let kinds = [
        ("ridge", include_str!("fixtures/kinds/ridge.toml")),
        ("logistic", include_str!("fixtures/kinds/logistic.toml")),
        ("softmax", include_str!("fixtures/kinds/softmax.toml")),
        ("graph", include_str!("fixtures/kinds/graph.toml")),
        ("tree", include_str!("fixtures/kinds/tree.toml")),
        ("knn", include_str!("fixtures/kinds/knn.toml")),
        ("forest", include_str!("fixtures/kinds/forest.toml")),
        ("mixed", include_str!("fixtures/kinds/mixed.toml")),
        ("net", include_str!("fixtures/kinds/net.toml")),
    ];
    let learners = fedkin_learner::registry::native();
    for (kind, text) in kinds {
        assert!(text.contains("regularisation = ") && text.contains("bias = "), "{kind}");
        let config = load(&source(kind, text), &[], &tables()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.model_kind, kind);
        learners.get(kind).unwrap().build(&config.model, Known::default()).unwrap();
        // It is the same run as when it is written out today, and what is not the kind's is gone.
        let again = load(&source(kind, &config.resolved()), &[], &tables()).unwrap();
        assert_eq!((&again, again.fingerprint()), (&config, config.fingerprint()));
        for key in ["regularisation", "bias"] {
            let own = learners.get(kind).unwrap().params.iter().any(|param| param.name == key);
            assert_eq!(config.model.get(key).is_some(), own, "{kind} {key}");
        }
    }
}
