use super::*;
use crate::ByType;
use crate::dump::Line;
use crate::item::{Item, Value};
use crate::testing::{COMPLETE, COMPLETE_STARTS, Trickle, bytes};
use crate::warning::Warning;
use proptest::prelude::*;
use trace_format::event::EventKind;
use trace_format::units::{Nanos, ProviderId, Ticks, TicksPerSecond, Words};

mod damage;
mod pieces;

const MAGIC: u64 = COMPLETE[0];

/// All lines and warnings of a trace that can be followed to its end.
fn read(words: &[u64]) -> (Vec<String>, Vec<Warning>) {
    let trace = bytes(words);
    let lines = read_slice(&trace);
    assert_eq!(read_from(&trace[..]), lines, "a stream differs from a slice");
    lines
}

fn read_slice(trace: &[u8]) -> (Vec<String>, Vec<Warning>) {
    read_all(Reader::of_slice(trace).unwrap())
}

fn read_from(input: impl Read) -> (Vec<String>, Vec<Warning>) {
    read_all(Reader::new(input).unwrap())
}

fn read_all<I: Input>(mut reader: Reader<I>) -> (Vec<String>, Vec<Warning>) {
    let mut lines = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        lines.push(Line(&item).to_string());
    }
    assert!(reader.next_item().unwrap().is_none());
    let warnings = reader.warnings().first();
    assert_eq!(reader.warnings().count(), warnings.len() as u64);
    (lines, warnings)
}

/// Lines without offset and provider.
fn tails(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.splitn(3, ' ').last().unwrap()).collect()
}

/// The events' lines, without offset.
fn events(lines: &[String]) -> Vec<&str> {
    let is_event = |line: &&str| {
        let word = line.split(' ').nth(2).unwrap();
        ["instant", "counter", "begin", "end", "complete"].contains(&word)
    };
    lines.iter().map(|line| line.split_once(' ').unwrap().1).filter(is_event).collect()
}

fn warning(offset: u64, provider: u32, kind: WarningKind) -> Warning {
    Warning { offset: Offset(offset), provider: ProviderId(provider), kind }
}

/// A string record of at most 8 bytes.
fn string(index: u64, value: &str) -> [u64; 2] {
    let mut stream = [0; 8];
    stream[..value.len()].copy_from_slice(value.as_bytes());
    [0x22 | (index << 16) | ((value.len() as u64) << 32), u64::from_le_bytes(stream)]
}

const fn info(id: u64) -> u64 {
    0x1_0010 | (id << 20)
}

const fn section(id: u64) -> u64 {
    0x2_0010 | (id << 20)
}

/// An instant without scope word, on an indexed thread.
fn instant(thread: u64, category: u64, name: u64, timestamp: u64) -> [u64; 2] {
    [0x24 | (thread << 24) | (category << 32) | (name << 48), timestamp]
}

#[test]
fn the_complete_trace_is_resolved() {
    let (lines, warnings) = read(&COMPLETE);
    assert_eq!(warnings, []);
    assert_eq!(lines.len(), COMPLETE_STARTS.len());
    let trace = bytes(&COMPLETE);
    let mut reader = Reader::of_slice(&trace).unwrap();
    for start in &COMPLETE_STARTS[..9] {
        let record = reader.next_item().unwrap().unwrap();
        assert_eq!(record.offset, Offset(*start as u64 * 8));
        assert!(matches!(record.item, Item::Magic) || record.provider_name == "demo");
    }
    let record = reader.next_item().unwrap().unwrap();
    let Item::Event(event) = record.item else { panic!("{record:?}") };
    assert_eq!(record.bytes, &trace[22 * 8..]);
    assert_eq!((event.time.ticks, event.time.nanos()), (Ticks(1000), Nanos(1000)));
    assert_eq!((event.thread.process.0, event.thread.thread.0), (1234, 5678));
    assert!(event.category == "cat" && event.name == "work");
    assert_eq!(event.kind, EventKind::DurationComplete { end: Ticks(5000) });
    assert_eq!(event.arguments.find("n"), Some(Value::Uint32(7)));
    assert_eq!(event.arguments.find("m"), None);
    assert!(record.names.process(event.thread.process).unwrap() == "demo");
    assert!(record.names.thread(event.thread).unwrap() == "main");
    assert_eq!(record.names.process_of(event.thread.thread), Some(event.thread.process));
}

