//! The life of the engine: initialize, start, stop, terminate. All of it is for the dispatcher's thread;
//! writers only look at the current context.
//!
//! Invariants:
//!
//! * **E1** The context pointer is null or a context that was leaked from a box. It is followed only through
//!   a [`Lease`], and by the thread that ends the trace.
//! * **E2** It is freed only after it was unlinked, all threads were fenced, every counter was seen even or
//!   changed since, and no lease was counted.
#![allow(unsafe_code)]

use crate::buffer::region::Region;
use crate::record::processor_time;
use crate::record::write;
pub use crate::session::context::Disposition;
use crate::session::context::{Config, Context};
use crate::session::trace_ref;
use crate::site::Site;
use crate::site::dynamic_sites;
use crate::site::section;
use crate::slab::retirement::{retire_all, wait_until_out};
pub use crate::slab::streaming::{SaveRequest, Service};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use crate::sys;
use crate::thread::block::{self, Acquired, ThreadBlock};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use trace_format::buffer::{BadBufferSize, BufferMode, HEADER_BYTES, Layout, field};
use zx_sim::ticks;

/// What went wrong with a call of the dispatcher's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call does not fit the engine's state.
    #[error("engine is {found}, expected {expected}")]
    BadState {
        /// The state the call needs.
        expected: State,
        /// The state the engine is in.
        found: State,
    },
    /// No buffer can have the region's size.
    #[error(transparent)]
    BadSize(#[from] BadBufferSize),
    /// A thread has been inside an event since an earlier trace or run: its buffer cannot be cleared.
    #[error("a thread has not left its event of an earlier trace")]
    Straggler,
    /// The call is for streaming mode only.
    #[error("buffering mode is not streaming")]
    NotStreaming,
    /// The half that was saved is not the one that was handed over.
    #[error("half {0} is not being saved")]
    NotHandedOver(u32),
}

/// The engine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// No buffer.
    Idle = 0,
    /// A buffer, but recording has not started.
    Initialized = 1,
    /// Events are accepted.
    Started = 2,
    /// A complete buffer; no events are accepted.
    Stopped = 3,
    /// Another thread is changing the state.
    Changing = 4,
    /// Another thread ends a run, and waits for those who hold on to it.
    Stopping = 5,
}

impl State {
    const ALL: [Self; 6] =
        [Self::Idle, Self::Initialized, Self::Started, Self::Stopped, Self::Changing, Self::Stopping];
}

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Initialized => "initialized",
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Changing => "changing",
            Self::Stopping => "stopping",
        })
    }
}

/// How a stop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Threads that did not leave their event in time; their last record may be missing.
    pub stragglers: usize,
}

/// Who wants to know when recording starts and stops.
#[derive(Clone, Copy, Debug)]
pub struct Observer {
    /// Called on the thread that changes the state, after it has. A provider's has descriptors of its own: no
    /// code of the program runs there.
    pub on_change: fn(State),
    /// Whether somebody who was told of a start has not looked yet: then nobody else is told of it.
    pub is_start_pending: fn() -> bool,
}

static OBSERVER: OnceLock<Observer> = OnceLock::new();
/// Counts the beginnings and ends of runs.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// Has an observer told from now on. Only the first one counts.
pub fn observe(observer: Observer) {
    let _ = OBSERVER.set(observer);
}

/// Whether the observer has not looked at a start yet.
#[must_use]
pub fn is_start_pending() -> bool {
    OBSERVER.get().is_some_and(|observer| (observer.is_start_pending)())
}

fn report_state() {
    if let Some(observer) = OBSERVER.get() {
        (observer.on_change)(state());
    }
}

/// Differs after each beginning and each end of a run: what was found out about categories before holds no
/// longer.
#[must_use]
pub fn epoch() -> u32 {
    EPOCH.load(Ordering::SeqCst)
}

/// Records that were refused since the buffer was cleared; 0 without one.
#[must_use]
pub fn records_refused() -> u64 {
    let lease = Lease::counted();
    lease.context().map_or(0, |context| context.header(field::RECORDS_DROPPED).load(Ordering::Relaxed))
}

