//! `fedkin audit`: a lower confidence bound on epsilon next to the claim.

use crate::failure::Failure;
use crate::output::{self, BAD, Facts, GOOD, WIDTH, count, wrapped};
use crate::{args, input, progress};
use fedkin::rooms::experiment::audit::{self, Neighbour, Options, Report, Subject, Verdict, fixtures};
use fedkin::rooms::report::number::plain;
use fedkin::rooms::run::{Error, Plan, Registry};
use serde::Serialize;

/// The fixtures as JSON.
#[derive(Serialize)]
struct Listed {
    fixtures: Vec<ListedFixture>,
}

/// A fixture as JSON.
#[derive(Serialize)]
struct ListedFixture {
    name: &'static str,
    summary: &'static str,
    sound: bool,
}

/// Audits a config or a fixture; a refuted claim is a failure of its own.
pub(crate) fn audit(registry: &Registry, args: &args::Audit) -> Result<(), Failure> {
    if args.list_fixtures {
        return list(args.json);
    }
    let overrides = input::overrides(&args.set)?;
    input::threads(args.threads)?;
    let subject = match (&args.fixture, &args.file) {
        (Some(name), _) => fixtures::find(name)?.subject(registry, &overrides)?,
        (None, Some(file)) => {
            let source = input::read(file)?;
            Subject::config(Plan::load(registry, &source, &input::base(file), &overrides, &[])?)
        }
        (None, None) => return Err(Failure::Usage("name a config or a fixture to audit".into())),
    };
    let options = Options {
        runs: args.runs,
        rounds: args.rounds,
        seed: args.seed,
        confidence: args.confidence,
        client: args.client.clone(),
    };
    let report = progress::watched_by(subject.name(), options.work(), "runs", |control| {
        audit::audit(&subject, &options, control)
    })?
    .map_err(|error| match error {
        Error::Interrupted(at) => {
            Failure::Interrupted(format!("interrupted at {at}; an audit keeps no checkpoint"))
        }
        error => error.into(),
    })?;
    if args.json {
        output::json(&report)?;
    } else {
        output::say(&told(&report))?;
    }
    match report.verdict {
        Verdict::Holds => Ok(()),
        Verdict::Broken => Err(Failure::Refuted(format!("the claim does not hold: {}", report.reason))),
    }
}

fn list(json: bool) -> Result<(), Failure> {
    if json {
        let listed = |fixture: &fixtures::Fixture| ListedFixture {
            name: fixture.name,
            summary: fixture.summary,
            sound: fixture.sound,
        };
        return output::json(&Listed { fixtures: fixtures::ALL.iter().map(listed).collect() });
    }
    let mut facts = Facts::default();
    for fixture in fixtures::ALL {
        facts.add(fixture.name, fixture.summary);
    }
    output::say(&format!("{}\nfedkin audit --fixture NAME audits one.", facts.text()))
}

fn told(report: &Report) -> String {
    let mut facts = Facts::default();
    facts.add("audited", format!("{}, method {}", report.name, report.algorithm));
    facts.add(
        "client",
        format!(
            "{} with {}, {} in {} of {}",
            report.client,
            count(report.records as usize, "record"),
            count(report.releases as usize, "release"),
            count(report.rounds as usize, "round"),
            report.all_rounds
        ),
    );
    let claim = &report.claim;
    let trust = if claim.trust.is_empty() { String::new() } else { format!(", bound {}", claim.trust) };
    facts.add(
        "claim",
        format!(
            "epsilon {} at delta {} ({} zCDP{trust})",
            plain(claim.epsilon),
            claim.delta,
            plain(claim.zcdp)
        ),
    );
    if !report.neighbours.is_empty() {
        let percent = 100.0 * report.confidence;
        facts.add(
            "bound",
            format!("epsilon is at least {}, with {percent} % confidence", plain(report.bound)),
        );
        if let Some(bound) = report.bound_gaussian {
            facts.add("", format!("at least {} if the releases are Gaussian, as is claimed", plain(bound)));
        }
        facts.add(
            "exact",
            match report.exact {
                Some(exact) => format!("at least {}, computed from the means", plain(exact)),
                None => "not known: the releases are not Gaussian with known means".into(),
            },
        );
        facts.add(
            "cap",
            format!(
                "with {} runs the largest bound this audit can show is {}",
                report.runs,
                plain(report.cap)
            ),
        );
    }
    for neighbour in &report.neighbours {
        facts.add(neighbour.kind, lines(neighbour));
    }
    let (style, word) = match report.verdict {
        Verdict::Holds => (GOOD, "holds"),
        Verdict::Broken => (BAD, "broken"),
    };
    facts.styled("verdict", style, wrapped(&format!("{word}: {}", report.reason), WIDTH - 12).join("\n"));
    facts.text()
}

fn lines(neighbour: &Neighbour) -> String {
    let exact = match neighbour.exact {
        Some([least, most]) if plain(least) == plain(most) => format!(", exact {}", plain(least)),
        Some([least, most]) => format!(", exact {} to {}", plain(least), plain(most)),
        None => String::new(),
    };
    let found = format!(
        "bound {}{exact}; by {} {} of {} alarms right, {} wrong",
        plain(neighbour.bound),
        neighbour.score,
        neighbour.right_alarms,
        neighbour.counted,
        neighbour.wrong_alarms
    );
    let mut lines = wrapped(&neighbour.what, WIDTH - 12);
    lines.push(found);
    lines.join("\n")
}
