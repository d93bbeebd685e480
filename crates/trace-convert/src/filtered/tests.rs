use super::*;
use generated::{Archive, archives};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use trace_analysis::check::{Limits, check_slice};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::kernel_object::{KernelObject, TYPE_CHANNEL, TYPE_PROCESS, TYPE_THREAD};
use trace_format::large::{LargeBlob, LargeBlobEvent};
use trace_format::loss::LossCode;
use trace_format::record::Record;
use trace_format::refs::StringRef;
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::units::{Koid, ProviderId, ThreadKoid, Ticks};
use trace_reader::{Item, MANAGER, Reader, Value};

mod generated;

fn filtered(archive: &[u8], options: &Options) -> (Vec<u8>, Filtered) {
    let mut output = Vec::new();
    let filtered = filter(|| Ok(archive), &mut output, options).unwrap();
    (output, filtered)
}

/// Problems by kind.
fn problems(archive: &[u8]) -> BTreeMap<&'static str, u64> {
    let report = check_slice(archive, Limits::default()).unwrap();
    report.problems.iter().map(|problem| (problem.kind, problem.count)).collect()
}

/// An event, as far as a filter may not change it, and its arguments.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    provider: ProviderId,
    process: u64,
    category: String,
    name: String,
    kind: EventKind,
    rest: String,
    arguments: Vec<(String, String)>,
    has_sample: [bool; 2],
}

fn events(archive: &[u8], options: &Options) -> Vec<Found> {
    let mut reader = Reader::of_slice(archive).unwrap();
    let mut events = Vec::new();
    while let Some(record) = reader.next_item().unwrap() {
        let Item::Event(event) = record.item else { continue };
        let is_mark = record.provider == MANAGER && event.category == "trace";
        let mut has_sample = [false; 2];
        let mut arguments = Vec::new();
        for (name, value) in event.arguments.iter() {
            let name = name.to_str().into_owned();
            let is_telltale =
                is_mark && options.selects() && (name == "command_line" || name == "categories");
            let is_kept = options.kept_arguments.contains(&name) || !options.strips_arguments && !is_telltale;
            let is_sample = matches!(value, Value::Int32(_) | Value::Double(_));
            has_sample = [has_sample[0] || is_sample, has_sample[1] || is_sample && is_kept];
            if is_kept {
                arguments.push((name, format!("{value:?}")));
            }
        }
        events.push(Found {
            provider: record.provider,
            process: event.thread.process.0,
            category: event.category.to_str().into_owned(),
            name: event.name.to_str().into_owned(),
            kind: event.kind,
            rest: format!("{:?} {:?}", event.time, event.thread),
            arguments,
            has_sample,
        });
    }
    events
}

/// The events that should remain, by another way: with all of them in memory.
fn expected(archive: &Archive, options: &Options) -> Vec<Found> {
    let wanted: BTreeSet<u64> =
        options.processes.iter().map(|name| archive.processes[name.as_str()]).collect();
    let all = events(&archive.bytes, options);
    let mut open: HashMap<String, Vec<bool>> = HashMap::new();
    let mut is_kept = |event: &Found| {
        let is_mark = event.provider == MANAGER && event.category == "trace";
        let has_category = options.categories.is_empty() || options.categories.contains(&event.category);
        let mut is_kept = is_mark || has_category && (wanted.is_empty() || wanted.contains(&event.process));
        let stack = open.entry(event.rest.rsplit_once("Thread").unwrap().1.to_owned()).or_default();
        match event.kind {
            EventKind::DurationBegin => stack.push(is_kept),
            // In these archives, every end has its begin.
            EventKind::DurationEnd => is_kept = stack.pop().unwrap(),
            _ => {}
        }
        is_kept
    };
    let kept: Vec<bool> = all.iter().map(&mut is_kept).collect();
    let is_whole = |event: &Found| {
        let of = |id| move |other: &(&Found, &bool)| flow(other.0.kind) == Some(id) && !other.1;
        match flow(event.kind) {
            Some(id) => !all.iter().zip(&kept).any(|other| of(id)(&other)),
            None => match operation(event.kind) {
                // They cross from one process into another, or do not.
                Some(id) if !wanted.is_empty() => {
                    let same = |other: &&Found| {
                        operation(other.kind) == Some(id)
                            && (&other.category, &other.name) == (&event.category, &event.name)
                    };
                    let processes: BTreeSet<u64> =
                        all.iter().filter(same).map(|other| other.process).collect();
                    processes.iter().all(|process| wanted.contains(process))
                }
                _ => true,
            },
        }
    };
    let remaining = all.iter().zip(&kept).filter(|(event, is_kept)| **is_kept && is_whole(event));
    let is_counter = |event: &Found| matches!(event.kind, EventKind::Counter { .. });
    remaining
        .filter(|(event, _)| !is_counter(event) || event.has_sample != [true, false])
        .map(|(event, _)| event.clone())
        .collect()
}

