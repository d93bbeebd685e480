//! Definitions of strings, the sites that publish their indices, and traces that begin anew.

use crate::site_word::{FAST, ON, SiteWord};
use crate::sync::{AtomicU64, Ordering, fence, thread};
use loom::cell::UnsafeCell;
use loom::sync::Arc;

/// A site, what its index means, and who is inside an event.
struct World {
    site: SiteWord,
    /// Which string the index stands for: that of the trace with this number.
    definition: UnsafeCell<u64>,
    trace: AtomicU64,
    counters: [AtomicU64; 2],
    /// Held while strings are defined; nobody waits for it.
    is_defining: AtomicU64,
}

impl World {
    fn new() -> Self {
        Self {
            site: SiteWord::new(ON),
            definition: UnsafeCell::new(0),
            trace: AtomicU64::new(1),
            counters: [AtomicU64::new(0), AtomicU64::new(0)],
            is_defining: AtomicU64::new(0),
        }
    }

    /// An event: with the index if that is published, else it defines the string, or writes it inline where
    /// somebody else is busy with that.
    fn write(&self, thread: usize) {
        let counter = &self.counters[thread];
        let before = counter.load(Ordering::Relaxed);
        // Release: a dispatcher that waited for the event before may see this first.
        counter.store(before + 1, Ordering::Release);
        fence(Ordering::SeqCst);
        let word = self.site.load();
        if word & FAST != 0 {
            let defined = self.definition.with(|place| {
                // SAFETY: loom checks that nobody writes meanwhile.
                unsafe { *place }
            });
            assert_eq!(defined, self.trace.load(Ordering::Relaxed), "an index without its definition");
            assert_eq!(word >> 32, 1 | 2 << 16);
        } else if word & ON != 0
            && self.is_defining.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            // Somebody may have been faster.
            if self.site.published().is_none() {
                let trace = self.trace.load(Ordering::Relaxed);
                self.definition.with_mut(|place| {
                    // SAFETY: as above.
                    unsafe { *place = trace };
                });
                self.site.publish(1, 2);
            }
            self.is_defining.store(0, Ordering::Release);
        }
        counter.store(before + 2, Ordering::Release);
    }

    /// The trace ends, and another begins whose definitions start anew.
    fn restart(&self) {
        self.site.switch_off();
        fence(Ordering::SeqCst);
        for counter in &self.counters {
            let first = counter.load(Ordering::Acquire);
            while first & 1 != 0 && counter.load(Ordering::Acquire) == first {
                thread::yield_now();
            }
        }
        self.definition.with_mut(|place| {
            // SAFETY: as above.
            unsafe { *place = 0 };
        });
        self.trace.store(2, Ordering::Relaxed);
        self.site.switch_on();
    }
}

/// Two threads come to a new site: who finds an index finds what it stands for.
#[test]
fn an_index_is_published_after_its_definition() {
    loom::model(|| {
        let world = Arc::new(World::new());
        let other = world.clone();
        let writing = thread::spawn(move || other.write(1));
        world.write(0);
        writing.join().unwrap();
        assert_ne!(world.site.load() & FAST, 0, "one of them has published it");
    });
}

/// A writer meets the end of a trace and the beginning of the next: an index of the one is never used in the
/// other, and definitions are not taken away from anybody.
#[test]
fn a_trace_that_begins_anew_does_not_know_the_indices_of_the_last() {
    loom::model(|| {
        let world = Arc::new(World::new());
        let other = world.clone();
        let writing = thread::spawn(move || {
            other.write(1);
            other.write(1);
        });
        world.restart();
        writing.join().unwrap();
        world.write(0);
    });
}
