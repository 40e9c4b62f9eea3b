//! The defaults that help shows are those of the reference page, key by key.

use crate::bench::Bench;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../../docs/reference.md");

/// Keys and defaults of a method on the page.
fn on_the_page(method: &str) -> BTreeMap<String, String> {
    let heading = format!("### `name = \"{method}\"`");
    let rows = PAGE.lines().skip_while(|line| *line != heading).skip(1);
    let rows = rows.take_while(|line| !line.starts_with('#')).map(|line| line.replace("\\|", "/"));
    rows.filter_map(|line| match line.split('|').collect::<Vec<_>>()[..] {
        [_, key, _, default, _, _] if key.contains('`') => {
            Some((key.trim().trim_matches('`').to_string(), default.trim().trim_matches('`').to_string()))
        }
        _ => None,
    })
    .collect()
}

/// All sections, methods, learners, mechanisms, sources and partitioners.
#[test]
fn the_reference_that_is_printed_is_the_page() {
    let printed = Bench::new().good(&["config", "reference"]);
    let lines: Vec<&str> = printed.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(lines.len() > 300, "{} keys", lines.len());
    let missing: Vec<&&str> =
        lines.iter().filter(|line| !PAGE.lines().any(|known| known == **line)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn help_on_a_method_shows_the_defaults_of_the_page() {
    let bench = Bench::new();
    let all = bench.json(&["algorithms", "--json"]);
    let mut compared = 0;
    for method in all["algorithms"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        let page = on_the_page(name);
        let parameters = method["parameters"].as_array().unwrap();
        assert_eq!(page.len(), parameters.len(), "{name}");
        let text = bench.good(&["algorithms", name]);
        for parameter in parameters {
            let key = parameter["name"].as_str().unwrap();
            let (default, words) =
                match (parameter["default"].as_str(), parameter["required"].as_bool().unwrap()) {
                    (Some(value), _) => (value.to_string(), format!("default {value}")),
                    (None, true) => ("*required*".into(), "required".into()),
                    (None, false) => ("absent".into(), "optional".into()),
                };
            assert_eq!(page[key], default, "{name}.{key}");
            assert!(text.lines().any(|line| line == format!("{key}  {words}")), "{name}.{key} in\n{text}");
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared} keys were compared");
}
