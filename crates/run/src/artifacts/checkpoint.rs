//! Where a killed run goes on: an envelope that knows whose state it carries.
//!
//! Layout, little-endian: magic (8 bytes), format version (u32), config fingerprint (32), data fingerprint
//! (32), round (u64), length of the payload (u64), payload, BLAKE3 of all before it (32).

use super::{ArtifactError, atomic};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The version this code writes and reads.
pub const VERSION: u32 = 3;

const MAGIC: &[u8; 8] = b"FEDKINCP";
const HEADER: usize = 8 + 4 + 32 + 32 + 8 + 8;
const CHECKSUM: usize = 32;

/// Whose state it is: a checkpoint is only good for the same config on the same data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Fingerprint of the config.
    pub config: [u8; 32],
    /// Fingerprint of the data.
    pub data: [u8; 32],
}

/// State after a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// How many rounds are done.
    pub round: u64,
    /// The state, in a form that only the writer knows.
    pub payload: Vec<u8>,
}

/// Writes a checkpoint in place of the last one. The payload is not copied: it may be most of the memory.
pub fn save(path: &Path, identity: &Identity, round: u64, payload: &[u8]) -> Result<(), ArtifactError> {
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&identity.config);
    header.extend_from_slice(&identity.data);
    header.extend_from_slice(&round.to_le_bytes());
    header.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    let mut hash = blake3::Hasher::new();
    hash.update(&header).update(payload);
    atomic::write_with(path, |file| {
        file.write_all(&header)?;
        file.write_all(payload)?;
        file.write_all(hash.finalize().as_bytes())
    })
}

/// Reads a checkpoint; none where there is no file. One that is damaged, or of another format, config or
/// data, is refused by name.
pub fn load(path: &Path, identity: &Identity) -> Result<Option<Checkpoint>, ArtifactError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ArtifactError::file("read", path)(error)),
        Ok(bytes) => open(path, bytes, identity).map(Some),
    }
}

fn open(path: &Path, mut bytes: Vec<u8>, identity: &Identity) -> Result<Checkpoint, ArtifactError> {
    let damaged =
        |what: &str| ArtifactError::damaged(path, format!("{what}; remove it to start from the beginning"));
    if !bytes.starts_with(MAGIC) {
        return Err(damaged("it does not start like a checkpoint"));
    }
    // Before the checksum: another version may well have another layout.
    let version = number(&bytes, 8, 4).ok_or_else(|| damaged("it is cut short"))?;
    if version != u64::from(VERSION) {
        return Err(ArtifactError::OtherVersion {
            path: path.to_path_buf(),
            found: version as u32,
            known: VERSION,
        });
    }
    let (Some(round), Some(length)) = (number(&bytes, 76, 8), number(&bytes, 84, 8)) else {
        return Err(damaged("it is cut short"));
    };
    let expected = length.checked_add((HEADER + CHECKSUM) as u64);
    if expected != Some(bytes.len() as u64) {
        return Err(damaged("its length is not the one it states"));
    }
    let end = bytes.len() - CHECKSUM;
    if blake3::hash(&bytes[..end]).as_bytes()[..] != bytes[end..] {
        return Err(damaged("its checksum does not fit"));
    }
    if bytes[12..44] != identity.config {
        return Err(ArtifactError::OtherConfig { path: path.to_path_buf() });
    }
    if bytes[44..76] != identity.data {
        return Err(ArtifactError::OtherData { path: path.to_path_buf() });
    }
    bytes.truncate(end);
    bytes.drain(..HEADER);
    Ok(Checkpoint { round, payload: bytes })
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let part = bytes.get(at..at + width)?;
    Some(part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: Identity = Identity { config: [1; 32], data: [2; 32] };

    fn saved() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        save(&path, &MINE, 17, b"the state of things").unwrap();
        (folder, path)
    }

    fn refusal(path: &Path, identity: &Identity) -> String {
        load(path, identity).unwrap_err().to_string()
    }

    #[test]
    fn what_was_saved_is_loaded_and_absence_is_no_error() {
        let (folder, path) = saved();
        let expected = Checkpoint { round: 17, payload: b"the state of things".to_vec() };
        assert_eq!(load(&path, &MINE).unwrap(), Some(expected));
        assert_eq!(load(&folder.path().join("absent"), &MINE).unwrap(), None);
        save(&path, &MINE, 18, b"").unwrap();
        assert_eq!(load(&path, &MINE).unwrap(), Some(Checkpoint { round: 18, payload: Vec::new() }));
    }

    #[test]
    fn foreign_checkpoints_are_refused_by_name() {
        let (_folder, path) = saved();
        let config = refusal(&path, &Identity { config: [9; 32], ..MINE });
        assert!(config.contains("checkpoint was written with another config"), "{config}");
        let data = refusal(&path, &Identity { data: [9; 32], ..MINE });
        assert!(data.starts_with("the data changed since"), "{data}");
        let mut bytes = fs::read(&path).unwrap();
        bytes[8] = 1;
        fs::write(&path, &bytes).unwrap();
        let version = refusal(&path, &MINE);
        assert!(version.contains("has checkpoint format 1, but this Fedkin reads format 3"), "{version}");
    }

    #[test]
    fn cut_short_at_any_length_is_noticed() {
        let (_folder, path) = saved();
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let text = refusal(&path, &MINE);
            assert!(text.contains("is damaged: "), "at {length}: {text}");
        }
    }

    #[test]
    fn any_wrong_bit_or_added_byte_is_noticed() {
        let (_folder, path) = saved();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            load(&path, &MINE).unwrap_err();
        }
        fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
        assert!(refusal(&path, &MINE).contains("its length is not the one it states"));
    }

    #[test]
    fn a_full_disk_keeps_the_last_good_checkpoint() {
        let Some(disk) = atomic::tests::TinyDisk::mount(64) else {
            return;
        };
        let path = disk.path().join("checkpoint");
        save(&path, &MINE, 1, b"good").unwrap();
        assert!(save(&path, &MINE, 2, &vec![0; 1 << 20]).unwrap_err().disk_full());
        assert_eq!(load(&path, &MINE).unwrap().unwrap().round, 1);
    }
}
