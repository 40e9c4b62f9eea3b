//! The mean over a client and its strongest neighbours.

use super::operator::{Form, Lists, Means, Operator};
use super::{Base, DenoiseError, Denoiser, Prepared, Strength, Way};

/// `psi_k = sum_j zeta_j omega_j / sum_j zeta_j` over client `k` and those that the `n` strongest edges lead to.
/// Neighbours that tie with the last of them count too, else the result would depend on the order of clients; where
/// fewer edges are listed and all clients are weakly joined, all others tie.
#[derive(Debug)]
pub(super) struct NeighbourMean;

impl Denoiser for NeighbourMean {
    fn sized(&self) -> bool {
        true
    }

    fn base(&self, _clients: usize, _way: Way) -> Base {
        Base::Edges
    }

    fn operator(&self, on: &Prepared, strength: &Strength) -> Result<Operator, DenoiseError> {
        let (clients, count) = (on.clients(), strength.neighbours);
        if count >= clients {
            return Err(DenoiseError::Neighbours(count, clients - 1));
        }
        if count == 0 {
            return Ok(Operator::new(clients, Form::Identity, None));
        }
        let mut lists = Lists { starts: vec![0], entries: Vec::new() };
        let everywhere = on.graph.everywhere() > 0.0;
        let mut whole = 0;
        for client in 0..clients {
            let mut near: Vec<(usize, f64)> = on.graph.neighbours(client).collect();
            near.sort_by(|a, b| b.1.total_cmp(&a.1));
            if let Some(&(_, least)) = near.get(count - 1) {
                near.retain(|&(_, weight)| weight >= least);
                near.push((client, 0.0));
            } else if everywhere {
                near = (0..clients).map(|other| (other, 0.0)).collect();
                whole += 1;
            } else {
                near.push((client, 0.0));
            }
            near.sort_by_key(|&(other, _)| other);
            let total: f64 = near.iter().map(|&(other, _)| on.shares[other]).sum();
            lists.entries.extend(near.iter().map(|&(other, _)| (other as u32, on.shares[other] / total)));
            lists.starts.push(lists.entries.len());
        }
        let form =
            if whole == clients { Form::Means(Means::new(&on.graph, &on.mass)) } else { Form::Lists(lists) };
        Ok(Operator::new(clients, form, None))
    }
}
