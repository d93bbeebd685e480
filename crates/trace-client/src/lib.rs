//! Records other programs from a program: a test, a benchmark, a service that supervises others.
//!
//! ```no_run
//! use trace_client::{Client, Config};
//!
//! let client = Client::open().wait()?;
//! let recording = client.record(Config::of("app"), "test.fxt").wait()?;
//! std::process::Command::new("./app").envs(client.environment()).status().unwrap();
//! let report = recording.stop().wait()?;
//! assert!(report.is_complete());
//! # Ok::<(), trace_client::Error>(())
//! ```
//!
//! Whatever takes time returns a [`Pending`], which has two faces: [`Pending::wait`] blocks, and `.await`
//! works in any executor. Nothing here needs one: a [`Client`] and a [`Recording`] each have a thread that
//! takes turns with the manager.
//!
//! | module | is |
//! |---|---|
//! | [`client`] | connects, lists, records, takes snapshots |
//! | [`recording`] | a recording: progress, alerts, flush, stop |
//! | [`config`] | what is recorded, and how |
//! | [`pending`] | an answer that comes later |
//! | [`connection`] | requests to a manager, on the thread that calls |
//! | [`session`] | a recording as a state machine, for programs with a loop of their own, as `trace` is |
//! | [`destination`] | where the archive of a session goes, and the rules for its file |
//! | [`format`](mod@format) | formats, and the names that select them |
//! | [`sink`], [`pipe`] | what takes the archive as it arrives |
//! | [`limited`] | cuts an archive to a size |
//! | `convert`, `compressor` | with the feature `convert`: other formats, and compression |
//! | [`snapshot`] | copies of the buffers of a recording, or of their end |
//! | [`start`] | starts a manager if none runs |
//!
//! It writes archives in Fuchsia's trace format, and with the feature `convert` those of
//! [`Format`](format::Format), too.
//= docs/client.md#a-library-that-records
#![forbid(unsafe_code)]

mod answers;
pub mod client;
#[cfg(feature = "convert")]
pub mod compressor;
pub mod config;
pub mod connection;
#[cfg(feature = "convert")]
pub mod convert;
pub mod destination;
mod error;
pub mod format;
mod lending;
pub mod limited;
mod output;
pub mod pending;
pub mod pipe;
pub mod recording;
pub mod session;
pub mod sink;
pub mod snapshot;
pub mod start;
mod thread;

pub use client::Client;
pub use config::Config;
pub use connection::{Connection, Providers};
pub use error::{Error, Result};
pub use output::Output;
pub use pending::Pending;
pub use recording::{Recording, Report};
pub use snapshot::Snapshot;
pub use start::Tool;
pub use trace_archive::output::partial_name;
pub use trace_archive::problem;
pub use trace_protocol::BufferingMode;
pub use trace_protocol::KnownCategories;
pub use trace_protocol::controller::{Alert, ProviderInfo, ProviderProgress, ProviderStats};
pub use trace_protocol::memory::{MemoryDump, MemoryDumpLevel};
