//! Call sites: one static per use of a macro, which the engine switches on and off.
//!
//! Their layout is that of C: programs in C and C++ have the same sites, which are registered when they are
//! first passed (see `dynamic_sites`). It may not change without the name of the symbol that says which
//! layout this is.
//!
//! Invariant **P1**: pointer and length of each text and of the list of arguments come from a slice that
//! lives at least as long as the site; they change no more once the site can be reached from here.
#![allow(unsafe_code)]

#[cfg(not(modelled))]
pub(crate) mod dynamic_sites;
#[cfg(not(modelled))]
pub(crate) mod interned;
#[cfg(not(modelled))]
pub(crate) mod known;
#[cfg_attr(elsewhere, path = "site/no_section.rs")]
pub(crate) mod section;
pub(crate) mod word;

use crate::site::word::SiteWord;
pub(crate) use crate::site::word::{FAST, ON};
use crate::sync::{AtomicPtr, AtomicU32, Ordering};

/// Calls a function with all call sites: those that the linker laid out, and those that were registered.
pub(crate) fn for_each(mut call: impl FnMut(&Site)) {
    for_each_by(&mut call);
}

/// One copy for all callers: programs link this.
#[inline(never)]
fn for_each_by(call: &mut dyn FnMut(&Site)) {
    section::sites().iter().for_each(&mut *call);
    #[cfg(not(modelled))]
    dynamic_sites::for_each(call);
}

/// Arguments of an event at most.
pub const MAX_ARGUMENTS: usize = 15;
/// Longest category or name, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 32_000;

/// An argument name of one call site, with its string reference while a trace is running.
#[derive(Debug)]
#[repr(C)]
pub struct ArgName {
    bytes: *const u8,
    length: u32,
    index: AtomicU32,
}

// SAFETY: what the pointer leads to is only read (P1).
unsafe impl Sync for ArgName {}
// SAFETY: as above.
unsafe impl Send for ArgName {}

impl ArgName {
    const_unless_modelled! {
        /// The name as written at the call site.
        #[must_use]
        pub fn new(name: &'static str) -> Self {
            assert!(name.len() <= MAX_NAME_BYTES, "a name has at most 32000 bytes");
            Self { bytes: name.as_ptr(), length: name.len() as u32, index: AtomicU32::new(0) }
        }
    }

    /// A name that is not in this program.
    ///
    /// # Safety
    /// The bytes live as long as the site (P1).
    pub(crate) unsafe fn of_bytes(name: &[u8]) -> Self {
        Self { bytes: name.as_ptr(), length: name.len() as u32, index: AtomicU32::new(0) }
    }

    #[inline(always)]
    pub(crate) fn reference(&self) -> u16 {
        // The site's word was loaded with acquire after this was stored.
        self.index.load(Ordering::Relaxed) as u16
    }

    pub(crate) fn set_reference(&self, reference: u16) {
        self.index.store(u32::from(reference), Ordering::Relaxed);
    }

    pub(crate) const fn text(&self) -> &[u8] {
        // SAFETY: of a slice that lives as long as the site (P1).
        unsafe { core::slice::from_raw_parts(self.bytes, self.length as usize) }
    }
}

/// Category or name of a call site.
#[derive(Debug)]
#[repr(C)]
struct SiteText {
    bytes: *const u8,
    length: usize,
}

/// In the length of a category or a name: it is a text of the program's run.
const OF_RUN: usize = 1 << 63;
/// In the length of a name: the names of arguments are texts of the program's run.
const ARGUMENTS_OF_RUN: usize = 1 << 62;
/// In the length of a category: the marks also hold for texts that the site is given later.
const FOR_ALL_TEXTS: usize = 1 << 62;
/// The rest of it.
const LENGTH: usize = ARGUMENTS_OF_RUN - 1;

/// Which texts of a site are not constants of the program: they come from its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfRun {
    pub category: bool,
    pub name: bool,
    /// Names of arguments.
    pub arguments: bool,
}

impl OfRun {
    /// None of the texts is a constant.
    pub(crate) const ALL: Self = Self { category: true, name: true, arguments: true };

