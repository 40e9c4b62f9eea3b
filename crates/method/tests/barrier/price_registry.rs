//! The open tables have none for mechanisms.
use fedkin_method::registry::Registry;

fn lie(registry: &mut Registry) {
    registry.mechanisms.add("free").unwrap();
}

fn main() {}
