//! One default per key: that of its table, of its struct and of the reference page.

use super::native::tables;
use super::sections::{CurveKeys, FIXED, PaperKeys, SweepKeys};
use super::*;
use fedkin_learner::model::settings as model;
use fedkin_settings::{Preset, Settings};
use std::collections::BTreeMap;

/// Keys and defaults of the page by heading: `[run]`, or `[model] kind = "ridge"`.
fn page() -> BTreeMap<String, BTreeMap<String, String>> {
    let text = include_str!("../../../docs/reference.md").replace("\\|", "/");
    let (mut section, mut heading) = (String::new(), String::new());
    let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.replace('`', "");
            heading.clone_from(&section);
        } else if let Some(title) = line.strip_prefix("### ") {
            heading = format!("{section} {}", title.replace('`', ""));
        } else if let [_, key, _, default, _, _] = line.split('|').collect::<Vec<_>>()[..] {
            let key = key.trim().trim_matches('`').to_string();
            all.entry(heading.clone()).or_default().insert(key, default.trim().to_string());
        }
    }
    all
}

/// What the page says of a default.
fn cell(preset: Preset) -> String {
    match preset {
        Preset::Required => "*required*".into(),
        Preset::Absent => "absent".into(),
        preset => format!("`{}`", preset.shown().unwrap()),
    }
}

fn on_the_page(prefix: &str, params: &[Param], found: &BTreeMap<String, String>, heading: &str) -> usize {
    let mut count = 0;
    for param in params {
        let key = format!("{prefix}{}", param.name);
        assert_eq!(found.get(&key), Some(&cell(param.preset)), "{heading} {key}");
        let inner = param.kind.tables();
        count +=
            1 + inner.iter().map(|it| on_the_page(&format!("{key}."), it, found, heading)).sum::<usize>();
    }
    count
}

#[test]
fn every_key_has_on_the_page_the_default_of_its_table() {
    let (page, tables, none) = (page(), tables(), BTreeMap::new());
    let mut all: Vec<(String, &[Param])> =
        FIXED.iter().map(|(name, _, params)| (format!("[{name}]"), *params)).collect();
    all.push(("[topology]".into(), tables.topology));
    for (section, selector, rows) in tables.selected() {
        all.extend(rows.iter().map(|row| (format!("[{section}] {selector} = \"{}\"", row.0), row.2)));
    }
    all.push(("[learner.NAME]".into(), LearnerKeys::PARAMS));
    all.push(("[[curve]]".into(), CurveKeys::PARAMS));
    all.push(("[tune]".into(), Tune::PARAMS));
    all.push(("[sweep]".into(), SweepKeys::PARAMS));
    all.push(("[paper]".into(), PaperKeys::PARAMS));
    let of = |(heading, params): &(String, &[Param])| {
        on_the_page("", params, page.get(heading).unwrap_or(&none), heading)
    };
    let count: usize = all.iter().map(of).sum();
    assert!(count > 250, "{count} keys were compared");
    on_the_page("claims.", Claim::PARAMS, &page["[paper]"], "[paper]");
}

/// The struct has the defaults of its table: its keys.
fn typed<T: Settings + Default>() -> &'static [Param] {
    let written = T::default().values();
    for param in T::PARAMS.iter().filter(|param| !matches!(param.preset, Preset::Required)) {
        let (struct_has, table_has) = (written.get(param.name), param.preset.value());
        assert_eq!(struct_has, table_has.as_ref(), "{} {}", std::any::type_name::<T>(), param.name);
    }
    T::PARAMS
}

/// Names of tables that are among these.
fn covered<'a>(tables: impl Iterator<Item = (&'a str, &'a [Param])>, structs: &[&[Param]]) -> Vec<&'a str> {
    tables
        .filter(|(_, params)| structs.iter().any(|keys| format!("{keys:?}") == format!("{params:?}")))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn every_struct_of_a_section_has_the_defaults_of_its_table() {
    let structs = [
        typed::<Run>(),
        typed::<Participation>(),
        typed::<Kin>(),
        typed::<PrivacySettings>(),
        typed::<Robust>(),
        typed::<Evaluate>(),
        typed::<Network>(),
    ];
    let sections = FIXED.iter().map(|(name, _, params)| (*name, *params));
    let names: Vec<&str> = FIXED.iter().map(|(name, ..)| *name).collect();
    assert_eq!(covered(sections, &structs), names);
    typed::<Tune>();
    typed::<LearnerKeys>();
    typed::<CurveKeys>();
    typed::<SweepKeys>();
    typed::<PaperKeys>();
    typed::<Claim>();
}

/// Methods are compared in `fedkin-core`, sources and partitioners in `fedkin-data`, by their rows as well.
#[test]
fn every_struct_of_a_learner_has_the_defaults_of_its_table() {
    let structs = [
        typed::<model::Ridge>(),
        typed::<model::Logistic>(),
        typed::<model::Poisson>(),
        typed::<model::Quantile>(),
        typed::<model::Softmax>(),
        typed::<model::Graph>(),
        typed::<model::Tree>(),
        typed::<model::Knn>(),
        typed::<model::Forest>(),
        typed::<model::Mixed>(),
        typed::<model::Net>(),
    ];
    let learners = fedkin_learner::registry::native();
    let rows = learners.iter().map(|row| (row.name, row.params));
    assert_eq!(covered(rows, &structs), learners.names().collect::<Vec<_>>());
}
