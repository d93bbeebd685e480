//! The functions behind `trace-reader/c_api.h`: reading traces from C, and from languages that can call C.
//!
//! | module | is |
//! |---|---|
//! | `abi` | the structures of the header |
//! | `record` | a record as the header describes it |
//! | `exports` | the functions |
//!
//! It is a library of its own, `libtracereader`: programs that only record do not link a reader.
#![deny(unsafe_code)]

mod abi;
mod exports;
mod record;
