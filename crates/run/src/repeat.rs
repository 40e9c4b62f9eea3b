//! One repeat of one method, from the first round or from a checkpoint to the end.

use crate::artifacts::checkpoint;
use crate::artifacts::metrics::{Measurement, Metrics};
use crate::control::Control;
use crate::error::Error;
use crate::outcome::{Closing, Outcome, kin_scores, refused};
use crate::plan::Plan;
use crate::running::Running;
use fedkin_data::World;
use fedkin_method::round::Results;
use std::path::Path;
use std::time::{Duration, Instant};

/// A checkpoint file, and how often it is written while the repeat runs (never where absent).
pub struct Resume<'a> {
    /// The file.
    pub path: &'a Path,
    /// How often it is written.
    pub every: Option<Duration>,
}

/// Runs one repeat. `keep` keeps the data and the models in the outcome.
pub fn run_repeat(
    plan: &Plan,
    repeat: u32,
    resume: Option<&Resume<'_>>,
    keep: bool,
    control: &Control<'_>,
) -> Result<Outcome, Error> {
    run_on(Running::start(plan, repeat, keep, control)?, plan, resume, control)
}

/// Runs a repeat that was started to its end, from its checkpoint where there is one.
pub(crate) fn run_on(
    mut running: Running<&Plan>,
    plan: &Plan,
    resume: Option<&Resume<'_>>,
    control: &Control<'_>,
) -> Result<Outcome, Error> {
    let identity = running.identity();
    if let Some(found) = resume.map(|resume| checkpoint::load(resume.path, &identity)).transpose()?.flatten()
    {
        let repeat = running.repeat();
        running.restore(&found.payload).map_err(|_| {
            Error::Usage(format!(
                "the checkpoint of repeat {repeat} cannot be read: delete it to start again"
            ))
        })?;
        (0..running.rounds()).for_each(|_| (control.tick)());
    }
    let save = |running: &Running<&Plan>, resume: &Resume<'_>| {
        checkpoint::save(resume.path, &identity, u64::from(running.steps()), &running.save())
    };
    let mut written = Instant::now();
    while !running.ended() {
        if control.stopped() {
            let kept = if let Some(resume) = resume {
                save(&running, resume)?;
                "the same command goes on from there"
            } else {
                "checkpoints are off, so it starts again"
            };
            let (round, last) = (running.rounds(), plan.rounds());
            return Err(Error::Interrupted(format!("round {round} of {last}; {kept}")));
        }
        let stepped = running.step()?;
        if stepped.whole && stepped.counts.is_some() {
            (control.tick)();
        }
        if let Some(resume) = resume
            && resume.every.is_some_and(|every| written.elapsed() >= every)
        {
            save(&running, resume)?;
            written = Instant::now();
        }
    }
    if let Some(resume) = resume {
        save(&running, resume)?;
    }
    Ok(running.outcome())
}

/// A run that nodes on a network have finished: measured once, after its last round.
pub fn measured(plan: &Plan, world: World, live: Box<dyn Results>) -> Result<Outcome, Error> {
    let scorer = plan.scorer(&world)?;
    let mut metrics = Metrics::default();
    for (metric, summary) in scorer.names().iter().zip(live.evaluate(&scorer)) {
        if summary.count > 0 {
            metrics.push(Measurement {
                repeat: 0,
                round: live.rounds(),
                node: "",
                metric,
                value: summary.mean(),
            });
        }
    }
    let known = crate::kin::known(&world);
    for (name, value) in live.gauges().into_iter().chain(kin_scores(live.as_ref(), known.as_deref())) {
        metrics.push(Measurement { repeat: 0, round: live.rounds(), node: "", metric: &name, value });
    }
    let warnings = live.statements().as_deref().and_then(refused).into_iter().collect();
    let closing = Closing { plan, repeat: 0, keep: true, world: &world, scorer: &scorer, stopping: None };
    let mut outcome = closing.outcome(live.as_ref(), metrics, warnings);
    outcome.end = Some((world, live));
    Ok(outcome)
}
