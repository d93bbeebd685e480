//! Spans and events of `tracing`, recorded.
//!
//! `spans bare|layer|lifetimes|always`: a few of each kind, with a subscriber of its own, or with a layer.
//! `spans logs|logs-layer`: events as messages.
//! `spans polled`: a future in a span, and a traced one, each polled first by one thread, then by another.
//! `spans fork`: a child records a span and an event.
//! `spans stack ORDER`: prints "ready"; for each line of stdin a batch of 100 rounds, after which it prints
//! how many events a layer of `fmt` has had. ORDER names the layers of the stack from the inside out.

use std::io::{BufRead, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use trace_provider::{TraceFutureExt, TraceProvider, duration, trace_future_args};
use tracing::{Instrument, Level, Span, debug, debug_span, event, info, info_span, span, trace, warn};
use tracing_fxt::Options;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt, registry};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = Options::new().target("quiet", Level::WARN.into());
    let _provider = match arguments[0].as_str() {
        "bare" => options.init("spans"),
        "layer" => with_layer(options),
        "lifetimes" => options.lifetimes().init("spans"),
        "lifetimes-layer" => with_layer(options.lifetimes()),
        "always" => {
            registry().with(options.always().layer()).init();
            TraceProvider::new("spans")
        }
        "open" => return open(options.lifetimes().init("spans"), &arguments[1]),
        "polled" => return polled(options.lifetimes().init("spans")),
        "logs" => return logs(options.events_as_logs().init("spans")),
        "logs-layer" => return logs(with_layer(options.events_as_logs())),
        "fork" => {
            let _provider = options.init("spans");
            return fork();
        }
        "child" => {
            let _provider = TraceProvider::new("spans");
            return dying_child();
        }
        "some threads" => {
            let provider = TraceProvider::new("spans");
            return scoped(&arguments[1], || batches(provider));
        }
        "stack" => {
            stack(&arguments[1]);
            let provider = TraceProvider::new("spans");
            return batches(provider);
        }
        mode => panic!("no mode {mode}"),
    };
    each_kind();
}

/// Ends, or waits for a line, while a span is entered in another one, and another one has begun.
fn open(_provider: TraceProvider, how: &str) {
    let _outer = info_span!("outer").entered();
    info_span!("ended").in_scope(|| ());
    let _inner = info_span!("inner").entered();
    let _operation = info_span!("operation");
    println!("open");
    if how == "abort" {
        std::process::abort();
    }
    _ = std::io::stdin().read_line(&mut String::new());
}

fn with_layer(options: Options) -> TraceProvider {
    registry().with(options.layer()).init();
    TraceProvider::new("spans")
}

#[derive(Debug)]
#[expect(dead_code, reason = "it is shown")]
struct Shape(u8);

/// Records something when it is shown.
struct Talkative;

impl std::fmt::Display for Talkative {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        info!("being shown");
        f.write_str("talk")
    }
}

#[tracing::instrument(level = "debug", skip(hidden))]
fn instrumented(shown: u8, hidden: u8) -> u8 {
    shown + hidden
}

fn each_kind() {
    {
        let _request = info_span!("request", id = 7, path = "/index", ratio = 0.5, big = u64::MAX).entered();
        let read = debug_span!("read", bytes = tracing::field::Empty, state = ?Shape(3));
        read.in_scope(|| {
            Span::current().record("bytes", 4096);
        });
        // Again, without what was recorded later.
        read.in_scope(|| info!("always the same"));
        info!("always the same");
        trace!("not recorded by default");
        warn!(target: "quiet", "loud enough");
        info!(target: "quiet", "too quiet");
        debug!(target: "quieter", "another target");
    }
    instrumented(1, 2);
    for number in 0..2 {
        info!(number, "number {number}");
    }
    for text in ["one", "two"] {
        info!("{text}");
    }
    info!(answer = 42);
    event!(name: "named", Level::INFO, shape = ?Shape(1), ok = true);
    event!(name: "named too", Level::INFO, "with a message");
    info!(counter.queue = 5, counter.load = 0.25);
    info!(counter.queue = 6_u64, "more than a sample");
    info!(shown = %Talkative, "outer");
    info!(
        a = 1,
        b = 2,
        c = 3,
        d = 4,
        e = 5,
        f = 6,
        g = 7,
        h = 8,
        i = 9,
        j = 10,
        k = 11,
        l = 12,
        m = 13,
        n = 14,
        o = 15,
        "fifteen"
    );
    {
        let outer = span!(Level::INFO, "outer").entered();
        let inner = span!(Level::INFO, "inner", n = 1).entered();
        // In the wrong order.
        drop(outer);
        drop(inner);
    }
    {
        let cause = info_span!("cause");
        let effect = info_span!("effect");
        cause.in_scope(|| effect.follows_from(&cause));
        effect.in_scope(|| ());
        effect.in_scope(|| ());
    }
    {
        // Polled by several threads.
        let task = info_span!("task", number = 1);
        for _ in 0..2 {
            let task = task.clone();
            std::thread::spawn(move || task.in_scope(|| ())).join().expect("no panic");
        }
    }
    {
        // From a span of this thread to spans of another: one that is created here, and one that names its
        // parent.
        let parent = info_span!("parent").entered();
        let child = info_span!("child");
        let named = parent.id();
        std::thread::spawn(move || {
            child.in_scope(|| ());
            child.in_scope(|| ());
            info_span!(parent: named, "named child").in_scope(|| ());
        })
        .join()
        .expect("no panic");
    }
    println!("{}", tracing_fxt::dropped_fields());
}

