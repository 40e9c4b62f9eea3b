//! A mechanism of one's own could name any price: the trait is sealed.
use fedkin_privacy::{Cost, Mechanism, Refusal, Trust, PrivateRng};

struct Free;

impl Mechanism for Free {
    type Value = Vec<f64>;
    fn name(&self) -> &'static str {
        "free"
    }
    fn cost(&self) -> Cost {
        Cost::default()
    }
    fn sigma(&self) -> f64 {
        0.0
    }
    fn trust(&self) -> Trust {
        Trust::Enforced
    }
    fn private(&self) -> bool {
        true
    }
    fn size(value: &Vec<f64>) -> usize {
        value.len()
    }
    fn apply(&self, _: &mut Vec<f64>, _: &mut PrivateRng) -> Result<(), Refusal> {
        Ok(())
    }
}

fn main() {}
