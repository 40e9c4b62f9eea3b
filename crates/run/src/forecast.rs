//! What a config will cost every client, before anything runs.
//!
//! Who is asked in which round is public and follows from the seed, so the servers of the run are opened and their rounds
//! planned, exactly as a run would, without clients: nothing is trained and no record is looked at beyond counting.

use crate::artifacts::ledger::SampledReleases;
use crate::error::Error;
use crate::plan::Plan;
use crate::spending::price_key;
use fedkin_method::Federation;
use fedkin_privacy::{Account, Cost, Draws, Prices, Trust};
use serde::Serialize;
use std::collections::BTreeMap;

/// What one client will have spent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientForecast {
    /// Its name.
    pub client: String,
    /// In how many rounds it is asked.
    pub asked: u32,
    /// In how many of them it can answer.
    pub releases: u32,
    /// zCDP in all.
    pub zcdp: f64,
    /// Epsilon by the tight conversion, or by Renyi divergences where records are sampled and that is less.
    pub epsilon: f64,
    /// Epsilon by exact composition of Gaussians, or by Renyi divergences.
    pub epsilon_gaussian: f64,
    /// The round in which its budget no longer suffices; from there on it refuses.
    pub exhausted: Option<u32>,
    /// The releases from Poisson samples among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<SampledReleases>,
}

/// What all clients will have spent after the last round of one repeat.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// The method.
    pub algorithm: String,
    /// `none`, `zcdp` or `dp-sgd`.
    pub mechanism: String,
    /// `enforced`, `assumed, not enforced`, or empty.
    pub bound: String,
    /// What a neighbouring data set differs in.
    pub unit: String,
    /// At this delta.
    pub delta: f64,
    /// How many rounds.
    pub rounds: u32,
    /// How many repeats; each spends this much, on data of its own or on the same.
    pub repeats: u32,
    /// zCDP a client may spend.
    pub budget: Option<f64>,
    /// Largest epsilon of a client: the guarantee. Absent where nothing protects the uploads.
    pub epsilon: Option<f64>,
    /// The same by exact composition of Gaussians.
    pub epsilon_gaussian: Option<f64>,
    /// Largest zCDP of a client.
    pub zcdp: f64,
    /// Mean epsilon over clients: no guarantee.
    pub mean_epsilon: Option<f64>,
    /// Mean zCDP over clients.
    pub mean_zcdp: f64,
    /// The client with the largest total; the first of them by name.
    pub largest: Option<ClientForecast>,
    /// How many clients run out of budget.
    pub exhausted: u32,
    /// Number of clients.
    pub client_count: u32,
    /// Every client, in the order of their names.
    pub clients: Vec<ClientForecast>,
}

/// One client's rounds.
#[derive(Debug, Clone, Default)]
struct Tab {
    account: Account,
    asked: u32,
    exhausted: Option<u32>,
}

impl Tab {
    fn ask(&mut self, step: u32, cost: Cost, draws: Option<&Draws>) {
        self.asked += 1;
        if self.account.affords(cost) {
            self.account.plan(cost, draws);
        } else {
            self.exhausted.get_or_insert(step);
        }
    }
}

impl Forecast {
    /// Plans a repeat.
    pub fn new(plan: &Plan, repeat: u32) -> Result<Self, Error> {
        let world = plan.world(repeat)?;
        let (federation, run) = plan.run_of(&world, repeat)?;
        let private = plan.privacy.demanded();
        if private && !plan.guarantees() {
            return Err(Error::Usage(format!(
                "there is nothing to plan with privacy.mechanism = {:?}: its price is a claim that an audit has refuted \
                 (`fedkin audit` shows it), and no epsilon holds; set it to \"one-shot\"",
                plan.config.privacy.mechanism.word()
            )));
        }
        let tabs = if private {
            let fresh = Account { budget: run.privacy.budget_units(), ..Account::default() };
            let mut tabs = vec![Tab { account: fresh, ..Tab::default() }; federation.members().len()];
            let known = plan.method.forecast(&run, &federation, &mut |step, member, cost, draws| {
                tabs[member.id as usize].ask(step, cost, draws);
            });
            if !known {
                return Err(Error::Usage(format!(
                    "{} cannot say beforehand what an answer costs: run it and read the ledger",
                    plan.row.name
                )));
            }
            tabs
        } else {
            Vec::new()
        };
        let mut forecast = Self::empty(plan, federation.members().len() as u32);
        forecast.fill(&federation, &tabs);
        Ok(forecast)
    }

