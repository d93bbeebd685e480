//! Atomics of the list of slots. In its models, which are a package by themselves, they are loom's.
//!
//! They are aliases, so that clippy can distinguish a use of this module from one of the standard library's:
//! see `clippy.toml`.
#![allow(clippy::disallowed_types, reason = "the one place that may name them")]

pub(crate) use core::sync::atomic::Ordering;

pub(crate) type AtomicU32 = core::sync::atomic::AtomicU32;
pub(crate) type AtomicU64 = core::sync::atomic::AtomicU64;
