//! Exact events in, exact events out, and the end of a oneshot buffer.

use crate::support::{EndsThreads, Read, Trace, kinds};
use std::sync::atomic::{AtomicU64, Ordering};
use trace_engine::{
    Id, Koid, Scope, ThreadState, async_begin, async_end, async_enter, async_instant, blob, blob_attachment,
    blob_record, category_enabled, context_switch, counter, debug, display, duration, duration_begin,
    duration_complete, duration_end, flow_begin, flow_end, flow_step, instaflow_begin, instaflow_end,
    instaflow_step, instant, is_enabled, kernel_object, log, nonce, now, thread_wakeup,
};
use trace_format::slab::LossReason;
use trace_reader::buffer::{Activity, BufferPart};

//= docs/buffer.md#writing-an-event
#[test]
fn every_kind_of_event_arrives_as_written() {
    let trace = Trace::start(1 << 20, &[]);
    instant!("cat", "thread instant", Scope::Thread);
    instant!("cat", "global instant", Scope::Global);
    counter!("cat", "counter", 7, "a" => 1_u32, "b" => -2_i64);
    {
        duration!("cat", "scope", "inside" => true);
    }
    duration_begin!("cat", "begin");
    duration_end!("cat", "end");
    async_begin!(Id(11), "cat", "async");
    async_instant!(Id(11), "cat", "async step");
    async_end!(11, "cat", "async");
    flow_begin!("cat", "flow", 12);
    flow_step!("cat", "flow", 12);
    flow_end!("cat", "flow", 12, "last" => ());
    let read = trace.stop();
    assert_eq!(
        read.lines(),
        [
            "instant t cat/thread instant",
            "instant g cat/global instant",
            "counter 7 cat/counter a=Uint32(1) b=Int64(-2)",
            "complete cat/scope inside=Bool(true)",
            "begin cat/begin",
            "end cat/end",
            "async begin 11 cat/async",
            "async instant 11 cat/async step",
            "async end 11 cat/async",
            "flow begin 12 cat/flow",
            "flow step 12 cat/flow",
            "flow end 12 cat/flow last=Null",
        ]
    );
    assert_eq!(read.findings.bad_records, 0);
    assert_eq!(read.dropped(), 0);
}

#[test]
fn every_type_of_argument_arrives_as_written() {
    let trace = Trace::start(1 << 20, &[]);
    let place = 5_u8;
    let pointer = &raw const place;
    instant!("cat", "all", Scope::Process,
        "null" => (), "bool" => false, "i8" => -8_i8, "i16" => -16_i16, "i32" => i32::MIN, "u8" => 8_u8,
        "u16" => 16_u16, "u32" => u32::MAX, "i64" => i64::MIN, "u64" => u64::MAX, "f32" => 0.5_f32, "f64" => -0.0,
        "text" => "grün", "string" => String::from("exactly8"), "pointer" => pointer);
    instant!("cat", "rest", Scope::Process,
        "isize" => -1_isize, "usize" => 1_usize, "empty" => "", "reference" => &String::from("seven77"),
        "koid" => Koid(99), "blob" => [1_u8, 2, 3].as_slice());
    let read = trace.stop();
    let lines = read.lines();
    assert_eq!(
        lines[0],
        format!(
            "instant p cat/all null=Null bool=Bool(false) i8=Int32(-8) i16=Int32(-16) i32=Int32(-2147483648) \
             u8=Uint32(8) u16=Uint32(16) u32=Uint32(4294967295) i64=Int64(-9223372036854775808) \
             u64=Uint64(18446744073709551615) f32=Double(0.5) f64=Double(-0.0) text=\"grün\" \
             string=\"exactly8\" pointer=Pointer({})",
            pointer.addr()
        )
    );
    assert_eq!(
        lines[1],
        "instant p cat/rest isize=Int64(-1) usize=Uint64(1) empty=\"\" reference=\"seven77\" koid=#99 \
         blob=[1, 2, 3]"
    );
    assert_eq!(lines.len(), 2);
}