#[test]
//= docs/format.md#malformed-input
fn a_cut_anywhere_leaves_the_records_before_it() {
    let trace = bytes(&COMPLETE);
    let (whole, _) = read(&COMPLETE);
    for cut in 1..trace.len() {
        let (lines, warnings) = read_from(&trace[..cut]);
        assert!(whole.starts_with(&lines), "cut at {cut}");
        let end = COMPLETE_STARTS.get(lines.len()).map_or(trace.len() as u64, |start| *start as u64 * 8);
        let provider = u32::from(lines.len() > 1);
        let expected = warning(end, provider, WarningKind::Truncated(cut as u64 - end));
        assert_eq!(warnings, if end == cut as u64 { vec![] } else { vec![expected] }, "cut at {cut}");
    }
}

#[test]
fn a_source_of_single_bytes_changes_nothing() {
    let trace = bytes(&COMPLETE);
    assert_eq!(read_from(Trickle { bytes: &trace, is_interrupted: false }), read(&COMPLETE));
}

#[test]
fn tables_are_the_providers_own() {
    let mut words = vec![MAGIC, info(1), 0x21, 1_000_000];
    words.extend(string(5, "a"));
    words.extend([0x1_0033, 10, 11]);
    words.extend([info(2), 0x21, 1_000]);
    words.extend(string(5, "b"));
    words.extend([0x1_0033, 20, 21]);
    words.extend(instant(1, 5, 5, 3));
    words.push(section(1));
    words.extend(instant(1, 5, 5, 3));
    words.push(section(2));
    words.extend(instant(1, 5, 5, 3));
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    let b = "2 0.003000000 instant 20/21 \"b\" \"b\" scope=thread";
    assert_eq!(events(&items), [b, "1 0.000003000 instant 10/11 \"a\" \"a\" scope=thread", b]);
}

#[test]
fn the_last_definition_holds() {
    let mut words = vec![MAGIC, info(1)];
    words.extend(string(1, "first"));
    words.extend([0x1_0033, 1, 2]);
    words.extend(instant(1, 1, 1, 1));
    words.extend(string(1, "second"));
    words.extend([0x1_0033, 3, 4]);
    words.extend(instant(1, 1, 1, 2));
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    let expected = [
        "1 0.000000001 instant 1/2 \"first\" \"first\" scope=thread",
        "1 0.000000002 instant 3/4 \"second\" \"second\" scope=thread",
    ];
    assert_eq!(events(&items), expected);
}

#[test]
fn an_introduction_again_is_a_fresh_start() {
    let mut words = vec![MAGIC, info(1), 0x21, 1_000];
    words.extend(string(1, "gone"));
    words.extend([0x1_0033, 1, 2]);
    words.push(info(1));
    let start = words.len() as u64 * 8;
    words.extend(instant(1, 1, 0, 7));
    let (items, warnings) = read(&words);
    assert_eq!(events(&items), ["1 0.000000007 instant 0/0 \"<unknown>\" \"\" scope=thread"]);
    let expected = [
        warning(start, 1, WarningKind::UndefinedString(1)),
        warning(start, 1, WarningKind::UndefinedThread(1)),
    ];
    assert_eq!(warnings, expected);
    assert_eq!(warnings[0].kind.to_string(), "string 1 is not defined");
}

#[test]
fn a_section_of_an_unknown_provider_is_a_provider_without_name() {
    let mut words = vec![MAGIC, section(9)];
    words.extend(string(1, "mine"));
    // Provider 0 is there from the start.
    words.extend([section(0), section(9), 0x44 | (1 << 48), 4, 5, 6]);
    let (items, warnings) = read(&words);
    assert_eq!(warnings, [warning(8, 9, WarningKind::UnknownProvider(ProviderId(9)))]);
    assert_eq!(events(&items), ["9 0.000000004 instant 5/6 \"\" \"mine\" scope=thread"]);
}

