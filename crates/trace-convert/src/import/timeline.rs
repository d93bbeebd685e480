//! Fields that events omit and only their order provides: the names of ends, and where a flow begins.
//= docs/import.md#names-of-ends

use foldhash::{HashMap, HashSet};
use trace_format::event::EventType;
use trace_format::record::RecordType;
use trace_linux::END_WITHOUT_BEGIN;

/// Words of an event: header, time, process, thread. Threads are never in a table.
pub(super) const EVENT_BYTES: usize = 32;
/// Maximum number of remembered flows and operations; beyond it, all are forgotten.
const MAX_REMEMBERED: usize = 1 << 20;
/// Maximum number of remembered nested spans of a thread.
const MAX_DEPTH: usize = 1 << 16;
/// Memory of a thread's spans that is kept when none is open.
const KEPT_DEPTH: usize = 64;

/// What to do with a record.
pub(super) enum Outcome {
    Kept,
    /// Drop it, for this reason.
    Dropped(&'static str),
}

/// A span's beginning: its process, and the references to category and name.
#[derive(Clone, Copy)]
struct Open {
    process: [u8; 8],
    strings: [u8; 4],
}

#[derive(Default)]
pub(super) struct Timeline {
    /// By the thread's number, which on Linux is one in the whole system.
    spans: HashMap<u64, Vec<Open>>,
    open_spans: usize,
    operations: HashMap<u64, Vec<Open>>,
    open_operations: usize,
    flows: HashSet<u64>,
}

/// A reference of 16 bits is inline if its highest bit is set, and empty if it is 0.
fn is_in_table(strings: [u8; 4]) -> bool {
    (strings[1] | strings[3]) & 0x80 == 0
}

impl Timeline {
    /// Completes the next record in the order of times.
    pub fn finish(&mut self, record: &mut [u8]) -> Outcome {
        if !is_event(record) {
            return Outcome::Kept;
        }
        match EventType::from_raw(record[2] & 0xf) {
            Some(EventType::DurationBegin) => {
                self.begin(record);
            }
            Some(EventType::DurationEnd) => {
                let process = part(record, 16);
                let spans = self.spans.get_mut(&thread(record)).filter(|spans| !spans.is_empty());
                let Some(spans) = spans else { return Outcome::Dropped(END_WITHOUT_BEGIN) };
                // Not every end has the process of its begin. In some traces, processes have threads of one
                // number.
                let own = spans.iter().rposition(|open| open.process == process);
                let open = spans.remove(own.unwrap_or(spans.len() - 1));
                self.open_spans -= 1;
                if spans.is_empty() && spans.capacity() > KEPT_DEPTH {
                    *spans = Vec::new();
                }
                record[16..24].copy_from_slice(&open.process);
                name(record, open);
            }
            Some(EventType::AsyncBegin) => {
                if self.open_operations >= MAX_REMEMBERED {
                    self.operations.clear();
                    self.open_operations = 0;
                }
                self.open_operations += 1;
                let open = Open { process: part(record, 16), strings: part(record, 4) };
                self.operations.entry(id(record)).or_default().push(open);
            }
            Some(EventType::AsyncEnd) => {
                let id = id(record);
                if let Some(spans) = self.operations.get_mut(&id) {
                    if let Some(open) = spans.pop() {
                        self.open_operations -= 1;
                        name(record, open);
                    }
                    if spans.is_empty() {
                        self.operations.remove(&id);
                    }
                }
            }
            Some(EventType::FlowBegin) => self.flow(id(record)),
            // A flow without a begin begins here.
            Some(EventType::FlowStep) if !self.flows.contains(&id(record)) => {
                record[2] = record[2] & 0xf0 | EventType::FlowBegin as u8;
                self.flow(id(record));
            }
            Some(EventType::FlowEnd) => {
                self.flows.remove(&id(record));
            }
            _ => {}
        }
        Outcome::Kept
    }

    /// Remembers a span's beginning, as far as there is room.
    fn begin(&mut self, record: &[u8]) {
        if self.open_spans >= MAX_REMEMBERED {
            return;
        }
        // At least half of them have no open span: those are forgotten.
        if self.spans.len() > 2 * MAX_REMEMBERED {
            self.spans.retain(|_, spans| !spans.is_empty());
        }
        let spans = self.spans.entry(thread(record)).or_default();
        if spans.len() < MAX_DEPTH {
            spans.push(Open { process: part(record, 16), strings: part(record, 4) });
            self.open_spans += 1;
        }
    }

    fn flow(&mut self, id: u64) {
        if self.flows.len() >= MAX_REMEMBERED {
            self.flows.clear();
        }
        self.flows.insert(id);
    }
}

/// Whether a record is an event whose thread is in it.
pub(super) fn is_event(record: &[u8]) -> bool {
    record.len() >= EVENT_BYTES && record[0] & 0xf == RecordType::Event as u8 && record[3] == 0
}

/// Gives an end without a name the category and name of its beginning.
fn name(record: &mut [u8], open: Open) {
    if record[6..8] == [0; 2] && is_in_table(part(record, 4)) && is_in_table(open.strings) {
        record[4..8].copy_from_slice(&open.strings);
    }
}

/// An operation's or flow's id is the last word.
fn id(record: &[u8]) -> u64 {
    u64::from_le_bytes(part(record, record.len() - 8))
}

/// The thread's number.
fn thread(record: &[u8]) -> u64 {
    u64::from_le_bytes(part(record, 24))
}

fn part<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}
