//! What can be measured, and how it is shown: one row for each metric, in one table.

use super::Shown;
use fedkin_learner::{Dataset, Family};
use fedkin_settings::{Named, Table, TableError, suggest};

/// What must be there for a metric to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The true models or graphs, which simulations know.
    Truth,
    /// Test records of the client.
    TestRecords,
    /// Validation records of the client.
    ValidationRecords,
    /// Its training records, which are always there.
    TrainingRecords,
    /// The public hold-out, or the test records of all clients.
    RecordsOfAll,
    /// A model that gives probabilities of labels.
    Probabilities,
    /// A learnt graph.
    Graph,
    /// Labels of the nodes of graphs.
    NodeLabels,
    /// A method that finds clusters, in data whose clusters are known.
    FoundClusters,
    /// A run that demands privacy.
    Privacy,
}

impl Need {
    /// The same in words.
    pub fn words(self) -> &'static str {
        match self {
            Need::Truth => "the truth",
            Need::TestRecords => "test records",
            Need::ValidationRecords => "validation records",
            Need::TrainingRecords => "training records",
            Need::RecordsOfAll => "a hold-out, or test records of all clients",
            Need::Probabilities => "probabilities",
            Need::Graph => "learnt graphs",
            Need::NodeLabels => "labels of nodes",
            Need::FoundClusters => "clusters that were found and are known",
            Need::Privacy => "privacy",
        }
    }
}

/// A program's own metric: of what a client fits, its model, and its test records.
pub type OwnMetric = fn(&dyn Family, &[f64], &Dataset) -> f64;

/// What the table says of a metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricRow {
    /// The name in a config and in columns.
    pub name: &'static str,
    /// What a line of text calls it.
    pub word: &'static str,
    /// What an axis or the head of a column calls it.
    pub label: &'static str,
    /// The question that a figure of it answers.
    pub question: &'static str,
    /// How it is shown.
    pub shown: Shown,
    /// What it needs.
    pub needs: &'static [Need],
    /// Whether it is taken only where the headline asks for it: beside others it would say the same in other units, or
    /// cost a look at every training record.
    pub on_demand: bool,
    /// How it is measured, where a program has brought it.
    pub(super) own: Option<OwnMetric>,
}

impl Named for MetricRow {
    fn name(&self) -> &str {
        self.name
    }
}

impl MetricRow {
    /// A metric of a program's own, on the test records of every client.
    pub const fn own(name: &'static str, label: &'static str, shown: Shown, measure: OwnMetric) -> Self {
        Self {
            name,
            word: label,
            label,
            question: "Which models do best on new records?",
            shown,
            needs: &[Need::TestRecords],
            on_demand: false,
            own: Some(measure),
        }
    }

    /// The same under another question.
    #[must_use]
    pub const fn question(mut self, question: &'static str) -> Self {
        self.question = question;
        self
    }

    /// The same, taken only where the headline asks for it.
    #[must_use]
    pub const fn on_demand(mut self) -> Self {
        self.on_demand = true;
        self
    }

    /// Whether it needs this.
    pub fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
    }
}

/// Metrics by name. A column is `metric.model`; one without a row is a number that a method counts, and stands under
/// its own name, as it is.
#[derive(Debug, Clone)]
pub struct MetricTable(Table<MetricRow>);

impl MetricTable {
    /// What comes with Fedkin.
    pub fn native() -> Self {
        let mut table = Table::new("metric");
        for row in Metric::ALL.map(Metric::row).into_iter().chain(REPORTED) {
            // A test holds that no name is there twice.
            let added = table.add(row);
            debug_assert!(added.is_ok());
        }
        Self(table)
    }

    /// Adds a metric; a name that is there already is refused. A name has no point: that is what divides a column.
    pub fn add(&mut self, row: MetricRow) -> Result<(), TableError> {
        self.0.add(row)
    }

