//! What privacy costs as a run goes on: noise against signal, and epsilon over the rounds.
//!
//! Signal to noise comes from the clients' exact models, which only a simulation has: it is computed outside the
//! privacy model, like every score, and stands in no ledger.

use crate::plan::Plan;
use fedkin_method::round::Results;
use fedkin_privacy::{Account, Draws, Prices, Privacy};
use std::collections::BTreeMap;

/// Power of an upload before the noise over the power of the noise, mean over the clients of a round.
pub const SIGNAL_TO_NOISE: &str = "snr.upload";
/// Epsilon of the client that has spent most so far: the guarantee.
pub const LARGEST: &str = "epsilon.largest";
/// Epsilon of the client that has spent least so far.
pub const LEAST: &str = "epsilon.least";
/// Mean of epsilon over clients: nobody's guarantee.
pub const MEAN: &str = "epsilon.mean";
/// One client's zCDP after the last round, where nothing was sampled.
pub const SPENT: &str = "zcdp.spent";

/// What an epsilon that rests on an assumed bound is worth.
pub const ASSUMED: &str =
    "the gradient bound is assumed, not enforced: the epsilon holds only if the bound does";

/// What the epsilon of a config is worth where it is a claim that was refuted.
pub const REFUTED: &str =
    "NOT PRIVATE: privacy.epsilon is the claim of the paper, refuted by an audit; no epsilon holds";

/// Whether a metric says something of models; the others say what was spent or turned away.
pub fn is_score(metric: &str) -> bool {
    metric != SIGNAL_TO_NOISE && metric.contains('.') && !is_spent(metric)
}

/// Whether a metric says what was spent, which a summary says by itself.
pub fn is_spent(metric: &str) -> bool {
    [LARGEST, LEAST, MEAN, SPENT].contains(&metric)
}

impl Plan {
    /// What to warn of before anything is spent: the run claims privacy on the strength of a bound that nothing enforces,
    /// or one that does not hold; or what its method says of such settings.
    pub fn doubt(&self) -> Option<&'static str> {
        match self.privacy {
            Privacy::Zcdp(zcdp) if self.privacy.demanded() && zcdp.assumed.is_some() => Some(ASSUMED),
            Privacy::Paper(_) if self.privacy.demanded() => Some(REFUTED),
            _ => {
                let caveat = self.row.typed.caveat;
                caveat(&self.config.algorithm_values, &self.context(self.privacy), self.rounds())
                    .ok()
                    .flatten()
            }
        }
    }

    /// Whether an epsilon holds for what the run releases.
    pub(crate) fn guarantees(&self) -> bool {
        self.privacy.demanded() && !matches!(self.privacy, Privacy::Paper(_))
    }
}

/// What the price of an account depends on; accounts are grouped by it.
pub(crate) fn price_key(account: &Account) -> (u64, Vec<[u64; 3]>) {
    let bits = |draws: &Draws| [draws.multiplier.to_bits(), draws.rate.to_bits(), draws.steps];
    (account.spent, account.sampled.iter().map(bits).collect())
}

/// Measures a run between its rounds.
pub(crate) struct Spending {
    private: bool,
    guaranteed: bool,
    delta: f64,
    limit: usize,
    /// Totals repeat between clients and rounds, so few conversions are needed.
    known: BTreeMap<(u64, Vec<[u64; 3]>), f64>,
    prices: Prices,
}

