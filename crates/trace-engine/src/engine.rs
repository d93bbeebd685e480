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
use crate::context::{Config, Context};
use crate::region::Region;
use crate::section;
use crate::site::Site;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use crate::sys;
use crate::write;
use std::time::{Duration, Instant};
use trace_format::buffer::{BadBufferSize, BufferMode, Layout};

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
    /// A thread of an earlier trace has been inside an event ever since.
    #[error("a thread has not left its event of an earlier trace")]
    Straggler,
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

static CONTEXT: AtomicPtr<Context> = AtomicPtr::new(core::ptr::null_mut());
static GENERATION: AtomicU64 = AtomicU64::new(0);
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
    if wait_until_out(Instant::now() + Duration::from_millis(100)) > 0 {
        end_change(State::Idle);
        return Err(Error::Straggler);
    }
    block::sweep();
    let generation = GENERATION.fetch_add(1, Ordering::Relaxed) + 1;
    let context = Box::new(Context::new(region, layout, config, generation));
    CONTEXT.store(Box::into_raw(context), Ordering::SeqCst);
    end_change(State::Initialized);
    Ok(())
}

/// Starts recording, once for each initialize.
///
/// # Errors
/// The engine is not freshly initialized.
pub fn start() -> Result<(), Error> {
    begin_change(State::Initialized)?;
    if let Some(context) = context() {
        let wanted = section::sites().iter().filter(|site| context.wants(site.category()));
        wanted.for_each(Site::switch_on);
    }
    end_change(State::Started);
    Ok(())
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
        stragglers = retire(deadline);
        context.finalize();
    }
    end_change(State::Stopped);
    Ok(Stopped { stragglers })
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
    let stragglers = retire(deadline);
    if let Some(context) = core::ptr::NonNull::new(context) {
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

/// Takes every slab away from every thread and waits until all of them are out of their events. Returns how
/// many are not.
//= docs/buffer.md#retiring
fn retire(deadline: Instant) -> usize {
    fence(Ordering::SeqCst);
    block::all().for_each(ThreadBlock::revoke);
    sys::fence_all_threads();
    let stragglers = wait_until_out(deadline);
    // A thread that was taking a slab set `end` once more and noticed.
    block::all().for_each(ThreadBlock::revoke);
    stragglers
}

/// Waits until each thread's counter was even or differs from its first odd value.
fn wait_until_out(deadline: Instant) -> usize {
    let mut inside: Vec<_> = block::all()
        .map(|block| (block, block.counter.load(Ordering::Acquire)))
        .filter(|(_, counter)| counter & 1 != 0)
        .collect();
    loop {
        // Acquire: pairs with the Release that makes the counter even; the record is complete.
        inside.retain(|(block, counter)| block.counter.load(Ordering::Acquire) == *counter);
        if inside.is_empty() || Instant::now() >= deadline {
            return inside.len();
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Leaves the slabs of a thread that ends, or of a block that was borrowed for one event.
pub(crate) fn leave_slabs(block: &'static ThreadBlock) {
    write::enter(block);
    if let Some(context) = context()
        && block.generation.load(Ordering::Relaxed) == context.generation
    {
        block.slabs.iter().for_each(|own| context.leave_slab(block, own));
    }
    write::leave(block);
}

/// In a forked child: it never writes into its parent's buffer.
//= docs/buffer.md#fork
pub(crate) fn on_fork_in_child() {
    section::sites().iter().for_each(Site::switch_off);
    let context = CONTEXT.swap(core::ptr::null_mut(), Ordering::SeqCst);
    // SAFETY: null or a context (E1); the child is its only thread. It is leaked: whatever interrupted
    // event the child may return to finds memory of its own.
    if let Some(context) = unsafe { context.as_ref() } {
        context.region.detach();
    }
    block::forget_current();
    end_change(State::Idle);
}
