//! The ledger that lasts: what one client released about one set of data, over all runs.
//!
//! Every line holds the hash of the line before it, and the first one a hash of the client's name and the
//! fingerprint of its data. So no line can be changed, left out, moved or taken from another chain without
//! the head changing, and whoever remembers a [`Head`] notices when a later one is behind it.

use super::ledger::{Account, Charge, Cost, Draws};
use super::refusal::Refusal;
use super::statement::Statement;
use fedkin_numeric::codec::{Codec, Context, Digest, Sink, context};
use std::sync::LazyLock;
use thiserror::Error;

fedkin_numeric::record! {
    /// One line: one release, or the note that a message left without one; or the sum of a kind over a run.
    pub struct ChainLine {
        /// Its number, from 1.
        seq: u64,
        /// The fingerprint of the run.
        run: [u8; 32],
        /// The step of the run, from 1.
        step: u32,
        /// What was released, or why nothing was.
        what: Box<[u8]>,
        /// By which mechanism; [`ChainLine::REFUSED`] and [`ChainLine::NOTHING`] are none.
        mechanism: Box<[u8]>,
        /// `enforced`, `assumed, not enforced`, or empty where no bound is behind the price.
        bound: Box<[u8]>,
        /// Standard deviation of the noise.
        sigma: f64,
        /// How many numbers left, in one message.
        size: u32,
        /// How many messages the line stands for: 1, or more where it sums up a run in one process.
        count: u64,
        /// The price, in units of 1e-12 zCDP; that of sampled releases as if nothing had been sampled.
        units: u64,
        /// Of releases from Poisson samples: what their price depends on; 0 for others.
        draws: Draws,
        /// What was spent on the data so far, this line included.
        spent: u64,
        /// The digest of the bytes that leave.
        sent: [u8; 32],
        /// The hash of the line before.
        previous: [u8; 32],
    }

    /// The end of a chain.
    pub struct Head {
        /// The number of the last line; 0 where there is none.
        seq: u64,
        /// Its hash.
        hash: [u8; 32],
    }

    /// The end of a chain and what its lines sum up to.
    pub struct Chain {
        /// The last line.
        head: Head,
        /// Units spent over all runs.
        spent: u64,
        /// Releases over all runs, disclosures included.
        releases: u64,
        /// Those from Poisson samples, priced alike together.
        sampled: Box<[Draws]>,
    }
}

static LINE: LazyLock<Context> = LazyLock::new(|| context("fedkin 2026 ledger line"));
static START: LazyLock<Context> = LazyLock::new(|| context("fedkin 2026 ledger start"));

/// A chain that does not hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("line {seq}: {why}")]
pub struct Broken {
    /// The number the line should have.
    pub seq: u64,
    /// What is wrong with it.
    pub why: &'static str,
}

impl ChainLine {
    /// The mechanism of a refusal.
    pub const REFUSED: &'static str = "refused";
    /// The mechanism of a message that does not depend on the data.
    pub const NOTHING: &'static str = "nothing";

    /// The hash that the next line holds.
    pub fn hash(&self) -> [u8; 32] {
        let mut digest = Digest::derived(&LINE);
        self.put(&mut digest);
        digest.finish()
    }

    /// Whether something that depends on the data left.
    pub fn is_release(&self) -> bool {
        ![Self::REFUSED, Self::NOTHING].iter().any(|word| word.as_bytes() == &*self.mechanism)
    }
}

impl Head {
    /// Whether this head cannot be the present end of a chain that once ended at `known`: the disk was rolled
    /// back, or the chain was written anew. A head further on needs the lines between to be sure.
    pub fn is_behind(&self, known: &Head) -> bool {
        self.seq < known.seq || (self.seq == known.seq && self.hash != known.hash)
    }
}

impl Chain {
    /// A chain without lines.
    pub fn start(client: &str, fingerprint: &[u8; 32]) -> Self {
        let mut digest = Digest::derived(&START);
        (client.len() as u64).put(&mut digest);
        digest.bytes(client.as_bytes());
        fingerprint.put(&mut digest);
        Self { head: Head { seq: 0, hash: digest.finish() }, ..Self::default() }
    }

    /// The account that a client continues with.
    pub fn account(&self, budget: Option<u64>) -> Account {
        Account { spent: self.spent, releases: self.releases, budget, sampled: self.sampled.clone() }
    }

    /// What was spent over all runs.
    pub fn total(&self) -> Cost {
        Cost::from_units(self.spent)
    }

