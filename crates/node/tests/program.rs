//! The small program from outside: what it says of itself, of a missing config and of one of the other kind.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn node(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fedkin-node")).args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn help_names_both_commands_and_the_exit_codes() {
    let help = node(&["--help"]);
    assert!(help.status.success());
    for word in ["server", "client", "Exit codes", "4 the run cannot go on"] {
        assert!(said(&help).contains(word), "{word}: {}", said(&help));
    }
}

#[test]
fn what_is_wrong_is_said_and_ends_with_2() {
    let none = node(&["server"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(said(&none).contains("--config"), "{}", said(&none));

    let missing = node(&["client", "--config", "nowhere/node.toml"]);
    assert_eq!(missing.status.code(), Some(2), "{}", said(&missing));
    assert!(said(&missing).contains("nowhere/node.toml"), "{}", said(&missing));

    let folder = std::env::temp_dir().join(format!("fedkin-node-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("node.toml");
    let text = "version = 1\n[node]\nkind = \"server\"\nname = \"north\"\nservers = [\"north\"]\n\
                [broker]\nurl = \"nats://127.0.0.1:1\"\n";
    std::fs::write(&file, text).unwrap();
    let other = node(&["client", "--config", file.to_str().unwrap()]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    assert!(
        said(&other).contains("describes a server: start it with `fedkin-node server"),
        "{}",
        said(&other)
    );
}
