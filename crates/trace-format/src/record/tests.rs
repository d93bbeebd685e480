use std::vec;
use std::vec::Vec;

use super::*;
use crate::argument::{Argument, ArgumentValue, Arguments};
use crate::event::EventKind;
use crate::refs::{StringRef, ThreadRef};
use crate::testing::{bytes, check_decode, check_golden, encode, sized};
use crate::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond,
};

mod properties;

fn check_unknown(words: &[u64]) {
    let record = Record::Unknown { header: RecordHeader(words[0]) };
    check_decode(words, record);
    assert_eq!(record.words(), Words(words.len()));
    assert_eq!(encode(&record), Err(EncodeError::UnknownType { what: "record" }));
}

#[test]
//= docs/format.md#record-header
fn the_type_says_how_wide_the_size_is() {
    // Word, type bits, size. Large records keep their size in 32 bits, others in 12.
    for (word, record_type, size) in [
        (0x0016_5478_4604_0010, 0, 1),
        (0xffff_ffff_ffff_fff4, 4, 4095),
        (0x0000_0000_0001_0004, 4, 0),
        (0x0000_0000_0000_00af, 15, 10),
        (0x0000_0100_0001_000f, 15, 4096),
        (0x0000_0100_0001_003f, 15, 4099),
        (0xffff_ffff_ffff_ffff, 15, 0xffff_ffff),
        (0, 0, 0),
    ] {
        let header = RecordHeader(word);
        assert_eq!(header.record_type_bits(), record_type, "{header:?}");
        assert_eq!(header.size(), Words(size), "{header:?}");
    }
}

#[test]
//= docs/format.md#record-header
fn types_and_their_numbers() {
    for raw in (0..=10).chain([15]) {
        assert_eq!(RecordType::from_raw(raw).unwrap() as u8, raw);
    }
    for raw in (11..=14).chain([16, 255]) {
        assert_eq!(RecordType::from_raw(raw), None);
    }
}

#[test]
//= docs/format.md#later-versions
fn records_of_newer_versions_are_known_by_their_header() {
    for record_type in 11..=14 {
        check_unknown(&[0x20 | record_type, u64::MAX]);
    }
    // Scheduling events, profiler records, large records and formats that no version has yet.
    for event in 4..=15 {
        check_unknown(&[0x28 | event << 60, u64::MAX]);
    }
    for kind in 3..=15 {
        check_unknown(&[0x2a | kind << 16, u64::MAX]);
    }
    for large_type in 1..=15 {
        check_unknown(&[0x2f | large_type << 36, u64::MAX]);
    }
    for format in 2..=15 {
        check_unknown(&[0x2f | format << 40, u64::MAX]);
    }
}

#[test]
//= docs/format.md#malformed-input
fn the_bytes_are_one_record() {
    let size = |announced, found| Err(DecodeError::Size { announced: Words(announced), found });
    for length in 0..8 {
        assert_eq!(Record::decode(&[0xff; 7][..length.min(7)]), size(1, length.min(7)));
    }
    let record = bytes(&[0x21, 1000]);
    assert_eq!(Record::decode(&record[..8]), size(2, 8));
    assert_eq!(Record::decode(&record[..15]), size(2, 15));
    assert_eq!(Record::decode(&bytes(&[0x21, 1000, 0])), size(2, 24));
    // A size of 0 is no record, whatever its type.
    assert_eq!(Record::decode(&[0; 8]), size(0, 8));
    for record_type in 0..=15 {
        assert_eq!(Record::decode(&bytes(&[record_type])), size(0, 8));
    }
}

#[test]
//= docs/format.md#malformed-input
fn errors_say_what_was_expected_and_found() {
    use std::string::ToString;

    let text = |words: &[u64]| Record::decode(&bytes(words)).unwrap_err().to_string();
    assert_eq!(text(&[0x51, 0]), "record: header says 5 words, found 16 bytes");
    assert_eq!(text(&[0x0004_8009_0102_0034, 1, 2]), "category: expected 2 words, 1 word left");
    assert_eq!(
        text(&[0x0004_0001_0112_0034, 1, 0]),
        "argument: expected a size of at least 1 word, found 0 words"
    );
    assert_eq!(text(&[0x21, 0]), "initialization: expected at least 1 tick per second, found 0");
    let error = EncodeError::TooLarge { limit: Words(4095), found: Words(4096) };
    assert_eq!(error.to_string(), "record: expected at most 4095 words, found 4096 words");
    let error = EncodeError::TooManyArguments { limit: 15, found: 16 };
    assert_eq!(error.to_string(), "arguments: expected at most 15, found 16");
    let error = EncodeError::TooLong { what: "message", limit: 32_000, found: 32_001 };
    assert_eq!(error.to_string(), "message: expected at most 32000 bytes, found 32001");
}

