//! A durable region that is full: what has no definition stands in the records themselves.

use crate::support::{Trace, kinds};
use trace_engine::args::IntoValue;
use trace_engine::{
    BufferMode, Disposition, Event, EventType, Scope, Site, engine, ffi, instant, vthread_duration_begin,
    write_event,
};
use trace_format::slab::LossReason;

const MODES: [BufferMode; 3] = [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming];

/// Fills the durable region but for less than 16 bytes.
fn fill() {
    let mut number = 0;
    while ffi::durable_room() >= 16 {
        let length = (ffi::durable_room() - 8).min(400) as usize;
        let text = format!("{number:0length$}");
        assert!(ffi::string_index(text.as_bytes()).is_some(), "there is room for it");
        number += 1;
    }
}

//= docs/buffer.md#a-full-durable-region
#[test]
fn strings_and_threads_without_room_stand_in_their_events() {
    for mode in MODES {
        let mut trace = Trace::start_in(mode, 64 << 10);
        let before = || instant!("cat", "before", Scope::Thread, "n" => 1_u64);
        before();
        fill();
        before();
        instant!("new category", "new name", Scope::Thread, "new argument" => 2_u64, "n" => 3_u64);
        // All of its texts are known.
        instant!("cat", "before", Scope::Thread, "n" => 4_u64);
        std::thread::spawn(|| instant!("cat", "of a thread", Scope::Thread)).join().unwrap();
        vthread_duration_begin!("cat", "of a virtual thread", "its name", 7);
        trace.pause();
        trace.resume(Disposition::Retain);
        before();
        let read = trace.stop();
        let mut names: Vec<_> = read.events.iter().map(|event| &*event.name).collect();
        // Other threads have slabs of their own.
        names.sort_unstable();
        let expected =
            ["before", "before", "before", "before", "new name", "of a thread", "of a virtual thread"];
        assert_eq!(names, expected, "{mode:?}");
        assert_eq!(read.dropped(), 0, "{mode:?}");
        assert_eq!(read.findings.bad_records, 0, "{mode:?}: {:?}", read.findings.first_bad);
        assert_eq!((read.header.end_ts, read.header.records_dropped), (None, 0), "{mode:?}");
        let new = read.events.iter().find(|event| event.name == "new name").unwrap();
        assert_eq!((new.u64("new argument"), new.u64("n")), (2, 3), "{mode:?}");
        assert_eq!(read.thread_records, 1, "{mode:?}: that of the other found no room");
        assert_eq!(read.by_thread().len(), 3, "{mode:?}");
    }
}

/// An event may have fewer arguments than its site has names for: a span without fields, an arrow. Its record
/// has room for those names alone that stand in it.
//= docs/buffer.md#a-full-durable-region
#[test]
fn names_of_arguments_that_an_event_does_not_have_take_no_room() {
    const BEGIN: Event = Event { event_type: EventType::DurationBegin, start: None, extra: None };
    let site = Site::of_texts("fewer", "none or two", &["a long name", "another long name"]).unwrap();
    for mode in MODES {
        let trace = Trace::start_in(mode, 64 << 10);
        fill();
        write_event(site, BEGIN, &());
        write_event(site, BEGIN, &(7_u64.into_value(), ()));
        write_event(site, BEGIN, &(7_u64.into_value(), (8_u64.into_value(), ())));
        let read = trace.stop();
        let expected = [
            "begin fewer/none or two",
            "begin fewer/none or two a long name=Uint64(7)",
            "begin fewer/none or two a long name=Uint64(7) another long name=Uint64(8)",
        ];
        assert_eq!(read.lines(), expected, "{mode:?}");
        // Header, time, thread if it has no index, category, name; an argument and its name; the other.
        let (event, argument, other) = (2 + 1 + 2, 2 + 2, 2 + 3);
        assert_eq!(read.rolling_bytes(), (3 * event + 2 * argument + other) * 8, "{mode:?}");
    }
}

