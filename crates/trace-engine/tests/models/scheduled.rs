//! Atomics for shuttle: another thread may be scheduled before each access. Shuttle's own are larger than a
//! word, and a region is made of words.
#![allow(clippy::disallowed_types, reason = "what crate::sync is made of")]

use core::cell::RefCell;
use core::ops::Deref;
use core::sync::atomic;
use std::rc::Rc;

std::thread_local! {
    /// What is loaded to let another thread run. All threads of a mix run on one thread of the system.
    static SWITCH: RefCell<Rc<shuttle::sync::atomic::AtomicBool>> = RefCell::default();
}

/// A mix begins.
pub(crate) fn begin() {
    SWITCH.take();
}

/// Lets another thread run, or not. Unlike `yield_now` it says nothing against the calling thread.
fn switch() {
    SWITCH.with_borrow(Clone::clone).load(atomic::Ordering::Relaxed);
}

macro_rules! scheduled {
    ($($name:ident($number:ty),)*) => { $(
        #[derive(Debug, Default)]
        pub(crate) struct $name(atomic::$name);

        impl $name {
            pub const fn new(value: $number) -> Self {
                Self(atomic::$name::new(value))
            }
        }

        impl Deref for $name {
            type Target = atomic::$name;

            fn deref(&self) -> &atomic::$name {
                switch();
                &self.0
            }
        }
    )* };
}

scheduled!(AtomicU32(u32), AtomicU64(u64), AtomicUsize(usize),);
