//! What a seed stands for: a small federation, a method, a mode and how much goes wrong.

use super::checks::{DATA, RUN, Reference};
use super::flaws::Flaw;
use super::lies::Liar;
use super::network::Rates;
use crate::worlds::{Small, bits, names, records, ridge, world};
use fedkin_graph::Topology;
use fedkin_method::registry::{Methods, Row};
use fedkin_method::round::{
    AnyMethod, Blueprint, ClientMachines, Joining, Live, Mode, Opening, Progress, RunFault, Serial, Stop,
};
use fedkin_method::{Entry, Federation, Verdict};
use fedkin_numeric::rng::{PublicRng, Random, simulated_secret};
use fedkin_privacy::{Chain, ChainLine, Draws, Entry as Spending, Sampler, Statement};
use fedkin_settings::{Value, Values};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fingerprint of a run before this one.
const EARLIER: [u8; 32] = [9; 32];

/// A small federation with a method, and what goes wrong in it.
#[derive(Debug)]
pub struct Scenario {
    /// All that happens follows from it.
    pub seed: u64,
    /// The method.
    pub row: Row,
    /// Its parameters.
    pub values: Values,
    /// The federation as the method sees it.
    pub world: Small,
    /// When steps close.
    pub mode: Mode,
    /// How often something goes wrong.
    pub rates: Rates,
    /// How long things go wrong, in ticks.
    pub trouble: u64,
    /// The only trouble is that the broker loses everything, now and then.
    pub wipes_only: bool,
    /// In deadline mode: once in so many ticks the time of some server is up.
    pub(crate) hurry: u32,
    /// Clients that fall silent for ever, and when; pairs of servers that are cut for ever.
    pub(crate) silent: Vec<(u32, u64)>,
    pub(crate) severed: Vec<(u32, u32)>,
    /// Clients that have spent their budget in an earlier run.
    pub(crate) spent: Vec<u32>,
    /// Who lies, where somebody does.
    pub(crate) liar: Option<Liar>,
}

/// How a run ended in one process.
#[derive(Debug, Clone)]
pub struct Unfaulted {
    /// What became of the clients: of every step, server and client.
    pub verdicts: Vec<Verdict>,
    /// Why it could not go on, where it could not.
    pub stop: Option<Stop>,
}

fn federation(rng: &mut PublicRng, rounds: u32, seed: u64) -> Small {
    let servers = 1 + rng.below(4);
    let (clients, dimension) = (5 + rng.below(8), 3 + rng.below(4) as usize);
    let clusters = 1 + rng.below(3);
    let models: Vec<Vec<f64>> =
        (0..clusters).map(|_| (0..dimension).map(|_| rng.normal()).collect()).collect();
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for k in 0..clients {
        let samples = 1 + rng.below(4);
        let cluster = if k < clusters { k } else { rng.below(clusters) };
        data.push(Arc::new(records(rng, samples, &models[cluster as usize], false)));
        // Sometimes a server is left without clients.
        entries.push(Entry { name: format!("c{k:02}"), server: rng.below(servers), cluster, samples });
    }
    let graph = match rng.below(3) {
        _ if servers == 1 => Topology::none(1),
        0 => Topology::ring(servers as usize),
        1 => Topology::star(servers as usize),
        _ => Topology::complete(servers as usize),
    };
    let (servers, clusters) = (names("s", servers as usize), names("q", clusters as usize));
    let (federation, _) = Federation::new(entries, servers, clusters, graph).unwrap();
    world(federation, data, ridge(0.01), seed, rounds)
}

fn has(row: &Row, key: &str) -> bool {
    row.params.iter().any(|param| param.name == key)
}

/// Worlds are small: a target asks two others, and clients with a record or two are steep.
fn few(row: &Row, mut set: BTreeMap<String, Value>) -> Values {
    let mut smaller = vec![
        ("candidates", Value::Integer(2)),
        ("inner_rate", Value::Number(0.01)),
        ("personal_rate", Value::Number(0.02)),
    ];
    if has(row, "batch") && !has(row, "sampling_rate") {
        smaller.extend([("learning_rate", Value::Number(0.01)), ("batch", Value::Integer(2))]);
    }
    for (key, value) in smaller.into_iter().filter(|(key, _)| has(row, key)) {
        set.entry(key.into()).or_insert(value);
    }
    Values::check(row.params, &set).unwrap()
}

/// The same world under this privacy, where the method has a mechanism for it.
fn if_taken(row: &Row, values: &Values, plain: Small, private: impl FnOnce(Small) -> Small) -> Small {
    let tried = private(plain.clone());
    if row.build(values, &tried.arranged(row.name).context).is_ok() { tried } else { plain }
}

impl Scenario {
    /// What a seed stands for: one of these methods, in turn.
    pub fn new(methods: &Arc<Methods>, seed: u64, deadline: bool) -> Self {
        let mut rng = PublicRng::named(seed, "fault scenario", 0, u32::from(deadline));
        let rounds = 3 + rng.below(4);
        Self::sized(methods, seed, deadline, rounds, &mut rng)
    }

