//! Graph learning: CPU time of one core against the numpy peer in `benches/peers/fedgl_numpy.py`, in the same run; the
//! cost of a Newton step as the graph grows; and a federation of graphs with 4.5 million pairs.
//!
//! `cargo bench -p fedkin-experiment --bench graphs [-- PYTHON] [block] [coupled] [curve] [huge]`: PYTHON is an
//! interpreter with numpy (default `python3`); without a part, all but `huge`. Signals are smooth fields over points in
//! the unit square with noise on them, so that near nodes are alike. Best of several runs on each side.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs
)]

use fedkin_graph::Topology;
use fedkin_learner::signals::{self, Records, Smooth, pairs_of};
use fedkin_learner::{Dataset, Graph};
use fedkin_method::registry::Method;
use fedkin_method::round::{Live, Progress, Results, Simulation};
use fedkin_method::{
    Consensus, Context, Entry, Families, FedGl, FedGlSettings, Federation, Run, SolverSettings,
};
use fedkin_numeric::rng::{PublicRng, Random};
use fedkin_privacy::Privacy;
use fedkin_runtime::Threads;
use std::f64::consts::TAU;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ALPHA: f64 = Smooth::ALPHA;
const CLIENTS: usize = 5;

/// User and system time of this process in seconds.
fn cpu_seconds() -> f64 {
    cpu_time::ProcessTime::try_now().map_or(0.0, |now| now.as_duration().as_secs_f64())
}

/// beta that keeps about 2 of 100 pairs in these worlds, whatever the number of nodes.
fn beta(nodes: usize) -> f64 {
    BETA_PER_NODE * nodes as f64
}

const BETA_PER_NODE: f64 = 1e-4;

/// Signals of one client: sums of 12 plane waves over points that all clients share up to a small shift.
fn signals_of(nodes: usize, records: usize, client: u32) -> Dataset {
    let mut common = PublicRng::named(7, "points", 0, 0);
    let mut own = PublicRng::named(7, "signals", 0, client);
    let points: Vec<[f64; 2]> = (0..nodes)
        .map(|_| {
            let [x, y] = [common.uniform(), common.uniform()];
            [x + 0.02 * own.normal(), y + 0.02 * own.normal()]
        })
        .collect();
    let mut values = Vec::with_capacity(nodes * records);
    for _ in 0..records {
        let waves: Vec<[f64; 3]> =
            (0..12).map(|_| [4.0 * own.normal(), 4.0 * own.normal(), TAU * own.uniform()]).collect();
        for [x, y] in &points {
            let field: f64 = waves.iter().map(|[a, b, phase]| (a * x + b * y + phase).cos()).sum();
            values.push(field * (1.0f64 / 6.0).sqrt() + 0.1 * own.normal());
        }
    }
    Dataset::new(nodes, values, vec![0.0; records]).unwrap()
}

fn problem(nodes: usize) -> Smooth {
    Smooth { alpha: ALPHA, beta: beta(nodes), records: Records::Signals }
}

fn distances(nodes: usize, client: u32) -> Vec<f64> {
    let own = signals::means(&problem(nodes), &signals_of(nodes, 100, client), None).unwrap();
    own.zbar.to_vec()
}

/// An array (clients, pairs) as numpy reads it.
fn write_npy(path: &Path, rows: &[Vec<f64>]) {
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}), }}", rows.len(), rows[0].len());
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    for value in rows.iter().flatten() {
        bytes.extend(value.to_le_bytes());
    }
    fs::File::create(path).unwrap().write_all(&bytes).unwrap();
}

struct Peer {
    python: String,
    file: PathBuf,
}

impl Peer {
    fn run(&self, arguments: &[String]) -> Option<serde_json::Value> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/fedgl_numpy.py");
        let output = Command::new(&self.python)
            .arg(&script)
            .arg(&arguments[0])
            .arg(&self.file)
            .args(&arguments[1..])
            .envs([("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")])
            .output()
            .ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    fn skipped(&self) {
        println!("  skipped numpy: {} has none (benches/peers/requirements.txt)", self.python);
    }
}

struct Solo {
    seconds: f64,
    steps: u32,
    mismatch: f64,
    objective: f64,
    density: f64,
}

/// One client alone, from its mean distances to its graph.
fn solo(zbar: &[f64], nodes: usize, repeats: usize) -> Solo {
    let problem = problem(nodes);
    let mut best = f64::INFINITY;
    let (mut graph, mut work, mut solved) = (Vec::new(), Vec::new(), None);
    for _ in 0..repeats {
        let begin = cpu_seconds();
        graph.clear();
        graph.extend(zbar.iter().map(|z| 2.0 * z));
        let mut dual = Vec::new();
        solved = Some(signals::solve(ALPHA, 4.0 * problem.beta, &mut graph, &mut dual, &mut work).unwrap());
        best = best.min(cpu_seconds() - begin);
    }
    let solved = solved.unwrap();
    Solo {
        seconds: best,
        steps: solved.steps,
        mismatch: solved.mismatch,
        objective: problem.value(zbar, &graph, &mut work),
        density: graph.iter().filter(|w| **w > 0.0).count() as f64 / graph.len() as f64,
    }
}

