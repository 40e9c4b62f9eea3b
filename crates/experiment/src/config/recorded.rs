//! What configs are known by stays: digests and texts recorded before sections had types of their own.

use super::*;
use crate::Registry;
use crate::library;
use crate::plan::families_of;
use std::fmt::Write as _;

fn source(name: &str, text: &str) -> Source {
    Source { name: name.into(), text: text.into() }
}

/// What identifies a config: as a run in one process, as a run of many machines, and by what it releases.
fn identity(config: &Config, digest: &mut blake3::Hasher) {
    digest.update(&config.fingerprint());
    digest.update(&config.release_fingerprint());
    for (key, value) in config.agreed() {
        digest.update(format!("{key} = {value}\n").as_bytes());
    }
}

/// A config in full. These two lines once stood in every `[model]`, whatever its kind.
fn text(config: &Config, digest: &mut blake3::Hasher) {
    let resolved = config.resolved();
    for line in resolved.lines().filter(|line| !["regularisation = 0.01", "bias = false"].contains(line)) {
        digest.update(line.as_bytes());
        digest.update(b"\n");
    }
}

/// One line per shipped experiment: its name, a digest of what identifies it and its curves, a digest of their texts.
fn digests() -> String {
    let mut lines = String::new();
    for experiment in library::all() {
        let source = source(experiment.name, experiment.text);
        let base = load(&source, &[], &Registry::native().tables()).unwrap();
        let mut all = vec![];
        for curve in &base.curves {
            let step: Vec<Override> = base.sweep.iter().filter_map(|sweep| sweep.step(0)).collect();
            all.push(
                load_variant(&source, &[], &[&curve.set, curve.at(0), &step], &Registry::native().tables())
                    .unwrap(),
            );
        }
        all.push(base);
        let (mut identities, mut texts) = (blake3::Hasher::new(), blake3::Hasher::new());
        for config in &all {
            identity(config, &mut identities);
            text(config, &mut texts);
        }
        let (identities, texts) = (identities.finalize().to_hex(), texts.finalize().to_hex());
        writeln!(lines, "{} {} {}", experiment.name, &identities[..32], &texts[..32]).unwrap();
    }
    lines
}

#[test]
fn shipped_experiments_are_known_by_what_they_always_were() {
    let recorded = include_str!("fixtures/digests.txt");
    for (found, before) in digests().lines().zip(recorded.lines()) {
        assert_eq!(found, before, "name, digest of the fingerprints, digest of the resolved texts");
    }
    assert_eq!(digests().lines().count(), recorded.lines().count());
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
    let learners = fedkin_core::learner::registry::native();
    for (kind, text) in kinds {
        assert!(text.contains("regularisation = ") && text.contains("bias = "), "{kind}");
        let config = load(&source(kind, text), &[], &Registry::native().tables())
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.model_kind, kind);
        families_of(&Registry::native(), &config).unwrap();
        // It is the same run as when it is written out today, and what is not the kind's is gone.
        let again = load(&source(kind, &config.resolved()), &[], &Registry::native().tables()).unwrap();
        assert_eq!((&again, again.fingerprint()), (&config, config.fingerprint()));
        for key in ["regularisation", "bias"] {
            let own = learners.get(kind).unwrap().params.iter().any(|param| param.name == key);
            assert_eq!(config.model.get(key).is_some(), own, "{kind} {key}");
        }
    }
}
