use std::vec;
use std::vec::Vec;

use super::*;
use crate::event::{Event, EventKind, Scope};
use crate::record::Record;
use crate::refs::ThreadRef;
use crate::testing::{bytes, check_decode, check_golden, decode_error, encode, past_end, sized};
use crate::units::{StringIndex, ThreadIndex, Ticks};

fn string(index: u16) -> StringRef<'static> {
    StringRef::Index(StringIndex::new(index).unwrap())
}

/// An instant of category 1, name 4 and thread 1 at time 5.
fn event<'a>(arguments: &'a [Argument<'a>]) -> Record<'a> {
    Record::Event(Event {
        timestamp: Ticks(5),
        thread: ThreadRef::Index(ThreadIndex::new(1).unwrap()),
        category: string(1),
        name: string(4),
        kind: EventKind::Instant { scope: Scope::Thread },
        arguments: Arguments::from_slice(arguments),
    })
}

/// The words of that instant with one argument of these words.
fn with_argument(argument: &[u64]) -> Vec<u64> {
    let mut words = vec![0x0004_0001_0110_0004, 5];
    words.extend(argument);
    sized(&words)
}

#[track_caller]
fn check(argument: &[u64], value: ArgumentValue<'_>) {
    check_golden(&with_argument(argument), event(&[Argument { name: string(5), value }]));
}

/// The arguments of a decoded event.
fn arguments<'a>(record: &Record<'a>) -> Vec<Argument<'a>> {
    match record {
        Record::Event(event) => event.arguments.iter().map(Result::unwrap).collect(),
        other => panic!("expected an event, found {other:?}"),
    }
}

#[test]
//= docs/format.md#arguments
fn all_types() {
    let value = |value| Argument { name: string(0x7fff), value };
    let inline = StringRef::Inline(b"inline");
    let arguments = [
        value(ArgumentValue::Null),
        value(ArgumentValue::Bool(true)),
        value(ArgumentValue::Int32(0x1234_5678)),
        value(ArgumentValue::Uint32(0x5678_90ab)),
        value(ArgumentValue::Int64(0x1234_5678_90ab_cdef)),
        value(ArgumentValue::Uint64(0xfedc_ba09_8765_4321)),
        value(ArgumentValue::Double(1234.5678)),
        value(ArgumentValue::Pointer(0xdead_beef)),
        value(ArgumentValue::Koid(Koid(0x1234_5678))),
        value(ArgumentValue::String(string(11))),
        value(ArgumentValue::String(inline)),
        Argument { name: inline, value: ArgumentValue::String(inline) },
        value(ArgumentValue::Blob(&[1, 2, 3, 4, 5])),
    ];
    check_golden(
        &[
            0x0003_0002_01d0_0184, // event, 24 words, instant, 13 arguments
            0x1234_5678_90ab_cdef,
            0x0000_0000_7fff_0010, // null
            0x0000_0001_7fff_0019, // boolean
            0x1234_5678_7fff_0011, // int32
            0x5678_90ab_7fff_0012, // uint32
            0x0000_0000_7fff_0023, // int64
            0x1234_5678_90ab_cdef,
            0x0000_0000_7fff_0024, // uint64
            0xfedc_ba09_8765_4321,
            0x0000_0000_7fff_0025, // double
            0x4093_4a45_6d5c_faad,
            0x0000_0000_7fff_0027, // pointer
            0x0000_0000_dead_beef,
            0x0000_0000_7fff_0028, // koid
            0x0000_0000_1234_5678,
            0x0000_000b_7fff_0016, // string, indexed
            0x0000_8006_7fff_0026, // string, inline
            0x0000_656e_696c_6e69,
            0x0000_8006_8006_0036, // string, name and value inline
            0x0000_656e_696c_6e69,
            0x0000_656e_696c_6e69,
            0x0000_0005_7fff_002a, // blob
            0x0000_0005_0403_0201,
        ],
        Record::Event(Event {
            timestamp: Ticks(0x1234_5678_90ab_cdef),
            thread: ThreadRef::Index(ThreadIndex::new(1).unwrap()),
            category: string(2),
            name: string(3),
            kind: EventKind::Instant { scope: Scope::Thread },
            arguments: Arguments::new(&arguments),
        }),
    );
}

