//! Reads and validates Fuchsia trace archives and shared buffers.
#![forbid(unsafe_code)]

pub mod buffer;
