//! Graphs of the kinds that get drawn, and what must hold for any picture of them.
//!
//! With `FEDKIN_PICTURES` set to a folder the pictures are kept there to be looked at.

use fedkin_numeric::rng::{PublicRng, Random};

use super::*;

/// Graphs over nodes, the first of them the consensus.
struct World {
    name: &'static str,
    nodes: Vec<String>,
    positions: Option<Vec<[f64; 2]>>,
    labels: Option<Vec<u32>>,
    graphs: Vec<Vec<f64>>,
}

impl World {
    fn drawing(&self) -> Drawing<'_> {
        let consensus = self.graphs.first().map(Vec::as_slice);
        let panels = self.graphs.iter().enumerate().map(|(index, weights)| Panel {
            title: if index == 0 { "Consensus".into() } else { format!("Client {index}") },
            weights,
            consensus,
            note: (index == 1).then(|| "the client with the fewest records".into()),
        });
        Drawing {
            nodes: &self.nodes,
            positions: self.positions.as_deref(),
            labels: self.labels.as_deref(),
            panels: panels.collect(),
            threshold: 1e-4,
        }
    }
}

fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|index| index.to_string()).collect()
}

/// A weight for every pair, from a function of it.
fn triangle(count: usize, mut weight: impl FnMut(usize, usize) -> f64) -> Vec<f64> {
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    pairs.map(|(a, b)| weight(a, b)).collect()
}

/// Loses some of the edges and gains as many others.
fn changed(base: &[f64], lost: f64, rng: &mut PublicRng) -> Vec<f64> {
    let density = base.iter().filter(|w| **w > 0.0).count() as f64 / base.len().max(1) as f64;
    base.iter()
        .map(|weight| match *weight > 0.0 {
            true if rng.uniform() < lost => 0.0,
            true => weight * rng.between(0.6, 1.3),
            false if rng.uniform() < lost * density / (1.0 - density).max(0.1) => rng.between(0.1, 0.6),
            false => 0.0,
        })
        .collect()
}

fn kernel(count: usize, scale: f64, least: f64, clients: usize, name: &'static str) -> World {
    let mut rng = PublicRng::named(1, name, 0, 0);
    let points: Vec<[f64; 2]> = (0..count).map(|_| [rng.uniform(), rng.uniform()]).collect();
    let base = triangle(count, |a, b| {
        let square = (points[a][0] - points[b][0]).powi(2) + (points[a][1] - points[b][1]).powi(2);
        let weight = (-square / (2.0 * scale * scale)).exp();
        if weight < least { 0.0 } else { weight }
    });
    let own: Vec<Vec<f64>> = (0..clients).map(|_| changed(&base, 0.3, &mut rng)).collect();
    let graphs = [base].into_iter().chain(own).collect();
    World { name, nodes: numbered(count), positions: None, labels: None, graphs }
}

fn clusters() -> World {
    let mut rng = PublicRng::named(2, "clusters", 0, 0);
    let mut graph = || {
        triangle(48, |a, b| {
            let same = a / 12 == b / 12;
            if rng.uniform() < if same { 0.4 } else { 0.02 } { rng.between(0.2, 1.0) } else { 0.0 }
        })
    };
    let graphs = (0..4).map(|_| graph()).collect();
    World {
        name: "clusters",
        nodes: (0..48).map(|i| format!("object {} view {}", i / 12 + 1, i % 12)).collect(),
        positions: None,
        labels: Some((0..48).map(|i| i / 12 + 1).collect()),
        graphs,
    }
}

fn brain() -> World {
    let mut rng = PublicRng::named(3, "brain", 0, 0);
    let half: Vec<[f64; 2]> = (0..17)
        .map(|i| {
            [
                0.12 + 0.13 * f64::from(i % 4) + 0.03 * rng.uniform(),
                0.25 * f64::from(i / 4) + 0.1 * rng.uniform(),
            ]
        })
        .collect();
    let positions: Vec<[f64; 2]> = half.iter().flat_map(|[x, y]| [[-x, *y], [*x, *y]]).collect();
    let base = triangle(34, |a, b| {
        let mirrored = a / 2 == b / 2;
        let near = (positions[a][0] - positions[b][0]).hypot(positions[a][1] - positions[b][1]) < 0.22;
        if mirrored || (near && rng.uniform() < 0.6) { rng.between(0.2, 1.0) } else { 0.0 }
    });
    let own: Vec<Vec<f64>> = (0..2).map(|_| changed(&base, 0.3, &mut rng)).collect();
    let regions = ["Precentral", "Frontal_Sup", "Frontal_Mid", "Rolandic_Oper", "Insula", "Cingulum_Ant"];
    World {
        name: "brain",
        nodes: (0..34).map(|i| format!("{}{}_{}", regions[i / 2 % 6], i / 12, ["L", "R"][i % 2])).collect(),
        positions: Some(positions),
        labels: None,
        graphs: [base].into_iter().chain(own).collect(),
    }
}

