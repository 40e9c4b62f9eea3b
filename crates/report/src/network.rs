//! The servers, their links, and how many clients of each cluster every server has.

use super::label::flow;
use super::layout::{Link, fitted, layout, separate};
use super::palette::{CLUSTER_COLOURS, cluster_slot};
use super::svg::{Anchor, Canvas, Drawing, Width, short, text_width};
use super::{ServerGraph, ServerNode};

/// Up to this many servers each is a ring of its clusters; beyond, a dot.
const RINGS: usize = 200;
/// Up to this many servers carry their names.
const NAMES: usize = 40;
/// Beyond this many a picture of links is a ball of wool; the degrees are counted instead.
const DRAWN: usize = 1000;
/// The same for links, which may be many between few servers.
const LINKS: usize = 5000;

pub(super) fn draw(graph: &ServerGraph, width: Width) -> Drawing {
    let count = graph.servers.len();
    let edges = clean(&graph.edges, count);
    let summary = count > DRAWN || edges.len() > LINKS;
    let caption = caption(graph, edges.len(), summary);
    let canvas = if summary { degrees(graph, &edges, width) } else { links(graph, &edges, width) };
    Drawing {
        id: "server-graph".to_owned(),
        title: "Which servers talk to each other, and whom do they serve?".to_owned(),
        caption,
        canvas,
    }
}

