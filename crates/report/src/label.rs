//! Where the names of the lines go: at their ends where there is room, else in a legend.

/// Moves labels apart so that neighbours are at least `gap` away, as little as possible in total
/// squares, keeping their order and staying within `low..=high` if they fit at all.
///
/// Labels that would touch form a block, which sits at the mean of what its members want; blocks
/// that touch merge. This is isotonic regression by pooling adjacent violators.
pub(super) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]).then(a.cmp(b)));
    // Subtracting the k-th gap turns "at least a gap apart" into "not decreasing".
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (rank, index) in order.iter().enumerate() {
        let mut block = (wanted[*index] - rank as f64 * gap, 1);
        while let Some(&(mean, count)) = blocks.last() {
            if mean <= block.0 {
                break;
            }
            let total = count + block.1;
            block = ((mean * count as f64 + block.0 * block.1 as f64) / total as f64, total);
            blocks.pop();
        }
        blocks.push(block);
    }
    let ceiling = high - gap * wanted.len().saturating_sub(1) as f64;
    let mut placed = vec![0.0; wanted.len()];
    let flat = blocks.iter().flat_map(|(mean, count)| std::iter::repeat_n(*mean, *count));
    for (rank, (index, mean)) in order.iter().zip(flat).enumerate() {
        // `min` then `max`: if they do not fit, they run over the high end, never the low one.
        placed[*index] = mean.min(ceiling).max(low) + rank as f64 * gap;
    }
    placed
}

/// Flows legend entries of the given widths into rows; gives each entry's offset and row.
pub(super) fn flow(widths: &[f64], available: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (0.0, 0);
    widths
        .iter()
        .map(|width| {
            if x > 0.0 && x + width > available {
                x = 0.0;
                row += 1;
            }
            let place = (x, row);
            x += width;
            place
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nudging_keeps_order_and_distance() {
        let wanted = [50.0, 10.0, 12.0, 11.0, 90.0, 89.0];
        let placed = spread(&wanted, 15.0, 0.0, 100.0);
        for a in 0..wanted.len() {
            for b in 0..wanted.len() {
                if wanted[a] < wanted[b] {
                    assert!(placed[b] - placed[a] >= 15.0 - 1e-9, "{placed:?}");
                }
            }
        }
        assert!(placed.iter().all(|y| (-1e-9..=100.0 + 1e-9).contains(y)), "{placed:?}");
    }

    #[test]
    fn labels_with_room_stay_where_they_are() {
        assert_eq!(spread(&[80.0, 20.0], 15.0, 0.0, 100.0), [80.0, 20.0]);
        assert!(spread(&[], 15.0, 0.0, 100.0).is_empty());
    }

    #[test]
    fn equal_wishes_are_shared_evenly() {
        assert_eq!(spread(&[50.0, 50.0], 10.0, 0.0, 100.0), [45.0, 55.0]);
    }

    #[test]
    fn a_legend_breaks_into_rows() {
        assert_eq!(flow(&[60.0, 30.0, 50.0], 100.0), [(0.0, 0), (60.0, 0), (0.0, 1)]);
    }
}
