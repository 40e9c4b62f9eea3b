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

mod group;
mod purity;

use super::{CHECK, GATHER};
use crate::algorithm::Label;
use crate::federation::Member;
use fedkin_numeric::{axpy, record};

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
                group.step(answers, world);
            }
        }
        for trial in &mut self.trials {
            trial.halves.iter_mut().for_each(|half| half.step(answers, world));
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
    /// What a step of this size does to a regulariser with kinks.
    pub(super) shrink: &'a dyn Fn(&mut [f64], f64),
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
