//! The laws of the synthetic world. Statistical checks are seeded; the stated rate is for a fresh seed.

use crate::{Bench, Setting};
use fedkin_data::World;
use fedkin_settings::Value;

fn bench() -> Bench {
    Bench::new("synthetic.clustered-regression")
}

/// All standard normal: the residuals of a client over its deviation, or its features.
fn mean_and_variance(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let values: Vec<f64> = values.collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count, count)
}

#[test]
fn the_standard_experiment() {
    let world = bench().world();
    let federation = &world.federation;
    assert_eq!((federation.servers(), federation.clusters(), federation.members().len()), (10, 3, 150));
    assert_eq!(federation.topology().edges().count(), 15);
    assert!(federation.topology().is_connected());
    assert_eq!((federation.client_name(17), &*federation.server_names()[3]), ("client-000017", "server-003"));
    assert_eq!(federation.cluster_names(), ["cluster-1", "cluster-2", "cluster-3"]);
    assert!((0..10).all(|server| federation.clients_of(server).len() == 15));
    assert!(world.train.iter().all(|data| (2..=9).contains(&data.rows()) && data.columns() == 60));
    let truth = world.truth.as_ref().unwrap();
    assert_eq!((truth.models.len(), truth.models[0].len()), (3, 60));
    assert!(federation.members().iter().all(|member| truth.cluster[member.id as usize] == member.cluster));
    assert_eq!(world.schema.columns(), 60);
}

#[test]
fn a_seed_is_a_world_whatever_the_threads() {
    let world = bench().world();
    assert_eq!(bench().world().fingerprint, world.fingerprint);
    assert_ne!(bench().seed(8).world().fingerprint, world.fingerprint);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| bench().world()).fingerprint, world.fingerprint);
    let tested = bench().set("test_samples", "train").world();
    assert_eq!(tested.train, world.train);
    assert_ne!(tested.fingerprint, world.fingerprint);
}

/// Runs compare fingerprints when they are resumed, so those of earlier versions must stay.
#[test]
fn fingerprints_are_those_of_earlier_versions() {
    let hex = |world: &World| hex::encode(world.fingerprint);
    assert_eq!(hex(&bench().world()), "9e6e8df13797fa54745f25e964f487adb40d0134d29af52fa719c7641c5f83cd");
    let table = "client,part,x,z,y\na,train,1,2,0\nb,test,3,4.5,1\nb,train,5,6,1\n";
    let csv = Bench::new("csv").file("t.csv", table).set("path", "t.csv").set("client", "client");
    let world = csv.set("target", "y").set("split", "part").world();
    assert_eq!(hex(&world), "0caef656e02419e51746f8658385253b7dd40ef8f8b83324c5c352adcb16dbc5");
}

#[test]
fn test_samples_follow_the_key() {
    let rows = |world: &World| {
        world.test.iter().map(|test| test.as_ref().map_or(0, |t| t.rows())).collect::<Vec<_>>()
    };
    let same = bench().set("test_samples", "train").world();
    assert_eq!(rows(&same), same.train.iter().map(|train| train.rows()).collect::<Vec<_>>());
    assert!(rows(&bench().set("test_samples", 4).world()).iter().all(|&rows| rows == 4));
    assert!(rows(&bench().world()).iter().all(|&rows| rows == 0));
}

