//! Nor can a gate be opened from outside: only a client's answer path does.
use fedkin_privacy::{Account, Gate};

fn forge(account: &Account) {
    let _ = Gate::open(account, &mut Vec::new(), &[0; 32], 1, &|_| {}, false);
}

fn main() {}