    /// All texts are constants.
    pub(crate) const NONE: Self = Self { category: false, name: false, arguments: false };
}

/// What a program in C says of a new site, in the place of the category's length (`TRACE_INTERNAL_MARKED`).
//= docs/c.md#sites
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks(usize);

impl Marks {
    const MARKED: usize = 1;
    const CATEGORY: usize = 2;
    const NAME: usize = 4;
    const ARGUMENTS: usize = 8;

    /// None for programs that were compiled with earlier headers.
    fn of_run(self) -> Option<OfRun> {
        let is_of_run = |bit| self.0 & bit == 0;
        (!is_of_run(Self::MARKED)).then(|| OfRun {
            category: is_of_run(Self::CATEGORY),
            name: is_of_run(Self::NAME),
            arguments: is_of_run(Self::ARGUMENTS),
        })
    }
}

impl SiteText {
    const fn new(text: &'static str) -> Self {
        assert!(text.len() <= MAX_NAME_BYTES, "a name has at most 32000 bytes");
        Self { bytes: text.as_ptr(), length: text.len() }
    }

    const fn text(&self) -> &[u8] {
        // SAFETY: of a slice that lives as long as the site (P1).
        unsafe { core::slice::from_raw_parts(self.bytes, self.length & LENGTH) }
    }
}

/// One place in the program that emits events. Made by the macros, in a section of its own, so that the
/// engine finds them all without any of them having run.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Site {
    word: SiteWord,
    category: SiteText,
    name: SiteText,
    arguments: *const ArgName,
    argument_count: usize,
    /// The next of those that were registered.
    next: AtomicPtr<Site>,
}

// What programs in C carry.
//= docs/c.md#layouts
#[cfg(not(modelled))]
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Site>() == 64 && offset_of!(Site, category) == 8 && offset_of!(Site, name) == 24);
    assert!(offset_of!(Site, arguments) == 40 && offset_of!(Site, next) == 56);
    assert!(
        size_of::<ArgName>() == 16 && offset_of!(ArgName, length) == 8 && offset_of!(ArgName, index) == 12
    );
};

// SAFETY: what the pointers lead to is only read, or made of atomics (P1).
unsafe impl Sync for Site {}
// SAFETY: as above.
unsafe impl Send for Site {}

/// What a site was when its word was loaded.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SiteState(u64);

impl SiteState {
    /// Whether its events are recorded.
    #[inline(always)]
    #[must_use]
    pub const fn is_on(self) -> bool {
        self.0 & ON != 0
    }

    /// Whether they may take the fast path.
    #[inline(always)]
    pub(crate) const fn is_fast(self) -> bool {
        self.0 & FAST != 0
    }

    /// The word of a site that may take it, which has the references of category and name in its upper half.
    #[inline(always)]
    pub(crate) const fn word(self) -> u64 {
        self.0
    }
}

impl Site {
    const_unless_modelled! {
        /// A site that is off.
        #[must_use]
        pub fn new(category: &'static str, name: &'static str, arguments: &'static [ArgName]) -> Self {
            assert!(arguments.len() <= MAX_ARGUMENTS, "an event has at most 15 arguments");
            Self {
                word: SiteWord::new(0),
                category: SiteText::new(category),
                name: SiteText::new(name),
                arguments: arguments.as_ptr(),
                argument_count: arguments.len(),
                next: AtomicPtr::new(core::ptr::null_mut()),
            }
        }
    }

    /// This site, with these texts marked as no constants.
    pub(crate) fn with_of_run(mut self, of_run: OfRun) -> Self {
        self.category.length |= if of_run.category { OF_RUN } else { 0 };
        self.name.length |= if of_run.name { OF_RUN } else { 0 };
        self.name.length |= if of_run.arguments { ARGUMENTS_OF_RUN } else { 0 };
        self
    }

    /// Which of its texts are not constants.
    #[cfg(not(modelled))]
    pub(crate) const fn of_run(&self) -> OfRun {
        OfRun {
            category: self.category.length & OF_RUN != 0,
            name: self.name.length & OF_RUN != 0,
            arguments: self.name.length & ARGUMENTS_OF_RUN != 0,
        }
    }

