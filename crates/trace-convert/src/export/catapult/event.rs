//! The text of events and log records, member by member. It depends on nothing but the record and what is
//! known of its flow, so that several threads can make it.

use super::blocks::Blocks;
use super::{Dialect, FlowPart};
use crate::export::flows::{Begin, Names};
use crate::export::jobs::{Batch, Work};
use crate::export::numbers::{is_replaced, short, thread_number};
use crate::json::Json;
use crate::{THREAD_DUR, THREAD_TS};
use std::collections::{BTreeMap, VecDeque};
use std::io::{Sink, Write, sink};
use std::sync::Arc;
use trace_format::event::{EventKind, Scope};
use trace_format::scopes::{END_ARGUMENT, Ending, LASTED_ARGUMENT};
use trace_format::units::{Nanos, Ticks, TicksPerSecond};
use trace_reader::{Arguments, Event, Item, Text, TextKey, Thread, Time, Value};

/// Category of log records in Chrome's dialect, where events have one.
const LOG_CATEGORY: &str = "log";
/// What arguments of counters are called that are no samples.
const NO_NUMBERS: &str = "counter arguments that are no numbers";
/// Blocks of text that are kept, of each kind.
const TEXTS: usize = 1024;
const THREADS: usize = 256;
/// The output of a batch is handed on when it has so many bytes.
const MAX_OUTPUT_BYTES: usize = if cfg!(test) { 10_000 } else { 4 << 20 };

/// Decides which arguments stand in a document. It is asked with the category and the name of an event:
/// without a third text whether its arguments do, and with one whether the argument of this name does.
pub type ArgumentPredicate = Arc<dyn Fn(&[u8], &[u8], Option<&[u8]>) -> bool + Send + Sync>;

/// How a program writes its own recording, as Chromium's `TraceLog` does: a duration that is still open is
/// complete without a length, and every event has arguments.
#[derive(Clone, Default)]
pub struct OwnRecording {
    /// Which arguments are replaced by [`STRIPPED`]; without it, none.
    pub predicate: Option<ArgumentPredicate>,
}

impl OwnRecording {
    fn keeps(&self, event: &Event<'_>, argument: Option<Text<'_>>) -> bool {
        let argument = argument.as_ref().map(|name| name.as_bytes());
        let predicate = self.predicate.as_ref();
        predicate.is_none_or(|keeps| keeps(event.category.as_bytes(), event.name.as_bytes(), argument))
    }
}

/// What stands for an argument, or for all of an event, that a predicate keeps out.
pub const STRIPPED: &str = "__stripped__";

/// The text of events and log records, with a comma in front of each.
pub(super) struct Events {
    pub json: Json<Sink>,
    pub own: Option<OwnRecording>,
    dialect: Dialect,
    heads: Blocks<(u32, u32)>,
    texts: Blocks<u32>,
    members: Blocks<u32>,
    threads: Blocks<Thread>,
    pub tally: Tally,
}

/// From this time on in nanoseconds, doubles of microseconds are more than a nanosecond apart.
const ROUNDED_FROM: u64 = 1000 << 43;

/// What is counted, and what is known of the times.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub events: u64,
    pub skipped: BTreeMap<&'static str, u64>,
    /// Rate of a time, and whether another one was different.
    rate: Option<TicksPerSecond>,
    pub have_rates_differed: bool,
    /// The time of the last event in Chrome's dialect.
    pub last_nanos: Option<u64>,
    /// Events whose times a double of microseconds does not hold.
    pub rounded: u64,
}

impl Tally {
    pub fn skip(&mut self, kind: &'static str) {
        *self.skipped.entry(kind).or_default() += 1;
    }

    #[inline]
    pub fn rate(&mut self, rate: TicksPerSecond) {
        self.have_rates_differed |= *self.rate.get_or_insert(rate) != rate;
    }

    /// Counts the time of an event in Chrome's dialect.
    #[inline]
    pub fn at(&mut self, nanos: u64) {
        self.last_nanos = Some(nanos);
        self.rounded += u64::from(nanos >= ROUNDED_FROM);
    }

