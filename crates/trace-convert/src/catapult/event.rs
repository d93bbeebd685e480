//! One event, member by member.

use super::{Dialect, Exporter};
use crate::flows::{Begin, Names, Part};
use crate::json::Json;
use crate::{THREAD_DUR, THREAD_TS};
use std::io::Write;
use std::sync::Arc;
use trace_format::event::{EventKind, Scope};
use trace_format::units::{Nanos, Ticks, TicksPerSecond};
use trace_reader::{Arguments, Event, Text, Thread, Time, Value};

/// Category of log records in Chrome's dialect, where events have one.
const LOG_CATEGORY: &str = "log";

impl<W: Write> Exporter<W> {
    //= docs/catapult.md#log-records
    pub(super) fn log(&mut self, time: Time, thread: Thread, message: Text<'_>) {
        self.separate();
        self.json.raw("{");
        if self.is_chrome() {
            self.json.raw("\"cat\":\"");
            self.json.raw(LOG_CATEGORY);
            self.json.raw("\",");
        }
        self.json.raw("\"name\":\"log\",\"ph\":\"i\",\"ts\":");
        self.time(time);
        self.who(thread);
        self.json.raw(",\"s\":\"g\",\"args\":{\"message\":");
        self.json.string(message.as_bytes());
        self.json.raw("}}");
        self.events += 1;
    }

    pub(super) fn is_chrome(&self) -> bool {
        matches!(self.dialect, Dialect::Chrome(_))
    }

    /// Names as Chrome has them.
    //= docs/catapult.md#chromes-dialect
    pub(super) fn names_as_events(&mut self) {
        let begin = |this: &mut Self, pid: u64, tid: Option<u64>, what: &str, name: &[u8]| {
            if name.is_empty() {
                return;
            }
            this.separate();
            this.json.raw("{\"name\":\"");
            this.json.raw(what);
            this.json.raw("\",\"ph\":\"M\",\"pid\":");
            this.json.integer(pid);
            if let Some(tid) = tid {
                this.json.raw(",\"tid\":");
                this.json.integer(tid);
            }
            this.json.raw(",\"args\":{\"name\":");
            this.json.string(name);
            this.json.raw("}}");
        };
        let sampled: Vec<_> = self.samples.iter().flat_map(|samples| samples.threads()).collect();
        for (pid, tid) in sampled {
            // Catapult drops the samples of threads that nothing else in the document mentions.
            if self.system.threads.get(&(pid, tid)).is_none_or(Vec::is_empty) {
                self.separate();
                self.json.raw("{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":");
                self.json.integer(pid.0);
                self.json.raw(",\"tid\":");
                self.json.integer(tid.0);
                self.json.raw(",\"args\":{\"sort_index\":0}}");
            }
        }
        for (pid, name) in std::mem::take(&mut self.system.processes) {
            begin(self, pid.0, None, "process_name", &name);
        }
        for ((pid, tid), name) in std::mem::take(&mut self.system.threads) {
            begin(self, pid.0, Some(tid.0), "thread_name", &name);
        }
    }

    //= docs/catapult.md#events
    pub(super) fn event(&mut self, event: &Event<'_>) {
        if let EventKind::Unknown { .. } = event.kind {
            return self.skip("events of unknown type");
        }
        if !self.filter.keeps(event.category.as_bytes(), event.name.as_bytes()) {
            return;
        }
        let (number, names) = self.flow(event);
        self.head(&named(event, names.as_deref()), event.thread, event.time);
        self.phase(event, number);
        self.arguments(event);
        self.json.raw("}");
        self.events += 1;
    }

    /// The common members of all events.
    fn head(&mut self, event: &Event<'_>, thread: Thread, time: Time) {
        self.separate();
        self.json.raw("{\"cat\":");
        self.json.string(event.category.as_bytes());
        self.json.raw(",\"name\":");
        self.json.string(event.name.as_bytes());
        self.json.raw(",\"ts\":");
        self.time(time);
        self.who(thread);
    }

    /// The number and the names of the flow that an event is part of: its id and the event's own, or in
    /// Chrome's dialect those with which the flow began. If the flow ends once more, the begin of another
    /// arrow is written there, which Fuchsia's dialect lacks.
    fn flow(&mut self, event: &Event<'_>) -> (u64, Option<Arc<Names>>) {
        let (EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id }) =
            event.kind
        else {
            return (0, None);
        };
        let Part { number, names, again } = self.flows.part(event, id);
        if !self.is_chrome() {
            self.further_ends += u64::from(again.is_some());
            return (id, None);
        }
        if let Some(Begin { thread, time }) = again {
            self.head(&named(event, names.as_deref()), thread, time);
            self.text_id(",\"ph\":\"s\"", number);
            self.json.raw("}");
        }
        (number, names)
    }

