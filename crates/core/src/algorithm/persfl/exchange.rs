//! Who is asked what, and which step is taken.

use super::draw::{self, Sampling};
use super::{CAP, Central, GOOD, PersFl, Seat, client_of, target_of, worth};
use crate::algorithm::{Now, Run, Seats, Who};
use crate::numeric::update;
use crate::rng::PublicRng;

/// An empty list with the memory of the last round's, which is as long.
fn reused(list: &mut Box<[u32]>) -> Vec<u32> {
    let mut list = std::mem::take(list).into_vec();
    list.clear();
    list
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

    /// (1), in place.
    pub(super) fn step(&self, model: &mut [f64], gradient: &[f64]) {
        update(model, gradient, |w, g| w - self.learning_rate * g);
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
            let accepted = !self.guarded || seat.watch.accepts(least);
            // The loss is convex, or nearly so: the mean of good steps is at least as good as they are on average.
            let good = |loss: f64| loss <= GOOD * least;
            let share = self.learning_rate / losses.iter().filter(|loss| good(**loss)).count() as f64;
            for ((client, gradient), &loss) in offers.zip(losses) {
                worth.note(target, client as usize, clients, worth::reward(before, loss));
                if accepted && good(loss) {
                    update(model, gradient, |w, g| w - share * g);
                }
            }
        } else if !self.guarded || seat.watch.accepts(seat.numbers[0]) {
            let chosen = self.offers(server, run.dimension, target).nth(seat.choice as usize);
            if let Some((_, gradient)) = chosen {
                self.step(model, gradient);
            }
        }
        (server.models, server.worth) = (models, worth);
    }

    /// Draws the candidates of every target and turns the lists round.
    pub(super) fn draw(
        &self,
        server: &mut Central,
        seats: &mut Seats<'_, Seat>,
        now: Now<'_>,
        rng: &mut PublicRng,
    ) -> Who {
        let (run, members) = (now.at.run, now.at.members);
        let targets = run.targets.as_ref().map_or(members.len(), |targets| targets.len());
        let mut candidates = reused(&mut server.candidates);
        let (count, clients) = (self.candidates, members.len());
        for target in 0..targets {
            let client = client_of(run, target);
            match self.sampling {
                Sampling::Uniform => draw::uniform(count, client, clients, rng, &mut candidates),
                Sampling::Cluster => draw::of_cluster(count, client, members, rng, &mut candidates),
                Sampling::Bandit | Sampling::Graph => {
                    let cap = if self.sampling == Sampling::Graph { f64::INFINITY } else { CAP };
                    server.worth.draw(count as usize, run, target, clients, cap, rng, &mut candidates);
                }
            }
        }
        // How often a client is a candidate, and as which of its times it is one here.
        let mut times = vec![0u32; clients];
        let mut places = reused(&mut server.places);
        places.extend(candidates.iter().map(|&candidate| {
            times[candidate as usize] += 1;
            times[candidate as usize] - 1
        }));
        let asked: Vec<u32> = if targets == 1 {
            candidates.clone()
        } else {
            (0..clients as u32).filter(|&i| times[i as usize] > 0).collect()
        };
        let mut first = 0;
        for &i in &asked {
            let seat = seats.get_mut(i as usize);
            (seat.offered, seat.first) = (times[i as usize], first);
            first += seat.offered;
        }
        let mut probes = reused(&mut server.probes);
        probes.resize(candidates.len(), 0);
        for (i, (&candidate, &place)) in candidates.iter().zip(&places).enumerate() {
            probes[(seats.get(candidate as usize).first + place) as usize] = (i / count as usize) as u32;
        }
        server.queries += candidates.len() as u64;
        (server.candidates, server.places) = (candidates.into(), places.into());
        server.probes = probes.into();
        Who::Some(asked)
    }
}
