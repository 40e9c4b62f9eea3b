//! How records without clients are dealt out to clients: label skew, shards, sizes, clusters.
//!
//! A partitioner sees only the labels and gives each client a list of record numbers; no record is held twice. What it
//! cannot satisfy is an error that names the numbers. All of them are rows of [`PARTITIONERS`].

mod dirichlet;
mod settings;
mod skew;

pub(crate) use settings::{PARAMS, chain};

use crate::error::DataError;
use crate::roster::equal_clusters;
use fedkin_core::params::Values;
use fedkin_core::rng::{PublicRng, Random};
use settings::Settings;

/// One way to deal records out.
#[derive(Debug, Clone, Copy)]
pub struct Partitioner {
    /// The word after `partition =`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The keys it understands besides `clients` and `samples`.
    pub keys: &'static [&'static str],
    rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Natural,
    Iid,
    Dirichlet,
    Shards,
    Quantity,
    Rotation,
    Permutation,
}

/// All of them: the config check, the messages and the guide come from this table.
pub const PARTITIONERS: &[Partitioner] = &[
    Partitioner {
        name: "natural",
        summary: "as a column of the data, or the set itself, says",
        keys: &[],
        rule: Rule::Natural,
    },
    Partitioner { name: "iid", summary: "shuffled and dealt in equal parts", keys: &[], rule: Rule::Iid },
    Partitioner {
        name: "dirichlet",
        summary: "label skew: mixes of labels, or divisions of labels over clients, from a Dirichlet law",
        keys: &["alpha", "by", "least"],
        rule: Rule::Dirichlet,
    },
    Partitioner {
        name: "shards",
        summary: "records sorted by label, cut into shards of one size, a few shards for each client",
        keys: &["shards"],
        rule: Rule::Shards,
    },
    Partitioner {
        name: "quantity",
        summary: "clients of different sizes with labels alike: Dirichlet shares, or a power law",
        keys: &["alpha", "exponent", "least"],
        rule: Rule::Quantity,
    },
    Partitioner {
        name: "rotation",
        summary: "clusters of clients that see images turned by a quarter or half; with alpha also label skew",
        keys: &["clusters", "alpha"],
        rule: Rule::Rotation,
    },
    Partitioner {
        name: "permutation",
        summary: "clusters of clients that name the classes differently; with alpha also label skew",
        keys: &["clusters", "alpha"],
        rule: Rule::Permutation,
    },
];

/// What was dealt.
#[derive(Debug)]
pub(crate) struct Deal {
    /// The records of each client in the order of the file.
    pub(crate) clients: Vec<Vec<u32>>,
    /// The cluster of each client.
    pub(crate) cluster: Vec<u32>,
    /// What each cluster does to its records, with its name.
    pub(crate) clusters: Vec<(String, Twist)>,
}

/// What a cluster does to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Twist {
    /// Nothing.
    None,
    /// So many quarter turns to the left.
    Turn(u32),
    /// Class c is called `names[c]`.
    Rename(Vec<u32>),
}

/// The records to be dealt, as a partitioner sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool<'a> {
    /// The class of each record; all 0 where there are none.
    pub(crate) labels: &'a [u32],
    /// How many classes there are; 0 where targets are no classes.
    pub(crate) classes: usize,
    /// Whether the records are square images.
    pub(crate) square: bool,
}

/// The row of the partitioner that a config asks for; `natural` where it asks for none.
pub(crate) fn chosen(values: &Values) -> Result<&'static Partitioner, DataError> {
    let name = values.text("partition").unwrap_or("natural");
    let known = PARTITIONERS.iter().find(|row| row.name == name);
    let row = known.ok_or_else(|| {
        let hint = fedkin_core::params::suggest(name, PARTITIONERS.iter().map(|row| row.name));
        DataError::config("partition", format!("there is no partitioner {name:?}{hint}"))
    })?;
    settings::check(row, values)?;
    Ok(row)
}

/// Deals the records to clients.
pub(crate) fn deal(values: &Values, pool: Pool<'_>, seed: u64) -> Result<Deal, DataError> {
    let row = chosen(values)?;
    let settings = Settings::read(row, values, pool)?;
    let mut rng = PublicRng::named(seed, "world/partition", 0, 0);
    let skewed = matches!(row.rule, Rule::Dirichlet | Rule::Rotation | Rule::Permutation);
    let by_client = settings.alpha.is_some() && skewed && !settings.by_label;
    let mut clients = if by_client {
        dirichlet::by_client(pool, &settings, &mut rng)
    } else {
        let records = drawn(pool, &settings, &mut rng);
        match row.rule {
            Rule::Dirichlet => dirichlet::by_label(pool, records, &settings, &mut rng)?,
            Rule::Shards => skew::shards(pool, records, &settings, &mut rng)?,
            Rule::Quantity => skew::quantity(&records, &settings, &mut rng)?,
            _ => skew::equal(&records, settings.clients),
        }
    };
    for records in &mut clients {
        records.sort_unstable();
    }
    let clusters = match row.rule {
        Rule::Rotation => skew::turns(settings.clusters, pool)?,
        Rule::Permutation => skew::renames(settings.clusters, pool, seed)?,
        _ => vec![("all".to_string(), Twist::None)],
    };
    let cluster = equal_clusters("clusters", clients.len(), clusters.len(), seed)?;
    Ok(Deal { clients, cluster, clusters })
}

/// The records that take part, shuffled: all of them, or `samples` for each client.
fn drawn(pool: Pool<'_>, settings: &Settings, rng: &mut PublicRng) -> Vec<u32> {
    let mut records: Vec<u32> = (0..pool.labels.len() as u32).collect();
    rng.shuffle(&mut records);
    records.truncate(settings.samples.map_or(usize::MAX, |samples| samples * settings.clients));
    records
}

#[cfg(test)]
mod tests;
