//! The type barrier.

use std::marker::PhantomData;

/// A value that passed the gate: released by a mechanism and charged, or disclosed and written down.
///
/// Reading one is harmless, making one is not. There is no public constructor, no `From`, no `Default`,
/// no mutable access, no decoding, and no way to apply a function to it: what a server gets is made of it by
/// the `finish` of a method, which sees neither the method nor the client.
/// Values that passed the same gate can be put side by side.
///
/// `'g` is the gate it passed. It can be made neither longer nor shorter, so that a value of one client and step is not
/// the answer of another.
///
/// ```compile_fail
/// // A private number is not a released one.
/// use fedkin_privacy::Released;
/// fn launder<'g>(released: Released<'g, f64>, private: f64) -> Released<'g, (f64, f64)> {
///     released.zip(private)
/// }
/// ```
///
/// The same with what was released compiles:
///
/// ```
/// use fedkin_privacy::Released;
/// fn both<'g>(released: Released<'g, f64>, more: Released<'g, f64>) -> Released<'g, (f64, f64)> {
///     released.zip(more)
/// }
/// ```
#[derive(Debug)]
pub struct Released<'g, T> {
    value: T,
    gate: Brand<'g>,
}

/// One gate among all gates: a lifetime that stands for itself alone.
pub(super) type Brand<'g> = PhantomData<fn(&'g ()) -> &'g ()>;

impl<'g, T> Released<'g, T> {
    pub(super) fn new(value: T, gate: Brand<'g>) -> Self {
        Self { value, gate }
    }

    /// Two released values as one.
    pub fn zip<U>(self, other: Released<'g, U>) -> Released<'g, (T, U)> {
        Released { value: (self.value, other.value), gate: self.gate }
    }

    /// A look at the value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The value. What leaves the barrier cannot come back in.
    pub fn into_inner(self) -> T {
        self.value
    }
}
