//! A digest of how this machine computes.

use crate::codec::{Codec, Digest};
use crate::rng::{PublicRng, Random};
use crate::{Cholesky, axpy, combine, distance2, dot, exp, gram_of_rows, ln};
use std::sync::LazyLock;

/// The digest of a fixed computation through every kernel that results rest on. Two machines with the same digest
/// give the same bits; it is compared when nodes meet.
pub fn numeric() -> [u8; 32] {
    static FINGERPRINT: LazyLock<[u8; 32]> = LazyLock::new(compute);
    *FINGERPRINT
}

fn compute() -> [u8; 32] {
    let mut digest = Digest::default();
    let mut rng = PublicRng::named(0, "numeric fingerprint", 0, 0);
    for length in [1, 3, 7, 8, 60, 61, 513, 900] {
        let a: Vec<f64> = (0..length).map(|_| rng.normal()).collect();
        let b: Vec<f64> = (0..length).map(|_| rng.between(-3.0, 3.0)).collect();
        let mut sum = b.clone();
        axpy(0.3, &a, &mut sum);
        let elementary: Vec<f64> = a.iter().map(|x| exp(*x) + ln(1.0 + x * x) + (x * x).sqrt()).collect();
        vec![dot(&a, &b), distance2(&a, &b)].put(&mut digest);
        sum.put(&mut digest);
        elementary.put(&mut digest);
    }
    for (rows, columns) in [(5, 60), (17, 9), (40, 40)] {
        let x: Vec<f64> = (0..rows * columns).map(|_| rng.normal()).collect();
        let mut gram = gram_of_rows(&x, rows, columns);
        for i in 0..rows {
            gram[i * (i + 1) / 2 + i] += 1.0;
        }
        let mut solution: Vec<f64> = (0..rows).map(|_| rng.normal()).collect();
        if let Some(factor) = Cholesky::factor(gram, rows) {
            factor.solve(&mut solution);
        }
        let mut out = vec![0.0; columns];
        combine(0.5, &x[..columns], &solution, &x, &mut out);
        solution.put(&mut digest);
        out.put(&mut digest);
    }
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The convex methods promise the same bits on every machine: so is this digest.
    #[test]
    fn the_fingerprint_is_the_same_everywhere() {
        assert_eq!(hex::encode(&numeric()[..8]), "add1624f6238cbea");
    }
}
