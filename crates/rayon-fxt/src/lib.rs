//! Records what runs on the threads of [rayon](https://docs.rs/rayon): a duration for each closure, and an
//! arrow to it from the duration in which the caller was.
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
//! Durations and arrows have the category `rayon` and the name that the program gives. An arrow begins at the
//! call of the function above, in the duration that the caller is in; without one, viewers have no place for
//! it. Closures of [`join`] and [`in_parent`] that rayon runs on the caller's own thread have none: they are
//! inside of the caller's duration.
//!
//! Which thread runs what, results and panics are those of rayon.
//!
//! # Cost
//!
//! While nothing is recorded, a call loads one word. While category `rayon` is, it finds its name in a table,
//! without a lock, and a closure records a duration, and an arrow as two events more: iterators over small
//! items should hand them out in larger pieces, as with `par_chunks`.
//!
//! # Limits
//!
//! Names are for kinds of work: the first few thousand are recorded. Closures whose call came before the
//! recording began are not recorded.
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