/// An instant or a begin without arguments takes 16 bytes, a complete duration 24, each `i64` 16 more.
#[test]
fn events_have_the_documented_sizes() {
    let sizes = |emit: fn()| {
        let trace = Trace::start(1 << 20, &[]);
        emit();
        let with_definitions = trace.stop().rolling_bytes();
        let trace = Trace::start(1 << 20, &[]);
        (0..10).for_each(|_| emit());
        assert_eq!(trace.stop().rolling_bytes(), 10 * with_definitions);
        with_definitions
    };
    assert_eq!(sizes(|| instant!("cat", "size", Scope::Thread)), 16);
    assert_eq!(sizes(|| duration_begin!("cat", "size")), 16);
    assert_eq!(
        sizes(|| {
            duration!("cat", "size");
        }),
        24
    );
    assert_eq!(sizes(|| instant!("cat", "size", Scope::Thread, "n" => 1_i64)), 32);
    assert_eq!(sizes(|| instant!("cat", "size", Scope::Thread, "n" => 1_i64, "s" => "sixteen bytes ok")), 56);
}

//= docs/buffer.md#threads-and-strings
#[test]
fn threads_beyond_the_table_are_written_inline() {
    let trace = Trace::start(4 << 20, &[]);
    let barrier = std::sync::Barrier::new(300);
    std::thread::scope(|scope| {
        for number in 0..300_u64 {
            let barrier = &barrier;
            let thread = std::thread::Builder::new().name(format!("many-{number}"));
            let write = move || {
                for round in 0..3_u64 {
                    instant!("cat", "from many", Scope::Thread, "n" => number, "round" => round);
                    barrier.wait();
                }
            };
            thread.spawn_scoped(scope, write).unwrap();
        }
    });
    let read = trace.stop();
    let is_named = |number| read.dump.iter().any(|line| line.contains(&format!("\"many-{number}\"")));
    assert!((0..300).all(is_named), "with an index or without one");
    assert_eq!(read.events.len(), 900);
    let threads = read.by_thread();
    assert_eq!(threads.len(), 300);
    for events in threads.values() {
        assert_eq!(events.len(), 3);
        assert!(events.is_sorted_by_key(|event| event.timestamp));
        let numbers: std::collections::HashSet<_> = events.iter().map(|event| event.u64("n")).collect();
        assert_eq!(numbers.len(), 1);
        assert_eq!(events.iter().map(|event| event.u64("round")).collect::<Vec<_>>(), [0, 1, 2]);
    }
    assert_eq!(read.thread_records, 255);
    assert_eq!(read.findings.bad_records, 0);
}

//= docs/buffer.md#claiming
#[test]
fn the_rest_of_an_ended_threads_slab_is_used_again() {
    // Eleven slabs of 256 bytes, and far more threads than that, one after the other.
    let trace = Trace::start(4096, &["short"]);
    for number in 0..60_u64 {
        std::thread::Builder::new()
            .name(String::new())
            .spawn(move || instant!("short", "one", Scope::Thread, "n" => number))
            .unwrap()
            .join()
            .unwrap();
    }
    let read = trace.stop();
    // The durable region of 256 bytes holds the definitions of two threads; the others stand inline, in 48
    // bytes instead of 32: six events are in the first slab, and five in each of nine others.
    let kept: Vec<_> = read.events.iter().map(|event| event.u64("n")).collect();
    assert_eq!(kept, (0..51).collect::<Vec<_>>());
    assert_eq!((read.loss(LossReason::Full), read.dropped()), (9, 9));
    drop(read);

    const SHORT_LIVED: u64 = 200;
    let trace = Trace::start(1 << 20, &["short"]);
    let needed = (SHORT_LIVED * 32).div_ceil(trace.slab_bytes());
    for number in 0..SHORT_LIVED {
        std::thread::spawn(move || instant!("short", "one", Scope::Thread, "n" => number)).join().unwrap();
    }
    let read = trace.stop();
    assert_eq!(read.slabs_used as u64, needed, "one thread at a time");
    assert_eq!(read.events.len() as u64, SHORT_LIVED);
}

