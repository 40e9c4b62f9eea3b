//! Graphs of clients that are alike: from statistics of their data, or from their models.
//!
//! (27), for every feature of a client with `n` records:
//!
//! ```text
//! s1 = sum_i x_i / n                        s2 = sum_i (x_i - s1)^2 / n
//! s3 = sum_i (x_i - s1)^3 / n / s2^(3/2)    s4 = sum_i (x_i - s1)^4 / n / s2^2     (both 0 where s2 = 0)
//! ```
//!
//! - `knn-kernel`: statistics standardised over clients, `D` the root of the mean squared difference,
//!   `A_ij = exp(-(D_ij / s)^2)` where one client is among the `k` nearest of the other, `s` the median distance to
//!   the `k`-th nearest, plus `weak / K` between all clients, so that the graph is connected.
//! - `paper-28`: `A_ij = sum_k |s_k^i - s_k^j| / 4` (28) as printed. It is a *distance*: clients that differ most are
//!   joined most. For comparison only.
//! - `pearson`: the mean correlation of a record of one client with a record of the other, where it is positive.
//!   The paper computes it where all data are at hand: for simulations only.
//!
//! Nothing here depends on the order of clients: ties are kept whole.

use super::{Sparse, Weighted, nearest, pairs};
use fedkin_numeric::{distance2, dot, exp, scale};
use thiserror::Error;

/// Statistics (27) of every feature.
pub const MOMENTS: usize = 4;
/// The default weight between all clients, to be divided by their number.
pub const WEAK: f64 = 1e-3;
/// The default number of neighbours.
pub const NEIGHBOURS: usize = 5;
/// A statistic that varies by less than this share of its size does not vary: the rest is rounding.
const ROUNDING: f64 = 1e-12;

/// Why there is no graph of these clients.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SimilarityError {
    /// One client has nobody to be alike.
    #[error("{0} clients are too few: a graph needs two or more")]
    Few(usize),
    /// Clients have different numbers of statistics.
    #[error("client {client} has {found} statistics, and the first client has {expected}")]
    Length {
        /// The client, from 0 on.
        client: usize,
        /// Of the first client.
        expected: usize,
        /// Of this client.
        found: usize,
    },
    /// A statistic is infinite or not a number.
    #[error("a statistic of client {0} is not finite")]
    NotFinite(usize),
    /// Nobody has a neighbour.
    #[error("0 neighbours make no graph: give 1 or more")]
    Neighbours,
    /// The weight between all clients is no weight.
    #[error("the weak weight is {0}: it must be finite and not negative")]
    Weak(f64),
    /// All pairs of so many clients cannot be held.
    #[error("{0} clients have too many pairs")]
    Many(usize),
}

/// Clients as points whose Euclidean distance is `D`.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    dimensions: usize,
    values: Vec<f64>,
}

impl Points {
    /// From statistics, standardised over clients. Every kind (moments of features, shares of labels) holds one row
    /// per client; kinds count alike, however many statistics each has: `D^2` is the mean over kinds of the mean
    /// squared difference within them.
    pub fn standardised(kinds: &[&[Vec<f64>]]) -> Result<Self, SimilarityError> {
        let clients = kinds.first().map_or(0, |rows| rows.len());
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for rows in kinds {
            let length = shape(rows, clients)?;
            let unit = 1.0 / ((length * kinds.len()) as f64).sqrt();
            for at in 0..length {
                let mut column: Vec<f64> = rows.iter().map(|row| row[at]).collect();
                standardise(&mut column);
                scale(unit, &mut column);
                columns.push(column);
            }
        }
        let dimensions = columns.len();
        let values = (0..clients).flat_map(|k| columns.iter().map(move |column| column[k])).collect();
        Ok(Self { dimensions, values })
    }

    /// From models: coordinates as they are, `D` the root of the mean squared difference.
    pub fn models(rows: &[&[f64]]) -> Result<Self, SimilarityError> {
        let dimensions = shape(rows, rows.len())?;
        let unit = 1.0 / (dimensions.max(1) as f64).sqrt();
        let values = rows.iter().flat_map(|row| row.iter().map(|value| value * unit)).collect();
        Ok(Self { dimensions, values })
    }

    /// Number of clients; zero where points have no coordinate.
    pub fn clients(&self) -> usize {
        self.values.len().checked_div(self.dimensions).unwrap_or(0)
    }

    /// The point of a client.
    pub fn point(&self, client: usize) -> &[f64] {
        &self.values[client * self.dimensions..][..self.dimensions]
    }

    /// Number of coordinates.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// `D` of two clients.
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        distance2(self.point(a), self.point(b)).sqrt()
    }
}

