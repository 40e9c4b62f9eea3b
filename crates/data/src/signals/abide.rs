//! ABIDE: resting-state activity of brain regions of people with and without autism: `abide`.
//!
//! A client is a person, a node is a region of the AAL atlas, a record is one moment. The FedGL paper takes one person
//! with autism and one without, and 34 of the 90 cerebral regions, and names neither. The defaults here:
//!
//! - two persons of one site with the longest series, the same sex and nearly the same age: `UM_1_0050273` (autism,
//!   16.8 years) and `UM_1_0050329` (control, 17.1 years);
//! - 17 regions of both hemispheres that the literature assigns to the default-mode network (medial and orbital frontal
//!   cortex, gyrus rectus, anterior and posterior cingulum, precuneus, angular gyrus, inferior parietal lobule, middle
//!   temporal gyrus, hippocampus and its surroundings) and to the social brain (amygdala, insula, fusiform gyrus,
//!   superior temporal gyrus and pole, opercular frontal cortex).

use super::{Signals, SignalsOptions, files, one_d, world};
use crate::Request;
use crate::error::DataError;
use crate::prepare::check;
use crate::public::catalogue::{self, Known};
use crate::public::places::{SetPlace, plain_or_packed};
use crate::registry::{About, Source, Variants};
use crate::world::World;
use fedkin_settings::{Kind, Preset, Setting, Value, settings, suggest};
use std::path::{Path, PathBuf};

/// The cerebral regions of AAL: the code of the left one, the right one being one more, and the name without side.
const REGIONS: [(u32, &str); 45] = [
    (2001, "Precentral"),
    (2101, "Frontal_Sup"),
    (2111, "Frontal_Sup_Orb"),
    (2201, "Frontal_Mid"),
    (2211, "Frontal_Mid_Orb"),
    (2301, "Frontal_Inf_Oper"),
    (2311, "Frontal_Inf_Tri"),
    (2321, "Frontal_Inf_Orb"),
    (2331, "Rolandic_Oper"),
    (2401, "Supp_Motor_Area"),
    (2501, "Olfactory"),
    (2601, "Frontal_Sup_Medial"),
    (2611, "Frontal_Med_Orb"),
    (2701, "Rectus"),
    (3001, "Insula"),
    (4001, "Cingulum_Ant"),
    (4011, "Cingulum_Mid"),
    (4021, "Cingulum_Post"),
    (4101, "Hippocampus"),
    (4111, "ParaHippocampal"),
    (4201, "Amygdala"),
    (5001, "Calcarine"),
    (5011, "Cuneus"),
    (5021, "Lingual"),
    (5101, "Occipital_Sup"),
    (5201, "Occipital_Mid"),
    (5301, "Occipital_Inf"),
    (5401, "Fusiform"),
    (6001, "Postcentral"),
    (6101, "Parietal_Sup"),
    (6201, "Parietal_Inf"),
    (6211, "SupraMarginal"),
    (6221, "Angular"),
    (6301, "Precuneus"),
    (6401, "Paracentral_Lobule"),
    (7001, "Caudate"),
    (7011, "Putamen"),
    (7021, "Pallidum"),
    (7101, "Thalamus"),
    (8101, "Heschl"),
    (8111, "Temporal_Sup"),
    (8121, "Temporal_Pole_Sup"),
    (8201, "Temporal_Mid"),
    (8211, "Temporal_Pole_Mid"),
    (8301, "Temporal_Inf"),
];

const PLACE: SetPlace = SetPlace {
    set: "abide",
    folder: "abide",
    expected: "rois_aal with <FILE_ID>_rois_aal.1D of each subject (also as .gz)",
};

/// The default regions: both halves of each.
const DEFAULT: &[Preset] = &[
    Preset::Text("Frontal_Inf_Oper_L"),
    Preset::Text("Frontal_Inf_Oper_R"),
    Preset::Text("Frontal_Sup_Medial_L"),
    Preset::Text("Frontal_Sup_Medial_R"),
    Preset::Text("Frontal_Med_Orb_L"),
    Preset::Text("Frontal_Med_Orb_R"),
    Preset::Text("Rectus_L"),
    Preset::Text("Rectus_R"),
    Preset::Text("Insula_L"),
    Preset::Text("Insula_R"),
    Preset::Text("Cingulum_Ant_L"),
    Preset::Text("Cingulum_Ant_R"),
    Preset::Text("Cingulum_Post_L"),
    Preset::Text("Cingulum_Post_R"),
    Preset::Text("Hippocampus_L"),
    Preset::Text("Hippocampus_R"),
    Preset::Text("ParaHippocampal_L"),
    Preset::Text("ParaHippocampal_R"),
    Preset::Text("Amygdala_L"),
    Preset::Text("Amygdala_R"),
    Preset::Text("Fusiform_L"),
    Preset::Text("Fusiform_R"),
    Preset::Text("Parietal_Inf_L"),
    Preset::Text("Parietal_Inf_R"),
    Preset::Text("Angular_L"),
    Preset::Text("Angular_R"),
    Preset::Text("Precuneus_L"),
    Preset::Text("Precuneus_R"),
    Preset::Text("Temporal_Sup_L"),
    Preset::Text("Temporal_Sup_R"),
    Preset::Text("Temporal_Pole_Sup_L"),
    Preset::Text("Temporal_Pole_Sup_R"),
    Preset::Text("Temporal_Mid_L"),
    Preset::Text("Temporal_Mid_R"),
];

/// A region as a config names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// By its AAL code.
    Code(u32),
    /// By its name.
    Name(String),
}