/// Whether its process dies then or goes on: each record is counted once.
//= docs/buffer.md#tallies
#[test]
fn what_an_ended_thread_has_left_is_counted_once() {
    let mut trace = Trace::start(1 << 20, &["short"]);
    let mut written = 0;
    for events in [3, 5, 1] {
        let write = move || (0..events).for_each(|n| instant!("short", "one", Scope::Thread, "n" => n));
        std::thread::spawn(write).join().unwrap();
        written += events;
        // As if it had died here.
        assert_eq!(trace.read(BufferPart::Rest(Activity::Quiet)), written);
        assert_eq!(trace.written(), written);
        trace = trace.forget_reader();
    }
    trace.pause();
    assert_eq!(trace.read(BufferPart::Rest(Activity::Quiet)), written);
    assert_eq!(trace.written(), written, "all slabs are closed");
}

/// A long-lived thread does not go back to an older slab that an ended thread left, nor stay in its own
/// behind a record that needed a later run.
#[test]
fn events_of_a_thread_are_in_order_whatever_slabs_it_has() {
    let trace = Trace::start(1 << 20, &[]);
    let long = "x".repeat(10_000);
    let emit = |number: u64| instant!("cat", "ordered", Scope::Thread, "n" => number);
    for number in 0..1000 {
        emit(number);
        if number == 100 {
            std::thread::spawn(|| instant!("cat", "short-lived", Scope::Thread)).join().unwrap();
        }
        if number == 500 {
            instant!("cat", "long", Scope::Thread, "text" => long.as_str());
        }
    }
    let read = trace.stop();
    let own: Vec<_> = read.events.iter().filter(|event| event.name != "short-lived").collect();
    assert_eq!(own.len(), 1001);
    assert!(own.windows(2).all(|pair| pair[0].timestamp < pair[1].timestamp), "an event is out of order");
}

#[test]
fn records_larger_than_a_slab_arrive_whole() {
    let trace = Trace::start(4 << 20, &[]);
    let long = "0123456789abcdef".repeat(1999);
    instant!("cat", "before", Scope::Thread);
    instant!("cat", "long", Scope::Thread, "text" => long.as_str());
    instant!("cat", "cut", Scope::Thread, "text" => "é".repeat(20_000));
    instant!("cat", "too large", Scope::Thread, "a" => long.as_str(), "b" => long.as_str());
    instant!("cat", "after", Scope::Thread);
    let read = trace.stop();
    let names: Vec<_> = read.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["before", "long", "cut", "after"]);
    let text = |name: &str| read.events.iter().find(|event| event.name == name).unwrap().args[0].1.clone();
    assert_eq!(text("long"), format!("{long:?}"));
    assert_eq!(text("cut"), format!("{:?}", "é".repeat(16_000)));
    assert_eq!(read.loss(LossReason::TooLarge), 1);
}

//= docs/buffer.md#the-end-of-a-oneshot-buffer
#[test]
fn a_full_buffer_keeps_a_prefix_in_time_and_counts_the_rest() {
    const THREADS: u64 = 4;
    const EVENTS: u64 = 20_000;
    let trace = Trace::start(256 << 10, &[]);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in 0..EVENTS {
                    instant!("cat", "fill", Scope::Thread, "thread" => thread, "n" => number);
                }
            });
        }
    });
    let read = trace.stop();
    let end = read.header.end_ts.expect("the buffer became full");
    assert!(read.events.iter().all(|event| event.timestamp <= end));
    let kept = read.events.len() as u64;
    assert!(kept > 1000 && kept < THREADS * EVENTS, "{kept}");
    let lost = read.loss(LossReason::Full);
    assert_eq!(kept + lost, THREADS * EVENTS);
    assert_eq!(read.header.records_dropped + read.findings.late_events, lost);
    for events in read.by_time().values() {
        let numbers: Vec<_> = events.iter().map(|event| event.u64("n")).collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn only_wanted_categories_are_recorded_and_evaluated() {
    static EVALUATED: AtomicU64 = AtomicU64::new(0);
    let count = || EVALUATED.fetch_add(1, Ordering::Relaxed);
    let trace = Trace::start(1 << 20, &["app", "net:*"]);
    assert!(category_enabled!("net:tcp"));
    assert!(!category_enabled!("other"));
    instant!("app", "yes", Scope::Thread, "n" => count());
    instant!("net:tcp", "yes too", Scope::Thread, "n" => count());
    instant!("application", "no", Scope::Thread, "n" => count());
    duration!("other", "no", "n" => count());
    let read = trace.stop();
    instant!("app", "too late", Scope::Thread, "n" => count());
    assert!(!category_enabled!("net:tcp"));
    assert_eq!(read.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["yes", "yes too"]);
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 2);
}

