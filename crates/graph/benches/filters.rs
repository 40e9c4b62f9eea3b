//! The soft filter over 100,000 clients: CPU time of one core against scipy in `benches/peers/filters_scipy.py`, in the
//! same run; and how the time of an eigendecomposition grows.
//!
//! `cargo bench -p fedkin-core --bench filters [-- PYTHON] [sparse] [exact] [tv]`: PYTHON is an interpreter with scipy
//! (default `python3`); without a part, `sparse`. Clients are points in the unit square, joined with their 8 nearest;
//! 8 columns. Best of several runs on each side; of scipy's variants that come within 1e-6 the fastest counts.
#![allow(
    clippy::type_complexity,
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use fedkin_graph::Sparse;
use fedkin_graph::denoise::{self, Prepared, Strength, Way};
use fedkin_graph::similarity::{Points, knn_kernel};
use fedkin_numeric::rng::{PublicRng, Random};
use std::path::{Path, PathBuf};
use std::process::Command;

const CLIENTS: usize = 100_000;
const COLUMNS: usize = 8;

/// User and system time of this process in seconds.
fn cpu_seconds() -> f64 {
    cpu_time::ProcessTime::try_now().map_or(0.0, |now| now.as_duration().as_secs_f64())
}

/// The least time of several runs, and the last result.
fn timed<T>(runs: u32, mut work: impl FnMut() -> T) -> (f64, T) {
    let mut best = f64::INFINITY;
    let mut result = None;
    for _ in 0..runs {
        let begin = cpu_seconds();
        result = Some(work());
        best = best.min(cpu_seconds() - begin);
    }
    (best, result.unwrap())
}

struct World {
    graph: Sparse,
    sizes: Vec<f64>,
    signal: Vec<f64>,
}

fn world(clients: usize, columns: usize) -> World {
    let mut rng = PublicRng::named(7, "filters", 0, 0);
    let points: Vec<[f64; 2]> = (0..clients).map(|_| [rng.uniform(), rng.uniform()]).collect();
    let rows: Vec<&[f64]> = points.iter().map(<[f64; 2]>::as_slice).collect();
    let (seconds, graph) = timed(1, || knn_kernel(&Points::models(&rows).unwrap(), 8, 0.0).unwrap());
    println!("graph of {clients} clients: {} edges, {seconds:.2} s CPU", graph.listed());
    let sizes = (0..clients).map(|_| rng.between(50.0, 150.0).floor()).collect();
    let signal = (0..clients * columns).map(|_| rng.normal()).collect();
    World { graph, sizes, signal }
}

fn raw<const N: usize, T>(
    folder: &Path,
    name: &str,
    values: impl Iterator<Item = T>,
    bytes: fn(T) -> [u8; N],
) {
    std::fs::write(folder.join(name), values.flat_map(bytes).collect::<Vec<u8>>()).unwrap();
}

