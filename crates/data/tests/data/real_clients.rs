//! UCI HAR and heart disease: small sets made here, and the real ones where they are.

use crate::formats::npz_bytes;
use crate::{Bench, real_data};
use fedkin_data::{Task, World};
use fedkin_learner::Dataset;
use std::collections::HashSet;

const HOSPITALS: [&str; 4] = ["cleveland", "hungarian", "switzerland", "va"];

fn har(folder: &std::path::Path) -> Bench {
    let mut bench = Bench::new("uci-har").set("path", &*folder.to_string_lossy());
    bench.task = Task::Classes(6);
    bench
}

fn counts(data: &Dataset, classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    data.targets().iter().for_each(|y| counts[*y as usize] += 1);
    counts
}

/// Halves of windows, all nine channels of each: what a window shares with its neighbours in time.
fn halves(data: &Dataset) -> HashSet<Vec<i64>> {
    let mut halves = HashSet::new();
    for i in 0..data.rows() {
        for from in [0, 64] {
            let part = data.row(i).chunks_exact(128).flat_map(|channel| &channel[from..from + 64]);
            halves.insert(part.map(|value| (value * 4096.0) as i64).collect());
        }
    }
    halves
}

#[test]
fn no_test_window_of_har_shares_a_sample_with_training() {
    let Some(folder) = real_data("uci-har") else { return };
    let world = har(&folder).set("features", "raw").world();
    assert_eq!((world.train.len(), world.train[0].columns()), (30, 1152));
    let (mut windows, mut all) = (0, vec![0; 6]);
    for (train, test) in world.train.iter().zip(&world.test) {
        let test = test.as_ref().unwrap();
        assert!(halves(train).is_disjoint(&halves(test)));
        windows += train.rows() + test.rows();
        for set in [train, test] {
            all.iter_mut().zip(counts(set, 6)).for_each(|(sum, count)| *sum += count);
        }
    }
    // The counts of the set's own description.
    assert_eq!((windows, all), (10299, vec![1722, 1544, 1406, 1777, 1906, 1944]));
    // The check can fail: windows drawn at random share halves, as those of one run do.
    let few = har(&folder).set("features", "raw").set("train_windows", 40).set("subjects", vec![1]).world();
    let whole = halves(&world.train[0]);
    assert!(whole.len() < 2 * world.train[0].rows() && !halves(&few.train[0]).is_disjoint(&whole));
}

#[test]
fn har_features_are_the_same_windows_and_few_can_be_asked_for() {
    let Some(folder) = real_data("uci-har") else { return };
    let all = har(&folder).world();
    assert_eq!((all.schema.columns(), all.federation.client_names()[29].as_str()), (70, "subject-30"));
    assert!(all.train.iter().flat_map(|data| data.features()).all(|x| x.abs() < 12.0));
    let few = har(&folder).set("train_windows", 5).world();
    for (few, all) in few.train.iter().zip(&all.train) {
        assert!(counts(few, 6).iter().zip(counts(all, 6)).all(|(few, all)| *few == all.min(5)));
    }
    assert_eq!(few.test[3], all.test[3]);
    let other = har(&folder).seed(8).world();
    assert_ne!(other.test[3], all.test[3]);
    let own = har(&folder).set("standardise", true).set("subjects", vec![7, 2]).world();
    assert_eq!(own.federation.client_names(), ["subject-02", "subject-07"]);
    let mean: f64 = (0..own.train[0].rows()).map(|i| own.train[0].row(i)[0]).sum();
    assert!(mean.abs() < 1e-9 && own.scaling[0].len() == 140);
    // Scaling is the client's own, and everything else is the same windows.
    assert_eq!(own.train[0].targets(), all.train[1].targets());
    har(&folder).classify().refused(&["uci-har", "6 activities", "softmax"]);
    har(&folder).set("subjects", vec![31]).refused(&["`subjects`", "31 is not among the people"]);
}