/// Of scopes that begin in one step of the clock the outer one begins first, and what is inside of a scope
/// lies strictly between its begin and its end.
//= docs/buffer.md#timestamps
#[test]
fn timestamps_of_a_thread_show_what_encloses_what() {
    let trace = Trace::start(1 << 20, &[]);
    for _ in 0..1000 {
        duration!("cat", "outer");
        duration!("cat", "inner");
        instant!("cat", "inside", Scope::Thread);
    }
    let read = trace.stop();
    assert_eq!(read.events.len(), 3000);
    for round in read.events.chunks(3) {
        let [inside, inner, outer] = round else { panic!("three events a round") };
        assert_eq!([&*inside.name, &*inner.name, &*outer.name], ["inside", "inner", "outer"]);
        assert!(outer.timestamp + 4 <= inner.timestamp, "{outer:?} {inner:?}");
        assert!(inner.timestamp + 4 <= inside.timestamp, "{inner:?} {inside:?}");
        assert!(inside.timestamp + 4 <= inner.end.unwrap(), "{inside:?} {inner:?}");
        assert!(inner.end.unwrap() + 4 <= outer.end.unwrap(), "{inner:?} {outer:?}");
    }
}

#[test]
fn a_scope_that_outlives_the_trace_leaves_nothing() {
    let trace = Trace::start(1 << 20, &[]);
    let read = {
        duration!("cat", "outlives");
        {
            duration!("cat", "ends in time");
        }
        trace.stop()
    };
    assert_eq!(kinds(&read), ["complete cat/ends in time"]);
}

#[test]
fn known_categories_need_no_event() {
    fn never_called() {
        instant!("never:called", "x", Scope::Thread);
    }
    let _: fn() = std::hint::black_box(never_called);
    let categories = trace_engine::engine::known_categories();
    assert!(categories.contains(&"never:called".to_owned()), "{categories:?}");
    assert!(categories.is_sorted());
}

//= docs/buffer.md#fork
#[test]
fn a_forked_child_writes_nothing_into_its_parents_buffer() {
    let trace = Trace::start_shared(1 << 20);
    instant!("cat", "before", Scope::Thread);
    // SAFETY: the child only writes events and exits, which needs no lock that another thread may hold.
    let child = unsafe { libc::fork() };
    if child == 0 {
        for _ in 0..1000 {
            instant!("cat", "in the child", Scope::Thread);
        }
        duration!("cat", "in the child");
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(category_enabled!("cat"))) };
    }
    let mut status = -1;
    // SAFETY: waits for our own child and fills `status`.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child thinks that it is recorded");
    instant!("cat", "after", Scope::Thread);
    assert_eq!(kinds(&trace.stop()), ["instant t cat/before", "instant t cat/after"]);
}

