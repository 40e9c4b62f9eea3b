//! Training: closed forms, limits, bits, and what is refused.

use super::*;

/// A last batch that is too small for batch norm.
const SMALL: [&str; 3] = ["dense 4", "batch-norm", "dense 2"];

fn descent(epochs: u32, batch: usize, rate: f64) -> Descent {
    Descent { epochs, batch, rate, momentum: 0.0, weight_decay: 0.0 }
}

fn narrow(net: &Net, rows: usize, purpose: &str) -> Narrow {
    let (features, targets) = records(net, rows, &mut stream(purpose));
    Narrow { columns: net.features(), features, targets }
}

fn run(
    net: &Net,
    data: &Narrow,
    descent: &Descent,
    pull: Option<Pull<'_>>,
    w: &mut [f32],
) -> Result<f32, Diverged> {
    train(net, &mut net.bench(descent.batch), data, descent, pull, &mut |_| {}, w)
}

/// One dense layer with squared loss: a step has a closed form, with weight decay, pull and momentum.
#[test]
fn steps_are_those_of_the_closed_form() {
    let net = net([3, 1, 1], &["dense 1"], Goal::Squared);
    let data = narrow(&net, 5, "closed form");
    let start = parameters(&net, &mut stream("start"));
    let centre = parameters(&net, &mut stream("centre"));
    for (momentum, decay, strength) in
        [(0.0, 0.0, 0.0), (0.0, 0.3, 0.0), (0.9, 0.3, 0.0), (0.0, 0.1, 2.0), (0.5, 0.1, 2.0)]
    {
        let plan = Descent { momentum, weight_decay: decay, ..descent(3, 5, 0.05) };
        let mut ours = start.clone();
        let pull = (strength > 0.0).then_some(Pull { centre: &centre, strength });
        run(&net, &data, &plan, pull, &mut ours).unwrap();

        let mut w: Vec<f64> = start.iter().map(|&w| f64::from(w)).collect();
        let mut v = [0.0; 4];
        for _ in 0..3 {
            let mut g = [0.0; 4];
            for (x, y) in data.features.chunks_exact(3).zip(&data.targets) {
                let x = [f64::from(x[0]), f64::from(x[1]), f64::from(x[2]), 1.0];
                let gap = x.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() - f64::from(*y);
                (0..4).for_each(|i| g[i] += 2.0 * gap * x[i] / 5.0);
            }
            for i in 0..4 {
                v[i] = momentum * v[i] + g[i] + decay * w[i] + strength * (w[i] - f64::from(centre[i]));
                w[i] -= 0.05 * v[i];
            }
        }
        for (ours, exact) in ours.iter().zip(w) {
            assert!((f64::from(*ours) - exact).abs() < 1e-5, "{plan:?}: {ours} instead of {exact}");
        }
    }
}

/// With the step of one over its strength a pull leads to the centre, but for the gradient's share. Running statistics
/// are not pulled.
#[test]
fn a_strong_pull_stays_at_its_centre() {
    let net = net([6, 1, 1], &SMALL, Goal::CrossEntropy);
    let data = narrow(&net, 40, "pull");
    let start = parameters(&net, &mut stream("start"));
    let centre = parameters(&net, &mut stream("centre"));
    let strength = 1e6;
    let mut w = start.clone();
    run(&net, &data, &descent(2, 8, 1.0 / strength), Some(Pull { centre: &centre, strength }), &mut w)
        .unwrap();
    for part in net.parts() {
        for i in part.range.clone() {
            if part.role.trained() {
                assert!((w[i] - centre[i]).abs() < 1e-5, "{part:?}: {} at {}", w[i], centre[i]);
            } else {
                assert!((w[i] - centre[i]).abs() > 1e-4, "{part:?} was pulled");
            }
        }
    }
}

#[test]
fn training_lowers_the_loss() {
    let net = preset("mnist-cnn", 10);
    let data = narrow(&net, 48, "learn");
    let mut w = net.start(&mut stream("start"));
    let first = run(&net, &data, &descent(1, 16, 0.05), None, &mut w).unwrap();
    let last = run(&net, &data, &descent(12, 16, 0.05), None, &mut w).unwrap();
    assert!(first > 2.0 && last < 0.3 * first, "from {first} to {last}");
}

