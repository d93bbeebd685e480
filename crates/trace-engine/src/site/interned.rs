//! Call sites that are made at run time, in Rust, and stay for the life of the process: each is leaked, and
//! put on one list for good.
//!
//! Invariant **I1**: the list is made of leaked entries, which change no more once they are on it.
#![allow(unsafe_code)]

use crate::site::{ArgName, OfRun, Site};
use crate::sync::{AtomicPtr, Ordering};

/// A site, and the one that was put on the list before it.
struct Entry {
    site: Site,
    next: *const Entry,
}

static LAST: AtomicPtr<Entry> = AtomicPtr::new(core::ptr::null_mut());

/// Makes a site, and puts it on the list. `judge` returns a function that says whether the present run wants
/// a category: as long as that exists, a stop waits. `are_texts_of_run` says whether category and name are
/// not constants.
///
/// # Panics
/// If a text has more than 32 000 bytes, or if there are more than 15 arguments.
pub(crate) fn make<W: Fn(&[u8]) -> bool>(
    category: &'static str,
    name: &'static str,
    arguments: &[&'static str],
    are_texts_of_run: bool,
    judge: impl FnOnce() -> W,
) -> &'static Site {
    let arguments: Vec<ArgName> = arguments.iter().map(|name| ArgName::new(name)).collect();
    let site = Site::new(category, name, Vec::leak(arguments));
    let site = if are_texts_of_run {
        site.with_of_run(OfRun { category: true, name: true, arguments: false })
    } else {
        site
    };
    let entry = Box::leak(Box::new(Entry { site, next: core::ptr::null() }));
    // A stop waits for this thread before it switches sites off for the last time.
    let wants = judge();
    let is_wanted = wants(category.as_bytes());
    if is_wanted {
        entry.site.switch_on();
    }
    let mut last = LAST.load(Ordering::Relaxed);
    loop {
        entry.next = last;
        // SeqCst: one order with the beginning of a run and the walk that switches sites on. A thread that
        // finds the entry finds what it is.
        match LAST.compare_exchange_weak(last, entry, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => break,
            Err(now) => last = now,
        }
    }
    // A run that began or ended meanwhile may have missed the site.
    if wants(category.as_bytes()) != is_wanted {
        entry.site.word.correct(!is_wanted);
    }
    &entry.site
}

/// Calls a function with each site on the list.
pub(crate) fn for_each(call: &mut dyn FnMut(&Site)) {
    let mut next: *const Entry = LAST.load(Ordering::SeqCst);
    // SAFETY: null, or an entry that stays as it is (I1).
    while let Some(entry) = unsafe { next.as_ref() } {
        call(&entry.site);
        next = entry.next;
    }
}