#[test]
fn events_before_any_provider_are_nanoseconds_of_provider_0() {
    let mut words = vec![MAGIC];
    words.extend(string(1, "x"));
    words.extend([0x1_0033, 1, 2]);
    words.extend(instant(1, 1, 1, 1_500));
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    assert_eq!(events(&items), ["0 0.000001500 instant 1/2 \"x\" \"x\" scope=thread"]);
}

#[test]
fn index_0_defines_nothing_and_is_the_empty_string() {
    let mut words = vec![MAGIC, info(1)];
    words.extend(string(0, "no"));
    words.extend([0x33, 1, 2]);
    words.extend([0x44, 9, 3, 4]);
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    assert_eq!(events(&items), ["1 0.000000009 instant 3/4 \"\" \"\" scope=thread"]);
}

#[test]
fn a_rate_of_0_keeps_the_one_before() {
    let mut words = vec![MAGIC, info(1), 0x21, 1_000, 0x21, 0, 0x41, 2_000, 5, 6];
    words.extend([0x44, 2_000, 1, 2]);
    let mut shorter = words.clone();
    shorter.drain(6..10);
    let (items, warnings) = read(&shorter);
    assert_eq!(warnings, [warning(32, 1, WarningKind::Malformed(DecodeError::NoTicks))]);
    assert_eq!(events(&items), ["1 2.000000000 instant 1/2 \"\" \"\" scope=thread"]);
    // Four words are an extension, of which the first two are known.
    let (items, _) = read(&words);
    assert_eq!(events(&items), ["1 1.000000000 instant 1/2 \"\" \"\" scope=thread"]);
}

#[test]
fn malformed_records_are_left_out() {
    let sentinel = [0x44, 1, 2, 3];
    let cases: [&[u64]; 9] = [
        &[0x11],                           // initialization without rate
        &[0x1_0013],                       // thread without koids
        &[0x14],                           // event without timestamp
        &[0x24, 1],                        // event without inline thread
        &[0x1_0044, 1, 2, 3],              // counter without id
        &[0x8009_0000_0000_0044, 1, 2, 3], // inline name past the end
        &[0x10_0054, 1, 2, 3, 0x0],        // argument of size 0
        &[0x10_0054, 1, 2, 3, 0x24],       // argument past the end
        &[0x40_0000_0025, 1],              // blob larger than its record
    ];
    for case in cases {
        let words: Vec<_> = [MAGIC].iter().chain(case).chain(&sentinel).copied().collect();
        let (items, warnings) = read(&words);
        let offset = 8 + case.len() * 8;
        let sentinel = format!("{offset:#010x} 0 0.000000001 instant 2/3 \"\" \"\" scope=thread");
        assert_eq!(items.len(), 3, "{case:x?}");
        assert!(items[1].starts_with("0x00000008 0 - malformed "), "{}", items[1]);
        assert_eq!(items[2], sentinel);
        assert_eq!(warnings.len(), 1);
        assert!(matches!(warnings[0].kind, WarningKind::Malformed(_)), "{case:x?}");
        assert_eq!(warnings[0].offset, Offset(8));
    }
}