/// What a site remembers of its strings holds for one run: without room, in the next run, and where that one
/// has room again.
//= docs/buffer.md#a-full-durable-region
#[test]
fn a_site_has_the_right_strings_without_room_and_with_it_again() {
    let mixed = |n: u64| {
        instant!("cat", "mixed", Scope::Thread, "n" => n, "unknown" => n + 1, "m" => n + 2);
        instant!("unknown category", "known", Scope::Thread, "n" => n);
        instant!("cat", "unknown name", Scope::Thread);
    };
    let lines = |n: u64| {
        [
            format!("instant t cat/mixed n=Uint64({n}) unknown=Uint64({}) m=Uint64({})", n + 1, n + 2),
            format!("instant t unknown category/known n=Uint64({n})"),
            "instant t cat/unknown name".to_owned(),
        ]
    };
    for mode in MODES {
        for (disposition, first_kept) in [(Disposition::Retain, 0), (Disposition::ClearEntire, 3)] {
            let mut trace = Trace::start_in(mode, 64 << 10);
            for text in ["cat", "known", "n", "m"] {
                assert!(ffi::string_index(text.as_bytes()).is_some());
            }
            fill();
            (0..3).for_each(mixed);
            trace.pause();
            trace.resume(disposition);
            (3..6).for_each(mixed);
            let read = trace.stop();
            let expected: Vec<_> = (first_kept..6).flat_map(lines).collect();
            assert_eq!(read.lines(), expected, "{mode:?} {disposition:?}");
            assert_eq!(read.findings.bad_records, 0, "{mode:?} {disposition:?}");
        }
    }
}

//= docs/buffer.md#dispositions
#[test]
fn a_run_that_clears_everything_has_room_for_definitions_again() {
    for mode in MODES {
        let mut trace = Trace::start_in(mode, 64 << 10);
        fill();
        instant!("cat", "inline", Scope::Thread);
        trace.pause();
        trace.resume(Disposition::ClearEntire);
        assert_eq!(trace.spare_word(LossReason::DurableFull), 0, "{mode:?}");
        instant!("cat", "anew", Scope::Thread);
        let anew = trace.stop();
        assert_eq!(kinds(&anew), ["instant t cat/anew"], "{mode:?}");
        assert!(anew.dump.iter().any(|line| line.ends_with("\"anew\"")), "{:#?}", anew.dump);
        assert_eq!(anew.thread_records, 1, "{mode:?}");
        assert_eq!(anew.loss(LossReason::Cleared), 1, "{mode:?}");
    }
}

/// Hundreds of names fill the region, and no event is missing.
//= docs/buffer.md#a-full-durable-region
#[test]
fn names_of_virtual_threads_that_find_no_room_cost_no_event() {
    for mode in MODES {
        let trace = Trace::start_in(mode, 64 << 10);
        for id in 0..600_u64 {
            vthread_duration_begin!("cat", "named", "a name of forty-one bytes, more or less...", id, "n" => id);
        }
        instant!("cat", "behind", Scope::Thread, "n" => 600_u64);
        let read = trace.stop();
        assert!(read.events.iter().map(|event| event.u64("n")).eq(0..601), "{mode:?}");
        assert_eq!(read.dropped(), 0, "{mode:?}");
        assert_eq!((read.header.end_ts, read.header.records_dropped), (None, 0), "{mode:?}");
    }
}

/// A long definition that finds no room leaves what there is to shorter ones.
//= docs/buffer.md#durable-region
#[test]
fn a_definition_that_is_too_long_takes_no_room_from_shorter_ones() {
    let trace = Trace::start(64 << 10, &[]);
    let room = ffi::durable_room();
    let long = vec![b'x'; room as usize];
    assert_eq!(ffi::string_index(&long), None);
    assert_eq!(ffi::durable_room(), room - 80, "the calling thread has its name and its index");
    assert!(ffi::string_index(b"short").is_some());
    assert_eq!(ffi::durable_room(), room - 80 - 16);
    assert_eq!(trace.stop().dropped(), 0);
}

