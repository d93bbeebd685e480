//! Atomics and fences of the lock-free parts. Everything that a model checker has to see goes through
//! here.
//!
//! They are aliases, so that clippy tells a use of this module from one of the standard library's: see
//! `clippy.toml`.
#![allow(clippy::disallowed_types, reason = "the one place that may name them")]

pub(crate) use core::sync::atomic::{Ordering, compiler_fence, fence};

pub(crate) type AtomicBool = core::sync::atomic::AtomicBool;
pub(crate) type AtomicPtr<T> = core::sync::atomic::AtomicPtr<T>;
pub(crate) type AtomicU8 = core::sync::atomic::AtomicU8;
pub(crate) type AtomicU32 = core::sync::atomic::AtomicU32;
pub(crate) type AtomicU64 = core::sync::atomic::AtomicU64;
pub(crate) type AtomicUsize = core::sync::atomic::AtomicUsize;
