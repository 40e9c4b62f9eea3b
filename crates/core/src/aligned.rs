//! Numbers that begin where a vector of the processor does.

use std::ops::{Deref, DerefMut};
use wide::f64x4;

/// A list of numbers at a multiple of 32 bytes. Where a row has whole vectors, loading one never takes two lines of the
/// cache; an allocator alone gives every other list a begin in between.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aligned {
    /// Zeros behind the last number.
    vectors: Box<[f64x4]>,
    length: usize,
}

impl From<Vec<f64>> for Aligned {
    fn from(numbers: Vec<f64>) -> Self {
        let vectors = vec![f64x4::ZERO; numbers.len().div_ceil(4)].into();
        let mut aligned = Self { vectors, length: numbers.len() };
        aligned.copy_from_slice(&numbers);
        aligned
    }
}

impl Deref for Aligned {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &bytemuck::cast_slice(&self.vectors)[..self.length]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut bytemuck::cast_slice_mut(&mut self.vectors)[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_begin_at_a_vector() {
        for length in 0..20 {
            let numbers: Vec<f64> = (0..length).map(f64::from).collect();
            let mut aligned = Aligned::from(numbers.clone());
            assert_eq!(*aligned, numbers);
            assert_eq!(aligned.as_ptr().align_offset(32), 0);
            let before = aligned.clone();
            aligned.iter_mut().for_each(|x| *x += 1.0);
            assert_eq!(aligned == before, length == 0);
        }
    }
}
