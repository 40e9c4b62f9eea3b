//! The `fedkin` command with what comes with Fedkin.

use std::process::ExitCode;

fn main() -> ExitCode {
    fedkin_cli::main(&fedkin::rooms::run::Registry::native())
}
