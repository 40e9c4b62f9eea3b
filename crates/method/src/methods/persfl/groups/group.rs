//! One group: its step, whether it rests, and how it would be halved.

use super::{Group, STILL, World};
use crate::federation::Member;
use fedkin_numeric::{axpy, dot, norm2, scale};

impl Group {
    pub(super) fn new(members: Vec<u32>, model: Vec<f64>) -> Self {
        Self { members: members.into(), model, long: true, ..Self::default() }
    }

    pub(super) fn records(&self, members: &[Member]) -> f64 {
        self.members.iter().map(|&i| f64::from(members[i as usize].samples)).sum()
    }

    /// The mean of what the members that answered sent: gradient, then loss. Nothing where nobody did.
    pub(super) fn mean(&self, answers: &[&[f64]]) -> Option<Vec<f64>> {
        let mut sum: Vec<f64> = Vec::new();
        let mut count = 0.0;
        for answer in self.members.iter().map(|&i| answers[i as usize]).filter(|answer| !answer.is_empty()) {
            if sum.is_empty() {
                sum = answer.to_vec();
            } else {
                axpy(1.0, answer, &mut sum);
            }
            count += 1.0;
        }
        scale(1.0 / count, &mut sum);
        (count > 0.0).then_some(sum)
    }

    /// One step along the members' mean gradient.
    pub(super) fn step(&mut self, answers: &[&[f64]], world: &World<'_>) {
        let base = world.rate;
        let Some(mut gradient) = self.mean(answers) else { return };
        gradient.pop();
        let mut rate = base;
        if !self.old_gradient.is_empty() {
            let moved: Vec<f64> = self.model.iter().zip(&self.old_model).map(|(w, old)| w - old).collect();
            let bent: Vec<f64> = gradient.iter().zip(&self.old_gradient).map(|(g, old)| g - old).collect();
            let (inner, bend) = (dot(&moved, &bent), norm2(&bent));
            if inner > 0.0 && bend > 0.0 {
                rate = if self.long { norm2(&moved) / inner } else { inner / bend };
                rate = rate.clamp(base / 10.0, base * 100.0);
            }
            self.long = !self.long;
        }
        self.old_model.clone_from(&self.model);
        axpy(-rate, &gradient, &mut self.model);
        (world.shrink)(&mut self.model, rate);
        self.old_gradient = gradient;
    }

    /// Whether the members' gradients cancel.
    pub(super) fn rests(&self, answers: &[&[f64]]) -> bool {
        let Some(mean) = self.mean(answers) else { return true };
        let (_, gradient) = mean.split_last().unwrap_or((&0.0, &[]));
        let (mut all, mut count) = (0.0, 0.0);
        for answer in self.members.iter().map(|&i| answers[i as usize]).filter(|answer| !answer.is_empty()) {
            all += norm2(&answer[..gradient.len()]);
            count += 1.0;
        }
        norm2(gradient) <= STILL * all / count
    }

    /// Which members lie beyond the median along the leading direction of the gradients; nothing where there is none.
    pub(super) fn sides(&self, answers: &[&[f64]], d: usize) -> Option<Vec<bool>> {
        let mean = self.mean(answers)?;
        let rows: Vec<Vec<f64>> = self
            .members
            .iter()
            .map(|&i| match answers[i as usize].get(..d) {
                Some(gradient) => gradient.iter().zip(&mean).map(|(g, mean)| g - mean).collect(),
                None => vec![0.0; d],
            })
            .collect();
        // Power iteration from the longest row.
        let longest = (0..rows.len()).max_by(|&a, &b| norm2(&rows[a]).total_cmp(&norm2(&rows[b])))?;
        let mut direction = rows[longest].clone();
        for _ in 0..30 {
            let mut next = vec![0.0; d];
            for row in &rows {
                axpy(dot(row, &direction), row, &mut next);
            }
            let length = norm2(&next).sqrt();
            if length == 0.0 || !length.is_finite() {
                return None;
            }
            scale(1.0 / length, &mut next);
            direction = next;
        }
        let along: Vec<f64> = rows.iter().map(|row| dot(row, &direction)).collect();
        let middle = median(along.clone());
        Some(along.into_iter().map(|x| x > middle).collect())
    }
}

/// The middle value, or the mean of the two in the middle.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    if n == 0 {
        return f64::NAN;
    }
    f64::midpoint(values[(n - 1) / 2], values[n / 2])
}

/// The share of a loss that is left when so many parameters were fitted to so many records.
pub(super) fn freedom(records: f64, parameters: f64) -> f64 {
    (1.0 - parameters / records).max(0.25)
}

/// The two halves of some members by side, from these models; nothing where one is empty.
pub(super) fn halves(members: &[u32], sides: &[bool], models: [&[f64]; 2]) -> Option<Box<[Group]>> {
    let half = |side: bool| -> Vec<u32> {
        members.iter().zip(sides).filter(|(_, s)| **s == side).map(|(&member, _)| member).collect()
    };
    let (low, high) = (half(false), half(true));
    if low.is_empty() || high.is_empty() {
        return None;
    }
    Some([Group::new(low, models[0].to_vec()), Group::new(high, models[1].to_vec())].into())
}