#[test]
//= docs/format.md#later-versions
fn kinds_that_are_not_known_are_skipped_by_size() {
    let sentinel = [0x44, 1, 2, 3];
    let cases: [(&[u64], &str); 10] = [
        (&[0x2b, 7], "type=11"),
        (&[0x2c, 7], "type=12"),
        (&[0x2d, 7], "type=13"),
        (&[0x2e, 7], "type=14"),
        (&[0x28 | (0xf << 60), 7], "scheduling"),
        (&[0xf_002a, 7], "profiler"),
        (&[0x5_0020, 7], "metadata"),
        (&[0x14_0010], "metadata"),
        (&[0xf | (2 << 4) | (5 << 36), 7], "large"),
        (&[0xf | (2 << 4) | (3 << 40), 7], "large"),
    ];
    for (case, word) in cases {
        let words: Vec<_> = [MAGIC].iter().chain(case).chain(&sentinel).copied().collect();
        let (items, warnings) = read(&words);
        assert_eq!(warnings, []);
        let words = Words(case.len());
        let expected = format!("- unknown {word} header={:#018x} {words}", case[0]);
        assert_eq!(tails(&items)[1], expected);
        assert_eq!(tails(&items)[2], "0.000000001 instant 2/3 \"\" \"\" scope=thread");
    }
    // An event type of a newer version is an event still, and an argument of one an argument.
    let others =
        [0x28 | 0xe << 60, 7, 0xd_002a, 7, 0x5f | 5 << 36, 7, 7, 7, 7, 0x2f | 3 << 40, 7, 0x15 | 200 << 48];
    let words = [MAGIC, 0x1b_0064, 1, 2, 3, 0x2c, 0xff, 0x2b, 7, 0x5_0010];
    let words = [&words[..], &others, &[0x44, 1, 2, 3]].concat();
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    assert_eq!(tails(&items)[1], "0.000000001 event-11 2/3 \"\" \"\" {\"\"=unknown}");
    let trace = bytes(&words);
    let mut reader = Reader::of_slice(&trace).unwrap();
    while reader.next_item().unwrap().is_some() {}
    let one_of = |number: u8| {
        let mut counts = ByType::default();
        counts.add(number);
        counts
    };
    let expected = Unknown {
        records: one_of(11),
        scheduling: one_of(14),
        profiler: one_of(13),
        large: one_of(5),
        large_blobs: one_of(3),
        metadata: one_of(5),
        events: one_of(11),
        arguments: one_of(12),
        blobs: one_of(200),
    };
    assert_eq!(reader.unknown(), &expected);
    assert_eq!(reader.unknown().record_count(), 5);
}

#[test]
fn zero_words_and_a_missing_magic_number_are_warnings() {
    let mut words = vec![info(1), 0, 0, info(1), 0];
    words.extend(COMPLETE);
    let (items, warnings) = read(&words);
    assert_eq!(items.len(), 2 + COMPLETE_STARTS.len());
    let expected = [
        warning(0, 0, WarningKind::NoMagic),
        warning(8, 1, WarningKind::ZeroWords(2)),
        warning(32, 1, WarningKind::ZeroWords(1)),
    ];
    assert_eq!(warnings, expected);
}

#[test]
//= docs/format.md#damage
fn a_lost_position_ends_the_trace_with_what_was_before() {
    let words: Vec<_> = COMPLETE.iter().copied().chain([0x1_0007, 0x21, 1000]).collect();
    let trace = bytes(&words);
    let mut reader = Reader::new(&trace[..]).unwrap();
    for _ in COMPLETE_STARTS {
        assert!(reader.next_item().unwrap().is_some());
    }
    assert!(matches!(reader.next_item(), Err(ReadError::NoSize { offset: Offset(216), .. })));
    assert!(reader.next_item().unwrap().is_none());
    assert_eq!(reader.warnings().first(), [warning(216, 1, WarningKind::Lost)]);
}

#[test]
fn scopes_are_read_if_they_are_there() {
    let mut words = vec![MAGIC];
    words.extend([0x44, 1, 2, 3]);
    for scope in [0, 1, 2, 3] {
        words.extend([0x54, 1, 2, 3, scope]);
    }
    let (items, _) = read(&words);
    let scopes: Vec<_> = events(&items).iter().map(|line| line.rsplit('=').next().unwrap()).collect();
    assert_eq!(scopes, ["thread", "thread", "process", "global", "thread"]);
}

