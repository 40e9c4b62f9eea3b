//! Pictures of learnt graphs: every client's with the consensus, as nodes and lines and as matrices.

use fedkin_data::World;
use fedkin_method::EdgeMeaning;
use fedkin_method::round::Results;
use fedkin_numeric::distance2;
use fedkin_report::{
    Bars, Drawing, HeatScale, KinFound, KinGraph, Panel, Picture, ServerGraph, ServerNode, Stacks,
};
use fedkin_run::{Outcome, Plan};

/// Above this many nodes nothing can be seen.
const MOST_NODES: usize = 2000;

/// What the first repeat of a run learnt, under a name; nothing where it did not learn graphs.
pub(crate) fn of_run(plan: &Plan, outcome: &Outcome, name: &str) -> Vec<Picture> {
    let Some((world, live)) = &outcome.end else { return Vec::new() };
    let Some(nodes) = plan.nodes(world).filter(|nodes| nodes.len() <= MOST_NODES) else {
        return Vec::new();
    };
    let mut graphs: Vec<(String, Vec<f64>)> = Vec::new();
    live.own_models(&mut |id, graph| {
        graphs.push((world.federation.client_name(id).to_string(), graph.to_vec()));
    });
    let mut consensus: Option<Vec<f64>> = None;
    live.held(&mut |_, _, name, graph| {
        if name == "consensus" {
            consensus = Some(graph.to_vec());
        }
    });
    let common = consensus.as_deref();
    let one_for_all = common.is_some_and(|common| graphs.iter().all(|(_, graph)| graph == common));
    let mut panels = Vec::new();
    if let Some(common) = common {
        let title = if one_for_all { "one graph for all" } else { "consensus" };
        panels.push(Panel { title: title.into(), weights: common, consensus: Some(common), note: None });
    }
    if !one_for_all {
        panels.extend(graphs.iter().map(|(title, weights)| Panel {
            title: title.clone(),
            weights,
            consensus: common,
            note: None,
        }));
    }
    let about = world.nodes.as_ref();
    let drawing = Drawing {
        nodes: &nodes,
        positions: about.and_then(|nodes| nodes.positions.as_deref()),
        labels: about.and_then(|nodes| nodes.labels.as_deref()),
        panels,
        threshold: plan.threshold(),
    };
    let id = |what: &str| format!("{what}-{}", slug(name));
    let mut pictures = vec![
        Picture::Graphs(drawing.topology(&id("graphs"), &format!("The graphs of {name}"))),
        Picture::Heat(drawing.heat(&id("weights"), &format!("The weights of {name}"), None, HeatScale::Own)),
    ];
    if let Some(common) = common.filter(|_| !one_for_all) {
        let values = graphs
            .iter()
            .map(|(client, graph)| (client.clone(), 1.0 / (distance2(graph, common).sqrt() + 1e-6)))
            .collect();
        pictures.push(Picture::Bars(Bars {
            id: id("gamma"),
            title: format!("How near is each client of {name} to the consensus?"),
            label: "gamma".into(),
            values,
            caption:
                "gamma, equation (20): one over the distance of a client's graph from the consensus graph."
                    .into(),
        }));
    }
    pictures
}

/// The same for one curve of a comparison, and the graph of its clients where models were denoised over it.
pub(crate) fn of_curve(plan: &Plan, outcome: &Outcome, label: &str) -> Vec<Picture> {
    let mut pictures = of_run(plan, outcome, label);
    if plan.row.edges == EdgeMeaning::Denoising
        && let Some(Picture::Kin(mut graph)) = kin(plan, outcome)
    {
        graph.id = format!("kin-{}", slug(label));
        graph.title = format!("Over which graph were the models of {label} denoised?");
        pictures.push(Picture::Kin(graph));
    }
    pictures
}

/// Who was found to be kin of whom in the first repeat; nothing where nobody was.
pub(crate) fn kin(plan: &Plan, outcome: &Outcome) -> Option<Picture> {
    let (world, _) = outcome.end.as_ref()?;
    let mut kin = outcome.kin()?;
    kin.edges.retain(|edge| edge.2 > 0.0);
    let truth = fedkin_run::kin::known(world);
    // A first stage finds the clusters by rewards, whatever the method.
    let edges = if plan.kin.by_rewards() { EdgeMeaning::Reward } else { plan.row.edges };
    let worth = match edges {
        EdgeMeaning::Denoising => "the weight of their edge in the graph over which models were denoised",
        EdgeMeaning::Reward => "its mean reward: by how much a step of the one lowered the loss of the other",
        EdgeMeaning::Worth => "what the one was worth to the other, as the method measures it",
    };
    let found = KinFound {
        names: world.federation.client_names(),
        edges: &kin.edges,
        clusters: &kin.clusters,
        truth: truth.as_deref(),
        worth,
    };
    let title = match (kin.edges.is_empty(), edges) {
        (_, EdgeMeaning::Denoising) => "Over which graph were the models denoised?",
        (true, EdgeMeaning::Reward | EdgeMeaning::Worth) => "Who was found to be kin of whom?",
        (false, EdgeMeaning::Reward) => "Who was found to be kin of whom? Edges are worth their mean reward",
        (false, EdgeMeaning::Worth) => {
            "Who was found to be kin of whom? Edges are worth what the one gave the other"
        }
    };
    Some(Picture::Kin(KinGraph::new("kin", title, &found)))
}

/// gamma (20) of every client, by id; nothing without a consensus graph.
pub(crate) fn gammas(live: &dyn Results) -> Vec<f64> {
    let mut consensus = Vec::new();
    live.held(&mut |_, _, name, graph| {
        if name == "consensus" {
            consensus = graph.to_vec();
        }
    });
    let mut gammas = Vec::new();
    if !consensus.is_empty() {
        live.own_models(&mut |_, graph| gammas.push(1.0 / (distance2(graph, &consensus).sqrt() + 1e-6)));
    }
    // One graph for all is no consensus of different ones.
    if gammas.iter().all(|gamma| *gamma >= 1e6) { Vec::new() } else { gammas }
}

fn slug(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// Clients whose labels are drawn, at most.
const MOST_LABELLED: usize = 400;

/// Records of each client by label, where models tell classes apart.
pub(crate) fn labels(plan: &Plan, world: &World) -> Option<Stacks> {
    if plan.row.graphs || !plan.looks_at_clients() || world.train.len() > MOST_LABELLED {
        return None;
    }
    let counts = world.label_counts()?;
    Some(Stacks {
        title: "Which labels has each client?".into(),
        label: "records".into(),
        parts: counts.classes.clone(),
        rows: counts.clients.iter().map(|client| (client.name.clone(), client.all())).collect(),
        caption:
            "Records of each client by label in the first repeat: training, validation and test together."
                .into(),
    })
}

/// The servers with the clusters of their clients.
pub(crate) fn server_graph(world: &World) -> ServerGraph {
    let federation = &world.federation;
    let mut servers: Vec<ServerNode> = federation
        .server_names()
        .iter()
        .map(|name| ServerNode { name: name.clone(), clusters: vec![0; federation.clusters()] })
        .collect();
    for member in federation.members() {
        servers[member.server as usize].clusters[member.cluster as usize] += 1;
    }
    ServerGraph {
        servers,
        edges: federation.topology().edges().map(|(a, b)| (a as usize, b as usize)).collect(),
        clusters: federation.cluster_names().to_vec(),
        positions: None,
    }
}
