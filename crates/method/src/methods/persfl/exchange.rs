//! Who is asked what, and which step is taken.

use super::draw::{self, Sampling};
use super::{CAP, Central, GOOD, PROBE, PersFl, Seat, client_of, single, target_of, worth};
use crate::algorithm::{Now, Run, Seats, Who};
use crate::federation::Member;
use crate::methods::Accept;
use fedkin_numeric::{extend_with, update};

/// An empty list with the memory of the last round's, which is as long.
fn reused(list: &mut Box<[u32]>) -> Vec<u32> {
    let mut list = std::mem::take(list).into_vec();
    list.clear();
    list
}

/// Turns the lists of all targets round: who is asked, at whose place its gradient for a target will be (by candidate),
/// and which targets' models a client gets (by client).
fn turned(
    candidates: &[u32],
    count: u32,
    seats: &mut Seats<'_, Seat>,
    places: &mut Vec<u32>,
    probes: &mut Vec<u32>,
) -> Vec<u32> {
    // How often a client is a candidate, and as which of its times it is one here.
    let mut times = vec![0u32; seats.len()];
    places.extend(candidates.iter().map(|&candidate| {
        times[candidate as usize] += 1;
        times[candidate as usize] - 1
    }));
    let asked: Vec<u32> = (0..seats.len() as u32).filter(|&i| times[i as usize] > 0).collect();
    let mut first = 0;
    for &i in &asked {
        let seat = seats.get_mut(i as usize);
        (seat.offered, seat.first) = (times[i as usize], first);
        first += seat.offered;
    }
    probes.resize(candidates.len(), 0);
    for (i, (&candidate, &place)) in candidates.iter().zip(&*places).enumerate() {
        probes[(seats.get(candidate as usize).first + place) as usize] = i as u32 / count;
    }
    asked
}

