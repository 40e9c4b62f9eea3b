//! Mean squared differences between nodes, already computed: `zbar` of the FedGL paper, one vector per client.

use super::{node_names, pairs, world};
use crate::error::{At, DataError, Place};
use crate::formats::inspect::{Format, detect};
use crate::formats::npz::Npz;
use crate::prepare::check;
use crate::world::World;
use serde::Deserialize;
use std::path::Path;

/// The array, or the key, that holds the distances.
const ARRAY: &str = "zbar";

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(Vec<f64>),
    Many(Vec<Vec<f64>>),
}

#[derive(Deserialize)]
struct Document {
    zbar: Written,
}

/// Whether a file holds distances rather than signals: JSON, or an archive with an array `zbar`.
pub fn holds_distances(path: &Path) -> Result<bool, DataError> {
    if is_json(path) {
        return Ok(true);
    }
    match detect(path)?.0 {
        Format::Npz => Ok(Npz::open(path)?.names().iter().any(|name| name == ARRAY)),
        _ => Ok(false),
    }
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

/// Reads `zbar`: one vector of mean squared differences per client, in the order of a graph's weights.
///
/// JSON with the key `zbar` (a list of lists, or one list), or NPZ with an array `zbar` of one or two sides (or the
/// only array of any name). The clients are called `1`, `2`, ..., with zeros in front where there are ten or more.
pub fn read_distances(path: &Path) -> Result<Vec<(String, Vec<f64>)>, DataError> {
    let clients = if is_json(path) { from_json(path)? } else { from_archive(path)? };
    let width = clients.len().to_string().len();
    let mut named = Vec::with_capacity(clients.len());
    for (at, distances) in clients.into_iter().enumerate() {
        nodes_of(distances.len()).map_err(|problem| {
            let message = format!("client {} of {ARRAY:?} has {problem}", at + 1);
            DataError::file(path, message)
        })?;
        if let Some(entry) = distances.iter().position(|value| !(*value >= 0.0 && value.is_finite())) {
            let message = format!(
                "entry {} of {ARRAY:?} is {}: a squared difference is a finite number of at least 0",
                entry + 1,
                distances[entry]
            );
            let place = Place { file: path.to_path_buf(), at: At::Row(at as u64 + 1) };
            return Err(DataError::Record { place, message });
        }
        named.push((format!("{:0width$}", at + 1), distances));
    }
    if named.is_empty() {
        return Err(DataError::file(
            path,
            format!("{ARRAY:?} is empty: one list of distances per client is expected"),
        ));
    }
    Ok(named)
}

fn from_json(path: &Path) -> Result<Vec<Vec<f64>>, DataError> {
    let text = std::fs::read_to_string(path).map_err(|source| DataError::io(path, source))?;
    let document: Document = serde_json::from_str(&text).map_err(|error| {
        let message =
            format!("a JSON object with the key {ARRAY:?}, a list of lists of numbers, is expected: {error}");
        DataError::file(path, message)
    })?;
    Ok(match document.zbar {
        Written::One(distances) => vec![distances],
        Written::Many(clients) => clients,
    })
}

fn from_archive(path: &Path) -> Result<Vec<Vec<f64>>, DataError> {
    let mut archive = Npz::open(path)?;
    let name = match archive.names().as_slice() {
        [only] => only.clone(),
        _ => ARRAY.to_string(),
    };
    let array = archive.read(&name)?;
    let values: Vec<f64> = array.values.floats().collect();
    match *array.shape.as_slice() {
        [_] => Ok(vec![values]),
        [clients, length] if length > 0 => {
            Ok(values.chunks_exact(length).take(clients).map(<[f64]>::to_vec).collect())
        }
        _ => {
            let message = format!(
                "array {name:?} has the shape {:?}: one vector, or one row per client, is expected",
                array.shape
            );
            Err(DataError::file(path, message))
        }
    }
}

/// The number of nodes with so many pairs, or what is wrong with the number.
fn nodes_of(pairs: usize) -> Result<usize, String> {
    // The root of d (d - 1) / 2 = pairs, and its neighbours for what rounding does.
    let guess = f64::midpoint(1.0, (1.0 + 8.0 * pairs as f64).sqrt()) as usize;
    let fits = |nodes: &usize| *nodes >= 2 && nodes * (nodes - 1) / 2 == pairs;
    if let Some(nodes) = (guess.saturating_sub(1)..=guess + 1).find(fits) {
        return Ok(nodes);
    }
    let below = guess.max(2);
    let count = |nodes: usize| nodes * (nodes - 1) / 2;
    Err(format!(
        "{pairs} distances, which is not d (d - 1) / 2 for any number d of nodes ({below} nodes have {}, {} have {})",
        count(below),
        below + 1,
        count(below + 1)
    ))
}

/// The names of the columns of distances: pairs of nodes.
pub fn pair_names(nodes: &[String]) -> Vec<String> {
    pairs(nodes.len()).map(|(a, b)| format!("{}/{}", nodes[a], nodes[b])).collect()
}

/// One server, one cluster, no test records; every client has one record, its distances.
///
/// The columns are pairs of nodes, named as [`pair_names`] names them.
pub fn distances_world(clients: Vec<(String, Vec<f64>)>) -> Result<World, DataError> {
    let Some((first, length)) = clients.first().map(|(name, distances)| (name.clone(), distances.len()))
    else {
        return Err(DataError::config("zbar", "give the distances of at least one client"));
    };
    let nodes =
        nodes_of(length).map_err(|problem| DataError::client(&first, format!("there are {problem}")))?;
    let mut seats = Vec::with_capacity(clients.len());
    for (name, distances) in clients {
        if distances.len() != length {
            let message = format!(
                "it has {} distances but client {first:?} has {length}: all clients have the same nodes",
                distances.len()
            );
            return Err(DataError::client(name, message));
        }
        if let Some(at) = distances.iter().position(|value| !(*value >= 0.0 && value.is_finite())) {
            let message =
                format!("distance {} is {}: it is a finite number of at least 0", at + 1, distances[at]);
            return Err(DataError::client(name, message));
        }
        if distances.iter().all(|value| *value == 0.0) {
            return Err(check::flat(name));
        }
        seats.push(world::Seat::new(name, distances));
    }
    world::assemble_signals(pair_names(&node_names(nodes)), seats, world::one_server(), None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_nodes_follows_from_the_pairs() {
        for nodes in (2..300).chain([1000, 5000, 20_000]) {
            let count = nodes * (nodes - 1) / 2;
            assert_eq!(nodes_of(count), Ok(nodes));
            assert!(nodes_of(count + 1).is_err(), "{count} + 1");
        }
        assert!(nodes_of(0).is_err() && nodes_of(2).is_err());
    }
}
