//! NPZ: `weights` or `adjacency`, and `nodes`.

use super::collect::{from_adjacency, from_weights, with_names};
use super::{Named, refuse};
use crate::Error;
use fedkin_data::npz::{Npz, Row, archive};
use std::path::Path;

/// The archive of a graph: the same graph gives the same bytes.
pub(super) fn bytes(named: &Named) -> Result<Vec<u8>, String> {
    archive(&[("weights", Row::Floats(named.graph.weights())), ("nodes", Row::Text(&named.nodes))])
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
    let names = if has("nodes") { Some(names(&mut npz)?) } else { None };
    with_names(names, graph).map_err(|message| refuse(path, message))
}

/// The names: text of fixed width, or numbers.
fn names(npz: &mut Npz) -> Result<Vec<String>, Error> {
    match npz.read_text("nodes")? {
        Some(names) => Ok(names),
        None => Ok(npz.read("nodes")?.values.floats().map(|number| number.to_string()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write as _};
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    fn packed(entries: &[(&str, &str, &str, &[u8])]) -> Vec<u8> {
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
            read_bytes(&packed(&[("adjacency", "<f8", "(3, 3)", &square), ("nodes", ">U1", "(3,)", &wide)]));
        let named = named.unwrap();
        assert_eq!((named.nodes.join(""), named.graph.weights()), ("abc".into(), &[2.0, 0.0, 0.5][..]));
        let row = floats(&[1.0, 0.0, 3.0]);
        let named =
            read_bytes(&packed(&[("w", "<f8", "(1, 3)", &row), ("nodes", "|S2", "(3,)", b"a\0bbc ")]))
                .unwrap();
        assert_eq!((named.nodes, named.numbered), (["a", "bb", "c"].map(String::from).to_vec(), false));
        let named =
            read_bytes(&packed(&[("weights", "<f8", "(3,)", &row), ("nodes", "|u1", "(3,)", &[7, 8, 9])]))
                .unwrap();
        assert_eq!(named.nodes, ["7", "8", "9"]);
        assert!(read_bytes(&packed(&[("weights", "<f8", "(3,)", &row)])).unwrap().numbered);
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
            let found = read_bytes(&packed(&entries)).unwrap_err().to_string();
            assert!(found.contains(expected), "{found}");
        }
        assert!(read_bytes(b"PK").unwrap_err().to_string().contains("not an NPZ archive"));
    }
}
