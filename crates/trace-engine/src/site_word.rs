//! The word of a call site, which says whether it is on and which indices its strings have.
//!
//! ```text
//!  63            48 47            32 31                       2   1    0
//! +----------------+----------------+--------------------------+----+----+
//! |  name reference|category ref.   |            0             |FAST| ON |
//! +----------------+----------------+--------------------------+----+----+
//! ```
//!
//! The upper half is what an event's header holds in the same bits, so the hot path copies it. It is valid only together
//! with `FAST`.

use crate::sync::{AtomicU64, Ordering};

/// The category is enabled and a trace is running.
pub(crate) const ON: u64 = 1;
/// All strings of the site have indices and writers need no fence of their own.
pub(crate) const FAST: u64 = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct SiteWord(pub(crate) AtomicU64);

impl SiteWord {
    /// Whether the site is on, for somebody who will look again before it counts.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ON != 0
    }

    #[inline(always)]
    pub fn load(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`, so the definitions and the argument names' indices are there.
        self.0.load(Ordering::Acquire)
    }

    pub fn switch_on(&self) {
        // Release: the context was published before.
        self.0.store(ON, Ordering::Release);
    }

    pub fn switch_off(&self) {
        // An exchange, as it is the newest value that has to go: what a writer has just published.
        self.0.swap(0, Ordering::SeqCst);
    }

    /// The indices of category and name, if all strings of the site have one. For a thread inside an event.
    pub fn published(&self) -> Option<(u16, u16)> {
        let word = self.load();
        (word & FAST != 0).then_some(((word >> 32) as u16, (word >> 48) as u16))
    }

    /// Publishes the string indices, unless the site was switched meanwhile.
    pub fn publish(&self, category: u16, name: u16) {
        let word = ON | FAST | u64::from(category) << 32 | u64::from(name) << 48;
        // Release: pairs with the Acquire in `load`; the definitions and the argument names' indices were
        // stored before. A lost race means that somebody else published or switched: nothing to do.
        let _ = self.0.compare_exchange(ON, word, Ordering::Release, Ordering::Relaxed);
    }
}
