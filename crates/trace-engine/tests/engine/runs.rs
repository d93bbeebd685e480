//! Several runs of one trace: what a start does with what is there.

use crate::support::{EndsThreads, Read, Trace, kinds};
use std::time::{Duration, Instant};
use trace_engine::{BufferMode, Disposition, Scope, instant};
use trace_format::slab::LossReason;
use trace_reader::buffer::{Activity, BufferPart};

const REST: BufferPart = BufferPart::Rest(Activity::Quiet);

/// One event in each of two runs.
fn two_runs(mode: BufferMode, disposition: Disposition) -> Read {
    let mut trace = Trace::start_in(mode, 64 << 10);
    instant!("cat", "first run", Scope::Thread);
    trace.pause();
    instant!("cat", "between", Scope::Thread);
    trace.resume(disposition);
    instant!("cat", "second run", Scope::Thread);
    trace.stop()
}

const MODES: [BufferMode; 3] = [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming];

//= docs/buffer.md#dispositions
#[test]
fn retain_goes_on_behind_what_is_there() {
    for mode in MODES {
        let read = two_runs(mode, Disposition::Retain);
        assert_eq!(kinds(&read), ["instant t cat/first run", "instant t cat/second run"], "{mode:?}");
        assert_eq!(read.dropped(), 0);
        assert_eq!(read.thread_records, 1);
        assert_eq!(
            read.dump.iter().filter(|line| line.contains("initialization")).count(),
            1,
            "{:#?}",
            read.dump
        );
    }
}

#[test]
fn clearing_the_rolling_part_keeps_the_definitions() {
    for mode in MODES {
        let read = two_runs(mode, Disposition::ClearNondurable);
        assert_eq!(kinds(&read), ["instant t cat/second run"], "{mode:?}");
        assert_eq!(read.dropped(), 1);
        assert_eq!(read.loss(LossReason::Cleared), 1);
        // The name of the first run's event is still there, and so is the thread.
        assert!(read.dump.iter().any(|line| line.contains("first run")), "{:#?}", read.dump);
        assert_eq!(read.thread_records, 1);
        assert_eq!(
            read.dump.iter().filter(|line| line.contains("initialization")).count(),
            2,
            "{:#?}",
            read.dump
        );
    }
}

#[test]
fn clearing_everything_leaves_nothing_of_the_run_before() {
    for mode in MODES {
        let read = two_runs(mode, Disposition::ClearEntire);
        assert_eq!(kinds(&read), ["instant t cat/second run"], "{mode:?}");
        assert_eq!(read.loss(LossReason::Cleared), 1);
        assert!(!read.dump.iter().any(|line| line.contains("first run")), "{:#?}", read.dump);
        assert_eq!(read.thread_records, 1);
        assert_eq!(
            read.dump.iter().filter(|line| line.contains("initialization")).count(),
            1,
            "{:#?}",
            read.dump
        );
        assert!(read.header.floor_sequence > 1, "sequences go on");
    }
}

#[test]
fn a_full_buffer_records_again_once_it_is_cleared() {
    let mut trace = Trace::start_in(BufferMode::Oneshot, 4096);
    for _ in 0..1000 {
        instant!("cat", "fill", Scope::Thread);
    }
    trace.pause();
    let first = trace.read(REST);
    assert!(first > 0 && first < 1000);
    trace.resume(Disposition::Retain);
    instant!("cat", "refused", Scope::Thread);
    trace.pause();
    assert_eq!(trace.read(REST), 0);
    trace.resume(Disposition::ClearNondurable);
    instant!("cat", "accepted", Scope::Thread);
    let read = trace.stop();
    assert_eq!(read.events.last().unwrap().name, "accepted");
    assert_eq!(read.events.len() as u64, first + 1);
    assert_eq!(read.header.end_ts, None);
    assert_eq!(read.header.records_dropped, 0);
    assert_eq!(read.loss(LossReason::Full), 1000 - first + 1);
    assert_eq!(read.loss(LossReason::Cleared), first);
}

#[test]
fn further_categories_count_for_one_run() {
    let trace = Trace::start(64 << 10, &["wanted"]);
    let write = || {
        instant!("wanted", "a", Scope::Thread);
        instant!("extra", "b", Scope::Thread);
        instant!("other", "c", Scope::Thread);
    };
    write();
    trace.pause();
    trace.engine.start(Disposition::Retain, &["extra".to_owned()]).unwrap();
    write();
    trace.pause();
    trace.engine.start(Disposition::Retain, &[]).unwrap();
    write();
    let read = trace.stop();
    let names: String = read.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, "aaba");
}

#[test]
fn many_runs_of_many_threads_lose_nothing() {
    // Room for what they write while this thread is held up.
    let mut trace = Trace::start_in(BufferMode::Oneshot, 64 << 20);
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut kept = 0;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    instant!("cat", "busy", Scope::Thread);
                    std::thread::yield_now();
                }
            });
        }
        let _end = EndsThreads(&done);
        for _ in 0..50 {
            let started = Instant::now();
            trace.wait_for_slabs(3);
            trace.pause();
            kept += trace.read(REST);
            trace.resume(Disposition::ClearEntire);
            assert!(started.elapsed() < Duration::from_secs(10));
        }
    });
    let read = trace.stop();
    assert_eq!(read.findings.bad_records, 0);
    // What was read of a run is what the next start cleared, to the record.
    assert_eq!(read.loss(LossReason::Cleared), kept);
    assert_eq!(read.dropped(), kept);
}
