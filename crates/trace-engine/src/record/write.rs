//! Writing an event: the hot path, and the slow path behind it.
//!
//! Invariant **H1**: between making its counter odd and making it even again, a thread that found its site on
//! writes only below `end` of its own slab. The dispatcher clears `end`, fences all threads and then waits
//! for even counters before it takes memory away, so an address below `end` is mapped and reserved. A thread
//! that finds no room of its own clears `end` and fences alike, and takes only from threads whose counters
//! are even.
#![allow(unsafe_code)]

use crate::buffer::durable::{DurableFull, Text, is_inline};
use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{Inline, Interned, Names, Values};
use crate::record::processor_time::{self, NamedTimes, ThreadTimes};
use crate::record::raw::{self, ThreadPlace};
use crate::session::context::Context;
use crate::session::engine::{self, Lease};
use crate::site::{FAST, ON, Site};
use crate::slab::allocator::Refusal;
use crate::sync::{Ordering, compiler_fence, fence};
use crate::sys;
use crate::thread::block::{self, Acquired, DEPTHS, OpenSlab, ThreadBlock};
use trace_format::buffer::MAX_BUFFERED_RECORD_BYTES;
use trace_format::event::{self, EventType};
use trace_format::record::MAX_RECORD_WORDS;
use trace_format::slab::LossReason;
use zx_sim::ticks::{self, Source};

/// What tells the koids of virtual threads from those of the kernel.
//= docs/format.md#koids
const VIRTUAL: u64 = 1 << 63;
/// The reference bits of category and name in an event's header, and in a site's word.
const REFERENCES: u64 = 0xffff_ffff_0000_0000;

/// The fixed part of an event, before anyone knows where it goes.
#[derive(Clone, Copy)]
pub struct Event {
    /// What happens.
    pub event_type: EventType,
    /// Start of a complete duration in ticks; its end is the time of writing.
    pub start: Option<u64>,
    /// The id or scope behind the arguments.
    pub extra: Option<u64>,
}

impl Event {
    /// Words of the record, without inline thread, strings and argument names.
    #[inline(always)]
    pub(crate) fn words(&self, values: &impl Values) -> usize {
        2 + values.words() + usize::from(self.start.is_some()) + usize::from(self.extra.is_some())
    }

    #[inline(always)]
    pub(crate) fn write_timestamp(&self, now: u64, record: &mut RecordWriter) {
        record.word(self.start.unwrap_or(now));
    }

    /// Stores the arguments with their names as they stand in the record, and what is behind them.
    pub(crate) fn write_tail_of(
        &self,
        site: &Site,
        strings: &Strings<'_>,
        now: u64,
        values: &impl Values,
        record: &mut RecordWriter,
    ) {
        strings.write_arguments(site, values, record);
        self.write_end(now, record);
    }

    #[inline(always)]
    fn write_tail(&self, now: u64, values: &impl Values, names: &impl Names, record: &mut RecordWriter) {
        values.write(0, names, record);
        self.write_end(now, record);
    }

    #[inline(always)]
    fn write_end(&self, now: u64, record: &mut RecordWriter) {
        if self.start.is_some() {
            record.word(now);
        }
        if let Some(extra) = self.extra {
            record.word(extra);
        }
    }
}

/// Records an event of a site that was found on. The values are evaluated already: nothing that the
/// application wrote runs in here.
//= docs/buffer.md#writing-an-event
#[inline(always)]
pub fn write_event<V: Values>(site: &Site, event: Event, values: &V) {
    write_event_at(site, event, values, None);
}

