//! Tasks of tokio: `tasks kinds|threads|delays|all` does that and ends, `tasks steps` does what its input
//! says.

use std::future::{Future, poll_fn};
use std::io::BufRead;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinSet, LocalSet, yield_now};
use tokio_fxt::{JoinSetExt, blocking, spawn, spawn_blocking, spawn_local, task};
use trace_provider::{Scope, TraceProvider, category_enabled, instant};

/// Tasks of [`threads`], and how often each is polled.
const TASKS: usize = 100;
const POLLS: u32 = 20;

/// Is ready at its poll of this number, and wakes itself in those before.
fn polled(times: u32) -> impl Future<Output = u32> + Send {
    let mut polls = 0;
    poll_fn(move |context| {
        polls += 1;
        if polls == times {
            return Poll::Ready(polls);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Keeps its thread busy.
fn spin() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(2) {
        std::hint::spin_loop();
    }
}

async fn kinds() {
    assert_eq!(spawn("polled", polled(5)).await.expect("no panic"), 5);
    let (sender, receiver) = oneshot::channel();
    let waits = spawn("waits", receiver);
    yield_now().await;
    spawn("sends", async { sender.send(3) }).await.expect("no panic").expect("a receiver");
    assert_eq!(waits.await.expect("no panic"), Ok(3));
    let aborted = spawn("aborted", std::future::pending::<()>());
    yield_now().await;
    aborted.abort();
    assert!(aborted.await.expect_err("it was aborted").is_cancelled());
    let unpolled = spawn("unpolled", async {});
    unpolled.abort();
    assert!(unpolled.await.expect_err("it was aborted").is_cancelled());
    let panics = spawn("panics", async {
        yield_now().await;
        panic!("as it should");
    });
    assert!(panics.await.expect_err("it has panicked").is_panic());
    assert_eq!(spawn_blocking("block", || 7).await.expect("no panic"), 7);
    let panics = spawn_blocking("block panics", || panic!("as it should"));
    assert!(panics.await.expect_err("it has panicked").is_panic());
    drop(blocking("never runs", || ()));
    let wrapped = tokio::spawn(task("wrapped", polled(2)));
    assert_eq!(wrapped.await.expect("no panic"), 2);

    let mut set = JoinSet::new();
    for _ in 0..3 {
        set.spawn_traced("member", polled(3));
    }
    set.spawn_blocking_traced("blocking member", || 10);
    LocalSet::new()
        .run_until(async move {
            set.spawn_local_traced("local member", polled(1));
            assert_eq!(spawn_local("local", polled(2)).await.expect("no panic"), 2);
            assert_eq!(set.join_all().await.into_iter().sum::<u32>(), 20);
        })
        .await;
}

async fn threads() {
    let mut set = JoinSet::new();
    for _ in 0..TASKS {
        set.spawn_traced("task", polled(POLLS));
    }
    assert_eq!(set.join_all().await, [POLLS; TASKS]);
}

/// A task that is woken during its poll, and one that is woken between two of its polls.
async fn delays() {
    let mut polls = 0;
    let during = poll_fn(move |context| {
        polls += 1;
        if polls == 3 {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        spin();
        context.waker().wake_by_ref();
        Poll::Pending
    });
    spawn("during", during).await.expect("no panic");
    let (sender, receiver) = oneshot::channel();
    let between = spawn("between", receiver);
    yield_now().await;
    let wakes = spawn("wakes", async move {
        spin();
        instant!("app", "before the wake", Scope::Thread);
        sender.send(()).expect("a receiver");
        instant!("app", "behind the wake", Scope::Thread);
        spin();
    });
    wakes.await.expect("no panic");
    between.await.expect("no panic").expect("a sender");
}

/// Says when it has done what a line of the input says.
fn steps(runtime: &Runtime) {
    let (notify, mut set) = (Arc::new(Notify::new()), JoinSet::new());
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("text");
        let wait_until = |is_wanted| {
            while category_enabled!("tokio") != is_wanted {
                std::thread::yield_now();
            }
        };
        let turn = || runtime.block_on(yield_now());
        match &*line {
            "on" => wait_until(true),
            "off" => wait_until(false),
            "wake" => {
                notify.notify_waiters();
                turn();
            }
            "abort" => {
                set.abort_all();
                turn();
            }
            name => {
                let notify = notify.clone();
                let _inside = runtime.enter();
                set.spawn_traced(name, async move {
                    loop {
                        notify.notified().await;
                    }
                });
                turn();
            }
        }
        println!("{line}");
    }
}

/// Tasks with and without names, in a runtime whose tasks are all recorded.
#[cfg(tokio_unstable)]
async fn all() {
    let mut tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(polled(POLLS))).collect();
    tasks.extend((0..TASKS).map(|_| spawn("named", polled(POLLS))));
    let (sender, receiver) = oneshot::channel();
    let aborted = tokio::spawn(async {
        sender.send(()).expect("a receiver");
        std::future::pending::<()>().await;
    });
    receiver.await.expect("it is polled");
    aborted.abort();
    assert!(aborted.await.expect_err("it was aborted").is_cancelled());
    for task in tasks {
        assert_eq!(task.await.expect("no panic"), POLLS);
    }
}

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let _provider = TraceProvider::new("tasks");
    std::panic::set_hook(Box::new(|_| ()));
    let mut builder =
        if mode == "threads" { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    #[cfg(tokio_unstable)]
    if mode == "all" {
        builder = Builder::new_multi_thread();
        tokio_fxt::record_all_tasks(&mut builder);
    }
    let runtime = builder.build().expect("a runtime");
    let is_ok = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match &*mode {
        "kinds" => runtime.block_on(kinds()),
        "threads" => runtime.block_on(threads()),
        "delays" => runtime.block_on(delays()),
        #[cfg(tokio_unstable)]
        "all" => runtime.block_on(all()),
        _ => steps(&runtime),
    }));
    println!("{}", if is_ok.is_ok() { "as expected" } else { "wrong" });
}