    /// All rows, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, MetricRow> {
        self.0.iter()
    }

    /// The row of a column or a headline.
    pub fn of(&self, column: &str) -> Option<&MetricRow> {
        self.0.get(family(column))
    }

    /// Whether a headline can be one: what is wrong with it, and what may have been meant.
    pub fn check(&self, headline: &str) -> Result<(), String> {
        let Some((name, _)) = headline.split_once('.') else {
            let near = suggest(headline, self.0.names());
            return match self.0.get(headline) {
                Some(row) => Err(format!(
                    "evaluate.metric = {headline:?}: say of which model, such as \"{}.client\"",
                    row.name
                )),
                // Any other word may be a number that the method counts.
                None if near.is_empty() => Ok(()),
                None => Err(format!("evaluate.metric: unknown metric {headline:?}{near}")),
            };
        };
        self.0.find(name).map(|_| ()).map_err(|error| format!("evaluate.metric: {error}"))
    }

    /// How a column is shown.
    pub fn shown(&self, column: &str) -> Shown {
        self.of(column).map_or(Shown::Plain, |row| row.shown)
    }

    /// What an axis calls a column.
    pub fn label<'a>(&self, column: &'a str) -> &'a str {
        self.of(column).map_or_else(|| family(column), |row| row.label)
    }

    /// The question that a figure of it answers.
    pub fn question(&self, column: &str) -> &'static str {
        self.of(column).map_or("How does it change from round to round?", |row| row.question)
    }

    /// The label with its unit.
    pub fn axis(&self, column: &str) -> String {
        let (name, unit) = (self.label(column), self.shown(column).unit());
        if unit.is_empty() { name.to_string() } else { format!("{name} ({unit})") }
    }

    /// Whether it is measured on the probabilities that a client's model gives: of these the spread over clients is
    /// shown.
    pub fn of_probabilities(&self, column: &str) -> bool {
        self.of(column).is_some_and(|row| row.needs(Need::Probabilities))
    }

    /// What is shown client by client: how good probabilities are on the client's own test records.
    pub fn by_client(&self) -> impl Iterator<Item = &'static str> {
        let own = |row: &&MetricRow| row.needs(Need::Probabilities) && row.needs(Need::TestRecords);
        self.iter().filter(own).map(|row| row.name)
    }
}

impl<'a> IntoIterator for &'a MetricTable {
    type Item = &'a MetricRow;
    type IntoIter = std::slice::Iter<'a, MetricRow>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The metric that a column is of.
pub(super) fn family(column: &str) -> &str {
    column.split('.').next().unwrap_or_default()
}

/// Declares what scorers measure: a variant and its row each, so that there is no variant without a row.
macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident: $name:literal, $word:literal, $label:literal, $question:expr, $shown:ident,
       [$($need:ident),*], $when:ident;)*) => {
        /// What scorers measure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Metric { $($(#[$doc])* $variant,)* }

        impl Metric {
            /// All, in the order of columns.
            pub(super) const ALL: [Metric; [$($name),*].len()] = [$(Metric::$variant),*];

            /// Its row.
            pub(crate) const fn row(self) -> MetricRow {
                match self {
                    $(Metric::$variant => MetricRow {
                        name: $name,
                        word: $word,
                        label: $label,
                        question: $question,
                        shown: Shown::$shown,
                        needs: &[$(Need::$need),*],
                        on_demand: When::$when.on_demand(),
                        own: None,
                    },)*
                }
            }
        }
    };
}

/// When a metric is taken.
enum When {
    Always,
    Asked,
}

impl When {
    const fn on_demand(self) -> bool {
        matches!(self, When::Asked)
    }
}

const CLOSEST: &str = "Which models come closest to the truth?";