/// As [`write_event`], at a moment that the thread has taken with [`stamp`].
#[inline(always)]
pub fn write_event_at<V: Values>(site: &Site, event: Event, values: &V, at: Option<u64>) {
    let block = block::current();
    let counter = block.counter.load(Ordering::Relaxed);
    if counter & 1 == 0 {
        // Release: a dispatcher that waits for the event before may see this value instead of that event's
        // last one.
        block.counter.store(counter + 1, Ordering::Release);
        // The processor's half of this fence is the dispatcher's `membarrier`.
        compiler_fence(Ordering::SeqCst);
        let word = site.load();
        if word & FAST != 0 {
            let now = at.unwrap_or_else(|| block.stamp());
            let own = &block.slabs[0];
            let words = event.words(values);
            let cursor = own.cursor.load(Ordering::Relaxed);
            let next = cursor + words * 8;
            if next <= own.end.load(Ordering::Relaxed) {
                // SAFETY: the words up to `next` lie below `end` of this thread's slab (H1), and
                // `event.words` counts what is written below.
                let mut record = unsafe { RecordWriter::new(cursor, words) };
                event.write_timestamp(now, &mut record);
                event.write_tail(now, values, &Interned(site.arguments()), &mut record);
                own.events.store(own.events.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                record.commit(
                    event::header(event.event_type, words as u64, values.count() as u64, 0, 0, 0)
                        | block.thread_bits.load(Ordering::Relaxed)
                        | word & REFERENCES,
                );
                own.cursor.store(next, Ordering::Relaxed);
                // Release: the dispatcher that sees the even counter sees the record.
                block.counter.store(counter + 2, Ordering::Release);
                return;
            }
        }
        block.counter.store(counter + 2, Ordering::Release);
    }
    write_slowly(site, event, values, at);
}

/// A moment of this thread, later than all it has taken before.
#[doc(hidden)]
#[must_use]
pub fn stamp() -> u64 {
    block::current().stamp()
}

/// Everything that is not the common case: the first event of a site or a thread, the end of a slab, nested
/// events, inline strings and threads.
#[cold]
#[inline(never)]
fn write_slowly<V: Values>(site: &Site, event: Event, values: &V, at: Option<u64>) {
    let ended = processor_time::end(event.event_type);
    with_writer(site, at, |writer, now| {
        let strings = writer.strings(site);
        let times = writer.thread_times(&event, ended, values.count());
        let mut words = event.words(values) + strings.inline_words + writer.thread_words();
        let mut arguments = values.count();
        if let Some(times) = &times {
            words += times.words();
            arguments += times.count();
        }
        let header = strings.event_header(&event, words, arguments, writer.thread_ref());
        writer.put(words, MAX_RECORD_WORDS, now, header, |record| {
            event.write_timestamp(now, record);
            writer.write_thread(record);
            strings.write(record);
            strings.write_arguments(site, values, record);
            if let Some(times) = &times {
                times.write(record);
            }
            event.write_end(now, record);
        })
    });
}

/// Why a record was not written.
pub(crate) enum WriteError {
    /// It is lost, and counted here.
    Lost(LossReason),
    /// Recording has ended, and whoever found that has counted it.
    Ended,
}

/// Writes a record with the running trace, if the site is still on, and counts it if it is lost. A record
/// that comes after the stop is not lost: it was never part of the trace.
pub(crate) fn with_writer(
    site: &Site,
    at: Option<u64>,
    write: impl Fn(&EventWriter<'_>, u64) -> Result<(), WriteError>,
) {
    if !try_with_writer(site, at, &write) && engine::is_first_of_child() {
        try_with_writer(site, at, &write);
    }
}

/// As [`with_writer`]; false if no trace runs.
fn try_with_writer(
    site: &Site,
    at: Option<u64>,
    write: &impl Fn(&EventWriter<'_>, u64) -> Result<(), WriteError>,
) -> bool {
    let Some(acquired) = block::acquire() else {
        return true;
    };
    let (block, is_own) = match acquired {
        Acquired::Own(block) => (block, true),
        Acquired::Borrowed(block) => (block, false),
    };
    // Before anything is registered, which takes time.
    let now = at.unwrap_or_else(|| block.stamp());
    let lease = Lease::inside(block);
    let context = lease.context();
    if let Some(context) = context
        && site.load() & ON != 0
        && let Err(WriteError::Lost(reason)) =
            EventWriter::of(context, block, is_own).and_then(|writer| write(&writer, now))
    {
        context.count_loss(reason, now);
    }
    let has_trace = context.is_some();
    drop(lease);
    if !is_own {
        engine::leave_slabs(block);
        block::give_back(block);
    }
    has_trace
}

/// Marks the thread as inside an event, or one level deeper inside.
pub(crate) fn enter(block: &ThreadBlock) {
    let counter = block.counter.load(Ordering::Relaxed);
    if counter & 1 == 0 {
        // Release: as on the hot path.
        block.counter.store(counter + 1, Ordering::Release);
    } else {
        block.depth.store(block.depth.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    // One order with the dispatcher's switching off and its look at the counters.
    fence(Ordering::SeqCst);
}

/// The other end of [`enter`].
pub(crate) fn leave(block: &ThreadBlock) {
    let depth = block.depth.load(Ordering::Relaxed);
    if depth > 0 {
        block.depth.store(depth - 1, Ordering::Relaxed);
    } else {
        let counter = block.counter.load(Ordering::Relaxed);
        block.counter.store(counter + 1, Ordering::Release);
    }
}

/// Where a thread writes its next record.
pub(crate) struct EventWriter<'a> {
    context: &'a Context,
    block: &'a ThreadBlock,
    own: &'a OpenSlab,
    /// The thread's reference, where it stands in an event's header; 0 for an inline one.
    thread_bits: u64,
}

impl<'a> EventWriter<'a> {
    fn of(context: &'a Context, block: &'a ThreadBlock, is_own: bool) -> Result<Self, WriteError> {
        let nested = block.depth.load(Ordering::Relaxed) as usize;
        let generation = context.generation.load(Ordering::Relaxed);
        if block.generation.load(Ordering::Relaxed) != generation {
            if nested > 0 {
                // The interrupted event is about to do this.
                return Err(WriteError::Lost(LossReason::NestedTooDeep));
            }
            block.slabs.iter().for_each(OpenSlab::clear);
            block.thread_bits.store(0, Ordering::Relaxed);
            let koid = context.config.thread_koids.of(block.owner.load(Ordering::Relaxed));
            block.koid.store(koid, Ordering::Relaxed);
            block.generation.store(generation, Ordering::Relaxed);
            if is_own {
                context.register_thread(block);
            }
        }
        let thread_bits = block.thread_bits.load(Ordering::Relaxed);
        let depth = nested + usize::from(thread_bits == 0);
        let Some(own) = block.slabs.get(depth).filter(|_| depth < DEPTHS) else {
            return Err(WriteError::Lost(LossReason::NestedTooDeep));
        };
        Ok(Self { context, block, own, thread_bits })
    }

    /// How the site's strings stand in the record.
    pub(crate) fn strings<'s>(&self, site: &'s Site) -> Strings<'s> {
        Strings::of(self.context, site)
    }

    /// Names a virtual thread; its process and its koid.
    pub(crate) fn virtual_thread(&self, id: u64, name: &str) -> [u64; 2] {
        let koid = id | VIRTUAL;
        self.context.name_virtual_thread(koid, name);
        [self.context.config.process, koid]
    }

    /// The text's reference.
    pub(crate) fn intern<'t>(&self, text: &'t [u8]) -> Text<'t> {
        self.context.intern(text)
    }

    /// The thread's processor time at an event, if the recording asks for it.
    #[inline]
    fn thread_times(
        &self,
        event: &Event,
        ended: Option<u64>,
        arguments: usize,
    ) -> Option<NamedTimes<'static>> {
        if self.context.config.thread_time { self.find_thread_times(event, ended, arguments) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn find_thread_times(
        &self,
        event: &Event,
        ended: Option<u64>,
        arguments: usize,
    ) -> Option<NamedTimes<'static>> {
        let now = ended.unwrap_or_else(sys::thread_time);
        let times = ThreadTimes::of(&self.block.begins, event.event_type, event.start, now, arguments)?;
        Some(times.named(|text| self.context.intern(text)))
    }

    /// Writes a record that the events need, and that cannot stand in them.
    pub(crate) fn define(
        &self,
        words: usize,
        header: u64,
        write: impl FnOnce(&mut RecordWriter),
    ) -> Result<(), WriteError> {
        let written = self.context.write_durable(words, header, write);
        written.map(|_| ()).map_err(|DurableFull| WriteError::Lost(LossReason::DefinitionRefused))
    }

    /// How the thread stands in records.
    pub(crate) fn thread(&self) -> ThreadPlace {
        match self.thread_ref() {
            0 => raw::inline(self.context.config.process, self.block.koid.load(Ordering::Relaxed)),
            index => ThreadPlace::Index(index),
        }
    }

    /// The eight bits of the thread's reference.
    pub(crate) fn thread_ref(&self) -> u8 {
        (self.thread_bits >> 24) as u8
    }

    /// Words of the thread in the body of the record.
    pub(crate) fn thread_words(&self) -> usize {
        if self.thread_bits == 0 { 2 } else { 0 }
    }

    pub(crate) fn write_thread(&self, record: &mut RecordWriter) {
        if self.thread_bits == 0 {
            record.word(self.context.config.process);
            record.word(self.block.koid.load(Ordering::Relaxed));
        }
    }

    /// A record that cannot be written, because of the format or of this buffer.
    pub(crate) fn too_large(&self, bytes: u64, is_for_format: bool) -> WriteError {
        self.context.note_too_large(bytes, is_for_format);
        WriteError::Lost(LossReason::TooLarge)
    }

    /// Writes a record of so many words, all of which but the header `write` has to write.
    pub(crate) fn put(
        &self,
        words: usize,
        limit_words: usize,
        now: u64,
        header: u64,
        write: impl FnOnce(&mut RecordWriter),
    ) -> Result<(), WriteError> {
        let Self { context, block, own, .. } = *self;
        let bytes = words as u64 * 8;
        let is_for_format = words > limit_words || bytes > MAX_BUFFERED_RECORD_BYTES;
        if is_for_format || bytes > context.layout.max_record_bytes() {
            return Err(self.too_large(bytes, is_for_format));
        }
        let lost = |reason| {
            context.add_short_record(reason, bytes);
            WriteError::Lost(reason)
        };
        let refused = |refusal| match refusal {
            Refusal::Full | Refusal::AllClaimed => {
                context.add_short_record(LossReason::Full, bytes);
                context.refuse();
                WriteError::Ended
            }
            Refusal::AllInUse => {
                // Slabs of its own would have been enough.
                let slab = context.layout.slab_bytes;
                context.add_short(LossReason::Full, bytes.next_multiple_of(slab) + slab);
                WriteError::Lost(LossReason::Full)
            }
            Refusal::NotSaved => lost(LossReason::NotSaved),
            Refusal::NotRetired => lost(LossReason::NotRetired),
            Refusal::Stopped => WriteError::Ended,
        };
        if bytes > context.layout.slab_bytes {
            let slab = context.claim_run(bytes, now).map_err(refused)?;
            let mut record = context.region.record(context.layout.slab(slab), words);
            write(&mut record);
            record.commit(header);
            context.close_run(slab, now);
            // What comes after it is behind it in the order of the slabs, too.
            context.close_slab(block, own);
            return Ok(());
        }
        if own.cursor.load(Ordering::Relaxed) + words * 8 > own.end.load(Ordering::Relaxed) {
            context.claim_slab(block, own, bytes, now).map_err(refused)?;
        }
        let cursor = own.cursor.load(Ordering::Relaxed);
        // SAFETY: below `end` of this thread's slab (H1).
        let mut record = unsafe { RecordWriter::new(cursor, words) };
        write(&mut record);
        own.events.store(own.events.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        record.commit(header);
        own.cursor.store(cursor + words * 8, Ordering::Relaxed);
        Ok(())
    }
}

/// How the strings of a site stand in a record.
pub(crate) struct Strings<'a> {
    pub category: Text<'a>,
    pub name: Text<'a>,
    pub arguments_inline: bool,
    /// Words of all that are inline.
    pub inline_words: usize,
}

