//! What the engine knows of each thread: its control block and the slabs that it writes into.

pub(crate) mod block;
pub(crate) mod open_slab;