/// Times of scipy's variants: name, CPU seconds, error; and the reference solution.
fn scipy(python: &str, folder: &Path, beta1: f64, beta2: f64) -> Option<(Vec<(String, f64, f64)>, Vec<f64>)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/filters_scipy.py");
    let output = Command::new(python)
        .arg(script)
        .arg(folder)
        .args(["--clients", &CLIENTS.to_string(), "--columns", &COLUMNS.to_string()])
        .args(["--beta1", &beta1.to_string(), "--beta2", &beta2.to_string()])
        .args((beta2 >= 1.0).then_some("--without-cg"))
        .envs([("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // One known line; names hold no quotes.
    let variants = text
        .split("\"name\": \"")
        .skip(1)
        .filter_map(|part| {
            let number = |key: &str| -> Option<f64> {
                let rest = part.split_once(key)?.1;
                rest[..rest.find([',', '}'])?].trim().parse().ok()
            };
            let name = part.split('"').next()?.to_string();
            Some((name, number("\"cpu_seconds\":")?, number("\"off\":")?))
        })
        .collect::<Vec<_>>();
    let bytes = std::fs::read(folder.join("reference.f64")).ok()?;
    let reference = bytes.as_chunks::<8>().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect();
    (!variants.is_empty()).then_some((variants, reference))
}

fn sparse(python: &str) {
    let world = world(CLIENTS, COLUMNS);
    let folder: PathBuf = std::env::temp_dir().join(format!("fedkin-filters-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    raw(&folder, "from.u32", world.graph.edges(), |(i, _, _)| (i as u32).to_le_bytes());
    raw(&folder, "to.u32", world.graph.edges(), |(_, j, _)| (j as u32).to_le_bytes());
    raw(&folder, "weight.f64", world.graph.edges(), |(_, _, w)| w.to_le_bytes());
    raw(&folder, "sizes.f64", world.sizes.iter(), |x| x.to_le_bytes());
    raw(&folder, "signal.f64", world.signal.iter(), |x| x.to_le_bytes());
    let largest = world.signal.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    for (beta1, beta2) in [(0.05, 0.05), (0.0005, 0.0005), (0.05, 0.0), (1.0, 1.0), (100.0, 100.0)] {
        let peer = scipy(python, &folder, beta1, beta2);
        println!("beta1 {beta1}, beta2 {beta2}, {CLIENTS} clients, {COLUMNS} columns:");
        let strength = Strength::soft(beta1, beta2);
        let mut chosen = [f64::INFINITY; 2];
        for way in [Way::Auto, Way::Gradients] {
            if way == Way::Gradients && beta2 > 1.0 {
                continue;
            }
            let (graph, prepared) = timed(3, || {
                Prepared::new(
                    *denoise::native().find("sound").unwrap(),
                    world.graph.clone(),
                    &world.sizes,
                    way,
                )
                .unwrap()
            });
            let (setup, operator) = timed(3, || prepared.at(&strength));
            let Ok(operator) = operator else { continue };
            let (seconds, psi) = timed(5, || operator.apply_matrix(&world.signal).unwrap());
            let off = peer.as_ref().map_or(f64::NAN, |(_, reference)| {
                psi.iter().zip(reference).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
            });
            println!(
                "  fedkin, {way:?} ({}, {} products at most): {seconds:.3} s CPU; {graph:.3} s once per graph, {setup:.4} s per \
                 strength; off {off:.1e}",
                operator.way(),
                operator.steps()
            );
            if way == Way::Auto {
                chosen = [seconds + setup, seconds + setup + graph];
            }
        }
        let Some((variants, _)) = peer else {
            println!("  skipped scipy: {python} has none (benches/peers/requirements.txt)");
            continue;
        };
        for (name, seconds, off) in &variants {
            println!("  scipy, {name}: {seconds:.3} s CPU, off {off:.1e}");
        }
        let best = variants.iter().filter(|(_, _, off)| *off <= 1e-6).map(|&(_, seconds, _)| seconds);
        let best = best.fold(f64::INFINITY, f64::min);
        let [kept, fresh] = chosen.map(|seconds| best / seconds);
        println!(
            "  scipy's best within 1e-6 over fedkin: {kept:.1} times on a graph that is kept, {fresh:.1} with its preparation"
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// One eigendecomposition per graph, one matrix per strength.
fn exact() {
    for clients in [100, 300, 1000, 2000] {
        let world = world(clients, 1000);
        let (once, prepared) = timed(1, || {
            Prepared::new(
                *denoise::native().find("sound").unwrap(),
                world.graph.clone(),
                &world.sizes,
                Way::Exact,
            )
            .unwrap()
        });
        let (setup, operator) = timed(1, || prepared.at(&Strength::soft(0.05, 0.05)).unwrap());
        let (seconds, _) = timed(1, || operator.apply_matrix(&world.signal).unwrap());
        println!(
            "{clients} clients, exact: {once:.2} s CPU per graph, {setup:.2} s per strength, {seconds:.3} s per 1000 columns"
        );
    }
}

fn variation() {
    for clients in [20, 200] {
        let world = world(clients, 1000);
        let row = *denoise::native().find("tv").unwrap();
        let prepared = Prepared::new(row, world.graph, &world.sizes, Way::Auto).unwrap();
        for weight in [0.01, 0.1, 1.0] {
            let operator = prepared.at(&Strength::soft(weight, 0.0)).unwrap();
            let (seconds, _) = timed(1, || operator.apply_matrix(&world.signal).unwrap());
            println!("{clients} clients, tv {weight}: {seconds:.3} s CPU per 1000 columns");
        }
    }
}

fn main() {
    let parts = ["sparse", "exact", "tv"];
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let python = words.iter().find(|word| !parts.contains(&word.as_str()));
    let python = python.map_or("python3", String::as_str);
    let named = words.iter().any(|word| parts.contains(&word.as_str()));
    let wanted = |part: &str| words.iter().any(|word| word == part) || (!named && part == "sparse");
    if wanted("sparse") {
        sparse(python);
    }
    if wanted("exact") {
        exact();
    }
    if wanted("tv") {
        variation();
    }
}