impl<'a> Strings<'a> {
    /// The header of an event of so many words and arguments.
    pub(crate) fn event_header(&self, event: &Event, words: usize, arguments: usize, thread: u8) -> u64 {
        let (category, name) = (self.category.reference(), self.name.reference());
        event::header(event.event_type, words as u64, arguments as u64, thread, category, name)
    }

    /// Category and name, as far as they are inline.
    pub(crate) fn write(&self, record: &mut RecordWriter) {
        self.category.write(record);
        self.name.write(record);
    }

    /// The arguments, with their names as they stand in the record.
    fn write_arguments(&self, site: &Site, values: &impl Values, record: &mut RecordWriter) {
        if self.arguments_inline {
            values.write(0, &Inline(site.arguments()), record);
        } else {
            values.write(0, &Interned(site.arguments()), record);
        }
    }

    /// Gives the site's strings indices where that is possible, and publishes them if it is for all. Where it
    /// never will be for all, the references are kept with the site, so that its next event neither tries the
    /// lock of the table nor looks anything up.
    //= docs/buffer.md#a-full-durable-region
    fn of(context: &Context, site: &'a Site) -> Self {
        if let Some((category, name)) = site.published() {
            let (category, name) = (Text::Index(category), Text::Index(name));
            return Self { category, name, arguments_inline: false, inline_words: 0 };
        }
        if let Some((category, name)) = site.settled() {
            let category = Text::of_reference(category, site.category());
            let name = Text::of_reference(name, site.name());
            let arguments_inline = site.arguments().iter().any(|argument| is_inline(argument.reference()));
            return Self::new(site, category, name, arguments_inline);
        }
        let (known_category, known_name) =
            (context.try_intern(site.category()), context.try_intern(site.name()));
        // Whether all that was found out about the strings holds as long as the site is on.
        let mut is_settled = known_category.is_some() && known_name.is_some();
        let mut arguments_inline = false;
        for argument in site.arguments() {
            let text = context.try_intern(argument.text());
            arguments_inline |= !matches!(text, Some(Text::Index(_)));
            // Only what holds: another thread may be using it already.
            match text {
                Some(text) => argument.set_reference(text.reference()),
                None => is_settled = false,
            }
        }
        let category = known_category.unwrap_or(Text::Inline(site.category()));
        let name = known_name.unwrap_or(Text::Inline(site.name()));
        if let (Text::Index(category), Text::Index(name), false) = (category, name, arguments_inline) {
            if !context.config.thread_time
                && engine::has_membarrier()
                // Programs in other languages know no other clock, and find their blocks in one way.
                && (!site.is_dynamic() || block::has_mirror() && ticks::source() != Source::Monotonic)
            {
                site.publish(category, name);
            }
        } else if is_settled {
            site.settle(category.reference(), name.reference());
        }
        Self::new(site, category, name, arguments_inline)
    }

    fn new(site: &Site, category: Text<'a>, name: Text<'a>, arguments_inline: bool) -> Self {
        let argument_words: usize =
            site.arguments().iter().map(|argument| argument.text().len().div_ceil(8)).sum();
        let inline_words =
            category.words() + name.words() + if arguments_inline { argument_words } else { 0 };
        Self { category, name, arguments_inline, inline_words }
    }
}
