//! The Laplacian `L = D - A` of an undirected graph.

use super::Topology;

/// The dense Laplacian, row by row.
pub fn laplacian(topology: &Topology) -> Vec<f64> {
    let n = topology.len();
    let mut matrix = vec![0.0; n * n];
    for s in 0..n as u32 {
        let neighbours = topology.neighbours(s);
        matrix[s as usize * n + s as usize] = neighbours.len() as f64;
        for &p in neighbours {
            matrix[s as usize * n + p as usize] = -1.0;
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_sum_to_zero_and_the_quadratic_form_counts_edges() {
        let ring = Topology::ring(5);
        let matrix = laplacian(&ring);
        let signal = [1.0, 0.0, 2.0, -1.0, 3.0];
        for row in matrix.chunks(5) {
            assert_eq!(row.iter().sum::<f64>(), 0.0);
        }
        let form: f64 =
            (0..5).map(|i| signal[i] * (0..5).map(|j| matrix[i * 5 + j] * signal[j]).sum::<f64>()).sum();
        let edges: f64 = ring
            .edges()
            .map(|(a, b)| {
                let gap = signal[a as usize] - signal[b as usize];
                gap * gap
            })
            .sum();
        assert_eq!(form, edges);
    }
}
