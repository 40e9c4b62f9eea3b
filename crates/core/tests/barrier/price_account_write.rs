//! It can be read and not changed.
use fedkin_core::algorithm::Algorithm;
use fedkin_core::round::Client;

fn refund<A: Algorithm>(client: &mut Client<A>) {
    client.account().spent = 0;
}

fn main() {}
