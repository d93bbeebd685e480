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
    let mut times = Vec::new();
    while let Some(ended) = connections.join_next().await {
        times.extend(ended?.map_err(|error| -> Box<dyn Error> { error })?);
    }
    let elapsed = begin.elapsed();
    times.sort_unstable();
    let [median, slowest] = [times.len() / 2, times.len().saturating_sub(1)]
        .map(|place| times.get(place).map_or(0.0, |time: &Duration| time.as_secs_f64() * 1e3));
    println!(
        "{requests} requests in {:.1} ms, the median in {median:.2} ms, the slowest in {slowest:.1} ms",
        elapsed.as_secs_f64() * 1e3
    );
    Ok(())
}

/// Asks for some thumbnails on one connection. Returns the time that each one took.
async fn ask_for_all(address: SocketAddr, numbers: impl Iterator<Item = u32>) -> Fallible<Vec<Duration>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut times = Vec::new();
    for number in numbers {
        let begin = Instant::now();
        get(&mut sender, number).await?;
        times.push(begin.elapsed());
    }
    Ok(times)
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
