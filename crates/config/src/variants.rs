//! Curves, the sweep and the paper: what makes several runs of one config.

use super::check::Checker;
use super::diagnostic::{ConfigError, Origin};
use super::overrides::{self, Layer, Override};
use super::sections::{CurveKeys, PaperKeys, SweepKeys};
use super::tree::{Body, Branch, Node};
use super::{Claim, Config, Curve, Paper, Source, Sweep, Tables, Tune};
use fedkin_settings::Value;

/// The curves and the sweep with their origins, for checking every combination.
#[derive(Default)]
pub(super) struct Variants {
    pub(super) curves: Vec<CurveLayers>,
    pub(super) sweep: Vec<Layer>,
    pub(super) quick: Layer,
}

/// More points of a grid than this are a slip of the pen.
const MOST_POINTS: usize = 1000;

/// What one curve sets: everywhere, and at each value of the sweep.
#[derive(Default)]
pub(super) struct CurveLayers {
    label: String,
    set: Layer,
    along: Vec<Layer>,
    /// One layer for each point of the grid.
    points: Vec<Layer>,
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
            let (grid, points) = self.grid(&number, branch.remove("grid"));
            let keys: CurveKeys = self.keys(&["curve", &number], &branch).unwrap_or_default();
            let label = keys.label;
            if !label.is_empty() && curves.iter().any(|curve| curve.label == label) {
                self.report(&["curve", &number, "label"], format!("two curves are called {label:?}"));
            }
            curves.push(Curve {
                label: label.clone(),
                method: keys.method,
                set: overrides_of(&layer),
                along: along.iter().map(|layer| overrides_of(layer)).collect(),
                grid,
            });
            variants.curves.push(CurveLayers { label, set: layer, along, points });
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

    /// `grid` of a curve: keys with lists of values; and the points they make, the last key changing fastest.
    fn grid(&mut self, number: &str, node: Option<Node>) -> (Vec<(String, Vec<Value>)>, Vec<Layer>) {
        let Some(node) = node else { return (Vec::new(), Vec::new()) };
        let path = ["curve", number, "grid"];
        let example = "as in grid = { \"algorithm.learning_rate\" = [0.01, 0.1] }";
        let keys = match &node.body {
            Body::Table(keys) if !keys.is_empty() => overrides::flatten(keys),
            Body::Table(_) => {
                self.report(
                    &path,
                    format!("the grid is empty: name at least one key, {example}, or remove it"),
                );
                return (Vec::new(), Vec::new());
            }
            _ => {
                let message = format!("expected a table of keys and lists of values, {example}");
                self.report(&path, message);
                return (Vec::new(), Vec::new());
            }
        };
        if self.root.contains_key("sweep") {
            let message = "a curve with a grid cannot be swept: what is best at one value need not be at the next; remove \
                           `grid`, or [sweep]";
            self.report(&path, message.to_string());
        }
        self.curve_sections(&keys);
        let (mut grid, mut points) = (Vec::new(), vec![Layer::new()]);
        for (key, node) in keys {
            let items = match &node.body {
                Body::List(items) if !items.is_empty() => items.clone(),
                Body::List(_) => {
                    self.push(Some(&node.at), key, format!("no value to try: give at least one, {example}"));
                    return (Vec::new(), Vec::new());
                }
                _ => {
                    let message =
                        format!("expected a list of values to try, found {}; {example}", node.value());
                    self.push(Some(&node.at), key, message);
                    return (Vec::new(), Vec::new());
                }
            };
            if points.len() * items.len() > MOST_POINTS {
                self.report(
                    &path,
                    format!("the grid has more than {MOST_POINTS} points: leave some values out"),
                );
                return (Vec::new(), Vec::new());
            }
            let longer = |point: &Layer| -> Vec<Layer> {
                let with = |item: &Node| point.iter().cloned().chain([(key.clone(), item.clone())]).collect();
                items.iter().map(with).collect()
            };
            points = points.iter().flat_map(longer).collect();
            grid.push((key, items.iter().map(Node::value).collect()));
        }
        (grid, points)
    }