/// Bits depend neither on what the scratch was used for before nor on how large it is, nor on the batch of predictions.
#[test]
fn bits_do_not_depend_on_the_bench() {
    let nets = [
        preset("mnist-cnn", 10),
        net(
            [3, 9, 9],
            &["conv 5 size 3 pad 1", "group-norm 5", "relu", "max-pool 2", "dense 3"],
            Goal::CrossEntropy,
        ),
    ];
    for net in nets {
        let (x, y) = records(&net, 37, &mut stream("bits"));
        let start = parameters(&net, &mut stream("start"));
        let once = |bench: &mut NetScratch| {
            let (mut w, mut out) = (start.clone(), vec![f32::NAN; net.length()]);
            let loss = net.gradient(bench, &mut w, &x, &y, &mut out);
            let mut z = vec![f32::NAN; 37 * net.outputs()];
            net.predict(bench, &w, &x, &mut z);
            [vec![loss], w, out, z].concat().into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        };
        let mut bench = net.bench(37);
        let first = once(&mut bench);
        assert_eq!(first, once(&mut bench));
        assert_eq!(first, once(&mut net.bench(500)));
        assert_eq!(first, once(&mut net.bench(2)), "a bench that has to grow");
        // Numbers that are not finite must not stay behind in a lane that another batch leaves empty.
        let mut used = net.bench(64);
        let (bad, mut out) = (vec![f32::NAN; 64 * net.features()], vec![0.0; net.length()]);
        net.gradient(&mut used, &mut start.clone(), &bad, &[0.0; 64], &mut out);
        assert_eq!(first, once(&mut used), "a bench after a diverged batch");
    }
}

/// The gradient of a batch is the mean of the gradients of its records where no norm mixes them.
#[test]
fn records_have_gradients_of_their_own() {
    let net = net(
        [2, 6, 6],
        &["conv 4 size 3", "group-norm 2", "tanh", "max-pool 2", "dense 3"],
        Goal::CrossEntropy,
    );
    let (x, y) = records(&net, 21, &mut stream("records"));
    let mut w = parameters(&net, &mut stream("start"));
    let (mut bench, mut all) = (net.bench(21), vec![0.0; net.length()]);
    net.gradient(&mut bench, &mut w, &x, &y, &mut all);
    let (mut mean, mut one) = (vec![0.0f64; net.length()], vec![0.0; net.length()]);
    for (x, y) in x.chunks_exact(72).zip(&y) {
        net.record_gradient(&mut bench, &w, x, &[*y], &mut one).unwrap();
        mean.iter_mut().zip(&one).for_each(|(mean, g)| *mean += f64::from(*g) / 21.0);
    }
    for (all, mean) in all.iter().zip(mean) {
        assert!((f64::from(*all) - mean).abs() < 1e-6, "{all} instead of {mean}");
    }
    let mixing = super::net([6, 1, 1], &SMALL, Goal::CrossEntropy);
    let w = parameters(&mixing, &mut stream("start"));
    let (mut bench, mut out) = (mixing.bench(1), vec![0.0; w.len()]);
    let refused = mixing.record_gradient(&mut bench, &w, &[0.0; 6], &[0.0], &mut out);
    assert!(refused.unwrap_err().contains("batch norm"));
    let refused = mixing.clipped_gradient(&mut bench, &w, &[0.0; 6], &[0.0], 1.0, &mut out, &mut [0.0]);
    assert!(refused.unwrap_err().contains("batch norm"));
}

