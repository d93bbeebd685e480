//! Streaming mode: full halves go out, saved ones come back, and what finds no room is counted.

use crate::freeze::Frozen;
use crate::support::{Read, Trace, WAKES};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use trace_engine::engine::{self, SaveRequest};
use trace_engine::{BufferMode, Disposition, Scope, instant};
use trace_format::buffer::{FLAG_FINAL, field};
use trace_format::slab::{LossReason, SlabState, SlabWord};

fn write(number: u64) {
    instant!("cat", "stream", Scope::Thread, "n" => number);
}

fn service(trace: &Trace) -> Option<SaveRequest> {
    trace.engine.service().expect("a stream runs").save
}

fn start() -> Trace {
    Trace::start_in(BufferMode::Streaming, 64 << 10)
}

/// Events of the size that [`write`] makes that fit into half a buffer.
fn events_per_half(trace: &Trace) -> u64 {
    u64::from(trace.slab_count() / 2) * (trace.slab_bytes() / 32)
}

fn numbers(read: &Read) -> Vec<u64> {
    read.events.iter().map(|event| event.u64("n")).collect()
}

//= docs/buffer.md#streaming
#[test]
fn halves_go_out_in_order_and_everything_arrives_once() {
    let mut trace = start();
    let per_half = events_per_half(&trace);
    let mut written = 0;
    for wrapped_count in 0..10 {
        assert_eq!(service(&trace), None, "nothing is full");
        (0..per_half).for_each(|number| write(written + number));
        written += per_half;
        let request = service(&trace).expect("a half is full");
        assert_eq!(request.wrapped_count, wrapped_count);
        assert_eq!(service(&trace), None, "one at a time");
        assert_eq!(trace.save(request), per_half);
    }
    write(written);
    let read = trace.stop();
    assert_eq!(numbers(&read), (0..=written).collect::<Vec<_>>());
    assert_eq!(read.dropped(), 0);
    assert_eq!(read.header.wrapped_count, 10);
    assert_eq!(read.gaps, []);
}

/// Looks at an idle stream until the dispatcher would sleep.
fn be_idle(trace: &Trace) {
    let begin = Instant::now();
    while trace.engine.service().expect("a stream runs").poll_after <= Duration::from_millis(50) {
        assert!(begin.elapsed() < Duration::from_secs(10), "it looks too often");
    }
}

/// A dispatcher that sleeps is woken once, by the event that takes the last slab of a half; one that looks
/// often, or waits for a half to be saved, is not.
//= docs/buffer.md#streaming
#[test]
fn a_full_half_wakes_a_dispatcher_that_sleeps() {
    let mut trace = start();
    let per_half = events_per_half(&trace);
    let last_slab = trace.slab_bytes() / 32;
    let wakes = || WAKES.load(Ordering::Relaxed);
    for half in 0..4 {
        be_idle(&trace);
        (0..per_half - last_slab).for_each(write);
        assert_eq!(wakes(), half, "the last slab is free");
        (0..last_slab).for_each(write);
        assert_eq!(wakes(), half + 1, "the last slab is taken");
        let request = service(&trace).expect("a half is full");
        trace.save(request);
    }
    // What has just filled a half is looked at soon, unless this thread was held up meanwhile.
    let looked = trace.engine.service().expect("a stream runs");
    assert_eq!(looked.save, None, "nothing is full");
    let expected = 4 + u32::from(looked.poll_after > Duration::from_millis(1));
    (0..per_half).for_each(write);
    assert_eq!(wakes(), expected, "it looks often");
    let request = service(&trace).expect("a half is full");
    be_idle(&trace);
    (0..2 * per_half).for_each(write);
    assert_eq!(wakes(), expected, "the answer wakes it");
    trace.save(request);
    let next = service(&trace).expect("a half is full");
    trace.save(next);
    let read = trace.stop();
    assert_eq!(read.events.len() as u64 + read.loss(LossReason::NotSaved), 7 * per_half);
}

//= docs/buffer.md#streaming
#[test]
fn a_large_record_that_skips_the_end_of_a_half_wakes_the_dispatcher() {
    let trace = start();
    let per_half = events_per_half(&trace);
    be_idle(&trace);
    (0..per_half - trace.slab_bytes() / 32).for_each(write);
    assert_eq!(WAKES.load(Ordering::Relaxed), 0);
    // Two slabs, of which the half has one.
    trace_engine::blob_record!("cat", 1, "large", &vec![7; trace.slab_bytes() as usize]);
    assert_eq!(WAKES.load(Ordering::Relaxed), 1);
    assert!(service(&trace).is_some());
    assert_eq!(trace.stop().dropped(), 0);
}