impl Setting for Region {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        match value {
            Some(Value::Text(name)) => Ok(Self::Name(name.clone())),
            other => u32::read(other).map(Self::Code),
        }
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::Code(code) => code.write(),
            Self::Name(name) => name.write(),
        }
    }
}

settings! {
    /// `[data]` of ABIDE.
    pub struct Abide {
        path: Option<PathBuf> => Kind::Path, Preset::Absent,
            "folder of the files (absent: abide in the folder that FEDKIN_DATA names)";
        subjects: Vec<String> => Kind::List(&Kind::Text),
            Preset::List(&[Preset::Text("UM_1_0050273"), Preset::Text("UM_1_0050329")]),
            "FILE_ID of each client; the default is autism and control of one site";
        regions: Vec<Region> => Kind::List(&Kind::Either(&[Kind::Integer { least: 1, most: 99_999 }, Kind::Text])),
            Preset::List(DEFAULT),
            "regions by AAL code or name, as in 6301 or \"Precuneus_L\"; the default is 34 regions of the default-mode \
             network and the social brain";
        standardise: bool => Kind::Flag, Preset::Flag(true),
            "bring each region to mean 0 and deviation 1, each client by its own records: nothing about them leaves it";
        limit: Option<usize> => Kind::Integer { least: 1, most: 100_000_000 }, Preset::Absent,
            "at most so many records of each client, from the first on (absent: all)";
    }
}

impl Source for Abide {
    const NAME: &'static str = PLACE.set;
    const SUMMARY: &'static str =
        "activity of brain regions of people with and without autism, one person per client";
    const PUBLIC: Option<&'static Known> = Some(&catalogue::ABIDE);

    fn about(&self, _: Variants<'_>) -> About {
        About { path: self.path.clone(), by_client: self.standardise, ..About::default() }
    }

    /// Reads the series of the subjects.
    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        check::has_none(request.task, PLACE.set)?;
        let topology = world::server_of(request)?;
        let subjects = &self.subjects;
        if subjects.is_empty() {
            return Err(DataError::config("subjects", "name at least one subject, as in [\"UM_1_0050273\"]"));
        }
        if let Some(at) = (1..subjects.len()).find(|&at| subjects[..at].contains(&subjects[at])) {
            return Err(DataError::config(
                "subjects",
                format!("{:?} is listed twice: drop one", subjects[at]),
            ));
        }
        let regions = codes(&self.regions)?;
        let folder = PLACE.find(self.path.as_deref(), request.base)?;
        let mut clients = Vec::with_capacity(subjects.len());
        for subject in subjects {
            let file = file_of(&folder, subject)?;
            let signals = files::choose(&file, one_d::read(&file)?, "regions", &regions)?;
            let nodes = signals.nodes.iter().map(|code| name_of(code)).collect();
            clients.push((subject.clone(), Signals { nodes, rows: signals.rows }));
        }
        let options = SignalsOptions { standardise: self.standardise, limit: self.limit };
        world::signals_world_at(clients, &options, topology)
    }
}

/// The file of a subject, in `rois_aal` or in the folder itself.
fn file_of(folder: &Path, subject: &str) -> Result<PathBuf, DataError> {
    const ENDING: &str = "_rois_aal.1D";
    let within = folder.join("rois_aal");
    let name = format!("{subject}{ENDING}");
    if let Some(file) = plain_or_packed(&within, &name).or_else(|| plain_or_packed(folder, &name)) {
        return Ok(file);
    }
    let mut known: Vec<String> = [within.as_path(), folder]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| {
            entry.file_name().to_str()?.split_once(ENDING).map(|(subject, _)| subject.to_string())
        })
        .collect();
    if known.is_empty() {
        return Err(PLACE.missing(folder.to_path_buf()));
    }
    known.sort_unstable();
    let hint = suggest(subject, known.iter().map(String::as_str));
    let message =
        format!("{subject:?} is not among the {} subjects in {}{hint}", known.len(), folder.display());
    Err(DataError::config("subjects", message))
}

/// The codes of the wanted regions, in order.
fn codes(regions: &[Region]) -> Result<Vec<String>, DataError> {
    let mut codes: Vec<String> = Vec::with_capacity(regions.len());
    for region in regions {
        let code = match region {
            Region::Name(name) => code_of(name)?,
            Region::Code(code) => code.to_string(),
        };
        if codes.contains(&code) {
            return Err(DataError::config(
                "regions",
                format!("{} is listed twice: drop one", name_of(&code)),
            ));
        }
        codes.push(code);
    }
    if codes.len() < 2 {
        let message = format!("{} regions were given: a graph needs at least 2 nodes", codes.len());
        return Err(DataError::config("regions", message));
    }
    Ok(codes)
}

/// All cerebral regions: code and name.
fn all() -> impl Iterator<Item = (u32, String)> {
    REGIONS.iter().flat_map(|(left, name)| [(*left, format!("{name}_L")), (left + 1, format!("{name}_R"))])
}

/// The name of a region, or its code where it is not a cerebral one.
fn name_of(code: &str) -> String {
    all().find(|(known, _)| known.to_string() == code).map_or_else(|| code.to_string(), |(_, name)| name)
}

fn code_of(name: &str) -> Result<String, DataError> {
    if name.parse::<u32>().is_ok() {
        return Ok(name.to_string());
    }
    let names: Vec<(u32, String)> = all().collect();
    names.iter().find(|(_, known)| known == name).map(|(code, _)| code.to_string()).ok_or_else(|| {
        let hint = suggest(name, names.iter().map(|(_, known)| known.as_str()));
        DataError::config("regions", format!("AAL has no cerebral region {name:?}{hint}"))
    })
}
