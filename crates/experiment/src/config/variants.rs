//! Curves, the sweep and the paper: what makes several runs of one config.

use super::check::Checker;
use super::diagnostic::{ConfigError, Origin};
use super::overrides::{self, Layer, Override};
use super::tree::{Body, Branch, Node};
use super::{Claim, Config, Curve, Paper, Source, Sweep, Tables, sections};
use fedkin_core::params::{Value, Values};

/// The curves and the sweep with their origins, for checking every combination.
#[derive(Default)]
pub(super) struct Variants {
    pub(super) curves: Vec<CurveLayers>,
    pub(super) sweep: Vec<Layer>,
}

/// What one curve sets: everywhere, and at each value of the sweep.
#[derive(Default)]
pub(super) struct CurveLayers {
    label: String,
    set: Layer,
    along: Vec<Layer>,
}

fn overrides_of(layer: &[(String, Node)]) -> Vec<Override> {
    layer.iter().map(|(key, node)| Override { key: key.clone(), value: node.value() }).collect()
}

impl Checker<'_> {
    pub(super) fn curves(&mut self, variants: &mut Variants) -> Vec<Curve> {
        let items = match self.root.get("curve") {
            None => return Vec::new(),
            Some(Node { body: Body::List(items), .. }) => items.clone(),
            Some(_) => {
                self.report(&["curve"], "expected a list of curves, each written as [[curve]]".to_string());
                return Vec::new();
            }
        };
        let mut curves: Vec<Curve> = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let number = (i + 1).to_string();
            let Some(mut branch) = item.table().cloned() else {
                self.report(&["curve", &number], format!("expected a table, found {}", item.value()));
                continue;
            };
            let layer = match branch.remove("set") {
                None => Layer::new(),
                Some(Node { body: Body::Table(set), .. }) => overrides::flatten(&set),
                Some(node) => {
                    let message = format!("expected a table of keys and values, found {}", node.value());
                    self.report(&["curve", &number, "set"], message);
                    continue;
                }
            };
            self.curve_sections(&layer);
            let along = self.along(&number, branch.remove("along"));
            let values = self.checked(&["curve", &number], sections::CURVE, &branch);
            let label = values.text("label").unwrap_or_default().to_string();
            if !label.is_empty() && curves.iter().any(|curve| curve.label == label) {
                self.report(&["curve", &number, "label"], format!("two curves are called {label:?}"));
            }
            curves.push(Curve {
                label: label.clone(),
                method: values.text("method").map(ToString::to_string),
                set: overrides_of(&layer),
                along: along.iter().map(|layer| overrides_of(layer)).collect(),
            });
            variants.curves.push(CurveLayers { label, set: layer, along });
        }
        curves
    }

    /// `along` of a curve: one table for each value of the sweep.
    fn along(&mut self, number: &str, node: Option<Node>) -> Vec<Layer> {
        let Some(node) = node else { return Vec::new() };
        let sweep = self.root.get("sweep").and_then(Node::table).and_then(|sweep| sweep.get("values"));
        let values = sweep.map_or(0, |node| match &node.body {
            Body::List(items) => items.len(),
            _ => 0,
        });
        let tables: Option<Vec<Branch>> = match &node.body {
            Body::List(items) => items.iter().map(|item| item.table().cloned()).collect(),
            _ => None,
        };
        match tables {
            Some(tables) if values > 0 && tables.len() == values => {
                let layers: Vec<Layer> = tables.iter().map(overrides::flatten).collect();
                for layer in &layers {
                    self.curve_sections(layer);
                }
                layers
            }
            _ => {
                let message = format!(
                    "expected one table of keys and values for each of the {values} values of [sweep]"
                );
                self.report(&["curve", number, "along"], message);
                Vec::new()
            }
        }
    }

    /// A variant changes what is run, never what the experiment consists of.
    fn curve_sections(&mut self, layer: &[(String, Node)]) {
        for (key, node) in layer {
            let section = key.split('.').next().unwrap_or_default();
            if !key.contains('.') || ["curve", "sweep", "paper", "version"].contains(&section) {
                self.push(
                    Some(&node.key),
                    key.clone(),
                    "not a key that a curve or a sweep can set".to_string(),
                );
            }
        }
    }

    pub(super) fn sweep(&mut self, variants: &mut Variants) -> Option<Sweep> {
        self.root.get("sweep")?;
        let mut branch = self.branch("sweep")?;
        let list = branch.remove("values");
        let values = self.checked(&["sweep"], sections::SWEEP, &branch);
        let key = values.text("key")?.to_string();
        let Some(Node { body: Body::List(items), .. }) =
            list.filter(|node| node.value() != Value::List(Vec::new()))
        else {
            let message = "this key is required: a list of at least one value".to_string();
            self.report(&["sweep", "values"], message);
            return None;
        };
        let origin = branch.get("key").map(|node| node.at.clone())?;
        self.curve_sections(&[(
            key.clone(),
            Node { key: origin, ..Node::new(&Origin::File(0..0), &Value::Flag(true)) },
        )]);
        variants.sweep = items.iter().map(|item| vec![(key.clone(), item.clone())]).collect();
        Some(Sweep {
            key,
            values: items.iter().map(Node::value).collect(),
            at_round: values.integer("at_round"),
        })
    }

    pub(super) fn paper(&mut self) -> Option<Paper> {
        self.root.get("paper")?;
        let mut branch = self.branch("paper")?;
        let claims = match branch.remove("claims") {
            None => Vec::new(),
            Some(Node { body: Body::List(items), .. }) => items,
            Some(node) => {
                let message = format!("expected a list of tables {{ text, check }}, found {}", node.value());
                self.report(&["paper", "claims"], message);
                return None;
            }
        };
        let values = self.checked(&["paper"], sections::PAPER, &branch);
        let owned = |values: &Values, key: &str| values.text(key).map(ToString::to_string);
        let mut read = Vec::new();
        for (i, item) in claims.iter().enumerate() {
            let number = (i + 1).to_string();
            let path = ["paper", "claims", &number];
            let Some(branch) = item.table() else {
                self.report(&path, format!("expected a table {{ text, check }}, found {}", item.value()));
                continue;
            };
            let claim = self.checked(&path, sections::CLAIM, branch);
            read.push(Claim {
                text: owned(&claim, "text").unwrap_or_default(),
                check: owned(&claim, "check"),
            });
        }
        let title = owned(&values, "title").unwrap_or_default();
        let theory = values.flag("theory");
        Some(Paper { title, source: owned(&values, "source"), theory, claims: read })
    }
}