    pub(super) fn who(&mut self, thread: Thread) {
        // Usually the same as the previous event's.
        if self.last_thread.as_ref().is_none_or(|(last, _)| *last != thread) {
            let text = format!(",\"pid\":{},\"tid\":{}", thread.process.0, thread.thread.0);
            self.last_thread = Some((thread, text));
        }
        self.last_thread.iter().for_each(|(_, text)| self.json.raw(text));
    }

    /// The phase, and its members. There are three ways to write an id.
    fn phase(&mut self, event: &Event<'_>, flow: u64) {
        match event.kind {
            EventKind::Instant { scope } => self.json.raw(match scope {
                Scope::Thread => ",\"ph\":\"i\",\"s\":\"t\"",
                Scope::Process => ",\"ph\":\"i\",\"s\":\"p\"",
                Scope::Global => ",\"ph\":\"i\",\"s\":\"g\"",
            }),
            EventKind::Counter { id: 0 } => self.json.raw(",\"ph\":\"C\""),
            EventKind::Counter { id } => {
                self.json.raw(",\"ph\":\"C\",\"id\":\"");
                self.json.hex(id);
                self.json.raw("\"");
            }
            EventKind::DurationBegin => self.json.raw(",\"ph\":\"B\""),
            EventKind::DurationEnd => self.json.raw(",\"ph\":\"E\""),
            EventKind::DurationComplete { end } => {
                self.json.raw(",\"ph\":\"X\",\"dur\":");
                if self.is_chrome() {
                    // So that the end is exact, to the nanosecond.
                    let end = Time { ticks: end, ..event.time }.nanos().0;
                    self.json.thousandths(end.saturating_sub(event.time.nanos().0));
                } else {
                    let ticks = Ticks(end.0.saturating_sub(event.time.ticks.0));
                    self.time(Time { ticks, ..event.time });
                }
            }
            EventKind::AsyncBegin { id } => self.async_id("b", id),
            EventKind::AsyncInstant { id } => self.async_id("n", id),
            EventKind::AsyncEnd { id } => self.async_id("e", id),
            EventKind::FlowBegin { .. } => self.text_id(",\"ph\":\"s\"", flow),
            EventKind::FlowStep { .. } => self.text_id(",\"ph\":\"t\"", flow),
            EventKind::FlowEnd { .. } => self.text_id(",\"ph\":\"f\",\"bp\":\"e\"", flow),
            EventKind::Unknown { .. } => {}
        }
    }

    /// A number in Fuchsia's dialect, of which JavaScript sees 53 bits; text in Chrome's.
    fn async_id(&mut self, phase: &str, id: u64) {
        self.json.raw(",\"ph\":\"");
        self.json.raw(phase);
        self.json.raw("\",\"id\":");
        if self.is_chrome() {
            self.json.raw("\"");
            self.json.hex(id);
            self.json.raw("\"");
        } else {
            self.json.integer(id);
        }
    }

    /// Decimal in Fuchsia's dialect, where Perfetto confuses large ones; hexadecimal in Chrome's.
    fn text_id(&mut self, phase: &str, id: u64) {
        self.json.raw(phase);
        self.json.raw(",\"id\":\"");
        if self.is_chrome() {
            self.json.hex(id);
        } else {
            self.json.integer(id);
        }
        self.json.raw("\"");
    }

    //= docs/catapult.md#arguments
    fn arguments(&mut self, event: &Event<'_>) {
        let arguments: &Arguments<'_> = &event.arguments;
        let is_counter = matches!(event.kind, EventKind::Counter { .. });
        let is_series = self.is_chrome() && is_counter;
        let has_thread_times = self.is_chrome() && !is_counter;
        let mut thread_times = [None; 2];
        if arguments.is_empty() {
            return;
        }
        let begin = ",\"args\":{";
        self.json.raw(begin);
        let (mut is_first, mut are_all_unknown) = (true, true);
        for (name, value) in arguments.iter() {
            // Fuchsia's reader ignores it; it reads a null, but does not write it.
            if value == Value::Unknown {
                self.skip("arguments of unknown type");
                continue;
            }
            if has_thread_times
                && let Some(which) = [THREAD_TS, THREAD_DUR].iter().position(|own| name == *own)
                && let Some(nanos) = whole(&value)
            {
                thread_times[which] = Some(nanos);
                continue;
            }
            are_all_unknown = false;
            if value == Value::Null {
                continue;
            }
            if is_series && !is_number(&value) {
                self.skip("counter arguments that are no numbers");
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.json.raw(",");
            }
            self.json.string(name.as_bytes());
            self.json.raw(":");
            self.json.value(&value);
        }
        if are_all_unknown {
            self.json.take_back(begin.len());
        } else {
            self.json.raw("}");
        }
        for (member, nanos) in [",\"tts\":", ",\"tdur\":"].into_iter().zip(thread_times) {
            if let Some(nanos) = nanos {
                self.json.raw(member);
                self.json.thousandths(nanos);
            }
        }
    }

