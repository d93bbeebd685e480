//! The writer of the slow path: finds room for a record of any kind, and writes it.
#![allow(unsafe_code)]

use crate::buffer::definitions::Text;
use crate::buffer::durable::DurableFull;
use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::Values;
use crate::record::event::Event;
use crate::record::privacy::REDACTED;
use crate::record::processor_time::{NamedTimes, ThreadTimes};
use crate::record::site_strings::SiteStrings;
use crate::session::context::Context;
use crate::site::{ON, Site};
use crate::slab::allocator::Refusal;
use crate::sys;
use crate::thread::block::ThreadBlock;
use crate::thread::open_slab::OpenSlab;
use trace_format::buffer::{BufferMode, MAX_BUFFERED_RECORD_BYTES};
use trace_format::record::MAX_RECORD_WORDS;
use trace_format::slab::LossReason;

/// The bit that distinguishes the koids of virtual threads from those of the kernel.
//= docs/format.md#koids
pub(super) const VIRTUAL: u64 = 1 << 63;

/// Why a record was not written.
pub(crate) enum WriteError {
    /// It is lost, and counted.
    Lost(LossReason),
    /// Recording has ended; if the record is lost, it is counted already.
    Ended,
}

/// Writes a record of a thread that counts as inside an event, and counts it if it is lost. None if the site
/// is off: a record that comes after the stop is not lost, as it was never part of the trace.
#[inline]
pub(crate) fn write_inside<R>(
    context: &Context,
    block: &ThreadBlock,
    is_own: bool,
    site: &Site,
    now: u64,
    write: impl FnOnce(&EventWriter<'_>) -> Result<R, WriteError>,
) -> Option<Result<R, WriteError>> {
    if site.load() & ON == 0 {
        return None;
    }
    let result = EventWriter::of(context, block, is_own).and_then(|writer| write(&writer));
    if let Err(WriteError::Lost(reason)) = &result {
        context.slabs().count_loss(*reason, now);
    }
    Some(result)
}

/// The name of a virtual thread.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct VirtualName<'a> {
    /// The name.
    pub text: &'a str,
    /// Whether it is a constant of the program.
    pub is_literal: bool,
}

/// Writes the next record of a thread.
pub(crate) struct EventWriter<'a> {
    context: &'a Context,
    block: &'a ThreadBlock,
    own: &'a OpenSlab,
    /// The thread's reference, where it stands in an event's header; 0 for an inline one.
    thread_bits: u64,
}

/// Has a thread that counts as inside an event write with the trace's definitions.
pub(crate) fn join(context: &Context, block: &ThreadBlock, is_own: bool) -> Result<(), WriteError> {
    let generation = context.buffer().generation();
    if block.generation() != generation {
        if block.nested() > 0 {
            // The interrupted event is about to do this.
            return Err(WriteError::Lost(LossReason::NestedTooDeep));
        }
        let koid = context.config().thread_koids.of(block.owner());
        block.join(generation, koid);
        if is_own {
            let index = context.definitions().register_thread(context.buffer(), koid);
            index.into_iter().for_each(|index| block.set_thread_index(index));
        }
    }
    Ok(())
}

impl<'a> EventWriter<'a> {
    #[inline]
    fn of(context: &'a Context, block: &'a ThreadBlock, is_own: bool) -> Result<Self, WriteError> {
        join(context, block, is_own)?;
        let thread_bits = block.thread_bits();
        let own = block.present_slab().ok_or(WriteError::Lost(LossReason::NestedTooDeep))?;
        Ok(Self { context, block, own, thread_bits })
    }

