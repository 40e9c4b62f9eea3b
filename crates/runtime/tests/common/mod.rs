//! Small worlds, a typed loop and plain linear algebra for the tests of this crate.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

use fedkin_core::algorithm::registry;
use fedkin_core::algorithm::{Admm, Algorithm, Context, Pgfl, Phase, Run};
use fedkin_core::graph::Topology;
use fedkin_core::hypothesis::Kinds;
use fedkin_core::model::neural::{Goal, Layer, Net};
use fedkin_core::model::{Loss, Model, NetModel, Problem, Softmax};
use fedkin_core::params::{Value, Values};
use fedkin_core::privacy::{Bound, Clip, DpSgd, OneShot, Privacy, Sampler, Tally, Unit, Zcdp};
use fedkin_core::rng::{PublicRng, Random, simulated_secret};
use fedkin_core::round::{CHUNK, Client, Counts, Scratch, Server};
use fedkin_core::signals::{Records, Smooth};
use fedkin_core::{Dataset, Entry, Federation};
use fedkin_runtime::{Live, start};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Vector = Vec<f64>;
pub(crate) type Matrix = Vec<Vec<f64>>;

/// Clustered regression on a few servers: 4 servers in a ring, unequal, 3 clusters, d features.
pub(crate) struct Small {
    pub(crate) federation: Federation,
    pub(crate) data: Vec<Arc<Dataset>>,
    pub(crate) run: Run,
    pub(crate) model: Model,
    pub(crate) context: Context,
}

pub(crate) fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{prefix}{i}")).collect()
}

/// Records of a linear model with noise of deviation 0.1; labels by a coin of the logistic law if `binary`.
pub(crate) fn records(rng: &mut PublicRng, samples: u32, model: &[f64], binary: bool) -> Dataset {
    let mut features = Vec::new();
    let mut targets = Vec::new();
    for _ in 0..samples {
        let x: Vector = model.iter().map(|_| rng.normal()).collect();
        let y = inner(&x, model);
        targets.push(if binary {
            f64::from(u8::from(rng.uniform() < 1.0 / (1.0 + (-y).exp())))
        } else {
            y + 0.1 * rng.normal()
        });
        features.extend(x);
    }
    Dataset::new(model.len(), features, targets).unwrap()
}

pub(crate) fn small(seed: u64, clients: usize, dimension: usize, rounds: u32) -> Small {
    let mut rng = PublicRng::named(seed, "small world", 0, 0);
    let models: Vec<Vector> = (0..3).map(|_| (0..dimension).map(|_| rng.normal()).collect()).collect();
    let mut entries = Vec::new();
    let mut data = Vec::new();
    for k in 0..clients {
        let samples = 1 + rng.below(6);
        let cluster = if k < 3 { k as u32 } else { rng.below(3) };
        data.push(Arc::new(records(&mut rng, samples, &models[cluster as usize], false)));
        entries.push(Entry { name: format!("c{k:05}"), server: rng.below(4), cluster, samples });
    }
    let (federation, _) = Federation::new(entries, names("s", 4), names("q", 3), Topology::ring(4)).unwrap();
    world(federation, data, ridge(0.01), seed, rounds)
}

pub(crate) fn ridge(regularisation: f64) -> Model {
    Model { loss: Loss::Squared, regularisation, bias: false, feature_norm: None }
}

pub(crate) fn world(
    federation: Federation,
    data: Vec<Arc<Dataset>>,
    model: Model,
    seed: u64,
    rounds: u32,
) -> Small {
    let run = Run {
        seed,
        rounds,
        clients_per_server: None,
        max_norm2: 1e12,
        dimension: model.dimension(data[0].columns()),
        clusters: federation.clusters(),
        privacy: Privacy::None,
        targets: None,
        kin: None,
    };
    Small {
        federation,
        data,
        run,
        model,
        context: Context { problem: Problem::Linear(model), privacy: Privacy::None, infer: None },
    }
}

impl Small {
    /// Noise as in the paper's Fig 3, bound on trust.
    pub(crate) fn private(self) -> Self {
        self.zcdp(0.01, 0.98, 0.05, None)
    }

    pub(crate) fn zcdp(
        mut self,
        initial_budget: f64,
        growth: f64,
        gradient: f64,
        budget: Option<f64>,
    ) -> Self {
        let assumed = Some(Bound::assumed(gradient));
        self.run.privacy = Privacy::Zcdp(Zcdp {
            initial_budget,
            growth,
            assumed,
            budget,
            sampler: Sampler::Discrete,
            unit: Unit::Record,
        });
        self.context.privacy = self.run.privacy;
        self
    }

