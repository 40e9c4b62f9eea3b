//! The graph of servers as files other tools read: `servers.graphml` and `servers.csv`.

use super::{ArtifactError, atomic};
use fedkin_method::Federation;
use std::fmt::Write as _;
use std::path::Path;

/// Writes both files into the folder `graphs/` of a run directory, or whichever is given.
pub fn write(folder: &Path, federation: &Federation) -> Result<(), ArtifactError> {
    atomic::write(&folder.join("servers.graphml"), graphml(federation).as_bytes())?;
    atomic::write(&folder.join("servers.csv"), edge_list(federation).as_bytes())
}

/// `GraphML`: each server with its name, its number of clients and how many of them each cluster has.
pub fn graphml(federation: &Federation) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n  \
         <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n  \
         <key id=\"clients\" for=\"node\" attr.name=\"clients\" attr.type=\"int\"/>\n",
    );
    for (cluster, name) in federation.cluster_names().iter().enumerate() {
        let name = escaped(&format!("clients of {name}"));
        let _ = writeln!(
            text,
            "  <key id=\"cluster{cluster}\" for=\"node\" attr.name=\"{name}\" attr.type=\"int\"/>"
        );
    }
    text.push_str("  <graph id=\"servers\" edgedefault=\"undirected\">\n");
    for (server, name) in federation.server_names().iter().enumerate() {
        let clients = federation.clients_of(server as u32);
        let mut counts = vec![0; federation.clusters()];
        for client in clients {
            counts[federation.members()[*client as usize].cluster as usize] += 1;
        }
        let _ = writeln!(text, "    <node id=\"s{server}\">");
        let _ = writeln!(text, "      <data key=\"name\">{}</data>", escaped(name));
        let _ = writeln!(text, "      <data key=\"clients\">{}</data>", clients.len());
        for (cluster, count) in counts.iter().enumerate() {
            let _ = writeln!(text, "      <data key=\"cluster{cluster}\">{count}</data>");
        }
        text.push_str("    </node>\n");
    }
    for (a, b) in federation.topology().edges() {
        let _ = writeln!(text, "    <edge source=\"s{a}\" target=\"s{b}\"/>");
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

/// The edges by server name, in the form that `topology.edges` reads.
pub fn edge_list(federation: &Federation) -> String {
    let names = federation.server_names();
    let mut text = String::from("a,b\n");
    for (a, b) in federation.topology().edges() {
        let _ = writeln!(text, "{},{}", field(&names[a as usize]), field(&names[b as usize]));
    }
    text
}

/// Text as XML content or attribute. XML 1.0 has no way to write most control characters.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

pub(crate) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_graph::Topology;
    use fedkin_method::Entry;

    fn federation() -> Federation {
        let entry = |name: &str, server, cluster| Entry { name: name.into(), server, cluster, samples: 2 };
        let entries = vec![entry("x", 0, 0), entry("y", 0, 1), entry("z", 2, 1)];
        let servers = ["A & B", "plain", "with, \"comma\""].map(String::from).to_vec();
        let clusters = ["young", "<old>"].map(String::from).to_vec();
        Federation::new(entries, servers, clusters, Topology::star(3)).unwrap().0
    }

    #[test]
    fn graphml_carries_names_and_counts() {
        let text = graphml(&federation());
        let expected = r#"    <node id="s0">
      <data key="name">A &amp; B</data>
      <data key="clients">2</data>
      <data key="cluster0">1</data>
      <data key="cluster1">1</data>
    </node>
"#;
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(r#"attr.name="clients of &lt;old&gt;""#), "{text}");
        assert_eq!(text.matches("<edge ").count(), 2);
        assert!(text.contains(r#"<edge source="s0" target="s2"/>"#), "{text}");
    }

    #[test]
    fn the_edge_list_quotes_what_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &federation()).unwrap();
        let text = std::fs::read_to_string(folder.path().join("servers.csv")).unwrap();
        assert_eq!(text, "a,b\nA & B,plain\nA & B,\"with, \"\"comma\"\"\"\n");
        assert!(folder.path().join("servers.graphml").exists());
    }
}
