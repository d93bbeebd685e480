//! Threads that resize pictures: work that would keep tokio's threads from their tasks.

use crate::picture::Picture;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::{io, thread};
use tokio::sync::oneshot;
use tracing::{Span, info_span};

/// A picture, the span that it came from, and where its thumbnail goes.
struct Job {
    picture: Picture,
    parent: Span,
    answer: oneshot::Sender<Vec<u8>>,
}

/// A queue, and the threads that take from it. They end with it.
pub struct Pool {
    jobs: Sender<Job>,
}

impl Pool {
    /// # Errors
    /// If a thread cannot be started.
    pub fn new(workers: usize) -> io::Result<Self> {
        let (jobs, queue) = unbounded();
        for number in 1..=workers {
            let queue = queue.clone();
            thread::Builder::new().name(format!("resize-{number}")).spawn(move || work(&queue))?;
        }
        Ok(Self { jobs })
    }

    /// The picture's thumbnail; none if the pool has broken down.
    pub async fn resize(&self, picture: Picture) -> Option<Vec<u8>> {
        let (answer, thumbnail) = oneshot::channel();
        self.jobs.send(Job { picture, parent: Span::current(), answer }).ok()?;
        thumbnail.await.ok()
    }
}

fn work(queue: &Receiver<Job>) {
    for Job { picture, parent, answer } in queue {
        // An arrow leads from the request's task to here.
        let span = info_span!(parent: &parent, "resize", number = picture.number, pixels = picture.pixels());
        // It is of no use if the client has gone meanwhile.
        let _ = answer.send(span.in_scope(|| picture.thumbnail()));
    }
}
