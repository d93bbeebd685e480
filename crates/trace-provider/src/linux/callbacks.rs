//! Runs functions of the application for the provider's thread, which has descriptors of its own: the
//! application's functions may use the application's.
//!
//! A thread for that exists from when the first such function was registered.

use crate::linux::lock::Mutex;
use crate::linux::queue::{Sender, queue};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use zx_sim::guest::children::generation;

type Job = Box<dyn FnOnce() + Send>;

/// A process's thread; a forked child has none of its parent's.
struct Runner {
    process: u32,
    jobs: Sender<Job>,
}

static RUNNER: Mutex<Option<Runner>> = Mutex::new(None);
/// Some function was registered.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
/// In a forked child the lock may be held by a thread that does not exist there.
const LOCK_WAIT: Duration = Duration::from_secs(1);

thread_local! {
    /// This thread is in [`run_here`].
    static RUNS_HERE: Cell<bool> = const { Cell::new(false) };
}
/// The application runs its provider in a loop of its own.
static NEEDS_NO_THREAD: AtomicBool = AtomicBool::new(false);

/// From now on functions are only run within [`run_here`].
pub(crate) fn need_no_thread() {
    NEEDS_NO_THREAD.store(true, Ordering::Relaxed);
}

/// Runs functions of the application on this thread, until the given function returns.
pub(crate) fn run_here<T>(body: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            RUNS_HERE.set(false);
        }
    }
    RUNS_HERE.set(true);
    let _reset = Reset;
    body()
}

/// A function was registered, by a thread of the application.
pub(crate) fn want() {
    IS_WANTED.store(true, Ordering::Relaxed);
    prepare();
}

/// Starts the thread, if it is wanted. Called by threads of the application, whose descriptors it inherits.
pub(crate) fn prepare() {
    if !IS_WANTED.load(Ordering::Relaxed) || NEEDS_NO_THREAD.load(Ordering::Relaxed) {
        return;
    }
    let process = generation();
    let Some(mut runner) = RUNNER.try_lock_for(LOCK_WAIT) else {
        return;
    };
    if runner.as_ref().is_some_and(|runner| runner.process == process) {
        return;
    }
    let (jobs, received) = queue::<Job>();
    let run = Box::new(move || {
        while let Ok(job) = received.receive(None) {
            // A function that panics, which its thread reports, ends alone.
            drop(catch_unwind(AssertUnwindSafe(job)));
        }
    });
    let thread = zx_sim::guest::thread::spawn_blocked("trace-callbacks", run).ok();
    // Of a parent, whose thread may have held the queue when it forked.
    core::mem::forget(runner.take());
    *runner = thread.map(|_| Runner { process, jobs });
}

/// Runs something on the thread and waits for its end. None where there is no such thread.
pub(crate) fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if RUNS_HERE.get() {
        return Some(job());
    }
    let result = Arc::new(Mutex::new(None));
    let place = Arc::clone(&result);
    run_there(Box::new(move || {
        let result = job();
        *place.lock() = Some(result);
    }));
    result.lock().take()
}

/// Has the thread run a job, and waits until it has dropped that.
fn run_there(job: Job) {
    let (done, is_done) = queue::<()>();
    let Some(runner) = RUNNER.try_lock_for(LOCK_WAIT) else {
        return;
    };
    let own = runner.as_ref().filter(|runner| runner.process == generation());
    let is_sent = own.is_some_and(|own| {
        own.jobs.send(Box::new(move || {
            let _done = done;
            job();
        }))
    });
    // The function may register another.
    drop(runner);
    if is_sent {
        let _ = is_done.receive(None);
    }
}

#[cfg(test)]
mod tests {
    use super::{run, want};

    #[test]
    fn a_function_that_panics_ends_alone() {
        want();
        assert_eq!(run(|| panic!("as a function of the application may")), None::<()>);
        assert_eq!(run(|| 5), Some(5));
    }
}