    fn empty(plan: &Plan, client_count: u32) -> Self {
        let (trust, unit) = (plan.families.trust(&plan.privacy), plan.privacy.unit());
        Self {
            algorithm: plan.row.name.to_string(),
            mechanism: plan.config.privacy.mechanism.word().to_string(),
            bound: trust.map_or("", Trust::words).to_string(),
            unit: unit.words().to_string(),
            delta: plan.delta(),
            rounds: plan.rounds(),
            repeats: plan.repeats(),
            budget: plan.config.privacy.budget,
            epsilon: None,
            epsilon_gaussian: None,
            zcdp: 0.0,
            mean_epsilon: None,
            mean_zcdp: 0.0,
            largest: None,
            exhausted: 0,
            client_count,
            clients: Vec::new(),
        }
    }

    fn fill(&mut self, federation: &Federation, tabs: &[Tab]) {
        let delta = self.delta;
        // Totals repeat, so few conversions are needed.
        let mut prices = Prices::default();
        let mut known: BTreeMap<_, (f64, f64)> = BTreeMap::new();
        for (member, tab) in federation.members().iter().zip(tabs) {
            let total = tab.account.total();
            let (epsilon, epsilon_gaussian) = *known.entry(price_key(&tab.account)).or_insert_with(|| {
                (prices.epsilon(&tab.account, delta), prices.epsilon_gaussian(&tab.account, delta))
            });
            self.clients.push(ClientForecast {
                client: federation.client_name(member.id).to_string(),
                asked: tab.asked,
                releases: tab.account.releases as u32,
                zcdp: total.zcdp(),
                epsilon,
                epsilon_gaussian,
                exhausted: tab.exhausted,
                sampled: tab.account.sampled.iter().map(SampledReleases::new).collect(),
            });
        }
        let mut largest: Option<&ClientForecast> = None;
        for client in &self.clients {
            if largest.is_none_or(|most| client.epsilon > most.epsilon) {
                largest = Some(client);
            }
        }
        let Some(largest) = largest.cloned() else { return };
        let count = self.clients.len() as f64;
        self.epsilon = Some(largest.epsilon);
        self.epsilon_gaussian = Some(largest.epsilon_gaussian);
        self.zcdp = largest.zcdp;
        self.mean_epsilon = Some(self.clients.iter().map(|client| client.epsilon).sum::<f64>() / count);
        self.mean_zcdp = self.clients.iter().map(|client| client.zcdp).sum::<f64>() / count;
        self.exhausted = self.clients.iter().filter(|client| client.exhausted.is_some()).count() as u32;
        self.largest = Some(largest);
    }

