//! What was found as files: `clusters.csv`, `graphs/kin.graphml` and `graphs/kin.csv`.

use super::{CLUSTERS, EDGES, GRAPH};
use crate::artifacts::graphs::{escaped, field};
use crate::artifacts::{atomic, make_folder};
use crate::error::Error;
use fedkin_method::{Federation, FoundKin};
use std::fmt::Write as _;
use std::path::Path;

/// The federation with the clusters a run found on its way; as it is where it found none.
pub(crate) fn settled(infers: bool, federation: &Federation, kin: Option<&FoundKin>) -> Federation {
    let moved = kin.filter(|_| infers).and_then(|kin| {
        let mut clusters: Vec<u32> = federation.members().iter().map(|member| member.cluster).collect();
        for &(client, cluster) in &kin.clusters {
            *clusters.get_mut(client as usize)? = cluster;
        }
        federation.clustered(&clusters, federation.cluster_names().to_vec()).ok()
    });
    moved.unwrap_or_else(|| federation.clone())
}

/// Writes what a run found into its directory.
pub(crate) fn write(directory: &Path, federation: &Federation, kin: &FoundKin) -> Result<(), Error> {
    if !kin.clusters.is_empty() {
        let mut text = String::from("client,cluster\n");
        let names = Names::new(kin);
        for &(client, cluster) in &kin.clusters {
            let _ = writeln!(text, "{},{}", field(federation.client_name(client)), names.of(cluster));
        }
        atomic::write(&directory.join(CLUSTERS), text.as_bytes())?;
    }
    // A tie that is worth nothing or less is none that another run should follow, and no weight of a graph.
    let edges: Vec<(u32, u32, f64)> = kin.edges.iter().filter(|edge| edge.2 > 0.0).copied().collect();
    if !edges.is_empty() {
        let kin = &FoundKin { edges, clusters: kin.clusters.clone() };
        let folder = directory.join("graphs");
        make_folder(&folder)?;
        atomic::write(&folder.join(GRAPH), graphml(federation, kin).as_bytes())?;
        let mut text = String::from("a,b,weight\n");
        for &(a, b, worth) in &kin.edges {
            let (a, b) = (field(federation.client_name(a)), field(federation.client_name(b)));
            let _ = writeln!(text, "{a},{b},{worth:?}");
        }
        atomic::write(&folder.join(EDGES), text.as_bytes())?;
    }
    Ok(())
}

/// The names of found clusters: numbers from 1, wide enough that their byte order is that of the numbers.
pub(crate) struct Names(usize);

impl Names {
    pub(crate) fn new(kin: &FoundKin) -> Self {
        let most = kin.clusters.iter().map(|(_, cluster)| u64::from(*cluster) + 1).max();
        Self(most.unwrap_or(1).to_string().len())
    }

    pub(crate) fn of(&self, cluster: u32) -> String {
        format!("found-{:0width$}", u64::from(cluster) + 1, width = self.0)
    }
}

fn graphml(federation: &Federation, kin: &FoundKin) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n  \
         <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n  \
         <key id=\"cluster\" for=\"node\" attr.name=\"cluster\" attr.type=\"string\"/>\n  \
         <key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n  \
         <graph id=\"kin\" edgedefault=\"undirected\">\n",
    );
    let names = Names::new(kin);
    let mut found = kin.clusters.iter().peekable();
    for member in federation.members() {
        let name = escaped(federation.client_name(member.id));
        let _ = write!(text, "    <node id=\"c{}\"><data key=\"name\">{name}</data>", member.id);
        if let Some((_, cluster)) = found.next_if(|(client, _)| *client == member.id) {
            let _ = write!(text, "<data key=\"cluster\">{}</data>", names.of(*cluster));
        }
        text.push_str("</node>\n");
    }
    for (a, b, worth) in &kin.edges {
        let _ = writeln!(
            text,
            "    <edge source=\"c{a}\" target=\"c{b}\"><data key=\"weight\">{worth:?}</data></edge>"
        );
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}
