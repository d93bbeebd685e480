//! What a thread leaves when it ends: its control block and what is left of its slabs.

use crate::session::context::Context;
use crate::session::lease::Lease;
use crate::session::state::is_recording;
use crate::thread::block::ThreadBlock;
use crate::thread::registry;

/// The exit notice.
pub(super) extern "C" fn on_thread_exit(value: *mut core::ffi::c_void) {
    registry::on_thread_exit(value.addr(), leave_slabs);
}

/// Leaves the slabs of a thread that ends, or of a block that was borrowed for one event.
pub(crate) fn leave_slabs(block: &'static ThreadBlock) {
    let left = block.take_left_events();
    let may_have_beginning = block.events_under_way() > 0;
    let lease = Lease::inside(block);
    #[cfg(not(modelled))]
    if let Some(pages) = lease.context().and_then(Context::scopes).filter(|_| !block.scopes_place().is_none())
    {
        pages.leave(block.scopes());
        block.scopes_place().clear();
    }
    let is_current = |context: &&Context| block.generation() == context.buffer().generation();
    if let Some(context) = lease.context().filter(is_current) {
        if is_recording() {
            context.buffer().count_left(left, block.latest());
        }
        let slabs = context.slabs();
        block.slabs().iter().for_each(|own| slabs.leave_slab(block, own, may_have_beginning));
    }
}
