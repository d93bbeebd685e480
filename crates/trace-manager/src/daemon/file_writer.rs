//! Writes an archive into a file, on a thread of its own: a disk may be slow, and the manager must not block.
//!
//! Batches go to the thread through a queue of limited length, and counts of written bytes come back through
//! a socket, which wakes the manager's loop. Nothing is copied in between.

use std::fs::File;
use std::io::{self, Cursor};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, TrySendError, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use trace_archive::confirm::{Confirmer, check_file};
use zx_sim::{Ahead, Handle, Signals, Socket, wait_one};

/// How many batches may wait for the thread.
const MAX_BATCHES: usize = 8;
/// After how many bytes a count is due, if there is more to write: each wakes the loop.
const CONFIRMED_BYTES: u64 = 1 << 20;
/// The memory of longer batches is given back.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// How much is written at once. The page cache of some kernels takes several times as long for more.
const WRITE_BYTES: usize = 256 << 10;
/// How much of a batch is looked at to find its last whole record.
const MAX_CUT_BYTES: usize = 64 << 20;
/// How many files of clients are written at a time, by threads that a file system may hold up.
const MAX_CLIENTS: usize = 16;
static CLIENTS: AtomicUsize = AtomicUsize::new(0);

/// What the thread and the loop share.
#[derive(Debug, Default)]
struct Shared {
    /// Batches are discarded, and count as written.
    is_discarded: AtomicBool,
    /// What was not written yet is not wanted any more.
    is_abandoned: AtomicBool,
    /// Why nothing more is written.
    problem: OnceLock<Arc<io::Error>>,
}

/// The loop's side.
#[derive(Debug)]
pub(super) struct FileWriter {
    batches: SyncSender<Vec<u8>>,
    emptied: Receiver<Vec<u8>>,
    counts: Socket,
    shared: Arc<Shared>,
}

/// The thread's side.
#[derive(Debug)]
pub(super) struct Writing {
    file: File,
    written: u64,
    batches: Receiver<Vec<u8>>,
    emptied: Sender<Vec<u8>>,
    counts: Socket,
    shared: Arc<Shared>,
}

/// Discards further data of a writer.
#[derive(Debug)]
pub(super) struct Discarder(Arc<Shared>);

impl FileWriter {
    /// Both sides of writing a file from its beginning.
    pub fn new(file: Handle) -> zx_sim::Result<(Self, Writing)> {
        let (batches, waiting) = sync_channel(MAX_BATCHES);
        let (emptied, reusable) = channel();
        let (ours, counts) = Socket::pair()?;
        let shared = Arc::new(Shared::default());
        let file = File::from(file.into_fd());
        let writing = Writing { file, written: 0, batches: waiting, emptied, counts, shared: shared.clone() };
        Ok((Self { batches, emptied: reusable, counts: ours, shared }, writing))
    }

    /// Starts to write a client's file. The client's socket stays open until the file is not used any more.
    /// None if too many threads do this, or there can be no other.
    pub fn for_client(file: Handle, client: Socket) -> Option<Self> {
        let place = Place::take()?;
        let (start, started) = channel::<(Writing, Socket)>();
        let thread = std::thread::Builder::new().name("trace-writer".to_owned());
        let spawned = thread.spawn(move || {
            let _place = place;
            if let Ok((mut writing, client)) = started.recv() {
                // An error is known to the loop, which reports it.
                let _ = writing.run();
                // Closing the file may take long, too.
                drop(writing);
                drop(client);
            }
        });
        // The file is with the thread from here on, or was closed without waiting.
        spawned.ok()?;
        let (writer, writing) = Self::new(file).ok()?;
        start.send((writing, client)).ok()?;
        Some(writer)
    }

    /// Hands a batch over, and takes an empty one instead; false if the thread has enough to do.
    pub fn push(&self, batch: &mut Vec<u8>) -> Result<bool, Arc<io::Error>> {
        match self.batches.try_send(std::mem::take(batch)) {
            Ok(()) => {
                *batch = self.emptied.try_recv().unwrap_or_default();
                Ok(true)
            }
            Err(TrySendError::Full(refused)) => {
                *batch = refused;
                Ok(false)
            }
            Err(TrySendError::Disconnected(_)) => Err(self.problem()),
        }
    }