    /// Adds that of what comes behind.
    pub fn add(&mut self, behind: Self) {
        let Self { events, skipped, rate, have_rates_differed, last_nanos, rounded } = behind;
        self.rounded += rounded;
        self.events += events;
        for (kind, count) in skipped {
            *self.skipped.entry(kind).or_default() += count;
        }
        rate.into_iter().for_each(|rate| self.rate(rate));
        self.have_rates_differed |= have_rates_differed;
        self.last_nanos = last_nanos.or(self.last_nanos);
    }
}

impl Work for Events {
    type Batch = Batch<VecDeque<FlowPart>>;
    /// The batch with its output.
    type Done = (Batch<VecDeque<FlowPart>>, Tally);

    fn run(&mut self, mut batch: Self::Batch) -> Self::Done {
        let own = self.json.replace(std::mem::take(&mut batch.output));
        let tally = std::mem::take(&mut self.tally);
        self.batch(&mut batch);
        batch.output = self.json.replace(own);
        (batch, std::mem::replace(&mut self.tally, tally))
    }
}

impl Events {
    pub fn new(dialect: Dialect) -> Self {
        Self {
            json: Json::new(sink()),
            own: None,
            dialect,
            heads: Blocks::new(TEXTS),
            texts: Blocks::new(TEXTS),
            members: Blocks::new(TEXTS),
            threads: Blocks::new(THREADS),
            tally: Tally::default(),
        }
    }

    /// The next records of a batch, as many as make an output of a moderate size: indices may stand for long
    /// texts.
    pub fn batch(&mut self, batch: &mut Batch<VecDeque<FlowPart>>) {
        batch.advance(|item, parts| {
            match item {
                Item::Event(event) => {
                    let part = self.has_part(event).then(|| parts.pop_front()).flatten();
                    self.event(event, part);
                }
                Item::Log { time, thread, message } => self.log(*time, *thread, *message),
                _ => {}
            }
            self.json.bytes().len() < MAX_OUTPUT_BYTES
        });
    }

    /// Whether it has to be known which part of a flow an event is.
    #[inline]
    pub fn has_part(&self, event: &Event<'_>) -> bool {
        matches!(
            event.kind,
            EventKind::FlowBegin { .. } | EventKind::FlowStep { .. } | EventKind::FlowEnd { .. }
        ) && self.is_chrome()
    }

    //= docs/catapult.md#log-records
    pub fn log(&mut self, time: Time, thread: Thread, message: Text<'_>) {
        self.json.raw(",{");
        if self.is_chrome() {
            self.json.raw("\"cat\":\"");
            self.json.raw(LOG_CATEGORY);
            self.json.raw("\",");
        }
        self.json.raw("\"name\":\"log\",\"ph\":\"i\",\"ts\":");
        self.time(time);
        self.thread(thread);
        self.json.string_behind(",\"s\":\"g\",\"args\":{\"message\":", message.as_bytes());
        self.json.raw("}}");
        self.tally.events += 1;
    }

    #[inline]
    pub fn is_chrome(&self) -> bool {
        matches!(self.dialect, Dialect::Chrome(_))
    }

    //= docs/catapult.md#events
    pub fn event(&mut self, event: &Event<'_>, part: Option<FlowPart>) {
        if let EventKind::Unknown { .. } = event.kind {
            return self.tally.skip("events of unknown type");
        }
        if let EventKind::Counter { .. } = event.kind
            && self.is_chrome()
            && !event.arguments.iter().any(|(_, value)| value.is_number())
        {
            // Readers take it for damage: series have numbers.
            event.arguments.iter().for_each(|_| self.tally.skip(NO_NUMBERS));
            return;
        }
        match part {
            Some(FlowPart { number, names, again }) => {
                let named = named(event, names.as_deref());
                // If the flow ends once more, another arrow begins.
                if let Some(Begin { thread, time }) = again {
                    self.head(&named, thread, time);
                    self.text_id(",\"ph\":\"s\"", number);
                    self.json.raw("}");
                }
                self.head(&named, event.thread, event.time);
                self.phase(event, number);
            }
            None => {
                if self.is_chrome() && event.kind == EventKind::DurationEnd {
                    // Without a name, it ends the innermost slice.
                    self.json.raw(",{\"ts\":");
                    self.time(event.time);
                    self.thread(event.thread);
                } else {
                    self.head(event, event.thread, event.time);
                }
                self.phase(event, 0);
            }
        }
        self.arguments(event);
        self.json.raw("}");
        self.tally.events += 1;
    }

