//! Where to draw the nodes of a weighted graph.
//!
//! Every connected part is laid out by stress majorization (Gansner, Koren and North): the drawn
//! distance of two nodes follows the length of the shortest path between them, where a heavy edge
//! is short and so is one inside a dense group. It starts from classical scaling, so a ring opens
//! into a ring instead of folding. The parts are then packed side by side at one scale.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fedkin_numeric::rng::{PublicRng, Random};

/// An edge: two nodes and a positive weight.
pub(super) type Link = (usize, usize, f64);

/// Beyond this many nodes distances between all pairs cost too much; a spiral says as much.
const LARGEST: usize = 2000;
/// More edges than this per layout change no picture.
const STRONGEST: usize = 10_000;
/// How much longer the longest edge is than the typical one, and the shortest shorter.
const STRETCH: f64 = 3.0;

/// Positions in the unit square, filling it in one direction at least; links must be within range.
pub(super) fn layout(count: usize, links: &[Link]) -> Vec<[f64; 2]> {
    if count > LARGEST {
        return unit(&(0..count).map(spiral).collect::<Vec<_>>());
    }
    let links = strongest(links, STRONGEST);
    let near = neighbours(count, &links);
    let mut parts: Vec<Part> = components(&near).into_iter().map(|nodes| part(&nodes, &near)).collect();
    // Large parts first: the small ones fill the rows below.
    parts.sort_by(|a, b| b.nodes.len().cmp(&a.nodes.len()).then(a.nodes[0].cmp(&b.nodes[0])));
    unit(&packed(count, &parts))
}

/// The heaviest links, in their given order.
pub(super) fn strongest(links: &[Link], most: usize) -> Vec<Link> {
    if links.len() <= most {
        return links.to_vec();
    }
    let mut order: Vec<usize> = (0..links.len()).collect();
    order.sort_by(|a, b| links[*b].2.total_cmp(&links[*a].2).then(a.cmp(b)));
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|index| links[index]).collect()
}

/// Points spread evenly over a disc, whatever their number.
fn spiral(index: usize) -> [f64; 2] {
    let golden = std::f64::consts::PI * (3.0 - 5.0_f64.sqrt());
    let (sin, cos) = (golden * index as f64).sin_cos();
    let radius = (index as f64 + 0.5).sqrt();
    [radius * cos, radius * sin]
}

/// Per node: neighbour and length of the edge, ascending by neighbour.
fn neighbours(count: usize, links: &[Link]) -> Vec<Vec<(usize, f64)>> {
    let mut weights: Vec<f64> = links.iter().map(|link| link.2).collect();
    weights.sort_by(f64::total_cmp);
    let typical = weights.get(weights.len() / 2).copied().unwrap_or(1.0);
    let mut near: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count];
    for &(a, b, weight) in links {
        near[a].push((b, weight));
        near[b].push((a, weight));
    }
    for list in &mut near {
        list.sort_by_key(|entry| entry.0);
    }
    near.iter()
        .enumerate()
        .map(|(node, list)| {
            list.iter()
                .map(|&(other, weight)| {
                    let base = (typical / weight).sqrt().clamp(1.0 / STRETCH, STRETCH);
                    // An edge between two groups shares few neighbours: drawn longer, the groups part.
                    (other, base * (1.0 + 1.5 * (1.0 - shared(&near[node], &near[other]))))
                })
                .collect()
        })
        .collect()
}

/// Which part of the neighbours of two linked nodes they have in common, each counted as its own.
fn shared(a: &[(usize, f64)], b: &[(usize, f64)]) -> f64 {
    let (mut i, mut j, mut both) = (0, 0, 0_usize);
    while i < a.len() && j < b.len() {
        match a[i].0.cmp(&b[j].0) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                both += 1;
                i += 1;
                j += 1;
            }
        }
    }
    (both + 2) as f64 / (a.len() + b.len() - both).max(1) as f64
}

fn components(near: &[Vec<(usize, f64)>]) -> Vec<Vec<usize>> {
    let mut seen = vec![false; near.len()];
    let mut parts = Vec::new();
    for first in 0..near.len() {
        if seen[first] {
            continue;
        }
        seen[first] = true;
        let mut nodes = vec![first];
        let mut next = 0;
        while let Some(&node) = nodes.get(next) {
            next += 1;
            for &(other, _) in &near[node] {
                if !seen[other] {
                    seen[other] = true;
                    nodes.push(other);
                }
            }
        }
        nodes.sort_unstable();
        parts.push(nodes);
    }
    parts
}

