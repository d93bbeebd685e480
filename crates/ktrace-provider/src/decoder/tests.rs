use super::*;
use crate::page::{Page, PageLayout};
use crate::testing::{Lines, bytes, formats, markers, scheduler};

const BOTH: Texts = Texts { markers: true, others: true };

fn decoder(texts: Texts) -> Decoder<Lines> {
    let mut decoder = Decoder::new(Lines::default(), texts);
    formats().iter().for_each(|format| decoder.add("kernel:test", format));
    decoder
}

fn decode(decoder: &mut Decoder<Lines>, page: &[u8], cpu: u16) -> Vec<String> {
    let text = "field: u64 timestamp; offset:0; size:8; signed:0;\nfield: local_t commit; offset:8; size:8; signed:1;\n\
                field: char data; offset:16; size:4080; signed:0;\n";
    let mut events = Page::new(&PageLayout::parse(text).unwrap(), page).unwrap();
    while let Some(entry) = events.next_entry().unwrap() {
        decoder.event(entry.time, cpu, &page[entry.payload]);
    }
    std::mem::take(&mut decoder.kernel.writer.0)
}

/// An event's payload, of a thread, with these bytes behind the head.
fn payload(id: u16, tid: u32, rest: &str) -> Vec<u8> {
    [&id.to_le_bytes()[..], &[0, 0], &tid.to_le_bytes(), &bytes(rest)].concat()
}

//= docs/kernel.md#records
#[test]
fn a_page_of_the_scheduler_is_what_the_kernel_did() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.belongs(5873, 5873);
    assert_eq!(
        decode(&mut decoder, &scheduler(), 1),
        [
            "thread 5914/5914: python3",
            "process 5914: python3",
            "thread 5873/5873: python3",
            "process 5873: python3",
            "3618594053289 cpu 1: 5873 blocked -> 5914 outgoing_weight=Int32(120) incoming_weight=Int32(120)",
            "thread 0/2147418113: cpu-1",
            "3618594480797 0/2147418113 until 3618594485003 kernel:irq irq irq #=Uint32(36) \
             name=\"virtio1-req.0\" ret=Int32(1)",
            // Not woken by a thread: an interrupt did.
            "3618594489269 cpu 1: wakes 5914 weight=Int32(120)",
            "3618594486375 0/2147418113 until 3618594495188 kernel:irq softirq vec=Uint32(4) name=\"BLOCK\"",
        ]
    );
}

//= docs/kernel.md#markers
#[test]
fn a_page_of_markers_is_what_was_written() {
    let expected = [
        "5268218201304 27071/27071 begin atrace spec_example",
        "5268218445652 27071/27071 counter 0 atrace queue value=Int64(7)",
        "5268738112358 27071/27071 end atrace spec_example",
    ];
    assert_eq!(decode(&mut decoder(BOTH), &markers(), 0), expected);
    let none = Texts { markers: false, others: true };
    assert_eq!(decode(&mut decoder(none), &markers(), 0), [""; 0]);
}

//= docs/kernel.md#markers
#[test]
fn ends_of_markers_have_the_names_of_their_begins() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.belongs(7, 5);
    let texts = ["E|5", "B|5|outer", "B|5|inner", "E|5", "G|5|lane|get|3", "H|5|lane|3", "H|5|lane|3", "E"];
    for (at, text) in texts.iter().enumerate() {
        decoder.event(at as u64, 0, &[&payload(5, 7, &little(0)), text.as_bytes(), b"\n\0"].concat());
    }
    let shown = decoder.kernel.writer.0.iter().map(|line| line.replace(char::is_numeric, ""));
    let id = "{ id:  }";
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            " / begin atrace outer".to_owned(),
            " / begin atrace inner".to_owned(),
            " / end atrace inner".to_owned(),
            format!(" / AsyncBegin {id} atrace get"),
            format!(" / AsyncEnd {id} atrace get"),
            format!(" / AsyncEnd {id} atrace "),
            " / end atrace outer".to_owned(),
        ]
    );
    // A thread that is gone has ended nothing.
    decoder.event(20, 0, &[&payload(5, 7, &little(0)), &b"B|5|last\0"[..]].concat());
    decoder.kernel.forget(7);
    decoder.kernel.writer.0.clear();
    decoder.event(30, 0, &[&payload(5, 7, &little(0)), &b"E\0"[..]].concat());
    assert_eq!(decoder.kernel.writer.0, [""; 0]);
}

