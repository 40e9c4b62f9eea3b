//! Groups of kin train one model each, and watch that they are kin.
//!
//! In every round each member sends gradient and loss at its group's model, and the group steps along the mean gradient
//! by the rule of Barzilai and Borwein, which needs no step size that fits the world:
//!
//! ```text
//! s = w - w_old, y = g - g_old       eta = s's / s'y and s'y / y'y in turn, within [1/10, 100] of `learning_rate`
//! ```
//!
//! The purity check, from released losses and gradients alone:
//!
//! 1. *Leave.* Everybody scores every group's model. A member whose loss is above ten times that at another group's model
//!    goes there. One that no group fits and whose loss is above ten times its group's median is put into a group of
//!    all such clients, at most twice. Groups with fewer records than 1.5 parameters fit their members whatever they are:
//!    those go where they fit about as well as that group's own, or to the same group of the rest.
//! 2. *Split.* A group at rest whose members pull apart is tried as two: by the leading direction of their
//!    gradients, each half trained for a while, members taking the half that fits them, twice. The halves stay
//!    if their loss, corrected for the parameters fitted, is below three quarters of the group's. Two clusters
//!    that were merged are told apart here: their common loss is high for everybody, so nobody would leave.
//! 3. *Merge.* A group whose members fit a larger group's model almost as well as its own members do joins it.
//!
//! It ends when nobody leaves and no group splits or merges.

use super::{CHECK, GATHER};
use crate::algorithm::Label;
use crate::federation::Member;
use crate::numeric::{axpy, dot, norm2, scale};
use crate::record;

record! {
    /// Clients that train one model.
    pub struct Group {
        /// Positions, sorted.
        members: Box<[u32]>,
        model: Vec<f64>,
        /// Where the last step began, and the gradient there; empty before the first.
        old_model: Vec<f64>,
        old_gradient: Vec<f64>,
        /// Which of the two step sizes is next.
        long: bool,
        /// Tried as two groups, and found to be one.
        settled: bool,
    }
    /// A group tried as two.
    pub struct Trial {
        group: u32,
        halves: Box<[Group]>,
        /// Mean loss of the members at the group's own model.
        before: f64,
        /// How often members have taken sides.
        turn: u32,
    }
    /// All groups of a run.
    pub struct Groups {
        list: Box<[Group]>,
        trials: Box<[Trial]>,
        /// What is going on: one of the constants below.
        stage: u32,
        /// Rounds until it ends.
        left: u32,
        /// How often everybody has scored everything.
        compared: u32,
        /// By client: how often it was put into the group of the rest.
        rested: Box<[u32]>,
        /// The models that clients are sent now, and by client which of them: the first and how many.
        menu: Vec<f64>,
        first: Box<[u32]>,
        count: Box<[u32]>,
    }
}

/// Groups train; then they are compared.
const TRAIN: u32 = 0;
/// Everybody scores every group.
const COMPARE: u32 = 1;
/// Groups that were not tried yet train until they rest.
const REST: u32 = 2;
/// Halves train.
const TRIAL: u32 = 3;
/// Members of tried groups score both halves.
const JUDGE: u32 = 4;
/// Groups train, and nothing is asked any more.
const DONE: u32 = 5;

/// Rounds of training between two looks.
const ROUNDS: u32 = 10;
/// Rounds after which a group counts as resting anyway.
const RESTLESS: u32 = 40;
/// A group rests when its mean gradient is so small a share of its members' (squared norms).
const STILL: f64 = 1e-3;
/// A loss so many times higher makes a member leave.
const LEAVE: f64 = 10.0;
/// Two halves stay two below this share of the loss of one.
const SPLIT: f64 = 0.75;
/// A group joins another whose model is at most so many times worse for it than for that group's members.
const MERGE: f64 = 3.0;
/// Records per parameter below which a group's own loss says little.
const ENOUGH: f64 = 1.5;
/// How often a client is put into the group of the rest.
const RESTS: u32 = 2;
/// Comparisons after which groups stay as they are.
const MOST: u32 = 20;

impl Group {
    fn new(members: Vec<u32>, model: Vec<f64>) -> Self {
        Self { members: members.into(), model, long: true, ..Self::default() }
    }

    fn records(&self, members: &[Member]) -> f64 {
        self.members.iter().map(|&i| f64::from(members[i as usize].samples)).sum()
    }

