//! The functions behind `trace-client/c_api.h`: recording programs from C, and from languages that can call
//! C.
//!
//! | module | is |
//! |---|---|
//! | `abi` | the structures of the header |
//! | `exports` | the functions |
//!
//! It is a library of its own, `libtraceclient`: programs that are recorded do not link a client.
#![deny(unsafe_code)]

mod abi;
mod exports;