    /// The same with so many rounds; everything else is drawn.
    pub fn sized(
        methods: &Arc<Methods>,
        seed: u64,
        deadline: bool,
        rounds: u32,
        rng: &mut PublicRng,
    ) -> Self {
        let mut scenario = Self::drawn(methods, seed, deadline, rounds, rng);
        if rng.below(8) == 0 {
            let sound = (scenario.world.data.clone(), scenario.world.run.max_norm2);
            Flaw::draw(rng, sound.0.len() as u32).spoil(&mut scenario.world);
            if !scenario.begins() {
                (scenario.world.data, scenario.world.run.max_norm2) = sound;
            }
        }
        scenario
    }

    /// What a seed stands for with this liar. A third of the schedules has no other trouble.
    pub fn lying(methods: &Arc<Methods>, seed: u64, deadline: bool, liar: Liar) -> Self {
        let mut rng = PublicRng::named(seed, "lying scenario", 0, u32::from(deadline));
        let rounds = 3 + rng.below(4);
        let mut scenario = Self::drawn(methods, seed, deadline, rounds, &mut rng);
        // A liar's messages come on top of those of unlucky clients: only one kind of trouble is for ever.
        (scenario.silent, scenario.severed, scenario.wipes_only) = (Vec::new(), Vec::new(), false);
        if seed.is_multiple_of(3) {
            scenario.rates = Rates { twice: 8, delay: 10, ..Rates::default() };
        }
        scenario.liar = Some(liar);
        scenario
    }

    /// The same with sound records.
    pub(crate) fn drawn(
        methods: &Arc<Methods>,
        seed: u64,
        deadline: bool,
        rounds: u32,
        rng: &mut PublicRng,
    ) -> Self {
        let mut world = federation(rng, rounds, seed).methods(methods);
        // A round costs a little more than 0.01: the budget lasts for all of them, or two or three, or one.
        let budget = [None, Some(0.035), Some(0.025), Some(0.0105)][rng.below(4) as usize];
        let rows: Vec<&Row> = methods.iter().filter(|row| !row.simulation_only).collect();
        let row = *rows[seed as usize % rows.len()];
        let values = few(&row, BTreeMap::new());
        world = if has(&row, "sampling_rate") {
            world.dp_sgd(0.5, 14.0, budget, Sampler::Discrete)
        } else if row.graphs && rng.below(2) == 0 {
            // Every round asks everybody; with noise only the first does.
            world
        } else {
            if_taken(&row, &values, world, |world| world.zcdp(0.01, 0.98, 0.05, budget))
        };
        if rng.below(2) == 0 {
            world = world.some(1 + rng.below(4));
        }
        let mut world = world.arranged(row.name);
        let mut rates = Rates::draw(rng);
        let wipes_only = rng.below(12) == 0;
        if wipes_only {
            rates = Rates { wipe: 40, ..Rates::default() };
        }
        let trouble = u64::from(100 + rng.below(2000));
        let mode = if deadline {
            Mode::Deadline { quorum: [0.3, 0.7, 1.0][rng.below(3) as usize] }
        } else {
            Mode::Strict
        };
        let (mut silent, mut severed) = (Vec::new(), Vec::new());
        if deadline {
            let clients = world.federation.members().len() as u32;
            silent = (0..rng.below(3)).map(|_| (rng.below(clients), u64::from(rng.below(800)))).collect();
            severed = world.federation.topology().edges().filter(|_| rng.below(4) == 0).collect();
        }
        let hurry = [60, 200, 600][rng.below(3) as usize];
        let spent = Vec::new();
        if has(&row, "targets") && rng.below(2) == 0 {
            // One target: its model is broadcast.
            world.run.targets = Some([rng.below(world.federation.members().len() as u32)].into());
        }
        Self {
            seed,
            row,
            values,
            world,
            mode,
            rates,
            trouble,
            wipes_only,
            hurry,
            silent,
            severed,
            spent,
            liar: None,
        }
    }

    /// A method on a world of its own, with late, doubled and reordered messages and nothing worse.
    pub fn of(row: Row, world: &Small, seed: u64, set: &[(&str, Value)]) -> Self {
        let set = set.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
        Self {
            seed,
            row,
            values: few(&row, set),
            world: world.arranged(row.name),
            mode: Mode::Strict,
            rates: Rates { twice: 8, delay: 10, ..Rates::default() },
            trouble: u64::MAX,
            wipes_only: false,
            hurry: 0,
            silent: Vec::new(),
            severed: Vec::new(),
            spent: Vec::new(),
            liar: None,
        }
    }

    pub(crate) fn strict(&self) -> bool {
        self.mode == Mode::Strict
    }

