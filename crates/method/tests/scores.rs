//! Kept scores are those that would be computed afresh.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types
)]

use fedkin_harness::small as common;

use common::{number, small, values};
use fedkin_method::Member;
use fedkin_method::round::{Judge, Live, Summary};
use fedkin_numeric::norm2;
use fedkin_privacy::{Privacy, Sampler};

/// Scores models by their norm, the first one of active clients once more.
struct Norms {
    identity: Option<u64>,
    grouped: bool,
    factor: f64,
}

impl Judge for Norms {
    fn columns(&self) -> usize {
        4
    }
    fn score(&self, member: &Member, active: bool, which: usize, model: &[f64], row: &mut [f64]) {
        row[which] = self.factor * (norm2(model) + f64::from(member.cluster));
        if active && which == 0 {
            row[3] = row[0];
        }
    }
    fn group(&self, member: &Member) -> Option<u32> {
        self.grouped.then_some(member.cluster)
    }
    fn identity(&self) -> Option<u64> {
        self.identity
    }
}

fn bits(summaries: &[Summary]) -> Vec<(u64, u64)> {
    summaries.iter().map(|summary| (summary.sum.to_bits(), summary.count)).collect()
}

fn same(live: &dyn Live, identity: u64, grouped: bool, factor: f64) {
    let kept = Norms { identity: Some(identity), grouped, factor };
    let fresh = Norms { identity: None, grouped, factor };
    assert_eq!(bits(&live.evaluate(&kept)), bits(&live.evaluate(&fresh)));
    let rows = |judge: &Norms| -> Vec<Vec<u64>> {
        live.rows(judge).iter().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect()
    };
    assert_eq!(rows(&kept), rows(&fresh));
}

#[test]
fn kept_scores_equal_fresh_ones_through_rounds_restarts_and_other_judges() {
    for name in ["pgfl", "gfedmtl", "clusterfl", "local", "centralized"] {
        for grouped in [true, false] {
            let mut world = small(7, 24, 5, 8).arranged(name);
            world.run.clients_per_server = Some(2);
            let mut live = world.live(name, &values(name, &[]));
            let mut saved = live.save();
            // Another judge than in the last look, a look left out, a restart in between.
            for step in 0..8u64 {
                live.step().unwrap();
                if step % 3 != 1 {
                    same(&*live, 1 + u64::from(step >= 6), grouped, if step >= 6 { 2.0 } else { 1.0 });
                }
                if step == 2 {
                    saved = live.save();
                }
                if step == 4 {
                    live.restore(&saved).unwrap();
                    same(&*live, 1, grouped, 1.0);
                }
            }
        }
    }
}

#[test]
fn signal_to_noise_is_that_of_this_rounds_clients() {
    let (gradient, penalty, length) = (2.0, 5.0, 5usize);
    let mut world = small(11, 24, length, 6).zcdp(0.01, 0.9, gradient, None);
    world.run.clients_per_server = Some(2);
    let Privacy::Zcdp(zcdp) = world.run.privacy else { panic!("no noise") };
    let mut live = world.live("pgfl", &values("pgfl", &[("penalty", number(penalty))]));
    for step in 1..=4 {
        live.step().unwrap();
        let rows = live.rows(&Norms { identity: None, grouped: false, factor: 1.0 });
        let (mut sum, mut count) = (0.0, 0.0);
        for member in world.federation.members() {
            let norm = rows[member.id as usize][3] - f64::from(member.cluster);
            if !norm.is_nan() {
                // (43) and (47) of the paper; the grid adds a millionth.
                let sensitivity = 2.0 * gradient / (penalty * f64::from(member.samples));
                let variance = sensitivity * sensitivity / (2.0 * zcdp.budget_of_round(step));
                sum += norm / (length as f64 * variance);
                count += 1.0;
            }
        }
        assert_eq!(count, 8.0);
        let ratio = live.signal_to_noise().unwrap();
        assert!((ratio - sum / count).abs() < 1e-5 * ratio, "{ratio} {}", sum / count);
    }
    // Nothing to say where nothing is added, or no model with noise is sent.
    for (name, world) in [
        ("pgfl", small(11, 24, length, 6)),
        ("pgfl", small(11, 24, length, 6).sampled(Sampler::None, gradient)),
        ("centralized", small(11, 24, length, 6).arranged("centralized")),
    ] {
        let mut live = world.live(name, &values(name, &[]));
        live.step().unwrap();
        assert_eq!(live.signal_to_noise(), None, "{name}");
    }
}
