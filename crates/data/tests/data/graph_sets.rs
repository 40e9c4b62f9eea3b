//! Students, COIL-20 and ABIDE: small sets made here, and the real ones where they are.

use crate::formats::idx_bytes;
use crate::{Bench, real_data};
use fedkin_data::World;

fn edges(graph: &[f64]) -> usize {
    graph.iter().filter(|weight| **weight > 0.0).count()
}

fn small_students() -> Bench {
    let first = "       1       2 1    \r\n       2       1 1    \r\n      32       3 1    \r\n";
    Bench::new("students")
        .file("as2.net.txt", first)
        .file("as10.net.txt", "1 2 1\n\n4 5 1\n")
        .set("path", ".")
        .set("networks", vec!["as2", "as10"])
        .signals()
}

#[test]
fn networks_are_symmetric_and_keep_their_clients() {
    let world = small_students().set("samples", vec![7, 4]).set("test_samples", 2).world();
    // Ids follow the byte order of the names, and the graphs follow the ids.
    assert_eq!(world.federation.client_names(), ["as10", "as2"]);
    assert_eq!([world.train[0].rows(), world.train[1].rows()], [4, 7]);
    assert_eq!(world.test[0].as_ref().unwrap().rows(), 2);
    assert_eq!((world.train[0].columns(), &*world.schema.column_names()[31]), (32, "student-32"));
    let truth = world.truth.unwrap();
    assert_eq!((truth.models[0].len(), edges(&truth.models[0]), edges(&truth.models[1])), (496, 2, 2));
    // (0, 1) comes first; (2, 31) ends the third row of 31 + 30 + 29 pairs.
    assert_eq!([truth.models[0][0], truth.models[1][0], truth.models[1][89]], [1.0; 3]);
    let common = truth.common.unwrap();
    assert_eq!((common[0], edges(&common)), (1.0, 1));
    let alone = small_students().set("networks", vec!["as10"]).set("samples", 4).world();
    assert_eq!(alone.train[0], world.train[0]);
}

#[test]
fn networks_that_cannot_be_used_are_refused() {
    small_students().set("networks", vec!["as2", "as2"]).refused(&["\"as2\" is listed twice"]);
    small_students().set("networks", vec!["as3"]).refused(&[
        "students is not found at",
        "as1.net.txt",
        "FEDKIN_DATA",
    ]);
    small_students().set("networks", vec!["bs1"]).refused(&["`networks`", "\"bs1\""]);
    small_students().set("networks", Vec::<&str>::new()).refused(&["at least one network"]);
    small_students().file("as2.net.txt", "1 2 1\n3 33 1\n").refused(&["as2.net.txt:2", "no arc", "1 to 32"]);
    small_students().file("as2.net.txt", "3 3 1\n").refused(&["as2.net.txt:1", "two different students"]);
    small_students().classify().refused(&["`source`: students", "nothing to predict"]);
}

/// Two objects with 40 poses of 2 x 2 pixels: the object, the pose, 0 and 255.
fn small_coil() -> Bench {
    let pixels: Vec<u8> = (0..80).flat_map(|image| [image / 40, image % 40, 0, 255]).collect();
    let labels: Vec<u8> = (0..80).map(|image| image / 40).collect();
    Bench::new("coil20")
        .file("coil20-images-idx3-ubyte", idx_bytes(8, &[80, 2, 2], &pixels))
        .file("coil20-labels-idx1-ubyte", idx_bytes(8, &[80], &labels))
        .set("path", ".")
        .set("objects", vec![2, 1])
        .signals()
}

#[test]
fn views_hold_their_poses() {
    let world = small_coil().world();
    assert_eq!(world.federation.client_names(), ["view-1", "view-2", "view-3"]);
    let names = world.schema.column_names();
    assert_eq!((names.len(), &*names[0], &*names[23]), (24, "o2-p01", "o1-p12"));
    assert_eq!(world.nodes.unwrap().labels.unwrap(), [[2; 12], [1; 12]].concat());
    for (view, data) in world.train.iter().enumerate() {
        assert_eq!((data.rows(), data.columns()), (4, 24));
        let poses: Vec<f64> = data.row(1).iter().map(|value| (value * 255.0).round()).collect();
        let expected: Vec<f64> = (0..24).map(|node| (12 * view + node % 12) as f64).collect();
        assert_eq!(poses, expected);
        assert_eq!((data.row(0)[0], data.row(0)[12], data.row(3)[5]), (1.0 / 255.0, 0.0, 1.0));
    }
    small_coil().set("objects", vec![1, 3]).refused(&["object 3", "0 images"]);
    small_coil().set("objects", vec![1, 1]).refused(&["object 1 is listed twice"]);
    small_coil().set("objects", vec![21]).refused(&["`objects`", "out of range"]);
    small_coil().set("path", "gone").refused(&["coil20 is not found at", "FEDKIN_DATA"]);
    let few = small_coil().file("coil20-labels-idx1-ubyte", idx_bytes(8, &[1], &[0]));
    few.refused(&["80 images of 2 x 2 do not go with 1 labels"]);
}

fn small_abide() -> Bench {
    Bench::new("abide")
        .file("S_1_rois_aal.1D", "#2001\t#2002\t#9001\n1\t2\t3\n4\t5\t7\n")
        .file("S_2_rois_aal.1D", "#2001\t#2002\t#9001\n3\t2\t1\n4\t9\t7\n1 1 1\n")
        .set("path", ".")
        .set("subjects", vec!["S_1", "S_2"])
        .set(
            "regions",
            crate::Setting(fedkin_settings::Value::List(vec![
                fedkin_settings::Value::Text("Precentral_R".into()),
                fedkin_settings::Value::Integer(9001),
            ])),
        )
        .signals()
}