    /// Whether the promise rests on a bound that nothing enforces.
    pub fn assumed(&self) -> bool {
        self.bound == Trust::Assumed.words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use fedkin_config::{Override, Source};
    use fedkin_method::round::Progress;
    use std::path::Path;

    const CONFIG: &str = "version = 1\n\
        [run]\nname = \"f\"\nseed = 3\nrounds = 30\n\
        [data]\nsource = \"synthetic.clustered-regression\"\nclients_per_server = 6\ndimension = 4\n\
        [topology]\ngraph = { kind = \"random\", servers = 4, mean_degree = 2.0 }\n\
        [model]\nkind = \"ridge\"\n\
        [algorithm]\nname = \"pgfl\"\n\
        [participation]\nclients_per_server = 2\n\
        [privacy]\nmechanism = \"zcdp\"\nbound = \"assumed\"\ngradient_bound = 0.01\n";

    fn plan(sets: &[&str]) -> Plan {
        let source = Source { name: "f.toml".into(), text: CONFIG.into() };
        let overrides: Vec<Override> = sets.iter().map(|text| Override::parse(text).unwrap()).collect();
        Plan::load(&Registry::native(), &source, Path::new(""), &overrides, &[]).unwrap()
    }

    /// The forecast and the accounts after the run, client by client, for every method that can be private.
    #[test]
    fn every_method_spends_what_was_planned() {
        let mut compared = 0;
        for name in Registry::native().methods().names() {
            for budget in ["privacy.budget=0.004", "privacy.delta=1e-5"] {
                let source = Source { name: "f.toml".into(), text: CONFIG.into() };
                let sets = [
                    Override::parse(&format!("algorithm.name={name}")).unwrap(),
                    Override::parse(budget).unwrap(),
                ];
                // Methods that refuse privacy have nothing to plan.
                let planned = Plan::load(&Registry::native(), &source, Path::new(""), &sets, &[]);
                let Ok(plan) = planned else { continue };
                let forecast = Forecast::new(&plan, 0).unwrap();
                let world = plan.world(0).unwrap();
                let mut live = plan.start(&world, 0).unwrap().live;
                while live.step().unwrap() != Progress::Ended {}
                let accounts = live.accounts();
                assert_eq!(accounts.len(), forecast.clients.len(), "{name}");
                for (account, client) in accounts.iter().zip(&forecast.clients) {
                    assert_eq!(account.total().zcdp(), client.zcdp, "{name}: {client:?}");
                    let answered = if account.spent > 0 { account.releases } else { 0 };
                    assert_eq!(answered, u64::from(client.releases), "{name}: {client:?}");
                }
                let refused = forecast.clients.iter().any(|client| client.exhausted.is_some());
                assert_eq!(refused, budget.starts_with("privacy.budget") && name != "local", "{name}");
                compared += 1;
            }
        }
        assert!(compared >= 14, "{compared}");
    }

    /// Sampled releases are planned with the accountant's discount: the figure of a run, and of `fedkin privacy epsilon`.
    #[test]
    fn sampled_releases_are_planned_as_they_are_paid() {
        let source = CONFIG.replace(
            "mechanism = \"zcdp\"\nbound = \"assumed\"\ngradient_bound = 0.01\n",
            "mechanism = \"dp-sgd\"\nclip = 1.0\nnoise_multiplier = 1.5\n",
        );
        let source = source.replace("\"pgfl\"", "\"fedavg\"\nlocal_steps = 4\nsampling_rate = 0.1");
        for budget in [None, Some("privacy.budget=30")] {
            let source = Source { name: "f.toml".into(), text: source.clone() };
            let sets: Vec<Override> = budget.into_iter().map(|text| Override::parse(text).unwrap()).collect();
            let plan = Plan::load(&Registry::native(), &source, Path::new(""), &sets, &[]).unwrap();
            let forecast = Forecast::new(&plan, 0).unwrap();
            let world = plan.world(0).unwrap();
            let mut live = plan.start(&world, 0).unwrap().live;
            while live.step().unwrap() != Progress::Ended {}
            let mut prices = Prices::default();
            for (account, client) in live.accounts().iter().zip(&forecast.clients) {
                assert_eq!(account.total().zcdp(), client.zcdp, "{client:?}");
                assert_eq!(account.releases, u64::from(client.releases), "{client:?}");
                assert_eq!(prices.epsilon(account, 1e-5), client.epsilon, "{client:?}");
                let steps = account.sampled.first().map_or(0, |draws| draws.steps);
                assert_eq!(steps, 4 * u64::from(client.releases));
                let alone = Draws { multiplier: 1.5, rate: 0.1, steps }.releases().epsilon(1.5, 1e-5);
                assert!((client.epsilon_gaussian - alone).abs() <= 1e-9 * alone, "{client:?}: {alone}");
            }
            assert_eq!(forecast.bound, "enforced");
            assert_eq!(forecast.clients.iter().any(|client| client.exhausted.is_some()), budget.is_some());
        }
    }

    #[test]
    fn the_largest_client_is_the_headline() {
        let forecast = Forecast::new(&plan(&[]), 0).unwrap();
        let most = forecast.clients.iter().map(|client| client.epsilon).fold(0.0, f64::max);
        assert_eq!(forecast.epsilon, Some(most));
        assert!(forecast.mean_epsilon.unwrap() < most);
        assert!(forecast.assumed());
        let all = Forecast::new(&plan(&["participation.clients_per_server=6"]), 0).unwrap();
        assert!(all.clients.iter().all(|client| client.asked == 30 && client.epsilon > most));
    }

    #[test]
    fn without_a_mechanism_there_is_no_epsilon() {
        let sets = ["privacy.mechanism=none", "privacy.bound=enforced"];
        let source = CONFIG.replace("gradient_bound = 0.01\n", "");
        let overrides: Vec<Override> = sets.iter().map(|text| Override::parse(text).unwrap()).collect();
        let source = Source { name: "f.toml".into(), text: source };
        let plan = Plan::load(&Registry::native(), &source, Path::new(""), &overrides, &[]).unwrap();
        let forecast = Forecast::new(&plan, 0).unwrap();
        assert_eq!((forecast.epsilon, forecast.zcdp), (None, 0.0));
        assert!(forecast.clients.is_empty());
    }
}