fn flow(kind: EventKind) -> Option<u64> {
    match kind {
        EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id } => Some(id),
        _ => None,
    }
}

fn operation(kind: EventKind) -> Option<u64> {
    match kind {
        EventKind::AsyncBegin { id } | EventKind::AsyncInstant { id } | EventKind::AsyncEnd { id } => {
            Some(id)
        }
        _ => None,
    }
}

fn options() -> impl Strategy<Value = Options> {
    let some = |list: &'static [&'static str]| {
        proptest::sample::subsequence(list.to_vec(), 0..=list.len())
            .prop_map(|list| list.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let processes = prop_oneof![Just(&[][..]), Just(&["server"][..]), Just(&["worker", "server"][..])];
    let processes = processes.prop_map(|list| list.iter().map(|name| (*name).to_owned()).collect());
    (any::<bool>(), some(&["key", "bytes", "count"]), any::<bool>(), some(&["app", "net", "disk"]), processes)
        .prop_map(
            |(strips_arguments, kept, redacts_texts, categories, processes): (_, _, _, _, Vec<String>)| {
                Options {
                    strips_arguments,
                    kept_arguments: if strips_arguments { kept } else { Vec::new() },
                    redacts_texts,
                    categories,
                    processes,
                }
            },
        )
}

/// Texts that are equal are equal again, and different ones differ: a value and what it became.
fn compare_texts(
    before: &str,
    after: &str,
    texts: &mut HashMap<String, String>,
) -> Result<(), TestCaseError> {
    if !before.starts_with("String(\"") || before == "String(\"\")" {
        let expected = if before.starts_with("Blob(") { "Blob([])" } else { before };
        prop_assert_eq!(after, expected);
        return Ok(());
    }
    prop_assert!(after.starts_with("String(\"text-"), "{}", after);
    prop_assert_eq!(texts.entry(before.to_owned()).or_insert_with(|| after.to_owned()), after);
    let different: BTreeSet<&String> = texts.values().collect();
    prop_assert_eq!(different.len(), texts.len());
    Ok(())
}

fn contains(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    //= docs/filter.md#what-is-in-the-output
    #[test]
    fn the_output_is_as_sound_as_the_input(archive in archives(), options in options()) {
        let (output, result) = filtered(&archive.bytes, &options);
        let (before, after) = (problems(&archive.bytes), problems(&output));
        for (kind, count) in &after {
            prop_assert!(before.get(kind).is_some_and(|before| before >= count), "{}: {:?} {:?}", kind, before, after);
        }
        let (found, wanted) = (events(&output, &Options::default()), expected(&archive, &options));
        let mut texts = HashMap::new();
        prop_assert_eq!(found.len(), wanted.len());
        let of_programs = |events: &[Found]| events.iter().filter(|event| event.provider != MANAGER).count() as u64;
        prop_assert_eq!(result.summary.events, of_programs(&found));
        prop_assert_eq!(result.summary.skipped, []);
        let events = of_programs(&events(&archive.bytes, &options));
        prop_assert_eq!(result.summary.events + result.removed_events, events);
        for (found, wanted) in found.into_iter().zip(wanted) {
            let both = found.arguments.iter().zip(&wanted.arguments);
            for ((name, after), (wanted_name, before)) in both {
                prop_assert_eq!(name, wanted_name);
                if options.redacts_texts {
                    compare_texts(before, after, &mut texts)?;
                } else {
                    prop_assert_eq!(after, before);
                }
            }
            prop_assert_eq!(found.arguments.len(), wanted.arguments.len());
            let anything = |found: Found| Found { arguments: Vec::new(), has_sample: [false; 2], ..found };
            prop_assert_eq!(anything(found), anything(wanted));
        }
        // Texts that belong to one thing alone are gone with it.
        if options.strips_arguments || options.redacts_texts {
            prop_assert!(!contains(&output, "payload"));
        }
        if options.redacts_texts {
            for text in ["server", "worker", "main-thread", "secret", "hidden", "message", "module", "build", "--flag", "myhost"] {
                prop_assert!(!contains(&output, text), "{}", text);
            }
        }
        if options.strips_arguments {
            let has_values = !options.redacts_texts && options.kept_arguments.contains(&"key".to_owned());
            prop_assert!(has_values || !contains(&output, "secret"));
            for key in ["key", "bytes", "count"].iter().filter(|key| !options.kept_arguments.contains(&(**key).to_owned())) {
                prop_assert!(!contains(&output, key), "{}", key);
            }
        }
        let processes = ["server", "worker"].iter().filter(|name| {
            !options.processes.is_empty() && !options.processes.contains(&(**name).to_owned())
        });
        for name in processes {
            prop_assert!(!contains(&output, name), "{}", name);
        }
        for category in ["app", "net", "disk"].iter().filter(|name| {
            !options.categories.is_empty() && !options.categories.contains(&(**name).to_owned())
        }) {
            prop_assert!(!contains(&output, &format!("{category}_event")), "{}", category);
        }
    }

    /// Whatever is in the input, what comes out can be read.
    #[test]
    fn damage_stays_outside(archive in archives(), options in options(), damage in proptest::collection::vec((any::<u64>(), 0..8_u32), 1..6)) {
        let mut bytes = archive.bytes;
        let length = bytes.len() as u64;
        for (place, bit) in damage {
            bytes[(8 + place % (length - 8)) as usize] ^= 1 << bit;
        }
        let mut output = Vec::new();
        let result = filter(|| Ok(&bytes[..]), &mut output, &options);
        prop_assert!(result.is_ok() || check_slice(&bytes, Limits::default()).is_err() || output.is_empty());
        let found = problems(&output);
        let outside = ["malformed", "damaged", "lost", "zero-words", "no-magic", "undefined-string", "undefined-thread", "redefined-string", "redefined-thread"];
        for kind in outside {
            prop_assert!(!found.contains_key(kind), "{:?}", found);
        }
    }
}

//= docs/format.md#ledger-blob
#[test]
fn ledgers_and_losses_stay_true() {
    let mut archive = generated::Writer::new();
    archive.introduce(1, "server");
    archive.loss(1, LossCode(2), 7);
    for name in ["a", "b", "c"] {
        archive.instant(1, 10, "app", name, &[]);
    }
    archive.ledger(1, 7, 0);
    let bytes = archive.finish().bytes;
    assert_eq!(problems(&bytes), BTreeMap::from([("loss", 1)]));
    let options = Options { redacts_texts: true, ..Options::default() };
    let (output, _) = filtered(&bytes, &options);
    assert_eq!(problems(&output), BTreeMap::from([("loss", 1)]));
    // Of a category of which nothing remains, the losses may have been.
    let options = Options { categories: vec!["net".to_owned()], ..Options::default() };
    let (output, result) = filtered(&bytes, &options);
    assert_eq!(problems(&output), BTreeMap::from([("loss", 1)]));
    assert_eq!((result.summary.events, result.removed_events), (0, 3));
    // What does not add up stays as wrong as it was.
    let mut archive = generated::Writer::new();
    archive.introduce(1, "server");
    archive.instant(1, 10, "app", "a", &[]);
    archive.ledger(1, 0, 5);
    let bytes = archive.finish().bytes;
    let unbalanced = |bytes: &[u8]| {
        let report = check_slice(bytes, Limits::default()).unwrap();
        report.problems.iter().map(|problem| problem.first[0].text.clone()).collect::<Vec<_>>()
    };
    let (before, (output, _)) =
        (unbalanced(&bytes), filtered(&bytes, &Options { redacts_texts: true, ..Options::default() }));
    assert_eq!(before.len(), 1);
    let numbers = |text: &str| -> i64 {
        let numbers: Vec<i64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        numbers[1] - numbers[0]
    };
    assert_eq!(numbers(&unbalanced(&output)[0]), numbers(&before[0]), "{before:?}");
}

/// A payload in several pieces, with a category before it whose place changes.
#[test]
fn large_blobs_keep_their_payload_or_lose_all_of_it() {
    let payload: Vec<u8> = (0..3_000_001_u32).map(|number| (number % 251) as u8).collect();
    let mut archive = generated::Writer::new();
    archive.introduce(1, "server");
    let arguments = [Argument { name: StringRef::inline("key"), value: ArgumentValue::Uint32(7) }];
    for category in ["app", "net"] {
        let event = Some(LargeBlobEvent {
            timestamp: trace_format::units::Ticks(5),
            thread: generated::thread(10, 11),
            arguments: Arguments::from_slice(&arguments),
        });
        let (category, name) = (StringRef::inline(category), StringRef::inline("capture"));
        archive.write(&Record::Large(LargeBlob { category, name, event, payload: &payload }));
    }
    archive.instant(1, 10, "net", "after", &[]);
    let bytes = archive.finish().bytes;
    let blobs = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes).unwrap();
        let (mut blobs, mut payload) = (Vec::new(), Vec::new());
        while let Some(record) = reader.next_item().unwrap() {
            match record.item {
                Item::LargeBlob { category, payload: first, payload_bytes, event, .. } => {
                    blobs.push((category.to_str().into_owned(), payload_bytes, event.unwrap().2.len()));
                    payload.extend_from_slice(first);
                }
                Item::LargeBlobPart { payload: next } => payload.extend_from_slice(next),
                _ => {}
            }
        }
        (blobs, payload)
    };
    let options = Options { categories: vec!["net".to_owned()], ..Options::default() };
    let (output, result) = filtered(&bytes, &options);
    assert_eq!(problems(&output), BTreeMap::new());
    let (found, kept) = blobs(&output);
    assert_eq!(found, [("net".to_owned(), 3_000_001, 1)]);
    assert!(kept == payload);
    assert_eq!((result.summary.events, result.removed_records), (1, 1));
    let options = Options { strips_arguments: true, ..Options::default() };
    let (output, _) = filtered(&bytes, &options);
    assert_eq!(problems(&output), BTreeMap::new());
    assert_eq!(blobs(&output).0, [("app".to_owned(), 0, 0), ("net".to_owned(), 0, 0)]);
    assert!(output.len() < 1000, "{}", output.len());
}