/// The words of the buffer's header as they would be if recording ended now; none without a trace.
#[must_use]
pub fn header_now() -> Option<[u64; HEADER_BYTES / 8]> {
    Lease::counted().context().map(Context::header_now)
}

/// The mode of the running trace.
#[must_use]
pub fn mode() -> Option<BufferMode> {
    Lease::of_thread().context().map(|context| context.layout.mode)
}

/// How long a thread may be inside an event before a buffer that is to be cleared is not.
const CLEAR_WAIT: Duration = Duration::from_millis(100);

static CONTEXT: AtomicPtr<Context> = AtomicPtr::new(core::ptr::null_mut());
static STATE: AtomicU32 = AtomicU32::new(State::Idle as u32);

/// Takes the engine out of a state for as long as it is being changed.
fn begin_change(expected: State) -> Result<(), Error> {
    begin_change_to(State::Changing, expected)
}

fn begin_change_to(meanwhile: State, expected: State) -> Result<(), Error> {
    STATE
        .compare_exchange(expected as u32, meanwhile as u32, Ordering::Acquire, Ordering::Relaxed)
        .map(|_| ())
        .map_err(|found| Error::BadState { expected, found: State::ALL[found as usize] })
}

fn end_change(state: State) {
    // Release: pairs with the Acquire in `begin_change`.
    STATE.store(state as u32, Ordering::Release);
}

/// All call sites: those that the linker laid out, and those that have enlisted.
pub(crate) fn for_each_site(mut call: impl FnMut(&Site)) {
    section::sites().iter().for_each(&mut call);
    dynamic_sites::for_each(call);
}

/// Leases of threads that are not inside an event.
static LEASES: AtomicU32 = AtomicU32::new(0);

/// As long as it lives, the trace that it gives out does: who ends the trace waits for it, or, where that
/// takes too long, leaves the trace where it is.
pub(crate) struct Lease(Way);

