//! The privacy a run asks for.

use super::bound::Bound;
use super::mechanism::Gaussian;
use crate::numeric::power;
use crate::params::{Kind, Param, Preset, Values};

/// The keys of `[privacy]`.
pub const PARAMS: &[Param] = &[
    Param {
        name: "mechanism",
        kind: Kind::Choice(&["none", "zcdp"]),
        preset: Preset::Text("none"),
        help: "what protects an upload: nothing, or Gaussian noise accounted in zCDP",
    },
    Param {
        name: "initial_budget",
        kind: Kind::Number { least: 0.0, most: 1e3, open: true },
        preset: Preset::Number(0.001),
        help: "zCDP of round 0 (phi_0); round n spends initial_budget / growth^n",
    },
    Param {
        name: "growth",
        kind: Kind::Number { least: 0.5, most: 1.0, open: false },
        preset: Preset::Number(0.99),
        help: "factor of the noise variance per round (zeta)",
    },
    Param {
        name: "bound",
        kind: Kind::Choice(&["assumed", "enforced"]),
        preset: Preset::Text("enforced"),
        help: "whether the gradient bound is taken on trust or enforced by clipped features",
    },
    Param {
        name: "gradient_bound",
        kind: Kind::Number { least: 0.0, most: f64::INFINITY, open: true },
        preset: Preset::Absent,
        help: "the assumed bound on the norm of one record's gradient (C)",
    },
    Param {
        name: "budget",
        kind: Kind::Number { least: 0.0, most: 1e3, open: true },
        preset: Preset::Absent,
        help: "zCDP a client may spend in all; beyond it the client refuses",
    },
    Param {
        name: "delta",
        kind: Kind::Number { least: 0.0, most: 0.5, open: true },
        preset: Preset::Number(1e-5),
        help: "delta at which epsilon is reported",
    },
    Param {
        name: "unit",
        kind: Kind::Choice(&["record"]),
        preset: Preset::Text("record"),
        help: "what a neighbouring data set differs in: one record of one client is replaced",
    },
];

/// The privacy of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Privacy {
    /// Uploads leave as they are; the ledger says so.
    #[default]
    None,
    /// Gaussian noise with the schedule of the PGFL paper.
    Zcdp(Zcdp),
}

/// Dynamic zCDP: round n (from 1) spends `initial_budget / growth^n`, Section IV of the PGFL paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zcdp {
    /// phi_0
    pub initial_budget: f64,
    /// zeta
    pub growth: f64,
    /// The bound on one record's gradient where it is assumed; `None` asks the model for an enforced one.
    pub assumed: Option<Bound>,
    /// What a client may spend in all.
    pub budget: Option<f64>,
}

impl Privacy {
    /// The privacy described by the values of `[privacy]`.
    pub fn new(values: &Values) -> Result<Self, String> {
        if values.text("mechanism") != Some("zcdp") {
            return Ok(Privacy::None);
        }
        let assumed = match (values.text("bound"), values.number("gradient_bound")) {
            (Some("assumed"), Some(bound)) => Some(Bound::assumed(bound)),
            (Some("assumed"), None) => return Err("bound = \"assumed\" needs `gradient_bound`".into()),
            (_, Some(_)) => return Err("`gradient_bound` is for bound = \"assumed\"; an enforced bound follows from `model.feature_norm`".into()),
            (_, None) => None,
        };
        Ok(Privacy::Zcdp(Zcdp {
            initial_budget: values.number("initial_budget").unwrap_or(0.001),
            growth: values.number("growth").unwrap_or(0.99),
            assumed,
            budget: values.number("budget"),
        }))
    }

    /// Whether the run demands privacy of everything that leaves a client.
    pub fn demanded(&self) -> bool {
        !matches!(self, Privacy::None)
    }

    /// What a client may spend in all, in whole units.
    pub fn budget_units(&self) -> Option<u64> {
        match self {
            Privacy::None => None,
            // Rounded down: a budget is a ceiling.
            Privacy::Zcdp(zcdp) => zcdp.budget.map(|budget| (budget * 1e12).floor() as u64),
        }
    }
}

impl Zcdp {
    /// phi_n = phi_0 / zeta^n for round n = 1, 2, ...
    pub fn budget_of_round(&self, round: u32) -> f64 {
        self.initial_budget / power(self.growth, round)
    }

    /// The noise of round `round` for a query with this sensitivity.
    pub fn gaussian(&self, sensitivity: Bound, round: u32) -> Option<Gaussian> {
        Gaussian::zcdp(sensitivity, self.budget_of_round(round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 300 rounds at phi_0 = 0.001, zeta = 0.99 cost 1.939, not the 0.095 the paper states.
    #[test]
    fn the_paper_total_is_1_939() {
        let zcdp = Zcdp { initial_budget: 0.001, growth: 0.99, assumed: None, budget: None };
        let total: f64 = (1..=300).map(|round| zcdp.budget_of_round(round)).sum();
        assert!((total - 1.939).abs() < 1e-3, "{total}");
    }
}
