//! Sets of tasks, with a name for each.

use crate::blocking::blocking;
use crate::task::task;
use core::future::Future;
use tokio::task::{AbortHandle, JoinSet};

/// Spawns tasks of a [`JoinSet`] with names under which they are recorded. What they return, and how they are
/// joined and aborted, is as without.
///
/// ```
/// use tokio_fxt::JoinSetExt;
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let mut set = tokio::task::JoinSet::new();
/// for number in 0..3 {
///     set.spawn_traced("square", async move { number * number });
/// }
/// assert_eq!(set.join_all().await.into_iter().sum::<u32>(), 5);
/// # });
/// ```
pub trait JoinSetExt<T> {
    /// As [`JoinSet::spawn`].
    ///
    /// # Panics
    /// Outside of a runtime, as tokio's.
    #[track_caller]
    fn spawn_traced<F>(&mut self, name: &str, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send;

    /// As [`JoinSet::spawn_local`].
    ///
    /// # Panics
    /// Outside of a [`LocalSet`](tokio::task::LocalSet), as tokio's.
    #[track_caller]
    fn spawn_local_traced<F>(&mut self, name: &str, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static;

    /// As [`JoinSet::spawn_blocking`].
    ///
    /// # Panics
    /// Outside of a runtime, as tokio's.
    #[track_caller]
    fn spawn_blocking_traced<F>(&mut self, name: &str, closure: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send;
}

impl<T: 'static> JoinSetExt<T> for JoinSet<T> {
    fn spawn_traced<F>(&mut self, name: &str, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.spawn(task(name, future))
    }

    fn spawn_local_traced<F>(&mut self, name: &str, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.spawn_local(task(name, future))
    }

    fn spawn_blocking_traced<F>(&mut self, name: &str, closure: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.spawn_blocking(blocking(name, closure))
    }
}
