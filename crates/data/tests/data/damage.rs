//! No bytes make a reader panic: every prefix and thousands of garbled copies of good files.

use crate::formats::{idx_bytes, npz_bytes};
use crate::tables::sample_parquet;
use fedkin_data::{DataError, Options, inspect, read_distances, read_signals};
use fedkin_numeric::rng::{PublicRng, Random};
use std::path::Path;

/// Reads through `inspect`, which every format passes; an error is as good as a result.
fn damage(good: &[u8], copies: u32) {
    damage_as("file", good, copies, |path| inspect(path, &Options::default()).map(drop));
}

fn damage_as(name: &str, good: &[u8], copies: u32, read: impl Fn(&Path) -> Result<(), DataError>) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join(name);
    let survive = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes).unwrap();
        if let Err(error) = read(path) {
            assert!(!error.to_string().is_empty());
        }
    };
    for end in (0..good.len()).step_by((good.len() / 300).max(1)) {
        survive(&path, &good[..end]);
    }
    for copy in 0..copies {
        let mut rng = PublicRng::named(1, "damage", 0, copy);
        let mut bytes = good.to_vec();
        for _ in 0..=rng.below(8) {
            let at = rng.below(bytes.len() as u32) as usize;
            match rng.below(4) {
                0 => bytes[at] = rng.bits() as u8,
                1 => bytes[at] ^= 1 << rng.below(8),
                2 => drop(bytes.remove(at)),
                _ => bytes[at] = 0xff,
            }
        }
        survive(&path, &bytes);
    }
}

#[test]
fn csv() {
    damage(b"client,x,y\na,1,0\n\"b\",2.5,1\nc,\"3\",0\n", 2000);
}

#[test]
fn idx() {
    damage(&idx_bytes(8, &[3, 2, 2], &[9; 12]), 2000);
    damage(&idx_bytes(0x0e, &[2], &[1; 16]), 500);
}

#[test]
fn npz() {
    damage(&npz_bytes(&[("x", "<f4", "(3, 2)", &[1; 24]), ("labels", "|u1", "(3, 1)", &[1, 2, 1])]), 3000);
}

#[test]
fn parquet() {
    damage(&sample_parquet(), 3000);
}

#[test]
fn gzip() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &idx_bytes(8, &[3, 2, 2], &[9; 12])).unwrap();
    damage(&packed.finish().unwrap(), 2000);
}

#[test]
fn signals() {
    let signals = |path: &Path| read_signals(path).map(drop);
    damage_as("x.1D", b"#2001\t#2002\n1 2\n-3.5 4e1\n", 2000, signals);
    damage_as("x.npz", &npz_bytes(&[("signals", "<f4", "(3, 2)", &[1; 24])]), 2000, signals);
    let distances = |path: &Path| read_distances(path).map(drop);
    damage_as("z.json", b"{\"d\": 3, \"zbar\": [[1, 2.5, 3], [0, 1, 2]]}", 2000, distances);
    damage_as("z.npz", &npz_bytes(&[("zbar", "<f4", "(2, 3)", &[1; 24])]), 2000, distances);
}
