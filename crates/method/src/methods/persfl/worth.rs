//! What clients were worth to each other, and who is asked because of it.
//!
//! Whenever target t tries the step of candidate c, the reward is `ln(L_t before / L_t after)`, cut off at -1 and 1: losses
//! fall over many orders of magnitude, so differences as in (2) would only count the first rounds. The bandit is Thompson
//! sampling with one number per pair, both directions together:
//!
//! ```text
//! score(t, c) = S / (N + 1) + z / sqrt(min(N, cap) + 1)         S, N: rewards and tries of the pair, z standard normal
//! ```
//!
//! The cap keeps the noise from vanishing, so other candidates are tried for ever: a model that was shaped by the same few
//! kin stops improving. While kin are being discovered there is no cap.
//!
//! and the candidates of t are the B with the highest scores: those of which nothing is known are as good as drawn by lot.

use super::{client_of, target_of};
use crate::algorithm::Run;
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_numeric::{ln, record};

record! {
    /// Rewards of all pairs: a row per target, a column per client.
    pub struct Worth {
        /// Sums of rewards.
        sums: Vec<f64>,
        /// How often a candidate was tried.
        tries: Vec<f64>,
    }
}

/// Where a reward is cut off.
const MOST: f64 = 1.0;
/// A loss of zero has no logarithm.
const LEAST: f64 = 1e-300;

/// The reward of a step.
pub(super) fn reward(before: f64, after: f64) -> f64 {
    (ln(before.max(LEAST)) - ln(after.max(LEAST))).clamp(-MOST, MOST)
}

impl Worth {
    /// Nothing is known of so many targets and clients.
    pub(super) fn unknown(targets: usize, clients: usize) -> Self {
        Self { sums: vec![0.0; targets * clients], tries: vec![0.0; targets * clients] }
    }

    /// Notes a reward.
    pub(super) fn note(&mut self, target: usize, client: usize, clients: usize, reward: f64) {
        self.sums[target * clients + client] += reward;
        self.tries[target * clients + client] += 1.0;
    }

    /// Sum and number of rewards of one direction.
    fn of(&self, target: usize, client: usize, clients: usize) -> (f64, f64) {
        let at = target * clients + client;
        (self.sums[at], self.tries[at])
    }

    /// Sum and number of rewards of a pair of a target and a client, in both directions where the client is a target, too.
    fn of_pair(&self, run: &Run, target: usize, client: usize, clients: usize) -> (f64, f64) {
        let (sum, tries) = self.of(target, client, clients);
        match target_of(run, client as u32) {
            Some(other) => {
                let (back, more) = self.of(other, client_of(run, target), clients);
                (sum + back, tries + more)
            }
            None => (sum, tries),
        }
    }

