//! The life of a trace: initialize, start, stop, terminate. All of it is for the dispatcher's thread.
#![allow(unsafe_code)]

mod going_over;

use crate::buffer::region::Region;
use crate::session::config::Config;
pub use crate::session::config::Disposition;
use crate::session::context::Context;
pub use crate::session::fork::{
    call_at_first_event_of_children, generation, is_new_child, is_without_forks, join_if_new_child,
    without_forks,
};
use crate::session::lease::{self, Lease, Unlinked};
pub use crate::session::observer::{Observer, epoch, is_start_pending, observe, turn};
use crate::session::observer::{advance_epoch, report_state};
pub use crate::session::state::{Error, State, state};
use crate::session::state::{begin_change, begin_change_to, end_change};
use crate::session::{fork, missed, trace_ref};
use crate::site::{self, Site};
use crate::slab::retirement::{take_slabs_away, wait_until_out};
pub use crate::slab::streaming::{SaveRequest, Service};
use crate::sys;
use crate::thread::begins;
use crate::thread::registry;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use trace_format::buffer::{BufferMode, HEADER_BYTES, Layout};
use zx_ticks as ticks;

/// How a stop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Threads that did not leave their event in time; their last record may be missing.
    pub stragglers: usize,
}

/// The words of the buffer's header as they would be if recording ended now; none without a trace.
#[must_use]
pub fn header_now() -> Option<[u64; HEADER_BYTES / 8]> {
    Lease::counted().context().map(Context::header_now)
}

/// The mode of the running trace.
#[must_use]
pub fn mode() -> Option<BufferMode> {
    Lease::of_thread().context().map(|context| context.buffer().layout().mode)
}

/// How long a thread may be inside an event before a buffer that is to be cleared is not.
const CLEAR_WAIT: Duration = Duration::from_millis(100);

/// Waits until no lease is counted. 0, or 1 where the deadline passes first.
fn wait_for_leases(deadline: Instant) -> usize {
    trace_ref::wait_for_zero(&lease::LEASES, deadline)
}

/// Has the kernel prepare to fence all threads of this process, which [`initialize`] does otherwise.
///
/// Returns at once in a process of one thread, and blocks for some 10 ms in one of several, for seconds where
/// the machine is busy: so it is best called before an application has threads, or where nothing waits.
pub fn prepare() {
    sys::register_membarrier();
}

/// Whether this kernel can allocate memory of a mapping before it is written to, which a
/// [sparse](Region::from_sparse_mapping) buffer needs.
#[must_use]
pub fn can_populate() -> bool {
    sys::can_populate()
}

/// Prepares a trace into `region`: writes the header and the first durable records. Nothing is recorded
/// yet.
///
/// # Errors
/// A trace is initialized already; the region's size fits no buffer, or there is no memory for it; or a
/// thread is still inside an event of an earlier trace.
pub fn initialize(region: Region, mode: BufferMode, config: Config) -> Result<Engine, Error> {
    let layout = Layout::new(region.len_bytes() as u64, mode)?;
    begin_change(State::Idle)?;
    if !region.back_first(&layout) {
        end_change(State::Idle);
        return Err(Error::NotBacked);
    }
    fork::install_notices();
    sys::register_membarrier();
    // Which clock there is takes reading files to find out, which no event may do.
    let _ = ticks::source();
    if !wait_until_out(Instant::now() + CLEAR_WAIT).is_empty() {
        end_change(State::Idle);
        return Err(Error::Straggler);
    }
    registry::sweep();
    begins::set_wanted(config.thread_time, config.mirror.is_some());
    lease::publish(Context::new(region, layout, config));
    end_change(State::Initialized);
    Ok(Engine(()))
}

/// The initialized trace, for the dispatcher that has initialized it. It does not end when this is dropped.
#[derive(Debug)]
#[must_use = "only this can start the trace and end it"]
pub struct Engine(());