/// The common length of all rows.
fn shape<R: AsRef<[f64]>>(rows: &[R], clients: usize) -> Result<usize, SimilarityError> {
    if rows.len() < 2 || rows.len() != clients {
        return Err(SimilarityError::Few(rows.len().min(clients)));
    }
    let expected = rows[0].as_ref().len();
    for (client, row) in rows.iter().enumerate() {
        let row = row.as_ref();
        if row.len() != expected || expected == 0 {
            return Err(SimilarityError::Length { client, expected: expected.max(1), found: row.len() });
        }
        if !row.iter().all(|value| value.is_finite()) {
            return Err(SimilarityError::NotFinite(client));
        }
    }
    Ok(expected)
}

/// The moments (27) of one client's records (`columns` features each, row by row): all means, then all variances,
/// skewnesses and kurtoses. Zeros where there is no record.
pub fn moments(features: &[f64], columns: usize) -> Vec<f64> {
    let mut result = vec![0.0; MOMENTS * columns];
    let records = features.len().checked_div(columns).unwrap_or(0);
    if records == 0 {
        return result;
    }
    let n = records as f64;
    let rows = || features.chunks_exact(columns);
    let mut sums = vec![0.0; MOMENTS * columns];
    for row in rows() {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x;
        }
    }
    for (at, mean) in result[..columns].iter_mut().enumerate() {
        // What rounding makes of a constant must not look like a spread.
        let first = features[at];
        *mean = if rows().all(|row| row[at] == first) { first } else { sums[at] / n };
    }
    let (means, others) = result.split_at_mut(columns);
    let (variances, others) = others.split_at_mut(columns);
    for row in rows() {
        for ((variance, x), mean) in variances.iter_mut().zip(row).zip(&*means) {
            *variance += (x - mean) * (x - mean);
        }
    }
    for variance in &mut *variances {
        *variance /= n;
    }
    let (skewnesses, kurtoses) = others.split_at_mut(columns);
    for row in rows() {
        for at in 0..columns {
            if variances[at] > 0.0 {
                let z = (row[at] - means[at]) / variances[at].sqrt();
                skewnesses[at] += z * z * z;
                kurtoses[at] += (z * z) * (z * z);
            }
        }
    }
    for at in 0..columns {
        skewnesses[at] /= n;
        kurtoses[at] /= n;
        // What rounding leaves of a symmetric feature must not look like a difference between clients.
        let spread = variances[at].sqrt();
        if skewnesses[at].abs() * spread <= ROUNDING * (spread + means[at].abs()) {
            skewnesses[at] = 0.0;
        }
    }
    result
}

/// The share of each class among one client's labels; labels beyond the classes are left out.
pub fn histogram(labels: impl IntoIterator<Item = usize>, classes: usize) -> Vec<f64> {
    let mut shares = vec![0.0; classes];
    let mut count = 0.0;
    for label in labels {
        if let Some(share) = shares.get_mut(label) {
            *share += 1.0;
            count += 1.0;
        }
    }
    if count > 0.0 {
        for share in &mut shares {
            *share /= count;
        }
    }
    shares
}

/// What [`pearson`] needs of one client: the mean of its records, each brought to mean zero over the features and
/// norm one first. Records that are constant have no correlation and count as zero.
pub fn profile(features: &[f64], columns: usize) -> Vec<f64> {
    let mut sum = vec![0.0; columns];
    let records = features.len().checked_div(columns).unwrap_or(0);
    for row in features.chunks_exact(columns.max(1)) {
        let mean = row.iter().sum::<f64>() / columns as f64;
        let centred: Vec<f64> = row.iter().map(|x| x - mean).collect();
        let norm = dot(&centred, &centred).sqrt();
        if norm > ROUNDING * mean.abs() * (columns as f64).sqrt() {
            for (sum, x) in sum.iter_mut().zip(&centred) {
                *sum += x / norm;
            }
        }
    }
    if records > 0 {
        for value in &mut sum {
            *value /= records as f64;
        }
    }
    sum
}

/// To mean 0 and deviation 1; zeros where nothing varies.
fn standardise(column: &mut [f64]) {
    let n = column.len() as f64;
    let size = column.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    // Scaled by their size: squares neither overflow nor vanish.
    let unit = if size > 0.0 { size } else { 1.0 };
    let mean = column.iter().map(|value| value / unit).sum::<f64>() / n;
    let variance = column.iter().map(|value| (value / unit - mean) * (value / unit - mean)).sum::<f64>() / n;
    let deviation = variance.sqrt();
    for value in column {
        *value = if deviation > ROUNDING { (*value / unit - mean) / deviation } else { 0.0 };
    }
}

