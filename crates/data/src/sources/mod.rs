//! The sources that Fedkin brings, each with its settings, and the registry that holds them.
//!
//! Sources of one file stand here; the others have folders of their own next to this one.

mod har;
mod harbox;
mod heart;
mod memory;

pub use crate::images::{
    ByClass, Cifar10, Cifar10Tasks, Class, Images, Mnist, MnistTasks, OrganAMnist, OrganAMnistTasks, Pixels,
};
pub use crate::options::{Each, Range};
pub use crate::prepare::standardise::StandardiseBy;
pub use crate::signals::{Abide, Base, Coil20, GraphSignals, OwnSignals, Region, SmoothSignals, Students};
pub use crate::synthetic::ClusteredFunctions;
pub use crate::synthetic::{
    ClusteredRegression, Gamma, Models, NoiseLaw, ShiftedClasses, Sizes, TestSamples,
};
pub use crate::tabular::{Columns, Csv, Parquet};
pub use har::{Features, UciHar};
pub use harbox::HarBox;
pub use heart::HeartDisease;
pub use memory::Memory;

use crate::partition;
use crate::registry::{Registry, SourceRow};
use std::sync::LazyLock;

/// All of them: config validation, command-line help and the reference come from this table.
pub(crate) const ROWS: &[SourceRow] = &[
    SourceRow::of::<ClusteredRegression>(),
    SourceRow::of::<ClusteredFunctions>(),
    SourceRow::of::<ShiftedClasses>(),
    SourceRow::of::<Mnist>(),
    SourceRow::of::<OrganAMnist>(),
    SourceRow::of::<Cifar10>(),
    SourceRow::of::<Csv>(),
    SourceRow::of::<Parquet>(),
    SourceRow::of::<UciHar>(),
    SourceRow::of::<HarBox>(),
    SourceRow::of::<HeartDisease>(),
    SourceRow::of::<OwnSignals>(),
    SourceRow::of::<GraphSignals>(),
    SourceRow::of::<Students>(),
    SourceRow::of::<Coil20>(),
    SourceRow::of::<Abide>(),
    SourceRow::of::<Memory>(),
];

impl Registry {
    /// With the rows that Fedkin brings.
    pub fn native() -> Self {
        NATIVE.clone()
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::native()
    }
}

/// The registry that Fedkin brings, for whoever adds no row.
pub fn native() -> &'static Registry {
    &NATIVE
}

static NATIVE: LazyLock<Registry> = LazyLock::new(|| {
    let mut registry = Registry::empty();
    // No two of these have one name, which a test checks: nothing is refused.
    for row in ROWS {
        let _ = registry.sources.add(*row);
    }
    for row in partition::ROWS {
        let _ = registry.partitioners.add(*row);
    }
    registry
});