fn pair() -> World {
    World {
        name: "pair",
        nodes: vec!["left".into(), "right".into()],
        positions: None,
        labels: None,
        graphs: vec![vec![0.7], vec![0.2], vec![0.0]],
    }
}

fn scattered() -> World {
    let graphs = vec![
        triangle(14, |a, b| if b == a + 1 && a < 6 { 1.0 } else { 0.0 }),
        triangle(14, |a, b| if a >= 8 && b < 12 { 0.5 } else { 0.0 }),
    ];
    World { name: "scattered", nodes: numbered(14), positions: None, labels: Some(vec![3; 14]), graphs }
}

fn one_place() -> World {
    let graphs = vec![triangle(9, |_, _| 1.0)];
    World {
        name: "one-place",
        nodes: numbered(9),
        positions: Some(vec![[2.0, 2.0]; 9]),
        labels: None,
        graphs,
    }
}

fn worlds() -> Vec<World> {
    vec![
        kernel(20, 0.5, 0.75, 5, "kernel"),
        clusters(),
        brain(),
        pair(),
        kernel(300, 0.1, 0.4, 3, "large"),
        kernel(32, 0.3, 0.75, 0, "single"),
        scattered(),
        one_place(),
    ]
}

/// Coordinates of the nodes of every panel.
fn dots(svg: &str) -> Vec<(f64, f64)> {
    let number = |shape: &str, name: &str| -> Option<f64> {
        shape.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    };
    svg.split("<circle ")
        .skip(1)
        .filter(|shape| shape.contains("<title>"))
        .filter_map(|shape| Some((number(shape, "cx")?, number(shape, "cy")?)))
        .collect()
}

#[test]
fn worlds_are_drawn_whole_and_apart() {
    let kept = std::env::var_os("FEDKIN_PICTURES").map(std::path::PathBuf::from);
    let mut pictures = Vec::new();
    for world in worlds() {
        let drawing = world.drawing();
        let topology = drawing.topology(world.name, "Which edges do the clients share?");
        let heat = drawing.heat(
            &format!("{}-heat", world.name),
            "How heavy are the edges?",
            None,
            HeatScale::Shared,
        );
        let svg = topology.svg();
        assert_eq!(svg, drawing.topology(world.name, "Which edges do the clients share?").svg());
        let places = dots(&svg);
        assert_eq!(places.len(), world.nodes.len() * world.graphs.len(), "{}", world.name);
        for panel in places.chunks(world.nodes.len()) {
            for (index, a) in panel.iter().enumerate() {
                for b in &panel[..index] {
                    assert!((a.0 - b.0).hypot(a.1 - b.1) > 2.0, "{}: nodes meet", world.name);
                }
            }
        }
        for figure in [&svg, &heat.svg()] {
            assert!(!figure.contains("NaN") && !figure.contains("inf\""), "{}", world.name);
            let image = png(figure, 1200);
            assert!(image.as_ref().is_ok_and(|bytes| bytes.len() > 2000), "{}", world.name);
        }
        if let Some(folder) = &kept {
            std::fs::create_dir_all(folder).unwrap();
            for (name, svg) in [(world.name.to_owned(), svg), (format!("{}-heat", world.name), heat.svg())] {
                std::fs::write(folder.join(format!("{name}.png")), png(&svg, 1200).unwrap()).unwrap();
                std::fs::write(folder.join(format!("{name}.svg")), svg).unwrap();
            }
        }
        pictures.push(Picture::Graphs(topology));
        pictures.push(Picture::Heat(heat));
    }
    pictures.push(Picture::Bars(Bars {
        id: "gamma".into(),
        title: "How much does each client count?".into(),
        label: "gamma".into(),
        values: (1..=5).map(|i| (format!("Client {i}"), 0.07 * f64::from(i))).collect(),
        caption: "The nearer a client's graph to the consensus, the larger its weight.".into(),
    }));
    let count = pictures.len();
    let report = Report { title: "Pictures".into(), pictures, ..Report::default() };
    let page = report.html();
    assert_eq!(page.matches("<figure").count(), count);
    assert_eq!(report.figures().len(), count);
    assert!(!page.contains("NaN"));
    let stored = serde_json::to_string(&report).unwrap();
    let back: Report = serde_json::from_str(&stored).unwrap();
    assert_eq!(back.html(), page, "drawn again from the stored data");
    if let Some(folder) = &kept {
        std::fs::write(folder.join("report.html"), page).unwrap();
    }
}

