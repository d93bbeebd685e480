//! Writes the archive: sections, definitions where they are first used, and ledgers that add up.

use super::texts::Placeholder;
use crate::sink::Bytes;
use foldhash::{HashMap, HashMapExt};
use std::io::{self, Write};
use trace_format::argument::Argument;
use trace_format::event::Event;
use trace_format::initialization::Initialization;
use trace_format::large;
use trace_format::loss::{LedgerRecord, LossRecord};
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, TicksPerSecond, Words,
};
use trace_linux::inline;
use trace_reader::{Text, TextKey, Thread};

const FLUSH_BYTES: usize = 64 << 10;
/// How many definitions are remembered, of all providers together; other texts stand in their records.
const MAX_DEFINITIONS: usize = 1 << 20;
/// How many providers are distinguished.
pub(super) const MAX_PROVIDERS: usize = 50_000;

/// A text of a record: one of the input's, or a placeholder.
#[derive(Clone, Copy)]
pub(super) enum Piece<'a> {
    Text(StringRef<'a>),
    Placeholder(Placeholder),
}

impl Piece<'_> {
    pub fn reference(&self) -> StringRef<'_> {
        match self {
            Self::Text(text) => *text,
            Self::Placeholder(placeholder) => StringRef::Inline(placeholder.as_bytes()),
        }
    }
}

/// What the output has of a provider.
#[derive(Default)]
struct Provider {
    /// Its name, until it is introduced.
    name: Option<Box<[u8]>>,
    /// The rate that is not written yet.
    rate: Option<TicksPerSecond>,
    /// It has a section.
    is_shown: bool,
    texts: HashMap<TextKey, StringIndex>,
    placeholders: HashMap<Placeholder, StringIndex>,
    threads: HashMap<Thread, ThreadIndex>,
    /// Records that a ledger counts, in the input and in the output so far.
    read: u64,
    written: u64,
}

impl Provider {
    fn next_string(&self) -> Option<StringIndex> {
        let next = self.texts.len() + self.placeholders.len() + 1;
        u16::try_from(next).ok().and_then(StringIndex::new)
    }
}

pub(super) struct Archive<W> {
    output: W,
    bytes: Bytes,
    providers: HashMap<ProviderId, Provider>,
    /// The provider whose records come next, as a reader of the output sees it.
    current: ProviderId,
    /// A part begins: the magic number stands in front of it.
    is_part: bool,
    definitions: usize,
    /// Bytes of a large blob that are still to come, without padding.
    payload_left: u64,
    payload_padding: usize,
    error: Option<io::Error>,
}

impl<W: Write> Archive<W> {
    pub fn new(output: W) -> Self {
        Self {
            output,
            bytes: Bytes(MAGIC_WORD.to_le_bytes().to_vec()),
            providers: HashMap::new(),
            current: ProviderId(0),
            is_part: false,
            definitions: 0,
            payload_left: 0,
            payload_padding: 0,
            error: None,
        }
    }

    /// The magic number in the input.
    pub fn part(&mut self) {
        // One stands at the beginning.
        self.is_part = !self.providers.is_empty();
    }

    /// Whether there is room for a provider.
    pub fn has_room(&self, id: ProviderId) -> bool {
        self.providers.len() < MAX_PROVIDERS || self.providers.contains_key(&id)
    }

    fn provider(&mut self, id: ProviderId) -> &mut Provider {
        self.providers.entry(id).or_default()
    }

    /// A provider is introduced in the input, with nothing defined. It gets its section with its first
    /// record.
    pub fn introduce(&mut self, id: ProviderId, name: &[u8]) {
        let provider = self.provider(id);
        provider.name = Some(name.into());
        provider.is_shown = false;
        let forgotten = provider.texts.len() + provider.placeholders.len();
        (provider.texts, provider.placeholders) = Default::default();
        provider.threads = HashMap::new();
        self.definitions -= forgotten;
    }

    /// Sets a provider's rate from here on.
    pub fn set_rate(&mut self, id: ProviderId, rate: TicksPerSecond) {
        self.provider(id).rate = Some(rate);
        if self.is_shown(id) {
            self.begin(id);
        }
    }

