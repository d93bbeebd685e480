//! What Linux's kernel tells, as trace records: for those who read it as it happens, and for those who read
//! what other tools have written down.
#![forbid(unsafe_code)]

mod kernel;
mod marker;
mod open_markers;
mod records;

pub use kernel::{
    ATRACE, END_WITHOUT_BEGIN, IRQ, Kernel, META, OTHER, POWER, PROBE, SYSCALL, Side, soft_interrupt,
};
pub use records::{MAX_STRING_BYTES, Records, cut, hash, inline};
