//! From the tree to a [`Config`]: every section against its table, then what spans sections.

use super::diagnostic::{Diagnostic, Origin};
use super::sections;
use super::tree::{self, Body, Branch, Node, values};
use super::variants::Variants;
use super::{Config, Row, Source, Tables, VERSION};
use fedkin_core::hypothesis::KEYS as HYPOTHESIS_KEYS;
use fedkin_core::model::{GRAPH_KEYS, LINEAR_KEYS};
use fedkin_core::params::{Param, Preset, Value, Values, suggest};
use fedkin_core::privacy::DpSgd;

/// Keys of `[privacy]` that `zcdp` alone reads.
const ZCDP_KEYS: &[&str] = &["initial_budget", "growth", "bound", "gradient_bound"];

/// Whether a key of a section says something else than its default: a config written out in full has all of those.
fn changed<'v>(params: &[Param], values: &'v Values) -> impl Fn(&str) -> bool + 'v {
    let optional: Vec<Param> =
        params.iter().filter(|p| !matches!(p.preset, Preset::Required)).copied().collect();
    let presets = Values::check(&optional, &std::collections::BTreeMap::new()).unwrap_or_default();
    move |key| values.get(key) != presets.get(key)
}

/// Collects what is wrong while a tree is read.
pub(super) struct Checker<'a> {
    source: &'a Source,
    tables: &'a Tables<'a>,
    pub(super) root: &'a Branch,
    /// Which variant is being read, for the messages.
    context: String,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(source: &'a Source, tables: &'a Tables<'a>, root: &'a Branch, context: String) -> Self {
        Self { source, tables, root, context, diagnostics: Vec::new() }
    }

    /// Reads all sections, and what the variants set, with its origins.
    pub(super) fn config(mut self) -> Result<(Config, Variants), Vec<Diagnostic>> {
        if !self.version() {
            return Err(self.diagnostics);
        }
        self.unknown_sections();
        let run = self.section("run", sections::RUN);
        let (data_source, data) = self.selected("data", "source", "data source", self.tables.sources);
        let topology = self.section("topology", self.tables.topology);
        let model = self.section("model", sections::MODEL);
        let (algorithm, algorithm_values) =
            self.selected("algorithm", "name", "algorithm", self.tables.algorithms);
        let participation = self.section("participation", sections::PARTICIPATION);
        let kin = self.section("kin", sections::KIN);
        let privacy = self.section("privacy", sections::PRIVACY);
        let evaluate = self.section("evaluate", sections::EVALUATE);
        let network = self.section("network", sections::NETWORK);
        let mut variants = Variants::default();
        let curves = self.curves(&mut variants);
        let tune = self.tune(&curves);
        let sweep = self.sweep(&mut variants);
        let quick = self.quick(&mut variants);
        let paper = self.paper();
        let config = Config {
            run,
            data_source,
            data,
            topology,
            model,
            algorithm,
            algorithm_values,
            participation,
            kin,
            privacy,
            evaluate,
            network,
            curves,
            tune,
            sweep,
            quick,
            paper,
        };
        if self.diagnostics.is_empty() {
            self.across(&config);
        }
        if self.diagnostics.is_empty() { Ok((config, variants)) } else { Err(self.diagnostics) }
    }

    fn version(&mut self) -> bool {
        match self.root.get("version").map(Node::value) {
            Some(Value::Integer(VERSION)) => return true,
            Some(other) => self.report(
                &["version"],
                format!("version {other} is not known: this Fedkin reads version {VERSION}"),
            ),
            None => self.report(
                &["version"],
                format!("the version of the format is missing: write `version = {VERSION}` at the top"),
            ),
        }
        false
    }

    fn unknown_sections(&mut self) {
        let root = self.root;
        let known = || std::iter::once("version").chain(sections::NAMES.iter().copied());
        for (name, node) in root.iter().filter(|(name, _)| known().all(|known| known != name.as_str())) {
            let what = if node.table().is_some() { "section" } else { "key" };
            let hint = match self.home_of(name, "") {
                Some(section) => format!("; did you mean `{section}.{name}`?"),
                None => suggest(name, known()),
            };
            self.report_key(&[name], format!("unknown {what}{hint}"));
        }
    }

    /// The one other section that knows this key.
    fn home_of(&self, key: &str, except: &str) -> Option<&'a str> {
        let tables = self.tables;
        let chosen = |section: &str, selector: &str, rows: &'a [Row<'a>]| {
            let name = self.root.get(section)?.table()?.get(selector)?.text()?;
            rows.iter().find(|row| row.0 == name).map(|row| row.2)
        };
        let rows = [
            ("data", chosen("data", "source", tables.sources).unwrap_or_default()),
            ("topology", tables.topology),
            ("algorithm", chosen("algorithm", "name", tables.algorithms).unwrap_or_default()),
        ];
        let fixed = sections::FIXED.iter().map(|row| (row.0, row.2));
        let mut homes = fixed
            .chain(rows)
            .filter(|(section, params)| *section != except && params.iter().any(|param| param.name == key))
            .map(|(section, _)| section);
        homes.next().filter(|_| homes.next().is_none())
    }

    /// The table of a section; empty where it is absent, so that only its required keys are missed.
    pub(super) fn branch(&mut self, name: &str) -> Option<Branch> {
        match self.root.get(name) {
            None => Some(Branch::new()),
            Some(Node { body: Body::Table(branch), .. }) => Some(branch.clone()),
            Some(node) => {
                let message = match &node.body {
                    Body::List(_) => format!("expected one section, written as [{name}]"),
                    _ => format!("expected a section [{name}], found {}", node.value()),
                };
                self.report(&[name], message);
                None
            }
        }
    }

    fn section(&mut self, name: &str, params: &[Param]) -> Values {
        match self.branch(name) {
            Some(branch) => self.checked(&[name], params, &branch),
            None => Values::default(),
        }
    }

    /// Values that passed their table; what did not is reported under `path`.
    pub(super) fn checked(&mut self, path: &[&str], params: &[Param], branch: &Branch) -> Values {
        match Values::check(params, &values(branch)) {
            Ok(values) => values,
            Err(problems) => {
                for problem in problems {
                    let full: Vec<&str> =
                        path.iter().copied().chain(problem.path.iter().map(String::as_str)).collect();
                    let unknown = problem.message.starts_with("unknown key");
                    match full.as_slice() {
                        [section, key] if unknown => match self.home_of(key, section) {
                            Some(home) => self.report_key(
                                &full,
                                format!("unknown key here; did you mean `{key}` of section [{home}]?"),
                            ),
                            None => self.report_key(&full, problem.message),
                        },
                        _ if unknown => self.report_key(&full, problem.message),
                        _ => self.report(&full, problem.message),
                    }
                }
                Values::default()
            }
        }
    }

    /// A section in which one key selects the table of the others.
    fn selected(&mut self, section: &str, selector: &str, what: &str, rows: &[Row<'_>]) -> (String, Values) {
        let nothing = (String::new(), Values::default());
        let Some(mut branch) = self.branch(section) else { return nothing };
        let Some(node) = branch.remove(selector) else {
            let known: Vec<&str> = rows.iter().map(|row| row.0).collect();
            self.report(
                &[section, selector],
                format!("this key is required: the {what} ({})", known.join(", ")),
            );
            return nothing;
        };
        let Some(name) = node.text() else {
            self.report(&[section, selector], format!("expected the {what} as text, found {}", node.value()));
            return nothing;
        };
        let Some(row) = rows.iter().find(|row| row.0 == name) else {
            let hint = suggest(name, rows.iter().map(|row| row.0));
            self.report(&[section, selector], format!("there is no {what} {name:?}{hint}"));
            return nothing;
        };
        (name.to_string(), self.checked(&[section], row.2, &branch))
    }

    /// What no single key can tell.
    fn across(&mut self, config: &Config) {
        let name = config.run.text("name").unwrap_or_default();
        if name.is_empty()
            || name.starts_with('.')
            || name.contains(|c: char| c.is_control() || "/\\:".contains(c))
        {
            self.report(
                &["run", "name"],
                format!("{name:?} cannot name a folder: use letters, digits, - and _"),
            );
        }
        self.model(config);
        self.protects(config);
        self.kin(config);
        for (key, needs) in [("global_most", "global")] {
            if config.evaluate.get(key).is_some() && !config.evaluate.flag(needs) {
                self.report_key(
                    &["evaluate", key],
                    format!("this key does nothing without `{needs} = true`"),
                );
            }
        }
        let rounds = config.run.integer("rounds").unwrap_or_default();
        if let Some(round) = config.sweep.as_ref().and_then(|sweep| sweep.at_round)
            && round > rounds
        {
            self.report(
                &["sweep", "at_round"],
                format!("round {round} is never reached: run.rounds is {rounds}"),
            );
        }
    }

    /// Keys of another kind of model would do nothing.
    fn model(&mut self, config: &Config) {
        let kind = config.model.text("kind").unwrap_or_default();
        let given = changed(sections::MODEL, &config.model);
        let agnostic = ["tree", "knn", "forest", "mixed"].contains(&kind);
        if !agnostic {
            for key in HYPOTHESIS_KEYS.iter().filter(|key| given(key)) {
                self.report_key(
                    &["model", key],
                    format!("this key is of kind = \"tree\", \"knn\", \"forest\" or \"mixed\" and does nothing with {kind:?}"),
                );
            }
        } else if kind != "mixed" {
            let idle = |key: &str| match key {
                "leaf" | "depth" => kind == "knn",
                "neighbours" => kind != "knn",
                "trees" => kind != "forest",
                _ => false,
            };
            let other = HYPOTHESIS_KEYS.iter().copied().filter(|key| idle(key));
            for key in
                other.chain(LINEAR_KEYS.iter().copied()).chain(["regularisation"]).filter(|key| given(key))
            {
                self.report_key(&["model", key], format!("this key does nothing with kind = {kind:?}"));
            }
        }
        if kind == "graph" {
            for key in LINEAR_KEYS.iter().filter(|key| given(key)) {
                self.report_key(
                    &["model", key],
                    "this key is of linear models and does nothing with kind = \"graph\"".to_string(),
                );
            }
            if given("regularisation") {
                let message =
                    "a graph has no |w|^2 of a linear model: its weights are held by `alpha` and `beta`";
                self.report_key(&["model", "regularisation"], message.to_string());
            }
            return;
        }
        for key in GRAPH_KEYS.iter().filter(|key| given(key)) {
            self.report_key(
                &["model", key],
                format!("this key is of kind = \"graph\" and does nothing with {kind:?}"),
            );
        }
        if kind == "logistic" && given("huber") {
            self.report(&["model", "huber"], "the Huber loss is for kind = \"ridge\" only".to_string());
        }
    }

    /// Keys of clusters that are found do nothing where they are given.
    fn kin(&mut self, config: &Config) {
        let given = changed(sections::KIN, &config.kin);
        let infer = config.kin.text("clusters") == Some("infer");
        let by_loss = infer && config.kin.text("by") != Some("rewards");
        for (keys, read, needs) in [
            (&["by"][..], infer, "clusters = \"infer\""),
            (&["search_rounds"], infer && !by_loss, "clusters = \"infer\" and by = \"rewards\""),
            (&["count", "warm_up", "forming", "start"], by_loss, "clusters = \"infer\" and by = \"loss\""),
        ] {
            for key in keys.iter().filter(|key| !read && given(key)) {
                self.report_key(&["kin", key], format!("this key does nothing without {needs}"));
            }
        }
        let (warm_up, rounds) = (config.kin.integer("warm_up"), config.run.integer("rounds"));
        if by_loss && warm_up >= rounds {
            self.report(
                &["kin", "warm_up"],
                format!(
                    "clients pick a cluster after round {}, and run.rounds is {}: lower it or run longer",
                    warm_up.unwrap_or_default(),
                    rounds.unwrap_or_default()
                ),
            );
        }
        if config.kin.get("graph").is_some() && config.topology.get("edges").is_some() {
            let message = "`kin.graph` makes every client a server of its own, so the servers of `topology.edges` are gone: keep one of the two";
            self.report_key(&["kin", "graph"], message.to_string());
        }
    }

    /// A key that a mechanism cannot do without.
    fn require(&mut self, config: &Config, mechanism: &str, key: &str, what: &str) {
        if config.privacy.get(key).is_none() {
            let message = format!("this key is required when mechanism = {mechanism:?}: {what}");
            self.report(&["privacy", key], message);
        }
    }

    /// The mechanism must be one of what is fitted.
    fn protects(&mut self, config: &Config) {
        let mechanism = config.privacy.text("mechanism").unwrap_or("none");
        let graphs = config.model.text("kind") == Some("graph");
        let remedy = match mechanism {
            "zcdp" | "dp-sgd" if graphs => {
                "bounds the gradients of linear models: for kind = \"graph\" set \"one-shot\", with `epsilon` and `clip`"
            }
            "one-shot" | "paper" if !graphs => {
                "is for kind = \"graph\": for linear models set \"zcdp\" or, with fedavg, \"dp-sgd\""
            }
            "zcdp" => return self.zcdp(config),
            "dp-sgd" => return self.dp_sgd(config),
            "one-shot" => {
                let clip = "the norm that every record, less its mean over the nodes, is scaled down to";
                let required = [("epsilon", "what the one release costs at `delta`"), ("clip", clip)];
                return self.claimed(config, mechanism, &required);
            }
            "paper" => {
                return self.claimed(
                    config,
                    mechanism,
                    &[("epsilon", "what the paper claims for the whole run")],
                );
            }
            _ => return,
        };
        self.report(&["privacy", "mechanism"], format!("{mechanism:?} {remedy}"));
    }

    /// Mechanisms of the graph methods, which are told an epsilon; keys of the others would do nothing.
    fn claimed(&mut self, config: &Config, mechanism: &str, required: &[(&str, &str)]) {
        for (key, what) in required {
            self.require(config, mechanism, key, what);
        }
        let given = changed(sections::PRIVACY, &config.privacy);
        for (of, keys) in [("zcdp", ZCDP_KEYS), ("dp-sgd", &["noise_multiplier"])] {
            for key in keys.iter().filter(|key| given(key)) {
                let message = format!(
                    "this key is of mechanism = {of:?} and does nothing with {mechanism:?}: its bound is `clip`, its noise \
                     follows from `epsilon` and `delta`"
                );
                self.report_key(&["privacy", key], message);
            }
        }
        if config.privacy.text("unit") == Some("client") {
            let message = format!(
                "{mechanism} clips records, so it protects one record; for a whole client use mechanism = \"zcdp\" with \
                 a method that takes it"
            );
            self.report(&["privacy", "unit"], message);
        }
    }

    /// Mechanisms whose epsilon follows from their noise and the rounds take none.
    fn no_epsilon(&mut self, config: &Config, mechanism: &str, noise: &str) {
        if config.privacy.get("epsilon").is_some() {
            let message = format!(
                "this key is of mechanism = \"one-shot\" and \"paper\": with {mechanism:?} epsilon follows from {noise} and \
                 the rounds, and `fedkin privacy plan` shows it"
            );
            self.report_key(&["privacy", "epsilon"], message);
        }
    }

    /// The bound that the noise of `zcdp` follows must come from somewhere.
    fn zcdp(&mut self, config: &Config) {
        self.no_epsilon(config, "zcdp", "`initial_budget`, `growth`");
        let ridge = config.model.text("kind") == Some("ridge");
        for key in DpSgd::REQUIRED {
            if config.privacy.get(key).is_some() {
                self.report_key(
                    &["privacy", key],
                    "this key is of mechanism = \"dp-sgd\"; did you mean that one?".to_string(),
                );
            }
        }
        let remedy = "or take a bound on trust with privacy.bound = \"assumed\"";
        if config.privacy.text("bound") == Some("assumed") {
            if config.privacy.get("gradient_bound").is_none() {
                let message = "this key is required when bound = \"assumed\": a number above 0".to_string();
                self.report(&["privacy", "gradient_bound"], message);
            }
        } else if config.model.get("feature_norm").is_none() {
            let message = format!(
                "this key is required when privacy.bound = \"enforced\": without it gradients have no bound; {remedy}"
            );
            self.report(&["model", "feature_norm"], message);
        } else if ridge && config.model.get("huber").is_none() {
            let message = format!(
                "this key is required for ridge when privacy.bound = \"enforced\": the gradient of a squared loss has no bound; {remedy}"
            );
            self.report(&["model", "huber"], message);
        }
    }

    /// `dp-sgd` brings its own bound; keys of `zcdp` would do nothing.
    fn dp_sgd(&mut self, config: &Config) {
        self.no_epsilon(config, "dp-sgd", "`noise_multiplier`, the sampling rate");
        for key in DpSgd::REQUIRED {
            let help =
                sections::PRIVACY.iter().find(|param| param.name == *key).map_or("", |param| param.help);
            let own = help.split("; ").find_map(|part| part.strip_prefix("dp-sgd: "));
            self.require(config, "dp-sgd", key, own.unwrap_or(help));
        }
        let given = changed(sections::PRIVACY, &config.privacy);
        for key in ZCDP_KEYS.iter().filter(|key| given(key)) {
            let message = "this key is of mechanism = \"zcdp\" and does nothing with \"dp-sgd\": its bound is `clip`, its noise `noise_multiplier`";
            self.report_key(&["privacy", key], message.to_string());
        }
        if config.privacy.text("unit") == Some("client") {
            let message = "dp-sgd clips and samples records, so it protects one record; for a whole client use mechanism = \"zcdp\" with a method that takes it";
            self.report(&["privacy", "unit"], message.to_string());
        }
    }

    /// Reports a problem at the value of a path, or at the nearest table above where it is missing.
    pub(super) fn report(&mut self, path: &[&str], message: String) {
        self.locate(path, false, message);
    }

    /// Reports a problem at the key itself.
    fn report_key(&mut self, path: &[&str], message: String) {
        self.locate(path, true, message);
    }

    fn locate(&mut self, path: &[&str], at_key: bool, message: String) {
        let origin = tree::origin(self.root, path, at_key);
        self.push(origin.as_ref(), path.join("."), message);
    }

    pub(super) fn push(&mut self, origin: Option<&Origin>, key: String, message: String) {
        let message = if self.context.is_empty() { message } else { format!("{}: {message}", self.context) };
        self.diagnostics.push(Diagnostic::new(self.source, origin, key, message));
    }
}
