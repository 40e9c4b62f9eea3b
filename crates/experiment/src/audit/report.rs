//! What an audit found, and what that says about the claim.

use serde::Serialize;

/// What the ledger says of the audited releases.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// Epsilon of all audited releases together.
    pub epsilon: f64,
    /// At this delta.
    pub delta: f64,
    /// The price in the ledger.
    pub zcdp: f64,
    /// Whether the bound behind it is enforced.
    pub trust: String,
}

/// What the runs on one pair of data sets showed.
#[derive(Debug, Clone, Serialize)]
pub struct Neighbour {
    /// How the pair was found: `worst case` or `typical`.
    pub kind: &'static str,
    /// What differs.
    pub what: String,
    /// How a transcript was scored: `likelihood ratio` or `projection`.
    pub score: &'static str,
    /// The lower confidence bound on epsilon.
    pub bound: f64,
    /// The same for Gaussian releases, where all are: often far closer.
    pub bound_gaussian: Option<f64>,
    /// Epsilon computed from the means, least and largest over the transcripts seen; where means are known.
    pub exact: Option<[f64; 2]>,
    /// Which data set an alarm named: `second` or `first`.
    pub direction: &'static str,
    /// Alarms on the data set they named.
    pub right_alarms: u32,
    /// Alarms on the other one.
    pub wrong_alarms: u32,
    /// Counted runs on each.
    pub counted: u32,
}

/// Whether the claim survived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing was found against it.
    Holds,
    /// It is refuted.
    Broken,
}

/// What an audit found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The config's name, or the fixture's.
    pub name: String,
    /// The method.
    pub algorithm: String,
    /// The audited client.
    pub client: String,
    /// Its records.
    pub records: u32,
    /// Audited rounds, from the first.
    pub rounds: u32,
    /// Rounds of the config.
    pub all_rounds: u32,
    /// Answers of the client in them.
    pub releases: u32,
    /// What is claimed for them.
    pub claim: Claim,
    /// The largest lower confidence bound on epsilon.
    pub bound: f64,
    /// The same for Gaussian releases, where all are.
    pub bound_gaussian: Option<f64>,
    /// Epsilon computed from the means, where they are known: at least this.
    pub exact: Option<f64>,
    /// The largest `bound` that so many runs can show.
    pub cap: f64,
    /// The chance that all bounds hold.
    pub confidence: f64,
    /// Runs on each data set.
    pub runs: u32,
    /// The audit's randomness.
    pub seed: u64,
    /// Whether the claim survived.
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
    /// The pair with the largest bound; nothing where no data left the client.
    pub worst: Option<Neighbour>,
    /// All pairs.
    pub neighbours: Vec<Neighbour>,
}

impl Report {
    /// Compares what was found with the claim.
    pub(super) fn judge(&mut self, gaussian: bool) {
        let most = |value: fn(&Neighbour) -> f64| self.neighbours.iter().map(value).fold(0.0, f64::max);
        self.bound = most(|neighbour| neighbour.bound);
        self.bound_gaussian = gaussian.then(|| most(|neighbour| neighbour.bound_gaussian.unwrap_or(0.0)));
        let exact = self.neighbours.iter().filter_map(|neighbour| neighbour.exact);
        self.exact = exact.map(|[least, _]| least).reduce(f64::max);
        let by = |a: &&Neighbour, b: &&Neighbour| a.bound.total_cmp(&b.bound);
        self.worst = self.neighbours.iter().rev().max_by(by).cloned();
        let claim = self.claim.epsilon;
        // The solver's last digits may lift an exact value above a claim that is met to the last digit.
        let above = |value: Option<f64>| value.filter(|value| *value > claim * (1.0 + 1e-9));
        let percent = 100.0 * self.confidence;
        let reason = if self.bound > claim {
            Some(format!("with {percent} % confidence epsilon is at least {:.4}", self.bound))
        } else if let Some(bound) = above(self.bound_gaussian) {
            Some(format!(
                "with {percent} % confidence these releases are no Gaussian ones of that price: their epsilon would \
                 be at least {bound:.4}"
            ))
        } else {
            above(self.exact).map(|exact| format!("computed from the means, epsilon is at least {exact:.4}"))
        };
        (self.verdict, self.reason) = match reason {
            Some(reason) => (Verdict::Broken, format!("{reason}, and {claim:.4} is claimed")),
            None => (Verdict::Holds, "nothing was found against the claim".into()),
        };
    }
}
