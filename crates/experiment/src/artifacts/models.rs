//! Model parameters as safetensors: `clients.safetensors` and `servers.safetensors`.
//!
//! The format: length of the header (u64, little-endian), a JSON header with dtype, shape and place of each
//! tensor, then the numbers. Written here by hand, because then a million models need no second copy in
//! memory; the tests read the files back with the `safetensors` crate.

use super::{ArtifactError, atomic};
use fedkin_core::params::suggest;
use fedkin_core::round::Results;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
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
        && let Some(header) = header_by_name(names.iter().map(String::as_str), &model)
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
    let mut header = format!("{{\"{RESERVED}\":{{\"layout\":\"stacked\"}},\"{STACKED}\":");
    push_tensor(&mut header, &format!("{},{columns}", names.len()), 0, names.len() * columns * 8);
    header.push('}');
    write_tensors(&path, &header, names.len(), model)
}

/// Writes the models of the servers, each under `server/cluster`.
pub fn write_servers(folder: &Path, models: &[(String, &[f64])]) -> Result<(), ArtifactError> {
    let path = folder.join(SERVERS);
    let names = || models.iter().map(|(name, _)| name.as_str());
    let mut sorted: Vec<&str> = names().collect();
    sorted.sort_unstable();
    if let Some([name, ..]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ArtifactError::Models { path, what: format!("two models are called {name:?}") });
    }
    let Some(header) = header_by_name(names(), &|i| models[i].1) else {
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
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The header with one tensor per name; none where the format cannot carry it.
fn header_by_name<'n, 'a>(
    names: impl Iterator<Item = &'n str>,
    model: &impl Fn(usize) -> &'a [f64],
) -> Option<String> {
    let mut header = format!("{{\"{RESERVED}\":{{\"layout\":\"by-name\"}}");
    let mut start = 0;
    for (i, name) in names.enumerate() {
        if name == RESERVED || header.len() > HEADER_LIMIT - 1000 {
            return None;
        }
        let _ = write!(header, ",{}:", serde_json::Value::from(name));
        let length = model(i).len();
        push_tensor(&mut header, &length.to_string(), start, start + length * 8);
        start += length * 8;
    }
    header.push('}');
    (header.len() < HEADER_LIMIT).then_some(header)
}

fn push_tensor(header: &mut String, shape: &str, start: usize, end: usize) {
    let _ = write!(header, "{{\"dtype\":\"F64\",\"shape\":[{shape}],\"data_offsets\":[{start},{end}]}}");
}

fn write_tensors<'a>(
    path: &Path,
    header: &str,
    count: usize,
    model: impl Fn(usize) -> &'a [f64],
) -> Result<(), ArtifactError> {
    // Spaces up to a multiple of 8 keep the numbers aligned for readers that map the file.
    let padded = header.len().next_multiple_of(8);
    atomic::write_with(path, |file: &mut BufWriter<File>| {
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

#[derive(Deserialize)]
struct Header {
    #[serde(rename = "__metadata__", default)]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, Tensor>,
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
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
        let header: Header = serde_json::from_slice(&header)
            .map_err(|error| damaged(&format!("its header is no JSON: {error}")))?;
        let base = length + 8;
        let sound = |tensor: &Tensor| {
            let count = tensor.shape.iter().try_fold(8u64, |bytes, &side| bytes.checked_mul(side));
            let (start, end) = tensor.data_offsets;
            tensor.dtype == "F64" && end <= size - base && end.checked_sub(start) == count
        };
        if !header.tensors.values().all(sound) {
            return Err(damaged("a tensor is not of doubles, or lies outside the file"));
        }
        let stacked = header.metadata.get("layout").is_some_and(|layout| layout == "stacked");
        let (names, places) =
            if stacked { stacked_places(folder, &path, &header)? } else { places_by_name(header.tensors) };
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

fn places_by_name(tensors: BTreeMap<String, Tensor>) -> Places {
    let mut list: Vec<(String, (u64, u64))> =
        tensors.into_iter().map(|(name, tensor)| (name, tensor.data_offsets)).collect();
    list.sort_by_key(|(_, place)| *place);
    list.into_iter().unzip()
}

fn stacked_places(folder: &Path, path: &Path, header: &Header) -> Result<Places, ArtifactError> {
    let list = folder.join(CLIENT_NAMES);
    let text = fs::read_to_string(&list).map_err(ArtifactError::file("read", &list))?;
    let names: Vec<String> = text.lines().map(from_one_line).collect();
    match header.tensors.get(STACKED).map(|tensor| (tensor.shape.as_slice(), tensor.data_offsets.0)) {
        Some((&[rows, columns], start)) if rows == names.len() as u64 => {
            let places =
                (0..rows).map(|i| (start + i * columns * 8, start + (i + 1) * columns * 8)).collect();
            Ok((names, places))
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
    use safetensors::{Dtype, SafeTensors};

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