#[test]
fn signal_handlers_write_events_of_their_own() {
    const SIGNALS: u64 = 1000;
    static HANDLED: AtomicU64 = AtomicU64::new(0);
    extern "C" fn handler(_: libc::c_int) {
        let number = HANDLED.fetch_add(1, Ordering::Relaxed);
        instant!("signal", "handled", Scope::Thread, "n" => number);
    }
    let handler: extern "C" fn(libc::c_int) = handler;
    // SAFETY: the handler only writes events, which is allowed anywhere.
    unsafe { libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t) };
    let trace = Trace::start(16 << 20, &[]);
    let mut emitted = 0_u64;
    std::thread::scope(|scope| {
        // SAFETY: no arguments.
        let target = unsafe { libc::pthread_self() } as u64;
        let sender = scope.spawn(move || {
            for number in 0..SIGNALS {
                // SAFETY: the target outlives the scope.
                unsafe { libc::pthread_kill(target as libc::pthread_t, libc::SIGUSR1) };
                // Signals that are pending together would be handled once.
                while HANDLED.load(Ordering::Relaxed) <= number {
                    std::thread::yield_now();
                }
            }
        });
        while !sender.is_finished() {
            // As many as there is room for.
            if emitted < 200_000 {
                instant!("cat", "interrupted", Scope::Thread, "n" => emitted);
                emitted += 1;
            }
        }
    });
    let read = trace.stop();
    let numbers = |name: &str| {
        let mut numbers: Vec<_> =
            read.events.iter().filter(|event| event.name == name).map(|event| event.u64("n")).collect();
        numbers.sort_unstable();
        numbers
    };
    let handled = HANDLED.load(Ordering::Relaxed);
    assert_eq!(handled, SIGNALS);
    assert_eq!(numbers("interrupted"), (0..emitted).collect::<Vec<_>>());
    assert_eq!(numbers("handled"), (0..handled).collect::<Vec<_>>());
    assert_eq!(read.findings.bad_records, 0);
    assert_eq!(read.dropped(), 0);
}

//= docs/buffer.md#retiring
#[test]
fn stop_while_all_are_writing_leaves_a_whole_buffer() {
    for _ in 0..20 {
        let trace = Trace::start(1 << 20, &[]);
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let read: Read = std::thread::scope(|scope| {
            let _ends = EndsThreads(&is_over);
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut number = 0_u64;
                    while !is_over.load(Ordering::Relaxed) {
                        instant!("cat", "busy", Scope::Thread, "n" => number);
                        number += 1;
                    }
                });
            }
            trace.wait_for_slabs(4);
            trace.stop()
        });
        assert_eq!(read.findings.bad_records, 0);
        assert!(read.header.is_final);
        for events in read.by_time().values() {
            let first = events[0].u64("n");
            let numbers: Vec<_> = events.iter().map(|event| event.u64("n") - first).collect();
            assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        }
    }
}

/// What is written outside of events, with times and threads as `T` and `P/T`.
fn other_records(read: &Read) -> Vec<String> {
    let (process, thread) = (std::process::id(), zx_sim_thread());
    let who = format!("{process}/{thread}");
    read.dump
        .iter()
        .filter(|line| {
            !["- initialization", "- string", "- thread "].iter().any(|kind| line.starts_with(kind))
        })
        .filter(|line| !line.contains(&format!("#{process} ")) && !line.contains(&format!("#{thread} ")))
        .map(|line| match line.split_once(' ') {
            Some((time, rest)) if time != "-" => format!("T {}", rest.replace(&who, "P/T")),
            _ => line.replace(&who, "P/T"),
        })
        .collect()
}

/// The tid of this thread.
fn zx_sim_thread() -> String {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().to_owned()
}

//= docs/buffer.md#writing-an-event
#[test]
fn records_that_are_no_events_arrive_as_written() {
    let trace = Trace::start(1 << 20, &["cat"]);
    log!("cat", "plain");
    log!("cat", "the answer is {}", 42);
    log!("other", "{}", unreachable());
    blob!("cat", "large", b"some bytes", "n" => 7_u32);
    blob_attachment!("cat", "attached", &[1_u8, 2, 3]);
    blob_record!("cat", 3, "piece", b"pftrace");
    kernel_object!("cat", 2, Koid(7_000_000_001), "guest cpu", "process" => Koid(7000));
    let state = ThreadState::BLOCKED;
    context_switch!("cat", 3, state, Koid(1), Koid(2), "incoming_weight" => i32::MIN, "outgoing_weight" => 5);
    context_switch!("cat", u16::MAX, ThreadState(255), Koid(1), Koid(2));
    thread_wakeup!("cat", 4, Koid(9), "weight" => -1, "waker" => Koid(8));
    let read = trace.stop();
    assert_eq!(
        other_records(&read),
        [
            "T log P/T \"plain\"",
            "T log P/T \"the answer is 42\"",
            "T large-blob P/T \"cat\" \"large\" blob[10]:736f6d65206279746573 {n=7u32}",
            "- large-attachment \"cat\" \"attached\" blob[3]:010203",
            "- blob perfetto \"piece\" blob[7]:70667472616365",
            "- kernel-object thread #7000000001 \"guest cpu\" {process=#7000}",
            "T context-switch cpu=3 1 blocked -> 2 {incoming_weight=-2147483648i32, outgoing_weight=5i32}",
            "T context-switch cpu=65535 1 state-15 -> 2",
            "T thread-wakeup cpu=4 9 {weight=-1i32, waker=#8}",
        ]
    );
    assert_eq!((read.findings.bad_records, read.dropped()), (0, 0));
}