/// Means within 4.5 standard errors: two-sided normal tail 7e-6 each, below 1e-4 in all.
#[test]
fn features_noise_and_counts_have_their_laws() {
    let bench = bench().servers(100).set("clients_per_server", 20).set("dimension", 8).set("noise", 0.04);
    let world = bench.set("noise_law", "fixed").world();
    let (mean, variance, count) =
        mean_and_variance(world.train.iter().flat_map(|data| data.features().to_vec()));
    assert!(mean.abs() < 4.5 / count.sqrt(), "mean of x {mean}");
    assert!((variance - 1.0).abs() < 4.5 * (2.0 / count).sqrt(), "variance of x {variance}");
    let truth = world.truth.as_ref().unwrap();
    let residuals = world.train.iter().zip(&truth.cluster).flat_map(|(data, &cluster)| {
        let model = &truth.models[cluster as usize];
        let residual = |i| data.targets()[i] - data.row(i).iter().zip(model).map(|(x, w)| x * w).sum::<f64>();
        (0..data.rows()).map(residual).collect::<Vec<_>>()
    });
    let (mean, variance, count) = mean_and_variance(residuals);
    assert!(mean.abs() < 4.5 * (0.04 / count).sqrt(), "mean residual {mean}");
    assert!((variance / 0.04 - 1.0).abs() < 4.5 * (2.0 / count).sqrt(), "noise variance {variance}");
    // Eight values of D_k and three clusters: chi-square bounds at alpha = 1e-4 (7 and 2 degrees of freedom).
    let chi = |cells: usize, values: Vec<usize>| {
        let expected = values.len() as f64 / cells as f64;
        let count = |cell| values.iter().filter(|&&value| value == cell).count() as f64;
        (0..cells).map(|cell| (count(cell) - expected).powi(2) / expected).sum::<f64>()
    };
    assert!(chi(8, world.train.iter().map(|data| data.rows() - 2).collect()) < 29.9);
    assert!(chi(3, truth.cluster.iter().map(|&cluster| cluster as usize).collect()) < 18.5);
}

/// Each client's residual variance against its law: the mean over clients within 4.5 standard errors, 1e-5.
#[test]
fn the_noise_of_a_client_follows_its_law() {
    let expected = [("uniform", 0.505), ("log-uniform", 0.99 / (100f64).ln())];
    for (law, mean) in expected {
        let noise = Setting(Value::List(vec![Value::Number(0.01), Value::Number(1.0)]));
        let bench = bench().servers(50).set("clients_per_server", 20).set("dimension", 1).set("samples", 50);
        let world = bench.set("noise", noise).set("noise_law", law).world();
        let truth = world.truth.as_ref().unwrap();
        let variances: Vec<f64> = (world.train.iter().zip(&truth.cluster))
            .map(|(data, &cluster)| {
                let w = truth.models[cluster as usize][0];
                data.features().iter().zip(data.targets()).map(|(x, y)| (y - w * x).powi(2)).sum::<f64>()
                    / 50.0
            })
            .collect();
        let (found, variance, count) = mean_and_variance(variances.into_iter());
        assert!((found - mean).abs() < 4.5 * (variance / count).sqrt(), "{law}: {found} against {mean}");
    }
}

#[test]
fn cluster_models_have_the_shape_of_their_gamma() {
    let models = |gamma: &str, spread: f64| {
        let world = bench().set("clusters", 5).set("gamma", gamma).set("spread", spread).world();
        world.truth.unwrap().models
    };
    let norm = |w: &[f64]| w.iter().map(|x| x * x).sum::<f64>().sqrt();
    let same = models("scalar", 0.0);
    assert!((norm(&same[0]) - 1.0).abs() < 1e-12 && same[0] == same[4]);
    for (model, base) in models("scalar", 0.5).iter().zip(&same) {
        let ratio = model[0] / base[0];
        assert!((0.5..1.5).contains(&ratio) && ratio != 1.0);
        assert!(model.iter().zip(base).all(|(w, w0)| (w / w0 - ratio).abs() < 1e-12));
    }
    let own = models("per-coordinate", 0.5);
    let ratios: Vec<f64> =
        own.iter().zip(&same).flat_map(|(w, w0)| w.iter().zip(w0).map(|(a, b)| a / b)).collect();
    assert!(ratios.iter().all(|ratio| (0.5..=1.5).contains(ratio)));
    // Uniform on (0.5, 1.5): variance 1/12, within 4.5 standard errors (1e-5).
    let (mean, variance, count) = mean_and_variance(ratios.into_iter());
    assert!((mean - 1.0).abs() < 4.5 * (1.0 / 12.0 / count).sqrt());
    assert!((variance - 1.0 / 12.0).abs() < 4.5 * ((1.0 / 80.0 - 1.0 / 144.0) / count).sqrt());
}

