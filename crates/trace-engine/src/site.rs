//! Call sites: one static per use of a macro, which the engine switches on and off.

use crate::site_word::SiteWord;
pub(crate) use crate::site_word::{FAST, ON};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

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
    word: SiteWord,
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
        Self { word: SiteWord(AtomicU64::new(0)), category, name, arguments }
    }

    /// Whether events of this site are recorded now. Never with the feature `off`, which leaves nothing of the
    /// macros: the compiler knows the answer.
    #[inline(always)]
    #[must_use]
    pub fn is_on(&self) -> bool {
        !cfg!(feature = "off") && self.word.is_on()
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
        self.word.load()
    }

    pub(crate) fn switch_on(&self) {
        self.word.switch_on();
    }

    pub(crate) fn switch_off(&self) {
        self.word.switch_off();
    }

    /// See [`SiteWord::published`].
    pub(crate) fn published(&self) -> Option<(u16, u16)> {
        self.word.published()
    }

    /// See [`SiteWord::publish`].
    pub(crate) fn publish(&self, category: u16, name: u16) {
        self.word.publish(category, name);
    }
}
