//! What the library for C and providers that assemble records themselves need: sites without a section,
//! records word by word, references on the running trace, and the thread's control block.

pub use crate::record::raw::{
    ThreadPlace, WriteResult, add_losses, count_too_large, current_thread, durable_room, is_category_wanted,
    send_alert, string_index, try_write_record, virtual_thread, write_durable_record, write_record,
};
pub use crate::session::trace_ref::TraceRef;
pub use crate::site::dynamic_sites::{
    MAX_ARGUMENTS, Registration, SiteText, is_described_by, register_site, unregister_module, with_unlisted,
};
pub use crate::thread::block::{mirror_current_thread, update_mirror};
