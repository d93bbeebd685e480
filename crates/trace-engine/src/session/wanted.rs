//! Whether the present run wants a category.

use crate::session::fork;
use crate::session::lease::{self, Lease};

/// Whether the present run wants a category; or whether this is a forked child that has to look at its
/// first event, or does so.
pub(crate) fn wants(lease: &Lease, category: &[u8]) -> bool {
    match lease.run_wants(category) {
        Some(is_wanted) => is_wanted,
        None => fork::is_new_child(),
    }
}

/// Whether the present run wants a category, without a block where there is no trace.
pub(crate) fn is_wanted(category: &[u8]) -> bool {
    if !lease::has_context() {
        return fork::is_new_child();
    }
    wants(&Lease::of_thread(), category)
}
