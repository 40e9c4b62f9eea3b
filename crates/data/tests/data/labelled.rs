//! Image sets by class, CIFAR-10 and `HARBox`: small sets made here, and the real ones where they are.

use crate::formats::idx_bytes;
use crate::{Bench, real_data};
use fedkin_data::{Task, World, native};
use fedkin_learner::Dataset;
use std::collections::BTreeSet;
use std::io::Write;

const RECORD: usize = 3073;

/// `count` images of 2 x 2 pixels, one digit after the other; the pixels are the number of the image and its digit.
pub fn digits(count: usize) -> Bench {
    let labels: Vec<u8> = (0..count).map(|i| (i % 10) as u8).collect();
    let pixels: Vec<u8> = (0..count).flat_map(|i| [(i / 256) as u8, (i % 256) as u8, labels[i], 0]).collect();
    let (images, labels) =
        (idx_bytes(8, &[count as u32, 2, 2], &pixels), idx_bytes(8, &[count as u32], &labels));
    let bench = Bench::new("mnist").file("train-images-idx3-ubyte", &images);
    let bench = bench.file("train-labels-idx1-ubyte", &labels).file("t10k-images-idx3-ubyte", &images);
    let mut bench = bench.file("t10k-labels-idx1-ubyte", &labels).set("path", ".");
    bench.task = Task::Classes(10);
    bench
}

fn all_sets(world: &World, id: usize) -> Vec<&Dataset> {
    let others = [world.validation[id].as_deref(), world.test[id].as_deref()];
    std::iter::once(&*world.train[id]).chain(others.into_iter().flatten()).collect()
}

/// The numbers painted into the images of a client.
fn held(world: &World, id: usize) -> Vec<u32> {
    let number = |row: &[f64]| ((row[0] * 256.0 + row[1]) * 255.0).round() as u32;
    all_sets(world, id).iter().flat_map(|set| (0..set.rows()).map(|i| number(set.row(i)))).collect()
}

#[test]
fn clients_share_no_image_and_every_image_keeps_its_class() {
    let bench = digits(3000).set("partition", "dirichlet").set("alpha", 0.5).set("samples", 100);
    let bench = bench.set("validation_fraction", 0.2).set("holdout", 50);
    let world = bench.world();
    assert_eq!((world.train.len(), world.schema.shape), (20, Some([1, 2, 2])));
    assert_eq!((world.federation.servers(), world.federation.clusters()), (1, 1));
    let mut all = BTreeSet::new();
    for id in 0..20 {
        let sizes: Vec<usize> = all_sets(&world, id).iter().map(|set| set.rows()).collect();
        assert_eq!(sizes, [60, 15, 25]);
        for set in all_sets(&world, id) {
            for i in 0..set.rows() {
                assert_eq!((set.row(i)[2] * 255.0).round(), set.targets()[i]);
            }
        }
        assert!(held(&world, id).into_iter().all(|image| all.insert(image)));
    }
    assert_eq!(world.holdout.as_ref().unwrap().rows(), 50);
    assert_eq!((world.classes.len(), world.classes[3].as_str()), (10, "3"));
    let counts = world.label_counts().unwrap();
    assert_eq!(counts.clients.iter().map(|client| client.all().iter().sum::<usize>()).sum::<usize>(), 2000);
    assert_eq!(counts.clients[4].train.iter().sum::<usize>(), 60);
    // The same again from the seed; other ones from another seed or with another hold-out.
    let first = bench.world().fingerprint;
    assert_eq!(first, world.fingerprint);
    assert_ne!(bench.set("holdout", 51).world().fingerprint, first);
}

#[test]
fn validation_changes_the_fingerprint_and_not_the_test_records() {
    let bench = || digits(500).set("partition", "iid").set("clients", 5);
    let (without, with) = (bench().world(), bench().set("validation_fraction", 0.1).world());
    assert_eq!(without.test, with.test);
    assert!(without.validation.iter().all(Option::is_none) && with.validation.iter().all(Option::is_some));
    assert_ne!(without.fingerprint, with.fingerprint);
}

#[test]
fn clusters_turn_images_or_rename_classes() {
    let plain = digits(400).set("partition", "iid").set("clients", 8).world();
    let turned = digits(400).set("partition", "rotation").set("clients", 8).world();
    assert_eq!(turned.federation.cluster_names(), ["turned-000", "turned-090", "turned-180", "turned-270"]);
    for member in turned.federation.members() {
        let (id, cluster) = (member.id as usize, member.cluster);
        // Corner 0 of a 2 x 2 image goes to the left: down the left side, then right, then up.
        let corner = [0, 2, 3, 1][cluster as usize];
        for i in 0..5 {
            assert_eq!(turned.train[id].row(i)[corner], plain.train[id].row(i)[0]);
        }
    }
    let renamed = digits(400).set("partition", "permutation").set("clients", 8).set("clusters", 2).world();
    for member in renamed.federation.members() {
        let (id, same) = (member.id as usize, member.cluster == 0);
        let equal = renamed.train[id].targets() == plain.train[id].targets();
        assert_eq!((equal, renamed.train[id].features()), (same, plain.train[id].features()));
    }
}

