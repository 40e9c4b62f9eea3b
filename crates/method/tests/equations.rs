//! The papers' equations, written out once more in the plainest way and compared round by round (Must show 4).
//!
//! The other side shares nothing with the crate: every client holds its own dual phi_k (`chi_k`), proximal
//! steps are d x d systems solved by Gaussian elimination (Newton's method where the loss is curved), and
//! every mean is a loop over lists. Decisions 1 to 7 of the PGFL spec settle what the papers leave open.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::needless_range_loop,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{Small, Vector, decay, length, minimise, names, number, records, ridge, text, values, world};
use fedkin_graph::Topology;
use fedkin_learner::model::{Loss, Model};
use fedkin_method::round::Live;
use fedkin_method::{Entry, Federation, Verdict};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_settings::Value;
use std::sync::Arc;

const ROUNDS: u32 = 50;

/// Five servers on a given edge list, three clusters, six features, 1 to 7 records; server 3 has nobody of
/// cluster 2, and server 1 has one client only.
fn federation(seed: u64, loss: Loss) -> Small {
    let mut rng = PublicRng::named(seed, "equations", 0, 0);
    let models: Vec<Vector> = (0..3).map(|_| (0..6).map(|_| rng.normal()).collect()).collect();
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for k in 0..26u32 {
        let server = if k == 7 { 1 } else { [0, 2, 3, 4][rng.below(4) as usize] };
        let cluster = if server == 3 { k % 2 } else { k % 3 };
        let samples = 1 + rng.below(7);
        data.push(Arc::new(records(&mut rng, samples, &models[cluster as usize], loss == Loss::Logistic)));
        entries.push(Entry { name: format!("client {k:02}"), server, cluster, samples });
    }
    let graph = Topology::from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 3), (2, 4)]).unwrap();
    let (federation, _) = Federation::new(entries, names("s", 5), names("q", 3), graph).unwrap();
    let world = world(federation, data, Model { loss, ..ridge(0.03) }, seed, ROUNDS);
    let empty = |s: u32, q: u32| world.federation.members().iter().all(|m| (m.server, m.cluster) != (s, q));
    assert!(empty(3, 2) && !empty(3, 1), "the case must hold an empty cell");
    world
}

/// Which server update, with tau of round n.
#[derive(Clone, Copy)]
enum Update {
    Pgfl { dual_from_aggregate: bool },
    GFedMtl { mean: bool },
    SingleStep,
}

/// Models by server and cluster.
type Models = Vec<Vec<Vector>>;

/// All state of a run, nothing shared, nothing fast.
struct Naive<'a> {
    world: &'a Small,
    update: Update,
    rho: f64,
    tau: (f64, f64),
    /// w_k and phi_k by client id: at the client.
    w: Vec<Vector>,
    phi: Vec<Vector>,
    /// w_{s,(q)}
    served: Models,
    /// psi_{q,s} of the single-step update.
    psi: Models,
}

fn combine(terms: &[(f64, &Vector)]) -> Vector {
    let mut sum = vec![0.0; terms[0].1.len()];
    for (weight, vector) in terms {
        for (sum, x) in sum.iter_mut().zip(vector.iter()) {
            *sum += weight * x;
        }
    }
    sum
}

impl<'a> Naive<'a> {
    fn new(world: &'a Small, update: Update, rho: f64, tau: (f64, f64)) -> Self {
        let zero = vec![0.0; world.run.dimension];
        let models = vec![vec![zero.clone(); world.run.clusters]; world.federation.servers()];
        let clients = vec![zero; world.data.len()];
        Self {
            world,
            update,
            rho,
            tau,
            w: clients.clone(),
            phi: clients,
            served: models.clone(),
            psi: models,
        }
    }

