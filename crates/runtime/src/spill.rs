//! A file for what clients remember, where that is more than a run may hold in memory.
//!
//! The file has no name: the operating system frees it with the process, however that ends. It is no checkpoint; those are
//! written as ever.

use fedkin_privacy::Spill;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a client's bytes are.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    at: u64,
    length: u64,
    room: u64,
}

#[derive(Debug, Default)]
struct Slots {
    places: Vec<Slot>,
    end: u64,
    failure: Option<String>,
}

/// A spill in a file.
#[derive(Debug)]
struct FileSpill {
    file: File,
    slots: Mutex<Slots>,
}

impl FileSpill {
    /// A spill for so many clients, in the folder for temporary files.
    fn new(clients: usize) -> io::Result<Self> {
        let slots = Slots { places: vec![Slot::default(); clients], ..Slots::default() };
        Ok(Self { file: tempfile::tempfile()?, slots: Mutex::new(slots) })
    }

    fn failed(&self, error: &io::Error) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots
            .failure
            .get_or_insert_with(|| format!("what clients remember could not be kept on disk: {error}"));
    }

    /// A place that holds so many bytes: the old one, or a new one at the end.
    fn place(&self, place: u32, length: u64) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slot = slots.places.get(place as usize).copied().unwrap_or_default();
        if slot.room < length {
            slot = Slot { at: slots.end, length, room: length };
            slots.end += length;
        }
        slot.length = length;
        if let Some(kept) = slots.places.get_mut(place as usize) {
            *kept = slot;
        }
        slot
    }
}

/// A spill in a file for so many clients: what a run whose clients remember much is given.
///
/// # Errors
/// Why there is no such file.
pub fn file_spill(clients: usize) -> Result<Arc<dyn Spill>, String> {
    let spill = FileSpill::new(clients)
        .map_err(|error| format!("there is no file for what clients remember: {error}"))?;
    Ok(Arc::new(spill))
}

impl Spill for FileSpill {
    fn failure(&self) -> Option<String> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).failure.clone()
    }

    fn put(&self, place: u32, bytes: &[u8]) {
        let slot = self.place(place, bytes.len() as u64);
        if let Err(error) = write_at(&self.file, bytes, slot.at) {
            self.failed(&error);
        }
    }

    fn get(&self, place: u32) -> Vec<u8> {
        let slot = {
            let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.places.get(place as usize).copied().unwrap_or_default()
        };
        let mut bytes = vec![0; slot.length as usize];
        match read_at(&self.file, &mut bytes, slot.at) {
            Ok(()) => bytes,
            Err(error) => {
                self.failed(&error);
                Vec::new()
            }
        }
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::{Seek, Write};
    file.seek(io::SeekFrom::Start(at))?;
    file.write_all(bytes)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    use std::io::{Read, Seek};
    file.seek(io::SeekFrom::Start(at))?;
    file.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_put_last_is_there() {
        let spill = FileSpill::new(3).unwrap();
        assert!(spill.get(1).is_empty());
        for (place, bytes) in [
            (0u32, b"first".as_slice()),
            (2, b"second"),
            (0, b"1"),
            (2, b"much longer than before"),
            (1, b"x"),
        ] {
            spill.put(place, bytes);
            assert_eq!(spill.get(place), bytes);
        }
        assert_eq!((spill.get(0), spill.get(1)), (b"1".to_vec(), b"x".to_vec()));
        assert_eq!(spill.failure(), None);
    }
}
