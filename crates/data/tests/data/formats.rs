//! IDX and NPZ: what is written here is read back, and damage is named.

use fedkin_data::array::Numbers;
use fedkin_data::idx;
use fedkin_data::npz::{self, Npz, Row};
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
fn text_is_read_and_bounded() {
    let read = |kind: &str, shape: &str, values: &[u8]| {
        let (_folder, path) = file("a.npz", &npz_bytes(&[("x", kind, shape, values)]));
        Npz::open(&path).and_then(|mut archive| archive.read_text("x")).map_err(|error| error.to_string())
    };
    let letters =
        |text: &str| text.chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(read("<U2", "(2,)", &letters("é\0b ")).unwrap().unwrap(), ["é", "b"]);
    assert_eq!(read("|S2", "(1, 2)", b"a\0bc").unwrap().unwrap(), ["a", "bc"]);
    assert_eq!(read("<f8", "(0,)", &[]).unwrap(), None);
    for (kind, shape, values, expected) in [
        ("<U2", "(2,)", &[0; 15][..], "array \"x\": it is cut off"),
        ("|S1", "(2,)", b"abc", "it holds more than its shape says"),
        ("|O", "(1,)", b"a", "dtype=str"),
        ("<U0", "(1,)", b"", "its type \"<U0\" is not understood"),
        ("<U99999999999999999999", "(1,)", b"", "is not understood"),
        ("<U4611686018427387904", "(1,)", b"", "is not understood"),
        ("|S1", "(99999999999, 99999999999)", b"a", "it is too large for names"),
        ("|S99999999", "(1,)", b"a", "it is too large for names"),
    ] {
        let message = read(kind, shape, values).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn headers_of_npy_files_are_bounded() {
    let read = |bytes: &[u8]| {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("x.npy", zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
        let (_folder, path) = file("a.npz", &archive.finish().unwrap().into_inner());
        let mut archive = Npz::open(&path).unwrap();
        let text = archive.read_text("x").unwrap_err().to_string();
        assert_eq!(archive.read("x").unwrap_err().to_string(), text);
        text
    };
    assert!(read(b"\x93NUMPY").contains("cut off in its header"));
    assert!(read(b"\x93NUMPY\x01\x00\xff\xff{'descr").contains("cut off in its header"));
    assert!(read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("has a header of 4294967295 bytes"));
    assert!(read(b"\x93numpy\x01\x00\x00\x00").contains("not in NPY format"));
    assert!(read(&npy_bytes("<f8", "no", &[])).contains("the header has no shape"));
    let nested = format!("{{'descr': {}", "[".repeat(60_000));
    let nested = [b"\x93NUMPY\x01\x00", &(nested.len() as u16).to_le_bytes()[..], nested.as_bytes()].concat();
    assert!(read(&nested).contains("no plain type"));
}

/// As `NumPy` writes them: files of earlier versions and of this one are the same.
#[test]
fn rows_are_written_as_numpy_does() {
    let names = ["ä".to_string(), "bc".to_string()];
    let rows = [("w", Row::Floats(&[1.0, -0.5])), ("nodes", Row::Text(&names)), ("none", Row::Text(&[]))];
    let bytes = npz::archive(&rows).unwrap();
    assert_eq!(bytes, npz::archive(&rows).unwrap());
    let mut archive = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
    let mut check = |name: &str, kind: &str, length: usize, values: &[u8]| {
        let mut found = Vec::new();
        std::io::Read::read_to_end(&mut archive.by_name(name).unwrap(), &mut found).unwrap();
        let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({length},), }}");
        let expected = format!("{text:117}\n").into_bytes();
        assert_eq!(found, [b"\x93NUMPY\x01\x00\x76\x00", &expected[..], values].concat(), "{name}");
    };
    check("w.npy", "<f8", 2, &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0xe0, 0xbf]);
    check("nodes.npy", "<U2", 2, &[0xe4, 0, 0, 0, 0, 0, 0, 0, b'b', 0, 0, 0, b'c', 0, 0, 0]);
    check("none.npy", "<U1", 0, &[]);
    let (_folder, path) = file("a.npz", &bytes);
    let mut archive = Npz::open(&path).unwrap();
    assert_eq!(archive.read_text("nodes").unwrap().unwrap(), names);
    assert_eq!(archive.read("w").unwrap().values, Numbers::Floats(vec![1.0, -0.5]));
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
