//! The load generator: several connections, each with one request after the other.

use axum::body::{Body, to_bytes};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tracing::field::Empty;
use tracing::{Span, instrument};

/// Connections at a time.
const CONNECTIONS: u32 = 8;
/// Longest answer, in bytes.
const LIMIT: usize = 1 << 20;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Asks for the first `requests` thumbnails, and prints how long that took.
pub async fn run(address: SocketAddr, requests: u32) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let mut connections = JoinSet::new();
    for first in 0..CONNECTIONS {
        let numbers = (first..requests).step_by(CONNECTIONS as usize);
        connections.spawn(ask_for_all(address, numbers));
    }
    let mut slowest = Duration::ZERO;
    while let Some(ended) = connections.join_next().await {
        slowest = slowest.max(ended?.map_err(|error| -> Box<dyn Error> { error })?);
    }
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{requests} requests in {:.1} ms, the slowest in {:.1} ms",
        millis(begin.elapsed()),
        millis(slowest)
    );
    Ok(())
}

/// Asks for some thumbnails on one connection. Returns the longest time that one took.
async fn ask_for_all(address: SocketAddr, numbers: impl Iterator<Item = u32>) -> Fallible<Duration> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut slowest = Duration::ZERO;
    for number in numbers {
        let begin = Instant::now();
        get(&mut sender, number).await?;
        slowest = slowest.max(begin.elapsed());
    }
    Ok(slowest)
}

#[instrument(skip(sender), fields(bytes = Empty))]
async fn get(sender: &mut SendRequest<Body>, number: u32) -> Fallible<()> {
    let request =
        Request::get(format!("/thumbnails/{number}")).header(HOST, "localhost").body(Body::empty())?;
    let answer = sender.send_request(request).await?;
    if !answer.status().is_success() {
        return Err(format!("thumbnail {number}: {}", answer.status()).into());
    }
    let thumbnail = to_bytes(Body::new(answer.into_body()), LIMIT).await?;
    Span::current().record("bytes", thumbnail.len());
    Ok(())
}
