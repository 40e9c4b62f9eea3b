mod differences;
mod reference;
mod training;

use super::*;
use fedkin_numeric::rng::{PublicRng, Random};

/// A net from words.
fn net(input: [usize; 3], layers: &[&str], goal: Goal) -> Net {
    let layers: Vec<Layer> = layers.iter().map(|text| Layer::parse(text).unwrap()).collect();
    Net::new(input, &layers, goal).unwrap()
}

fn preset(name: &str, classes: usize) -> Net {
    let (input, layers) = Net::preset(name, classes).unwrap();
    Net::new(input, &layers, Goal::CrossEntropy).unwrap()
}

fn stream(purpose: &str) -> PublicRng {
    PublicRng::named(7, purpose, 0, 0)
}

/// Parameters away from the special values that training starts with.
fn parameters(net: &Net, rng: &mut PublicRng) -> Vec<f32> {
    let mut w = net.start(rng);
    for part in net.parts() {
        for w in &mut w[part.range.clone()] {
            match part.role {
                Role::Weight | Role::Bias => {}
                Role::RunningVariance | Role::Scale => *w = rng.between(0.5, 1.5) as f32,
                Role::Shift | Role::RunningMean => *w = rng.between(-0.5, 0.5) as f32,
            }
        }
    }
    w
}

/// Records and targets for a net.
fn records(net: &Net, rows: usize, rng: &mut PublicRng) -> (Vec<f32>, Vec<f32>) {
    let x = (0..rows * net.features()).map(|_| rng.normal() as f32).collect();
    let y = match net.goal() {
        Goal::CrossEntropy => (0..rows).map(|_| rng.below(net.outputs() as u32) as f32).collect(),
        Goal::Squared => (0..rows * net.outputs()).map(|_| rng.normal() as f32).collect(),
    };
    (x, y)
}
