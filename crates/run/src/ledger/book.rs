//! The ledger of a run in one process: budgets that span runs.
//!
//! A run is named by what decides its releases: config, records and version. The same run again, in whatever
//! directory, is the same release: it begins where it began the first time, gives the same bytes and is charged once.
//! Any other run is charged in full, and its noise is drawn from secrets of its own: noise that covers two different
//! values would uncover both.
//!
//! Nothing of a run is written before its charges are durable: one frame for all clients, with a mark per client that
//! says where the run began and what it gave. A crash before that has released nothing; after it the mark is found.

use super::chains::{self, Doubt, Nature, fault};
use crate::error::Error;
use crate::plan::Plan;
use fedkin_data::World;
use fedkin_method::round::Opening;
use fedkin_numeric::codec::Codec;
use fedkin_numeric::rng::simulated_secret;
use fedkin_privacy::{Head, Statement, Trust};
use fedkin_runtime::store::{Commit, Secret, StoreError, Vault};
use std::path::{Path, PathBuf};

fedkin_numeric::record! {
    /// What a client's charged run left in the vault.
    struct Mark {
        /// What the client had spent before it.
        spent: u64,
        releases: u64,
        /// How many runs were before it.
        runs: u64,
        /// Bits: disclosed, other than Gaussian, assumed, refuted.
        nature: u32,
        /// What the run gave.
        gave: [u8; 32],
        /// The end of the chain with the run's lines.
        head: Head,
    }
}

/// One client's account.
struct Client {
    name: String,
    data: [u8; 32],
    opening: Opening,
    runs: u64,
    nature: Nature,
    /// What it was charged with before, for this very run.
    charged: Option<([u8; 32], Head)>,
}

/// An open ledger, locked until it is dropped.
pub(crate) struct Book {
    folder: PathBuf,
    vault: Vault,
    run: [u8; 32],
    clients: Vec<Client>,
}

/// What a client's account says beside its total once the run was charged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Charged {
    /// Units spent before the run.
    pub(crate) before: u64,
    /// Runs on the same data, this one included.
    pub(crate) runs: u64,
    pub(super) nature: Nature,
    /// The end of the chain.
    pub(crate) head: Head,
}

impl Charged {
    /// Whether an earlier run let something out without noise that protects.
    pub(crate) fn disclosed_before(&self) -> bool {
        self.nature.open()
    }

    /// Whether an earlier run used another mechanism than the plain Gaussian.
    pub(crate) fn other_before(&self) -> bool {
        self.nature.other
    }

    /// What the weakest earlier price rests on, where that is the word of somebody.
    pub(crate) fn trusted_before(&self) -> Option<Trust> {
        match self.nature.doubt {
            Doubt::Assumed => Some(Trust::Assumed),
            Doubt::Claimed => Some(Trust::Claimed),
            Doubt::None | Doubt::Refuted => None,
        }
    }
}

fn bits(nature: Nature) -> u32 {
    let doubt = match nature.doubt {
        Doubt::None => 0,
        Doubt::Assumed => 0b0100,
        Doubt::Refuted => 0b1000,
        Doubt::Claimed => 0b1100,
    };
    u32::from(nature.disclosed) | u32::from(nature.other) << 1 | doubt
}

fn nature(bits: u32) -> Nature {
    let doubt = match bits & 0b1100 {
        0 => Doubt::None,
        0b0100 => Doubt::Assumed,
        0b1100 => Doubt::Claimed,
        _ => Doubt::Refuted,
    };
    Nature { disclosed: bits & 1 != 0, other: bits & 2 != 0, doubt }
}

/// A digest of everything that decides what leaves the clients.
fn name(plan: &Plan, world: &World) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key("fedkin 2026 run in one process");
    hash.update(&plan.config.release_fingerprint());
    hash.update(&world.fingerprint);
    hash.update(env!("CARGO_PKG_VERSION").as_bytes());
    *hash.finalize().as_bytes()
}

