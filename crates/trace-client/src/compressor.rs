//! A thread that compresses with zstd what is handed over to it, in frames that can be read one by one, and
//! writes the result.
//!
//! Of a recording it also reports which bytes can be read from the file, and sees to it that all can soon
//! after they have come.

mod records;

use crate::pipe::Pipe;
use crossbeam_channel::{
    Receiver, RecvTimeoutError, SendTimeoutError, Sender, TryRecvError, bounded, unbounded,
};
use records::WholeRecords;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trace_archive::confirm::check_file;
use trace_archive::output::Bounded;
use trace_convert::seekable::Writer;
use zx_sim::Socket;

/// How many chunks may wait for the thread.
const MAX_CHUNKS: usize = 4;
/// The memory of longer chunks is given back.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// How long the thread waits for more before it flushes: programs may wait for what is not written.
const IDLE: Duration = Duration::from_millis(1);
/// From so many bytes on, a block of its own costs nothing worth mentioning.
const BLOCK_BYTES: u64 = 128 << 10;
/// The reader of a pipe or a connection shows by so many bytes that it takes any.
const PIECE_BYTES: usize = 4096;
/// How many points are kept of what a pipe's reader has not read.
const MAX_POINTS: usize = 1024;

/// What the thread writes into.
#[derive(Debug)]
pub enum Place {
    /// A file.
    File(Bounded<File>),
    /// Standard output, or a connection.
    Pipe(Pipe),
    /// The thread that hands over what is to be compressed.
    Back(Sender<Vec<u8>>),
}

impl Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        match self {
            Self::File(file) => {
                check_file(file.file(), file.written())?;
                file.write(bytes)
            }
            Self::Pipe(pipe) => pipe.write(piece),
            Self::Back(sender) => {
                let sent = sender.send(bytes.to_vec());
                sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
            }
        }
    }
}

/// What is written into a place counts.
#[derive(Debug)]
struct Counted(Place, Arc<Shared>);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.1.written.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How data is compressed.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The level, of zstd.
    pub level: i32,
    /// The data is an archive: frames end at the ends of records.
    pub has_records: bool,
}

/// The side of the thread that has the data.
#[derive(Debug)]
pub struct Compressor {
    chunks: Option<Sender<Vec<u8>>>,
    emptied: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
    /// To be waited for when this is dropped.
    is_file: bool,
    /// Bytes that were handed over.
    taken: u64,
    shared: Arc<Shared>,
    news: Socket,
}

/// What both sides share.
#[derive(Debug, Default)]
struct Shared {
    points: Mutex<Points>,
    /// Bytes of the output.
    written: AtomicU64,
    /// No chunk is missing.
    is_whole: AtomicBool,
    failure: OnceLock<String>,
}

/// How far the output is written: compressed bytes, and how many bytes they are of.
#[derive(Debug, Default)]
struct Points {
    waiting: VecDeque<(u64, u64)>,
    read: u64,
}

impl Points {
    fn push(&mut self, point: (u64, u64)) {
        if self.waiting.len() >= MAX_POINTS {
            // Later is no error.
            let mut is_kept = false;
            self.waiting.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.waiting.push_back(point);
    }

    /// Bytes of which all compressed ones are read; of those in the output, so many are not.
    fn read(&mut self, unread: u64) -> u64 {
        let end = self.waiting.back().map_or(0, |(end, _)| end.saturating_sub(unread));
        while let Some((_, content)) = self.waiting.pop_front_if(|(place, _)| *place <= end) {
            self.read = content;
        }
        self.read
    }
}

impl Shared {
    fn points(&self) -> MutexGuard<'_, Points> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> io::Result<()> {
        self.failure.get().map_or(Ok(()), |why| Err(io::Error::other(why.clone())))
    }
}

impl Compressor {
    /// Starts the thread. What `is_live` can be read soon after it was handed over.
    pub fn start(place: Place, manner: Manner, is_live: bool) -> io::Result<Self> {
        let (chunks, waiting) = bounded(MAX_CHUNKS);
        let (emptied, reusable) = unbounded();
        let (ours, theirs) = Socket::pair().map_err(io::Error::other)?;
        let shared = Arc::new(Shared::default());
        let is_file = matches!(place, Place::File(_));
        let mut thread = Thread {
            writer: Writer::new(Counted(place, shared.clone()), manner.level)?,
            records: manner.has_records.then(WholeRecords::default),
            is_live,
            chunks: waiting,
            emptied,
            passed: 0,
            noted: (0, 0),
            shared: shared.clone(),
            news: theirs,
        };
        let spawned =
            std::thread::Builder::new().name("trace-zstd".to_owned()).spawn(move || thread.run())?;
        let (chunks, thread) = (Some(chunks), Some(spawned));
        Ok(Self { chunks, emptied: reusable, thread, is_file, taken: 0, shared, news: ours })
    }

    /// Hands bytes over, and takes an empty vector instead. Blocks while the thread has enough to do.
    pub fn push(&mut self, chunk: &mut Vec<u8>) -> io::Result<()> {
        while !self.push_within(Duration::MAX, chunk)? {}
        Ok(())
    }

