use std::vec;
use std::vec::Vec;

use super::*;
use crate::argument::{Argument, ArgumentValue};
use crate::record::Record;
use crate::testing::{bytes, check_decode, check_golden, decode_error, encode, past_end, sized};
use crate::units::{Koid, ProcessKoid, StringIndex, ThreadIndex, ThreadKoid};

fn string(index: u16) -> StringRef<'static> {
    StringRef::Index(StringIndex::new(index).unwrap())
}

fn thread(index: u8) -> ThreadRef {
    ThreadRef::Index(ThreadIndex::new(index).unwrap())
}

fn inline_thread(process: u64, thread: u64) -> ThreadRef {
    ThreadRef::Inline { process: ProcessKoid(Koid(process)), thread: ThreadKoid(Koid(thread)) }
}

/// An event of thread 1, category 1 and name 4, without arguments.
fn event(timestamp: u64, kind: EventKind) -> Event<'static> {
    Event {
        timestamp: Ticks(timestamp),
        thread: thread(1),
        category: string(1),
        name: string(4),
        kind,
        arguments: Arguments::default(),
    }
}

#[test]
//= docs/format.md#event-record
fn instants() {
    let of_thread = EventKind::Instant { scope: Scope::Thread };
    let record = Record::Event(Event {
        timestamp: Ticks(0x1234_5678_90ab_cdef),
        thread: thread(1),
        category: string(0x7777),
        name: string(0x1234),
        kind: of_thread,
        arguments: Arguments::default(),
    });
    // Header: type 4, 2 words, instant, no arguments, thread 1, category, name; timestamp; no scope.
    check_golden(&[0x1234_7777_0100_0024, 0x1234_5678_90ab_cdef], record);
    // The same with a scope word.
    check_decode(&[0x1234_7777_0100_0034, 0x1234_5678_90ab_cdef, 0], record);
    let of_process = event(1500, EventKind::Instant { scope: Scope::Process });
    check_golden(&[0x0004_0001_0100_0034, 0x5dc, 1], Record::Event(of_process));
    // An unknown scope.
    check_decode(&[0x0004_0001_0100_0034, 0x5dc, 3], Record::Event(event(1500, of_thread)));
    check_decode(&[0x0004_0001_0100_0034, 0x5dc, 1 << 32 | 1], Record::Event(event(1500, of_thread)));
}

#[test]
//= docs/format.md#event-record
fn of_record_takes_one_whole_event() {
    let (timestamp, header) = (1500, 0x0004_0001_0100_0024);
    let of = |words: &[u64]| Event::of_record(&bytes(words)).map(|found| found.unwrap().timestamp);
    assert_eq!(of(&[header, timestamp]), Some(Ticks(timestamp)));
    assert_eq!(of(&[header, timestamp, 0]), None);
    assert_eq!(of(&[header]), None);
    // A kernel object.
    assert_eq!(of(&[header + 3, timestamp]), None);
    assert_eq!(of(&[]), None);
}

#[test]
//= docs/format.md#event-record
fn everything_inline() {
    let arguments = [Argument {
        name: StringRef::Inline(b"argname"),
        value: ArgumentValue::String(StringRef::Inline(b"argvalue")),
    }];
    check_golden(
        &[
            0x8004_8003_0010_00a4, // 10 words, instant, 1 argument, thread, category and name inline
            0x0000_0000_0000_03e8, // timestamp
            0x0000_0000_0000_007b, // process koid
            0x0000_0000_0000_01c8, // thread koid
            0x0000_0000_0074_6163, // cat
            0x0000_0000_656d_616e, // name
            0x0000_8008_8007_0036, // string argument, 3 words, name 7 bytes, value 8 bytes
            0x0065_6d61_6e67_7261, // argname
            0x6575_6c61_7667_7261, // argvalue
            0x0000_0000_0000_0002, // scope
        ],
        Record::Event(Event {
            timestamp: Ticks(1000),
            thread: inline_thread(123, 456),
            category: StringRef::Inline(b"cat"),
            name: StringRef::Inline(b"name"),
            kind: EventKind::Instant { scope: Scope::Global },
            arguments: Arguments::new(&arguments),
        }),
    );
}

#[test]
//= docs/format.md#event-record
fn durations() {
    check_golden(
        &[
            0x8008_8008_0002_0064, // 6 words, duration begin, all inline
            0x0000_0000_0000_000a,
            0x0000_0000_0000_0001,
            0x0000_0000_0000_0002,
            0x4141_4141_5f54_4143, // CAT_AAAA
            0x315f_535f_454d_414e, // NAME_S_1
        ],
        Record::Event(Event {
            timestamp: Ticks(10),
            thread: inline_thread(1, 2),
            category: StringRef::Inline(b"CAT_AAAA"),
            name: StringRef::Inline(b"NAME_S_1"),
            kind: EventKind::DurationBegin,
            arguments: Arguments::default(),
        }),
    );
    check_golden(&[0x0004_0001_0103_0024, 0x9c4], Record::Event(event(2500, EventKind::DurationEnd)));
}

