//! The image sets that are known by name: their classes and their files.

use super::cifar;
use super::sets::{Images, Part, Set};
use crate::error::DataError;
use crate::formats::array::{Array, Numbers};
use crate::formats::idx;
use crate::formats::npz::Npz;
use crate::public::places::plain_or_packed;
use std::path::{Path, PathBuf};

pub(crate) static MNIST: Set = Set {
    name: "mnist",
    classes: &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
    expected: "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte \
               (each also as .gz)",
    published: &[(0.1307, 0.3081)],
    folders: &["mnist"],
    files: idx_files,
    decode: decode_idx,
};

pub(crate) static ORGANS: Set = Set {
    name: "organamnist",
    classes: &[
        "bladder",
        "femur-left",
        "femur-right",
        "heart",
        "kidney-left",
        "kidney-right",
        "liver",
        "lung-left",
        "lung-right",
        "pancreas",
        "spleen",
    ],
    expected: "organamnist.npz",
    // What the set's own benchmark uses.
    published: &[(0.5, 0.5)],
    folders: &["organamnist"],
    files: npz_files,
    decode: decode_npz,
};

pub(crate) static CIFAR: Set = Set {
    name: "cifar10",
    classes: &["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
    expected: "data_batch_1.bin to data_batch_5.bin and test_batch.bin, or train_batch_1.bin and so on of a subset (each also \
               as .gz)",
    published: &[(0.491_399_68, 0.247_032_23), (0.482_158_41, 0.243_485_13), (0.446_530_91, 0.261_587_84)],
    folders: &["cifar10", "cifar-10-batches-bin", "cifar10-subset"],
    files: cifar::files,
    decode: cifar::decode,
};

fn idx_files(folder: &Path) -> Option<Vec<PathBuf>> {
    ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
        .iter()
        .map(|name| plain_or_packed(folder, name))
        .collect()
}

fn npz_files(folder: &Path) -> Option<Vec<PathBuf>> {
    // A path straight to the archive is what many will write.
    let candidates = [folder.join("organamnist.npz"), folder.to_path_buf()];
    candidates.into_iter().find(|path| path.is_file()).map(|path| vec![path])
}

fn decode_idx(files: &[PathBuf], classes: usize) -> Result<Images, DataError> {
    let [train_images, train_labels, test_images, test_labels] = files else {
        return Err(DataError::config("path", "four IDX files are expected"));
    };
    let train = half(train_images, idx::read(train_images)?, &idx::read(train_labels)?, classes)?;
    let test = half(test_images, idx::read(test_images)?, &idx::read(test_labels)?, classes)?;
    join(test_images, train, test)
}

fn decode_npz(files: &[PathBuf], classes: usize) -> Result<Images, DataError> {
    let [file] = files else { return Err(DataError::config("path", "one NPZ file is expected")) };
    let mut archive = Npz::open(file)?;
    let mut part = |name: &str| {
        let images = archive.read(&format!("{name}_images"))?;
        half(file, images, &archive.read(&format!("{name}_labels"))?, classes)
    };
    let (train, test) = (part("train")?, part("test")?);
    join(file, train, test)
}

type Half = ([usize; 2], Part);

fn join(file: &Path, (train_side, train): Half, (test_side, test): Half) -> Result<Images, DataError> {
    if train_side != test_side {
        let message =
            format!("test images are {test_side:?} but training images are {train_side:?}: fetch both again");
        return Err(DataError::file(file, message));
    }
    Ok(Images { shape: [1, train_side[0], train_side[1]], train, test })
}

fn half(file: &Path, images: Array, labels: &Array, classes: usize) -> Result<Half, DataError> {
    let (&[count, rows, columns], Numbers::Bytes(pixels)) = (images.shape.as_slice(), images.values) else {
        let message =
            format!("grey images as bytes of shape [n, height, width] are expected, not {:?}", images.shape);
        return Err(DataError::file(file, message));
    };
    if labels.values.len() != count || rows * columns == 0 {
        let message =
            format!("{count} images of {rows} x {columns} do not go with {} labels", labels.values.len());
        return Err(DataError::file(file, message));
    }
    let mut by_class = vec![Vec::new(); classes];
    for (image, label) in labels.values.floats().enumerate() {
        if !(label >= 0.0 && label < classes as f64 && label.fract() == 0.0) {
            let message =
                format!("image {} has the label {label}; labels go from 0 to {}", image + 1, classes - 1);
            return Err(DataError::file(file, message));
        }
        by_class[label as usize].push(image as u32);
    }
    Ok(([rows, columns], Part { pixels, by_class }))
}
