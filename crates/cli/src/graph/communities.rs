//! `fedkin graph communities`.

use super::{Communities, names};
use crate::failure::Failure;
use crate::output::{self, Facts, count};
use fedkin::rooms::graph::communities::Louvain;
use fedkin::rooms::report::number::plain;
use fedkin::rooms::run::topologies::{Community, Divided, labels, read};
use std::fmt::Write as _;

/// So many communities, and names of each, are shown; the JSON has all.
const SHOWN: usize = 40;

/// Divides a graph.
pub(crate) fn communities(args: &Communities) -> Result<(), Failure> {
    let graph = read(&args.file)?;
    let known = args.labels.as_ref().map(|path| labels(path, &graph.nodes)).transpose()?;
    let louvain = Louvain { resolution: args.resolution, restarts: args.restarts, seed: args.seed };
    let divided = Divided::of(&args.file.display().to_string(), &graph, louvain, known.as_ref());
    if args.json { output::json(&divided) } else { output::say(&text(&divided)) }
}

fn text(divided: &Divided) -> String {
    let mut facts = Facts::default();
    facts.add("graph", &divided.file).add("nodes", divided.nodes.to_string());
    facts.add("communities", divided.communities.len().to_string());
    facts.add("modularity", format!("{} at resolution {}", plain(divided.modularity), divided.resolution));
    if let (Some(nmi), Some(ri), Some(fmi)) = (divided.nmi, divided.ri, divided.fmi) {
        facts.add("labels", format!("NMI {}, RI {}, FMI {}", plain(nmi), plain(ri), plain(fmi)));
    }
    let mut list = Facts::default();
    for (at, community) in divided.communities.iter().take(SHOWN).enumerate() {
        list.add(&(at + 1).to_string(), line(community));
    }
    let mut text = facts.text() + "\n" + &list.text();
    if divided.communities.len() > SHOWN {
        let _ = writeln!(text, "and {} more: --json has all", divided.communities.len() - SHOWN);
    }
    text
}

fn line(community: &Community) -> String {
    let labels: Vec<String> =
        community.labels.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let labels = if labels.is_empty() { String::new() } else { format!(" ({})", labels.join(", ")) };
    let head = format!("{}{labels}: ", count(community.size, "node"));
    output::wrapped(&(head + &names(&community.nodes, SHOWN)), output::WIDTH - 6).join("\n")
}
