//! Nor does what a learner gives count as released.
use fedkin_core::buffers::Buffers;
use fedkin_core::learner::Learner;
use fedkin_core::privacy::{Refusal, Released};

fn answer<'g>(learner: &dyn Learner) -> Result<Released<'g, Vec<f64>>, Refusal> {
    Ok(learner.minimise(&mut Buffers::default())?)
}

fn main() {}