/// Norms and the clipped sum against the vectors of single records.
#[test]
fn clipped_sums_are_those_of_single_records() {
    let nets = [
        net(
            [2, 6, 6],
            &["conv 7 size 3 stride 2 pad 1", "group-norm 7", "tanh", "conv 3 size 2", "dense 3"],
            Goal::CrossEntropy,
        ),
        net([9, 1, 1], &["group-norm 3", "dense 8", "relu", "dense 2"], Goal::Squared),
    ];
    for net in nets {
        let (x, y) = records(&net, 21, &mut stream("clip"));
        let w = parameters(&net, &mut stream("start"));
        let (mut bench, mut one) = (net.bench(21), vec![0.0; net.length()]);
        let (mut exact, mut norms) = (vec![0.0f64; net.length()], Vec::new());
        let each = x.chunks_exact(net.features()).zip(y.chunks_exact(net.targets()));
        let singles: Vec<Vec<f64>> = each
            .map(|(x, y)| {
                net.record_gradient(&mut bench, &w, x, y, &mut one).unwrap();
                one.iter().map(|g| f64::from(*g)).collect()
            })
            .collect();
        norms.extend(singles.iter().map(|g| g.iter().map(|g| g * g).sum::<f64>().sqrt()));
        let mut sorted: Vec<f64> = norms.clone();
        sorted.sort_by(f64::total_cmp);
        // In the middle, so that some records are scaled and some are not.
        let bound = sorted[10];
        for (single, norm) in singles.iter().zip(&norms) {
            exact.iter_mut().zip(single).for_each(|(sum, g)| *sum += g * (bound / norm).min(1.0));
        }
        let (mut out, mut found) = (vec![f32::NAN; net.length()], [f32::NAN; 21]);
        let loss = net.clipped_gradient(&mut bench, &w, &x, &y, bound, &mut out, &mut found).unwrap();
        for (found, norm) in found.iter().zip(&norms) {
            assert!((f64::from(*found) / norm - 1.0).abs() < 1e-5, "norm {found} instead of {norm}");
        }
        let scale = exact.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
        for (out, exact) in out.iter().zip(exact) {
            assert!((f64::from(*out) - exact).abs() < 1e-5 * scale, "{out} instead of {exact}");
        }
        assert_eq!(loss, net.gradient(&mut bench, &mut w.clone(), &x, &y, &mut one));
    }
}

/// Which records a step sees: all of them once, in the given order, a single last one with the batch before.
#[test]
fn batches_cover_the_records() {
    let mixing = net([6, 1, 1], &SMALL, Goal::CrossEntropy);
    let plain = net([6, 1, 1], &["dense 2"], Goal::CrossEntropy);
    assert_eq!((mixing.least_batch(), plain.least_batch()), (2, 1));
    for (net, rows, batches) in [
        (&mixing, 17, vec![0..8, 8..17]),
        (&mixing, 18, vec![0..8, 8..16, 16..18]),
        (&plain, 17, vec![0..8, 8..16, 16..17]),
        (&mixing, 11, vec![0..8, 8..11]),
    ] {
        let data = narrow(net, rows, "cover");
        let start = parameters(net, &mut stream("start"));
        let mut ours = start.clone();
        let reversed = &mut |order: &mut [u32]| order.reverse();
        train(net, &mut net.bench(8), &data, &descent(1, 8, 0.1), None, reversed, &mut ours).unwrap();
        let (mut w, mut out, mut bench) = (start, vec![0.0; net.length()], net.bench(8));
        let order: Vec<usize> = (0..rows).rev().collect();
        for batch in batches {
            let chosen = &order[batch];
            let x: Vec<f32> = chosen.iter().flat_map(|i| &data.features[i * 6..i * 6 + 6]).copied().collect();
            let y: Vec<f32> = chosen.iter().map(|&i| data.targets[i]).collect();
            net.gradient(&mut bench, &mut w, &x, &y, &mut out);
            w.iter_mut().zip(&out).for_each(|(w, g)| *w -= 0.1 * g);
        }
        assert_eq!(ours, w, "{rows} records");
    }
}

