//! Anderson acceleration of the second kind over all seats of a server at once.
//!
//! ADMM maps a state x to an image g. With f = g - x and the differences of the last rounds as columns of `DF` and `DG`,
//!
//! ```text
//! x <- g - DG t,    t = argmin |f - DF t|
//! ```
//!
//! which is x = g where nothing is remembered. The server has all it takes; the clients see a different centre, no more.

use super::{Central, Seat};
use crate::algorithm::Seats;
use fedkin_numeric::{Cholesky, add_diagonal, combine, distance2, dot};

/// Rounds remembered, where memory allows.
const MEMORY: usize = 10;
/// Numbers that all seats together may remember: a quarter of a gigabyte.
const NUMBERS: usize = 1 << 25;
/// Numbers of a vector that are looked at together: they stay near while all columns pass by.
const BLOCK: usize = 2048;

/// How many rounds a server with so many seats of this length remembers.
fn memory(seats: usize, length: usize) -> usize {
    (NUMBERS / (2 * seats * length).max(1)).min(MEMORY)
}

/// Turns the images in the seats into the states of the next round. `forget` begins anew.
///
/// Columns stand in a ring of `most` places; `server.remembered` were written since it was last emptied. All seats write
/// in step: whoever joins makes the server forget.
pub(super) fn advance(server: &mut Central, seats: &mut Seats<'_, Seat>, there: &[usize], forget: bool) {
    let Some(&first) = there.first() else { return };
    let length = seats.get(first).image.len();
    let most = memory(there.len(), length);
    let mut size = 0.0;
    if forget || most == 0 {
        for &k in there {
            let seat = seats.get_mut(k);
            for memory in [&mut seat.changes, &mut seat.images, &mut seat.last_change, &mut seat.last_image] {
                memory.clear();
            }
            for (state, image) in seat.state.chunks_mut(BLOCK).zip(seat.image.chunks(BLOCK)) {
                size += distance2(image, state);
                state.copy_from_slice(image);
            }
        }
        (server.residual, server.remembered) = (size.sqrt(), 0);
        return;
    }
    let ready = there.iter().all(|&k| seats.get(k).last_change.len() == length);
    let place = server.remembered as usize % most;
    for &k in there {
        size += record(seats.get_mut(k), ready.then_some(place), most);
    }
    server.remembered += u32::from(ready);
    let doubled = size.sqrt() > 2.0 * server.residual;
    server.residual = size.sqrt();
    let kept = most.min(server.remembered as usize);
    let newest = |back: usize| (server.remembered as usize - 1 - back) % most;
    let weights = if doubled || kept == 0 {
        None
    } else {
        weights(&mut server.gram, seats, there, (length, kept), newest)
    };
    // By place, to be taken away.
    let mut factors = vec![0.0; kept];
    for (back, weight) in weights.iter().flatten().enumerate() {
        factors[newest(back)] = -weight;
    }
    for &k in there {
        let seat = seats.get_mut(k);
        if weights.is_some() {
            combine(1.0, &seat.image, &factors, &seat.images[..kept * length], &mut seat.state);
        } else {
            seat.state.copy_from_slice(&seat.image);
            seat.changes.clear();
            seat.images.clear();
        }
    }
    if weights.is_none() {
        server.remembered = 0;
    }
}

/// Notes f and g of this round, and what they differ by from the last at a place of the ring; gives |f|^2.
fn record(seat: &mut Seat, place: Option<usize>, most: usize) -> f64 {
    let length = seat.image.len();
    seat.last_change.resize(length, 0.0);
    seat.last_image.resize(length, 0.0);
    let begin = place.map_or(0, |place| place * length);
    if place.is_some() && seat.changes.len() == begin {
        for columns in [&mut seat.changes, &mut seat.images] {
            columns.reserve_exact(most * length - columns.len());
            columns.resize(begin + length, 0.0);
        }
    }
    let mut size = 0.0;
    for from in (0..length).step_by(BLOCK) {
        let block = from..(from + BLOCK).min(length);
        let (image, state) = (&seat.image[block.clone()], &mut seat.state[block.clone()]);
        let (last_image, last_change) =
            (&mut seat.last_image[block.clone()], &mut seat.last_change[block.clone()]);
        size += distance2(image, state);
        // The state is not needed again.
        for (state, image) in state.iter_mut().zip(image) {
            *state = image - *state;
        }
        if place.is_some() {
            let at = begin + block.start..begin + block.end;
            difference(image, last_image, &mut seat.images[at.clone()]);
            difference(state, last_change, &mut seat.changes[at]);
        }
        last_image.copy_from_slice(image);
        last_change.copy_from_slice(state);
    }
    size
}

fn difference(now: &[f64], before: &[f64], out: &mut [f64]) {
    for ((out, now), before) in out.iter_mut().zip(now).zip(before) {
        *out = now - before;
    }
}

fn column(columns: &[f64], place: usize, length: usize) -> &[f64] {
    &columns[place * length..(place + 1) * length]
}

/// t of the newest `kept` columns, newest first. `gram` holds the products of all columns by their places; those of the
/// newest column are made here.
fn weights(
    gram: &mut Vec<f64>,
    seats: &Seats<'_, Seat>,
    there: &[usize],
    (length, kept): (usize, usize),
    newest: impl Fn(usize) -> usize,
) -> Option<Vec<f64>> {
    gram.resize(MEMORY * MEMORY, 0.0);
    let (mut products, mut right) = (vec![0.0; kept], vec![0.0; kept]);
    for &k in there {
        let seat = seats.get(k);
        let (last, change) = (column(&seat.changes, newest(0), length), &seat.last_change);
        for begin in (0..length).step_by(BLOCK) {
            let block = begin..(begin + BLOCK).min(length);
            for back in 0..kept {
                let other = &column(&seat.changes, newest(back), length)[block.clone()];
                products[back] += dot(other, &last[block.clone()]);
                right[back] += dot(other, &change[block.clone()]);
            }
        }
    }
    for (back, product) in products.iter().enumerate() {
        let (i, j) = (newest(0), newest(back));
        (gram[i * MEMORY + j], gram[j * MEMORY + i]) = (*product, *product);
    }
    let entry = |i: usize, j: usize| gram[newest(i) * MEMORY + newest(j)];
    let trace: f64 = (0..kept).map(|i| entry(i, i)).sum();
    if !(trace > 0.0 && trace.is_finite()) {
        return None;
    }
    let mut lower = Vec::with_capacity(kept * (kept + 1) / 2);
    for i in 0..kept {
        lower.extend((0..=i).map(|j| entry(i, j)));
    }
    add_diagonal(&mut lower, kept, 1e-10 * trace);
    Cholesky::factor(lower, kept)?.solve(&mut right);
    right.iter().all(|weight| weight.is_finite()).then_some(right)
}
