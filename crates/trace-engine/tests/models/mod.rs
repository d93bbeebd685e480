//! The engine under loom, which tries every interleaving and every value that a load may return.
//!
//! This is compiled in the package `trace-engine-models`, with `cfg(loom)`: `crate::sync` is loom's, and all
//! that is modelled is the engine's own code, from [`Context`](crate::session::context::Context) and the slow
//! path's writer down, on a heap region. What models replace is this:
//!
//! | replaced | by |
//! |---|---|
//! | `membarrier` | a full fence in every event, as where the kernel has no `membarrier` |
//! | the control blocks of the process | those of the model (`registry.rs`) |
//! | the layout | a smaller one, as loom looks at each word |
//!
//! A test in `slab/retirement/tests.rs` shows what `membarrier` does.
//!
//! Beside what each model asserts, loom fails if two threads touch a slab without being ordered: see
//! `assert_exclusive` in `sync.rs`. `docs/testing.md` lists the mutations that these models turn red.

mod recalls;
mod ring;
mod rounds;
mod sites;
mod streams;
mod world;
