use std::vec;
use std::vec::Vec;

use super::*;
use crate::argument::{Argument, ArgumentValue};
use crate::record::Record;
use crate::testing::{bytes, check_decode, check_golden, decode_error, encode, past_end};
use crate::units::{Koid, ProcessKoid, StringIndex, ThreadIndex, ThreadKoid};

const PAYLOAD: &[u8] = b"Some data to write into the buffer";

fn index(index: u16) -> StringRef<'static> {
    StringRef::Index(StringIndex::new(index).unwrap())
}

#[test]
//= docs/format.md#large-record
fn events() {
    // Header: type 15, 10 words, format 0. Then category, name, 1 argument, thread 0xcc.
    let arguments = [Argument { name: index(0x2345), value: ArgumentValue::Bool(true) }];
    let thread = ThreadRef::Index(ThreadIndex::new(0xcc).unwrap());
    let event = LargeBlobEvent {
        timestamp: Ticks(0xaabb_ccdd_eeff_0011),
        thread,
        arguments: Arguments::new(&arguments),
    };
    let blob =
        LargeBlob { category: index(0x7aaa), name: index(0x7bbb), event: Some(event), payload: PAYLOAD };
    let words = [
        0x0000_0000_0000_00af,
        0x0000_0cc1_7bbb_7aaa,
        0xaabb_ccdd_eeff_0011,
        0x0000_0001_2345_0019,
        34,
        0x7461_6420_656d_6f53,
        0x6972_7720_6f74_2061,
        0x206f_746e_6920_6574,
        0x6666_7562_2065_6874,
        0x7265,
    ];
    check_golden(&words, Record::Large(blob));
    // Reserved bits set.
    let mut reserved = words;
    reserved[0] |= 0xffff_f000_0000_0000;
    reserved[1] |= 0xffff_f000_0000_0000;
    check_decode(&reserved, Record::Large(blob));
    // Everything inline: the strings stand before the time, the koids behind it.
    let thread = ThreadRef::Inline { process: ProcessKoid(Koid(7)), thread: ThreadKoid(Koid(9)) };
    let event = LargeBlobEvent { timestamp: Ticks(5), thread, arguments: Arguments::default() };
    check_golden(
        &[0x8f, 0x8001_8002, 0x6162, 0x63, 5, 7, 9, 0],
        Record::Large(LargeBlob {
            category: StringRef::Inline(b"ba"),
            name: StringRef::Inline(b"c"),
            event: Some(event),
            payload: b"",
        }),
    );
}

#[test]
//= docs/format.md#large-record
fn attachments() {
    let blob = LargeBlob { category: index(0x7aaa), name: index(0x7bbb), event: None, payload: PAYLOAD };
    // Header: type 15, 8 words, format 1.
    let words = [
        0x0000_0100_0000_008f,
        0x7bbb_7aaa,
        34,
        0x7461_6420_656d_6f53,
        0x6972_7720_6f74_2061,
        0x206f_746e_6920_6574,
        0x6666_7562_2065_6874,
        0x7265,
    ];
    check_golden(&words, Record::Large(blob));
    let mut reserved = words;
    reserved[1] |= 0xffff_ffff_0000_0000;
    check_decode(&reserved, Record::Large(blob));
}

#[test]
//= docs/format.md#record-header
fn the_size_has_32_bits() {
    for (size, header) in [(4096, 0x0000_0100_0001_000f), (4099, 0x0000_0100_0001_003f)] {
        let payload = vec![7; (size - 3) * 8];
        let blob = LargeBlob { category: index(1), name: index(2), event: None, payload: &payload };
        let words = encode(&Record::Large(blob)).unwrap();
        assert_eq!((words.len(), words[0]), (size, header));
        assert_eq!(Record::decode(&bytes(&words)), Ok(Record::Large(blob)));
    }
}

#[test]
//= docs/format.md#large-record
fn the_payload_may_go_on_behind_the_start() {
    let payload: Vec<u8> = (0..100).collect();
    let blob = LargeBlob { category: index(1), name: index(2), event: None, payload: &payload };
    let encoded = bytes(&encode(&Record::Large(blob)).unwrap());
    for length in 24..=encoded.len() {
        let start = LargeBlobStart::decode(&encoded[..length]).unwrap().unwrap();
        assert_eq!(start.payload_bytes, 100);
        assert_eq!(start.blob, LargeBlob { payload: &payload[..(length - 24).min(100)], ..blob });
    }
    assert_eq!(LargeBlobStart::decode(&encoded[..16]), Err(past_end("payload length", 1, 0)));
    assert_eq!(LargeBlobStart::decode(&bytes(&[0x21, 5])), Ok(None));
    // A payload that the record has no room for, however much of it is there.
    let mut lying = encode(&Record::Large(blob)).unwrap();
    lying[2] = 105;
    assert_eq!(LargeBlobStart::decode(&bytes(&lying)), Err(past_end("blob payload", 14, 13)));
    assert_eq!(LargeBlobStart::decode(&bytes(&lying)[..24]), Err(past_end("blob payload", 14, 13)));
}

#[test]
//= docs/format.md#large-record
fn newer_types_and_formats_are_unknown() {
    for header in [0x0000_0200_0000_002f, 0x0000_0f00_0000_002f, 0x0000_0010_0000_002f] {
        let record = Record::Unknown { header: RecordHeader(header) };
        check_decode(&[header, u64::MAX], record);
        assert_eq!(encode(&record), Err(EncodeError::UnknownType { what: "record" }));
    }
}

#[test]
//= docs/format.md#malformed-input
fn parts_past_the_end_are_malformed() {
    assert_eq!(decode_error(&[0x1f]), past_end("format header", 1, 0));
    assert_eq!(decode_error(&[0x2f, 0x8001]), past_end("category", 1, 0));
    assert_eq!(decode_error(&[0x2f, 0x8001_0000]), past_end("blob name", 1, 0));
    assert_eq!(decode_error(&[0x2f, 0]), past_end("timestamp", 1, 0));
    assert_eq!(decode_error(&[0x4f, 0, 1, 2]), past_end("thread koid", 1, 0));
    assert_eq!(decode_error(&[0x3f, 0x11_0000_0000, 1]), past_end("argument header", 1, 0));
    assert_eq!(decode_error(&[0x3f, 0x10_0000_0000, 1]), past_end("payload length", 1, 0));
    assert_eq!(decode_error(&[0x0000_0100_0000_003f, 0, 1]), past_end("blob payload", 1, 0));
    let huge = decode_error(&[0x0000_0100_0000_003f, 0, u64::MAX]);
    assert_eq!(huge, past_end("blob payload", 1 << 61, 0));
}
