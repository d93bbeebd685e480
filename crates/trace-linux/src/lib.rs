//! The Linux kernel's events as trace records: for programs that read them as they happen, and for converters
//! of files that other tools have written.
#![forbid(unsafe_code)]

mod kernel;
mod marker;
mod open_markers;
mod records;

pub use kernel::{
    ATRACE, END_WITHOUT_BEGIN, IRQ, Kernel, META, OTHER, POWER, PROBE, SYSCALL, Side, soft_interrupt,
};
pub use records::{Records, cut, hash, inline};
pub use trace_format::refs::MAX_STRING_BYTES;

/// Flag of `clone`: the new task is a thread of its creator's process (`linux/sched.h`).
pub const CLONE_THREAD: u64 = 0x1_0000;
/// Addresses from here on are the kernel's, on all 64-bit processors.
pub const KERNEL_START: u64 = 1 << 63;