#[test]
fn published_scales_are_by_channel() {
    let unit = digits(200).set("partition", "iid").set("clients", 2).world();
    let bench = digits(200).set("partition", "iid").set("clients", 2).set("scale", "published");
    let (a, b) = (unit.train[0].features()[5], bench.world().train[0].features()[5]);
    assert_eq!(b, (a - 0.1307) / 0.3081);
}

#[test]
fn servers_of_a_stated_graph_share_the_clients() {
    let world = digits(400).set("partition", "iid").set("clients", 7).servers(3).world();
    let mut counts = [0; 3];
    for member in world.federation.members() {
        counts[member.server as usize] += 1;
    }
    assert_eq!(counts, [3, 2, 2]);
    digits(400).set("partition", "iid").set("clients", 2).servers(3).refused(&[
        "`clients`",
        "2 clients",
        "3 servers",
    ]);
}

#[test]
fn partitions_that_cannot_be_are_refused() {
    let bench = || digits(400).set("partition", "dirichlet").set("alpha", 0.05);
    bench().set("least", 21).refused(&[
        "`least`",
        "Dirichlet(0.05)",
        "20 clients",
        "at least 21 of the 400 records",
    ]);
    bench().set("samples", 21).refused(&["`samples`", "420 records but there are 400"]);
    bench()
        .set("images_per_class", 3)
        .refused(&["`images_per_class`", "partition = \"dirichlet\" has no such key"]);
    digits(400).set("partition", "iid").set("holdout", 401).refused(&["`holdout`", "401", "400"]);
    digits(400).set("partition", "dirichlet").refused(&["`alpha`", "required"]);
    digits(400).set("partition", "dirchlet").refused(&["`partition`", "did you mean `dirichlet`?"]);
    digits(400).set("partition", "natural").refused(&["no clients of their own"]);
    digits(400).set("alpha", 0.5).refused(&["`alpha`", "partition = \"tasks\" has no such key"]);
    digits(400).refused(&["the tasks of mnist have 2 classes, not 10", "partition = \"dirichlet\""]);
    digits(400).set("partition", "iid").classify().refused(&["mnist has 10 classes"]);
}

/// CIFAR-10 records: the label, and its number in all pixels of the red, 100 in the green and the image's number in the
/// blue plane.
fn batch(first: usize, count: usize) -> Vec<u8> {
    let record = |i: usize| {
        let label = (i % 10) as u8;
        let plane = |value: u8| vec![value; 1024];
        [vec![label], plane(label), plane(100), plane(i as u8)].concat()
    };
    (first..first + count).flat_map(record).collect()
}

fn cifar(bench: Bench) -> Bench {
    let mut bench =
        bench.file("test_batch.bin", batch(0, 20)).set("path", ".").set("partition", "iid").set("clients", 4);
    bench.task = Task::Classes(10);
    bench
}

#[test]
fn cifar_is_read_in_official_batches_or_as_a_subset() {
    let official = (1..=5).fold(Bench::new("cifar10"), |bench, i| {
        bench.file(&format!("data_batch_{i}.bin"), batch(20 * (i - 1), 20))
    });
    let subset = Bench::new("cifar10")
        .file("train_batch_1.bin", batch(0, 60))
        .file("train_batch_2.bin", batch(60, 40));
    let (official, subset) =
        (cifar(official).set("holdout", 20).world(), cifar(subset).set("holdout", 20).world());
    assert_eq!(official.fingerprint, subset.fingerprint);
    assert_eq!((official.schema.shape, official.schema.columns()), (Some([3, 32, 32]), 3072));
    let mut blue = BTreeSet::new();
    for set in (0..4).flat_map(|id| all_sets(&official, id)) {
        for i in 0..set.rows() {
            let row: Vec<i64> = set.row(i).iter().map(|value| (value * 255.0).round() as i64).collect();
            assert_eq!((row[0] as f64, row[1024], row[1023]), (set.targets()[i], 100, row[0]));
            blue.insert(row[3071]);
        }
    }
    assert_eq!(blue.len(), 100);
    assert_eq!(official.classes[9], "truck");
}

