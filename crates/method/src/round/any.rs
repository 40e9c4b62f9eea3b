//! A method whose type is known only at run time.
//!
//! A row of the registry makes one where the type is known; drivers see the trait. It makes machines whose inner loops
//! are compiled for the method, so that a call through the trait is paid once per step, server or batch of messages,
//! never per client.

use super::audit::{self, Ground, Scene};
use super::machine::{self, Blueprint, ClientMachines, Joining, ServerMachine};
use super::pool::Pool;
use super::replay::{self, Replay};
use super::{Live, Mode, RunFault, Server, Simulation};
use crate::algorithm::{Algorithm, Phase, Run, Verdict};
use crate::federation::{Federation, Member};
use fedkin_learner::Dataset;
use fedkin_privacy::{Cost, Draws};
use std::any::Any;
use std::sync::Arc;

/// Takes who is asked in a run before it runs: step, client, what its answer costs, and the releases from Poisson
/// samples behind that price.
pub type Asked<'a> = dyn FnMut(u32, &Member, Cost, Option<&Draws>) + 'a;

/// A method that was built: every [`Algorithm`] is one.
pub trait AnyMethod: Send + Sync + 'static {
    /// Its name on the wire.
    fn name(&self) -> &'static str;
    /// Whether only a simulation may run it.
    fn simulation_only(&self) -> bool;
    /// Whether it can work with a federation: what is wrong and what to do.
    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String>;
    /// How many of the configured rounds are done after a step.
    fn rounds(&self, step: u32, run: &Run) -> u32;
    /// Plans all steps of a run without running them; false where the method does not know its prices. For methods
    /// whose plans do not depend on answers.
    fn forecast(&self, run: &Run, federation: &Federation, asked: &mut Asked<'_>) -> bool;
    /// Starts it in one process on a federation as the method sees it (see `Federation::arranged`), with one data set
    /// per client id.
    fn simulate(
        self: Arc<Self>,
        run: Run,
        federation: &Federation,
        data: &[Arc<Dataset>],
        pool: Arc<dyn Pool>,
    ) -> Result<Box<dyn Live>, RunFault>;
    /// These servers behind messages. A deployment asks [`Blueprint::servers`], which refuses what must not leave a
    /// simulation.
    fn servers(
        self: Arc<Self>,
        blueprint: &Blueprint<'_>,
        ids: &[u32],
        mode: Mode,
    ) -> Vec<Box<dyn ServerMachine>>;
    /// These clients behind messages. A deployment asks [`Blueprint::clients`].
    fn clients(
        self: Arc<Self>,
        blueprint: &Blueprint<'_>,
        joining: Vec<Joining>,
        pool: Arc<dyn Pool>,
    ) -> Result<Box<dyn ClientMachines>, RunFault>;
    /// The servers of a run whose answers were given elsewhere.
    fn replay(self: Arc<Self>, run: Run, federation: &Federation, pool: Arc<dyn Pool>) -> Box<dyn Replay>;
    /// Rehearses a run and takes the place of one client: the named one, or whoever spends most. `quiet` is the same
    /// method without noise, where it can be built.
    fn scene(
        self: Arc<Self>,
        quiet: Option<Arc<dyn AnyMethod>>,
        ground: &Ground<'_>,
        client: Option<u32>,
    ) -> Result<Box<dyn Scene>, RunFault>;
    /// The method itself, for whoever knows its type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<A: Algorithm> AnyMethod for A {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn simulation_only(&self) -> bool {
        A::SIMULATION_ONLY
    }

    fn suits(&self, federation: &Federation, run: &Run) -> Result<(), String> {
        Algorithm::suits(self, federation, run)
    }

    fn rounds(&self, step: u32, run: &Run) -> u32 {
        Algorithm::rounds(self, step, run)
    }

    fn forecast(&self, run: &Run, federation: &Federation, asked: &mut Asked<'_>) -> bool {
        for id in 0..federation.servers() as u32 {
            let mut server = Server::open(self, run, federation, id);
            let mut step = 1;
            while let Phase::Ask(_) = server.begin(self, run, step) {
                // Most methods charge all clients of a step the same.
                let mut last: Option<(u32, Cost, Option<Draws>)> = None;
                for (member, verdict) in server.members().iter().zip(server.verdicts()) {
                    if *verdict != Verdict::Asked {
                        continue;
                    }
                    if last.as_ref().is_none_or(|last| last.0 != member.samples) {
                        let Some(cost) = self.price(member, step) else { return false };
                        last = Some((member.samples, cost, self.draws(member, step)));
                    }
                    if let Some((_, cost, draws)) = &last {
                        asked(step, member, *cost, draws.as_ref());
                    }
                }
                step += 1;
            }
        }
        true
    }

    fn simulate(
        self: Arc<Self>,
        run: Run,
        federation: &Federation,
        data: &[Arc<Dataset>],
        pool: Arc<dyn Pool>,
    ) -> Result<Box<dyn Live>, RunFault> {
        Ok(Box::new(Simulation::new(self, run, federation, data, pool)?))
    }

    fn servers(
        self: Arc<Self>,
        blueprint: &Blueprint<'_>,
        ids: &[u32],
        mode: Mode,
    ) -> Vec<Box<dyn ServerMachine>> {
        machine::servers(self, blueprint, ids, mode)
    }

    fn clients(
        self: Arc<Self>,
        blueprint: &Blueprint<'_>,
        joining: Vec<Joining>,
        pool: Arc<dyn Pool>,
    ) -> Result<Box<dyn ClientMachines>, RunFault> {
        machine::clients(self, blueprint, joining, pool)
    }

    fn replay(self: Arc<Self>, run: Run, federation: &Federation, pool: Arc<dyn Pool>) -> Box<dyn Replay> {
        replay::replay(self, run, federation, pool)
    }

    fn scene(
        self: Arc<Self>,
        quiet: Option<Arc<dyn AnyMethod>>,
        ground: &Ground<'_>,
        client: Option<u32>,
    ) -> Result<Box<dyn Scene>, RunFault> {
        let quiet = quiet.and_then(|quiet| quiet.into_any().downcast::<A>().ok());
        audit::scene(self, quiet, ground, client)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