/// Nothing evaluates it.
fn unreachable() -> u32 {
    panic!("an argument of a category that is off")
}

#[test]
fn long_payloads_arrive_whole_or_are_counted() {
    let trace = Trace::start(4 << 20, &[]);
    let payload: Vec<u8> = (0..300_000_u32).map(|byte| (byte % 251) as u8).collect();
    let text = "é".repeat(20_000);
    log!("cat", "{text}");
    blob_record!("cat", 1, "largest", &payload[..32_752]);
    blob_record!("cat", 1, "too large", &payload[..32_753]);
    blob!("cat", "largest", &payload[..(256 << 10) - 32]);
    blob!("cat", "too large", &payload[..(256 << 10) - 31]);
    blob_attachment!("cat", "100 kB", &payload[..100_000]);
    let read = trace.stop();
    let lines: Vec<String> =
        other_records(&read).iter().map(|line| line.chars().take(50).collect()).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    // Cut to 32 000 bytes, where a character ends.
    assert_eq!(other_records(&read)[0].chars().filter(|char| *char == 'é').count(), 16_000);
    assert!(lines[1].starts_with("- blob data \"largest\" blob[32752]:"), "{lines:?}");
    assert!(lines[2].starts_with("T large-blob P/T \"cat\" \"largest\" blob[262112"), "{lines:?}");
    assert!(lines[3].starts_with("- large-attachment \"cat\" \"100 kB\" blob[10000"), "{lines:?}");
    assert_eq!(read.loss(LossReason::TooLarge), 2);
    assert_eq!(read.findings.bad_records, 0);
}

#[test]
fn an_instaflow_is_a_duration_and_a_flow_at_one_moment() {
    let trace = Trace::start(1 << 20, &[]);
    // The first is the slow path's, the second the hot one's.
    for _ in 0..2 {
        instaflow_begin!("cat", "job", "pushed", 7, "n" => 1_u32);
    }
    instaflow_step!("cat", "job", "moved", 7);
    instaflow_end!("cat", "job", "popped", 7);
    let read = trace.stop();
    let pushed =
        ["begin cat/pushed n=Uint32(1)", "flow begin 7 cat/job n=Uint32(1)", "end cat/pushed n=Uint32(1)"];
    let moved = ["begin cat/moved", "flow step 7 cat/job", "end cat/moved"];
    let popped = ["begin cat/popped", "flow end 7 cat/job", "end cat/popped"];
    assert_eq!(read.lines(), [pushed, pushed, moved, popped].concat());
    for step in read.events.chunks(3) {
        assert!(step.iter().all(|event| event.timestamp == step[0].timestamp));
    }
    assert!(read.events.chunks(3).is_sorted_by(|a, b| a[0].timestamp < b[0].timestamp));
}

//= docs/format.md#koids
#[test]
fn values_that_show_themselves_are_text() {
    #[derive(Debug)]
    #[expect(dead_code, reason = "it is shown")]
    enum State {
        Waiting { retries: u8 },
    }
    let trace = Trace::start(1 << 20, &[]);
    for _ in 0..2 {
        instant!("cat", "shown", Scope::Thread,
            "display" => display(&std::net::Ipv4Addr::LOCALHOST), "enum" => debug(&State::Waiting { retries: 3 }),
            "slice" => debug(&[1, 2]), "empty" => display(""));
    }
    let read = trace.stop();
    let line = "instant t cat/shown display=\"127.0.0.1\" enum=\"Waiting { retries: 3 }\" slice=\"[1, 2]\" empty=\"\"";
    assert_eq!(read.lines(), [line, line]);
}

