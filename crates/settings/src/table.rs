//! Tables of named rows: what a registry is made of. A program may add rows of its own.

use crate::suggest;
use thiserror::Error;

/// A row of a table.
pub trait Named {
    /// Its name in a config.
    fn name(&self) -> &str;
}

/// Why a row was not added, or not found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// Two rows of one name.
    #[error("there are two {what}s called {name:?}: every row of a registry needs a name of its own")]
    Twice {
        /// What the table lists.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// No row of this name.
    #[error("unknown {what} {name:?}{hint}")]
    Unknown {
        /// What the table lists.
        what: &'static str,
        /// The name.
        name: String,
        /// What may have been meant.
        hint: String,
    },
}

/// Rows in the order they were added, each name once.
#[derive(Debug, Clone)]
pub struct Table<R> {
    what: &'static str,
    rows: Vec<R>,
}

impl<R: Named> Table<R> {
    /// An empty table of such things, in one word: "algorithm", "learner".
    pub fn new(what: &'static str) -> Self {
        Self { what, rows: Vec::new() }
    }

    /// A table of these rows.
    pub fn of(what: &'static str, rows: impl IntoIterator<Item = R>) -> Result<Self, TableError> {
        let mut table = Self::new(what);
        for row in rows {
            table.add(row)?;
        }
        Ok(table)
    }

    /// Adds a row at the end; a name that is there already is refused.
    pub fn add(&mut self, row: R) -> Result<(), TableError> {
        if self.get(row.name()).is_some() {
            return Err(TableError::Twice { what: self.what, name: row.name().to_string() });
        }
        self.rows.push(row);
        Ok(())
    }

    /// The row of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&R> {
        self.rows.iter().find(|row| row.name() == name)
    }

    /// The row of this name; where there is none, what may have been meant.
    pub fn find(&self, name: &str) -> Result<&R, TableError> {
        self.get(name).ok_or_else(|| TableError::Unknown {
            what: self.what,
            name: name.to_string(),
            hint: suggest(name, self.names()),
        })
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(Named::name)
    }

    /// All rows, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, R> {
        self.rows.iter()
    }
}

impl<'a, R: Named> IntoIterator for &'a Table<R> {
    type Item = &'a R;
    type IntoIter = std::slice::Iter<'a, R>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Word(&'static str);
    impl Named for Word {
        fn name(&self) -> &str {
            self.0
        }
    }

    #[test]
    fn names_are_unique_and_unknown_ones_get_a_suggestion() {
        let mut table = Table::of("algorithm", [Word("pgfl"), Word("fedavg")]).unwrap();
        assert_eq!(
            table.add(Word("pgfl")).unwrap_err().to_string(),
            "there are two algorithms called \"pgfl\": every row of a registry needs a name of its own"
        );
        table.add(Word("mine")).unwrap();
        assert_eq!(table.names().collect::<Vec<_>>(), ["pgfl", "fedavg", "mine"]);
        assert_eq!(
            table.find("pglf").unwrap_err().to_string(),
            "unknown algorithm \"pglf\"; did you mean `pgfl`?"
        );
    }
}
