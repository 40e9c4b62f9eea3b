//! Clients and their kin: who was found to belong together, and what each tie is worth.
//!
//! Colour is the cluster that was found, shape the true one where it is known: a cluster of one colour and one shape
//! is right. Of many clients an even share of every cluster is drawn, of many edges those that are worth most.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::label::flow;
use super::layout::{Link, bounds, fitted, layout, separate, strongest};
use super::number::significant;
use super::palette::{CLUSTER_COLOURS, cluster_slot};
use super::panels::{clipped, plural, ranks};
use super::svg::{self, Anchor, Canvas, Width, escape, short, text_width};

/// More clients than this are too small to be seen.
const MOST: usize = 600;
/// Edges drawn.
const EDGES: usize = 3000;
/// Up to this many clients carry their names.
const NAMED: usize = 40;
/// Steps of width and opacity.
const LEVELS: usize = 6;
/// Distinct shapes of markers.
const SHAPES: usize = 6;

/// Kin ready to be drawn: laid out, and thinned to what a picture can show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KinGraph {
    /// File stem.
    pub id: String,
    /// The question the figure answers.
    pub title: String,
    /// What an edge's worth is.
    pub worth: String,
    /// The clients that are drawn, by name.
    pub nodes: Vec<String>,
    /// Where, in the unit square.
    pub places: Vec<[f64; 2]>,
    /// The cluster each was found to belong to; absent where it is not known.
    pub found: Vec<Option<u32>>,
    /// The true ones.
    pub truth: Option<Vec<u32>>,
    /// Two of the clients drawn, and what their tie is worth.
    pub links: Vec<(u32, u32, f64)>,
    /// Number of clients, drawn or not.
    pub clients: usize,
    /// Number of edges, drawn or not.
    pub edges: usize,
}

/// What was found about all clients, by id.
#[derive(Debug, Clone, Copy)]
pub struct KinFound<'a> {
    /// Names of the clients.
    pub names: &'a [String],
    /// Pairs and their worth.
    pub edges: &'a [(u32, u32, f64)],
    /// Clients and their clusters.
    pub clusters: &'a [(u32, u32)],
    /// The true clusters.
    pub truth: Option<&'a [u32]>,
    /// What an edge's worth is.
    pub worth: &'a str,
}

impl KinGraph {
    /// Lays the clients out and keeps what a picture can show.
    #[must_use]
    pub fn new(id: &str, title: &str, kin: &KinFound<'_>) -> Self {
        let mut found: Vec<Option<u32>> = vec![None; kin.names.len()];
        for &(client, cluster) in kin.clusters {
            if let Some(place) = found.get_mut(client as usize) {
                *place = Some(cluster);
            }
        }
        let chosen = chosen(&found);
        let mut places_of = vec![usize::MAX; kin.names.len()];
        for (place, &client) in chosen.iter().enumerate() {
            places_of[client] = place;
        }
        let place = |client: u32| places_of.get(client as usize).copied().filter(|at| *at != usize::MAX);
        let inside: Vec<Link> = kin
            .edges
            .iter()
            .filter(|(_, _, worth)| worth.is_finite())
            .filter_map(|&(a, b, worth)| Some((place(a)?, place(b)?, worth)))
            .filter(|(a, b, _)| a != b)
            .collect();
        let found: Vec<Option<u32>> = chosen.iter().map(|&client| found[client]).collect();
        let places = layout(chosen.len(), &ties(&inside, &found, chosen.len() < kin.names.len()));
        let links = strongest(&inside, EDGES).into_iter().map(|(a, b, worth)| (a as u32, b as u32, worth));
        let truth = kin.truth.filter(|truth| truth.len() == kin.names.len());
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            worth: kin.worth.to_owned(),
            nodes: chosen.iter().map(|&client| kin.names[client].clone()).collect(),
            places,
            found,
            truth: truth.map(|truth| chosen.iter().map(|&client| truth[client]).collect()),
            links: links.collect(),
            clients: kin.names.len(),
            edges: kin.edges.len(),
        }
    }
}

/// The clients to draw, sorted: all, or every so-manyth of each cluster.
fn chosen(found: &[Option<u32>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..found.len()).collect();
    if found.len() > MOST {
        order.sort_by_key(|&client| (found[client], client));
        order = (0..MOST).map(|place| order[place * found.len() / MOST]).collect();
        order.sort_unstable();
    }
    order
}

