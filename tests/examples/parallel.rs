//! Work on the threads of rayon: `parallel flat` hands it out in the main thread, `parallel nested` in those
//! threads, and `parallel request` in an asynchronous operation.

use rayon::prelude::*;
use rayon_fxt::{Parent, ScopeExt, in_parent, join, spawn};
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use trace_provider::{TraceFutureExt, TraceProvider, duration, trace_future_args};

fn flat() {
    duration!("app", "submit");
    assert_eq!(join("joined", || 1, || 2), (1, 2));
    let squares: Vec<u64> = (0..20_u64).into_par_iter().map(in_parent("square", |x| x * x)).collect();
    assert!(squares.into_iter().eq((0..20).map(|x| x * x)));
    let (sender, receiver) = mpsc::channel();
    for _ in 0..3 {
        let sender = sender.clone();
        spawn("spawned", move || sender.send(()).expect("a receiver"));
    }
    drop(sender);
    assert_eq!(receiver.iter().count(), 3);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads");
    let parent = Parent::here("installed");
    assert_eq!(pool.install(|| parent.run(|| 7)), 7);
    let panics = || join("panics", || 1, || panic!("as it should"));
    assert!(std::panic::catch_unwind(panics).is_err());
}

/// The sum of what is below, by halves.
fn sum(from: u64, to: u64) -> u64 {
    if to - from == 1 {
        return from;
    }
    let middle = from.midpoint(to);
    let (left, right) = join("sum", || sum(from, middle), || sum(middle, to));
    left + right
}

fn nested() {
    duration!("app", "submit");
    let parent = Parent::here("root");
    assert_eq!(rayon::scope(|_| parent.run(|| sum(0, 64))), 2016);
    rayon::scope(|scope| {
        parent.run(|| {
            for _ in 0..5 {
                scope.spawn_traced("in scope", |scope| scope.spawn_traced("in scope", |_| ()));
            }
        });
    });
}

/// Polls a future that is ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits for nothing"),
    }
}

fn request() {
    let (sender, receiver) = mpsc::channel();
    let part = || now(async { 1 }.trace(trace_future_args!("app", "part")));
    let work = async {
        assert_eq!(join("joined", part, || 2), (1, 2));
        spawn("spawned", move || sender.send(part()).expect("a receiver"));
        assert_eq!(receiver.recv(), Ok(1));
    };
    now(work.trace(trace_future_args!("app", "request")));
    assert_eq!(join("outside", || 1, || 2), (1, 2));
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    let _provider = TraceProvider::new("parallel");
    rayon::ThreadPoolBuilder::new().num_threads(4).build_global().expect("the first pool");
    let body = match std::env::args().nth(1).as_deref() {
        Some("nested") => nested,
        Some("request") => request,
        _ => flat,
    };
    let is_right = std::panic::catch_unwind(body).is_ok();
    // What was spawned has sent its answer from inside of its duration. A thread comes to a broadcast when
    // its closure has ended, and the duration with it.
    rayon::broadcast(|_| ());
    println!("{}", if is_right { "as expected" } else { "wrong" });
}