impl Book {
    /// Opens the ledger that a plan names, if it names one.
    pub(crate) fn open(plan: &Plan, world: &World) -> Result<Option<Self>, Error> {
        let Some(folder) = plan.ledger() else { return Ok(None) };
        // Not used: the secrets of a simulation follow from its seed.
        let vault = Vault::open(&folder, Secret::Given([0; 32])).map_err(|error| refusal(&folder, error))?;
        let past = chains::read(&folder, &mut |_, _| {})?;
        let run = name(plan, world);
        let mut clients = Vec::with_capacity(world.train.len());
        for (id, train) in world.train.iter().enumerate() {
            let name = world.federation.client_name(id as u32).to_string();
            let data = plan.records(train, world.test[id].as_deref());
            let seed = simulated_secret(plan.seed(0), id as u32);
            let secret = *blake3::keyed_hash(&seed, &run).as_bytes();
            let mark = match vault.state(&run, &name) {
                None => None,
                Some(bytes) => Some(Mark::from_bytes(bytes).map_err(|_| {
                    Error::ClaimFailed(format!(
                        "{}: the mark of client {name:?} cannot be read",
                        folder.display()
                    ))
                })?),
            };
            let past = past.get(&(name.clone(), data));
            let chain = vault.account(&name, &data);
            let (spent, releases, runs, nature, charged) = match mark {
                Some(mark) => {
                    (mark.spent, mark.releases, mark.runs, nature(mark.nature), Some((mark.gave, mark.head)))
                }
                None => (
                    chain.spent,
                    chain.releases,
                    past.map_or(0, |past| past.runs.len() as u64),
                    past.map_or_else(Nature::default, |past| past.nature),
                    None,
                ),
            };
            let opening = Opening { spent, releases, secret };
            let client = Client { name, data, opening, runs, nature, charged };
            clients.push(client);
        }
        Ok(Some(Self { folder, vault, run, clients }))
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the clients begin with, by id.
    pub(crate) fn openings(&self) -> Vec<Opening> {
        self.clients.iter().map(|client| client.opening).collect()
    }

    /// A word for where the clients begin: a checkpoint of this run is good for one beginning.
    pub(crate) fn stamp(&self) -> String {
        let mut hash = blake3::Hasher::new();
        hash.update(&self.run);
        for client in &self.clients {
            hash.update(&client.opening.spent.to_le_bytes());
        }
        hex::encode(&hash.finalize().as_bytes()[..8])
    }

    /// Charges the clients with what left them; durable when this returns. What was charged before, for the same
    /// bytes, is not charged again.
    pub(crate) fn charge(
        &mut self,
        statements: &[Statement],
        gave: &[u8; 32],
    ) -> Result<Vec<Charged>, Error> {
        let charged = |client: &Client, head: Head| Charged {
            before: client.opening.spent,
            runs: client.runs + 1,
            nature: client.nature,
            head,
        };
        let marks: Vec<&([u8; 32], Head)> =
            self.clients.iter().filter_map(|client| client.charged.as_ref()).collect();
        if !marks.is_empty() && marks.len() == self.clients.len() {
            if marks.iter().any(|(before, _)| before != gave) {
                return Err(Error::ClaimFailed(format!(
                    "the ledger {} was charged for this very run, but now it gives other models (another machine?): \
                     nothing was written; give it another run.seed to have it charged as a run of its own",
                    self.folder.display()
                )));
            }
            return Ok(self
                .clients
                .iter()
                .map(|client| {
                    let head = client.charged.as_ref().map(|(_, head)| head.clone()).unwrap_or_default();
                    charged(client, head)
                })
                .collect());
        }
        let mut records = Vec::with_capacity(self.clients.len());
        let mut all = Vec::with_capacity(self.clients.len());
        for (client, statement) in self.clients.iter().zip(statements) {
            let mut chain = self.vault.account(&client.name, &client.data);
            let lines = chain.state(statement, &self.run, gave);
            let mark = Mark {
                spent: client.opening.spent,
                releases: client.opening.releases,
                runs: client.runs,
                nature: bits(client.nature),
                gave: *gave,
                head: chain.head.clone(),
            };
            all.push(charged(client, chain.head));
            records.push((mark.to_bytes(), lines));
        }
        let commits: Vec<Commit<'_>> = self
            .clients
            .iter()
            .zip(&records)
            .map(|(client, (state, lines))| Commit {
                client: &client.name,
                fingerprint: client.data,
                state,
                lines,
            })
            .collect();
        self.vault.commit(&self.run, &commits).map_err(|error| refusal(&self.folder, error))?;
        if self.vault.due() {
            self.vault.compact().map_err(|error| refusal(&self.folder, error))?;
        }
        for (client, charged) in self.clients.iter_mut().zip(&all) {
            client.charged = Some((*gave, charged.head.clone()));
        }
        Ok(all)
    }

    /// The digest of a client's records.
    pub(crate) fn data(&self, id: usize) -> [u8; 32] {
        self.clients[id].data
    }
}

fn refusal(folder: &Path, error: StoreError) -> Error {
    let place = folder.display();
    match error {
        StoreError::Locked { holder, .. } => Error::Usage(format!(
            "privacy.ledger: {place} is in use by another run{holder}: wait for it to end"
        )),
        StoreError::Refused { .. } => Error::Usage(format!(
            "privacy.ledger: {place} is the state of a client host, which keeps a ledger of its own: name another folder"
        )),
        StoreError::File { .. } => Error::Usage(format!("privacy.ledger: {error}")),
        error => fault(error),
    }
}
