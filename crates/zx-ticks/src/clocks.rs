//! The clocks of processors and of the system.
//!
//! Invariants:
//!
//! * **T1** The instructions that are used here read a counter into a register and touch no memory.
//! * **T2** A call of the system fills a structure of ours.
#![allow(unsafe_code)]

use crate::Source;

/// The counter of this processor family.
#[cfg(target_arch = "x86_64")]
pub(crate) const COUNTER: Source = Source::Tsc;
#[cfg(target_arch = "aarch64")]
pub(crate) const COUNTER: Source = Source::Cntvct;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const COUNTER: Source = Source::Monotonic;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction (T1).
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: a register that Linux lets user space read (T1).
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
#[cfg(target_os = "linux")]
pub(crate) fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure (T2); every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since the first call: nothing is recorded on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn monotonic() -> u64 {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}
