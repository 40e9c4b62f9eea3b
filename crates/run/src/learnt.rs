//! Learnt graphs as files other tools read: `graphs/consensus` and `graphs/clients/NAME`, as `GraphML` and NPZ.

use crate::artifacts::make_folder;
use crate::error::Error;
use crate::plan::Plan;
use crate::topologies::{self, Named, stems};
use fedkin_data::World;
use fedkin_graph::Weighted;
use fedkin_method::round::Results;
use std::path::Path;

/// Above this many clients their graphs stand in the models alone.
const MOST_CLIENTS: usize = 1000;

/// Writes the graphs of a run into its folder `graphs/`; nothing where it learnt none.
pub(crate) fn write(folder: &Path, plan: &Plan, world: &World, live: &dyn Results) -> Result<(), Error> {
    let Some(nodes) = plan.nodes(world) else { return Ok(()) };
    let save = |stem: &Path, weights: &[f64]| -> Result<(), Error> {
        let named = Weighted::new(nodes.len(), weights.to_vec())
            .map_err(|error| error.to_string())
            .and_then(|graph| Named::new(nodes.clone(), graph))
            .map_err(|message| Error::Usage(format!("{} cannot be written: {message}", stem.display())))?;
        for ending in ["graphml", "npz"] {
            // Names of clients may hold dots: the ending is added, not exchanged.
            let mut path = stem.as_os_str().to_owned();
            path.push(format!(".{ending}"));
            topologies::write(Path::new(&path), &named)?;
        }
        Ok(())
    };
    let mut consensus = Vec::new();
    live.held(&mut |_, _, name, graph| {
        if name == "consensus" {
            consensus = graph.to_vec();
        }
    });
    if !consensus.is_empty() {
        save(&folder.join("consensus"), &consensus)?;
    }
    if world.train.len() > MOST_CLIENTS {
        return Ok(());
    }
    let clients = folder.join("clients");
    make_folder(&clients)?;
    let names: Vec<&str> = world.federation.client_names().iter().map(String::as_str).collect();
    let mut graphs: Vec<Vec<f64>> = Vec::with_capacity(names.len());
    live.own_models(&mut |_, graph| graphs.push(graph.to_vec()));
    for (stem, graph) in stems(&names).iter().zip(&graphs) {
        save(&clients.join(stem), graph)?;
    }
    Ok(())
}
