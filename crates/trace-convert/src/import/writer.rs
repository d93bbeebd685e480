//! Writes an archive: one provider, with a table of strings.

use super::timeline::{EVENT_BYTES, Outcome, Timeline, is_event};
use super::{CUT_OFF, ImportError};
use crate::sink::{Bytes, behind_blobs};
use crate::{Summary, Unread};
use foldhash::{HashMap, HashMapExt};
use std::collections::BTreeMap;
use std::fmt::Display;
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
use trace_linux::{MAX_STRING_BYTES, Records, inline};
use trace_reader::Thread;
use trace_reader::sorter::Sorter;

const FLUSH_BYTES: usize = 64 << 10;
/// Beyond this, records are written out even before the reader asks for them.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// How many warnings are kept.
const MAX_WARNINGS: usize = 10;
/// How many damaged places are reported.
const MAX_PLACES: usize = 20;
/// How many kinds of skipped records are distinguished.
const MAX_KINDS: usize = 1000;
const MAX_KIND_BYTES: usize = 200;
/// The other kinds.
const OTHER_KINDS: &str = "records of other kinds";
/// Only strings that may come again are worth an index.
const MAX_INDEXED_BYTES: usize = 200;
/// What names are called that are cut.
const LONG_NAMES: &str = "ends of names and categories beyond 32 000 bytes";
/// How much of a category and of a name there is room for if both are long.
const MAX_NAME_BYTES: usize = 15_900;
/// How many strings are found without the table; a power of two.
const RECENT: usize = 64;
/// Only strings that are not longer.
const MAX_RECENT_BYTES: usize = 32;
/// Category and name of flows that are attached to slices, and have none of their own.
pub(super) const FLOW: &[u8] = b"flow";
/// What flows are counted as that no operation can have.
pub(super) const FLOWS_OF_OPERATIONS: &str = "flows of asynchronous spans";
/// The process of events whose thread is decided at the end. No process has this number.
pub(super) const WAITING: Koid = Koid(u64::MAX);
/// The flag of a reference to a string that is in the record.
const INLINE: u16 = 1 << 15;
/// The archive's only provider.
const PROVIDER: ProviderId = ProviderId(1);

/// A short string of the table.
#[derive(Clone, Copy)]
struct Recent {
    text: [u8; MAX_RECENT_BYTES],
    length: usize,
    index: StringIndex,
}

impl Recent {
    fn new(text: &[u8], index: StringIndex) -> Self {
        let mut padded = [0; MAX_RECENT_BYTES];
        padded[..text.len()].copy_from_slice(text);
        Self { text: padded, length: text.len(), index }
    }

    /// The place of a string: of texts that are alike, the ends are different.
    #[inline]
    fn place_of(text: &[u8]) -> usize {
        let last = text.last_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
        let first = text.first_chunk().map_or(0, |four| u64::from(u32::from_le_bytes(*four)));
        let short = text
            .first()
            .zip(text.last())
            .map_or(0, |(first, last)| u64::from(*first) << 8 | u64::from(*last));
        let mixed = (last ^ first.rotate_left(32) ^ short ^ (text.len() as u64) << 20).wrapping_mul(SPREAD);
        (mixed >> 58) as usize % RECENT
    }
}

/// Spreads the bits of a number over the highest ones: 2⁶⁴ divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The order of records that have a time.
enum Order {
    /// They are written as they are.
    AsTheyAre,
    /// They come in the order of their times; missing fields are added.
    InTime(Timeline),
    /// They come in any order, and are written at the end.
    Sorted(Sorter, Timeline),
}

/// What is made of an event that waits for its thread.
type Settle<'a, W> = &'a mut dyn FnMut(&mut Writer<W>, &mut Vec<u8>) -> Outcome;

