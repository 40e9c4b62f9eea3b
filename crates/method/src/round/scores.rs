//! Scores of all clients, and what of them can be kept from one evaluation to the next.

use super::pool::{self, Pool};
use super::{CHUNK, Client, Scratch, Server};
use crate::algorithm::{Algorithm, Run, Verdict};
use crate::federation::Member;

/// Scores the named models of a client.
pub trait Judge: Sync {
    /// Number of columns.
    fn columns(&self) -> usize;
    /// Scores one model of a client (`which` counts the method's `PERSONAL` names); columns that do not
    /// apply are left as they are (NaN). `active`: the client's upload counted in the last step.
    fn score(&self, member: &Member, active: bool, which: usize, model: &[f64], row: &mut [f64]);
    /// Clients of one group get equal scores for equal models, active or not; `None` where a client is
    /// judged by records of its own. What a server shares with a cluster is then scored once per group.
    fn group(&self, _member: &Member) -> Option<u32> {
        None
    }
    /// A number that no other judge of this process has: scores of models that did not change are kept for
    /// its next evaluation. `None` where a score depends on more than the arguments of `score`.
    fn identity(&self) -> Option<u64> {
        None
    }
}

/// The mean of a column over the clients that have a value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// Sum over clients, in id order.
    pub sum: f64,
    /// How many clients.
    pub count: u64,
}

impl Summary {
    /// The mean, NaN where no client has a value.
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    /// Counts the values of a row that are there, column by column.
    pub(super) fn add_row(columns: &mut [Summary], row: &[f64]) {
        for (summary, value) in columns.iter_mut().zip(row) {
            if !value.is_nan() {
                summary.sum += value;
                summary.count += 1;
            }
        }
    }

    /// Adds what other clients have, column by column.
    pub(super) fn add_all(columns: &mut [Summary], others: &[Summary]) {
        for (summary, other) in columns.iter_mut().zip(others) {
            summary.sum += other.sum;
            summary.count += other.count;
        }
    }

    /// Sums up rows in the order of a run: within a chunk of clients, then chunk by chunk.
    pub fn of_chunks<R: AsRef<[f64]>, C: IntoIterator<Item = R>>(
        columns: usize,
        chunks: impl IntoIterator<Item = C>,
    ) -> Vec<Summary> {
        let mut all = vec![Summary::default(); columns];
        for chunk in chunks {
            let mut part = vec![Summary::default(); columns];
            chunk.into_iter().for_each(|row| Self::add_row(&mut part, row.as_ref()));
            Self::add_all(&mut all, &part);
        }
        all
    }
}

/// What the kept scores of a client belong to: the version of its memory, and whether it was active.
type Stamp = Option<(u64, bool)>;

/// The clients' own scores by server, one row per client, as they were last computed.
#[derive(Default)]
pub(crate) struct Scores {
    judge: Option<u64>,
    columns: usize,
    servers: Vec<(Vec<f64>, Vec<Stamp>)>,
}

/// A run as it is scored.
pub(crate) struct Scene<'a, A: Algorithm> {
    pub algorithm: &'a A,
    pub run: &'a Run,
    pub servers: &'a [Server<A>],
    pub clients: &'a [Vec<Client<A>>],
    pub pool: &'a dyn Pool,
}

/// Some clients of a server, from a position on, with what is kept for them.
struct Piece<'a, A: Algorithm> {
    server: &'a Server<A>,
    first: usize,
    clients: &'a [Client<A>],
    rows: &'a mut [f64],
    stamps: &'a mut [Stamp],
}

/// Buffers of one thread while it scores.
struct Buffers<A: Algorithm> {
    scratch: Scratch<A>,
    row: Vec<f64>,
    shared: Shared,
}

impl<A: Algorithm> Default for Buffers<A> {
    fn default() -> Self {
        Self { scratch: Scratch::default(), row: Vec::new(), shared: Shared::default() }
    }
}

/// By cluster and group: one row of scores of the models that a server shares.
#[derive(Default)]
struct Shared {
    keys: Vec<(u32, u32)>,
    rows: Vec<f64>,
}