/// More strings than a table has room for, each of which becomes longer.
#[test]
fn an_event_whose_placeholders_are_too_large_has_them_in_a_blob() {
    let mut archive = generated::Writer::new();
    archive.introduce(1, "server");
    let names: Vec<String> = (0..33_000).map(|number| format!("{number:04x}")).collect();
    for texts in names.chunks(15) {
        let arguments: Vec<_> = texts
            .iter()
            .map(|text| Argument {
                name: StringRef::Empty,
                value: ArgumentValue::String(StringRef::inline(text)),
            })
            .collect();
        archive.instant(1, 10, "app", "fill", &arguments);
    }
    // As large as a record can be.
    let long = "n".repeat(32_000);
    let mut arguments: Vec<_> = ["w", "x", "y", "z"]
        .iter()
        .map(|text| Argument {
            name: StringRef::Empty,
            value: ArgumentValue::String(StringRef::inline(text)),
        })
        .collect();
    arguments.push(Argument { name: StringRef::Empty, value: ArgumentValue::Int64(9) });
    let category = "c".repeat((4095 - 2 - 2 - 4000 - 10) * 8);
    archive.instant(1, 10, &category, &long, &arguments);
    let bytes = archive.finish().bytes;
    let (output, result) = filtered(&bytes, &Options { redacts_texts: true, ..Options::default() });
    assert_eq!(problems(&output), BTreeMap::new());
    assert_eq!(result.summary.skipped, []);
    let found = events(&output, &Options::default());
    let last = found.iter().find(|event| event.name == long).unwrap();
    let placeholders = (33_006..33_010).map(|number| format!("String(\"text-{number}\")"));
    let expected = placeholders.chain(["Int64(9)".to_owned()]).map(|value| (String::new(), value));
    assert_eq!(last.arguments, expected.collect::<Vec<_>>());
}