    /// `[tune]`, with its defaults where a curve has a grid.
    pub(super) fn tune(&mut self, curves: &[Curve]) -> Option<Tune> {
        let tuned = curves.iter().any(|curve| !curve.grid.is_empty());
        // A grid that was reported as wrong is not missing.
        let wanted = match self.root.get("curve").map(|node| &node.body) {
            Some(Body::List(items)) => {
                items.iter().any(|item| item.table().is_some_and(|curve| curve.contains_key("grid")))
            }
            _ => false,
        };
        if !tuned && !self.root.contains_key("tune") {
            return None;
        }
        let branch = self.branch("tune")?;
        let tune: Tune = self.keys(&["tune"], &branch).unwrap_or_default();
        if !tuned && !wanted {
            let message =
                "nothing is tuned: give a curve a `grid` of keys and the values to try, or remove [tune]";
            self.report(&["tune"], message.to_string());
        }
        Some(tune)
    }

    /// `[quick]`: keys with their section, as in a curve's `set`.
    pub(super) fn quick(&mut self, variants: &mut Variants) -> Vec<Override> {
        if !self.root.contains_key("quick") {
            return Vec::new();
        }
        let Some(branch) = self.branch("quick") else { return Vec::new() };
        let layer = overrides::flatten(&branch);
        if layer.is_empty() {
            let message =
                "nothing is set: name at least one key, as in \"run.rounds\" = 10, or remove [quick]";
            self.report(&["quick"], message.to_string());
        }
        self.curve_sections(&layer);
        variants.quick = layer;
        overrides_of(&variants.quick)
    }

    /// A variant changes what is run, never what the experiment consists of.
    fn curve_sections(&mut self, layer: &[(String, Node)]) {
        for (key, node) in layer {
            let section = key.split('.').next().unwrap_or_default();
            if !key.contains('.') || ["curve", "sweep", "quick", "paper", "version"].contains(&section) {
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
        let keys: SweepKeys = self.keys(&["sweep"], &branch)?;
        let key = keys.key;
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
        Some(Sweep { key, values: items.iter().map(Node::value).collect(), at_round: keys.at_round })
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
        let keys: PaperKeys = self.keys(&["paper"], &branch).unwrap_or_default();
        let mut read: Vec<Claim> = Vec::new();
        for (i, item) in claims.iter().enumerate() {
            let number = (i + 1).to_string();
            let path = ["paper", "claims", &number];
            let Some(branch) = item.table() else {
                self.report(&path, format!("expected a table {{ text, check }}, found {}", item.value()));
                continue;
            };
            read.extend(self.keys::<Claim>(&path, branch));
        }
        Some(Paper { title: keys.title, source: keys.source, theory: keys.theory, claims: read })
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
    let mut quick = root.clone();
    overrides::apply(&mut quick, &variants.quick, tables);
    for CurveLayers { label, set, along, points } in curves {
        let context = if label.is_empty() { String::new() } else { format!("in curve {label:?}") };
        let mut varied = root.clone();
        overrides::apply(&mut varied, set, tables);
        if !check(&varied, context.clone()) {
            continue;
        }
        let with = |what: &str| if context.is_empty() { what.into() } else { format!("{context}, {what}") };
        for point in points {
            let mut tried = varied.clone();
            overrides::apply(&mut tried, point, tables);
            // Other points have the same slip.
            if !check(&tried, with("in its grid")) {
                break;
            }
        }
        if !variants.quick.is_empty() {
            let mut hurried = quick.clone();
            overrides::apply(&mut hurried, set, tables);
            check(&hurried, with("with [quick]"));
        }
        for (i, step) in variants.sweep.iter().enumerate() {
            let mut swept = varied.clone();
            overrides::apply(&mut swept, along.get(i).map_or(&[], Vec::as_slice), tables);
            overrides::apply(&mut swept, step, tables);
            check(&swept, with("in the sweep"));
        }
    }
    if diagnostics.is_empty() { Ok(config) } else { Err(ConfigError::new(diagnostics)) }
}