/// A complete trace: one provider, one process, one thread, one duration.
const TRACE: [&[u64]; 10] = [
    &[0x0016_5478_4604_0010],                                          // magic number
    &[0x0040_0000_0011_0020, 0x0000_0000_6f6d_6564],                   // provider 1 "demo"
    &[0x0000_0000_0000_0021, 0x0000_0000_3b9a_ca00],                   // 10^9 ticks per second
    &[0x0000_0003_0001_0022, 0x0000_0000_0074_6163],                   // string 1 "cat"
    &[0x0000_0004_0002_0022, 0x0000_0000_6b72_6f77],                   // string 2 "work"
    &[0x0000_0007_0003_0022, 0x0073_7365_636f_7270],                   // string 3 "process"
    &[0x0000_0000_0001_0033, 0x4d2, 0x162e],                           // thread 1
    &[0x0000_0080_0401_0037, 0x4d2, 0x6f6d_6564],                      // process 1234 "demo"
    &[0x0000_0180_0402_0057, 0x162e, 0x6e69_616d, 0x0003_0028, 0x4d2], // thread 5678 "main"
    &[0x0002_0001_0114_0054, 1000, 0x0000_0007_8001_0022, 0x6e, 5000], // duration "work", n = 7
];

#[test]
//= docs/format.md#record-header
fn a_complete_trace() {
    let string = |index| StringRef::Index(StringIndex::new(index).unwrap());
    let (process, thread) = (ProcessKoid(Koid(1234)), ThreadKoid(Koid(5678)));
    let process_argument = [Argument { name: string(3), value: ArgumentValue::Koid(process.0) }];
    let n = [Argument { name: StringRef::Inline(b"n"), value: ArgumentValue::Uint32(7) }];
    let records = [
        Record::Metadata(Metadata::TraceInfoMagic),
        Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name: b"demo" }),
        Record::Initialization(Initialization { ticks_per_second: TicksPerSecond::NANOSECONDS }),
        Record::String(StringRecord { index: 1, value: b"cat" }),
        Record::String(StringRecord { index: 2, value: b"work" }),
        Record::String(StringRecord { index: 3, value: b"process" }),
        Record::Thread(ThreadRecord { index: 1, process, thread }),
        Record::KernelObject(KernelObject {
            object_type: 1,
            koid: process.0,
            name: StringRef::Inline(b"demo"),
            arguments: Arguments::default(),
        }),
        Record::KernelObject(KernelObject {
            object_type: 2,
            koid: thread.0,
            name: StringRef::Inline(b"main"),
            arguments: Arguments::new(&process_argument),
        }),
        Record::Event(Event {
            timestamp: Ticks(1000),
            thread: ThreadRef::Index(ThreadIndex::new(1).unwrap()),
            category: string(1),
            name: string(2),
            kind: EventKind::DurationComplete { end: Ticks(5000) },
            arguments: Arguments::new(&n),
        }),
    ];
    for (words, record) in TRACE.into_iter().zip(records) {
        check_golden(words, record);
    }
    assert_eq!(TRACE.concat().len(), 27);
}

#[test]
//= docs/format.md#record-header
fn a_cut_trace_gives_the_records_before_the_cut() {
    let trace = bytes(&TRACE.concat());
    let ends: Vec<usize> = TRACE
        .iter()
        .scan(0, |end, words| {
            *end += words.len() * 8;
            Some(*end)
        })
        .collect();
    for cut in 0..=trace.len() {
        let mut rest = &trace[..cut];
        let mut records = 0;
        while let Some(header) = rest.first_chunk() {
            let size = RecordHeader(u64::from_le_bytes(*header)).size();
            let Some((record, behind)) = rest.split_at_checked(size.bytes()) else {
                break;
            };
            Record::decode(record).unwrap();
            records += 1;
            rest = behind;
        }
        assert_eq!(records, ends.iter().filter(|end| **end <= cut).count(), "cut at {cut}");
    }
}

#[test]
//= docs/format.md#limits
fn sizes_fit_their_field() {
    assert_eq!(check_size(Words(4095)), Ok(4095));
    let error = EncodeError::TooLarge { limit: Words(4095), found: Words(4096) };
    assert_eq!(check_size(Words(4096)), Err(error));
    assert!(check_size(Words(usize::MAX)).is_err());
    assert_eq!(sized(&[0x0000_0000_0000_fff1, 1])[0], 0x21);
}
