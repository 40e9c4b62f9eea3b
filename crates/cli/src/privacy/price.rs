//! Noise and its price, and conversions.

use super::{Convert, Relation, Releases, above, below};
use crate::failure::Failure;
use crate::output::{self, Facts};
use fedkin::rooms::privacy::{
    Sampled, delta_of_gaussian, delta_of_zcdp, epsilon_of_gaussian, epsilon_of_zcdp, gaussian_sigma,
    gaussian_zcdp_of_epsilon, textbook_epsilon, zcdp_of_epsilon,
};
use serde::Serialize;

/// Noise and what it costs.
#[derive(Debug, Serialize)]
pub(super) struct Priced {
    /// Rounded up, like every epsilon here.
    epsilon: f64,
    delta: f64,
    sigma: f64,
    sensitivity: f64,
    rounds: u64,
    /// By which bound the epsilon was found.
    conversion: &'static str,
    /// zCDP of all rounds without sampling.
    zcdp: f64,
    /// The tight conversion of that zCDP: without sampling.
    epsilon_zcdp: f64,
    /// The textbook's conversion of that zCDP: without sampling.
    epsilon_textbook: f64,
    /// All below only with sampling.
    sampling: Option<f64>,
    neighbours: Option<Relation>,
    /// The order of the Renyi bound.
    order: Option<u32>,
    epsilon_replace: Option<f64>,
    epsilon_add_remove: Option<f64>,
}

impl Releases {
    fn sampled(&self, rate: f64, relation: Relation) -> Sampled {
        Sampled { rate, clip: self.sensitivity, neighbours: relation.neighbours(), rounds: self.rounds }
    }

    fn relation(&self) -> Relation {
        self.neighbours.unwrap_or(Relation::Replace)
    }

    pub(super) fn sigma(&self, epsilon: f64) -> f64 {
        match self.sampling {
            None => gaussian_sigma(epsilon, self.delta, self.sensitivity, self.rounds),
            Some(rate) => self.sampled(rate, self.relation()).sigma(epsilon, self.delta),
        }
    }

    pub(super) fn priced(&self, sigma: f64) -> Priced {
        let delta = self.delta;
        let relation = self.relation();
        // Without sampling the sensitivity is the distance itself, as between data sets that differ by one record.
        let plain = self.sampled(1.0, if self.sampling.is_some() { relation } else { Relation::AddRemove });
        let zcdp = plain.unsampled_zcdp(sigma);
        let mut priced = Priced {
            epsilon: epsilon_of_gaussian(zcdp, delta),
            delta,
            sigma,
            sensitivity: self.sensitivity,
            rounds: self.rounds,
            conversion: "gaussian",
            zcdp,
            epsilon_zcdp: epsilon_of_zcdp(zcdp, delta),
            epsilon_textbook: textbook_epsilon(zcdp, delta),
            sampling: self.sampling,
            neighbours: self.sampling.map(|_| relation),
            order: None,
            epsilon_replace: None,
            epsilon_add_remove: None,
        };
        let Some(rate) = self.sampling else { return priced };
        let of = |relation| self.sampled(rate, relation).epsilon(sigma, delta);
        let (replace, add_remove) = (of(Relation::Replace), of(Relation::AddRemove));
        (priced.epsilon_replace, priced.epsilon_add_remove) = (Some(replace), Some(add_remove));
        let epsilon = if relation == Relation::Replace { replace } else { add_remove };
        if epsilon < priced.epsilon {
            priced.conversion = "renyi";
            priced.order = Some(self.sampled(rate, relation).renyi(sigma).epsilon(delta).1);
            priced.epsilon = epsilon;
        }
        priced
    }
}

