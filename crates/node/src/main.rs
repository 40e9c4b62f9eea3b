//! The small program of servers and client hosts, with what comes with Fedkin.

use std::process::ExitCode;

fn main() -> ExitCode {
    fedkin_node::main(&fedkin_run::Registry::native())
}
