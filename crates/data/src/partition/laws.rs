//! The partitioners: their settings, and what they deal.

use super::skew::{equal, quantity, renames, shards, turns};
use super::{Deal, Partition, Partitioner, Pool, dirichlet};
use crate::error::DataError;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::{Kind, Param, Preset, choice, settings};

const ALPHA: Param = Param {
    name: "alpha",
    kind: Kind::Number { least: 0.0, most: 1e6, open: true },
    preset: Preset::Absent,
    help: "partition: concentration of the Dirichlet law, small for clients that differ much; required for dirichlet",
};

/// As in the code that the FedPnP paper used: no client has fewer than 10 records.
const LEAST: Param = Param {
    name: "least",
    kind: Kind::Integer { least: 1, most: 100_000_000 },
    preset: Preset::Integer(10),
    help: "dirichlet by label and quantity: drawn again until every client has so many records",
};

const CLUSTERS: Param = Param {
    name: "clusters",
    kind: Kind::Integer { least: 2, most: 1_000_000 },
    preset: Preset::Integer(4),
    help: "rotation: 2 or 4 clusters; permutation: at least 2",
};

choice! {
    /// What a Dirichlet law draws.
    pub enum By {
        /// The mix of labels of each client.
        Client = "client",
        /// The division of each label over the clients.
        Label = "label",
    }
}

settings! {
    /// How many clients, and how many records they have.
    pub struct Size {
        clients: usize => Kind::Integer { least: 1, most: 10_000_000 }, Preset::Integer(20),
            "partition: how many clients";
        samples: Option<usize> => Kind::Integer { least: 1, most: 100_000_000 }, Preset::Absent,
            "partition: records of each client, or their mean where sizes differ; absent: all records are dealt";
    }
}

settings! {
    /// The clients that the records have anyway.
    pub struct Natural {}
}

settings! {
    /// Equal parts.
    pub struct Iid {
        flatten size: Size;
    }
}

settings! {
    /// Label skew by a Dirichlet law.
    pub struct Dirichlet {
        flatten size: Size;
        alpha: f64 => param Param { preset: Preset::Required, ..ALPHA };
        by: Option<By> => Kind::Choice(By::WORDS), Preset::Absent,
            "dirichlet: the mix of labels of each client is drawn, so that sizes are equal, or the division of each label over \
             the clients, so that they differ; absent: by client with `samples`, by label without";
        least: usize => param LEAST;
    }
}

settings! {
    /// Shards of records sorted by label.
    pub struct Shards {
        flatten size: Size;
        shards: usize => Kind::Integer { least: 1, most: 1_000_000 }, Preset::Integer(2),
            "shards: how many each client has";
    }
}

settings! {
    /// Clients of different sizes.
    pub struct Quantity {
        flatten size: Size;
        alpha: Option<f64> => param ALPHA;
        exponent: Option<f64> => Kind::Number { least: 0.0, most: 100.0, open: false }, Preset::Absent,
            "quantity: the size of the k-th client falls as k to the power of minus this";
        least: usize => param LEAST;
    }
}

settings! {
    /// Clusters that see images turned.
    pub struct Rotation {
        flatten size: Size;
        clusters: usize => param CLUSTERS;
        alpha: Option<f64> => param ALPHA;
    }
}

settings! {
    /// Clusters that name the classes differently.
    pub struct Permutation {
        flatten size: Size;
        clusters: usize => param CLUSTERS;
        alpha: Option<f64> => param ALPHA;
    }
}

impl Size {
    /// Refuses more records than there are.
    fn fits(&self, pool: Pool<'_>) -> Result<(), DataError> {
        let (clients, there) = (self.clients, pool.labels.len());
        let each = self.samples.unwrap_or(1);
        let wanted = each.saturating_mul(clients);
        if wanted <= there {
            return Ok(());
        }
        let key = if self.samples.is_some() { "samples" } else { "clients" };
        let message = format!(
            "{clients} clients with {each} {} each want {wanted} records but there are {there}: lower `clients` or `samples`",
            if each == 1 { "record" } else { "records" }
        );
        Err(DataError::config(key, message))
    }

    /// The records that take part, shuffled: all of them, or `samples` for each client.
    fn drawn(&self, pool: Pool<'_>, rng: &mut PublicRng) -> Vec<u32> {
        let mut records: Vec<u32> = (0..pool.labels.len() as u32).collect();
        rng.shuffle(&mut records);
        records.truncate(self.samples.map_or(usize::MAX, |samples| samples * self.clients));
        records
    }

    /// Parts of one size, with label skew where there is an `alpha`.
    fn skewed(&self, alpha: Option<f64>, pool: Pool<'_>, rng: &mut PublicRng) -> Vec<Vec<u32>> {
        match alpha {
            Some(alpha) => dirichlet::by_client(pool, self, alpha, rng),
            None => equal(&self.drawn(pool, rng), self.clients),
        }
    }
}

fn stream(seed: u64) -> PublicRng {
    PublicRng::named(seed, "world/partition", 0, 0)
}

