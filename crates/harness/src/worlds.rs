//! Small worlds that methods are tried on, and looks at what came out.

use fedkin_graph::Topology;
use fedkin_learner::hypothesis::Kind;
use fedkin_learner::model::neural::{Goal, Layer, Net};
use fedkin_learner::model::{Loss, Model, NetModel, Softmax};
use fedkin_learner::signals::{Records, Smooth};
use fedkin_learner::{Abilities, Dataset, Family, Graph, Hypotheses, Linear, NetFamily, SoftmaxFamily};
use fedkin_method::registry::{self, Methods, Row};
use fedkin_method::round::{Live, Results, RunFault};
use fedkin_method::{Context, Entry, Families, Federation, Run};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::{Bound, Clip, DpSgd, OneShot, Privacy, Sampler, Unit, Zcdp};
use fedkin_runtime::Threads;
use fedkin_settings::{Value, Values};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parameters of a model.
pub type Vector = Vec<f64>;

/// Clustered regression on a few servers: 4 servers in a ring, unequal, 3 clusters, d features.
#[derive(Debug, Clone)]
pub struct Small {
    /// Who takes part.
    pub federation: Federation,
    /// Records by client id.
    pub data: Vec<Arc<Dataset>>,
    /// What the run fixes.
    pub run: Run,
    /// What linear methods fit.
    pub model: Model,
    /// What methods are built with.
    pub context: Context,
}

/// Numbered names.
pub fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{prefix}{i}")).collect()
}

/// Records of a linear model with noise of deviation 0.1; labels by a coin of the logistic law if `binary`.
pub fn records(rng: &mut PublicRng, samples: u32, model: &[f64], binary: bool) -> Dataset {
    let mut features = Vec::new();
    let mut targets = Vec::new();
    for _ in 0..samples {
        let x: Vector = model.iter().map(|_| rng.normal()).collect();
        let y: f64 = x.iter().zip(model).map(|(x, w)| x * w).sum();
        targets.push(if binary {
            f64::from(u8::from(rng.uniform() < 1.0 / (1.0 + (-y).exp())))
        } else {
            y + 0.1 * rng.normal()
        });
        features.extend(x);
    }
    Dataset::new(model.len(), features, targets).unwrap()
}

/// A world of this seed with so many clients, features and rounds.
pub fn small(seed: u64, clients: usize, dimension: usize, rounds: u32) -> Small {
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

/// A linear model of squared errors without an intercept.
pub fn ridge(regularisation: f64) -> Model {
    Model { loss: Loss::Squared, regularisation, bias: false, feature_norm: None }
}

/// A world of these parts, in which everybody is asked and nothing is private.
pub fn world(federation: Federation, data: Vec<Arc<Dataset>>, model: Model, seed: u64, rounds: u32) -> Small {
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
        columns: Some(data[0].columns()),
        learners: None,
    };
    let context = Context::new(Families::one(Linear::new(model)), Privacy::None);
    Small { federation, data, run, model, context }
}

impl Small {
    /// The same with these methods to choose from.
    #[must_use]
    pub fn methods(mut self, methods: &Arc<Methods>) -> Self {
        Arc::make_mut(&mut self.context.registry).methods = (**methods).clone();
        self
    }

    /// Noise as in the paper's Fig 3, bound on trust.
    #[must_use]
    pub fn private(self) -> Self {
        self.zcdp(0.01, 0.98, 0.05, None)
    }

