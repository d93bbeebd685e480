//! Definitions of strings, and the sites that publish their indices.

use crate::site_word::{FAST, ON, SiteWord};
use crate::sync::{AtomicU64, Ordering, thread};
use loom::cell::UnsafeCell;
use loom::sync::Arc;

/// A site, and what its index means.
struct World {
    site: SiteWord,
    /// What the index stands for; 0 until that is defined.
    definition: UnsafeCell<u64>,
    /// Held while strings are defined; nobody waits for it.
    is_defining: AtomicU64,
}

impl World {
    fn new() -> Self {
        Self {
            site: SiteWord(AtomicU64::new(ON)),
            definition: UnsafeCell::new(0),
            is_defining: AtomicU64::new(0),
        }
    }

    /// An event: with the index if that is published, else it defines the string, or writes it inline where somebody else is
    /// busy with that.
    fn write(&self) {
        let word = self.site.load();
        if word & FAST != 0 {
            let defined = self.definition.with(|place| {
                // SAFETY: loom checks that nobody writes meanwhile.
                unsafe { *place }
            });
            assert_eq!(defined, 7, "an index without its definition");
            assert_eq!(word >> 32, 1 | 2 << 16);
        } else if word & ON != 0
            && self.is_defining.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            // Somebody may have been faster.
            if self.site.published().is_none() {
                self.definition.with_mut(|place| {
                    // SAFETY: as above.
                    unsafe { *place = 7 };
                });
                self.site.publish(1, 2);
            }
            self.is_defining.store(0, Ordering::Release);
        }
    }
}

/// Two threads come to a new site: who finds an index finds what it stands for.
#[test]
fn an_index_is_published_after_its_definition() {
    loom::model(|| {
        let world = Arc::new(World::new());
        let other = world.clone();
        let writing = thread::spawn(move || other.write());
        world.write();
        writing.join().unwrap();
        assert_ne!(world.site.load() & FAST, 0, "one of them has published it");
    });
}
