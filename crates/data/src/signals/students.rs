//! Twelve social networks of the same 32 students of the University of Ljubljana: `students`.
//!
//! The networks are directed; an edge is there if either direction is. The set has no signals: they are drawn from
//! equation (33) of the FedGL paper on each network with weights 1.

use super::pairs;
use super::smooth::{SmoothSignals, fits, signals};
use super::world::{Seat, assemble_signals, server_of};
use crate::Request;
use crate::error::{At, DataError, Place};
use crate::formats::csv::open;
use crate::prepare::check;
use crate::public::catalogue::{self, Known};
use crate::public::places::{SetPlace, plain_or_packed};
use crate::registry::{About, Source, Variants};
use crate::world::World;
use fedkin_settings::{Kind, Preset, settings};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Students, numbered from 1 in the files.
const STUDENTS: usize = 32;
const NETWORKS: &[&str] =
    &["as1", "as2", "as3", "as4", "as5", "as6", "as7", "as8", "as9", "as10", "as11", "as12"];

const PLACE: SetPlace = SetPlace {
    set: "students",
    folder: "students-ljubljana",
    expected: "as1.net.txt to as12.net.txt (each also as .gz)",
};

settings! {
    /// `[data]` of the students of Ljubljana.
    pub struct Students {
        path: Option<PathBuf> => Kind::Path, Preset::Absent,
            "folder of the files (absent: students-ljubljana in the folder that FEDKIN_DATA names)";
        // What the FedGL paper's three networks are here.
        networks: Vec<String> => Kind::List(&Kind::Choice(NETWORKS)),
            Preset::List(&[Preset::Text("as1"), Preset::Text("as2"), Preset::Text("as3")]),
            "networks, one per client";
        flatten signals: SmoothSignals;
    }
}

impl Source for Students {
    const NAME: &'static str = PLACE.set;
    const SUMMARY: &'static str =
        "smooth signals on the social networks of 32 students of Ljubljana, one network per client";
    const PUBLIC: Option<&'static Known> = Some(&catalogue::STUDENTS);

    fn about(&self, _: Variants<'_>) -> About {
        About { path: self.path.clone(), ..About::default() }
    }

    /// Draws signals on the networks.
    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        check::has_none(request.task, PLACE.set)?;
        let topology = server_of(request)?;
        let networks = &self.networks;
        if networks.is_empty() {
            return Err(DataError::config("networks", "name at least one network, as in [\"as1\"]"));
        }
        if let Some(at) = (1..networks.len()).find(|&at| networks[..at].contains(&networks[at])) {
            return Err(DataError::config(
                "networks",
                format!("{:?} is listed twice: drop one", networks[at]),
            ));
        }
        let samples = self.signals.counts(networks.len())?;
        let SmoothSignals { noise, test_samples, .. } = self.signals;
        fits(STUDENTS, &samples, test_samples)?;
        let folder = PLACE.find(self.path.as_deref(), request.base)?;
        let (mut seats, mut common) =
            (Vec::with_capacity(networks.len()), vec![1.0; STUDENTS * (STUDENTS - 1) / 2]);
        for (name, samples) in networks.iter().zip(samples) {
            let file = plain_or_packed(&folder, &format!("{name}.net.txt"))
                .ok_or_else(|| PLACE.missing(folder.clone()))?;
            let graph = network(&file)?;
            common.iter_mut().zip(&graph).for_each(|(shared, &edge)| *shared *= edge);
            // A network's records are the same whichever others are asked for.
            let number = NETWORKS.iter().position(|known| *known == name).unwrap_or(0) as u32;
            let counts = [samples, test_samples];
            let [train, test] = signals((&graph, STUDENTS), noise, counts, (request.seed, number))?;
            seats.push(Seat { test, graph: Some(graph), ..Seat::new(name.clone(), train) });
        }
        let names = (1..=STUDENTS).map(|student| format!("student-{student:02}")).collect();
        assemble_signals(names, seats, topology, Some(common), None)
    }
}

/// Reads lines of `from to value`, students counted from 1: weights 1 where there is an arc in either direction.
fn network(path: &Path) -> Result<Vec<f64>, DataError> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text).map_err(|source| DataError::io(path, source))?;
    let mut linked = vec![false; STUDENTS * STUDENTS];
    for (at, line) in text.lines().enumerate() {
        let numbers: Vec<Option<usize>> = line
            .split_whitespace()
            .take(2)
            .map(|number| number.parse().ok().filter(|number| (1..=STUDENTS).contains(number)))
            .collect();
        match numbers.as_slice() {
            [] => {}
            &[Some(a), Some(b)] if a != b => {
                linked[(a.min(b) - 1) * STUDENTS + a.max(b) - 1] = true;
            }
            _ => {
                let message = format!(
                    "{:?} is no arc: two different students from 1 to {STUDENTS} and a value are expected",
                    line.trim()
                );
                let place = Place { file: path.to_path_buf(), at: At::Line(at as u64 + 1) };
                return Err(DataError::Record { place, message });
            }
        }
    }
    Ok(pairs(STUDENTS).map(|(a, b)| f64::from(u8::from(linked[a * STUDENTS + b]))).collect())
}
