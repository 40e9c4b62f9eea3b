//! From a node's config to a node that runs.

use super::{Deployment, Link, NodeConfig, NodeKind, Noise};
use fedkin_config::Waiting;
use fedkin_method::round::{Blueprint, ClientMachines, Joining, Mode, ServerMachine};
use fedkin_numeric::rng::simulated_secret;
use fedkin_privacy::Chain;
use fedkin_run::Error;
use fedkin_runtime::Threads;
use fedkin_runtime::nats::{Post, PostConfig, Storage, Tls};
use fedkin_runtime::node::{ClientOptions, HostedClient, Names, Routes, ServerOptions};
use fedkin_runtime::store::{Secret, Vault};
use fedkin_runtime::transport::{Token, TransportError};
use std::sync::Arc;
use std::time::Duration;

/// A client process that is ready to run.
pub struct ReadyClients {
    /// Its clients.
    pub clients: Box<dyn ClientMachines>,
    /// Their disk.
    pub vault: Vault,
    /// The rest.
    pub options: ClientOptions,
}

impl Deployment {
    fn blueprint(&self) -> Blueprint<'_> {
        Blueprint {
            algorithm: self.plan.row.name,
            method: Arc::clone(&self.plan.method),
            run: &self.run,
            federation: &self.federation,
            fingerprint: self.fingerprint,
        }
    }

    /// When steps close, and after which time.
    pub fn mode(&self) -> (Mode, Option<Duration>) {
        let network = &self.plan.config.network;
        match network.mode {
            Waiting::Strict => (Mode::Strict, None),
            Waiting::Deadline => {
                let seconds = network.deadline.clamp(0.001, 1e9);
                (Mode::Deadline { quorum: network.quorum }, Some(Duration::from_secs_f64(seconds)))
            }
        }
    }

    /// The transport of a node.
    pub fn post(&self, node: &NodeConfig) -> PostConfig {
        let token = Token::of(&node.name);
        let mut post = PostConfig::new(&node.broker.url, &self.run_id(), token);
        post.tls = node.broker.tls.as_ref().map(|tls| Tls {
            ca: tls.ca.clone(),
            certificate: tls.certificate.clone(),
            key: tls.key.clone(),
        });
        post.allow_plain = node.broker.allow_plain;
        post.api_prefix.clone_from(&node.broker.api);
        // Nothing rests on the broker's disk: whatever it loses is sent again.
        post.storage = Storage::Memory;
        post
    }

    /// Connects a node to its broker; what it sends is sealed where it has keys.
    pub async fn connect(&self, node: &NodeConfig) -> Result<Link, TransportError> {
        let keys = self.keys(node)?;
        let post = self.post(node);
        let post = if matches!(node.kind, NodeKind::Server(_)) { post.manager() } else { post };
        Ok(Link::new(Post::open(post).await?, keys)?)
    }

    fn routes(&self) -> Routes {
        let tokens = |names: &[String]| names.iter().map(|name| Token::of(name)).collect();
        Routes { servers: tokens(&self.nodes.servers), clients: tokens(&self.nodes.hosts) }
    }

    fn names(&self) -> Names {
        Names {
            servers: self.federation.server_names().to_vec(),
            clients: self.federation.client_names().to_vec(),
        }
    }

    /// The servers of a node, ready to run.
    pub fn server_node(
        &self,
        node: &NodeConfig,
    ) -> Result<(Vec<Box<dyn ServerMachine>>, ServerOptions), Error> {
        let (mode, deadline) = self.mode();
        let machines = self.blueprint().servers(&self.servers_of(node)?, mode)?;
        let options = ServerOptions {
            node: Token::of(&node.name),
            // A server starts afresh in every run; what it saw of the clients' ledgers spans them, as these do.
            state: node.state.join("runs").join(self.run_id()),
            heads: node.state.join("heads"),
            fingerprint: self.fingerprint,
            routes: self.routes(),
            names: self.names(),
            rounds: self.run.rounds,
            deadline,
            resend: self.resend,
            observe: node.observe.listen,
        };
        Ok((machines, options))
    }

    /// The clients of a node, ready to run: their records are read and their vault is open.
    pub fn client_node(&self, node: &NodeConfig) -> Result<ReadyClients, Error> {
        node.admits(&self.plan.privacy)?;
        let records = self.records_of(node)?;
        let secret = match node.noise {
            Noise::Os => Secret::Os,
            // Not used: seeded secrets follow from the seed, as in one process.
            Noise::Seeded => Secret::Given([0; 32]),
        };
        let place = |error: &dyn std::fmt::Display| Error::Deploy {
            place: node.state.display().to_string(),
            message: error.to_string(),
        };
        let vault = Vault::open(&node.state, secret).map_err(|error| place(&error))?;
        let mut joining = Vec::with_capacity(records.len());
        let mut hosted = std::collections::BTreeMap::new();
        for record in records {
            let name = self.federation.client_name(record.id).to_string();
            let own = match node.noise {
                Noise::Os => vault.secret(&name),
                Noise::Seeded => simulated_secret(self.run.seed, record.id),
            };
            let secret = match node.noise {
                Noise::Os => secret_of_run(&own, &self.fingerprint, &record.fingerprint),
                Noise::Seeded => own,
            };
            let chain: Chain = vault.account(&name, &record.fingerprint);
            // A digest of few records could be guessed; under the secret it only tells whether they changed.
            let shown = *blake3::keyed_hash(&own, &record.fingerprint).as_bytes();
            hosted.insert(record.id, HostedClient { name, fingerprint: record.fingerprint });
            joining.push(Joining { id: record.id, data: record.train, secret, shown, chain });
        }
        let clients = self.blueprint().clients(joining, Arc::new(Threads))?;
        let options = ClientOptions {
            strict: self.mode().0 == Mode::Strict,
            fingerprint: self.fingerprint,
            routes: self.routes(),
            names: self.names(),
            hosted,
            resend: self.resend,
            observe: node.observe.listen,
        };
        Ok(ReadyClients { clients, vault, options })
    }
}

/// What a client's noise follows from in one run on one set of records. Two runs ask the same in their first step: with
/// the same draws at two scales, or on two sets of records, their answers together would uncover what the noise hides.
fn secret_of_run(own: &[u8; 32], run: &[u8; 32], data: &[u8; 32]) -> [u8; 32] {
    *blake3::Hasher::new_keyed(own).update(b"fedkin noise\0").update(run).update(data).finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::secret_of_run;

    #[test]
    fn every_run_and_every_set_of_records_has_noise_of_its_own() {
        let (own, run, data) = ([1; 32], [2; 32], [3; 32]);
        let here = secret_of_run(&own, &run, &data);
        assert_eq!(here, secret_of_run(&own, &run, &data), "a restart draws the same again");
        assert_ne!(here, secret_of_run(&own, &[4; 32], &data));
        assert_ne!(here, secret_of_run(&own, &run, &[4; 32]));
        assert_ne!(here, secret_of_run(&[4; 32], &run, &data));
        assert_ne!(here, own);
    }
}
