//! A roster from a CSV file: for a coordinator who has no records.

use super::roster::{Hosts, Roster};
use fedkin_data::table::{Column, Table};
use fedkin_data::{DataError, build_topology, constants, csv, declared};
use fedkin_method::{Entry, Federation};
use fedkin_run::{Error, Plan};
use fedkin_settings::suggest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const COLUMNS: [&str; 6] = ["client", "server", "cluster", "samples", "host", "learner"];

impl Roster {
    /// Reads who takes part from a CSV file with the columns client, samples (training records) and, where there
    /// is more than one, server, cluster and host, and learner, where clients fit different things. The graph and the
    /// features come from the plan's config.
    pub fn from_csv(plan: &Plan, path: &Path, hosts: &Hosts) -> Result<Self, Error> {
        if !plan.own_records() {
            let message = format!(
                "source {:?} says itself who takes part: a roster file is for records that only the clients have",
                plan.config.data_source
            );
            return Err(DataError::Config { key: "data.source".into(), message }.into());
        }
        let schema = declared(&plan.config.data, &plan.base, plan.task())?;
        let constants = constants(&plan.config.data, &plan.base)?;
        let table = csv::read(path, &|name| name != "samples")?;
        for column in &table.columns {
            if !COLUMNS.contains(&column.name.as_str()) {
                let hint = suggest(&column.name, COLUMNS.into_iter());
                return Err(whole(path, format!("there is no use for the column {:?}{hint}", column.name)));
            }
            // A client without a learner of its own fits what all fit.
            if let Some(row) = column.first_missing.filter(|_| column.name != "learner") {
                return Err(cell(&table, row, &column.name, "the cell is empty: fill it in".into()));
            }
        }
        let required = |name: &str| {
            let what =
                if name == "client" { "the name of each client" } else { "how many training records it has" };
            table.find(name).ok_or_else(|| whole(path, format!("the column {name:?} is missing: {what}")))
        };
        let (client, samples) = (required("client")?, required("samples")?);
        let rows = 0..table.rows;
        let names: Vec<String> = rows.clone().map(|row| word(client, row).to_string()).collect();
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (row, name) in names.iter().enumerate() {
            if let Some(earlier) = first.insert(name, row) {
                let message =
                    format!("client {name:?} stands in {} already: drop one", table.place(earlier).at);
                return Err(cell(&table, row, "client", message));
            }
        }
        let (servers, server_of) = groups(&table, "server", "server");
        let (clusters, cluster_of) = groups(&table, "cluster", "all");
        let mut entries = Vec::with_capacity(table.rows);
        for (row, name) in names.iter().enumerate() {
            let samples = count(&table, samples, row)?;
            entries.push(Entry {
                name: name.clone(),
                server: server_of[row],
                cluster: cluster_of[row],
                samples,
            });
        }
        let connected = plan.row.needs_connected;
        let replaced = plan.kin.replaces().1;
        let topology = build_topology(&plan.topology, &servers, false, plan.seed(0), connected && !replaced)?;
        let (federation, order) =
            Federation::new(entries, servers, clusters, topology).map_err(DataError::from)?;
        let hosts = match table.find("host") {
            Some(column) => order.iter().map(|&row| word(column, row).to_string()).collect(),
            None => hosts.assign(federation.client_names()),
        };
        let learners: Option<Vec<Option<String>>> = table.find("learner").map(|column| {
            let named = |row: usize| column.word(row).filter(|word| !word.is_empty()).map(String::from);
            order.iter().map(|&row| named(row)).collect()
        });
        for (&row, name) in order.iter().zip(learners.iter().flatten()) {
            plan.learner_named(name.as_deref()).map_err(|message| cell(&table, row, "learner", message))?;
        }
        let federation = plan.kin.federation(&federation, connected)?.unwrap_or(federation);
        plan.learners(&federation, learners.as_deref())?;
        let mut roster = Self::new(plan, &federation, &hosts, schema, constants);
        roster.name_learners(learners.as_deref());
        Ok(roster)
    }
}

fn word(column: &Column, row: usize) -> &str {
    column.word(row).unwrap_or_default()
}

/// The sorted names of a column and the group of each row; one group where there is no such column.
fn groups(table: &Table, name: &str, only: &str) -> (Vec<String>, Vec<u32>) {
    let Some(column) = table.find(name) else { return (vec![only.to_string()], vec![0; table.rows]) };
    let names: BTreeSet<&str> = (0..table.rows).map(|row| word(column, row)).collect();
    let ids: BTreeMap<&str, u32> = names.iter().copied().zip(0..).collect();
    let group = (0..table.rows).map(|row| ids.get(word(column, row)).copied().unwrap_or(0)).collect();
    (names.into_iter().map(String::from).collect(), group)
}

/// A whole number of records, at least one.
fn count(table: &Table, column: &Column, row: usize) -> Result<u32, Error> {
    let value = match &column.cells {
        fedkin_data::table::Cells::Numbers(values) => values[row],
        _ => f64::NAN,
    };
    if value >= 1.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0 {
        return Ok(value as u32);
    }
    let stray =
        column.strays.first.as_ref().filter(|(at, _)| *at == row).map(|(_, text)| format!("{text:?}"));
    let found = stray.unwrap_or_else(|| value.to_string());
    let message = format!("{found} is not a number of records: expected a whole number, at least 1");
    Err(cell(table, row, &column.name, message))
}

fn whole(path: &Path, message: String) -> Error {
    DataError::File { file: path.to_path_buf(), message }.into()
}

fn cell(table: &Table, row: usize, column: &str, message: String) -> Error {
    DataError::Cell { place: table.place(row), column: column.to_string(), message }.into()
}
