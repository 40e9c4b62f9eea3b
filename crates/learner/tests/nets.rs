//! Nets against PyTorch: gradients, running statistics and predictions of every layer and of the three nets of the FedPnP
//! paper, and one round of federated averaging. `golden/nets/generate.py` wrote the numbers, in 64 bits.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::disallowed_methods
)]

use fedkin_learner::model::neural::{Descent, Goal, Layer, Narrow, Net, NetScratch, Role, train};

/// The sequence that the generator draws from.
struct Sequence(u64);

impl Sequence {
    fn bits(&mut self) -> u64 {
        self.0 = (1_103_515_245 * self.0 + 12_345) % (1 << 31);
        self.0 >> 8 & 0xffff
    }

    fn value(&mut self) -> f32 {
        self.bits() as f32 / 65_536.0 - 0.5
    }
}

/// The lines of a case: a word and what follows it.
struct Case<'a> {
    lines: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> Case<'a> {
    fn all(text: &'a str) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            let head = words.next().unwrap();
            if head == "case" {
                cases.push(Self { lines: Vec::new() });
            }
            if let Some(case) = cases.last_mut() {
                case.lines.push((head, words.collect()));
            }
        }
        cases
    }

    fn every(&self, head: &str) -> impl Iterator<Item = &[&'a str]> {
        self.lines.iter().filter(move |line| line.0 == head).map(|line| &line.1[..])
    }

    fn words(&self, head: &str) -> &[&'a str] {
        self.every(head).next().unwrap()
    }

    fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, head: &str) -> Vec<T> {
        self.words(head).iter().map(|word| word.parse().unwrap()).collect()
    }

    fn net(&self) -> Net {
        let layers: Vec<Layer> =
            self.every("layer").map(|words| Layer::parse(&words.join(" ")).unwrap()).collect();
        let goal = if self.words("goal") == ["squared"] { Goal::Squared } else { Goal::CrossEntropy };
        Net::new(self.numbers("input").try_into().unwrap(), &layers, goal).unwrap()
    }

    fn parameters(&self, net: &Net, sequence: &mut Sequence) -> Vec<f32> {
        let factors = self.words("factors");
        assert_eq!(factors.len(), net.parts().len());
        let mut w = vec![0.0; net.length()];
        for (part, factor) in net.parts().iter().zip(factors) {
            for w in &mut w[part.range.clone()] {
                *w = match *factor {
                    "one" => sequence.value() + 1.0,
                    "zero" => sequence.value(),
                    factor => sequence.value() * factor.parse::<f32>().unwrap(),
                };
            }
        }
        w
    }
}

fn records(net: &Net, rows: usize, sequence: &mut Sequence) -> Narrow {
    let columns = net.features();
    let features = (0..rows * columns).map(|_| 4.0 * sequence.value()).collect();
    let targets = match net.goal() {
        Goal::CrossEntropy => (0..rows).map(|_| (sequence.bits() % net.outputs() as u64) as f32).collect(),
        Goal::Squared => (0..rows * net.outputs()).map(|_| 2.0 * sequence.value()).collect(),
    };
    Narrow { columns, features, targets }
}

fn parse(words: &[&str]) -> Vec<f64> {
    words.iter().map(|word| word.parse().unwrap()).collect()
}

/// The largest distance of an entry, relative to the largest entry (or to `least`).
fn gap(ours: impl Iterator<Item = f32>, theirs: &[f64], least: f64) -> f64 {
    let scale = theirs.iter().fold(least, |most, x| most.max(x.abs()));
    let gaps: Vec<f64> = ours.zip(theirs).map(|(a, b)| (f64::from(a) - b).abs() / scale).collect();
    assert_eq!(gaps.len(), theirs.len());
    gaps.into_iter().fold(0.0, |most, gap| if gap > most || gap.is_nan() { gap } else { most })
}