#[test]
fn servers_may_be_unequal_and_clusters_are_never_empty() {
    let world =
        bench().set("clients_per_server", vec![1, 2, 3]).set("clusters", 6).set("dimension", 2).world();
    assert_eq!([0, 1, 2].map(|server| world.federation.clients_of(server).len()), [1, 2, 3]);
    let mut clusters = world.truth.unwrap().cluster;
    clusters.sort_unstable();
    assert_eq!(clusters, [0, 1, 2, 3, 4, 5]);
    // So few to spare that drawing again would never end.
    let tight =
        bench().servers(1).set("clients_per_server", 40).set("clusters", 40).set("dimension", 1).world();
    assert_eq!(tight.federation.clusters(), 40);
}

#[test]
fn impossible_worlds_are_refused() {
    bench().classify().refused(&["real targets, not classes"]);
    bench()
        .servers(1)
        .set("clients_per_server", 2)
        .refused(&["`clusters`: 2 clients cannot fill 3 clusters"]);
    bench().servers(4).set("clients_per_server", vec![1, 2]).refused(&["2 numbers were given for 4 servers"]);
    bench().set("samples", vec![9, 2]).refused(&["`samples`: [9, 2] is an empty range"]);
    bench().set("samples", vec![1, 2, 3]).refused(&["`samples`: a range has two ends", "3 were given"]);
    bench().set("samples", 0).refused(&["`samples`", "out of range"]);
    bench()
        .set("noise", vec![0.1, 0.2])
        .set("noise_law", "fixed")
        .refused(&["`noise`: a fixed law needs one number"]);
    bench().set("noise", vec![0.0, 0.2]).set("noise_law", "log-uniform").refused(&["above 0"]);
    bench().set("clients_per_server", 100_000_000).refused(&["`clients_per_server`", "clients in all"]);
    bench().set("clinets_per_server", 3).refused(&["did you mean `clients_per_server`?"]);
    bench().set("samples", 1_000_000).set("dimension", 1_000_000).refused(&["`samples`: 150 clients", "GB"]);
    Bench::new("sinthetic").refused(&["no data source \"sinthetic\""]);
}

/// A million clients in seconds and in memory; run by hand: `cargo test --release -- --ignored --nocapture million`.
#[test]
#[ignore = "takes 3 GB"]
fn a_million_clients() {
    let start = std::time::Instant::now();
    let world = bench().servers(1000).set("clients_per_server", 1000).world();
    eprintln!("{} clients in {:.1?}", world.train.len(), start.elapsed());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        eprintln!("{line}");
    }
    assert_eq!(world.federation.client_name(999_999), "client-999999");
}

fn kin_world(clients: i64, clusters: i64, sizes: &str) -> World {
    let bench = bench().servers(1).set("clients_per_server", clients).set("clusters", clusters);
    let bench = bench.set("models", "uniform").set("range", 5.0).set("sizes", sizes);
    bench.set("dimension", 20).set("samples", 10).set("noise", 0.0).world()
}

fn cluster_sizes(world: &World) -> Vec<usize> {
    let members = world.federation.members();
    let size = |cluster: u32| members.iter().filter(|member| member.cluster == cluster).count();
    (0..world.federation.clusters() as u32).map(size).collect()
}

