use super::*;
use fedkin_numeric::rng::{PublicRng, Random};
use proptest::prelude::*;

/// A connected random graph with clients of unequal sizes and a signal.
struct World {
    graph: Sparse,
    sizes: Vec<f64>,
    signal: Vec<f64>,
    columns: usize,
}

/// A native row.
fn find(name: &str) -> Result<DenoiserRow, fedkin_settings::TableError> {
    native().find(name).copied()
}

fn world(seed: u64, clients: usize, columns: usize, everywhere: f64) -> World {
    let mut rng = PublicRng::named(seed, "denoise", 0, 0);
    let mut edges: Vec<(usize, usize, f64)> =
        (1..clients).map(|k| (rng.below(k as u32) as usize, k, rng.between(0.1, 2.0))).collect();
    for _ in 0..clients {
        let (a, b) = (rng.below(clients as u32) as usize, rng.below(clients as u32) as usize);
        edges.push((a, b, rng.between(0.0, 1.5)));
    }
    let sizes = (0..clients).map(|_| rng.between(5.0, 100.0).floor()).collect();
    let signal = (0..clients * columns).map(|_| 3.0 + rng.normal()).collect();
    World { graph: Sparse::new(clients, edges, everywhere).unwrap(), sizes, signal, columns }
}

impl World {
    fn clients(&self) -> usize {
        self.graph.nodes()
    }

    fn prepared(&self, name: &str, way: Way) -> Prepared {
        Prepared::new(find(name).unwrap(), self.graph.clone(), &self.sizes, way).unwrap()
    }

    fn denoised(&self, name: &str, way: Way, strength: &Strength) -> Vec<f64> {
        self.prepared(name, way).at(strength).unwrap().apply_matrix(&self.signal).unwrap()
    }

    /// The mean of every column, clients weighted by size or all alike.
    fn means(&self, signal: &[f64], sized: bool) -> Vec<f64> {
        let weight = |k: usize| if sized { self.sizes[k] } else { 1.0 };
        let total: f64 = (0..self.clients()).map(weight).sum();
        (0..self.columns)
            .map(|c| {
                (0..self.clients()).map(|k| weight(k) * signal[k * self.columns + c]).sum::<f64>() / total
            })
            .collect()
    }
}

