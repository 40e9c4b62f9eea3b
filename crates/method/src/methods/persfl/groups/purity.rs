//! The purity check: members leave, groups split, groups merge. See the text of the parent.

use super::group::{freedom, halves, median};
use super::{
    COMPARE, DONE, ENOUGH, Group, Groups, LEAVE, MERGE, MOST, REST, RESTLESS, RESTS, ROUNDS, SPLIT, TRAIN,
    TRIAL, Trial, World, least, middle,
};

impl Groups {
    pub(super) fn compare(&mut self, answers: &[&[f64]], world: &World<'_>) {
        self.compared += 1;
        if self.compared > MOST {
            return self.go_to(DONE, 0);
        }
        if self.leave(answers, world) {
            return self.go_to(TRAIN, ROUNDS);
        }
        if self.list.iter().any(|group| !group.settled) {
            return self.go_to(REST, RESTLESS);
        }
        if self.merge(answers, world) { self.go_to(TRAIN, ROUNDS) } else { self.go_to(DONE, 0) }
    }

    /// 1. Whether anybody left.
    fn leave(&mut self, answers: &[&[f64]], world: &World<'_>) -> bool {
        let clients = answers.len();
        let own = self.labels(clients);
        let of = |group: usize, at: usize| -> Vec<f64> {
            let members = self.list[group].members.iter();
            members.filter_map(|&i| answers[i as usize].get(at).copied()).collect()
        };
        let medians: Vec<f64> = (0..self.list.len()).map(|group| median(of(group, group))).collect();
        let big: Vec<bool> =
            self.list.iter().map(|group| group.records(world.members) >= ENOUGH * world.d as f64).collect();
        let mut next = own.clone();
        let free: Vec<f64> =
            self.list.iter().map(|group| freedom(group.records(world.members), world.d as f64)).collect();
        let mut rest: Vec<u32> = Vec::new();
        for (i, losses) in answers.iter().enumerate().filter(|(_, losses)| !losses.is_empty()) {
            let home = own[i] as usize;
            let best = least(losses.iter().copied());
            // How much worse a group is for the client than for its own members, where that can be said.
            let misfit = |group: usize| {
                if big[group] {
                    losses[group] / medians[group] * free[group] * free[group]
                } else {
                    f64::INFINITY
                }
            };
            let fitting = least((0..losses.len()).map(misfit));
            if losses[home] > LEAVE * losses[best] {
                next[i] = best as u32;
            } else if !big[home] && misfit(fitting) <= LEAVE {
                next[i] = fitting as u32;
            } else if (!big[home] || losses[home] > LEAVE * medians[home]) && self.rested[i] < RESTS {
                rest.push(i as u32);
            }
        }
        let mut count = self.list.len() as u32;
        if !rest.is_empty() && self.list.iter().all(|group| *group.members != *rest) {
            for &i in &rest {
                next[i as usize] = count;
                self.rested[i as usize] += 1;
            }
            count += 1;
        }
        if next == own {
            return false;
        }
        let old = std::mem::take(&mut self.list);
        let mut list = Vec::new();
        for number in 0..count {
            let members: Vec<u32> = (0..clients as u32).filter(|&i| next[i as usize] == number).collect();
            if members.is_empty() {
                continue;
            }
            list.push(match old.get(number as usize) {
                Some(group) if *group.members == *members => group.clone(),
                Some(group) => Group { settled: group.settled, ..Group::new(members, group.model.clone()) },
                None => {
                    let model = middle(&members, world.warm, world.d);
                    Group::new(members, model)
                }
            });
        }
        self.list = list.into();
        true
    }

    /// Begins 2 for every group that was not tried yet.
    pub(super) fn try_halves(&mut self, answers: &[&[f64]], d: usize) {
        let mut trials = Vec::new();
        for (number, group) in self.list.iter_mut().enumerate().filter(|(_, group)| !group.settled) {
            let halves = group
                .sides(answers, d)
                .and_then(|sides| halves(&group.members, &sides, [&group.model, &group.model]));
            match (halves, group.mean(answers)) {
                (Some(halves), Some(mean)) => {
                    let before = mean[d];
                    trials.push(Trial { group: number as u32, halves, before, turn: 0 });
                }
                _ => group.settled = true,
            }
        }
        self.trials = trials.into();
        if self.trials.is_empty() { self.go_to(COMPARE, 0) } else { self.go_to(TRIAL, ROUNDS) }
    }

