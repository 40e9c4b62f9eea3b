//! Centralized: all records of a cluster at one place. The other end of the scale; simulation only.
//!
//! Objective for cluster q: the minimiser of the sum of f_k, equation (16), over the cluster's clients.

use super::registry::Method;
use super::{
    Algorithm, Ask, Cells, Closed, Context, Held, Now, Personal, Phase, ROUND, Run, Seats, ServerView,
};
use crate::dataset::Dataset;
use crate::federation::Member;
use crate::model::{Model, Unsolved, fit};
use crate::params::{Param, Values};
use crate::privacy::{Gate, Refusal, Released};
use crate::record;
use crate::rng::PublicRng;
use std::sync::Arc;

/// The method.
#[derive(Debug, Clone)]
pub struct Centralized {
    model: Model,
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
        Ok(Self { model: context.problem.linear()? })
    }
}

impl Centralized {
    fn pool(&self, seats: &Seats<'_, Records>, closed: &Closed<'_>, cluster: u32) -> Option<Vec<f64>> {
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
        let data = Dataset::new(closed.now.at.run.dimension, features, targets).ok()?;
        let strength = self.model.regularisation * f64::from(clients) / members.len() as f64;
        fit(&self.model, &data, &weights, strength).ok()
    }
}

impl Algorithm for Centralized {
    const NAME: &'static str = "centralized";
    const PERSONAL: &'static [&'static str] = &["client"];
    const SHARED: &'static [bool] = &[true];
    const SIMULATION_ONLY: bool = true;
    type Local = Arc<Dataset>;
    type Memory = ();
    /// One model per cluster, one after the other.
    type Server = Vec<f64>;
    type Seat = Records;
    type Common = ();
    type Down = Served;
    type Up = Records;
    type Share = ();

    fn open(&self, at: ServerView<'_>, _: &mut PublicRng) -> Vec<f64> {
        vec![0.0; at.run.clusters * at.run.dimension]
    }

    fn seat(&self, _: ServerView<'_>, _: &Member) -> Records {
        Records::default()
    }

    fn phase(&self, _: &Vec<f64>, step: u32, _: &Run) -> Phase {
        if step == 1 { Phase::Ask(ROUND) } else { Phase::Deliver }
    }

    fn plan(
        &self,
        _: &mut Vec<f64>,
        _: &mut Seats<'_, Records>,
        _: Now<'_>,
        _: &mut PublicRng,
    ) -> super::Who {
        super::Who::All
    }

    fn down(&self, server: &Vec<f64>, _: &Records, now: Now<'_>, member: &Member, out: &mut Served) {
        let (q, d) = (member.cluster as usize, now.at.run.dimension);
        out.model.clear();
        out.model.extend_from_slice(&server[q * d..(q + 1) * d]);
    }

    fn fits(&self, _: &Records, now: Now<'_>, up: &Records) -> bool {
        up.features.len() == up.targets.len() * now.at.run.dimension
    }

    /// Raw records may be as large as they are; they were finite when they were loaded.
    fn check(&self, seat: &Records, now: Now<'_>, up: &Records) -> Result<(), super::Reject> {
        if self.fits(seat, now, up) { Ok(()) } else { Err(super::Reject("wrong shape")) }
    }

    fn absorb(&self, _: &Vec<f64>, seat: &mut Records, _: Now<'_>, _: &Member, up: &Records, _: &mut Cells) {
        seat.clone_from(up);
    }

    fn close(&self, server: &mut Vec<f64>, seats: &mut Seats<'_, Records>, closed: &Closed<'_>, _: &Cells) {
        let dimension = closed.now.at.run.dimension;
        for (q, model) in server.chunks_exact_mut(dimension).enumerate() {
            if let Some(fitted) = self.pool(seats, closed, q as u32) {
                model.copy_from_slice(&fitted);
            }
        }
    }

    fn held(&self, server: &Vec<f64>, run: &Run, out: &mut Held<'_>) {
        for (q, model) in server.chunks_exact(run.dimension).enumerate() {
            out(q as u32, "served", model);
        }
    }

    fn join(&self, data: &Arc<Dataset>, _: ServerView<'_>, _: &Member) -> Result<Arc<Dataset>, Unsolved> {
        Ok(self.model.prepare(data))
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