#[test]
fn operations_end_with_their_guard_and_durations_where_they_are_told_to() {
    assert_ne!(nonce(), nonce());
    let trace = Trace::start(1 << 20, &["cat"]);
    assert!(is_enabled());
    let start = now();
    let operation = async_enter!(7, "cat", "operation", "n" => 1_u32);
    assert!(async_enter!(8, "other", "operation").is_none());
    std::thread::spawn(move || drop(operation)).join().unwrap();
    duration_complete!("cat", "from there to here", start, "n" => 2_u32);
    let read = trace.stop();
    assert!(!is_enabled());
    let mut lines = read.lines();
    lines.sort();
    let expected = [
        "async begin 7 cat/operation n=Uint32(1)",
        "async end 7 cat/operation",
        "complete cat/from there to here n=Uint32(2)",
    ];
    assert_eq!(lines, expected);
    let duration = read.events.iter().find(|event| event.kind == "complete").unwrap();
    assert_eq!(duration.timestamp, start.0);
    assert!(
        read.events.iter().all(|event| event.timestamp >= start.0 && event.timestamp < duration.end.unwrap())
    );
    let threads: Vec<u64> = read.events.iter().map(|event| event.thread).collect();
    assert_eq!(threads.iter().collect::<std::collections::BTreeSet<_>>().len(), 2);
}

/// The trace has them, although it does not want their own category.
//= docs/format.md#alerts
#[test]
fn alerts_reach_the_handler_and_the_trace_while_their_category_is_on() {
    let raise = |name: &str| {
        trace_engine::alert!("alerting", name);
        trace_engine::alert!("silent", name);
    };
    // As long as this is held no other test has a trace.
    let alone = Trace::start(1 << 20, &[]).stop();
    raise("before");
    assert_eq!(*crate::support::ALERTS.lock().unwrap(), [""; 0]);
    drop(alone);
    // A site of that category stays off.
    let instant = || instant!("trace", "alert", Scope::Thread);
    // Indices of one trace are not those of the next.
    for categories in [&["alerting"][..], &["strings", "alerting"], &["alerting", "-trace"]] {
        let trace = Trace::start(1 << 20, categories);
        instant!("strings", "first", Scope::Thread);
        raise("first");
        instant();
        raise("fourteen_chars");
        raise("fifteen chars: ä");
        let read = trace.stop();
        raise("after");
        let names = ["first", "fourteen_chars", "fifteen chars:"];
        assert_eq!(*crate::support::ALERTS.lock().unwrap(), names);
        let mut expected = names.map(|name| format!("instant t trace/alert name={name:?}")).to_vec();
        if categories.contains(&"strings") {
            expected.insert(0, "instant t strings/first".to_owned());
        }
        assert_eq!(read.lines(), expected, "{categories:?}");
        assert_eq!((read.findings.bad_records, read.dropped()), (0, 0));
    }
}

/// A buffer that is full takes no more, and counts them.
//= docs/format.md#alerts
#[test]
fn alerts_without_room_are_counted_and_told() {
    let trace = Trace::start(4096, &["alerting"]);
    for _ in 0..1000 {
        trace_engine::alert!("alerting", "again");
    }
    let read = trace.stop();
    assert_eq!(crate::support::ALERTS.lock().unwrap().len(), 1000);
    assert!(!read.events.is_empty());
    assert_eq!(read.events.len() as u64 + read.dropped(), 1000);
}

/// The compiler sees no code that writes a site, and must not conclude that none does.
#[test]
fn a_site_that_only_asks_gets_an_answer() {
    let ask = || category_enabled!("only asked for");
    for (categories, expected) in
        [(&["another"][..], false), (&["only asked for"], true), (&["another"], false)]
    {
        let trace = Trace::start(1 << 20, categories);
        assert_eq!(ask(), expected, "{categories:?}");
        drop(trace.stop());
    }
}