#[test]
fn regions_go_by_code_and_name() {
    let world = small_abide().set("standardise", false).world();
    assert_eq!(world.schema.column_names(), ["Precentral_R", "9001"]);
    assert_eq!(world.train[1].features(), [2.0, 1.0, 9.0, 7.0, 1.0, 1.0]);
    assert_eq!(small_abide().set("limit", 2).set("standardise", false).world().train[1].rows(), 2);
    small_abide().set("subjects", vec!["S_3"]).refused(&[
        "`subjects`",
        "\"S_3\"",
        "2 subjects",
        "did you mean",
    ]);
    small_abide().set("subjects", vec!["S_1", "S_1"]).refused(&["twice"]);
    small_abide().set("regions", vec!["Precentrl_R", "Insula_L"]).refused(&["did you mean `Precentral_R`?"]);
    small_abide().set("regions", vec!["Insula_L", "Insula_R"]).refused(&["no node \"3001\"", "`regions`"]);
    small_abide().set("regions", vec![2001, 2001]).refused(&["Precentral_L is listed twice"]);
    small_abide().set("regions", vec![2001]).refused(&["at least 2 nodes"]);
    small_abide().set("path", "gone").refused(&["abide is not found at", "FEDKIN_DATA"]);
    // Of two records, every region becomes -1 and 1, so all regions are alike.
    small_abide().refused(&["client \"S_1\"", "constant"]);
}

fn real(source: &'static str, folder: &str) -> Option<Bench> {
    let folder = real_data(folder)?;
    Some(Bench::new(source).set("path", folder.to_str().unwrap()).signals())
}

#[test]
fn real_students_have_their_edges() {
    let Some(bench) = real("students", "students-ljubljana") else { return };
    let world = bench.world();
    assert_eq!(world.federation.client_names(), ["as1", "as2", "as3"]);
    assert!(world.train.iter().all(|data| (data.rows(), data.columns()) == (100, 32)));
    let truth = world.truth.unwrap();
    assert_eq!([0, 1, 2].map(|client| edges(&truth.models[client])), [155, 135, 83]);
    let common = truth.common.unwrap();
    assert!(truth.models.iter().all(|graph| common.iter().zip(graph).all(|(shared, edge)| shared <= edge)));
    assert!(edges(&common) > 0 && edges(&common) < 83);
    let all: Vec<String> = (1..=12).map(|number| format!("as{number}")).collect();
    let all =
        bench.set("networks", all.iter().map(String::as_str).collect::<Vec<_>>()).world().truth.unwrap();
    let mut counts: Vec<usize> = all.models.iter().map(|graph| edges(graph)).collect();
    counts.sort_unstable();
    assert_eq!(counts, [40, 41, 47, 56, 58, 63, 69, 75, 83, 135, 155, 161]);
}

/// Mean squared difference of two nodes.
fn distance(world: &World, client: usize, a: usize, b: usize) -> f64 {
    let data = &world.train[client];
    (0..data.rows()).map(|row| (data.row(row)[a] - data.row(row)[b]).powi(2)).sum::<f64>()
        / data.rows() as f64
}

#[test]
fn real_objects_have_their_poses() {
    let Some(bench) = real("coil20", "coil20") else { return };
    let world = bench.world();
    assert!(world.train.iter().all(|data| (data.rows(), data.columns()) == (1024, 48)));
    assert!(world.train.iter().flat_map(|data| data.features()).all(|pixel| (0.0..=1.0).contains(pixel)));
    let labels = world.nodes.as_ref().unwrap().labels.as_ref().unwrap();
    assert_eq!((labels.len(), labels[11], labels[12], labels[47]), (48, 1, 2, 4));
    // Neighbouring poses of one object are nearer than the same pose of two objects, on the average.
    for client in 0..3 {
        let mean = |pairs: Vec<(usize, usize)>| {
            pairs.iter().map(|&(a, b)| distance(&world, client, a, b)).sum::<f64>() / pairs.len() as f64
        };
        let next = mean((0..48).filter(|node| node % 12 < 11).map(|node| (node, node + 1)).collect());
        let other = mean((0..36).map(|node| (node, node + 12)).collect());
        assert!(4.0 * next < other, "view {client}: {next} against {other}");
    }
}

#[test]
fn real_subjects_have_their_regions() {
    let Some(bench) = real("abide", "abide") else { return };
    let world = bench.world();
    assert_eq!(world.federation.client_names(), ["UM_1_0050273", "UM_1_0050329"]);
    assert!(world.train.iter().all(|data| (data.rows(), data.columns()) == (296, 34)));
    let names = world.schema.column_names();
    assert_eq!((&*names[0], &*names[33]), ("Frontal_Inf_Oper_L", "Temporal_Mid_R"));
    assert_eq!(world.scaling[0].len(), 68);
    let cerebrum = ["Precentral_L", "Temporal_Inf_R"].to_vec();
    let two =
        bench.set("regions", cerebrum).set("subjects", vec!["NYU_0050994"]).set("standardise", false).world();
    assert_eq!((two.train[0].rows(), two.train[0].row(0)), (176, &[1.658_538, -0.794_645][..]));
}
