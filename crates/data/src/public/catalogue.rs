//! The public data sets that sources can read: what they are, where they come from, how their files are told from others.
//!
//! A sum is of the content: files that may be packed with gzip are told by what is inside, because packing again changes
//! their bytes and nothing else.

use super::places::plain_or_packed;
use crate::error::DataError;
use crate::formats::csv::open;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};

/// One public data set.
#[derive(Debug)]
pub struct Known {
    /// The name of the source.
    pub name: &'static str,
    /// What it holds.
    pub what: &'static str,
    /// How many records, in words.
    pub records: &'static str,
    /// As far as known; several sets are for research only.
    pub licence: &'static str,
    /// The public place that describes it.
    pub home: &'static str,
    /// The forms in which the source reads it, the full one first.
    pub forms: &'static [Form],
    /// What `fetch` gets for the first form; empty where it has to be placed by hand.
    pub downloads: &'static [Download],
}

/// The files of one form of a set.
#[derive(Debug)]
pub struct Form {
    /// The folder below the one that `FEDKIN_DATA` names.
    pub folder: &'static str,
    /// The files.
    pub files: &'static [KnownFile],
}

/// A file that a set consists of.
#[derive(Debug, Clone, Copy)]
pub struct KnownFile {
    /// Its name; it may also stand there with `.gz`.
    pub name: &'static str,
    /// SHA-256 of its content, unpacked; empty where none is known.
    pub sha256: &'static str,
}

/// Something to fetch.
#[derive(Debug, Clone, Copy)]
pub struct Download {
    /// Where it is.
    pub url: &'static str,
    /// What the file is called there and at any mirror.
    pub file: &'static str,
    /// SHA-256 of the file as it is sent; empty where only the content is known.
    pub sha256: &'static str,
    /// How the files of the set come out of it.
    pub holds: Holds,
}

/// What a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The file itself, gzip or not.
    File,
    /// A tar archive packed with gzip, with the files somewhere inside.
    Tar,
    /// A zip archive with the files somewhere inside.
    Zip,
}

/// What there is of a set on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// All files of one form.
    Present(PathBuf),
    /// Some files of a form; these are missing.
    Partial(PathBuf, Vec<&'static str>),
    /// None.
    Absent,
}

const fn file(name: &'static str, sha256: &'static str) -> KnownFile {
    KnownFile { name, sha256 }
}

const fn mnist(url: &'static str, file: &'static str) -> Download {
    Download { url, file, sha256: "", holds: Holds::File }
}

