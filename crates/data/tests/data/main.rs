//! What users see: worlds from configs, and the message for everything that can be wrong with a file.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::return_self_not_must_use
)]

mod damage;
mod fetching;
mod formats;
mod graph_sets;
mod graph_worlds;
mod graphs;
mod images;
mod inspecting;
mod labelled;
mod real_clients;
mod registries;
mod signals;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
mod synthetic;
mod tables;

use fedkin_data::{GRAPH_PARAMS, Request, Task, TopologySpec, World, load, native, topology_spec};
use fedkin_settings::{Value, Values};
use skipped::real_data;
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

/// A folder with files, and what a config in it would say.
pub struct Bench {
    pub folder: TempDir,
    pub source: &'static str,
    pub data: BTreeMap<String, Value>,
    pub topology: BTreeMap<String, Value>,
    pub task: Task,
    pub seed: u64,
    pub connected: bool,
}

impl Bench {
    pub fn new(source: &'static str) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            source,
            data: BTreeMap::new(),
            topology: BTreeMap::new(),
            task: Task::Regression,
            seed: 7,
            connected: true,
        }
    }

    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.folder.path().join(name), content).unwrap();
        self
    }

    pub fn set(mut self, key: &str, value: impl Into<Setting>) -> Self {
        self.data.insert(key.into(), value.into().0);
        self
    }

    pub fn graph(mut self, entries: &[(&str, Value)]) -> Self {
        let table = entries.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect();
        self.topology.insert("graph".into(), Value::Table(table));
        self
    }

    pub fn servers(self, count: i64) -> Self {
        self.graph(&[("servers", Value::Integer(count))])
    }

    pub fn classify(mut self) -> Self {
        self.task = Task::Classification;
        self
    }

    pub fn signals(mut self) -> Self {
        self.task = Task::Signals;
        self
    }

    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    pub fn topology(&self) -> Result<TopologySpec, String> {
        let checked =
            Values::check(GRAPH_PARAMS, &self.topology).map_err(|problems| problems[0].to_string())?;
        topology_spec(&checked, self.folder.path()).map_err(|error| error.to_string())
    }

    pub fn load(&self) -> Result<World, String> {
        let row = native().source(self.source).map_err(|error| error.to_string())?;
        let values =
            Values::check(&native().params(row), &self.data).map_err(|problems| problems[0].to_string())?;
        let request = Request {
            registry: native(),
            source: self.source,
            values: &values,
            base: self.folder.path(),
            topology: &self.topology()?,
            task: self.task,
            seed: self.seed,
            require_connected: self.connected,
        };
        // The folder has a random name; what is left of the message is the same every time.
        load(&request)
            .map_err(|error| error.to_string().replace(&format!("{}/", self.folder.path().display()), ""))
    }

    pub fn world(&self) -> World {
        self.load().unwrap()
    }

    #[track_caller]
    pub fn refused(&self, parts: &[&str]) {
        let message = self.load().map(|_| ()).expect_err("this should have been refused");
        for part in parts {
            assert!(message.contains(part), "expected {part:?} in: {message}");
        }
    }
}

/// A value of a config.
pub struct Setting(pub Value);

impl From<&str> for Setting {
    fn from(text: &str) -> Self {
        Self(Value::Text(text.into()))
    }
}

impl From<i64> for Setting {
    fn from(number: i64) -> Self {
        Self(Value::Integer(number))
    }
}

impl From<f64> for Setting {
    fn from(number: f64) -> Self {
        Self(Value::Number(number))
    }
}

impl From<bool> for Setting {
    fn from(flag: bool) -> Self {
        Self(Value::Flag(flag))
    }
}

impl<T: Into<Setting>> From<Vec<T>> for Setting {
    fn from(list: Vec<T>) -> Self {
        Self(Value::List(list.into_iter().map(|item| item.into().0).collect()))
    }
}