/// Whatever bytes programs write, and whichever names files have: texts are UTF-8, and whole.
//= docs/kernel.md#markers
#[test]
fn texts_of_any_bytes_become_utf_8() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.belongs(7, 5);
    let texts: [&[u8]; 7] = [
        b"B|5|a\xff\xfeb\n\0",
        b"E|5\n\0",
        b"N|5|\xc3|\xa9\n\0",
        b"C|5|q\x80|3\0",
        b"\xf0\x9f note\n\0rest",
        b"\x80\x81",
        b"",
    ];
    for (at, text) in texts.iter().enumerate() {
        decoder.event(at as u64, 0, &[&payload(5, 7, &little(0)), *text].concat());
    }
    let head = payload(600, 7, "01000000 00000000 0200000000000000");
    let issue = [&head[..], b"\xffab\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"].concat();
    decoder.event(9, 0, &issue);
    assert_eq!(
        decoder.kernel.writer.0,
        [
            "0 5/7 begin atrace a\u{fffd}\u{fffd}b",
            "1 5/7 end atrace a\u{fffd}\u{fffd}b",
            "2 5/7 instant atrace \u{fffd} track=\"\u{fffd}\"",
            "3 5/7 counter 0 atrace q\u{fffd} value=Int64(3)",
            "4 5/7 instant kernel:probe print text=\"\u{fffd} note\"",
            "5 5/7 instant kernel:probe print text=\"\u{fffd}\u{fffd}\"",
            "6 5/7 instant kernel:probe print text=\"Empty\"",
            "9 5/7 instant kernel:test block_rq_issue dev=Uint32(1) sector=Uint64(2) comm=\"\u{fffd}ab\" \
             sync=Bool(true)",
        ]
    );
}

//= docs/kernel.md#containers
#[test]
fn markers_of_a_container_belong_to_the_process_that_has_written_them() {
    let mut decoder = decoder(BOTH);
    for (process, number) in [(50, 1), (60, 1), (70, 70)] {
        decoder.kernel.belongs(process, process);
        assert_eq!(decoder.kernel.unknown_caller(process, b"C|1|queue|7"), Some(process));
        decoder.kernel.calls_itself(process, number);
        assert_eq!(decoder.kernel.unknown_caller(process, b"C|1|queue|7"), None);
    }
    for process in [50, 60, 70] {
        for text in [&b"C|1|queue|7\0"[..], b"S|1|job|3\0"] {
            decoder.event(10, 0, &[&payload(5, process, &little(0)), text].concat());
        }
    }
    let processes = decoder.kernel.writer.0.iter().map(|line| line.split(' ').nth(1).unwrap());
    // The last one has written for another process.
    assert_eq!(processes.collect::<Vec<_>>(), ["50/50", "50/50", "60/60", "60/60", "1/1", "1/1"]);
    let operations = decoder.kernel.writer.0.iter().filter(|line| line.contains("AsyncBegin"));
    let ids: std::collections::BTreeSet<_> =
        operations.map(|line| line.split("id: ").nth(1).unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 3);
}

//= docs/kernel.md#records
#[test]
fn states_are_bits() {
    for (bits, state) in [
        (0, ThreadState::RUNNING),
        (0x100, ThreadState::RUNNING),
        (1, ThreadState::BLOCKED),
        (2, ThreadState::BLOCKED),
        (4, ThreadState::SUSPENDED),
        (8, ThreadState::SUSPENDED),
        (0x10, ThreadState::DEAD),
        (0x20, ThreadState::DYING),
        (0x40, ThreadState::BLOCKED),
        (0x80, ThreadState::BLOCKED),
        (0x402, ThreadState::BLOCKED),
    ] {
        assert_eq!(thread_state(bits), state, "{bits:#x}");
    }
}

