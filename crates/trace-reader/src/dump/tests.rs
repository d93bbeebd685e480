use super::*;
use crate::Reader;
use crate::testing::{COMPLETE, bytes};

fn dump(words: &[u64]) -> Vec<String> {
    let trace = bytes(words);
    let mut reader = Reader::new(&trace[..]).unwrap();
    let mut lines = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        lines.push(Line(&item).to_string());
    }
    lines
}

/// The lines behind the magic number, without offset and provider.
fn dump_records(words: &[u64]) -> Vec<String> {
    let words: Vec<_> = [COMPLETE[0]].iter().chain(words).copied().collect();
    let lines = dump(&words).into_iter().skip(1);
    lines.map(|line| line.splitn(3, ' ').last().unwrap().to_owned()).collect()
}

//= docs/dump.md#example
#[test]
fn the_complete_trace_has_a_line_for_each_record() {
    let expected = [
        "0x00000000 0 - magic",
        "0x00000008 1 - provider-info \"demo\"",
        "0x00000018 1 - initialization 1000000000 ticks/s",
        "0x00000028 1 - string 1 \"cat\"",
        "0x00000038 1 - string 2 \"work\"",
        "0x00000048 1 - string 3 \"process\"",
        "0x00000058 1 - thread 1 1234/5678",
        "0x00000070 1 - kernel-object process #1234 \"demo\"",
        "0x00000088 1 - kernel-object thread #5678 \"main\" {process=#1234}",
        "0x000000b0 1 0.000001000 complete 1234/5678 \"cat\" \"work\" end=0.000005000 {n=7u32}",
    ];
    assert_eq!(dump(&COMPLETE), expected);
    let page = include_str!("../../../../docs/dump.md");
    for line in expected {
        assert!(page.lines().any(|found| found == line), "not in docs/dump.md: {line}");
    }
}

//= docs/dump.md#lines
#[test]
fn every_kind_of_event_has_its_word() {
    // Thread 1 of process 2 is inline; no category, and the name is x.
    let event = |kind: u64, tail: &[u64]| {
        let size = 5 + tail.len() as u64;
        let mut words = vec![4 | (size << 4) | (kind << 16) | (0x8001 << 48), 12_000_000_345, 2, 1, 0x78];
        words.extend(tail);
        dump_records(&words).remove(0)
    };
    let lines = [
        event(0, &[]),
        event(0, &[1]),
        event(0, &[2]),
        event(1, &[255]),
        event(2, &[]),
        event(3, &[]),
        event(4, &[12_000_000_346]),
        event(5, &[1]),
        event(6, &[1]),
        event(7, &[u64::MAX]),
        event(8, &[0]),
        event(9, &[0x100]),
        event(10, &[0x100]),
        event(11, &[]),
    ];
    let expected = [
        "12.000000345 instant 2/1 \"\" \"x\" scope=thread",
        "12.000000345 instant 2/1 \"\" \"x\" scope=process",
        "12.000000345 instant 2/1 \"\" \"x\" scope=global",
        "12.000000345 counter 2/1 \"\" \"x\" id=0xff",
        "12.000000345 begin 2/1 \"\" \"x\"",
        "12.000000345 end 2/1 \"\" \"x\"",
        "12.000000345 complete 2/1 \"\" \"x\" end=12.000000346",
        "12.000000345 async-begin 2/1 \"\" \"x\" id=0x1",
        "12.000000345 async-instant 2/1 \"\" \"x\" id=0x1",
        "12.000000345 async-end 2/1 \"\" \"x\" id=0xffffffffffffffff",
        "12.000000345 flow-begin 2/1 \"\" \"x\" id=0x0",
        "12.000000345 flow-step 2/1 \"\" \"x\" id=0x100",
        "12.000000345 flow-end 2/1 \"\" \"x\" id=0x100",
        "12.000000345 event-11 2/1 \"\" \"x\"",
    ];
    assert_eq!(lines, expected);
}