/// The kernel over the union of all nearest neighbours, plus `weak / K` between all clients. `neighbours` beyond
/// all others mean all others.
pub fn knn_kernel(points: &Points, neighbours: usize, weak: f64) -> Result<Sparse, SimilarityError> {
    let clients = points.clients();
    if clients < 2 {
        return Err(SimilarityError::Few(clients));
    }
    if neighbours == 0 {
        return Err(SimilarityError::Neighbours);
    }
    if !(weak >= 0.0 && weak.is_finite()) {
        return Err(SimilarityError::Weak(weak));
    }
    let near = nearest::all(&points.values, points.dimensions, neighbours.min(clients - 1));
    let mut furthest: Vec<f64> = near.iter().map(|near| near.furthest).collect();
    furthest.sort_by(f64::total_cmp);
    let middle = clients / 2;
    let spread = if clients.is_multiple_of(2) {
        f64::midpoint(furthest[middle - 1].sqrt(), furthest[middle].sqrt())
    } else {
        furthest[middle].sqrt()
    };
    let mut ends: Vec<(usize, usize)> = Vec::with_capacity(clients * neighbours.min(clients - 1));
    for (client, near) in near.iter().enumerate() {
        ends.extend(
            near.clients.iter().map(|&other| (client.min(other as usize), client.max(other as usize))),
        );
    }
    ends.sort_unstable();
    ends.dedup();
    let edges = ends.into_iter().map(|(i, j)| {
        let distance = points.distance(i, j);
        // Equal clients are as near as can be, also where most are equal and the spread is zero.
        let ratio = if distance == 0.0 { 0.0 } else { distance / spread };
        (i, j, exp(-ratio * ratio))
    });
    Sparse::new(clients, edges, weak / clients as f64).map_err(|_| SimilarityError::Weak(weak))
}

/// (28) as printed, from the moments of every client: a distance between clients used as their similarity.
pub fn paper_28(moments: &[Vec<f64>]) -> Result<Weighted, SimilarityError> {
    let features = shape(moments, moments.len())? / MOMENTS;
    dense(moments.len(), |i, j| {
        let part = |k: usize| k * features..(k + 1) * features;
        let sum: f64 =
            (0..MOMENTS).map(|k| distance2(&moments[i][part(k)], &moments[j][part(k)]).sqrt()).sum();
        sum / MOMENTS as f64
    })
}

/// The mean correlation of a record of one client with a record of the other, from the [`profile`] of every client;
/// zero where it is negative. Simulations only.
pub fn pearson(profiles: &[Vec<f64>]) -> Result<Weighted, SimilarityError> {
    shape(profiles, profiles.len())?;
    dense(profiles.len(), |i, j| dot(&profiles[i], &profiles[j]).max(0.0))
}

