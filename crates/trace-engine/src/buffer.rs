//! The shared buffer: its memory, records in it, definitions, and the ledger of losses.

pub(crate) mod durable;
pub(crate) mod loss;
pub(crate) mod record_writer;
pub(crate) mod region;
pub(crate) mod strings;
