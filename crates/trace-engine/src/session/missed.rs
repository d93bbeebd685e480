//! Events of a forked child in handlers of signals, before it has joined: what a handler interrupts may hold
//! locks that joining takes, so they are counted until a recording begins.
//!
//! An event names no more than its category, of which a recording may want some only.

use crate::session::context::Context;
use crate::site;
use crate::sync::{Ordering, process::AtomicU64};
use trace_format::slab::LossReason;
use zx_ticks as ticks;

struct Missed {
    /// The hash of a category; 0 while unused.
    category: AtomicU64,
    count: AtomicU64,
}

/// The last one is for the categories that found no other, which count whatever a recording wants.
static MISSED: [Missed; 8] = [const { Missed { category: AtomicU64::new(0), count: AtomicU64::new(0) } }; 8];

/// FNV-1a, and never 0.
fn hash(category: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    category.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)) | 1
}

/// Counts an event of this category. Takes no lock.
pub(super) fn count(category: &[u8]) {
    let hash = hash(category);
    let [named @ .., rest] = &MISSED;
    let is_its_own = |missed: &&Missed| {
        let found = missed.category.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed);
        found.is_ok() || found == Err(hash)
    };
    named.iter().find(is_its_own).unwrap_or(rest).count.fetch_add(1, Ordering::Relaxed);
}

/// Forgets what was counted: in a new child, and in one that is not recorded.
pub(super) fn forget() {
    for missed in &MISSED {
        missed.category.store(0, Ordering::Relaxed);
        missed.count.store(0, Ordering::Relaxed);
    }
}

/// A run begins: what it would have recorded is a loss, at this time.
pub(super) fn report(context: &Context, additional: &[String]) {
    let [named @ .., rest] = &MISSED;
    let mut count = rest.count.swap(0, Ordering::Relaxed);
    if count == 0 && named[0].count.load(Ordering::Relaxed) == 0 {
        return;
    }
    site::for_each(|site| {
        let hash = hash(site.category());
        if let Some(missed) = named.iter().find(|missed| missed.category.load(Ordering::Relaxed) == hash) {
            if context.wants(site.category(), additional) {
                count += missed.count.swap(0, Ordering::Relaxed);
            }
        }
    });
    forget();
    if count > 0 {
        let now = ticks::now();
        context.buffer().add_refused(LossReason::NotJoined, count, now, now);
    }
}
