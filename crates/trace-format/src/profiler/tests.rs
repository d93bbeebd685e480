use super::*;
use crate::record::Record;
use crate::testing::{bytes, check_decode, check_golden, decode_error, encode, past_end};
use crate::units::{Koid, ProcessKoid, ThreadIndex, ThreadKoid};

const BUILD_ID: [u8; 20] = [
    0x33, 0x3e, 0x89, 0xf0, 0xc1, 0x75, 0x00, 0x0c, 0xee, 0x9b, 0x7e, 0x20, 0x1f, 0xed, 0xcd, 0x6f, 0x9b,
    0x4b, 0xa8, 0xae,
];

fn record(kind: ProfilerKind<'_>) -> Record<'_> {
    let thread = ThreadRef::Index(ThreadIndex::new(0xcc).unwrap());
    Record::Profiler(Profiler { timestamp: Ticks(0x1234_5678_90ab_cdef), thread, kind })
}

#[test]
//= docs/format.md#profiler-record
fn modules() {
    // Header: type 10, 7 words, kind 0, thread 0xcc, module, name of 11 bytes, build id of 20.
    let module = record(ProfilerKind::Module { id: 0xabcd, name: b"module_name", build_id: &BUILD_ID });
    let words = [
        0x0140_babc_dcc0_007a,
        0x1234_5678_90ab_cdef,
        0x6e5f_656c_7564_6f6d,
        0x0065_6d61,
        0x0c00_75c1_f089_3e33,
        0x6fcd_ed1f_207e_9bee,
        0xaea8_4b9b,
    ];
    check_golden(&words, module);
    // Reserved bits set.
    let mut reserved = words;
    reserved[0] |= 0xf000_0000_0000_0000;
    check_decode(&reserved, module);
    // Of a process: the thread is inline, and 0.
    check_golden(
        &[0x0000_1000_7000_005a, 5, 1234, 0, 0x61],
        Record::Profiler(Profiler {
            timestamp: Ticks(5),
            thread: ThreadRef::Inline { process: ProcessKoid(Koid(1234)), thread: ThreadKoid(Koid(0)) },
            kind: ProfilerKind::Module { id: 7, name: b"a", build_id: b"" },
        }),
    );
}

#[test]
//= docs/format.md#profiler-record
fn mappings() {
    // Header: type 10, 5 words, kind 1, thread 0xcc, module, flags 5.
    let mmap = record(ProfilerKind::Mmap {
        module: 0xabcd,
        flags: FLAG_READABLE | FLAG_EXECUTABLE,
        start: 0x1000,
        length: 0x2000,
        linked_at: 0x3000,
    });
    check_golden(&[0x0000_5abc_dcc1_005a, 0x1234_5678_90ab_cdef, 0x1000, 0x2000, 0x3000], mmap);
    check_decode(&[0xffff_dabc_dcc1_005a, 0x1234_5678_90ab_cdef, 0x1000, 0x2000, 0x3000], mmap);
}

#[test]
//= docs/format.md#profiler-record
fn backtraces() {
    // Header: type 10, 5 words, kind 2, thread 0xcc, 3 frames.
    let frames = [0x1111_1111_1111_1111, 0x2222_2222_2222_2222, u64::MAX];
    let backtrace = record(ProfilerKind::Backtrace { frames: Frames::new(&frames) });
    let words = [0x0000_0000_3cc2_005a, 0x1234_5678_90ab_cdef, frames[0], frames[1], frames[2]];
    check_golden(&words, backtrace);
    check_golden(
        &[0x0000_0000_0cc2_002a, 0x1234_5678_90ab_cdef],
        record(ProfilerKind::Backtrace { frames: Frames::new(&[]) }),
    );
    // With an inline thread.
    check_golden(
        &[0x3002_007a, 0x1234_5678_90ab_cdef, 0xdead_beef, 0xcafe_f00d, 1, 2, 3],
        Record::Profiler(Profiler {
            timestamp: Ticks(0x1234_5678_90ab_cdef),
            thread: ThreadRef::Inline {
                process: ProcessKoid(Koid(0xdead_beef)),
                thread: ThreadKoid(Koid(0xcafe_f00d)),
            },
            kind: ProfilerKind::Backtrace { frames: Frames::new(&[1, 2, 3]) },
        }),
    );
    let encoded = bytes(&words);
    let Ok(Record::Profiler(Profiler { kind: ProfilerKind::Backtrace { frames: decoded }, .. })) =
        Record::decode(&encoded)
    else {
        panic!("a backtrace was expected")
    };
    assert_eq!(decoded.len(), 3);
    assert!(decoded.iter().eq(frames));
}

#[test]
//= docs/format.md#limits
fn counts_have_their_fields() {
    let text = [b'x'; 256];
    let module = |name, build_id| record(ProfilerKind::Module { id: 1, name, build_id });
    assert_eq!(encode(&module(&text[..255], &text[..255])).unwrap().len(), 66);
    let too_long = |what| Err(EncodeError::TooLong { what, limit: 255, found: 256 });
    assert_eq!(encode(&module(&text, b"")), too_long("module name"));
    assert_eq!(encode(&module(b"", &text)), too_long("build id"));
    let frames = [1; 256];
    let backtrace = |frames| record(ProfilerKind::Backtrace { frames: Frames::new(frames) });
    assert_eq!(encode(&backtrace(&frames[..255])).unwrap().len(), 257);
    let error = EncodeError::OutOfRange { what: "frames", limit: 255, found: 256 };
    assert_eq!(encode(&backtrace(&frames)), Err(error));
    let mmap = ProfilerKind::Mmap { module: 1, flags: 8, start: 0, length: 0, linked_at: 0 };
    let error = EncodeError::OutOfRange { what: "mapping flags", limit: 7, found: 8 };
    assert_eq!(encode(&record(mmap)), Err(error));
}

#[test]
//= docs/format.md#malformed-input
fn parts_past_the_end_are_malformed() {
    assert_eq!(decode_error(&[0x0000_0000_0010_001a]), past_end("timestamp", 1, 0));
    assert_eq!(decode_error(&[0x0000_0000_0000_003a, 1, 2]), past_end("thread koid", 1, 0));
    assert_eq!(decode_error(&[0x0000_1000_0010_002a, 1]), past_end("module name", 1, 0));
    assert_eq!(decode_error(&[0x0010_0000_0010_002a, 1]), past_end("build id", 1, 0));
    assert_eq!(decode_error(&[0x0000_0000_0011_004a, 1, 2, 3]), past_end("linked address", 1, 0));
    assert_eq!(decode_error(&[0x0000_0000_2012_003a, 1, 2]), past_end("frames", 2, 1));
}