impl Engine {
    /// Starts recording, for the first time or again after a stop. `additional_categories` are wanted in this
    /// run beside those of the trace.
    ///
    /// # Errors
    /// The engine is neither initialized nor stopped; or the buffer has to be cleared and a thread is still
    /// inside an event of the run before.
    pub fn start(&self, disposition: Disposition, additional_categories: &[String]) -> Result<(), Error> {
        let before = if begin_change(State::Stopped).is_ok() {
            State::Stopped
        } else {
            begin_change(State::Initialized)?;
            State::Initialized
        };
        if let Some(context) = Lease::counted().context() {
            let is_cleared = before == State::Stopped && disposition != Disposition::Retain;
            if is_cleared && !clear(context, disposition) {
                end_change(before);
                return Err(Error::Straggler);
            }
            context.begin_run(additional_categories);
            registry::forget_scopes();
            lease::count_run();
            advance_epoch();
            // In a forked child all of them may be on.
            site::for_each(|site| match context.wants(site.category(), additional_categories) {
                true => site.switch_on(),
                false => site.switch_off(),
            });
        }
        end_change(State::Started);
        if let Some(context) = Lease::counted().context() {
            missed::report(context, additional_categories);
        }
        report_state();
        Ok(())
    }

    /// Ends recording and brings the buffer's header up to date. Waits until `deadline` for threads that are
    /// inside an event.
    ///
    /// # Errors
    /// The engine is not started.
    pub fn stop(&self, deadline: Instant) -> Result<Stopped, Error> {
        self.begin_stop()?;
        self.finish_stop(deadline)
    }

    /// The first half of [`Engine::stop`]: the second waits for references on the trace. Until it goes on,
    /// everything is recorded.
    ///
    /// # Errors
    /// The engine is not started.
    pub fn begin_stop(&self) -> Result<(), Error> {
        if state() == State::Started {
            turn(true);
        }
        begin_change_to(State::Stopping, State::Started)?;
        report_state();
        Ok(())
    }

    /// The second half of [`Engine::stop`].
    ///
    /// # Errors
    /// The engine is not stopping.
    pub fn finish_stop(&self, deadline: Instant) -> Result<Stopped, Error> {
        if state() != State::Stopping {
            return Err(Error::BadState { expected: State::Stopping, found: state() });
        }
        let mut stragglers = trace_ref::wait_for_prolonged(deadline);
        lease::count_run();
        site::for_each(Site::switch_off);
        if let Some(context) = Lease::counted().context() {
            context.run().end();
            stragglers += trace_ref::wait_for_writing(deadline);
            context.slabs().stop();
            stragglers += context.slabs().retire_all(deadline);
            count_left(context);
            // Sites that were registered meanwhile, by threads that were inside.
            site::for_each(Site::switch_off);
            context.finalize();
        }
        advance_epoch();
        end_change(State::Stopped);
        report_state();
        Ok(Stopped { stragglers })
    }

    /// Looks after a running stream: hands the next half over if it is full. In other modes, and while
    /// nothing is recorded, there is nothing to look after.
    #[must_use]
    pub fn service(&self) -> Option<Service> {
        // Also while a stop waits for references on the trace.
        if !matches!(state(), State::Started | State::Stopping) {
            return None;
        }
        streaming(&Lease::counted()).ok().map(|context| context.streaming().service(context.slabs()))
    }

    /// Has memory allocated for what threads are about to write, if the buffer is
    /// [sparse](Region::from_sparse_mapping). Returns when to call it again.
    #[must_use]
    pub fn back_ahead(&self) -> Option<Duration> {
        if !matches!(state(), State::Started | State::Stopping) {
            return None;
        }
        let lease = Lease::counted();
        let context = lease.context()?;
        context.ahead().service(context.slabs(), Instant::now())
    }

    /// The manager has saved a half: its space is used again.
    ///
    /// # Errors
    /// There is no trace in streaming mode; or the half is not the one that was handed over last.
    pub fn mark_saved(&self, saved: SaveRequest) -> Result<(), Error> {
        let lease = Lease::counted();
        let context = streaming(&lease)?;
        let is_expected = context.streaming().take_back(context.slabs(), saved);
        if is_expected { Ok(()) } else { Err(Error::NotHandedOver(saved.wrapped_count)) }
    }

