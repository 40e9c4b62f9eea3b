//! The open tables have none for mechanisms.
use fedkin_core::registry::Registry;

fn lie(registry: &mut Registry) {
    registry.mechanisms.add("free").unwrap();
}

fn main() {}