    /// Gaussian noise with budgets per round that grow, and a bound on trust.
    #[must_use]
    pub fn zcdp(mut self, initial_budget: f64, growth: f64, gradient: f64, budget: Option<f64>) -> Self {
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
    #[must_use]
    pub fn dp_sgd(mut self, clip: f64, multiplier: f64, budget: Option<f64>, sampler: Sampler) -> Self {
        let clip = Clip::new(clip).unwrap();
        self.run.privacy = Privacy::DpSgd(DpSgd { clip, multiplier, budget, sampler });
        self.context.privacy = self.run.privacy;
        self
    }

    /// The same with another sampler, budget 0.01 per round.
    #[must_use]
    pub fn sampled(self, sampler: Sampler, gradient: f64) -> Self {
        let mut world = self.zcdp(0.01, 1.0, gradient, None);
        if let Privacy::Zcdp(zcdp) = &mut world.run.privacy {
            zcdp.sampler = sampler;
        }
        world.context.privacy = world.run.privacy;
        world
    }

    /// The same features with one of several classes as target, and a softmax model of them.
    #[must_use]
    pub fn classes(mut self, classes: u32) -> Self {
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
        self.context.families = Families::one(SoftmaxFamily::new(model));
        self.run.dimension = model.dimension(self.data[0].columns());
        self
    }

    /// The same classes for a net of these layers.
    #[must_use]
    pub fn net(self, classes: u32, layers: &[&str]) -> Self {
        let mut world = self.classes(classes);
        let layers: Vec<Layer> = layers.iter().map(|words| Layer::parse(words).unwrap()).collect();
        let net = Net::new([world.data[0].columns(), 1, 1], &layers, Goal::CrossEntropy).unwrap();
        world.run.dimension = net.length();
        world.context.families = Families::one(NetFamily::new(NetModel::new(net)));
        world
    }

    /// The same where a server asks so many clients in a round.
    #[must_use]
    pub fn some(mut self, clients_per_server: u32) -> Self {
        self.run.clients_per_server = Some(clients_per_server);
        self
    }

    /// The row of a method.
    pub fn row(&self, name: &str) -> Row {
        *self.context.registry.methods.find(name).unwrap()
    }

    /// The same world as a method of this name sees it.
    #[must_use]
    pub fn arranged(&self, name: &str) -> Self {
        let row = self.row(name);
        let federation = self.federation.arranged(row.arrange);
        let mut run = Run { clusters: federation.clusters(), ..self.run.clone() };
        let mut context = self.context.clone();
        if row.graphs {
            // The features are signals, one node each; noise is on what a graph learner releases.
            let smooth = Smooth { alpha: 2.0, beta: 0.5, records: Records::Signals };
            context.families = Families::one(Graph::new(smooth));
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
        } else if !row.simulation_only
            && row.needs.contain(Abilities::FIT)
            && !row.needs.contain(Abilities::PARAMETERS)
        {
            // Different kinds of model, one of them with parameters, dealt in turn.
            context.families = mixed();
            run.dimension = self.data[0].columns();
            let count = context.families.count() as u32;
            run.learners = Some((0..federation.members().len() as u32).map(|id| id % count).collect());
        }
        Self { federation, data: self.data.clone(), run, model: self.model, context }
    }

    /// Starts a method on the world as the method sees it.
    pub fn live(&self, name: &str, values: &Values) -> Box<dyn Live> {
        self.arranged(name).start(name, values).unwrap()
    }

    /// Starts a method on the world as it is, or says why not.
    pub fn start(&self, name: &str, values: &Values) -> Result<Box<dyn Live>, RunFault> {
        let method = self.row(name).build(values, &self.context).map_err(RunFault::Config)?;
        method.simulate(self.run.clone(), &self.federation, &self.data, Arc::new(Threads))
    }
}

/// Trees, nearest neighbours and ridge models in one federation of clients with a few records each.
pub fn mixed() -> Families {
    let kinds = [
        Kind::Tree { leaf: 2, depth: fedkin_learner::hypothesis::DEEPEST },
        Kind::Neighbours { count: 2 },
        Kind::Linear(ridge(0.01)),
    ];
    let families = kinds.map(|kind| Arc::new(Hypotheses::new(kind, false)) as Arc<dyn Family>);
    Families::several(families.into()).unwrap()
}

/// The parameters of a native method: these, and defaults for the rest.
pub fn values(name: &str, pairs: &[(&str, Value)]) -> Values {
    let raw = pairs.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
    Values::check(registry::native().find(name).unwrap().params, &raw).unwrap()
}

/// A number of a config.
pub fn number(x: f64) -> Value {
    Value::Number(x)
}

/// A text of a config.
pub fn text(word: &str) -> Value {
    Value::Text(word.into())
}

/// A number that falls from round to round.
pub fn decay(start: f64, decay: f64) -> Value {
    let table: BTreeMap<String, Value> =
        [("start".into(), Value::Number(start)), ("decay".into(), Value::Number(decay))].into();
    Value::Table(table)
}

/// The models of every client by id.
pub fn own(live: &dyn Results) -> Vec<Vector> {
    let mut models = Vec::new();
    live.own_models(&mut |_, model| models.push(model.to_vec()));
    models
}

/// The models of this name by (server, cluster).
pub fn held(live: &dyn Results, wanted: &str) -> BTreeMap<(u32, u32), Vector> {
    let mut models = BTreeMap::new();
    live.held(&mut |server, cluster, name, model| {
        if name == wanted {
            models.insert((server, cluster), model.to_vec());
        }
    });
    models
}

/// The bits of a model.
pub fn bits(model: &[f64]) -> Vec<u64> {
    model.iter().map(|x| x.to_bits()).collect()
}

/// Client models and everything the servers hold, as bits.
pub fn all_bits(live: &dyn Results) -> Vec<Vec<u64>> {
    let mut all: Vec<Vec<u64>> = own(live).iter().map(|model| bits(model)).collect();
    live.held(&mut |_, _, _, model| all.push(bits(model)));
    all
}

/// Runs so many steps.
pub fn steps(live: &mut dyn Live, count: u32) {
    for _ in 0..count {
        live.step().unwrap();
    }
}
