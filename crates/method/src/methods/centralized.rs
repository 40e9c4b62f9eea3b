//! Centralized: all records of a cluster at one place. The other end of the scale; simulation only.
//!
//! Objective for cluster q: the minimiser of the sum of f_k, equation (16), over the cluster's clients. The row `pooled` is the
//! same with one cluster: one model from the records of all clients, every client counting alike. Trees, neighbours and
//! forests are fitted to all records alike, once for each kind that the cluster's clients have.

use crate::algorithm::{
    Algorithm, Ask, Cells, Closed, Held, Now, Personal, Phase, ROUND, Run, Seats, ServerView,
};
use crate::families::Families;
use crate::federation::{Federation, Member};
use crate::registry::{Context, Method};
use crate::sent_as_released;
use fedkin_learner::hypothesis::Sample;
use fedkin_learner::model::Unsolved;
use fedkin_learner::{Abilities, Dataset, Share};
use fedkin_numeric::buffers::Buffers;
use fedkin_numeric::record;
use fedkin_numeric::rng::PublicRng;
use fedkin_privacy::{Gate, Refusal, Released};
use fedkin_settings::settings;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Centralized(Families);

record! {
    /// Raw records: features row by row, then targets.
    pub struct Records { features: Vec<f64>, targets: Vec<f64> }
    /// The model of a client's cluster.
    pub struct Served { model: Vec<f64> }
}

settings! {
    /// The method has no keys.
    pub struct CentralizedSettings {}
}

impl Method for Centralized {
    type Settings = CentralizedSettings;
    const NEEDS: Abilities = Abilities::FIT.and(Abilities::PREDICT);

    fn build(_: CentralizedSettings, context: &Context) -> Result<Self, String> {
        if context.privacy.demanded() {
            return Err(format!("{} pools raw records: set privacy.mechanism = \"none\" for it", Self::NAME));
        }
        Ok(Self(context.families.clone()))
    }
}

impl Centralized {
    /// Where the model of a client is: by cluster, then by family.
    fn place(&self, member: &Member, run: &Run) -> usize {
        member.cluster as usize * self.0.count() + run.learner(member.id)
    }

    /// The model of the records of a cluster.
    fn pool(
        &self,
        seats: &Seats<'_, Records>,
        closed: &Closed<'_>,
        cluster: u32,
        kind: usize,
    ) -> Option<Vec<f64>> {
        let members = closed.now.at.members;
        let (mut features, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        let mut clients = 0;
        for position in closed.values().filter(|i| members[*i].cluster == cluster) {
            let records = seats.get(position);
            features.extend_from_slice(&records.features);
            targets.extend_from_slice(&records.targets);
            weights.resize(targets.len(), 1.0 / records.targets.len() as f64);
            clients += 1;
        }
        let family = self.0.get(kind)?;
        let share = if family.has().contain(Abilities::PARAMETERS) {
            // The sum of the clients' objectives: each record counts as it does at home.
            Share { of: f64::from(clients), among: members.len() as f64 }
        } else {
            weights.fill(1.0);
            Share::one_of(members.len())
        };
        let columns = features.len().checked_div(targets.len())?;
        family.fit(&Sample { columns, features: &features, targets: &targets, weights: &weights }, share).ok()
    }
}

impl Algorithm for Centralized {
    const NAME: &'static str = "centralized";
    const VERSION: u16 = 2;
    const PERSONAL: &'static [&'static str] = &["client"];
    const SHARED: &'static [bool] = &[true];
    const SIMULATION_ONLY: bool = true;
    type Local = Arc<Dataset>;
    type Memory = ();
    /// By cluster, then by kind.
    type Server = Box<[Vec<f64>]>;
    type Seat = Records;
    type Common = ();
    type Down = Served;
    type Up = Records;
    type Share = ();

    sent_as_released!();

    fn open(&self, at: ServerView<'_>, _: &mut PublicRng) -> Self::Server {
        let columns = at.run.columns.unwrap_or(at.run.dimension);
        let first: Vec<Vec<f64>> = self.0.all().map(|family| family.constant(columns)).collect();
        (0..at.run.clusters).flat_map(|_| first.clone()).collect()
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) -> Records {
        Records::default()
    }

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        self.0.one_output(federation, run, |member| member.cluster)
    }

    fn phase(&self, _: &Self::Server, step: u32, _: &Run) -> Phase {
        if step == 1 { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    fn plan(&self, _: &mut Self::Server, _: &mut Seats<'_, Records>, _: Now<'_>) -> crate::algorithm::Who {
        crate::algorithm::Who::All
    }

    fn down(&self, server: &Self::Server, _: &Records, now: Now<'_>, member: &Member, out: &mut Served) {
        out.model.clone_from(&server[self.place(member, now.at.run)]);
    }

    fn fits(&self, _: &Records, now: Now<'_>, up: &Records) -> bool {
        let columns = now.at.run.columns.unwrap_or(now.at.run.dimension);
        up.features.len() == up.targets.len() * columns
    }

    /// Raw records may be as large as they are; they were finite when they were loaded.
    fn check(&self, seat: &Records, now: Now<'_>, up: &Records) -> Result<(), crate::algorithm::Reject> {
        if self.fits(seat, now, up) { Ok(()) } else { Err(crate::algorithm::Reject::Shape) }
    }

    fn absorb(
        &self,
        _: &Self::Server,
        seat: &mut Records,
        _: Now<'_>,
        _: &Member,
        up: &Records,
        _: &mut Cells,
    ) {
        seat.clone_from(up);
    }

    fn close(
        &self,
        server: &mut Self::Server,
        seats: &mut Seats<'_, Records>,
        closed: &Closed<'_>,
        _: &Cells,
    ) {
        let at = closed.now.at;
        let wanted: BTreeSet<usize> = at.members.iter().map(|member| self.place(member, at.run)).collect();
        for (place, model) in server.iter_mut().enumerate() {
            let (cluster, kind) = (place / self.0.count(), place % self.0.count());
            if !wanted.contains(&place) {
                // Nobody in the cluster has this kind.
                model.clear();
            } else if let Some(fitted) = self.pool(seats, closed, cluster as u32, kind) {
                *model = fitted;
            }
        }
    }

    /// Of several kinds the first that the cluster's clients have.
    fn held(&self, server: &Self::Server, _: &Run, out: &mut Held<'_>) {
        for (cluster, models) in server.chunks(self.0.count()).enumerate() {
            if let Some(model) = models.iter().find(|model| !model.is_empty()) {
                out(cluster as u32, "served", model);
            }
        }
    }

    fn join(&self, data: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<Arc<Dataset>, Unsolved> {
        Ok(Arc::clone(data))
    }

    fn client<'g>(
        &self,
        mine: &Arc<Dataset>,
        (): &mut (),
        _: Ask<'_, Self>,
        gate: &mut Gate<'g>,
        _: &mut Buffers,
        _: Records,
    ) -> Result<Released<'g, Records>, Refusal> {
        let records = Records { features: mine.features().to_vec(), targets: mine.targets().to_vec() };
        gate.disclose("raw records", records)
    }

    fn personal(&self, _: &Arc<Dataset>, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &served.down().model);
    }
}