#[test]
//= docs/format.md#arguments
fn edge_values() {
    check(&[0xffff_ffff_0005_0011], ArgumentValue::Int32(-1));
    check(&[0x8000_0000_0005_0011], ArgumentValue::Int32(i32::MIN));
    check(&[0xffff_ffff_0005_0012], ArgumentValue::Uint32(u32::MAX));
    check(&[0x0005_0023, 1 << 63], ArgumentValue::Int64(i64::MIN));
    check(&[0x0005_0023, u64::MAX], ArgumentValue::Int64(-1));
    check(&[0x0005_0024, u64::MAX], ArgumentValue::Uint64(u64::MAX));
    check(&[0x0005_0016], ArgumentValue::String(StringRef::Empty));
    check(&[0x0005_0019], ArgumentValue::Bool(false));
    check(&[0x0005_001a], ArgumentValue::Blob(b""));
    check(&[0x0000_0008_0005_002a, 0x0807_0605_0403_0201], ArgumentValue::Blob(&[1, 2, 3, 4, 5, 6, 7, 8]));
    check(&[0x0000_0007_0005_002a, 0x0007_0605_0403_0201], ArgumentValue::Blob(&[1, 2, 3, 4, 5, 6, 7]));
}

#[test]
//= docs/format.md#arguments
fn doubles_keep_their_bits() {
    let nan = 0x7ff8_0000_0000_0001;
    let signaling = 0xfff0_0000_dead_beef;
    for bits in [nan, signaling, (-0.0f64).to_bits(), f64::NEG_INFINITY.to_bits(), 1] {
        let value = ArgumentValue::Double(f64::from_bits(bits));
        let words = encode(&event(&[Argument { name: string(5), value }])).unwrap();
        assert_eq!(words, with_argument(&[0x0005_0025, bits]));
        let decoded = bytes(&words);
        match arguments(&Record::decode(&decoded).unwrap())[..] {
            [Argument { value: ArgumentValue::Double(value), .. }] => assert_eq!(value.to_bits(), bits),
            ref other => panic!("expected a double, found {other:?}"),
        }
    }
}

#[test]
//= docs/format.md#arguments
fn reserved_bits_do_not_matter() {
    let value = |value| [Argument { name: string(5), value }];
    let check = |words: &[u64], expected| check_decode(&with_argument(words), event(&value(expected)));
    check(&[0xffff_ffff_0005_0010], ArgumentValue::Null);
    check(&[0xffff_fffe_0005_0019], ArgumentValue::Bool(false));
    check(&[0xffff_ffff_0005_0019], ArgumentValue::Bool(true));
    check(&[0xffff_ffff_0005_0028, 7], ArgumentValue::Koid(Koid(7)));
    check(&[0xffff_000b_0005_0016], ArgumentValue::String(string(11)));
    // An inline value of length 0 is the empty string.
    check(&[0x0000_8000_0005_0016], ArgumentValue::String(StringRef::Empty));
}

#[test]
//= docs/format.md#arguments
fn an_argument_is_skipped_by_its_own_size() {
    // A type of a newer version of 2 words, then an int32 with two words more than needed.
    let words = sized(&[0x0004_0001_0120_0004, 5, 0x0005_002b, u64::MAX, 0x0000_0007_0006_0031, 8, 9]);
    let expected = [
        Argument { name: string(5), value: ArgumentValue::Unknown { raw: 11 } },
        Argument { name: string(6), value: ArgumentValue::Int32(7) },
    ];
    let encoded = bytes(&words);
    let record = Record::decode(&encoded).unwrap();
    assert_eq!(arguments(&record), expected);
    assert_eq!(record, event(&expected));
    // What was decoded is written as it was, what was made up is not.
    assert_eq!(encode(&record).unwrap(), words);
    assert_eq!(encode(&event(&expected)), Err(EncodeError::UnknownType { what: "argument" }));
}