pub(super) struct Writer<W> {
    output: W,
    bytes: Bytes,
    strings: HashMap<Box<[u8]>, StringIndex>,
    /// Some of them, each at a place of its own.
    recent: Box<[Option<Recent>]>,
    order: Order,
    events: u64,
    /// Records that have a time, events among them.
    timed: u64,
    skipped: BTreeMap<String, u64>,
    malformed: u64,
    warnings: u64,
    first_warnings: Vec<String>,
    unread: u64,
    first_unread: Vec<Unread>,
    is_cut_off: bool,
    /// An error of an earlier write.
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Begins an archive whose ticks are nanoseconds.
    pub fn new(output: W, provider: &str) -> Self {
        let mut writer = Self {
            output,
            bytes: Bytes(Vec::with_capacity(2 * FLUSH_BYTES)),
            strings: HashMap::new(),
            recent: vec![None; RECENT].into(),
            order: Order::AsTheyAre,
            events: 0,
            timed: 0,
            skipped: BTreeMap::new(),
            malformed: 0,
            warnings: 0,
            first_warnings: Vec::new(),
            unread: 0,
            first_unread: Vec::new(),
            is_cut_off: false,
            error: None,
        };
        writer.bytes.word(MAGIC_WORD);
        let info = Metadata::ProviderInfo { id: PROVIDER, name: provider.as_bytes() };
        let _ = info.encode(&mut writer.bytes);
        let rate = Initialization { ticks_per_second: TicksPerSecond::NANOSECONDS };
        let _ = rate.encode(&mut writer.bytes);
        writer
    }

    /// Begins an archive of events that come in the order of their times.
    pub fn in_time(output: W, provider: &str) -> Self {
        Self { order: Order::InTime(Timeline::default()), ..Self::new(output, provider) }
    }

    /// Begins an archive of events that come in any order.
    pub fn sorted(output: W, provider: &str) -> Self {
        Self { order: Order::Sorted(Sorter::default(), Timeline::default()), ..Self::new(output, provider) }
    }

