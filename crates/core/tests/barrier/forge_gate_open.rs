//! Nor can a gate be opened from outside.
use fedkin_core::privacy::{Account, Gate};
use fedkin_core::round::Key;

fn forge(key: Key, account: &Account) {
    let _ = Gate::open(key, account, &mut Vec::new(), &[0; 32], 1, &|_| {}, false);
}

fn main() {}