/// Reads the base and every combination of curve and sweep value, so that a long experiment cannot fail
/// in the middle because of its config.
pub(super) fn everything(source: &Source, tables: &Tables<'_>, root: &Branch) -> Result<Config, ConfigError> {
    let (config, variants) =
        Checker::new(source, tables, root, String::new()).config().map_err(ConfigError::new)?;
    let mut diagnostics = Vec::new();
    let mut check = |root: &Branch, context: String| {
        let result = Checker::new(source, tables, root, context).config();
        result.map_err(|found| diagnostics.extend(found)).is_ok()
    };
    let plain = [CurveLayers::default()];
    let curves = if variants.curves.is_empty() { &plain[..] } else { &variants.curves };
    for CurveLayers { label, set, along } in curves {
        let context = if label.is_empty() { String::new() } else { format!("in curve {label:?}") };
        let mut varied = root.clone();
        overrides::apply(&mut varied, set, tables);
        if !check(&varied, context.clone()) {
            continue;
        }
        for (i, step) in variants.sweep.iter().enumerate() {
            let mut swept = varied.clone();
            overrides::apply(&mut swept, along.get(i).map_or(&[], Vec::as_slice), tables);
            overrides::apply(&mut swept, step, tables);
            check(
                &swept,
                if context.is_empty() { "in the sweep".into() } else { format!("{context}, in the sweep") },
            );
        }
    }
    if diagnostics.is_empty() { Ok(config) } else { Err(ConfigError::new(diagnostics)) }
}
