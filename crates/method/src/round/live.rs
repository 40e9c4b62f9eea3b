//! A run whose method is known only at run time: erasure sits around the whole run. What drives it and what it gives
//! are two traits, because the results of nodes on other machines can be collected and not driven.

use super::Stop;
use super::local::{Opening, RunFault};
use super::scores::{Judge, Summary};
use crate::algorithm::{Counts, FoundKin, Verdict};
use fedkin_numeric::codec::Damaged;
use fedkin_privacy::{Account, Ledger, MakeSpill, Statement};

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

/// What a run has come to so far.
pub trait Results: Send {
    /// How many steps were run.
    fn steps(&self) -> u32;
    /// How many of the configured rounds are done: as many as steps, but for methods with several steps in a round.
    fn rounds(&self) -> u32;
    /// Means over the clients of every column of the judge; a client without a value does not count.
    fn evaluate(&self, judge: &dyn Judge) -> Vec<Summary>;
    /// Every client's row of the judge, by client id.
    fn rows(&self, judge: &dyn Judge) -> Vec<Vec<f64>>;
    /// The mean of |w|^2 / (n sigma^2) over the clients whose uploads counted in the last step: w is what the client
    /// computed, n its numbers and sigma the noise on each. `None` where that is not known: the method does not send
    /// a model with noise, nobody answered, or the clients are on other machines.
    fn signal_to_noise(&self) -> Option<f64>;
    /// Numbers about the servers' work after the last step, by name: means over the servers that have them.
    fn gauges(&self) -> Vec<(String, f64)>;
    /// Who was found to be kin of whom, by client id; nothing where the method does not find out.
    fn kin(&self) -> Option<FoundKin>;
    /// The models of every client: client id, which of the method's names, parameters. By client id.
    fn models(&self, out: &mut dyn FnMut(u32, usize, &[f64]));
    /// A client's own model (the first of its named models), by client id.
    fn own_models(&self, out: &mut dyn FnMut(u32, &[f64])) {
        self.models(&mut |id, which, model| {
            if which == 0 {
                out(id, model);
            }
        });
    }
    /// The models the servers hold: server, cluster, name, parameters.
    fn held(&self, out: &mut Models<'_>);
    /// What was released.
    fn ledger(&self) -> &Ledger;
    /// What each client has spent, by client id.
    fn accounts(&self) -> Vec<Account>;
    /// What left every client, by client id; nothing where it was not kept.
    fn statements(&self) -> Option<Vec<Statement>>;
}

/// A run in one process.
pub trait Live: Results {
    /// Runs the next step.
    fn step(&mut self) -> Result<Progress, RunFault>;
    /// Lets what clients remember take at most so many bytes of memory; above, it goes to a spill that `make` makes.
    fn limit_memory(&mut self, bytes: u64, make: MakeSpill);
    /// Begins where earlier runs on the same data have ended, by client id. Before the first step.
    fn begin_at(&mut self, openings: &[Opening]);
    /// Sums up what leaves every client from now on.
    fn keep_statements(&mut self);
    /// Why the run cannot go on, where a step has shown it.
    fn stop(&self) -> Option<&Stop>;
    /// What became of each client of a server in the last step, by position.
    fn verdicts(&self, server: u32) -> &[Verdict];
    /// The whole state of a server as bytes.
    fn state(&self, server: u32) -> Vec<u8>;
    /// All that must survive a restart between two steps.
    fn save(&self) -> Vec<u8>;
    /// Goes on from what `save` wrote.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), Damaged>;
}

/// The mean of the values of each name, in the order in which names come up.
pub fn means<N: PartialEq + Into<String>>(values: impl IntoIterator<Item = (N, f64)>) -> Vec<(String, f64)> {
    let mut all: Vec<(N, f64, f64)> = Vec::new();
    for (name, value) in values {
        match all.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + value, *count + 1.0),
            None => all.push((name, value, 1.0)),
        }
    }
    all.into_iter().map(|(name, sum, count)| (name.into(), sum / count)).collect()
}