impl Priced {
    pub(super) fn text(&self, asked: &str) -> String {
        let mut facts = Facts::default();
        let epsilon = format!("{} at delta {}", above(self.epsilon), self.delta);
        let sigma = format!("{} for sensitivity {}", above(self.sigma), self.sensitivity);
        if asked == "sigma" {
            facts.add("sigma", sigma).add("epsilon", epsilon);
        } else {
            facts.add("epsilon", epsilon).add("sigma", sigma);
        }
        facts.add("rounds", self.rounds.to_string());
        if let (Some(rate), Some(relation)) = (self.sampling, self.neighbours) {
            facts.add("sampling", format!("each record with chance {rate}, in secret"));
            facts.add("neighbours", relation.words());
            let other = match relation {
                Relation::Replace => (Relation::AddRemove, self.epsilon_add_remove),
                Relation::AddRemove => (Relation::Replace, self.epsilon_replace),
            };
            if let (relation, Some(epsilon)) = other {
                facts.add("", format!("where {}: epsilon {}", relation.words(), above(epsilon)));
            }
        }
        let how = match self.order {
            Some(order) => format!("Renyi divergence of order {order}: an upper bound"),
            None if self.sampling.is_some_and(|rate| rate < 1.0) => {
                "exact composition of Gaussians without the sampling, which gains nothing here".into()
            }
            None => "exact composition of Gaussians".into(),
        };
        facts.add("found by", how);
        if self.sampling.is_none() {
            facts.add("zCDP", above(self.zcdp));
            facts.add("", format!("by the tight conversion of zCDP: epsilon {}", above(self.epsilon_zcdp)));
            facts.add("", format!("by the textbook's: epsilon {}", above(self.epsilon_textbook)));
        }
        facts.text()
    }
}

/// A conversion as JSON.
#[derive(Debug, Serialize)]
struct Converted {
    epsilon: f64,
    delta: f64,
    zcdp: f64,
    /// `tight`, for any mechanisms, or `gaussian`, exact.
    conversion: &'static str,
    /// Epsilon of this zCDP at this delta by each of them.
    tight: Option<f64>,
    gaussian: Option<f64>,
    textbook: Option<f64>,
}

pub(super) fn convert(args: &Convert) -> Result<(), Failure> {
    let exact = args.gaussian;
    let (zcdp, epsilon, delta, asked) = match (args.zcdp, args.epsilon, args.delta) {
        (Some(zcdp), None, Some(delta)) => {
            let epsilon = if exact { epsilon_of_gaussian(zcdp, delta) } else { epsilon_of_zcdp(zcdp, delta) };
            (zcdp, epsilon, delta, "epsilon")
        }
        (None, Some(epsilon), Some(delta)) => {
            let zcdp = if exact {
                gaussian_zcdp_of_epsilon(epsilon, delta)
            } else {
                zcdp_of_epsilon(epsilon, delta)
            };
            (zcdp, epsilon, delta, "zCDP")
        }
        (Some(zcdp), Some(epsilon), None) => {
            let delta = if exact { delta_of_gaussian(zcdp, epsilon) } else { delta_of_zcdp(zcdp, epsilon) };
            (zcdp, epsilon, delta, "delta")
        }
        _ => {
            let text = "give two of --zcdp, --epsilon and --delta: the third is found";
            return Err(Failure::Usage(text.into()));
        }
    };
    if !epsilon.is_finite() || !zcdp.is_finite() {
        return Err(Failure::Usage(
            "no finite number answers that: the price or the epsilon is too large".into(),
        ));
    }
    let found = Converted {
        epsilon,
        delta,
        zcdp,
        conversion: if exact { "gaussian" } else { "tight" },
        tight: finite(epsilon_of_zcdp(zcdp, delta)),
        gaussian: finite(epsilon_of_gaussian(zcdp, delta)),
        textbook: finite(textbook_epsilon(zcdp, delta)),
    };
    if args.json {
        return output::json(&found);
    }
    let mut facts = Facts::default();
    let mut lines = [
        ("epsilon", above(epsilon)),
        ("delta", if asked == "delta" { above(delta) } else { delta.to_string() }),
        ("zCDP", if asked == "zCDP" { below(zcdp) } else { zcdp.to_string() }),
    ];
    // What was asked for comes first.
    lines.sort_by_key(|(name, _)| *name != asked);
    for (name, value) in lines {
        facts.add(name, value);
    }
    let how = if exact { "exact, where every release is Gaussian" } else { "tight, for any mechanisms" };
    facts.add("conversion", how);
    if asked == "epsilon" {
        let others = [
            ("tight", found.tight),
            ("exact, if every release is Gaussian,", found.gaussian),
            ("textbook", found.textbook),
        ];
        facts.list(
            "all",
            others.map(|(name, epsilon)| format!("{name} {}", above(epsilon.unwrap_or(f64::INFINITY)))),
        );
    }
    output::say(&facts.text())
}

/// A delta of 0 or 1 has no epsilon to show.
fn finite(x: f64) -> Option<f64> {
    Some(x).filter(|x| x.is_finite())
}
