//! What a seed stands for: a small federation, a method, a mode and how much goes wrong.

use super::checks::Reference;
use super::common::{Small, bits, names, records, ridge, world};
use super::network::Rates;
use fedkin_core::algorithm::Algorithm;
use fedkin_core::algorithm::registry::{self, Row, Visitor};
use fedkin_core::graph::Topology;
use fedkin_core::params::{Value, Values};
use fedkin_core::privacy::Sampler;
use fedkin_core::rng::{PublicRng, Random};
use fedkin_core::round::Mode;
use fedkin_core::{Entry, Federation};
use fedkin_runtime::{Progress, Simulation};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) row: &'static Row,
    pub(crate) values: Values,
    /// The federation as the method sees it.
    pub(crate) world: Small,
    pub(crate) mode: Mode,
    pub(crate) rates: Rates,
    /// How long things go wrong.
    pub(crate) trouble: u64,
    /// The only trouble is that the broker loses everything, now and then.
    pub(crate) wipes_only: bool,
    /// In deadline mode: once in so many ticks the time of some server is up.
    pub(crate) hurry: u32,
    /// Clients that fall silent for ever, and when; pairs of servers that are cut for ever.
    pub(crate) silent: Vec<(u32, u64)>,
    pub(crate) severed: Vec<(u32, u32)>,
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

/// Methods that refuse every privacy but none.
const WITHOUT_MECHANISM: [&str; 6] = ["persfl", "persfl-agnostic", "ifca", "fedbn", "per-fedavg", "pfedme"];

/// Worlds are small: a target asks two others, and clients with a record or two are steep.
fn few(row: &Row, mut set: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let smaller = [
        ("candidates", Value::Integer(2)),
        ("inner_rate", Value::Number(0.01)),
        ("personal_rate", Value::Number(0.02)),
    ];
    for (key, value) in smaller {
        if row.params.iter().any(|param| param.name == key) {
            set.entry(key.into()).or_insert(value);
        }
    }
    if ["fedbn", "per-fedavg", "pfedme"].contains(&row.name) {
        set.entry("learning_rate".into()).or_insert(Value::Number(0.01));
        set.entry("batch".into()).or_insert(Value::Integer(2));
    }
    set
}

impl Scenario {
    pub(crate) fn new(seed: u64, deadline: bool) -> Self {
        let mut rng = PublicRng::named(seed, "fault scenario", 0, u32::from(deadline));
        let rounds = 3 + rng.below(4);
        Self::sized(seed, deadline, rounds, &mut rng)
    }

    pub(crate) fn sized(seed: u64, deadline: bool, rounds: u32, rng: &mut PublicRng) -> Self {
        let mut world = federation(rng, rounds, seed);
        // A round costs a little more than 0.01: the budget lasts for all of them, or two or three, or one.
        let budget = [None, Some(0.035), Some(0.025), Some(0.0105)][rng.below(4) as usize];
        let rows: Vec<&Row> = registry::TABLE.iter().filter(|row| !row.simulation_only).collect();
        let row = rows[seed as usize % rows.len()];
        world = if row.params.iter().any(|param| param.name == "sampling_rate") {
            world.dp_sgd(0.5, 14.0, budget, Sampler::Discrete)
        } else if WITHOUT_MECHANISM.contains(&row.name) {
            // Has no mechanism, and says so.
            world
        } else if row.graphs && rng.below(2) == 0 {
            // Every round asks everybody; with noise only the first does.
            world
        } else {
            world.zcdp(0.01, 0.98, 0.05, budget)
        };
        if rng.below(2) == 0 {
            world = world.some(1 + rng.below(4));
        }
        let values = Values::check(row.params, &few(row, BTreeMap::new())).unwrap();
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
        if row.name.starts_with("persfl") && rng.below(2) == 0 {
            // One target: its model is broadcast.
            world.run.targets = Some([rng.below(world.federation.members().len() as u32)].into());
        }
        Self { seed, row, values, world, mode, rates, trouble, wipes_only, hurry, silent, severed }
    }

    /// A method on a world of its own, with late, doubled and reordered messages and nothing worse.
    pub(crate) fn of(row: &'static Row, world: &Small, seed: u64, set: &[(&str, Value)]) -> Self {
        let set = set.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
        Self {
            seed,
            row,
            values: Values::check(row.params, &few(row, set)).unwrap(),
            world: world.arranged(row.name),
            mode: Mode::Strict,
            rates: Rates { twice: 8, delay: 10, ..Rates::default() },
            trouble: u64::MAX,
            wipes_only: false,
            hurry: 0,
            silent: Vec::new(),
            severed: Vec::new(),
        }
    }

    pub(crate) fn strict(&self) -> bool {
        self.mode == Mode::Strict
    }

    /// The same run in one process, where nothing goes wrong.
    pub(crate) fn reference(&self) -> Reference {
        let Self { row, values, world, .. } = self;
        registry::visit(row.name, values, &world.context, Unfaulted(world)).unwrap()
    }
}

struct Unfaulted<'a>(&'a Small);

impl Visitor for Unfaulted<'_> {
    type Output = Reference;
    fn visit<A: Algorithm>(self, algorithm: A) -> Reference {
        let Small { federation, data, run, .. } = self.0;
        let mut simulation = Simulation::new(algorithm, run.clone(), federation, data).unwrap();
        let mut verdicts = Vec::new();
        while simulation.step().unwrap() != Progress::Ended {
            verdicts.push(simulation.servers().iter().map(|server| server.verdicts().to_vec()).collect());
        }
        let mut models = Vec::new();
        simulation.own_models(&mut |_, model| models.push(bits(model)));
        let state = |server: &fedkin_core::round::Server<A>| {
            let mut bytes = fedkin_core::codec::Bytes::default();
            server.save(&mut bytes);
            bytes.0
        };
        let states = simulation.servers().iter().map(state).collect();
        Reference { models, states, accounts: simulation.accounts(), verdicts }
    }
}