    /// Clipped gradients with noise: what `fedavg` takes in place of `zcdp`.
    pub(crate) fn dp_sgd(
        mut self,
        clip: f64,
        multiplier: f64,
        budget: Option<f64>,
        sampler: Sampler,
    ) -> Self {
        let clip = Clip::new(clip).unwrap();
        self.run.privacy = Privacy::DpSgd(DpSgd { clip, multiplier, budget, sampler });
        self.context.privacy = self.run.privacy;
        self
    }

    /// The same with another sampler, budget 0.01 per round.
    pub(crate) fn sampled(self, sampler: Sampler, gradient: f64) -> Self {
        let mut world = self.zcdp(0.01, 1.0, gradient, None);
        if let Privacy::Zcdp(zcdp) = &mut world.run.privacy {
            zcdp.sampler = sampler;
        }
        world.context.privacy = world.run.privacy;
        world
    }

    /// The same features with one of several classes as target, and a softmax model of them.
    pub(crate) fn classes(mut self, classes: u32) -> Self {
        let label = |row: &[f64]| {
            let best = (0..classes as usize).max_by(|&a, &b| row[a].total_cmp(&row[b]));
            best.unwrap_or(0) as f64
        };
        for data in &mut self.data {
            let targets = (0..data.rows()).map(|i| label(data.row(i))).collect();
            *data = Arc::new(Dataset::new(data.columns(), data.features().to_vec(), targets).unwrap());
        }
        let model =
            Softmax { classes: classes as usize, regularisation: 0.3, bias: true, feature_norm: None };
        self.context.problem = Problem::Classes(model);
        self.run.dimension = model.dimension(self.data[0].columns());
        self
    }

    /// The same classes for a net of these layers.
    pub(crate) fn net(self, classes: u32, layers: &[&str]) -> Self {
        let mut world = self.classes(classes);
        let layers: Vec<Layer> = layers.iter().map(|words| Layer::parse(words).unwrap()).collect();
        let net = Net::new([world.data[0].columns(), 1, 1], &layers, Goal::CrossEntropy).unwrap();
        world.run.dimension = net.length();
        world.context.problem = Problem::Net(NetModel::new(net));
        world
    }

    pub(crate) fn some(mut self, clients_per_server: u32) -> Self {
        self.run.clients_per_server = Some(clients_per_server);
        self
    }

    /// The same world as a method sees it.
    pub(crate) fn arranged(&self, name: &str) -> Self {
        let row = registry::find(name).unwrap();
        let federation = self.federation.arranged(row.arrange);
        let mut run = Run { clusters: federation.clusters(), ..self.run.clone() };
        let mut context = self.context.clone();
        if row.graphs {
            // The features are signals, one node each; noise is on what a graph learner releases.
            let smooth = Smooth { alpha: 2.0, beta: 0.5, records: Records::Signals };
            context.problem = Problem::Graph(smooth);
            run.dimension = smooth.dimension(self.data[0].columns());
            if let Privacy::Zcdp(zcdp) = run.privacy {
                run.privacy = Privacy::OneShot(OneShot {
                    clip: Clip::new(3.0).unwrap(),
                    price: zcdp.budget_of_round(1),
                    budget: zcdp.budget,
                    sampler: zcdp.sampler,
                });
                context.privacy = run.privacy;
            }
        }
        if name == "persfl-agnostic" {
            // Different kinds of model, one of them with parameters.
            context.problem = Problem::Agnostic(mixed());
            run.dimension = self.data[0].columns();
        }
        Self { federation, data: self.data.clone(), run, model: self.model, context }
    }

    /// Starts a method on the world as the method sees it.
    pub(crate) fn live(&self, name: &str, values: &Values) -> Box<dyn Live> {
        let at = self.arranged(name);
        start(name, values, &at.context, at.run, &at.federation, &at.data).unwrap()
    }
}

/// Trees, nearest neighbours and ridge models in one federation of clients with a few records each.
pub(crate) fn mixed() -> Kinds {
    let kinds = ["tree", "knn", "ridge"].map(text).to_vec();
    let raw = [
        ("kind", text("mixed")),
        ("kinds", Value::List(kinds)),
        ("leaf", Value::Integer(2)),
        ("neighbours", Value::Integer(2)),
    ];
    let raw = raw.map(|(key, value)| (key.to_string(), value)).into_iter().collect();
    Kinds::new(&Values::check(fedkin_core::model::PARAMS, &raw).unwrap()).unwrap()
}

/// The parameters of a method: these, and defaults for the rest.
pub(crate) fn values(name: &str, pairs: &[(&str, Value)]) -> Values {
    let raw = pairs.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
    Values::check(registry::find(name).unwrap().params, &raw).unwrap()
}

pub(crate) fn number(x: f64) -> Value {
    Value::Number(x)
}

pub(crate) fn text(word: &str) -> Value {
    Value::Text(word.into())
}

pub(crate) fn decay(start: f64, decay: f64) -> Value {
    let table: BTreeMap<String, Value> =
        [("start".into(), Value::Number(start)), ("decay".into(), Value::Number(decay))].into();
    Value::Table(table)
}

