//! A family from outside cannot ask for a certificate: certifying is privacy code's own business.
use fedkin_core::learner::Family;
use fedkin_core::privacy::Bound;

fn lie(family: &dyn Family) -> Result<Bound, String> {
    fedkin_core::privacy::certify::step(family, None)
}

fn main() {}
