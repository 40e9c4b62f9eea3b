//! What bounds how far one client can move the others: how the uploads of a cell are put together, and how long one may be.
//!
//! `mean` is the ordered sum of [`Cells`](crate::Cells), bit for bit what it was, and keeps no upload. Everything else needs the
//! uploads of a cell side by side; they are there between two steps' folds only, so nothing new is stored.

mod aggregate;
mod lie;
#[cfg(test)]
mod tests;

pub use aggregate::Aggregator;
pub use lie::{Liars, Lie};

use fedkin_settings::{Kind, Preset, choice, settings};

choice! {
    /// How uploads of one cell become one model.
    pub enum Aggregation {
        /// Their weighted mean.
        Mean = "mean",
        /// The weighted median of every coordinate.
        Median = "median",
        /// The mean of every coordinate without its smallest and largest values.
        TrimmedMean = "trimmed-mean",
        /// The point with the least sum of distances.
        GeometricMedian = "geometric-median",
        /// The mean of the uploads that are closest to their neighbours.
        MultiKrum = "multi-krum",
        /// The mean of what is left of each upload within a radius of the model before.
        CentredClipping = "centred-clipping",
    }
}

settings! {
    /// `[robust]`
    pub struct Robust {
        aggregation: Aggregation => Kind::Choice(Aggregation::WORDS), Preset::Unwritten(&Preset::Text("mean")),
            "how a server puts the uploads of a cell together; all but mean bound what a lying client can do";
        neighbours: Aggregation => Kind::Choice(Aggregation::WORDS), Preset::Unwritten(&Preset::Text("mean")),
            "how PGFL puts the shares of a neighbourhood together; all but mean bound what a lying server can do";
        liars: u32 => Kind::COUNT, Preset::Unwritten(&Preset::Integer(1)),
            "multi-krum: how many clients of a cell may lie";
        trim: f64 => Kind::Number { least: 0.0, most: 0.49, open: false }, Preset::Unwritten(&Preset::Number(0.2)),
            "trimmed-mean: the share that is left out at each end of a coordinate";
        radius: Option<f64> => Kind::ABOVE_ZERO, Preset::Absent,
            "centred-clipping: the radius around the model before; absent: the median distance of the uploads to it";
        longest: Option<f64> => Kind::Number { least: 1.0, most: 1e6, open: false }, Preset::Absent,
            "uploads and duals longer than so many times the median of their cell are cut to that length; absent: 3 where aggregation is not mean";
    }
}

/// How many times the median length a contribution may have where a robust aggregation is asked for and nothing else is said.
const LONGEST: f64 = 3.0;

impl Robust {
    /// Whether the uploads of a cell must be kept side by side.
    pub fn keeps_uploads(&self) -> bool {
        self.aggregation != Aggregation::Mean || self.longest.is_some()
    }

    /// Whether anything differs from plain means.
    pub fn is_on(&self) -> bool {
        self.keeps_uploads() || self.neighbours != Aggregation::Mean
    }

    /// How many times the median length of its cell a contribution may have.
    pub fn times(&self) -> Option<f64> {
        self.longest.or((self.aggregation != Aggregation::Mean).then_some(LONGEST))
    }

    /// How uploads of a cell are put together.
    pub fn of_uploads(&self) -> Aggregator {
        self.aggregator(self.aggregation)
    }

    /// How shares of a neighbourhood are put together.
    pub fn of_neighbours(&self) -> Aggregator {
        self.aggregator(self.neighbours)
    }

    fn aggregator(&self, aggregation: Aggregation) -> Aggregator {
        match aggregation {
            Aggregation::Mean => Aggregator::Mean,
            Aggregation::Median => Aggregator::Median,
            Aggregation::TrimmedMean => Aggregator::TrimmedMean { share: self.trim },
            Aggregation::GeometricMedian => Aggregator::GeometricMedian,
            Aggregation::MultiKrum => Aggregator::MultiKrum { liars: self.liars as usize },
            Aggregation::CentredClipping => Aggregator::CentredClipping { radius: self.radius },
        }
    }
}

/// The median of some numbers; the mean of the middle two where there is an even number. 0 where there is none.
pub(crate) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (n, half) if n % 2 == 1 => sorted[half],
        (_, half) => sorted[half - 1].midpoint(sorted[half]),
    }
}