#[test]
fn what_meets_an_unsaved_half_is_dropped_with_its_time() {
    let mut trace = Trace::start_in(BufferMode::Streaming, 1 << 20);
    let per_half = events_per_half(&trace);
    (0..2 * per_half).for_each(write);
    // The dispatcher has not looked after the stream yet.
    (0..3).for_each(write);
    let first = service(&trace).unwrap();
    (0..5).for_each(write);
    let saved = trace.save(first);
    assert_eq!(saved, per_half);
    // The first half takes events again, although the second has not gone out.
    (0..per_half).for_each(write);
    let second = service(&trace).unwrap();
    assert_eq!(second.wrapped_count, 1);
    (0..7).for_each(write);
    assert_eq!(trace.save(second), per_half);
    let read = trace.stop();
    assert_eq!(read.loss(LossReason::NotRetired), 3);
    assert_eq!(read.loss(LossReason::NotSaved), 12);
    assert_eq!(read.dropped(), 15);
    assert_eq!(read.header.records_dropped, 15);
    assert_eq!(read.events.len() as u64, 3 * per_half);
    let gaps: Vec<_> = read.gaps.iter().map(|gap| (gap.gap.half, gap.gap.reason, gap.loss.count)).collect();
    assert_eq!(
        gaps,
        [(2, LossReason::NotSaved, 5), (2, LossReason::NotRetired, 3), (3, LossReason::NotSaved, 7)]
    );
    // Each gap lies between the events before and behind it.
    let at = |index: u64| read.events[index as usize].timestamp;
    let (early, late) = (&read.gaps[1].loss, &read.gaps[0].loss);
    assert!(at(2 * per_half - 1) < early.first && early.first < early.last && early.last < late.first);
    assert!(late.last < at(2 * per_half));
    assert!(at(3 * per_half - 1) < read.gaps[2].loss.first);
}

#[test]
fn only_the_half_that_went_out_can_be_saved() {
    let trace = start();
    let wrong = SaveRequest { wrapped_count: 0, durable_bytes: 16 };
    assert_eq!(trace.engine.mark_saved(wrong), Err(engine::Error::NotHandedOver(0)));
    (0..events_per_half(&trace)).for_each(write);
    let request = service(&trace).unwrap();
    let other = SaveRequest { wrapped_count: 1, ..request };
    assert_eq!(trace.engine.mark_saved(other), Err(engine::Error::NotHandedOver(1)));
    let more = SaveRequest { durable_bytes: request.durable_bytes + 8, ..request };
    assert_eq!(trace.engine.mark_saved(more), Err(engine::Error::NotHandedOver(0)));
    assert_eq!(trace.engine.mark_saved(request), Ok(()));
    assert_eq!(trace.engine.mark_saved(request), Err(engine::Error::NotHandedOver(0)));
    // How many durable bytes need not be said.
    (0..events_per_half(&trace)).for_each(write);
    let request = service(&trace).unwrap();
    assert!(request.durable_bytes > 0);
    assert_eq!(trace.engine.mark_saved(SaveRequest { durable_bytes: 0, ..request }), Ok(()));
    drop(trace.stop());
    let oneshot = Trace::start(64 << 10, &[]);
    assert_eq!(oneshot.engine.mark_saved(request), Err(engine::Error::NotStreaming));
    assert_eq!(oneshot.engine.flush(), Err(engine::Error::NotStreaming));
    assert_eq!(oneshot.engine.service(), None);
    oneshot.stop();
}

#[test]
fn a_flush_hands_out_what_there_is() {
    let mut trace = start();
    trace.engine.flush().unwrap();
    assert_eq!(service(&trace), None, "there is nothing");
    (0..3).for_each(write);
    assert_eq!(service(&trace), None);
    trace.engine.flush().unwrap();
    let request = service(&trace).unwrap();
    assert_eq!(request.wrapped_count, 0);
    // The other half is in use meanwhile.
    (3..5).for_each(write);
    assert_eq!(trace.save(request), 3);
    trace.engine.flush().unwrap();
    let request = service(&trace).unwrap();
    assert_eq!(request.wrapped_count, 1);
    assert_eq!(trace.save(request), 2);
    (5..6).for_each(write);
    let read = trace.stop();
    assert_eq!(numbers(&read), [0, 1, 2, 3, 4, 5]);
    assert_eq!(read.dropped(), 0);
}