pub(crate) static MNIST: Known = Known {
    name: "mnist",
    what: "handwritten digits, grey 28 x 28, 10 classes",
    records: "60000 training, 10000 test images",
    licence: "CC BY-SA 3.0",
    home: "http://yann.lecun.com/exdb/mnist/",
    forms: &[Form {
        folder: "mnist",
        files: &[
            file(
                "train-images-idx3-ubyte",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            file(
                "train-labels-idx1-ubyte",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
            file(
                "t10k-images-idx3-ubyte",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            file(
                "t10k-labels-idx1-ubyte",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ],
    }],
    downloads: &[
        mnist(
            "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
            "train-images-idx3-ubyte.gz",
        ),
        mnist(
            "https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz",
            "train-labels-idx1-ubyte.gz",
        ),
        mnist(
            "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-images-idx3-ubyte.gz",
            "t10k-images-idx3-ubyte.gz",
        ),
        mnist(
            "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-labels-idx1-ubyte.gz",
            "t10k-labels-idx1-ubyte.gz",
        ),
    ],
};

pub(crate) static ORGANAMNIST: Known = Known {
    name: "organamnist",
    what: "CT images of abdominal organs, grey 28 x 28, 11 classes",
    records: "34561 training, 6491 validation, 17778 test images",
    licence: "CC BY 4.0",
    home: "https://medmnist.com/",
    forms: &[Form {
        folder: "organamnist",
        files: &[file("organamnist.npz", "7c8c8b0753e2c0d7f70928817eac02be7cbb09f6beff4346e9d0ea79ecb598bd")],
    }],
    downloads: &[Download {
        url: "https://zenodo.org/records/10519652/files/organamnist.npz",
        file: "organamnist.npz",
        sha256: "",
        holds: Holds::File,
    }],
};

pub(crate) static CIFAR10: Known = Known {
    name: "cifar10",
    what: "colour images of animals and vehicles, 3 x 32 x 32, 10 classes",
    records: "50000 training, 10000 test images; subset: 20000 and 5000",
    licence: "none stated; for research, with a citation",
    home: "https://www.cs.toronto.edu/~kriz/cifar.html",
    forms: &[
        Form { folder: "cifar10", files: BATCHES },
        Form { folder: "cifar-10-batches-bin", files: BATCHES },
        // Class-balanced subsets in the same records; no sum is published for them.
        Form {
            folder: "cifar10-subset",
            files: &[
                file("train_batch_1.bin", ""),
                file("train_batch_2.bin", ""),
                file("test_batch.bin", ""),
            ],
        },
    ],
    downloads: &[Download {
        url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        file: "cifar-10-binary.tar.gz",
        sha256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        holds: Holds::Tar,
    }],
};

pub(crate) static UCI_HAR: Known = Known {
    name: "uci-har",
    what: "motion of phones at the waist, 9 channels x 128 samples, 6 activities of 30 people",
    records: "10299 windows",
    licence: "CC BY 4.0",
    home: "https://archive.ics.uci.edu/dataset/240/human+activity+recognition+using+smartphones",
    forms: &[
        Form {
            folder: "uci-har",
            files: &[file(
                "UCI HAR Dataset.zip",
                "2045e435c955214b38145fb5fa00776c72814f01b203fec405152dac7d5bfeb0",
            )],
        },
        Form { folder: "uci-har", files: &[file("uci_har_inertial_i16.npz", "")] },
    ],
    downloads: &[Download {
        url: "https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",
        file: "human+activity+recognition+using+smartphones.zip",
        sha256: "c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
        holds: Holds::Zip,
    }],
};

pub(crate) static HARBOX: Known = Known {
    name: "harbox",
    what: "motion of people's own phones, 9 axes x 100 samples, 5 activities of 121 people",
    records: "windows of 2 seconds, by person",
    licence: "for research, with a citation",
    home: "https://github.com/xmouyang/FL-Datasets-for-HAR",
    forms: &[Form { folder: "harbox", files: &[file("1/Call_train.txt", "")] }],
    downloads: &[],
};

pub(crate) static HEART: Known = Known {
    name: "heart-disease",
    what: "patients of four hospitals, 13 features, 5 degrees of disease",
    records: "920 patients",
    licence: "CC BY 4.0",
    home: "https://archive.ics.uci.edu/dataset/45/heart+disease",
    forms: &[Form {
        folder: "heart-disease",
        files: &[
            file(
                "processed.cleveland.data",
                "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
            ),
            file(
                "processed.hungarian.data",
                "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
            ),
            file(
                "processed.switzerland.data",
                "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
            ),
            file("processed.va.data", "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f"),
        ],
    }],
    downloads: &[],
};

pub(crate) static STUDENTS: Known = Known {
    name: "students",
    what: "12 social networks of the same 32 students",
    records: "12 networks",
    licence: "CC BY-NC-SA 2.5",
    home: "http://vlado.fmf.uni-lj.si/pub/networks/data/",
    forms: &[Form {
        folder: "students-ljubljana",
        files: &[file("as1.net.txt", "dd9e1d33c382e0857cb5be5145097f075b7e3efb79378ce317d9d86774cfec8c")],
    }],
    downloads: &[],
};

pub(crate) static COIL20: Known = Known {
    name: "coil20",
    what: "20 objects in 72 poses each, grey 32 x 32",
    records: "1440 images",
    licence: "for research",
    home: "https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php",
    forms: &[Form {
        folder: "coil20",
        files: &[file("coil20-images-idx3-ubyte", ""), file("coil20-labels-idx1-ubyte", "")],
    }],
    downloads: &[],
};

pub(crate) static ABIDE: Known = Known {
    name: "abide",
    what: "activity of 116 brain regions of people with and without autism",
    records: "40 time series",
    licence: "CC BY-NC-SA 3.0",
    home: "http://preprocessed-connectomes-project.org/abide/",
    forms: &[Form { folder: "abide", files: &[file("phenotypic_subset.csv", "")] }],
    downloads: &[],
};

const BATCHES: &[KnownFile] = &[
    file("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
    file("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
    file("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
    file("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
    file("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
    file("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
];

impl Known {
    /// What there is of the set below a folder: the first form that is whole, else the first of which something is there.
    pub fn presence(&self, data: &Path) -> Presence {
        let mut some = Presence::Absent;
        for form in self.forms {
            let folder = data.join(form.folder);
            let missing: Vec<&'static str> = form
                .files
                .iter()
                .filter(|file| plain_or_packed(&folder, file.name).is_none())
                .map(|file| file.name)
                .collect();
            if missing.is_empty() {
                return Presence::Present(folder);
            }
            if missing.len() < form.files.len() && some == Presence::Absent {
                some = Presence::Partial(folder, missing);
            }
        }
        some
    }
}

/// SHA-256 of the content of a file, unpacked on the way if it is gzip; in hexadecimal digits.
pub fn content_sum(path: &Path) -> Result<String, DataError> {
    sum(&mut open(path)?).map_err(|error| {
        DataError::file(path, format!("the file is damaged or breaks off ({error}): fetch it again"))
    })
}

/// SHA-256 of all that is left to read.
pub(crate) fn sum(input: &mut dyn Read) -> std::io::Result<String> {
    let (mut hash, mut block) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match input.read(&mut block)? {
            0 => break,
            count => hash.update(&block[..count]),
        }
    }
    Ok(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_a_source_and_every_sum_is_one() {
        for source in &crate::native().sources {
            let Some(known) = source.public else { continue };
            assert_eq!(source.name, known.name);
            let sums = known.forms.iter().flat_map(|form| form.files).map(|file| file.sha256);
            for sum in sums.chain(known.downloads.iter().map(|download| download.sha256)) {
                let digits =
                    sum.len() == 64 && sum.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
                assert!(sum.is_empty() || digits, "{}: {sum}", known.name);
            }
            // What is fetched can be told from anything else.
            let safe =
                known.downloads.is_empty() || known.forms[0].files.iter().all(|file| !file.sha256.is_empty());
            assert!(safe, "{}", known.name);
        }
    }

    #[test]
    fn a_sum_is_of_the_content() {
        let text = sum(&mut &b"abc"[..]).unwrap();
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
