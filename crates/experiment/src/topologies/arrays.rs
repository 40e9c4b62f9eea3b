//! NPZ: `weights` or `adjacency`, and `nodes`.

use super::collect::{from_adjacency, from_weights, with_names};
use super::{Named, refuse};
use crate::Error;
use fedkin_data::npz::Npz;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Write as _};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Names of more bytes than this are not names of nodes.
const MOST_BYTES: u64 = 1 << 26;

/// The archive of a graph, stored without packing: the same graph gives the same bytes.
pub(super) fn bytes(named: &Named) -> Result<Vec<u8>, String> {
    let weights: Vec<u8> = named.graph.weights().iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let widest = named.nodes.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(1);
    let mut names = Vec::with_capacity(named.nodes.len() * widest * 4);
    for name in &named.nodes {
        let letters = name.chars().map(u32::from).chain(std::iter::repeat(0)).take(widest);
        names.extend(letters.flat_map(u32::to_le_bytes));
    }
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut put = |name: &str, descr: &str, length: usize, values: &[u8]| {
        archive.start_file(format!("{name}.npy"), options)?;
        archive.write_all(&header(descr, length))?;
        Ok::<(), zip::result::ZipError>(archive.write_all(values)?)
    };
    let done = put("weights", "<f8", named.graph.weights().len(), &weights)
        .and_then(|()| put("nodes", &format!("<U{widest}"), named.nodes.len(), &names));
    let finished = done.and_then(|()| archive.finish());
    Ok(finished.map_err(|error| format!("the archive cannot be put together: {error}"))?.into_inner())
}

/// The head of an NPY file, version 1: the values start at a multiple of 64 bytes.
fn header(descr: &str, length: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({length},), }}");
    while !(10 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut head = b"\x93NUMPY\x01\x00".to_vec();
    head.extend((text.len() as u16).to_le_bytes());
    head.extend(text.into_bytes());
    head
}

pub(super) fn read(path: &Path) -> Result<Named, Error> {
    let mut npz = Npz::open(path)?;
    let known = npz.names();
    let has = |name: &str| known.iter().any(|known| known == name);
    let graph = if has("weights") || has("w") {
        let array = npz.read(if has("weights") { "weights" } else { "w" })?;
        let sides = array.shape.iter().filter(|&&side| side != 1).count();
        if sides > 1 {
            let shape = array.shape;
            let message = format!(
                "`weights` has the shape {shape:?}: one graph is one row; a matrix is called `adjacency`"
            );
            return Err(refuse(path, message));
        }
        from_weights(array.values.floats().collect())
    } else if has("adjacency") {
        let array = npz.read("adjacency")?;
        match array.shape.as_slice() {
            [rows, columns] if rows == columns => {
                from_adjacency(*rows, &array.values.floats().collect::<Vec<f64>>())
            }
            shape => Err(format!("`adjacency` has the shape {shape:?}, which is no square")),
        }
    } else {
        Err(format!("there is neither `weights` nor `adjacency`; the archive has {}", known.join(", ")))
    };
    let graph = graph.map_err(|message| refuse(path, message))?;
    let names = if has("nodes") { Some(names(path, &mut npz)?) } else { None };
    with_names(names, graph).map_err(|message| refuse(path, message))
}

/// The names: text of fixed width, or numbers.
fn names(path: &Path, npz: &mut Npz) -> Result<Vec<String>, Error> {
    match text_array(path).map_err(|message| refuse(path, format!("array \"nodes\": {message}")))? {
        Some(names) => Ok(names),
        None => Ok(npz.read("nodes")?.values.floats().map(|number| number.to_string()).collect()),
    }
}

/// The array `nodes` where it holds text; `None` where it holds something else.
fn text_array(path: &Path) -> Result<Option<Vec<String>>, String> {
    let broken = |error: &dyn std::fmt::Display| format!("it cannot be unpacked: {error}");
    let file = File::open(path).map_err(|error| broken(&error))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| broken(&error))?;
    let entry = archive.by_name("nodes.npy").map_err(|error| broken(&error))?;
    let mut bytes = Vec::new();
    entry.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| broken(&error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err("it is too large for names".into());
    }
    parse_text(&bytes)
}

