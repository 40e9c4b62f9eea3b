//! From the tree to a [`Config`]: every section against its table, then what spans sections.

use super::diagnostic::{Diagnostic, Origin};
use super::tree::{self, Body, Branch, Node, values};
use super::variants::Variants;
use super::{ClusterSource, Config, FoundBy, RowSummary, Section, Source, Tables, VERSION, sections};
use fedkin_privacy::{BoundSource, DpSgd, PrivacySettings, Protection, Unit};
use fedkin_settings::{Param, Preset, Problem, Settings, Value, Values, suggest};

/// Keys of `[privacy]` that `zcdp` alone reads.
const ZCDP_KEYS: &[&str] = &["initial_budget", "growth", "bound", "gradient_bound"];

/// Collects what is wrong while a tree is read.
pub(super) struct Checker<'a> {
    source: &'a Source,
    pub(super) tables: &'a Tables<'a>,
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
        let run = self.section("run");
        let (data_source, data) = self.selected("data", "source", "data source", self.tables.sources);
        let topology = self.table("topology", self.tables.topology);
        let (model_kind, model) = self.selected("model", "kind", "kind of model", self.tables.models);
        let learners = self.learners();
        let (algorithm, algorithm_values) =
            self.selected("algorithm", "name", "algorithm", self.tables.algorithms);
        let participation = self.section("participation");
        let kin = self.section("kin");
        let privacy = self.section("privacy");
        let robust = self.section("robust");
        let evaluate = self.section("evaluate");
        let network = self.section("network");
        let mut variants = Variants::default();
        let curves = self.curves(&mut variants);
        let tune = self.tune(&curves);
        let sweep = self.sweep(&mut variants);
        let quick = self.quick(&mut variants);
        let paper = self.paper();
        let (
            Some(run),
            Some(participation),
            Some(kin),
            Some(privacy),
            Some(robust),
            Some(evaluate),
            Some(network),
        ) = (run, participation, kin, privacy, robust, evaluate, network)
        else {
            return Err(self.diagnostics);
        };
        let config = Config {
            run,
            data_source,
            data,
            topology,
            model_kind,
            model,
            learners,
            algorithm,
            algorithm_values,
            participation,
            kin,
            privacy,
            robust,
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
        let chosen = |(section, selector, rows): (&'static str, &str, &'a [RowSummary<'a>])| {
            let name = self.root.get(section).and_then(Node::table).and_then(|branch| branch.get(selector));
            let row = rows.iter().find(|row| name.and_then(Node::text) == Some(row.0));
            (section, row.map_or(&[][..], |row| row.2))
        };
        let rows = self.tables.selected().map(chosen).into_iter().chain([("topology", self.tables.topology)]);
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

    fn section<T: Settings>(&mut self, name: &str) -> Option<Section<T>> {
        let branch = self.branch(name)?;
        self.typed(&[name], &branch)
    }

    fn table(&mut self, name: &str, params: &[Param]) -> Values {
        match self.branch(name) {
            Some(branch) => self.checked(&[name], params, &branch),
            None => Values::default(),
        }
    }

    /// Keys that passed their table; what did not is reported under `path`.
    pub(super) fn keys<T: Settings>(&mut self, path: &[&str], branch: &Branch) -> Option<T> {
        self.typed(path, branch).map(Section::into_keys)
    }

    fn typed<T: Settings>(&mut self, path: &[&str], branch: &Branch) -> Option<Section<T>> {
        Section::check(&values(branch)).map_err(|problems| self.problems(path, problems)).ok()
    }

    fn checked(&mut self, path: &[&str], params: &[Param], branch: &Branch) -> Values {
        Values::check(params, &values(branch))
            .map_err(|problems| self.problems(path, problems))
            .unwrap_or_default()
    }

    fn problems(&mut self, path: &[&str], problems: Vec<Problem>) {
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
    }

    /// A section in which one key selects the table of the others.
    fn selected(
        &mut self,
        section: &str,
        selector: &str,
        what: &str,
        rows: &[RowSummary<'_>],
    ) -> (String, Values) {
        let Some(branch) = self.branch(section) else { return Default::default() };
        self.chosen(&[section], selector, what, rows, branch, &[]).unwrap_or_default()
    }

    /// The same of a table at a path; `also` are keys that stand beside those of all rows, and are read elsewhere.
    pub(super) fn chosen(
        &mut self,
        path: &[&str],
        selector: &str,
        what: &str,
        rows: &[RowSummary<'_>],
        mut branch: Branch,
        also: &[Param],
    ) -> Option<(String, Values)> {
        let place: Vec<&str> = path.iter().copied().chain([selector]).collect();
        let Some(node) = branch.remove(selector) else {
            let known: Vec<&str> = rows.iter().map(|row| row.0).collect();
            self.report(&place, format!("this key is required: the {what} ({})", known.join(", ")));
            return None;
        };
        let Some(name) = node.text() else {
            self.report(&place, format!("expected the {what} as text, found {}", node.value()));
            return None;
        };
        let Some(row) = rows.iter().find(|row| row.0 == name) else {
            let hint = suggest(name, rows.iter().map(|row| row.0));
            self.report(&place, format!("there is no {what} {name:?}{hint}"));
            return None;
        };
        if selector == "kind" {
            self.keys_of_other_kinds(path, row, rows, &mut branch);
        }
        let all: Vec<Param> = row.2.iter().chain(also).copied().collect();
        Some((name.to_string(), self.checked(path, &all, &branch)))
    }

    /// A key that only other kinds of model have is reported, and taken out. What stood in every `[model]` is left out
    /// silently where it says nothing.
    fn keys_of_other_kinds(
        &mut self,
        path: &[&str],
        row: &RowSummary<'_>,
        rows: &[RowSummary<'_>],
        branch: &mut Branch,
    ) {
        let has = |row: &RowSummary<'_>, key: &str| row.2.iter().any(|param| param.name == key);
        branch.retain(|key, node| {
            let owners: Vec<&str> = rows.iter().filter(|row| has(row, key)).map(|row| row.0).collect();
            if has(row, key) || owners.is_empty() {
                return true;
            }
            let says_nothing =
                |(name, preset): &(&str, Preset)| name == key && preset.value() == Some(node.value());
            if path != ["model"] || !sections::ONCE_IN_EVERY_MODEL.iter().any(says_nothing) {
                let own: Vec<&str> = row.2.iter().map(|param| param.name).collect();
                let message = format!(
                    "`{key}` is a key of {}; kind is {:?}, whose keys are {}",
                    owners.join(", "),
                    row.0,
                    own.join(", ")
                );
                let place: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
                self.report_key(&place, message);
            }
            false
        });
    }

    /// What no single key can tell.
    fn across(&mut self, config: &Config) {
        let name = config.run.name.as_str();
        if name.is_empty()
            || name.starts_with('.')
            || name.contains(|c: char| c.is_control() || "/\\:".contains(c))
        {
            self.report(
                &["run", "name"],
                format!("{name:?} cannot name a folder: use letters, digits, - and _"),
            );
        }
        self.protects(config);
        self.kin(config);
        self.claims(config);
        if config.evaluate.global_most.is_some() && !config.evaluate.global {
            let message = "this key does nothing without `global = true`";
            self.report_key(&["evaluate", "global_most"], message.to_string());
        }
        let rounds = config.run.rounds;
        if let Some(round) = config.sweep.as_ref().and_then(|sweep| sweep.at_round)
            && round > rounds
        {
            self.report(
                &["sweep", "at_round"],
                format!("round {round} is never reached: run.rounds is {rounds}"),
            );
        }
    }

    /// Keys of clusters that are found do nothing where they are given.
    fn kin(&mut self, config: &Config) {
        let kin = &config.kin;
        let infer = kin.clusters == Some(ClusterSource::Infer);
        let by_loss = infer && kin.by == FoundBy::Loss;
        for (keys, read, needs) in [
            (&["by"][..], infer, "clusters = \"infer\""),
            (&["search_rounds"], infer && !by_loss, "clusters = \"infer\" and by = \"rewards\""),
            (&["count", "warm_up", "forming", "start"], by_loss, "clusters = \"infer\" and by = \"loss\""),
        ] {
            for key in keys.iter().filter(|key| !read && kin.changed(key)) {
                self.report_key(&["kin", key], format!("this key does nothing without {needs}"));
            }
        }
        let (warm_up, rounds) = (kin.warm_up, config.run.rounds);
        if by_loss && warm_up >= rounds {
            self.report(
                &["kin", "warm_up"],
                format!("clients pick a cluster after round {warm_up}, and run.rounds is {rounds}: lower it or run longer"),
            );
        }
        if kin.graph.is_some() && config.topology.get("edges").is_some() {
            let message = "`kin.graph` makes every client a server of its own, so the servers of `topology.edges` are gone: keep one of the two";
            self.report_key(&["kin", "graph"], message.to_string());
        }
    }

    /// A key that a mechanism cannot do without.
    fn require(&mut self, config: &Config, mechanism: &str, key: &str, what: &str) {
        if config.privacy.values().get(key).is_none() {
            let message = format!("this key is required when mechanism = {mechanism:?}: {what}");
            self.report(&["privacy", key], message);
        }
    }

    /// The mechanism must be one of what is fitted.
    fn protects(&mut self, config: &Config) {
        let mechanism = config.privacy.mechanism;
        let word = mechanism.word();
        let graphs = config.model_kind == "graph";
        let remedy = match mechanism {
            Protection::None => return,
            Protection::Zcdp | Protection::DpSgd if graphs => {
                "bounds the gradients of linear models: for kind = \"graph\" set \"one-shot\", with `epsilon` and `clip`"
            }
            Protection::OneShot | Protection::Paper if !graphs => {
                "is for kind = \"graph\": for linear models set \"zcdp\" or, with a method of gradient steps, \"dp-sgd\""
            }
            Protection::Zcdp => return self.zcdp(config),
            Protection::DpSgd => return self.dp_sgd(config),
            Protection::OneShot => {
                let clip = "the norm that every record, less its mean over the nodes, is scaled down to";
                let required = [("epsilon", "what the one release costs at `delta`"), ("clip", clip)];
                return self.claimed(config, word, &required);
            }
            Protection::Paper => {
                return self.claimed(config, word, &[("epsilon", "what the paper claims for the whole run")]);
            }
        };
        self.report(&["privacy", "mechanism"], format!("{word:?} {remedy}"));
    }

    /// Mechanisms of the graph methods, which are told an epsilon; keys of the others would do nothing.
    fn claimed(&mut self, config: &Config, mechanism: &str, required: &[(&str, &str)]) {
        for (key, what) in required {
            self.require(config, mechanism, key, what);
        }
        for (of, keys) in [("zcdp", ZCDP_KEYS), ("dp-sgd", &["noise_multiplier"])] {
            for key in keys.iter().filter(|key| config.privacy.changed(key)) {
                let message = format!(
                    "this key is of mechanism = {of:?} and does nothing with {mechanism:?}: its bound is `clip`, its noise \
                     follows from `epsilon` and `delta`"
                );
                self.report_key(&["privacy", key], message);
            }
        }
        if config.privacy.unit == Unit::Client {
            let message = format!(
                "{mechanism} clips records, so it protects one record; for a whole client use mechanism = \"zcdp\" with \
                 a method that takes it"
            );
            self.report(&["privacy", "unit"], message);
        }
    }

    /// Mechanisms whose epsilon follows from their noise and the rounds take none.
    fn no_epsilon(&mut self, config: &Config, mechanism: &str, noise: &str) {
        if config.privacy.epsilon.is_some() {
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
        for key in DpSgd::REQUIRED {
            if config.privacy.values().get(key).is_some() {
                self.report_key(
                    &["privacy", key],
                    "this key is of mechanism = \"dp-sgd\"; did you mean that one?".to_string(),
                );
            }
        }
        if config.privacy.bound == BoundSource::Assumed {
            if config.privacy.gradient_bound.is_none() {
                let message = "this key is required when bound = \"assumed\": a number above 0".to_string();
                self.report(&["privacy", "gradient_bound"], message);
            }
        } else {
            for (path, kind, values) in config.all_learners() {
                self.enforced(&path, kind, values);
            }
        }
    }

    /// The keys of a learner that bound its gradients. Methods refuse the kinds that have no bound to enforce.
    fn enforced(&mut self, path: &[&str], kind: &str, values: &Values) {
        let row = self.tables.models.iter().find(|row| row.0 == kind);
        let has = |key: &str| row.is_some_and(|row| row.2.iter().any(|param| param.name == key));
        let (key, when, why) = if has("feature_norm") && values.get("feature_norm").is_none() {
            ("feature_norm", "when", "without it gradients have no bound")
        } else if kind == "ridge" && values.get("huber").is_none() {
            ("huber", "for ridge when", "the gradient of a squared loss has no bound")
        } else {
            return;
        };
        let message = format!(
            "this key is required {when} privacy.bound = \"enforced\": {why}; or take a bound on trust with privacy.bound = \
             \"assumed\""
        );
        let place: Vec<&str> = path.iter().copied().chain([key]).collect();
        self.report(&place, message);
    }

    /// `dp-sgd` brings its own bound; keys of `zcdp` would do nothing.
    fn dp_sgd(&mut self, config: &Config) {
        self.no_epsilon(config, "dp-sgd", "`noise_multiplier`, the sampling rate");
        for key in DpSgd::REQUIRED {
            let help = PrivacySettings::PARAMS
                .iter()
                .find(|param| param.name == *key)
                .map_or("", |param| param.help);
            let own = help.split("; ").find_map(|part| part.strip_prefix("dp-sgd: "));
            self.require(config, "dp-sgd", key, own.unwrap_or(help));
        }
        for key in ZCDP_KEYS.iter().filter(|key| config.privacy.changed(key)) {
            let message = "this key is of mechanism = \"zcdp\" and does nothing with \"dp-sgd\": its bound is `clip`, its noise `noise_multiplier`";
            self.report_key(&["privacy", key], message.to_string());
        }
        if config.privacy.unit == Unit::Client {
            let message = "dp-sgd clips and samples records, so it protects one record; for a whole client use mechanism = \"zcdp\" with a method that takes it";
            self.report(&["privacy", "unit"], message.to_string());
        }
    }

    /// Reports a problem at the value of a path, or at the nearest table above where it is missing.
    pub(super) fn report(&mut self, path: &[&str], message: String) {
        self.locate(path, false, message);
    }

    /// Reports a problem at the key itself.
    pub(super) fn report_key(&mut self, path: &[&str], message: String) {
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
