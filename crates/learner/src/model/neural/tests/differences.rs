//! Gradients against central differences of the reference in 64 bits, along every coordinate of small nets and along
//! random directions within every part of the large ones.

use super::*;

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

/// The derivative of the reference's loss along a direction.
fn derivative(net: &Net, w: &[f64], x: &[f64], y: &[f32], direction: &dyn Fn(usize) -> f64) -> f64 {
    // Small, so that hardly any maximum changes its place in between.
    let step = 1e-7;
    let at = |sign: f64| {
        let moved: Vec<f64> = w.iter().enumerate().map(|(i, w)| w + sign * step * direction(i)).collect();
        reference::loss(net, &moved, x, y)
    };
    (at(1.0) - at(-1.0)) / (2.0 * step)
}

/// Gradient, its loss against the reference, and predictions against the reference's.
fn checked(net: &Net, rows: usize, w: &[f32], x: &[f32], y: &[f32]) -> Vec<f32> {
    let mut bench = net.bench(rows);
    let mut out = vec![f32::NAN; net.length()];
    let loss = net.gradient(&mut bench, &mut w.to_vec(), x, y, &mut out);
    let exact = reference::loss(net, &wide(w), &wide(x), y);
    assert!((f64::from(loss) - exact).abs() < 1e-5 * exact.abs().max(1.0), "loss {loss}, reference {exact}");
    let mut z = vec![f32::NAN; rows * net.outputs()];
    net.predict(&mut bench, w, x, &mut z);
    let exact = reference::outputs(net, &wide(w), &wide(x), rows, false);
    for (z, exact) in z.iter().zip(exact.iter().flatten()) {
        assert!((f64::from(*z) - exact).abs() < 1e-4, "output {z}, reference {exact}");
    }
    out
}

/// Every coordinate, to 1e-3 of the largest entry of its part; the biases that a norm makes void have none.
fn every_coordinate(name: &str, net: &Net, rows: usize) {
    let mut rng = stream(name);
    let w = parameters(net, &mut rng);
    let (x, y) = records(net, rows, &mut rng);
    let out = checked(net, rows, &w, &x, &y);
    let (w, x) = (wide(&w), wide(&x));
    for part in net.parts() {
        let exact: Vec<f64> = part
            .range
            .clone()
            .map(|at| {
                let along = |i| f64::from(u8::from(i == at));
                if part.role.trained() { derivative(net, &w, &x, &y, &along) } else { 0.0 }
            })
            .collect();
        let scale = exact.iter().fold(1e-3, |most: f64, g| most.max(g.abs()));
        for (at, exact) in part.range.clone().zip(exact) {
            let gap = (f64::from(out[at]) - exact).abs() / scale;
            assert!(gap < 1e-3, "{name}, {part:?}, {at}: {} instead of {exact}", out[at]);
        }
    }
}

#[test]
fn every_layer_has_its_gradient() {
    let squared: [(&str, [usize; 3], &[&str]); 14] = [
        ("dense", [5, 1, 1], &["dense 3"]),
        ("two dense", [19, 1, 1], &["dense 8", "dense 3"]),
        ("tanh", [4, 1, 1], &["dense 5", "tanh", "dense 2"]),
        ("relu", [4, 1, 1], &["dense 9", "relu", "dense 2"]),
        ("both", [4, 1, 1], &["dense 9", "tanh", "relu", "tanh", "dense 2"]),
        ("conv", [2, 5, 6], &["conv 3 size 3"]),
        ("two conv", [2, 7, 6], &["conv 4 size 3 stride 1 pad 1", "conv 7 size 2"]),
        ("stride", [1, 9, 8], &["conv 2 size 3 stride 2", "conv 4 size 2 stride 2 pad 1"]),
        ("gap", [1, 9, 9], &["conv 2 size 2 stride 1", "conv 2 size 2 stride 3 pad 2"]),
        ("wide kernel", [1, 9, 8], &["conv 4 size 5 stride 1 pad 1", "conv 2 size 6 stride 1 pad 2"]),
        ("pool", [1, 6, 6], &["conv 3 size 2", "max-pool 2 stride 2", "dense 2"]),
        ("overlap", [2, 6, 5], &["conv 3 size 2", "max-pool 3 stride 1", "dense 2"]),
        ("group norm", [1, 4, 4], &["conv 6 size 2", "group-norm 3", "tanh", "dense 2"]),
        ("group norm of features", [6, 1, 1], &["dense 8", "group-norm 2", "dense 2"]),
    ];
    for (name, input, layers) in squared {
        for rows in [1, 3, 18] {
            every_coordinate(name, &net(input, layers, Goal::Squared), rows);
        }
    }
    let classes: [(&str, [usize; 3], &[&str]); 4] = [
        ("cross-entropy", [5, 1, 1], &["dense 4"]),
        ("batch norm", [6, 1, 1], &["dense 7", "batch-norm", "tanh", "dense 3"]),
        ("batch norm of channels", [2, 5, 5], &["conv 4 size 3", "batch-norm", "relu", "dense 3"]),
        (
            "pointwise first",
            [3, 4, 4],
            &["tanh", "batch-norm", "conv 2 size 2", "max-pool 2", "batch-norm", "dense 3"],
        ),
    ];
    for (name, input, layers) in classes {
        for rows in [5, 16, 35] {
            every_coordinate(name, &net(input, layers, Goal::CrossEntropy), rows);
        }
    }
}

