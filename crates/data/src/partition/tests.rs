//! What every partitioner promises, and what each one is for.

use super::*;
use crate::{Request, Task};
use fedkin_settings::{Value, Values};
use std::collections::BTreeSet;
use std::path::Path;

/// The request of a config with these keys of a partition.
fn dealt_by(pairs: &[(&str, Value)], pool: Pool<'_>, seed: u64) -> Result<Deal, String> {
    let registry = crate::native();
    let row = registry.source("mnist").unwrap();
    let raw = pairs.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
    let values = Values::check(&registry.params(row), &raw).map_err(|problems| problems[0].to_string())?;
    let topology = crate::TopologySettings::default().spec(Path::new("")).unwrap();
    let request = Request {
        registry,
        source: "mnist",
        values: &values,
        base: Path::new(""),
        topology: &topology,
        task: Task::Classes(10),
        seed,
        require_connected: false,
    };
    let Some(Value::Text(name)) = values.get(KEY) else { panic!() };
    let dealt = request.partition(name).and_then(|law| law.deal(pool, seed)?.checked(name, pool));
    dealt.map_err(|error| error.to_string())
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// 2000 records of 10 classes, 200 each, in a mixed order.
fn labels() -> Vec<u32> {
    (0..2000).map(|i| i * 7 % 10).collect()
}

fn deal_of(pairs: &[(&str, Value)], seed: u64) -> Result<Deal, String> {
    let labels = labels();
    let pool = Pool { labels: &labels, classes: 10, square: true };
    dealt_by(pairs, pool, seed)
}

fn counts(records: &[u32]) -> Vec<usize> {
    let labels = labels();
    let mut counts = vec![0; 10];
    for &record in records {
        counts[labels[record as usize] as usize] += 1;
    }
    counts
}

#[test]
fn the_key_names_every_row_of_the_table() {
    let registry = crate::native();
    let params = registry.params(registry.source("mnist").unwrap());
    let key = params.iter().find(|param| param.name == KEY).unwrap();
    let fedkin_settings::Kind::Choice(words) = key.kind else { panic!() };
    assert_eq!(words[0], "tasks");
    assert_eq!(words[1..], registry.partitioners.names().collect::<Vec<_>>());
}

#[test]
fn no_record_is_held_twice_nobody_is_empty_and_a_seed_gives_the_same_again() {
    let cases: &[&[(&str, Value)]] = &[
        &[("partition", text("iid")), ("clients", Value::Integer(7))],
        &[("partition", text("dirichlet")), ("alpha", Value::Number(0.2))],
        &[("partition", text("dirichlet")), ("alpha", Value::Number(0.2)), ("samples", Value::Integer(60))],
        &[("partition", text("dirichlet")), ("alpha", Value::Number(0.1)), ("samples", Value::Integer(100))],
        &[("partition", text("shards")), ("shards", Value::Integer(3))],
        &[("partition", text("quantity")), ("alpha", Value::Number(2.0))],
        &[("partition", text("quantity")), ("exponent", Value::Number(1.0)), ("samples", Value::Integer(90))],
        &[("partition", text("rotation")), ("alpha", Value::Number(1.0))],
        &[("partition", text("permutation")), ("clusters", Value::Integer(3))],
    ];
    for case in cases {
        let dealt = deal_of(case, 5).unwrap();
        let all: Vec<u32> = dealt.clients.concat();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{case:?}");
        assert!(dealt.clients.iter().all(|records| !records.is_empty()), "{case:?}");
        assert_eq!(dealt.cluster.len(), dealt.clients.len());
        let whole = case.iter().any(|(key, _)| *key == "samples") || all.len() == 2000;
        assert!(whole, "{case:?} dealt {} records", all.len());
        assert_eq!(deal_of(case, 5).unwrap().clients, dealt.clients);
        assert_ne!(deal_of(case, 6).unwrap().clients, dealt.clients, "{case:?}");
    }
}

#[test]
fn both_readings_of_dirichlet_skew_labels_more_with_a_smaller_alpha() {
    // The share of a client's most frequent label, averaged over clients.
    let skew = |by: &str, alpha: f64| {
        let case = [
            ("partition", text("dirichlet")),
            ("alpha", Value::Number(alpha)),
            ("by", text(by)),
            ("least", Value::Integer(1)),
        ];
        let dealt = deal_of(&case, 1).unwrap();
        let top = |records: &Vec<u32>| *counts(records).iter().max().unwrap() as f64 / records.len() as f64;
        dealt.clients.iter().map(top).sum::<f64>() / dealt.clients.len() as f64
    };
    for by in ["client", "label"] {
        assert!(skew(by, 0.1) > skew(by, 1.0) + 0.1 && skew(by, 1.0) > skew(by, 100.0) + 0.1, "{by}");
        assert!(skew(by, 1000.0) < 0.25, "{by}: {}", skew(by, 1000.0));
    }
}

#[test]
fn sizes_are_equal_by_client_and_differ_by_label() {
    let case = [("partition", text("dirichlet")), ("alpha", Value::Number(0.5))];
    let sizes = |case: &[(&str, Value)]| {
        deal_of(case, 2).unwrap().clients.iter().map(Vec::len).collect::<BTreeSet<_>>()
    };
    assert!(sizes(&case).len() > 5 && *sizes(&case).first().unwrap() >= 10);
    let fixed = [&case[..], &[("samples", Value::Integer(60))]].concat();
    assert_eq!(sizes(&fixed), BTreeSet::from([60]));
    let shared = [&fixed[..], &[("by", text("label"))]].concat();
    let dealt = deal_of(&shared, 2).unwrap();
    assert_eq!(dealt.clients.iter().map(Vec::len).sum::<usize>(), 1200);
    assert!(sizes(&shared).len() > 5);
}

#[test]
fn shards_hold_few_labels_and_power_laws_are_steep() {
    // Shards of 50 divide labels of 200 evenly: a client of 2 shards sees at most 2 labels.
    let dealt = deal_of(&[("partition", text("shards"))], 3).unwrap();
    for records in &dealt.clients {
        assert!(counts(records).iter().filter(|count| **count > 0).count() <= 2 && records.len() == 100);
    }
    let case =
        [("partition", text("quantity")), ("exponent", Value::Number(1.0)), ("clients", Value::Integer(4))];
    let mut sizes: Vec<usize> = deal_of(&case, 3).unwrap().clients.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [240, 320, 480, 960]);
}