metrics! {
    /// Squared distance to the true model over its squared norm, equation (50) of the PGFL paper.
    Nmsd: "nmsd", "nmsd", "NMSD", CLOSEST, Decibel, [Truth], Always;
    /// The same against a least-squares model of the cluster's pooled test data, (19) of GFedMtl.
    Reference: "reference", "reference", "test MSE (19)",
        "Which models come closest to those of the pooled test data?", Decibel, [Truth, TestRecords], Always;
    /// Squared distance to the true model over the number of coordinates, (13) of the `PersFL` paper by d.
    Msd: "msd", "squared error per coordinate", "squared error per coordinate", CLOSEST, Log10, [Truth], Asked;
    /// log10 of the same for each client: its mean weighs a client that is a hundred times nearer as two steps.
    LogMsd: "log_msd", "log10 of the squared error per coordinate", "mean log10 of the squared error per coordinate",
        CLOSEST, Plain, [Truth], Asked;
    /// Distance to the true model.
    Distance: "distance", "distance to the truth", "distance to the truth", CLOSEST, Plain, [Truth], Asked;
    /// Mean squared error on the client's test records.
    Mse: "mse", "mse", "test error", "Which models predict new records best?", Plain, [TestRecords], Always;
    /// Share of right labels on the client's test records.
    Accuracy: "accuracy", "accuracy", "test accuracy", "Which models tell the classes apart on new records?", Percent,
        [TestRecords, Probabilities], Always;
    /// Mean loss on the client's test records.
    LogLoss: "log_loss", "log_loss", "test log loss", "Which models give the best probabilities on new records?",
        Plain, [TestRecords, Probabilities], Always;
    /// Mean squared error of the probabilities on the client's test records.
    Brier: "brier", "brier", "Brier score", "Whose probabilities are closest to what happened?", Plain,
        [TestRecords, Probabilities], Always;
    /// Expected calibration error on the client's test records, in ten bins of equal width.
    Calibration: "calibration", "calibration", "calibration error", "Whose probabilities mean what they say?", Plain,
        [TestRecords, Probabilities], Always;
    /// Mean loss on the client's training records, where there are no others.
    TrainLoss: "train_loss", "train_loss", "training loss", "How well do the models fit their own records?", Plain,
        [TrainingRecords], Always;
    /// Share of right labels on the client's training records: what settings may be chosen by.
    TrainAccuracy: "train_accuracy", "train_accuracy", "training accuracy",
        "How many of their own records do the models get right?", Percent, [TrainingRecords, Probabilities], Asked;
    /// Share of right labels on the public hold-out, or on the test records of all clients.
    GlobalAccuracy: "global_accuracy", "accuracy on all clients' records", "accuracy on all clients' records",
        "Which models tell the classes apart on anybody's records?", Percent, [RecordsOfAll, Probabilities], Always;
    /// Mean loss on the same records.
    GlobalLogLoss: "global_log_loss", "log loss on all clients' records", "log loss on all clients' records",
        "Which models give the best probabilities on anybody's records?", Plain, [RecordsOfAll, Probabilities], Always;
    /// Share of right labels on the client's validation records.
    ValidationAccuracy: "validation_accuracy", "validation accuracy", "validation accuracy",
        "How many of the records that were set aside do the models get right?", Percent,
        [ValidationRecords, Probabilities], Always;
    /// Mean loss on the client's validation records.
    ValidationLogLoss: "validation_log_loss", "validation log loss", "validation log loss",
        "How well do the models fit the records that were set aside?", Plain, [ValidationRecords, Probabilities],
        Always;
    /// Accuracy on the client's test records in the evaluated round of its least validation loss.
    StoppedAccuracy: "stopped_accuracy", "accuracy, stopped early,", "test accuracy, stopped early",
        "What if every client stopped at its least validation loss?", Percent,
        [TestRecords, ValidationRecords, Probabilities], Always;
    /// Matthews correlation of the edges with the true ones, (34) of the FedGL paper.
    Mcc: "mcc", "MCC", "MCC", "Which graphs have the right edges?", Score, [Graph, Truth], Always;
    /// Relative error of the weights, (35).
    RelativeError: "relative_error", "relative error", "relative error",
        "Whose weights are closest to the true ones?", Plain, [Graph, Truth], Always;
    /// The same after the best common factor: what is left when the scale of a graph does not matter.
    ScaledError: "scaled_error", "scale-free relative error", "scale-free relative error",
        "Whose weights are closest, up to a common factor?", Plain, [Graph, Truth], Always;
    /// Normalised mutual information of a graph's communities with the nodes' labels.
    Nmi: "nmi", "NMI", "NMI", "Do the communities of the graphs match the labels?", Score, [Graph, NodeLabels], Always;
    /// Rand index of the same.
    Rand: "rand", "Rand index", "Rand index", "How many pairs of nodes are divided as the labels divide them?", Score,
        [Graph, NodeLabels], Always;
    /// Fowlkes-Mallows index of the same.
    Fmi: "fmi", "Fowlkes-Mallows index", "Fowlkes-Mallows index",
        "How many pairs of nodes are kept together as by the labels?", Score, [Graph, NodeLabels], Always;
    /// The objective of a client's graph on records it was not learnt from.
    HeldOut: "held_out", "held-out objective", "held-out objective", "Which graphs fit new signals best?", Plain,
        [Graph, TestRecords], Always;
    /// Share of pairs of nodes with an edge.
    Density: "density", "density", "edge density", "How many pairs of nodes have an edge?", Neutral, [Graph], Always;
}

