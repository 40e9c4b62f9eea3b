//! The clients of a table: whose rows are whose, which server and cluster each client has, what is for testing.

use super::columns::{Columns, Roles, column};
use crate::error::{Conflict, DataError};
use crate::formats::table::{Cells, Column, Table};
use crate::prepare::split::{Parts, cut};
use fedkin_numeric::rng::PublicRng;
use std::collections::BTreeMap;

/// One client's rows in the table.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) server: u32,
    pub(crate) cluster: u32,
    /// The name of what it fits, where a column says.
    pub(crate) learner: Option<String>,
    pub(crate) rows: Vec<usize>,
}

/// The clients in the byte order of their names.
pub(crate) struct Members {
    pub(crate) clients: Vec<Member>,
    pub(crate) servers: Vec<String>,
    pub(crate) clusters: Vec<String>,
}

impl Members {
    pub(crate) fn read(table: &Table, roles: &Roles<'_>) -> Result<Self, DataError> {
        let client = column(table, "client", roles.client)?;
        table.complete(client)?;
        let (codes, words) = words_of(client);
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); words.len()];
        for (row, &code) in codes.iter().enumerate() {
            rows[code as usize].push(row);
        }
        let (servers, server_of) = groups(table, roles.server, "server", words, &rows)?;
        let (clusters, cluster_of) = groups(table, roles.cluster, "cluster", words, &rows)?;
        let learner_of = learners(table, roles.learner, words, &rows)?;
        let mut clients: Vec<Member> = rows
            .into_iter()
            .zip(learner_of)
            .enumerate()
            .map(|(at, (rows, learner))| Member {
                name: words[at].clone(),
                server: server_of[at],
                cluster: cluster_of[at],
                learner,
                rows,
            })
            .collect();
        clients.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        Ok(Self { clients, servers, clusters })
    }
}

pub(crate) fn words_of(column: &Column) -> (&[u32], &[String]) {
    match &column.cells {
        Cells::Words { codes, words } => (codes, words),
        _ => (&[], &[]),
    }
}

/// The sorted names of a column that groups clients, and the group of each client.
fn groups(
    table: &Table,
    name: Option<&str>,
    what: &'static str,
    clients: &[String],
    rows: &[Vec<usize>],
) -> Result<(Vec<String>, Vec<u32>), DataError> {
    let Some(name) = name else {
        let only = if what == "server" { "server" } else { "all" };
        return Ok((vec![only.to_string()], vec![0; clients.len()]));
    };
    let column = column(table, what, name)?;
    table.complete(column)?;
    let mut names = words_of(column).1.to_vec();
    names.sort_unstable();
    let ids: BTreeMap<&str, u32> = names.iter().zip(0..).map(|(name, id)| (name.as_str(), id)).collect();
    let mut group = Vec::with_capacity(clients.len());
    for (client, rows) in clients.iter().zip(rows) {
        let word = agreed(table, column, what, client, rows)?;
        group.push(ids.get(word).copied().unwrap_or(0));
    }
    Ok((names, group))
}

/// What a column says of the learner of each client: nothing where its cells are empty, or where there is no column.
fn learners(
    table: &Table,
    name: Option<&str>,
    clients: &[String],
    rows: &[Vec<usize>],
) -> Result<Vec<Option<String>>, DataError> {
    let Some(name) = name else { return Ok(vec![None; clients.len()]) };
    let column = column(table, "learner", name)?;
    let learner = |(client, rows): (&String, &Vec<usize>)| {
        let word = agreed(table, column, "learner", client, rows)?;
        Ok(Some(word).filter(|word| !word.is_empty()).map(String::from))
    };
    clients.iter().zip(rows).map(learner).collect()
}

/// The word that all records of a client have in a column; an empty one where the cells are empty.
fn agreed<'a>(
    table: &Table,
    column: &'a Column,
    what: &'static str,
    client: &str,
    rows: &[usize],
) -> Result<&'a str, DataError> {
    let word = |row: usize| column.word(row).unwrap_or_default();
    let first = word(rows[0]);
    match rows.iter().find(|&&row| word(row) != first) {
        None => Ok(first),
        Some(&row) => Err(DataError::Conflict(Box::new(Conflict {
            place: table.place(row),
            other: table.place(rows[0]).at,
            client: client.to_string(),
            what,
            first: first.to_string(),
            second: word(row).to_string(),
        }))),
    }
}

/// Which records are for testing and for validation.
pub(crate) struct Split {
    /// What a column says: whether a row is for testing.
    column: Option<Vec<bool>>,
    /// The share that is drawn where no column says.
    test: f64,
    validation: f64,
    seed: u64,
}

impl Split {
    pub(crate) fn read(
        table: &Table,
        columns: &Columns,
        roles: &Roles<'_>,
        seed: u64,
    ) -> Result<Self, DataError> {
        let Columns { test_fraction, validation_fraction, .. } = *columns;
        let drawn = Self { column: None, test: test_fraction, validation: validation_fraction, seed };
        let Some(name) = roles.split else { return Ok(drawn) };
        if test_fraction > 0.0 {
            return Err(DataError::config(
                "test_fraction",
                "the column `split` decides already: drop one of the keys",
            ));
        }
        let column = column(table, "split", name)?;
        table.complete(column)?;
        let (codes, words) = words_of(column);
        let mut is_test = Vec::with_capacity(codes.len());
        for (row, &code) in codes.iter().enumerate() {
            let word = words[code as usize].as_str();
            if word != "train" && word != "test" {
                return Err(table.cell(row, name, format!("{word:?} is neither \"train\" nor \"test\"")));
            }
            is_test.push(word == "test");
        }
        Ok(Self { column: Some(is_test), ..drawn })
    }

    /// The rows of a client by what they are for.
    ///
    /// `id` is the client's number in the whole federation: a machine that has only this client's records
    /// draws the same ones for testing.
    pub(crate) fn split(&self, table: &Table, member: &Member, id: usize) -> Result<Parts, DataError> {
        let mut rng = PublicRng::named(self.seed, "world/split", 0, id as u32);
        let rows = |of: &[usize], part: Vec<usize>| part.into_iter().map(|at| of[at]).collect();
        let Some(is_test) = &self.column else {
            let parts = cut(member.rows.len(), self.test, self.validation, &mut rng);
            return Ok(Parts {
                train: rows(&member.rows, parts.train),
                validation: rows(&member.rows, parts.validation),
                test: rows(&member.rows, parts.test),
            });
        };
        let (test, train): (Vec<usize>, Vec<usize>) = member.rows.iter().partition(|&&row| is_test[row]);
        if train.is_empty() {
            let message =
                format!("client {:?} has test records only: give it a training record", member.name);
            return Err(table.record(member.rows[0], message));
        }
        let parts = cut(train.len(), 0.0, self.validation, &mut rng);
        Ok(Parts { train: rows(&train, parts.train), validation: rows(&train, parts.validation), test })
    }
}