#[test]
fn clusters_are_known_and_different() {
    let turned = deal_of(&[("partition", text("rotation"))], 3).unwrap();
    assert_eq!(
        turned.clusters.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["turned-000", "turned-090", "turned-180", "turned-270"]
    );
    let renamed = deal_of(&[("partition", text("permutation")), ("clusters", Value::Integer(5))], 3).unwrap();
    assert_eq!(renamed.clusters.len(), 5);
    for q in 0..5 {
        assert_eq!(renamed.cluster.iter().filter(|cluster| **cluster == q).count(), 4);
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_numbers() {
    let refuse = |pairs: &[(&str, Value)], parts: &[&str]| {
        let message = deal_of(pairs, 1).unwrap_err();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    };
    let dirichlet = |alpha: f64| vec![("partition", text("dirichlet")), ("alpha", Value::Number(alpha))];
    let with = |mut base: Vec<(&'static str, Value)>, key: &'static str, number: i64| {
        base.push((key, Value::Integer(number)));
        base
    };
    refuse(
        &with(dirichlet(0.01), "least", 90),
        &["`least`", "Dirichlet(0.01)", "20 clients", "at least 90 of the 2000 records", "1000 draws"],
    );
    refuse(&with(dirichlet(0.5), "least", 101), &["20 clients with at least 101 records each need 2020"]);
    refuse(&with(dirichlet(0.5), "clients", 2001), &["`clients`", "2001 records but there are 2000"]);
    refuse(
        &with(dirichlet(0.5), "samples", 101),
        &["`samples`", "20 clients with 101 records each want 2020 records but there are 2000"],
    );
    refuse(&[("partition", text("dirichlet"))], &["`alpha`", "required"]);
    refuse(
        &[("partition", text("iid")), ("alpha", Value::Number(1.0))],
        &["`alpha`", "partition = \"iid\" has no such key", "\"dirichlet\""],
    );
    refuse(&[("partition", text("quantity"))], &["`alpha`", "`exponent`"]);
    refuse(&[("partition", text("rotation")), ("clusters", Value::Integer(3))], &["2 or 4 clusters, not 3"]);
    refuse(&[("partition", text("natural"))], &["no clients of their own"]);
    refuse(
        &[("partition", text("shards")), ("shards", Value::Integer(101))],
        &["need 2020 records at least"],
    );
    let regression = Pool { labels: &[0; 50], classes: 0, square: false };
    let message = dealt_by(&dirichlet(0.5), regression, 1).unwrap_err();
    assert!(message.contains("goes by classes"), "{message}");
    let message = deal_of(&[("partition", text("dirichlett"))], 1).unwrap_err();
    assert!(message.contains("did you mean `dirichlet`?"), "{message}");
}

#[test]
fn a_deal_that_breaks_a_promise_is_refused() {
    let labels = [0, 1, 0];
    let pool = Pool { labels: &labels, classes: 2, square: false };
    let message = |deal: Deal| deal.checked("own", pool).unwrap_err().to_string();
    assert!(message(Deal::whole(vec![vec![0, 1], vec![1]])).contains("dealt record 1 twice"));
    assert!(message(Deal::whole(vec![vec![3]])).contains("dealt record 3 of 3"));
    let lone = Deal { cluster: vec![1], ..Deal::whole(vec![vec![0]]) };
    assert!(message(lone).contains("a cluster that it does not have"));
    let turned = Deal { clusters: vec![("all".into(), Twist::Turn(1))], ..Deal::whole(vec![vec![0]]) };
    assert!(message(turned).contains("no square images"));
    assert_eq!(Deal::whole(vec![vec![2, 0]]).checked("own", pool).unwrap().clients, [[0, 2]]);
}
