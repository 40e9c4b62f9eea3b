//! Image sets: a small one made here, and the real ones where they are.

use crate::formats::{idx_bytes, npz_bytes};
use crate::{Bench, Setting, real_data};
use fedkin_data::World;
use fedkin_settings::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// `count` images of 2 x 2 pixels, one digit after the other; the pixels are the number of the image and its digit.
fn small_mnist(count: usize) -> Bench {
    let digits: Vec<u8> = (0..count).map(|i| (i % 10) as u8).collect();
    let pixels: Vec<u8> = (0..count).flat_map(|i| [(i / 256) as u8, (i % 256) as u8, digits[i], 0]).collect();
    let images = idx_bytes(8, &[count as u32, 2, 2], &pixels);
    let labels = idx_bytes(8, &[count as u32], &digits);
    let bench = Bench::new("mnist").file("train-images-idx3-ubyte", &images);
    let bench = bench.file("train-labels-idx1-ubyte", &labels).file("t10k-images-idx3-ubyte", &images);
    bench.file("t10k-labels-idx1-ubyte", &labels).set("path", ".").classify()
}

fn tasks(list: &[[&[i64]; 2]]) -> Setting {
    list.iter()
        .map(|sides| sides.iter().map(|side| side.to_vec()).collect::<Vec<_>>())
        .collect::<Vec<_>>()
        .into()
}

/// Which images the clients hold, by the number painted into them.
fn held(world: &World) -> Vec<Vec<u32>> {
    let number = |row: &[f64]| ((row[0] * 256.0 + row[1]) * 255.0).round() as u32;
    world.train.iter().map(|data| (0..data.rows()).map(|i| number(data.row(i))).collect()).collect()
}

#[test]
fn clients_hold_their_tasks_and_share_no_image() {
    let world = small_mnist(3000).set("tasks", tasks(&[[&[1], &[8]], [&[2, 3], &[7]]])).world();
    let mut all = BTreeSet::new();
    for (id, images) in held(&world).iter().enumerate() {
        let data = &world.train[id];
        assert!((4..=8).contains(&data.rows()));
        assert_eq!(data.targets().iter().sum::<f64>() * 2.0, data.rows() as f64, "as many of each side");
        for (i, &image) in images.iter().enumerate() {
            let digit = image % 10;
            let expected = match world.federation.members()[id].cluster {
                0 => [vec![1], vec![8]],
                _ => [vec![2, 3], vec![7]],
            };
            assert!(expected[data.targets()[i] as usize].contains(&digit));
            assert!(all.insert(image), "image {image} is held twice");
        }
    }
    let shared = |id: usize| Arc::as_ptr(world.test[id].as_ref().unwrap());
    for member in world.federation.members() {
        let first = world.federation.members().iter().find(|other| other.cluster == member.cluster).unwrap();
        assert_eq!(shared(member.id as usize), shared(first.id as usize));
        let rows = world.test[member.id as usize].as_ref().unwrap().rows();
        assert_eq!(rows, if member.cluster == 0 { 600 } else { 900 });
    }
}

#[test]
fn a_used_up_pile_is_dealt_again_but_never_twice_to_one_client() {
    let world = small_mnist(40).set("images_per_class", 4).set("tasks", tasks(&[[&[1], &[8]]])).world();
    for images in held(&world) {
        assert_eq!(images.len(), 8);
        assert_eq!(images.iter().collect::<BTreeSet<_>>().len(), 8);
    }
    small_mnist(40)
        .set("images_per_class", 5)
        .refused(&["`images_per_class`", "up to 5 images of 1 but there are 4"]);
}

#[test]
fn scale_limit_and_seed() {
    let bench = small_mnist(500).set("scale", "norm").set("test_limit", 7);
    let world = bench.world();
    let norm = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!(world.train.iter().all(|data| (0..data.rows()).all(|i| (norm(data.row(i)) - 1.0).abs() < 1e-12)));
    assert!(world.test.iter().all(|test| test.as_ref().unwrap().rows() == 7));
    assert_eq!(bench.world().fingerprint, world.fingerprint);
    assert_ne!(bench.seed(8).world().fingerprint, world.fingerprint);
}

