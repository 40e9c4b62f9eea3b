//! One process per run directory.

use super::{ArtifactError, atomic};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;

/// The name of the lock file.
const NAME: &str = "run.lock";

/// The right to work in a run directory, until dropped. It ends with the process, however that ends.
#[derive(Debug)]
pub struct RunLock {
    // The lock hangs on the open file. The file itself stays: removing it would let two processes lock
    // two files of the same name.
    _file: File,
}

impl RunLock {
    /// Takes the directory, or says who has it; makes it where it is missing.
    pub fn take(folder: &Path) -> Result<Self, ArtifactError> {
        fs::create_dir_all(folder).map_err(ArtifactError::file("make the folder", folder))?;
        let path = folder.join(NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(ArtifactError::file("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let holder = match holder.trim().parse::<u32>() {
                    Ok(id) => format!(" (process {id})"),
                    Err(_) => String::new(),
                };
                return Err(ArtifactError::Locked { path: folder.to_path_buf(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(ArtifactError::file("lock", &path)(source)),
        }
        // The number only helps the message of others; a full disk must not keep a run from resuming.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        atomic::remove_unfinished(folder)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    const FOLDER: &str = "FEDKIN_TEST_LOCK_FOLDER";

    /// What the other process does in the test below, which asks for it by name; no run of all tests counts it.
    #[test]
    #[ignore = "the other process of a_second_process_is_refused_and_a_killed_one_leaves_no_lock"]
    fn other_process_that_holds_a_run_lock() {
        let folder = std::env::var_os(FOLDER).expect("started by the test below");
        let _lock = RunLock::take(Path::new(&folder)).unwrap();
        fs::write(Path::new(&folder).join("held"), b"").unwrap();
        // Ends when the parent closes the pipe.
        let _ = std::io::stdin().read(&mut [0]);
    }

    #[test]
    fn a_second_process_is_refused_and_a_killed_one_leaves_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["other_process_that_holds_a_run_lock", "--ignored"])
            .env(FOLDER, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !folder.path().join("held").exists() {
            assert!(other.try_wait().unwrap().is_none(), "the other process ended too early");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let text = RunLock::take(folder.path()).unwrap_err().to_string();
        let expected = format!("is in use by another process (process {}): wait for it to end", other.id());
        assert!(text.contains(&expected), "{text}");
        other.kill().unwrap();
        other.wait().unwrap();
        RunLock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_lock_ends_with_its_holder_and_clears_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("runs/wards");
        let lock = RunLock::take(&run).unwrap();
        assert!(matches!(RunLock::take(&run), Err(ArtifactError::Locked { .. })));
        fs::write(run.join(".a.1-0.unfinished"), b"").unwrap();
        drop(lock);
        let _again = RunLock::take(&run).unwrap();
        assert!(!run.join(".a.1-0.unfinished").exists());
    }
}