fn parse_text(bytes: &[u8]) -> Result<Option<Vec<String>>, String> {
    let cut = "it is cut off in its header";
    let version = *bytes.get(6).ok_or(cut)?;
    let (start, length) = match (version, bytes) {
        (1, [_, _, _, _, _, _, _, _, a, b, ..]) => (10, usize::from(u16::from_le_bytes([*a, *b]))),
        (_, [_, _, _, _, _, _, _, _, a, b, c, d, ..]) => (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        _ => return Err(cut.into()),
    };
    let end = start + length;
    let head = String::from_utf8_lossy(bytes.get(start..end).ok_or(cut)?).into_owned();
    let descr = head.split_once("'descr'").and_then(|(_, rest)| rest.split('\'').nth(1)).unwrap_or_default();
    let mut letters = descr.chars();
    let (order, kind) = (letters.next(), letters.next());
    let width = letters.as_str().parse::<usize>();
    let size = match kind {
        Some('U') => 4,
        Some('S') => 1,
        Some('O') => return Err("it holds Python objects: save it with numpy.array(names, dtype=str)".into()),
        _ => return Ok(None),
    };
    let width = width.ok().and_then(|width| width.checked_mul(size)).filter(|&width| width > 0);
    let width = width.ok_or_else(|| format!("its type {descr:?} is not understood"))?;
    let letter = |raw: &[u8]| match (raw, order) {
        (&[a, b, c, d], Some('>')) => u32::from_be_bytes([a, b, c, d]),
        (&[a, b, c, d], _) => u32::from_le_bytes([a, b, c, d]),
        (raw, _) => raw.first().copied().map_or(0, u32::from),
    };
    let name = |raw: &[u8]| {
        let text: String = raw
            .chunks_exact(size)
            .map(letter)
            .take_while(|&letter| letter != 0)
            .map(|letter| char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        text.trim().to_string()
    };
    let values = bytes.get(end..).unwrap_or_default();
    if !values.len().is_multiple_of(width) {
        return Err("it is cut off".into());
    }
    Ok(Some(values.chunks_exact(width).map(name).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[(&str, &str, &str, &[u8])]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, descr, shape, values) in entries {
            archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
            archive.write_all(b"\x93NUMPY\x01\x00").unwrap();
            archive.write_all(&(text.len() as u16).to_le_bytes()).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
            archive.write_all(values).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    fn read_bytes(bytes: &[u8]) -> Result<Named, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.npz");
        std::fs::write(&path, bytes).unwrap();
        read(&path)
    }

    fn floats(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn arrays_of_others() {
        let square = floats(&[0.0, 1.0, 0.0, 2.0, 0.0, 0.5, 0.0, 0.0, 0.0]);
        let wide: Vec<u8> = "abc".chars().flat_map(|letter| u32::from(letter).to_be_bytes()).collect();
        let named =
            read_bytes(&archive(&[("adjacency", "<f8", "(3, 3)", &square), ("nodes", ">U1", "(3,)", &wide)]));
        let named = named.unwrap();
        assert_eq!((named.nodes.join(""), named.graph.weights()), ("abc".into(), &[2.0, 0.0, 0.5][..]));
        let row = floats(&[1.0, 0.0, 3.0]);
        let named =
            read_bytes(&archive(&[("w", "<f8", "(1, 3)", &row), ("nodes", "|S2", "(3,)", b"a\0bbc ")]))
                .unwrap();
        assert_eq!((named.nodes, named.numbered), (["a", "bb", "c"].map(String::from).to_vec(), false));
        let named =
            read_bytes(&archive(&[("weights", "<f8", "(3,)", &row), ("nodes", "|u1", "(3,)", &[7, 8, 9])]))
                .unwrap();
        assert_eq!(named.nodes, ["7", "8", "9"]);
        assert!(read_bytes(&archive(&[("weights", "<f8", "(3,)", &row)])).unwrap().numbered);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let row = floats(&[1.0, 0.0, 3.0, 1.0]);
        for (entries, expected) in [
            (vec![("x", "<f8", "(4,)", &row[..])], "neither `weights` nor `adjacency`; the archive has x"),
            (vec![("weights", "<f8", "(4,)", &row)], "4 weights are those of no graph"),
            (vec![("weights", "<f8", "(2, 2)", &row)], "a matrix is called `adjacency`"),
            (vec![("adjacency", "<f8", "(4,)", &row)], "which is no square"),
            (vec![("adjacency", "<f8", "(2, 2)", &row)], "row 1 of the adjacency links"),
            (vec![("weights", "<f8", "(3,)", &row[..24]), ("nodes", "|O", "(3,)", b"xyz")], "dtype=str"),
            (vec![("weights", "<f8", "(3,)", &row[..24]), ("nodes", "<U2", "(3,)", b"xyz")], "cut off"),
            (
                vec![("weights", "<f8", "(3,)", &row[..24]), ("nodes", "|S1", "(2,)", b"xy")],
                "2 names for 3 nodes",
            ),
        ] {
            let found = read_bytes(&archive(&entries)).unwrap_err().to_string();
            assert!(found.contains(expected), "{found}");
        }
        assert!(read_bytes(b"PK").unwrap_err().to_string().contains("not an NPZ archive"));
        assert!(
            parse_text(b"\x93NUMPY").is_err() && parse_text(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").is_err()
        );
    }
}
