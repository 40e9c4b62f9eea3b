//! Centralized: all records of a cluster at one place. The other end of the scale; simulation only.
//!
//! Objective for cluster q: the minimiser of the sum of f_k, equation (16), over the cluster's clients. The row `pooled` is the
//! same with one cluster: one model from the records of all clients, every client counting alike. Trees, neighbours and
//! forests are fitted to all records alike, once for each kind that the cluster's clients have.

use super::registry::Method;
use super::{
    Algorithm, Ask, Cells, Closed, Context, Held, Now, Personal, Phase, ROUND, Run, Seats, ServerView,
};
use crate::dataset::Dataset;
use crate::federation::Member;
use crate::hypothesis::{Kinds, Sample, constant};
use crate::model::{Parametric, Problem, Unsolved};
use crate::params::{Param, Values};
use crate::privacy::{Gate, Refusal, Released};
use crate::record;
use crate::rng::PublicRng;
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Centralized(Fits);

/// What is fitted.
#[derive(Debug, Clone)]
enum Fits {
    Parameters(Parametric),
    Hypotheses(Kinds),
}

record! {
    /// Raw records: features row by row, then targets.
    pub struct Records { features: Vec<f64>, targets: Vec<f64> }
    /// The model of a client's cluster.
    pub struct Served { model: Vec<f64> }
}

impl Method for Centralized {
    const PARAMS: &'static [Param] = &[];

    fn build(_: &Values, context: &Context) -> Result<Self, String> {
        if context.privacy.demanded() {
            return Err("centralized pools raw records: set privacy.mechanism = \"none\" for it".into());
        }
        Ok(Self(match &context.problem {
            Problem::Agnostic(kinds) => Fits::Hypotheses(*kinds),
            problem => Fits::Parameters(problem.solvable()?),
        }))
    }
}

impl Centralized {
    /// How many models a cluster has.
    fn kinds(&self) -> usize {
        match &self.0 {
            Fits::Parameters(_) => 1,
            Fits::Hypotheses(kinds) => kinds.all().len(),
        }
    }

    /// Where the model of a client is.
    fn place(&self, member: &Member) -> usize {
        let kind = match &self.0 {
            Fits::Parameters(_) => 0,
            Fits::Hypotheses(kinds) => kinds.number_of(member.id),
        };
        member.cluster as usize * self.kinds() + kind
    }

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
        match &self.0 {
            Fits::Parameters(model) => {
                let columns = model.prepared_columns(closed.now.at.run.dimension);
                let data = Dataset::new(columns, features, targets).ok()?;
                let strength = model.regularisation() * f64::from(clients) / members.len() as f64;
                model.fit(&data, &weights, strength).ok()
            }
            Fits::Hypotheses(kinds) => {
                weights.fill(1.0);
                let columns = closed.now.at.run.dimension;
                let sample = Sample { columns, features: &features, targets: &targets, weights: &weights };
                kinds.all()[kind].fit(&sample, members.len()).ok()
            }
        }
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

    fn open(&self, at: ServerView<'_>, _: &mut PublicRng) -> Self::Server {
        let first = match &self.0 {
            Fits::Parameters(_) => vec![0.0; at.run.dimension],
            Fits::Hypotheses(kinds) => constant(at.run.dimension, if kinds.classes() { 0.5 } else { 0.0 }),
        };
        vec![first; at.run.clusters * self.kinds()].into()
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) -> Records {
        Records::default()
    }

    fn phase(&self, _: &Self::Server, step: u32, _: &Run) -> Phase {
        if step == 1 { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    fn plan(&self, _: &mut Self::Server, _: &mut Seats<'_, Records>, _: Now<'_>) -> super::Who {
        super::Who::All
    }

    fn down(&self, server: &Self::Server, _: &Records, _: Now<'_>, member: &Member, out: &mut Served) {
        out.model.clone_from(&server[self.place(member)]);
    }

    fn fits(&self, _: &Records, now: Now<'_>, up: &Records) -> bool {
        let columns = match &self.0 {
            Fits::Parameters(model) => model.prepared_columns(now.at.run.dimension),
            Fits::Hypotheses(_) => now.at.run.dimension,
        };
        up.features.len() == up.targets.len() * columns
    }

    /// Raw records may be as large as they are; they were finite when they were loaded.
    fn check(&self, seat: &Records, now: Now<'_>, up: &Records) -> Result<(), super::Reject> {
        if self.fits(seat, now, up) { Ok(()) } else { Err(super::Reject("wrong shape")) }
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
        for (place, model) in server.iter_mut().enumerate() {
            let (cluster, kind) = (place / self.kinds(), place % self.kinds());
            if let Some(fitted) = self.pool(seats, closed, cluster as u32, kind) {
                *model = fitted;
            }
        }
    }

    /// Of several kinds the first.
    fn held(&self, server: &Self::Server, _: &Run, out: &mut Held<'_>) {
        for (cluster, model) in server.iter().step_by(self.kinds()).enumerate() {
            out(cluster as u32, "served", model);
        }
    }

    fn join(&self, data: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<Arc<Dataset>, Unsolved> {
        Ok(match &self.0 {
            Fits::Parameters(model) => model.prepare(data),
            Fits::Hypotheses(_) => Arc::clone(data),
        })
    }

    fn client(
        &self,
        mine: &Arc<Dataset>,
        (): &mut (),
        _: Ask<'_, Self>,
        gate: &mut Gate<'_>,
        _: Records,
    ) -> Result<Released<Records>, Refusal> {
        let records = Records { features: mine.features().to_vec(), targets: mine.targets().to_vec() };
        gate.disclose("raw records", records)
    }

    fn personal(&self, _: &Arc<Dataset>, (): &(), served: Ask<'_, Self>, out: &mut Personal<'_>) {
        out("client", &served.down().model);
    }
}