#[test]
fn divergence_is_an_error() {
    let net = net([3, 1, 1], &["dense 4", "relu", "dense 1"], Goal::Squared);
    let data = narrow(&net, 20, "diverge");
    let mut w = net.start(&mut stream("start"));
    let error = run(&net, &data, &descent(50, 5, 1e6), None, &mut w).unwrap_err();
    assert!(!error.loss.is_finite() && error.epoch >= 1 && error.batch >= 1, "{error:?}");
    assert!(error.to_string().contains("diverged"));
    // The last step of all can be the one that overflows: no loss is seen after it.
    let mut w = net.start(&mut stream("start"));
    assert!(run(&net, &data, &descent(1, 20, f64::MAX), None, &mut w).is_err());
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let refused = |input, layers: &[&str]| {
        let layers: Vec<Layer> = layers.iter().map(|text| Layer::parse(text).unwrap()).collect();
        Net::new(input, &layers, Goal::CrossEntropy).unwrap_err()
    };
    for (error, parts) in [
        (
            refused([1, 6, 6], &["conv 4 size 3", "relu", "conv 2 size 7 pad 1"]),
            ["layer 3", "4 x 4 x 4", "7 x 7", "4 x 6 x 6"],
        ),
        (refused([1, 6, 6], &["max-pool 7"]), ["layer 1", "`max-pool 7 stride 7`", "1 x 6 x 6", "7 x 7"]),
        (
            refused([1, 6, 6], &["conv 6 size 2", "group-norm 4"]),
            ["layer 2", "6 x 5 x 5", "6 channels", "4 equal"],
        ),
        (
            refused([1, 6, 6], &["dense 4000000000"]),
            ["layer 1", "too large", "1 x 6 x 6", "4000000000 x 1 x 1"],
        ),
        (refused([0, 6, 6], &["dense 4"]), ["input", "0 x 6 x 6", "positive", "at most"]),
        (refused([2, 1, 1], &["relu"]), ["needs a layer", "conv", "dense", "norm"]),
        (refused([2, 1, 1], &["dense 1"]), ["two outputs", "1 x 1 x 1", "last layer", "cross-entropy"]),
    ] {
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn records_that_do_not_fit_are_named() {
    let net = net([6, 1, 1], &SMALL, Goal::CrossEntropy);
    let good = narrow(&net, 4, "fit");
    assert_eq!(good.fits(&net), Ok(()));
    let refused = |change: &dyn Fn(&mut Narrow)| {
        let mut data = good.clone();
        change(&mut data);
        data.fits(&net).unwrap_err()
    };
    assert!(refused(&|data| data.columns = 3).contains("3 features, the net takes 6 x 1 x 1"));
    assert!(refused(&|data| data.targets[2] = 2.0).contains("target 2 is not a class of 0 to 1"));
    assert!(refused(&|data| data.targets[2] = 0.5).contains("target 0.5"));
    assert!(refused(&|data| data.targets.truncate(3)).contains("3 targets for 4 records"));
    let single = narrow(&net, 1, "fit");
    assert!(single.fits(&net).unwrap_err().contains("at least 2"));
}

/// The laws of the start: bounds are met and nearly reached, the rest is constant.
#[test]
fn starts_follow_the_laws_of_pytorch() {
    let net = preset("cifar", 10);
    let w = net.start(&mut stream("start"));
    for part in net.parts() {
        let values = &w[part.range.clone()];
        let inputs: f32 = [75.0, 150.0, 400.0, 120.0, 84.0]
            [[0, 4, 8, 11, 14].iter().position(|&l| l == part.layer).unwrap_or(0)];
        let largest = values.iter().fold(0.0, |most: f32, w| most.max(w.abs()));
        match part.role {
            Role::Weight => {
                let bound = 1.0 / inputs.sqrt();
                assert!(largest <= bound && largest > 0.95 * bound, "{part:?}: {largest}");
            }
            Role::Bias => assert!(largest <= 1.0 / inputs.sqrt() && largest > 0.0, "{part:?}"),
            Role::Scale | Role::RunningVariance => assert!(values.iter().all(|w| *w == 1.0), "{part:?}"),
            Role::Shift | Role::RunningMean => assert!(values.iter().all(|w| *w == 0.0), "{part:?}"),
        }
    }
    assert_eq!(w.len(), net.length());
    assert_eq!(net.length(), 62_006 + 4 * (6 + 16 + 120 + 84));
}