    /// Adds the `count` candidates with the highest scores of a target, sorted.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn draw(
        &self,
        count: usize,
        run: &Run,
        target: usize,
        clients: usize,
        cap: f64,
        rng: &mut PublicRng,
        out: &mut Vec<u32>,
    ) {
        let own = client_of(run, target);
        // The best so far, the least of them last.
        let mut best: Vec<(f64, u32)> = Vec::with_capacity(count + 1);
        for client in (0..clients).filter(|&client| client != own) {
            let (sum, tries) = self.of_pair(run, target, client, clients);
            let score = sum / (tries + 1.0) + rng.normal() / (tries.min(cap) + 1.0).sqrt();
            if best.len() < count || score > best[count - 1].0 {
                let at = best.partition_point(|(known, _)| *known >= score);
                best.insert(at, (score, client as u32));
                best.truncate(count);
            }
        }
        let begin = out.len();
        out.extend(best.into_iter().map(|(_, client)| client));
        out[begin..].sort_unstable();
    }

    /// Mean reward of every pair that was tried, both directions together: (smaller, larger, worth).
    pub(super) fn pairs(&self, run: &Run, clients: usize) -> Vec<(u32, u32, f64)> {
        let mut pairs = Vec::new();
        for target in 0..self.sums.len() / clients.max(1) {
            let own = client_of(run, target);
            for client in 0..clients {
                // Seen from the smaller one, unless only the larger one is a target.
                let twice = client < own && target_of(run, client as u32).is_some();
                if client == own || twice {
                    continue;
                }
                let (sum, tries) = self.of_pair(run, target, client, clients);
                if tries > 0.0 {
                    pairs.push((own.min(client) as u32, own.max(client) as u32, sum / tries));
                }
            }
        }
        pairs.sort_unstable_by_key(|&(a, b, _)| (a, b));
        pairs
    }

    /// How much closer than usual every two clients are, where all clients are targets: mean rewards in units of
    /// each target's own spread, both directions weighted by their tries; NaN where nothing is known. Targets differ in
    /// how much any step helps them, and that says nothing about kin.
    pub(super) fn closeness(&self, clients: usize) -> Vec<f64> {
        let mut scaled = vec![f64::NAN; clients * clients];
        for target in 0..clients {
            let means: Vec<(usize, f64)> = (0..clients)
                .map(|client| (client, self.of(target, client, clients)))
                .filter(|(_, (_, tries))| *tries > 0.0)
                .map(|(client, (sum, tries))| (client, sum / tries))
                .collect();
            let count = means.len() as f64;
            let mean = means.iter().map(|(_, x)| x).sum::<f64>() / count;
            let spread = (means.iter().map(|(_, x)| (x - mean) * (x - mean)).sum::<f64>() / count).sqrt();
            if spread > 0.0 {
                for (client, x) in means {
                    scaled[target * clients + client] = (x - mean) / spread;
                }
            }
        }
        let mut close = vec![f64::NAN; clients * clients];
        for a in 0..clients {
            for b in a + 1..clients {
                let weigh = |from: usize, to: usize| {
                    let (value, tries) = (scaled[from * clients + to], self.tries[from * clients + to]);
                    if value.is_nan() { (0.0, 0.0) } else { (value * tries, tries) }
                };
                let ((there, n), (back, m)) = (weigh(a, b), weigh(b, a));
                if n + m > 0.0 {
                    close[a * clients + b] = (there + back) / (n + m);
                    close[b * clients + a] = close[a * clients + b];
                }
            }
        }
        close
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_privacy::Privacy;

    fn run(targets: Option<&[u32]>) -> Run {
        Run {
            seed: 1,
            rounds: 1,
            clients_per_server: None,
            max_norm2: 1.0,
            dimension: 1,
            clusters: 1,
            privacy: Privacy::None,
            targets: targets.map(Into::into),
            kin: None,
            columns: None,
            learners: None,
        }
    }

    #[test]
    fn rewards_are_logarithms_cut_off() {
        assert!((reward(1.0, 2.0) + 2f64.ln()).abs() < 1e-15);
        assert_eq!((reward(1.0, 1e-9), reward(1.0, 1e9), reward(0.0, 0.0)), (1.0, -1.0, 0.0));
    }

    #[test]
    fn what_is_known_to_help_is_drawn_and_what_harms_is_not() {
        let (mut worth, run) = (Worth::unknown(10, 10), run(None));
        for other in 1..10 {
            for _ in 0..200 {
                worth.note(0, other, 10, if other < 4 { 0.5 } else { -0.5 });
            }
        }
        let mut out = Vec::new();
        worth.draw(3, &run, 0, 10, f64::INFINITY, &mut PublicRng::named(3, "test", 0, 0), &mut out);
        assert_eq!(out, [1, 2, 3]);
        // The other direction knows it, too.
        out.clear();
        worth.draw(9, &run, 5, 10, f64::INFINITY, &mut PublicRng::named(3, "test", 0, 0), &mut out);
        assert_eq!(out, [0, 1, 2, 3, 4, 6, 7, 8, 9]);
        let (sum, tries) = worth.of_pair(&run, 5, 0, 10);
        assert_eq!((sum, tries), (-100.0, 200.0));
    }

    #[test]
    fn pairs_are_named_once_and_only_where_somebody_tried() {
        let mut worth = Worth::unknown(3, 3);
        worth.note(0, 1, 3, 0.5);
        worth.note(1, 0, 3, 0.1);
        worth.note(2, 0, 3, -1.0);
        assert_eq!(worth.pairs(&run(None), 3), [(0, 1, 0.3), (0, 2, -1.0)]);
        let mut worth = Worth::unknown(1, 3);
        worth.note(0, 0, 3, 0.5);
        worth.note(0, 2, 3, 0.25);
        assert_eq!(worth.pairs(&run(Some(&[1])), 3), [(0, 1, 0.5), (1, 2, 0.25)]);
    }
}