//= docs/kernel.md#records
#[test]
fn what_had_begun_before_has_no_end_and_what_runs_at_the_end_only_begins() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.belongs(7, 5);
    let call = |number: u64| payload(443, 7, &format!("{:016x}", number.swap_bytes()));
    let end = payload(442, 7, "0000000000000000");
    decoder.event(10, 0, &end);
    decoder.event(20, 0, &call(0));
    decoder.event(30, 0, &end);
    decoder.event(40, 0, &call(1_000_000));
    decoder.event(50, 0, &payload(225, 7, "24000000 10000200 6100"));
    decoder.event(60, 0, &payload(223, 7, "01000000"));
    decoder.finish();
    assert_eq!(
        decoder.kernel.writer.0,
        [
            "20 5/7 begin kernel:syscall read",
            "30 5/7 end kernel:syscall read",
            "40 5/7 begin kernel:syscall sys_1000000",
            "thread 0/2147418112: cpu-0",
            "50 0/2147418112 begin kernel:irq irq irq #=Uint32(36) name=\"a\"",
            "60 0/2147418112 begin kernel:irq softirq vec=Uint32(1) name=\"TIMER\"",
        ]
    );
}

//= docs/kernel.md#categories
#[test]
fn an_event_of_its_own_is_an_instant_with_its_fields() {
    let mut decoder = decoder(BOTH);
    let head = payload(600, 7, "01000000 00000000 0200000000000000");
    let issue = [&head[..], b"app\0left over\0\0\0", &[1]].concat();
    decoder.event(10, 0, &issue);
    // An event that was not asked for.
    decoder.event(20, 0, &payload(999, 7, ""));
    assert_eq!(
        decoder.kernel.writer.0,
        [
            "10 0/7 instant kernel:test block_rq_issue dev=Uint32(1) sector=Uint64(2) comm=\"app\" sync=Bool(true)"
        ]
    );
}

//= docs/kernel.md#losses
#[test]
fn a_loss_reaches_from_the_last_event_to_the_next() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.cpu(0);
    decoder.event(10, 0, &payload(443, 7, "0000000000000000"));
    decoder.kernel.writer.0.clear();
    decoder.lost(0, 99, Some(1582));
    decoder.lost(0, 120, None);
    assert_eq!(
        decoder.kernel.writer.0,
        [
            "10 0/2147418112 until 99 kernel:meta drop_stats num_records=Uint32(1582) num_bytes=Uint32(0)",
            "10 0/2147418112 until 120 kernel:meta drop_stats num_records=Uint32(0) num_bytes=Uint32(0)",
        ]
    );
}

//= docs/kernel.md#records
#[test]
fn page_faults_have_five_letters() {
    assert_eq!(&fault_flags(0), b"-----");
    assert_eq!(&fault_flags(0b00111), b"pwu--");
    assert_eq!(&fault_flags(0b10100), b"--u-i");
}

fn little(number: u64) -> String {
    format!("{:016x}", number.swap_bytes())
}

//= docs/kernel.md#records
#[test]
fn what_is_within_each_other_ends_with_what_is_around_it() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.belongs(7, 5);
    decoder.event(10, 0, &payload(602, 7, &little(0x10)));
    decoder.event(20, 0, &payload(604, 7, &(little(0x99) + "02000000")));
    // Its own end was lost.
    decoder.event(30, 0, &payload(603, 7, &little(0)));
    decoder.event(40, 0, &payload(605, 7, &little(0x99)));
    decoder.event(50, 0, &payload(443, 7, &little(0)));
    decoder.event(60, 0, &payload(607, 7, "07000000"));
    assert_eq!(
        decoder.kernel.writer.0,
        [
            "10 5/7 begin kernel:workqueue 0x10",
            "20 5/7 begin kernel:contention contention lock=Pointer(153) flags=Uint32(2)",
            "30 5/7 end kernel:contention contention",
            "30 5/7 end kernel:workqueue 0x10",
            "50 5/7 begin kernel:syscall read",
            "60 5/7 end kernel:syscall read",
        ]
    );
}

