//! `fedkin data inspect`.

use crate::formats::npz_bytes;
use crate::real_data;
use crate::tables::sample_parquet;
use fedkin_data::{Format, Inspection, Options, inspect};

fn look(name: &str, bytes: &[u8], options: &Options) -> Inspection {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    inspect(&path, options).unwrap()
}

const TABLE: &str = "site,age,ward,mix,y\nrome,40,east,1,1\noslo,?,west,x,0\nrome,44,east,3,1\n";

#[test]
fn a_csv_file_is_summarised() {
    let seen = look("t.csv", TABLE.as_bytes(), &Options::default());
    assert_eq!((seen.format, seen.rows, seen.gzip), (Format::Csv, 3, false));
    let kinds: Vec<&str> = seen.columns.iter().map(|column| column.kind.as_str()).collect();
    assert_eq!(kinds, ["text", "number", "text", "mixed", "number"]);
    let age = &seen.columns[1];
    assert_eq!((age.min, age.max, age.mean, age.missing), (Some(40.0), Some(44.0), Some(42.0), 1));
    assert_eq!(seen.labels[0].counts, [("0".into(), 1), ("1".into(), 2)]);
    assert_eq!(seen.clients.as_ref().unwrap().counts, [("oslo".into(), 1), ("rome".into(), 2)]);
    let text = seen.to_string();
    assert!(
        text.contains("CSV, 3 rows, 5 columns") && text.contains("clients in site: 2, with 1 to 2 records"),
        "{text}"
    );
    assert!(text.contains("1 not numbers") && text.contains("labels in y: 0: 1, 1: 2"), "{text}");
}

#[test]
fn named_columns_win_and_must_be_there() {
    let options = Options { client: Some("ward".into()), target: Some("age".into()) };
    let seen = look("t.csv", TABLE.as_bytes(), &options);
    assert_eq!(seen.clients.unwrap().column, "ward");
    assert_eq!(seen.labels[0].column, "age");
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, TABLE).unwrap();
    let missing = Options { client: Some("wrad".into()), target: None };
    assert!(inspect(&path, &missing).unwrap_err().to_string().contains("did you mean `ward`?"));
}

#[test]
fn parquet_and_npz_are_summarised() {
    let seen = look("t.parquet", &sample_parquet(), &Options::default());
    assert_eq!((seen.format, seen.rows, seen.columns.len()), (Format::Parquet, 4, 6));
    assert_eq!(seen.clients.unwrap().counts, [("10".into(), 2), ("2".into(), 2)]);
    let bytes = npz_bytes(&[
        ("x", "|u1", "(3, 2)", &[1, 2, 3, 4, 5, 6]),
        ("y", "<i2", "(3, 1)", &[255, 255, 1, 0, 1, 0]),
    ]);
    let seen = look("t.npz", &bytes, &Options::default());
    assert_eq!((seen.format, seen.rows), (Format::Npz, 3));
    assert_eq!(seen.columns[0].mean, Some(3.5));
    assert_eq!(seen.labels[0].counts, [("-1".into(), 1), ("1".into(), 2)]);
    assert!(seen.to_string().contains("u8 [3, 2]"));
}

#[test]
fn the_real_sets_have_the_counts_of_their_readme() {
    if let Some(folder) = real_data("mnist") {
        let seen = inspect(&folder.join("train-labels-idx1-ubyte.gz"), &Options::default()).unwrap();
        assert!(seen.gzip && seen.format == Format::Idx && seen.rows == 60_000);
        let counts: Vec<usize> = seen.labels[0].counts.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
    }
    if let Some(folder) = real_data("organamnist") {
        let seen = inspect(&folder.join("organamnist.npz"), &Options::default()).unwrap();
        assert_eq!((seen.columns.len(), seen.rows), (6, 34_561));
        let train = seen.labels.iter().find(|labels| labels.column == "train_labels").unwrap();
        let counts: Vec<usize> = train.counts.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1956, 1390, 1357, 1474, 3963, 3817, 6164, 3919, 3929, 3031, 3561]);
    }
}
