//! Child processes that are started again when they are killed.

use crate::failure::{Failure, STOPPED};
use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often one process may be killed before the run is given up.
const RESTARTS: u32 = 100;

/// A process of a run.
pub(crate) struct Node {
    /// `server` or `client`.
    pub(crate) command: &'static str,
    /// The config files of its nodes.
    pub(crate) configs: Vec<PathBuf>,
    /// Where its log goes.
    pub(crate) log: PathBuf,
    child: Option<Child>,
    restarts: u32,
}

/// What became of a process since it was last looked at.
pub(crate) enum Change {
    /// It runs, or is done.
    None,
    /// It ended by itself; whether its work is done is for its files to say.
    Exited,
    /// It was killed and started again.
    Restarted,
}

impl Node {
    /// A process that is not started yet.
    pub(crate) fn new(command: &'static str, configs: Vec<PathBuf>, log: PathBuf) -> Self {
        Self { command, configs, log, child: None, restarts: 0 }
    }

    /// Starts it.
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        let wrong = |error: std::io::Error| {
            Failure::Usage(format!("cannot start a {} process: {error}", self.command))
        };
        let program = std::env::current_exe().map_err(wrong)?;
        let log = OpenOptions::new().create(true).append(true).open(&self.log).map_err(wrong)?;
        let mut command = Command::new(program);
        command.arg(self.command);
        for config in &self.configs {
            command.arg("--config").arg(config);
        }
        // Closed when this process ends, however it ends.
        command.env(fedkin_node::LAUNCHED, "1").stdin(Stdio::piped());
        let child = command.stdout(Stdio::null()).stderr(log).spawn().map_err(wrong)?;
        self.child = Some(child);
        Ok(())
    }

    /// Looks after it: one that was killed is started again, one that failed ends the run.
    pub(crate) fn look(&mut self) -> Result<Change, Failure> {
        let Some(child) = &mut self.child else { return Ok(Change::None) };
        let status = child.try_wait().map_err(|error| Failure::Unexpected(error.to_string()))?;
        let Some(status) = status else { return Ok(Change::None) };
        self.child = None;
        // One whose run cannot go on has left its results as well.
        if status.success() || status.code() == Some(i32::from(STOPPED)) {
            return Ok(Change::Exited);
        }
        if status.signal().is_some() && self.restarts < RESTARTS {
            self.restarts += 1;
            self.start()?;
            return Ok(Change::Restarted);
        }
        Err(Failure::Usage(format!("a {} process failed ({status}):\n{}", self.command, self.last_words())))
    }

    fn last_words(&self) -> String {
        let mut text = String::new();
        if let Ok(mut file) = File::open(&self.log) {
            let _ = std::io::Read::read_to_string(&mut file, &mut text);
        }
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n") + &format!("\nall of it: {}", self.log.display())
    }

    /// Whether it runs.
    pub(crate) fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ends the nodes and the broker that a launcher of the same folder left behind when it was killed. Whoever calls
/// this holds the lock of the run, so no other launcher works there.
pub(crate) fn sweep(folder: &Path) {
    let left = || -> Vec<String> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        entries.flatten().filter(|entry| is_left(&entry.path(), folder)).map(|entry| name(&entry)).collect()
    };
    let begun = Instant::now();
    loop {
        let pids = left();
        if pids.is_empty() || begun.elapsed() > Duration::from_secs(5) {
            return;
        }
        let _ = Command::new("kill").arg("-KILL").args(pids).stderr(Stdio::null()).status();
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn name(entry: &std::fs::DirEntry) -> String {
    entry.file_name().to_string_lossy().into_owned()
}

/// Whether a process of `/proc` is a node or a broker that was started with a file of this folder.
fn is_left(process: &Path, folder: &Path) -> bool {
    let Ok(line) = std::fs::read(process.join("cmdline")) else { return false };
    let line = String::from_utf8_lossy(&line);
    let mut words = line.split('\0');
    let program = words.next().map(Path::new).and_then(Path::file_name);
    let own = std::env::current_exe().ok();
    let ours = program
        .is_some_and(|name| name == "nats-server" || own.as_deref().and_then(Path::file_name) == Some(name));
    ours && words.any(|word| Path::new(word).starts_with(folder))
}
