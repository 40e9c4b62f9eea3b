//! Against the grid of Google's dp-accounting.
//!
//! | kind | what theirs is | what is checked |
//! |---|---|---|
//! | renyi | the same bound at the same orders | within 1e-9 of theirs, and not below |
//! | default | the same bound, fractional orders too | ours is not below, and within 2 % |
//! | gaussian | exact, to 60 digits | within 1e-9, and not below |
//! | sampled | a lower bound on the exact value | ours is not below |
//! | sigma | analytic Gaussian mechanism | within 1e-6, and theirs is not above |

use fedkin_privacy::{
    Neighbours, Renyi, analytic_sigma, delta_of_gaussian, epsilon_of_gaussian, epsilon_of_zcdp,
    gaussian_sigma,
};

struct Setting {
    sigma: f64,
    rounds: u64,
    rate: f64,
    delta: f64,
    epsilon: f64,
}

fn settings(kind: &str) -> Vec<Setting> {
    let grid = include_str!("dp_accounting.csv");
    let lines = grid.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(','));
    lines
        .map(|line| {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let [sigma, rounds, rate, delta, epsilon] = fields[..] else { panic!("{line}") };
            Setting { sigma, rounds: rounds as u64, rate, delta, epsilon }
        })
        .collect()
}

fn renyi(setting: &Setting) -> f64 {
    let one = Renyi::sampled_gaussian(setting.sigma, setting.rate, Neighbours::AddRemove);
    one.times(setting.rounds).epsilon(setting.delta).0
}

#[test]
fn at_the_same_orders_the_renyi_bound_is_the_same() {
    let settings = settings("renyi");
    assert_eq!(settings.len(), 180);
    assert!(settings.iter().any(|setting| setting.rate == 1.0));
    for setting in settings {
        let (ours, theirs) = (renyi(&setting), setting.epsilon);
        let scale = theirs.max(1.0);
        let at = format!("sigma {}, {} rounds, rate {}", setting.sigma, setting.rounds, setting.rate);
        // Theirs may be off by its own rounding: it is not rounded up.
        assert!(ours >= theirs - 1e-11 * scale, "{at}: {ours} is below {theirs}");
        assert!(ours <= theirs + 1e-9 * scale, "{at}: {ours} is above {theirs}");
    }
}

#[test]
fn whole_orders_cost_little() {
    let settings = settings("default");
    assert_eq!(settings.len(), 16);
    for setting in settings {
        let (ours, theirs) = (renyi(&setting), setting.epsilon);
        assert!(ours >= theirs - 1e-11 && ours <= 1.02 * theirs, "{ours} {theirs}");
    }
}

#[test]
fn composed_gaussians_are_exact() {
    let settings = settings("gaussian");
    assert_eq!(settings.len(), 60);
    for Setting { sigma, rounds, delta, epsilon, .. } in settings {
        let zcdp = rounds as f64 / (2.0 * sigma * sigma);
        let ours = epsilon_of_gaussian(zcdp, delta);
        let at = format!("sigma {sigma}, {rounds} rounds, delta {delta}");
        assert!(ours >= epsilon && ours <= epsilon + 1e-9 * epsilon.max(1.0), "{at}: {ours}, not {epsilon}");
        // The general conversion holds for Gaussians, too.
        assert!(epsilon_of_zcdp(zcdp, delta) >= epsilon, "{at}");
        let back = delta_of_gaussian(zcdp, epsilon);
        assert!(back >= delta * (1.0 - 1e-9) && back <= delta * (1.0 + 1e-6), "{at}: {back}");
        let noise = gaussian_sigma(epsilon, delta, 1.0, rounds);
        assert!(noise >= sigma * (1.0 - 1e-12) && noise <= sigma * (1.0 + 1e-9), "{at}: {noise}");
    }
}

/// A Renyi bound is loose for one release and tightens with composition.
#[test]
fn the_renyi_bound_is_never_below_the_truth() {
    let settings = settings("sampled");
    assert_eq!(settings.len(), 18);
    for setting in settings {
        let ours = renyi(&setting);
        assert!(ours >= setting.epsilon, "{ours} is below {}", setting.epsilon);
        let near = setting.rounds < 1000 || ours <= 1.35 * setting.epsilon;
        assert!(near, "{ours} is far above {}", setting.epsilon);
    }
}

#[test]
fn the_analytic_mechanism_adds_the_same_noise() {
    let settings = settings("sigma");
    assert_eq!(settings.len(), 10);
    for Setting { sigma, delta, epsilon, .. } in settings {
        let ours = analytic_sigma(epsilon, delta, 1.0);
        assert!((ours / sigma - 1.0).abs() < 1e-6, "{ours}, not {sigma}");
        assert!(epsilon_of_gaussian(1.0 / (2.0 * ours * ours), delta) <= epsilon * (1.0 + 1e-12));
    }
}
