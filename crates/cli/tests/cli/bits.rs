//! The models of short runs of every method, as they were before learners, methods and settings became open. A bit that
//! has to change is written down in the changelog, and recorded here again.

use crate::bench::Bench;

#[test]
fn every_method_has_the_bits_that_were_recorded() {
    let bench = Bench::new();
    let (mut runs, mut methods) = (0, std::collections::BTreeSet::new());
    for case in include_str!("bits.txt").split("=== ").skip(1) {
        let (head, config) = case.split_once('\n').unwrap();
        let (name, recorded) = head.rsplit_once(' ').unwrap();
        bench.write("bits.toml", config);
        let found = bench.json(&["run", "bits.toml", "--json", "--out", &format!("out-{runs}")]);
        assert_eq!(found["models_sha256"], recorded, "{name}");
        methods.insert(found["algorithm"].as_str().unwrap().to_string());
        runs += 1;
    }
    assert_eq!(runs, 90);
    let all = fedkin_method::registry::native();
    assert!(all.names().all(|name| methods.contains(name)), "{methods:?}");
}
