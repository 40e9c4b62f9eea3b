//! The measurements of a run in long format: repeat, round, node, metric, value.
//!
//! In memory and in checkpoints by column with each word kept once; on disk as Parquet.

use super::{ArtifactError, atomic};
use fedkin_numeric::codec::{Codec, Damaged, Reader, Sink};
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The name of the file in a run directory.
pub const NAME: &str = "metrics.parquet";

const SCHEMA: &str = "message metrics {
    required int32 repeat (INTEGER(32, false));
    required int32 round (INTEGER(32, false));
    required binary node (STRING);
    required binary metric (STRING);
    required double value;
}";

/// Rows per row group: small enough to read in parts, large enough for the dictionaries to pay.
const GROUP: usize = 1 << 20;
/// Rows that are converted at a time.
const BATCH: usize = 1 << 13;

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement<'a> {
    /// Which repeat, from 0.
    pub repeat: u32,
    /// After which round.
    pub round: u32,
    /// Which client or server; empty for all together.
    pub node: &'a str,
    /// What was measured.
    pub metric: &'a str,
    /// The result.
    pub value: f64,
}

/// Measurements in the order they came.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    words: Vec<String>,
    index: HashMap<String, u32>,
    repeats: Vec<u32>,
    rounds: Vec<u32>,
    nodes: Vec<u32>,
    measures: Vec<u32>,
    values: Vec<f64>,
}

impl Metrics {
    /// Adds a row.
    pub fn push(&mut self, row: Measurement<'_>) {
        let node = self.word(row.node);
        let metric = self.word(row.metric);
        self.repeats.push(row.repeat);
        self.rounds.push(row.round);
        self.nodes.push(node);
        self.measures.push(metric);
        self.values.push(row.value);
    }

    /// Adds all rows of another table.
    pub fn append(&mut self, other: &Metrics) {
        let words: Vec<u32> = other.words.iter().map(|word| self.word(word)).collect();
        self.repeats.extend_from_slice(&other.repeats);
        self.rounds.extend_from_slice(&other.rounds);
        self.nodes.extend(other.nodes.iter().map(|&word| words[word as usize]));
        self.measures.extend(other.measures.iter().map(|&word| words[word as usize]));
        self.values.extend_from_slice(&other.values);
    }

    /// All rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Measurement<'_>> {
        (0..self.len()).map(|i| Measurement {
            repeat: self.repeats[i],
            round: self.rounds[i],
            node: &self.words[self.nodes[i] as usize],
            metric: &self.words[self.measures[i] as usize],
            value: self.values[i],
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn word(&mut self, word: &str) -> u32 {
        if let Some(&known) = self.index.get(word) {
            return known;
        }
        let new = self.words.len() as u32;
        self.words.push(word.to_string());
        self.index.insert(word.to_string(), new);
        new
    }

    /// Writes the table as Parquet.
    pub fn write(&self, path: &Path) -> Result<(), ArtifactError> {
        let bytes = self.to_parquet().map_err(|error| ArtifactError::damaged(path, error.to_string()))?;
        atomic::write(path, &bytes)
    }

    /// Reads a table that [`Metrics::write`] wrote.
    pub fn read(path: &Path) -> Result<Self, ArtifactError> {
        let file = File::open(path).map_err(ArtifactError::file("read", path))?;
        Self::from_parquet(file).map_err(|error| ArtifactError::damaged(path, error.to_string()))
    }

    fn to_parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let value = ColumnPath::from("value");
        // Measurements hardly repeat: a dictionary of them would cost time and save nothing.
        let properties: WriterPropertiesPtr = Arc::new(
            WriterProperties::builder()
                .set_created_by("fedkin".into())
                .set_compression(Compression::UNCOMPRESSED)
                .set_column_dictionary_enabled(value.clone(), false)
                .set_column_encoding(value, Encoding::PLAIN)
                .build(),
        );
        let words: Vec<ByteArray> = self.words.iter().map(|word| ByteArray::from(word.as_str())).collect();
        let signed = |&number: &u32| number as i32;
        let spelled = |&word: &u32| words[word as usize].clone();
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties)?;
        for start in (0..self.len()).step_by(GROUP) {
            let part = start..(start + GROUP).min(self.len());
            let mut group = writer.next_row_group()?;
            write_column::<Int32Type, _>(&mut group, &self.repeats[part.clone()], signed)?;
            write_column::<Int32Type, _>(&mut group, &self.rounds[part.clone()], signed)?;
            write_column::<ByteArrayType, _>(&mut group, &self.nodes[part.clone()], spelled)?;
            write_column::<ByteArrayType, _>(&mut group, &self.measures[part.clone()], spelled)?;
            write_column::<DoubleType, _>(&mut group, &self.values[part], |&value| value)?;
            group.close()?;
        }
        writer.close()?;
        Ok(bytes)
    }

