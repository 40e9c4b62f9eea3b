//! What a gradient that a client sends is of.

use fedkin_settings::choice;

choice! {
    /// What the gradient of a client is of.
    pub enum GradientScale {
        /// Its mean loss.
        Mean = "mean",
        /// Half its number of records times that.
        Sum = "sum",
    }
}

impl GradientScale {
    /// The factor of the gradient of a mean over so many records.
    pub(super) fn factor(self, records: usize) -> f64 {
        match self {
            GradientScale::Mean => 1.0,
            GradientScale::Sum => 0.5 * records as f64,
        }
    }
}