#[test]
//= docs/format.md#malformed-input
fn an_argument_keeps_within_its_size_and_the_record() {
    let error = |argument: &[u64]| decode_error(&with_argument(argument));
    let empty = DecodeError::ArgumentSize { expected: Words(1), found: Words(0) };
    assert_eq!(error(&[0x0005_0000]), empty);
    assert_eq!(error(&[]), past_end("argument header", 1, 0));
    assert_eq!(error(&[0x0005_0020]), past_end("argument", 2, 1));
    assert_eq!(error(&[0x0005_fff0, 0]), past_end("argument", 4095, 2));
    for (kind, upper) in [(3, 0), (4, 0), (5, 0), (6, 0x8001), (7, 0), (8, 0), (10, 1)] {
        // The word of the value is there, but not within the argument.
        assert_eq!(error(&[0x0005_0010 | kind | upper << 32, 0]), past_end("argument value", 1, 0));
    }
    assert_eq!(error(&[0x8009_0020, 0, 0]), past_end("argument name", 2, 1));
    assert_eq!(error(&[0x0000_8001_8001_0026, 0, 0]), past_end("argument value", 1, 0));
    let words = (1 << 32) / 8;
    assert_eq!(error(&[0xffff_ffff_0005_002a, 0]), past_end("argument value", words, 1));
}

#[test]
//= docs/format.md#malformed-input
fn every_argument_is_checked_when_the_record_is_decoded() {
    let good = 0x0005_0010;
    let bad = 0x0005_0013;
    let second = sized(&[0x0004_0001_0120_0004, 5, good, bad]);
    assert_eq!(decode_error(&second), past_end("argument value", 1, 0));
    let missing = sized(&[0x0004_0001_0130_0004, 5, good, good]);
    assert_eq!(decode_error(&missing), past_end("argument header", 1, 0));
}

#[test]
//= docs/format.md#limits
fn strings_of_arguments_have_32_000_bytes_at_most() {
    let text = vec![b'x'; 32_001];
    let error = |what| Err(EncodeError::TooLong { what, limit: 32_000, found: 32_001 });
    let (long, largest) = (StringRef::Inline(&text), StringRef::Inline(&text[..32_000]));
    let name = [Argument { name: long, value: ArgumentValue::Null }];
    assert_eq!(encode(&event(&name)), error("argument name"));
    let value = [Argument { name: string(5), value: ArgumentValue::String(long) }];
    assert_eq!(encode(&event(&value)), error("argument value"));
    let value = [Argument { name: string(5), value: ArgumentValue::String(largest) }];
    assert_eq!(encode(&event(&value)).unwrap().len(), 2 + 1 + 4000);
}

#[test]
//= docs/format.md#limits
fn the_record_limits_an_argument_of_bytes() {
    let payload = vec![7; 4092 * 8 + 1];
    let blob = |length| [Argument { name: string(5), value: ArgumentValue::Blob(&payload[..length]) }];
    assert_eq!(encode(&event(&blob(4092 * 8))).unwrap().len(), 4095);
    let error = EncodeError::TooLarge { limit: Words(4095), found: Words(4096) };
    assert_eq!(encode(&event(&blob(4092 * 8 + 1))), Err(error));
}

#[test]
fn a_list_counts_down() {
    let list = [Argument { name: string(1), value: ArgumentValue::Null }; 3];
    let encoded = bytes(&encode(&event(&list)).unwrap());
    let Record::Event(decoded) = Record::decode(&encoded).unwrap() else {
        panic!("expected an event");
    };
    for arguments in [Arguments::new(&list), decoded.arguments] {
        assert_eq!((arguments.len(), arguments.is_empty(), arguments.words()), (3, false, Words(3)));
        let mut iter = arguments.iter();
        for left in (0..3).rev() {
            assert_eq!(iter.next(), Some(Ok(list[0])));
            assert_eq!(iter.len(), left);
        }
        assert_eq!(iter.next(), None);
    }
    assert!(Arguments::default().is_empty());
}

