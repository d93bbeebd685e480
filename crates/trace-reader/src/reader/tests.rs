use super::*;
use crate::testing::{COMPLETE, COMPLETE_STARTS, Trickle, bytes};
use proptest::prelude::*;
use trace_format::event::Scope;

const MAGIC: u64 = COMPLETE[0];

/// All items and warnings of a trace that can be followed to its end.
fn read(words: &[u64]) -> (Vec<Resolved>, Vec<Warning>) {
    read_from(&bytes(words)[..])
}

fn read_from(input: impl Read) -> (Vec<Resolved>, Vec<Warning>) {
    let mut reader = Reader::new(input).unwrap();
    let mut items = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        items.push(item);
    }
    assert_eq!(reader.next_item().unwrap(), None);
    assert_eq!(reader.warning_count(), reader.warnings().len() as u64);
    (items, reader.warnings().to_vec())
}

fn events(items: &[Resolved]) -> Vec<&ResolvedEvent> {
    items.iter().filter(|item| matches!(item.item, Item::Event(_))).map(only_event).collect()
}

fn only_event(item: &Resolved) -> &ResolvedEvent {
    match &item.item {
        Item::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

fn text(text: &str) -> Text {
    Text::new(text.as_bytes())
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
    let (items, warnings) = read(&COMPLETE);
    assert_eq!(warnings, []);
    let offsets: Vec<_> = items.iter().map(|item| item.offset.0).collect();
    assert_eq!(offsets, COMPLETE_STARTS.map(|start| start as u64 * 8));
    let providers: Vec<_> = items.iter().map(|item| item.provider.0).collect();
    assert_eq!(providers, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    let found: Vec<_> = items.into_iter().map(|item| item.item).collect();
    let expected = [
        Item::Magic,
        Item::ProviderInfo { name: text("demo") },
        Item::Initialization { rate: TicksPerSecond::NANOSECONDS },
        Item::String { index: 1, value: text("cat") },
        Item::String { index: 2, value: text("work") },
        Item::String { index: 3, value: text("process") },
        Item::Thread { index: 1, process: Koid(1234), thread: Koid(5678) },
        Item::KernelObject { object_type: 1, koid: Koid(1234), name: text("demo"), arguments: Vec::new() },
        Item::KernelObject {
            object_type: 2,
            koid: Koid(5678),
            name: text("main"),
            arguments: vec![(text("process"), Value::Koid(Koid(1234)))],
        },
        Item::Event(ResolvedEvent {
            timestamp: Ticks(1000),
            rate: TicksPerSecond::NANOSECONDS,
            process: Koid(1234),
            thread: Koid(5678),
            category: text("cat"),
            name: text("work"),
            kind: EventKind::DurationComplete { end: Ticks(5000) },
            arguments: vec![(text("n"), Value::Uint32(7))],
        }),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_cut_anywhere_leaves_the_records_before_it() {
    let trace = bytes(&COMPLETE);
    let (whole, _) = read(&COMPLETE);
    for cut in 1..trace.len() {
        let (items, warnings) = read_from(&trace[..cut]);
        assert!(whole.starts_with(&items), "cut at {cut}");
        let end = whole.get(items.len()).map_or(trace.len() as u64, |next| next.offset.0);
        assert!(end <= cut as u64 && (whole.len() == items.len() || whole[items.len()].offset.0 == end));
        let provider = u32::from(items.len() > 1);
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
    let found: Vec<_> = events(&items)
        .into_iter()
        .map(|event| (event.name.clone(), event.process.0, event.thread.0, event.nanos().0))
        .collect();
    let b = || (text("b"), 20, 21, 3_000_000);
    assert_eq!(found, [b(), (text("a"), 10, 11, 3_000), b()]);
    let providers: Vec<_> = items.iter().filter(|item| matches!(item.item, Item::Event(_))).collect();
    assert_eq!(providers.iter().map(|item| item.provider.0).collect::<Vec<_>>(), [2, 1, 2]);
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
    let found: Vec<_> = events(&items).iter().map(|event| (event.name.to_str(), event.thread.0)).collect();
    assert_eq!(found, [("first".into(), 2), ("second".into(), 4)]);
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
    let event = events(&items)[0];
    assert_eq!(event.category, text("<unknown>"));
    assert_eq!((event.process, event.thread, event.nanos()), (Koid(0), Koid(0), Nanos(7)));
    let expected = [
        warning(start, 1, WarningKind::UndefinedThread(1)),
        warning(start, 1, WarningKind::UndefinedString(1)),
    ];
    assert_eq!(warnings, expected);
    assert_eq!(warnings[1].kind.to_string(), "string 1 is not defined");
}

#[test]
fn a_section_of_a_stranger_is_a_provider_without_name() {
    let mut words = vec![MAGIC, section(9)];
    words.extend(string(1, "mine"));
    // Provider 0 is there from the start.
    words.extend([section(0), section(9), 0x44 | (1 << 48), 4, 5, 6]);
    let (items, warnings) = read(&words);
    assert_eq!(warnings, [warning(8, 9, WarningKind::UnknownProvider(ProviderId(9)))]);
    assert_eq!(events(&items)[0].name, text("mine"));
    assert_eq!(items.last().unwrap().provider, ProviderId(9));
}

#[test]
fn events_before_any_provider_are_nanoseconds_of_provider_0() {
    let mut words = vec![MAGIC];
    words.extend(string(1, "x"));
    words.extend([0x1_0033, 1, 2]);
    words.extend(instant(1, 1, 1, 1_500));
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    assert_eq!(items.last().unwrap().provider, ProviderId(0));
    assert_eq!(events(&items)[0].nanos(), Nanos(1_500));
}

#[test]
fn index_0_defines_nothing_and_is_the_empty_string() {
    let mut words = vec![MAGIC, info(1)];
    words.extend(string(0, "no"));
    words.extend([0x33, 1, 2]);
    words.extend([0x44, 9, 3, 4]);
    let (items, warnings) = read(&words);
    assert_eq!(warnings, []);
    let event = events(&items)[0];
    assert_eq!((event.category.clone(), event.name.clone()), (text(""), text("")));
    assert_eq!((event.process, event.thread), (Koid(3), Koid(4)));
}

#[test]
fn a_rate_of_0_keeps_the_one_before() {
    let mut words = vec![MAGIC, info(1), 0x21, 1_000, 0x21, 0, 0x41, 2_000, 5, 6];
    words.extend([0x44, 2_000, 1, 2]);
    let mut shorter = words.clone();
    shorter.drain(6..10);
    let (items, warnings) = read(&shorter);
    assert_eq!(warnings, [warning(32, 1, WarningKind::Malformed(DecodeError::NoTicks))]);
    assert_eq!(events(&items)[0].nanos(), Nanos(2_000_000_000));
    // Four words are an extension, of which the first two are known.
    let (items, _) = read(&words);
    assert_eq!(events(&items)[0].nanos(), Nanos(1_000_000_000));
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
        assert_eq!(items.len(), 2, "{case:x?}");
        assert_eq!(only_event(&items[1]).timestamp, Ticks(1));
        assert_eq!(items[1].offset.0, 8 + case.len() as u64 * 8);
        assert_eq!(warnings.len(), 1);
        assert!(matches!(warnings[0].kind, WarningKind::Malformed(_)), "{case:x?}");
        assert_eq!(warnings[0].offset, Offset(8));
    }
}

#[test]
fn kinds_that_are_not_known_are_skipped_by_size() {
    let sentinel = [0x44, 1, 2, 3];
    let cases: [&[u64]; 10] = [
        &[0x2b, 7], // record types 11 to 14
        &[0x2c, 7],
        &[0x2d, 7],
        &[0x2e, 7],
        &[0x28 | (0xf << 60), 7],         // scheduling
        &[0x2a, 7],                       // profiler
        &[0x26, 7],                       // userspace object
        &[0x5_0020, 7],                   // metadata type 5
        &[0x14_0010],                     // trace info type 1
        &[0xf | (2 << 4) | (5 << 36), 7], // large record type 5
    ];
    for case in cases {
        let words: Vec<_> = [MAGIC].iter().chain(case).chain(&sentinel).copied().collect();
        let (items, warnings) = read(&words);
        assert_eq!(warnings, []);
        let header = RecordHeader(case[0]);
        assert_eq!(items[1].item, Item::Unknown { header, size: Words(case.len()) });
        assert_eq!(only_event(&items[2]).timestamp, Ticks(1));
    }
    // An event type of a newer version is an event still, and an argument of one an argument.
    let (items, warnings) = read(&[MAGIC, 0x1b_0064, 1, 2, 3, 0x2c, 0xff]);
    assert_eq!(warnings, []);
    let event = only_event(&items[1]);
    assert_eq!(event.kind, EventKind::Unknown { raw: 11 });
    assert_eq!(event.arguments, [(text(""), Value::Unknown)]);
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
fn a_lost_position_ends_the_trace_with_what_was_before() {
    let words: Vec<_> = COMPLETE.iter().copied().chain([0x1_0007, MAGIC]).collect();
    let trace = bytes(&words);
    let mut reader = Reader::new(&trace[..]).unwrap();
    for _ in COMPLETE_STARTS {
        assert!(reader.next_item().unwrap().is_some());
    }
    assert!(matches!(reader.next_item(), Err(ReadError::NoSize { offset: Offset(216), .. })));
    assert_eq!(reader.next_item().unwrap(), None);
    assert_eq!(reader.warning_count(), 0);
}

#[test]
fn scopes_are_read_if_they_are_there() {
    let mut words = vec![MAGIC];
    words.extend([0x44, 1, 2, 3]);
    for scope in [0, 1, 2, 3] {
        words.extend([0x54, 1, 2, 3, scope]);
    }
    let (items, _) = read(&words);
    let scopes: Vec<_> = events(&items).iter().map(|event| event.kind).collect();
    let expected = [Scope::Thread, Scope::Thread, Scope::Process, Scope::Global, Scope::Thread];
    assert_eq!(scopes, expected.map(|scope| EventKind::Instant { scope }));
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
    let event = events(&items)[0];
    assert_eq!((event.category.to_str(), event.name.to_str()), ("cat".into(), "name".into()));
    let expected = [
        Value::Null,
        Value::Bool(true),
        Value::Int32(0x1234_5678),
        Value::Uint32(0x5678_90ab),
        Value::Int64(0x1234_5678_90ab_cdef),
        Value::Uint64(0xfedc_ba09_8765_4321),
        Value::Double(f64::from_bits(0x4093_4a45_6d5c_faad)),
        Value::Pointer(0xdead_beef),
        Value::Koid(Koid(0x1234_5678)),
        Value::String(text("value")),
        Value::String(text("inline")),
        Value::String(text("inline")),
        Value::Blob(vec![1, 2, 3, 4, 5]),
    ];
    let mut names = vec![text("arg"); 13];
    names[11] = text("inline");
    assert_eq!(event.arguments, names.into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!(event.argument("arg"), Some(&Value::Null));
    assert_eq!(event.argument("none"), None);
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
        Item::KernelObject {
            object_type: 1,
            koid: Koid(77),
            name: Text::new(b"he\xfflo"),
            arguments: Vec::new(),
        },
        Item::Blob { name: text("pf"), blob_type: 3, payload: vec![0x0a, 2, 8, 1] },
        Item::Log {
            timestamp: Ticks(4000),
            rate: TicksPerSecond::NANOSECONDS,
            process: Koid(1234),
            thread: Koid(5678),
            message: text("hi"),
        },
        Item::ProviderEvent { about: ProviderId(5), event: 1 },
    ];
    let found: Vec<_> = items.into_iter().skip(2).map(|item| item.item).collect();
    assert_eq!(found, expected);
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
fn only_the_first_warnings_are_kept() {
    let words: Vec<_> = [MAGIC].into_iter().chain((0..150).flat_map(|_| instant(1, 0, 0, 1))).collect();
    let trace = bytes(&words);
    let mut reader = Reader::new(&trace[..]).unwrap();
    while reader.next_item().unwrap().is_some() {}
    assert_eq!(reader.warning_count(), 150);
    assert_eq!(reader.warnings().len(), MAX_KEPT_WARNINGS);
    assert_eq!(reader.warnings()[99].offset, Offset(8 + 99 * 16));
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
            prop_assert!(!crate::dump::Line(&item).to_string().contains('\n'));
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