#[test]
//= docs/format.md#event-record
fn complete_duration() {
    let arguments = [
        Argument {
            name: StringRef::Inline(b"arg1"),
            value: ArgumentValue::String(StringRef::Inline(b"val1")),
        },
        Argument { name: StringRef::Inline(b"arg2"), value: ArgumentValue::Pointer(123_456) },
    ];
    check_golden(
        &[
            0x800a_800e_0024_00f4, // 15 words, duration complete, 2 arguments, all inline
            0x0000_0000_0000_0800, // begin
            0x0000_0000_0000_0159, // process koid
            0x0000_0000_0000_02a6, // thread koid
            0x6163_5f74_6e65_7665, // event_ca
            0x0000_7972_6f67_6574, // tegory
            0x616e_5f74_6e65_7665, // event_na
            0x0000_0000_0000_656d, // me
            0x0000_8004_8004_0036, // string argument
            0x0000_0000_3167_7261, // arg1
            0x0000_0000_316c_6176, // val1
            0x0000_0000_8004_0037, // pointer argument
            0x0000_0000_3267_7261, // arg2
            0x0000_0000_0001_e240, // 123456
            0x0000_0000_0000_1000, // end
        ],
        Record::Event(Event {
            timestamp: Ticks(2048),
            thread: inline_thread(345, 678),
            category: StringRef::Inline(b"event_category"),
            name: StringRef::Inline(b"event_name"),
            kind: EventKind::DurationComplete { end: Ticks(4096) },
            arguments: Arguments::new(&arguments),
        }),
    );
}

#[test]
//= docs/format.md#event-record
fn counters() {
    let arguments = [Argument { name: string(0x2345), value: ArgumentValue::Bool(true) }];
    check_golden(
        &[0x1234_7777_0111_0044, 0x1234_5678_90ab_cdef, 0x0000_0001_2345_0019, 0x0000_3344_5566_7788],
        Record::Event(Event {
            timestamp: Ticks(0x1234_5678_90ab_cdef),
            thread: thread(1),
            category: string(0x7777),
            name: string(0x1234),
            kind: EventKind::Counter { id: 0x0000_3344_5566_7788 },
            arguments: Arguments::new(&arguments),
        }),
    );
    let arguments = [Argument { name: string(5), value: ArgumentValue::Int32(-7) }];
    check_golden(
        &[0x0004_0001_0111_0044, 0x001e_8480, 0xffff_fff9_0005_0011, 0x2a],
        Record::Event(Event {
            arguments: Arguments::new(&arguments),
            ..event(2_000_000, EventKind::Counter { id: 42 })
        }),
    );
}

#[test]
//= docs/format.md#event-record
fn async_events_and_flows() {
    let id = 0x1122_3344_5566_7788;
    check_golden(
        &[0x0004_0001_0105_0034, 0xbb8, id],
        Record::Event(event(3000, EventKind::AsyncBegin { id })),
    );
    check_golden(
        &[0x0004_0001_0106_0034, 0xbb8, id],
        Record::Event(event(3000, EventKind::AsyncInstant { id })),
    );
    check_golden(&[0x0004_0001_0107_0034, 0xbb8, id], Record::Event(event(3000, EventKind::AsyncEnd { id })));
    check_golden(
        &[
            0x8008_8008_0008_0074, // 7 words, flow begin, all inline
            0x0000_0000_0000_000c,
            0x0000_0000_0000_0001,
            0x0000_0000_0000_0002,
            0x4141_4141_5f54_4143, // CAT_AAAA
            0x5858_585f_574f_4c46, // FLOW_XXX
            0x0000_0000_0000_0064, // flow id
        ],
        Record::Event(Event {
            timestamp: Ticks(12),
            thread: inline_thread(1, 2),
            category: StringRef::Inline(b"CAT_AAAA"),
            name: StringRef::Inline(b"FLOW_XXX"),
            kind: EventKind::FlowBegin { id: 100 },
            arguments: Arguments::default(),
        }),
    );
    check_golden(
        &[0x0004_0001_0109_0034, 0x2328, 0x64],
        Record::Event(event(9000, EventKind::FlowStep { id: 100 })),
    );
    check_golden(
        &[0x0004_0001_020a_0034, 0x2328, 0x64],
        Record::Event(Event { thread: thread(2), ..event(9000, EventKind::FlowEnd { id: 100 }) }),
    );
}

#[test]
//= docs/format.md#event-record
fn types_of_a_newer_version_keep_their_common_part() {
    for raw in 11..=15 {
        let record = Record::Event(event(7, EventKind::Unknown { raw }));
        let first = 0x0004_0001_0100_0044 | u64::from(raw) << 16;
        check_decode(&[first, 7, 1, 2], record);
        assert_eq!(encode(&record), Err(EncodeError::UnknownType { what: "event" }));
    }
    for raw in 0..=10 {
        assert_eq!(EventType::from_raw(raw).unwrap() as u8, raw);
    }
    assert_eq!(EventType::from_raw(11), None);
}

