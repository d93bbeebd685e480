//! Forked children: how they become providers of their own.
//!
//! The descriptors by which the manager watches a provider are in a table of the provider's thread, which no
//! child inherits. Only the end that wakes this thread is in the program's table: a child closes it, so that
//! the thread learns when the parent's is closed. Where the application runs the provider in a loop of its
//! own, all of them are in the program's table, and a child closes them all.
//!
//! Invariant **F1**: [`NAME`] is null or was leaked from a box.
#![allow(unsafe_code)]

use crate::linux::atrace;
use crate::linux::provider::TraceProvider;
use crate::linux::startup;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};
use trace_engine::engine;
use zx_sim::guest::children;

/// The name of the provider that was registered last.
static NAME: AtomicPtr<String> = AtomicPtr::new(core::ptr::null_mut());

/// From now on a forked child registers as a provider of this name when it records its first event.
pub(crate) fn register_children_as(name: &str) {
    // The previous name is leaked, as another thread may be reading it.
    NAME.store(Box::into_raw(Box::new(name.to_owned())), Ordering::Release);
    static KNOW: Once = Once::new();
    KNOW.call_once(|| {
        // A recording that goes on knows it already.
        if !startup::is_recording() {
            atrace::want(false);
        }
    });
    register_children();
}

/// From now on a forked child looks at its environment when it records its first event, and registers if its
/// parent has a provider.
pub(crate) fn register_children() {
    children::install();
    engine::call_at_first_event_of_children(register_child);
}

/// In a child that records its first event.
fn register_child() {
    // SAFETY: never freed (F1).
    match unsafe { NAME.load(Ordering::Acquire).as_ref() } {
        // Lives as long as the process: nothing in a child owns it.
        Some(name) => core::mem::forget(TraceProvider::new(name)),
        None => startup::begin_by_environment_as(None),
    }
}
