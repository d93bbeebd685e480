//! What the manager knows of a provider's program: where it comes from, and how it ended. Kernel objects of
//! channels in the manager's own section, because a registration is a channel of the provider's; they have no
//! koid, because channels have none on Linux.
//= docs/protocol.md#provider-descriptions

use crate::framing;
use crate::session_info::{OWN_ID, argument, object, text};
use trace_format::argument::ArgumentValue;
use trace_format::kernel_object::{PROCESS_ARGUMENT, TYPE_CHANNEL, TYPE_PROCESS};
use trace_format::program_info::{
    AT_ARGUMENT, COMMAND_LINE_ARGUMENT, END_ARGUMENT, ENDED_ARGUMENT, OPEN_ARGUMENT, PARENT_ARGUMENT,
    PROVIDER_ARGUMENT, REGISTERED_ARGUMENT,
};
use trace_format::scopes::Ending;
use trace_format::units::{Koid, ProviderId, Ticks};

/// What is known of a provider's program when its provider joins a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramInfo {
    /// The provider's process.
    pub process: Koid,
    /// The process that it was forked from.
    pub parent: Option<Koid>,
    /// The arguments of its program.
    pub command_line: Option<String>,
    /// When it registered.
    pub registered: Option<Ticks>,
}

/// How a provider's part in a recording ended before the recording did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEnd {
    /// The provider's number in the archive.
    pub id: ProviderId,
    /// Its process.
    pub process: Koid,
    /// When it ended, as far as that is known.
    pub at: Option<Ticks>,
    /// How, in words.
    pub how: String,
}

/// Appends what is known when a provider joins. A process that was forked is described as well; it keeps the
/// name from its own records.
//= docs/protocol.md#the-managers-own-provider
pub fn joined(id: ProviderId, name: &str, program: &ProgramInfo, out: &mut Vec<u8>) {
    framing::provider_section(OWN_ID, out);
    if let Some(parent) = program.parent {
        let arguments = [argument(PARENT_ARGUMENT, ArgumentValue::Koid(parent))];
        object(TYPE_PROCESS, program.process, b"", &arguments, out);
    }
    // Manifests of earlier releases have nothing else.
    let Some(registered) = program.registered else { return };
    let mut arguments = vec![
        argument(PROVIDER_ARGUMENT, ArgumentValue::Uint32(id.0)),
        argument(PROCESS_ARGUMENT, ArgumentValue::Koid(program.process)),
        argument(REGISTERED_ARGUMENT, ArgumentValue::Uint64(registered.0)),
    ];
    arguments.extend(program.parent.map(|parent| argument(PARENT_ARGUMENT, ArgumentValue::Koid(parent))));
    let command_line = program.command_line.as_deref();
    arguments.extend(command_line.map(|line| argument(COMMAND_LINE_ARGUMENT, text(line))));
    object(TYPE_CHANNEL, Koid(0), name.as_bytes(), &arguments, out);
}

/// Appends how providers ended.
pub fn ended(ends: &[ProviderEnd], out: &mut Vec<u8>) {
    if ends.is_empty() {
        return;
    }
    framing::provider_section(OWN_ID, out);
    for ProviderEnd { id, process, at, how } in ends {
        end(*id, *process, *at, how, out);
    }
}

/// Appends why spans of a provider have no end that had not ended at a time.
pub(crate) fn parted(id: ProviderId, process: Koid, ending: Ending, at: Ticks, out: &mut Vec<u8>) {
    framing::provider_section(OWN_ID, out);
    let arguments = [
        argument(PROVIDER_ARGUMENT, ArgumentValue::Uint32(id.0)),
        argument(PROCESS_ARGUMENT, ArgumentValue::Koid(process)),
        argument(OPEN_ARGUMENT, text(ending.text())),
        argument(AT_ARGUMENT, ArgumentValue::Uint64(at.0)),
    ];
    object(TYPE_CHANNEL, Koid(0), b"", &arguments, out);
}

/// Appends how a provider ended, to the manager's own section.
pub(crate) fn end(id: ProviderId, process: Koid, at: Option<Ticks>, how: &str, out: &mut Vec<u8>) {
    let mut arguments = vec![
        argument(PROVIDER_ARGUMENT, ArgumentValue::Uint32(id.0)),
        argument(PROCESS_ARGUMENT, ArgumentValue::Koid(process)),
    ];
    arguments.extend(at.map(|at| argument(ENDED_ARGUMENT, ArgumentValue::Uint64(at.0))));
    arguments.push(argument(END_ARGUMENT, text(how)));
    object(TYPE_CHANNEL, Koid(0), b"", &arguments, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_reader::{Item, Reader};

    /// Kernel objects of an archive: type, koid, name and arguments.
    fn objects(write: impl FnOnce(&mut Vec<u8>)) -> Vec<String> {
        let mut archive = Vec::new();
        framing::provider_info(OWN_ID, "trace_manager", &mut archive);
        write(&mut archive);
        let mut reader = Reader::new(&archive[..]).unwrap();
        let mut objects = Vec::new();
        while let Some(found) = reader.next_item().unwrap() {
            if let Item::KernelObject { object_type, koid, name, arguments } = found.item {
                assert_eq!(found.provider, OWN_ID);
                let arguments: Vec<_> =
                    arguments.iter().map(|(name, value)| format!("{}={value:?}", name.to_str())).collect();
                objects.push(format!("{object_type} {} {name:?} {}", koid.0, arguments.join(" ")));
            }
        }
        objects
    }

    //= docs/protocol.md#provider-descriptions
    #[test]
    fn all_that_is_known_is_said() {
        let program = ProgramInfo {
            process: Koid(7),
            parent: Some(Koid(6)),
            command_line: Some("app -v".to_owned()),
            registered: Some(Ticks(99)),
        };
        let found = objects(|out| joined(ProviderId(3), "app", &program, out));
        assert_eq!(
            found,
            [
                "1 7 \"\" parent=Koid(Koid(6))",
                "4 0 \"app\" provider=Uint32(3) process=Koid(Koid(7)) registered=Uint64(99) parent=Koid(Koid(6)) \
                 command_line=String(\"app -v\")",
            ]
        );
        // A manifest of an earlier release knows the parent alone.
        let old = ProgramInfo { command_line: None, registered: None, ..program };
        let found = objects(|out| joined(ProviderId(3), "app", &old, out));
        assert_eq!(found, ["1 7 \"\" parent=Koid(Koid(6))"]);
    }

    //= docs/protocol.md#provider-descriptions
    #[test]
    fn ends_have_their_time_where_it_is_known() {
        let end = |at| ProviderEnd { id: ProviderId(3), process: Koid(7), at, how: "ended".to_owned() };
        let found = objects(|out| ended(&[end(Some(Ticks(5))), end(None)], out));
        assert_eq!(
            found,
            [
                "4 0 \"\" provider=Uint32(3) process=Koid(Koid(7)) ended=Uint64(5) end=String(\"ended\")",
                "4 0 \"\" provider=Uint32(3) process=Koid(Koid(7)) end=String(\"ended\")",
            ]
        );
        let mut out = Vec::new();
        ended(&[], &mut out);
        assert!(out.is_empty());
    }
}
