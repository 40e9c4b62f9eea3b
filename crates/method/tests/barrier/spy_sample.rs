//! Who was sampled is the gate's secret: the bits that decide cannot be tried from outside.
use fedkin_privacy::SampledSum;

fn spy(sum: &SampledSum, bits: u64) -> bool {
    sum.takes(bits)
}

fn main() {}
