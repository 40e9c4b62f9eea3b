//! Clients that spoil a step: records beyond all measure, uploads that are turned away, a server all of whose clients
//! send such uploads. The same becomes of them behind messages and in one process, and where a run cannot go on, all
//! nodes end with the reason of the unfaulted run.

use crate::worlds::Small;
use fedkin_learner::Dataset;
use fedkin_numeric::rng::{PublicRng, Random};
use std::sync::Arc;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// One client's features are so large that their squares are not finite.
    Huge(u32),
    /// One client's numbers are so large that its uploads are turned away.
    Loud(u32),
    /// The same of all clients of the server of this one.
    LoudServer(u32),
    /// Nobody's uploads are accepted.
    NoRoom,
}

impl Flaw {
    /// One of each, at clients of small ids.
    pub const EACH: [Flaw; 4] = [Flaw::Huge(5), Flaw::Loud(7), Flaw::LoudServer(3), Flaw::NoRoom];

    /// Any of them, at any client.
    pub fn draw(rng: &mut PublicRng, clients: u32) -> Self {
        let client = rng.below(clients);
        match rng.below(6) {
            0 | 1 => Flaw::Huge(client),
            2 => Flaw::Loud(client),
            3 | 4 => Flaw::LoudServer(client),
            _ => Flaw::NoRoom,
        }
    }

    /// Brings it into a world as a method sees it.
    pub fn spoil(self, world: &mut Small) {
        let times = |data: &Arc<Dataset>, features: f64, targets: f64| {
            let x = data.features().iter().map(|x| x * features).collect();
            let y = data.targets().iter().map(|y| y * targets).collect();
            Arc::new(Dataset::new(data.columns(), x, y).unwrap())
        };
        let loud = |world: &mut Small, clients: &[u32]| {
            world.run.max_norm2 = 1e6;
            for &client in clients {
                let data = &mut world.data[client as usize];
                *data = times(data, 1e3, 1e12);
            }
        };
        match self {
            Flaw::Huge(client) => {
                let data = &mut world.data[client as usize];
                *data = times(data, 1e160, 1.0);
            }
            Flaw::Loud(client) => loud(world, &[client]),
            Flaw::LoudServer(client) => {
                let server = world.federation.members()[client as usize].server;
                let clients = world.federation.clients_of(server).to_vec();
                loud(world, &clients);
            }
            Flaw::NoRoom => world.run.max_norm2 = 1e-20,
        }
    }
}
