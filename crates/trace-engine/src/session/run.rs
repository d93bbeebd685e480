//! What is wanted in the present run of a trace, also for threads that ask while it begins or ends.
//!
//! Invariant **A1**: the pointer is null or to a box in `kept`, none of which is dropped before the trace is.
#![allow(unsafe_code)]

use crate::sync::{AtomicPtr, Mutex, Ordering};

/// The categories that a run wants beside those of the trace, from its start to its stop.
#[derive(Debug, Default)]
pub(crate) struct Run {
    current: AtomicPtr<Vec<String>>,
    #[expect(clippy::vec_box, reason = "they must not move")]
    kept: Mutex<Vec<Box<Vec<String>>>>,
}

impl Run {
    /// A run begins.
    pub fn begin(&self, additional_categories: &[String]) {
        let mut kept = self.kept.lock();
        kept.push(Box::new(additional_categories.to_vec()));
        let newest = kept.last_mut().map_or(core::ptr::null_mut(), |newest| &raw mut **newest);
        // One order with the look at the list of sites behind it: a site that is registered is on the list or
        // sees the run.
        self.current.store(newest, Ordering::SeqCst);
    }

    /// The run ends.
    pub fn end(&self) {
        self.current.store(core::ptr::null_mut(), Ordering::SeqCst);
    }

    /// What the run wants beside the trace; none if there is no run.
    pub fn additional(&self) -> Option<&[String]> {
        // SAFETY: null or alive for as long as this is (A1).
        unsafe { self.current.load(Ordering::SeqCst).as_ref() }.map(Vec::as_slice)
    }
}
