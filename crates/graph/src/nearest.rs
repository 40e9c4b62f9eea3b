//! The nearest neighbours of all points, ties included.

use fedkin_numeric::distance2;

/// Up to so many coordinates a tree cuts off most of the points; beyond, all are compared.
const TREE: usize = 16;
/// Points of a leaf.
const LEAF: usize = 12;

/// The neighbours of one point.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Near {
    /// Squared distance to the last of them.
    pub(super) furthest: f64,
    /// Ascending.
    pub(super) clients: Vec<u32>,
}

/// For every point (rows of `values`) its `count` nearest others, and all that tie with the last. `count` is at
/// least one and less than the number of points.
pub(super) fn all(values: &[f64], dimensions: usize, count: usize) -> Vec<Near> {
    let points = values.len() / dimensions;
    if dimensions <= TREE && points > 4 * LEAF {
        let tree = Tree::new(values, dimensions);
        return (0..points).map(|point| tree.near(point, count)).collect();
    }
    (0..points)
        .map(|point| {
            let mut found = Found::new(count);
            let own = &values[point * dimensions..][..dimensions];
            for (other, row) in values.chunks_exact(dimensions).enumerate() {
                if other != point {
                    found.offer(distance2(own, row), other as u32);
                }
            }
            found.finish()
        })
        .collect()
}

/// The nearest so far.
struct Found {
    count: usize,
    /// Ascending distances; at least `count` once so many were offered, and what ties with the last of those.
    list: Vec<(f64, u32)>,
}

impl Found {
    fn new(count: usize) -> Self {
        Self { count, list: Vec::with_capacity(count + 2) }
    }

    /// Nothing further than this can join.
    fn limit(&self) -> f64 {
        self.list.get(self.count - 1).map_or(f64::INFINITY, |&(distance, _)| distance)
    }

    fn offer(&mut self, distance: f64, client: u32) {
        if distance > self.limit() {
            return;
        }
        let at = self.list.partition_point(|&(other, _)| other <= distance);
        self.list.insert(at, (distance, client));
        let limit = self.limit();
        while self.list.last().is_some_and(|&(distance, _)| distance > limit) {
            self.list.pop();
        }
    }

    fn finish(self) -> Near {
        let furthest = self.list.last().map_or(0.0, |&(distance, _)| distance);
        let mut clients: Vec<u32> = self.list.into_iter().map(|(_, client)| client).collect();
        clients.sort_unstable();
        Near { furthest, clients }
    }
}

/// Points halved by one coordinate after the other, the widest first.
struct Tree<'a> {
    values: &'a [f64],
    dimensions: usize,
    order: Vec<u32>,
    nodes: Vec<Node>,
}

enum Node {
    /// Points `order[from..to]`.
    Leaf { from: usize, to: usize },
    /// Below `at` on the left, from it on on the right.
    Cut { axis: usize, at: f64, left: usize, right: usize },
}

impl<'a> Tree<'a> {
    fn new(values: &'a [f64], dimensions: usize) -> Self {
        let points = values.len() / dimensions;
        let mut tree = Self { values, dimensions, order: (0..points as u32).collect(), nodes: Vec::new() };
        tree.build(0, points);
        tree
    }

    fn coordinate(&self, point: u32, axis: usize) -> f64 {
        self.values[point as usize * self.dimensions + axis]
    }

    fn build(&mut self, from: usize, to: usize) -> usize {
        let mut widest = (0.0, 0);
        for axis in 0..self.dimensions {
            let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
            for &point in &self.order[from..to] {
                let x = self.coordinate(point, axis);
                (least, most) = (least.min(x), most.max(x));
            }
            if most - least > widest.0 {
                widest = (most - least, axis);
            }
        }
        let (width, axis) = widest;
        let node = self.nodes.len();
        self.nodes.push(Node::Leaf { from, to });
        // Equal points stay together, however many.
        if to - from > LEAF && width > 0.0 {
            let middle = usize::midpoint(from, to);
            let (values, dimensions) = (self.values, self.dimensions);
            let x = |point: u32| values[point as usize * dimensions + axis];
            self.order[from..to]
                .select_nth_unstable_by(middle - from, |&a, &b| x(a).total_cmp(&x(b)).then(a.cmp(&b)));
            let at = self.coordinate(self.order[middle], axis);
            let left = self.build(from, middle);
            let right = self.build(middle, to);
            self.nodes[node] = Node::Cut { axis, at, left, right };
        }
        node
    }

    fn near(&self, point: usize, count: usize) -> Near {
        let mut found = Found::new(count);
        self.visit(0, point as u32, &mut found);
        found.finish()
    }

    fn visit(&self, node: usize, point: u32, found: &mut Found) {
        match self.nodes[node] {
            Node::Leaf { from, to } => {
                let own = &self.values[point as usize * self.dimensions..][..self.dimensions];
                for &other in &self.order[from..to] {
                    if other != point {
                        let row = &self.values[other as usize * self.dimensions..][..self.dimensions];
                        found.offer(distance2(own, row), other);
                    }
                }
            }
            Node::Cut { axis, at, left, right } => {
                let offset = self.coordinate(point, axis) - at;
                let (first, second) = if offset < 0.0 { (left, right) } else { (right, left) };
                self.visit(first, point, found);
                // Points equal to the cut may stand on both sides, and ties count: no less than or equal here.
                if offset * offset <= found.limit() {
                    self.visit(second, point, found);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_numeric::rng::{PublicRng, Random};

    #[test]
    fn the_tree_finds_what_a_look_at_all_finds() {
        let mut rng = PublicRng::named(3, "points", 0, 0);
        for (points, dimensions, grid) in
            [(200, 1, 0.0), (300, 2, 0.0), (300, 3, 4.0), (150, 8, 2.0), (100, 2, 1.0)]
        {
            let values: Vec<f64> = (0..points * dimensions)
                .map(|_| if grid > 0.0 { (grid * rng.uniform()).floor() } else { rng.uniform() })
                .collect();
            for count in [1, 3, 8] {
                let found = all(&values, dimensions, count);
                for (point, found) in found.iter().enumerate() {
                    let at = |p: usize| &values[p * dimensions..(p + 1) * dimensions];
                    let mut others: Vec<(f64, u32)> = (0..points)
                        .filter(|&other| other != point)
                        .map(|other| (distance2(at(point), at(other)), other as u32))
                        .collect();
                    others.sort_by(|a, b| a.0.total_cmp(&b.0));
                    let furthest = others[count - 1].0;
                    let mut clients: Vec<u32> =
                        others.iter().filter(|other| other.0 <= furthest).map(|other| other.1).collect();
                    clients.sort_unstable();
                    assert_eq!(*found, Near { furthest, clients }, "{points} {dimensions} {count}");
                }
            }
        }
    }
}
