//! Shows events to the program's [hook](crate::session::hook) before they are written.

use crate::buffer::Buffer;
use crate::buffer::record_writer::with_payload;
use crate::record::arguments::{Inline, Values};
use crate::record::event::Event;
use crate::record::redacting::bytes_of;
use crate::session::lease::{self, Lease};
use crate::session::{fork, hook};
use crate::site::{ON, Site};
use crate::sys;
use crate::thread::registry;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{self, EventKind, EventType};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::units::{Koid, ProcessKoid, StringIndex, ThreadIndex, ThreadKoid, Ticks};

/// The thread of an event.
#[derive(Clone, Copy)]
pub(super) enum Whose {
    /// The one that records it.
    Own,
    /// Another of this process, by its id.
    Other(u32),
    /// A virtual one, by its koid.
    Virtual(u64),
}

/// Whether an event is to be recorded, as far as the hook is concerned. It has a time from now on.
#[cold]
#[inline(never)]
pub(super) fn passes<V: Values>(
    site: &Site,
    event: &Event,
    values: &V,
    whose: Whose,
    at: &mut Option<u64>,
) -> bool {
    let Some(thread) = thread_of(site, whose) else {
        // No recording wants it.
        return false;
    };
    // Behind that: the first event of a forked child begins its recording.
    let run = lease::run_number();
    let now = *at.get_or_insert_with(|| registry::current().stamp());
    let names = site.arguments();
    let words = values.words() + values.name_words(names);
    let is_kept = with_payload(
        words,
        |record| values.write(0, &Inline(names), record),
        |bytes| {
            let word = if event.event_type == EventType::DurationComplete { Some(now) } else { event.extra };
            show(&event::Event {
                timestamp: Ticks(event.start.unwrap_or(now)),
                thread,
                category: text(site.category()),
                name: text(site.name()),
                kind: EventKind::new(event.event_type, word),
                arguments: Arguments::of_bytes(bytes, values.count()).unwrap_or_default(),
            })
        },
    );
    // The hook may have taken longer than the recording: the event is none of the next one.
    is_kept && lease::run_number() == run
}

/// As [`passes`], for a record that the caller has assembled. What is no event is.
#[cold]
#[inline(never)]
pub(super) fn passes_record(words: &[u64]) -> bool {
    let bytes = bytes_of(words);
    let Some(Ok(event)) = event::Event::of_record(&bytes) else {
        return true;
    };
    // What the record refers to is in one buffer.
    let place = || {
        let generation = Lease::of_thread().context().map(|context| context.buffer().generation());
        (generation, lease::run_number())
    };
    let before = place();
    before.0.is_none() || show(&event) && place() == before
}

/// An event's process and thread; none where it is not recorded.
fn thread_of(site: &Site, whose: Whose) -> Option<ThreadRef> {
    let look = || {
        let lease = Lease::of_thread();
        let context = lease.context()?;
        let config = context.config();
        let block = registry::current();
        let thread = match whose {
            // Finding it out takes time.
            Whose::Own if block.generation() == context.buffer().generation() => block.koid(),
            Whose::Own => config.thread_koids.of(sys::thread_id()),
            Whose::Other(thread) => config.thread_koids.of(thread),
            Whose::Virtual(koid) => koid,
        };
        Some((config.process, thread))
    };
    if fork::is_joining() && !fork::wait_for_first(site) {
        return None;
    }
    let (process, thread) = look().or_else(|| fork::is_first_of_child(site).then(look).flatten())?;
    let (process, thread) = (ProcessKoid(Koid(process)), ThreadKoid(Koid(thread)));
    (site.load() & ON != 0).then_some(ThreadRef::Inline { process, thread })
}

fn text(text: &[u8]) -> StringRef<'_> {
    if text.is_empty() { StringRef::Empty } else { StringRef::Inline(text) }
}

/// Calls the hook with an event, after what stands in it by index was looked up.
fn show(event: &event::Event<'_>) -> bool {
    let Some(known) = Definitions::of(event) else {
        return hook::call(event);
    };
    const NONE: Argument<'_> = Argument { name: StringRef::Empty, value: ArgumentValue::Null };
    let mut arguments = [NONE; trace_format::argument::MAX_ARGUMENTS];
    let mut count = 0;
    for (complete, argument) in arguments.iter_mut().zip(event.arguments.iter().map_while(Result::ok)) {
        let value = match argument.value {
            ArgumentValue::String(text) => ArgumentValue::String(known.text(text)),
            value => value,
        };
        *complete = Argument { name: known.text(argument.name), value };
        count += 1;
    }
    hook::call(&event::Event {
        thread: known.thread(event.thread),
        category: known.text(event.category),
        name: known.text(event.name),
        arguments: Arguments::from_slice(&arguments[..count]),
        ..*event
    })
}

/// What the indices in an event stand for in the buffer.
#[derive(Default)]
struct Definitions {
    texts: Vec<(StringIndex, Box<[u8]>)>,
    thread: Option<ThreadRef>,
}

impl Definitions {
    /// None if it has no indices, or there is no trace any more.
    fn of(event: &event::Event<'_>) -> Option<Self> {
        let mut wanted = Vec::new();
        let mut want = |text: StringRef<'_>| {
            if let StringRef::Index(index) = text {
                wanted.push(index);
            }
        };
        want(event.category);
        want(event.name);
        for argument in event.arguments.iter().map_while(Result::ok) {
            want(argument.name);
            if let ArgumentValue::String(text) = argument.value {
                want(text);
            }
        }
        if wanted.is_empty() && !matches!(event.thread, ThreadRef::Index(_)) {
            return None;
        }
        let lease = Lease::of_thread();
        Some(Self::find(lease.context()?.buffer(), &wanted, event.thread))
    }

    fn find(buffer: &Buffer, wanted: &[StringIndex], wanted_thread: ThreadRef) -> Self {
        let mut known = Self::default();
        buffer.for_each_definition(|record| match *record {
            Record::String(string) => {
                if let Some(index) = StringIndex::new(string.index).filter(|index| wanted.contains(index)) {
                    known.texts.push((index, string.value.into()));
                }
            }
            Record::Thread(thread) => {
                let is_wanted = |index: &ThreadIndex| wanted_thread == ThreadRef::Index(*index);
                if ThreadIndex::new(thread.index).filter(is_wanted).is_some() {
                    let inline = ThreadRef::Inline { process: thread.process, thread: thread.thread };
                    known.thread = Some(inline);
                }
            }
            _ => {}
        });
        known
    }

    fn text<'t>(&'t self, reference: StringRef<'t>) -> StringRef<'t> {
        let StringRef::Index(wanted) = reference else {
            return reference;
        };
        // The last definition of an index holds.
        let found = self.texts.iter().rev().find(|(index, _)| *index == wanted);
        found.map_or(StringRef::Empty, |(_, found)| text(found))
    }

    fn thread(&self, reference: ThreadRef) -> ThreadRef {
        match (reference, self.thread) {
            (ThreadRef::Index(_), Some(inline)) => inline,
            _ => reference,
        }
    }
}
