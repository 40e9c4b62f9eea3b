//! Fetching from a server of this test on this machine: whole, in parts, cut off, wrong, and not at all.

use fedkin_data::catalogue::{Download, Form, Holds, Known, KnownFile, Presence, content_sum};
use fedkin_data::{FetchNews, FetchRequest, fetch, native};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// What the server does with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    /// Honours ranges.
    Good,
    /// Sends everything, whatever was asked for.
    Whole,
    /// Breaks off after so many bytes of its answer, once; then it is good.
    CutOnce(usize),
    /// Always breaks off after so many bytes, and refuses ranges.
    CutAlways(usize),
    /// Says that it has nothing.
    Missing,
    /// Answers any range with 416.
    NoRange,
}

struct Server {
    address: String,
    /// The `Range` of each request, empty where there was none.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(content: Vec<u8>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut manner = manner;
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { break };
                let range = request(&stream);
                log.lock().unwrap().push(range.clone());
                // A client that has gone away is its own business.
                let _ = answer(&mut stream, &content, &range, manner);
                if let Manner::CutOnce(_) = manner {
                    manner = Manner::Good;
                }
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Reads a request and gives its range.
fn request(stream: &TcpStream) -> String {
    let mut range = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap_or_default();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("range")
        {
            range = value.trim().to_string();
        }
    }
    range
}

fn answer(stream: &mut TcpStream, content: &[u8], range: &str, manner: Manner) -> std::io::Result<()> {
    let from = range.strip_prefix("bytes=").and_then(|text| text.trim_end_matches('-').parse::<usize>().ok());
    let (status, more, body) = match (manner, from) {
        (Manner::Missing, _) => ("404 Not Found", String::new(), &b"nothing"[..]),
        (Manner::NoRange, Some(_)) => {
            ("416 Range Not Satisfiable", "Content-Range: bytes */7\r\n".into(), &b""[..])
        }
        (Manner::Good, Some(from)) if from < content.len() => {
            let more = format!("Content-Range: bytes {from}-{}/{}\r\n", content.len() - 1, content.len());
            ("206 Partial Content", more, &content[from..])
        }
        (Manner::Good, Some(_)) => {
            ("416 Range Not Satisfiable", format!("Content-Range: bytes */{}\r\n", content.len()), &b""[..])
        }
        _ => ("200 OK", String::new(), content),
    };
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{more}Connection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    let sent = match manner {
        Manner::CutOnce(count) | Manner::CutAlways(count) => &body[..count.min(body.len())],
        _ => body,
    };
    stream.write_all(sent)?;
    stream.flush()
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A tar archive of one file in a folder.
fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    let path = format!("folder/{name}");
    header[..path.len()].copy_from_slice(path.as_bytes());
    let size = format!("{:011o}", content.len());
    header[124..124 + size.len()].copy_from_slice(size.as_bytes());
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
    archive
}

fn sum(content: &[u8]) -> &'static str {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    // The sum of bytes that are no gzip is of the bytes themselves.
    content_sum(file.path()).unwrap().leak()
}

/// 200,000 bytes that look alike nowhere.
fn content() -> Vec<u8> {
    let mut state = 1u32;
    let byte = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::once(1).chain((1..200_000).map(byte)).collect()
}

fn set(
    holds: Holds,
    download: &'static str,
    whole: &'static str,
    file: &'static str,
    inside: &'static str,
) -> Known {
    let files: &'static [KnownFile] = vec![KnownFile { name: file, sha256: inside }].leak();
    Known {
        name: "test-set",
        what: "",
        records: "",
        licence: "",
        home: "its home page",
        forms: vec![Form { folder: "test-set", files }].leak(),
        downloads: vec![Download { url: "http://127.0.0.1:9/", file: download, sha256: whole, holds }].leak(),
    }
}

fn plain() -> Known {
    set(Holds::File, "data.bin", "", "data.bin", sum(&content()))
}

