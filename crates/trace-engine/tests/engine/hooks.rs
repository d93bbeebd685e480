//! A function of the program's own that sees each event.

use crate::support::{EndsThreads, Hooked, PATIENCE, Read, Trace, alone};
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use trace_engine::{
    Disposition, EventType, Id, Scope, Track, alert, async_begin, async_end, async_instant, counter,
    duration, duration_begin, duration_complete, duration_end, ffi, flow_begin, flow_end, flow_step, instant,
    log, now, set_event_hook, track_instant, vthread_counter, write_event,
};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::SliceSink;
use trace_format::units::{StringIndex, Ticks};

/// What the hook was shown.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn text<'a>(text: StringRef<'a>) -> &'a str {
    match text {
        StringRef::Empty => "",
        StringRef::Inline(text) => std::str::from_utf8(text).unwrap(),
        StringRef::Index(index) => panic!("{index:?} is not resolved"),
    }
}

fn line(event: &Event<'_>) -> String {
    let ThreadRef::Inline { process, thread } = event.thread else { panic!("{:?}", event.thread) };
    assert_eq!(process.0.0, u64::from(std::process::id()));
    let thread = thread.0.0;
    let thread = if thread >> 63 == 1 { format!("virtual {}", thread << 1 >> 1) } else { "own".into() };
    let kind = match event.kind {
        EventKind::DurationComplete { end } => {
            assert!(end >= event.timestamp);
            "complete".into()
        }
        kind => format!("{kind:?}"),
    };
    let arguments = event.arguments.iter().map(|argument| {
        let argument = argument.unwrap();
        let value = match argument.value {
            ArgumentValue::String(value) => format!("{:?}", text(value)),
            value => format!("{value:?}"),
        };
        format!(" {}={value}", text(argument.name))
    });
    let arguments: String = arguments.collect();
    format!("{thread} {kind} {}/{}{arguments}", text(event.category), text(event.name))
}

/// Takes a note of each event, and keeps those out whose name begins with "secret".
fn take_notes(event: &Event<'_>) -> bool {
    SEEN.lock().unwrap().push(line(event));
    // An event of the hook's own.
    instant!("hook", "seen", Scope::Thread);
    !text(event.name).starts_with("secret")
}

fn seen() -> Vec<String> {
    std::mem::take(&mut SEEN.lock().unwrap())
}

/// The recorded events that are not the hook's own.
fn recorded(read: &Read) -> Vec<String> {
    read.lines().into_iter().filter(|line| line != "instant t hook/seen").collect()
}

//= docs/rust.md#a-hook-for-each-event
#[test]
fn a_hook_sees_each_kind_of_event_with_its_texts() {
    let trace = Trace::start(1 << 20, &[]);
    let hooked = trace.hook(take_notes);
    instant!("app", "instant", Scope::Process, "n" => 1_u32, "text" => "value", "none" => ());
    counter!("app", "counter", 7, "busy" => 0.5);
    duration_begin!("app", "begin");
    duration_end!("app", "end", "long" => &*"x".repeat(2000));
    {
        duration!("app", "scope", "koid" => -4_i64);
    }
    duration_complete!("app", "complete", now());
    let id = Id::from(3);
    async_begin!(id, "app", "async");
    async_instant!(id, "app", "async");
    async_end!(id, "app", "async");
    flow_begin!("app", "flow", 9);
    flow_step!("app", "flow", 9);
    flow_end!("app", "flow", 9);
    vthread_counter!("app", "load", "queue 7", 7, 3, "busy" => 1_u64);
    instant!("app", "secret", Scope::Thread);
    // No event.
    log!("app", "a message");
    let expected = [
        "own Instant { scope: Process } app/instant n=Uint32(1) text=\"value\" none=Null",
        "own Counter { id: 7 } app/counter busy=Double(0.5)",
        "own DurationBegin app/begin",
        &format!("own DurationEnd app/end long=\"{}\"", "x".repeat(2000)),
        "own complete app/scope koid=Int64(-4)",
        "own complete app/complete",
        "own AsyncBegin { id: 3 } app/async",
        "own AsyncInstant { id: 3 } app/async",
        "own AsyncEnd { id: 3 } app/async",
        "own FlowBegin { id: 9 } app/flow",
        "own FlowStep { id: 9 } app/flow",
        "own FlowEnd { id: 9 } app/flow",
        "virtual 7 Counter { id: 3 } app/load busy=Uint64(1)",
        "own Instant { scope: Thread } app/secret",
    ];
    assert_eq!(seen(), expected);
    static TRACK: Track = Track::new("five");
    track_instant!("app", &TRACK, "on a track");
    assert_eq!(seen().len(), 1);
    drop(hooked);
    let read = trace.stop();
    let lines = recorded(&read);
    assert_eq!(lines.len(), expected.len(), "all but one, and the track's: {lines:?}");
    assert!(!lines.iter().any(|line| line.contains("secret")));
    assert_eq!(read.lines().len() - lines.len(), expected.len() + 1, "one of the hook's own for each");
    assert_eq!(read.dropped(), 0, "what the hook keeps out is not lost");
}