/// The header is true for the half that was handed over, and after a stop.
//= docs/buffer.md#header
#[test]
fn the_header_tells_of_the_half_that_went_out() {
    let mut trace = start();
    let (per_half, slab) = (events_per_half(&trace), trace.slab_bytes());
    let half_bytes = u64::from(trace.slab_count() / 2) * slab;
    (0..per_half).for_each(write);
    let full = service(&trace).unwrap();
    let header = |trace: &Trace| {
        [field::DURABLE_DATA_END, field::ROLLING_DATA_END, field::ROLLING_DATA_END + 1]
            .map(|word| trace.header_word(word))
    };
    let wrapped_count = |trace: &Trace| trace.header_word(field::VERSION) >> 32;
    assert_eq!((wrapped_count(&trace), header(&trace)), (0, [full.durable_bytes, half_bytes, 0]));
    trace.save(full);
    // Three slabs, of which the last has one event, and another definition.
    (0..2 * (slab / 32)).for_each(write);
    instant!("cat", "another definition", Scope::Thread, "n" => 0_u64);
    trace.engine.flush().unwrap();
    let flushed = service(&trace).unwrap();
    assert!(flushed.durable_bytes > full.durable_bytes);
    assert_eq!((wrapped_count(&trace), header(&trace)), (1, [flushed.durable_bytes, half_bytes, 3 * slab]));
    trace.save(flushed);
    write(0);
    assert_eq!(trace.header_word(field::FLAGS), 0);
    trace.pause();
    assert_eq!((wrapped_count(&trace), header(&trace)), (2, [flushed.durable_bytes, slab, 3 * slab]));
    assert_eq!(trace.header_word(field::FLAGS), FLAG_FINAL);
    trace.end();
}

/// The definitions that a half uses come with it or before it, whatever comes later.
#[test]
fn a_half_comes_with_its_definitions() {
    let mut trace = start();
    (0..events_per_half(&trace)).for_each(write);
    let request = service(&trace).unwrap();
    instant!("later category", "later name", Scope::Thread);
    assert!(trace.save(request) > 0);
    let read = trace.stop();
    let position = |text: &str| read.dump.iter().position(|line| line.ends_with(text)).unwrap();
    let is_event = |line: &&String| line.contains("\"cat\" \"stream\"");
    let first = read.dump.iter().position(|line| is_event(&line)).unwrap();
    let last = read.dump.iter().rposition(|line| is_event(&line)).unwrap();
    assert!(position("string 1 \"cat\"") < first);
    assert!(position("\"later category\"") > last, "{:#?}", read.dump);
    assert_eq!(read.findings.bad_records, 0);
}

#[test]
fn an_idle_threads_slab_goes_out_with_its_half() {
    let mut trace = start();
    let per_half = events_per_half(&trace);
    let (sender, wake) = std::sync::mpsc::channel();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let idle = std::thread::spawn(move || {
        instant!("cat", "before", Scope::Thread, "n" => 0_u64);
        ready.send(()).unwrap();
        wake.recv().unwrap();
        instant!("cat", "after", Scope::Thread, "n" => 1_u64);
    });
    is_ready.recv().unwrap();
    (0..per_half).for_each(write);
    let request = service(&trace).unwrap();
    let slabs = trace.slab_words();
    let half = slabs.len() / 2;
    assert!(slabs[..half].iter().all(|word| word.state() == SlabState::Closed));
    let saved = trace.save(request);
    sender.send(()).unwrap();
    idle.join().unwrap();
    let read = trace.stop();
    assert_eq!(read.events.len() as u64, per_half + 2);
    assert!(read.events[..saved as usize].iter().any(|event| event.name == "before"));
    assert!(read.events[saved as usize..].iter().any(|event| event.name == "after"));
    assert_eq!(read.dropped(), 0);
}

#[test]
fn what_an_ended_thread_has_left_goes_out_with_its_half() {
    let mut trace = start();
    let per_half = events_per_half(&trace);
    // This thread has had a slab: it takes no leftover slab.
    write(0);
    std::thread::spawn(|| instant!("cat", "ended", Scope::Thread, "n" => 0_u64)).join().unwrap();
    (0..per_half).for_each(write);
    let request = service(&trace).unwrap();
    let slabs = trace.slab_words();
    assert!(slabs[..slabs.len() / 2].iter().all(|word| word.state() == SlabState::Closed));
    trace.save(request);
    let read = trace.stop();
    assert_eq!(read.events.len() as u64, per_half + 1 + 1);
    assert_eq!(read.dropped(), 0);
}