fn blocks(peer: &Peer) {
    for nodes in [200, 1000] {
        let zbar = distances(nodes, 0);
        write_npy(&peer.file, std::slice::from_ref(&zbar));
        let ours = solo(&zbar, nodes, 15);
        println!(
            "one client, d = {nodes}: fedkin {:.2} ms CPU to {:.0e} in {} steps, {:.1} % of the pairs are edges",
            1e3 * ours.seconds,
            ours.mismatch,
            ours.steps,
            100.0 * ours.density
        );
        for (solve, tolerance) in [("lu", "1e-6"), ("lu", "1e-10"), ("cg", "1e-6"), ("cg", "1e-10")] {
            let arguments = format!(
                "block --alpha {ALPHA} --beta {} --tolerance {tolerance} --solve {solve} --repeats 7",
                beta(nodes)
            );
            let arguments: Vec<String> = arguments.split(' ').map(String::from).collect();
            let Some(found) = peer.run(&arguments) else { return peer.skipped() };
            let seconds = found["cpu_seconds"].as_f64().unwrap();
            let gap = found["objective"].as_f64().unwrap() - ours.objective;
            println!(
                "  numpy, {solve}, to {tolerance}: {:.1} ms CPU in {} steps, {:.1} times ours; objective {:+.0e} relative",
                1e3 * seconds,
                found["iterations"],
                seconds / ours.seconds,
                gap / ours.objective.abs()
            );
        }
    }
}

/// A federation of clients with these records, as `fedkin graph learn` runs it.
fn federation(
    nodes: usize,
    records: Records,
    data: &[Arc<Dataset>],
    (rho, lambda, tolerance): (f64, f64, f64),
) -> Simulation<FedGl<Consensus>> {
    let solving = SolverSettings { tolerance, ..SolverSettings::default() };
    let settings = FedGlSettings { rho, lambda, solving };
    let family = Graph::new(Smooth { records, ..problem(nodes) });
    let context = Context::new(Families::one(family), Privacy::None);
    let algorithm = FedGl::<Consensus>::build(settings, &context).unwrap();
    let entries = (0..data.len())
        .map(|k| Entry { name: format!("c{k}"), server: 0, cluster: 0, samples: data[k].rows() as u32 })
        .collect();
    let (federation, _) =
        Federation::new(entries, vec!["s".into()], vec!["q".into()], Topology::none(1)).unwrap();
    let run = Run {
        seed: 1,
        rounds: 2000,
        clients_per_server: None,
        max_norm2: 1e24,
        dimension: pairs_of(nodes),
        clusters: 1,
        privacy: Privacy::None,
        targets: None,
        kin: None,
        columns: None,
        learners: None,
    };
    Simulation::new(Arc::new(algorithm), run, &federation, data, Arc::new(Threads)).unwrap()
}

fn gauge(simulation: &Simulation<FedGl<Consensus>>, name: &str) -> f64 {
    simulation.gauges().into_iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, value)| value)
}

/// rho and lambda of the runs, by the size of the graphs: |w| grows with the root of the number of edges.
fn ties(nodes: usize) -> (f64, f64) {
    (RHO * (nodes as f64).sqrt(), LAMBDA)
}
const RHO: f64 = 0.02;
const LAMBDA: f64 = 0.02;

