//! IDX and NPZ: what is written here is read back, and damage is named.

use fedkin_data::array::Numbers;
use fedkin_data::{idx, npz::Npz};
use std::io::{Cursor, Write};
use std::path::PathBuf;
use tempfile::TempDir;

pub fn idx_bytes(code: u8, shape: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, code, shape.len() as u8];
    bytes.extend(shape.iter().flat_map(|side| side.to_be_bytes()));
    bytes.extend_from_slice(values);
    bytes
}

pub fn npy_bytes(kind: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

pub fn npz_bytes(arrays: &[(&str, &str, &str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, kind, shape, values) in arrays {
        let options =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(&npy_bytes(kind, shape, values)).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn file(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn idx_values_of_every_type_are_read() {
    let read = |code, values: &[u8], count: u32| {
        let (_folder, path) = file("a.idx", &idx_bytes(code, &[count], values));
        idx::read(&path).unwrap().values
    };
    assert_eq!(read(0x08, &[1, 255], 2), Numbers::Bytes(vec![1, 255]));
    assert_eq!(read(0x09, &[1, 255], 2), Numbers::Floats(vec![1.0, -1.0]));
    assert_eq!(read(0x0b, &[0, 2, 255, 254], 2), Numbers::Floats(vec![2.0, -2.0]));
    assert_eq!(read(0x0c, &(-70000i32).to_be_bytes(), 1), Numbers::Floats(vec![-70000.0]));
    assert_eq!(read(0x0d, &1.5f32.to_be_bytes(), 1), Numbers::Floats(vec![1.5]));
    assert_eq!(read(0x0e, &(-0.1f64).to_be_bytes(), 1), Numbers::Floats(vec![-0.1]));
}

#[test]
fn npz_values_of_every_type_are_read() {
    let read = |kind: &str, shape: &str, values: &[u8]| {
        let (_folder, path) = file("a.npz", &npz_bytes(&[("x", kind, shape, values)]));
        Npz::open(&path).and_then(|mut archive| archive.read("x")).map_err(|error| error.to_string())
    };
    assert_eq!(read("|u1", "(2, 1)", &[7, 9]).unwrap().shape, [2, 1]);
    assert_eq!(read("|b1", "(2,)", &[0, 1]).unwrap().values, Numbers::Bytes(vec![0, 1]));
    assert_eq!(read("<i2", "(1,)", &(-3i16).to_le_bytes()).unwrap().values, Numbers::Floats(vec![-3.0]));
    assert_eq!(read(">i4", "(1,)", &70000i32.to_be_bytes()).unwrap().values, Numbers::Floats(vec![70000.0]));
    assert_eq!(read("<f4", "(1,)", &0.5f32.to_le_bytes()).unwrap().values, Numbers::Floats(vec![0.5]));
    assert_eq!(read("<f8", "()", &0.1f64.to_le_bytes()).unwrap().values, Numbers::Floats(vec![0.1]));
    assert_eq!(read("<i8", "(0,)", &[]).unwrap().values, Numbers::Floats(vec![]));
    assert!(read("<U3", "(1,)", &[0; 12]).unwrap_err().contains("values of type \"<U3\" are not read"));
    assert!(read("<f8", "(2,)", &[0; 8]).unwrap_err().contains("has 16 bytes but the file holds 8"));
    assert!(read("|u1", "(2,)", &[0; 8]).unwrap_err().contains("has 2 bytes but the file holds more"));
    let huge = read("<f8", "(99999999999, 99999999999)", &[]).unwrap_err();
    assert!(huge.contains("is the file damaged?"), "{huge}");
}

#[test]
fn an_archive_names_its_arrays() {
    let (_folder, path) =
        file("a.npz", &npz_bytes(&[("y", "|u1", "(1,)", &[1]), ("x", "|u1", "(1,)", &[1])]));
    let mut archive = Npz::open(&path).unwrap();
    assert_eq!(archive.names(), ["x", "y"]);
    assert!(archive.read("z").unwrap_err().to_string().contains("no array \"z\"; the archive has x, y"));
}

#[test]
fn damaged_idx_files_are_named() {
    let message = |bytes: &[u8]| {
        let (_folder, path) = file("a.idx", bytes);
        idx::read(&path).unwrap_err().to_string()
    };
    assert!(message(&[0, 0]).contains("cut off in its header"));
    assert!(message(b"hello").contains("does not start with two zero bytes"));
    assert!(message(&[0, 0, 7, 1]).contains("no value type 0x07"));
    assert!(message(&idx_bytes(8, &[3], &[1])).contains("shape [3] has 3 bytes but the file holds 1"));
    assert!(message(&idx_bytes(8, &[u32::MAX; 3], &[1])).contains("is the file damaged?"));
}
