//! Getting one file over HTTP, from where an earlier try stopped, or from a folder.

use super::{FetchNews, FetchRequest, Listener, writing};
use crate::error::DataError;
use crate::public::catalogue::Download;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

/// So often a broken line is taken up again before the command gives up; what has arrived is kept.
const TRIES: u32 = 4;
/// No data set is larger: an answer that goes on and on must not fill the disk.
const MOST: u64 = 1 << 33;

/// Gets a download into `part`.
pub(super) fn transfer(
    request: &FetchRequest<'_>,
    download: &Download,
    part: &Path,
    listener: &mut Listener<'_>,
) -> Result<(), DataError> {
    let address = match request.from {
        None => download.url.to_string(),
        Some(from) if from.starts_with("http://") || from.starts_with("https://") => {
            format!("{}/{}", from.trim_end_matches('/'), download.file)
        }
        Some(folder) => return copy(Path::new(folder), download, part),
    };
    let agent = agent();
    let mut restarts = 0;
    for attempt in 1..=TRIES {
        let there = std::fs::metadata(part).map_or(0, |about| about.len());
        match ask(&agent, &address, there, download, part, listener) {
            Ok(Answer::Whole) => return Ok(()),
            // What is there does not fit what is offered: once from the start.
            Ok(Answer::Other) if restarts == 0 => {
                restarts += 1;
                std::fs::remove_file(part).map_err(|source| writing(part, &source))?;
            }
            Ok(Answer::Other) => {
                return Err(failed(
                    request,
                    download,
                    &address,
                    "the server does not agree about the size of the file",
                ));
            }
            Err(Broken::Here(error)) => return Err(error),
            Err(Broken::Refused(message)) => return Err(failed(request, download, &address, &message)),
            Err(Broken::Line(message)) => {
                let now = std::fs::metadata(part).map_or(0, |about| about.len());
                // Nobody is there, or nothing comes: trying again at once would not help.
                if attempt == TRIES || now == there {
                    let kept = match now {
                        0 => String::new(),
                        now => format!("; {now} bytes are kept, and the same command goes on from there"),
                    };
                    return Err(failed(request, download, &address, &format!("{message}{kept}")));
                }
                listener(FetchNews::Again(download.file, now));
            }
        }
    }
    Err(failed(request, download, &address, "the line broke again and again"))
}

enum Answer {
    /// All of the file is there.
    Whole,
    /// What is there is not the beginning of what is offered.
    Other,
}

enum Broken {
    /// Trouble on this machine.
    Here(DataError),
    /// The server says no.
    Refused(String),
    /// No line, or one that broke.
    Line(String),
}

fn ask(
    agent: &Agent,
    address: &str,
    there: u64,
    download: &Download,
    part: &Path,
    listener: &mut Listener<'_>,
) -> Result<Answer, Broken> {
    let mut call = agent.get(address);
    if there > 0 {
        call = call.header("Range", format!("bytes={there}-"));
    }
    let response = call.call().map_err(|error| Broken::Line(error.to_string()))?;
    let status = response.status().as_u16();
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_string);
    let length = header("content-length").and_then(|text| text.parse::<u64>().ok());
    let range = header("content-range");
    let start = match status {
        200 => 0,
        206 if range.as_deref().and_then(first_byte) == Some(there) => there,
        // The whole file may be there already; else the server has another one.
        206 | 416 if there > 0 => {
            let total = range.as_deref().and_then(|text| text.rsplit('/').next()?.parse::<u64>().ok());
            return Ok(if status == 416 && total == Some(there) { Answer::Whole } else { Answer::Other });
        }
        _ => return Err(Broken::Refused(format!("the server answers {}", response.status()))),
    };
    let total = length.map(|length| start + length);
    let here = |source: &std::io::Error| Broken::Here(writing(part, source));
    let mut output = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(start == 0)
        .append(false)
        .open(part)
        .and_then(|mut file| std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(start)).map(|_| file))
        .map_err(|source| here(&source))?;
    let mut body = response.into_body().into_with_config().limit(MOST).reader();
    let (mut block, mut count) = (vec![0; 1 << 16], start);
    loop {
        let arrived =
            body.read(&mut block).map_err(|error| Broken::Line(cut(count, total, &error.to_string())))?;
        if arrived == 0 {
            break;
        }
        output.write_all(&block[..arrived]).map_err(|source| here(&source))?;
        count += arrived as u64;
        listener(FetchNews::Bytes(download.file, count, total));
    }
    output.sync_all().map_err(|source| here(&source))?;
    match total {
        Some(total) if count < total => Err(Broken::Line(cut(count, Some(total), "the line was closed"))),
        _ => Ok(Answer::Whole),
    }
}

fn cut(count: u64, total: Option<u64>, why: &str) -> String {
    let of = total.map_or_else(String::new, |total| format!(" of {total}"));
    format!("cut off after {count}{of} bytes ({why})")
}

/// The first number of `bytes 100-199/200`.
fn first_byte(range: &str) -> Option<u64> {
    range.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

fn agent() -> Agent {
    // The certificates that this machine trusts; TLS is rustls with ring, as everywhere else.
    let native = rustls_native_certs::load_native_certs();
    let trusted: Vec<Certificate<'static>> =
        native.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::Specific(Arc::new(trusted)))
        .unversioned_rustls_crypto_provider(provider)
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .user_agent(concat!("fedkin/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

/// Takes the file from a folder where somebody has put it.
fn copy(folder: &Path, download: &Download, part: &Path) -> Result<(), DataError> {
    let source = folder.join(download.file);
    let mut input = File::open(&source).map_err(|error| DataError::io(&source, error))?;
    let output = File::create(part).and_then(|mut output| {
        std::io::copy(&mut input, &mut output)?;
        output.sync_all()
    });
    output.map_err(|error| writing(part, &error))
}

/// What went wrong, and how to do without the network.
fn failed(request: &FetchRequest<'_>, download: &Download, address: &str, message: &str) -> DataError {
    let known = request.known;
    DataError::Fetch {
        set: known.name,
        message: format!(
            "{address}: {message}. Without a network: get {} on another machine ({}), copy it here, and run `fedkin data fetch {} \
             --from FOLDER` with the folder it is in",
            download.file, known.home, known.name
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(first_byte("bytes 100-199/200"), Some(100));
        assert_eq!(first_byte("bytes */200"), None);
        assert_eq!(first_byte("lines 1-2/3"), None);
    }
}