/// The models of every client by id.
pub(crate) fn own(live: &dyn Live) -> Vec<Vector> {
    let mut models = Vec::new();
    live.own_models(&mut |_, model| models.push(model.to_vec()));
    models
}

/// The models of this name by (server, cluster).
pub(crate) fn held(live: &dyn Live, wanted: &str) -> BTreeMap<(u32, u32), Vector> {
    let mut models = BTreeMap::new();
    live.held(&mut |server, cluster, name, model| {
        if name == wanted {
            models.insert((server, cluster), model.to_vec());
        }
    });
    models
}

pub(crate) fn bits(model: &[f64]) -> Vec<u64> {
    model.iter().map(|x| x.to_bits()).collect()
}

/// Client models and everything the servers hold, as bits.
pub(crate) fn all_bits(live: &dyn Live) -> Vec<Vec<u64>> {
    let mut all: Vec<Vec<u64>> = own(live).iter().map(|model| bits(model)).collect();
    live.held(&mut |_, _, _, model| all.push(bits(model)));
    all
}

pub(crate) fn steps(live: &mut dyn Live, count: u32) {
    for _ in 0..count {
        live.step().unwrap();
    }
}

/// One process, one thread, with the servers in the open: what `Simulation` does, typed and by hand.
pub(crate) struct Loop<A: Algorithm> {
    pub(crate) algorithm: A,
    pub(crate) run: Run,
    pub(crate) servers: Vec<Server<A>>,
    pub(crate) clients: Vec<Vec<Client<A>>>,
    pub(crate) step: u32,
}

impl<A: Algorithm> Loop<A> {
    pub(crate) fn new(algorithm: A, world: &Small) -> Self {
        let run = world.run.clone();
        let servers: Vec<Server<A>> = (0..world.federation.servers() as u32)
            .map(|id| Server::open(&algorithm, &run, &world.federation, id))
            .collect();
        let join = |server: &Server<A>| {
            let each = server.members().iter().map(|member| {
                let data = &world.data[member.id as usize];
                let local = algorithm.join(data, server.view(&run), member).unwrap();
                Client::new(local, &run, simulated_secret(run.seed, member.id))
            });
            each.collect()
        };
        let clients = servers.iter().map(join).collect();
        Self { algorithm, run, servers, clients, step: 0 }
    }

    pub(crate) fn begin(&mut self) {
        self.step += 1;
        for server in &mut self.servers {
            assert!(matches!(server.begin(&self.algorithm, &self.run, self.step), Phase::Ask(_)));
        }
    }

    pub(crate) fn ask(&mut self) {
        self.ask_without(|_| false);
    }

    /// The step is closed without these clients.
    pub(crate) fn ask_without(&mut self, missing: impl Fn(u32) -> bool) {
        let mut scratch = Scratch::default();
        for (server, clients) in self.servers.iter_mut().zip(&mut self.clients) {
            let chunks = server.chunks(&self.algorithm, &self.run);
            for (mut chunk, clients) in chunks.zip(clients.chunks_mut(CHUNK)) {
                chunk.clear();
                for (i, client) in clients.iter_mut().enumerate() {
                    if !chunk.is_asked(i) {
                        continue;
                    }
                    if missing(chunk.members[i].id) {
                        chunk.miss(i);
                    } else {
                        let answer = chunk.ask(i, &self.algorithm, &self.run, client, &mut scratch);
                        chunk.fold_in(i, answer, &mut scratch);
                    }
                }
            }
        }
    }

    pub(crate) fn end(&mut self) -> Counts {
        let mut counts = Counts::default();
        let mut shares = Vec::new();
        for server in &mut self.servers {
            let (share, count) = server.close(&self.algorithm, &self.run, &mut Tally::default());
            counts.add(count);
            shares.push(share);
        }
        for server in &mut self.servers {
            let mut ids = server.neighbours().to_vec();
            ids.push(server.id());
            ids.sort_unstable();
            let near: Vec<(u32, &A::Share)> = ids.iter().map(|&id| (id, &shares[id as usize])).collect();
            server.mix(&self.algorithm, &self.run, &near);
            server.chunks(&self.algorithm, &self.run).for_each(|mut chunk| chunk.settle());
        }
        counts
    }

    pub(crate) fn step(&mut self) -> Counts {
        self.begin();
        self.ask();
        self.end()
    }

    /// All state of a server as bytes.
    pub(crate) fn state(&self, server: usize) -> Vec<u8> {
        let mut bytes = fedkin_core::codec::Bytes::default();
        self.servers[server].save(&mut bytes);
        bytes.0
    }
}