/// Along random directions within each part, to 1e-3 of the largest of them.
fn along_directions(name: &str, classes: usize, rows: usize) {
    let (net, mut rng) = (preset(name, classes), stream(name));
    let w = parameters(&net, &mut rng);
    let (x, y) = records(&net, rows, &mut rng);
    let out = checked(&net, rows, &w, &x, &y);
    let (w, x) = (wide(&w), wide(&x));
    let mut largest = 0.0f64;
    let mut found = Vec::new();
    for part in net.parts().iter().filter(|part| part.role.trained()) {
        for _ in 0..3 {
            let mut direction: Vec<f64> = part.range.clone().map(|_| rng.normal()).collect();
            let length = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
            for d in &mut direction {
                *d /= length;
            }
            let exact = derivative(&net, &w, &x, &y, &|i| {
                if part.range.contains(&i) { direction[i - part.range.start] } else { 0.0 }
            });
            let ours: f64 =
                out[part.range.clone()].iter().zip(&direction).map(|(g, d)| f64::from(*g) * d).sum();
            largest = largest.max(exact.abs());
            found.push((part, ours, exact));
        }
    }
    assert!(largest > 1e-3, "{name}: no slope anywhere");
    for (part, ours, exact) in found {
        // A bias before batch norm has none: there only rounding is left, against which an absolute bound stands.
        let gap = (ours - exact).abs() / exact.abs().max(1e-2 * largest);
        assert!(gap < 1e-3, "{name}, {part:?}: {ours} along a direction instead of {exact}");
    }
}

#[test]
fn the_three_nets_have_their_gradients() {
    along_directions("mnist-cnn", 10, 6);
    along_directions("cifar", 10, 5);
    along_directions("har-mlp", 6, 18);
}

/// Running statistics after one batch: momentum 0.1, unbiased variance.
#[test]
fn running_statistics_move_as_pytorch_moves_them() {
    let net = net([2, 1, 2], &["batch-norm", "dense 2"], Goal::Squared);
    let mut w = parameters(&net, &mut stream("running"));
    let before = w.clone();
    let x = [1.0, 3.0, -1.0, 0.0, 2.0, 6.0, 4.0, 5.0];
    let mut out = vec![0.0; net.length()];
    net.gradient(&mut net.bench(2), &mut w, &x, &[0.0; 4], &mut out);
    let channels: [[f32; 4]; 2] = [[1.0, 3.0, 2.0, 6.0], [-1.0, 0.0, 4.0, 5.0]];
    for (c, values) in channels.iter().enumerate() {
        let mean = values.iter().sum::<f32>() / 4.0;
        let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / 3.0;
        assert!((w[4 + c] - (0.9 * before[4 + c] + 0.1 * mean)).abs() < 1e-6);
        assert!((w[6 + c] - (0.9 * before[6 + c] + 0.1 * variance)).abs() < 1e-6);
    }
    assert_eq!((&w[..4], &w[8..]), (&before[..4], &before[8..]));
}
