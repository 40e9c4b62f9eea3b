//! Buffers of one thread, lent to one client after the other.

use std::any::Any;

/// Memory that a client computes in, so that nothing is allocated per client. What it holds is whatever an earlier client
/// of the same thread left: write before reading, and keep nothing here that a result depends on.
#[derive(Default)]
pub struct Buffers {
    /// Plain numbers, which is what most need.
    pub work: Vec<f64>,
    /// One value of each type that was asked for.
    typed: Vec<Box<dyn Any + Send>>,
}

impl Buffers {
    /// The buffers of this type: what was left in them, or the default where they are asked for the first time.
    pub fn of<T: Default + Send + 'static>(&mut self) -> &mut T {
        let place = self.typed.iter().position(|one| one.is::<T>()).unwrap_or(self.typed.len());
        if place == self.typed.len() {
            self.typed.push(Box::new(T::default()));
        }
        match self.typed[place].downcast_mut() {
            Some(buffers) => buffers,
            None => unreachable!("the buffers at this place are of the type that was looked for"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_own_buffers_and_keeps_them() {
        #[derive(Default)]
        struct Own(Vec<u32>);
        let mut buffers = Buffers::default();
        buffers.of::<Own>().0.push(7);
        buffers.of::<Vec<f32>>().resize(3, 1.0);
        buffers.work.push(0.5);
        assert_eq!(buffers.of::<Own>().0, [7]);
        assert_eq!(buffers.of::<Vec<f32>>().len(), 3);
        assert_eq!((buffers.typed.len(), buffers.work.len()), (2, 1));
    }
}
