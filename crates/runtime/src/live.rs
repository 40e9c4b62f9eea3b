//! A simulation whose method is known only at run time: erasure sits around the whole run.

use crate::local::{Fault, Opening, Simulation};
use crate::scores::{Judge, Summary};
use fedkin_core::algorithm::registry::{self, Visitor};
use fedkin_core::algorithm::{Algorithm, Context, FoundKin, Held, Run};
use fedkin_core::codec::Damaged;
use fedkin_core::params::Values;
use fedkin_core::privacy::{Account, Ledger, Statement};
use fedkin_core::round::Counts;
use fedkin_core::{Dataset, Federation};
use std::sync::Arc;

/// Takes the models of servers: server, cluster, name, parameters.
pub type Models<'a> = dyn FnMut(u32, u32, &'static str, &[f64]) + 'a;

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A round was run.
    Round(Counts),
    /// The method has delivered its models; there is nothing more to do.
    Ended,
}

/// A run in one process.
pub trait Live: Send {
    /// Runs the next step.
    fn step(&mut self) -> Result<Progress, Fault>;
    /// How many steps were run.
    fn steps(&self) -> u32;
    /// How many of the configured rounds are done: as many as steps, but for methods with several steps in a round.
    fn rounds(&self) -> u32 {
        self.steps()
    }
    /// Means over the clients of every column of the judge; a client without a value does not count.
    fn evaluate(&self, judge: &dyn Judge) -> Vec<Summary>;
    /// Every client's row of the judge, by client id.
    fn rows(&self, judge: &dyn Judge) -> Vec<Vec<f64>>;
    /// The power of what clients computed in the last step over the power of the noise on it, see
    /// [`Simulation::signal_to_noise`]; `None` where that is not known, as on nodes.
    fn signal_to_noise(&self) -> Option<f64> {
        None
    }
    /// Numbers about the servers' work after the last step, by name; none where a method has none.
    fn gauges(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
    /// Who was found to be kin of whom, by client id; nothing where the method does not find out.
    fn kin(&self) -> Option<FoundKin> {
        None
    }
    /// Lets what clients remember take at most so many bytes of memory; nothing on nodes, which have their own.
    fn limit_memory(&mut self, _bytes: u64) {}
    /// A client's own model, by client id.
    fn own_models(&self, out: &mut dyn FnMut(u32, &[f64]));
    /// The models the servers hold: server, cluster, name, parameters.
    fn held(&self, out: &mut Models<'_>);
    /// What was released.
    fn ledger(&self) -> &Ledger;
    /// What each client has spent, by client id.
    fn accounts(&self) -> Vec<Account>;
    /// Begins where earlier runs on the same data have ended, by client id. Before the first step.
    fn begin_at(&mut self, openings: &[Opening]);
    /// Sums up what leaves every client from now on.
    fn keep_statements(&mut self);
    /// What left every client, by client id; nothing where it was not kept.
    fn statements(&self) -> Option<Vec<Statement>>;
    /// All that must survive a restart between two steps.
    fn save(&self) -> Vec<u8>;
    /// Goes on from what `save` wrote.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), Damaged>;
}

impl<A: Algorithm> Live for Simulation<A> {
    fn step(&mut self) -> Result<Progress, Fault> {
        Simulation::step(self)
    }
    fn steps(&self) -> u32 {
        Simulation::steps(self)
    }
    fn limit_memory(&mut self, bytes: u64) {
        Simulation::limit_memory(self, bytes);
    }
    fn rounds(&self) -> u32 {
        Simulation::rounds(self)
    }
    fn evaluate(&self, judge: &dyn Judge) -> Vec<Summary> {
        Simulation::evaluate(self, judge)
    }
    fn rows(&self, judge: &dyn Judge) -> Vec<Vec<f64>> {
        Simulation::rows(self, judge)
    }
    fn signal_to_noise(&self) -> Option<f64> {
        Simulation::signal_to_noise(self)
    }
    fn gauges(&self) -> Vec<(String, f64)> {
        Simulation::gauges(self)
    }
    fn kin(&self) -> Option<FoundKin> {
        Simulation::kin(self)
    }
    fn own_models(&self, out: &mut dyn FnMut(u32, &[f64])) {
        Simulation::own_models(self, out);
    }
    fn held(&self, out: &mut Models<'_>) {
        for server in self.servers() {
            let id = server.id();
            let each: &mut Held<'_> = &mut |cluster, name, model| out(id, cluster, name, model);
            server.held(self.algorithm(), self.run(), each);
        }
    }
    fn ledger(&self) -> &Ledger {
        Simulation::ledger(self)
    }
    fn accounts(&self) -> Vec<Account> {
        Simulation::accounts(self)
    }
    fn begin_at(&mut self, openings: &[Opening]) {
        Simulation::begin_at(self, openings);
    }
    fn keep_statements(&mut self) {
        Simulation::keep_statements(self);
    }
    fn statements(&self) -> Option<Vec<Statement>> {
        Simulation::statements(self)
    }
    fn save(&self) -> Vec<u8> {
        Simulation::save(self)
    }
    fn restore(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        Simulation::restore(self, bytes)
    }
}

struct Start<'a> {
    run: Run,
    federation: &'a Federation,
    data: &'a [Arc<Dataset>],
}

impl Visitor for Start<'_> {
    type Output = Result<Box<dyn Live>, Fault>;
    fn visit<A: Algorithm>(self, algorithm: A) -> Self::Output {
        Ok(Box::new(Simulation::new(algorithm, self.run, self.federation, self.data)?))
    }
}

/// Starts the method of this name on a federation as the method sees it (see `Federation::arranged`),
/// with one data set per client id.
pub fn start(
    name: &str,
    values: &Values,
    context: &Context,
    run: Run,
    federation: &Federation,
    data: &[Arc<Dataset>],
) -> Result<Box<dyn Live>, Fault> {
    registry::visit(name, values, context, Start { run, federation, data }).map_err(Fault::Config)?
}