/// Drops loops, repeats and links to nowhere.
fn clean(edges: &[(usize, usize)], count: usize) -> Vec<(usize, usize)> {
    let mut kept: Vec<(usize, usize)> = edges
        .iter()
        .filter(|(a, b)| a != b && *a < count && *b < count)
        .map(|(a, b)| (*a.min(b), *a.max(b)))
        .collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

fn total(server: &ServerNode) -> u64 {
    server.clusters.iter().map(|clients| u64::from(*clients)).sum()
}

fn caption(graph: &ServerGraph, links: usize, summary: bool) -> String {
    let servers = graph.servers.len();
    let clients: u64 = graph.servers.iter().map(total).sum();
    let mut text = format!(
        "{servers} server{}, {links} link{}, {clients} client{}.",
        plural(servers as u64),
        plural(links as u64),
        plural(clients)
    );
    text.push_str(if summary {
        " Too many to draw one by one: the bars count the servers by number of links."
    } else if servers <= RINGS {
        " Each ring shows a server's clients by cluster; the more clients, the larger the ring."
    } else {
        " Each dot is a server in the colour of its largest cluster."
    });
    text
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn links(graph: &ServerGraph, edges: &[(usize, usize)], width: Width) -> Canvas {
    let count = graph.servers.len();
    let across = width.pixels();
    let height = match width {
        Width::Wide if count > NAMES => 520.0,
        Width::Wide => 400.0,
        Width::Narrow => 340.0,
    };
    let mut canvas = Canvas::new(across, height);
    let head = legend(&mut canvas, graph);
    canvas.height += head;

    let room = across * height / count.max(1) as f64;
    let largest = (0.2 * room.sqrt()).clamp(3.0, 26.0);
    let margin = largest + 22.0;
    let given = graph.positions.as_ref().filter(|positions| positions.len() == count);
    let sheet = |places: &[[f64; 2]]| fitted(places, (margin, margin), (across, height), 1.5);
    let places = if let Some(given) = given {
        sheet(&given.iter().map(|(x, y)| [*x, *y]).collect::<Vec<_>>())
    } else {
        let links: Vec<Link> = edges.iter().map(|(a, b)| (*a, *b, 1.0)).collect();
        let mut places = sheet(&layout(count, &links));
        // No ring covers another, nor the name below it.
        let gap = 2.0 * largest + if count <= NAMES { 14.0 } else { 2.0 };
        separate(&mut places, gap, if count <= RINGS { 200 } else { 20 });
        sheet(&places)
    };
    let places: Vec<(f64, f64)> = places.into_iter().map(|[x, y]| (x, y + head)).collect();

    for (a, b) in edges {
        canvas.line(places[*a], places[*b], if count <= RINGS { "g-edge" } else { "g-faint" });
    }
    let most = graph.servers.iter().map(total).max().unwrap_or(0).max(1) as f64;
    for (server, place) in graph.servers.iter().zip(&places) {
        let share = (total(server) as f64 / most).sqrt();
        let radius = largest * (0.35 + 0.65 * share);
        if count <= RINGS {
            ring(&mut canvas, *place, radius, &server.clusters);
        } else {
            let main = server.clusters.iter().enumerate().max_by_key(|(i, n)| (**n, usize::MAX - i));
            let class = match main {
                Some((cluster, clients)) if *clients > 0 => format!("g-k{} g-edged", cluster_slot(cluster)),
                _ => "g-dot g-edged".to_owned(),
            };
            canvas.circle(*place, radius, &class);
        }
        if count <= NAMES {
            let below = (place.0, place.1 + radius + 13.0);
            canvas.text(below, Anchor::Middle, "g-name", &server.name);
        }
    }
    canvas
}

/// A ring cut by clients per cluster, starting at twelve o'clock.
fn ring(canvas: &mut Canvas, (x, y): (f64, f64), radius: f64, clusters: &[u32]) {
    let all: f64 = clusters.iter().map(|clients| f64::from(*clients)).sum();
    if all <= 0.0 {
        canvas.circle((x, y), radius * 0.6, "g-dot g-edged");
        return;
    }
    let (outer, inner) = (radius, radius * 0.5);
    canvas.circle((x, y), outer + 1.5, "g-paper");
    let mut from = 0.0;
    for (cluster, clients) in clusters.iter().enumerate().filter(|(_, clients)| **clients > 0) {
        // A full circle is no arc; stopping a hair early keeps it one, invisibly.
        let share = (f64::from(*clients) / all).min(0.9999);
        let to = from + share * std::f64::consts::TAU;
        let at =
            |angle: f64, r: f64| format!("{} {}", short(x + r * angle.sin()), short(y - r * angle.cos()));
        let wide = i32::from(share > 0.5);
        let data = format!(
            "M{}A{o} {o} 0 {wide} 1 {}L{}A{i} {i} 0 {wide} 0 {}Z",
            at(from, outer),
            at(to, outer),
            at(to, inner),
            at(from, inner),
            o = short(outer),
            i = short(inner),
        );
        // One cluster only: the end meets the start at this precision, so draw it as two circles.
        if share > 0.999 {
            canvas.circle((x, y), outer, &format!("g-k{}", cluster_slot(cluster)));
            canvas.circle((x, y), inner, "g-paper");
        } else {
            canvas.path(&data, &format!("g-k{} g-edged", cluster_slot(cluster)));
        }
        from = to;
    }
}

/// Names and sizes of the clusters; gives the height used.
fn legend(canvas: &mut Canvas, graph: &ServerGraph) -> f64 {
    let last = CLUSTER_COLOURS.len() - 1;
    let mut entries: Vec<(String, u64)> = graph
        .clusters
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let clients = graph
                .servers
                .iter()
                .filter_map(|server| server.clusters.get(index))
                .map(|clients| u64::from(*clients))
                .sum();
            (name.clone(), clients)
        })
        .collect();
    if entries.len() > last {
        let others = entries.split_off(last);
        entries.push((format!("{} others", others.len()), others.iter().map(|other| other.1).sum()));
    }
    let texts: Vec<String> = entries
        .iter()
        .map(|(name, clients)| format!("{name}: {clients} client{}", plural(*clients)))
        .collect();
    let widths: Vec<f64> = texts.iter().map(|text| text_width(text, 13.0) + 36.0).collect();
    let places = flow(&widths, canvas.width);
    for (index, (text, (x, row))) in texts.iter().zip(&places).enumerate() {
        let y = 11.0 + 20.0 * *row as f64;
        canvas.rect((*x, y - 6.0), (12.0, 12.0), &format!("g-k{}", cluster_slot(index)));
        canvas.text((x + 18.0, y + 4.5), Anchor::Start, "g-text", text);
    }
    places.last().map_or(0.0, |(_, row)| 20.0 * (*row as f64 + 1.0) + 6.0)
}

