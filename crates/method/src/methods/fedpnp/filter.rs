//! The server's part of a round: all models through the filter.

use super::{Central, Edges, FedPnp, Seat};
use crate::algorithm::{Seats, ServerView};
use fedkin_graph::denoise::{self, DenoiseError, Operator, Prepared, Way};
use fedkin_learner::Role;
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink, Weights};
use std::ops::Range;
use std::sync::Arc;

/// The filter of the graph that was used last: an eigendecomposition serves as long as the graph stands. It follows from the
/// graph, so it is neither kept nor compared.
#[derive(Debug, Clone, Default)]
pub struct Ready(Option<(Edges, Arc<Prepared>)>);

impl PartialEq for Ready {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Codec for Ready {
    fn schema() -> String {
        "()".into()
    }
    fn put<S: Sink>(&self, _: &mut S) {}
    fn get(_: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self::default())
    }
}

impl Ready {
    /// The filter of this graph, made anew where it is another one than last time.
    fn of(
        &mut self,
        filter: denoise::DenoiserRow,
        edges: &Edges,
        at: ServerView<'_>,
    ) -> Result<Arc<Prepared>, DenoiseError> {
        if let Some((known, prepared)) = &self.0
            && known == edges
        {
            return Ok(Arc::clone(prepared));
        }
        let sizes: Vec<f64> = at.members.iter().map(|member| f64::from(member.samples)).collect();
        let graph = edges.graph(sizes.len()).ok_or(DenoiseError::Weights)?;
        let prepared = Arc::new(Prepared::new(filter, graph, &sizes, Way::Auto)?);
        self.0 = Some((edges.clone(), Arc::clone(&prepared)));
        Ok(prepared)
    }
}

impl FedPnp {
    /// Psi from Omega.
    pub(super) fn filter(
        &self,
        server: &mut Central,
        seats: &mut Seats<'_, Seat>,
        at: ServerView<'_>,
        round: u32,
    ) -> Result<(), DenoiseError> {
        let Some(edges) = &server.graph else {
            for position in 0..seats.len() {
                let seat = seats.get_mut(position);
                if !seat.omega.is_empty() {
                    seat.psi.clone_from(&seat.omega);
                }
            }
            return Ok(());
        };
        let mut strength = self.settings.strength(round);
        // All others where there are fewer.
        strength.neighbours = strength.neighbours.min(seats.len().saturating_sub(1));
        server.strength =
            if self.settings.filter.keys.contains(&"tau") { strength.tau as f64 } else { strength.beta1 };
        let operator = server.ready.of(self.settings.filter, edges, at)?.at(&strength)?;
        let omega: Vec<Vec<f64>> = seats.iter().map(|seat| server.known(seat).0.clone()).collect();
        let mut psi = omega.clone();
        apply(&operator, &omega, &mut psi, 0..at.run.dimension)?;
        let family = self.settings.training.family();
        let averaging = operator.averaging();
        for range in family.ranges(&[Role::Statistics]) {
            if self.settings.own_statistics {
                for (psi, omega) in psi.iter_mut().zip(&omega) {
                    psi[range.clone()].copy_from_slice(&omega[range.clone()]);
                }
            } else {
                apply(&averaging, &omega, &mut psi, range)?;
            }
        }
        for (position, mut psi) in psi.into_iter().enumerate() {
            family.round(&mut psi);
            seats.get_mut(position).psi = Weights(psi);
        }
        Ok(())
    }
}

/// Filters some coordinates of all models.
fn apply(
    operator: &Operator,
    omega: &[Vec<f64>],
    psi: &mut [Vec<f64>],
    range: Range<usize>,
) -> Result<(), DenoiseError> {
    let rows: Vec<&[f64]> = omega.iter().map(|row| &row[range.clone()]).collect();
    let mut out: Vec<&mut [f64]> = psi.iter_mut().map(|row| &mut row[range.clone()]).collect();
    operator.apply(&rows, &mut out)
}
