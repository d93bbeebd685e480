//! One clock for all processes of the machine.
//!
//! Ticks are the invariant TSC where the kernel itself keeps time by it; else nanoseconds of
//! `CLOCK_MONOTONIC`. A crate of its own, so that a library with call sites links little more.
#![deny(unsafe_code)]

mod clocks;

use clocks::{COUNTER, monotonic};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The source of ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Source {
    /// The time stamp counter of x86.
    Tsc = 1,
    /// The virtual counter of Arm.
    Cntvct = 2,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic = 3,
}

impl Source {
    /// The name in messages and in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Cntvct => "cntvct",
            Self::Monotonic => "monotonic",
        }
    }

    /// The source of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Tsc, Self::Cntvct, Self::Monotonic].into_iter().find(|source| source.name() == name)
    }
}

/// 0 until it was asked for.
static SOURCE: AtomicU8 = AtomicU8::new(0);
/// The kernel does not report its clock source: in a sandbox without `/sys`, for example.
static IS_GUESSED: AtomicBool = AtomicBool::new(false);

/// The current time in ticks.
///
/// Costs a load and a branch more than reading the counter. It is not ordered with the code before and after
/// it; a caller that needs an order has to put a fence there.
#[inline(always)]
#[must_use]
pub fn now() -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if SOURCE.load(Ordering::Relaxed) == COUNTER as u8 {
        return clocks::counter();
    }
    now_slowly()
}

#[cold]
#[inline(never)]
fn now_slowly() -> u64 {
    match source() {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        COUNTER => clocks::counter(),
        _ => monotonic(),
    }
}

/// The source of [`now`] on this machine.
#[must_use]
pub fn source() -> Source {
    match SOURCE.load(Ordering::Relaxed) {
        1 => Source::Tsc,
        2 => Source::Cntvct,
        3 => Source::Monotonic,
        _ => {
            let source = detect();
            SOURCE.store(source as u8, Ordering::Relaxed);
            source
        }
    }
}

/// Name of the source in a process that cannot determine it: it adopts the one of other processes on the
/// machine.
pub const UNKNOWN: &str = "unknown";

/// The name of [`source`], or [`UNKNOWN`].
#[must_use]
pub fn source_name() -> &'static str {
    let source = source();
    if IS_GUESSED.load(Ordering::Relaxed) { UNKNOWN } else { source.name() }
}

/// Adopts the source that other processes on the machine use, if this process could not determine it. Times
/// that were read before may be of another clock then. False if this process has determined another one.
#[must_use]
pub fn adopt(name: &str) -> bool {
    let own = source();
    let Some(theirs) = Source::from_name(name) else {
        return false;
    };
    let is_possible = theirs == COUNTER || theirs == Source::Monotonic;
    if own != theirs && is_possible && IS_GUESSED.load(Ordering::Relaxed) {
        SOURCE.store(theirs as u8, Ordering::Relaxed);
        return true;
    }
    own == theirs
}

fn detect() -> Source {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Ok(kernel) = std::fs::read_to_string(path) else {
        IS_GUESSED.store(true, Ordering::Relaxed);
        return Source::Monotonic;
    };
    match kernel.trim() {
        "tsc" if cfg!(target_arch = "x86_64") => Source::Tsc,
        "arch_sys_counter" if cfg!(target_arch = "aarch64") => Source::Cntvct,
        _ => Source::Monotonic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_found_by_its_name() {
        for (source, name) in
            [(Source::Tsc, "tsc"), (Source::Cntvct, "cntvct"), (Source::Monotonic, "monotonic")]
        {
            assert_eq!(source.name(), name);
            assert_eq!(Source::from_name(name), Some(source));
        }
        assert_eq!(Source::from_name("hpet"), None);
    }

    #[test]
    fn time_goes_on() {
        let times: Vec<u64> = (0..1000).map(|_| monotonic()).collect();
        assert!(times.is_sorted(), "{times:?}");
        let before = now();
        std::thread::yield_now();
        assert!(before <= now());
    }
}
