//! `kin.by = "rewards"`: a run of `PersFL` finds the clusters that the run itself then uses.

use crate::control::Control;
use crate::error::Error;
use crate::kin::numbered_alike;
use crate::plan::{Plan, Stage};
use fedkin_data::{DataError, World};
use fedkin_method::round::Progress;
use fedkin_method::{Algorithm, FoundKin, PersFl};
use fedkin_privacy::Line;

/// What a first stage has found, and what left the clients for it.
#[derive(Debug, Clone)]
pub struct Discovery {
    /// Who was found to be kin of whom.
    pub kin: FoundKin,
    /// What left the clients.
    pub ledger: Vec<Line>,
}

/// Runs the first stage on a repeat's data, where there is one: the world in the clusters it found.
pub(crate) fn discover(
    plan: &Plan,
    world: World,
    repeat: u32,
    control: &Control<'_>,
) -> Result<(World, Option<Discovery>), Error> {
    if !plan.kin.by_rewards() {
        return Ok((world, None));
    }
    let search = plan.discovery()?;
    let Stage { mut live, .. } = search.start(&world, repeat)?;
    let named = |fault| Error::of(fault, &search.arranged(&world.federation));
    while live.step().map_err(named)? != Progress::Ended {
        if control.stopped() {
            let place =
                format!("round {} of the search for kin; the same command begins it again", live.rounds());
            return Err(Error::Interrupted(place));
        }
    }
    let clients = world.train.len();
    let Some(kin) = live.kin().filter(|kin| kin.clusters.len() == clients) else {
        return Err(Error::Usage(format!(
            "{} found no cluster for some of the {clients} clients: raise kin.search_rounds, or give the clusters as a file",
            PersFl::NAME
        )));
    };
    let mut names: Vec<u32> = kin.clusters.iter().map(|(_, cluster)| *cluster).collect();
    names.sort_unstable();
    names.dedup();
    let given: Vec<u32> =
        kin.clusters.iter().map(|(_, cluster)| names.partition_point(|name| name < cluster) as u32).collect();
    let called = crate::kin::Names::new(&kin);
    let words: Vec<String> = names.iter().map(|&cluster| called.of(cluster)).collect();
    let (given, words) = numbered_alike(&world.federation, &given, &words);
    let federation = world.federation.clustered(&given, words).map_err(DataError::from)?;
    // The clusters follow from the data and the config: to a resumed run the data are what they were.
    let fingerprint = world.fingerprint;
    let world = World { fingerprint, ..world.regrouped(federation) };
    Ok((world, Some(Discovery { ledger: live.ledger().lines.clone(), kin })))
}
