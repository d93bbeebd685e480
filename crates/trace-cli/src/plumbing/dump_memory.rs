//! `trace dump-memory`: has the programs of the running recording write down what they use memory for.

use crate::args::dump_memory::DumpMemory;
use crate::connection::{self, NOTHING_RECORDED};
use crate::shell::exit::Failure;
use crate::shell::json::Answer;
use crate::shell::stdio::say;
use trace_analysis::counted::Counted;
use trace_protocol::memory::{MemoryDump, MemoryDumpLevel};

/// Requests a dump, and reports its number.
pub fn run(options: &DumpMemory) -> Result<(), Failure> {
    let level = if options.detailed { MemoryDumpLevel::Detailed } else { MemoryDumpLevel::Light };
    let mut connection = connection::find()?.ok_or_else(nothing)?;
    let dump = connection.dump_memory(level)?;
    if options.json {
        Answer::of(machine(&dump)).give();
    } else {
        crate::shell::stdio::print(&text(&dump))?;
    }
    if dump.written == Some(0) {
        say!(
            "trace: no program has written anything: only those that register a function for memory dumps do, \
             while the category memory_dump is recorded"
        );
    }
    Ok(())
}

/// Reports how many programs have written a dump, and its number.
fn text(dump: &MemoryDump) -> String {
    let MemoryDump { id, providers, written } = dump;
    let programs = Counted(u64::from(*providers), "programs");
    match written {
        Some(written) => format!("memory dump {id}: written by {written} of {programs}\n"),
        // The manager, or one of the programs, is of a release that does not report it.
        None => format!("memory dump {id}: {programs} asked\n"),
    }
}

fn machine(dump: &MemoryDump) -> serde_json::Value {
    let MemoryDump { id, providers, written } = dump;
    serde_json::json!({"dump": id, "asked": providers, "written": written})
}

fn nothing() -> Failure {
    Failure::nothing_recorded(NOTHING_RECORDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_that_answered_are_counted() {
        let dump = |providers, written| text(&MemoryDump { id: 3, providers, written });
        assert_eq!(dump(4, Some(3)), "memory dump 3: written by 3 of 4 programs\n");
        assert_eq!(dump(1, Some(1)), "memory dump 3: written by 1 of 1 program\n");
        assert_eq!(dump(2, None), "memory dump 3: 2 programs asked\n");
    }
}