#[test]
//= docs/format.md#malformed-input
fn parts_past_the_end_are_malformed() {
    assert_eq!(decode_error(&[0x0004_0001_0100_0014]), past_end("timestamp", 1, 0));
    assert_eq!(decode_error(&[0x0004_0001_0000_0024, 1]), past_end("process koid", 1, 0));
    assert_eq!(decode_error(&[0x0004_0001_0000_0034, 1, 2]), past_end("thread koid", 1, 0));
    assert_eq!(decode_error(&[0x0004_8009_0100_0034, 1, 2]), past_end("category", 2, 1));
    assert_eq!(decode_error(&[0xffff_0001_0100_0034, 1, 2]), past_end("event name", 4096, 1));
    assert_eq!(decode_error(&[0x0004_0001_0110_0024, 1]), past_end("argument header", 1, 0));
}

#[test]
//= docs/format.md#malformed-input
fn the_last_word_of_a_kind_is_needed() {
    let what = [
        "counter id",
        "",
        "",
        "end timestamp",
        "async id",
        "async id",
        "async id",
        "flow id",
        "flow id",
        "flow id",
    ];
    for (raw, what) in (1..).zip(what).filter(|(_, what)| !what.is_empty()) {
        let first = 0x0004_0001_0100_0024 | raw << 16;
        assert_eq!(decode_error(&[first, 1]), past_end(what, 1, 0));
    }
}

#[test]
//= docs/format.md#limits
fn a_record_has_4095_words_at_most() {
    // 2 words, 4000 of category, then a name that fills the rest.
    let category = vec![b'c'; 32_000];
    let name = vec![b'n'; 94 * 8];
    let event = |name| Event {
        category: StringRef::Inline(&category),
        name: StringRef::Inline(name),
        ..event(1, EventKind::DurationBegin)
    };
    let largest = Record::Event(event(&name[..93 * 8]));
    assert_eq!(largest.words(), Words(4095));
    let words = encode(&largest).unwrap();
    assert_eq!(words.len(), 4095);
    assert_eq!(Record::decode(&bytes(&words)), Ok(largest));
    let error = EncodeError::TooLarge { limit: Words(4095), found: Words(4096) };
    assert_eq!(encode(&Record::Event(event(&name))), Err(error));
}

#[test]
//= docs/format.md#limits
fn an_event_has_15_arguments_at_most() {
    let arguments = [Argument { name: string(1), value: ArgumentValue::Null }; 16];
    let event = |count| {
        let arguments = Arguments::from_slice(&arguments[..count]);
        Record::Event(Event { arguments, ..event(1, EventKind::DurationBegin) })
    };
    let mut words: Vec<u64> = vec![0x0004_0001_01f2_0114, 1];
    words.extend([0x0001_0010; 15]);
    check_golden(&words, event(15));
    let error = EncodeError::TooManyArguments { limit: 15, found: 16 };
    assert_eq!(encode(&event(16)), Err(error));
}

#[test]
//= docs/format.md#limits
fn strings_have_32_000_bytes_at_most() {
    let text = vec![b'x'; 32_001];
    let long = StringRef::Inline(&text);
    let category = Record::Event(Event { category: long, ..event(1, EventKind::DurationBegin) });
    let error = |what| Err(EncodeError::TooLong { what, limit: 32_000, found: 32_001 });
    assert_eq!(encode(&category), error("category"));
    let name = Record::Event(Event { name: long, ..event(1, EventKind::DurationBegin) });
    assert_eq!(encode(&name), error("event name"));
}

#[test]
//= docs/format.md#event-record
fn reserved_index_ranges_are_ordinary() {
    // A thread index with its top bit set is an index like any other.
    check_golden(
        &[0x7fff_7fff_ff02_0024, 1],
        Record::Event(Event {
            thread: thread(255),
            category: string(0x7fff),
            name: string(0x7fff),
            ..event(1, EventKind::DurationBegin)
        }),
    );
    // An inline reference of length 0 is the empty string.
    let empty =
        Event { category: StringRef::Empty, name: StringRef::Empty, ..event(1, EventKind::DurationBegin) };
    check_decode(&sized(&[0x8000_8000_0102_0024, 1]), Record::Event(empty));
}

#[test]
//= docs/format.md#limits
fn sizes_are_known_at_compile_time() {
    const ARGUMENTS: [Argument<'_>; 1] =
        [Argument { name: StringRef::inline("n"), value: ArgumentValue::Int64(7) }];
    const EVENT: Event<'_> = Event {
        timestamp: Ticks(1),
        thread: ThreadRef::Index(ThreadIndex::new(1).unwrap()),
        category: StringRef::inline("category!"),
        name: StringRef::Empty,
        kind: EventKind::Counter { id: 1 },
        arguments: Arguments::new(&ARGUMENTS),
    };
    const WORDS: Words = EVENT.words();
    const RECORD_WORDS: Words = Record::Event(EVENT).words();
    assert_eq!(WORDS, Words(2 + 2 + 3 + 1));
    assert_eq!(RECORD_WORDS, WORDS);
    let mut room = [0; WORDS.0];
    let mut sink = crate::sink::SliceSink::new(&mut room);
    EVENT.encode(&mut sink).unwrap();
    assert_eq!(sink.words().len(), WORDS.0);
}
