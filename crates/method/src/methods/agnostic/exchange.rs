//! Who asks whom, and who took what from whom.

use super::{Central, PersFlAgnostic, Probe, Seat, columns, is_target, labels_of};
use crate::algorithm::{Closed, Now, Seats, ServerKin, Who};
use fedkin_numeric::rng::Random;

impl PersFlAgnostic {
    /// Draws the candidates of every target, and tells them what to re-train.
    pub(super) fn draw(&self, seats: &mut Seats<'_, Seat>, now: Now<'_>) -> Who {
        let mut rng = now.rng();
        let members = now.at.members;
        let points = self.points(now.at.run);
        let mut asked: Vec<(Vec<u32>, Vec<Probe>)> = members.iter().map(|_| Default::default()).collect();
        for (target, member) in members.iter().enumerate() {
            let seat = seats.get(target);
            if !is_target(now.at.run, member.id) || seat.model.is_empty() {
                continue;
            }
            let shown = if self.public == 0 {
                seat.model.clone()
            } else {
                let family = self.families.of(now.at.run, member.id);
                let Some(labels) = labels_of(family, &seat.model, &points, columns(now.at.run)) else {
                    continue;
                };
                labels
            };
            // Without repetition, never the target itself.
            for drawn in rng.choose(members.len() as u32 - 1, self.candidates) {
                let candidate = (drawn + u32::from(drawn as usize >= target)) as usize;
                asked[candidate].0.push(target as u32);
                asked[candidate].1.push(Probe { kind: seat.kind, shown: shown.clone() });
            }
        }
        let mut who = Vec::new();
        for (candidate, (targets, probes)) in asked.into_iter().enumerate() {
            if !targets.is_empty() {
                let seat = seats.get_mut(candidate);
                (seat.targets, seat.probes) = (targets.into(), probes.into());
                who.push(candidate as u32);
            }
        }
        Who::Some(who)
    }
}

/// Gives the targets what was fitted for them, and forgets what was asked.
pub(super) fn deal(server: &mut Central, seats: &mut Seats<'_, Seat>, closed: &Closed<'_>) {
    let mut offers: Vec<(Vec<Vec<f64>>, Vec<u32>)> = seats.iter().map(|_| Default::default()).collect();
    for position in closed.values() {
        let seat = seats.get_mut(position);
        for (&target, model) in seat.targets.iter().zip(std::mem::take(&mut seat.fitted)) {
            let (models, from) = &mut offers[target as usize];
            models.push(model);
            from.push(position as u32);
        }
    }
    for (position, (models, from)) in offers.into_iter().enumerate() {
        server.queries += models.len() as u64;
        let busy = !seats.get(position).probes.is_empty();
        if busy || !models.is_empty() {
            let seat = seats.get_mut(position);
            (seat.targets, seat.probes) = (Box::default(), Box::default());
            (seat.offers, seat.from) = (models.into(), from.into());
        }
    }
}

/// Counts one more choice of this neighbour.
pub(super) fn count(kin: &mut Box<[(u32, u32)]>, position: u32) {
    match kin.binary_search_by_key(&position, |pair| pair.0) {
        Ok(at) => kin[at].1 += 1,
        Err(at) => {
            let mut list = std::mem::take(kin).into_vec();
            list.insert(at, (position, 1));
            *kin = list.into();
        }
    }
}

/// How often two clients took each other's offers.
pub(super) fn kin(seats: &[Seat]) -> ServerKin {
    let mut edges: Vec<(u32, u32, f64)> = Vec::new();
    for (target, seat) in seats.iter().enumerate() {
        let pairs = seat.kin.iter().map(|&(other, times)| {
            let target = target as u32;
            (target.min(other), target.max(other), f64::from(times))
        });
        edges.extend(pairs);
    }
    edges.sort_by_key(|&(a, b, _)| (a, b));
    edges.dedup_by(|later, first| {
        let same = (later.0, later.1) == (first.0, first.1);
        if same {
            first.2 += later.2;
        }
        same
    });
    ServerKin { edges, clusters: Vec::new() }
}