fn run(known: &Known, to: &Path, from: &str) -> Result<Vec<String>, String> {
    let mut news = Vec::new();
    let request = FetchRequest { known, to, from: Some(from) };
    let done = fetch(&request, &mut |item| match item {
        FetchNews::Bytes(..) => {}
        item => news.push(format!("{item:?}")),
    });
    done.map(|_| news).map_err(|error| error.to_string())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .map(|entries| {
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

#[test]
fn a_file_arrives_whole_and_is_not_fetched_again() {
    let (folder, known) = (TempDir::new().unwrap(), plain());
    let server = Server::start(content(), Manner::Good);
    assert_eq!(run(&known, folder.path(), &server.address).unwrap(), ["Verified(\"data.bin\")"]);
    assert_eq!(std::fs::read(folder.path().join("test-set/data.bin")).unwrap(), content());
    assert_eq!(names(&folder.path().join("test-set")), ["data.bin"]);
    assert_eq!(run(&known, folder.path(), &server.address).unwrap(), ["There(\"data.bin\")"]);
    assert_eq!(server.asked(), [""]);
    assert_eq!(known.presence(folder.path()), Presence::Present(folder.path().join("test-set")));
}

#[test]
fn a_broken_line_is_taken_up_where_it_broke() {
    let (folder, known) = (TempDir::new().unwrap(), plain());
    let server = Server::start(content(), Manner::CutOnce(70_000));
    let news = run(&known, folder.path(), &server.address).unwrap();
    assert_eq!(news, ["Again(\"data.bin\", 70000)", "Verified(\"data.bin\")"]);
    assert_eq!(server.asked(), ["", "bytes=70000-"]);
    assert_eq!(std::fs::read(folder.path().join("test-set/data.bin")).unwrap(), content());
}

#[test]
fn what_an_earlier_command_left_is_gone_on_from_or_replaced() {
    let known = plain();
    let cases = [
        (Manner::Good, vec!["bytes=50000-"]),
        (Manner::Whole, vec!["bytes=50000-"]),
        (Manner::NoRange, vec!["bytes=50000-", ""]),
    ];
    for (manner, asked) in cases {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("test-set")).unwrap();
        std::fs::write(folder.path().join("test-set/.data.bin.part"), &content()[..50_000]).unwrap();
        let server = Server::start(content(), manner);
        run(&known, folder.path(), &server.address).unwrap();
        assert_eq!(server.asked(), asked, "{manner:?}");
        assert_eq!(std::fs::read(folder.path().join("test-set/data.bin")).unwrap(), content());
    }
    // All of it was there, only not in place: nothing more is sent.
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("test-set")).unwrap();
    std::fs::write(folder.path().join("test-set/.data.bin.part"), content()).unwrap();
    let server = Server::start(content(), Manner::Good);
    assert_eq!(run(&known, folder.path(), &server.address).unwrap(), ["Verified(\"data.bin\")"]);
    assert_eq!(server.asked(), ["bytes=200000-"]);
}

#[test]
fn a_line_that_breaks_for_good_keeps_what_came_and_says_how_to_go_on() {
    let (folder, known) = (TempDir::new().unwrap(), plain());
    let server = Server::start(content(), Manner::CutAlways(30_000));
    let message = run(&known, folder.path(), &server.address).unwrap_err();
    for part in [
        "test-set was not fetched",
        "cut off after 30000 of 200000 bytes",
        "30000 bytes are kept",
        "--from FOLDER",
    ] {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    assert_eq!(names(&folder.path().join("test-set")), [".data.bin.part"]);
}

#[test]
fn a_wrong_sum_is_refused_with_both_and_nothing_is_kept() {
    let (folder, known) = (TempDir::new().unwrap(), plain());
    let mut other = content();
    other[1000] ^= 1;
    let server = Server::start(other.clone(), Manner::Good);
    let message = run(&known, folder.path(), &server.address).unwrap_err();
    for part in ["data.bin has the wrong SHA-256", sum(&content()), sum(&other)] {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    assert!(names(&folder.path().join("test-set")).is_empty());
}

#[test]
fn archives_are_checked_as_a_whole_and_inside() {
    let inside = content();
    let archive = packed(&tar("data.bin", &inside));
    // An archive's own sum is of its bytes as they are sent: told through a file that hides the gzip.
    let whole = {
        let folder = TempDir::new().unwrap();
        let known = set(Holds::Tar, "data.tar.gz", "0", "data.bin", sum(&inside));
        let server = Server::start(archive.clone(), Manner::Good);
        let message = run(&known, folder.path(), &server.address).unwrap_err();
        assert!(
            message.contains("data.tar.gz has the wrong SHA-256") && message.contains("expected 0,"),
            "{message}"
        );
        assert!(names(&folder.path().join("test-set")).is_empty());
        let found = message.split("found ").nth(1).unwrap().split(';').next().unwrap();
        found.to_string().leak()
    };
    let folder = TempDir::new().unwrap();
    let good = set(Holds::Tar, "data.tar.gz", whole, "data.bin", sum(&inside));
    let server = Server::start(archive.clone(), Manner::Good);
    run(&good, folder.path(), &server.address).unwrap();
    assert_eq!(std::fs::read(folder.path().join("test-set/data.bin")).unwrap(), inside);
    assert_eq!(names(&folder.path().join("test-set")), ["data.bin"]);
    // Damaged archives whose own sum is not known: cut in the middle, without the file, with another one.
    let refuse = |archive: Vec<u8>, parts: &[&str]| {
        let folder = TempDir::new().unwrap();
        let known = set(Holds::Tar, "data.tar.gz", "", "data.bin", sum(&inside));
        let server = Server::start(archive, Manner::Good);
        let message = run(&known, folder.path(), &server.address).unwrap_err();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
        assert!(
            names(&folder.path().join("test-set")).is_empty(),
            "{:?}",
            names(&folder.path().join("test-set"))
        );
    };
    refuse(archive[..archive.len() / 2].to_vec(), &["the archive data.tar.gz is damaged"]);
    refuse(packed(&tar("other.bin", &inside)), &["damaged", "it holds no data.bin"]);
    refuse(packed(&tar("data.bin", b"short")), &["data.bin has the wrong SHA-256", sum(b"short")]);
    refuse(packed(&[7; 2000]), &["damaged", "header is garbled"]);
    refuse(b"no gzip at all".to_vec(), &["damaged"]);
}

#[test]
fn zip_archives_give_their_member() {
    let inside = content();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file("folder/data.bin", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(&inside).unwrap();
    let archive = archive.finish().unwrap().into_inner();
    let folder = TempDir::new().unwrap();
    let known = set(Holds::Zip, "data.zip", "", "data.bin", sum(&inside));
    run(&known, folder.path(), &Server::start(archive.clone(), Manner::Good).address).unwrap();
    assert_eq!(names(&folder.path().join("test-set")), ["data.bin"]);
    let folder = TempDir::new().unwrap();
    let cut = Server::start(archive[..5000].to_vec(), Manner::Good);
    let message = run(&known, folder.path(), &cut.address).unwrap_err();
    assert!(message.contains("the archive data.zip is damaged"), "{message}");
}

#[test]
fn no_server_and_no_file_say_how_to_do_without() {
    let (folder, known) = (TempDir::new().unwrap(), plain());
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let message = run(&known, folder.path(), &format!("http://{closed}")).unwrap_err();
    for part in ["test-set was not fetched", "data.bin", "its home page", "--from FOLDER"] {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    let message =
        run(&known, folder.path(), &Server::start(Vec::new(), Manner::Missing).address).unwrap_err();
    assert!(message.contains("404"), "{message}");
    let from = TempDir::new().unwrap();
    let message = run(&known, folder.path(), from.path().to_str().unwrap()).unwrap_err();
    assert!(message.contains("cannot read") && message.contains("data.bin"), "{message}");
    std::fs::write(from.path().join("data.bin"), content()).unwrap();
    run(&known, folder.path(), from.path().to_str().unwrap()).unwrap();
    assert!(folder.path().join("test-set/data.bin").is_file());
}

#[test]
fn sets_are_found_by_name_and_some_come_by_hand_only() {
    assert!(native().catalogued("mnits").unwrap_err().to_string().contains("did you mean `mnist`?"));
    let folder = TempDir::new().unwrap();
    let by_hand = native().catalogue().find(|known| known.downloads.is_empty()).unwrap();
    let message = run(by_hand, folder.path(), ".").unwrap_err();
    assert!(
        message.contains("cannot be fetched by this command") && message.contains(by_hand.home),
        "{message}"
    );
}

/// The sums of the catalogue are those of the files that are here.
#[test]
fn real_files_have_the_sums_of_the_catalogue() {
    for known in native().catalogue() {
        for form in known.forms {
            let Some(folder) = crate::real_data(form.folder) else { continue };
            for file in form.files.iter().filter(|file| !file.sha256.is_empty()) {
                let path = [folder.join(file.name), folder.join(format!("{}.gz", file.name))]
                    .into_iter()
                    .find(|path| path.is_file());
                if let Some(path) = path {
                    assert_eq!(content_sum(&path).unwrap(), file.sha256, "{}", path.display());
                }
            }
        }
    }
}
