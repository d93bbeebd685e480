use super::*;
use crate::argument::{Argument, ArgumentValue};
use crate::record::Record;
use crate::refs::StringRef;
use crate::testing::{check_decode, check_golden, decode_error, encode, past_end};
use crate::units::{ProcessKoid, StringIndex, ThreadIndex};

fn index(index: u16) -> StringRef<'static> {
    StringRef::Index(StringIndex::new(index).unwrap())
}

fn int32(name: StringRef<'static>, value: i32) -> Argument<'static> {
    Argument { name, value: ArgumentValue::Int32(value) }
}

fn thread(koid: u64) -> ThreadKoid {
    ThreadKoid(Koid(koid))
}

fn inline(process: u64, thread: u64) -> ThreadRef {
    ThreadRef::Inline { process: ProcessKoid(Koid(process)), thread: ThreadKoid(Koid(thread)) }
}

fn indexed(index: u8) -> ThreadRef {
    ThreadRef::Index(ThreadIndex::new(index).unwrap())
}

#[test]
//= docs/format.md#scheduling-record
fn context_switches() {
    // Header: type 8, 6 words, 2 arguments, CPU 0xbbbb, state 2, event 1.
    let arguments = [int32(index(1), 3), int32(index(2), 4)];
    let record = Record::Scheduling(Scheduling::ContextSwitch {
        timestamp: Ticks(0xaabb_ccdd_eeff_0011),
        cpu: 0xbbbb,
        outgoing_state: ThreadState::SUSPENDED,
        outgoing: thread(1),
        incoming: thread(2),
        arguments: Arguments::new(&arguments),
    });
    let words = [0x1000_002b_bbb2_0068, 0xaabb_ccdd_eeff_0011, 1, 2, 0x3_0001_0011, 0x4_0002_0011];
    check_golden(&words, record);
    // Reserved bits set.
    let mut reserved = words;
    reserved[0] |= 0x0fff_ff00_0000_0000;
    check_decode(&reserved, record);
    // A blocked thread gives way to the idle one.
    let arguments = [
        int32(StringRef::inline(OUTGOING_WEIGHT_ARGUMENT), 1024),
        int32(StringRef::inline(INCOMING_WEIGHT_ARGUMENT), IDLE_WEIGHT),
    ];
    check_golden(
        &[
            0x1000_0030_0012_00a8,
            1000,
            0x162e,
            0x2334,
            0x0000_0400_800f_0031,
            0x676e_696f_6774_756f,
            0x0074_6867_6965_775f,
            0x8000_0000_800f_0031,
            0x676e_696d_6f63_6e69,
            0x0074_6867_6965_775f,
        ],
        Record::Scheduling(Scheduling::ContextSwitch {
            timestamp: Ticks(1000),
            cpu: 1,
            outgoing_state: ThreadState::BLOCKED,
            outgoing: thread(5678),
            incoming: thread(9012),
            arguments: Arguments::new(&arguments),
        }),
    );
}

#[test]
//= docs/format.md#scheduling-record
fn wakeups() {
    // Header: type 8, 6 words, 1 argument, CPU 1, event 2.
    let waker = Koid(0x2ccc_cccc_cccc_cccc);
    let arguments = [Argument { name: StringRef::inline(WAKER_ARGUMENT), value: ArgumentValue::Koid(waker) }];
    check_golden(
        &[
            0x2000_0000_0011_0068,
            1,
            0x1aaa_aaaa_aaaa_aaaa,
            0x8005_0038,
            0x0000_0072_656b_6177,
            0x2ccc_cccc_cccc_cccc,
        ],
        Record::Scheduling(Scheduling::ThreadWakeup {
            timestamp: Ticks(1),
            cpu: 1,
            thread: thread(0x1aaa_aaaa_aaaa_aaaa),
            arguments: Arguments::new(&arguments),
        }),
    );
    let arguments = [int32(index(6), 1024)];
    let record = Record::Scheduling(Scheduling::ThreadWakeup {
        timestamp: Ticks(77),
        cpu: 3,
        thread: thread(5678),
        arguments: Arguments::new(&arguments),
    });
    check_golden(&[0x2000_0000_0031_0048, 77, 0x162e, 0x0000_0400_0006_0011], record);
    // Reserved bits set.
    check_decode(&[0x2fff_fff0_0031_0048, 77, 0x162e, 0x0000_0400_0006_0011], record);
}

#[test]
//= docs/format.md#scheduling-record
fn legacy_context_switches() {
    let legacy = |timestamp, cpu, outgoing, incoming, outgoing_priority, incoming_priority| {
        Record::Scheduling(Scheduling::LegacyContextSwitch {
            timestamp: Ticks(timestamp),
            cpu,
            outgoing_state: ThreadState::SUSPENDED,
            outgoing,
            incoming,
            outgoing_priority,
            incoming_priority,
        })
    };
    // Header: type 8, 2 words, CPU 0xbb, state 2, threads 1 and 2, priorities 3 and 4, event 0.
    check_golden(
        &[0x0040_3020_12bb_0028, 0xaabb_ccdd_eeff_0011],
        legacy(0xaabb_ccdd_eeff_0011, 0xbb, indexed(1), indexed(2), 3, 4),
    );
    // Both threads inline, then the first alone, then the second alone.
    check_golden(
        &[0x0010_1000_0201_0068, 2, 0x1a, 0x1b, 0x2c, 0x2d],
        legacy(2, 1, inline(0x1a, 0x1b), inline(0x2c, 0x2d), 1, 1),
    );
    check_golden(&[0x0010_1020_0201_0048, 2, 0x1a, 0x1b], legacy(2, 1, inline(0x1a, 0x1b), indexed(2), 1, 1));
    check_golden(&[0x0010_1000_1201_0048, 2, 0x2c, 0x2d], legacy(2, 1, indexed(1), inline(0x2c, 0x2d), 1, 1));
}

#[test]
//= docs/format.md#scheduling-record
fn fiber_switches_are_read_and_never_written() {
    let arguments = [int32(index(1), 3)];
    let record = Record::Scheduling(Scheduling::FiberSwitch {
        timestamp: Ticks(5),
        outgoing: Koid(7),
        incoming: Koid(8),
        arguments: Arguments::new(&arguments),
    });
    check_decode(&[0x3000_0000_0001_0058, 5, 7, 8, 0x3_0001_0011], record);
    assert_eq!(record.words(), Words(5));
    assert_eq!(encode(&record), Err(EncodeError::ReadOnly { what: "fiber switch" }));
}

#[test]
//= docs/format.md#limits
fn a_state_has_four_bits() {
    let record = |state| {
        Record::Scheduling(Scheduling::ContextSwitch {
            timestamp: Ticks(1),
            cpu: u16::MAX,
            outgoing_state: ThreadState(state),
            outgoing: thread(1),
            incoming: thread(2),
            arguments: Arguments::default(),
        })
    };
    assert_eq!(encode(&record(15)).unwrap()[0], 0x1000_00ff_fff0_0048);
    let error = EncodeError::OutOfRange { what: "thread state", limit: 15, found: 16 };
    assert_eq!(encode(&record(16)), Err(error));
    assert_eq!(ThreadState(5).text(), Some("dead"));
    assert_eq!(ThreadState(6).text(), None);
}

#[test]
//= docs/format.md#malformed-input
fn parts_past_the_end_are_malformed() {
    assert_eq!(decode_error(&[0x1000_0000_0000_0018]), past_end("timestamp", 1, 0));
    assert_eq!(decode_error(&[0x1000_0000_0000_0038, 1, 2]), past_end("incoming thread", 1, 0));
    assert_eq!(decode_error(&[0x1000_0000_0001_0048, 1, 2, 3]), past_end("argument header", 1, 0));
    assert_eq!(decode_error(&[0x2000_0000_0000_0028, 1]), past_end("thread koid", 1, 0));
    assert_eq!(decode_error(&[0x0000_0000_0000_0038, 1, 2]), past_end("thread koid", 1, 0));
    assert_eq!(decode_error(&[0x0000_0000_0000_0048, 1, 2, 3]), past_end("process koid", 1, 0));
    assert_eq!(decode_error(&[0x3000_0000_0000_0038, 1, 2]), past_end("incoming fiber", 1, 0));
}
