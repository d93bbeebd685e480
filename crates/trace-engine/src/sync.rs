//! Atomics and fences of the lock-free parts. Everything that a model checker has to see goes through
//! here.

pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
};
