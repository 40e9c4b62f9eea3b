//! A broker of one's own: a `nats-server` process on this machine, for a run that names no broker, and for tests.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Oldest version that works.
pub const LEAST_VERSION: (u32, u32) = (2, 10);
const NAME: &str = "nats-server";
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no broker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// No program.
    #[error(
        "nats-server is not there: run scripts/setup, install it (https://nats.io), or name it in \
         FEDKIN_NATS_SERVER"
    )]
    NotFound,
    /// An old program, or another one.
    #[error("{path} says '{found}', needed is nats-server 2.10 or newer")]
    Version {
        /// The program.
        path: PathBuf,
        /// What it says of itself.
        found: String,
    },
    /// A file that cannot be written or read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// It does not come up.
    #[error("nats-server does not start: {0}")]
    Start(String),
}

/// A running `nats-server` with `JetStream` on a free port of the loopback address. Killed when dropped.
#[derive(Debug)]
pub struct Broker {
    program: PathBuf,
    dir: PathBuf,
    extra: String,
    user: Option<(String, String)>,
    port: u16,
    child: Option<Child>,
}

impl Broker {
    /// Starts a broker that keeps its files in `dir`. It lets in who has its [`url`](Self::url): a password
    /// drawn for this process is part of it.
    pub fn start(dir: impl Into<PathBuf>) -> Result<Self, BrokerError> {
        let password = password()?;
        let extra = format!("authorization {{ user: fedkin, password: \"{password}\" }}\n");
        Self::launch(dir.into(), extra, Some(("fedkin".to_owned(), password)))
    }

    /// Starts a broker with more lines in its config; who is let in is up to them.
    pub fn with_config(dir: impl Into<PathBuf>, extra: &str) -> Result<Self, BrokerError> {
        Self::launch(dir.into(), extra.to_owned(), None)
    }

    fn launch(dir: PathBuf, extra: String, user: Option<(String, String)>) -> Result<Self, BrokerError> {
        let program = find()?;
        fs::create_dir_all(&dir).map_err(|source| BrokerError::File { path: dir.clone(), source })?;
        let mut broker = Self { program, dir, extra, user, port: 0, child: None };
        broker.run()?;
        Ok(broker)
    }

    /// The address, with user and password where the broker has its own.
    pub fn url(&self) -> String {
        match &self.user {
            Some((user, password)) => self.url_as(user, password),
            None => format!("nats://127.0.0.1:{}", self.port),
        }
    }

    /// The address for a user.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("nats://{user}:{password}@127.0.0.1:{}", self.port)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Whether the process runs.
    pub fn alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Ends the process without a chance to tidy up, as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Kills it if it runs, and starts it again on the same port with what its disk holds.
    pub fn restart(&mut self) -> Result<(), BrokerError> {
        self.kill();
        self.run()
    }

    /// Kills it, deletes everything it stored, and starts it again on the same port.
    pub fn wipe(&mut self) -> Result<(), BrokerError> {
        self.kill();
        let store = self.store();
        match fs::remove_dir_all(&store) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(BrokerError::File { path: store, source })
            }
            _ => self.run(),
        }
    }

    fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    fn run(&mut self) -> Result<(), BrokerError> {
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| BrokerError::File { path, source }
        };
        let config = self.dir.join("nats.conf");
        let log = self.dir.join("nats.log");
        // The first time the system chooses the port, and the broker writes down which.
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let text = format!(
            "listen: \"127.0.0.1:{port}\"\nports_file_dir: {}\nlog_file: {}\nlogfile_size_limit: 10MB\n\
             jetstream {{ store_dir: {} }}\n{}",
            quoted(&self.dir),
            quoted(&log),
            quoted(&self.store()),
            self.extra
        );
        private(&config).and_then(|mut f| f.write_all(text.as_bytes())).map_err(file(&config))?;
        fs::write(&log, "").map_err(file(&log))?;
        let child = Command::new(&self.program)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| BrokerError::Start(error.to_string()))?;
        let ports = self.dir.join(format!("{NAME}_{}.ports", child.id()));
        let child = self.child.insert(child);
        let begin = Instant::now();
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                let mut said = fs::read_to_string(&log).unwrap_or_default();
                if let Some(mut errors) = child.stderr.take() {
                    let _ = errors.read_to_string(&mut said);
                }
                self.child = None;
                return Err(BrokerError::Start(format!("{status}: {}", last_lines(&said))));
            }
            if self.port == 0 {
                self.port = fs::read_to_string(&ports).ok().and_then(|text| read_port(&text)).unwrap_or(0);
            }
            if self.port != 0 && answers(self.port) {
                let _ = fs::remove_file(&ports);
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                self.kill();
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(BrokerError::Start(format!("silent for 10 s: {}", last_lines(&said))));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The program: `FEDKIN_NATS_SERVER`; beside this binary; `target/tools` of the source tree; `PATH`.
pub fn find() -> Result<PathBuf, BrokerError> {
    if let Some(named) = std::env::var_os("FEDKIN_NATS_SERVER") {
        return checked(PathBuf::from(named));
    }
    let mut places = Vec::new();
    if let Ok(binary) = std::env::current_exe() {
        places.extend(binary.parent().map(|dir| dir.join(NAME)));
        places.extend(binary.ancestors().map(|dir| dir.join("tools").join(NAME)));
    }
    if let Some(source) = std::env::var_os("CARGO_MANIFEST_DIR") {
        places.extend(Path::new(&source).ancestors().map(|dir| dir.join("target/tools").join(NAME)));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    places.extend(std::env::split_paths(&path).map(|dir| dir.join(NAME)));
    let mut old = None;
    for place in places.into_iter().filter(|place| place.is_file()) {
        match checked(place) {
            Ok(program) => return Ok(program),
            Err(error) => old = Some(error),
        }
    }
    Err(old.unwrap_or(BrokerError::NotFound))
}

fn checked(path: PathBuf) -> Result<PathBuf, BrokerError> {
    let output = Command::new(&path).arg("--version").output();
    let output = output.map_err(|source| BrokerError::File { path: path.clone(), source })?;
    let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if version(&found).is_some_and(|version| version >= LEAST_VERSION) {
        Ok(path)
    } else {
        Err(BrokerError::Version { path, found })
    }
}

/// `nats-server: v2.15.1`
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split_once(": v")?.1.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// `{"nats":["nats://127.0.0.1:40123"], ...}`
fn read_port(text: &str) -> Option<u16> {
    let ports: serde_json::Value = serde_json::from_str(text).ok()?;
    ports.get("nats")?.get(0)?.as_str()?.rsplit_once(':')?.1.parse().ok()
}

/// A broker greets whoever connects.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500)) else { return false };
    let mut line = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(1))).is_ok()
        && BufReader::new(stream).take(65_536).read_line(&mut line).is_ok()
        && line.starts_with("INFO ")
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("; ")
}

/// A file that nobody else may read: the config holds a password.
fn private(path: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn password() -> Result<String, BrokerError> {
    let path = PathBuf::from("/dev/urandom");
    let mut bytes = [0_u8; 32];
    fs::File::open(&path)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|source| BrokerError::File { path, source })?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_ports_are_read() {
        assert_eq!(version("nats-server: v2.15.1"), Some((2, 15)));
        assert_eq!(version("nats-server: v2.9.10"), Some((2, 9)));
        assert!((2, 9) < LEAST_VERSION);
        assert_eq!(version("something else"), None);
        assert_eq!(read_port(r#"{"nats":["nats://127.0.0.1:40123"]}"#), Some(40123));
        assert_eq!(read_port("{}"), None);
    }
}