//= docs/dump.md#lines
#[test]
fn other_records_have_their_words() {
    let lines = dump_records(&[
        0x2_0010 | (7 << 20), // section of provider 7
        0x3_0010 | (7 << 20), // its buffer was full
        0x3_0010 | (7 << 20) | (3 << 52),
        0x0000_0080_0504_0037,
        77,
        0x0000_006f_6cff_6568,
        0x0001_0012_0000_0045,
        0x0706_0504_0302_0100,
        0x0f0e_0d0c_0b0a_0908,
        0x1110,
        0x0002_0000_0000_0015,
        0x0003_0004_8002_0035,
        0x6670,
        0x0108_020a,
        0x0009_0000_0000_0015,
        0x0000_0000_0002_0059,
        4000,
        1234,
        5678,
        0x6968,
        0x2b,
        7,
        0xf_002a,
        7,
        0x11,
    ]);
    let expected = [
        "- provider-section",
        "- provider-event provider=7 buffer-full",
        "- provider-event provider=7 event=3",
        "- kernel-object type=4 #77 \"he\\xfflo\"",
        "- blob data \"\" blob[18]:000102030405060708090a0b0c0d0e0f…",
        "- blob last-branch \"\" blob[0]",
        "- blob perfetto \"pf\" blob[4]:0a020801",
        "- blob type=9 \"\" blob[0]",
        "0.000004000 log 1234/5678 \"hi\"",
        "- unknown type=11 header=0x000000000000002b 2 words",
        "- unknown profiler header=0x00000000000f002a 2 words",
        "- malformed initialization header=0x0000000000000011 1 word: ticks per second: expected 1 word, 0 words left",
    ];
    assert_eq!(lines, expected);
}

//= docs/dump.md#lines
#[test]
fn scheduling_profiler_and_large_records_have_their_words() {
    let cases: [(&[u64], &str); 14] = [
        (
            &[0x1000_003b_bbb1_0058, 1000, 2, 3, 0x4_0000_0011],
            "0.000001000 context-switch cpu=48059 2 blocked -> 3 {\"\"=4i32}",
        ),
        (&[0x1000_00f0_0010_0048, 1000, 2, 3], "0.000001000 context-switch cpu=1 2 state-15 -> 3"),
        (&[0x2000_0000_0030_0038, 77, 5678], "0.000000077 thread-wakeup cpu=3 5678"),
        (
            &[0x0040_3000_02bb_0068, 9, 1, 2, 3, 4],
            "0.000000009 legacy-context-switch cpu=187 1/2 suspended priority=3 -> 3/4 priority=4",
        ),
        (&[0x3000_0000_0000_0048, 5, 7, 8], "0.000000005 fiber-switch 7 -> 8"),
        (
            &[0x0000_0080_0300_0046, 0xdead_beef, 1234, 0x0067_6f64],
            "- userspace-object 1234 0xdeadbeef \"dog\"",
        ),
        (
            &[0x0020_1000_7000_006a, 5, 1234, 0, 0x61, 0xff01],
            "0.000000005 module 1234/0 id=7 \"a\" build-id=01ff",
        ),
        (
            &[0x0000_5000_7001_007a, 5, 1, 2, 0x1000, 0x2000, 0x3000],
            "0.000000005 mmap 1/2 id=7 r-x start=0x1000 length=0x2000 linked-at=0x3000",
        ),
        (&[0x0000_0000_2002_006a, 5, 1, 2, 0x10, 0x20], "0.000000005 backtrace 1/2 0x10 0x20"),
        (
            &[0x9f, 0x8001_8002, 0x6162, 0x63, 5, 7, 9, 1, 0xff],
            "0.000000005 large-blob 7/9 \"ba\" \"c\" blob[1]:ff",
        ),
        (&[0x0000_0100_0000_004f, 0, 2, 0xffee], "- large-attachment \"\" \"\" blob[2]:eeff"),
        (
            &[0x1_0020_800a_0075, 0x6f6c_3a65_6361_7274, 0x7373, 0x4_0001, 1000, 5, 9],
            "- loss provider=0 \"durable region full\" count=1000 first=5 last=9",
        ),
        // Its claims about another provider are untrusted.
        (
            &[0x1_0020_800a_0075, 0x6f6c_3a65_6361_7274, 0x7373, 0x7_0004_0001, 1000, 5, 9],
            "- blob data \"trace:loss\" blob[32]:0100040007000000e803000000000000…",
        ),
        (
            &[0x1_0028_800c_0085, 0x656c_3a65_6361_7274, 0x7265_6764, 1, 1000, 900, 950, 2],
            "- ledger provider=0 generated=1000 archived=900 records=950 uncertain=2",
        ),
    ];
    for (words, expected) in cases {
        assert_eq!(dump_records(words), [expected]);
    }
}

