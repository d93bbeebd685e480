//! The rate of the clock that `zx-ticks` reads.
//!
//! The first process after boot finds it and keeps it in a file, so that all processes of the machine agree
//! on it to the last digit.
//!
//! Invariant **T1**: the instruction that is used here reads a number into a register and touches no memory.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::runtime_dir::{Lock, create_no_follow, may_be_trusted};
use crate::sys;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use zx_ticks::{Source, UNKNOWN, adopt, now, source, source_name};

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

/// More than the file has.
const MAX_FILE_BYTES: u64 = 200;
/// The file in the runtime directory: boot id, source and rate, a line each.
const FILE: &str = "ticks";

impl Clock {
    /// The clock that a directory's processes agreed on since boot; calibrates it if none has.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn load_or_create(directory: &Path) -> Result<Self> {
        Self::agreed(directory, &[])
    }

    /// The clock that a directory's processes agreed on since boot. A directory without one takes the clock
    /// of the first other directory that has one: if each measured the rate, the rates would differ by the
    /// error of the measurement. A directory that a user other than root may write to is left out.
    ///
    /// # Errors
    /// The directory cannot be used.
    //= docs/protocol.md#where-processes-meet
    pub fn agreed(directory: &Path, others: &[PathBuf]) -> Result<Self> {
        let path = directory.join(FILE);
        let boot = boot_id();
        if let Some(clock) = Self::load(&path, &boot) {
            return Ok(clock);
        }
        let others = others.iter().filter(|other| may_be_trusted(other));
        let agreed = others.filter_map(|other| Self::load(&other.join(FILE), &boot)).next();
        // Takes its time, in which no other process has to wait.
        let clock = agreed.unwrap_or_else(Self::measure);
        Self::write(directory, |found| found.unwrap_or(clock))
    }

    /// Replaces the clock of a directory.
    ///
    /// # Errors
    /// The directory cannot be used.
    //= docs/protocol.md#where-processes-meet
    pub fn impose(self, directory: &Path) -> Result<()> {
        Self::write(directory, |_| self).map(drop)
    }

    /// Writes what is chosen, and returns it: one process at a time, which sees what the ones before it
    /// wrote.
    fn write(directory: &Path, choose: impl Fn(Option<Self>) -> Self) -> Result<Self> {
        Self::write_of(directory, &boot_id(), choose)
    }

    fn write_of(directory: &Path, boot: &str, choose: impl Fn(Option<Self>) -> Self) -> Result<Self> {
        let path = directory.join(FILE);
        let failed = |source| Error::io(format!("cannot use {}", path.display()), source);
        // A child that is forked meanwhile has the file, too: the lock is released, not only closed.
        let lock = File::open(directory).map_err(failed)?;
        retry_on_intr(|| rustix::fs::flock(&lock, FlockOperation::LockExclusive))
            .map_err(|source| failed(source.into()))?;
        let _lock = Lock::of(lock);
        let found = Self::load(&path, boot);
        let clock = choose(found);
        // Who cannot tell the boot must not have all others measure anew.
        let is_of_a_boot = boot.is_empty() && std::fs::read(&path).is_ok_and(|text| !text.starts_with(b"\n"));
        if found == Some(clock) || is_of_a_boot {
            return Ok(clock);
        }
        let text = format!("{boot}\n{}\n{}\n", clock.source.name(), clock.ticks_per_second);
        // A process that reads without the lock sees all of it or nothing.
        let new = path.with_extension("new");
        let mut file = create_no_follow(rustix::fs::CWD, &new).map_err(|source| failed(source.into()))?;
        file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&new, &path)).map_err(failed)?;
        Ok(clock)
    }

    fn load(path: &Path, boot: &str) -> Option<Self> {
        // What is no file has nothing, and is not waited for.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        let found = lines.next()?;
        // Who cannot tell the boot takes what is there: a processor's rate hardly differs from boot to boot.
        if found != boot && !boot.is_empty() {
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

/// The kernel's identification of this boot; empty if it cannot be read.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Nanoseconds since this boot, the time in which the machine slept included. No clock that is set changes
/// them.
#[must_use]
pub fn since_boot_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
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

    //= docs/protocol.md#where-processes-meet
    #[test]
    fn who_cannot_tell_the_boot_takes_what_is_there() {
        let directory = std::env::temp_dir().join(format!("zx-sim-ticks-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("a new directory");
        let path = directory.join(FILE);
        let clock = |ticks_per_second| Clock { source: source(), ticks_per_second };
        let write =
            |boot: &str, rate| Clock::write_of(&directory, boot, |found| found.unwrap_or(clock(rate)));
        // The first of all has a place to write into, until one that can tell the boot comes.
        assert_eq!(write("", 10).expect("written"), clock(10));
        assert_eq!(write("", 20).expect("read"), clock(10));
        assert_eq!(write("boot", 30).expect("written"), clock(30));
        assert_eq!((Clock::load(&path, ""), Clock::load(&path, "other")), (Some(clock(30)), None));
        assert_eq!(Clock::write_of(&directory, "", |_| clock(40)).expect("chosen"), clock(40));
        assert_eq!(Clock::load(&path, "boot"), Some(clock(30)));
        std::fs::remove_dir_all(&directory).expect("it is there");
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
