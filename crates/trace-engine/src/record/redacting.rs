//! Records that were assembled by hand, in a private recording.

use crate::record::privacy::{REDACTED, is_of_system, redacted};
use trace_format::argument::{Argument, ArgumentValue, Arguments, MAX_ARGUMENTS};
use trace_format::blob::Blob;
use trace_format::event::Event;
use trace_format::kernel_object::{self, KernelObject};
use trace_format::large::{LargeBlob, LargeBlobEvent};
use trace_format::log::Log;
use trace_format::record::Record;
use trace_format::refs::StringRef;
use trace_format::scheduling::Scheduling;
use trace_format::sink::Sink;
use trace_format::string::StringRecord;

/// What a private recording has of a record: texts that stand in it are replaced, and those that have an
/// index are constants or were replaced before. None of a record of which it has nothing.
pub(super) fn redact_record(words: &[u64]) -> Option<Vec<u64>> {
    let bytes = bytes_of(words);
    let mut known = Vec::new();
    let mut out = Words::default();
    // Each kind by itself: the others' codecs would be in every program.
    let encoded = match Record::decode(&bytes).ok()? {
        Record::Initialization(_) | Record::Thread(_) => return Some(words.to_vec()),
        Record::String(string) => StringRecord { value: REDACTED.as_bytes(), ..string }.encode(&mut out),
        Record::Log(log) => Log { message: REDACTED.as_bytes(), ..log }.encode(&mut out),
        Record::Blob(blob) => Blob { name: replaced(blob.name), payload: b"", ..blob }.encode(&mut out),
        Record::Event(event) => {
            let (category, name) = (replaced(event.category), replaced(event.name));
            let arguments = redact(event.arguments, &mut known);
            Event { category, name, arguments, ..event }.encode(&mut out)
        }
        Record::KernelObject(object) => {
            let name = match is_of_system(object.object_type, object.koid.0) {
                true => object.name,
                false => replaced(object.name),
            };
            let arguments = redact(object.arguments, &mut known);
            KernelObject { name, arguments, ..object }.encode(&mut out)
        }
        Record::Scheduling(scheduling) => {
            let redacted = match scheduling {
                Scheduling::LegacyContextSwitch { .. } => return Some(words.to_vec()),
                Scheduling::ContextSwitch {
                    timestamp,
                    cpu,
                    outgoing_state,
                    outgoing,
                    incoming,
                    arguments,
                } => {
                    let arguments = redact(arguments, &mut known);
                    Scheduling::ContextSwitch {
                        timestamp,
                        cpu,
                        outgoing_state,
                        outgoing,
                        incoming,
                        arguments,
                    }
                }
                Scheduling::ThreadWakeup { timestamp, cpu, thread, arguments } => {
                    let arguments = redact(arguments, &mut known);
                    Scheduling::ThreadWakeup { timestamp, cpu, thread, arguments }
                }
                Scheduling::FiberSwitch { .. } => return None,
            };
            redacted.encode(&mut out)
        }
        Record::Large(blob) => {
            let (category, name) = (replaced(blob.category), replaced(blob.name));
            let event = blob
                .event
                .map(|event| LargeBlobEvent { arguments: redact(event.arguments, &mut known), ..event });
            LargeBlob { category, name, event, payload: b"" }.encode(&mut out)
        }
        _ => return None,
    };
    encoded.ok().map(|()| out.0)
}

/// A record's bytes.
pub(super) fn bytes_of(words: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(words));
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}

fn replaced(text: StringRef<'_>) -> StringRef<'_> {
    match text {
        // Without it, a thread has no process.
        StringRef::Inline(text) if text == kernel_object::PROCESS_ARGUMENT.as_bytes() => {
            StringRef::Inline(text)
        }
        StringRef::Inline(_) => StringRef::inline(REDACTED),
        text => text,
    }
}

fn redact<'a>(arguments: Arguments<'a>, known: &'a mut Vec<Argument<'a>>) -> Arguments<'a> {
    let all = arguments.iter().map_while(Result::ok).take(MAX_ARGUMENTS);
    known.extend(all.map(|argument| Argument {
        name: replaced(argument.name),
        value: match argument.value {
            // Of which nothing is known.
            ArgumentValue::Unknown { .. } => ArgumentValue::Null,
            value => redacted(value),
        },
    }));
    Arguments::from_slice(known)
}

/// A record's words.
#[derive(Default)]
struct Words(Vec<u64>);

impl Sink for Words {
    fn word(&mut self, word: u64) {
        self.0.push(word);
    }
}