    /// Takes records that come in the order of their times, between others that do not.
    pub fn within<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let order = std::mem::replace(&mut self.order, Order::InTime(Timeline::default()));
        let written = write(self);
        self.order = order;
        written
    }

    /// Counts a record that an archive cannot express.
    pub fn skip(&mut self, what: impl Into<String>) {
        self.skip_many(what, 1);
    }

    /// Counts several records that an archive cannot express.
    pub fn skip_many(&mut self, what: impl Into<String>, count: u64) {
        if count == 0 {
            return;
        }
        let mut what = what.into();
        what.truncate(what.floor_char_boundary(MAX_KIND_BYTES));
        if self.skipped.len() >= MAX_KINDS && !self.skipped.contains_key(&what) {
            OTHER_KINDS.clone_into(&mut what);
        }
        *self.skipped.entry(what).or_default() += count;
    }

    /// Adds a warning about the input; only the first ones are kept.
    pub fn warn(&mut self, what: impl Into<String>) {
        self.warnings += 1;
        if self.first_warnings.len() < MAX_WARNINGS {
            self.first_warnings.push(what.into());
        }
    }

    /// Counts a record that cannot be decoded although an archive may be able to express it.
    //= docs/check.md#problems
    pub fn undecodable(&mut self, offset: u64, what: &str, why: &dyn Display) {
        self.skip(format!("{what}s that cannot be decoded"));
        self.warn(format!("{what} at byte {offset}: {why}"));
        self.unread += 1;
        if self.first_unread.len() < MAX_PLACES {
            self.first_unread.push(Unread { offset, text: format!("{what}: {why}") });
        }
    }

    /// Warns, before everything else, that the input is truncated.
    pub fn cut_off(&mut self) {
        self.is_cut_off = true;
        self.warnings += 1;
        self.first_warnings.truncate(MAX_WARNINGS - 1);
        self.first_warnings.insert(0, CUT_OFF.to_owned());
    }

    /// Warns of something malformed.
    pub fn malformed(&mut self, what: impl Into<String>, count: u64) {
        self.malformed += count;
        self.warn(what);
    }

    /// Writes an event whose category and name are references, or counts it if it is larger than the format
    /// allows.
    #[inline]
    pub fn event_of(
        &mut self,
        at: u64,
        thread: Thread,
        (category, name): (StringRef<'_>, StringRef<'_>),
        kind: EventKind,
        arguments: &[Argument<'_>],
    ) {
        let (timestamp, thread) = (Ticks(at), thread_ref(thread));
        let event = Event { timestamp, thread, category, name, kind, arguments: Arguments::from_slice(&[]) };
        let start = self.bytes.0.len();
        self.events += 1;
        let blobs = self.bytes.event(event, arguments);
        if blobs.is_some_and(|blobs| blobs > 0) {
            self.count_cut_names(arguments);
        }
        if blobs.is_some() || self.cut_event(event, arguments) {
            self.place(at, start);
        } else {
            self.events -= 1;
            self.skip("events that are too large");
        }
    }

    #[cold]
    fn count_cut_names(&mut self, arguments: &[Argument<'_>]) {
        let is_long = |name| matches!(name, StringRef::Inline(name) if name.len() > MAX_STRING_BYTES);
        let count = arguments.iter().filter(|argument| is_long(argument.name)).count();
        self.skip_many("ends of names of arguments beyond 32 000 bytes", count as u64);
    }

    /// Writes an event with a part of its category and name.
    #[cold]
    fn cut_event(&mut self, event: Event<'_>, arguments: &[Argument<'_>]) -> bool {
        self.skip(LONG_NAMES);
        [MAX_STRING_BYTES, MAX_NAME_BYTES].into_iter().any(|limit| {
            let [category, name] = [event.category, event.name].map(|reference| match reference {
                StringRef::Inline(text) => inline(&text[..text.len().min(limit)]),
                reference => reference,
            });
            self.bytes.event(Event { category, name, ..event }, arguments).is_some()
        })
    }

    /// Puts a record that was encoded, and blobs before it, where it belongs.
    #[inline]
    fn place(&mut self, at: u64, start: usize) {
        self.timed += 1;
        let encoded = &mut self.bytes.0[start..];
        match &mut self.order {
            Order::AsTheyAre => {}
            Order::InTime(timeline) => {
                if let Outcome::Dropped(why) = timeline.finish(behind_blobs(encoded)) {
                    self.bytes.0.truncate(start);
                    self.events -= 1;
                    self.timed -= 1;
                    self.skip(why);
                }
            }
            Order::Sorted(sorter, _) => {
                sorter.push(at, encoded);
                self.bytes.0.truncate(start);
            }
        }
        self.relieve();
    }

    /// Whether an event, as it is written, has this name.
    pub fn has_name(&self, event: &[u8], name: &[u8]) -> bool {
        let reference =
            |at: usize| event.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        let inline = |reference: u16| (reference & INLINE != 0).then_some(usize::from(reference & !INLINE));
        let own = reference(6);
        match inline(own) {
            Some(length) => {
                let start = EVENT_BYTES + inline(reference(4)).unwrap_or(0).next_multiple_of(8);
                event.get(start..start + length) == Some(name)
            }
            None => self.strings.get(name).is_some_and(|index| index.get() == own),
        }
    }

    /// Writes a definition, in front of all that has a time and waits for its order.
    pub fn define(&mut self, record: &Record<'_>) {
        if record.encode(&mut self.bytes).is_err() {
            self.skip("definitions that are too large");
        }
        self.relieve();
    }

    /// Writes out waiting records, if there are many.
    pub fn flush_if_full(&mut self) -> io::Result<()> {
        if let Order::Sorted(sorter, _) = &mut self.order {
            sorter.check()?;
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        write_if_full(&mut self.output, &mut self.bytes)
    }

    /// Writes out the waiting records if there are too many; an error is reported later.
    fn relieve(&mut self) {
        if self.bytes.0.len() >= MAX_WAITING_BYTES {
            let written = self.output.write_all(&self.bytes.0);
            self.error = self.error.take().or(written.err());
            self.bytes.0.clear();
        }
    }

    /// Writes the rest. If records were skipped and none was written, the input is an error, which says what
    /// it was taken for.
    pub fn finish(self, taken_for: &'static str) -> Result<Summary, ImportError> {
        self.finish_settled(taken_for, &mut |_, _| Outcome::Kept)
    }

    /// The same, with what a function makes of events that wait for their thread.
    pub fn finish_settled(
        mut self,
        taken_for: &'static str,
        settle: Settle<'_, W>,
    ) -> Result<Summary, ImportError> {
        self.write_rest(settle).map_err(ImportError::Write)?;
        if self.timed == 0
            && let Some(error) = ImportError::nothing(taken_for, &self.skipped)
        {
            return Err(error);
        }
        Ok(Summary {
            events: self.events,
            skipped: self.skipped.into_iter().collect(),
            remarks: Vec::new(),
            malformed: self.malformed,
            warnings: self.warnings,
            first_warnings: self.first_warnings,
            unread: self.unread,
            first_unread: self.first_unread,
            is_cut_off: self.is_cut_off,
            stopped: None,
        })
    }

    fn write_rest(&mut self, settle: Settle<'_, W>) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if let Order::Sorted(sorter, mut timeline) = std::mem::replace(&mut self.order, Order::AsTheyAre) {
            let mut waiting = Vec::new();
            sorter.finish(|record| {
                let length = record.len();
                let event = behind_blobs(record);
                let blobs = length - event.len();
                let mut outcome = Outcome::Kept;
                waiting.clear();
                waiting.extend_from_slice(event);
                if is_waiting(event) {
                    outcome = settle(self, &mut waiting);
                }
                if let Outcome::Kept = outcome {
                    outcome = timeline.finish(&mut waiting);
                }
                match outcome {
                    Outcome::Kept => {
                        self.bytes.0.extend_from_slice(&record[..blobs]);
                        self.bytes.0.extend_from_slice(&waiting);
                        write_if_full(&mut self.output, &mut self.bytes)
                    }
                    Outcome::Dropped(why) => {
                        self.events -= 1;
                        self.timed -= 1;
                        *self.skipped.entry(why.to_owned()).or_default() += 1;
                        Ok(())
                    }
                }
            })?;
        }
        self.output.write_all(&self.bytes.0)?;
        self.output.flush()
    }
}

