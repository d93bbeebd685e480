//! Work on files for a thread of the program's, whose descriptors any other thread of the program may close:
//! done by a short thread with descriptors of its own.

use crate::linux::lock::Mutex;
use crate::linux::queue::{Missing, queue};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trace_engine::engine;
use zx_sim::guest::apart::is_apart;
use zx_sim::guest::thread::{Apart, spawn_apart};

/// How often a thread that waits looks whether it is in a forked child.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a thread that has ended may be known to the kernel.
const END_WAIT: Duration = Duration::from_millis(100);

std::thread_local! {
    /// This thread is in [`here`].
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function in which this thread does its jobs itself.
pub(crate) fn here<R>(call: impl FnOnce() -> R) -> R {
    let before = IS_HERE.replace(true);
    let result = call();
    IS_HERE.set(before);
    result
}

/// Takes a piece of what a job makes, and whether it is the last one. False if no more is wanted.
pub(crate) type Deliver<'a> = dyn FnMut(&[u8], bool) -> bool + 'a;

type Job = Box<dyn FnOnce(&mut Deliver<'_>) + Send>;

/// Does a job, and waits for it. Where there can be no thread for it, as while a library is loaded, and on a
/// thread with descriptors of its own, the thread that calls does it. None if it has panicked, and in a child
/// that a handler of a signal of this thread forks meanwhile.
pub(crate) fn run<R: Send + 'static>(job: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    run_delivering(|_| job(), |_, _| ())
}

/// As [`run`], for a job that makes pieces. They are delivered on the thread that calls.
pub(crate) fn run_delivering<R: Send + 'static>(
    job: impl FnOnce(&mut Deliver<'_>) -> R + Send + 'static,
    mut deliver: impl FnMut(&[u8], bool),
) -> Option<R> {
    let result = Arc::new(Mutex::new(None));
    let place = result.clone();
    let job = Box::new(move |deliver: &mut Deliver<'_>| {
        let done = job(deliver);
        // A child would find the lock taken.
        engine::without_forks(|| *place.lock() = Some(done));
    });
    do_job(job, &mut deliver);
    engine::without_forks(|| result.lock().take())
}

/// What both threads have.
struct Errand {
    /// None when a thread has taken it.
    job: Mutex<Option<Job>>,
    piece: Mutex<Option<(Vec<u8>, bool)>>,
    /// Number of the thread.
    thread: AtomicI32,
}

impl Errand {
    #[inline(never)]
    fn take_job(&self) -> Option<Job> {
        engine::without_forks(|| self.job.lock().take())
    }
}

fn do_job(job: Job, deliver: &mut dyn FnMut(&[u8], bool)) {
    let mut deliver_here = |bytes: &[u8], is_last| {
        deliver(bytes, is_last);
        true
    };
    if is_apart() || IS_HERE.get() || engine::is_without_forks() {
        return job(&mut deliver_here);
    }
    let process = engine::generation();
    let (job, piece, thread) = (Mutex::new(Some(job)), Mutex::new(None), AtomicI32::new(0));
    let errand = Arc::new(Errand { job, piece, thread });
    let (signal, signals) = queue::<()>();
    let (taken, is_taken) = queue::<()>();
    let theirs = errand.clone();
    let body = move |_| {
        theirs.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
        if let Some(job) = theirs.take_job() {
            job(&mut |bytes: &[u8], is_last| {
                let piece = Some((bytes.to_vec(), is_last));
                let put = || {
                    *theirs.piece.lock() = piece;
                    signal.send(())
                };
                engine::without_forks(put) && is_taken.receive(None).is_ok()
            });
        }
    };
    let thread = match spawn_apart("trace-errand", Vec::new(), Box::new(body)) {
        Ok(Apart { thread, has_begun: true }) => thread,
        // Unless it has begun by now.
        late => match (errand.take_job(), late) {
            (Some(job), _) => return job(&mut deliver_here),
            (None, Ok(apart)) => apart.thread,
            (None, Err(_)) => return,
        },
    };
    loop {
        let signal = signals.receive(Some(Instant::now() + LOOK_INTERVAL));
        if process != engine::generation() {
            // The thread is the parent's.
            core::mem::forget((thread, signals, taken));
            return errand.take_job().map_or((), |job| job(&mut deliver_here));
        }
        match signal {
            Ok(()) => {
                let piece = errand.piece.lock().take();
                piece.iter().for_each(|(bytes, is_last)| _ = deliver_here(bytes, *is_last));
                if process == engine::generation() {
                    taken.send(());
                }
            }
            Err(Missing::Late) => {}
            Err(Missing::Closed) => break,
        }
    }
    wait_for_end(thread, &errand.thread);
}

/// Waits until the kernel does not count the thread any more: there are calls that ask for a process with one
/// thread.
fn wait_for_end(thread: JoinHandle<()>, number: &AtomicI32) {
    let _ = thread.join();
    let task = format!("/proc/self/task/{}", number.load(Ordering::Relaxed));
    let deadline = Instant::now() + END_WAIT;
    while rustix::fs::stat(&*task).is_ok() && Instant::now() < deadline {
        std::thread::yield_now();
    }
}
