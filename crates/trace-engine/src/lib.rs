//! The lock-free writer of trace records: call sites, macros, and the engine that owns a buffer.
//!
//! | room | holds |
//! |---|---|
//! | `api` | what instrumented code uses: macros, guards, tracks, futures, ids |
//! | [`ffi`] | what other languages need: sites without a section, records by hand, references on a trace |
//! | `record` | arguments, the hot path of an event, the slow writer, records that are no events, rendering |
//! | `session` | a trace: [`engine`] starts and stops it; its context, references on it, forked children |
//! | `slab` | a slab's life: allocator, free list, recall, retirement, streams of halves |
//! | `buffer` | the shared memory: region, durable region, definitions, the ledger of losses |
//! | `thread` | a thread's control block and the slab that it has open |
//! | `site` | call sites: their words, and how all of them are found |
//! | `sys`, `sync` | system calls; atomics and locks |
//!
//! A room uses only what stands below it in this table; `api` does not use `ffi`, and `buffer` and `thread`
//! do not use each other. The tidy test checks that.
//!
//! Applications use it through `trace-provider`, which re-exports the macros.
#![deny(unsafe_code)]
#![warn(clippy::disallowed_types)]
#![cfg_attr(modelled, allow(dead_code, reason = "models use a part of the engine"))]

#[macro_use]
mod sync;

#[cfg(not(modelled))]
mod api;
mod buffer;
#[cfg(not(modelled))]
#[doc(hidden)]
pub mod ffi;
#[cfg(all(test, modelled))]
#[path = "../tests/models/mod.rs"]
mod models;
#[cfg(all(test, not(modelled)))]
mod own_process;
mod record;
mod session;
mod site;
mod slab;
#[cfg_attr(elsewhere, path = "sys/elsewhere.rs")]
mod sys;
mod thread;

#[cfg(not(modelled))]
pub use api::*;
