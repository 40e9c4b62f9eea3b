//! An own method in its own registry: every server keeps a share of its own aggregate. It trains, and passes conformance
//! (both drivers, misbehaving clients) and faults by the hundred.
#![allow(clippy::print_stdout)]

use fedkin::data::sources::ClusteredRegression;
use fedkin::learner::{Output, Ridge};
use fedkin::method::{Admm, AdmmKeys, Context, Now, Row, Rule, ServerView};
use fedkin::{Kind, Preset, Registry, Simulation, record, settings};
use fedkin_harness::{Schedules, conformance, faults};
use fedkin_numeric::{axpy, scale};

/// The server rule: `w_sq = keep w~_sq + (1 - keep) mean over p in N_s of w~_pq`.
struct Neighbours {
    keep: f64,
}

record! {
    /// Models by cluster, one after the other.
    struct Models { of: Vec<f64> }
}

settings! {
    /// The keys of `[algorithm]` with `name = "neighbours"`.
    struct Keys {
        penalty: f64 => Kind::ABOVE_ZERO, Preset::Number(5.0), "weight of the proximal term (rho)";
        keep: f64 => Kind::SHARE, Preset::Number(0.5), "share of its own aggregate that a server keeps";
    }
}

impl Rule for Neighbours {
    const NAME: &'static str = "neighbours";
    type Settings = Keys;
    type State = Models;
    type Share = Models;
    fn build(Keys { penalty, keep }: Keys, _: &Context) -> Result<(Self, AdmmKeys), String> {
        Ok((Self { keep }, AdmmKeys { penalty, readout_memory: 0.9 }))
    }
    fn open(&self, at: ServerView<'_>) -> Models {
        Models { of: vec![0.0; at.run.clusters * at.run.dimension] }
    }
    fn close(&self, _: &mut Models, _: Now<'_>, aggregates: Vec<f64>) -> Models {
        Models { of: aggregates }
    }
    fn mix(&self, served: &mut Models, now: Now<'_>, shares: &[(u32, &Models)]) {
        served.of.fill(0.0);
        for (id, aggregates) in shares {
            let own = if *id == now.at.id { self.keep * shares.len() as f64 } else { 0.0 };
            axpy(1.0 - self.keep + own, &aggregates.of, &mut served.of);
        }
        scale(1.0 / shares.len() as f64, &mut served.of);
    }
    fn served<'a>(&self, served: &'a Models) -> &'a [f64] {
        &served.of
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::native();
    let summary = "an example: every server keeps a share of its own aggregate";
    registry.add_method(Row::of::<Admm<Neighbours>>("neighbours", summary).connected())?;
    let federation = fedkin::load(&ClusteredRegression::default(), Output::Number, 1)?;
    let simulation = Simulation::new(federation).registry(&registry).learner(Ridge::default());
    let trained = simulation.method::<Admm<Neighbours>>(Keys::default()).run()?;
    println!("NMSD {:.1} dB", trained.metrics()["nmsd_db.served"]);
    let methods = std::sync::Arc::new(registry.methods().clone());
    println!("{} cases of conformance passed", conformance(&methods, "neighbours", &[])?.len());
    let played = faults(&methods, &Schedules { seeds: 0..200, deadline: false, liar: None })?;
    println!("{} schedules of faults passed", played.len());
    Ok(())
}