#[test]
fn every_argument_type_is_resolved() {
    let mut words = vec![MAGIC, info(1)];
    words.extend(string(2, "cat"));
    words.extend(string(3, "name"));
    words.extend(string(11, "value"));
    words.extend([0x0000_0003_7fff_0022, 0x0000_0000_0067_7261]);
    words.extend([0x1_0033, 1, 2]);
    words.extend([0x0003_0002_01d0_0184, 0x1234_5678_90ab_cdef]);
    words.extend([
        0x0000_0000_7fff_0010,
        0x0000_0001_7fff_0019,
        0x1234_5678_7fff_0011,
        0x5678_90ab_7fff_0012,
    ]);
    words.extend([
        0x0000_0000_7fff_0023,
        0x1234_5678_90ab_cdef,
        0x0000_0000_7fff_0024,
        0xfedc_ba09_8765_4321,
    ]);
    words.extend([0x0000_0000_7fff_0025, 0x4093_4a45_6d5c_faad, 0x0000_0000_7fff_0027, 0xdead_beef]);
    words.extend([0x0000_0000_7fff_0028, 0x1234_5678, 0x0000_000b_7fff_0016]);
    words.extend([0x0000_8006_7fff_0026, 0x0000_656e_696c_6e69]);
    words.extend([0x0000_8006_8006_0036, 0x0000_656e_696c_6e69, 0x0000_656e_696c_6e69]);
    words.extend([0x0000_0005_7fff_002a, 0x0000_0005_0403_0201]);
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    let expected = "1 1311768467.294899695 instant 1/2 \"cat\" \"name\" scope=thread {arg=null, arg=true, \
                    arg=305419896i32, arg=1450741931u32, arg=1311768467294899695i64, \
                    arg=18364757930599072545u64, arg=1234.5678, arg=0xdeadbeef, arg=#305419896, \
                    arg=\"value\", arg=\"inline\", inline=\"inline\", arg=blob[5]:0102030405}";
    assert_eq!(events(&items), [expected]);
}

#[test]
fn objects_blobs_logs_and_provider_events_are_resolved() {
    let mut words = vec![MAGIC, info(1)];
    words.extend([0x0000_0080_0501_0037, 77, 0x0000_006f_6cff_6568]);
    words.extend([0x0003_0004_8002_0035, 0x6670, 0x0108_020a]);
    words.extend([0x0000_0000_0002_0059, 4000, 1234, 5678, 0x6968]);
    words.push(0x3_0010 | (5 << 20) | (1 << 52));
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    let expected = [
        "- kernel-object process #77 \"he\\xfflo\"",
        "- blob perfetto \"pf\" blob[4]:0a020801",
        "0.000004000 log 1234/5678 \"hi\"",
        "- provider-event provider=5 event=1",
    ];
    assert_eq!(tails(&items)[2..], expected);
}

#[test]
fn impossible_times_are_warnings() {
    let mut words = vec![MAGIC, info(1), 0x21, 1];
    words.extend([0x44, 9_223_372_036, 1, 2, 0x44, 9_223_372_037, 1, 2]);
    words.extend([0x4_0054, 5, 1, 2, 4]);
    let (items, warnings) = read(&words);
    assert_eq!(events(&items).len(), 3);
    let backwards = WarningKind::EndBeforeBegin { begin: Ticks(5), end: Ticks(4) };
    let expected =
        [warning(64, 1, WarningKind::TimeOutOfRange(Ticks(9_223_372_037))), warning(96, 1, backwards)];
    assert_eq!(warnings, expected);
    assert_eq!(backwards.to_string(), "ends at 4 ticks, before it begins at 5 ticks");
}

#[test]
fn only_the_first_warnings_of_a_kind_are_kept() {
    let words: Vec<_> = [MAGIC].into_iter().chain((0..150).flat_map(|_| instant(1, 0, 0, 1))).collect();
    let trace = bytes(&[&words[..], &[0, MAGIC]].concat());
    let mut reader = Reader::new(&trace[..]).unwrap();
    while reader.next_item().unwrap().is_some() {}
    assert_eq!(reader.warnings().count(), 151);
    let counts: Vec<_> =
        reader.warnings().by_kind().map(|(name, count, first)| (name, count, first.len())).collect();
    assert_eq!(counts, [("undefined-thread", 150, 20), ("zero-words", 1, 1)]);
    let first = reader.warnings().first();
    assert_eq!(
        (first.len(), first[19].offset, first[20].offset),
        (21, Offset(8 + 19 * 16), Offset(8 + 150 * 16))
    );
}

