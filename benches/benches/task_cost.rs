//! What `tokio-fxt` adds to a poll and to a wake: of a future that does nothing, polled by hand, with and
//! without a recording; and of tasks of tokio that yield. Beside it reading the clock, an instant, and a
//! duration with as many arguments, in one run.
//!
//! `--test` makes it short.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use trace_benches::recording::Recording;
use trace_engine::{Scope, duration, instant};

/// Operations of a burst: the largest records of one take less than half of the buffer.
const TIMES: u64 = 200_000;
const ROUNDS: usize = 25;

fn burst(times: u64, mut run: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..times).for_each(|_| run());
    begin.elapsed().as_nanos() as f64 / times as f64
}

/// Is never ready, and leaves its waker.
fn pending(left: &Arc<Mutex<Option<Waker>>>) -> impl Future<Output = ()> + use<> {
    let (left, mut is_left) = (left.clone(), 0);
    poll_fn(move |context| {
        // The second poll is recorded as all that follow are.
        if black_box(is_left) < 2 {
            is_left += 1;
            *left.lock().expect("no panic") = Some(context.waker().clone());
        }
        Poll::Pending
    })
}

/// A poll, and a poll with the wake before it.
fn polls(times: u64, future: impl Future<Output = ()>, left: &Arc<Mutex<Option<Waker>>>) -> [f64; 2] {
    let mut context = Context::from_waker(Waker::noop());
    let mut future = pin!(future);
    let mut poll = || _ = black_box(future.as_mut().poll(&mut context));
    (0..2).for_each(|_| poll());
    let alone = burst(times, &mut poll);
    let waker = left.lock().expect("no panic").take().expect("the future has left it");
    [
        alone,
        burst(times, || {
            waker.wake_by_ref();
            poll();
        }),
    ]
}

/// A task of tokio that yields, on one thread; for each poll.
fn yields(times: u64, is_wrapped: bool) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let yielding = async move {
        for _ in 0..times {
            tokio::task::yield_now().await;
        }
    };
    let begin = Instant::now();
    runtime.block_on(async move {
        let task = if is_wrapped { tokio_fxt::spawn("yields", yielding) } else { tokio::spawn(yielding) };
        task.await.expect("no panic");
    });
    begin.elapsed().as_nanos() as f64 / times as f64
}

type Row = (&'static str, bool, fn(u64) -> Vec<f64>);

/// What, whether it is recorded, and how: each gives one number or two.
const ROWS: [Row; 9] = [
    ("reading the clock", false, |times| vec![burst(times, || _ = black_box(zx_sim::ticks::now()))]),
    ("instant", true, |times| vec![burst(times, || instant!("bench", "instant", Scope::Thread))]),
    ("duration with two arguments", true, |times| {
        vec![burst(times, || {
            duration!("bench", "duration", "task" => 7_u32, "delay-ns" => black_box(7_u64));
        })]
    }),
    ("poll, bare | … with its wake", false, |times| {
        let left = Arc::default();
        polls(times, pending(&left), &left).to_vec()
    }),
    ("poll of a task | … with its wake", false, |times| {
        let left = Arc::default();
        polls(times, tokio_fxt::task("poll", pending(&left)), &left).to_vec()
    }),
    ("poll of a task | … with its wake", true, |times| {
        let left = Arc::default();
        polls(times, tokio_fxt::task("poll", pending(&left)), &left).to_vec()
    }),
    ("yield in tokio, bare", false, |times| vec![yields(times, false)]),
    ("yield in tokio, of a task", false, |times| vec![yields(times, true)]),
    ("yield in tokio, of a task", true, |times| vec![yields(times, true)]),
];

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (times, rounds) = if is_test { (1000, 1) } else { (TIMES, ROUNDS) };
    let mut found: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for (number, (_, is_on, run)) in ROWS.iter().enumerate() {
            let recording = is_on.then(Recording::start);
            for (part, nanos) in run(times).into_iter().enumerate() {
                found.entry((number, part)).or_default().push(nanos);
            }
            recording.into_iter().for_each(Recording::stop);
        }
    }
    println!("| what | recorded | minimum ns | median ns |\n|---|---|---|---|");
    for ((number, part), mut nanos) in found {
        nanos.sort_by(f64::total_cmp);
        let (what, is_on, _) = ROWS[number];
        let what = what.split(" | ").nth(part).expect("a name for each number");
        let is_on = if is_on { "yes" } else { "no" };
        println!("| {what} | {is_on} | {:.1} | {:.1} |", nanos[0], nanos[nanos.len() / 2]);
    }
}