    /// The common members of all events.
    #[inline]
    fn head(&mut self, event: &Event<'_>, thread: Thread, time: Time) {
        let (category, name) = (event.keys.0.number(), event.keys.1.number());
        // Both texts have one.
        let key = if category.min(name) == 0 { (0, 0) } else { (category, name) };
        let place = (name ^ category << 5) as usize;
        self.heads.write(&mut self.json, place, key, |json| {
            json.string_behind(",{\"cat\":", event.category.as_bytes());
            json.string_behind(",\"name\":", event.name.as_bytes());
            json.raw(",\"ts\":");
        });
        self.time(time);
        self.thread(thread);
    }

    #[inline]
    pub fn thread(&mut self, thread: Thread) {
        let place = (thread.thread.0 ^ thread.process.0 << 5) as usize;
        let is_replaced = self.is_chrome() && is_replaced(thread);
        self.threads.write(&mut self.json, place, thread, |json| {
            let [process, number] = match is_replaced {
                true => [short(thread.process), thread_number(thread)].map(u64::from),
                false => [thread.process.0, thread.thread.0],
            };
            json.integer_behind(",\"pid\":", process);
            json.integer_behind(",\"tid\":", number);
        });
    }

    /// The members of an event with these texts, without a time and a thread.
    pub fn texts(&mut self, event: &Event<'_>) {
        self.json.string_behind("\"cat\":", event.category.as_bytes());
        self.json.string_behind(",\"name\":", event.name.as_bytes());
    }

    /// A text, in quotes.
    #[inline]
    fn text(&mut self, text: Text<'_>, key: TextKey) {
        let key = key.number();
        self.texts.write(&mut self.json, key as usize, key, |json| json.string(text.as_bytes()));
    }

    /// The name of a member, in quotes, and a colon.
    #[inline]
    fn member(&mut self, name: Text<'_>, key: TextKey) {
        let key = key.number();
        self.members.write(&mut self.json, key as usize, key, |json| {
            json.string(name.as_bytes());
            json.raw(":");
        });
    }

