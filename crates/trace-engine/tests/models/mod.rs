//! The engine under loom, which tries every interleaving and every value that a load may return, and in
//! larger mixes under shuttle, which tries random schedules.
//!
//! This is compiled with `cfg(modelled)`, in the package `trace-engine-models` with loom's atomics as
//! `crate::sync`, and in `trace-engine-mixes` with shuttle's (`cfg(shuttle)`). All that is modelled is the
//! engine's own code, from [`Context`](crate::session::context::Context) and the slow path's writer down, on
//! a heap region. What models replace is this:
//!
//! | replaced | by |
//! |---|---|
//! | `membarrier` | a full fence in every event, as where the kernel has no `membarrier` |
//! | the control blocks of the process | those of the model (`registry.rs`) |
//! | the layout | a smaller one, as each word is looked at |
//!
//! A test in `slab/retirement/tests.rs` shows what `membarrier` does.
//!
//! Beside what each model asserts, loom fails if two threads touch a slab without being ordered: see
//! `assert_exclusive` in `sync.rs`. `docs/testing.md` lists the mutations that these models turn red.

#[cfg(not(shuttle))]
mod check;
#[cfg(not(shuttle))]
mod going_over;
#[cfg(not(shuttle))]
mod memory;
#[cfg(shuttle)]
mod mixes;
#[cfg(not(shuttle))]
mod recalls;
#[cfg(not(shuttle))]
mod ring;
#[cfg(not(shuttle))]
mod rounds;
#[cfg(not(shuttle))]
mod scopes;
#[cfg(not(shuttle))]
mod sites;
#[cfg(not(shuttle))]
mod streams;
mod world;
