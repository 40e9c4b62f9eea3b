//! The page and the figures as a whole.

use sha2::{Digest, Sha256};

use super::*;

fn point(x: f64, mean: f64, stderr: Option<f64>) -> Point {
    Point { x, mean, stderr }
}

fn series(label: &str, points: Vec<Point>) -> Series {
    Series { label: label.into(), method: label.into(), points, dashed: false, quiet: false }
}

fn chart(y_scale: Scale, series: Vec<Series>) -> Chart {
    Chart {
        id: "Learning curve!".into(),
        title: "Does it <learn>?".into(),
        x_label: "round".into(),
        y_label: "error (dB)".into(),
        x_scale: Scale::Linear,
        y_scale,
        ranges: Vec::new(),
        series,
        caption: String::new(),
    }
}

fn with_charts(charts: Vec<Chart>) -> Report {
    Report { title: "t".into(), charts, colours: vec![("pgfl".into(), 0)], ..Report::default() }
}

fn svg_of(chart: Chart) -> String {
    with_charts(vec![chart]).figures().remove(0).svg
}

#[test]
fn nothing_a_user_names_becomes_markup() {
    let evil = "<script>alert(\"1\")</script>'&";
    let mut report = with_charts(vec![chart(
        Scale::Linear,
        vec![series(evil, vec![point(0.0, 1.0, None), point(1.0, 2.0, None)])],
    )]);
    report.title = evil.into();
    report.lead = evil.into();
    report.facts = vec![(evil.into(), evil.into())];
    report.claims = vec![Claim { text: evil.into(), verdict: Verdict::Fails, evidence: evil.into() }];
    report.notes = vec![evil.into()];
    report.config = evil.into();
    report.distributions = vec![Distribution {
        id: evil.into(),
        title: evil.into(),
        x_label: evil.into(),
        groups: vec![(evil.into(), evil.into(), vec![1.0])],
    }];
    report.graph = Some(ServerGraph {
        servers: vec![ServerNode { name: evil.into(), clusters: vec![1] }],
        edges: vec![],
        clusters: vec![evil.into()],
        positions: None,
    });
    let html = report.html();
    assert!(!html.contains("<script>alert"));
    assert!(!html.contains("alert(\"1\")"));
    for figure in report.figures() {
        assert!(!figure.svg.contains("<script"));
        assert!(png(&figure.svg, 200).is_ok(), "well-formed");
        assert!(figure.id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{}", figure.id);
    }
}

#[test]
fn the_page_asks_the_network_for_nothing() {
    let report = with_charts(vec![chart(Scale::Linear, vec![series("a", vec![point(0.0, 1.0, None)])])]);
    let html = report.html().replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "src=", "<link", "@import", "url("] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn what_is_not_finite_is_left_out_and_counted() {
    let points = vec![
        point(0.0, 1.0, Some(f64::NAN)),
        point(1.0, f64::NAN, None),
        point(2.0, f64::INFINITY, Some(1.0)),
        point(f64::NAN, 1.0, None),
        point(3.0, 2.0, Some(f64::INFINITY)),
    ];
    let svg = svg_of(chart(Scale::Linear, vec![series("a", points)]));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(svg.contains("3 points are left out"), "{svg}");
}

#[test]
fn a_log_axis_leaves_out_what_is_not_positive() {
    let points = vec![point(0.0, 0.0, None), point(1.0, 0.1, Some(0.2)), point(2.0, 10.0, None)];
    let svg = svg_of(chart(Scale::Log, vec![series("a", points)]));
    assert!(!svg.contains("NaN") && svg.contains("1 point is left out"), "{svg}");
}

#[test]
fn empty_figures_say_so() {
    for series in [vec![], vec![series("a", vec![])], vec![series("a", vec![point(0.0, f64::NAN, None)])]] {
        assert!(svg_of(chart(Scale::Log, series)).contains("No data to draw"));
    }
}

#[test]
fn one_point_is_a_marker_with_its_error() {
    let lonely = Series { method: "pgfl".into(), ..series("a", vec![point(1.0, 2.0, Some(0.5))]) };
    let svg = svg_of(chart(Scale::Linear, vec![lonely]));
    assert!(svg.contains("<circle class=\"g-f0"), "{svg}");
    assert!(!svg.contains("class=\"g-line"), "{svg}");
    assert!(svg.contains("<line class=\"g-thin g-s0\""), "{svg}");
}

#[test]
fn at_most_six_lines_are_in_colour() {
    let many = (0..9)
        .map(|i| series(&format!("m{i}"), vec![point(0.0, f64::from(i), None), point(1.0, 1.0, None)]))
        .collect();
    let svg = svg_of(chart(Scale::Linear, many));
    assert_eq!(svg.matches("class=\"g-line").count(), 6);
    assert_eq!(svg.matches("class=\"g-rest").count(), 3);
    assert!(svg.contains("In grey: m6, m7, m8"));
}

#[test]
fn long_runs_are_thinned_but_keep_their_spikes_and_ends() {
    let points: Vec<Point> =
        (0..100_000).map(|i| point(f64::from(i), if i == 54_321 { 100.0 } else { 0.0 }, None)).collect();
    let kept = super::chart::thin(&points, 500);
    assert!(kept.len() <= 1002);
    assert!(kept.iter().any(|p| p.mean > 99.0));
    assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
}

#[test]
fn figures_become_images() {
    let points = (0..20).map(|i| point(f64::from(i), f64::from(-i), Some(0.3))).collect();
    let svg = svg_of(chart(Scale::Linear, vec![series("pgfl", points)]));
    assert!(png(&svg, 400).is_ok_and(|image| image.len() > 3000));
}

#[test]
fn figures_with_one_id_get_different_files() {
    let one = chart(Scale::Linear, vec![]);
    let ids: Vec<String> =
        with_charts(vec![one.clone(), one]).figures().into_iter().map(|figure| figure.id).collect();
    assert_eq!(ids, ["learning-curve", "learning-curve-2"]);
}

#[test]
fn a_bound_that_is_not_enforced_raises_a_warning() {
    let mut privacy = Privacy {
        mechanism: "Gaussian".into(),
        bound: "assumed, not enforced".into(),
        delta: 1e-5,
        largest_epsilon: 1.2301,
        mean_epsilon: 1.0,
        largest_zcdp: 0.1,
        mean_zcdp: 0.1,
        releases: 1,
        simulation: String::new(),
        rows: vec![],
    };
    let html = |privacy: &Privacy| Report { privacy: Some(privacy.clone()), ..Report::default() }.html();
    assert!(html(&privacy).contains("Warning: sensitivity assumed, not enforced."));
    assert!(html(&privacy).contains("ε = 1.24"));
    // At the top, where it is read before the numbers.
    let page = html(&privacy);
    let header = &page[..page.find("</header>").unwrap()];
    assert!(
        header.contains("Warning: sensitivity assumed") && header.contains("for the client that spent most")
    );
    assert!(!header.contains("Simulation"));
    privacy.simulation = "the sampler is <float>".into();
    assert!(html(&privacy).contains("<strong>Simulation:</strong> the sampler is &lt;float&gt;."));
    privacy.bound = "enforced".into();
    assert!(!html(&privacy).contains("Warning"));
}

#[test]
fn a_range_is_shaded_in_the_colour_of_its_line_and_widens_the_axis() {
    let line = |points| Series { method: "pgfl".into(), ..series("a", points) };
    let mut one = chart(Scale::Linear, vec![line(vec![point(0.0, 5.0, None), point(1.0, 6.0, None)])]);
    let bare = svg_of(one.clone());
    assert!(!bare.contains("class=\"g-band"), "{bare}");
    one.ranges = vec![Range { method: "pgfl".into(), points: vec![(1.0, 1.0, 6.0), (0.0, 1.0, 5.0)] }];
    let svg = svg_of(one.clone());
    assert_eq!(svg.matches("class=\"g-band g-f0\"").count(), 1, "{svg}");
    // The line moves up: the axis now starts at the range's lower edge.
    let path = |svg: &str| svg.split("class=\"g-line").nth(1).map(|rest| rest[..80].to_owned());
    assert_ne!(path(&svg), path(&bare));
    one.ranges[0].method = "other".into();
    assert!(!svg_of(one).contains("class=\"g-band"), "a range without its line has no name");
}

#[test]
fn a_quiet_line_is_thin_and_has_no_markers() {
    let points = vec![point(0.0, 1.0, None), point(1.0, 2.0, None)];
    let svg = svg_of(chart(Scale::Linear, vec![Series { quiet: true, ..series("a", points) }]));
    assert!(svg.contains("class=\"g-quiet\"") && !svg.contains("class=\"g-line"), "{svg}");
    assert!(!svg.contains("g-edged\""), "{svg}");
}

#[test]
fn few_points_have_error_bars_and_many_do_not() {
    let bars = |count: u32| {
        let points = (0..count).map(|i| point(f64::from(i), 1.0, Some(0.1))).collect();
        let lonely = Series { method: "pgfl".into(), ..series("a", points) };
        svg_of(chart(Scale::Linear, vec![lonely])).matches("<line class=\"g-thin g-s0\"").count()
    };
    assert_eq!((bars(3), bars(40)), (3, 0));
}

/// The digest of the page of [`small`], recorded. Where the page is meant to change, run
/// `FEDKIN_PICTURES=pages cargo test --release -p fedkin-report the_same_report_gives_the_same_bytes`, look at
/// `crates/report/pages/small.html`, and put here the digest that the failure shows.
const PAGE: &str = "3caba74c831a7fc9e89b73f3eabaec23ea398f4771483fe2f09af837da0e3bfd";

/// Some of everything, so that a map with an order of its own, an address or a clock would show.
fn small() -> Report {
    let names: Vec<String> = (0..12).map(|i| format!("method {i}")).collect();
    let line = |(i, name): (usize, &String)| {
        let points = (0..5).map(|x| point(f64::from(x), i as f64 + 3.0, Some(0.1))).collect();
        series(name, points)
    };
    let cell = |mean| Some(Estimate { mean, stderr: Some(0.25) });
    let row = |(i, name): (usize, &String)| TableRow {
        label: name.clone(),
        baseline: i == 1,
        cells: vec![cell(i as f64 - 2.5), None],
    };
    let column = |name: &str, better| Column { name: name.into(), unit: "dB".into(), better };
    let clients: Vec<String> = (0..9).map(|i| format!("client {i}")).collect();
    let edges: Vec<(u32, u32, f64)> = (0..9).map(|i| (i, (i + 3) % 9, 0.1 * f64::from(i))).collect();
    let found: Vec<(u32, u32)> = (0..9).map(|i| (i, i % 3)).collect();
    Report {
        title: "A small report".into(),
        lead: "What was run & what came out.".into(),
        facts: names.iter().map(|name| (name.clone(), name.clone())).collect(),
        claims: vec![Claim { text: "It learns".into(), verdict: Verdict::Holds, evidence: "seen".into() }],
        table: Some(Table {
            caption: "After 5 rounds".into(),
            columns: vec![column("error", Some(Better::Lower)), column("time", None)],
            rows: names.iter().enumerate().map(row).collect(),
        }),
        charts: vec![chart(Scale::Linear, names.iter().enumerate().map(line).collect())],
        distributions: vec![Distribution {
            id: "clients".into(),
            title: "Who gains".into(),
            x_label: "error".into(),
            groups: names.iter().map(|name| (name.clone(), name.clone(), vec![1.0, 2.0, 3.0])).collect(),
        }],
        graph: Some(ServerGraph {
            servers: names
                .iter()
                .map(|name| ServerNode { name: name.clone(), clusters: vec![1, 2, 3] })
                .collect(),
            edges: (1..12).map(|i| (0, i)).collect(),
            clusters: names[..3].to_vec(),
            positions: None,
        }),
        pictures: vec![Picture::Kin(KinGraph::new(
            "kin",
            "Who is kin?",
            &KinFound { names: &clients, edges: &edges, clusters: &found, truth: None, worth: "likeness" },
        ))],
        privacy: Some(Privacy {
            mechanism: "Gaussian".into(),
            bound: "enforced".into(),
            delta: 1e-5,
            largest_epsilon: 1.2301,
            mean_epsilon: 1.0,
            largest_zcdp: 0.1,
            mean_zcdp: 0.05,
            releases: 2,
            simulation: String::new(),
            rows: vec![("sampling".into(), "none".into())],
        }),
        notes: vec!["A note.".into()],
        config: "seed = 1\n".into(),
        colours: names.iter().cloned().zip(0..4).collect(),
        ..Report::default()
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let page = small().html();
    if let Some(folder) = std::env::var_os("FEDKIN_PICTURES").map(std::path::PathBuf::from) {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("small.html"), &page).unwrap();
    }
    // Recorded by another process, whose maps had other seeds and whose memory had other addresses.
    assert_eq!(hex::encode(Sha256::digest(&page)), PAGE, "the page changed; see the constant for what to do");
    let mut other = small();
    other.charts[0].series[3].points[2].mean += 1.0;
    assert!(other.html() != page, "what is drawn makes a difference");
    assert!(Report::default().html().contains("</html>"));
}

#[test]
fn what_has_no_order_makes_no_difference_by_its_order() {
    let page = small().html();
    // The fields of a stored report may come in any order: those of a value are sorted by name.
    let stored = serde_json::to_value(small()).unwrap();
    assert!(serde_json::from_value::<Report>(stored).unwrap().html() == page, "fields");
    let mut turned = small();
    for series in &mut turned.charts[0].series {
        series.points.reverse();
    }
    assert!(turned.html() == page, "points of a line");
    let mut turned = small();
    if let Some(graph) = &mut turned.graph {
        graph.edges.reverse();
        graph.edges.iter_mut().for_each(|edge| *edge = (edge.1, edge.0));
    }
    assert!(turned.html() == page, "links of servers");
    let mut turned = small();
    turned.colours.reverse();
    assert!(turned.html() == page, "colours that are all different");
    // Found clusters come from a map of clients, here one with an order of its own.
    let clients: Vec<String> = (0..40).map(|i| format!("client {i}")).collect();
    let kin = |found: Vec<(u32, u32)>| {
        let kin = KinFound { names: &clients, edges: &[], clusters: &found, truth: None, worth: "likeness" };
        KinGraph::new("kin", "", &kin)
    };
    let found: std::collections::HashMap<u32, u32> = (0..40).map(|i| (i, i % 3)).collect();
    assert_eq!(kin(found.into_iter().collect()), kin((0..40).map(|i| (i, i % 3)).collect()));
}
