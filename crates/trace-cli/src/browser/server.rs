//! The server: one thread, as it serves any number of connections at any speed.

use super::attendance::Attendance;
use super::body::Content;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// A connection without a request by then is closed.
const REQUEST_WAIT: Duration = Duration::from_secs(30);
/// Connections without a request, of which each may be half of one; of more the oldest is closed. Browsers
/// send requests at once.
const MAX_WAITING: usize = 64;
/// Connections with an answer that has not arrived.
const MAX_VISITS: usize = 256;
/// Bytes of a request, and of an answer that waits for room in the socket, besides its last piece.
const BUFFER_BYTES: usize = 16 << 10;
/// Bytes of an answer that the kernel keeps for a peer that does not read: otherwise up to some megabytes,
/// which are minutes of a recording.
const SEND_BYTES: usize = 64 << 10;
/// After an error, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is served.
pub trait Answers: Send + Sync + 'static {
    /// The answer to a request.
    fn answer<B>(&self, request: &Request<B>, attendance: &Arc<Attendance>) -> Response<Content>;
}

/// Serves until no page needs the server any more.
pub fn run(
    listener: std::net::TcpListener,
    site: impl Answers,
    attendance: Arc<Attendance>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        tokio::spawn(accept(listener, Arc::new(site), attendance.clone()));
        attendance.wait_for_end().await;
        Ok(())
    })
}

async fn accept(listener: TcpListener, site: Arc<impl Answers>, attendance: Arc<Attendance>) {
    let mut waiting = VecDeque::new();
    let mut visits: Vec<AbortHandle> = Vec::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without it pages that are slow only get older updates.
                let _ = set_socket_send_buffer_size(&stream, SEND_BYTES);
                let visit =
                    Arc::new(Visit { attendance: attendance.clone(), has_begun: AtomicBool::new(false) });
                let of_it = Arc::downgrade(&visit);
                let connection = tokio::spawn(serve(stream, site.clone(), visit)).abort_handle();
                waiting.push_back((connection, of_it));
                make_room(&mut waiting, &mut visits);
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Closes connections where there are too many.
fn make_room(waiting: &mut VecDeque<(AbortHandle, Weak<Visit>)>, visits: &mut Vec<AbortHandle>) {
    waiting.retain(|(connection, visit)| {
        let is_on = visit.upgrade().is_some_and(|visit| visit.is_on());
        if is_on {
            visits.push(connection.clone());
        }
        !is_on && !connection.is_finished()
    });
    visits.retain(|connection| !connection.is_finished());
    if visits.len() + waiting.len() > MAX_VISITS {
        // Those that are open stay.
        waiting.pop_back().inspect(|(connection, _)| connection.abort());
    }
    if waiting.len() > MAX_WAITING {
        waiting.pop_front().inspect(|(connection, _)| connection.abort());
    }
}

/// Counts a connection from its first request that is answered to its end.
struct Visit {
    attendance: Arc<Attendance>,
    has_begun: AtomicBool,
}

impl Visit {
    fn is_on(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    fn begin(&self) {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            self.attendance.arrive();
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if self.is_on() {
            self.attendance.leave();
        }
    }
}

/// One connection, with one request: a connection that a browser keeps open for later would look like one
/// that still fetches.
async fn serve(stream: TcpStream, site: Arc<impl Answers>, visit: Arc<Visit>) {
    let visitor = visit.clone();
    let service = service_fn(move |request| {
        let answer = site.answer(&request, &visitor.attendance);
        if answer.status().is_success() {
            visitor.begin();
        }
        async { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(REQUEST_WAIT)
        .keep_alive(false)
        .max_buf_size(BUFFER_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    // A browser that goes away is no error here.
    if let Ok(parts) = connection.without_shutdown().await
        && visit.is_on()
    {
        // Everything was written, but may not have arrived: the other side closes when it has.
        let mut stream = parts.io.into_inner();
        let _ = stream.shutdown().await;
        let mut rest = [0; 1024];
        while let Ok(1..) = stream.read(&mut rest).await {}
    }
    drop(visit);
}