/// A connected part at its own scale, centred on nothing in particular.
struct Part {
    nodes: Vec<usize>,
    places: Vec<[f64; 2]>,
}

fn part(nodes: &[usize], near: &[Vec<(usize, f64)>]) -> Part {
    let places = match nodes.len() {
        1 => vec![[0.0, 0.0]],
        2 => vec![[0.0, 0.0], [1.0, 0.0]],
        count => {
            let wanted = distances(nodes, near);
            let mut places = scaling(&wanted, count);
            stress(&mut places, &wanted, if count <= 300 { 200 } else { 60 });
            even(&mut places);
            lengthwise(&mut places);
            places
        }
    };
    Part { nodes: nodes.to_vec(), places }
}

/// Shortest paths between all nodes of a part, row by row.
fn distances(nodes: &[usize], near: &[Vec<(usize, f64)>]) -> Vec<f64> {
    let count = nodes.len();
    let mut inside = vec![usize::MAX; near.len()];
    for (index, node) in nodes.iter().enumerate() {
        inside[*node] = index;
    }
    let mut all = vec![f64::INFINITY; count * count];
    for (source, row) in all.chunks_mut(count).enumerate() {
        row[source] = 0.0;
        // Lengths are positive and finite, so their bits sort as they do.
        let mut open = BinaryHeap::from([Reverse((0_u64, source))]);
        while let Some(Reverse((bits, node))) = open.pop() {
            let so_far = f64::from_bits(bits);
            if so_far > row[node] {
                continue;
            }
            for &(other, length) in &near[nodes[node]] {
                let (other, reached) = (inside[other], so_far + length);
                if reached < row[other] {
                    row[other] = reached;
                    open.push(Reverse((reached.to_bits(), other)));
                }
            }
        }
    }
    all
}

