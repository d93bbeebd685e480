//! `trace mcp`: a server for agents, which speaks the Model Context Protocol over stdin and stdout.
//!
//! [`server`] waits, [`protocol`] decides, [`worker`] is a process that reads traces and runs the [`tools`].
//= docs/mcp.md#protocol

mod answer;
mod archive;
mod cursor;
mod error;
mod jail;
mod lines;
mod protocol;
mod record;
mod server;
mod tools;
pub mod worker;

use crate::args::mcp::Mcp;
use crate::shell::exit::Failure;
use jail::Jail;
use protocol::Protocol;
use server::Server;
use std::path::PathBuf;

/// Serves until the client closes its end, or a signal comes.
pub fn run(options: Mcp) -> Result<(), Failure> {
    let directories =
        if options.directories.is_empty() { vec![PathBuf::from(".")] } else { options.directories };
    let protocol = Protocol::new(tools::definitions(options.allow_record), tools::INSTRUCTIONS);
    Server::new(Jail::open(&directories)?, options.timeout.0, protocol).run()
}
