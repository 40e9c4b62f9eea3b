//! Values that are not there, filled in by the client that misses them.
//!
//! What to fill in is fitted on a client's own training records: the median of a number, the commonest of some categories
//! (the first of them where several are equally common). A client that never saw a value takes a public constant. Beside
//! the filled value stands an indicator column, 1 where something was missing, so that a model can tell the two apart, and
//! all clients have the same columns whatever they miss.

/// A column before it is a feature.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// A number, told as `(value - centre) / scale`; both are public constants.
    Number { centre: f64, scale: f64 },
    /// One column for each of these values.
    OneOf(&'static [f64]),
}

/// What is known of a column in public.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Public {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// What stands for a value that a client never saw.
    pub(crate) usual: f64,
    /// Whether the column may have holes: then it has an indicator.
    pub(crate) holes: bool,
}

impl Public {
    fn columns(&self) -> usize {
        let values = match self.form {
            Form::Number { .. } => 1,
            Form::OneOf(values) => values.len(),
        };
        values + usize::from(self.holes)
    }
}

/// What one client fills in, by column.
pub(crate) struct Filler<'a> {
    columns: &'a [Public],
    fills: Vec<f64>,
}

impl<'a> Filler<'a> {
    /// Fitted on training records, in which a hole is `None`.
    pub(crate) fn fit(columns: &'a [Public], train: &[&[Option<f64>]]) -> Self {
        let fills = columns.iter().enumerate().map(|(at, column)| {
            let mut seen: Vec<f64> = train.iter().filter_map(|record| record[at]).collect();
            seen.sort_unstable_by(f64::total_cmp);
            let fill = match column.form {
                Form::Number { .. } => median(&seen),
                Form::OneOf(values) => commonest(values, &seen),
            };
            fill.unwrap_or(column.usual)
        });
        Self { fills: fills.collect(), columns }
    }

    /// The features of some records, row by row.
    pub(crate) fn rows(&self, records: &[&[Option<f64>]]) -> Vec<f64> {
        let width: usize = self.columns.iter().map(Public::columns).sum();
        let mut rows = Vec::with_capacity(records.len() * width);
        for record in records {
            for ((column, fill), cell) in self.columns.iter().zip(&self.fills).zip(*record) {
                let value = cell.unwrap_or(*fill);
                match column.form {
                    Form::Number { centre, scale } => rows.push((value - centre) / scale),
                    Form::OneOf(values) => {
                        rows.extend(values.iter().map(|known| f64::from(u8::from(*known == value))));
                    }
                }
                if column.holes {
                    rows.push(f64::from(u8::from(cell.is_none())));
                }
            }
        }
        rows
    }
}

/// The names of the features, in order.
pub(crate) fn names(columns: &[Public]) -> Vec<String> {
    let mut names = Vec::new();
    for column in columns {
        match column.form {
            Form::Number { .. } => names.push(column.name.to_string()),
            Form::OneOf(values) => {
                names.extend(values.iter().map(|value| format!("{}={value}", column.name)));
            }
        }
        if column.holes {
            names.push(format!("{}-missing", column.name));
        }
    }
    names
}

/// Of an even number of values the mean of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
}

fn commonest(values: &[f64], seen: &[f64]) -> Option<f64> {
    let count = |value: f64| seen.iter().filter(|known| **known == value).count();
    let mut best: Option<(usize, f64)> = None;
    for &value in values {
        let found = count(value);
        if found > best.map_or(0, |(most, _)| most) {
            best = Some((found, value));
        }
    }
    best.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Public] = &[
        Public { name: "a", form: Form::Number { centre: 10.0, scale: 2.0 }, usual: 12.0, holes: true },
        Public { name: "b", form: Form::OneOf(&[1.0, 2.0, 3.0]), usual: 3.0, holes: true },
        Public { name: "c", form: Form::OneOf(&[0.0, 1.0]), usual: 0.0, holes: false },
    ];

    #[test]
    fn a_client_fills_in_what_its_own_training_records_say() {
        let train: Vec<[Option<f64>; 3]> = vec![
            [Some(14.0), Some(2.0), Some(1.0)],
            [Some(20.0), Some(1.0), Some(0.0)],
            [None, Some(2.0), Some(0.0)],
            [Some(0.0), None, Some(0.0)],
        ];
        let train: Vec<&[Option<f64>]> = train.iter().map(<[_; 3]>::as_slice).collect();
        let filler = Filler::fit(COLUMNS, &train);
        assert_eq!(names(COLUMNS), ["a", "a-missing", "b=1", "b=2", "b=3", "b-missing", "c=0", "c=1"]);
        assert_eq!(
            filler.rows(&train[2..]),
            [2.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, -5.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0]
        );
    }

    #[test]
    fn a_column_that_a_client_never_saw_takes_the_public_constant() {
        let train = [None, None, Some(1.0)];
        let filler = Filler::fit(COLUMNS, &[&train]);
        assert_eq!(filler.rows(&[&train]), [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
        assert_eq!(median(&[1.0, 4.0]), Some(2.5));
    }
}
