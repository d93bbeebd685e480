//! The word of a call site, which says whether it is on and which indices its strings have.
//!
//! ```text
//!  63            48 47            32 31         5    4     3    2    1    0
//! +----------------+----------------+------------+-------+----+----+----+----+
//! |  name reference|category ref.   |     0      |SETTLED|BUSY|NEW |FAST| ON |
//! +----------------+----------------+------------+-------+----+----+----+----+
//! ```
//!
//! The upper half is what an event's header holds in the same bits, so the hot path copies it. It is valid
//! only together with `FAST`, or with `SETTLED`, where some of the site's strings stand in each event. `NEW`
//! sites are on no list of the engine's (see `dynamic_sites`); they always count as on.

use crate::sync::{AtomicU64, Ordering};

/// The category is enabled and a trace is running.
pub(crate) const ON: u64 = 1;
/// All strings of the site have indices and writers need no fence of their own.
pub(crate) const FAST: u64 = 2;
/// The site is on no list.
pub(crate) const NEW: u64 = 4;
/// A new site that a thread is about to register, or that is not to be registered any more.
pub(crate) const BUSY: u64 = 8;

/// It is known how each string of the site stands in events, and some of them have no index.
pub(crate) const SETTLED: u64 = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct SiteWord(AtomicU64);

impl SiteWord {
    const_unless_modelled! {
        /// A word that says this.
        pub fn new(word: u64) -> Self {
            Self(AtomicU64::new(word))
        }
    }

    /// Whether the site is on, for a first look: it is checked again inside the event.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ON != 0
    }

    #[inline(always)]
    pub fn load(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`, so the definitions and the argument names' indices
        // are there.
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

    /// The references of category and name, if it is known that they stay what they are, although not all
    /// strings of the site have an index. For a thread inside an event.
    pub fn settled(&self) -> Option<(u16, u16)> {
        let word = self.load();
        (word & SETTLED != 0).then_some(((word >> 32) as u16, (word >> 48) as u16))
    }

    /// Remembers such references until the site is switched, unless it was meanwhile.
    pub fn settle(&self, category: u16, name: u16) {
        let settled = ON | SETTLED | u64::from(category) << 32 | u64::from(name) << 48;
        // Release: pairs with the Acquire in `load`; the references of arguments were stored before. A lost
        // race is as in `publish`.
        let _ = self.0.compare_exchange(ON, settled, Ordering::Release, Ordering::Relaxed);
    }

    /// Publishes the string indices, unless the site was switched meanwhile.
    pub fn publish(&self, category: u16, name: u16) {
        let word = ON | FAST | u64::from(category) << 32 | u64::from(name) << 48;
        // Release: pairs with the Acquire in `load`; the definitions and the argument names' indices were
        // stored before. A lost race means that another thread published or switched: nothing to do.
        let _ = self.0.compare_exchange(ON, word, Ordering::Release, Ordering::Relaxed);
    }

    /// Takes back what was published: each event fences by itself from now on.
    pub fn unpublish(&self) {
        let word = self.load();
        if word & FAST != 0 {
            // Fails where it is switched meanwhile, after which it is not published either.
            let _ = self.0.compare_exchange(word, ON, Ordering::SeqCst, Ordering::Relaxed);
        }
    }

    /// Whether this thread is the one that registers a new site.
    pub fn take_new(&self) -> bool {
        let taken = self.0.compare_exchange(ON | NEW, ON | NEW | BUSY, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// The site is complete.
    pub fn finish_new(&self, is_on: bool) {
        // Release: what it is was stored before.
        self.0.store(if is_on { ON } else { 0 }, Ordering::Release);
    }

    /// Switches a site that was switched the wrong way when it was registered, unless another thread has done
    /// so since.
    pub fn correct(&self, is_on: bool) {
        let (from, to) = if is_on { (0, ON) } else { (ON, 0) };
        let _ = self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// The site is not on a list any more, and never will be.
    pub fn unlist(&self) {
        self.0.store(ON | NEW | BUSY, Ordering::SeqCst);
    }
}