    /// The phase, and its members. There are three ways to write an id.
    pub fn phase(&mut self, event: &Event<'_>, flow: u64) {
        match event.kind {
            EventKind::DurationBegin if self.own.is_some() && is_open(event) => {
                self.json.raw(",\"ph\":\"X\"");
            }
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
                    micros(&mut self.json, Time { ticks, ..event.time });
                }
            }
            EventKind::AsyncBegin { id } => self.async_id("b", id),
            EventKind::AsyncInstant { id } => self.async_id("n", id),
            EventKind::AsyncEnd { id } => self.async_id("e", id),
            EventKind::FlowBegin { id } => self.flow_id(",\"ph\":\"s\"", flow, id),
            EventKind::FlowStep { id } => self.flow_id(",\"ph\":\"t\"", flow, id),
            EventKind::FlowEnd { id } => self.flow_id(",\"ph\":\"f\",\"bp\":\"e\"", flow, id),
            EventKind::Unknown { .. } => {}
        }
    }

    /// A number in Fuchsia's dialect, of which JavaScript sees 53 bits; text in Chrome's, of the process.
    pub fn async_id(&mut self, phase: &str, id: u64) {
        self.json.raw(",\"ph\":\"");
        self.json.raw(phase);
        if self.is_chrome() {
            self.json.raw("\",\"id2\":{\"local\":\"");
            self.json.hex(id);
            self.json.raw("\"}");
        } else {
            self.json.integer_behind("\",\"id\":", id);
        }
    }

    /// The flow's own number in Chrome's dialect, and in Fuchsia's the id of the event.
    fn flow_id(&mut self, phase: &str, flow: u64, id: u64) {
        self.text_id(phase, if self.is_chrome() { flow } else { id });
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

    /// Returns how many bytes of members stand behind the arguments.
    //= docs/catapult.md#arguments
    pub fn arguments(&mut self, event: &Event<'_>) -> usize {
        let arguments: &Arguments<'_> = &event.arguments;
        let is_counter = matches!(event.kind, EventKind::Counter { .. });
        let is_series = self.is_chrome() && is_counter;
        let has_thread_times = self.is_chrome() && !is_counter;
        let mut thread_times = [None; 2];
        if arguments.is_empty() && self.own.is_none() {
            return 0;
        }
        let begin = ",\"args\":{";
        let own = self.own.clone();
        let is_open = own.is_some() && is_open(event);
        let are_stripped = own.as_ref().is_some_and(|own| !own.keeps(event, None));
        let (mut is_first, mut are_all_unknown) = (true, own.is_none());
        for (name, value, [name_key, value_key]) in arguments.keyed() {
            // Fuchsia's reader ignores it; it reads a null, but does not write it.
            if value == Value::Unknown {
                self.tally.skip("arguments of unknown type");
                continue;
            }
            if has_thread_times
                && let Some(which) = [THREAD_TS, THREAD_DUR].iter().position(|own| name == *own)
                && let Some(nanos) = whole(&value)
            {
                thread_times[which] = Some(nanos);
                continue;
            }
            if are_stripped || is_open && [END_ARGUMENT, LASTED_ARGUMENT].iter().any(|own| name == *own) {
                continue;
            }
            are_all_unknown = false;
            if is_series && !value.is_number() {
                self.tally.skip(NO_NUMBERS);
                continue;
            }
            if value == Value::Null {
                continue;
            }
            self.json.raw(if std::mem::take(&mut is_first) { begin } else { "," });
            self.member(name, name_key);
            if own.as_ref().is_some_and(|own| !own.keeps(event, Some(name))) {
                self.json.string(STRIPPED.as_bytes());
                continue;
            }
            match value {
                Value::String(value) => self.text(value, value_key),
                // Readers of Chrome's format have 64 bits with a sign.
                Value::Uint64(value) if is_series && i64::try_from(value).is_err() => {
                    self.json.double(value as f64);
                }
                value => self.json.value(&value),
            }
        }
        match (are_all_unknown, is_first) {
            (true, _) => {}
            (false, _) if are_stripped => self.json.string_behind(",\"args\":", STRIPPED.as_bytes()),
            (false, true) => {
                self.json.raw(begin);
                self.json.raw("}");
            }
            (false, false) => self.json.raw("}"),
        }
        let length = self.json.bytes().len();
        if let ([Some(_), duration], true) = (&mut thread_times, is_open) {
            *duration = Some(0);
        }
        if thread_times != [None; 2] {
            self.thread_times(thread_times);
        }
        self.json.bytes().len() - length
    }

    #[cold]
    fn thread_times(&mut self, thread_times: [Option<u64>; 2]) {
        for (member, nanos) in [",\"tts\":", ",\"tdur\":"].into_iter().zip(thread_times) {
            if let Some(nanos) = nanos {
                self.json.raw(member);
                self.json.thousandths(nanos);
            }
        }
    }

    #[inline]
    pub fn time(&mut self, time: Time) {
        self.tally.rate(time.rate);
        match self.dialect {
            Dialect::Fuchsia => micros(&mut self.json, time),
            // Readers convert it back to nanoseconds.
            Dialect::Chrome(_) => {
                let nanos = time.nanos().0;
                self.tally.at(nanos);
                self.json.thousandths(nanos);
            }
        }
    }
}

/// Microseconds: Fuchsia's double where its digits are within half a nanosecond of the time, else the exact
/// decimal of the nanosecond.
//= docs/catapult.md#numbers
pub(super) fn micros<W: Write>(json: &mut Json<W>, Time { ticks, rate, .. }: Time) {
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

/// Whether an event is the begin of a duration that was open when the recording ended.
fn is_open(event: &Event<'_>) -> bool {
    let mut arguments = event.arguments.iter();
    let says_so = |(name, value): (Text<'_>, Value<'_>)| match value {
        Value::String(text) => name == END_ARGUMENT && Ending::of(text.as_bytes()).is_some(),
        _ => false,
    };
    event.kind == EventKind::DurationBegin && arguments.any(says_so)
}

/// The value, if it is a nonnegative integer.
pub(super) fn whole(value: &Value<'_>) -> Option<u64> {
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
pub(super) fn named<'a>(event: &Event<'a>, names: Option<&'a Names>) -> Event<'a> {
    names.map_or(*event, |names| Event {
        category: names.category(),
        name: names.name(),
        keys: Default::default(),
        ..*event
    })
}