/// Its time is that of the record, although the hook takes time.
#[test]
fn a_hook_is_shown_the_time_that_is_recorded() {
    static TIMES: Mutex<Vec<[u64; 2]>> = Mutex::new(Vec::new());
    fn take_time(event: &Event<'_>) -> bool {
        let end = if let EventKind::DurationComplete { end } = event.kind { end } else { Ticks(0) };
        TIMES.lock().unwrap().push([event.timestamp.0, end.0]);
        true
    }
    let trace = Trace::start(1 << 20, &[]);
    let hooked = trace.hook(take_time);
    for _ in 0..10 {
        duration!("app", "scope");
        instant!("app", "inside", Scope::Thread);
    }
    drop(hooked);
    let read = trace.stop();
    let times: Vec<_> = read.events.iter().map(|event| [event.timestamp, event.end.unwrap_or(0)]).collect();
    assert_eq!(times, *TIMES.lock().unwrap());
    assert_eq!(times.len(), 20);
}

/// Records that were put together by hand may have indices.
#[test]
fn a_hook_sees_what_indices_stand_for() {
    let trace = Trace::start(1 << 20, &[]);
    let index =
        |text: &str| StringRef::Index(StringIndex::new(ffi::string_index(text.as_bytes()).unwrap()).unwrap());
    let arguments = [
        Argument { name: index("key"), value: ArgumentValue::String(index("value")) },
        Argument { name: StringRef::inline("plain"), value: ArgumentValue::Bool(true) },
    ];
    let write = |name: &str| {
        let mut words = [0; 64];
        let mut sink = SliceSink::new(&mut words);
        let event = Event {
            timestamp: Ticks(5),
            thread: ffi::current_thread().unwrap(),
            category: index("by hand"),
            name: index(name),
            kind: EventKind::AsyncEnd { id: 8 },
            arguments: Arguments::new(&arguments),
        };
        assert!(matches!(event.thread, ThreadRef::Index(_)));
        event.encode(&mut sink).unwrap();
        ffi::write_record(sink.words());
    };
    let hooked = trace.hook(take_notes);
    write("open");
    write("secret");
    let line = |name| format!("own AsyncEnd {{ id: 8 }} by hand/{name} key=\"value\" plain=Bool(true)");
    assert_eq!(seen(), [line("open"), line("secret")]);
    drop(hooked);
    assert_eq!(recorded(&trace.stop()), ["async end 8 by hand/open key=\"value\" plain=Bool(true)"]);
}

fn number(number: u64) {
    instant!("app", "number", Scope::Thread, "n" => number);
}

#[test]
fn a_site_is_as_it_was_when_the_hook_is_gone() {
    let trace = Trace::start(1 << 20, &[]);
    (0..3).for_each(number);
    for round in 1..3 {
        let hooked = trace.hook(take_notes);
        number(10 * round);
        assert_eq!(seen(), [format!("own Instant {{ scope: Thread }} app/number n=Uint64({})", 10 * round)]);
        drop(hooked);
        number(10 * round + 1);
        number(10 * round + 2);
    }
    assert_eq!(*SEEN.lock().unwrap(), Vec::<String>::new());
    let numbers: Vec<u64> = trace
        .stop()
        .events
        .iter()
        .filter(|event| event.name == "number")
        .map(|event| event.u64("n"))
        .collect();
    assert_eq!(numbers, [0, 1, 2, 10, 11, 12, 20, 21, 22]);
}