//= docs/filter.md#processes
#[test]
fn a_process_that_the_trace_does_not_have_is_named() {
    let mut archive = generated::Writer::new();
    archive.introduce(1, "server");
    archive.instant(1, 10, "app", "a", &[]);
    let bytes = archive.finish().bytes;
    let options =
        Options { processes: ["10", "none", "11"].map(str::to_owned).to_vec(), ..Options::default() };
    let (_, result) = filtered(&bytes, &options);
    assert_eq!(result.missing_processes, ["none", "11"]);
    assert_eq!(result.summary.events, 1);
}

//= docs/filter.md#the-command
#[test]
fn categories_that_the_trace_does_not_have_are_named() {
    let mut archive = generated::Writer::new();
    archive.introduce(1, "server");
    archive.instant(1, 10, "app", "a", &[]);
    archive.instant(1, 10, "net", "b", &[]);
    archive.instant(1, 10, "disk,gpu", "c", &[]);
    let bytes = archive.finish().bytes;
    let wanted = |categories: &[&str]| {
        let categories = categories.iter().map(|name| (*name).to_owned()).collect();
        filtered(&bytes, &Options { categories, ..Options::default() }).1
    };
    let result = wanted(&["ap", "net", "none"]);
    assert_eq!(result.missing_categories, ["ap", "none"]);
    assert_eq!(result.categories, ["app", "disk,gpu", "net", "trace"]);
    let result = wanted(&["app", "net", "gpu", "disk"]);
    assert_eq!((result.missing_categories.len(), result.categories.len()), (0, 0));
    assert_eq!((result.summary.events, result.removed_events), (3, 0));
    let result = wanted(&["gpu"]);
    assert_eq!((result.summary.events, result.removed_events), (1, 2));
    assert_eq!(wanted(&["dis", "k,g"]).missing_categories, ["dis", "k,g"]);
}