/// What a program defines by itself cannot stand elsewhere: it is counted by its name, and recording goes on.
//= docs/buffer.md#a-full-durable-region
#[test]
fn a_definition_of_the_programs_own_that_finds_no_room_is_counted() {
    for mode in MODES {
        let trace = Trace::start_in(mode, 64 << 10);
        instant!("cat", "before", Scope::Thread);
        fill();
        // A string record with index 30 000.
        let header = 2 | 3 << 4 | 30_000 << 16 | 9 << 32;
        assert!(!ffi::write_durable_record(&[header, 1, 2]));
        instant!("cat", "before", Scope::Thread);
        let read = trace.stop();
        assert_eq!(kinds(&read), ["instant t cat/before"; 2], "{mode:?}");
        assert_eq!(read.loss(LossReason::DefinitionRefused), 1, "{mode:?}");
        assert_eq!((read.dropped(), read.header.records_dropped), (1, 1), "{mode:?}");
        assert_eq!(read.header.end_ts, None, "{mode:?}");
    }
}

/// How much room was short: each definition once, however many events need it.
//= docs/buffer.md#what-was-short
#[test]
fn what_was_short_is_counted_once() {
    let trace = Trace::start(64 << 10, &[]);
    instant!("cat", "before", Scope::Thread);
    fill();
    assert_eq!(trace.spare_word(LossReason::DurableFull), 0);
    for _ in 0..10 {
        instant!("cat", "twelve bytes", Scope::Thread, "five." => 1_u64);
    }
    assert_eq!(trace.spare_word(LossReason::DurableFull), 24 + 16);
    // A site remembers that its texts found no room; the table does so for all others.
    instant!("twelve bytes", "five.", Scope::Thread);
    assert_eq!(ffi::string_index(b"twelve bytes"), None);
    assert_eq!(trace.spare_word(LossReason::DurableFull), 24 + 16);
    let record = [2 | 3 << 4 | 30_000 << 16 | 9 << 32, 1, 2];
    assert!(!ffi::write_durable_record(&record));
    assert_eq!(trace.spare_word(LossReason::DurableFull), 24 + 16 + 24);
    std::thread::Builder::new()
        .name("eight by".to_owned())
        .spawn(|| instant!("cat", "before", Scope::Thread))
        .unwrap()
        .join()
        .unwrap();
    // Its name, in a kernel object of 6 words, and its index.
    assert_eq!(trace.spare_word(LossReason::DurableFull), 24 + 16 + 24 + 48 + 24);
    // As long as this is held no other test has a trace.
    let _alone = trace.stop();
    assert_eq!(engine::state(), engine::State::Idle);
}

/// Records that found no room, and those that are too large, whatever the buffer.
//= docs/buffer.md#what-was-short
#[test]
fn what_records_were_short_of_is_kept() {
    let trace = Trace::start(64 << 10, &[]);
    let small = || instant!("cat", "small", Scope::Thread);
    let mut kept = 0;
    while trace.spare_word(LossReason::Full) == 0 {
        small();
        kept += 1;
    }
    // 16 bytes, and a seventh of that for what stays free at the end of a slab.
    assert_eq!(trace.spare_word(LossReason::Full), 19);
    small();
    assert_eq!(trace.spare_word(LossReason::Full), 38);
    let layout = trace_format::buffer::Layout::new(64 << 10, BufferMode::Oneshot).unwrap();
    let pad = vec![0_u8; 20_000];
    instant!("cat", "large", Scope::Thread, "pad" => pad.as_slice());
    assert_eq!(trace.spare_word(LossReason::TooLarge), 0);
    ffi::write_record(&vec![8 << 4 | 15; layout.max_record_bytes() as usize / 8 + 1]);
    assert_eq!(trace.spare_word(LossReason::TooLarge), layout.max_record_bytes() + 8);
    ffi::count_too_large();
    assert_eq!(trace.spare_word(LossReason::TooLarge) >> 63, 1);
    let read = trace.stop();
    assert_eq!(read.events.len(), kept - 1);
    assert_eq!(read.loss(LossReason::Full), 3);
    assert_eq!(read.loss(LossReason::TooLarge), 2);
}
