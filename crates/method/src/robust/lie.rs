//! Clients that lie, for simulations that ask what a lie does: what leaves the client is altered on its way out.

use std::sync::Arc;

/// How an upload is altered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lie {
    /// The model times this number: -1 flips its sign.
    Times(f64),
    /// The model that was served, as if nothing had been learnt.
    FreeRide,
}

/// Who lies, and how. A run on nodes has none.
#[derive(Debug, Clone, PartialEq)]
pub struct Liars {
    /// By id, sorted.
    pub clients: Arc<[u32]>,
    /// What they do.
    pub lie: Lie,
}

impl Liars {
    /// Alters what a client is about to send; `served` is what it was asked with.
    pub fn alter(&self, client: u32, model: &mut [f64], served: &[f64]) {
        if self.clients.binary_search(&client).is_err() {
            return;
        }
        match self.lie {
            Lie::Times(factor) => model.iter_mut().for_each(|value| *value *= factor),
            Lie::FreeRide => {
                for (value, served) in model.iter_mut().zip(served) {
                    *value = *served;
                }
            }
        }
    }
}
