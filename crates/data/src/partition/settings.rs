//! The keys of the partitioners, and which of them belong together.

use super::{PARTITIONERS, Partitioner, Pool, Rule};
use crate::error::DataError;
use crate::split::VALIDATION;
use fedkin_core::params::{Kind, Param, Preset, Values};

/// As in the code that the FedPnP paper used: no client has fewer records.
const LEAST: usize = 10;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "partition",
        kind: Kind::Choice(&[
            "tasks",
            "natural",
            "iid",
            "dirichlet",
            "shards",
            "quantity",
            "rotation",
            "permutation",
        ]),
        preset: Preset::Absent,
        help: "how records are dealt to clients: tasks for the binary tasks of images (their default), natural for a column \
               (the default of tables), or a law: iid, dirichlet, shards, quantity, rotation, permutation",
    },
    Param {
        name: "clients",
        kind: Kind::Integer { least: 1, most: 10_000_000 },
        preset: Preset::Absent,
        help: "partition: how many clients (default 20)",
    },
    Param {
        name: "samples",
        kind: Kind::Integer { least: 1, most: 100_000_000 },
        preset: Preset::Absent,
        help: "partition: records of each client, or their mean where sizes differ (default: all records are dealt)",
    },
    Param {
        name: "alpha",
        kind: Kind::Number { least: 0.0, most: 1e6, open: true },
        preset: Preset::Absent,
        help: "partition: concentration of the Dirichlet law, small for clients that differ much",
    },
    Param {
        name: "by",
        kind: Kind::Choice(&["client", "label"]),
        preset: Preset::Absent,
        help: "dirichlet: the mix of labels of each client is drawn (the default with `samples`: sizes are equal), or the \
               division of each label over the clients (the default without: sizes differ)",
    },
    Param {
        name: "least",
        kind: Kind::Integer { least: 1, most: 100_000_000 },
        preset: Preset::Absent,
        help: "dirichlet by label and quantity: drawn again until every client has so many records (default 10)",
    },
    Param {
        name: "shards",
        kind: Kind::Integer { least: 1, most: 1_000_000 },
        preset: Preset::Absent,
        help: "shards: how many each client has (default 2)",
    },
    Param {
        name: "exponent",
        kind: Kind::Number { least: 0.0, most: 100.0, open: false },
        preset: Preset::Absent,
        help: "quantity: the size of the k-th client falls as k to the power of minus this",
    },
    Param {
        name: "clusters",
        kind: Kind::Integer { least: 2, most: 1_000_000 },
        preset: Preset::Absent,
        help: "rotation: 2 or 4 clusters; permutation: at least 2 (default 4)",
    },
    Param {
        name: "test_fraction",
        kind: Kind::Number { least: 0.0, most: 0.99, open: false },
        preset: Preset::Absent,
        help: "partition: share of each client's records kept for testing; at least one stays for training (default 0.25)",
    },
    Param { preset: Preset::Absent, ..VALIDATION },
    Param {
        name: "holdout",
        kind: Kind::Integer { least: 0, most: 1_000_000 },
        preset: Preset::Absent,
        help: "partition: so many records of the set's own test part become a public hold-out that no client has (default 0)",
    },
];

/// Two tables in one.
pub(crate) const fn chain<const N: usize>(first: &[Param], second: &[Param]) -> [Param; N] {
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

/// What a config says of a partition.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) clients: usize,
    pub(super) samples: Option<usize>,
    pub(super) alpha: Option<f64>,
    pub(super) by_label: bool,
    pub(super) least: usize,
    pub(super) shards: usize,
    pub(super) exponent: Option<f64>,
    pub(super) clusters: usize,
    /// How many records take part.
    pub(super) records: usize,
}

/// A key of another partitioner would be ignored: it is refused instead.
pub(super) fn check(row: &Partitioner, values: &Values) -> Result<(), DataError> {
    let general: &[&str] = if row.rule == Rule::Natural { &[] } else { &["clients", "samples"] };
    for key in ["clients", "samples", "alpha", "by", "least", "shards", "exponent", "clusters"] {
        if values.get(key).is_none() || row.keys.contains(&key) || general.contains(&key) {
            continue;
        }
        let others: Vec<String> = PARTITIONERS
            .iter()
            .filter(|other| other.keys.contains(&key) || (general.is_empty() && other.rule != Rule::Natural))
            .map(|other| format!("{:?}", other.name))
            .collect();
        let message = format!(
            "partition = {:?} has no such key: drop it, or set partition to {}",
            row.name,
            others.join(" or ")
        );
        return Err(DataError::config(key, message));
    }
    Ok(())
}

impl Settings {
    pub(super) fn read(row: &Partitioner, values: &Values, pool: Pool<'_>) -> Result<Self, DataError> {
        let whole = |key: &str| values.integer(key).map(|number| number as usize);
        let there = pool.labels.len();
        if row.rule == Rule::Natural {
            let message = "these records have no clients of their own: set `partition` to \"dirichlet\", \"iid\", \"shards\", \
                           \"quantity\", \"rotation\" or \"permutation\"";
            return Err(DataError::config("partition", message));
        }
        let clients = whole("clients").unwrap_or(20);
        let samples = whole("samples");
        let wanted = samples.map_or(clients, |samples| samples.saturating_mul(clients));
        if wanted > there {
            let key = if samples.is_some() { "samples" } else { "clients" };
            let message = format!(
                "{clients} clients with {} {} each want {wanted} records but there are {there}: lower `clients` or `samples`",
                samples.unwrap_or(1),
                if samples.unwrap_or(1) == 1 { "record" } else { "records" }
            );
            return Err(DataError::config(key, message));
        }
        let alpha = values.number("alpha");
        let exponent = values.number("exponent");
        match (row.rule, alpha, exponent) {
            (Rule::Dirichlet, None, _) => {
                return Err(DataError::config(
                    "alpha",
                    "this key is required for partition = \"dirichlet\": a number above 0, as in alpha = 0.5",
                ));
            }
            (Rule::Quantity, None, None) => {
                return Err(DataError::config(
                    "alpha",
                    "partition = \"quantity\" needs `alpha` for Dirichlet shares, or `exponent` for a power law",
                ));
            }
            (Rule::Quantity, Some(_), Some(_)) => {
                return Err(DataError::config(
                    "exponent",
                    "sizes follow `alpha` or `exponent`: drop one of the keys",
                ));
            }
            _ => {}
        }
        let skewed = alpha.is_some() && row.rule != Rule::Quantity;
        if pool.classes == 0 && (skewed || matches!(row.rule, Rule::Shards | Rule::Permutation)) {
            let message = format!(
                "partition = {:?} goes by classes, and the targets are numbers: set [model] kind to one for classes, or \
                 partition to \"iid\" or \"quantity\"",
                row.name
            );
            return Err(DataError::config("partition", message));
        }
        let by_label = match values.text("by") {
            Some(by) => by == "label",
            None => row.rule == Rule::Dirichlet && samples.is_none(),
        };
        Ok(Self {
            clients,
            samples,
            alpha,
            by_label,
            least: whole("least").unwrap_or(LEAST),
            shards: whole("shards").unwrap_or(2),
            exponent,
            clusters: whole("clusters").unwrap_or(4),
            records: samples.map_or(there, |samples| samples * clients),
        })
    }
}