    /// As `of_run`, for texts that differ from the first ones of the site.
    #[cfg(not(modelled))]
    pub(crate) const fn of_run_of_others(&self) -> OfRun {
        if self.category.length & FOR_ALL_TEXTS == 0 { OfRun::ALL } else { self.of_run() }
    }

    /// What the program says of a new site.
    ///
    /// # Safety
    /// Only the caller looks at anything but the site's word.
    pub(crate) unsafe fn marks(site: *const Self) -> Marks {
        // SAFETY: a field of a site that is the caller's alone.
        Marks(unsafe { (&raw const (*site).category.length).read() })
    }

    const_unless_modelled! {
        /// A site for what is decided elsewhere.
        pub(crate) fn always_on() -> Self {
            let mut site = Self::new("", "", &[]);
            site.word = SiteWord::new(ON);
            site
        }
    }

    /// Says what a site is whose memory holds nothing but its word and its marks.
    ///
    /// # Safety
    /// `site` is such a site, and only the caller looks at anything but its word; what it is described by
    /// lives as long as the site (P1).
    pub(crate) unsafe fn describe(
        site: *mut Self,
        category: &[u8],
        name: &[u8],
        arguments: &[ArgName],
        marks: Option<Marks>,
    ) {
        let of_run = marks.and_then(Marks::of_run);
        let OfRun { category: is_category, name: is_name, arguments: are_arguments } =
            of_run.unwrap_or(OfRun::NONE);
        let bit = |is_set: bool, bit: usize| if is_set { bit } else { 0 };
        let in_category = bit(is_category, OF_RUN) | bit(of_run.is_some(), FOR_ALL_TEXTS);
        let in_name = bit(is_name, OF_RUN) | bit(are_arguments, ARGUMENTS_OF_RUN);
        let text = |text: &[u8], bits| SiteText { bytes: text.as_ptr(), length: text.len() | bits };
        // SAFETY: fields of a site that is the caller's alone.
        unsafe {
            (&raw mut (*site).category).write(text(category, in_category));
            (&raw mut (*site).name).write(text(name, in_name));
            (&raw mut (*site).arguments).write(arguments.as_ptr());
            (&raw mut (*site).argument_count).write(arguments.len());
        }
    }

    /// Whether events of this site are recorded now. Never with the feature `off`, which leaves nothing of
    /// the macros: the compiler knows the answer.
    #[inline(always)]
    #[must_use]
    pub fn is_on(&self) -> bool {
        !cfg!(any(feature = "off", elsewhere)) && self.word.is_on()
    }

    /// What the site is at this moment, looked at once.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn state(&self) -> SiteState {
        SiteState(if cfg!(any(feature = "off", elsewhere)) { 0 } else { self.load() })
    }

    /// The site's category.
    #[must_use]
    pub const fn category(&self) -> &[u8] {
        self.category.text()
    }

    /// The event's name.
    #[must_use]
    pub const fn name(&self) -> &[u8] {
        self.name.text()
    }

    #[inline(always)]
    pub(crate) const fn arguments(&self) -> &[ArgName] {
        // SAFETY: a slice that lives as long as the site (P1).
        unsafe { core::slice::from_raw_parts(self.arguments, self.argument_count) }
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

    /// Whether another language has registered the site: then its fast path is that of this language.
    pub(crate) fn is_dynamic(&self) -> bool {
        !self.next.load(Ordering::Relaxed).is_null()
    }

    /// See [`SiteWord::published`].
    pub(crate) fn published(&self) -> Option<(u16, u16)> {
        self.word.published()
    }

    /// See [`SiteWord::settled`].
    pub(crate) fn settled(&self) -> Option<(u16, u16)> {
        self.word.settled()
    }

    /// See [`SiteWord::settle`].
    pub(crate) fn settle(&self, category: u16, name: u16) {
        self.word.settle(category, name);
    }

    /// See [`SiteWord::unpublish`].
    pub(crate) fn unpublish(&self) {
        self.word.unpublish();
    }

    /// See [`SiteWord::publish`].
    pub(crate) fn publish(&self, category: u16, name: u16) {
        self.word.publish(category, name);
    }
}