#[test]
fn damaged_cifar_is_refused() {
    let train = |bytes: Vec<u8>| cifar(Bench::new("cifar10").file("train_batch_1.bin", bytes));
    let mut cut = batch(0, 20);
    cut.truncate(20 * RECORD - 1);
    train(cut).refused(&[
        "train_batch_1.bin",
        "3073 bytes",
        "61459 bytes are no whole number",
        "fetch it again",
    ]);
    train(Vec::new()).refused(&["train_batch_1.bin", "0 bytes"]);
    let mut wrong = batch(0, 20);
    wrong[7 * RECORD] = 10;
    train(wrong).refused(&["train_batch_1.bin", "image 8 has the label 10; labels go from 0 to 9"]);
    let packed = Bench::new("cifar10").file("train_batch_1.bin.gz", b"\x1f\x8b\x08\x00 this is no gzip");
    cifar(packed).refused(&["train_batch_1.bin.gz", "ends or breaks inside"]);
    let none = Bench::new("cifar10").set("path", ".").set("partition", "iid");
    let mut none = none.file("data_batch_1.bin", batch(0, 20));
    none.task = Task::Classes(10);
    none.refused(&["cifar10 is not found at", "data_batch_1.bin to data_batch_5.bin", "FEDKIN_DATA"]);
}

/// Two people; the first did everything, the second only called and waved.
fn people() -> Bench {
    let rows = |windows: usize, value: usize| {
        let row = |step: usize| {
            let axes: Vec<String> = (0..9).map(|axis| format!("{}.5", value + axis)).collect();
            format!("{} {}\n", 1000 + step, axes.join(" "))
        };
        (0..100 * windows).map(row).collect::<String>()
    };
    let bench = Bench::new("harbox").set("path", ".");
    for user in ["1", "2", "notes"] {
        std::fs::create_dir(bench.folder.path().join(user)).unwrap();
    }
    let mut bench = bench.file("1/Call_train.txt", rows(4, 1)).file("1/Hop_train.txt", rows(2, 2));
    bench = bench.file("1/typing_train.txt", rows(2, 3)).file("1/Walk_train.txt", rows(2, 4));
    bench = bench.file("1/Wave_train.txt", rows(2, 5));
    bench = bench.file("2/Call_train.txt", rows(3, 1)).file("2/Wave_train.txt", rows(1, 5));
    bench.task = Task::Classes(5);
    bench
}

#[test]
fn harbox_has_a_client_for_each_folder_and_drops_the_time() {
    let world = people().world();
    assert_eq!(world.federation.client_names(), ["user-001", "user-002"]);
    assert_eq!((world.schema.columns(), world.schema.shape), (900, Some([900, 1, 1])));
    assert_eq!((world.train[0].rows(), world.test[0].as_ref().unwrap().rows()), (9, 3));
    for set in (0..2).flat_map(|id| all_sets(&world, id)) {
        for i in 0..set.rows() {
            assert_eq!((set.row(i)[0], set.row(i)[899]), (set.targets()[i] + 1.5, set.targets()[i] + 9.5));
        }
    }
    let counts = world.label_counts().unwrap();
    assert_eq!((counts.clients[1].all(), counts.classes[2].as_str()), (vec![3, 0, 0, 0, 1], "typing"));
    let one = people().set("users", vec![2]).set("test_fraction", 0.0).world();
    assert_eq!((one.train.len(), one.train[0].rows(), one.test[0].is_none()), (1, 4, true));
    let values = fedkin_settings::Values::presets(native().source("harbox").unwrap().params);
    assert_eq!(native().about("harbox", &values).known.classes, Some(5));
}

#[test]
fn odd_harbox_folders_are_refused() {
    people().set("users", vec![3]).refused(&["`users`", "3 has no folder"]);
    people().file("2/Call_train.txt", "1 2 3\n").refused(&["2/Call_train.txt:1", "9 axes", "3 numbers"]);
    people()
        .file("2/Call_train.txt", "1 1 1 1 1 1 1 1 1 x\n")
        .refused(&["Call_train.txt:1", "\"x\" is not a finite number"]);
    let short = "1 1 1 1 1 1 1 1 1 1\n".repeat(150);
    people().file("2/Call_train.txt", short).refused(&["Call_train.txt", "150 rows are no whole number"]);
    people().classify().refused(&["harbox", "5 activities"]);
    let empty = people();
    std::fs::remove_file(empty.folder.path().join("2/Call_train.txt")).unwrap();
    std::fs::remove_file(empty.folder.path().join("2/Wave_train.txt")).unwrap();
    empty.refused(&["user-002", "none of the files"]);
    let mut nowhere = Bench::new("harbox").set("path", "nowhere");
    nowhere.task = Task::Classes(5);
    nowhere.refused(&["harbox is not found at", "Call_train.txt"]);
}