    pub fn is_shown(&self, id: ProviderId) -> bool {
        self.providers.get(&id).is_some_and(|provider| provider.is_shown)
    }

    /// Counts a record of the input.
    pub fn count(&mut self, id: ProviderId) {
        self.provider(id).read += 1;
    }

    /// Makes a provider current.
    pub fn begin(&mut self, id: ProviderId) {
        let is_part = std::mem::take(&mut self.is_part);
        let is_current = self.current == id;
        let provider = self.providers.entry(id).or_default();
        provider.is_shown = true;
        let name = provider.name.take();
        if is_part {
            self.bytes.0.extend_from_slice(&MAGIC_WORD.to_le_bytes());
        }
        // A name of an input has at most 255 bytes.
        let _ = match &name {
            Some(name) => Metadata::ProviderInfo { id, name }.encode(&mut self.bytes),
            None if is_part || !is_current => Metadata::ProviderSection { id }.encode(&mut self.bytes),
            None => Ok(()),
        };
        self.current = id;
        if let Some(ticks_per_second) = provider.rate.take() {
            let _ = Initialization { ticks_per_second }.encode(&mut self.bytes);
            provider.written += 1;
        }
    }

    /// Writes a record of a provider; false if it is larger than the format allows, or of a kind that is not
    /// written.
    pub fn write(&mut self, id: ProviderId, record: &Record<'_>) -> bool {
        self.begin(id);
        if !self.encode(record) {
            return false;
        }
        self.provider(id).written += 1;
        self.flush_if_full();
        true
    }

    /// Writes an event, and blobs with the arguments that its record has no room for; false as for
    /// [`Self::write`].
    pub fn write_event<'a>(&mut self, id: ProviderId, event: Event<'a>, arguments: &[Argument<'a>]) -> bool {
        self.begin(id);
        let Some(blobs) = self.bytes.event(event, arguments) else { return false };
        self.provider(id).written += 1 + blobs;
        self.flush_if_full();
        true
    }

    fn encode(&mut self, record: &Record<'_>) -> bool {
        let start = self.bytes.0.len();
        let is_written = record.encode(&mut self.bytes).is_ok();
        if !is_written {
            self.bytes.0.truncate(start);
        }
        is_written
    }

    /// Remarks on a provider, if it has a section.
    pub fn remark(&mut self, about: ProviderId, event: u8) {
        if self.is_shown(about) {
            self.encode(&Record::Metadata(Metadata::ProviderEvent { id: about, event }));
        }
    }

    pub fn loss(&mut self, loss: &LossRecord) {
        self.begin(loss.provider);
        self.encode(&Record::Blob(LossRecord::blob(&loss.to_bytes())));
    }

    /// Writes a ledger, if its provider has a section. What it says of the records of this file is true, or
    /// wrong by as much as it was in the input.
    //= docs/format.md#ledger-blob
    pub fn ledger(&mut self, ledger: &LedgerRecord) {
        if !self.is_shown(ledger.provider) {
            return;
        }
        self.begin(ledger.provider);
        let Provider { read, written, .. } = *self.provider(ledger.provider);
        let difference = i128::from(ledger.records) - i128::from(read);
        let records = u64::try_from(i128::from(written) + difference).unwrap_or(0);
        let ledger = LedgerRecord { records, ..*ledger };
        self.encode(&Record::Blob(LedgerRecord::blob(&ledger.to_bytes())));
    }

