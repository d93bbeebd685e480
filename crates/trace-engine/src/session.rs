//! One trace of this process: its configuration and state, how it begins and ends, and what keeps it alive.

pub(crate) mod category_filter;
pub(crate) mod config;
pub(crate) mod context;
pub mod engine;
pub(crate) mod fork;
pub(crate) mod lease;
pub(crate) mod observer;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod thread_exit;
pub(crate) mod trace_ref;

use crate::session::lease::Lease;

/// Whether the present run wants a category; or whether this is a forked child that has to look at its
/// first event.
pub(crate) fn wants(lease: &Lease, category: &[u8]) -> bool {
    lease.wants(category).unwrap_or_else(fork::is_new_child)
}

/// Whether the present run wants a category, without a block where there is no trace.
pub(crate) fn is_wanted(category: &[u8]) -> bool {
    if !lease::has_context() {
        return fork::is_new_child();
    }
    wants(&Lease::of_thread(), category)
}