fn coupled(peer: &Peer) {
    for nodes in [200, 1000] {
        let zbar: Vec<Vec<f64>> = (0..CLIENTS as u32).map(|client| distances(nodes, client)).collect();
        write_npy(&peer.file, &zbar);
        let data: Vec<Arc<Dataset>> = zbar
            .into_iter()
            .map(|zbar| Arc::new(Dataset::new(zbar.len(), zbar, vec![0.0]).unwrap()))
            .collect();
        let (rho, lambda) = ties(nodes);
        let (mut best, mut rounds, mut objective, mut kkt) = (f64::INFINITY, 0, 0.0, 0.0);
        for _ in 0..3 {
            let begin = cpu_seconds();
            let mut simulation = federation(nodes, Records::Distances, &data, (rho, lambda, 1e-6));
            while simulation.step().unwrap() != Progress::Ended {}
            best = best.min(cpu_seconds() - begin);
            (rounds, objective) = (simulation.steps(), gauge(&simulation, "objective"));
            kkt = gauge(&simulation, "kkt");
        }
        println!(
            "{CLIENTS} clients, d = {nodes}: fedkin {:.1} ms CPU, {rounds} rounds, objective {objective:.6}, kkt {kkt:.0e}",
            1e3 * best
        );
        // Beyond this the answer is known, and a step that diverges would never end.
        let cap = 100.0 * best;
        let arguments = format!(
            "coupled --alpha {ALPHA} --beta {} --rho {rho} --lam {lambda} --target {objective} --cap {cap} --step {STEPS}",
            beta(nodes)
        );
        let arguments: Vec<String> = arguments.split(' ').map(String::from).collect();
        let Some(found) = peer.run(&arguments) else { return peer.skipped() };
        let seconds = found["cpu_seconds"].as_f64().unwrap();
        println!(
            "  Algorithm 1 in numpy, best step {}: {seconds:.2} s CPU, {} rounds, objective {:.6} ({}): {:.0} times ours",
            found["step"],
            found["rounds"],
            found["objective"].as_f64().unwrap_or(f64::NAN),
            if found["reached"] == true { "within 1e-6 of ours" } else { "above ours at 100 times our time" },
            seconds / best
        );
        println!("  tried {}", found["tried"]);
    }
}

/// Steps offered to Algorithm 1; the paper has 5e-4.
const STEPS: &str = "5e-4 2e-3 8e-3 3e-2 1e-1";

fn curve() {
    println!("cost of a Newton step (conjugate gradients: no d^3 solve), and of a whole solution to 1e-11");
    let mut last: Option<(f64, f64, f64)> = None;
    for nodes in [50, 100, 200, 400, 800, 1600, 3000] {
        let zbar = distances(nodes, 0);
        let found = solo(&zbar, nodes, if nodes < 1000 { 25 } else { 7 });
        let step = found.seconds / f64::from(found.steps);
        let size = (nodes as f64).ln();
        let exponents = last.map_or(String::new(), |(before, a_step, all)| {
            format!(
                "; exponent {:.2} per step, {:.2} in all",
                (step / a_step).ln() / (size - before),
                (found.seconds / all).ln() / (size - before)
            )
        });
        println!(
            "  d = {nodes}: {:.3} ms per step, {} steps, {:.2} ms, density {:.3}{exponents}",
            1e3 * step,
            found.steps,
            1e3 * found.seconds,
            found.density
        );
        last = Some((size, step, found.seconds));
    }
}

/// The largest memory of this process so far, in MiB.
fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}

fn huge() {
    let nodes = 3000;
    let data: Vec<Arc<Dataset>> =
        (0..CLIENTS as u32).map(|client| Arc::new(signals_of(nodes, 1000, client))).collect();
    let (rho, lambda) = ties(nodes);
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let mut simulation = federation(nodes, Records::Signals, &data, (rho, lambda, 1e-6));
    println!(
        "d = {nodes}, {CLIENTS} clients, 1000 records each: joined after {:.1} s",
        wall.elapsed().as_secs_f64()
    );
    while simulation.step().unwrap() != Progress::Ended {
        if simulation.steps().is_multiple_of(10) {
            println!(
                "  round {}: {:.1} s, objective {:.6}, kkt {:.1e}",
                simulation.steps(),
                wall.elapsed().as_secs_f64(),
                gauge(&simulation, "objective"),
                gauge(&simulation, "kkt")
            );
        }
    }
    println!(
        "d = {nodes}, {CLIENTS} clients: {:.1} s wall, {:.1} s CPU on {} threads, {} rounds, objective {:.6}, kkt {:.1e}, {:.0} MiB at most",
        wall.elapsed().as_secs_f64(),
        cpu_seconds() - cpu,
        rayon::current_num_threads(),
        simulation.steps(),
        gauge(&simulation, "objective"),
        gauge(&simulation, "kkt"),
        peak_memory().unwrap_or(f64::NAN)
    );
}

fn main() {
    let parts = ["block", "coupled", "curve", "huge"];
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let python = words.iter().find(|word| !parts.contains(&word.as_str()));
    let named = words.iter().any(|word| parts.contains(&word.as_str()));
    let wanted = |part: &str| words.iter().any(|word| word == part) || (!named && part != "huge");
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer {
        python: python.cloned().unwrap_or_else(|| "python3".into()),
        file: folder.path().join("zbar.npy"),
    };
    // One thread where CPU time is compared, all of them where a person waits.
    let threads = usize::from(!wanted("huge"));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().unwrap();
    std::thread::sleep(Duration::from_millis(10));
    if wanted("block") {
        blocks(&peer);
    }
    if wanted("coupled") {
        coupled(&peer);
    }
    if wanted("curve") {
        curve();
    }
    if wanted("huge") {
        huge();
    }
}
