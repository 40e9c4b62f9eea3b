//! Model parameters as safetensors: `clients.safetensors` and `servers.safetensors`.
//!
//! The format: length of the header (u64, little-endian), a JSON header with dtype, shape and place of each
//! tensor, then the numbers. The header is put together, read and checked by the `safetensors` crate; the numbers go
//! to the file and come from it one model at a time, so a million models need no second copy in memory.

use super::{ArtifactError, atomic};
use fedkin_method::round::Results;
use fedkin_settings::suggest;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file with the models of the clients.
pub const CLIENTS: &str = "clients.safetensors";
/// The file with the models of the servers, by `server/cluster`.
pub const SERVERS: &str = "servers.safetensors";
/// The names of the clients, where their models are stacked.
pub const CLIENT_NAMES: &str = "clients.txt";

/// Up to this many clients each has a tensor of its own.
const BY_NAME_LIMIT: usize = 100_000;
/// Readers of the format refuse longer headers.
const HEADER_LIMIT: usize = 100_000_000;
/// The one name the format keeps for itself.
const RESERVED: &str = "__metadata__";
/// What the header says about the tensors: each by its name, or all stacked.
const LAYOUT: &str = "layout";
/// The name of the stacked tensor.
const STACKED: &str = "models";

/// The models of clients, one after the other, without the clients that have none.
pub struct Own {
    /// Whose they are, in the order of client ids.
    pub names: Vec<String>,
    numbers: Vec<f64>,
    /// Where each model ends.
    ends: Vec<usize>,
}

impl Own {
    /// The clients' own models after a run: a method may train some of them only.
    pub fn of(live: &dyn Results, names: &[String]) -> Self {
        let mut own = Self { names: Vec::new(), numbers: Vec::new(), ends: Vec::new() };
        live.own_models(&mut |id, model| {
            if !model.is_empty() {
                own.names.push(names[id as usize].clone());
                own.numbers.extend_from_slice(model);
                own.ends.push(own.numbers.len());
            }
        });
        own
    }

    /// Number `k` of them.
    pub fn model(&self, k: usize) -> &[f64] {
        let start = if k == 0 { 0 } else { self.ends[k - 1] };
        &self.numbers[start..self.ends[k]]
    }
}

/// Writes the personal models: one tensor by client name, or one stacked tensor [K, d] and a list of names.
pub fn write_clients<'a>(
    folder: &Path,
    names: &[String],
    model: impl Fn(usize) -> &'a [f64],
) -> Result<(), ArtifactError> {
    write_clients_up_to(BY_NAME_LIMIT, folder, names, model)
}

fn write_clients_up_to<'a>(
    limit: usize,
    folder: &Path,
    names: &[String],
    model: impl Fn(usize) -> &'a [f64],
) -> Result<(), ArtifactError> {
    let path = folder.join(CLIENTS);
    if names.len() <= limit
        && let Some(header) = header_by_name(&path, names.iter().map(String::as_str), &model)?
    {
        write_tensors(&path, &header, names.len(), model)?;
        // Of an earlier run that had more clients.
        return match fs::remove_file(folder.join(CLIENT_NAMES)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ArtifactError::file("remove", &folder.join(CLIENT_NAMES))(error))
            }
            _ => Ok(()),
        };
    }
    let columns = if names.is_empty() { 0 } else { model(0).len() };
    if let Some(odd) = (0..names.len()).find(|&i| model(i).len() != columns) {
        let what = format!(
            "the models of {:?} and {:?} differ in length ({columns} and {}), so they cannot be stacked",
            names[0],
            names[odd],
            model(odd).len()
        );
        return Err(ArtifactError::Models { path, what });
    }
    // The names first: stacked models without names are of no use.
    atomic::write_with(&folder.join(CLIENT_NAMES), |file| {
        names.iter().try_for_each(|name| writeln!(file, "{}", one_line(name)))
    })?;
    let stacked = (STACKED.to_string(), doubles(vec![names.len(), columns], 0));
    let header = header(&path, "stacked", vec![stacked])?;
    write_tensors(&path, &header, names.len(), model)
}