/// Refuses a partitioner that goes by classes where there are none.
fn has_classes<P: Partitioner>(pool: Pool<'_>) -> Result<(), DataError> {
    if pool.classes > 0 {
        return Ok(());
    }
    let message = format!(
        "partition = {:?} goes by classes, and the targets are numbers: set [model] kind to one for classes, or partition to \
         \"{}\" or \"{}\"",
        P::NAME,
        Iid::NAME,
        Quantity::NAME
    );
    Err(DataError::config(super::KEY, message))
}

impl Partitioner for Natural {
    const NAME: &'static str = "natural";
    const SUMMARY: &'static str = "as a column of the data, or the set itself, says";
}

impl Partition for Natural {
    fn deal(&self, _: Pool<'_>, _: u64) -> Result<Deal, DataError> {
        let message = format!(
            "these records have no clients of their own: set `partition` to a law that deals them, such as \"{}\" or \"{}\"",
            Dirichlet::NAME,
            Iid::NAME
        );
        Err(DataError::config(super::KEY, message))
    }
}

impl Partitioner for Iid {
    const NAME: &'static str = "iid";
    const SUMMARY: &'static str = "shuffled and dealt in equal parts";
}

impl Partition for Iid {
    fn deal(&self, pool: Pool<'_>, seed: u64) -> Result<Deal, DataError> {
        self.size.fits(pool)?;
        Ok(Deal::whole(self.size.skewed(None, pool, &mut stream(seed))))
    }
}

impl Partitioner for Dirichlet {
    const NAME: &'static str = "dirichlet";
    const SUMMARY: &'static str =
        "label skew: mixes of labels, or divisions of labels over clients, from a Dirichlet law";
}

impl Partition for Dirichlet {
    fn deal(&self, pool: Pool<'_>, seed: u64) -> Result<Deal, DataError> {
        self.size.fits(pool)?;
        has_classes::<Self>(pool)?;
        let rng = &mut stream(seed);
        let by = self.by.unwrap_or(if self.size.samples.is_some() { By::Client } else { By::Label });
        let clients = match by {
            By::Client => self.size.skewed(Some(self.alpha), pool, rng),
            By::Label => dirichlet::by_label(pool, self.size.drawn(pool, rng), self, rng)?,
        };
        Ok(Deal::whole(clients))
    }
}

impl Partitioner for Shards {
    const NAME: &'static str = "shards";
    const SUMMARY: &'static str =
        "records sorted by label, cut into shards of one size, a few shards for each client";
}

impl Partition for Shards {
    fn deal(&self, pool: Pool<'_>, seed: u64) -> Result<Deal, DataError> {
        self.size.fits(pool)?;
        has_classes::<Self>(pool)?;
        let rng = &mut stream(seed);
        let records = self.size.drawn(pool, rng);
        Ok(Deal::whole(shards(pool, records, self, rng)?))
    }
}

impl Partitioner for Quantity {
    const NAME: &'static str = "quantity";
    const SUMMARY: &'static str =
        "clients of different sizes with labels alike: Dirichlet shares, or a power law";
}

impl Partition for Quantity {
    fn deal(&self, pool: Pool<'_>, seed: u64) -> Result<Deal, DataError> {
        self.size.fits(pool)?;
        let law = match (self.alpha, self.exponent) {
            (Some(alpha), None) => Law::Dirichlet(alpha),
            (None, Some(exponent)) => Law::Power(exponent),
            (None, None) => {
                let message = "partition = \"quantity\" needs `alpha` for Dirichlet shares, or `exponent` for a power law";
                return Err(DataError::config("alpha", message));
            }
            (Some(_), Some(_)) => {
                let message = "sizes follow `alpha` or `exponent`: drop one of the keys";
                return Err(DataError::config("exponent", message));
            }
        };
        let rng = &mut stream(seed);
        let records = self.size.drawn(pool, rng);
        Ok(Deal::whole(quantity(&records, &law, self, rng)?))
    }
}

/// What the sizes of clients follow.
#[derive(Debug, Clone, Copy)]
pub(super) enum Law {
    /// Shares from a Dirichlet law.
    Dirichlet(f64),
    /// A power of the client's rank.
    Power(f64),
}

impl Partitioner for Rotation {
    const NAME: &'static str = "rotation";
    const SUMMARY: &'static str =
        "clusters of clients that see images turned by a quarter or half; with alpha also label skew";
}

impl Partition for Rotation {
    fn deal(&self, pool: Pool<'_>, seed: u64) -> Result<Deal, DataError> {
        self.size.fits(pool)?;
        if self.alpha.is_some() {
            has_classes::<Self>(pool)?;
        }
        let clients = self.size.skewed(self.alpha, pool, &mut stream(seed));
        Deal::clustered(clients, turns(self.clusters, pool)?, seed)
    }
}

impl Partitioner for Permutation {
    const NAME: &'static str = "permutation";
    const SUMMARY: &'static str =
        "clusters of clients that name the classes differently; with alpha also label skew";
}

impl Partition for Permutation {
    fn deal(&self, pool: Pool<'_>, seed: u64) -> Result<Deal, DataError> {
        self.size.fits(pool)?;
        has_classes::<Self>(pool)?;
        let clients = self.size.skewed(self.alpha, pool, &mut stream(seed));
        Deal::clustered(clients, renames(self.clusters, pool, seed)?, seed)
    }
}
