//! What a config may name. A program adds rows of its own and hands the registry to whatever reads configs.

use fedkin_config::{self as config, Tables};
use fedkin_data::{GRAPH_PARAMS, PartitionRow, Registry as Data, SourceRow};
use fedkin_graph::denoise;
use fedkin_learner::{Family, LearnerRow};
use fedkin_measure::{MetricRow, MetricTable};
use fedkin_method::Registry as Core;
use fedkin_method::registry::{Methods, Row};
use fedkin_settings::{Param, TableError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// A text that lasts as long as the program, once however often it is asked for.
fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(text).copied().unwrap_or_else(|| {
        let lasting: &'static str = Box::leak(text.into());
        known.insert(lasting);
        lasting
    })
}

/// Learners that a program brings as values, by their place: `model`, or the name of a learner that some clients have.
pub type Brought = BTreeMap<String, Arc<dyn Family>>;

/// All tables of rows that a config chooses from.
#[derive(Debug, Clone)]
pub struct Registry {
    core: Arc<Core>,
    data: Arc<Data>,
    metrics: Arc<MetricTable>,
    /// The same as the config check lists them.
    methods: Vec<config::RowSummary<'static>>,
    learners: Vec<config::RowSummary<'static>>,
    sources: Vec<config::RowSummary<'static>>,
}

impl Registry {
    /// What comes with Fedkin.
    pub fn native() -> Self {
        let (methods, learners, sources) = Default::default();
        let (core, data) = (Arc::new(Core::native()), Arc::new(Data::native()));
        let metrics = Arc::new(MetricTable::native());
        let mut registry = Self { core, data, metrics, methods, learners, sources };
        registry.list();
        registry
    }

    fn list(&mut self) {
        self.methods = self.core.methods.iter().map(|row| (row.name, row.summary, row.params)).collect();
        self.learners = self.core.learners.iter().map(|row| (row.name, row.summary, row.params)).collect();
        // A registry is made once and lasts as long as the program.
        let params = |row: &SourceRow| -> &'static [Param] { self.data.params(row).leak() };
        self.sources = self.data.sources.iter().map(|row| (row.name, row.summary, params(row))).collect();
    }

    /// Data sources and partitioners.
    pub fn data(&self) -> &Arc<Data> {
        &self.data
    }

    /// Adds a data source; a name that is there already is refused.
    pub fn add_source(&mut self, row: SourceRow) -> Result<(), TableError> {
        Arc::make_mut(&mut self.data).sources.add(row)?;
        self.list();
        Ok(())
    }

    /// Adds a partitioner; a name that is there already is refused.
    pub fn add_partitioner(&mut self, row: PartitionRow) -> Result<(), TableError> {
        Arc::make_mut(&mut self.data).partitioners.add(row)?;
        self.list();
        Ok(())
    }

    /// What can be measured.
    pub fn metrics(&self) -> &Arc<MetricTable> {
        &self.metrics
    }

    /// Adds a metric; a name that is there already is refused. It becomes a column for each of a client's models, and
    /// may be the headline (`evaluate.metric`).
    pub fn add_metric(&mut self, row: MetricRow) -> Result<(), TableError> {
        Arc::make_mut(&mut self.metrics).add(row)
    }

    /// Methods, learners and denoisers.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The methods.
    pub fn methods(&self) -> &Methods {
        &self.core.methods
    }

    /// The colours of methods, then those of the variants that curves name.
    pub fn colours(&self) -> Vec<(String, usize)> {
        let own = self.methods().iter().filter_map(|row| Some((row.name.to_string(), row.colours.own?)));
        let variants = self.methods().iter().flat_map(|row| row.colours.variants);
        own.chain(variants.map(|(word, colour)| (word.to_string(), *colour))).collect()
    }

    /// Adds a method; a name that is there already is refused.
    pub fn add_method(&mut self, row: Row) -> Result<(), TableError> {
        Arc::make_mut(&mut self.core).methods.add(row)?;
        self.list();
        Ok(())
    }

    /// Adds a learner; a name that is there already is refused.
    pub fn add_learner(&mut self, row: LearnerRow) -> Result<(), TableError> {
        Arc::make_mut(&mut self.core).learners.add(row)?;
        self.list();
        Ok(())
    }

    /// Adds a denoiser; a name that is there already is refused.
    pub fn add_denoiser(&mut self, row: denoise::DenoiserRow) -> Result<(), TableError> {
        Arc::make_mut(&mut self.core).denoisers.add(row)
    }

    /// The same with a row for each learner that a program brings as a value and that has none.
    pub(crate) fn with_brought(&self, brought: &Brought) -> Self {
        let mut all = self.clone();
        for family in brought.values() {
            // A name that is there already stays what it is.
            let _ = all.add_learner(LearnerRow::brought(interned(family.name()), family.has()));
        }
        all
    }

    /// The tables that a config is checked against.
    pub fn tables(&self) -> Tables<'_> {
        Tables {
            sources: &self.sources,
            algorithms: &self.methods,
            models: &self.learners,
            topology: GRAPH_PARAMS,
        }
    }
}
