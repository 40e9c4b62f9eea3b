//! Nor can a genuine one be changed.
use fedkin_privacy::Gaussian;

fn free(mut gaussian: Gaussian) -> Gaussian {
    gaussian.sigma = 0.0;
    gaussian
}

fn main() {}
