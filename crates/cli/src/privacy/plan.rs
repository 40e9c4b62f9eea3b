//! What a config will spend, in words.

use super::{Planned, above};
use crate::failure::Failure;
use crate::input;
use crate::output::{self, BAD, DOUBT, Facts, STRONG, count, paint};
use fedkin::rooms::run::{ClientForecast, Forecast, Plan, Registry};
use std::fmt::Write as _;

/// Shows what a config will spend.
pub(super) fn plan(registry: &Registry, args: &Planned) -> Result<(), Failure> {
    let source = input::read(&args.file)?;
    let overrides = input::overrides(&args.set)?;
    let plan = Plan::load(registry, &source, &input::base(&args.file), &overrides, &[])?;
    let mut forecast = Forecast::new(&plan, 0)?;
    if args.json {
        if forecast.client_count as usize > plan.config.evaluate.per_client_limit {
            forecast.clients.clear();
        }
        return output::json(&forecast);
    }
    output::say(&told(&forecast))
}

/// How many clients are named.
const NAMED: usize = 5;

fn told(forecast: &Forecast) -> String {
    let mut facts = Facts::default();
    let Some(largest) = &forecast.largest else {
        facts.styled("privacy", BAD, "no mechanism: every upload leaves as it is, and no epsilon holds");
        return facts.text();
    };
    let delta = forecast.delta;
    facts.add(
        "guarantee",
        format!(
            "epsilon {} at delta {delta}: that of {}, the client that spends most",
            above(largest.epsilon),
            largest.client
        ),
    );
    let how = if largest.sampled.is_empty() {
        "exact composition, as every release is Gaussian"
    } else {
        "exact composition or, where sampling makes that less, Renyi divergences"
    };
    facts.add("", format!("epsilon {} by {how}", above(largest.epsilon_gaussian)));
    for sampled in &largest.sampled {
        facts.add("sampled", sampled.words());
    }
    let unsampled = if largest.sampled.is_empty() { "" } else { ", as if nothing were sampled" };
    let answers = count(largest.releases as usize, "release");
    facts.add("zCDP", format!("{} in {answers}{unsampled}", above(largest.zcdp)));
    if let Some(mean) = forecast.mean_epsilon {
        let text =
            format!("epsilon {}, zCDP {}: no guarantee for anybody", above(mean), above(forecast.mean_zcdp));
        facts.add("mean", text);
    }
    facts.add("protects", format!("against data sets in which {}", forecast.unit));
    if forecast.assumed() {
        let text = format!(
            "{}: all of this holds only if no gradient exceeds privacy.gradient_bound, and nothing makes sure of that",
            paint(BAD, "ASSUMED, not enforced")
        );
        facts.styled("bound", BAD, text);
    } else {
        facts.add("bound", forecast.bound.as_str());
    }
    facts.add(
        "run",
        format!(
            "{}, {}, {}",
            forecast.algorithm,
            count(forecast.rounds as usize, "round"),
            count(forecast.client_count as usize, "client")
        ),
    );
    if forecast.repeats > 1 {
        let text = format!("{}: each spends as much, and on the same data they add up", forecast.repeats);
        facts.add("repeats", text);
    }
    if let Some(budget) = forecast.budget {
        budgets(&mut facts, forecast, budget);
    }
    let mut by_price: Vec<&ClientForecast> = forecast.clients.iter().collect();
    by_price.sort_by(|a, b| b.zcdp.total_cmp(&a.zcdp));
    let mut text = facts.text();
    let _ = write!(text, "\n{}\n", paint(STRONG, "clients that spend most"));
    for client in by_price.iter().take(NAMED) {
        let _ = writeln!(
            text,
            "{}: epsilon {}, zCDP {}, {}",
            client.client,
            above(client.epsilon),
            above(client.zcdp),
            count(client.releases as usize, "release")
        );
    }
    if by_price.len() > NAMED {
        let _ = writeln!(text, "and {} more; --json has them all", by_price.len() - NAMED);
    }
    text
}

fn budgets(facts: &mut Facts, forecast: &Forecast, budget: f64) {
    let mut out: Vec<(u32, &str)> = forecast
        .clients
        .iter()
        .filter_map(|client| Some((client.exhausted?, client.client.as_str())))
        .collect();
    out.sort_unstable();
    let Some((first, name)) = out.first() else {
        facts.add("budget", format!("{budget} zCDP, enough for every client that has spent nothing before"));
        return;
    };
    let who = format!(
        "{budget} zCDP: {} of {} run out and refuse from then on, the first, {name}, in round {first}",
        out.len(),
        count(forecast.client_count as usize, "client"),
    );
    facts.styled("budget", DOUBT, who);
    for (round, name) in out.iter().take(NAMED) {
        facts.add("", format!("{name}: round {round}"));
    }
    if out.len() > NAMED {
        facts.add("", format!("and {} more", out.len() - NAMED));
    }
}