//= docs/kernel.md#losses
#[test]
fn what_lost_its_end_does_not_last_for_ever() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.belongs(7, 5);
    decoder.event(10, 0, &payload(443, 7, &little(0)));
    decoder.event(20, 0, &payload(604, 7, &(little(0x99) + "02000000")));
    decoder.event(30, 0, &payload(443, 7, &little(1)));
    decoder.event(40, 0, &payload(442, 7, &little(1)));
    decoder.event(50, 0, &payload(602, 7, &little(0x10)));
    decoder.event(60, 0, &payload(602, 7, &little(0x20)));
    decoder.event(70, 0, &payload(603, 7, &little(0x20)));
    assert_eq!(
        decoder.kernel.writer.0,
        [
            "10 5/7 begin kernel:syscall read",
            "20 5/7 begin kernel:contention contention lock=Pointer(153) flags=Uint32(2)",
            "30 5/7 end kernel:contention contention",
            "30 5/7 end kernel:syscall read",
            "30 5/7 begin kernel:syscall write",
            "40 5/7 end kernel:syscall write",
            "50 5/7 begin kernel:workqueue 0x10",
            "60 5/7 end kernel:workqueue 0x10",
            "60 5/7 begin kernel:workqueue 0x20",
            "70 5/7 end kernel:workqueue 0x20",
        ]
    );
    decoder.kernel.writer.0.clear();
    for at in 100..200 {
        decoder.event(at, 0, &payload(604, 7, &(little(0x99) + "02000000")));
    }
    let depth = decoder.kernel.writer.0.iter().scan(0, |depth, line| {
        *depth += if line.contains(" begin ") { 1 } else { -1 };
        Some(*depth)
    });
    assert_eq!(depth.max(), Some(MAX_NESTED as i32));
}

//= docs/kernel.md#records
#[test]
fn a_thread_that_starts_a_program_takes_its_process_number() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.belongs(5, 5);
    decoder.kernel.belongs(7, 5);
    decoder.event(10, 0, &payload(443, 7, &little(59)));
    let exec = payload(608, 5, "14000900 05000000 07000000 2f62696e2f74727565 00 0000");
    decoder.event(20, 0, &exec);
    decoder.event(30, 0, &payload(609, 5, &("05000000".to_owned() + "74727565" + &"00".repeat(12))));
    decoder.event(40, 0, &payload(442, 5, &little(59)));
    assert_eq!(
        decoder.kernel.writer.0,
        [
            "10 5/7 begin kernel:syscall execve",
            "process 5: true",
            "thread 5/5: true",
            "40 5/5 end kernel:syscall execve",
        ]
    );
}

//= docs/kernel.md#records
#[test]
fn an_interrupt_is_no_thread_that_wakes_others() {
    let mut decoder = decoder(BOTH);
    let woken = format!("{}{} 09000000 78000000 01000000", "6170700000000000", "00".repeat(8));
    decoder.event(10, 0, &payload(375, 7, &woken));
    for flags in [0x08, 0x10, 0x09] {
        let mut waking = payload(375, 7, &woken);
        waking[2] = flags;
        decoder.event(20, 0, &waking);
    }
    let lines = &decoder.kernel.writer.0;
    assert_eq!(lines[lines.len() - 4], "10 cpu 1: wakes 9 weight=Int32(120) waker=#7");
    assert!(
        lines[lines.len() - 3..].iter().all(|line| line == "20 cpu 1: wakes 9 weight=Int32(120)"),
        "{lines:?}"
    );
}

//= docs/kernel.md#categories
#[test]
fn power_and_memory_are_counters() {
    let mut decoder = decoder(BOTH);
    decoder.kernel.belongs(7, 5);
    decoder.event(10, 0, &payload(601, 0, "02000000 01000000"));
    // No state at all is all bits set.
    decoder.event(20, 0, &payload(601, 0, "ffffffff 01000000"));
    decoder.event(30, 0, &payload(606, 7, &("01000000 01000000".to_owned() + &little(8192))));
    // Of another process, which is unknown.
    decoder.event(40, 0, &payload(606, 7, &("00000000 01000000".to_owned() + &little(8192))));
    assert_eq!(
        decoder.kernel.writer.0,
        [
            "thread 0/2147418113: cpu-1",
            "10 0/2147418113 counter 1 kernel:power cpu_idle state=Int64(2)",
            "20 0/2147418113 counter 1 kernel:power cpu_idle state=Int64(-1)",
            "30 5/7 counter 0 kernel:memory rss anon=Int64(8192)",
        ]
    );
}

proptest::proptest! {
    /// Whatever an event has in it: records, and no panic.
    #[test]
    fn any_payload_is_decoded(id in 0_usize..30, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
        let mut decoder = decoder(BOTH);
        let known = formats();
        let id = known.get(id).map_or(id as u16, |format| format.id);
        let payload = [&id.to_le_bytes()[..], &bytes].concat();
        (0..3).for_each(|at| decoder.event(at, 1, &payload));
        decoder.finish();
    }
}