impl Scores {
    /// Forgets what belongs to another judge.
    fn prepare<A: Algorithm>(&mut self, judge: &dyn Judge, clients: &[Vec<Client<A>>]) {
        if self.judge.is_none() || self.judge != judge.identity() || self.servers.len() != clients.len() {
            self.judge = judge.identity();
            self.columns = judge.columns();
            let rows = |clients: &Vec<Client<A>>| {
                (vec![f64::NAN; clients.len() * self.columns], vec![None; clients.len()])
            };
            self.servers = clients.iter().map(rows).collect();
        }
    }

    /// Calls `each` with every client's row of the judge, chunk by chunk; results in the order of chunks.
    pub(crate) fn judged<A: Algorithm, T: Send>(
        &mut self,
        scene: &Scene<'_, A>,
        judge: &dyn Judge,
        start: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, &Member, &[f64]) + Sync,
    ) -> Vec<T> {
        self.prepare(judge, scene.clients);
        let columns = self.columns;
        let score = |buffers: &mut Buffers<A>, piece: Piece<'_, A>| {
            let mut result = start();
            piece.score(scene, judge, columns, buffers, |member, row| each(&mut result, member, row));
            result
        };
        let servers = scene.servers.iter().zip(scene.clients).zip(&mut self.servers);
        let pieces = servers.flat_map(|((server, clients), (rows, stamps))| {
            // A row without columns still is a row.
            let rows =
                rows.chunks_mut((CHUNK * columns).max(1)).chain(std::iter::repeat_with(Default::default));
            clients.chunks(CHUNK).zip(rows).zip(stamps.chunks_mut(CHUNK)).enumerate().map(
                move |(number, ((clients, rows), stamps))| Piece {
                    server,
                    first: number * CHUNK,
                    clients,
                    rows,
                    stamps,
                },
            )
        });
        pool::map_with(scene.pool, pieces, Buffers::default, score)
    }
}

impl<A: Algorithm> Piece<'_, A> {
    fn score(
        self,
        scene: &Scene<'_, A>,
        judge: &dyn Judge,
        columns: usize,
        buffers: &mut Buffers<A>,
        mut each: impl FnMut(&Member, &[f64]),
    ) {
        let Buffers { scratch, row, shared } = buffers;
        let marked = |marks: &[bool], which: usize| marks.get(which) == Some(&true);
        let models = 0..A::PERSONAL.len();
        let identified = judge.identity().is_some();
        let kept_in_group =
            identified && models.clone().all(|which| marked(A::KEPT, which) || marked(A::SHARED, which));
        let kept_alone = identified && models.clone().all(|which| marked(A::KEPT, which));
        shared.keys.clear();
        shared.rows.clear();
        for (i, (client, stamp)) in self.clients.iter().zip(self.stamps).enumerate() {
            let position = self.first + i;
            let member = &self.server.members()[position];
            let active = self.server.verdicts()[position] == Verdict::Value;
            let own = &mut self.rows[i * columns..(i + 1) * columns];
            let key = judge.group(member).map(|group| (member.cluster, group));
            let known = key.and_then(|key| shared.keys.iter().position(|known| *known == key));
            let fresh = key.filter(|_| known.is_none());
            let at = known.unwrap_or(shared.keys.len()) * columns;
            if let Some(key) = fresh {
                shared.keys.push(key);
                shared.rows.resize(at + columns, f64::NAN);
            }
            let now =
                (if key.is_some() { kept_in_group } else { kept_alone }).then(|| (client.version(), active));
            let stale = now.is_none() || *stamp != now;
            if stale {
                own.fill(f64::NAN);
                *stamp = now;
            }
            if stale || fresh.is_some() {
                let mut which = 0;
                let mut take = |name: &'static str, model: &[f64]| {
                    debug_assert_eq!(A::PERSONAL.get(which), Some(&name), "in the order of PERSONAL");
                    if model.is_empty() {
                        // The method has no model for this client, and so no score.
                    } else if key.is_none() || !marked(A::SHARED, which) {
                        if stale {
                            judge.score(member, active, which, model, own);
                        }
                    } else if fresh.is_some() {
                        judge.score(member, active, which, model, &mut shared.rows[at..at + columns]);
                    }
                    which += 1;
                };
                self.server.personal(scene.algorithm, scene.run, position, client, scratch, &mut take);
            }
            row.clear();
            if key.is_some() {
                let both = own.iter().zip(&shared.rows[at..at + columns]);
                row.extend(both.map(|(own, shared)| if shared.is_nan() { *own } else { *shared }));
            } else {
                row.extend_from_slice(own);
            }
            each(member, row);
        }
    }
}
