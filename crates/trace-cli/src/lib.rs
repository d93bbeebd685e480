//! The `trace` command: options, progress, advice and exit codes around the other crates.
//!
//! A library, so that it is compiled while the crates below it still are.
#![forbid(unsafe_code)]

mod args;
mod background;
mod browser;
mod compare;
mod connection;
mod convert;
mod dispatch;
mod files;
mod look;
#[cfg(feature = "query")]
mod mcp;
mod plumbing;
mod record;
mod settings;
mod shell;

use std::process::ExitCode;

/// Does what the arguments of the process say; the result is its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let code = dispatch::run();
    shell::stdio::finish();
    code
}
