//! Files as they are: what tables, arrays and archives hold, before anybody says what it means.

pub mod array;
pub mod csv;
pub mod idx;
pub(crate) mod inspect;
pub mod npz;
pub mod parquet;
pub mod table;
