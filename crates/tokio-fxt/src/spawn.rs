//! tokio's functions that spawn, with a name.

use crate::blocking::blocking;
use crate::task::task;
use core::future::Future;
use tokio::task::JoinHandle;

/// As [`tokio::spawn`], with a name under which the task is recorded.
///
/// # Panics
/// Outside of a runtime, as tokio's.
#[track_caller]
pub fn spawn<F>(name: &str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(task(name, future))
}

/// As [`tokio::task::spawn_local`], with a name under which the task is recorded.
///
/// # Panics
/// Outside of a [`LocalSet`](tokio::task::LocalSet), as tokio's.
#[track_caller]
pub fn spawn_local<F>(name: &str, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    tokio::task::spawn_local(task(name, future))
}

/// As [`tokio::task::spawn_blocking`], with a name under which the closure is recorded: how long it was
/// queued, and its run on a thread of the pool.
///
/// # Panics
/// Outside of a runtime, as tokio's.
#[track_caller]
pub fn spawn_blocking<F, R>(name: &str, closure: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    tokio::task::spawn_blocking(blocking(name, closure))
}
