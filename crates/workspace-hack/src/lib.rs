//! Nothing: see `Cargo.toml`.
#![forbid(unsafe_code)]
