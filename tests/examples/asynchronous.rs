//! One program, written in each of the ways in which a future can be recorded.
//!
//! `asynchronous WAY COUNT`: so many jobs at a time, each of which waits twice for 1 ms. Prints the
//! nanoseconds that each took by the program's own clock.
//! `asynchronous WAY hang`: a job that waits forever. Prints "waiting", and ends with stdin.
//! `asynchronous WAY steps COUNT`: requests, each with two steps, of which the second one is slow.
//! `asynchronous mixed`: in a span, a traced future that awaits a span, and a task of tokio, in which a
//! traced future awaits a traced function.
//! `asynchronous panics`: traced futures that panic in their first poll, in a duration.

use std::future::Future;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use trace_provider::{Id, TraceFutureExt, TraceProvider, async_enter, duration, trace, trace_future_args};
use tracing::{Instrument, info_span};
use tracing_fxt::Options;
use tracing_subscriber::prelude::*;

const MS: Duration = Duration::from_millis(1);

/// What a job waits for takes so long.
async fn wait(time: Duration) {
    assert!(timeout(time, std::future::pending::<()>()).await.is_err());
}

/// The nanoseconds that it took.
async fn work() -> u64 {
    let begin = Instant::now();
    wait(MS).await;
    wait(MS).await;
    begin.elapsed().as_nanos() as u64
}

#[trace(category = "jobs", name = "job")]
async fn attributed() -> u64 {
    work().await
}

#[tracing::instrument(name = "job", target = "jobs")]
async fn instrumented() -> u64 {
    work().await
}

/// A job, recorded in a way.
fn job(way: &str) -> tokio::task::JoinHandle<u64> {
    match way {
        "trace" => tokio::spawn(work().trace(trace_future_args!("jobs", "job"))),
        "attribute" => tokio::spawn(attributed()),
        "tokio" => tokio_fxt::spawn("job", work()),
        "tracing" | "layer" | "always" | "lifetimes" => tokio::spawn(instrumented()),
        "enter" => tokio::spawn(async {
            let _job = async_enter!(Id::new(), "jobs", "job");
            work().await
        }),
        way => panic!("no way {way}"),
    }
}

async fn hang(way: &str) {
    let forever = std::future::pending::<u64>;
    let hanging = match way {
        "trace" => tokio::spawn(forever().trace(trace_future_args!("jobs", "job"))),
        "tokio" => tokio_fxt::spawn("job", forever()),
        _ => tokio::spawn(forever().instrument(info_span!(target: "jobs", "job"))),
    };
    println!("waiting");
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    hanging.abort();
}

async fn request(number: u32) {
    async {
        wait(MS).instrument(info_span!(target: "jobs", "parse")).await;
        wait(10 * MS).instrument(info_span!(target: "jobs", "fetch")).await;
    }
    .instrument(info_span!(target: "jobs", "request", number))
    .await;
}

/// Each in the one before, by another library.
async fn mixed() {
    async {
        let outer = async { wait(MS).instrument(info_span!(target: "jobs", "inner")).await };
        outer.trace(trace_future_args!("jobs", "outer")).await;
        let task = tokio_fxt::spawn("task", async {
            let step = async { attributed().await };
            step.trace(trace_future_args!("jobs", "step")).await
        });
        task.await.unwrap();
    }
    .instrument(info_span!(target: "jobs", "request"))
    .await;
}

#[trace(category = "jobs", name = "job")]
async fn panicking() {
    panic!("as it should");
}

fn panics() {
    std::panic::set_hook(Box::new(|_| ()));
    duration!("jobs", "handler");
    for way in ["trace", "attribute"] {
        let mut context = Context::from_waker(Waker::noop());
        let result = catch_unwind(AssertUnwindSafe(|| match way {
            "trace" => pin!(async { panic!("as it should") }.trace(trace_future_args!("jobs", "job")))
                .poll(&mut context),
            _ => pin!(panicking()).poll(&mut context),
        }));
        assert!(result.is_err(), "{way}");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let way = arguments[0].as_str();
    let task = arguments.get(1).map_or(way, String::as_str);
    let _provider = match way {
        "tracing" | "mixed" => tracing_fxt::init("asynchronous"),
        "lifetimes" => Options::new().lifetimes().init("asynchronous"),
        "layer" => {
            tracing_subscriber::registry().with(tracing_fxt::layer()).init();
            TraceProvider::new("asynchronous")
        }
        "always" => {
            tracing_subscriber::registry().with(Options::new().always().layer()).init();
            TraceProvider::new("asynchronous")
        }
        _ => TraceProvider::new("asynchronous"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    runtime.block_on(async {
        match task {
            "hang" => hang(way).await,
            "mixed" => mixed().await,
            "panics" => panics(),
            "steps" => {
                let count = arguments[2].parse().unwrap();
                join((0..count).map(|number| tokio::spawn(request(number))).collect()).await;
            }
            count => {
                let jobs = (0..count.parse().unwrap()).map(|_: u32| job(way)).collect();
                for nanos in join(jobs).await {
                    println!("{nanos}");
                }
            }
        }
    });
}

async fn join<T>(handles: Vec<impl Future<Output = Result<T, tokio::task::JoinError>>>) -> Vec<T> {
    let mut results = Vec::new();
    for handle in handles {
        results.push(handle.await.unwrap());
    }
    results
}
