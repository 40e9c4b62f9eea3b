//! Watching and stopping work: a bar on a terminal, nothing elsewhere, and Ctrl-C.

use crate::failure::Failure;
use fedkin::rooms::run::{Control, Error};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Set by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);
/// The bar on the screen, for the handler of Ctrl-C to write above.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Runs work of so many rounds in all under a bar; Ctrl-C stops it after the current round.
pub(crate) fn watched<T>(
    name: &str,
    rounds: u64,
    work: impl FnOnce(&Control<'_>) -> Result<T, Error>,
) -> Result<Result<T, Error>, Failure> {
    watched_by(name, rounds, "rounds", work)
}

/// The same for work that is counted in something else.
pub(crate) fn watched_by<T>(
    name: &str,
    count: u64,
    unit: &str,
    work: impl FnOnce(&Control<'_>) -> Result<T, Error>,
) -> Result<Result<T, Error>, Failure> {
    ctrlc::set_handler(on_interrupt)
        .map_err(|error| Failure::Unexpected(format!("cannot listen for Ctrl-C: {error}")))?;
    let bar = bar(name, count, unit);
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
    let result = work(&Control { stop: &STOP, tick: &|| bar.inc(1) });
    bar.finish_and_clear();
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = None;
    Ok(result)
}

fn bar(name: &str, count: u64, unit: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::stderr_with_hz(10));
    let template = format!("{{msg}}  {{bar:24}}  {{human_pos}}/{{human_len}} {unit}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("━╸ "));
    }
    bar.set_message(name.to_string());
    // The clock goes on while a long round or the data keep the bar waiting.
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn on_interrupt() {
    if STOP.swap(true, Ordering::Relaxed) {
        // The second time: at once. Files are replaced in one step, so the last checkpoint is whole.
        std::process::exit(130);
    }
    if let Some(bar) = &*BAR.lock().unwrap_or_else(PoisonError::into_inner) {
        bar.println("stopping after this round; Ctrl-C again stops at once");
    }
}
