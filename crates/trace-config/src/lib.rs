//! Configurations of other tracing tools, as trees in which each value has its place, and Chrome's
//! `TraceConfig`, which `trace record` and programs that record themselves read by the same rules.
//!
//! | module | is |
//! |---|---|
//! | [`tree`] | values with their places, and errors |
//! | [`json`] | JSON, with comments, as a tree |
//! | [`schema`] | known keys, the types of their values, and what becomes of them |
//! | [`filter`] | which categories lists of enabled and disabled ones select |
//! | [`chrome`] | Chrome's `TraceConfig` |
//! | [`position`] | errors with their line and column |
//! | [`near`] | the known word that a mistyped one may have been meant to be |
#![forbid(unsafe_code)]

pub mod chrome;
pub mod filter;
pub mod json;
pub mod near;
pub mod position;
pub mod schema;
pub mod tree;