/// Classical scaling: the two leading eigenvectors of the doubly centred squared distances.
fn scaling(wanted: &[f64], count: usize) -> Vec<[f64; 2]> {
    let squares: Vec<f64> = wanted.iter().map(|d| -0.5 * d * d).collect();
    let means: Vec<f64> = squares.chunks(count).map(|row| row.iter().sum::<f64>() / count as f64).collect();
    let grand = means.iter().sum::<f64>() / count as f64;
    let product = |vector: &[f64]| -> Vec<f64> {
        squares
            .chunks(count)
            .zip(&means)
            .map(|(row, mean)| {
                row.iter().zip(&means).zip(vector).map(|((s, other), v)| (s - mean - other + grand) * v).sum()
            })
            .collect()
    };
    let mut rng = PublicRng::named(0, "graph layout", 0, count as u32);
    let mut found: Vec<Vec<f64>> = Vec::new();
    for _ in 0..2 {
        let mut vector: Vec<f64> = (0..count).map(|_| rng.between(-1.0, 1.0)).collect();
        let mut size = 0.0;
        for _ in 0..60 {
            for earlier in &found {
                let along = dot(&vector, earlier) / dot(earlier, earlier).max(1e-300);
                for (v, e) in vector.iter_mut().zip(earlier) {
                    *v -= along * e;
                }
            }
            let length = dot(&vector, &vector).sqrt();
            if length < 1e-12 {
                break;
            }
            for v in &mut vector {
                *v /= length;
            }
            let next = product(&vector);
            size = dot(&next, &next).sqrt();
            vector = next;
        }
        // After the last product the length is the eigenvalue; coordinates want its root.
        let shrink = if size > 1e-12 { 1.0 / size.sqrt() } else { 0.0 };
        for v in &mut vector {
            *v *= shrink;
        }
        found.push(vector);
    }
    // Nodes of the same distances to all others would start, and stay, in one place.
    (0..count).map(|i| [0, 1].map(|axis| found[axis][i] + rng.between(-0.05, 0.05))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Moves every node in turn to where its distances to the others would have it, near ones counting most.
fn stress(places: &mut [[f64; 2]], wanted: &[f64], rounds: usize) {
    let count = places.len();
    for _ in 0..rounds {
        let mut moved: f64 = 0.0;
        for node in 0..count {
            let [x, y] = places[node];
            let (mut sum, mut weights) = ([0.0, 0.0], 0.0);
            for (other, distance) in wanted[node * count..(node + 1) * count].iter().enumerate() {
                if other == node || !distance.is_finite() {
                    continue;
                }
                let [ox, oy] = places[other];
                let (dx, dy) = (x - ox, y - oy);
                let factor = distance / dx.hypot(dy).max(1e-9);
                let weight = 1.0 / (distance * distance);
                sum[0] += weight * (ox + dx * factor);
                sum[1] += weight * (oy + dy * factor);
                weights += weight;
            }
            if weights > 0.0 {
                places[node] = [sum[0] / weights, sum[1] / weights];
                moved = moved.max((places[node][0] - x).hypot(places[node][1] - y));
            }
        }
        if moved < 1e-3 {
            break;
        }
    }
}

/// Scales a part so that a typical node is one unit from its nearest: parts then have one density.
fn even(places: &mut [[f64; 2]]) {
    let mut gaps: Vec<f64> = (0..places.len())
        .map(|a| {
            (0..places.len())
                .filter(|b| *b != a)
                .map(|b| (places[a][0] - places[b][0]).hypot(places[a][1] - places[b][1]))
                .fold(f64::INFINITY, f64::min)
        })
        .collect();
    gaps.sort_by(f64::total_cmp);
    let typical = gaps.get(gaps.len() / 2).copied().unwrap_or(1.0).max(1e-9);
    for place in places.iter_mut() {
        *place = place.map(|v| v / typical);
    }
    // Loosens knots; more than the typical gap would buckle a ring.
    separate(places, 0.9, 200);
}

/// Pushes nodes apart until no two are nearer than `gap`, or the rounds are used up.
pub(super) fn separate(places: &mut [[f64; 2]], gap: f64, rounds: usize) {
    fan_out(places, gap);
    for _ in 0..rounds {
        let mut touched = false;
        for a in 0..places.len() {
            for b in 0..a {
                let (dx, dy) = (places[a][0] - places[b][0], places[a][1] - places[b][1]);
                if dx.abs() >= gap || dy.abs() >= gap {
                    continue;
                }
                let distance = dx.hypot(dy);
                // A hair less than wanted is enough: else rounding alone would keep this going.
                if distance >= gap * 0.999 {
                    continue;
                }
                touched = true;
                let length = distance.max(1e-9 * gap);
                let [ux, uy] = [dx / length, dy / length];
                let step = 0.5 * (gap - distance);
                places[a] = [places[a][0] + ux * step, places[a][1] + uy * step];
                places[b] = [places[b][0] - ux * step, places[b][1] - uy * step];
            }
        }
        if !touched {
            return;
        }
    }
}

/// Spreads nodes that share one place over a small disc around it: pushing would have no direction.
fn fan_out(places: &mut [[f64; 2]], gap: f64) {
    let given = places.to_vec();
    let mut order: Vec<usize> = (0..given.len()).collect();
    let cell = |node: usize| given[node].map(|v| (v / (0.01 * gap)).round());
    order.sort_by(|a, b| {
        let (one, other) = (cell(*a), cell(*b));
        one[0].total_cmp(&other[0]).then(one[1].total_cmp(&other[1])).then(a.cmp(b))
    });
    for group in order.chunk_by(|a, b| cell(*a) == cell(*b)).filter(|group| group.len() > 1) {
        for (index, node) in group.iter().enumerate() {
            let [dx, dy] = spiral(index);
            places[*node] = [places[*node][0] + 0.5 * gap * dx, places[*node][1] + 0.5 * gap * dy];
        }
    }
}

/// Turns a part so that its longest direction is horizontal, as the page is.
fn lengthwise(places: &mut [[f64; 2]]) {
    let count = places.len() as f64;
    let mean = [0, 1].map(|axis| places.iter().map(|place| place[axis]).sum::<f64>() / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for place in places.iter_mut() {
        *place = [place[0] - mean[0], place[1] - mean[1]];
        xx += place[0] * place[0];
        xy += place[0] * place[1];
        yy += place[1] * place[1];
    }
    let (sin, cos) = (0.5 * (2.0 * xy).atan2(xx - yy)).sin_cos();
    for place in places.iter_mut() {
        *place = [place[0] * cos + place[1] * sin, place[1] * cos - place[0] * sin];
    }
}

/// Lowest and highest value along both axes.
pub(super) fn bounds(places: &[[f64; 2]]) -> [(f64, f64); 2] {
    [0, 1].map(|axis| {
        places
            .iter()
            .map(|place| place[axis])
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    })
}

/// Parts in rows of about the same length, like words on a page.
fn packed(count: usize, parts: &[Part]) -> Vec<[f64; 2]> {
    let gap = 1.2;
    let sizes: Vec<[(f64, f64); 2]> = parts.iter().map(|part| bounds(&part.places)).collect();
    let extent = |(low, high): (f64, f64)| high - low;
    let area: f64 = sizes.iter().map(|[x, y]| (extent(*x) + gap) * (extent(*y) + gap)).sum();
    let widest = sizes.iter().map(|[x, _]| extent(*x) + gap).fold(0.0, f64::max);
    let row = widest.max(1.1 * area.sqrt()) + 1e-9;
    let mut all = vec![[0.0, 0.0]; count];
    let (mut x, mut y, mut tall) = (0.0, 0.0, 0.0);
    for (part, [horizontal, vertical]) in parts.iter().zip(&sizes) {
        let (width, height) = (extent(*horizontal) + gap, extent(*vertical) + gap);
        if x > 0.0 && x + width > row {
            (x, y, tall) = (0.0, y + tall, 0.0);
        }
        for (node, place) in part.nodes.iter().zip(&part.places) {
            all[*node] = [x + place[0] - horizontal.0, y + place[1] - vertical.0];
        }
        x += width;
        tall = f64::max(tall, height);
    }
    all
}

/// Fits places into the unit square without stretching either direction, centred.
pub(super) fn unit(places: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let [x, y] = bounds(places);
    let largest = (x.1 - x.0).max(y.1 - y.0);
    let shrink = if largest > 1e-12 && largest.is_finite() { 1.0 / largest } else { 0.0 };
    let along = |value: f64, (low, high): (f64, f64)| {
        if value.is_finite() { 0.5 + (value - f64::midpoint(low, high)) * shrink } else { 0.5 }
    };
    places.iter().map(|place| [along(place[0], x), along(place[1], y)]).collect()
}

/// Fits places into a sheet with a margin on every side, centred; one direction is stretched against the other by at
/// most the factor `stretch`. What has no place goes to the middle.
pub(super) fn fitted(
    places: &[[f64; 2]],
    margin: (f64, f64),
    (across, height): (f64, f64),
    stretch: f64,
) -> Vec<[f64; 2]> {
    let room = [across - 2.0 * margin.0, height - 2.0 * margin.1];
    let bounds = bounds(places);
    let factor = |axis: usize| {
        let extent = bounds[axis].1 - bounds[axis].0;
        if extent > 1e-9 { room[axis] / extent } else { f64::INFINITY }
    };
    let least = factor(0).min(factor(1));
    let factors = [0, 1].map(|axis| if least.is_finite() { factor(axis).min(stretch * least) } else { 0.0 });
    let middle = [across / 2.0, height / 2.0];
    places
        .iter()
        .map(|place| {
            [0, 1].map(|axis| {
                let off = place[axis] - f64::midpoint(bounds[axis].0, bounds[axis].1);
                middle[axis] + if off.is_finite() { off * factors[axis] } else { 0.0 }
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(count: usize) -> Vec<Link> {
        (0..count).map(|i| (i, (i + 1) % count, 1.0)).collect()
    }

    fn apart(places: &[[f64; 2]], a: usize, b: usize) -> f64 {
        (places[a][0] - places[b][0]).hypot(places[a][1] - places[b][1])
    }

    fn nearest(places: &[[f64; 2]]) -> f64 {
        let pairs = (0..places.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.map(|(a, b)| apart(places, a, b)).fold(f64::INFINITY, f64::min)
    }

    /// Two groups of `half` nodes, dense inside, a few light edges across.
    fn groups(half: usize) -> Vec<Link> {
        let mut rng = PublicRng::named(4, "two groups", 0, 0);
        let mut links = Vec::new();
        for a in 0..2 * half {
            for b in 0..a {
                let same = (a < half) == (b < half);
                if rng.uniform() < if same { 0.5 } else { 0.06 } {
                    links.push((b, a, 1.0));
                }
            }
        }
        links
    }

    #[test]
    fn the_same_graph_lands_in_the_same_places_inside_the_square() {
        for (count, links) in
            [(0, vec![]), (1, vec![]), (2, ring(2)), (30, ring(30)), (40, groups(20)), (7, vec![])]
        {
            let places = layout(count, &links);
            assert_eq!(places.len(), count);
            assert_eq!(places, layout(count, &links));
            assert!(places.iter().flatten().all(|v| (-1e-9..=1.0 + 1e-9).contains(v)), "{count} nodes");
        }
    }

    #[test]
    fn a_ring_is_a_ring() {
        for count in [5, 24, 100] {
            let places = layout(count, &ring(count));
            let centre = [0, 1].map(|axis| places.iter().map(|p| p[axis]).sum::<f64>() / count as f64);
            let radii = places.iter().map(|p| (p[0] - centre[0]).hypot(p[1] - centre[1]));
            let (low, high) = radii.fold((f64::INFINITY, 0.0_f64), |(l, h), r| (l.min(r), h.max(r)));
            assert!(high / low < 1.15, "{count} nodes: radii from {low} to {high}");
        }
    }

    #[test]
    fn two_groups_separate() {
        let places = layout(40, &groups(20));
        let mean = |from: usize| {
            [0, 1].map(|axis| places[from..from + 20].iter().map(|p| p[axis]).sum::<f64>() / 20.0)
        };
        let (left, right) = (mean(0), mean(20));
        let nearer = (0..40)
            .filter(|i| {
                let to = |m: [f64; 2]| (places[*i][0] - m[0]).hypot(places[*i][1] - m[1]);
                (to(left) < to(right)) == (*i < 20)
            })
            .count();
        assert_eq!(nearer, 40, "every node is nearer to its own group's middle");
    }

    #[test]
    fn heavy_edges_are_shorter_than_light_ones() {
        let path: Vec<Link> = (0..10).map(|i| (i, i + 1, if i == 4 { 0.1 } else { 1.0 })).collect();
        let places = layout(11, &path);
        assert!(apart(&places, 4, 5) > 2.0 * apart(&places, 2, 3));
    }

    #[test]
    fn no_two_nodes_meet() {
        let star: Vec<Link> = (1..12).map(|i| (0, i, 1.0)).collect();
        let clique: Vec<Link> = (0..12).flat_map(|a| (0..a).map(move |b| (b, a, 1.0))).collect();
        for (name, links) in [("star", star), ("clique", clique), ("ring", ring(12)), ("none", vec![])] {
            let places = layout(12, &links);
            assert!(nearest(&places) > 0.05, "{name}: {}", nearest(&places));
        }
    }

    #[test]
    fn parts_keep_apart() {
        let mut links = ring(8);
        links.extend(ring(5).iter().map(|(a, b, w)| (a + 8, b + 8, *w)));
        let places = layout(15, &links);
        let inside = apart(&places, 0, 1);
        for a in 0..8 {
            for b in 8..15 {
                assert!(apart(&places, a, b) > 0.9 * inside, "{a} {b}");
            }
        }
    }

    #[test]
    fn equal_places_are_pulled_apart() {
        let mut places = vec![[0.5, 0.5]; 9];
        separate(&mut places, 0.1, 500);
        assert!(nearest(&places) > 0.099);
    }

    #[test]
    fn thousands_of_nodes_are_still_placed() {
        let places = layout(LARGEST + 1, &ring(LARGEST + 1));
        assert!(nearest(&places[..200]) > 0.0);
        assert!(places.iter().flatten().all(|v| (-1e-9..=1.0 + 1e-9).contains(v)));
    }

    #[test]
    fn the_strongest_links_are_kept() {
        assert_eq!(strongest(&[(0, 1, 1.0), (0, 2, 3.0), (1, 2, 2.0)], 2), [(0, 2, 3.0), (1, 2, 2.0)]);
    }

    #[test]
    fn everything_lands_on_the_sheet() {
        let odd = vec![[f64::NAN, 1.0], [0.0, 0.0], [2.0, f64::INFINITY]];
        for places in [vec![], vec![[3.0, 3.0]], vec![[0.0, 1.0], [5.0, 1.0]], odd, layout(30, &[])] {
            for [x, y] in fitted(&places, (10.0, 5.0), (120.0, 60.0), 1.25) {
                assert!((9.999..=110.001).contains(&x) && (4.999..=55.001).contains(&y), "{x} {y}");
            }
        }
    }
}