/// phi_k of every client by id: rho (v_k - w_s) of the message the server would send now.
pub(crate) fn duals(run: &mut Loop<Admm<Pgfl>>, rho: f64) -> BTreeMap<u32, Vector> {
    let mut duals = BTreeMap::new();
    for server in &mut run.servers {
        let mut served = BTreeMap::new();
        server.held(&run.algorithm, &run.run, &mut |cluster, name, model| {
            if name == "served" {
                served.insert(cluster, model.to_vec());
            }
        });
        let mut down = <Admm<Pgfl> as Algorithm>::Down::default();
        for chunk in server.chunks(&run.algorithm, &run.run) {
            for (i, member) in chunk.members.iter().enumerate() {
                chunk.down(i, &mut down);
                let gap = down.centre.iter().zip(&served[&member.cluster]).map(|(v, w)| rho * (v - w));
                duals.insert(member.id, gap.collect());
            }
        }
    }
    duals
}

pub(crate) fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

pub(crate) fn length(a: &[f64]) -> f64 {
    inner(a, a).sqrt()
}

/// |a - b| / |b|
pub(crate) fn apart(a: &[f64], b: &[f64]) -> f64 {
    let gap: Vector = a.iter().zip(b).map(|(x, y)| x - y).collect();
    length(&gap) / length(b)
}

/// Gaussian elimination with row pivoting.
pub(crate) fn solve(mut a: Matrix, mut b: Vector) -> Vector {
    let n = b.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs())).unwrap();
        a.swap(column, pivot);
        b.swap(column, pivot);
        let (done, rest) = a.split_at_mut(column + 1);
        let top = &done[column];
        for (below, row) in rest.iter_mut().enumerate() {
            let factor = row[column] / top[column];
            if factor != 0.0 {
                for (x, y) in row[column..].iter_mut().zip(&top[column..]) {
                    *x -= factor * y;
                }
                b[column + 1 + below] -= factor * b[column];
            }
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

/// The value, slope and curvature of a record's loss in z = x'w, written out here once more.
pub(crate) fn derivatives(loss: Loss, z: f64, y: f64) -> (f64, f64, f64) {
    match loss {
        Loss::Huber(t) if (z - y).abs() > t => {
            (2.0 * t * (z - y).abs() - t * t, 2.0 * t * (z - y).signum(), 0.0)
        }
        Loss::Squared | Loss::Huber(_) => ((z - y).powi(2), 2.0 * (z - y), 2.0),
        Loss::Logistic => {
            let p = 1.0 / (1.0 + (-z).exp());
            (-(y * p.ln() + (1.0 - y) * (1.0 - p).ln()), p - y, p * (1.0 - p))
        }
    }
}

/// The minimiser of `sum over clients of mean loss + ridge |w|^2 + (rho/2) |w - v|^2` by Newton's method
/// in d unknowns with backtracking, until the gradient is a rounding error.
pub(crate) fn minimise(loss: Loss, clients: &[&Dataset], strength: f64, rho: f64, centre: &[f64]) -> Vector {
    let d = centre.len();
    let value = |w: &[f64]| {
        let gap: Vector = w.iter().zip(centre).map(|(w, v)| w - v).collect();
        let mut sum = strength * inner(w, w) + 0.5 * rho * inner(&gap, &gap);
        for data in clients {
            for (i, &y) in data.targets().iter().enumerate() {
                sum += derivatives(loss, inner(data.row(i), w), y).0 / data.rows() as f64;
            }
        }
        sum
    };
    let mut w = centre.to_vec();
    for _ in 0..200 {
        let mut gradient: Vector =
            w.iter().zip(centre).map(|(w, v)| 2.0 * strength * w + rho * (w - v)).collect();
        let mut hessian = vec![vec![0.0; d]; d];
        for (j, row) in hessian.iter_mut().enumerate() {
            row[j] = 2.0 * strength + rho;
        }
        for data in clients {
            for (i, &y) in data.targets().iter().enumerate() {
                let x = data.row(i);
                let (_, slope, curve) = derivatives(loss, inner(x, &w), y);
                for a in 0..d {
                    gradient[a] += slope * x[a] / data.rows() as f64;
                    for b in 0..d {
                        hessian[a][b] += curve * x[a] * x[b] / data.rows() as f64;
                    }
                }
            }
        }
        if length(&gradient) < 1e-14 * (1.0 + length(&w)) {
            break;
        }
        let step = solve(hessian, gradient.iter().map(|g| -g).collect());
        let mut t = 1.0;
        let now = value(&w);
        let moved = |t: f64| w.iter().zip(&step).map(|(w, s)| w + t * s).collect::<Vector>();
        // Near the end the value cannot fall any more in floating point, and full steps are right there.
        while t > 1e-9 && value(&moved(t)) > now && length(&step) > 1e-5 * (1.0 + length(&w)) {
            t *= 0.5;
        }
        let next = moved(t);
        if next == w {
            break;
        }
        w = next;
    }
    w
}