    /// Where [counts](Confirmer) of written bytes can be read, until nothing more is written.
    pub fn counts(&self) -> &Socket {
        &self.counts
    }

    /// Why nothing more is written.
    pub fn problem(&self) -> Arc<io::Error> {
        let unknown = || Arc::new(io::Error::other("the writing thread has failed"));
        self.shared.problem.get().cloned().unwrap_or_else(unknown)
    }
}

/// What was not written yet is discarded.
impl Drop for FileWriter {
    fn drop(&mut self) {
        self.shared.is_abandoned.store(true, Ordering::Relaxed);
    }
}

impl Discarder {
    pub fn discard(&self) {
        self.0.is_discarded.store(true, Ordering::Relaxed);
    }
}

impl Writing {
    pub fn discarder(&self) -> Discarder {
        Discarder(self.shared.clone())
    }

    /// Writes all batches that come.
    ///
    /// # Errors
    /// The file cannot be written. The loop learns it from [`FileWriter::problem`].
    pub fn run(&mut self) -> io::Result<()> {
        let mut ahead = Ahead::new(&self.file);
        let result = self.write_all(&mut ahead);
        ahead.end(&self.file);
        if let Err(error) = &result {
            // Counts of what was not written stay out, so that this stays in the buffers.
            let _ = self.cut();
            let other = || io::Error::other(error.to_string());
            let same = error.raw_os_error().map_or_else(other, io::Error::from_raw_os_error);
            let _ = self.shared.problem.set(Arc::new(same));
        }
        result
    }

    fn write_all(&mut self, ahead: &mut Ahead) -> io::Result<()> {
        let mut confirmer = Confirmer::default();
        let mut confirmed = 0;
        loop {
            let next = match self.batches.try_recv() {
                // The loop may be waiting for room, or for the end of a part.
                Err(TryRecvError::Empty) => {
                    self.confirm(&mut confirmer, &mut confirmed);
                    self.batches.recv().ok()
                }
                next => next.ok(),
            };
            let Some(mut batch) = next.filter(|_| !self.shared.is_abandoned.load(Ordering::Relaxed)) else {
                return Ok(());
            };
            if !self.shared.is_discarded.load(Ordering::Relaxed) {
                self.write(&batch)?;
                ahead.advance(&self.file, self.written + batch.len() as u64);
            }
            self.written += batch.len() as u64;
            if batch.capacity() <= MAX_KEPT_BYTES {
                batch.clear();
                let _ = self.emptied.send(batch);
            }
            if self.written >= confirmed + CONFIRMED_BYTES {
                self.confirm(&mut confirmer, &mut confirmed);
            }
        }
    }

    fn confirm(&self, confirmer: &mut Confirmer, confirmed: &mut u64) {
        // The loop never waits for this thread.
        while !confirmer.confirm(&self.counts, self.written) {
            let _ = wait_one(&self.counts, Signals::WRITABLE, None);
        }
        *confirmed = self.written;
    }

    /// Writes a batch, unless another process has done something to the file.
    fn write(&self, batch: &[u8]) -> io::Result<()> {
        check_file(&self.file, self.written)?;
        for (place, piece) in (self.written..).step_by(WRITE_BYTES).zip(batch.chunks(WRITE_BYTES)) {
            self.file.write_all_at(piece, place)?;
        }
        Ok(())
    }

    /// Has the file end with a whole record. All batches before the last one are whole.
    fn cut(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let Some(rest) = length.checked_sub(self.written) else {
            let whole = trace_reader::complete_records_end(&mut self.file)?;
            return self.file.set_len(whole);
        };
        let mut last = vec![0; usize::try_from(rest).unwrap_or(usize::MAX).min(MAX_CUT_BYTES)];
        self.file.read_exact_at(&mut last, self.written)?;
        let whole = trace_reader::complete_records_end(&mut Cursor::new(last))?;
        self.file.set_len(self.written + whole)
    }

    /// The file, of which so many bytes are written.
    pub fn file(&self) -> (&File, u64) {
        (&self.file, self.written)
    }

    pub fn is_discarded(&self) -> bool {
        self.shared.is_discarded.load(Ordering::Relaxed)
    }
}

