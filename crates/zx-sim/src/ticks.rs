//! One clock for all processes of the machine.
//!
//! Ticks are the invariant TSC where the kernel itself keeps time by it; else nanoseconds of
//! `CLOCK_MONOTONIC`. The first process after boot finds the rate and keeps it in a file, so that all
//! processes agree on it to the last digit.
//!
//! Invariant **T1**: the instructions that are used here read a counter into a register and touch no memory.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::runtime_dir::create_no_follow;
use crate::sys;
use rustix::fs::FlockOperation;
use rustix::io::retry_on_intr;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

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

    fn from_name(name: &str) -> Option<Self> {
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
        return counter();
    }
    now_slowly()
}

/// The counter of this processor family.
#[cfg(target_arch = "x86_64")]
const COUNTER: Source = Source::Tsc;
#[cfg(target_arch = "aarch64")]
const COUNTER: Source = Source::Cntvct;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const COUNTER: Source = Source::Monotonic;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction (T1).
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: a register that Linux lets user space read (T1).
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cold]
#[inline(never)]
fn now_slowly() -> u64 {
    match source() {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        COUNTER => counter(),
        _ => nanos_of(ClockId::Monotonic),
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

fn nanos_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Source and rate of the machine's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The source of ticks.
    pub source: Source,
    /// Ticks in a second.
    pub ticks_per_second: u64,
}

/// The file in the runtime directory: boot id, source and rate, a line each.
const FILE: &str = "ticks";

impl Clock {
    /// The clock that a directory's processes agreed on since boot; calibrates it if none has.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn load_or_create(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        let failed = |source| Error::io(format!("cannot use {}", path.display()), source);
        let boot = boot_id();
        if let Some(clock) = Self::load(&path, &boot) {
            return Ok(clock);
        }
        // One process at a time from here on; the kernel releases the lock when the file is closed.
        let lock = File::open(directory).map_err(failed)?;
        retry_on_intr(|| rustix::fs::flock(&lock, FlockOperation::LockExclusive))
            .map_err(|source| failed(source.into()))?;
        if let Some(clock) = Self::load(&path, &boot) {
            return Ok(clock);
        }
        let clock = Self::measure();
        let text = format!("{boot}\n{}\n{}\n", clock.source.name(), clock.ticks_per_second);
        // A process that reads without the lock sees all of it or nothing.
        let new = path.with_extension("new");
        let mut file = create_no_follow(rustix::fs::CWD, &new).map_err(|source| failed(source.into()))?;
        file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&new, &path)).map_err(failed)?;
        Ok(clock)
    }

    fn load(path: &Path, boot: &str) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let mut lines = text.lines();
        if lines.next()? != boot {
            return None;
        }
        let source = Source::from_name(lines.next()?).filter(|found| *found == source())?;
        let ticks_per_second = lines.next()?.parse().ok().filter(|rate| *rate > 0)?;
        Some(Self { source, ticks_per_second })
    }

    /// Determines the rate: from the kernel's own calibration, else by comparing clocks for a moment.
    #[must_use]
    pub fn measure() -> Self {
        let source = source();
        let ticks_per_second = match source {
            Source::Monotonic => 1_000_000_000,
            Source::Cntvct => cntvct_rate(),
            Source::Tsc => {
                tsc_rate_of_kernel().unwrap_or_else(|| rate_by_comparison(Duration::from_millis(50)))
            }
        };
        Self { source, ticks_per_second }
    }
}

/// The kernel's own rate of the TSC, if it reports one: not to a guest whose scheduler uses a clock of the
/// hypervisor's.
fn tsc_rate_of_kernel() -> Option<u64> {
    let (multiplier, shift) = sys::perf_time_conversion()?;
    rate_of_conversion(multiplier, shift)
}

/// The rate by which `nanoseconds = (ticks * multiplier) >> shift`, rounded to the nearest.
fn rate_of_conversion(multiplier: u32, shift: u16) -> Option<u64> {
    const MAX_SHIFT: u16 = 64;
    if multiplier == 0 || shift > MAX_SHIFT {
        return None;
    }
    let multiplier = u128::from(multiplier);
    let rate = ((1_000_000_000_u128 << shift) + multiplier / 2) / multiplier;
    u64::try_from(rate).ok().filter(|rate| *rate > 0)
}

/// The rate against `CLOCK_MONOTONIC_RAW`, over a span.
fn rate_by_comparison(span: Duration) -> u64 {
    // Of several pairs of readings, the pair that lies closest together is the most exact.
    let sample = || {
        (0..16)
            .map(|_| {
                let before = now();
                let nanos = nanos_of(ClockId::MonotonicRaw);
                let after = now();
                (after - before, before + (after - before) / 2, nanos)
            })
            .min()
            .map_or((0, 0), |(_, ticks, nanos)| (ticks, nanos))
    };
    let (first_ticks, first_nanos) = sample();
    std::thread::sleep(span);
    let (last_ticks, last_nanos) = sample();
    let ticks = u128::from(last_ticks.saturating_sub(first_ticks));
    let nanos = u128::from(last_nanos.saturating_sub(first_nanos)).max(1);
    u64::try_from(ticks * 1_000_000_000 / nanos).unwrap_or(u64::MAX).max(1)
}

#[cfg(target_arch = "aarch64")]
fn cntvct_rate() -> u64 {
    let rate: u64;
    // SAFETY: a register that Linux lets user space read (T1).
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack)) };
    rate.max(1)
}

#[cfg(not(target_arch = "aarch64"))]
fn cntvct_rate() -> u64 {
    1
}

/// Identifies this boot.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skip;

    /// How much the kernel's clocks may differ from the rate that is measured here.
    const TOLERANCE: f64 = 1e-4;

    fn assert_close(found: u64, expected: u64) {
        let ratio = found as f64 / expected as f64;
        assert!((ratio - 1.0).abs() < TOLERANCE, "{found} is not close to {expected}: {ratio}");
    }

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
    fn a_conversion_has_a_rate() {
        assert_eq!(rate_of_conversion(1, 0), Some(1_000_000_000));
        assert_eq!(rate_of_conversion(1 << 30, 32), Some(4_000_000_000));
        // 2.5 and 3 GHz, as exactly as 32 bits have them.
        assert_eq!(rate_of_conversion(858_993_459, 31), Some(2_500_000_001));
        assert_eq!(rate_of_conversion(715_827_883, 31), Some(2_999_999_999));
        assert_eq!(rate_of_conversion(0, 31), None);
        assert_eq!(rate_of_conversion(1, 65), None);
        assert_eq!(rate_of_conversion(1, 64), None);
        assert_eq!(rate_of_conversion(u32::MAX, 0), None);
    }

    #[test]
    fn the_kernel_says_the_rate_that_is_measured() {
        let test = "ticks::tests::the_kernel_says_the_rate_that_is_measured";
        if source() != Source::Tsc {
            return skip(test, "tsc", "the kernel does not keep time by the TSC");
        }
        let Some(rate) = tsc_rate_of_kernel() else {
            return skip(test, "perf", "the kernel offers no conversion in the page of a perf event");
        };
        assert_close(rate, rate_by_comparison(Duration::from_millis(200)));
    }
}