//= docs/dump.md#lines
//= docs/format.md#function-blob
#[test]
fn frames_have_the_names_that_the_trace_has() {
    let function = |process: u64, start: u64, name: u64| {
        let blob =
            [0x1_0021_800e_0085, 0x7566_3a65_6361_7274, 0x6e6f_6974_636e, 1, process, start, 0x10, name];
        let bytes = 8 - u64::from(name.leading_zeros() / 8);
        [&[blob[0] & !(0xff << 32) | (32 + bytes) << 32], &blob[1..]].concat()
    };
    let backtrace = [0x0000_0000_3002_007a, 5, 1, 2, 0x10, 0x20, 0x21];
    let words = [&function(1, 0x10, 0x61)[..], &function(0, 0x20, 0x6b), &backtrace].concat();
    let lines = [
        "- function 1 start=0x10 length=0x10 \"a\"",
        "- function 0 start=0x20 length=0x10 \"k\"",
        // A caller is at the instruction before the one that it returns to.
        "0.000000005 backtrace 1/2 0x10 \"a\" 0x20 \"a\" 0x21 \"k\"",
    ];
    assert_eq!(dump_records(&words), lines);
    // Of another process; under other code.
    let other = [0x0000_0000_1002_006a - 0x10, 5, 3, 2, 0x10];
    let mmap = [0x0000_5000_7001_007a, 5, 1, 2, 0x1f, 0x100, 0];
    let words = [&function(1, 0x10, 0x61)[..], &other, &mmap, &backtrace].concat();
    let lines = dump_records(&words);
    assert_eq!(lines[1], "0.000000005 backtrace 3/2 0x10");
    assert_eq!(lines[3], "0.000000005 backtrace 1/2 0x10 0x20 0x21");
    // A payload that is no function, and one of a later version.
    let short = [0x1_0008_800e_0055, 0x7566_3a65_6361_7274, 0x6e6f_6974_636e, 1, 0];
    assert!(dump_records(&short)[0].starts_with("- blob data \"trace:function\" blob[8]:01"));
    let mut later = function(1, 0x10, 0x61);
    later[3] = 2;
    assert!(dump_records(&later)[0].starts_with("- blob data \"trace:function\" blob[33]:02"));
}

//= docs/dump.md#arguments
#[test]
fn arguments_show_their_types() {
    let arguments: [(&[u64], &str); 16] = [
        (&[0x8001_0020, 0x6e], "n=null"),
        (&[0x1_8001_0029, 0x62], "b=true"),
        (&[0x19], "\"\"=false"),
        (&[0xffff_fff9_8001_0021, 0x69], "i=-7i32"),
        (&[0xffff_ffff_0000_0012], "\"\"=4294967295u32"),
        (&[0x23, 1 << 63], "\"\"=-9223372036854775808i64"),
        (&[0x24, u64::MAX], "\"\"=18446744073709551615u64"),
        (&[0x25, 0x3fb9_9999_9999_999a], "\"\"=0.1"),
        (&[0x25, 0x4008_0000_0000_0000], "\"\"=3.0"),
        (&[0x25, 0x7ff8_0000_0000_0000], "\"\"=NaN"),
        (&[0x25, 0xfff0_0000_0000_0000], "\"\"=-inf"),
        (&[0x8002_8003_0036, 0x79_2078, 0x0a22], "\"x y\"=\"\\\"\\n\""),
        (&[0x27, 0xdead_beef], "\"\"=0xdeadbeef"),
        (&[0x28, 4660], "\"\"=#4660"),
        (&[0x3_8002_003a, 0x6c62, 0x03_0201], "bl=blob[3]:010203"),
        (&[0x1b], "\"\"=unknown"),
    ];
    for (argument, shown) in arguments {
        let size = 4 + argument.len() as u64;
        let words: Vec<_> = [0x10_0004 | (size << 4), 1, 0, 0].iter().chain(argument).copied().collect();
        let line = format!("0.000000001 instant 0/0 \"\" \"\" scope=thread {{{shown}}}");
        assert_eq!(dump_records(&words), [line]);
    }
    let two = [0x20_0064, 1, 0, 0, 0x7_0000_0011, 0x8_0000_0012];
    let line = "0.000000001 instant 0/0 \"\" \"\" scope=thread {\"\"=7i32, \"\"=8u32}";
    assert_eq!(dump_records(&two), [line]);
}

//= docs/dump.md#text
#[test]
fn text_stays_on_its_line() {
    for (text, quoted) in [
        (&b"plain text"[..], "\"plain text\""),
        (b"a\"b\\c", "\"a\\\"b\\\\c\""),
        (b"\n\r\t\x00\x1b", "\"\\n\\r\\t\\u{0}\\u{1b}\""),
        ("grün €".as_bytes(), "\"grün €\""),
        ("\u{2028}\u{202e}\u{85}".as_bytes(), "\"\\u{2028}\\u{202e}\\u{85}\""),
        (b"c\xe2\x82at\xff", "\"c\\xe2\\x82at\\xff\""),
    ] {
        assert_eq!(Quoted(text).to_string(), quoted);
    }
}
