//! The whole way: parameters, graphs, and what is to be said of them.

use super::choice::{self, Found, LAMBDA_SHARE, RHO_SHARE};
use super::solve::{Solution, Stage, unit_of};
use super::summary::{Chosen, Consensus, Degrees, Learner, Protected, Selected, Summary};
use super::{Input, Parameters, Settings, Shield, THRESHOLD, optimality, private, select};
use fedkin_graph::Weighted;
use fedkin_learner::signals::{Records, Smooth, means};
use fedkin_numeric::distance2;
use fedkin_run::{Control, Error};

/// The solver measures in another norm: with this share of the tolerance it is met in the independent one, too.
const STRICTER: f64 = 0.1;
/// gamma is one over a distance and this, as in a run.
const LEAST_GAP: f64 = 1e-6;

/// Graphs and what is said of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Learnt {
    /// Figures and warnings.
    pub summary: Summary,
    /// What the nodes are called.
    pub nodes: Vec<String>,
    /// The clients' graphs by client id; without the weights that are no edges, where somebody said which are.
    pub graphs: Vec<Vec<f64>>,
    /// The consensus likewise.
    pub consensus: Option<Vec<f64>>,
}

/// What was decided before the graphs are learnt.
struct Decided {
    parameters: Parameters,
    threshold: f64,
    chosen: Chosen,
    selected: Option<Selected>,
}

/// Learns the graphs.
pub fn learn(input: &Input, settings: &Settings, control: &Control<'_>) -> Result<Learnt, Error> {
    refuse(input, settings)?;
    let world = &input.world;
    let clients = world.train.len();
    let records = (settings.alpha, input.records);
    let tied = clients > 1 && !settings.alone;
    let (mut stage, zbar);
    if let Some(shield) = &settings.shield {
        let unit = unit_of(shield.scale(input.nodes.len()));
        stage = Stage::new(&world.federation, &world.train, records, unit)?;
        stage.privacy = Some(shield.mechanism(unit, settings.seed, clients)?);
        zbar = private::released(&mut stage, settings, control)?;
    } else {
        zbar = distances(input)?;
        let count = zbar.len() * zbar[0].len();
        let unit = unit_of(zbar.iter().flatten().sum::<f64>() / count as f64);
        stage = Stage::new(&world.federation, &world.train, records, unit)?;
    }
    (stage.seed, stage.tolerance, stage.rounds) =
        (settings.seed, STRICTER * settings.tolerance, settings.rounds);
    let decided = decide(input, settings, &zbar, tied, control)?;
    let parameters = decided.parameters;
    // A released graph of a client alone is one without a tie.
    let solved = match (parameters.tie, settings.shield) {
        (None, Some(_)) => Parameters { tie: Some((0.0, 0.0)), ..parameters },
        _ => parameters,
    };
    let quiet = Control { stop: control.stop, tick: &|| {} };
    let mut solution = stage.solve(solved, if settings.select { &quiet } else { control })?;
    if parameters.tie.is_none() {
        solution.consensus = None;
    }
    let consensus = solution.consensus.clone();
    let consensus = consensus.as_deref();
    let smooth = Smooth { alpha: settings.alpha, beta: parameters.beta, records: input.records };
    let objective = optimality::objective(&smooth, parameters, &zbar, &solution.graphs, consensus);
    let kkt = optimality::residual(settings.alpha, parameters, &zbar, &solution.graphs, consensus);
    solution.converged |= kkt <= settings.tolerance;
    let method = super::solve::method(parameters);
    Ok(report(input, settings, decided, &solution, &Figures { method, objective, kkt }))
}

/// What does not go together.
fn refuse(input: &Input, settings: &Settings) -> Result<(), Error> {
    let usage = |message: &str| Err(Error::Usage(message.into()));
    let distances = input.records == Records::Distances;
    if settings.select && distances {
        return usage(
            "--select holds out records, and mean squared differences have none: give --beta, --rho and --lambda, or \
             the signals",
        );
    }
    if settings.shield.is_some() && distances {
        return usage(
            "--epsilon protects records, and mean squared differences are already a sum of all: give the signals",
        );
    }
    if settings.shield.is_some() && settings.select {
        return usage(
            "--select looks at the records again and again, and the noise of --epsilon covers one look: give --beta, \
             --rho and --lambda, or leave them to the release",
        );
    }
    if settings.shield.is_some() && input.world.scaling.iter().any(|scaling| !scaling.is_empty()) {
        return usage(
            "--standardise uses means and deviations of all records, which the noise of --epsilon does not cover: \
             bring the nodes to a common scale by numbers that are no secret, before the call",
        );
    }
    let alone = input.world.train.len() == 1 || settings.alone;
    if alone && (settings.rho.is_some() || settings.lambda.is_some()) {
        return usage(
            "--rho and --lambda tie several graphs together: there is one client, or every client is alone",
        );
    }
    Ok(())
}

