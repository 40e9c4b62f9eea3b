//! What data say of themselves.

/// What data say of themselves, where they do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// How many classes their labels have.
    pub classes: Option<usize>,
    /// Channels, height and width of a record.
    pub shape: Option<[usize; 3]>,
}