/// Bars: how many servers have how many links.
fn degrees(graph: &ServerGraph, edges: &[(usize, usize)], width: Width) -> Canvas {
    let mut degree = vec![0_usize; graph.servers.len()];
    for (a, b) in edges {
        degree[*a] += 1;
        degree[*b] += 1;
    }
    let most = degree.iter().max().copied().unwrap_or(0);
    let bars = most.min(if width == Width::Wide { 24 } else { 11 }) + 1;
    let size = (most + 1).div_ceil(bars);
    let mut counts = vec![0_u32; bars];
    for links in degree {
        counts[(links / size).min(bars - 1)] += 1;
    }
    let across = width.pixels();
    let mut canvas = Canvas::new(across, 0.0);
    let head = legend(&mut canvas, graph);
    let (top, bottom) = (head + 30.0, head + 240.0);
    canvas.height = bottom + 48.0;
    canvas.text((0.0, head + 14.0), Anchor::Start, "g-text", "servers");
    let highest = f64::from(counts.iter().max().copied().unwrap_or(1).max(1));
    let step = across / bars as f64;
    let every = (44.0 / step).ceil().max(1.0) as usize;
    for (index, servers) in counts.iter().enumerate() {
        let tall = f64::from(*servers) / highest * (bottom - top);
        let x = step * index as f64;
        canvas.rect((x + 1.0, bottom - tall), (step - 2.0, tall), "g-dot");
        let centre = x + step / 2.0;
        if *servers > 0 && step > 26.0 {
            canvas.text((centre, bottom - tall - 5.0), Anchor::Middle, "g-small", &servers.to_string());
        }
        if index % every == 0 {
            let from = index * size;
            let name = if size == 1 { from.to_string() } else { format!("{from}–{}", from + size - 1) };
            canvas.text((centre, bottom + 18.0), Anchor::Middle, "g-small", &name);
        }
    }
    canvas.line((0.0, bottom), (across, bottom), "g-axis");
    canvas.text((across / 2.0, bottom + 40.0), Anchor::Middle, "g-text", "links per server");
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(count: usize) -> ServerGraph {
        ServerGraph {
            servers: (0..count)
                .map(|i| ServerNode { name: format!("s{i}"), clusters: vec![3, 0, i as u32 % 4] })
                .collect(),
            edges: (0..count)
                .map(|i| (i, (i * 7 + 1) % count.max(1)))
                .chain([(0, 0), (0, 999_999)])
                .collect(),
            clusters: vec!["a".into(), "b".into(), "c".into()],
            positions: None,
        }
    }

    #[test]
    fn links_to_nowhere_loops_and_repeats_are_dropped() {
        assert_eq!(clean(&[(0, 1), (1, 0), (2, 2), (0, 9)], 3), [(0, 1)]);
    }

    #[test]
    fn any_size_can_be_drawn() {
        for count in [0, 1, 2, 10, 60, 250, 1200] {
            let drawing = draw(&graph(count), Width::Narrow);
            assert!(!drawing.canvas.inline("").contains("NaN"), "{count} servers");
        }
    }

    #[test]
    fn thousands_of_servers_are_summarised() {
        let drawing = draw(&graph(1200), Width::Wide);
        assert!(drawing.caption.contains("1200 servers"));
        assert_eq!(drawing.canvas.inline("").matches("g-edge\"").count(), 0);
    }

    #[test]
    fn a_ball_of_wool_is_summarised_too() {
        let mut dense = graph(120);
        dense.edges = (0..120).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        assert!(draw(&dense, Width::Wide).caption.contains("Too many to draw"));
    }

    #[test]
    fn positions_of_the_wrong_length_are_ignored() {
        let mut wrong = graph(4);
        wrong.positions = Some(vec![(0.0, 0.0)]);
        let laid_out = draw(&graph(4), Width::Wide).canvas.inline("");
        assert_eq!(draw(&wrong, Width::Wide).canvas.inline(""), laid_out);
    }
}