    /// Members have scored both halves: they take sides, and after the second time the halves stay or go.
    pub(super) fn judge(&mut self, answers: &[&[f64]], world: &World<'_>) {
        let (mut going, mut apart) = (Vec::new(), Vec::new());
        for mut trial in std::mem::take(&mut self.trials) {
            let group = &self.list[trial.group as usize];
            let side = |i: &u32| matches!(answers[*i as usize], [low, high] if high < low);
            let sides: Vec<bool> = group.members.iter().map(side).collect();
            let models = [&trial.halves[0].model[..], &trial.halves[1].model[..]];
            let Some(next) = halves(&group.members, &sides, models) else {
                self.list[trial.group as usize].settled = true;
                continue;
            };
            if trial.turn == 0 {
                going.push(Trial { halves: next, turn: 1, ..trial });
                continue;
            }
            let p = world.d as f64;
            let records: Vec<f64> = next.iter().map(|half| half.records(world.members)).collect();
            let all = records[0] + records[1];
            let after: f64 = (0..2)
                .map(|side| {
                    let of = next[side].members.iter();
                    let losses: Vec<f64> =
                        of.filter_map(|&i| answers[i as usize].get(side).copied()).collect();
                    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
                    records[side] / all * mean / freedom(records[side], p)
                })
                .sum();
            let enough = records[0].min(records[1]) >= ENOUGH * p;
            if enough && after < SPLIT * trial.before / freedom(all, p) {
                trial.halves = next;
                apart.push(trial);
            } else {
                self.list[trial.group as usize].settled = true;
            }
        }
        if !going.is_empty() {
            // Those that are through with it wait: a group that is settled trains on as it is.
            self.trials = going.into();
            return self.go_to(TRIAL, ROUNDS);
        }
        if apart.is_empty() {
            return self.go_to(COMPARE, 0);
        }
        let old = std::mem::take(&mut self.list);
        let mut list = Vec::new();
        for (number, group) in old.into_iter().enumerate() {
            match apart.iter_mut().find(|trial| trial.group as usize == number) {
                Some(trial) => list.extend(std::mem::take(&mut trial.halves)),
                None => list.push(group),
            }
        }
        self.list = list.into();
        self.go_to(TRAIN, ROUNDS);
    }

    /// 3. Whether any group joined another.
    fn merge(&mut self, answers: &[&[f64]], world: &World<'_>) -> bool {
        let mean = |group: usize, at: usize| {
            let members = self.list[group].members.iter();
            let losses: Vec<f64> = members.filter_map(|&i| answers[i as usize].get(at).copied()).collect();
            losses.iter().sum::<f64>() / losses.len() as f64
        };
        let p = world.d as f64;
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_key(|&a| (std::cmp::Reverse(self.list[a].members.len()), a));
        let mut into: Vec<usize> = (0..self.list.len()).collect();
        let mut kept: Vec<usize> = Vec::new();
        for &small in &order {
            let mut best: Option<(f64, usize)> = None;
            for &large in &kept {
                let records = self.list[large].records(world.members);
                if records < ENOUGH * p {
                    continue;
                }
                let free = freedom(records, p);
                let ratio = mean(small, large) / mean(large, large) * free * free;
                if best.is_none_or(|(least, _)| ratio < least) {
                    best = Some((ratio, large));
                }
            }
            match best {
                Some((ratio, large)) if ratio < MERGE => into[small] = large,
                _ => kept.push(small),
            }
        }
        if kept.len() == self.list.len() {
            return false;
        }
        let old = std::mem::take(&mut self.list);
        kept.sort_unstable();
        let merged = kept.iter().map(|&number| {
            let joined = (0..old.len()).filter(|&a| into[a] == number);
            let mut members: Vec<u32> = joined.flat_map(|a| old[a].members.iter().copied()).collect();
            members.sort_unstable();
            if members.len() == old[number].members.len() {
                return old[number].clone();
            }
            Group { settled: true, ..Group::new(members, old[number].model.clone()) }
        });
        self.list = merged.collect();
        true
    }
}