    /// Round n with these participants, by client id.
    fn round(&mut self, n: u32, chosen: &[u32]) {
        let Self { world, rho, .. } = *self;
        let federation = &world.federation;
        let (servers, clusters) = (federation.servers(), world.run.clusters);
        let tau = if clusters > 1 { self.tau.0 * self.tau.1.powi(n as i32) } else { 0.0 };
        // (4): f_k(w) - <phi_k, w - w_s> + (rho/2) |w - w_s|^2, completed to a square around w_s + phi_k/rho.
        for &k in chosen {
            let member = federation.members()[k as usize];
            let served = &self.served[member.server as usize][member.cluster as usize];
            let centre = combine(&[(1.0, served), (1.0 / rho, &self.phi[k as usize])]);
            let model = &world.model;
            let strength = model.regularisation / federation.clients_of(member.server).len() as f64;
            self.w[k as usize] = minimise(model.loss, &[&world.data[k as usize]], strength, rho, &centre);
        }
        // (8), (9) of GFedMtl: mean over the chosen clients of the cell; what was served where there is none.
        let mut aggregate = self.served.clone();
        for (s, of_server) in aggregate.iter_mut().enumerate() {
            for (q, model) in of_server.iter_mut().enumerate() {
                let cell: Vec<usize> = chosen
                    .iter()
                    .map(|&k| k as usize)
                    .filter(|&k| {
                        let member = federation.members()[k];
                        (member.server as usize, member.cluster as usize) == (s, q)
                    })
                    .collect();
                let share = 1.0 / cell.len() as f64;
                let terms: Vec<(f64, &Vector)> =
                    cell.iter().flat_map(|&k| [(share, &self.w[k]), (-share / rho, &self.phi[k])]).collect();
                if !cell.is_empty() {
                    *model = combine(&terms);
                }
            }
        }
        let neighbours = |s: usize| federation.topology().neighbours(s as u32).iter().map(|&p| p as usize);
        let others = |q: usize| (0..clusters).filter(move |&r| r != q);
        let mut next = self.served.clone();
        let dual: Models;
        match self.update {
            Update::Pgfl { dual_from_aggregate } => {
                let mut hat = aggregate.clone();
                for s in 0..servers {
                    let around: Vec<usize> = neighbours(s).chain([s]).collect();
                    for q in 0..clusters {
                        // (9)
                        let share = 1.0 / around.len() as f64;
                        let terms: Vec<_> = around.iter().map(|&p| (share, &aggregate[p][q])).collect();
                        hat[s][q] = combine(&terms);
                    }
                    for q in 0..clusters {
                        // (10)
                        let mut terms = vec![(1.0 - tau, &hat[s][q])];
                        terms.extend(others(q).map(|r| (tau / (clusters - 1) as f64, &hat[s][r])));
                        next[s][q] = combine(&terms);
                    }
                }
                dual = if dual_from_aggregate { aggregate } else { next.clone() };
            }
            Update::GFedMtl { mean } => {
                let mut refined = aggregate.clone();
                for s in 0..servers {
                    for q in 0..clusters {
                        // (10)
                        let all = 1.0 + tau * (clusters - 1) as f64;
                        let mut terms = vec![(1.0 / all, &aggregate[s][q])];
                        terms.extend(others(q).map(|r| (tau / all, &aggregate[s][r])));
                        refined[s][q] = combine(&terms);
                    }
                }
                for s in 0..servers {
                    let near: Vec<usize> = neighbours(s).collect();
                    let degree = near.len() as f64;
                    for q in 0..clusters {
                        // (11)
                        let mut terms = vec![(1.0 / (degree + 1.0), &refined[s][q])];
                        terms.extend(near.iter().map(|&t| (1.0 / (degree + 1.0), &refined[t][q])));
                        let between = combine(&terms);
                        // (12), the neighbours' models being those after (10)
                        let each = if mean { tau / degree } else { tau };
                        let all = 1.0 + each * degree * (clusters - 1) as f64;
                        let mut terms = vec![(1.0 / all, &between)];
                        for r in others(q) {
                            terms.extend(near.iter().map(|&t| (each / all, &refined[t][r])));
                        }
                        next[s][q] = combine(&terms);
                    }
                }
                dual = refined;
            }
            Update::SingleStep => {
                let last = self.served.clone();
                for s in 0..servers {
                    let near: Vec<usize> = neighbours(s).collect();
                    let around: Vec<usize> = near.iter().copied().chain([s]).collect();
                    for q in 0..clusters {
                        // (6) with the sum w_s + w_p
                        let all = 1.0 + tau + rho * near.len() as f64;
                        let mut terms = vec![(1.0 / all, &aggregate[s][q]), (-0.5 / all, &self.psi[s][q])];
                        for &p in &near {
                            terms.push((rho / 2.0 / all, &last[s][q]));
                            terms.push((rho / 2.0 / all, &last[p][q]));
                        }
                        for r in others(q) {
                            let share = tau / (clusters - 1) as f64 / around.len() as f64 / all;
                            terms.extend(around.iter().map(|&p| (share, &last[p][r])));
                        }
                        next[s][q] = combine(&terms);
                    }
                }
                for s in 0..servers {
                    for q in 0..clusters {
                        // (7) as the ascent that belongs to (6)
                        let mut terms = vec![(1.0, &self.psi[s][q])];
                        for p in neighbours(s) {
                            terms.extend([(rho, &next[s][q]), (-rho, &next[p][q])]);
                        }
                        self.psi[s][q] = combine(&terms);
                    }
                }
                dual = next.clone();
            }
        }
        // (5), (16) of GFedMtl, at the clients that took part
        for &k in chosen {
            let member = federation.members()[k as usize];
            let target = &dual[member.server as usize][member.cluster as usize];
            let k = k as usize;
            self.phi[k] = combine(&[(1.0, &self.phi[k]), (rho, target), (-rho, &self.w[k])]);
        }
        self.served = next;
    }
}

fn close(a: &[f64], b: &[f64]) -> bool {
    let gap: Vector = a.iter().zip(b).map(|(x, y)| x - y).collect();
    length(&gap) <= 1e-10 * (1.0 + length(b))
}

