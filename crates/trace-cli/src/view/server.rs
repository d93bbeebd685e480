//! The server: one thread, as it serves any number of connections at any speed.

use super::attendance::Attendance;
use super::body::Content;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A connection without a request by then is closed.
const REQUEST_WAIT: Duration = Duration::from_secs(30);
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
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, site.clone(), attendance.clone()));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
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
async fn serve(stream: TcpStream, site: Arc<impl Answers>, attendance: Arc<Attendance>) {
    let visit = Arc::new(Visit { attendance, has_begun: AtomicBool::new(false) });
    let visitor = visit.clone();
    let service = service_fn(move |request| {
        let answer = site.answer(&request, &visitor.attendance);
        if answer.status().is_success() {
            visitor.begin();
        }
        async { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_WAIT).keep_alive(false);
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
