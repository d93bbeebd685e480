//! The `trace` command.
fn main() {}