/// The mean squared differences of every client.
fn distances(input: &Input) -> Result<Vec<Vec<f64>>, Error> {
    let problem = Smooth { alpha: 1.0, beta: 1.0, records: input.records };
    let each = |(id, data): (usize, &std::sync::Arc<fedkin_learner::Dataset>)| {
        let own = means(&problem, data, None).map_err(|unsolved| {
            Error::Usage(format!(
                "client {:?}: {}",
                input.world.federation.client_name(id as u32),
                unsolved.0
            ))
        })?;
        if own.zbar.iter().all(|z| z.is_finite()) {
            return Ok(own.zbar.to_vec());
        }
        Err(Error::Usage(format!(
            "client {:?}: squared differences of its signals are beyond all measure: divide the signals by a large number",
            input.world.federation.client_name(id as u32)
        )))
    };
    input.world.train.iter().enumerate().map(each).collect()
}

/// The beta of a density that was asked for, or the range of what can be had.
pub(super) fn beta_for(alpha: f64, zbar: &[Vec<f64>], target: f64, share: f64) -> Result<Found, Error> {
    let found = choice::beta_of_density(alpha, zbar, target, share)?;
    let slack = 1.0 / zbar[0].len() as f64;
    if target < found.range.0 - slack || target > found.range.1 + slack {
        return Err(Error::Usage(format!(
            "no beta gives a density of {target}: on these data it runs from {:.4} to {:.4}",
            found.range.0, found.range.1
        )));
    }
    Ok(found)
}

fn decide(
    input: &Input,
    settings: &Settings,
    zbar: &[Vec<f64>],
    tied: bool,
    control: &Control<'_>,
) -> Result<Decided, Error> {
    let given = || "given".to_string();
    let alpha = settings.alpha;
    if settings.select {
        let (parameters, threshold, selected) = select::select(input, settings, zbar, control)?;
        let by = |given: bool, how: &str| if given { "given".to_string() } else { how.to_string() };
        let likely = "the most likely for held-out records";
        let chosen = Chosen {
            beta: match (settings.beta, settings.density) {
                (None, Some(target)) => format!("for density {target} of a client alone"),
                (beta, _) => by(beta.is_some(), likely),
            },
            rho: tied.then(|| by(settings.rho.is_some(), likely)),
            lambda: tied.then(|| by(settings.lambda.is_some(), likely)),
            threshold: by(settings.threshold.is_some(), "where two halves of the records agree best"),
        };
        return Ok(Decided { parameters, threshold, chosen, selected: Some(selected) });
    }
    let threshold = settings.threshold.unwrap_or(THRESHOLD);
    let reached = |found: &Found, target: f64| {
        let mean = if zbar.len() > 1 { "; clients alone reach" } else { "; it reaches" };
        format!("for density {}{mean} {}", short(target), short(found.density))
    };
    let (beta, of_beta) = match (settings.beta, settings.density) {
        (Some(beta), _) => (beta, given()),
        (None, Some(target)) => {
            let found = beta_for(alpha, zbar, target, threshold)?;
            (found.beta, reached(&found, target))
        }
        (None, None) => {
            let target = choice::usual_density(input.nodes.len());
            let found = choice::beta_of_density(alpha, zbar, target, threshold)?;
            (found.beta, format!("not given: {}", reached(&found, target)))
        }
    };
    let mut chosen = Chosen {
        beta: of_beta,
        rho: None,
        lambda: None,
        threshold: "share of a graph's largest weight".into(),
    };
    if settings.threshold.is_some() {
        chosen.threshold = given();
    }
    let mut tie = None;
    if tied {
        let (rho, of_rho) = if let Some(rho) = settings.rho {
            (rho, given())
        } else {
            let fusing = choice::fusing_rho(alpha, beta, zbar)?;
            (RHO_SHARE * fusing, format!("not given: {RHO_SHARE} of what fuses all graphs"))
        };
        let (lambda, of_lambda) = if let Some(lambda) = settings.lambda {
            (lambda, given())
        } else {
            let empty = choice::emptying_lambda(alpha, beta, zbar)?;
            (LAMBDA_SHARE * rho * empty, format!("not given: {LAMBDA_SHARE} of what empties the consensus"))
        };
        (chosen.rho, chosen.lambda) = (Some(of_rho), Some(of_lambda));
        tie = Some((rho, lambda));
    }
    Ok(Decided { parameters: Parameters { beta, tie }, threshold, chosen, selected: None })
}

/// Three digits, without the zeros behind them.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

struct Figures {
    method: &'static str,
    objective: f64,
    kkt: f64,
}