    /// The mean of what the members that answered sent: gradient, then loss. Nothing where nobody did.
    fn mean(&self, answers: &[&[f64]]) -> Option<Vec<f64>> {
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
    fn step(&mut self, answers: &[&[f64]], base: f64) {
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
        self.old_gradient = gradient;
    }

    /// Whether the members' gradients cancel.
    fn rests(&self, answers: &[&[f64]]) -> bool {
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
    fn sides(&self, answers: &[&[f64]], d: usize) -> Option<Vec<bool>> {
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
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    if n == 0 {
        return f64::NAN;
    }
    f64::midpoint(values[(n - 1) / 2], values[n / 2])
}

/// The share of a loss that is left when so many parameters were fitted to so many records.
fn freedom(records: f64, parameters: f64) -> f64 {
    (1.0 - parameters / records).max(0.25)
}

/// The two halves of some members by side, from these models; nothing where one is empty.
fn halves(members: &[u32], sides: &[bool], models: [&[f64]; 2]) -> Option<Box<[Group]>> {
    let half = |side: bool| -> Vec<u32> {
        members.iter().zip(sides).filter(|(_, s)| **s == side).map(|(&member, _)| member).collect()
    };
    let (low, high) = (half(false), half(true));
    if low.is_empty() || high.is_empty() {
        return None;
    }
    Some([Group::new(low, models[0].to_vec()), Group::new(high, models[1].to_vec())].into())
}

impl Groups {
    /// Groups by label, each beginning at the mean of its members' models.
    pub(super) fn new(labels: &[u32], models: &[f64], d: usize, watched: bool) -> Self {
        let count = labels.iter().max().map_or(0, |most| *most as usize + 1);
        let list = (0..count as u32)
            .map(|label| {
                let of = (0..labels.len() as u32).filter(|&i| labels[i as usize] == label);
                let members: Vec<u32> = of.collect();
                let model = middle(&members, models, d);
                Group::new(members, model)
            })
            .collect();
        let (stage, left) = if watched { (TRAIN, ROUNDS) } else { (DONE, 0) };
        Self { list, stage, left, rested: vec![0; labels.len()].into(), ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What the next step is.
    pub(super) fn label(&self) -> Label {
        if matches!(self.stage, COMPARE | JUDGE) { CHECK } else { GATHER }
    }

    /// The model of a client's group.
    pub(super) fn model_of(&self, client: u32) -> &[f64] {
        let own = self.list.iter().find(|group| group.members.binary_search(&client).is_ok());
        own.map_or(&[], |group| &group.model)
    }

    /// The group of every client.
    pub(super) fn labels(&self, clients: usize) -> Vec<u32> {
        let mut labels = vec![0; clients];
        for (number, group) in self.list.iter().enumerate() {
            group.members.iter().for_each(|&i| labels[i as usize] = number as u32);
        }
        labels
    }

    /// The models a client is sent.
    pub(super) fn sent(&self, client: usize, d: usize) -> &[f64] {
        let first = self.first[client] as usize;
        &self.menu[first * d..(first + self.count[client] as usize) * d]
    }

    /// Lays out what everybody is sent; gives who is asked, and how many queries that is.
    pub(super) fn lay_out(&mut self, clients: usize) -> (Vec<u32>, u64) {
        let (mut first, mut count) = (vec![0u32; clients], vec![0u32; clients]);
        self.menu.clear();
        let mut slots = 0u32;
        let mut put = |menu: &mut Vec<f64>, group: &Group| {
            menu.extend_from_slice(&group.model);
            slots += 1;
            slots - 1
        };
        let mut queries = 0;
        match self.stage {
            COMPARE => {
                self.list.iter().for_each(|group| {
                    put(&mut self.menu, group);
                });
                count.fill(self.list.len() as u32);
                queries = clients as u64 * (self.list.len() as u64 - 1);
            }
            JUDGE => {
                for trial in &self.trials {
                    let at = put(&mut self.menu, &trial.halves[0]);
                    put(&mut self.menu, &trial.halves[1]);
                    for &i in &self.list[trial.group as usize].members {
                        (first[i as usize], count[i as usize]) = (at, 2);
                        queries += 1;
                    }
                }
            }
            _ => {
                let whole = (0..self.list.len() as u32)
                    .filter(|&number| self.trials.iter().all(|trial| trial.group != number))
                    .map(|number| &self.list[number as usize]);
                for group in whole.chain(self.trials.iter().flat_map(|trial| trial.halves.iter())) {
                    let at = put(&mut self.menu, group);
                    for &i in &group.members {
                        (first[i as usize], count[i as usize]) = (at, 1);
                        queries += 1;
                    }
                }
            }
        }
        let asked = (0..clients as u32).filter(|&i| count[i as usize] > 0).collect();
        (self.first, self.count) = (first.into(), count.into());
        (asked, queries)
    }

    /// What is known beside the groups.
    pub(super) fn close(&mut self, answers: &[&[f64]], world: &World<'_>) {
        match self.stage {
            COMPARE => self.compare(answers, world),
            JUDGE => self.judge(answers, world),
            REST => {
                let ready = self.list.iter().all(|group| group.settled || group.rests(answers));
                if ready || self.left == 0 {
                    // These gradients are those at the models as they are: no step is taken.
                    self.try_halves(answers, world.d);
                } else {
                    self.train(answers, world);
                }
            }
            _ => self.train(answers, world),
        }
    }

    fn go_to(&mut self, stage: u32, left: u32) {
        (self.stage, self.left) = (stage, left);
    }

    fn train(&mut self, answers: &[&[f64]], world: &World<'_>) {
        for (number, group) in self.list.iter_mut().enumerate() {
            if self.trials.iter().all(|trial| trial.group as usize != number) {
                group.step(answers, world.rate);
            }
        }
        for trial in &mut self.trials {
            trial.halves.iter_mut().for_each(|half| half.step(answers, world.rate));
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            match self.stage {
                TRAIN => self.go_to(COMPARE, 0),
                TRIAL => self.go_to(JUDGE, 0),
                _ => {}
            }
        }
    }

    fn compare(&mut self, answers: &[&[f64]], world: &World<'_>) {
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
    fn try_halves(&mut self, answers: &[&[f64]], d: usize) {
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
    fn judge(&mut self, answers: &[&[f64]], world: &World<'_>) {
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

/// What groups are judged by.
pub(super) struct World<'a> {
    /// All clients.
    pub(super) members: &'a [Member],
    /// Their models before there were groups.
    pub(super) warm: &'a [f64],
    /// Parameters of a model.
    pub(super) d: usize,
    /// The step size to begin with.
    pub(super) rate: f64,
}

/// The first of the least values.
fn least(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (f64::INFINITY, 0);
    for (i, value) in values.enumerate() {
        if value < best.0 {
            best = (value, i);
        }
    }
    best.1
}

/// The mean of these clients' models.
fn middle(members: &[u32], models: &[f64], d: usize) -> Vec<f64> {
    let mut mean = vec![0.0; d];
    for &i in members {
        axpy(1.0 / members.len() as f64, &models[i as usize * d..(i as usize + 1) * d], &mut mean);
    }
    mean
}
