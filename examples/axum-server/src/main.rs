//! A web server on axum and tokio that records the spans of `tracing`, and a load generator to keep it busy.
//!
//! `trace record -o web.fxt -- target/release/axum-server demo` records both. `docs/cookbook.md` finds in
//! the trace why some requests are slow.
#![forbid(unsafe_code)]

mod load;
mod picture;
mod pool;
mod server;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Serves thumbnails of pictures at /thumbnails/NUMBER
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Serve until Ctrl-C
    Serve {
        /// Where to listen
        #[arg(default_value = "127.0.0.1:8080")]
        address: SocketAddr,
    },
    /// Ask a server for thumbnails
    Load {
        /// Where the server listens
        address: SocketAddr,
        /// How many thumbnails
        #[arg(default_value_t = 400)]
        requests: u32,
    },
    /// Serve a load generator of its own, and end with it
    Demo {
        /// How many thumbnails
        #[arg(default_value_t = 400)]
        requests: u32,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    let task = Arguments::parse().task;
    let name = if matches!(task, Task::Load { .. }) { "load" } else { "server" };
    let _provider = tracing_fxt::init(name);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match task {
            Task::Serve { address } => {
                let listener = TcpListener::bind(address).await?;
                println!("listening on http://{}/thumbnails/1", listener.local_addr()?);
                server::serve(listener, async { drop(tokio::signal::ctrl_c().await) }).await
            }
            Task::Load { address, requests } => load::run(address, requests).await,
            Task::Demo { requests } => demo(requests).await,
        }
    })
}

/// The load generator is another process, as it would be in life.
async fn demo(requests: u32) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut load = tokio::process::Command::new(std::env::current_exe()?)
        .args(["load", &listener.local_addr()?.to_string(), &requests.to_string()])
        .kill_on_drop(true)
        .spawn()?;
    let (running, ended) = tokio::sync::oneshot::channel::<()>();
    let load = tokio::spawn(async move {
        let status = load.wait().await;
        drop(running);
        status
    });
    server::serve(listener, async { drop(ended.await) }).await?;
    match load.await?? {
        status if status.success() => Ok(()),
        status => Err(format!("the load generator has failed: {status}").into()),
    }
}