#[test]
fn a_strict_reader_warns_of_what_others_stumble_over() {
    let mut words = vec![MAGIC, info(1), 0x44, 5, 1, 2, 0x21, 1000, 0x21, 2000];
    words.extend(string(1, "a"));
    words.extend(string(1, "a"));
    words.extend(string(1, "b"));
    words.extend([0x1_0033, 1, 2, 0x1_0033, 1, 2, 0x1_0033, 1, 3]);
    words.extend([0x22 | 2 << 16 | 2 << 32, 0xff61]);
    let (_, warnings) = read(&words);
    assert_eq!(warnings, []);
    let trace = bytes(&words);
    let (_, warnings) = read_all(Reader::of_slice(&trace).unwrap().strict().with_table_bytes(1000));
    let rate = |rate| TicksPerSecond::new(rate).unwrap();
    let expected = [
        warning(16, 1, WarningKind::NoRate),
        warning(64, 1, WarningKind::RatesDiffer { found: rate(2000), expected: rate(1000) }),
        warning(112, 1, WarningKind::RedefinedString(1)),
        warning(176, 1, WarningKind::RedefinedThread(1)),
        warning(200, 1, WarningKind::NotUtf8("string")),
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn tables_have_a_limit() {
    let mut words = vec![MAGIC, info(1)];
    words.extend(string(1, "first"));
    words.extend(string(2, "second"));
    words.extend([0x1_0033, 1, 2]);
    words.extend(
        [0x34 | 1 << 24, 1, 0].map(|word| word | if word & 0xf == 4 { 1 << 32 | 2 << 48 } else { 0 }),
    );
    let trace = bytes(&words);
    let (lines, warnings) = read_all(Reader::of_slice(&trace).unwrap().with_table_bytes(16 + 70));
    assert_eq!(events(&lines), ["1 0.000000001 instant 0/0 \"first\" \"<unknown>\" scope=thread"]);
    let full = |offset| warning(offset, 1, WarningKind::TablesFull);
    // The provider before the first is remembered by its number alone.
    assert_eq!(warnings, [full(32), full(48), warning(72, 1, WarningKind::UndefinedThread(1))]);
}

#[test]
fn other_files_are_refused() {
    let error = Reader::new(&b"hello, world"[..]).err().unwrap();
    assert_eq!(error.to_string(), "expected a Fuchsia trace, found text");
}

proptest! {
    /// Words that are often headers of something: no panic, no loop, and every item further on.
    #[test]
    fn any_words_are_read_to_the_end(
        words in proptest::collection::vec((0_u64..16, 0_u64..12, any::<u64>(), any::<bool>()), 0..200),
    ) {
        let words: Vec<_> = words
            .into_iter()
            .map(|(record, size, rest, is_sparse)| {
                record | (size << 4) | (if is_sparse { rest & 0x000f_000f_0f3f_0000 } else { rest & !0xffff })
            })
            .collect();
        let mut trace = MAGIC.to_le_bytes().to_vec();
        trace.extend(bytes(&words));
        let mut reader = Reader::new(&trace[..]).unwrap();
        let mut last = None;
        while let Ok(Some(item)) = reader.next_item() {
            prop_assert!(last < Some(item.offset));
            prop_assert!(!Line(&item).to_string().contains('\n'));
            last = Some(item.offset);
        }
    }

    #[test]
    fn any_bytes_are_read_to_the_end(tail in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut trace = MAGIC.to_le_bytes().to_vec();
        trace.extend(tail);
        let mut reader = Reader::new(&trace[..]).unwrap();
        while let Ok(Some(_)) = reader.next_item() {}
    }
}