impl Spending {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            private: plan.privacy.demanded(),
            guaranteed: plan.guarantees(),
            delta: plan.delta(),
            limit: plan.config.evaluate.per_client_limit,
            known: BTreeMap::new(),
            prices: Prices::default(),
        }
    }

    /// What is known after a round. `accounts`: epsilon as well, which the first repeat stands for.
    pub(crate) fn measure(&mut self, live: &dyn Results, accounts: bool, push: &mut dyn FnMut(&str, f64)) {
        if !self.private {
            return;
        }
        if let Some(ratio) = live.signal_to_noise() {
            push(SIGNAL_TO_NOISE, ratio);
        }
        if !accounts || !self.guaranteed {
            return;
        }
        let accounts = live.accounts();
        let (mut least, mut largest) = (f64::INFINITY, 0.0f64);
        if accounts.len() <= self.limit {
            let mut sum = 0.0;
            for account in &accounts {
                let epsilon = self.epsilon(account);
                (least, largest) = (least.min(epsilon), largest.max(epsilon));
                sum += epsilon;
            }
            push(MEAN, sum / accounts.len() as f64);
        } else {
            // Epsilon grows with the total, so two conversions say the range; a mean would take one for each client.
            // Sampled releases are worth less than their total says, but there are few kinds of accounts then.
            let by_total = |account: &&Account| account.total();
            let ends = [accounts.iter().min_by_key(by_total), accounts.iter().max_by_key(by_total)];
            let sampled = accounts.iter().any(|account| !account.sampled.is_empty());
            let all = if sampled { &accounts[..] } else { &[] };
            for account in ends.into_iter().flatten().chain(all) {
                let epsilon = self.epsilon(account);
                (least, largest) = (least.min(epsilon), largest.max(epsilon));
            }
        }
        push(LEAST, least);
        push(LARGEST, largest);
    }

    /// By the conversion of the headline.
    fn epsilon(&mut self, account: &Account) -> f64 {
        let (prices, delta) = (&mut self.prices, self.delta);
        *self.known.entry(price_key(account)).or_insert_with(|| prices.epsilon(account, delta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifacts::metrics::Metrics;
    use crate::control::Control;
    use crate::outcome::Outcome;
    use crate::registry::Registry;
    use crate::repeat::run_repeat;
    use fedkin_config::{Override, Source};
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    const CONFIG: &str = "version = 1\n\
        [run]\nname = \"s\"\nseed = 3\nrounds = 12\nrepeats = 2\n\
        [data]\nsource = \"synthetic.clustered-regression\"\nclients_per_server = 6\ndimension = 4\n\
        [topology]\ngraph = { kind = \"random\", servers = 4, mean_degree = 2.0 }\n\
        [model]\nkind = \"ridge\"\n\
        [algorithm]\nname = \"pgfl\"\n\
        [participation]\nclients_per_server = 2\n\
        [privacy]\nmechanism = \"zcdp\"\nbound = \"assumed\"\ngradient_bound = 0.01\n\
        [evaluate]\nevery = 3\n";

    fn plan(sets: &[&str]) -> Plan {
        let source = Source { name: "s.toml".into(), text: CONFIG.into() };
        let overrides: Vec<Override> = sets.iter().map(|text| Override::parse(text).unwrap()).collect();
        Plan::load(&Registry::native(), &source, Path::new(""), &overrides, &[]).unwrap()
    }

    fn outcome(plan: &Plan, repeat: u32) -> Outcome {
        let control = Control { stop: &AtomicBool::new(false), tick: &|| () };
        run_repeat(plan, repeat, None, repeat == 0, &control).unwrap()
    }

    fn of(metrics: &Metrics, name: &str) -> Vec<f64> {
        metrics.rows().filter(|row| row.metric == name).map(|row| row.value).collect()
    }

    #[test]
    fn epsilon_over_rounds_ends_at_the_headline() {
        let done = outcome(&plan(&[]), 0);
        let [largest, mean, least] = [LARGEST, MEAN, LEAST].map(|name| of(&done.metrics, name));
        assert_eq!((largest.len(), mean.len(), least.len()), (4, 4, 4));
        assert_eq!(largest[3], done.spent.largest_epsilon);
        assert!((mean[3] - done.spent.mean_epsilon).abs() < 1e-12);
        assert!(least[3] < mean[3] && mean[3] < largest[3]);
        assert!(largest.windows(2).all(|pair| pair[0] <= pair[1]) && largest[0] < largest[3], "{largest:?}");
        let spent = of(&done.metrics, SPENT);
        assert_eq!((spent.len(), spent.iter().copied().fold(0.0, f64::max)), (24, done.spent.largest_zcdp));
        assert_eq!(of(&done.metrics, SIGNAL_TO_NOISE).len(), 4);
    }

    #[test]
    fn a_refuted_claim_has_no_epsilon() {
        let text = "version = 1\n\
            [run]\nname = \"g\"\nrounds = 2\n\
            [data]\nsource = \"synthetic.graph-signals\"\nnodes = 5\nclients = 3\nsamples = 20\n\
            [model]\nkind = \"graph\"\n\
            [algorithm]\nname = \"fedgl\"\nsolver = \"paper\"\n\
            [privacy]\nmechanism = \"paper\"\nepsilon = 1.0\n";
        let load = |sets: &[&str]| {
            let source = Source { name: "g.toml".into(), text: text.into() };
            let overrides: Vec<Override> = sets.iter().map(|text| Override::parse(text).unwrap()).collect();
            Plan::load(&Registry::native(), &source, Path::new(""), &overrides, &[]).unwrap()
        };
        let summary = |plan: &Plan| {
            let done = outcome(plan, 0);
            let counts = [LARGEST, LEAST, MEAN, SIGNAL_TO_NOISE].map(|name| of(&done.metrics, name).len());
            (crate::summary::PrivacySummary::new(plan, &done.spent), counts)
        };
        let paper = load(&[]);
        assert_eq!(paper.doubt(), Some(REFUTED));
        let (privacy, counts) = summary(&paper);
        assert_eq!((privacy.epsilon, privacy.epsilon_gaussian, privacy.mean_epsilon), (None, None, None));
        assert_eq!(privacy.bound, "refuted by audit: no guarantee");
        assert_eq!(counts[..3], [0; 3], "no epsilon over rounds");
        let refused = crate::forecast::Forecast::new(&paper, 0).unwrap_err().to_string();
        assert!(refused.contains("refuted") && refused.contains("one-shot"), "{refused}");
        // The one release of the sound mechanism costs what was asked for, to the units of the ledger.
        let sound = load(&["privacy.mechanism=one-shot", "privacy.clip=2", "algorithm.solver=exact"]);
        assert_eq!(sound.doubt(), None);
        let (privacy, _) = summary(&sound);
        let epsilon = privacy.epsilon_gaussian.unwrap();
        assert!((epsilon - 1.0).abs() < 1e-9, "{epsilon}");
        assert_eq!((privacy.bound.as_str(), privacy.releases), ("enforced", 3));
        let planned = crate::forecast::Forecast::new(&sound, 0).unwrap();
        assert_eq!((planned.epsilon, planned.zcdp), (privacy.epsilon, privacy.zcdp));
    }

    #[test]
    fn a_filter_that_outlasts_training_is_warned_of() {
        let text = include_str!("../../../experiments/fedpnp-convex.toml");
        let doubt = |sets: &[&str]| {
            let source = Source { name: "p.toml".into(), text: text.into() };
            let overrides: Vec<Override> = sets.iter().map(|text| Override::parse(text).unwrap()).collect();
            Plan::load(&Registry::native(), &source, Path::new(""), &overrides, &[]).unwrap().doubt()
        };
        let falls = "algorithm.decay=0.96";
        assert!(doubt(&[falls]).unwrap().contains("set algorithm.paced = true"));
        for other in [
            &[][..],
            &[falls, "algorithm.paced=true"],
            &[falls, "run.rounds=50"],
            &[falls, "algorithm.beta1=0", "algorithm.beta2=0"],
            &[falls, "algorithm.filter=hard", "algorithm.tau=2"],
        ] {
            assert_eq!(doubt(other), None, "{other:?}");
        }
    }

    #[test]
    fn many_clients_have_a_range_but_no_mean() {
        let (few, many) = (outcome(&plan(&[]), 0), outcome(&plan(&["evaluate.per_client_limit=5"]), 0));
        for name in [LARGEST, LEAST] {
            assert_eq!(of(&few.metrics, name), of(&many.metrics, name));
        }
        assert!(of(&many.metrics, MEAN).is_empty() && of(&many.metrics, SPENT).is_empty());
    }

    #[test]
    fn other_repeats_say_how_loud_the_noise_was_and_runs_without_noise_say_nothing() {
        let other = outcome(&plan(&[]), 1);
        assert!(of(&other.metrics, LARGEST).is_empty());
        assert_eq!(of(&other.metrics, SIGNAL_TO_NOISE).len(), 4);
        let quiet = plan(&["privacy.sampler=none"]);
        assert_eq!((quiet.doubt(), plan(&[]).doubt()), (None, Some(ASSUMED)));
        let quiet = outcome(&quiet, 0);
        assert!(quiet.metrics.rows().all(|row| is_score(row.metric)));
    }
}