    /// Writes down one message: a line per charge, or one that says that nothing about the data left.
    /// All name the digest of the bytes that are sent.
    pub fn extend(
        &mut self,
        charges: &[Charge],
        run: &[u8; 32],
        step: u32,
        sent: &[u8; 32],
    ) -> Vec<ChainLine> {
        if charges.is_empty() {
            return vec![self.empty(ChainLine::NOTHING, "", run, step, sent)];
        }
        let lines = charges.iter().map(|charge| ChainLine {
            run: *run,
            step,
            what: charge.what.as_bytes().into(),
            mechanism: charge.mechanism.as_bytes().into(),
            bound: charge.trust.map_or("", super::Trust::words).as_bytes().into(),
            sigma: charge.sigma,
            size: charge.size,
            units: charge.cost.units(),
            draws: charge.draws().unwrap_or_default(),
            sent: *sent,
            ..ChainLine::default()
        });
        lines.map(|line| self.add(line)).collect()
    }

    /// Writes down a refusal: it costs nothing, but it is a message, and its digest is noted before it leaves.
    pub fn refuse(&mut self, why: Refusal, run: &[u8; 32], step: u32, sent: &[u8; 32]) -> Vec<ChainLine> {
        vec![self.empty(ChainLine::REFUSED, &why.to_string(), run, step, sent)]
    }

    /// Writes down a whole run, a line per kind: what a run in one process is charged with. `sent` is a digest of
    /// what the run gave.
    pub fn state(&mut self, statement: &Statement, run: &[u8; 32], sent: &[u8; 32]) -> Vec<ChainLine> {
        let lines =
            statement.entries.iter().map(|entry| ChainLine { run: *run, sent: *sent, ..entry.line() });
        lines.map(|line| self.add(line)).collect()
    }

    fn empty(
        &mut self,
        mechanism: &str,
        what: &str,
        run: &[u8; 32],
        step: u32,
        sent: &[u8; 32],
    ) -> ChainLine {
        self.add(ChainLine {
            run: *run,
            step,
            what: what.as_bytes().into(),
            mechanism: mechanism.as_bytes().into(),
            sent: *sent,
            ..ChainLine::default()
        })
    }

    fn add(&mut self, mut line: ChainLine) -> ChainLine {
        line.seq = self.head.seq + 1;
        line.count = line.count.max(1);
        line.previous = self.head.hash;
        line.spent = self.spent.saturating_add(line.units);
        self.take(&line);
        line
    }

    fn take(&mut self, line: &ChainLine) {
        self.head = Head { seq: line.seq, hash: line.hash() };
        self.spent = line.spent;
        self.releases += if line.is_release() { line.count } else { 0 };
        if line.draws.steps > 0 {
            Draws::count(&mut self.sampled, &line.draws);
        }
    }

    /// Goes on by one line that was written earlier, if it belongs here.
    pub fn follow(&mut self, line: &ChainLine) -> Result<(), Broken> {
        let seq = self.head.seq + 1;
        let broken = |why| Err(Broken { seq, why });
        if line.seq != seq {
            return broken("it is missing, or out of order");
        }
        if line.previous != self.head.hash {
            return broken("the line before it was changed, or belongs to another chain");
        }
        if line.spent != self.spent.saturating_add(line.units) {
            return broken("its total is not the sum of the lines");
        }
        if line.count == 0 {
            return broken("it stands for no message");
        }
        if (line.units > 0 || line.draws.steps > 0) && !line.is_release() {
            return broken("it names a price and no release");
        }
        if line.draws.steps > 0 && line.draws.unsampled() != Some(Cost::from_units(line.units)) {
            return broken("its price is not that of its sampled releases");
        }
        self.take(line);
        Ok(())
    }