/// What pulls clients together in the layout: their edges, lifted above zero. Where few or none of them are drawn, the
/// clients of a cluster hang together by its first one.
fn ties(inside: &[Link], found: &[Option<u32>], thinned: bool) -> Vec<Link> {
    let worths = || inside.iter().map(|link| link.2);
    let (least, most) = (worths().fold(f64::INFINITY, f64::min), worths().fold(f64::NEG_INFINITY, f64::max));
    let lifted = |worth: f64| if most > least { 0.1 + 0.9 * (worth - least) / (most - least) } else { 1.0 };
    let mut ties: Vec<Link> =
        inside.iter().map(|&(a, b, worth)| (a.min(b), a.max(b), lifted(worth))).collect();
    if thinned || inside.is_empty() {
        let mut first: BTreeMap<u32, usize> = BTreeMap::new();
        for (place, cluster) in found.iter().enumerate() {
            if let Some(cluster) = cluster {
                let hub = *first.entry(*cluster).or_insert(place);
                if hub != place {
                    ties.push((hub, place, 1.0));
                }
            }
        }
    }
    ties.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.total_cmp(&a.2)));
    ties.dedup_by_key(|tie| (tie.0, tie.1));
    ties
}

pub(super) fn draw(kin: &KinGraph, width: Width) -> svg::Drawing {
    let across = width.pixels();
    let mut canvas = Canvas::new(across, 0.0);
    let head = legend(&mut canvas, kin);
    let count = kin.nodes.len();
    let [x, y] = bounds(&kin.places);
    let shape = (y.1 - y.0) / (x.1 - x.0).max(1e-9);
    let height = (across * if shape.is_finite() { shape.clamp(0.45, 1.0) } else { 0.45 }).min(560.0);
    let radius = (0.13 * (across * height / count.max(1) as f64).sqrt()).clamp(2.2, 7.0);
    let margin = radius + if count <= NAMED { 18.0 } else { 4.0 };
    let margin = (margin, margin);
    let mut places = fitted(&kin.places, margin, (across, height), 1.25);
    separate(&mut places, 2.4 * radius, if count <= 400 { 200 } else { 40 });
    let places: Vec<(f64, f64)> =
        fitted(&places, margin, (across, height), 1.25).into_iter().map(|[x, y]| (x, y + head)).collect();
    canvas.height = head + height + 4.0;
    strokes(&mut canvas, kin, &places, radius);
    let truth = kin.truth.as_ref().map(|truth| ranks(truth).0);
    let colours = colours(kin);
    for (place, name) in kin.nodes.iter().enumerate() {
        let class = match kin.found[place] {
            Some(cluster) => format!("g-k{} g-node", cluster_slot(colours[&cluster])),
            // Where nothing was found colours are free for the truth.
            None => match truth.as_ref().filter(|_| colours.is_empty()) {
                Some(truth) => format!("g-k{} g-node", cluster_slot(truth[place])),
                None => "g-none g-node".to_owned(),
            },
        };
        canvas.push(format_args!("<g><title>{}</title>", escape(name)));
        let shape = truth.as_ref().map_or(0, |truth| truth[place] % SHAPES);
        canvas.marker(places[place], radius, shape, &class);
        canvas.push(format_args!("</g>"));
        if count <= NAMED {
            let below = (places[place].0, places[place].1 + radius + 11.0);
            canvas.text(below, Anchor::Middle, "g-name", &clipped(name, 90.0, 11.0));
        }
    }
    svg::Drawing { id: kin.id.clone(), title: kin.title.clone(), caption: caption(kin), canvas }
}

/// The rank of every found cluster: its colour.
fn colours(kin: &KinGraph) -> BTreeMap<u32, usize> {
    let mut distinct: Vec<u32> = kin.found.iter().flatten().copied().collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct.into_iter().zip(0..).collect()
}