//= docs/filter.md#the-command
#[test]
fn categories_and_processes_may_be_patterns() {
    let mut archive = generated::Writer::new();
    archive.introduce(1, "server");
    archive.write(&Record::KernelObject(KernelObject {
        object_type: TYPE_PROCESS,
        koid: Koid(10),
        name: StringRef::inline("server"),
        arguments: Arguments::default(),
    }));
    for category in ["net", "net:tcp", "net:noise", "app,net:noise", "app", ""] {
        archive.instant(1, 10, category, "a", &[]);
    }
    let bytes = archive.finish().bytes;
    let wanted = |categories: &[&str], processes: &[&str]| {
        let [categories, processes] =
            [categories, processes].map(|list| list.iter().map(|name| (*name).to_owned()).collect());
        let (_, found) = filtered(&bytes, &Options { categories, processes, ..Options::default() });
        (found.summary.events, found.missing_categories.len(), found.missing_processes.len())
    };
    assert_eq!(wanted(&["net*"], &[]), (4, 0, 0));
    assert_eq!(wanted(&["net*", "-net:noise"], &[]), (2, 0, 0));
    assert_eq!(wanted(&["-net*", "-x"], &[]), (2, 0, 0));
    assert_eq!(wanted(&["*", "none"], &["ser*"]), (6, 1, 0));
    assert_eq!(wanted(&["app*"], &["*x"]), (0, 0, 1));
}

/// Two processes use the same number for a thread, as they do for virtual ones.
//= docs/filter.md#selection
#[test]
fn names_are_those_of_what_both_select() {
    const SHARED: Koid = Koid(1 << 63 | 77);
    let mut archive = generated::Writer::new();
    for (provider, process, name) in [(1, 10, "one"), (2, 20, "two")] {
        archive.introduce(provider, name);
        let mut named = |object_type, koid, name: &str, process: Option<u64>| {
            let process = process.map(|process| ArgumentValue::Koid(Koid(process)));
            let arguments = process.map(|value| [Argument { name: StringRef::inline("process"), value }]);
            let arguments = Arguments::from_slice(arguments.as_ref().map_or(&[], |list| &list[..]));
            archive.write(&Record::KernelObject(KernelObject {
                object_type,
                koid,
                name: StringRef::inline(name),
                arguments,
            }));
        };
        named(TYPE_PROCESS, Koid(process), &format!("process {name}"), None);
        for (koid, what) in [(SHARED, "shared"), (Koid(process + 1), "own")] {
            named(TYPE_THREAD, koid, &format!("{what} {name}"), Some(process));
        }
        archive.instant(provider, process, "db", "query", &[]);
        let virtual_thread = Event {
            thread: generated::thread(process, SHARED.0),
            category: StringRef::inline(if process == 10 { "ui" } else { "draw" }),
            ..generated::event()
        };
        archive.write(&Record::Event(virtual_thread));
    }
    // From one process to the other.
    archive.write(&Record::Scheduling(Scheduling::ContextSwitch {
        timestamp: Ticks(1000),
        cpu: 0,
        outgoing_state: ThreadState::RUNNING,
        outgoing: ThreadKoid(Koid(11)),
        incoming: ThreadKoid(Koid(21)),
        arguments: Arguments::default(),
    }));
    let bytes = archive.finish().bytes;
    let names = |categories: &[&str], processes: &[&str]| {
        let [categories, processes] =
            [categories, processes].map(|list| list.iter().map(|name| (*name).to_owned()).collect());
        let (output, _) = filtered(&bytes, &Options { categories, processes, ..Options::default() });
        let all = ["process one", "shared one", "own one", "process two", "shared two", "own two"];
        all.into_iter().filter(|name| contains(&output, name)).collect::<Vec<_>>()
    };
    assert_eq!(names(&[], &["10"]), ["process one", "shared one", "own one"]);
    assert_eq!(names(&["db"], &[]), ["process one", "own one", "process two", "own two"]);
    assert_eq!(names(&["draw"], &["20"]), ["process two", "shared two"]);
    assert_eq!(names(&["kernel:sched"], &["10"]), ["process one", "own one"]);
    assert_eq!(names(&["kernel:sched"], &[]), ["process one", "own one", "process two", "own two"]);
    assert_eq!(names(&["ui"], &[]), ["process one", "shared one"]);
}