    fn from_parquet(file: File) -> Result<Self, ParquetError> {
        let reader = SerializedFileReader::new(file)?;
        let expected = parse_message_type(SCHEMA)?;
        if reader.metadata().file_metadata().schema().get_fields() != expected.get_fields() {
            return Err(ParquetError::General(
                "its columns are not repeat, round, node, metric, value".into(),
            ));
        }
        let mut table = Self::default();
        for number in 0..reader.num_row_groups() {
            let group = reader.get_row_group(number)?;
            let rows = group.metadata().num_rows() as usize;
            let column = |i| group.get_column_reader(i);
            read_column::<Int32Type>(column(0)?, rows, |&number| table.repeats.push(number as u32))?;
            read_column::<Int32Type>(column(1)?, rows, |&number| table.rounds.push(number as u32))?;
            let nodes = table.read_words(column(2)?, rows)?;
            table.nodes.extend(nodes);
            let measures = table.read_words(column(3)?, rows)?;
            table.measures.extend(measures);
            read_column::<DoubleType>(column(4)?, rows, |&value| table.values.push(value))?;
        }
        Ok(table)
    }

    fn read_words(&mut self, column: ColumnReader, rows: usize) -> Result<Vec<u32>, ParquetError> {
        let mut words = Vec::with_capacity(rows.min(GROUP));
        let mut foreign = false;
        read_column::<ByteArrayType>(column, rows, |bytes| match std::str::from_utf8(bytes.data()) {
            Ok(word) => words.push(self.word(word)),
            Err(_) => foreign = true,
        })?;
        if foreign { Err(ParquetError::General("a name is not UTF-8".into())) } else { Ok(words) }
    }
}

/// Equal rows in equal order, bit by bit; how the words are numbered does not matter.
impl PartialEq for Metrics {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: Measurement<'_>, b: Measurement<'_>| {
            (a.repeat, a.round, a.node, a.metric) == (b.repeat, b.round, b.node, b.metric)
                && a.value.to_bits() == b.value.to_bits()
        };
        self.len() == other.len() && self.rows().zip(other.rows()).all(|(a, b)| same(a, b))
    }
}

fn write_column<T: DataType, I>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    items: &[I],
    convert: impl Fn(&I) -> T::T,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns than are written".into()));
    };
    let writer: &mut ColumnWriterImpl<'_, T> = column.typed::<T>();
    let mut buffer = Vec::with_capacity(BATCH.min(items.len()));
    for batch in items.chunks(BATCH) {
        buffer.clear();
        buffer.extend(batch.iter().map(&convert));
        writer.write_batch(&buffer, None, None)?;
    }
    column.close()
}

fn read_column<T: DataType>(
    column: ColumnReader,
    rows: usize,
    mut take: impl FnMut(&T::T),
) -> Result<(), ParquetError> {
    let Some(mut reader) = T::get_column_reader(column) else {
        return Err(ParquetError::General("a column has another type than the schema says".into()));
    };
    let mut buffer = Vec::with_capacity(BATCH.min(rows));
    let mut left = rows;
    while left > 0 {
        buffer.clear();
        let (records, _, _) = reader.read_records(left.min(BATCH), None, None, &mut buffer)?;
        if records == 0 || records > left || buffer.len() != records {
            return Err(ParquetError::General("a column is shorter than the others".into()));
        }
        buffer.iter().for_each(&mut take);
        left -= records;
    }
    Ok(())
}

impl Codec for Metrics {
    fn schema() -> String {
        "Metrics{words:[[u8]],repeats:[u32],rounds:[u32],nodes:[u32],measures:[u32],values:[f64]}".into()
    }