impl<W: Write> Records for Writer<W> {
    /// A reference to a string, which is in the table if it may come again. It may be longer than a record
    /// can have.
    fn string<'a>(&mut self, text: &'a [u8]) -> StringRef<'a> {
        if text.is_empty() {
            return StringRef::Empty;
        }
        if text.len() > MAX_INDEXED_BYTES {
            return StringRef::Inline(text);
        }
        let recent = (text.len() <= MAX_RECENT_BYTES).then(|| Recent::place_of(text));
        if let Some(place) = recent
            && let Some(recent) = &self.recent[place]
            && recent.text[..recent.length] == *text
        {
            return StringRef::Index(recent.index);
        }
        if let Some(index) = self.strings.get(text) {
            if let Some(place) = recent {
                self.recent[place] = Some(Recent::new(text, *index));
            }
            return StringRef::Index(*index);
        }
        let next = u16::try_from(self.strings.len() + 1).ok().and_then(StringIndex::new);
        let Some(index) = next else {
            return StringRef::Inline(text);
        };
        let record = StringRecord { index: index.get(), value: text };
        if record.encode(&mut self.bytes).is_err() {
            return StringRef::Inline(text);
        }
        self.strings.insert(text.into(), index);
        StringRef::Index(index)
    }

    fn is_in_order(&self) -> bool {
        !matches!(self.order, Order::Sorted(..))
    }

    /// Writes a record that has a time; false if it is larger than the format allows.
    fn at(&mut self, at: u64, record: &Record<'_>) -> bool {
        let start = self.bytes.0.len();
        if record.encode(&mut self.bytes).is_err() {
            self.bytes.0.truncate(start);
            return false;
        }
        self.place(at, start);
        true
    }

    /// Writes an event, or counts it if it is larger than the format allows.
    fn event(
        &mut self,
        at: u64,
        thread: Thread,
        category: &[u8],
        name: &[u8],
        kind: EventKind,
        arguments: &[Argument<'_>],
    ) {
        let (category, name) = (self.string(category), self.string(name));
        self.event_of(at, thread, (category, name), kind, arguments);
    }

    fn object(&mut self, object_type: u8, koid: Koid, name: &[u8], arguments: &[Argument<'_>]) {
        if name.len() > MAX_STRING_BYTES {
            self.skip(LONG_NAMES);
        }
        let name = if name.len() > MAX_INDEXED_BYTES { inline(name) } else { self.string(name) };
        let object = KernelObject { object_type, koid, name, arguments: Arguments::from_slice(arguments) };
        if object.encode(&mut self.bytes).is_err() {
            self.skip("names that cannot be expressed");
        }
        self.relieve();
    }

    fn leave_out(&mut self, what: &str) {
        self.skip(what);
    }

    fn warn(&mut self, what: String) {
        Self::warn(self, what);
    }
}

fn is_waiting(record: &[u8]) -> bool {
    is_event(record) && record[16..24] == WAITING.0.to_le_bytes()
}

fn write_if_full(output: &mut impl Write, bytes: &mut Bytes) -> io::Result<()> {
    if bytes.0.len() >= FLUSH_BYTES {
        output.write_all(&bytes.0)?;
        bytes.0.clear();
    }
    Ok(())
}

/// A reference with the koids themselves.
pub(super) fn thread_ref(thread: Thread) -> ThreadRef {
    ThreadRef::Inline { process: ProcessKoid(thread.process), thread: ThreadKoid(thread.thread) }
}
