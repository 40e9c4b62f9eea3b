//! The type barrier.

use crate::algorithm::Algorithm;
use crate::round::Ask;

/// A value that passed the gate: released by a mechanism and charged, or disclosed and written down.
///
/// Reading one is harmless, making one is not. There is no public constructor, no `From`, no `Default`,
/// no mutable access and no decoding. Post-processing takes a function pointer, which cannot capture
/// private data, and the ask, which only the round machine makes.
///
/// ```compile_fail
/// // A closure that captures private data is not a function pointer.
/// use fedkin_core::{algorithm::Algorithm, privacy::Released, round::Ask};
/// fn launder<A: Algorithm>(r: Released<f64>, ask: &Ask<'_, A>, private: f64) -> Released<f64> {
///     r.post(ask, |x, _| x + private)
/// }
/// ```
///
/// The same without the capture compiles:
///
/// ```
/// use fedkin_core::{algorithm::Algorithm, privacy::Released, round::Ask};
/// fn halve<A: Algorithm>(r: Released<f64>, ask: &Ask<'_, A>) -> Released<f64> {
///     r.post(ask, |x, _| x / 2.0)
/// }
/// ```
#[derive(Debug)]
pub struct Released<T>(T);

impl<T> Released<T> {
    pub(in crate::privacy) fn new(value: T) -> Self {
        Self(value)
    }

    /// Two released values as one.
    pub fn zip<U>(self, other: Released<U>) -> Released<(T, U)> {
        Released((self.0, other.0))
    }

    /// A function of a released value and of what the server already knows.
    pub fn post<A: Algorithm, U>(self, with: &Ask<'_, A>, f: fn(T, &Ask<'_, A>) -> U) -> Released<U> {
        Released(f(self.0, with))
    }

    /// A look at the value.
    pub fn value(&self) -> &T {
        &self.0
    }

    /// The value. What leaves the barrier cannot come back in.
    pub fn into_inner(self) -> T {
        self.0
    }
}