#[test]
//= docs/format.md#arguments
fn headers_are_the_same_before_and_after_encoding() {
    let list = [
        Argument { name: string(3), value: ArgumentValue::String(string(4)) },
        Argument { name: StringRef::Inline(b"name"), value: ArgumentValue::String(StringRef::Inline(b"x")) },
        Argument { name: StringRef::Empty, value: ArgumentValue::Int64(5) },
        Argument { name: string(6), value: ArgumentValue::Int32(7) },
    ];
    let given = Arguments::new(&list);
    let encoded = bytes(&encode(&event(&list)).unwrap());
    let Record::Event(decoded) = Record::decode(&encoded).unwrap() else { panic!("an event") };
    let headers: Vec<_> = given.headers().collect();
    assert_eq!(headers, decoded.arguments.headers().collect::<Vec<_>>());
    let index = |index| StringIndex::new(index);
    let found: Vec<_> = headers
        .iter()
        .map(|header| (header.size().0, header.name_index(), header.value_index(), header.argument_type()))
        .collect();
    use ArgumentType as Type;
    let expected = [
        (1, index(3), index(4), Some(Type::String)),
        (3, None, None, Some(Type::String)),
        (2, None, None, Some(Type::Int64)),
        (1, index(6), None, Some(Type::Int32)),
    ];
    assert_eq!(found, expected);
    assert_eq!(ArgumentHeader(0x1b).argument_type(), None);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]
    /// What it takes, the close look finds, too.
    #[test]
    fn the_common_case_is_what_the_close_look_finds(
        (raw, size, name, upper) in (0..16_u64, 0..4_u64, proptest::prelude::any::<u16>(), 0..0x1_0000_u64),
        has_size in proptest::prelude::any::<bool>(),
        behind in proptest::collection::vec(proptest::prelude::any::<u64>(), 0..4),
    ) {
        let natural = if [3, 4, 5, 7, 8].contains(&raw) { 2 } else { 1 };
        let size = if has_size { natural } else { size };
        let words = [&[raw | size << 4 | u64::from(name) << 16 | upper << 32], &behind[..]].concat();
        let bytes = bytes(&words);
        if let Some((argument, rest)) = Argument::of_common(&bytes) {
            let mut cursor = Cursor::new(&bytes);
            let decoded = Argument::decode(&mut cursor);
            // As text, because NaN is not equal to itself.
            let expected = (Ok::<_, DecodeError>(argument), rest);
            proptest::prop_assert_eq!(std::format!("{:?}", (decoded, cursor.rest())), std::format!("{:?}", expected));
        } else {
            let is_simple = matches!(raw, 0..=5 | 7..=9) && name & INLINE == 0;
            proptest::prop_assert!(!is_simple || size != natural || words.len() < natural as usize);
        }
    }
}

#[test]
fn arguments_are_equal_if_their_names_and_values_are() {
    let argument = |value| [Argument { name: StringRef::inline("n"), value: ArgumentValue::Uint32(value) }];
    let (one, other) = (argument(1), argument(2));
    let words = [0x8001_0022 | 1 << 32, 0x6e_u64].map(u64::to_le_bytes);
    let decoded = Arguments::of_bytes(words.as_flattened(), 1).unwrap();
    assert_eq!(decoded, Arguments::new(&one));
    assert_eq!(decoded, Arguments::from(&one[..]));
    assert_ne!(decoded, Arguments::new(&other));
    assert_ne!(decoded, Arguments::default());
    assert!(Arguments::of_bytes(words.as_flattened(), 2).is_err());
}
