//! All seats of a server, with a note of which were changed.

/// The seats of a server by position. Changed ones are noted: a durable record holds only those.
#[derive(Debug)]
pub struct Seats<'a, T> {
    seats: &'a mut [T],
    touched: &'a mut Vec<u32>,
}

impl<'a, T> Seats<'a, T> {
    pub(crate) fn new(seats: &'a mut [T], touched: &'a mut Vec<u32>) -> Self {
        Self { seats, touched }
    }

    /// Number of seats.
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// Whether the server has no client.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Reads a seat.
    pub fn get(&self, position: usize) -> &T {
        &self.seats[position]
    }

    /// Changes a seat.
    pub fn get_mut(&mut self, position: usize) -> &mut T {
        self.touched.push(position as u32);
        &mut self.seats[position]
    }

    /// Reads all seats in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.seats.iter()
    }
}
