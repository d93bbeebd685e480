//! `trace dump-memory`: has the programs of the running recording write down what they use memory for.

use crate::args::dump_memory::DumpMemory;
use crate::connection::Connection;
use crate::exit::Failure;
use trace_protocol::controller::{ProvisionerRequest, ProvisionerResponse};
use trace_protocol::memory::{MemoryDump, MemoryDumpLevel};

/// Asks for a dump, and says which one it became.
pub fn run(options: &DumpMemory) -> Result<(), Failure> {
    let level = if options.detailed { MemoryDumpLevel::Detailed } else { MemoryDumpLevel::Light };
    let mut connection = Connection::find()?.ok_or_else(nothing)?;
    let MemoryDump { id, providers } = take(&mut connection, level)?;
    let programs = if providers == 1 { "program" } else { "programs" };
    crate::stdio::print(&format!("memory dump {id} of {providers} {programs}\n"))
}

/// Has a dump taken.
pub fn take(connection: &mut Connection, level: MemoryDumpLevel) -> Result<MemoryDump, Failure> {
    match connection.ask(ProvisionerRequest::DumpMemory(level))? {
        ProvisionerResponse::DumpMemory(dump) => dump.ok_or_else(nothing),
        _ => Err(Failure::new("the trace manager gave another answer than asked for")),
    }
}

fn nothing() -> Failure {
    Failure::new("nothing is being recorded: start a recording first, with trace record or trace start")
}
