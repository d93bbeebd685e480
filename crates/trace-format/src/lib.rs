//! The bits of every Fuchsia trace record and of the shared buffer.
//!
//! One file for each kind of record, with its header bits, encoding and decoding side by side. Nothing here
//! allocates, and nothing panics on decoded numbers: input is borrowed, and any problem with it is a
//! [`error::DecodeError`].
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod argument;
mod bits;
pub mod blob;
pub mod buffer;
pub mod categories;
mod cursor;
pub mod error;
pub mod event;
pub mod function;
pub mod further;
pub mod initialization;
pub mod kernel_object;
pub mod large;
pub mod log;
pub mod loss;
pub mod markers;
pub mod metadata;
pub mod operation;
pub mod profiler;
pub mod program_info;
pub mod record;
pub mod refs;
pub mod scheduling;
pub mod scopes;
pub mod shown;
pub mod sink;
pub mod slab;
pub mod string;
pub mod thread;
pub mod units;
pub mod userspace_object;

#[cfg(test)]
mod testing;