    /// Whether the buffer is one of a stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.context.buffer().layout().mode == BufferMode::Streaming
    }

    /// How the site's strings stand in the record.
    pub(crate) fn strings<'s>(&self, site: &'s Site) -> SiteStrings<'s> {
        SiteStrings::of(self.context, site)
    }

    /// Whether texts of the program's run are replaced.
    pub(crate) fn is_private(&self) -> bool {
        self.context.config().privacy
    }

    /// A text of the program's run, or what stands in its place.
    pub(crate) fn text_of_run<'t>(&self, text: &'t str) -> &'t str {
        if self.is_private() { REDACTED } else { text }
    }

    /// Names a virtual thread; its process and its koid.
    pub(crate) fn virtual_thread(&self, id: u64, name: VirtualName<'_>) -> [u64; 2] {
        let koid = id | VIRTUAL;
        let name = if name.is_literal { name.text } else { self.text_of_run(name.text) };
        self.context.definitions().name_virtual_thread(self.context.buffer(), koid, name);
        [self.context.config().process, koid]
    }

    /// Process and koid of a thread of this process.
    pub(crate) fn koids_of(&self, thread: u32) -> [u64; 2] {
        let config = self.context.config();
        [config.process, config.thread_koids.of(thread)]
    }

    /// The text's reference.
    pub(crate) fn intern<'t>(&self, text: &'t [u8]) -> Text<'t> {
        self.context.definitions().intern(self.context.buffer(), text)
    }

    /// The thread's processor time at an event, if the recording asks for it.
    #[inline]
    fn thread_times(
        &self,
        event: &Event,
        ended: Option<u64>,
        arguments: usize,
    ) -> Option<NamedTimes<'static>> {
        if self.context.config().thread_time { self.find_thread_times(event, ended, arguments) } else { None }
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
        let times = ThreadTimes::of(self.block.begins(), event.event_type, event.start, now, arguments)?;
        Some(times.named(|text| self.intern(text)))
    }

    /// Writes a record that the events need, and that cannot stand in them.
    pub(crate) fn define(
        &self,
        words: usize,
        header: u64,
        write: impl FnOnce(&mut RecordWriter),
    ) -> Result<(), WriteError> {
        let written = self.context.buffer().write_durable(words, header, write);
        written.map(|_| ()).map_err(|DurableFull| WriteError::Lost(LossReason::DefinitionRefused))
    }

    /// The thread's index, or process and thread where it has none.
    pub(crate) fn thread_index(&self) -> Result<u8, [u64; 2]> {
        match self.thread_ref() {
            0 => Err([self.context.config().process, self.block.koid()]),
            index => Ok(index),
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
            record.word(self.context.config().process);
            record.word(self.block.koid());
        }
    }

    /// A record that cannot be written, because of the format or of this buffer.
    pub(crate) fn too_large(&self, bytes: u64, is_for_format: bool) -> WriteError {
        self.context.buffer().note_too_large(bytes, is_for_format);
        WriteError::Lost(LossReason::TooLarge)
    }

    /// Writes an event. `ended` is the thread's processor time, if that was read already.
    #[inline]
    pub(crate) fn write_event<V: Values>(
        &self,
        site: &Site,
        event: &Event,
        values: &V,
        now: u64,
        ended: Option<u64>,
    ) -> Result<(), WriteError> {
        let strings = self.strings(site);
        let times = self.thread_times(event, ended, values.count());
        let mut words =
            event.fixed_words() + strings.inline_words + strings.argument_words(values) + self.thread_words();
        let mut arguments = values.count();
        if let Some(times) = &times {
            words += times.words();
            arguments += times.count();
        }
        let header = strings.event_header(event, words, arguments, self.thread_ref());
        self.put(words, MAX_RECORD_WORDS, now, header, |record| {
            event.write_timestamp(now, record);
            self.write_thread(record);
            strings.write(record);
            strings.write_arguments(values, record);
            if let Some(times) = &times {
                times.write(record);
            }
            event.write_end(now, record);
        })
    }

    /// Writes a record of so many words, all of which but the header `write` has to write.
    #[inline(always)]
    pub(crate) fn put(
        &self,
        words: usize,
        limit_words: usize,
        now: u64,
        header: u64,
        write: impl FnOnce(&mut RecordWriter),
    ) -> Result<(), WriteError> {
        let Self { context, block, own, .. } = *self;
        let (slabs, buffer) = (context.slabs(), context.buffer());
        let bytes = words as u64 * 8;
        let is_for_format = words > limit_words || bytes > MAX_BUFFERED_RECORD_BYTES;
        if is_for_format || bytes > buffer.layout().max_record_bytes() {
            return Err(self.too_large(bytes, is_for_format));
        }
        let lost = |reason| {
            buffer.add_short_record(reason, bytes);
            WriteError::Lost(reason)
        };
        let refused = |refusal| match refusal {
            Refusal::Full | Refusal::AllClaimed => {
                // A larger buffer is no help where there is no memory.
                if !slabs.is_short() {
                    buffer.add_short_record(LossReason::Full, bytes);
                }
                slabs.refuse();
                WriteError::Ended
            }
            Refusal::AllInUse => {
                // Slabs of its own would have been enough.
                let slab = buffer.layout().slab_bytes;
                buffer.add_short(LossReason::Full, bytes.next_multiple_of(slab) + slab);
                WriteError::Lost(LossReason::Full)
            }
            Refusal::NotSaved => lost(LossReason::NotSaved),
            Refusal::NotRetired => lost(LossReason::NotRetired),
            Refusal::NotBacked => WriteError::Lost(LossReason::NotBacked),
            Refusal::Left => WriteError::Lost(LossReason::NotRetired),
            Refusal::Stopped => WriteError::Ended,
        };
        if bytes > buffer.layout().slab_bytes {
            let slab = slabs.claim_run(bytes, now).map_err(refused)?;
            let mut record = buffer.record_in_run(slab, words);
            write(&mut record);
            record.commit(header);
            slabs.close_run(slab, now);
            // What comes after it is behind it in the order of the slabs, too.
            slabs.close_slab(block, own);
            return Ok(());
        }
        if own.cursor() + words * 8 > own.end() {
            slabs.claim_slab(block, own, bytes, now).map_err(refused)?;
        }
        let cursor = own.cursor();
        // SAFETY: below `end` of this thread's slab (H1).
        let mut record = unsafe { RecordWriter::new(cursor, words) };
        write(&mut record);
        own.count_event();
        record.commit(header);
        own.advance(cursor + words * 8);
        Ok(())
    }
}
