//! The folder of learnt graphs: files for other tools, pictures, and a summary that is written last.

use super::choice::pruned;
use super::{Learnt, Summary};
use fedkin_graph::Weighted;
use fedkin_report::{Drawing, HeatScale, Panel, png};
use fedkin_run::Error;
use fedkin_run::artifacts::lock::RunLock;
use fedkin_run::artifacts::{ArtifactError, atomic};
use fedkin_run::topologies::{Named, stems, write};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// What the summary of our own folders says.
pub(super) const MARK: &str = "fedkin graph learn";
const SUMMARY: &str = "summary.json";
/// Above this many nodes nothing can be seen.
const MOST_NODES: usize = 2000;
const PIXELS: u32 = 1600;
/// A folder that is ours to write to.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: RunLock,
}

impl Folder {
    /// Takes a folder that is missing, empty, or was written by an earlier call; refuses any other.
    pub fn claim(path: &Path) -> Result<Self, Error> {
        if path.exists() && !path.is_dir() {
            return Err(Error::Usage(format!("{} is a file: choose another --out", path.display())));
        }
        if path.is_dir() && marked(path).is_none() {
            let action = "read the folder";
            let entries = fs::read_dir(path).map_err(|source| ArtifactError::File {
                action,
                path: path.to_path_buf(),
                source,
            })?;
            let foreign = entries.flatten().any(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name != "run.lock" && !atomic::is_unfinished(&name)
            });
            if foreign {
                return Err(Error::Usage(format!(
                    "{} has files in it but no graphs of an earlier `{MARK}`: choose another --out",
                    path.display()
                )));
            }
        }
        let lock = RunLock::take(path)?;
        Ok(Self { path: path.to_path_buf(), _lock: lock })
    }

    /// Writes everything in place of what an earlier call left.
    pub fn write(&self, learnt: &mut Learnt) -> Result<(), Error> {
        for file in marked(&self.path).unwrap_or_default() {
            // An older file that is gone already does not matter.
            let _ = fs::remove_file(self.path.join(file));
        }
        let mut files = Vec::new();
        let mut graph = |stem: String, weights: &[f64]| -> Result<(), Error> {
            let named = Weighted::new(learnt.nodes.len(), weights.to_vec())
                .map_err(|error| error.to_string())
                .and_then(|graph| Named::new(learnt.nodes.clone(), graph))
                .map_err(|message| {
                    Error::Usage(format!("the graph of {stem} cannot be written: {message}"))
                })?;
            for ending in ["graphml", "npz"] {
                let file = format!("{stem}.{ending}");
                write(&self.path.join(&file), &named)?;
                files.push(file);
            }
            Ok(())
        };
        let names: Vec<&str> = learnt.summary.clients.iter().map(|client| client.name.as_str()).collect();
        for (stem, weights) in stems(&names).into_iter().zip(&learnt.graphs) {
            graph(format!("graphs/{stem}"), weights)?;
        }
        if let Some(consensus) = &learnt.consensus {
            graph("consensus".into(), consensus)?;
        }
        for (file, bytes) in pictures(learnt)? {
            atomic::write(&self.path.join(file), &bytes)?;
            files.push(file.into());
        }
        learnt.summary.files = files;
        let text =
            serde_json::to_vec_pretty(&learnt.summary).map_err(|error| Error::Usage(error.to_string()))?;
        Ok(atomic::write(&self.path.join(SUMMARY), &text)?)
    }
}

/// The files of an earlier call, where the folder is from one.
fn marked(path: &Path) -> Option<Vec<PathBuf>> {
    let text = fs::read(path.join(SUMMARY)).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&text).ok()?;
    if value.get("made_by")?.as_str()? != MARK {
        return None;
    }
    let files = value.get("files").and_then(|files| files.as_array()).cloned().unwrap_or_default();
    let inside = |file: &PathBuf| file.components().all(|part| matches!(part, Component::Normal(_)));
    Some(files.iter().filter_map(|file| file.as_str().map(PathBuf::from)).filter(inside).collect())
}

fn pictures(learnt: &Learnt) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    if learnt.nodes.len() > MOST_NODES {
        return Ok(Vec::new());
    }
    let edges = |graph: &Vec<f64>| pruned(graph, learnt.summary.threshold);
    let (common, graphs) = (learnt.consensus.as_ref().map(edges), learnt.graphs.iter().map(edges));
    let (common, graphs): (Option<&[f64]>, Vec<Vec<f64>>) = (common.as_deref(), graphs.collect());
    let mut panels = Vec::new();
    if let Some(common) = common {
        panels.push(Panel {
            title: "consensus".into(),
            weights: common,
            consensus: Some(common),
            note: None,
        });
    }
    panels.extend(graphs.iter().zip(&learnt.summary.clients).map(|(weights, client)| Panel {
        title: client.name.clone(),
        weights,
        consensus: common,
        note: None,
    }));
    let drawing = Drawing { nodes: &learnt.nodes, positions: None, labels: None, panels, threshold: 0.0 };
    let graphs = drawing.topology("graphs", &title(&learnt.summary, "graph")).svg();
    let heat = drawing.heat("heat", &title(&learnt.summary, "weight"), None, HeatScale::Own).svg();
    let image = |svg: &str| {
        png(svg, PIXELS).map_err(|message| Error::Usage(format!("a picture cannot be drawn: {message}")))
    };
    let (graphs_png, heat_png) = (image(&graphs)?, image(&heat)?);
    Ok(vec![("graphs.svg", graphs.into_bytes()), ("graphs.png", graphs_png), ("heat.png", heat_png)])
}

fn title(summary: &Summary, what: &str) -> String {
    match (summary.clients.as_slice(), what) {
        ([client], "graph") => format!("The graph of {}", client.name),
        ([client], _) => format!("The weights of {}", client.name),
        (clients, what) => format!("The {what}s of {} clients", clients.len()),
    }
}