    /// The same within a time: false if the thread still has enough to do then, and the bytes stay.
    pub fn push_within(&mut self, wait: Duration, chunk: &mut Vec<u8>) -> io::Result<bool> {
        let length = chunk.len() as u64;
        let sent = self.chunks.as_ref().map(|chunks| chunks.send_timeout(std::mem::take(chunk), wait));
        match sent {
            Some(Ok(())) => {}
            Some(Err(SendTimeoutError::Timeout(kept))) => {
                *chunk = kept;
                return Ok(false);
            }
            None | Some(Err(SendTimeoutError::Disconnected(_))) => {
                self.shared.failure()?;
                return Err(io::Error::other("the thread that compresses has failed"));
            }
        }
        self.taken += length;
        *chunk = self.emptied.try_recv().unwrap_or_default();
        Ok(true)
    }

    /// Readable when something was written, or cannot be.
    pub fn news(&self) -> &Socket {
        &self.news
    }

    /// Takes note of the news.
    pub fn take_news(&self) -> io::Result<()> {
        while self.news.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        self.shared.failure()
    }

    /// Bytes that the output has taken.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Bytes that were handed over and cannot be read from the output, of which so many bytes are unread.
    pub fn pending(&self, unread: impl FnOnce() -> u64) -> u64 {
        // What is written after this is not taken for read.
        let mut points = self.shared.points();
        self.taken - points.read(unread())
    }

    /// Begins to end the output: true if it has ended within a time.
    pub fn end_within(&mut self, wait: Duration) -> bool {
        self.shared.is_whole.store(true, Ordering::Relaxed);
        self.chunks = None;
        let deadline = Instant::now() + wait;
        loop {
            // Nothing comes back any more once the thread has ended.
            match self.emptied.recv_deadline(deadline) {
                Ok(_) => {}
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        }
    }

    /// Ends the output.
    pub fn finish(&mut self) -> io::Result<()> {
        self.shared.is_whole.store(true, Ordering::Relaxed);
        self.chunks = None;
        let ended = self.thread.take().map(JoinHandle::join);
        self.shared.failure()?;
        match ended {
            Some(Err(_)) => Err(io::Error::other("the thread that compresses has failed")),
            _ => Ok(()),
        }
    }
}

impl Drop for Compressor {
    /// A file is readable to its end, as far as there is room. A pipe's reader may be stopped.
    fn drop(&mut self) {
        self.chunks = None;
        if let Some(thread) = self.thread.take().filter(|_| self.is_file) {
            let _ = thread.join();
        }
    }
}

/// The side that compresses.
struct Thread {
    writer: Writer<Counted>,
    records: Option<WholeRecords>,
    is_live: bool,
    chunks: Receiver<Vec<u8>>,
    emptied: Sender<Vec<u8>>,
    /// Bytes that the writer has taken.
    passed: u64,
    /// The last point.
    noted: (u64, u64),
    shared: Arc<Shared>,
    news: Socket,
}

impl Thread {
    fn run(&mut self) {
        if let Err(error) = self.write_all().and_then(|()| self.end()) {
            self.cut();
            let _ = self.shared.failure.set(error.to_string());
        }
        // No byte is waited for; one that is there is enough.
        let _ = self.news.write(&[0]);
    }

    fn write_all(&mut self) -> io::Result<()> {
        while let Some(mut chunk) = self.next()? {
            self.take_in(&chunk)?;
            if chunk.capacity() <= MAX_KEPT_BYTES {
                chunk.clear();
                let _ = self.emptied.send(chunk);
            }
        }
        Ok(())
    }

    /// The next chunk. Until it comes, what came before is made readable.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.chunks.try_recv() {
            Ok(chunk) => return Ok(Some(chunk)),
            Err(TryRecvError::Disconnected) => return Ok(None),
            Err(TryRecvError::Empty) => {}
        }
        let waiting = self.passed - self.noted.1;
        if self.is_live && waiting > 0 {
            if waiting < BLOCK_BYTES {
                match self.chunks.recv_timeout(IDLE) {
                    Ok(chunk) => return Ok(Some(chunk)),
                    Err(RecvTimeoutError::Disconnected) => return Ok(None),
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
            self.writer.flush()?;
            self.note();
        }
        Ok(self.chunks.recv().ok())
    }

    fn take_in(&mut self, chunk: &[u8]) -> io::Result<()> {
        let Some(mut records) = self.records.take() else {
            return self.pass(chunk);
        };
        let passed = records.pass(chunk, |whole| self.pass_whole(whole));
        self.records = Some(records);
        passed
    }

    /// Passes bytes that are to be in one frame, if they are not larger.
    fn pass_whole(&mut self, whole: &[u8]) -> io::Result<()> {
        if whole.len() > self.writer.room() {
            self.writer.end_frame()?;
            self.note();
        }
        self.pass(whole)
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.passed += bytes.len() as u64;
        Ok(())
    }

    /// All that was passed can be read.
    fn note(&mut self) {
        self.noted = (self.writer.written(), self.passed);
        if self.is_live {
            self.shared.points().push(self.noted);
            let _ = self.news.write(&[0]);
        }
    }

    fn end(&mut self) -> io::Result<()> {
        // An incomplete record is left out if more was to come.
        if self.shared.is_whole.load(Ordering::Relaxed)
            && let Some(records) = self.records.take()
        {
            self.pass(&records.into_rest())?;
        }
        self.writer.end()
    }

    /// Has a file end where it can be read to.
    fn cut(&mut self) {
        let readable = self.noted.0;
        if let Counted(Place::File(file), _) = self.writer.output()
            && let file = file.file()
            && file.metadata().is_ok_and(|metadata| metadata.len() > readable)
        {
            let _ = file.set_len(readable);
        }
    }
}

#[cfg(test)]
mod tests;