    /// A text as it is. What the input has in its table, which a key tells, gets into that of the output.
    pub fn text<'a>(&mut self, id: ProviderId, text: Text<'a>, key: TextKey) -> StringRef<'a> {
        if text.as_bytes().is_empty() || key == TextKey::NONE {
            return inline(text.as_bytes());
        }
        if let Some(index) = self.providers.get(&id).and_then(|provider| provider.texts.get(&key)) {
            return StringRef::Index(*index);
        }
        let reference = inline(text.as_bytes());
        let StringRef::Inline(value) = reference else { return reference };
        let Some(index) = self.define(id, value) else { return reference };
        self.provider(id).texts.insert(key, index);
        StringRef::Index(index)
    }

    /// A placeholder of a text.
    pub fn placeholder<'a>(&mut self, id: ProviderId, placeholder: Placeholder) -> Piece<'a> {
        let found = self.providers.get(&id).and_then(|provider| provider.placeholders.get(&placeholder));
        if let Some(index) = found {
            return Piece::Text(StringRef::Index(*index));
        }
        let Some(index) = self.define(id, placeholder.as_bytes()) else {
            return Piece::Placeholder(placeholder);
        };
        self.provider(id).placeholders.insert(placeholder, index);
        Piece::Text(StringRef::Index(index))
    }

    fn define(&mut self, id: ProviderId, value: &[u8]) -> Option<StringIndex> {
        let index = self.provider(id).next_string().filter(|_| self.definitions < MAX_DEFINITIONS)?;
        let is_written = self.write(id, &Record::String(StringRecord { index: index.get(), value }));
        self.definitions += usize::from(is_written);
        is_written.then_some(index)
    }

    /// A thread, in the table of the output if that has room.
    pub fn thread(&mut self, id: ProviderId, thread: Thread) -> ThreadRef {
        let threads = &self.provider(id).threads;
        if let Some(index) = threads.get(&thread) {
            return ThreadRef::Index(*index);
        }
        let next = u8::try_from(threads.len() + 1).ok().and_then(ThreadIndex::new);
        let (process, koid) = (ProcessKoid(thread.process), ThreadKoid(thread.thread));
        let Some(index) = next else {
            return ThreadRef::Inline { process, thread: koid };
        };
        self.write(id, &Record::Thread(ThreadRecord { index: index.get(), process, thread: koid }));
        self.provider(id).threads.insert(thread, index);
        ThreadRef::Index(index)
    }

    /// A thread of a process in the table, for objects of processes, which are written in no other way.
    pub fn thread_of(&mut self, id: ProviderId, process: Koid) -> Option<ThreadIndex> {
        let known = self.provider(id).threads.iter().find(|(thread, _)| thread.process == process);
        if let Some((_, index)) = known {
            return Some(*index);
        }
        match self.thread(id, Thread { process, thread: Koid(0) }) {
            ThreadRef::Index(index) => Some(index),
            ThreadRef::Inline { .. } => None,
        }
    }

    /// Writes the beginning of a large blob, whose payload follows piece by piece; false as for other
    /// records.
    pub fn begin_large(&mut self, id: ProviderId, blob: &large::LargeBlob<'_>, payload_bytes: u64) -> bool {
        let Ok(payload) = usize::try_from(payload_bytes) else { return false };
        let size = blob.words().plus(Words::for_bytes(payload));
        let start = {
            self.begin(id);
            self.bytes.0.len()
        };
        if size.0 > large::MAX_LARGE_RECORD_WORDS || !self.encode(&Record::Large(*blob)) {
            return false;
        }
        // It was encoded without a payload, whose length is the last word.
        let format = if blob.event.is_some() { large::FORMAT_EVENT } else { large::FORMAT_ATTACHMENT };
        let end = self.bytes.0.len();
        let header = large::header(size.0 as u64, format);
        self.bytes.0[start..start + 8].copy_from_slice(&header.to_le_bytes());
        self.bytes.0[end - 8..].copy_from_slice(&payload_bytes.to_le_bytes());
        self.provider(id).written += 1;
        self.payload_left = payload_bytes;
        self.payload_padding = Words::for_bytes(payload).bytes() - payload;
        true
    }

    /// Writes a piece of the payload of the blob that was begun, if it was.
    pub fn payload(&mut self, piece: &[u8]) {
        if self.payload_left == 0 {
            return;
        }
        let length = piece.len().min(usize::try_from(self.payload_left).unwrap_or(usize::MAX));
        self.bytes.0.extend_from_slice(&piece[..length]);
        self.payload_left -= length as u64;
        if self.payload_left == 0 {
            let end = self.bytes.0.len() + self.payload_padding;
            self.bytes.0.resize(end, 0);
        }
        self.flush_if_full();
    }

    fn flush_if_full(&mut self) {
        if self.bytes.0.len() >= FLUSH_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let written = self.output.write_all(&self.bytes.0);
        self.bytes.0.clear();
        self.error = self.error.take().or(written.err());
    }

    /// The error of an earlier write.
    pub fn check(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Writes the rest.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.check()?;
        self.output.flush()
    }
}
