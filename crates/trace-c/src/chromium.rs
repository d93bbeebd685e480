//! What the macros with Chromium's names need beside those of events: strings that do not stay, moments that
//! the program gives, and other threads.
#![allow(unsafe_code)]

use crate::abi::{ArgValue, ArrayPtr};
use crate::events::{Call, Described, RawEvent, with_values};
use crate::{records, zircon};
use parking_lot::Mutex;
use trace_engine::ffi::{self, MAX_ARGUMENTS};
use trace_engine::{Scope, engine};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, EventType};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::units::{Koid, ProcessKoid, StringIndex, ThreadKoid, Ticks};

/// Writes an event whose strings are the caller's only during the call, on the thread of a koid; 0 is the
/// calling one.
pub extern "C" fn trace_internal_write_copied_event(
    call: Option<&Call<'_>>,
    event: Option<&RawEvent>,
    thread: u64,
    values: ArrayPtr<'_, ArgValue<'_>>,
    count: usize,
) {
    let (Some(call), Some(event)) = (call, event) else {
        return;
    };
    // SAFETY: the macro passes as many names, in the call, and values as `count` says (C1).
    let (described, values) = unsafe { (Described::new(call, count), values.take(count)) };
    let (Some((event, at)), true) = (event.get(), ffi::is_category_wanted(described.text.category)) else {
        return;
    };
    with_values(values, count, |values| {
        if thread == 0 || thread == zircon::thread_koid() {
            ffi::with_unlisted(described.text, described.names(), |site| {
                trace_engine::write_event_at(site, event, &values, at);
            });
        } else {
            let at = Ticks(at.unwrap_or_else(|| trace_engine::now().0));
            write_elsewhere(&described, event, at, thread, values.values);
        }
    });
    trace_engine::ffi::update_mirror();
}

/// Writes the event as a record of its own, with the thread's ids in it.
fn write_elsewhere(
    described: &Described<'_>,
    event: trace_engine::Event,
    timestamp: Ticks,
    thread: u64,
    values: &[ArgumentValue<'_>],
) {
    let Some(kind) = kind(event) else {
        return;
    };
    let mut arguments = [Argument { name: StringRef::Empty, value: ArgumentValue::Null }; MAX_ARGUMENTS];
    for (argument, (name, value)) in arguments.iter_mut().zip(described.names().iter().zip(values)) {
        *argument = Argument { name: reference(name), value: *value };
    }
    records::write(&Record::Event(Event {
        timestamp,
        thread: ThreadRef::Inline {
            process: ProcessKoid(Koid(u64::from(std::process::id()))),
            thread: ThreadKoid(Koid(thread)),
        },
        category: reference(described.text.category),
        name: reference(described.text.name),
        kind,
        arguments: Arguments::from_slice(&arguments[..values.len().min(described.names().len())]),
    }));
}

fn reference(text: &[u8]) -> StringRef<'_> {
    match ffi::string_index(text) {
        Some(0) => StringRef::Empty,
        Some(index) => StringIndex::new(index).map_or(StringRef::Empty, StringRef::Index),
        None => StringRef::Inline(text),
    }
}

/// The kind of an event that may be on another thread; none for durations, which may not.
fn kind(event: trace_engine::Event) -> Option<EventKind> {
    let id = event.extra.unwrap_or_default();
    Some(match event.event_type {
        EventType::Instant => EventKind::Instant { scope: Scope::from_raw(id) },
        EventType::AsyncBegin => EventKind::AsyncBegin { id },
        EventType::AsyncInstant => EventKind::AsyncInstant { id },
        EventType::AsyncEnd => EventKind::AsyncEnd { id },
        _ => return None,
    })
}

/// A moment on both clocks.
#[derive(Clone, Copy)]
struct Pair {
    monotonic_ns: i64,
    ticks: u64,
}

impl Pair {
    /// Takes three pairs and returns the one that took the least time to read.
    fn now() -> Self {
        let sample = || {
            let before = zircon::monotonic_nanos();
            let ticks = zx_sim::ticks::now();
            let length = zircon::monotonic_nanos() - before;
            (length, Self { monotonic_ns: before + length / 2, ticks })
        };
        let (first, second, third) = (sample(), sample(), sample());
        [second, third].into_iter().fold(first, |best, next| if next.0 < best.0 { next } else { best }).1
    }
}

/// How long a pair is used: `CLOCK_MONOTONIC` follows the time of the network, and ticks do not.
const PAIR_NS: i64 = 1_000_000_000;

/// A moment of `CLOCK_MONOTONIC` in ticks. Moments that were taken at one time are in their order.
pub extern "C" fn trace_internal_ticks_at(monotonic_ns: i64) -> u64 {
    static PAIR: Mutex<Option<Pair>> = Mutex::new(None);
    if zx_sim::ticks::source() == zx_sim::ticks::Source::Monotonic {
        return u64::try_from(monotonic_ns).unwrap_or_default();
    }
    // In a signal handler that has interrupted this function, or a forked child, the lock may be held.
    let pair = match PAIR.try_lock() {
        Some(mut kept) => {
            let is_old = |pair: Pair| zircon::monotonic_nanos() - pair.monotonic_ns > PAIR_NS;
            if kept.is_none_or(is_old) {
                *kept = Some(Pair::now());
            }
            kept.unwrap_or_else(Pair::now)
        }
        None => Pair::now(),
    };
    ticks_at(pair, monotonic_ns, trace_provider::ticks_per_second())
}

fn ticks_at(pair: Pair, monotonic_ns: i64, rate: u64) -> u64 {
    let distance_ns = i128::from(monotonic_ns) - i128::from(pair.monotonic_ns);
    let distance = distance_ns * i128::from(rate) / 1_000_000_000;
    u64::try_from(i128::from(pair.ticks) + distance).unwrap_or_default()
}

/// A number that differs for each run; 0 while nothing is recorded.
pub extern "C" fn trace_internal_run_number() -> u32 {
    if engine::state() == engine::State::Started { engine::epoch() } else { 0 }
}
