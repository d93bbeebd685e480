//! A recording goes over to another buffer: each event is in the one or the other.

use super::{Engine, Error, State, Stopped, count_left, give_back, wait_for_leases};
use crate::buffer::region::Region;
use crate::session::config::Config;
use crate::session::context::Context;
use crate::session::observer::{advance_epoch, report_state};
use crate::session::state::{begin_change, end_change};
use crate::session::{lease, trace_ref};
use crate::site;
use crate::slab::retirement::{fence_all_threads, wait_until_out};
use crate::sys;
use crate::thread::{begins, registry};
use std::time::{Duration, Instant};
use trace_format::buffer::{BufferMode, Layout};

/// How long threads wait for those that are inside an event, or that have a reference to write, at most.
const HOLD: Duration = Duration::from_millis(100);
/// How long a thread may take to leave the buffer that was left before it is kept for it.
const GIVE_BACK_WAIT: Duration = Duration::from_secs(1);

impl Engine {
    /// Goes on in another buffer, without a stop: an event is either in the buffer so far, which is complete
    /// when this returns and no longer mapped, or in the other one. Meanwhile threads that come to an event
    /// wait, for 0.1 s at most where another one does not leave its event.
    ///
    /// # Errors
    /// The engine is not started; the region's size fits no buffer, or there is no memory for it; or a thread
    /// did not leave its event in time, or kept a reference to write: then recording goes on as before.
    //= docs/buffer.md#another-buffer
    pub fn go_over(
        &self,
        region: Region,
        mode: BufferMode,
        config: Config,
        additional_categories: &[String],
    ) -> Result<Stopped, Error> {
        let layout = Layout::new(region.len_bytes() as u64, mode)?;
        begin_change(State::Started)?;
        let left = go_over(region, layout, config, additional_categories);
        end_change(State::Started);
        let left = left?;
        report_state();
        Ok(left)
    }
}

fn go_over(
    region: Region,
    layout: Layout,
    config: Config,
    additional_categories: &[String],
) -> Result<Stopped, Error> {
    if !region.back_first(&layout) {
        return Err(Error::NotBacked);
    }
    let (has_times, has_marks) = (config.thread_time, config.mirror.is_some());
    let next = Box::new(Context::new(region, layout, config));
    next.begin_run(additional_categories);

    let deadline = Instant::now() + HOLD;
    let closed = lease::HOLD.close_references(sys::thread_id());
    if trace_ref::wait_for_writing(deadline) != 0 || !closed.wait_until_out(deadline) {
        return Err(Error::Straggler);
    }
    let mut stragglers = 0;
    if let Some(context) = lease::Lease::counted().context() {
        stragglers = closed.stop(context.slabs(), deadline);
        count_left(context);
        context.finalize();
    }
    begins::set_wanted(has_times, has_marks);
    let left = lease::replace(next);
    registry::forget_scopes();
    if let Some(context) = lease::Lease::counted().context() {
        site::for_each(|site| match context.wants(site.category(), additional_categories) {
            true => site.switch_on(),
            false => site.switch_off(),
        });
    }
    advance_epoch();
    drop(closed);

    if let Some(left) = left {
        let deadline = Instant::now() + GIVE_BACK_WAIT;
        // Threads that have looked at it without writing.
        fence_all_threads();
        let inside = wait_until_out(deadline).len() + wait_for_leases(deadline);
        give_back(left, stragglers + inside);
    }
    Ok(Stopped { stragglers })
}
