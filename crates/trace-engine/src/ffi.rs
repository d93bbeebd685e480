//! What the library for C and providers that assemble records themselves need: sites without a section,
//! records word by word, references on the running trace, and the thread's control block.
#![allow(unsafe_code)]

pub use crate::record::arguments::GivenValues;
pub use crate::record::privacy::REDACTED;
pub use crate::record::raw::{
    WriteResult, add_losses, count_too_large, current_process, current_thread, durable_room,
    is_category_wanted, is_private, literal_index, send_alert, string_index, try_write_record,
    virtual_thread, write_durable_record, write_record,
};
use crate::session::lease::Lease;
pub use crate::session::trace_ref::TraceRef;
use crate::session::wanted;
pub use crate::site::MAX_ARGUMENTS;
pub use crate::site::dynamic_sites::{
    Registration, SiteText, is_described_by, unregister_module, with_unlisted, with_unlisted_constants,
    with_unlisted_of,
};
use crate::site::{ArgName, Site, dynamic_sites};
use crate::thread::registry;
pub use crate::thread::registry::{mirror_current_thread, update_mirror};

/// Whether [`open_scope`] may find a place, for a first look.
#[must_use]
pub fn may_open_scope() -> bool {
    crate::record::open_scope::may_open()
}

/// A scope of a site begins at this moment of the calling thread. What its end passes on to [`close_scope`].
#[must_use]
pub fn open_scope(site: &Site, start: u64) -> u64 {
    crate::record::open_scope::open(site, start)
}

/// A scope of the calling thread ends whose record is written.
pub fn close_scope(scope: u64) {
    registry::current().scopes().end(scope);
}

/// Whether a site is on no list yet. Not for a call that has no site.
///
/// # Safety
/// `site` is null, or a site of this layout that stays where it is meanwhile.
#[must_use]
pub unsafe fn is_new_site(site: *const Site) -> bool {
    // SAFETY: the caller's; only the word, which is an atomic, is looked at.
    !site.is_null() && unsafe { dynamic_sites::is_new(site) }
}

/// Registers a site of a program in another language, if it is new. `handle` is a number of its module's own.
///
/// # Safety
/// `site` is a site of this layout that stays where it is until the module is unregistered, as do the texts,
/// the names and, at `storage`, memory for as many arguments.
pub unsafe fn register_site(
    site: *mut Site,
    text: SiteText<'_>,
    names: &[&[u8]],
    storage: *mut ArgName,
    handle: usize,
) -> Registration {
    let judge = || {
        let lease = Lease::of_thread();
        move |category: &[u8]| wanted::wants(&lease, category)
    };
    // SAFETY: the caller's.
    unsafe { dynamic_sites::register(site, text, names, storage, handle, judge) }
}