/// Writes the models of the servers, each under `server/cluster`.
pub fn write_servers(folder: &Path, models: &[(String, &[f64])]) -> Result<(), ArtifactError> {
    let path = folder.join(SERVERS);
    let names = models.iter().map(|(name, _)| name.as_str());
    let Some(header) = header_by_name(&path, names, &|i| models[i].1)? else {
        let what = "the names are too long together, or one is called __metadata__".to_string();
        return Err(ArtifactError::Models { path, what });
    };
    write_tensors(&path, &header, models.len(), |i| models[i].1)
}

/// SHA-256 of all parameters as little-endian bytes, in the order given, as hexadecimal digits.
pub fn models_sha256<'a>(models: impl Iterator<Item = &'a [f64]>) -> String {
    let mut hash = Sha256::new();
    let mut buffer = Vec::new();
    for model in models {
        buffer.clear();
        buffer.extend(model.iter().flat_map(|number| number.to_le_bytes()));
        hash.update(&buffer);
    }
    hex::encode(hash.finalize())
}

/// The header with one tensor per name; none where the format cannot carry it.
fn header_by_name<'n, 'a>(
    path: &Path,
    names: impl Iterator<Item = &'n str>,
    model: &impl Fn(usize) -> &'a [f64],
) -> Result<Option<String>, ArtifactError> {
    let (mut tensors, mut known, mut letters, mut start) = (Vec::new(), HashSet::new(), 0, 0);
    for (i, name) in names.enumerate() {
        letters += name.len();
        if name == RESERVED || letters > HEADER_LIMIT {
            return Ok(None);
        }
        if !known.insert(name) {
            let what = format!("two models are called {name:?}");
            return Err(ArtifactError::Models { path: path.to_path_buf(), what });
        }
        let tensor = doubles(vec![model(i).len()], start);
        start = tensor.data_offsets.1;
        tensors.push((name.to_string(), tensor));
    }
    let header = header(path, "by-name", tensors)?;
    Ok((header.len() < HEADER_LIMIT).then_some(header))
}

fn doubles(shape: Vec<usize>, start: usize) -> TensorInfo {
    let end = start + shape.iter().product::<usize>() * 8;
    TensorInfo { dtype: Dtype::F64, shape, data_offsets: (start, end) }
}

/// The names must differ, and the tensors follow one another.
fn header(path: &Path, layout: &str, tensors: Vec<(String, TensorInfo)>) -> Result<String, ArtifactError> {
    let refuse = |what: String| ArtifactError::Models { path: path.to_path_buf(), what };
    let about = HashMap::from([(LAYOUT.to_string(), layout.to_string())]);
    let metadata = Metadata::new(Some(about), tensors).map_err(|error| refuse(error.to_string()))?;
    serde_json::to_string(&metadata).map_err(|error| refuse(error.to_string()))
}

