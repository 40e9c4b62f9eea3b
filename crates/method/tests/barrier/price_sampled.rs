//! A sum that claims another price than the one its noise and rate have.
use fedkin_privacy::SampledSum;

fn cheaper(sum: SampledSum) -> SampledSum {
    SampledSum { rate: 1e-9, ..sum }
}

fn main() {}
