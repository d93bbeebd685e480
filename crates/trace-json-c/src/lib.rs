//! The functions behind `trace-json/c_api.h`: Chromium's JSON of what a program has recorded of itself.
//!
//! | module | is |
//! |---|---|
//! | `abi` | the structures of the header |
//! | `config` | a `TraceConfig` in JSON |
//! | `event` | one event as an archive of its own |
//! | `pieces` | a document's events in pieces |
//! | `exports` | the functions |
//!
//! It is a library of its own, `libtracejson`: programs that write no JSON do not link an exporter.
#![deny(unsafe_code)]

mod abi;
mod config;
mod event;
mod exports;
mod pieces;