/// How the one that ends a trace finds a lease.
enum Way {
    /// The thread counts as inside an event. A stop waits for that, too.
    Inside(&'static ThreadBlock),
    /// The same, with a block that is given back afterwards.
    Borrowed(&'static ThreadBlock),
    /// By a counter.
    Counted,
}

impl Lease {
    /// Of a thread with its block, which counts as inside an event from now on.
    pub fn inside(block: &'static ThreadBlock) -> Self {
        write::enter(block);
        Self(Way::Inside(block))
    }

    /// Of a thread that counts as inside an event from now on, if it can have a block.
    pub fn of_thread() -> Self {
        match block::acquire() {
            Some(Acquired::Own(block)) => Self::inside(block),
            Some(Acquired::Borrowed(block)) => {
                write::enter(block);
                Self(Way::Borrowed(block))
            }
            None => Self::counted(),
        }
    }

    /// For what waits for threads to leave their events.
    pub fn counted() -> Self {
        // SeqCst: one order with the look at the context, and with its end and the look at the counter.
        LEASES.fetch_add(1, Ordering::SeqCst);
        Self(Way::Counted)
    }

    /// The running trace.
    pub fn context(&self) -> Option<&Context> {
        // SAFETY: null or a context (E1), which is alive as long as this is (E2).
        unsafe { CONTEXT.load(Ordering::SeqCst).as_ref() }
    }

    /// Whether the present run wants a category; or whether this is a forked child that has to look at its
    /// first event.
    pub fn wants(&self, category: &[u8]) -> bool {
        let Some(context) = self.context() else {
            return IS_NEW_CHILD.load(Ordering::Relaxed);
        };
        context.run.additional().is_some_and(|additional| context.wants(category, additional))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match self.0 {
            Way::Inside(block) => write::leave(block),
            Way::Borrowed(block) => {
                write::leave(block);
                block::give_back(block);
            }
            // A forked child has forgotten those of its parent.
            Way::Counted => {
                let _ = LEASES.try_update(Ordering::SeqCst, Ordering::SeqCst, |leases| leases.checked_sub(1));
            }
        }
    }
}

/// Waits until no lease is counted. 0, or 1 where the deadline passes first.
fn wait_for_leases(deadline: Instant) -> usize {
    trace_ref::wait_for_zero(&LEASES, deadline)
}

/// Whether the dispatcher can fence all threads, so that writers need not fence themselves.
pub(crate) fn has_membarrier() -> bool {
    sys::register_membarrier()
}

/// Has the kernel prepare to fence all threads of this process, which [`initialize`] does otherwise.
///
/// Returns at once in a process of one thread, and blocks for some 10 ms in one of several, for seconds where
/// the machine is busy: so it is best called before an application has threads, or where nothing waits.
pub fn prepare() {
    sys::register_membarrier();
}

/// Prepares a trace into `region`: writes the header and the first durable records. Nothing is recorded
/// yet.
///
/// # Errors
/// A trace is initialized already; the region's size fits no buffer; or a thread is still inside an event
/// of an earlier trace.
pub fn initialize(region: Region, mode: BufferMode, config: Config) -> Result<(), Error> {
    let layout = Layout::new(region.len_bytes() as u64, mode)?;
    begin_change(State::Idle)?;
    sys::install_notices();
    sys::register_membarrier();
    // Which clock there is takes reading files to find out, which no event may do.
    let _ = ticks::source();
    if !wait_until_out(Instant::now() + CLEAR_WAIT).is_empty() {
        end_change(State::Idle);
        return Err(Error::Straggler);
    }
    block::sweep();
    processor_time::set_wanted(config.thread_time);
    let context = Box::new(Context::new(region, layout, config));
    CONTEXT.store(Box::into_raw(context), Ordering::SeqCst);
    end_change(State::Initialized);
    Ok(())
}

/// Starts recording, for the first time or again after a stop. `additional_categories` are wanted in this run
/// beside those of the trace.
///
/// # Errors
/// The engine is neither initialized nor stopped; or the buffer has to be cleared and a thread is still
/// inside an event of the run before.
pub fn start(disposition: Disposition, additional_categories: &[String]) -> Result<(), Error> {
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
        EPOCH.fetch_add(1, Ordering::SeqCst);
        for_each_site(|site| {
            if context.wants(site.category(), additional_categories) {
                site.switch_on();
            }
        });
    }
    end_change(State::Started);
    report_state();
    Ok(())
}

/// Clears the buffer; false if a thread is still inside an event, and then nothing was done.
fn clear(context: &Context, disposition: Disposition) -> bool {
    let is_out = || wait_until_out(Instant::now() + CLEAR_WAIT).is_empty();
    if !is_out() {
        return false;
    }
    // A thread that ends right now may be about to close its slab: it finds none, or is waited for.
    block::all().for_each(ThreadBlock::forget_slabs);
    if !is_out() {
        return false;
    }
    context.clear(disposition);
    true
}

/// Ends recording and brings the buffer's header up to date. Waits until `deadline` for threads that are
/// inside an event.
///
/// # Errors
/// The engine is not started.
pub fn stop(deadline: Instant) -> Result<Stopped, Error> {
    begin_stop()?;
    finish_stop(deadline)
}

/// The first half of [`stop`]: from now on a stop waits for those who hold the trace, and no more of them
/// come. Until it goes on, everything is recorded.
///
/// # Errors
/// The engine is not started.
pub fn begin_stop() -> Result<(), Error> {
    begin_change_to(State::Stopping, State::Started)?;
    report_state();
    Ok(())
}

/// The second half of [`stop`].
///
/// # Errors
/// The engine is not stopping.
pub fn finish_stop(deadline: Instant) -> Result<Stopped, Error> {
    if state() != State::Stopping {
        return Err(Error::BadState { expected: State::Stopping, found: state() });
    }
    let mut stragglers = trace_ref::wait_for_prolonged(deadline);
    for_each_site(Site::switch_off);
    if let Some(context) = Lease::counted().context() {
        context.run.end();
        stragglers += trace_ref::wait_for_writing(deadline);
        context.claims.stop();
        stragglers += retire_all(context, deadline);
        let generation = context.generation.load(Ordering::Relaxed);
        for block in block::all().filter(|block| block.is_replaced()) {
            if block.generation.load(Ordering::Relaxed) == generation {
                context.count_left(block, block.take_left_events());
            }
        }
        // Sites that enlisted meanwhile, while their threads were inside.
        dynamic_sites::for_each(Site::switch_off);
        context.finalize();
    }
    EPOCH.fetch_add(1, Ordering::SeqCst);
    end_change(State::Stopped);
    report_state();
    Ok(Stopped { stragglers })
}

/// Looks after a running stream: hands the next half over if it is full. In other modes, and while nothing is
/// recorded, there is nothing to look after.
#[must_use]
pub fn service() -> Option<Service> {
    // Also while those are waited for who hold the trace.
    if !matches!(state(), State::Started | State::Stopping) {
        return None;
    }
    streaming(&Lease::counted()).ok().map(Context::service)
}

/// The manager has saved a half: its space is used again.
///
/// # Errors
/// There is no trace in streaming mode; or the half is not the one that was handed over last.
pub fn mark_saved(saved: SaveRequest) -> Result<(), Error> {
    let is_expected = streaming(&Lease::counted())?.take_back(saved);
    if is_expected { Ok(()) } else { Err(Error::NotHandedOver(saved.wrapped_count)) }
}

/// Has the half in use handed over by the next [`service`], although it is not full.
///
/// # Errors
/// There is no trace in streaming mode.
pub fn flush() -> Result<(), Error> {
    streaming(&Lease::counted())?.streaming.lock().flush();
    Ok(())
}

/// The trace, if it streams.
fn streaming(lease: &Lease) -> Result<&Context, Error> {
    lease.context().filter(|context| context.layout.mode == BufferMode::Streaming).ok_or(Error::NotStreaming)
}

/// Gives the buffer back: unmaps it, or, where a thread is stuck inside an event, puts private memory in its
/// place. Stops first if that was not done.
///
/// # Errors
/// The engine is idle, or another thread is changing its state.
pub fn terminate(deadline: Instant) -> Result<(), Error> {
    if state() == State::Started {
        stop(deadline)?;
    }
    begin_change(State::Stopped).or_else(|_| begin_change(State::Initialized))?;
    let context = CONTEXT.swap(core::ptr::null_mut(), Ordering::SeqCst);
    if let Some(context) = core::ptr::NonNull::new(context) {
        // SAFETY: still allocated (E1), as it is only freed below.
        let stragglers = retire_all(unsafe { context.as_ref() }, deadline)
            + trace_ref::wait_for_writing(deadline)
            + wait_for_leases(deadline);
        if stragglers == 0 {
            // SAFETY: from `Box::into_raw` (E1), unlinked and left by everyone (E2).
            drop(unsafe { Box::from_raw(context.as_ptr()) });
        } else {
            // SAFETY: still allocated (E1); it is leaked for the thread that is stuck in it.
            unsafe { context.as_ref() }.region.detach();
        }
    }
    end_change(State::Idle);
    Ok(())
}

/// Whether what is counted now belongs to the trace.
fn is_recording() -> bool {
    matches!(state(), State::Started | State::Stopping)
}

/// The engine's state.
#[must_use]
pub fn state() -> State {
    State::ALL[STATE.load(Ordering::Relaxed) as usize]
}

/// Calls a function with categories.
pub type CategorySource = fn(&mut dyn FnMut(&[u8]));

static CATEGORY_SOURCE: OnceLock<CategorySource> = OnceLock::new();

/// Sets the source of categories whose sites the engine cannot find before they enlist. Only the first call
/// in a process has an effect.
pub fn set_category_source(source: CategorySource) {
    let _ = CATEGORY_SOURCE.set(source);
}

/// The categories of all call sites of this executable, of those that have enlisted, and of
/// [`set_category_source`]: sorted, each once. Of a site that is in several categories, each of them.
#[must_use]
pub fn known_categories() -> Vec<String> {
    let mut categories = std::collections::BTreeSet::new();
    let mut add = |category: &[u8]| {
        let each = category.split(|byte| *byte == b',');
        categories.extend(each.map(|one| String::from_utf8_lossy(one).into_owned()));
    };
    for_each_site(|site| add(site.category()));
    if let Some(source) = CATEGORY_SOURCE.get() {
        source(&mut add);
    }
    categories.into_iter().collect()
}

/// Whether there is a trace at all, for whoever would have to become a thread with a block to look further.
fn has_context() -> bool {
    !CONTEXT.load(Ordering::SeqCst).is_null()
}

/// Whether the present run wants a category, without a block where there is no trace.
pub(crate) fn is_wanted(category: &[u8]) -> bool {
    if !has_context() {
        return IS_NEW_CHILD.load(Ordering::Relaxed);
    }
    Lease::of_thread().wants(category)
}

/// Whether a run is under way, also while it is being stopped by somebody who waits.
pub(crate) fn is_running() -> bool {
    if !has_context() {
        return false;
    }
    Lease::of_thread().context().is_some_and(|context| context.run.additional().is_some())
}

/// Leaves the slabs of a thread that ends, or of a block that was borrowed for one event.
pub(crate) fn leave_slabs(block: &'static ThreadBlock) {
    let left = block.take_left_events();
    let may_have_beginning = block.events_under_way() > 0;
    let lease = Lease::inside(block);
    if let Some(context) = lease.context()
        && block.generation.load(Ordering::Relaxed) == context.generation.load(Ordering::Relaxed)
    {
        if is_recording() {
            context.count_left(block, left);
        }
        block.slabs.iter().for_each(|own| context.leave_slab(block, own, may_have_beginning));
    }
}

/// What a forked child calls at its first event, once it is told.
static AT_FIRST_EVENT: OnceLock<fn()> = OnceLock::new();
/// This process is a forked child that has recorded nothing yet.
static IS_NEW_CHILD: AtomicBool = AtomicBool::new(false);

/// Has every forked child from now on call a function when it comes to its first event, whether its parent
/// was recording or not. Only the first such function counts. If this is a child itself, it is not one that
/// has to be told any more.
pub fn call_at_first_event_of_children(register: fn()) {
    let _ = AT_FIRST_EVENT.set(register);
    sys::install_notices();
    take_new_child();
}

/// Whether this is a child that has recorded nothing yet; from now on it counts as one that has.
fn take_new_child() -> bool {
    let is_new = IS_NEW_CHILD.swap(false, Ordering::AcqRel);
    if is_new {
        for_each_site(Site::switch_off);
    }
    is_new
}

/// In a forked child: it never writes into its parent's buffer.
//= docs/buffer.md#fork
pub(crate) fn on_fork_in_child() {
    let context = CONTEXT.swap(core::ptr::null_mut(), Ordering::SeqCst);
    // SAFETY: null or a context (E1); the child is its only thread. It is leaked: whatever interrupted
    // event the child may return to finds memory of its own.
    if let Some(context) = unsafe { context.as_ref() } {
        context.region.detach();
    }
    block::forget_current();
    dynamic_sites::release_in_child();
    trace_ref::forget_in_child();
    LEASES.store(0, Ordering::Relaxed);
    end_change(State::Idle);
    // A site that is on without a trace has the next event look whether this is a new child.
    let is_wanted = AT_FIRST_EVENT.get().is_some();
    IS_NEW_CHILD.store(is_wanted, Ordering::Relaxed);
    let switch = if is_wanted { Site::switch_on } else { Site::switch_off };
    for_each_site(switch);
}

/// At an event without a trace: true if this is a forked child's first, and the child has been given the
/// opportunity to be recorded.
pub(crate) fn is_first_of_child() -> bool {
    let Some(register) = AT_FIRST_EVENT.get() else {
        return false;
    };
    let is_first = take_new_child();
    if is_first {
        register();
    }
    is_first
}

#[cfg(test)]
mod tests;