/// Polls a future on a thread of its own, which ends, and on another one, on which it is dropped.
fn poll_twice(future: impl Future<Output = ()> + Send + 'static) {
    fn poll(future: &mut Pin<Box<impl Future<Output = ()>>>) -> Poll<()> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }
    let mut future = Box::pin(future);
    let first = std::thread::spawn(move || {
        assert_eq!(poll(&mut future), Poll::Pending);
        future
    });
    let mut future = first.join().expect("no panic");
    let second = std::thread::spawn(move || assert_eq!(poll(&mut future), Poll::Ready(())));
    second.join().expect("no panic");
}

/// Is ready when it is polled for the second time.
fn second_poll() -> impl Future<Output = ()> + Send {
    let mut polls = 0;
    std::future::poll_fn(move |_| {
        polls += 1;
        if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
    })
}

fn polled(provider: TraceProvider) {
    poll_twice(second_poll().instrument(info_span!("instrumented", n = 1)));
    poll_twice(second_poll().trace(trace_future_args!("app", "traced", 7, "n" => 1)));
    drop(provider);
}

fn logs(provider: TraceProvider) {
    {
        let _span = info_span!("request", id = 7).entered();
        info!("always the same");
        warn!(target: "quiet", "loud enough");
        info!(target: "quiet", "too quiet");
        trace!("not recorded by default");
    }
    for number in 0..2 {
        debug!(number, text = "a text", ok = true, ratio = 0.5, shape = ?Shape(1), "number {number}");
    }
    info!(answer = 42);
    event!(name: "named", Level::INFO, ok = true);
    event!(name: "named too", Level::INFO, "with a message");
    info!(counter.queue = 5);
    info!(counter.queue = 6_u64, size = 2, "more than a sample");
    info!(shown = %Talkative, "outer");
    info!("");
    info!(
        a = 1,
        b = 2,
        c = 3,
        d = 4,
        e = 5,
        f = 6,
        g = 7,
        h = 8,
        i = 9,
        j = 10,
        k = 11,
        l = 12,
        m = 13,
        n = 14,
        o = 15
    );
    info!(text = %"€".repeat(2000), behind = 1, "{}", "€".repeat(2000));
    // One that is cut leaves no room for another.
    info!(text = "x".repeat(5000), "long");
    info!(counter.queue = "no number");
    drop(provider);
    println!("{}", tracing_fxt::dropped_fields());
}

fn fork() {
    info!("in the parent");
    let status = in_child(|| {
        info_span!("in the child").in_scope(|| info!("child's"));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    });
    assert_eq!(status, 0);
    info!("in the parent again");
}

/// A child dies in its first scopes, and nothing else is recorded.
fn dying_child() {
    let status = in_child(|| {
        duration!("app", "request");
        duration!("app", "guilty");
        std::process::abort();
    });
    assert!(libc::WIFSIGNALED(status), "{status}");
}

/// Calls a function that ends the process in a forked child. The status with which the child ended.
fn in_child(call: impl FnOnce()) -> i32 {
    // SAFETY: the child only records, and ends.
    match unsafe { libc::fork() } {
        0 => {
            call();
            unreachable!("the child has ended")
        }
        child => {
            let mut status = -1;
            // SAFETY: waits for our own child and fills `status`.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status
        }
    }
}

/// Counts the lines of the layer that prints.
#[derive(Clone)]
struct Counting;
static LINES: AtomicU64 = AtomicU64::new(0);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.fetch_add(bytes.iter().filter(|byte| **byte == b'\n').count() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

macro_rules! print {
    () => {
        fmt::layer().with_writer(|| Counting)
    };
}

macro_rules! filter {
    () => {
        EnvFilter::new("info")
    };
}

macro_rules! stack {
    ($($layer:expr),+) => { registry()$(.with($layer))+.init() };
}

fn stack(order: &str) {
    match order {
        "print,filter,record" => stack!(print!(), filter!(), tracing_fxt::layer()),
        "print,record,filter" => stack!(print!(), tracing_fxt::layer(), filter!()),
        "filter,print,record" => stack!(filter!(), print!(), tracing_fxt::layer()),
        "filter,record,print" => stack!(filter!(), tracing_fxt::layer(), print!()),
        "record,print,filter" => stack!(tracing_fxt::layer(), print!(), filter!()),
        "record,filter,print" => stack!(tracing_fxt::layer(), filter!(), print!()),
        "print,record" => stack!(print!(), tracing_fxt::layer()),
        "record,print" => stack!(tracing_fxt::layer(), print!()),
        "filtered-print,record" => stack!(print!().with_filter(filter!()), tracing_fxt::layer()),
        "record,filtered-print" => stack!(tracing_fxt::layer(), print!().with_filter(filter!())),
        "filtered-print,always" => stack!(print!().with_filter(filter!()), Options::new().always().layer()),
        order => panic!("no order {order}"),
    }
}

/// The subscriber is this thread's alone.
fn scoped(kind: &str, call: impl FnOnce()) {
    match kind {
        "subscriber" => tracing::subscriber::with_default(Options::new().subscriber(), call),
        _ => tracing::subscriber::with_default(registry().with(tracing_fxt::layer()), call),
    }
}

fn batches(provider: TraceProvider) {
    println!("ready");
    for _ in std::io::stdin().lock().lines() {
        for round in 0..100 {
            let _span = info_span!("round", round).entered();
            info!("information");
            debug!("detail");
        }
        println!("{}", LINES.swap(0, Ordering::Relaxed));
    }
    drop(provider);
}