/// Edges by level of worth, the least first; width and strength grow with the level.
fn strokes(canvas: &mut Canvas, kin: &KinGraph, places: &[(f64, f64)], radius: f64) {
    let worths = || kin.links.iter().map(|link| link.2);
    let (least, most) = (worths().fold(f64::INFINITY, f64::min), worths().fold(f64::NEG_INFINITY, f64::max));
    let mut paths = vec![String::new(); LEVELS];
    for &(a, b, worth) in &kin.links {
        let (Some(from), Some(to)) = (places.get(a as usize), places.get(b as usize)) else { continue };
        let share = if most > least { (worth - least) / (most - least) } else { 1.0 };
        let level = ((share * LEVELS as f64).ceil() as usize).clamp(1, LEVELS) - 1;
        let at = |(x, y): &(f64, f64)| format!("{} {}", short(*x), short(*y));
        let _ = write!(paths[level], "M{}L{}", at(from), at(to));
    }
    // Many edges on little room: thinner and fainter, or they are one dark patch.
    let crowd = (150.0 / kin.links.len().max(1) as f64).powf(0.3).clamp(0.3, 1.0);
    for (level, data) in paths.iter().enumerate().filter(|(_, data)| !data.is_empty()) {
        let share = (level + 1) as f64 / LEVELS as f64;
        let line = (0.2 + 0.8 * share) * (0.6 * radius).clamp(1.2, 3.6) * crowd;
        let strength = (0.2 + 0.6 * share) * (0.4 + 0.6 * crowd);
        canvas.push(format_args!(
            r#"<path class="g-plain" stroke-width="{line:.2}" stroke-opacity="{strength:.2}" d="{data}"/>"#
        ));
    }
}

/// Colours of the found clusters and shapes of the true ones; gives the height used.
fn legend(canvas: &mut Canvas, kin: &KinGraph) -> f64 {
    let colours = colours(kin);
    let last = CLUSTER_COLOURS.len() - 1;
    let mut entries: Vec<(usize, String, String)> = Vec::new();
    let count = |cluster: u32| kin.found.iter().filter(|found| **found == Some(cluster)).count();
    let shown = if colours.len() > last + 1 { last } else { last + 1 };
    for (&cluster, &rank) in colours.iter().take(shown) {
        let text = format!("found {} ({})", u64::from(cluster) + 1, count(cluster));
        entries.push((0, format!("g-k{} g-node", cluster_slot(rank)), text));
    }
    if colours.len() > shown {
        let text = format!("{} further found clusters", colours.len() - shown);
        entries.push((0, format!("g-k{} g-node", cluster_slot(last)), text));
    }
    let unknown = kin.found.iter().filter(|found| found.is_none()).count();
    if unknown > 0 && !colours.is_empty() {
        entries.push((0, "g-none g-node".to_owned(), format!("no cluster found ({unknown})")));
    }
    if let Some(truth) = &kin.truth {
        let (_, distinct) = ranks(truth);
        for (rank, label) in distinct.iter().enumerate().take(SHAPES) {
            let class = if colours.is_empty() {
                format!("g-k{} g-node", cluster_slot(rank))
            } else {
                "g-dot".to_owned()
            };
            entries.push((rank, class, format!("truly {}", u64::from(*label) + 1)));
        }
        if distinct.len() > SHAPES {
            entries.push((0, "g-paper".to_owned(), "shapes repeat".to_owned()));
        }
    }
    let widths: Vec<f64> = entries.iter().map(|entry| 36.0 + text_width(&entry.2, 13.0)).collect();
    let places = flow(&widths, canvas.width);
    for ((shape, class, text), (x, row)) in entries.iter().zip(&places) {
        let y = 11.0 + 20.0 * *row as f64;
        canvas.marker((x + 6.0, y), 5.5, *shape, class);
        canvas.text((x + 18.0, y + 4.5), Anchor::Start, "g-text", text);
    }
    places.last().map_or(0.0, |(_, row)| 20.0 * (*row as f64 + 1.0) + 10.0)
}