fn gap(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    // `max` passes over what is not a number.
    assert!(a.iter().chain(b).all(|x| x.is_finite()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Some strength for every row: neither nothing nor everything.
fn middling(clients: usize) -> Strength {
    Strength { beta1: 0.3, beta2: 0.1, tau: clients.div_ceil(2), neighbours: 2.min(clients - 1) }
}

fn repeated(means: &[f64], clients: usize) -> Vec<f64> {
    means.repeat(clients)
}

const SOFT: [&str; 3] = ["sound", "paper-10", "paper-12"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn constants_are_kept(seed: u64, clients in 2usize..20, weak in 0u8..2) {
        let mut world = world(seed, clients, 3, 0.01 * f64::from(weak));
        world.signal = repeated(&[2.5, -1.0, 1e6], clients);
        for row in TABLE.iter().filter(|row| row.name != "paper-13") {
            let psi = world.denoised(row.name, Way::Auto, &middling(clients));
            for (found, kept) in psi.chunks_exact(3).zip(world.signal.chunks_exact(3)) {
                for (a, b) in found.iter().zip(kept) {
                    prop_assert!((a - b).abs() < 1e-11 * b.abs(), "{}: {} is not {}", row.name, a, b);
                }
            }
        }
    }

    #[test]
    fn means_are_kept(seed: u64, clients in 2usize..20) {
        let world = world(seed, clients, 3, 0.0);
        for (name, sized) in [
            ("sound", true), ("hard", true), ("heat", true), ("tv", true),
            ("paper-10", false), ("paper-12", false), ("paper-16", false),
        ] {
            let psi = world.denoised(name, Way::Auto, &middling(clients));
            let off = gap(&world.means(&psi, sized), &world.means(&world.signal, sized));
            prop_assert!(off < 1e-11, "{}: {}", name, off);
        }
    }

    /// No strength is local training to the bit, whatever the sizes.
    #[test]
    fn without_strength_nothing_changes(seed: u64, clients in 2usize..20) {
        let world = world(seed, clients, 3, 0.0);
        let none = Strength { tau: clients, ..Strength::default() };
        for row in TABLE.iter().filter(|row| row.name != "paper-13") {
            let operator = world.prepared(row.name, Way::Auto).at(&none).unwrap();
            prop_assert!(operator.identity(), "{}", row.name);
            prop_assert_eq!(&operator.apply_matrix(&world.signal).unwrap(), &world.signal);
        }
    }

    /// All strength is federated averaging: the mean by size, or by head where sizes do not count.
    #[test]
    fn with_all_strength_all_are_the_mean(seed: u64, clients in 2usize..20) {
        let world = world(seed, clients, 3, 0.0);
        let expected = |sized: bool| repeated(&world.means(&world.signal, sized), clients);
        let all = Strength { beta1: 1e13, beta2: 1e13, tau: 1, neighbours: clients - 1 };
        let endless = Strength { beta1: f64::INFINITY, beta2: 0.0, ..all };
        for (name, sized) in [
            ("sound", true), ("paper-10", false), ("paper-12", false), ("hard", true), ("paper-16", false),
            ("heat", true),
        ] {
            prop_assert!(gap(&world.denoised(name, Way::Exact, &all), &expected(sized)) < 1e-9, "{}", name);
            if name != "paper-16" && name != "hard" {
                let limit = world.denoised(name, Way::Chebyshev, &endless);
                prop_assert!(gap(&limit, &expected(sized)) < 1e-12, "{}", name);
            }
        }
        // Total variation gets there at a finite weight; its result is as near as it promises.
        let tv = world.denoised("tv", Way::Auto, &Strength::soft(1e3, 0.0));
        prop_assert!(gap(&tv, &expected(true)) < 5e-5);
        prop_assert!(gap(&world.denoised("tv", Way::Auto, &endless), &expected(true)) < 1e-12);
        // Where all are joined, all are neighbours.
        let joined = World { graph: Sparse::new(clients, world.graph.edges(), 0.1).unwrap(), ..world };
        let expected = repeated(&joined.means(&joined.signal, true), clients);
        prop_assert!(gap(&joined.denoised("knn-mean", Way::Auto, &all), &expected) < 1e-12);
    }

    /// (13) as printed scales models by their shares, and ends at a K-th of the mean.
    #[test]
    fn the_printed_filter_has_neither_limit(seed: u64, clients in 2usize..20) {
        let world = world(seed, clients, 2, 0.0);
        let total: f64 = world.sizes.iter().sum();
        let scaled: Vec<f64> =
            (0..clients * 2).map(|at| world.signal[at] * world.sizes[at / 2] / total).collect();
        prop_assert!(gap(&world.denoised("paper-13", Way::Auto, &Strength::soft(0.0, 0.0)), &scaled) < 1e-15);
        let mean: Vec<f64> =
            world.means(&world.signal, true).iter().map(|mean| mean / clients as f64).collect();
        for way in [Way::Exact, Way::Chebyshev] {
            let end = world.denoised("paper-13", way, &Strength::soft(f64::INFINITY, 1.0));
            prop_assert!(gap(&end, &repeated(&mean, clients)) < 1e-12);
        }
        prop_assert!(gap(&world.denoised("paper-13", Way::Exact, &Strength::soft(1e13, 1e13)), &repeated(&mean, clients)) < 1e-9);
    }

    /// Clients in another order give the same models in that order.
    #[test]
    fn the_order_of_clients_does_not_matter(seed: u64, clients in 2usize..16, weak in 0u8..2) {
        let world = world(seed, clients, 2, 0.02 * f64::from(weak));
        let mut rng = PublicRng::named(seed, "order", 0, 0);
        let mut order: Vec<usize> = (0..clients).collect();
        for k in (1..clients).rev() {
            order.swap(k, rng.below(k as u32 + 1) as usize);
        }
        // Client k becomes client order[k].
        let edges = world.graph.edges().map(|(i, j, weight)| (order[i], order[j], weight));
        let graph = Sparse::new(clients, edges, world.graph.everywhere()).unwrap();
        let (mut sizes, mut signal) = (vec![0.0; clients], vec![0.0; 2 * clients]);
        for (k, &to) in order.iter().enumerate() {
            sizes[to] = world.sizes[k];
            signal[2 * to..2 * to + 2].copy_from_slice(&world.signal[2 * k..2 * k + 2]);
        }
        let other = World { graph, sizes, signal, columns: 2 };
        for row in TABLE {
            let (here, there) = (
                world.denoised(row.name, Way::Auto, &middling(clients)),
                other.denoised(row.name, Way::Auto, &middling(clients)),
            );
            let back: Vec<f64> = order.iter().flat_map(|&to| there[2 * to..2 * to + 2].to_vec()).collect();
            prop_assert!(gap(&here, &back) < if row.name == "tv" { 5e-5 } else { 1e-10 }, "{}", row.name);
        }
    }

    #[test]
    fn sparse_ways_come_within_a_millionth(
        seed: u64, clients in 2usize..60, weak in 0u8..2, beta1 in 0.0f64..4.0, beta2 in 0.0f64..1.0, pieces in 1usize..3,
    ) {
        let world = world(seed, clients, 5, 0.01 * f64::from(weak));
        // Some graphs fall apart.
        let edges: Vec<_> = world.graph.edges().filter(|(i, j, _)| i % pieces == j % pieces).collect();
        let world = World { graph: Sparse::new(clients, edges, world.graph.everywhere()).unwrap(), ..world };
        let strength = Strength::soft(beta1, beta2);
        for name in SOFT.into_iter().chain(["paper-13", "heat"]) {
            let exact = world.denoised(name, Way::Exact, &strength);
            let chebyshev = world.denoised(name, Way::Chebyshev, &strength);
            prop_assert!(gap(&exact, &chebyshev) < 1e-6, "{}: {}", name, gap(&exact, &chebyshev));
            if name != "heat" {
                let gradients = world.denoised(name, Way::Gradients, &strength);
                prop_assert!(gap(&exact, &gradients) < 1e-6, "{}: {}", name, gap(&exact, &gradients));
            }
        }
    }

    /// A column gives the same bits alone, in a block and among all.
    #[test]
    fn blocks_of_columns_are_independent(seed: u64, clients in 2usize..14, from in 0usize..11, width in 1usize..12) {
        let world = world(seed, clients, 13, 0.01);
        let to = (from + width).min(13);
        for (row, way) in TABLE.iter().flat_map(|row| [Way::Auto, Way::Chebyshev, Way::Gradients].map(|way| (row, way))) {
            let Ok(operator) = world.prepared(row.name, way).at(&middling(clients)) else { continue };
            let whole = operator.apply_matrix(&world.signal).unwrap();
            let rows: Vec<&[f64]> = world.signal.chunks_exact(13).map(|row| &row[from..to]).collect();
            let mut block = vec![0.0; clients * (to - from)];
            let mut out: Vec<&mut [f64]> = block.chunks_exact_mut(to - from).collect();
            operator.apply(&rows, &mut out).unwrap();
            for (k, out) in out.iter().enumerate() {
                prop_assert_eq!(&**out, &whole[k * 13 + from..k * 13 + to], "{} {:?}", row.name, way);
            }
        }
    }

    #[test]
    fn averages_have_positive_weights(seed: u64, clients in 2usize..20) {
        let world = world(seed, clients, 3, 0.0);
        for row in TABLE {
            for way in [Way::Exact, Way::Chebyshev] {
                let Ok(operator) = world.prepared(row.name, way).at(&middling(clients)) else { continue };
                let average = operator.averaging();
                if let Some(matrix) = average.matrix() {
                    for row in matrix.chunks_exact(clients) {
                        prop_assert!(row.iter().all(|&weight| weight >= 0.0));
                        prop_assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                    }
                }
                let psi = average.apply_matrix(&world.signal).unwrap();
                for c in 0..3 {
                    let column = |all: &[f64]| all.iter().skip(c).step_by(3).copied().collect::<Vec<f64>>();
                    let (signal, psi) = (column(&world.signal), column(&psi));
                    let least = signal.iter().copied().fold(f64::INFINITY, f64::min);
                    let most = signal.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    prop_assert!(psi.iter().all(|&x| x >= least - 1e-12 && x <= most + 1e-12), "{}", row.name);
                }
            }
        }
    }

    /// The objective of total variation is nowhere less: against the solution, and along every edge.
    #[test]
    fn total_variation_is_at_its_least(seed: u64, clients in 2usize..12, weight in 0.01f64..3.0, at in 0usize..12, by in -0.5f64..0.5) {
        let world = world(seed, clients, 1, 0.0);
        let psi = world.denoised("tv", Way::Auto, &Strength::soft(weight, 0.0));
        let total: f64 = world.sizes.iter().sum();
        let objective = |psi: &[f64]| {
            let near: f64 = (0..clients)
                .map(|k| 0.5 * clients as f64 * world.sizes[k] / total * (psi[k] - world.signal[k]) * (psi[k] - world.signal[k]))
                .sum();
            near + weight * world.graph.edges().map(|(i, j, a)| a * (psi[i] - psi[j]).abs()).sum::<f64>()
        };
        let least = objective(&psi);
        let mut other = psi.clone();
        other[at % clients] += by;
        prop_assert!(objective(&other) >= least - 1e-9);
        // A group that came out equal, moved together.
        let group = psi[at % clients];
        let moved: Vec<f64> = psi.iter().map(|&x| if (x - group).abs() < 1e-4 { x + by } else { x }).collect();
        prop_assert!(objective(&moved) >= least - 1e-9);
    }
}

#[test]
fn a_filter_with_the_square_has_negative_entries_that_averaging_takes_out() {
    let path = Sparse::new(5, (1..5).map(|k| (k - 1, k, 1.0)), 0.0).unwrap();
    let prepared = Prepared::new(TABLE[0], path, &[10.0, 20.0, 5.0, 40.0, 8.0], Way::Auto).unwrap();
    let operator = prepared.at(&Strength::soft(0.0, 1.0)).unwrap();
    assert!(operator.matrix().unwrap().iter().any(|&entry| entry < -1e-3));
    // One client has variance, the others none: the filter itself would give one of them less than none.
    let variances = [0.0, 0.0, 0.0, 0.0, 1.0];
    assert!(operator.apply_matrix(&variances).unwrap().iter().any(|&x| x < 0.0));
    assert!(operator.averaging().apply_matrix(&variances).unwrap().iter().all(|&x| x >= 0.0));
}

#[test]
fn ties_keep_the_whole_eigenspace() {
    let ring = Sparse::new(6, (0..6).map(|k| (k, (k + 1) % 6, 1.0)), 0.0).unwrap();
    let prepared = Prepared::new(find("hard").unwrap(), ring, &[7.0; 6], Way::Auto).unwrap();
    let matrix = |tau: usize| prepared.at(&Strength::hard(tau)).unwrap().matrix().unwrap();
    // 0, 1, 1, 3, 3, 4: two and three are the same, and turning the ring turns the result.
    assert_eq!((matrix(2), matrix(4)), (matrix(3), matrix(5)));
    assert!(gap(&matrix(1), &matrix(2)) > 0.1 && gap(&matrix(3), &matrix(4)) > 0.1);
    let rows = matrix(2);
    for k in 0..36 {
        let (i, j) = (k / 6, k % 6);
        assert!((rows[k] - rows[(i + 1) % 6 * 6 + (j + 1) % 6]).abs() < 1e-12);
    }
}

#[test]
fn components_do_not_mix() {
    let graph = Sparse::new(4, [(0, 1, 1.0), (2, 3, 1.0)], 0.0).unwrap();
    let (sizes, signal) = ([1.0, 3.0, 1.0, 1.0], [0.0, 4.0, 10.0, 20.0]);
    for (name, strength) in [
        ("sound", Strength::soft(1e14, 0.0)),
        ("sound", Strength::soft(f64::INFINITY, 0.0)),
        ("hard", Strength::hard(1)),
        ("heat", Strength::soft(1e4, 0.0)),
        ("tv", Strength::soft(100.0, 0.0)),
        ("knn-mean", Strength { neighbours: 1, ..Strength::default() }),
    ] {
        let prepared = Prepared::new(find(name).unwrap(), graph.clone(), &sizes, Way::Auto).unwrap();
        let psi = prepared.at(&strength).unwrap().apply_matrix(&signal).unwrap();
        assert!(gap(&psi, &[3.0, 3.0, 15.0, 15.0]) < 5e-5, "{name}: {psi:?}");
    }
}

#[test]
fn without_edges_nothing_moves() {
    let (alone, signal) = (Sparse::new(3, [], 0.0).unwrap(), [1.0, 5.0, -2.0]);
    for row in TABLE.iter().filter(|row| row.name != "paper-13") {
        for way in [Way::Exact, Way::Chebyshev, Way::Gradients] {
            let prepared = Prepared::new(*row, alone.clone(), &[1.0, 2.0, 3.0], way).unwrap();
            let strength = Strength { beta1: 0.5, beta2: 0.5, tau: 1, neighbours: 1 };
            let Ok(operator) = prepared.at(&strength) else { continue };
            assert!(gap(&operator.apply_matrix(&signal).unwrap(), &signal) < 1e-12, "{} {way:?}", row.name);
        }
    }
}

#[test]
fn two_clients_move_together_by_total_variation() {
    // P = (1, 1) and weight 2: each end moves by 2 b until they meet.
    let graph = Sparse::new(2, [(0, 1, 2.0)], 0.0).unwrap();
    let prepared = Prepared::new(find("tv").unwrap(), graph, &[5.0, 5.0], Way::Auto).unwrap();
    let at = |b: f64| prepared.at(&Strength::soft(b, 0.0)).unwrap().apply_matrix(&[0.0, 1.0]).unwrap();
    assert!(gap(&at(0.1), &[0.2, 0.8]) < 1e-6);
    assert!(gap(&at(0.25), &[0.5, 0.5]) < 1e-6 && gap(&at(3.0), &[0.5, 0.5]) < 1e-6);
}

#[test]
fn neighbours_are_the_strongest_with_their_ties() {
    let edges = [(0, 1, 3.0), (0, 2, 2.0), (0, 3, 2.0), (0, 4, 1.0)];
    let graph = Sparse::new(5, edges, 0.0).unwrap();
    let prepared =
        Prepared::new(find("knn-mean").unwrap(), graph, &[1.0, 1.0, 2.0, 4.0, 8.0], Way::Auto).unwrap();
    let at = |neighbours| {
        let strength = Strength { neighbours, ..Strength::default() };
        prepared.at(&strength).unwrap().apply_matrix(&[0.0, 8.0, 16.0, 32.0, 64.0]).unwrap()[0]
    };
    assert_eq!((at(1), at(2), at(3)), (4.0, 21.0, 21.0));
}

#[test]
fn the_way_follows_from_size_and_strength() {
    let clients = EXACT + 1;
    let ring = Sparse::new(clients, (0..clients).map(|k| (k, (k + 1) % clients, 1.0)), 0.0).unwrap();
    let sizes = vec![3.0; clients];
    let way = |beta1: f64, beta2: f64| {
        let prepared = Prepared::new(TABLE[0], ring.clone(), &sizes, Way::Auto).unwrap();
        prepared.at(&Strength::soft(beta1, beta2)).unwrap().way()
    };
    assert_eq!(way(0.05, 0.05), "chebyshev");
    assert_eq!(way(1e9, 0.0), "cg");
    assert_eq!(way(f64::INFINITY, 0.0), "means");
    let hard = Prepared::new(find("hard").unwrap(), ring.clone(), &sizes, Way::Auto).unwrap();
    let text = hard.at(&Strength::hard(3)).unwrap_err().to_string();
    assert!(text.contains("choose the method exact"), "{text}");
    assert!(hard.at(&Strength::hard(clients)).unwrap().identity());
}

#[test]
fn what_cannot_be_denoised_is_refused() {
    let graph = || Sparse::new(3, [(0, 1, 1.0), (1, 2, 1.0)], 0.0).unwrap();
    let prepare = |name: &str, sizes: &[f64]| Prepared::new(find(name).unwrap(), graph(), sizes, Way::Auto);
    assert_eq!(prepare("sound", &[1.0]).unwrap_err(), DenoiseError::Sizes { clients: 3, sizes: 1 });
    assert_eq!(prepare("sound", &[1.0, 0.0, 1.0]).unwrap_err(), DenoiseError::Size(1, 0.0));
    assert!(matches!(prepare("sound", &[1.0, 1.0, f64::NAN]).unwrap_err(), DenoiseError::Size(2, _)));
    let sound = prepare("sound", &[1.0; 3]).unwrap();
    assert_eq!(sound.at(&Strength::soft(-1.0, 0.0)).unwrap_err(), DenoiseError::Beta("beta1", -1.0));
    assert!(matches!(sound.at(&Strength::soft(0.0, f64::NAN)), Err(DenoiseError::Beta("beta2", _))));
    let hard = prepare("hard", &[1.0; 3]).unwrap();
    assert_eq!(hard.at(&Strength::hard(4)).unwrap_err(), DenoiseError::Tau(4, 3));
    assert_eq!(hard.at(&Strength::hard(0)).unwrap_err(), DenoiseError::Tau(0, 3));
    let mean = prepare("knn-mean", &[1.0; 3]).unwrap();
    let many = Strength { neighbours: 3, ..Strength::default() };
    assert_eq!(mean.at(&many).unwrap_err(), DenoiseError::Neighbours(3, 2));
    let operator = sound.at(&Strength::soft(1.0, 0.0)).unwrap();
    assert_eq!(
        operator.apply_matrix(&[1.0; 4]).unwrap_err(),
        DenoiseError::Matrix { clients: 3, numbers: 4 }
    );
    let rows: [&[f64]; 2] = [&[1.0], &[2.0]];
    let mut out = [[0.0]; 3];
    let mut out: Vec<&mut [f64]> = out.iter_mut().map(<[f64; 1]>::as_mut_slice).collect();
    assert_eq!(operator.apply(&rows, &mut out).unwrap_err(), DenoiseError::Rows { clients: 3, rows: 2 });
    let rows: [&[f64]; 3] = [&[1.0], &[2.0, 1.0], &[3.0]];
    let uneven = DenoiseError::Columns { row: 1, columns: 1, found: 2 };
    assert_eq!(operator.apply(&rows, &mut out).unwrap_err(), uneven);
    let none = Prepared::new(TABLE[0], Sparse::new(0, [], 0.0).unwrap(), &[], Way::Auto);
    assert_eq!(none.unwrap_err(), DenoiseError::Empty);
    let huge = Sparse::new(3, [(0, 1, f64::MAX), (0, 2, f64::MAX)], 0.0).unwrap();
    assert_eq!(Prepared::new(TABLE[0], huge, &[1.0; 3], Way::Auto).unwrap_err(), DenoiseError::Weights);
    assert!(find("soundd").unwrap_err().to_string().contains("did you mean `sound`"));
    assert!(Way::parse("chebychev").unwrap_err().contains("did you mean `chebyshev`"));
}
