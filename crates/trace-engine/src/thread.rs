//! What the engine knows of each thread: its control block, the slabs that it writes into, and durations that
//! it has begun.

pub(crate) mod begins;
pub(crate) mod block;
pub(crate) mod open_scopes;
pub(crate) mod open_slab;
#[cfg_attr(modelled, path = "../tests/models/registry.rs")]
pub(crate) mod registry;
#[cfg(not(modelled))]
pub(crate) mod scope_pages;
