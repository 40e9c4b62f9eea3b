//! It can be read and not changed.
use fedkin_method::Algorithm;
use fedkin_method::round::Client;

fn refund<A: Algorithm>(client: &mut Client<A>) {
    client.account().spent = 0;
}

fn main() {}