/// Three windows of one person in one run, then one of another run, then another person.
fn small_har(damage: &str) -> Bench {
    let series: Vec<i16> = (0..9 * 512).map(|i| (i * 37 % 401) as i16 - 200).collect();
    let window = |start: usize| {
        let series = &series;
        (0..9).flat_map(move |channel| (0..128).map(move |t| series[512 * channel + start + t]))
    };
    let mut x: Vec<i16> = [0, 64, 128, 300, 300].into_iter().flat_map(window).collect();
    let (mut y, mut subject, mut scale) = (vec![0u8, 0, 0, 0, 5], vec![1u8, 1, 1, 1, 2], 1.0f32 / 4096.0);
    match damage {
        "label" => y[2] = 6,
        "count" => drop(subject.pop()),
        "scale" => scale = f32::NAN,
        "shape" => x.truncate(9 * 128),
        _ => {}
    }
    let shape = if damage == "shape" { "(9, 128)" } else { "(5, 9, 128)" };
    let count = |values: &[u8]| format!("({},)", values.len());
    let bytes = |values: &[i16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let archive = npz_bytes(&[
        ("x", "<i2", shape, &bytes(&x)),
        ("y", "|u1", &count(&y), &y),
        ("subject", "|u1", &count(&subject), &subject),
        ("scale", "<f4", "(1,)", &scale.to_le_bytes()),
    ]);
    let mut bench = Bench::new("uci-har").file("uci_har_inertial_i16.npz", archive).set("path", ".");
    bench.task = Task::Classes(6);
    bench
}

#[test]
fn runs_come_from_the_overlaps() {
    let world = small_har("").world();
    // Of two runs one is for testing; the single window of the other person is for training.
    let sizes = [world.train[0].rows(), world.test[0].as_ref().unwrap().rows(), world.train[1].rows()];
    assert!(sizes == [3, 1, 1] || sizes == [1, 3, 1], "{sizes:?}");
    assert!(world.test[1].is_none());
}

#[test]
fn damaged_har_files_are_refused() {
    small_har("label").refused(&["window 3", "`y` is 6", "0 to 5"]);
    small_har("count").refused(&["5 windows do not go with 4 values of `subject`"]);
    small_har("scale").refused(&["`scale`"]);
    small_har("shape").refused(&["shape [9, 128]", "9 channels and 128 samples"]);
    let mut cut = Bench::new("uci-har").file("uci_har_inertial_i16.npz", "PK no archive").set("path", ".");
    cut.task = Task::Classes(6);
    cut.refused(&["uci_har_inertial_i16.npz", "not an NPZ archive"]);
    let mut none = Bench::new("uci-har").set("path", ".");
    none.task = Task::Classes(6);
    none.refused(&["uci-har is not found", "uci_har_inertial_i16.npz"]);
}

const PATIENT: &str = "63,1,4,140,260,0,1,112,1,3,2,?,?,2\n";

fn hospitals(first: &str) -> Bench {
    let healthy = "40,0,2,0,0,?,?,?,?,?,?,?,?,0\n";
    let file = format!("{PATIENT}{healthy}{healthy}{PATIENT}");
    let mut bench = Bench::new("heart-disease").set("path", ".").set("test_fraction", 0.5).classify();
    for hospital in HOSPITALS {
        let text = if hospital == "cleveland" { first } else { &file };
        bench = bench.file(&format!("processed.{hospital}.data"), text);
    }
    bench
}

#[test]
fn holes_of_a_hospital_are_filled_and_marked() {
    let world = hospitals(&PATIENT.repeat(2)).world();
    let names = world.schema.column_names();
    let cell = |data: &Dataset, row: usize, name: &str| {
        data.row(row)[names.iter().position(|known| known == name).unwrap()]
    };
    // Cleveland never measured `ca` and `thal`: the public constants stand there, marked.
    let first = &world.train[0];
    assert_eq!((cell(first, 0, "ca"), cell(first, 0, "ca-missing")), (0.0, 1.0));
    assert_eq!((cell(first, 0, "thal=3"), cell(first, 0, "thal-missing")), (1.0, 1.0));
    assert_eq!((cell(first, 0, "chol"), cell(first, 0, "chol-missing")), (0.8, 0.0));
    // Elsewhere one patient was measured and the other, without disease, was not: it takes the first one's values.
    let second = &world.train[1];
    let healthy = second.targets().iter().position(|y| *y == 0.0).unwrap();
    assert_eq!((cell(second, healthy, "chol"), cell(second, healthy, "chol-missing")), (0.8, 1.0));
    assert_eq!((cell(second, healthy, "slope=2"), cell(second, healthy, "slope-missing")), (1.0, 1.0));
    assert_eq!((cell(second, healthy, "age"), cell(second, healthy, "sex")), (-1.5, 0.0));
    assert_eq!((second.rows(), world.test[1].as_ref().unwrap().rows()), (2, 2));
}

#[test]
fn damaged_heart_files_are_refused() {
    hospitals("63,1,4\n").refused(&["processed.cleveland.data:1", "3 cells", "14"]);
    hospitals(&PATIENT.replace("260", "high")).refused(&["column \"chol\"", "\"high\" is neither"]);
    hospitals(&PATIENT.replace("63,1,4", "63,1,5")).refused(&["column \"cp\"", "5 is none of"]);
    hospitals(&PATIENT.replace("63,1,4", "?,1,4")).refused(&["column \"age\"", "missing"]);
    hospitals(&PATIENT.replace(",2\n", ",7\n")).refused(&["column \"num\"", "0 to 4"]);
    hospitals("").refused(&["processed.cleveland.data", "no record"]);
    let mut plain = hospitals(PATIENT);
    plain.task = Task::Regression;
    plain.refused(&["heart-disease", "logistic"]);
    Bench::new("heart-disease").set("path", ".").classify().refused(&["heart-disease is not found"]);
}

#[test]
fn the_four_hospitals_have_the_same_columns() {
    let Some(folder) = real_data("heart-disease") else { return };
    let load = |task: Task| -> World {
        let mut bench = Bench::new("heart-disease").set("path", &*folder.to_string_lossy());
        bench.task = task;
        bench.world()
    };
    let world = load(Task::Classification);
    assert_eq!(world.federation.client_names(), HOSPITALS);
    assert_eq!(world.schema.columns(), 32);
    let mut ill = Vec::new();
    for (train, test) in world.train.iter().zip(&world.test) {
        let test = test.as_ref().unwrap();
        let (learnt, kept) = (counts(train, 2), counts(test, 2));
        ill.push((learnt[0] + kept[0], learnt[1] + kept[1]));
        // A share of both: 30 percent, to the nearest patient.
        assert_eq!(kept[1], ((learnt[1] + kept[1]) as f64 * 0.3).round() as usize);
    }
    assert_eq!(ill, [(164, 139), (188, 106), (8, 115), (51, 149)]);
    // Cholesterol was measured nowhere in Switzerland.
    let at = world.schema.column_names().iter().position(|name| name == "chol-missing").unwrap();
    assert!((0..world.train[2].rows()).all(|i| world.train[2].row(i)[at] == 1.0));
    assert!((0..world.train[0].rows()).all(|i| world.train[0].row(i)[at] == 0.0));
    assert_eq!(counts(&load(Task::Classes(5)).train[1], 5)[2..], [0, 0, 0]);
}