fn dense(clients: usize, weight: impl Fn(usize, usize) -> f64) -> Result<Weighted, SimilarityError> {
    let weights = pairs::all(clients).map(|(i, j)| weight(i, j)).collect();
    Weighted::new(clients, weights).map_err(|_| SimilarityError::Many(clients))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constants_have_no_shape() {
        // A tenth three times does not sum to three tenths: rounding must not become a skewness.
        let found = moments(&[0.1, 1.0, 0.1, 2.0, 0.1, 6.0], 2);
        assert_eq!((found[0], found[2], found[4], found[6]), (0.1, 0.0, 0.0, 0.0));
        assert_eq!(found[1], 3.0);
        assert!((found[3] - 14.0 / 3.0).abs() < 1e-15 && found[5] > 0.5 && found[7] > 1.0);
        // Symmetric around a number that is no sum of powers of two.
        let symmetric = [0.1 - 0.3, 0.1, 0.1 + 0.3, 0.1 - 0.7, 0.1 + 0.7];
        assert_eq!(moments(&symmetric, 1)[2], 0.0);
        assert!(moments(&symmetric[..4], 1)[2] < -0.1);
        assert_eq!(moments(&[], 2), [0.0; 8]);
        assert_eq!(moments(&[], 0), [0.0; 0]);
    }

    #[test]
    fn histograms_are_shares() {
        assert_eq!(histogram([0, 2, 2, 9], 3), [1.0 / 3.0, 0.0, 2.0 / 3.0]);
        assert_eq!(histogram([], 2), [0.0, 0.0]);
    }

    #[test]
    fn kinds_count_alike() {
        let one: Vec<Vec<f64>> = vec![vec![0.0], vec![1.0], vec![2.0]];
        let many: Vec<Vec<f64>> = vec![vec![1.0; 50], vec![0.0; 50], vec![5.0; 50]];
        let (a, b) = (Points::standardised(&[&one]).unwrap(), Points::standardised(&[&many]).unwrap());
        let both = Points::standardised(&[&one, &many]).unwrap();
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let mean = f64::midpoint(a.distance(i, j).powi(2), b.distance(i, j).powi(2));
            assert!((both.distance(i, j).powi(2) - mean).abs() < 1e-12);
        }
    }

    #[test]
    fn equal_clients_are_joined_by_one() {
        let rows: Vec<Vec<f64>> = [1.0, 1.0, 1.0, 1.0, 9.0].map(|x| vec![x, 3.0]).to_vec();
        let graph = knn_kernel(&Points::standardised(&[&rows]).unwrap(), 2, 0.0).unwrap().weighted().unwrap();
        assert_eq!((graph.weight(0, 3), graph.weight(0, 4)), (1.0, 0.0));
        // The same statistics everywhere: all alike.
        let rows = vec![vec![0.3, 2.0]; 4];
        let graph =
            knn_kernel(&Points::standardised(&[&rows]).unwrap(), 1, WEAK).unwrap().weighted().unwrap();
        assert!(graph.weights().iter().all(|&weight| weight == 1.0 + WEAK / 4.0));
    }

    #[test]
    fn correlation_of_profiles_is_the_mean_over_pairs_of_records() {
        let (a, b) = ([1.0, 2.0, 4.0, 3.0, 1.0, 1.5], [0.0, 1.0, 1.0, 5.0, 5.0, 5.0]);
        let correlation = |x: &[f64], y: &[f64]| {
            let centre = |x: &[f64]| x.iter().map(|v| v - x.iter().sum::<f64>() / 3.0).collect::<Vec<_>>();
            let (x, y) = (centre(x), centre(y));
            let norm = (dot(&x, &x) * dot(&y, &y)).sqrt();
            if norm == 0.0 { 0.0 } else { dot(&x, &y) / norm }
        };
        let pairs = [(0, 0), (0, 3), (3, 0), (3, 3)];
        let mean = pairs.map(|(i, j)| correlation(&a[i..i + 3], &b[j..j + 3])).iter().sum::<f64>() / 4.0;
        let found = dot(&profile(&a, 3), &profile(&b, 3));
        assert!((found - mean).abs() < 1e-15, "{found} {mean}");
        let graph = pearson(&[profile(&a, 3), profile(&a, 3), profile(&a.map(|x| -x), 3)]).unwrap();
        assert!(graph.weight(0, 1) > 0.0 && graph.weight(0, 2) == 0.0);
    }

    #[test]
    fn what_is_no_statistic_is_refused() {
        let few = Points::standardised(&[&[vec![1.0]]]);
        assert_eq!(few.unwrap_err(), SimilarityError::Few(1));
        let uneven = Points::standardised(&[&[vec![1.0], vec![1.0, 2.0]]]);
        assert_eq!(uneven.unwrap_err(), SimilarityError::Length { client: 1, expected: 1, found: 2 });
        let rows: [&[f64]; 2] = [&[1.0], &[f64::NAN]];
        assert_eq!(Points::models(&rows).unwrap_err(), SimilarityError::NotFinite(1));
        let rows: [&[f64]; 2] = [&[1.0], &[2.0]];
        let points = Points::models(&rows).unwrap();
        assert_eq!(knn_kernel(&points, 0, 0.0).unwrap_err(), SimilarityError::Neighbours);
        assert_eq!(knn_kernel(&points, 1, -1.0).unwrap_err(), SimilarityError::Weak(-1.0));
    }

    proptest! {
        /// Clients in another order give the same graph in that order, ties included.
        #[test]
        fn the_order_of_clients_does_not_matter(
            rows in prop::collection::vec((0u8..4, 0u8..4), 3..70), neighbours in 1usize..6, turn in 1usize..60,
        ) {
            let rows: Vec<Vec<f64>> = rows.iter().map(|&(a, b)| vec![f64::from(a), f64::from(b)]).collect();
            let turn = turn % rows.len();
            let mut turned = rows.clone();
            turned.rotate_left(turn);
            let graph = |rows: &[Vec<f64>]| {
                let slices: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
                knn_kernel(&Points::models(&slices).unwrap(), neighbours, WEAK).unwrap().weighted().unwrap()
            };
            let (here, there) = (graph(&rows), graph(&turned));
            for (i, j, weight) in there.iter() {
                prop_assert_eq!(weight, here.weight((i + turn) % rows.len(), (j + turn) % rows.len()));
            }
        }
    }
}
