//! Call sites: one static per use of a macro, which the engine switches on and off.
//!
//! ```text
//!  63            48 47            32 31                       2   1    0
//! +----------------+----------------+--------------------------+----+----+
//! |  name reference|category ref.   |            0             |FAST| ON |
//! +----------------+----------------+--------------------------+----+----+
//! ```
//!
//! The upper half of a site's word is what an event's header holds in the same bits, so the hot path
//! copies it. It is valid only together with `FAST`.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The category is enabled and a trace is running.
pub(crate) const ON: u64 = 1;
/// All strings of the site have indices and writers need no fence of their own.
pub(crate) const FAST: u64 = 2;

/// An argument name of one call site, with its string index while a trace is running.
#[derive(Debug)]
pub struct ArgName {
    index: AtomicU32,
    name: &'static str,
}

impl ArgName {
    /// The name as written at the call site.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        assert!(name.len() <= 32_000, "a name has at most 32000 bytes");
        Self { index: AtomicU32::new(0), name }
    }

    #[inline(always)]
    pub(crate) fn reference(&self) -> u16 {
        // The site's word was loaded with acquire after this was stored.
        self.index.load(Ordering::Relaxed) as u16
    }

    pub(crate) fn set_reference(&self, reference: u16) {
        self.index.store(u32::from(reference), Ordering::Relaxed);
    }

    pub(crate) fn text(&self) -> &'static str {
        self.name
    }
}

/// One place in the program that emits events. Made by the macros, in a section of its own, so that the
/// engine finds them all without any of them having run.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Site {
    word: AtomicU64,
    category: &'static str,
    name: &'static str,
    arguments: &'static [ArgName],
}

impl Site {
    /// A site that is off.
    #[must_use]
    pub const fn new(category: &'static str, name: &'static str, arguments: &'static [ArgName]) -> Self {
        assert!(arguments.len() <= 15, "an event has at most 15 arguments");
        assert!(category.len() <= 32_000 && name.len() <= 32_000, "a name has at most 32000 bytes");
        Self { word: AtomicU64::new(0), category, name, arguments }
    }

    /// Whether events of this site are recorded now. Never with the feature `off`, which leaves nothing of the
    /// macros: the compiler knows the answer.
    #[inline(always)]
    #[must_use]
    pub fn is_on(&self) -> bool {
        !cfg!(feature = "off") && self.word.load(Ordering::Relaxed) & ON != 0
    }

    /// The site's category.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        self.category
    }

    /// The event's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn arguments(&self) -> &'static [ArgName] {
        self.arguments
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`, so the argument names' indices are there too.
        self.word.load(Ordering::Acquire)
    }

    pub(crate) fn switch_on(&self) {
        // Release: the context was published before.
        self.word.store(ON, Ordering::Release);
    }

    pub(crate) fn switch_off(&self) {
        self.word.store(0, Ordering::SeqCst);
    }

    /// The indices of category and name, if all strings of the site have one. For a thread inside an event.
    pub(crate) fn published(&self) -> Option<(u16, u16)> {
        let word = self.load();
        (word & FAST != 0).then_some(((word >> 32) as u16, (word >> 48) as u16))
    }

    /// Publishes the string indices, unless the site was switched meanwhile.
    pub(crate) fn publish(&self, category: u16, name: u16) {
        let word = ON | FAST | u64::from(category) << 32 | u64::from(name) << 48;
        // Release: pairs with the Acquire in `load`; the definitions and the argument names' indices were
        // stored before. A lost race means that somebody else published or switched: nothing to do.
        let _ = self.word.compare_exchange(ON, word, Ordering::Release, Ordering::Relaxed);
    }
}
