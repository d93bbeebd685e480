//! Writes events as fast as it can from four threads until it is killed, and counts in a file, shared with
//! the process that kills it, what each thread has written.
//!
//! `burst FILE [LIMIT [PAUSE [BY]]]`: the file holds a counter of 8 bytes for each thread; an event's
//! number is stored there after its macro has returned. Behind them is a word that says whether it was being
//! recorded when it began. Between two events of a thread is a pause of so many microseconds. By
//! `tracing`, they are events of the crate of this name, each in a span; by `operations`, each is a span that
//! is entered twice. By `local` it begins a recording of its own; by `forks` the threads are processes.

use std::fs::OpenOptions;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trace_provider::{Scope, TraceProvider, category_enabled, instant, local, startup};

const THREADS: usize = 4;

fn main() {
    startup::begin_by_environment();
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("the name of a file");
    let limit: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    let pause = arguments.next().map(|text| Duration::from_micros(text.parse().expect("microseconds")));
    let by = arguments.next().unwrap_or_default();
    let file = OpenOptions::new().read(true).write(true).open(path).expect("the file");
    let _provider = match &*by {
        "tracing" | "operations" => tracing_fxt::Options::new().init("burst"),
        "local" => {
            let options = startup::Options { buffer_mebibytes: 64, ..startup::Options::of("burst") };
            local::start(&options).expect("a recording");
            TraceProvider::new("burst")
        }
        _ => TraceProvider::new("burst"),
    };
    let by = &*by;
    let page = zx_sim::Vmo::from_handle(zx_sim::Handle::new(file.into())).and_then(|vmo| vmo.map());
    let page = page.expect("the file can be mapped");
    let (counters, is_recorded) = words(&page).split_at(THREADS);
    // It may have waited in vain.
    is_recorded[0].store(u64::from(category_enabled!("burst")), Ordering::Release);
    let work = |thread: usize| {
        for number in 0..limit {
            let id = thread as u64;
            match by {
                "tracing" => {
                    let _step = tracing::info_span!(target: "burst", "step").entered();
                    tracing::info!(name: "event", target: "burst", n = number, thread = id);
                }
                "operations" => {
                    let span = tracing::info_span!(target: "burst", "event", n = number, thread = id);
                    (0..2).for_each(|_| span.in_scope(|| ()));
                }
                _ => instant!("burst", "event", Scope::Thread, "n" => number, "thread" => thread),
            }
            counters[thread].store(number + 1, Ordering::Release);
            pause.into_iter().for_each(std::thread::sleep);
        }
    };
    if by == "forks" {
        // SAFETY: this is the only thread of the program's own.
        work((1..THREADS).find(|_| unsafe { libc::fork() } == 0).unwrap_or(0));
        return;
    }
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || work(thread));
        }
    });
}

/// The counters at the beginning of the mapping, and a word.
fn words(page: &zx_sim::Mapping) -> &[AtomicU64] {
    assert!(page.len() >= (THREADS + 1) * 8);
    // SAFETY: the mapping is page-aligned, large enough by the check above, lives as long as the borrow, and
    // is only touched through atomics.
    unsafe { std::slice::from_raw_parts(page.as_ptr().cast::<AtomicU64>(), THREADS + 1) }
}