/// The frame around header and numbers. The crate's own writer would need each tensor as one run of bytes, which for
/// stacked models is a copy of them all, and it does not wait until they have reached the disk.
fn write_tensors<'a>(
    path: &Path,
    header: &str,
    count: usize,
    model: impl Fn(usize) -> &'a [f64],
) -> Result<(), ArtifactError> {
    // Spaces up to a multiple of 8 keep the numbers aligned for readers that map the file.
    let padded = header.len().next_multiple_of(8);
    atomic::write_with(path, |file| {
        file.write_all(&(padded as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        file.write_all(&b"        "[..padded - header.len()])?;
        let mut buffer = Vec::new();
        for i in 0..count {
            buffer.clear();
            buffer.extend(model(i).iter().flat_map(|number| number.to_le_bytes()));
            file.write_all(&buffer)?;
        }
        Ok(())
    })
}

/// A name as one line of text.
fn one_line(name: &str) -> String {
    name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn from_one_line(line: &str) -> String {
    let mut name = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => name.push('\n'),
            ('\\', Some('r')) => name.push('\r'),
            ('\\', Some(other)) => name.push(other),
            (c, _) => name.push(c),
        }
    }
    name
}

/// A file of models, open for reading.
#[derive(Debug)]
pub struct Models {
    path: PathBuf,
    file: File,
    /// Where the numbers start.
    base: u64,
    names: Vec<String>,
    index: HashMap<String, usize>,
    /// First and last byte of each model behind `base`.
    places: Vec<(u64, u64)>,
}

impl Models {
    /// Opens the models of the clients.
    pub fn clients(folder: &Path) -> Result<Self, ArtifactError> {
        Self::open(folder, CLIENTS)
    }

    /// Opens the models of the servers.
    pub fn servers(folder: &Path) -> Result<Self, ArtifactError> {
        Self::open(folder, SERVERS)
    }

    fn open(folder: &Path, name: &str) -> Result<Self, ArtifactError> {
        let path = folder.join(name);
        let damaged = |what: &str| ArtifactError::damaged(&path, what);
        let mut file = File::open(&path).map_err(ArtifactError::file("read", &path))?;
        let size = file.metadata().map_err(ArtifactError::file("read", &path))?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|_| damaged("it is cut short"))?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_LIMIT as u64 || length + 8 > size {
            return Err(damaged("its header does not fit"));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(ArtifactError::file("read", &path))?;
        let header: Metadata = serde_json::from_slice(&header).map_err(|error| {
            let fault = if error.is_data() { "is wrong" } else { "is no JSON" };
            damaged(&format!("its header {fault}: {error}"))
        })?;
        let base = length + 8;
        // The crate has checked that shapes and places fit together.
        let doubles = header.tensors().values().all(|tensor| tensor.dtype == Dtype::F64);
        if !doubles || header.data_len() as u64 != size - base {
            return Err(damaged("a tensor is not of doubles, or lies outside the file"));
        }
        let layout = header.metadata().as_ref().and_then(|about| about.get(LAYOUT));
        let (names, places) = if layout.is_some_and(|layout| layout == "stacked") {
            stacked_places(folder, &path, &header)?
        } else {
            places_by_name(&header)
        };
        let index = names.iter().enumerate().map(|(i, name)| (name.clone(), i)).collect();
        Ok(Self { path, file, base, names, index, places })
    }

    /// All names in the order of the file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The model of this name.
    pub fn read(&self, name: &str) -> Result<Vec<f64>, ArtifactError> {
        match self.index.get(name) {
            Some(&i) => self.read_at(i),
            None => Err(ArtifactError::UnknownModel {
                path: self.path.clone(),
                name: name.to_string(),
                hint: suggest(name, self.names.iter().map(String::as_str)),
            }),
        }
    }

    fn read_at(&self, i: usize) -> Result<Vec<f64>, ArtifactError> {
        let (start, end) = self.places[i];
        let mut bytes = vec![0; (end - start) as usize];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.base + start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(ArtifactError::file("read", &self.path))?;
        let (numbers, _) = bytes.as_chunks::<8>();
        Ok(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }
}

type Places = (Vec<String>, Vec<(u64, u64)>);

fn places_by_name(header: &Metadata) -> Places {
    let names = header.offset_keys();
    let place = |name: &String| header.info(name).map_or((0, 0), |tensor| tensor.data_offsets);
    let places = names.iter().map(place).map(|(start, end)| (start as u64, end as u64)).collect();
    (names, places)
}

fn stacked_places(folder: &Path, path: &Path, header: &Metadata) -> Result<Places, ArtifactError> {
    let list = folder.join(CLIENT_NAMES);
    let text = fs::read_to_string(&list).map_err(ArtifactError::file("read", &list))?;
    let names: Vec<String> = text.lines().map(from_one_line).collect();
    match header.info(STACKED).map(|tensor| (tensor.shape.as_slice(), tensor.data_offsets.0)) {
        Some((&[rows, columns], start)) if rows == names.len() => {
            let start = |i: usize| (start + i * columns * 8) as u64;
            Ok((names, (0..rows).map(|i| (start(i), start(i + 1))).collect()))
        }
        Some((&[rows, _], _)) => Err(ArtifactError::damaged(
            path,
            format!("it has {rows} models, but {CLIENT_NAMES} {} names", names.len()),
        )),
        _ => Err(ArtifactError::damaged(path, "it has no stacked tensor of two dimensions")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::SafeTensors;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    const MODELS: [[f64; 3]; 3] = [[1.0, -2.5, 1e-300], [0.0, -0.0, 4.0], [7.0, 8.0, f64::MAX]];

    #[test]
    fn models_come_back_by_name_and_other_readers_agree() {
        let folder = tempfile::tempdir().unwrap();
        let clients = names(&["anna \"q\"", "bé\n", "models"]);
        write_clients(folder.path(), &clients, |i| &MODELS[i]).unwrap();
        let models = Models::clients(folder.path()).unwrap();
        assert_eq!(models.names(), clients);
        for (name, model) in clients.iter().zip(&MODELS) {
            assert_eq!(models.read(name).unwrap(), model);
        }
        let bytes = fs::read(folder.path().join(CLIENTS)).unwrap();
        let peer = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(peer.len(), 3);
        let tensor = peer.tensor("bé\n").unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (Dtype::F64, &[3][..]));
        let expected: Vec<u8> = MODELS[1].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(tensor.data(), expected);
    }

    /// Files of earlier versions: clients stay in their order, whatever their names.
    #[test]
    fn the_bytes_of_a_file_are_as_ever() {
        let folder = tempfile::tempdir().unwrap();
        let clients = names(&["é \"2", "10"]);
        for (limit, header) in [
            (
                9,
                r#"{"__metadata__":{"layout":"by-name"},"é \"2":{"dtype":"F64","shape":[3],"data_offsets":[0,24]},"10":{"dtype":"F64","shape":[3],"data_offsets":[24,48]}}"#,
            ),
            (
                1,
                r#"{"__metadata__":{"layout":"stacked"},"models":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]}}"#,
            ),
        ] {
            write_clients_up_to(limit, folder.path(), &clients, |i| &MODELS[i]).unwrap();
            let mut header = header.as_bytes().to_vec();
            header.resize(header.len().next_multiple_of(8), b' ');
            let mut expected = (header.len() as u64).to_le_bytes().to_vec();
            expected.extend(header);
            expected.extend(MODELS[..2].iter().flatten().flat_map(|x| x.to_le_bytes()));
            let bytes = fs::read(folder.path().join(CLIENTS)).unwrap();
            assert_eq!(bytes, expected, "{:?}", String::from_utf8_lossy(&bytes));
            assert_eq!(Models::clients(folder.path()).unwrap().names(), clients);
        }
    }

    #[test]
    fn a_header_that_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let tensor = |dtype: &str, shape: &str, place: &str| {
            format!("{{\"a\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":{place}}}}}")
        };
        for (header, expected) in [
            (tensor("F64", "[2]", "[0,16]"), ""),
            (tensor("F32", "[4]", "[0,16]"), "not of doubles"),
            (tensor("F64", "[1]", "[0,8]"), "lies outside"),
            (tensor("F64", "[3]", "[0,24]"), "lies outside"),
            (tensor("F64", "[1]", "[8,16]"), "header is wrong: invalid offset"),
            (tensor("F64", "[2]", "[16,0]"), "header is wrong: invalid offset"),
            (tensor("F64", "[3]", "[0,16]"), "header is wrong: invalid shape"),
            (tensor("F64", "[4294967296,4294967296]", "[0,16]"), "header is wrong: overflow"),
            (tensor("F64", "[2]", "[0]"), "header is wrong: invalid length"),
            ("{\"a\":".to_string(), "header is no JSON"),
        ] {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend(header.bytes().chain([0; 16]));
            fs::write(folder.path().join(SERVERS), bytes).unwrap();
            let text =
                Models::servers(folder.path()).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{header}: {text}");
        }
    }

    #[test]
    fn many_models_are_stacked_with_a_list_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let clients = names(&["a\\n", "b\nc\r", "__metadata__"]);
        for limit in [2, 3] {
            // With a limit of 3 it is the reserved name that asks for stacking.
            write_clients_up_to(limit, folder.path(), &clients, |i| &MODELS[i]).unwrap();
            let models = Models::clients(folder.path()).unwrap();
            assert_eq!(models.names(), clients);
            assert_eq!(models.read("__metadata__").unwrap(), MODELS[2]);
        }
        let bytes = fs::read(folder.path().join(CLIENTS)).unwrap();
        let peer = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(peer.tensor("models").unwrap().shape(), [3, 3]);
        fs::write(folder.path().join(CLIENT_NAMES), "a\n").unwrap();
        let text = Models::clients(folder.path()).unwrap_err().to_string();
        assert!(text.contains("it has 3 models, but clients.txt 1 names"), "{text}");
        // Few models again: no list stays behind that could be taken for theirs.
        write_clients(folder.path(), &clients[..2], |i| &MODELS[i]).unwrap();
        assert!(!folder.path().join(CLIENT_NAMES).exists());
    }

    #[test]
    #[allow(clippy::print_stderr)]
    fn a_hundred_thousand_names_and_one_more() {
        let folder = tempfile::tempdir().unwrap();
        for count in [BY_NAME_LIMIT, BY_NAME_LIMIT + 1] {
            let clients: Vec<String> = (0..count).map(|i| format!("client-{i:07}")).collect();
            let start = std::time::Instant::now();
            write_clients(folder.path(), &clients, |i| &MODELS[i % 3]).unwrap();
            let written = start.elapsed();
            let start = std::time::Instant::now();
            let models = Models::clients(folder.path()).unwrap();
            assert_eq!(models.read("client-0099999").unwrap(), MODELS[0]);
            eprintln!("{count} models: write {written:?}, open and read one {:?}", start.elapsed());
            assert_eq!(folder.path().join(CLIENT_NAMES).exists(), count > BY_NAME_LIMIT);
            let bytes = fs::read(folder.path().join(CLIENTS)).unwrap();
            SafeTensors::deserialize(&bytes).unwrap();
        }
    }

    #[test]
    fn servers_are_kept_by_server_and_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let list = [("north/young".to_string(), &MODELS[0][..]), ("north/old".to_string(), &MODELS[1][..2])];
        write_servers(folder.path(), &list).unwrap();
        let models = Models::servers(folder.path()).unwrap();
        assert_eq!(models.read("north/old").unwrap(), &MODELS[1][..2]);
        let text = models.read("north/odl").unwrap_err().to_string();
        assert!(text.ends_with("has no model \"north/odl\"; did you mean `north/old`?"), "{text}");
        let twice = [list[0].clone(), list[0].clone()];
        assert!(
            write_servers(folder.path(), &twice).unwrap_err().to_string().contains("two models are called")
        );
        write_servers(folder.path(), &[]).unwrap();
        assert!(Models::servers(folder.path()).unwrap().names().is_empty());
    }

    #[test]
    fn a_file_cut_short_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        write_clients(folder.path(), &names(&["a", "b"]), |i| &MODELS[i]).unwrap();
        let path = folder.path().join(CLIENTS);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let text = Models::clients(folder.path()).unwrap_err().to_string();
            assert!(text.contains("is damaged"), "{length}: {text}");
        }
    }

    #[test]
    fn the_digest_is_that_of_the_bytes_in_order() {
        // Of `printf '\0\0\0\0\0\0\360\77\0\0\0\0\0\0\0\300' | sha256sum`.
        let expected = "7886fe67ba4484d889aa8ec41f0b242f914fbf6bae1be2ed23f56a007e3547b0";
        assert_eq!(models_sha256([&[1.0, -2.0][..]].into_iter()), expected);
        assert_eq!(models_sha256([&[1.0][..], &[-2.0][..]].into_iter()), expected);
        assert_ne!(models_sha256([&[-2.0][..], &[1.0][..]].into_iter()), expected);
    }
}