#[test]
fn real_sets_have_their_classes_and_shapes() {
    let shapes = [("mnist", 10, [1, 28, 28]), ("organamnist", 11, [1, 28, 28]), ("cifar10", 10, [3, 32, 32])];
    for (name, count, shape) in shapes {
        let Some(folder) = real_data(if name == "cifar10" { "cifar10-subset" } else { name }) else {
            continue;
        };
        let bench = Bench::new(name).set("path", folder.to_str().unwrap()).set("partition", "dirichlet");
        let mut bench = bench.set("alpha", 0.2).set("samples", 300).set("scale", "published");
        bench.task = Task::Classes(count);
        let world = bench.world();
        assert_eq!((world.train.len(), world.train[0].rows(), world.schema.shape), (20, 225, Some(shape)));
        // Over all clients the published constants bring the pixels near mean 0 and deviation 1; the organs' are 0.5 by rule.
        if name != "organamnist" {
            let pixels: Vec<f64> = world.train.iter().flat_map(|set| set.features()).copied().collect();
            let mean = pixels.iter().sum::<f64>() / pixels.len() as f64;
            let square = pixels.iter().map(|pixel| pixel * pixel).sum::<f64>() / pixels.len() as f64;
            assert!(mean.abs() < 0.1 && (square - 1.0).abs() < 0.15, "{name}: {mean} {square}");
        }
    }
}

#[test]
fn real_har_has_900_features() {
    let Some(folder) = real_data("uci-har") else { return };
    let bench = || {
        let mut bench = Bench::new("uci-har").set("path", folder.to_str().unwrap()).set("features", "raw");
        bench.task = Task::Classes(6);
        bench
    };
    let (all, cut) = (
        bench().set("subjects", vec![3]).world(),
        bench().set("subjects", vec![3]).set("steps", 100).world(),
    );
    assert_eq!((cut.schema.columns(), cut.schema.shape), (900, Some([900, 1, 1])));
    for channel in 0..9 {
        assert_eq!(cut.train[0].row(5)[100 * channel..][..100], all.train[0].row(5)[128 * channel..][..100]);
    }
    let mut summary = bench().set("features", "summary").set("steps", 100);
    summary.refused(&["`steps`", "features = \"raw\""]);
    summary = bench().set("steps", 100).set("validation_fraction", 0.3).set("test_fraction", 0.25);
    let world = summary.world();
    assert!(world.validation.iter().all(Option::is_some) && world.train.len() == 30);
}

/// The archive of UCI HAR with two windows of one person in the training and one of another in the test half.
fn har_archive(damage: &str) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    let signals = ["body_acc", "body_gyro", "total_acc"]
        .map(|name| ["x", "y", "z"].map(|axis| format!("{name}_{axis}")));
    for (half, windows, subject) in [("train", 2, 7), ("test", 1, 9)] {
        let folder = format!("UCI HAR Dataset/{half}");
        let mut add = |name: String, text: String| {
            archive.start_file(format!("{folder}/{name}"), options).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        };
        let label = if damage == "label" { 7 } else { 6 };
        add(format!("y_{half}.txt"), format!("{label}\n").repeat(windows));
        add(format!("subject_{half}.txt"), format!("{subject}\n").repeat(windows));
        for (channel, signal) in signals.iter().flatten().enumerate() {
            if damage == "signal" && channel == 4 {
                continue;
            }
            let line = |window: usize| {
                let value =
                    |step: usize| format!(" {:e}", (128 * window + step + 1000 * channel) as f64 / 8192.0);
                (0..if damage == "short" { 127 } else { 128 }).map(value).collect::<String>() + "\n"
            };
            add(format!("Inertial Signals/{signal}_{half}.txt"), (0..windows).map(line).collect());
        }
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn the_archive_of_uci_har_is_read_as_it_comes() {
    let bench = |damage: &str| {
        let bench = Bench::new("uci-har").file("UCI HAR Dataset.zip", har_archive(damage)).set("path", ".");
        let mut bench = bench.set("features", "raw").set("steps", 100);
        bench.task = Task::Classes(6);
        bench
    };
    let world = bench("").world();
    assert_eq!(world.federation.client_names(), ["subject-07", "subject-09"]);
    let all: Vec<&Dataset> = all_sets(&world, 0);
    assert_eq!(all.iter().map(|set| set.rows()).sum::<usize>(), 2);
    let row = world.train[1].row(0);
    assert_eq!((row.len(), world.train[1].targets()), (900, &[5.0][..]));
    // Whole multiples of 1/4096; the first channel starts at 0, the second at 1000/8192.
    assert_eq!((row[0], row[2], row[100]), (0.0, 1.0 / 4096.0, 500.0 / 4096.0));
    bench("label").refused(&["the activity of window 1 (train) is 7; it goes from 1 to 6"]);
    bench("signal").refused(&["UCI HAR Dataset.zip", "body_gyro_y_train.txt"]);
    bench("short").refused(&["254 numbers; 2 windows of 128"]);
    let cut = bench("").file("UCI HAR Dataset.zip", &har_archive("")[..500]);
    cut.refused(&["UCI HAR Dataset.zip", "fetch it again"]);
}