impl PersFl {
    /// The steps a target is offered: its candidates that answered, with the place of their gradient.
    pub(super) fn offers<'a>(
        &self,
        server: &'a Central,
        dimension: usize,
        target: usize,
    ) -> impl Iterator<Item = (u32, &'a [f64])> + use<'a> {
        let count = self.candidates as usize;
        let range = target * count..(target + 1) * count;
        server.candidates[range.clone()].iter().zip(&server.places[range]).filter_map(move |(&c, &place)| {
            let at = place as usize * dimension;
            server.gradients[c as usize].get(at..at + dimension).map(|gradient| (c, gradient))
        })
    }

    /// (1) for one coordinate.
    #[inline]
    pub(super) fn stepped(&self, w: f64, g: f64) -> f64 {
        w - self.learning_rate * g
    }

    /// What a step does to a regulariser with kinks, of which a client has one of so many parts.
    #[inline]
    pub(super) fn shrink(&self, w: &mut [f64], clients: usize) {
        self.families.first().shrink(w, self.learning_rate / clients as f64);
    }

    /// Whether a step belongs to the groups.
    pub(super) fn grouped(&self, step: u32) -> bool {
        self.sampling == Sampling::Graph && step > 2 * self.warm_up
    }

    /// A client's model; empty where it has none.
    pub(super) fn model_of<'a>(server: &'a Central, run: &Run, id: u32) -> &'a [f64] {
        if !server.groups.is_empty() {
            return server.groups.model_of(id);
        }
        let d = run.dimension;
        target_of(run, id).map_or(&[], |target| &server.models[target * d..(target + 1) * d])
    }

    /// What one client gets beside the broadcast.
    pub(super) fn own_part(
        &self,
        server: &Central,
        seat: &Seat,
        now: Now<'_>,
        member: &Member,
        out: &mut Vec<f64>,
    ) {
        let d = now.at.run.dimension;
        let model = |target: usize| &server.models[target * d..(target + 1) * d];
        if now.label == PROBE {
            for &target in &server.probes[seat.first as usize..][..seat.offered as usize] {
                out.extend_from_slice(model(target as usize));
            }
        } else if self.grouped(now.step) {
            out.extend_from_slice(server.groups.sent(member.id as usize, d));
        } else if let Some(target) = target_of(now.at.run, member.id) {
            for (_, gradient) in self.offers(server, d, target) {
                let from = out.len();
                extend_with(out, model(target), gradient, |w, g| self.stepped(w, g));
                self.shrink(&mut out[from..], now.at.members.len());
            }
            if self.sampling.remembers() {
                out.extend_from_slice(model(target));
            }
        }
    }

    /// A target has answered: notes rewards, and takes the step if the guard lets it.
    pub(super) fn choose(
        &self,
        server: &mut Central,
        seat: &mut Seat,
        run: &Run,
        target: usize,
        clients: usize,
    ) {
        let mut models = std::mem::take(&mut server.models);
        let mut worth = std::mem::take(&mut server.worth);
        let model = &mut models[target * run.dimension..(target + 1) * run.dimension];
        if self.sampling.remembers() {
            let offers = self.offers(server, run.dimension, target);
            let (losses, before) = seat.numbers.split_at(seat.offered as usize);
            let before = before.first().copied().unwrap_or(f64::NAN);
            let least = losses[seat.choice as usize];
            let accepted = self.accept == Accept::Paper || seat.watch.accepts(least);
            // The loss is convex, or nearly so: the mean of good steps is at least as good as they are on average.
            let good = |loss: f64| loss <= GOOD * least;
            let share = self.learning_rate / losses.iter().filter(|loss| good(**loss)).count() as f64;
            for ((client, gradient), &loss) in offers.zip(losses) {
                worth.note(target, client as usize, clients, worth::reward(before, loss));
                if accepted && good(loss) {
                    update(model, gradient, |w, g| w - share * g);
                }
            }
            if accepted {
                self.shrink(model, clients);
            }
        } else if self.accept == Accept::Paper || seat.watch.accepts(seat.numbers[0]) {
            let chosen = self.offers(server, run.dimension, target).nth(seat.choice as usize);
            if let Some((_, gradient)) = chosen {
                update(model, gradient, |w, g| self.stepped(w, g));
                self.shrink(model, clients);
            }
        }
        (server.models, server.worth) = (models, worth);
    }

    /// Draws the candidates of every target and turns the lists round.
    pub(super) fn draw(&self, server: &mut Central, seats: &mut Seats<'_, Seat>, now: Now<'_>) -> Who {
        let mut rng = now.rng();
        let (run, members) = (now.at.run, now.at.members);
        let targets = run.targets.as_ref().map_or(members.len(), |targets| targets.len());
        // What does not come this time leaves nothing of an earlier round behind.
        server.candidates.iter().for_each(|&candidate| server.gradients[candidate as usize].clear());
        let mut candidates = reused(&mut server.candidates);
        let (count, clients) = (self.candidates, members.len());
        for target in 0..targets {
            let client = client_of(run, target);
            match self.sampling {
                Sampling::Uniform => draw::uniform(count, client, clients, &mut rng, &mut candidates),
                Sampling::Cluster => draw::of_cluster(count, client, members, &mut rng, &mut candidates),
                Sampling::Bandit | Sampling::Graph => {
                    let cap = if self.sampling == Sampling::Graph { f64::INFINITY } else { CAP };
                    server.worth.draw(count as usize, run, target, clients, cap, &mut rng, &mut candidates);
                }
            }
        }
        let mut places = reused(&mut server.places);
        let mut probes = reused(&mut server.probes);
        let asked = if single(run) {
            places.resize(candidates.len(), 0);
            probes.resize(candidates.len(), 0);
            for (first, &candidate) in (0u32..).zip(&candidates) {
                let seat = seats.get_mut(candidate as usize);
                (seat.offered, seat.first) = (1, first);
            }
            candidates.clone()
        } else {
            turned(&candidates, count, seats, &mut places, &mut probes)
        };
        server.queries += candidates.len() as u64;
        (server.candidates, server.places) = (candidates.into(), places.into());
        server.probes = probes.into();
        Who::Some(asked)
    }
}
