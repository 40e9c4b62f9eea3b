//! Reading values that passed their table.

use crate::error::DataError;
use fedkin_core::params::{Kind, Value, Values};
use std::path::{Path, PathBuf};

/// A whole number, or a list of two: from, to.
pub(crate) const COUNT_RANGE: Kind = Kind::Either(&[
    Kind::Integer { least: 1, most: 1_000_000 },
    Kind::List(&Kind::Integer { least: 1, most: 1_000_000 }),
]);

/// Clients of every server, or of each.
pub(crate) const CLIENTS: Kind = Kind::Either(&[
    Kind::Integer { least: 1, most: 100_000_000 },
    Kind::List(&Kind::Integer { least: 1, most: 100_000_000 }),
]);

/// A path of the config: relative ones start at the config's folder.
pub(crate) fn resolve(base: &Path, path: &str) -> PathBuf {
    base.join(path)
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(x) => Some(*x),
        _ => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(x) => Some(*x as f64),
        Value::Number(x) => Some(*x),
        _ => None,
    }
}

fn ends<T: Copy + PartialOrd + std::fmt::Display>(key: &str, ends: &[T]) -> Result<(T, T), DataError> {
    match *ends {
        [low, high] if low <= high => Ok((low, high)),
        [low, high] => Err(DataError::config(
            key,
            format!("[{low}, {high}] is an empty range: the smaller end comes first"),
        )),
        _ => Err(DataError::config(
            key,
            format!("a range has two ends, as in [2, 9]; {} were given", ends.len()),
        )),
    }
}

/// A range of counts, both ends included.
pub(crate) fn counts(values: &Values, key: &str, default: (u32, u32)) -> Result<(u32, u32), DataError> {
    match values.get(key) {
        None => Ok(default),
        Some(Value::List(list)) => {
            let list: Vec<u32> = list.iter().filter_map(integer).map(|x| x as u32).collect();
            ends(key, &list)
        }
        Some(value) => {
            let one = integer(value).map_or(default.0, |x| x as u32);
            Ok((one, one))
        }
    }
}

/// A range of numbers.
pub(crate) fn numbers(values: &Values, key: &str, default: (f64, f64)) -> Result<(f64, f64), DataError> {
    match values.get(key) {
        None => Ok(default),
        Some(Value::List(list)) => ends(key, &list.iter().filter_map(number).collect::<Vec<_>>()),
        Some(value) => {
            let one = number(value).unwrap_or(default.0);
            Ok((one, one))
        }
    }
}

/// How many clients stand at each server; the list's length where one was given.
pub(crate) enum Clients {
    /// The same number everywhere.
    Each(usize),
    /// One number per server.
    Listed(Vec<usize>),
}

impl Clients {
    pub(crate) fn read(values: &Values, default: usize) -> Self {
        match values.get("clients_per_server") {
            Some(Value::List(list)) => {
                Self::Listed(list.iter().filter_map(integer).map(|x| x as usize).collect())
            }
            Some(value) => Self::Each(integer(value).map_or(default, |x| x as usize)),
            None => Self::Each(default),
        }
    }

    /// How many servers the list speaks of.
    pub(crate) fn servers(&self) -> Option<usize> {
        match self {
            Self::Each(_) => None,
            Self::Listed(list) => Some(list.len()),
        }
    }

    /// The server of each client, in the order of the clients.
    pub(crate) fn servers_of_clients(&self, servers: usize) -> Result<Vec<u32>, DataError> {
        const MOST: usize = 100_000_000;
        let key = "clients_per_server";
        let sizes = match self {
            Self::Each(count) => vec![*count; servers],
            Self::Listed(list) if list.len() == servers => list.clone(),
            Self::Listed(list) => {
                let message =
                    format!("{} numbers were given for {servers} servers: give one per server", list.len());
                return Err(DataError::config(key, message));
            }
        };
        let total =
            sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size)).filter(|&sum| sum <= MOST);
        if total.is_none_or(|total| total == 0) {
            return Err(DataError::config(key, format!("a federation has 1 to {MOST} clients in all")));
        }
        Ok(sizes.iter().zip(0u32..).flat_map(|(&size, server)| std::iter::repeat_n(server, size)).collect())
    }
}