/// While threads record, and sites are passed for the first time, a hook comes and goes.
#[test]
fn each_event_is_either_recorded_or_seen_and_all_are_seen_once_the_hook_is_set() {
    const ROUNDS: u64 = 200;
    /// Events while the hook is set or taken away, and after that.
    const EVENTS: u64 = 100;
    static KEPT_OUT: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    fn keep_out(event: &Event<'_>) -> bool {
        let Some(Ok(Argument { value: ArgumentValue::Uint64(number), .. })) = event.arguments.iter().next()
        else {
            panic!("{event:?}")
        };
        KEPT_OUT.lock().unwrap().push(number);
        false
    }
    let trace = Trace::start(16 << 20, &[]);
    let (next, set, unset) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    // Threads record events up to this number.
    let limit = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let mut must_be_seen = BTreeSet::new();
    std::thread::scope(|scope| {
        let ends = EndsThreads(&is_over);
        let body = || {
            let mut certain = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let round = set.load(Ordering::Acquire);
                let below = |number| (number < limit.load(Ordering::Relaxed)).then_some(number + 1);
                let Ok(number) = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below) else {
                    std::thread::yield_now();
                    continue;
                };
                instant!("app", "numbered", Scope::Thread, "n" => number);
                // The hook was there from before the event to its end.
                if round > unset.load(Ordering::Acquire) {
                    certain.push(number);
                }
            }
            certain
        };
        let threads = [(); 3].map(|()| scope.spawn(body));
        let wait_until_idle = || {
            while next.load(Ordering::Relaxed) < limit.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        for round in 1..=ROUNDS {
            limit.fetch_add(EVENTS, Ordering::Relaxed);
            let hooked = trace.hook(keep_out);
            set.store(round, Ordering::Release);
            limit.fetch_add(EVENTS, Ordering::Relaxed);
            wait_until_idle();
            unset.store(round, Ordering::Release);
            limit.fetch_add(EVENTS, Ordering::Relaxed);
            drop(hooked);
            wait_until_idle();
        }
        drop(ends);
        for thread in threads {
            must_be_seen.extend(thread.join().unwrap());
        }
    });
    let read = trace.stop();
    assert_eq!(read.dropped(), 0);
    let recorded: Vec<u64> = read.events.iter().map(|event| event.u64("n")).collect();
    let kept_out = KEPT_OUT.lock().unwrap().clone();
    let mut all: Vec<u64> = [&recorded[..], &kept_out].concat();
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..next.into_inner()), "each is in one place, once");
    let kept_out = BTreeSet::from_iter(kept_out);
    assert!(must_be_seen.len() as u64 > ROUNDS * EVENTS / 2, "{}", must_be_seen.len());
    assert_eq!(must_be_seen.difference(&kept_out).collect::<Vec<_>>(), Vec::<&u64>::new());
}

#[test]
fn a_hook_that_panics_is_called_again() {
    fn panic_once(event: &Event<'_>) -> bool {
        SEEN.lock().unwrap().push(line(event));
        assert_ne!(text(event.name), "bad");
        true
    }
    let trace = Trace::start(1 << 20, &[]);
    let hooked = trace.hook(panic_once);
    let bad = catch_unwind(|| instant!("app", "bad", Scope::Thread));
    assert!(bad.is_err());
    SEEN.clear_poison();
    instant!("app", "good", Scope::Thread);
    assert_eq!(seen().len(), 2);
    drop(hooked);
    assert_eq!(trace.stop().lines(), ["instant t app/good"]);
}

#[test]
fn nothing_is_seen_where_nothing_is_recorded() {
    let _hooked = Hooked::new(&alone(), take_notes);
    instant!("app", "unrecorded", Scope::Thread);
    assert_eq!(seen(), Vec::<String>::new());
}

/// Writes an event named "slow" on another thread, and calls `meanwhile` while it is in its hook.
fn while_in_hook(
    trace: Trace,
    write: &(dyn Fn() + Sync),
    meanwhile: impl FnOnce(Trace) -> Trace,
) -> Vec<String> {
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let hooked = trace.hook(move |event| {
        if text(event.name) == "slow" {
            entered.send(()).unwrap();
            // Until the other end is gone, also where the test fails.
            let _ = may_leave.lock().unwrap().recv();
        }
        true
    });
    let trace = std::thread::scope(move |scope| {
        let _leave = leave;
        scope.spawn(write);
        has_entered.recv_timeout(PATIENCE).expect("the event is in its hook");
        meanwhile(trace)
    });
    drop(hooked);
    trace.stop().lines()
}

