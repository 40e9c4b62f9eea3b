//! An own denoiser in FedPnP: every client's model is pulled halfway to that of its strongest neighbour.
#![allow(clippy::print_stdout)]

use fedkin::denoise::{Base, DenoiseError, Denoiser, DenoiserRow, Operator, Prepared, Strength, Way};
use fedkin::learner::{Output, Ridge};
use fedkin::method::{Batches, FedPnp, FedPnpSettings};
use fedkin::{Registry, Simulation, data::sources::ClusteredRegression};

#[derive(Debug)]
struct Strongest;

impl Denoiser for Strongest {
    fn sized(&self) -> bool {
        false
    }
    fn base(&self, _: usize, _: Way) -> Base {
        Base::Edges
    }
    fn operator(&self, on: &Prepared, _: &Strength) -> Result<Operator, DenoiseError> {
        let halfway = |client: usize| {
            let strongest = on.graph().neighbours(client).max_by(|a, b| a.1.total_cmp(&b.1));
            vec![(client as u32, 0.5), (strongest.map_or(client, |(other, _)| other) as u32, 0.5)]
        };
        Operator::of_lists(&(0..on.clients()).map(halfway).collect::<Vec<_>>())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::native();
    let summary = "an example: halfway to the strongest neighbour";
    registry.add_denoiser(DenoiserRow { name: "strongest", summary, keys: &[], denoiser: &Strongest })?;
    let law = ClusteredRegression { dimension: 5, ..ClusteredRegression::default() };
    let federation = fedkin::load(&law, Output::Number, 3)?;
    let batches = Batches { learning_rate: 0.03, ..Batches::default() };
    let settings = FedPnpSettings { filter: "strongest".into(), batches, ..FedPnpSettings::default() };
    let simulation = Simulation::new(federation).registry(&registry).learner(Ridge::default()).rounds(30);
    println!("NMSD {:.2} dB", simulation.method::<FedPnp>(settings).run()?.metrics()["nmsd_db.psi"]);
    Ok(())
}