#[test]
fn bad_tasks_are_refused() {
    let refuse = |setting: Setting, parts: &[&str]| small_mnist(40).set("tasks", setting).refused(parts);
    refuse(tasks(&[[&[1], &[11]]]), &["task 1: mnist has no class 11"]);
    refuse(tasks(&[[&[1], &[8]], [&[1], &[1]]]), &["task 2: class 1 appears twice"]);
    refuse(tasks(&[[&[1], &[]]]), &["each side needs at least one class"]);
    refuse(vec![vec![vec![1]]].into(), &["a task has two sides", "1 were given"]);
    refuse(Setting(Value::List(vec![])), &["give at least one task"]);
    refuse(3.into(), &["`tasks`: expected a list"]);
}

#[test]
fn missing_and_odd_files_are_refused() {
    let none = Bench::new("mnist").set("path", "nowhere");
    none.refused(&["mnist is not found at", "nowhere", "train-images-idx3-ubyte", "FEDKIN_DATA"]);
    let short = small_mnist(40).file("train-labels-idx1-ubyte", idx_bytes(8, &[1], &[0]));
    short.refused(&["40 images of 2 x 2 do not go with 1 labels"]);
    let wrong = small_mnist(40).file("train-labels-idx1-ubyte", idx_bytes(8, &[40], &[12; 40]));
    wrong.refused(&["image 1 has the label 12; labels go from 0 to 9"]);
    let flat = small_mnist(40).file("t10k-images-idx3-ubyte", idx_bytes(8, &[160], &[0; 160]));
    flat.refused(&["grey images as bytes of shape [n, height, width]"]);
}

#[test]
fn organs_go_by_name_and_read_labels_in_a_column() {
    let labels: Vec<u8> = (0..110).map(|i| i % 11).collect();
    let images: Vec<u8> = (0..110).flat_map(|i| [i as u8; 4]).collect();
    let bytes = npz_bytes(&[
        ("train_images", "|u1", "(110, 2, 2)", &images),
        ("train_labels", "|u1", "(110, 1)", &labels),
        ("test_images", "|u1", "(110, 2, 2)", &images),
        ("test_labels", "|u1", "(110, 1)", &labels),
    ]);
    let bench =
        Bench::new("organamnist").file("organamnist.npz", bytes).set("path", "organamnist.npz").classify();
    let bench = bench.set("tasks", vec![vec![vec!["lung-right"], vec!["lung-left"]]]);
    let world = bench.world();
    assert_eq!(world.federation.members().len(), 30);
    let labels = |i: usize| (world.train[0].row(i)[0] * 255.0).round() as usize % 11;
    assert_eq!((labels(0), labels(1)), (8, 7));
    assert_eq!(world.test[0].as_ref().unwrap().rows(), 20);
    let bench = bench.set("tasks", vec![vec![vec!["lung-rigth"], vec!["liver"]]]);
    bench.refused(&["no class \"lung-rigth\"", "did you mean `lung-right`?"]);
}

#[test]
fn real_mnist_has_its_counts() {
    let Some(folder) = real_data("mnist") else { return };
    let bench = Bench::new("mnist").set("path", folder.to_str().unwrap()).classify();
    let world = bench.world();
    assert_eq!((world.federation.members().len(), world.train[0].columns()), (150, 784));
    // Test images of 1 and 8, 1 and 9, 7 and 8.
    for member in world.federation.members() {
        let test = world.test[member.id as usize].as_ref().unwrap();
        assert_eq!(test.rows(), [1135 + 974, 1135 + 1009, 1028 + 974][member.cluster as usize]);
        assert_eq!(test.targets().iter().sum::<f64>(), [974.0, 1009.0, 974.0][member.cluster as usize]);
    }
    let start = std::time::Instant::now();
    assert_ne!(bench.seed(8).world().fingerprint, world.fingerprint);
    eprintln!("a repeat from memory took {:.0?}", start.elapsed());
}

#[test]
fn real_organs_have_their_counts() {
    let Some(folder) = real_data("organamnist") else { return };
    let world = Bench::new("organamnist").set("path", folder.to_str().unwrap()).classify().world();
    assert_eq!((world.federation.members().len(), world.train[0].rows()), (30, 4));
    for member in world.federation.members() {
        let rows = world.test[member.id as usize].as_ref().unwrap().rows();
        assert_eq!(rows, [1813 + 1747, 3285 + 1747, 1965 + 1747][member.cluster as usize]);
    }
}