/// An event whose hook takes longer than its recording is in no later one, however it is written.
//= docs/rust.md#a-hook-for-each-event
#[test]
fn an_event_is_in_no_recording_after_its_own() {
    let by_hand = || {
        let event = Event {
            timestamp: Ticks(now().0),
            thread: ffi::current_thread().unwrap(),
            category: StringRef::inline("app"),
            name: StringRef::inline("slow"),
            kind: EventKind::Instant { scope: Scope::Thread },
            arguments: Arguments::default(),
        };
        let mut words = [0; 16];
        let mut sink = SliceSink::new(&mut words);
        Record::Event(event).encode(&mut sink).unwrap();
        ffi::write_record(sink.words());
    };
    let unlisted = || {
        let text = ffi::SiteText { category: b"app", name: b"slow" };
        let event = trace_engine::Event { event_type: EventType::Instant, start: None, extra: None };
        let none = ffi::GivenValues { values: &[], literals: 0 };
        ffi::with_unlisted(text, &[], |site| write_event(site, event, &none));
    };
    let at_a_site = || instant!("app", "slow", Scope::Thread);
    let writers: [&(dyn Fn() + Sync); 3] = [&at_a_site, &unlisted, &by_hand];
    for write in writers {
        let lines = while_in_hook(Trace::start(1 << 20, &[]), write, |trace| {
            let (read, next) = trace.stop_and_start_another();
            assert_eq!(read.lines(), Vec::<String>::new());
            instant!("app", "next", Scope::Thread);
            next
        });
        assert_eq!(lines, ["instant t app/next"]);
        // Nor in the next run of the same one.
        let lines = while_in_hook(Trace::start(1 << 20, &[]), write, |mut trace| {
            trace.pause();
            trace.resume(Disposition::ClearEntire);
            instant!("app", "again", Scope::Thread);
            trace
        });
        assert_eq!(lines, ["instant t app/again"]);
    }
}

/// Alerts are recorded whatever categories are.
#[test]
fn an_alert_is_recorded_whose_category_is_not() {
    let trace = Trace::start(1 << 20, &["app"]);
    let hooked = trace.hook(take_notes);
    alert!("app", "stall");
    assert_eq!(seen(), ["own Instant { scope: Thread } trace/alert name=\"stall\""]);
    drop(hooked);
    assert_eq!(recorded(&trace.stop()), ["instant t trace/alert name=\"stall\""]);
}

/// The one that is replaced is not called any more when the call returns, and no event is missed meanwhile.
#[test]
fn a_hook_takes_the_place_of_another_without_a_gap() {
    const ROUNDS: u64 = 100;
    let trace = Trace::start(16 << 20, &[]);
    let seen = Arc::new(AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let lives = Arc::new(AtomicU64::new(0));
    let hook_of = |round: u64| {
        let (seen, lives) = (seen.clone(), lives.clone());
        move |_: &Event<'_>| {
            assert!(lives.load(Ordering::SeqCst) <= round, "a hook of round {round} is called later");
            seen.fetch_add(1, Ordering::SeqCst);
            false
        }
    };
    let hooked = trace.hook(hook_of(0));
    let mut written = 0;
    std::thread::scope(|scope| {
        let ends = EndsThreads(&is_over);
        let body = || {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                number(count);
                count += 1;
                std::thread::yield_now();
            }
            count
        };
        let threads = [(); 2].map(|()| scope.spawn(body));
        for round in 1..=ROUNDS {
            set_event_hook(Some(Box::new(hook_of(round))));
            lives.store(round, Ordering::SeqCst);
        }
        drop(ends);
        written = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    });
    drop(hooked);
    assert_eq!(seen.load(Ordering::SeqCst), written);
    assert_eq!(trace.stop().events.len(), 0);
}

/// A hook may set another, or none, and take its time.
#[test]
fn a_hook_ends_itself() {
    let trace = Trace::start(1 << 20, &[]);
    let _hooked = trace.hook(|event| {
        SEEN.lock().unwrap().push(line(event));
        set_event_hook(None);
        true
    });
    number(1);
    number(2);
    assert_eq!(seen().len(), 1);
    assert_eq!(trace.stop().events.len(), 2);
}

/// What is kept out leaves nothing in the list of durations whose processor time is measured.
#[test]
fn durations_that_are_kept_out_do_not_cost_others_their_times() {
    let trace = Trace::start_with(|config| config.thread_time = true);
    let hooked = trace.hook(|event| text(event.name) != "inner");
    {
        duration!("app", "outer");
        for _ in 0..40 {
            duration!("app", "inner");
        }
    }
    drop(hooked);
    let lines = trace.stop().lines();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains(" thread_dur="), "{lines:?}");
}
