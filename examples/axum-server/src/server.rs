//! The server's side of a request.

use crate::picture::Picture;
use crate::pool::Pool;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tracing::field::Empty;
use tracing::{Instrument, Span, info, info_span, instrument, warn};

/// Threads that resize pictures.
const WORKERS: usize = 2;
/// Pictures that there are.
const PICTURES: u32 = 10_000;

/// What all requests share.
struct Shared {
    pool: Pool,
    thumbnails: Mutex<HashMap<u32, Arc<[u8]>>>,
}

/// Serves until `end`.
pub async fn serve(
    listener: TcpListener,
    end: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let shared = Arc::new(Shared { pool: Pool::new(WORKERS)?, thumbnails: Mutex::default() });
    let router = Router::new()
        .route("/thumbnails/{number}", get(thumbnail))
        .layer(middleware::from_fn(in_span))
        .with_state(shared);
    Ok(axum::serve(listener, router).with_graceful_shutdown(end).await?)
}

/// One span for each request, whatever serves it.
async fn in_span(request: Request, next: Next) -> Response {
    let span = info_span!("request", path = request.uri().path(), status = Empty);
    async {
        let response = next.run(request).await;
        Span::current().record("status", response.status().as_u16());
        response
    }
    .instrument(span)
    .await
}

async fn thumbnail(
    State(shared): State<Arc<Shared>>,
    Path(number): Path<u32>,
) -> Result<Vec<u8>, StatusCode> {
    if number >= PICTURES {
        warn!(number, "no such picture");
        return Err(StatusCode::NOT_FOUND);
    }
    if let Some(found) = shared.cached(number) {
        info!(number, "cached");
        return Ok(found.to_vec());
    }
    let picture = read(number).await;
    let thumbnail: Arc<[u8]> =
        resized(&shared.pool, picture).await.ok_or(StatusCode::INTERNAL_SERVER_ERROR)?.into();
    shared
        .thumbnails
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .insert(number, thumbnail.clone());
    Ok(thumbnail.to_vec())
}

impl Shared {
    fn cached(&self, number: u32) -> Option<Arc<[u8]>> {
        self.thumbnails.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get(&number).cloned()
    }
}

/// Stands for a disk.
#[instrument]
async fn read(number: u32) -> Picture {
    tokio::time::sleep(Duration::from_millis(1)).await;
    Picture::new(number)
}

/// From when a picture is given to the pool until it comes back.
#[instrument(skip_all, fields(number = picture.number))]
async fn resized(pool: &Pool, picture: Picture) -> Option<Vec<u8>> {
    pool.resize(picture).await
}