fn report(
    input: &Input,
    settings: &Settings,
    decided: Decided,
    solution: &Solution,
    figures: &Figures,
) -> Learnt {
    let nodes = input.nodes.len();
    let share = decided.threshold;
    // Weights are thrown away only by a threshold that was asked for; the default one counts.
    let cut = if settings.threshold.is_some() || decided.selected.is_some() { share } else { 0.0 };
    let (mut clients, mut graphs, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for (id, graph) in solution.graphs.iter().enumerate() {
        let name = input.world.federation.client_name(id as u32).to_string();
        let kept = choice::pruned(graph, share);
        let shape = Shape::of(nodes, &kept);
        let distance = solution.consensus.as_ref().map(|consensus| distance2(graph, consensus).sqrt());
        if shape.components > 1 {
            warnings.push(disconnected(&name, &shape, settings, share));
        }
        clients.push(Learner {
            name,
            records: input.world.train[id].rows(),
            edges: shape.edges,
            density: shape.density,
            components: shape.components,
            degrees: shape.degrees,
            distance,
            gamma: distance.map(|distance| 1.0 / (distance + LEAST_GAP)),
        });
        graphs.push(choice::pruned(graph, cut));
    }
    let kept = solution.consensus.as_ref().map(|consensus| choice::pruned(consensus, cut));
    let consensus = kept.as_ref().map(|graph| {
        let shape = Shape::of(nodes, &choice::pruned(graph, share));
        if shape.edges == 0 {
            warnings.push("the consensus has no edge: lower --lambda, or raise --rho".into());
        }
        Consensus {
            edges: shape.edges,
            density: shape.density,
            components: shape.components,
            degrees: shape.degrees,
        }
    });
    if !solution.converged {
        warnings.push(format!(
            "the solver stopped after {} rounds above its tolerance of {:e}: raise --rounds",
            solution.rounds, settings.tolerance
        ));
    }
    if settings.shield.is_some_and(|shield| shield.seeded) {
        warnings.push(
            "the noise follows from --seed: whoever knows the seed can take it away; leave --seed out where the \
             graphs are shown to others"
                .into(),
        );
    }
    let tie = decided.parameters.tie;
    let summary = Summary {
        made_by: super::output::MARK,
        method: figures.method,
        nodes,
        objective: figures.objective,
        kkt: figures.kkt,
        tolerance: settings.tolerance,
        converged: solution.converged,
        rounds: solution.rounds,
        alpha: settings.alpha,
        beta: decided.parameters.beta,
        rho: tie.map(|(rho, _)| rho),
        lambda: tie.map(|(_, lambda)| lambda),
        threshold: share,
        chosen: decided.chosen,
        selected: decided.selected,
        privacy: settings.shield.as_ref().map(|shield| protected(shield, nodes)),
        clients,
        consensus,
        warnings,
        files: Vec::new(),
    };
    Learnt { summary, nodes: input.nodes.clone(), graphs, consensus: kept }
}

fn disconnected(name: &str, shape: &Shape, settings: &Settings, share: f64) -> String {
    let less = if share > THRESHOLD { ", or lower --threshold" } else { "" };
    let more = if settings.density.is_some() { "--density" } else { "--beta" };
    format!(
        "client {name:?}: the graph is not connected but in {} pieces, the largest of {} nodes: raise {more} for more \
         edges{less}, if one piece is expected",
        shape.components, shape.largest
    )
}

fn protected(shield: &Shield, nodes: usize) -> Protected {
    Protected {
        mechanism: "one-shot",
        epsilon: shield.epsilon,
        delta: shield.delta,
        clip: shield.clip,
        unit: "one record of one client is replaced",
        leaves: format!("one scatter matrix of {nodes} x {nodes} with noise"),
        seeded: shield.seeded,
    }
}

/// What a table says of a graph.
struct Shape {
    edges: usize,
    density: f64,
    components: usize,
    largest: usize,
    degrees: Degrees,
}

impl Shape {
    fn of(nodes: usize, weights: &[f64]) -> Self {
        let empty = Degrees { min: 0.0, mean: 0.0, max: 0.0 };
        let Ok(graph) = Weighted::new(nodes, weights.to_vec()) else {
            return Self { edges: 0, density: 0.0, components: nodes, largest: 1, degrees: empty };
        };
        let degrees = graph.degrees();
        let pieces = graph.components(0.0);
        let components = pieces.iter().max().map_or(0, |last| *last as usize + 1);
        let mut sizes = vec![0; components];
        for piece in pieces {
            sizes[piece as usize] += 1;
        }
        Self {
            edges: graph.edges(0.0).count(),
            density: graph.density(0.0),
            components,
            largest: sizes.into_iter().max().unwrap_or(0),
            degrees: Degrees {
                min: degrees.iter().copied().fold(f64::INFINITY, f64::min),
                mean: degrees.iter().sum::<f64>() / nodes as f64,
                max: degrees.iter().copied().fold(0.0, f64::max),
            },
        }
    }
}
