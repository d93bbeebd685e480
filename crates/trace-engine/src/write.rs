//! Writing an event: the hot path, and the slow path behind it.
//!
//! Invariant **H1**: between making its counter odd and making it even again, a thread that found its site
//! on writes only below `end` of its own slab. The dispatcher clears `end`, fences all threads and then waits for
//! even counters before it takes memory away, so an address below `end` is mapped and reserved.
#![allow(unsafe_code)]

use crate::args::{Inline, Interned, Names, Values};
use crate::block::{self, Acquired, DEPTHS, OwnSlab, ThreadBlock};
use crate::claim::Refusal;
use crate::context::Context;
use crate::durable::{DurableFull, Text};
use crate::engine;
use crate::record_writer::RecordWriter;
use crate::site::{FAST, ON, Site};
use crate::sync::{Ordering, compiler_fence, fence};
use trace_format::event::{self, EventType};
use trace_format::record::MAX_RECORD_WORDS;
use trace_format::slab::LossReason;

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
    fn words(&self, values: &impl Values) -> usize {
        2 + values.words() + usize::from(self.start.is_some()) + usize::from(self.extra.is_some())
    }

    #[inline(always)]
    fn write_timestamp(&self, now: u64, record: &mut RecordWriter) {
        record.word(self.start.unwrap_or(now));
    }

    #[inline(always)]
    fn write_tail(&self, now: u64, values: &impl Values, names: &impl Names, record: &mut RecordWriter) {
        values.write(0, names, record);
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
pub fn write_event<V: Values>(site: &'static Site, event: Event, values: &V) {
    let block = block::current();
    let counter = block.counter.load(Ordering::Relaxed);
    if counter & 1 == 0 {
        block.counter.store(counter + 1, Ordering::Relaxed);
        // The processor's half of this fence is the dispatcher's `membarrier`.
        compiler_fence(Ordering::SeqCst);
        let word = site.load();
        if word & FAST != 0 {
            let now = block.stamp();
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
                    event::header(event.event_type, words as u64, V::COUNT as u64, 0, 0, 0)
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
    write_slowly(site, event, values);
}

/// Everything that is not the common case: the first event of a site or a thread, the end of a slab, nested
/// events, inline strings and threads.
#[cold]
#[inline(never)]
fn write_slowly<V: Values>(site: &'static Site, event: Event, values: &V) {
    let Some(acquired) = block::acquire() else {
        return;
    };
    let (block, is_own) = match acquired {
        Acquired::Own(block) => (block, true),
        Acquired::Borrowed(block) => (block, false),
    };
    // Before anything is registered, which takes time.
    let now = block.stamp();
    enter(block);
    // Not before the thread is inside: the context lives until it is out again.
    if let Some(context) = engine::context()
        && site.load() & ON != 0
        && let Err(reason) = write_with(context, block, is_own, site, event, values, now)
    {
        context.count_loss(reason, now);
    }
    leave(block);
    if !is_own {
        engine::leave_slabs(block);
        block::give_back(block);
    }
}

/// Marks the thread as inside an event, or one level deeper inside.
pub(crate) fn enter(block: &ThreadBlock) {
    let counter = block.counter.load(Ordering::Relaxed);
    if counter & 1 == 0 {
        block.counter.store(counter + 1, Ordering::Relaxed);
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

/// Writes the event with the context, or says why it is lost. An event that comes after the stop is not
/// lost: it was never part of the trace.
fn write_with<V: Values>(
    context: &Context,
    block: &ThreadBlock,
    is_own: bool,
    site: &'static Site,
    event: Event,
    values: &V,
    now: u64,
) -> Result<(), LossReason> {
    let nested = block.depth.load(Ordering::Relaxed) as usize;
    let ended = |DurableFull| {
        context.refuse(LossReason::DurableFull);
    };
    if block.generation.load(Ordering::Relaxed) != context.generation {
        if nested > 0 {
            // The interrupted event is about to do this.
            return Err(LossReason::NestedTooDeep);
        }
        block.slabs.iter().for_each(OwnSlab::clear);
        block.thread_bits.store(0, Ordering::Relaxed);
        block.generation.store(context.generation, Ordering::Relaxed);
        if is_own && let Err(full) = context.register_thread(block) {
            ended(full);
            return Ok(());
        }
    }
    let thread_bits = block.thread_bits.load(Ordering::Relaxed);
    let has_index = thread_bits != 0;
    let depth = nested + usize::from(!has_index);
    let Some(own) = block.slabs.get(depth).filter(|_| depth < DEPTHS) else {
        return Err(LossReason::NestedTooDeep);
    };
    let strings = match Strings::of(context, site) {
        Ok(strings) => strings,
        Err(full) => {
            ended(full);
            return Ok(());
        }
    };
    let words = event.words(values) + strings.inline_words + if has_index { 0 } else { 2 };
    if words > MAX_RECORD_WORDS || words as u64 * 8 > context.layout.max_record_bytes() {
        return Err(LossReason::TooLarge);
    }
    let write = |record: &mut RecordWriter| {
        event.write_timestamp(now, record);
        if !has_index {
            record.word(context.config.process);
            record.word(u64::from(block.owner.load(Ordering::Relaxed)));
        }
        for text in [strings.category, strings.name] {
            if let Text::Inline(text) = text {
                record.bytes(text.as_bytes());
            }
        }
        if strings.arguments_inline {
            event.write_tail(now, values, &Inline(site.arguments()), record);
        } else {
            event.write_tail(now, values, &Interned(site.arguments()), record);
        }
    };
    let header = event::header(
        event.event_type,
        words as u64,
        V::COUNT as u64,
        0,
        strings.category.reference(),
        strings.name.reference(),
    ) | thread_bits;
    let bytes = words as u64 * 8;
    if bytes > context.layout.slab_bytes {
        match context.claim_run(bytes) {
            Ok(slab) => {
                let mut record = context.region.record(context.layout.slab(slab), words);
                write(&mut record);
                record.commit(header);
                context.close_run(slab, bytes, now);
                // What comes after it is behind it in the order of the slabs, too.
                context.leave_slab(block, own);
            }
            Err(Refusal::Full) => context.refuse(LossReason::Full),
            Err(Refusal::Stopped) => {}
        }
        return Ok(());
    }
    let has_room = own.cursor.load(Ordering::Relaxed) + words * 8 <= own.end.load(Ordering::Relaxed);
    if !has_room {
        match context.claim_slab(block, own, bytes, now) {
            Ok(()) => {}
            Err(Refusal::Full) => {
                context.refuse(LossReason::Full);
                return Ok(());
            }
            Err(Refusal::Stopped) => return Ok(()),
        }
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

/// How the strings of a site stand in a record.
struct Strings {
    category: Text,
    name: Text,
    arguments_inline: bool,
    inline_words: usize,
}

impl Strings {
    /// Gives the site's strings indices where that is possible, and publishes them if it is for all.
    fn of(context: &Context, site: &'static Site) -> Result<Self, DurableFull> {
        let category = context.intern(site.category())?;
        let name = context.intern(site.name())?;
        let mut arguments_inline = false;
        for argument in site.arguments() {
            match context.intern(argument.text())? {
                Text::Index(index) => argument.set_reference(index),
                Text::Inline(_) => arguments_inline = true,
            }
        }
        if let (Text::Index(category), Text::Index(name), false) = (category, name, arguments_inline)
            && engine::has_membarrier()
        {
            site.publish(category, name);
        }
        let argument_words: usize =
            site.arguments().iter().map(|argument| argument.text().len().div_ceil(8)).sum();
        let inline_words =
            category.words() + name.words() + if arguments_inline { argument_words } else { 0 };
        Ok(Self { category, name, arguments_inline, inline_words })
    }
}