#[test]
fn edges_are_counted_and_told_apart() {
    let nodes = numbered(4);
    // Edges (0,1), (0,3), (2,3); the consensus has (0,1), (1,2) and, below the threshold, (2,3).
    let weights = [0.5, 0.0, 0.3, 0.0, 0.05, 0.2];
    let consensus = [0.4, 0.0, 0.0, 0.9, 0.0, 0.1];
    let panel = |consensus| Panel { title: "a".into(), weights: &weights, consensus, note: None };
    let drawing = |consensus| Drawing {
        nodes: &nodes,
        positions: None,
        labels: None,
        panels: vec![panel(consensus)],
        threshold: 0.1,
    };
    let topology = drawing(Some(&consensus[..])).topology("a", "");
    assert_eq!(topology.graphs[0].links, [(0, 1, 0.5, true), (0, 3, 0.3, false), (2, 3, 0.2, false)]);
    assert_eq!((topology.graphs[0].edges, topology.graphs[0].common), (3, Some(1)));
    let svg = topology.svg();
    assert!(svg.contains("1 common + 2 own edges"), "{svg}");
    assert_eq!(svg.matches("<path class=\"g-common\"").count(), 2, "legend and one edge");
    let alone = drawing(None).topology("a", "").svg();
    assert!(alone.contains(">3 edges<") && !alone.contains("class=\"g-own\""), "{alone}");
    let heat = drawing(None).heat("h", "", Some(&[3, 2, 1, 0]), HeatScale::Own);
    assert_eq!(heat.nodes, ["4", "3", "2", "1"]);
    assert_eq!(heat.maps[0].cells, [(0, 1, 0.2), (0, 3, 0.3), (2, 3, 0.5)]);
    assert_eq!(heat.svg().matches("<title>2 – 1: 0.500</title>").count(), 2, "above and below the diagonal");
    let itself = drawing(Some(&weights[..])).topology("a", "").svg();
    assert!(itself.contains(">3 edges<") && !itself.contains("own edge"), "{itself}");
}

#[test]
fn rows_go_by_class_and_a_wrong_order_is_ignored() {
    let nodes = numbered(3);
    let drawing =
        Drawing { nodes: &nodes, positions: None, labels: Some(&[5, 1, 5]), panels: vec![], threshold: 0.0 };
    for order in [None, Some(&[0, 0, 1][..]), Some(&[0, 1][..]), Some(&[0, 1, 9][..])] {
        assert_eq!(drawing.heat("h", "", order, HeatScale::Shared).nodes, ["2", "1", "3"]);
    }
}

#[test]
fn what_is_too_much_is_left_out_and_said() {
    let nodes = numbered(130);
    let weights = triangle(130, |a, b| 1.0 + (a * 131 + b) as f64);
    let panel = Panel { title: "dense".into(), weights: &weights, consensus: None, note: None };
    let drawing =
        Drawing { nodes: &nodes, positions: None, labels: None, panels: vec![panel; 30], threshold: 0.0 };
    let topology = drawing.topology("dense", "");
    let drawn = topology.graphs[0].links.len();
    assert!(drawn < 1000 && topology.graphs[0].edges == 8385);
    let lightest = topology.graphs[0].links.iter().map(|link| link.2).fold(f64::INFINITY, f64::min);
    assert_eq!(weights.iter().filter(|w| **w >= lightest).count(), drawn, "the heaviest are drawn");
    let svg = topology.svg();
    assert!(svg.contains(&format!("the heaviest {drawn} are drawn")), "{drawn}");
    assert!(svg.contains("6 more graphs are not drawn"));
    let heat = drawing.heat("heat", "", None, HeatScale::Shared);
    assert_eq!((heat.nodes_per_cell, heat.left_out), (2, 6));
    assert!(heat.svg().contains("2 by 2 pairs"));
}

#[test]
fn odd_input_is_no_panic_and_names_are_text() {
    let evil = "<script>alert(1)</script>&\"";
    let nodes = vec![evil.to_owned(), "b".into(), "c".into()];
    let odd = [f64::NAN, f64::INFINITY, -1.0, 4.0, 5.0];
    for weights in [&odd[..], &[], &[1.0]] {
        for positions in [None, Some(&[[f64::NAN, 0.0]; 3][..]), Some(&[[1.0, 1.0]][..])] {
            let panel =
                Panel { title: evil.into(), weights, consensus: Some(&[1.0]), note: Some(evil.into()) };
            let drawing = Drawing {
                nodes: &nodes,
                positions,
                labels: Some(&[1]),
                panels: vec![panel],
                threshold: -3.0,
            };
            let pictures = vec![
                Picture::Graphs(drawing.topology(evil, evil)),
                Picture::Heat(drawing.heat(evil, evil, None, HeatScale::Own)),
            ];
            let page = Report { pictures, ..Report::default() }.html();
            assert!(!page.contains("<script>alert") && !page.contains("NaN"), "{page}");
            for svg in [topology_svg(&drawing), heat_svg(&drawing, None)] {
                assert!(png(&svg, 200).is_ok());
            }
        }
    }
    for nodes in [&[][..], &nodes[..1]] {
        let empty = Drawing { nodes, positions: None, labels: None, panels: vec![], threshold: 0.0 };
        assert!(topology_svg(&empty).contains("No graph to draw"));
        assert!(heat_svg(&empty, None).contains("No graph to draw"));
    }
}
