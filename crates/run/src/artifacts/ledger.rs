//! `ledger.jsonl`: what was released, one JSON object a line.

use super::{ArtifactError, atomic};
use fedkin_privacy::Draws;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::Path;

/// Writes one line per entry.
pub fn write<T: Serialize>(path: &Path, entries: &[T]) -> Result<(), ArtifactError> {
    atomic::write_with(path, |file| {
        for entry in entries {
            serde_json::to_writer(&mut *file, entry).map_err(io::Error::from)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// Releases from Poisson samples that are priced alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledReleases {
    /// Standard deviation of the noise over the clip of one record.
    pub noise_multiplier: f64,
    /// The chance of a record to be in a sample.
    pub sampling_rate: f64,
    /// How many releases.
    pub steps: u64,
}

impl SampledReleases {
    /// In words: `200 steps with noise 4.23 times the clip on samples of rate 0.1`.
    pub fn words(&self) -> String {
        format!(
            "{} step{} with noise {} times the clip on samples of rate {}",
            self.steps,
            if self.steps == 1 { "" } else { "s" },
            self.noise_multiplier,
            self.sampling_rate
        )
    }

    /// As an account counts them.
    pub fn draws(&self) -> Draws {
        Draws { multiplier: self.noise_multiplier, rate: self.sampling_rate, steps: self.steps }
    }

    /// Of what an account has counted.
    pub fn new(draws: &Draws) -> Self {
        Self { noise_multiplier: draws.multiplier, sampling_rate: draws.rate, steps: draws.steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Line<'a> {
        client: &'a str,
        rho: f64,
    }

    #[test]
    fn each_entry_is_one_line_whatever_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        write(&path, &[Line { client: "a\nb", rho: 0.5 }, Line { client: "c", rho: 1e-9 }]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"client\":\"a\\nb\",\"rho\":0.5}\n{\"client\":\"c\",\"rho\":1e-9}\n");
        write::<Line<'_>>(&path, &[]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_full_disk_is_seen_through_the_json_writer() {
        let Some(disk) = atomic::tests::TinyDisk::mount(16) else {
            return;
        };
        let error = write(&disk.path().join("ledger.jsonl"), &vec!["x"; 100_000]).unwrap_err();
        assert!(error.disk_full(), "{error}");
    }
}
