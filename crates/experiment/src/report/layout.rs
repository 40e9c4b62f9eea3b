//! Where to draw the servers of a graph: springs along the edges, repulsion between all.
//!
//! Fruchterman and Reingold's scheme, started from a spiral instead of random places, so that the
//! same graph always gives the same picture.

/// Up to this many servers several layouts are tried.
const FEW: usize = 60;
const STARTS: usize = 24;

/// Positions in arbitrary units; edges must be within range.
///
/// Springs settle in one of many rests. Small graphs are laid out from several starts and the most
/// readable rest is kept.
pub(super) fn springs(count: usize, edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
    if count > FEW {
        return settled(count, edges, 0);
    }
    (0..STARTS)
        .map(|start| settled(count, edges, start))
        .map(|places| (confusion(&places, edges), places))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(Vec::new, |(_, places)| places)
}

/// How hard a layout is to read: crossings count once; a link that runs behind a server it does not
/// reach counts for many, because it shows a link that is not there.
fn confusion(places: &[(f64, f64)], edges: &[(usize, usize)]) -> f64 {
    let wide = places.iter().map(|place| place.0.abs()).fold(0.0, f64::max);
    let near = 0.16 * wide;
    let mut sum = 0.0;
    for (index, &(a, b)) in edges.iter().enumerate() {
        for (server, place) in places.iter().enumerate() {
            if server != a && server != b {
                let gap = distance(*place, places[a], places[b]);
                sum += 10.0 * (1.0 - gap / near).max(0.0);
            }
        }
        for &(c, d) in &edges[..index] {
            let apart = a != c && a != d && b != c && b != d;
            if apart && cross(places[a], places[b], places[c], places[d]) {
                sum += 1.0;
            }
        }
    }
    sum
}

/// From a point to a line between two points.
fn distance(point: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let along = ((point.0 - from.0) * dx + (point.1 - from.1) * dy) / (dx * dx + dy * dy).max(1e-12);
    let along = along.clamp(0.0, 1.0);
    (point.0 - from.0 - along * dx).hypot(point.1 - from.1 - along * dy)
}

fn cross(a: (f64, f64), b: (f64, f64), c: (f64, f64), d: (f64, f64)) -> bool {
    let side = |p: (f64, f64), q: (f64, f64), r: (f64, f64)| {
        (q.0 - p.0) * (r.1 - p.1) - (q.1 - p.1) * (r.0 - p.0) > 0.0
    };
    side(a, b, c) != side(a, b, d) && side(c, d, a) != side(c, d, b)
}

/// One rest; `start` shuffles who begins where on the spiral.
fn settled(count: usize, edges: &[(usize, usize)], start: usize) -> Vec<(f64, f64)> {
    let golden = std::f64::consts::PI * (3.0 - 5.0_f64.sqrt());
    let mut places: Vec<(f64, f64)> = (0..count)
        .map(|index| {
            let radius = ((index as f64 + 0.5) / count as f64).sqrt();
            let angle = golden * index as f64 * (1.0 + 0.37 * start as f64);
            (radius * angle.cos(), radius * angle.sin())
        })
        .collect();
    if count < 2 {
        return places;
    }
    // The work is rounds times the square of the count: bounded to about a second for the largest.
    let rounds = if count <= 200 { 400 } else { 100 };
    let ideal = (3.0 / count as f64).sqrt();
    for round in 0..rounds {
        let heat = 0.15 * (1.0 - f64::from(round) / f64::from(rounds)) + 1e-3;
        let mut force = vec![(0.0, 0.0); count];
        for a in 0..count {
            for b in a + 1..count {
                let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
                let push = ideal * ideal / (dx * dx + dy * dy).max(1e-6);
                add(&mut force, a, (dx * push, dy * push));
                add(&mut force, b, (-dx * push, -dy * push));
            }
        }
        for &(a, b) in edges {
            let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
            let pull = dx.hypot(dy) / ideal;
            add(&mut force, a, (-dx * pull, -dy * pull));
            add(&mut force, b, (dx * pull, dy * pull));
        }
        for (place, force) in places.iter_mut().zip(force) {
            // A weak pull to the middle keeps unconnected parts from drifting off.
            let force = (force.0 - 0.3 * place.0, force.1 - 0.3 * place.1);
            let length = force.0.hypot(force.1);
            if length > 0.0 && length.is_finite() {
                let step = length.min(heat) / length;
                place.0 += force.0 * step;
                place.1 += force.1 * step;
            }
        }
    }
    lengthwise(places)
}

fn add(force: &mut [(f64, f64)], index: usize, by: (f64, f64)) {
    force[index].0 += by.0;
    force[index].1 += by.1;
}

/// Turns a layout so that its longest direction is horizontal, as the page is.
fn lengthwise(mut places: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let count = places.len() as f64;
    let mean_x = places.iter().map(|place| place.0).sum::<f64>() / count;
    let mean_y = places.iter().map(|place| place.1).sum::<f64>() / count;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for place in &mut places {
        place.0 -= mean_x;
        place.1 -= mean_y;
        xx += place.0 * place.0;
        xy += place.0 * place.1;
        yy += place.1 * place.1;
    }
    let (sin, cos) = (0.5 * (2.0 * xy).atan2(xx - yy)).sin_cos();
    places.into_iter().map(|(x, y)| (x * cos + y * sin, y * cos - x * sin)).collect()
}

/// Fits places into a box, stretching one direction against the other by at most a half.
pub(super) fn fitted(
    places: &[(f64, f64)],
    (left, top): (f64, f64),
    (width, height): (f64, f64),
) -> Vec<(f64, f64)> {
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (x_low, x_high) = range(&mut places.iter().map(|place| place.0));
    let (y_low, y_high) = range(&mut places.iter().map(|place| place.1));
    let factor = |low: f64, high: f64, room: f64| {
        if high - low > 1e-9 { room / (high - low) } else { f64::INFINITY }
    };
    let (mut fx, mut fy) = (factor(x_low, x_high, width), factor(y_low, y_high, height));
    let least = fx.min(fy);
    fx = fx.min(1.5 * least);
    fy = fy.min(1.5 * least);
    let middle = (left + width / 2.0, top + height / 2.0);
    let along = |value: f64, low: f64, high: f64, factor: f64| {
        if factor.is_finite() && value.is_finite() {
            (value - f64::midpoint(low, high)) * factor
        } else {
            0.0
        }
    };
    places
        .iter()
        .map(|(x, y)| (middle.0 + along(*x, x_low, x_high, fx), middle.1 + along(*y, y_low, y_high, fy)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_graph_gives_the_same_picture_and_no_two_servers_meet() {
        let edges: Vec<(usize, usize)> = (0..10).map(|i| (i, (i + 1) % 10)).collect();
        let places = springs(10, &edges);
        assert_eq!(places, springs(10, &edges));
        for a in 0..10 {
            for b in 0..a {
                assert!((places[a].0 - places[b].0).hypot(places[a].1 - places[b].1) > 0.1);
            }
        }
    }

    #[test]
    fn everything_lands_in_the_box() {
        for places in [vec![], vec![(3.0, 3.0)], vec![(0.0, 1.0), (5.0, 1.0)], springs(30, &[])] {
            for (x, y) in fitted(&places, (10.0, 20.0), (100.0, 50.0)) {
                assert!((9.999..=110.001).contains(&x) && (19.999..=70.001).contains(&y));
            }
        }
    }
}
