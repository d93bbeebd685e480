//! The tracing of C and C++ programs: the functions behind the headers in `include/`.
//!
//! | module | is |
//! |---|---|
//! | `abi` | types of the headers |
//! | `atrace` | Android's markers |
//! | `layout` | what a program carries of the engine |
//! | `events` | what the macros call |
//! | `chromium` | what macros with Chromium's names need beside |
//! | `context`, `records` | records written by hand |
//! | `instrumentation` | whether a trace runs, and acquiring it |
//! | `observers` | reports to programs when it starts and stops |
//! | `handler` | the engine itself |
//! | `provider` | joining the trace manager |
//! | `local` | recordings inside one process |
//! | `memory_dump` | what a program uses memory for |
//! | `dispatcher` | the loop |
//! | `zircon` | clocks, handles, names of results |
//! | `exports` | the list of all that is exported |
//! | `library_election` | elects one of several copies of this library in a process |
//! | `known_categories` | the categories of sites that have not run yet |
//! | `notes` | the notes of what is loaded, which the two need |
//!
//! Every function may be called on every thread, at any time, also before anything was set up.
#![deny(unsafe_code)]
#![allow(clippy::missing_safety_doc, reason = "the contracts of the functions are in the headers")]

mod abi;
mod atrace;
mod chromium;
mod context;
mod dispatcher;
mod events;
mod exports;
mod fork_lock;
mod handler;
mod hook;
mod instrumentation;
mod known_categories;
mod layout;
mod library_election;
mod local;
mod memory_dump;
mod notes;
mod observers;
mod provider;
mod records;
mod zircon;
