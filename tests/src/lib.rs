//! The harness of the multi-process scenarios: builds what they spawn, gives each its own runtime directory,
//! kills what is left, and reads archives.
#![forbid(unsafe_code)]

pub mod agent;
pub mod archive;
pub mod build;
pub mod catapult;
pub mod client;
pub mod compiled;
pub mod corpus;
pub mod deep;
pub mod hosts;
pub mod kernel;
pub mod native;
pub mod observer;
pub mod pages;
pub mod perfetto;
pub mod pftrace;
pub mod profilers;
pub mod proxy;
pub mod release;
pub mod report;
pub mod requirement;
pub mod sandbox;
pub mod scene;
pub mod screen;
pub mod skip;
pub mod spoof;
pub mod tables;
pub mod tracer;

pub use archive::Archive;
pub use requirement::Requirement;
pub use sandbox::{Answer, Sandbox, json, wait_for};
