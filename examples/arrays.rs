//! Personal models from arrays: twelve wards at two sites, two kinds of patients, learnt together with PGFL.
#![allow(clippy::print_stdout)]

use fedkin::learner::Ridge;
use fedkin::method::{Pgfl, PgflSettings};
use fedkin::{Error, Federation, Simulation};

fn main() -> Result<(), Error> {
    let mut federation = Federation::builder().edge("north", "south");
    for ward in 0..12_u8 {
        let (site, kind) = (if ward < 6 { "north" } else { "south" }, ward % 2);
        let ages: Vec<f64> = (0..8).map(|patient| f64::from((patient * 7 + ward) % 11) / 5.0).collect();
        let doses = ages.iter().map(|age| (f64::from(kind) + 1.0) * age).collect();
        let name = format!("ward-{ward:02}");
        federation = federation.client(name, 1, ages, doses).server(site).cluster(format!("kind-{kind}"));
    }
    let trained = Simulation::new(federation.build()?)
        .method::<Pgfl>(PgflSettings::default())
        .learner(Ridge::default())
        .run()?;
    for client in trained.clients() {
        let dose = client.predict(&[1.5])?[0];
        println!(
            "{} at {}: slope {:.3}, dose at 1.5: {dose:.2}",
            client.name(),
            client.server(),
            client.model()[0]
        );
    }
    Ok(())
}
