//! Records the tasks of [tokio](https://docs.rs/tokio): each poll, how long the task had waited to be polled,
//! and the time from the task's spawn to its end.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let sum = tokio_fxt::spawn("add", async { 1 + 2 });
//! assert_eq!(sum.await.unwrap(), 3);
//! # });
//! ```
//!
//! | in the trace | what it is |
//! |---|---|
//! | bar (async operation) | the task, from its spawn until it is ready or dropped |
//! | argument `task` of the bar | the task's number, unique in its process |
//! | argument `polls` of the bar's end | how often it was polled, before the recording too |
//! | argument `end` of the bar's end | `ready`, `dropped` (also an abort) or `panicked` |
//! | duration | a poll, or the run of a blocking closure, on the thread that does it |
//! | argument `task` of the duration | the number of the task |
//! | argument `delay-ns` of the duration | how long the task had waited to be polled, in nanoseconds |
//!
//! All have the category `tokio` and the name that the program gives the task. The functions return tokio's
//! own types: abort, panics, [`JoinError`](tokio::task::JoinError)s and cancellation are those of tokio.
//! Tasks that other functions of tokio spawn are wrapped by [`task`] and [`blocking`]:
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! let sum = runtime.handle().spawn(tokio_fxt::task("add", async { 1 + 2 }));
//! # assert_eq!(runtime.block_on(sum).unwrap(), 3);
//! ```
//!
//! # All tasks
//!
//! In a program that is built with `RUSTFLAGS="--cfg tokio_unstable"`, `record_all_tasks` records every task
//! of a runtime by tokio's own hooks, which tokio has with that flag alone:
//!
//! ```ignore
//! let mut builder = tokio::runtime::Builder::new_multi_thread();
//! let runtime = tokio_fxt::record_all_tasks(builder.enable_all()).build().unwrap();
//! ```
//!
//! Tasks are named by the place where they were spawned, `src/main.rs:12`, and have no delays: hooks do not
//! see wakes.
//!
//! # The delay
//!
//! A task waits from the first wake after its last poll until the next poll begins; if it was woken during
//! the poll, from the end of that poll, because it could not be polled earlier; and before its first poll,
//! from its spawn. The delay is an argument of the poll, so viewers show it with the poll that was late, and
//! a query finds the longest. An arrow from the wake would often have no duration to begin in, since threads
//! that wait for sockets are in none, and a separate bar for the delay would cost two more records for each
//! poll.
//!
//! ```sql
//! SELECT name, json_extract(args, '$."delay-ns"') AS delay FROM slices ORDER BY delay DESC
//! ```
//!
//! A poll has no delay if a recording has begun or ended since the last one.
//!
//! # Cost
//!
//! While category `tokio` is not recorded, a poll loads one word, and the future gets tokio's own waker.
//! While it is, a poll is one record, and a wake that makes the task ready reads the clock once. A task
//! allocates its waker once, at the first poll that is recorded. A spawn finds its name in a table, without a
//! lock.
//!
//! # Limits
//!
//! Use names for kinds of tasks: only the first few thousand are recorded; tasks with other names are called
//! `task`.
//! A task that was spawned before the recording began has polls but no bar, because its beginning is not
//! known. A poll that ends after the end of the recording is not recorded.
#![forbid(unsafe_code)]

mod blocking;
#[cfg(tokio_unstable)]
mod hooks;
mod join_set;
mod operation;
mod spawn;
mod task;
mod waker;

pub use blocking::blocking;
#[cfg(tokio_unstable)]
pub use hooks::record_all_tasks;
pub use join_set::JoinSetExt;
pub use spawn::{spawn, spawn_blocking, spawn_local};
pub use task::{Task, task};