/// 1e-4 of the largest entry of each part, and 1e-4 of its norm.
#[test]
fn gradients_are_those_of_pytorch() {
    let cases = Case::all(include_str!("golden/nets/gradients.txt"));
    assert_eq!(cases.len(), 14);
    for (number, case) in cases.iter().enumerate() {
        let name = case.words("case")[0];
        let (net, mut sequence) = (case.net(), Sequence(number as u64 + 1));
        let mut w = case.parameters(&net, &mut sequence);
        let rows = case.numbers("rows")[0];
        let data = records(&net, rows, &mut sequence);
        let mut bench: NetScratch = net.bench(rows);

        let mut z = vec![f32::NAN; rows * net.outputs()];
        net.predict(&mut bench, &w, &data.features, &mut z);
        let predicted: Vec<f64> = case.numbers("predicted");
        let far = gap(z.iter().copied().take(predicted.len()), &predicted, 0.0);
        assert!(far < 1e-5, "{name}: predictions differ by {far}");

        let mut out = vec![f32::NAN; net.length()];
        let loss = net.gradient(&mut bench, &mut w, &data.features, &data.targets, &mut out);
        let exact: f64 = case.numbers("loss")[0];
        assert!((f64::from(loss) - exact).abs() < 1e-5 * exact, "{name}: loss {loss} instead of {exact}");

        let mut checked = 0;
        // A bias before batch norm has no gradient, there is only rounding: it is held against the others.
        let most = case.every("gradient").map(|words| words[2].parse::<f64>().unwrap()).fold(0.0, f64::max);
        for words in case.every("gradient") {
            let part = &net.parts()[words[0].parse::<usize>().unwrap()];
            let (step, theirs) = (words[1].parse::<usize>().unwrap(), parse(&words[2..]));
            let ours = &out[part.range.clone()];
            let far = gap(ours.iter().copied().step_by(step), &theirs[1..], 1e-3 * most);
            assert!(far < 1e-4, "{name}, {part:?}: gradients differ by {far}");
            let norm = ours.iter().map(|g| f64::from(*g) * f64::from(*g)).sum::<f64>().sqrt();
            assert!(
                (norm - theirs[0]).abs() < 1e-4 * theirs[0].max(1e-3 * most),
                "{name}, {part:?}: norm {norm} instead of {}",
                theirs[0]
            );
            checked += 1;
        }
        for words in case.every("running") {
            let part = &net.parts()[words[0].parse::<usize>().unwrap()];
            assert!(matches!(part.role, Role::RunningMean | Role::RunningVariance));
            assert!(out[part.range.clone()].iter().all(|g| *g == 0.0), "{name}, {part:?}");
            let theirs = parse(&words[1..]);
            let far = gap(w[part.range.clone()].iter().copied().take(theirs.len()), &theirs, 0.0);
            assert!(far < 1e-5, "{name}, {part:?}: running statistics differ by {far}");
            checked += 1;
        }
        assert_eq!(checked, net.parts().len(), "{name}");
    }
}

/// Three clients of 20, 33 and 17 records, two epochs, batches of 8 (of 9 where one record would be left), momentum, weight
/// decay, and the weighted mean of all coordinates with the running statistics.
#[test]
fn a_round_of_federated_averaging_is_that_of_pytorch() {
    let case = Case::all(include_str!("golden/nets/round.txt")).remove(0);
    let (net, mut sequence) = (case.net(), Sequence(1000));
    let start = case.parameters(&net, &mut sequence);
    let sizes: Vec<usize> = case.numbers("clients");
    let descent = Descent {
        epochs: case.numbers("epochs")[0],
        batch: case.numbers("batch")[0],
        rate: case.numbers("rate")[0],
        momentum: case.numbers("momentum")[0],
        weight_decay: case.numbers("decay")[0],
    };
    let mut bench = net.bench(descent.batch);
    let mut mean = vec![0.0f64; net.length()];
    let theirs: Vec<f64> = case.numbers("losses");
    for (&rows, theirs) in sizes.iter().zip(theirs) {
        let (data, mut w) = (records(&net, rows, &mut sequence), start.clone());
        assert_eq!(data.fits(&net), Ok(()));
        let mut epoch = 0;
        let mut shuffle = |order: &mut [u32]| {
            for (i, slot) in order.iter_mut().enumerate() {
                *slot = ((7 * i + epoch) % rows) as u32;
            }
            epoch += 1;
        };
        let loss = train(&net, &mut bench, &data, &descent, None, &mut shuffle, &mut w).unwrap();
        assert!(
            (f64::from(loss) - theirs).abs() < 1e-4 * theirs,
            "{rows} records: loss {loss} instead of {theirs}"
        );
        let share = rows as f64 / sizes.iter().sum::<usize>() as f64;
        for (mean, w) in mean.iter_mut().zip(w) {
            *mean += share * f64::from(w);
        }
    }
    for (at, part) in net.parts().iter().enumerate() {
        let theirs = parse(&case.every("mean").nth(at).unwrap()[1..]);
        let far = gap(mean[part.range.clone()].iter().map(|w| *w as f32), &theirs, 0.0);
        assert!(far < 1e-4, "{part:?}: means differ by {far}");
    }
}
