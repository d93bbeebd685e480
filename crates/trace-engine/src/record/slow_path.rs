//! The slow path: finds the running trace and the thread's control block, and writes a record of any kind.

use crate::record::arguments::Values;
use crate::record::event::Event;
use crate::record::event_writer::{EventWriter, WriteError, write_inside};
use crate::record::hooked::{Whose, passes};
use crate::record::{mirror, processor_time};
use crate::session::lease::Lease;
use crate::session::{fork, hook, thread_exit};
use crate::site::Site;
use crate::thread::begins;
use crate::thread::registry::{self, Acquired};

/// Everything that is not the common case: the first event of a site or a thread, the end of a slab, nested
/// events, inline strings and threads.
#[cold]
#[inline(never)]
pub(super) fn write_slowly<V: Values>(site: &Site, event: Event, values: &V, mut at: Option<u64>) {
    let ended = processor_time::end(event.event_type);
    let wants_marks = begins::wants_marks();
    let is_marked = wants_marks && mirror::end_scope(&event);
    if hook::is_wanted() && !passes(site, &event, values, Whose::Own, &mut at) {
        if let Some(start) = event.start {
            registry::current().begins().take(start);
        }
        return;
    }
    if wants_marks {
        mirror::mark(site, &event, values, is_marked);
    }
    with_writer(site, at, |writer, now| writer.write_event(site, &event, values, now, ended));
}

/// There is no trace.
struct NoTrace;

/// Writes a record with the running trace, and counts it if it is lost. None if no trace runs, or the site is
/// off.
#[inline]
pub(crate) fn with_writer<R>(
    site: &Site,
    at: Option<u64>,
    write: impl Fn(&EventWriter<'_>, u64) -> Result<R, WriteError>,
) -> Option<Result<R, WriteError>> {
    if fork::is_joining() && !fork::wait_for_first(site) {
        return None;
    }
    match try_with_writer(site, at, &write) {
        Ok(result) => result,
        Err(NoTrace) if fork::is_first_of_child(site) => try_with_writer(site, at, &write).unwrap_or(None),
        Err(NoTrace) => None,
    }
}

fn try_with_writer<R>(
    site: &Site,
    at: Option<u64>,
    write: &impl Fn(&EventWriter<'_>, u64) -> Result<R, WriteError>,
) -> Result<Option<Result<R, WriteError>>, NoTrace> {
    let Some(acquired) = registry::acquire() else {
        return Ok(None);
    };
    let (block, is_own) = match acquired {
        Acquired::Own(block) => (block, true),
        Acquired::Borrowed(block) => (block, false),
    };
    // Before anything is registered, which takes time.
    let now = at.unwrap_or_else(|| block.stamp());
    let lease = Lease::inside(block);
    let written = lease
        .context()
        .map(|context| write_inside(context, block, is_own, site, now, |writer| write(writer, now)));
    drop(lease);
    if !is_own {
        thread_exit::leave_slabs(block);
        block.free();
    }
    written.ok_or(NoTrace)
}
