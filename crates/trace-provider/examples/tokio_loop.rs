//! A program whose provider has no thread: tokio's loop does its work.
//!
//! `trace record -- target/release/examples/tokio_loop 100` records a hundred events. With `-` as the
//! argument it records until stdin is closed. At its end it prints how many threads it has had.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Receiver;
use trace_provider::{PolledProvider, Scope, instant};

fn main() -> io::Result<()> {
    let count = std::env::args().nth(1).and_then(|count| count.parse::<u64>().ok());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let provider = PolledProvider::new("tokio-loop")?;
        // SAFETY: the provider keeps its descriptor open until it is dropped, and nothing else closes it.
        let provider = unsafe { AsyncFd::register(provider)? };
        let tracing = tokio::spawn(dispatch(provider));
        match count {
            Some(count) => work(count).await,
            None => {
                let working = tokio::spawn(work(u64::MAX));
                wait_for_end_of_stdin().await?;
                working.abort();
            }
        }
        // Dropped with its task, the provider hands over what was recorded.
        tracing.abort();
        let _ = tracing.await;
        println!("threads: {}", std::fs::read_dir("/proc/self/task")?.count());
        Ok(())
    })
}

/// Does what the trace manager asks for, whenever it does.
async fn dispatch(mut provider: AsyncFd<PolledProvider>) -> io::Result<()> {
    loop {
        let mut guard = provider.readable_mut().await?;
        guard.get_inner_mut().dispatch();
        // It has done everything: the descriptor becomes readable again when there is more.
        guard.clear_ready();
    }
}

/// What the program is for.
async fn work(count: u64) {
    for number in 0..count {
        instant!("tokio-loop", "step", Scope::Thread, "number" => number);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Ends when stdin, a pipe, is closed.
async fn wait_for_end_of_stdin() -> io::Result<()> {
    let mut stdin = Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    while stdin.read(&mut [0]).await? > 0 {}
    Ok(())
}
