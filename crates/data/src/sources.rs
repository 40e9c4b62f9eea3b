//! The sources that Fedkin brings, each with its settings.

pub use crate::functions::ClusteredFunctions;
pub use crate::har::{Features, UciHar};
pub use crate::harbox::HarBox;
pub use crate::heart::HeartDisease;
pub use crate::image_sets::Class;
pub use crate::image_settings::{
    ByClass, Cifar10, Cifar10Tasks, Images, Mnist, MnistTasks, OrganAMnist, OrganAMnistTasks, Pixels,
};
pub use crate::memory::Memory;
pub use crate::options::{Each, Range};
pub use crate::signals::{Abide, Base, Coil20, GraphSignals, OwnSignals, Region, SmoothSignals, Students};
pub use crate::standardise::StandardiseBy;
pub use crate::synthetic::{
    ClusteredRegression, Gamma, Models, NoiseLaw, ShiftedClasses, Sizes, TestSamples,
};
pub use crate::tabular::{Columns, Csv, Parquet};

use crate::registry::SourceRow;

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
