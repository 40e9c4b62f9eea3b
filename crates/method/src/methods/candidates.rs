//! What methods share that ask others for a step.

/// Whether there are as many others as a target wants to ask.
pub(super) fn enough(method: &str, count: u32, clients: usize) -> Result<(), String> {
    let others = clients.saturating_sub(1);
    if others == 0 {
        return Err(format!(
            "{method} learns from others, and this federation has one client only: add clients, or use \
             algorithm.name = \"local\""
        ));
    }
    if count as usize > others {
        return Err(format!(
            "algorithm.candidates = {count}, but a target has {others} others to ask: set it to {others} or less"
        ));
    }
    Ok(())
}