    pub(super) fn time(&mut self, time: Time) {
        self.have_rates_differed |= *self.rate.get_or_insert(time.rate) != time.rate;
        match self.dialect {
            Dialect::Fuchsia => micros(&mut self.json, time),
            // Readers convert it back to nanoseconds.
            Dialect::Chrome(_) => {
                let nanos = time.nanos().0;
                self.last_nanos = nanos;
                self.json.thousandths(nanos);
            }
        }
    }
}

/// Microseconds: Fuchsia's double where its digits are within half a nanosecond of the time, else the exact
/// decimal of the nanosecond.
//= docs/catapult.md#numbers
pub(super) fn micros<W: Write>(json: &mut Json<W>, Time { ticks, rate }: Time) {
    let micros = ticks.0 as f64 * (1_000_000.0 / rate.0.get() as f64);
    // Fifteen digits are the shortest ones of the nearest double, which is this one if the product is.
    if rate == TicksPerSecond::NANOSECONDS && ticks.0 < FIFTEEN_DIGITS && micros == ticks.0 as f64 / 1000.0 {
        return json.thousandths(ticks.0);
    }
    let digits = json.double(micros);
    if micros >= ALWAYS_EXACT_MICROS && !are_exact(digits, ticks, rate) {
        let (length, nanos) = (digits.len(), ticks.to_nanos(rate));
        // A time beyond 64 bits of nanoseconds, of which the reader has warned, stays a double.
        if nanos < Nanos(u64::MAX) {
            json.take_back(length);
            json.thousandths(nanos.0);
        }
    }
}

/// A counter's series in Chrome's dialect has numbers.
fn is_number(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Int32(_) | Value::Uint32(_) | Value::Int64(_) | Value::Uint64(_) | Value::Double(_)
    )
}

/// The value, if it is a nonnegative integer.
fn whole(value: &Value<'_>) -> Option<u64> {
    match *value {
        Value::Int32(value) => u64::try_from(value).ok(),
        Value::Uint32(value) => Some(u64::from(value)),
        Value::Int64(value) => u64::try_from(value).ok(),
        Value::Uint64(value) => Some(value),
        _ => None,
    }
}

/// Below it, microseconds have at most fifteen digits.
const FIFTEEN_DIGITS: u64 = 1_000_000_000_000_000;

/// Below it, which is 12 days, all roundings on the way to the digits add up to less than half a nanosecond.
const ALWAYS_EXACT_MICROS: f64 = (1_u64 << 40) as f64;

/// Whether digits of microseconds are within half a nanosecond of the given ticks.
fn are_exact(digits: &[u8], ticks: Ticks, rate: TicksPerSecond) -> bool {
    let is_within = || {
        // Doubles this large have at most four digits behind the point.
        let point = digits.iter().position(|byte| *byte == b'.')?;
        let fraction = digits.get(point + 1..)?;
        let padding = 4_usize.checked_sub(fraction.len())?;
        let all = digits.get(..point)?.iter().chain(fraction).chain(std::iter::repeat_n(&b'0', padding));
        let tenths = all
            .map(|byte| u128::from(*byte - b'0'))
            .try_fold(0_u128, |sum, digit| sum.checked_mul(10)?.checked_add(digit))?;
        let rate = u128::from(rate.0.get());
        let difference = tenths.checked_mul(rate)?.abs_diff(u128::from(ticks.0) * 10_000_000_000);
        Some(difference < 5 * rate)
    };
    is_within().unwrap_or(false)
}

/// An event under the names of its flow, if they are others.
fn named<'a>(event: &Event<'a>, names: Option<&'a Names>) -> Event<'a> {
    names.map_or(*event, |names| Event { category: names.category(), name: names.name(), ..*event })
}