    /// The method, built.
    pub(crate) fn method(&self) -> Result<Arc<dyn AnyMethod>, String> {
        self.row.build(&self.values, &self.world.context)
    }

    /// What nodes are built from.
    pub(crate) fn blueprint(&self, method: &Arc<dyn AnyMethod>) -> Blueprint<'_> {
        Blueprint {
            algorithm: self.row.name,
            method: Arc::clone(method),
            run: &self.world.run,
            federation: &self.world.federation,
            fingerprint: RUN,
        }
    }

    /// What a client has on paper before the run: its ledger, and the lines of it.
    pub(crate) fn before(&self, client: u32) -> (Chain, Vec<ChainLine>) {
        let mut chain = Chain::start("client", &DATA);
        let budget = self.world.run.privacy.budget_units().filter(|_| self.spent.contains(&client));
        let Some(units) = budget else { return (chain, Vec::new()) };
        let all = Spending {
            what: "model".into(),
            mechanism: "gaussian".into(),
            bound: "".into(),
            sigma_least: 1.0,
            sigma_most: 1.0,
            size: 1,
            count: 1,
            units,
            draws: Draws::default(),
            first: 1,
            last: 1,
        };
        let lines = chain.state(&Statement { entries: vec![all] }, &EARLIER, &[0; 32]);
        (chain, lines)
    }

    /// One client behind messages, with this ledger.
    pub(crate) fn client(
        &self,
        method: &Arc<dyn AnyMethod>,
        id: u32,
        chain: Chain,
    ) -> Result<Box<dyn ClientMachines>, RunFault> {
        let secret = simulated_secret(self.world.run.seed, id);
        let data = Arc::clone(&self.world.data[id as usize]);
        let joining = Joining { id, data, secret, shown: DATA, chain };
        Arc::clone(method).clients(&self.blueprint(method), vec![joining], Arc::new(Serial))
    }

    /// The run in one process, before its first step.
    fn start(&self, method: &Arc<dyn AnyMethod>) -> Result<Box<dyn Live>, RunFault> {
        let Small { federation, data, run, .. } = &self.world;
        let mut live = Arc::clone(method).simulate(run.clone(), federation, data, Arc::new(Serial))?;
        live.keep_statements();
        if !self.spent.is_empty() {
            let opening = |id: u32| {
                let (chain, _) = self.before(id);
                let secret = simulated_secret(run.seed, id);
                Opening { spent: chain.spent, releases: chain.releases, secret }
            };
            live.begin_at(&(0..data.len() as u32).map(opening).collect::<Vec<_>>());
        }
        Ok(live)
    }

    /// Whether the method can begin. Where a client cannot join, it is told so in the same words behind messages.
    pub(crate) fn begins_alike(&self) -> Result<bool, String> {
        let method = self.method()?;
        let here = match self.start(&method) {
            Err(RunFault::Config(text)) => return Err(text),
            other => other.err(),
        };
        let federation = &self.world.federation;
        // One process tells of the first by place.
        let mut places = (0..federation.servers() as u32).flat_map(|server| federation.clients_of(server));
        let there = places.find_map(|&id| self.client(&method, id, self.before(id).0).err());
        if here != there {
            return Err(format!("one process begins with {here:?}, nodes with {there:?}"));
        }
        Ok(here.is_none())
    }

    /// Whether the method can begin at all: some refuse spoilt records when clients join, in both drivers.
    pub fn begins(&self) -> bool {
        self.method().is_ok_and(|method| self.start(&method).is_ok())
    }

    /// How the run ends in one process, where nothing goes wrong.
    pub fn unfaulted(&self) -> Result<Unfaulted, String> {
        let reference = self.reference(&self.method()?)?;
        Ok(Unfaulted { verdicts: reference.judged().collect(), stop: reference.stop().cloned() })
    }

    /// The same run in one process, where nothing goes wrong.
    pub(crate) fn reference(&self, method: &Arc<dyn AnyMethod>) -> Result<Reference, String> {
        let Small { federation, data, .. } = &self.world;
        let mut live = self.start(method).map_err(|fault| fault.to_string())?;
        let servers = 0..federation.servers() as u32;
        let (mut verdicts, mut stopped) = (Vec::new(), None);
        while stopped.is_none() {
            match live.step() {
                Ok(Progress::Ended) => break,
                Ok(Progress::Round(_)) => {}
                Err(RunFault::Stopped(why)) => stopped = Some(why),
                Err(fault) => return Err(fault.to_string()),
            }
            verdicts.push(servers.clone().map(|server| live.verdicts(server).to_vec()).collect());
        }
        let mut models = vec![Vec::new(); data.len()];
        live.models(&mut |id, _, model| models[id as usize].push(bits(model)));
        let states = servers.map(|server| live.state(server)).collect();
        let statements = live.statements().unwrap_or_default();
        Ok(Reference { models, states, accounts: live.accounts(), verdicts, statements, stopped })
    }
}
