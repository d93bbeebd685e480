//! Finds the callers of functions without frame pointer: by the tables of their files, from the registers and
//! a copy of the stack.

use super::sample::{END_OF_PROGRAMS, Sample};
use super::tables::{Bytes, MAX_ADDRESS, Tables};
use framehop::{Module, Unwinder as _};
use std::fmt::{self, Formatter};
use std::ops::Range;
use trace_format::profiler::MAX_FRAMES;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as NativeCache, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64 as NativeUnwinder,
};
#[cfg(not(target_arch = "aarch64"))]
use framehop::x86_64::{CacheX86_64 as NativeCache, UnwindRegsX86_64, UnwinderX86_64 as NativeUnwinder};

/// How many modules may come and go before cached rules are forgotten: their generations have 16 bits.
const MAX_GENERATIONS: u32 = 1 << 15;

/// Cached rules, for all processes.
pub struct Cache {
    rules: NativeCache,
    generations: u32,
}

impl Default for Cache {
    fn default() -> Self {
        Self { rules: NativeCache::new(), generations: 0 }
    }
}

/// The code of one process.
#[derive(Clone, Default)]
pub struct Unwinder(NativeUnwinder<Bytes>);

impl fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Unwinder")
    }
}

/// A stack that was unwound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwound {
    /// Addresses, innermost first.
    pub frames: Vec<u64>,
    /// The last address is where the thread began.
    pub is_whole: bool,
}

impl Unwinder {
    /// Adds code that was linked at an address. No other code is known there.
    pub fn add(&mut self, place: Range<u64>, linked_at: u64, tables: &Tables, cache: &mut Cache) {
        let base = linked_at.checked_sub(tables.base).and_then(|within| place.start.checked_sub(within));
        let Some(base) = base.filter(|_| place.end < MAX_ADDRESS) else {
            return;
        };
        if cache.generations >= MAX_GENERATIONS {
            *cache = Cache::default();
        }
        cache.generations += 1;
        self.0.add_module(Module::new(String::new(), place, base, tables.sections.clone()));
    }

    /// Removes the code that began at an address.
    pub fn remove(&mut self, start: u64, cache: &mut Cache) {
        cache.generations += 1;
        self.0.remove_module(start);
    }

    /// Unwinds a sample; none if it has no registers.
    pub fn unwind(&self, sample: &Sample, cache: &mut Cache) -> Option<Unwound> {
        let registers = sample.registers?;
        let mut read_stack = |address: u64| {
            let at = address.checked_sub(registers.sp).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
            let word = sample.stack.get(at..).and_then(|rest| rest.first_chunk()).ok_or(())?;
            Ok(u64::from_le_bytes(*word))
        };
        #[cfg(target_arch = "aarch64")]
        let start = {
            // Addresses of programs have 48 bits; the upper bits authenticate them.
            let mask = PtrAuthMask((1 << 48) - 1);
            UnwindRegsAarch64::new_with_ptr_auth_mask(mask, registers.lr, registers.sp, registers.fp)
        };
        #[cfg(not(target_arch = "aarch64"))]
        let start = UnwindRegsX86_64::new(registers.pc, registers.sp, registers.fp);
        let mut found = self.0.iter_frames(registers.pc, start, &mut cache.rules, &mut read_stack);
        let mut frames = Vec::new();
        let mut is_whole = false;
        while frames.len() < MAX_FRAMES {
            match found.next() {
                Ok(Some(frame)) if frame.address() < END_OF_PROGRAMS => frames.push(frame.address()),
                Ok(None) => {
                    is_whole = true;
                    break;
                }
                // A word that is no address was taken for one.
                Ok(Some(_)) | Err(_) => break,
            }
        }
        Some(Unwound { frames, is_whole })
    }
}

#[cfg(test)]
mod tests;
