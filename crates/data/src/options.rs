//! Types of settings that several sources share.

use crate::error::DataError;
use fedkin_settings::{Kind, Setting, Settings, Value, Values};
use std::collections::BTreeMap;
use std::fmt::Display;

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

/// A share that leaves something over.
pub(crate) const FRACTION: Kind = Kind::Number { least: 0.0, most: 0.99, open: false };

/// From one number to another, both included. In a config it is one number, or a list of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range<T> {
    /// The smaller end.
    pub from: T,
    /// The larger end.
    pub to: T,
}

impl<T: Copy> Range<T> {
    /// One number only.
    pub const fn one(number: T) -> Self {
        Self { from: number, to: number }
    }
}

impl<T: Setting + Copy + PartialOrd + Display> Setting for Range<T> {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        if !matches!(value, Some(Value::List(_))) {
            return T::read(value).map(Self::one);
        }
        match *Vec::<T>::read(value)? {
            [from, to] if from <= to => Ok(Self { from, to }),
            [from, to] => Err(format!("[{from}, {to}] is an empty range: the smaller end comes first")),
            ref ends => Err(format!("a range has two ends, as in [2, 9]; {} were given", ends.len())),
        }
    }

    fn write(&self) -> Option<Value> {
        if self.from == self.to { self.from.write() } else { vec![self.from, self.to].write() }
    }
}

/// One value for all, or one for each. In a config it is one value, or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Each<T> {
    /// The same for all.
    All(T),
    /// One for each, in order.
    Listed(Vec<T>),
}

impl<T: Setting> Setting for Each<T> {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::List(_)) => Vec::read(value).map(Self::Listed),
            one => T::read(one).map(Self::All),
        }
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::All(one) => one.write(),
            Self::Listed(list) => Some(Value::List(list.iter().filter_map(Setting::write).collect())),
        }
    }
}

impl<T: Copy> Each<T> {
    /// One value per client.
    pub(crate) fn per_client(&self, key: &str, clients: usize) -> Result<Vec<T>, DataError> {
        match self {
            Self::All(one) => Ok(vec![*one; clients]),
            Self::Listed(list) if list.len() == clients => Ok(list.clone()),
            Self::Listed(list) => {
                let message = format!(
                    "{} numbers were given for {clients} clients: give one per client, or one number for all",
                    list.len()
                );
                Err(DataError::config(key, message))
            }
        }
    }
}

/// How many clients stand at each server.
impl Each<usize> {
    /// How many servers the list speaks of.
    pub(crate) fn servers(&self) -> Option<usize> {
        match self {
            Self::All(_) => None,
            Self::Listed(list) => Some(list.len()),
        }
    }

    /// The server of each client, in the order of the clients.
    pub(crate) fn servers_of_clients(&self, servers: usize) -> Result<Vec<u32>, DataError> {
        const MOST: usize = 100_000_000;
        let key = "clients_per_server";
        let sizes = match self {
            Self::All(count) => vec![*count; servers],
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

/// The settings of a table whose values passed it.
pub(crate) fn read<S: Settings>(values: &Values) -> Result<S, DataError> {
    S::read(values).map_err(|message| DataError::Settings { message })
}

/// The settings of one table among values that may have keys of others: what is absent takes the table's defaults.
pub(crate) fn chosen<S: Settings>(values: &Values) -> Result<S, DataError> {
    let own = |key: &str| S::PARAMS.iter().any(|param| param.name == key);
    let raw: BTreeMap<String, Value> = values
        .iter()
        .filter(|(key, _)| own(key))
        .map(|(key, value)| (key.to_string(), value.clone()))
        .collect();
    let values = Values::check(S::PARAMS, &raw).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        DataError::Settings { message: all.join("; ") }
    })?;
    read(&values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_number_or_two_in_order() {
        let list = |ends: &[i64]| Value::List(ends.iter().map(|end| Value::Integer(*end)).collect());
        for (value, range) in [(list(&[2, 9]), Range { from: 2, to: 9 }), (Value::Integer(4), Range::one(4))]
        {
            let read = Range::<u32>::read(Some(&value)).unwrap();
            assert_eq!((read, read.write()), (range, Some(value)));
        }
        let wrong = |ends: &[i64]| Range::<u32>::read(Some(&list(ends))).unwrap_err();
        assert!(wrong(&[9, 2]).contains("empty range") && wrong(&[1]).contains("two ends"));
        assert!(Range::<u32>::read(None).is_err());
    }

    #[test]
    fn one_value_stands_for_all_and_a_list_has_one_for_each() {
        let list = Value::List(vec![Value::Integer(3), Value::Integer(1)]);
        let listed = Each::<usize>::read(Some(&list)).unwrap();
        assert_eq!((listed.write(), listed.servers_of_clients(2).unwrap()), (Some(list), vec![0, 0, 0, 1]));
        assert!(listed.servers_of_clients(3).is_err() && listed.per_client("samples", 1).is_err());
        assert_eq!(Each::All(2.0).per_client("share", 2).unwrap(), [2.0, 2.0]);
    }
}