    fn put<S: Sink>(&self, sink: &mut S) {
        (self.words.len() as u64).put(sink);
        for word in &self.words {
            (word.len() as u64).put(sink);
            sink.bytes(word.as_bytes());
        }
        for column in [&self.repeats, &self.rounds, &self.nodes, &self.measures] {
            (column.len() as u64).put(sink);
            for number in column {
                number.put(sink);
            }
        }
        self.values.put(sink);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut table = Self::default();
        for _ in 0..reader.length(8)? {
            let length = reader.length(1)?;
            let word = std::str::from_utf8(reader.take(length)?).map_err(|_| Damaged)?;
            table.word(word);
        }
        let mut column = || -> Result<Vec<u32>, Damaged> {
            let count = reader.length(4)?;
            let (numbers, _) = reader.take(count * 4)?.as_chunks::<4>();
            Ok(numbers.iter().map(|number| u32::from_le_bytes(*number)).collect())
        };
        (table.repeats, table.rounds) = (column()?, column()?);
        (table.nodes, table.measures) = (column()?, column()?);
        table.values = Codec::get(reader)?;
        let rows = table.values.len();
        let columns = [&table.repeats, &table.rounds, &table.nodes, &table.measures];
        let words = table.words.len();
        let known = |column: &[u32]| column.iter().all(|&word| (word as usize) < words);
        if columns.iter().all(|column| column.len() == rows) && known(&table.nodes) && known(&table.measures)
        {
            Ok(table)
        } else {
            Err(Damaged)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn table(rows: u32) -> Metrics {
        let mut table = Metrics::default();
        for i in 0..rows {
            let node = if i % 3 == 0 { String::new() } else { format!("client-{}", i % 1000) };
            let metric = ["nmsd_db", "objective"][i as usize % 2];
            let value = f64::from(i).sqrt() - 7.0;
            table.push(Measurement { repeat: i % 20, round: i / 20, node: &node, metric, value });
        }
        table
    }

    #[test]
    fn rows_survive_parquet_bit_by_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let mut rows = table(10_000);
        for value in [f64::NAN, f64::INFINITY, -0.0, f64::MIN_POSITIVE / 2.0] {
            rows.push(Measurement { repeat: u32::MAX, round: u32::MAX, node: "ä\n\"", metric: "", value });
        }
        rows.write(&path).unwrap();
        assert_eq!(Metrics::read(&path).unwrap(), rows);
        Metrics::default().write(&path).unwrap();
        assert!(Metrics::read(&path).unwrap().is_empty());
    }

    #[test]
    #[allow(clippy::print_stderr)]
    fn more_than_one_row_group_and_quick() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let rows = table(2_500_000);
        let start = Instant::now();
        rows.write(&path).unwrap();
        let written = start.elapsed();
        let start = Instant::now();
        let read = Metrics::read(&path).unwrap();
        let done = start.elapsed();
        assert_eq!(read, rows);
        let size = std::fs::metadata(&path).unwrap().len();
        eprintln!("2.5 million rows: write {written:?}, read {done:?}, {size} bytes");
        // Values take 8 bytes a row; all the words and numbers around them must not take much more.
        assert!(size < 2_500_000 * 14, "{size}");
    }

    #[test]
    fn the_compact_form_comes_back_and_damage_is_noticed() {
        let rows = table(50);
        let bytes = rows.to_bytes();
        assert_eq!(Metrics::from_bytes(&bytes).unwrap(), rows);
        for cut in 0..bytes.len() {
            assert!(Metrics::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        // Whatever a flipped bit makes of the bytes, reading them does not panic.
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x80;
            if let Ok(read) = Metrics::from_bytes(&bad) {
                assert_eq!(read.rows().count(), 50);
            }
        }
    }

    #[test]
    fn appending_renumbers_the_words() {
        let (mut first, mut second) = (Metrics::default(), Metrics::default());
        let row = |node, metric, value| Measurement { repeat: 0, round: 1, node, metric, value };
        first.push(row("a", "loss", 1.0));
        second.push(row("loss", "a", 2.0));
        second.push(row("b", "loss", 3.0));
        first.append(&second);
        let all: Vec<Measurement<'_>> = first.rows().collect();
        assert_eq!(all, [row("a", "loss", 1.0), row("loss", "a", 2.0), row("b", "loss", 3.0)]);
    }

    #[test]
    fn what_is_no_metrics_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert!(Metrics::read(&path).unwrap_err().to_string().starts_with("cannot read "));
        table(100).write(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 3, 12, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(Metrics::read(&path).unwrap_err().to_string().contains("is damaged"), "{length}");
        }
        let other = Arc::new(parse_message_type("message other { required int32 repeat; }").unwrap());
        let file = File::create(&path).unwrap();
        SerializedFileWriter::new(file, other, Arc::default()).unwrap().close().unwrap();
        let text = Metrics::read(&path).unwrap_err().to_string();
        assert!(text.contains("its columns are not repeat, round, node, metric, value"), "{text}");
    }
}