    /// Has the half in use handed over by the next [`Engine::service`], although it is not full.
    ///
    /// # Errors
    /// There is no trace in streaming mode.
    pub fn flush(&self) -> Result<(), Error> {
        streaming(&Lease::counted())?.streaming().flush();
        Ok(())
    }

    /// Gives the buffer back: unmaps it, or, where a thread is stuck inside an event, puts private memory in
    /// its place. Stops first if that was not done.
    ///
    /// # Errors
    /// The trace was terminated before, or another thread is changing its state.
    pub fn terminate(&self, deadline: Instant) -> Result<(), Error> {
        if state() == State::Started {
            self.stop(deadline)?;
        }
        begin_change(State::Stopped).or_else(|_| begin_change(State::Initialized))?;
        if let Some(unlinked) = lease::unlink() {
            registry::forget_scopes();
            let stragglers = unlinked.context().slabs().retire_all(deadline)
                + trace_ref::wait_for_writing(deadline)
                + wait_for_leases(deadline);
            give_back(unlinked, stragglers);
        }
        end_change(State::Idle);
        Ok(())
    }

    /// Records that were refused since the buffer was cleared; 0 without one.
    #[must_use]
    pub fn records_refused(&self) -> u64 {
        let lease = Lease::counted();
        lease.context().map_or(0, |context| context.buffer().records_refused())
    }

    /// Whether there are references that delay a stop.
    #[must_use]
    pub fn has_prolonged_refs(&self) -> bool {
        trace_ref::is_prolonged()
    }
}

/// Counts events of this trace that threads have left by a jump and that no thread will end.
fn count_left(context: &Context) {
    let generation = context.buffer().generation();
    for block in registry::all().filter(|block| block.is_replaced()) {
        if block.generation() == generation {
            context.buffer().count_left(block.take_left_events(), block.latest());
        }
    }
}

/// Gives the buffer of a trace back that no thread finds any more, unless some are still in it.
fn give_back(unlinked: Unlinked, stragglers: usize) {
    if stragglers == 0 {
        // SAFETY: all threads have left it, and there is no lease (E2).
        unsafe { unlinked.free() };
    } else {
        // It is leaked for the thread that is stuck in it.
        unlinked.context().detach();
    }
}

/// Clears the buffer; false if a thread is still inside an event, and then nothing was done.
fn clear(context: &Context, disposition: Disposition) -> bool {
    let is_free = take_slabs_away(CLEAR_WAIT);
    if is_free {
        context.clear(disposition);
    }
    is_free
}

/// The trace, if it streams.
fn streaming(lease: &Lease) -> Result<&Context, Error> {
    lease
        .context()
        .filter(|context| context.buffer().layout().mode == BufferMode::Streaming)
        .ok_or(Error::NotStreaming)
}

/// Calls a function with categories.
pub type CategorySource = fn(&mut dyn FnMut(&[u8]));

static CATEGORY_SOURCE: OnceLock<CategorySource> = OnceLock::new();

/// Sets the source of categories whose sites the engine cannot find before they are registered. Only the
/// first call in a process has an effect.
pub fn set_category_source(source: CategorySource) {
    let _ = CATEGORY_SOURCE.set(source);
}

/// The categories of all call sites of this executable, of those that were registered, and of
/// [`set_category_source`]: sorted, each once. Of a site that is in several categories, each of them.
#[must_use]
pub fn known_categories() -> Vec<String> {
    let mut categories: Vec<String> = Vec::new();
    // Few differ, and to sort them all would take more code in every program.
    let mut add = |category: &[u8]| {
        for one in category.split(|byte| *byte == b',') {
            let one = String::from_utf8_lossy(one);
            if let Err(place) = categories.binary_search_by(|known| known.as_str().cmp(&one)) {
                categories.insert(place, one.into_owned());
            }
        }
    };
    site::for_each(|site| add(site.category()));
    if let Some(source) = CATEGORY_SOURCE.get() {
        source(&mut add);
    }
    categories
}

#[cfg(test)]
mod tests;
