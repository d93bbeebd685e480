//! Writes an archive: one provider, with a table of strings.

use std::collections::HashMap;
use std::io::{self, Write};
use trace_format::argument::{Argument, Arguments};
use trace_format::event::{Event, EventKind};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::KernelObject;
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::string::StringRecord;
use trace_format::units::{Koid, ProcessKoid, ProviderId, StringIndex, ThreadKoid, Ticks, TicksPerSecond};
use trace_reader::Thread;

const FLUSH_BYTES: usize = 64 << 10;
/// Only strings that may come again are worth an index.
const MAX_INDEXED_BYTES: usize = 200;
/// Longest string of the format, in bytes.
const MAX_STRING_BYTES: usize = 32_000;
/// The archive's only provider.
const PROVIDER: ProviderId = ProviderId(1);

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

pub(super) struct Writer<W> {
    output: W,
    bytes: Bytes,
    strings: HashMap<Box<[u8]>, StringIndex>,
}

impl<W: Write> Writer<W> {
    /// Begins an archive whose ticks are nanoseconds.
    pub fn new(output: W, provider: &str) -> Self {
        let mut writer =
            Self { output, bytes: Bytes(Vec::with_capacity(2 * FLUSH_BYTES)), strings: HashMap::new() };
        writer.bytes.word(MAGIC_WORD);
        let info = Metadata::ProviderInfo { id: PROVIDER, name: provider.as_bytes() };
        let _ = info.encode(&mut writer.bytes);
        let rate = Initialization { ticks_per_second: TicksPerSecond::NANOSECONDS };
        let _ = rate.encode(&mut writer.bytes);
        writer
    }

    pub fn flush_if_full(&mut self) -> io::Result<()> {
        if self.bytes.0.len() >= FLUSH_BYTES {
            self.output.write_all(&self.bytes.0)?;
            self.bytes.0.clear();
        }
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.output.write_all(&self.bytes.0)?;
        self.output.flush()
    }

    /// A reference to a string, which is in the table if it may come again; cut at the format's limit.
    pub fn string<'a>(&mut self, text: &'a [u8]) -> StringRef<'a> {
        if text.is_empty() {
            return StringRef::Empty;
        }
        if text.len() > MAX_INDEXED_BYTES {
            return inline(text);
        }
        if let Some(index) = self.strings.get(text) {
            return StringRef::Index(*index);
        }
        let next = u16::try_from(self.strings.len() + 1).ok().and_then(StringIndex::new);
        let Some(index) = next else {
            return inline(text);
        };
        let record = StringRecord { index: index.get(), value: text };
        if record.encode(&mut self.bytes).is_err() {
            return inline(text);
        }
        self.strings.insert(text.into(), index);
        StringRef::Index(index)
    }

    /// Writes an event; false if it is larger than the format allows.
    pub fn event(
        &mut self,
        at: u64,
        thread: Thread,
        category: &[u8],
        name: &[u8],
        kind: EventKind,
        arguments: &[Argument<'_>],
    ) -> bool {
        let (category, name) = (self.string(category), self.string(name));
        let event = Event {
            timestamp: Ticks(at),
            thread: ThreadRef::Inline {
                process: ProcessKoid(thread.process),
                thread: ThreadKoid(thread.thread),
            },
            category,
            name,
            kind,
            arguments: Arguments::from_slice(arguments),
        };
        self.record(&Record::Event(event))
    }

    pub fn kernel_object(&mut self, object_type: u8, koid: Koid, name: &[u8], arguments: &[Argument<'_>]) {
        let name = self.string(name);
        let object = KernelObject { object_type, koid, name, arguments: Arguments::from_slice(arguments) };
        self.record(&Record::KernelObject(object));
    }

    pub fn record(&mut self, record: &Record<'_>) -> bool {
        let start = self.bytes.0.len();
        let is_written = record.encode(&mut self.bytes).is_ok();
        if !is_written {
            self.bytes.0.truncate(start);
        }
        is_written
    }
}

/// A string as it is, cut at the format's limit.
pub(super) fn inline(text: &[u8]) -> StringRef<'_> {
    if text.is_empty() {
        return StringRef::Empty;
    }
    let mut end = text.len().min(MAX_STRING_BYTES);
    // At the beginning of a character.
    while end > 0 && text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    StringRef::Inline(&text[..end])
}
