//! Events and arguments.

use super::{Corpus, Trace};
use std::num::NonZeroU64;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::{KernelObject, TYPE_CHANNEL};
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond,
};

pub(super) fn add(corpus: &mut Corpus) {
    events(corpus);
    arguments(corpus);
    bad_arguments(corpus);
}

fn index(index: u16) -> StringRef<'static> {
    StringRef::Index(StringIndex::new(index).expect("not 0"))
}

/// An event of the prelude's thread, category and name.
fn event<'a>(timestamp: u64, kind: EventKind, arguments: &'a [Argument<'a>]) -> Record<'a> {
    Record::Event(Event {
        timestamp: Ticks(timestamp),
        thread: ThreadRef::Index(ThreadIndex::new(1).expect("not 0")),
        category: index(1),
        name: index(2),
        kind,
        arguments: Arguments::from_slice(arguments),
    })
}

/// An event of another name.
fn named(name: u16, timestamp: u64, kind: EventKind) -> Record<'static> {
    match event(timestamp, kind, &[]) {
        Record::Event(event) => Record::Event(Event { name: index(name), ..event }),
        record => record,
    }
}

fn events(corpus: &mut Corpus) {
    let instant = |size: u64| 0x0002_0001_0100_0004 | size << 4;
    corpus.add_words("event-instant", "a worked example without scope word", &[instant(2), 0x1234]);
    let scopes: Vec<u64> = [0, 1, 2, 3].iter().flat_map(|scope| [instant(3), 1500, *scope]).collect();
    corpus.add_words(
        "event-instant-scopes",
        "thread, process, global, and one that is not assigned",
        &scopes,
    );
    let inline = [
        0x8004_8003_0010_00a4,
        1000,
        123,
        456,
        0x0074_6163,
        0x656d_616e,
        0x8008_8007_0036,
        0x0065_6d61_6e67_7261,
        0x6575_6c61_7667_7261,
        2,
    ];
    corpus.add_words("event-instant-inline", "a worked example with everything inline", &inline);
    let begin = [0x8008_8008_0002_0064, 10, 1, 2, 0x4141_4141_5f54_4143, 0x315f_535f_454d_414e];
    let end = [0x8008_8008_0003_0064, 12, 1, 2, 0x4141_4141_5f54_4143, 0x315f_535f_454d_414e];
    corpus.add_words("event-duration", "a worked example of a begin, and its end", &[begin, end].concat());
    let sample = [0x0002_0001_0111_0044, 2_000_000, 0xffff_fff9_0003_0011, 42];
    corpus.add_words("event-counter", "a worked example with another name", &sample);
    let boolean = [0x0002_0001_0111_0044, 0x1234, 0x1_0003_0019, 0x33_4455_6677];
    corpus.add_words("event-counter-bool", "a worked example whose sample is no number", &boolean);
    let complete = [
        0x800a_800e_0024_00f4,
        0x800,
        0x159,
        0x2a6,
        0x6163_5f74_6e65_7665,
        0x7972_6f67_6574,
        0x616e_5f74_6e65_7665,
        0x656d,
        0x8004_8004_0036,
        0x3167_7261,
        0x316c_6176,
        0x8004_0037,
        0x3267_7261,
        0x1_e240,
        0x1000,
    ];
    corpus.add_words("event-complete", "a worked example with two arguments", &complete);
    let backwards = event(10, EventKind::DurationComplete { end: Ticks(9) }, &[]);
    corpus.add_record("event-complete-backwards", "ends before it begins", &backwards);
    let overlapping = [(1, 10), (5, 15), (12, 20)].iter().fold(Trace::prelude(), |trace, (begin, end)| {
        trace.record(&event(*begin, EventKind::DurationComplete { end: Ticks(*end) }, &[]))
    });
    corpus.add(
        "event-overlapping",
        "each but the first of three durations overlaps the one before",
        &overlapping,
    );
    let id = 0x1122_3344_5566_7788;
    let kinds = [EventKind::AsyncBegin { id }, EventKind::AsyncInstant { id }, EventKind::AsyncEnd { id }];
    corpus.add("event-async", "begin, instant and end", &all(&kinds));
    let crossing = all(&[EventKind::AsyncBegin { id }]).record(&elsewhere(2, EventKind::AsyncEnd { id }));
    corpus.add("event-async-crossing", "an operation that ends in another process", &crossing);
    let order = [(2, true), (5, false), (8, false), (1, true), (5, true), (6, false)];
    let order = order.iter().fold(Trace::prelude(), |trace, (time, is_begin)| {
        let kind = if *is_begin { EventKind::DurationBegin } else { EventKind::DurationEnd };
        trace.record(&event(*time, kind, &[]))
    });
    corpus.add("event-order", "durations in another order than that of their times: all are paired", &order);
    let id = u64::MAX;
    let kinds = [EventKind::FlowBegin { id }, EventKind::FlowStep { id }, EventKind::FlowEnd { id }];
    corpus.add("event-flow", "begin, step and end", &all(&kinds));
    let flow = [0x8008_8008_0008_0074, 12, 1, 2, 0x4141_4141_5f54_4143, 0x5858_585f_574f_4c46, 100];
    corpus.add_words("event-flow-begin", "a worked example, which has no end", &flow);
    for (name, kind) in [
        ("begin", EventKind::DurationBegin),
        ("end", EventKind::DurationEnd),
        ("async-begin", EventKind::AsyncBegin { id: 1 }),
        ("async-end", EventKind::AsyncEnd { id: 1 }),
        ("flow-step", EventKind::FlowStep { id: 1 }),
        ("flow-end", EventKind::FlowEnd { id: 1 }),
    ] {
        corpus.add_record(&format!("event-unmatched-{name}"), "without its partner", &event(1, kind, &[]));
    }
    let text = |text: &'static str| StringRef::Inline(text.as_bytes());
    let why = [
        Argument { name: text("end"), value: ArgumentValue::String(text("open at death")) },
        Argument { name: text("lasted_ns"), value: ArgumentValue::Uint64(20_400_000) },
    ];
    let open = Trace::prelude()
        .record(&event(3, EventKind::DurationBegin, &[]))
        .record(&event(5, EventKind::DurationEnd, &[]))
        .record(&event(1, EventKind::DurationBegin, &why));
    corpus.add("event-open", "a begin that has no end, and says so, behind what began after it", &open);
    let remark = [
        Argument { name: text("provider"), value: ArgumentValue::Uint32(1) },
        Argument { name: text("process"), value: ArgumentValue::Koid(Koid(1234)) },
        Argument { name: text("open"), value: ArgumentValue::String(text("open at stop")) },
        Argument { name: text("at"), value: ArgumentValue::Uint64(9) },
    ];
    let remark = KernelObject {
        object_type: TYPE_CHANNEL,
        koid: Koid(0),
        name: StringRef::Empty,
        arguments: Arguments::from_slice(&remark),
    };
    let manager = Metadata::ProviderInfo { id: ProviderId(0), name: b"trace_manager" };
    let rate =
        Initialization { ticks_per_second: TicksPerSecond(NonZeroU64::new(1_000_000_000).expect("not 0")) };
    let open = Trace::prelude()
        .record(&event(2, EventKind::DurationBegin, &[]))
        .record(&event(3, EventKind::AsyncBegin { id: 1 }, &[]))
        .record(&event(10, EventKind::DurationBegin, &[]))
        .record(&Record::Metadata(manager))
        .record(&Record::Initialization(rate))
        .record(&Record::KernelObject(remark));
    corpus.add(
        "event-open-remark",
        "begins without ends: why, as the manager says, and one after that",
        &open,
    );
    let instant = event(1, EventKind::AsyncInstant { id: 1 }, &[]);
    corpus.add_record("event-async-instant-alone", "an instant that needs no operation", &instant);
    for (name, shows, begin, end) in [
        (
            "event-mismatched-async-end",
            "an operation that ends by another name",
            EventKind::AsyncBegin { id: 1 },
            EventKind::AsyncEnd { id: 1 },
        ),
        (
            "event-mismatched-end",
            "a duration that ends by another name",
            EventKind::DurationBegin,
            EventKind::DurationEnd,
        ),
    ] {
        let trace = Trace::prelude().record(&event(1, begin, &[])).record(&named(3, 2, end));
        corpus.add(name, shows, &trace);
    }
    let unknown: Vec<u64> = (11..16).flat_map(|kind| [0x0002_0001_0100_0034 | kind << 16, 1, 7]).collect();
    corpus.add_words("event-unknown", "types that are not assigned: the common part counts", &unknown);
    corpus.add_words(
        "event-without-id",
        "malformed: a counter without its last word",
        &[0x0002_0001_0101_0024, 1],
    );
    corpus.add_words(
        "event-name-lies",
        "malformed: an inline name longer than its record",
        &[0x8009_0001_0100_0034, 1, 0x61],
    );
    let time = |time| event(time, EventKind::Instant { scope: Scope::Thread }, &[]);
    let trace = Trace::prelude().record(&time((1 << 63) - 1)).record(&time(1 << 63)).record(&time(u64::MAX));
    corpus.add("event-times", "the last time that fits in 63 bits of nanoseconds, and two beyond it", &trace);
    // 2 words, 7 of an argument with an inline value, and so on up to the largest size.
    let text = vec![b'x'; 32_736];
    let values = [
        Argument { name: index(3), value: ArgumentValue::String(StringRef::Inline(&text[..32_000])) },
        Argument { name: StringRef::Empty, value: ArgumentValue::Blob(&text[..728]) },
    ];
    let largest = event(1, EventKind::Instant { scope: Scope::Thread }, &values);
    assert_eq!(largest.words().0, 4095);
    corpus.add_record("event-4095-words", "the largest", &largest);
}

