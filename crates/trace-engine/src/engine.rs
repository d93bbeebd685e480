//! The life of the engine: initialize, start, stop, terminate. All of it is for the dispatcher's thread;
//! writers only look at the current context.
//!
//! Invariants:
//!
//! * **E1** The context pointer is null or a context that was leaked from a box. A writer loads it only
//!   while its counter is odd.
//! * **E2** It is freed only after it was unlinked, all threads were fenced, and every counter was seen even
//!   or changed since.
#![allow(unsafe_code)]

use crate::block::{self, ThreadBlock};
pub use crate::context::Disposition;
use crate::context::{Config, Context};
use crate::region::Region;
use crate::retire::{retire_all, wait_until_out};
use crate::section;
use crate::site::Site;
pub use crate::streaming::{SaveRequest, Service};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use crate::sys;
use crate::write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use trace_format::buffer::{BadBufferSize, BufferMode, Layout};
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
}

impl State {
    const ALL: [Self; 5] = [Self::Idle, Self::Initialized, Self::Started, Self::Stopped, Self::Changing];
}

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Initialized => "initialized",
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Changing => "changing",
        })
    }
}

/// How a stop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Threads that did not leave their event in time; their last record may be missing.
    pub stragglers: usize,
}

/// How long a thread may be inside an event before a buffer that is to be cleared is not.
const CLEAR_WAIT: Duration = Duration::from_millis(100);

static CONTEXT: AtomicPtr<Context> = AtomicPtr::new(core::ptr::null_mut());
static STATE: AtomicU32 = AtomicU32::new(State::Idle as u32);

/// Takes the engine out of a state for as long as it is being changed.
fn begin_change(expected: State) -> Result<(), Error> {
    STATE
        .compare_exchange(expected as u32, State::Changing as u32, Ordering::Acquire, Ordering::Relaxed)
        .map(|_| ())
        .map_err(|found| Error::BadState { expected, found: State::ALL[found as usize] })
}

fn end_change(state: State) {
    // Release: pairs with the Acquire in `begin_change`.
    STATE.store(state as u32, Ordering::Release);
}

/// The running trace, for a thread inside an event.
pub(crate) fn context() -> Option<&'static Context> {
    // SAFETY: null or a live context (E1); it stays alive while the caller is inside an event (E2), and no
    // caller keeps it longer.
    unsafe { CONTEXT.load(Ordering::SeqCst).as_ref() }
}

/// Whether the dispatcher can fence all threads, so that writers need not fence themselves.
pub(crate) fn has_membarrier() -> bool {
    sys::register_membarrier()
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
    let context = Box::new(Context::new(region, layout, config));
    CONTEXT.store(Box::into_raw(context), Ordering::SeqCst);
    end_change(State::Initialized);
    Ok(())
}

/// Starts recording, for the first time or again after a stop. `additional_categories` are wanted in this run beside
/// those of the trace.
///
/// # Errors
/// The engine is neither initialized nor stopped; or the buffer has to be cleared and a thread is still inside an event
/// of the run before.
pub fn start(disposition: Disposition, additional_categories: &[String]) -> Result<(), Error> {
    let before = if begin_change(State::Stopped).is_ok() {
        State::Stopped
    } else {
        begin_change(State::Initialized)?;
        State::Initialized
    };
    if let Some(context) = context() {
        let is_cleared = before == State::Stopped && disposition != Disposition::Retain;
        if is_cleared && !clear(context, disposition) {
            end_change(before);
            return Err(Error::Straggler);
        }
        context.begin_run();
        let sites = section::sites().iter();
        sites.filter(|site| context.wants(site.category(), additional_categories)).for_each(Site::switch_on);
    }
    end_change(State::Started);
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
    begin_change(State::Started)?;
    section::sites().iter().for_each(Site::switch_off);
    let mut stragglers = 0;
    if let Some(context) = context() {
        context.claims.stop();
        stragglers = retire_all(context, deadline);
        context.finalize();
    }
    end_change(State::Stopped);
    Ok(Stopped { stragglers })
}

/// Looks after a running stream: hands the next half over if it is full. In other modes, and while nothing is
/// recorded, there is nothing to look after.
#[must_use]
pub fn service() -> Option<Service> {
    if state() != State::Started {
        return None;
    }
    streaming_context().ok().map(Context::service)
}

/// The manager has saved a half: its space is used again.
///
/// # Errors
/// There is no trace in streaming mode; or the half is not the one that was handed over last.
pub fn mark_saved(saved: SaveRequest) -> Result<(), Error> {
    let is_expected = streaming_context()?.take_back(saved);
    if is_expected { Ok(()) } else { Err(Error::NotHandedOver(saved.wrapped_count)) }
}

/// Has the half in use handed over by the next [`service`], although it is not full.
///
/// # Errors
/// There is no trace in streaming mode.
pub fn flush() -> Result<(), Error> {
    streaming_context()?.streaming.lock().flush();
    Ok(())
}

/// For the dispatcher's thread, which is the one that ends a context's life.
fn streaming_context() -> Result<&'static Context, Error> {
    context().filter(|context| context.layout.mode == BufferMode::Streaming).ok_or(Error::NotStreaming)
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
        let stragglers = retire_all(unsafe { context.as_ref() }, deadline);
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

/// The engine's state.
#[must_use]
pub fn state() -> State {
    State::ALL[STATE.load(Ordering::Relaxed) as usize]
}

/// The categories of all call sites of this executable, sorted, each once.
#[must_use]
pub fn known_categories() -> Vec<&'static str> {
    let mut categories: Vec<_> = section::sites().iter().map(Site::category).collect();
    categories.sort_unstable();
    categories.dedup();
    categories
}

/// Leaves the slabs of a thread that ends, or of a block that was borrowed for one event.
pub(crate) fn leave_slabs(block: &'static ThreadBlock) {
    write::enter(block);
    if let Some(context) = context()
        && block.generation.load(Ordering::Relaxed) == context.generation.load(Ordering::Relaxed)
    {
        block.slabs.iter().for_each(|own| context.leave_slab(block, own));
    }
    write::leave(block);
}

/// What a forked child calls at its first event, once it is told.
static AT_FIRST_EVENT: OnceLock<fn()> = OnceLock::new();
/// This process is a forked child that has recorded nothing yet.
static IS_NEW_CHILD: AtomicBool = AtomicBool::new(false);

/// Has every forked child from now on call a function when it comes to its first event, whether its parent was recording
/// or not. Only the first such function counts. If this is a child itself, it is not one that has to be told any more.
pub fn call_at_first_event_of_children(register: fn()) {
    let _ = AT_FIRST_EVENT.set(register);
    sys::install_notices();
    take_new_child();
}

/// Whether this is a child that has recorded nothing yet; from now on it counts as one that has.
fn take_new_child() -> bool {
    let is_new = IS_NEW_CHILD.swap(false, Ordering::AcqRel);
    if is_new {
        section::sites().iter().for_each(Site::switch_off);
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
    end_change(State::Idle);
    // A site that is on without a trace has the next event look whether this is a new child.
    let is_wanted = AT_FIRST_EVENT.get().is_some();
    IS_NEW_CHILD.store(is_wanted, Ordering::Relaxed);
    let switch = if is_wanted { Site::switch_on } else { Site::switch_off };
    section::sites().iter().for_each(switch);
}

/// At an event without a trace: true if this is a forked child's first, and the child has been given the opportunity to be
/// recorded.
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