    /// The chain after all these lines, or the first line that does not belong. A changed last line, or lines
    /// missing at the end, show in the head alone: compare it with one that was known.
    pub fn verify<'a>(mut self, lines: impl IntoIterator<Item = &'a ChainLine>) -> Result<Self, Broken> {
        for line in lines {
            self.follow(line)?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Trust;
    use super::*;

    const DATA: [u8; 32] = [7; 32];

    fn charge(units: u64) -> Charge {
        let cost = Cost::from_units(units);
        Charge {
            what: "model",
            mechanism: "gaussian",
            trust: Some(Trust::Enforced),
            sigma: 0.5,
            cost,
            size: 3,
            steps: 1,
            sampled: None,
        }
    }

    fn start() -> Chain {
        Chain::start("ward-1", &DATA)
    }

    fn sample() -> (Chain, Vec<ChainLine>) {
        let mut chain = start();
        let mut lines = chain.extend(&[charge(5), charge(6)], &[1; 32], 1, &[11; 32]);
        lines.extend(chain.extend(&[], &[1; 32], 2, &[12; 32]));
        lines.extend(chain.refuse(Refusal::Budget, &[1; 32], 3, &[13; 32]));
        lines.extend(chain.extend(&[charge(7)], &[2; 32], 1, &[14; 32]));
        (chain, lines)
    }

    #[test]
    fn a_step_gives_a_line_per_charge_and_never_none() {
        let (chain, lines) = sample();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines.iter().map(|line| line.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!((chain.spent, chain.releases), (18, 3));
        assert_eq!(lines[0].sent, lines[1].sent);
        assert_eq!((&*lines[2].mechanism, lines[2].units), (&b"nothing"[..], 0));
        assert_eq!((&*lines[3].mechanism, lines[3].units), (&b"refused"[..], 0));
        assert_eq!(&*lines[3].what, b"the privacy budget is spent");
        assert_eq!(
            chain.account(Some(20)),
            Account { spent: 18, releases: 3, budget: Some(20), ..Account::default() }
        );
        assert_eq!(start().verify(&lines), Ok(chain));
    }

    #[test]
    fn every_edit_of_a_line_in_the_middle_is_noticed() {
        let (chain, lines) = sample();
        for at in 0..lines.len() {
            let bytes = lines[at].to_bytes();
            for byte in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[byte] ^= 1;
                let Ok(line) = ChainLine::from_bytes(&changed) else { continue };
                let mut lines = lines.clone();
                lines[at] = line;
                match start().verify(&lines) {
                    Err(broken) => assert!(broken.seq == at as u64 + 1 || broken.seq == at as u64 + 2),
                    // Nothing seals the last line but the head.
                    Ok(found) => assert!(at + 1 == lines.len() && found.head.is_behind(&chain.head)),
                }
            }
        }
    }

    #[test]
    fn deletion_reordering_truncation_and_foreign_lines_are_noticed() {
        let (chain, lines) = sample();
        for at in 0..lines.len() - 1 {
            let mut fewer = lines.clone();
            fewer.remove(at);
            assert_eq!(start().verify(&fewer).unwrap_err().seq, at as u64 + 1);
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            assert_eq!(start().verify(&swapped).unwrap_err().seq, at as u64 + 1);
            let shorter = start().verify(&lines[..at]).unwrap();
            assert!(shorter.head.is_behind(&chain.head) && !chain.head.is_behind(&shorter.head));
        }
        assert!(!chain.head.is_behind(&chain.head));
        for other in [Chain::start("ward-2", &DATA), Chain::start("ward-1", &[8; 32])] {
            assert_eq!(other.verify(&lines).unwrap_err().seq, 1);
        }
    }

    /// Sampled releases of all runs are known to the account, and a line whose price is not theirs is noticed.
    #[test]
    fn sampled_releases_are_carried_from_line_to_line() {
        let sampled = |multiplier: f64, steps: u32| {
            let draws = Draws { multiplier, rate: 0.1, steps: u64::from(steps) };
            Charge { steps, sampled: Some((multiplier, 0.1)), ..charge(draws.unsampled().unwrap().units()) }
        };
        let mut chain = start();
        let mut lines = chain.extend(&[sampled(1.5, 4), charge(9)], &[1; 32], 1, &[11; 32]);
        lines.extend(chain.extend(&[sampled(1.5, 2)], &[2; 32], 1, &[12; 32]));
        lines.extend(chain.extend(&[sampled(3.0, 1)], &[2; 32], 2, &[13; 32]));
        let kinds: Vec<(f64, u64)> =
            chain.sampled.iter().map(|draws| (draws.multiplier, draws.steps)).collect();
        assert_eq!(kinds, [(1.5, 6), (3.0, 1)]);
        let mut account = Account::default();
        account.pay(&[sampled(1.5, 6), sampled(3.0, 1), charge(9)]);
        assert_eq!((account.spent, &account.sampled), (chain.spent, &chain.sampled));
        assert_eq!(start().verify(&lines), Ok(chain));
        // Fewer steps than were paid for, or a milder rate, is another line: its hash is not the one that was sealed.
        for edit in [|draws: &mut Draws| draws.steps -= 1, |draws: &mut Draws| draws.rate = 0.01] {
            let mut lines = lines.clone();
            edit(&mut lines[0].draws);
            assert!(start().verify(&lines).is_err());
        }
        lines.truncate(1);
        lines[0].draws.steps = 3;
        assert_eq!(start().verify(&lines).unwrap_err().why, "its price is not that of its sampled releases");
        lines[0].draws.steps = 4;
        lines[0].mechanism = b"nothing".as_slice().into();
        assert_eq!(start().verify(&lines).unwrap_err().why, "it names a price and no release");
    }

    #[test]
    fn a_chain_that_was_hashed_anew_still_has_to_add_up() {
        let (_, mut lines) = sample();
        lines.truncate(1);
        lines[0].units = 0;
        assert_eq!(start().verify(&lines).unwrap_err().why, "its total is not the sum of the lines");
        lines[0].spent = 0;
        assert!(start().verify(&lines).is_ok());
        lines[0].mechanism = b"refused".as_slice().into();
        (lines[0].units, lines[0].spent) = (5, 5);
        assert_eq!(start().verify(&lines).unwrap_err().why, "it names a price and no release");
    }
}