fn caption(kin: &KinGraph) -> String {
    let found = kin.found.iter().any(Option::is_some);
    let mut text = String::from(match (found, kin.truth.is_some()) {
        (true, true) => "Colour: the cluster that was found. Shape: the true one.",
        (true, false) => "Colour: the cluster that was found.",
        (false, true) => "Colour and shape: the true cluster.",
        (false, false) => "Nodes are clients.",
    });
    if kin.edges == 0 {
        text.push_str(
            " This method finds clusters and no single ties: clients of one cluster stand together.",
        );
    } else {
        let worths = || kin.links.iter().map(|link| link.2);
        let (least, most) =
            (worths().fold(f64::INFINITY, f64::min), worths().fold(f64::NEG_INFINITY, f64::max));
        let _ = write!(text, " An edge's worth is {}; the more, the wider and darker", kin.worth);
        if least <= most {
            let _ = write!(text, " (drawn: {} to {})", significant(least, 3), significant(most, 3));
        }
        text.push('.');
    }
    if kin.nodes.len() < kin.clients {
        let _ = write!(
            text,
            " {} of {} clients are drawn, an even share of every cluster.",
            kin.nodes.len(),
            kin.clients
        );
    }
    if kin.links.len() < kin.edges {
        let _ = write!(
            text,
            " {} of {} edge{} {} drawn.",
            kin.links.len(),
            kin.edges,
            plural(kin.edges),
            if kin.links.len() == 1 { "is" } else { "are" }
        );
    }
    if kin.nodes.len() > NAMED {
        text.push_str(" Names show under the pointer; `clusters.csv` has all.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, edges, found and true clusters.
    type Drawn = (Vec<String>, Vec<(u32, u32, f64)>, Vec<(u32, u32)>, Vec<u32>);

    /// Rings of clients, with an edge astray for every tenth of them.
    fn found(count: usize, clusters: u32) -> Drawn {
        let names = (0..count).map(|i| format!("client <{i}>")).collect();
        let cluster = |i: u32| i % clusters;
        let mut edges = Vec::new();
        for i in 0..count as u32 {
            for step in 1..4 {
                let next = (i + step * clusters) % count as u32;
                if next != i && cluster(next) == cluster(i) {
                    edges.push((i.min(next), i.max(next), 1.0 / f64::from(step)));
                }
            }
            if i % 10 == 0 && i > 0 {
                edges.push((i - 1, i, -0.2));
            }
        }
        let of = (0..count as u32).map(|i| (i, cluster(i))).collect();
        let truth = (0..count as u32).map(|i| if i % 17 == 3 { 0 } else { cluster(i) }).collect();
        (names, edges, of, truth)
    }

    fn picture(count: usize, clusters: u32, edges: bool) -> KinGraph {
        let (names, all, of, truth) = found(count, clusters);
        let kin = KinFound {
            names: &names,
            edges: if edges { &all } else { &[] },
            clusters: &of,
            truth: Some(&truth),
            worth: "the mean reward",
        };
        KinGraph::new("kin", "Who was found to be kin of whom?", &kin)
    }

    #[test]
    fn any_number_of_clients_can_be_drawn() {
        for (count, clusters) in [(0, 1), (1, 1), (2, 2), (30, 3), (100, 12), (700, 4)] {
            for edges in [true, false] {
                let kin = picture(count, clusters, edges);
                let drawing = draw(&kin, Width::Narrow);
                let text = drawing.canvas.inline("");
                assert!(!text.contains("NaN") && !text.contains("inf"), "{count} {edges}");
                assert_eq!(kin.nodes.len(), count.min(MOST));
                assert_eq!(text.matches("<title>").count(), count.min(MOST));
                assert!(!text.contains("client <"), "names are escaped");
            }
        }
    }

    #[test]
    fn thousands_are_thinned_evenly_and_the_caption_says_so() {
        let kin = picture(3500, 7, true);
        for cluster in 0..7 {
            let share = kin.found.iter().filter(|found| **found == Some(cluster)).count();
            assert!((84..=87).contains(&share), "{share}");
        }
        let words = draw(&kin, Width::Wide).caption;
        assert!(words.contains("600 of 3500 clients") && words.contains("edges are drawn"), "{words}");
        assert!(words.contains("An edge's worth is the mean reward"), "{words}");
        let bare = draw(&picture(40, 2, false), Width::Wide).caption;
        assert!(bare.contains("no single ties"), "{bare}");
    }

    /// `FEDKIN_PICTURES=folder` and `--ignored` keep pictures of several sizes to look at.
    #[test]
    #[ignore = "draws pictures for people"]
    fn pictures_to_look_at() {
        let folder = std::env::var("FEDKIN_PICTURES").expect("FEDKIN_PICTURES names a folder");
        for (count, clusters, edges) in
            [(30, 3, true), (30, 3, false), (150, 4, true), (150, 5, false), (3500, 8, true)]
        {
            let drawing = draw(&picture(count, clusters, edges), Width::Wide);
            let svg = drawing.canvas.standalone(&drawing.title, &drawing.caption);
            let image = super::super::png(&svg, 1200).unwrap();
            let name = format!("kin-{count}-{clusters}-{edges}.png");
            std::fs::write(std::path::Path::new(&folder).join(name), image).unwrap();
        }
    }
}
