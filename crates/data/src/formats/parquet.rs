//! Parquet files with flat columns of numbers, booleans and text.

use super::table::{Builder, Cells, Column, Strays, Table, check_header};
use crate::error::DataError;
use ::parquet::basic::{ConvertedType, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const BATCH: usize = 1 << 13;

/// Reads a file; `words` says which columns hold text whatever their type.
pub fn read(path: &Path, words: &dyn Fn(&str) -> bool) -> Result<Table, DataError> {
    // The decoder indexes into pages it trusts: on a damaged file some of its checks are panics.
    catch_unwind(AssertUnwindSafe(|| decode(path, words))).unwrap_or_else(|_| {
        Err(DataError::file(path, "the Parquet file is damaged: write or fetch it again"))
    })
}

fn broken(path: &Path, error: &ParquetError) -> DataError {
    DataError::file(
        path,
        format!("this is not a Parquet file, or it is damaged ({error}): write or fetch it again"),
    )
}

fn decode(path: &Path, words: &dyn Fn(&str) -> bool) -> Result<Table, DataError> {
    let file = File::open(path).map_err(|source| DataError::io(path, source))?;
    let reader = SerializedFileReader::new(file).map_err(|error| broken(path, &error))?;
    let descriptor = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = descriptor.columns().iter().map(|column| column.path().string()).collect();
    if names.is_empty() {
        return Err(DataError::file(path, "the file has no column"));
    }
    check_header(path, &names)?;
    let mut targets: Vec<Target> = descriptor
        .columns()
        .iter()
        .zip(&names)
        .map(|(column, name)| match unsupported(column) {
            Some(kind) => Target::Skip(name.clone(), kind),
            None => Target::Fill(Builder::new(
                name,
                words(name) || column.physical_type() == Physical::BYTE_ARRAY,
            )),
        })
        .collect();
    let mut rows = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| broken(path, &error))?;
        let expected = usize::try_from(group.metadata().num_rows())
            .map_err(|_| DataError::file(path, "the file claims a negative number of rows: it is damaged"))?;
        for (at, target) in targets.iter_mut().enumerate() {
            let Target::Fill(builder) = target else { continue };
            let column = group.get_column_reader(at).map_err(|error| broken(path, &error))?;
            let read = fill(column, &descriptor.column(at), builder).map_err(|error| broken(path, &error))?;
            if read != expected {
                let message =
                    format!("column {:?} has {read} of {expected} values: the file is damaged", names[at]);
                return Err(DataError::file(path, message));
            }
        }
        rows += expected;
    }
    if rows == 0 {
        return Err(DataError::file(path, "the file has no record"));
    }
    let columns = targets.into_iter().map(Target::finish).collect();
    Ok(Table::new(path, rows, columns, None))
}

enum Target {
    Fill(Builder),
    Skip(String, String),
}

impl Target {
    fn finish(self) -> Column {
        match self {
            Self::Fill(builder) => builder.finish(),
            Self::Skip(name, kind) => Column {
                name,
                cells: Cells::Other(kind),
                missing: 0,
                first_missing: None,
                strays: Strays::default(),
            },
        }
    }
}

/// Why a column is neither a number nor text, by the name of its type.
fn unsupported(column: &ColumnDescriptor) -> Option<String> {
    if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
        return Some("nested".into());
    }
    let physical = column.physical_type();
    match (physical, column.converted_type()) {
        (Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY, _) => Some(physical.to_string()),
        (
            _,
            ConvertedType::NONE
            | ConvertedType::UTF8
            | ConvertedType::ENUM
            | ConvertedType::JSON
            | ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64,
        ) => None,
        // Dates and decimals are integers whose meaning lies elsewhere: as plain numbers they would be wrong.
        (_, other) => Some(other.to_string()),
    }
}

fn fill(
    reader: ColumnReader,
    column: &ColumnDescriptor,
    builder: &mut Builder,
) -> Result<usize, ParquetError> {
    let nullable = column.max_def_level() > 0;
    let unsigned = column.converted_type();
    match reader {
        ColumnReader::BoolColumnReader(mut reader) => {
            pour::<BoolType>(&mut reader, nullable, builder, |builder, value| {
                builder.number(f64::from(u8::from(*value)));
                Ok(())
            })
        }
        ColumnReader::Int32ColumnReader(mut reader) => {
            pour::<Int32Type>(&mut reader, nullable, builder, |builder, value| {
                let unsigned = unsigned == ConvertedType::UINT_32;
                builder.integer(if unsigned {
                    i128::from(value.cast_unsigned())
                } else {
                    i128::from(*value)
                });
                Ok(())
            })
        }
        ColumnReader::Int64ColumnReader(mut reader) => {
            pour::<Int64Type>(&mut reader, nullable, builder, |builder, value| {
                let unsigned = unsigned == ConvertedType::UINT_64;
                builder.integer(if unsigned {
                    i128::from(value.cast_unsigned())
                } else {
                    i128::from(*value)
                });
                Ok(())
            })
        }
        ColumnReader::FloatColumnReader(mut reader) => {
            pour::<FloatType>(&mut reader, nullable, builder, |builder, value| {
                builder.number(f64::from(*value));
                Ok(())
            })
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            pour::<DoubleType>(&mut reader, nullable, builder, |builder, value| {
                builder.number(*value);
                Ok(())
            })
        }
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            pour::<ByteArrayType>(&mut reader, nullable, builder, |builder, value| {
                builder.text(value.as_utf8()?);
                Ok(())
            })
        }
        _ => Ok(0),
    }
}

/// Moves a column chunk into a builder and returns the number of rows.
fn pour<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    nullable: bool,
    builder: &mut Builder,
    put: impl Fn(&mut Builder, &T::T) -> Result<(), ParquetError>,
) -> Result<usize, ParquetError> {
    let (mut values, mut levels, mut rows) = (Vec::new(), Vec::new(), 0);
    loop {
        values.clear();
        levels.clear();
        let (records, ..) = reader.read_records(BATCH, nullable.then_some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(rows);
        }
        rows += records;
        let mut values = values.iter();
        for row in 0..records {
            // Flat columns have level 0 (null) or 1 (a value).
            let present = !nullable || levels.get(row).is_some_and(|&level| level > 0);
            match if present { values.next() } else { None } {
                Some(value) => put(builder, value)?,
                None => builder.gap(),
            }
        }
    }
}
