//! Records closures that run on the threads of [rayon](https://docs.rs/rayon): a duration for each closure,
//! and an arrow to it from the caller's duration.
//!
//! ```
//! use trace_provider::duration;
//!
//! duration!("app", "sum");
//! let (left, right) = rayon_fxt::join("half", || (0..500).sum::<u32>(), || (500..1000).sum::<u32>());
//! assert_eq!(left + right, 499_500);
//! ```
//!
//! | function | records a duration for |
//! |---|---|
//! | [`join`] | each of the two closures |
//! | [`ScopeExt::spawn_traced`] | the closure that is spawned in a scope |
//! | [`spawn`] | the closure that is spawned |
//! | [`in_parent`] | each call of a function, such as that of a parallel iterator |
//! | [`Parent::run`] | a closure that other code runs, such as `ThreadPool::install` |
//!
//! Durations and arrows have the category `rayon` and the name that the program passes. An arrow begins at
//! the call of one of these functions, in the duration that encloses the call; without an enclosing duration,
//! viewers do not show it. Closures of [`join`] and [`in_parent`] that rayon runs on the caller's own thread
//! have no arrow, because they are inside the caller's duration.
//!
//! Scheduling, results and panics are the same as with rayon alone.
//!
//! # Cost
//!
//! While nothing is recorded, a call loads one word. While category `rayon` is recorded, it looks its name up
//! in a table, without a lock, and each closure records three events: a duration, and the begin and the end
//! of an arrow. If items are small, iterate over larger pieces, such as those of `par_chunks`.
//!
//! # Limits
//!
//! Use names for kinds of work: only the first few thousand are recorded. Closures that were passed before
//! the recording began are not recorded.
#![forbid(unsafe_code)]

mod parent;
mod scope;

pub use parent::{Parent, in_parent};
pub use scope::ScopeExt;

/// As [`rayon::join`], with a name under which both closures are recorded.
pub fn join<A, B, RA, RB>(name: &str, first: A, second: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let parent = Parent::here(name).that_waits();
    rayon::join(move || parent.run(first), move || parent.run(second))
}

/// As [`rayon::spawn`], with a name under which the closure is recorded.
pub fn spawn<F: FnOnce() + Send + 'static>(name: &str, closure: F) {
    let parent = Parent::here(name);
    rayon::spawn(move || parent.run(closure));
}
