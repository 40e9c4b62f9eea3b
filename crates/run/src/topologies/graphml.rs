//! `GraphML`: nodes, edges, and data under keys whose names say what they are.

use super::collect::Collector;
use super::{Named, refuse, whole};
use crate::Error;
use crate::artifacts::graphs::escaped;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The file of a graph: ids and order follow the nodes alone.
pub(super) fn text(named: &Named) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n  \
         <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n  \
         <key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n  \
         <graph id=\"graph\" edgedefault=\"undirected\">\n",
    );
    for (place, name) in named.nodes.iter().enumerate() {
        let _ =
            writeln!(text, "    <node id=\"n{place}\"><data key=\"name\">{}</data></node>", escaped(name));
    }
    for (i, j, weight) in named.graph.edges(0.0) {
        let _ = writeln!(
            text,
            "    <edge source=\"n{i}\" target=\"n{j}\"><data key=\"weight\">{weight:?}</data></edge>"
        );
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

pub(super) fn read(path: &Path) -> Result<Named, Error> {
    parse(&whole(path)?).map_err(|message| refuse(path, message))
}

/// What a file calls a piece of data, and what it is where nobody says.
struct Key {
    ids: Vec<String>,
    default: Option<String>,
}

impl Key {
    /// The keys of this name for nodes or edges.
    fn find(root: Node<'_, '_>, name: &str, of: &str) -> Self {
        let keys = root.children().filter(|node| {
            let called = node.attribute("attr.name").or(node.attribute("id"));
            node.has_tag_name_local("key")
                && node.attribute("for").is_none_or(|what| what == "all" || what == of)
                && called.is_some_and(|called| called.eq_ignore_ascii_case(name))
        });
        let mut found = Self { ids: Vec::new(), default: None };
        for key in keys {
            found.ids.extend(key.attribute("id").map(String::from));
            let default = key.children().find(|node| node.has_tag_name_local("default"));
            found.default =
                found.default.or(default.and_then(|node| node.text()).map(|text| text.trim().to_string()));
        }
        found
    }

    /// What an element has under this key.
    fn of(&self, element: Node<'_, '_>) -> Option<String> {
        let own = element.children().find(|node| {
            node.has_tag_name_local("data")
                && node.attribute("key").is_some_and(|key| self.ids.iter().any(|id| id == key))
        });
        own.map(|node| node.text().unwrap_or_default().trim().to_string()).or_else(|| self.default.clone())
    }
}

/// Names without their namespaces: some tools leave them out.
trait Local {
    fn has_tag_name_local(&self, name: &str) -> bool;
}

impl Local for Node<'_, '_> {
    fn has_tag_name_local(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

fn parse(text: &str) -> Result<Named, String> {
    let document = Document::parse(text).map_err(|error| format!("this is not GraphML: {error}"))?;
    let at = |node: Node<'_, '_>| format!("line {}", document.text_pos_at(node.range().start).row);
    let root = document.root_element();
    if !root.has_tag_name_local("graphml") {
        let name = root.tag_name().name();
        return Err(format!("this is not GraphML: it starts with <{name}>, not with <graphml>"));
    }
    let mut graphs = root.children().filter(|node| node.has_tag_name_local("graph"));
    let graph = graphs.next().ok_or("the file has no <graph>")?;
    if graphs.next().is_some() {
        return Err("the file has several graphs: write each to a file of its own".into());
    }
    let (name, label) = (Key::find(root, "name", "node"), Key::find(root, "label", "node"));
    let weight = Key::find(root, "weight", "edge");
    let mut collector = Collector::default();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for node in graph.children().filter(|node| node.has_tag_name_local("node")) {
        let id = node.attribute("id").ok_or_else(|| format!("{}: a node has no id", at(node)))?;
        let called = name.of(node).or_else(|| label.of(node)).filter(|name| !name.is_empty());
        let called = called.unwrap_or_else(|| id.to_string());
        let before = places.len();
        let place = collector.node(&called);
        if place < before {
            return Err(format!(
                "{}: another node is called {called:?}: give every node a name of its own",
                at(node)
            ));
        }
        if places.insert(id, place).is_some() {
            return Err(format!("{}: another node has the id {id:?}", at(node)));
        }
    }
    for edge in graph.children().filter(Node::is_element) {
        match edge.tag_name().name() {
            "edge" => {}
            "hyperedge" => {
                return Err(format!("{}: hyperedges join more than two nodes and are not read", at(edge)));
            }
            _ => continue,
        }
        let end = |side: &str| {
            let id = edge.attribute(side).ok_or_else(|| format!("{}: an edge has no {side}", at(edge)))?;
            places
                .get(id)
                .copied()
                .ok_or_else(|| format!("{}: there is no node {id:?}, the {side} of an edge", at(edge)))
        };
        let weight = match weight.of(edge) {
            None => 1.0,
            Some(text) => {
                text.parse().map_err(|_| format!("{}: the weight {text:?} is not a number", at(edge)))?
            }
        };
        collector
            .edge(end("source")?, end("target")?, weight)
            .map_err(|message| format!("{}: {message}", at(edge)))?;
    }
    collector.finish(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text).unwrap_err()
    }

    /// As networkx writes it: keys d0, d1, nodes by id, directed, one edge without a weight.
    #[test]
    fn files_of_others() {
        let text = r#"<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d1" for="edge" attr.name="Weight" attr.type="double"/>
  <key id="d0" for="node" attr.name="label" attr.type="string"/>
  <key id="d2" for="edge" attr.name="colour" attr.type="string"/>
  <graph edgedefault="directed">
    <node id="a"><data key="d0"> first </data></node><node id="b"/><node id="c"/>
    <edge source="a" target="b"><data key="d2">red</data><data key="d1">0.5</data></edge>
    <edge source="b" target="a"><data key="d1">2</data></edge>
    <edge source="c" target="b"/>
  </graph>
</graphml>"#;
        let named = parse(text).unwrap();
        assert_eq!(named.nodes, ["first", "b", "c"]);
        assert_eq!(named.graph.weights(), [2.0, 0.0, 1.0]);
        let default =
            text.replace("attr.type=\"double\"/>", "attr.type=\"double\"><default>7</default></key>");
        assert_eq!(parse(&default).unwrap().graph.weights(), [2.0, 0.0, 7.0]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let graph = |inside: &str| {
            format!(
                "<graphml><key id=\"w\" for=\"edge\" attr.name=\"weight\"/><graph>\n<node id=\"a\"/><node id=\"b\"/>\n{inside}\n</graph></graphml>"
            )
        };
        assert!(parse(&graph("")).is_ok());
        for (inside, expected) in [
            (r#"<edge source="a" target="x"/>"#, "line 3: there is no node \"x\", the target"),
            (r#"<edge source="a"/>"#, "line 3: an edge has no target"),
            (r#"<edge source="a" target="a"/>"#, "line 3: node \"a\" is linked to itself"),
            (
                r#"<edge source="a" target="b"><data key="w">much</data></edge>"#,
                "the weight \"much\" is not a number",
            ),
            (r#"<edge source="a" target="b"><data key="w">-1</data></edge>"#, "\"a\" and \"b\" is -1"),
            (r#"<edge source="a" target="b"><data key="w">nan</data></edge>"#, "is NaN"),
            (r#"<node id="a"/>"#, "line 3: another node is called \"a\""),
            (r"<node/>", "line 3: a node has no id"),
            (r"<hyperedge/>", "hyperedges"),
        ] {
            let text = refused(&graph(inside));
            assert!(text.contains(expected), "{text}");
        }
        assert!(refused("<svg/>").contains("<svg>"));
        assert!(refused("<graphml/>").contains("no <graph>"));
        assert!(refused("<graphml><graph/><graph/></graphml>").contains("several"));
        assert!(refused("a,b\n").contains("not GraphML"));
        assert!(refused("<!DOCTYPE x [<!ENTITY a \"b\">]><graphml/>").contains("not GraphML"));
    }
}