/// What is reported beside the scorers: of clusters that were found, and of what privacy costs.
const REPORTED: [MetricRow; 6] = [
    reported(
        "found",
        "found",
        "How many clients are in the right cluster?",
        Shown::Percent,
        &[Need::FoundClusters],
    ),
    reported("clusters", "clusters", "How many clusters were found?", Shown::Neutral, &[Need::FoundClusters]),
    reported(
        "merged",
        "merged clusters",
        "How many found clusters hold two true ones?",
        Shown::Plain,
        &[Need::FoundClusters],
    ),
    reported(
        "snr",
        "signal to noise",
        "How strong is the noise on an upload?",
        Shown::Gain,
        &[Need::Privacy],
    ),
    reported("epsilon", "epsilon", "What have clients spent so far?", Shown::Plain, &[Need::Privacy]),
    reported("zcdp", "zCDP", "What have clients spent so far?", Shown::Plain, &[Need::Privacy]),
];

const fn reported(
    name: &'static str,
    label: &'static str,
    question: &'static str,
    shown: Shown,
    needs: &'static [Need],
) -> MetricRow {
    MetricRow { name, word: label, label, question, shown, needs, on_demand: false, own: None }
}

impl Metric {
    /// Its name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The metric that a column or a headline names, where a scorer has it.
    pub(super) fn named(column: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == family(column))
    }

    /// Whether it is taken only where the headline asks for it.
    pub(super) fn on_demand(self) -> bool {
        self.row().on_demand
    }

    /// Whether it needs the true model.
    pub(super) fn of_truth(self) -> bool {
        self.row().needs(Need::Truth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_config::TuneMetric;
    use fedkin_run::spending;

    #[test]
    fn every_metric_has_one_row_and_every_reported_one_is_among_them() {
        let table = MetricTable::native();
        assert_eq!(table.iter().count(), Metric::ALL.len() + REPORTED.len());
        let reported =
            [spending::SIGNAL_TO_NOISE, spending::LARGEST, spending::LEAST, spending::MEAN, spending::SPENT];
        for column in reported.into_iter().chain(["found.kin", "clusters.kin", "merged.kin", "nmi.kin"]) {
            assert!(table.of(column).is_some(), "{column}");
        }
        for word in TuneMetric::WORDS {
            assert!(table.of(word).is_some_and(|row| row.needs(Need::ValidationRecords)), "{word}");
        }
        for row in &table {
            assert!(
                !row.needs.is_empty() && row.question.ends_with('?') && !row.label.is_empty(),
                "{}",
                row.name
            );
        }
        let by_client: Vec<&str> = table.by_client().collect();
        assert_eq!(by_client, ["accuracy", "log_loss", "brier", "calibration", "stopped_accuracy"]);
    }

    #[test]
    fn two_metrics_of_one_name_are_refused() {
        let mut table = MetricTable::native();
        let row = MetricRow::own("mse", "mine", Shown::Plain, |_, _, _| 0.0);
        assert_eq!(
            table.add(row).unwrap_err().to_string(),
            "there are two metrics called \"mse\": every row of a registry needs a name of its own"
        );
        table.add(MetricRow { name: "mine", ..row }).unwrap();
        assert_eq!(table.label("mine.client"), "mine");
    }

    #[test]
    fn a_headline_that_nothing_measures_is_refused() {
        let table = MetricTable::native();
        assert!(table.check("accuracy.client").is_ok());
        assert_eq!(
            table.check("acuracy.client").unwrap_err(),
            "evaluate.metric: unknown metric \"acuracy\"; did you mean `accuracy`?"
        );
        assert!(table.check("nmsd").unwrap_err().contains("say of which model, such as \"nmsd.client\""));
        assert!(table.check("accurcy").unwrap_err().contains("did you mean `accuracy`?"));
        // A number that a method counts.
        assert!(table.check("queries").is_ok());
        // What has no row stands under its own name.
        assert_eq!((table.label("queries"), table.shown("queries")), ("queries", Shown::Plain));
    }
}