/// A thread that cannot leave its event keeps its slab, and the dispatcher waits for it only briefly.
#[test]
fn a_straggler_keeps_its_slab_which_is_saved_later() {
    let mut trace = start();
    let per_half = events_per_half(&trace);
    let mut frozen = Frozen::new();
    (0..per_half).for_each(write);
    let asked = Instant::now();
    let request = service(&trace).unwrap();
    assert!(asked.elapsed() < Duration::from_secs(1), "waited for a straggler");
    let open =
        |trace: &Trace| trace.slab_words().iter().filter(|word| word.state() == SlabState::Open).count();
    assert_eq!(open(&trace), 2, "the straggler's, and the one the other half began with");
    let mut saved = trace.save(request);
    // It is skipped for as long as it is left behind.
    let others = per_half - events_per_slab(&trace);
    for _ in 0..5 {
        (0..others).for_each(write);
        trace.engine.flush().unwrap();
        let request = service(&trace).unwrap();
        saved += trace.save(request);
        assert!(trace.slab_words().iter().any(|word| word.sequence() == 1));
    }
    frozen.release();
    write(0);
    trace.engine.flush().unwrap();
    let request = service(&trace).unwrap();
    // Now it comes along, and its place is used again.
    assert_eq!(trace.save(request), written_since(saved, per_half + 5 * others + 1) + 2);
    for _ in 0..3 {
        (0..others).for_each(write);
        trace.engine.flush().unwrap();
        let request = service(&trace).unwrap();
        trace.save(request);
    }
    assert!(trace.slab_words().iter().all(|word| word.sequence() != 1));
    let read = trace.stop();
    let of_straggler = read.events.iter().filter(|event| event.name == "frozen").count();
    assert_eq!(of_straggler, 2, "the one before it froze, and the one it froze in");
    assert_eq!(read.events.len() as u64, per_half + 8 * others + 1 + 2);
    assert_eq!(read.dropped(), 0);
    assert_eq!(read.findings.bad_records, 0);
}

fn events_per_slab(trace: &Trace) -> u64 {
    trace.slab_bytes() / 32
}

/// Events of the writer that were not saved yet.
fn written_since(saved: u64, written: u64) -> u64 {
    written - saved
}

#[test]
fn a_further_run_goes_on_where_it_was_or_counts_from_the_start() {
    for (disposition, expected) in
        [(Disposition::Retain, 1), (Disposition::ClearNondurable, 0), (Disposition::ClearEntire, 0)]
    {
        let mut trace = start();
        let per_half = events_per_half(&trace);
        (0..per_half).for_each(write);
        let request = service(&trace).unwrap();
        trace.save(request);
        trace.pause();
        assert_eq!(trace.engine.service(), None);
        trace.resume(disposition);
        (0..per_half).for_each(write);
        let request = service(&trace).unwrap();
        assert_eq!(request.wrapped_count, expected, "{disposition:?}");
        assert_eq!(trace.save(request), per_half);
        let read = trace.stop();
        assert_eq!(read.dropped(), 0, "{disposition:?}: all of it was saved");
    }
}

/// A half may come back after the trace has stopped.
#[test]
fn a_save_under_way_survives_a_stop() {
    let mut trace = start();
    let per_half = events_per_half(&trace);
    (0..per_half).for_each(write);
    let request = service(&trace).unwrap();
    trace.pause();
    assert_eq!(trace.save(request), per_half);
    trace.resume(Disposition::Retain);
    (0..2 * per_half - 1).for_each(write);
    let read = trace.stop();
    assert_eq!(read.dropped(), 0);
    assert_eq!(read.events.len() as u64, 3 * per_half - 1);
}

/// The dispatcher's part in a thread of its own, four writers, and a saver: every event arrives once or is
/// counted.
#[test]
fn many_threads_stream_without_a_hole() {
    const EACH: u64 = 100_000;
    let mut trace = Trace::start_in(BufferMode::Streaming, 256 << 10);
    let (mut saved, mut left_behind) = (0, 0);
    let barrier = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    // There is room for the first of each.
                    write(0);
                    barrier.wait();
                    (1..EACH).for_each(write);
                })
            })
            .collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            if let Some(request) = service(&trace) {
                let half = trace.slab_words().len() / 2;
                let first = request.wrapped_count as usize % 2 * half;
                let is_open = |word: &&SlabWord| word.state() == SlabState::Open;
                left_behind += trace.slab_words()[first..first + half].iter().filter(is_open).count();
                saved += trace.save(request);
            }
        }
    });
    let read = trace.stop();
    assert!(saved > 0);
    assert_eq!(read.findings.bad_records, 0);
    assert_eq!(read.events.len() as u64 + read.dropped(), 4 * EACH);
    let threads = read.by_thread();
    assert_eq!(threads.len(), 4);
    for events in threads.values() {
        let mut numbers: Vec<_> = events.iter().map(|event| event.u64("n")).collect();
        // A slab that stayed with its thread when its half was saved comes later.
        assert!(left_behind > 0 || numbers.is_sorted(), "in the order of the archive");
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), events.len(), "nothing twice");
    }
    let gaps: u64 = read.gaps.iter().map(|gap| gap.loss.count).sum();
    // Older gaps may have been written over.
    assert!(gaps <= read.dropped());
}