/// Runs a method beside its equations.
fn beside(live: &mut dyn Live, naive: &mut Naive<'_>, what: &str) {
    let world = naive.world;
    let mut empty = 0;
    for n in 1..=ROUNDS {
        live.step().unwrap();
        let mut chosen = Vec::new();
        for server in 0..world.federation.servers() as u32 {
            let (clients, verdicts) = (world.federation.clients_of(server), live.verdicts(server));
            let asked = clients.iter().zip(verdicts);
            chosen.extend(asked.filter(|(_, v)| **v == Verdict::Value).map(|(client, _)| *client));
            let wanted = world.run.clients_per_server.map_or(clients.len(), |c| c as usize);
            let took = verdicts.iter().filter(|v| **v == Verdict::Value).count();
            assert_eq!(took, wanted.min(clients.len()), "{what}");
        }
        let cells: std::collections::BTreeSet<(u32, u32)> = chosen
            .iter()
            .map(|&k| world.federation.members()[k as usize])
            .map(|member| (member.server, member.cluster))
            .collect();
        empty += world.federation.servers() * world.run.clusters - cells.len();
        naive.round(n, &chosen);
        live.own_models(&mut |k, model| {
            let naive = &naive.w[k as usize];
            assert!(close(model, naive), "{what}, round {n}, client {k}: {model:?} {naive:?}");
        });
        live.held(&mut |server, q, name, model| {
            let naive = &naive.served[server as usize][q as usize];
            assert!(
                name != "served" || close(model, naive),
                "{what}, round {n}, server {server}, cluster {q}: {model:?} {naive:?}"
            );
        });
    }
    let can_be_empty = world.run.clusters > 1 && world.federation.servers() > 1;
    assert!(empty > 0 || !can_be_empty, "{what}: no cell was ever empty");
}

fn compare(name: &str, settings: &[(&str, Value)], update: Update, tau: (f64, f64), loss: Loss) {
    for some in [None, Some(2)] {
        let mut seen = federation(31, loss).arranged(name);
        seen.run.clients_per_server = some;
        let rho = 4.0;
        let mut all = settings.to_vec();
        all.push(("penalty", number(rho)));
        let what = format!("{name} {settings:?}, {some:?} clients per server");
        let mut live = seen.start(name, &values(name, &all)).unwrap();
        beside(&mut *live, &mut Naive::new(&seen, update, rho, tau), &what);
    }
}

const SERVED: Update = Update::Pgfl { dual_from_aggregate: false };
const AGGREGATE: Update = Update::Pgfl { dual_from_aggregate: true };

#[test]
fn pgfl_with_either_dual_and_tau_constant_or_falling() {
    for (word, update) in [("served", SERVED), ("aggregate", AGGREGATE)] {
        for (setting, tau) in
            [(number(0.0), (0.0, 1.0)), (number(0.4), (0.4, 1.0)), (decay(0.4, 0.97), (0.4, 0.97))]
        {
            let settings = [("dual", text(word)), ("inter_cluster", setting)];
            compare("pgfl", &settings, update, tau, Loss::Squared);
        }
    }
}

#[test]
fn gfedmtl_with_either_mix() {
    for (word, mean) in [("paper", false), ("mean", true)] {
        for (start, rate) in [(0.5, 1.0), (0.0, 1.0), (0.3, 0.9)] {
            let settings = [("mix", text(word)), ("inter_cluster", number(start)), ("decay", number(rate))];
            compare("gfedmtl", &settings, Update::GFedMtl { mean }, (start, rate), Loss::Squared);
        }
    }
}

#[test]
fn gfl_gfed_clusterfl_and_one_cloud_are_the_same_on_another_roster() {
    let tau = [("inter_cluster", number(0.2))];
    for name in ["gfl", "clusterfl", "one-cloud"] {
        compare(name, &tau, SERVED, (0.2, 1.0), Loss::Squared);
    }
    compare("gfed", &tau, Update::GFedMtl { mean: false }, (0.2, 1.0), Loss::Squared);
}

#[test]
fn single_step() {
    for (setting, tau) in
        [(number(0.0), (0.0, 1.0)), (number(0.3), (0.3, 1.0)), (decay(0.3, 0.95), (0.3, 0.95))]
    {
        compare("single-step", &[("inter_cluster", setting)], Update::SingleStep, tau, Loss::Squared);
    }
}

/// The same equations around curved losses.
fn curved(loss: Loss) {
    let tau = [("inter_cluster", number(0.3))];
    compare("pgfl", &tau, SERVED, (0.3, 1.0), loss);
    compare("gfedmtl", &tau, Update::GFedMtl { mean: false }, (0.3, 1.0), loss);
}

#[test]
fn logistic() {
    curved(Loss::Logistic);
}

#[test]
fn huber() {
    curved(Loss::Huber(0.5));
}