/// An event of process 99.
fn elsewhere(timestamp: u64, kind: EventKind) -> Record<'static> {
    let Record::Event(event) = event(timestamp, kind, &[]) else { unreachable!("it is an event") };
    let (process, thread) = (ProcessKoid(Koid(99)), ThreadKoid(Koid(100)));
    Record::Event(Event { thread: ThreadRef::Inline { process, thread }, ..event })
}

fn all(kinds: &[EventKind]) -> Trace {
    kinds.iter().zip(1..).fold(Trace::prelude(), |trace, (kind, time)| trace.record(&event(time, *kind, &[])))
}

fn arguments(corpus: &mut Corpus) {
    let all_types = [
        0x0002_0001_01d0_0184,
        0x1234_5678_90ab,
        0x0000_0000_0003_0010,
        0x0000_0001_0003_0019,
        0x1234_5678_0003_0011,
        0x5678_90ab_0003_0012,
        0x0000_0000_0003_0023,
        0x1234_5678_90ab_cdef,
        0x0000_0000_0003_0024,
        0xfedc_ba09_8765_4321,
        0x0000_0000_0003_0025,
        0x4093_4a45_6d5c_faad,
        0x0000_0000_0003_0027,
        0x0000_0000_dead_beef,
        0x0000_0000_0003_0028,
        0x0000_0000_1234_5678,
        0x0000_0002_0003_0016,
        0x0000_8006_0003_0026,
        0x0000_656e_696c_6e69,
        0x0000_8006_8006_0036,
        0x0000_656e_696c_6e69,
        0x0000_656e_696c_6e69,
        0x0000_0005_0003_002a,
        0x0000_0005_0403_0201,
    ];
    corpus.add_words("argument-all-types", "a worked example with other indices", &all_types);
    let value = |value| Argument { name: index(3), value };
    let integers = [
        value(ArgumentValue::Int32(-1)),
        value(ArgumentValue::Int32(i32::MIN)),
        value(ArgumentValue::Int32(i32::MAX)),
        value(ArgumentValue::Uint32(u32::MAX)),
        value(ArgumentValue::Int64(-1)),
        value(ArgumentValue::Int64(i64::MIN)),
        value(ArgumentValue::Int64(i64::MAX)),
        value(ArgumentValue::Uint64(u64::MAX)),
        value(ArgumentValue::Pointer(u64::MAX)),
        value(ArgumentValue::Koid(Koid(u64::MAX))),
        value(ArgumentValue::Bool(false)),
    ];
    let instant = EventKind::Instant { scope: Scope::Thread };
    corpus.add_record("argument-integers", "the smallest and the largest", &event(1, instant, &integers));
    let doubles = [0.0, -0.0, 0.1, 1e300, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
        .map(|double| value(ArgumentValue::Double(double)));
    corpus.add_record(
        "argument-doubles",
        "zeros, infinities and no number at all",
        &event(1, instant, &doubles),
    );
    let text = [b't'; 16];
    let strings = [
        value(ArgumentValue::String(StringRef::Empty)),
        value(ArgumentValue::String(StringRef::Inline(&text[..1]))),
        value(ArgumentValue::String(StringRef::Inline(&text[..7]))),
        value(ArgumentValue::String(StringRef::Inline(&text[..8]))),
        value(ArgumentValue::String(StringRef::Inline(&text[..9]))),
        Argument { name: StringRef::Empty, value: ArgumentValue::Null },
        Argument { name: StringRef::Inline("\"é\n".as_bytes()), value: ArgumentValue::Null },
        value(ArgumentValue::Blob(b"")),
        value(ArgumentValue::Blob(&text[..8])),
        value(ArgumentValue::Blob(&text)),
    ];
    corpus.add_record(
        "argument-streams",
        "0 to 16 bytes of text and of a blob",
        &event(1, instant, &strings),
    );
    let many = [value(ArgumentValue::Null); 15];
    corpus.add_record("argument-15", "as many as there can be", &event(1, instant, &many));
    let unknown: Vec<u64> = (11..16).flat_map(|kind| [0x0003_0020 | kind, 7]).collect();
    let event = [&[0x0002_0001_0150_0004 | 12 << 4, 1][..], &unknown].concat();
    corpus.add_words("argument-unknown", "types that are not assigned", &event);
}

fn bad_arguments(corpus: &mut Corpus) {
    let with = |words: &[u64]| {
        let size = 2 + words.len() as u64;
        [&[0x0002_0001_0110_0004 | size << 4, 1], words].concat()
    };
    for (name, shows, words) in [
        ("argument-missing", "malformed: one is announced, none is there", &[][..]),
        ("argument-size-0", "malformed: not even its header", &[0x0003_0000][..]),
        ("argument-past-end", "malformed: larger than what is left of its record", &[0x0003_0020][..]),
        (
            "argument-name-lies",
            "malformed: an inline name longer than the argument",
            &[0x8009_0020, 0x61][..],
        ),
        (
            "argument-string-lies",
            "malformed: a value longer than the argument",
            &[0x8009_0003_0026, 0x61][..],
        ),
        ("argument-blob-lies", "malformed: a value longer than the argument", &[0x9_0003_002a, 0x61][..]),
        ("argument-blob-4-gib", "malformed: a value of nearly 4 GiB", &[0xffff_ffff_0003_002a, 0x61][..]),
        ("argument-int64-short", "malformed: no room for its value", &[0x0003_0013][..]),
    ] {
        corpus.add_words(name, shows, &with(words));
    }
    let undefined = with(&[0x0009_0009_0016]);
    corpus.add_words("argument-undefined", "name and value with an index that was not defined", &undefined);
}