#[test]
fn an_output_without_room_is_an_error() {
    let archive = generated::Writer::new().finish().bytes;
    let options = Options { redacts_texts: true, ..Options::default() };
    let result = filter(|| Ok(&archive[..]), crate::full::Full(100), &options);
    assert!(matches!(result, Err(ConvertError::Write(_))), "{result:?}");
    let result = filter(|| Ok(&b"{\"nothing\": 1}"[..]), Vec::new(), &options);
    assert!(matches!(result, Err(ConvertError::Read(ReadError::NoTrace { .. }))), "{result:?}");
}

/// The instants of the manager, which every archive of these tests has.
#[test]
fn the_description_of_the_recording_stays() {
    let archive = generated::Writer::new().finish();
    let options = Options { categories: vec!["net".to_owned()], ..Options::default() };
    let (output, _) = filtered(&archive.bytes, &options);
    let found = events(&output, &Options::default());
    let names: Vec<_> = found.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["recording", "recording_end"]);
    let arguments: Vec<_> = found[0].arguments.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(arguments, ["host"]);
    assert!(found.iter().all(|event| matches!(event.kind, EventKind::Instant { scope: Scope::Global })));
}

/// Without its reason, such a begin would take the end of another one.
//= docs/filter.md#arguments
#[test]
fn what_has_no_end_has_none_without_its_arguments() {
    let argument = |name, value| Argument { name: StringRef::inline(name), value };
    let text = |text| ArgumentValue::String(StringRef::inline(text));
    let mut archive = generated::Writer::new();
    archive.introduce(1, "server");
    let own = [
        argument("end", text("open at death")),
        argument("lasted_ns", ArgumentValue::Uint64(7)),
        argument("deeper", ArgumentValue::Uint64(2)),
        argument("secret", text("password")),
    ];
    let remark = [
        argument("provider", ArgumentValue::Uint32(1)),
        argument("process", ArgumentValue::Koid(Koid(10))),
        argument("open", text("open at stop")),
        argument("at", ArgumentValue::Uint64(9)),
        argument("end", text("said by the program")),
    ];
    archive.write(&Record::Event(Event {
        timestamp: Ticks(5),
        thread: generated::thread(10, 11),
        category: StringRef::inline("app"),
        name: StringRef::inline("work"),
        kind: EventKind::DurationBegin,
        arguments: Arguments::from_slice(&own),
    }));
    archive.write(&Record::KernelObject(KernelObject {
        object_type: TYPE_CHANNEL,
        koid: Koid(0),
        name: StringRef::Empty,
        arguments: Arguments::from_slice(&remark),
    }));
    let bytes = archive.finish().bytes;
    let options = Options { strips_arguments: true, redacts_texts: true, ..Options::default() };
    let (output, _) = filtered(&bytes, &options);
    let mut reader = Reader::new(&output[..]).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next_item().unwrap() {
        let arguments = match &record.item {
            Item::Event(event) if event.kind == EventKind::DurationBegin => &event.arguments,
            Item::KernelObject { object_type: TYPE_CHANNEL, arguments, .. } => arguments,
            _ => continue,
        };
        found.extend(arguments.iter().map(|(name, value)| format!("{}={value:?}", name.to_str())));
    }
    let expected = [
        "end=String(\"open at death\")",
        "lasted_ns=Uint64(7)",
        "deeper=Uint64(2)",
        "provider=Uint32(1)",
        "process=Koid(Koid(10))",
        "open=String(\"open at stop\")",
        "at=Uint64(9)",
    ];
    assert_eq!(found, expected);
}