#[test]
fn without_noise_every_record_is_on_its_clusters_model() {
    let world = kin_world(100, 2, "equal");
    let truth = world.truth.as_ref().unwrap();
    for (data, &cluster) in world.train.iter().zip(&truth.cluster) {
        assert_eq!((data.rows(), data.columns()), (10, 20));
        let model = &truth.models[cluster as usize];
        for (i, y) in data.targets().iter().enumerate() {
            let fit: f64 = data.row(i).iter().zip(model).map(|(x, w)| x * w).sum();
            assert!((fit - y).abs() < 1e-12, "{fit} against {y}");
        }
    }
}

#[test]
fn equal_sizes_differ_by_one_client_at_most_and_mix_the_names() {
    assert_eq!(cluster_sizes(&kin_world(100, 2, "equal")), [50, 50]);
    let mut uneven = cluster_sizes(&kin_world(11, 3, "equal"));
    uneven.sort_unstable();
    assert_eq!(uneven, [3, 4, 4]);
    let world = kin_world(100, 2, "equal");
    let alternate = world.federation.members().iter().all(|member| member.cluster == member.id % 2);
    assert!(!alternate, "the order of the names says nothing about clusters");
}

/// Cut uniformly, the first of two clusters is uniform on 1..=39: over 400 worlds its mean is 20 within 4.5
/// standard errors (7e-6), and it is below 10 or above 30 in 18 of 39 cases (same bound).
#[test]
fn random_sizes_are_between_uniform_cuts_and_none_is_empty() {
    let first: Vec<f64> = (0..400)
        .map(|seed| {
            let bench = bench().servers(1).set("clients_per_server", 40).set("clusters", 2).set("samples", 1);
            cluster_sizes(&bench.set("dimension", 1).set("sizes", "random").seed(seed).world())[0] as f64
        })
        .collect();
    assert!(first.iter().all(|&size| (1.0..=39.0).contains(&size)));
    let (mean, variance, count) = mean_and_variance(first.iter().copied());
    assert!((mean - 20.0).abs() < 4.5 * (variance / count).sqrt(), "mean size {mean}");
    let far = first.iter().filter(|&&size| !(10.0..=30.0).contains(&size)).count() as f64 / count;
    let share: f64 = 18.0 / 39.0;
    assert!((far - share).abs() < 4.5 * (share * (1.0 - share) / count).sqrt(), "{far} far from the middle");
    let many = cluster_sizes(&kin_world(12, 12, "random"));
    assert!(many.iter().all(|&size| size == 1));
}

/// 2000 coordinates uniform in (-10, 10): mean and variance within 4.5 standard errors (7e-6 each).
#[test]
fn uniform_models_fill_their_range() {
    let bench = bench().servers(1).set("clients_per_server", 3).set("samples", 1).set("dimension", 1000);
    let world = bench.set("clusters", 2).set("models", "uniform").set("range", 10.0).world();
    let models = &world.truth.as_ref().unwrap().models;
    let (mean, variance, count) = mean_and_variance(models.iter().flatten().copied());
    let expected = 100.0 / 3.0;
    assert!(models.iter().flatten().all(|w| w.abs() <= 10.0));
    assert!(mean.abs() < 4.5 * (expected / count).sqrt(), "mean {mean}");
    // The variance of a squared uniform number in (-r, r) is 4 r^4 / 45.
    let error = (4.0 * 1e4 / 45.0 / count).sqrt();
    assert!((variance - expected).abs() < 4.5 * error, "variance {variance}");
}

#[test]
fn keys_that_do_not_go_together_are_refused() {
    let uniform = || bench().set("models", "uniform");
    uniform().refused(&["range", "required with models = \"uniform\""]);
    bench().set("range", 5.0).refused(&["range", "of models = \"uniform\""]);
    uniform().set("range", 5.0).set("spread", 0.3).refused(&["spread", "does nothing"]);
    uniform().set("range", 5.0).set("gamma", "per-coordinate").refused(&["gamma", "does nothing"]);
    let crowded = bench().servers(1).set("clients_per_server", 2).set("clusters", 3);
    crowded.set("sizes", "random").refused(&["2 clients cannot fill 3 clusters"]);
}