/// One of the threads that write files of clients.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let take = |count: usize| (count < MAX_CLIENTS).then_some(count + 1);
        CLIENTS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok().then(|| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        CLIENTS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use tempfile::NamedTempFile;

    /// A record of two words.
    const RECORD: [u8; 16] = [0x24, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7];

    fn writer(file: &NamedTempFile) -> (FileWriter, Writing) {
        let file = File::options().read(true).write(true).open(file.path()).unwrap();
        FileWriter::new(Handle::new(OwnedFd::from(file))).unwrap()
    }

    fn last_count(writer: &FileWriter) -> u64 {
        let mut bytes = [0; 1024];
        let length = writer.counts().read(&mut bytes).unwrap();
        u64::from_le_bytes(*bytes[..length].last_chunk().unwrap())
    }

    /// A disk that does not answer: the loop is not held up, and goes on with the next count.
    #[test]
    fn a_full_queue_is_not_waited_for() {
        let file = NamedTempFile::new().unwrap();
        let (writer, mut writing) = writer(&file);
        let mut batch = Vec::new();
        for number in 0..=MAX_BATCHES {
            batch.extend_from_slice(&[number as u8; 24]);
            assert_eq!(writer.push(&mut batch).unwrap(), number < MAX_BATCHES);
        }
        assert_eq!(batch, [MAX_BATCHES as u8; 24], "what has no room stays");
        assert!(matches!(writer.counts().read(&mut [0; 8]), Err(zx_sim::Error::ShouldWait)));
        let thread = std::thread::spawn(move || writing.run());
        while !writer.push(&mut batch).unwrap() {
            wait_one(writer.counts(), Signals::READABLE, None).unwrap();
            last_count(&writer);
        }
        while std::fs::metadata(file.path()).unwrap().len() < 24 * (MAX_BATCHES as u64 + 1) {
            wait_one(writer.counts(), Signals::READABLE, None).unwrap();
            last_count(&writer);
        }
        drop(writer);
        thread.join().unwrap().unwrap();
        let expected: Vec<u8> = (0..=MAX_BATCHES).flat_map(|number| [number as u8; 24]).collect();
        assert_eq!(std::fs::read(file.path()).unwrap(), expected);
    }

    #[test]
    fn what_is_not_wanted_any_more_is_not_written() {
        let file = NamedTempFile::new().unwrap();
        let (writer, mut writing) = writer(&file);
        assert!(writer.push(&mut vec![1; 24]).unwrap());
        drop(writer);
        writing.run().unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), [0; 0]);
        // Nor is what is thrown away, which counts as written.
        let (writer, mut writing) = self::writer(&file);
        writing.discarder().discard();
        assert!(writer.push(&mut vec![1; 24]).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || writing.run());
            wait_one(writer.counts(), Signals::READABLE, None).unwrap();
            assert_eq!(last_count(&writer), 24);
            drop(writer);
        });
        assert_eq!(std::fs::read(file.path()).unwrap(), [0; 0]);
    }

    /// Half a batch is in the file: it ends with a whole record, and only batches before it count.
    //= docs/protocol.md#confirmations
    #[test]
    fn a_file_that_takes_no_more_ends_with_a_whole_record() {
        let mut file = NamedTempFile::new().unwrap();
        let (writer, mut writing) = writer(&file);
        writing.written = 32;
        file.write_all(&[RECORD, RECORD, RECORD].concat()).unwrap();
        file.write_all(&RECORD[..9]).unwrap();
        writing.cut().unwrap();
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), 48);
        // It was cut by another process, inside of what counts.
        file.as_file().set_len(31).unwrap();
        assert!(writer.push(&mut RECORD.to_vec()).unwrap());
        writing.run().unwrap_err();
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), 16);
        drop(writing);
        let problem = writer.push(&mut RECORD.to_vec()).unwrap_err();
        let said = (problem.to_string(), problem.raw_os_error());
        assert_eq!(said, ("it was made shorter while it was written".to_owned(), None));
        // A program that another test is just starting has the other end for a moment.
        wait_one(writer.counts(), Signals::PEER_CLOSED, None).unwrap();
        assert_eq!(writer.counts().read(&mut [0; 8]).unwrap(), 0, "nothing of it counts");
    }

    #[test]
    fn only_so_many_files_of_clients_are_written_at_a_time() {
        let places: Vec<_> = (0..MAX_CLIENTS).map(|_| Place::take().unwrap()).collect();
        assert!(Place::take().is_none());
        drop(places);
        assert!(Place::take().is_some());
    }
}
