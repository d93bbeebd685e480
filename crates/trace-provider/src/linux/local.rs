//! Recordings inside one process: no manager, no socket, no second process. With the feature `local`.
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::Duration;
//! use trace_provider::{local, startup};
//!
//! local::start(&startup::Options::of("app,db*"))?;
//! // The last ten seconds, while recording goes on.
//! local::snapshot_to_file(Path::new("slow.fxt"), Some(Duration::from_secs(10)))?;
//! // Everything.
//! local::flush_to_file(Path::new("app.fxt"))?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! There is one at a time, and none while a recording of a manager's has the program. When one of those
//! starts, the program goes on in that: the local recording ends there, its data is in the archive of the
//! manager's recording, and [`flush`] delivers it all the same. If the program dies, `trace recover` writes
//! an archive.
//!
//! A handler of a signal calls nothing here but [`request_snapshot`].
//= docs/rust.md#recordings-inside-one-process

use crate::linux::dispatcher::Commands;
use crate::linux::errand::{self, Deliver};
use crate::linux::lock::Mutex;
use crate::linux::startup::directory::{BUFFER, KEPT};
use crate::linux::startup::{self, Directory, Left, Options, Purpose};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_archive::output::{Bounded, OutputError, OutputFile};
use trace_archive::{own, problem};
use trace_engine::engine;
use trace_format::shown::Shown;
use trace_protocol::controller::ProviderStats;
use trace_reader::tail::Tail;
use zx_sim::{debuglog, ticks};

/// Largest piece of an archive that [`flush`] delivers.
const CHUNK_BYTES: usize = 64 << 10;
/// How often a thread looks whether a snapshot that it waits for is there.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// A recording that is over, and has not been delivered.
struct Over {
    /// A forked child has none of its parent's.
    process: u32,
    directory: Directory,
    /// The name of the buffer.
    file: &'static str,
    is_quiet: bool,
}

static OVER: Mutex<Option<Over>> = Mutex::new(None);

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Events in the archive.
    pub events: u64,
    /// Events that the buffer had no room for, or has written over; none if that is not known.
    pub dropped: Option<u64>,
}

/// Begins to record. A recording that is over and was not delivered is discarded.
///
/// # Errors
/// The program is being recorded already, by a manager or by itself; the options make no sense; or there is
/// no directory, or no memory, for the buffer.
pub fn start(options: &Options) -> io::Result<()> {
    startup::begin_as(None, options, Purpose::Program).map_err(io::Error::other)?;
    if let Ok(over) = take_over() {
        errand::run(move || over.delete());
    }
    Ok(())
}

/// What a local recording that goes on has so far, read from its buffer.
///
/// # Errors
/// There is no local recording, or its buffer cannot be read.
pub fn so_far() -> io::Result<Summary> {
    let directory = startup::with_local(|directory| directory.map(Path::to_owned));
    let directory = directory.ok_or_else(|| io::Error::other("there is no local recording"))?;
    let read = move || write(&directory, BUFFER, false, &mut io::sink());
    errand::run(read).unwrap_or_else(|| Err(of_parent()))
}

/// Whether a local recording goes on.
#[must_use]
pub fn is_recording() -> bool {
    startup::with_local(|directory| directory.is_some())
}

/// Ends the recording, and keeps what it has for [`flush`]. Waits for threads that are inside an event, for
/// one second at most. Returns whether one was going on.
pub fn stop() -> bool {
    let Some(left) = startup::end_local() else {
        return false;
    };
    let Left { directory, is_quiet, .. } = left;
    put(Over { process: engine::generation(), directory, file: BUFFER, is_quiet });
    true
}

/// A manager takes over a local recording: its buffer stays for this program.
pub(crate) fn keep(directory: &Directory, is_quiet: bool) {
    if let Err(error) = directory.keep() {
        let text = format!("trace: the local recording cannot be kept: {error}");
        debuglog::write_for_process(&text);
        return;
    }
    put(Over { process: engine::generation(), directory: directory.clone(), file: KEPT, is_quiet });
}

fn put(over: Over) {
    // A child would find the lock taken.
    engine::without_forks(|| *OVER.lock() = Some(over));
}

fn take_over() -> io::Result<Over> {
    let over = engine::without_forks(|| OVER.lock().take());
    let over = over.filter(|over| over.process == engine::generation());
    over.ok_or_else(|| io::Error::other("there is no local recording"))
}

/// Ends the recording, if that was not done, and delivers it as an archive: in pieces of at most 64 KB, the
/// last of which is marked by `true`. Then its buffer is deleted.
///
/// # Errors
/// There is no recording; or its buffer cannot be read: then it stays.
pub fn flush(deliver: impl FnMut(&[u8], bool)) -> io::Result<Summary> {
    stop();
    let over = take_over()?;
    let flush = |deliver: &mut Deliver<'_>| {
        over.flush(|over| {
            let mut chunks = Chunks { deliver, bytes: Vec::with_capacity(CHUNK_BYTES) };
            let summary = over.write(&mut chunks)?;
            chunks.finish()?;
            Ok(summary)
        })
    };
    errand::run_delivering(flush, deliver).unwrap_or_else(|| Err(of_parent()))
}

/// The answer in a child that a handler of a signal has forked.
fn of_parent() -> io::Error {
    io::Error::other("the recording is the parent's")
}

/// As [`flush`], into a file, which is replaced when all of it is written.
///
/// # Errors
/// As [`flush`], or the file cannot be written.
pub fn flush_to_file(path: &Path) -> io::Result<Summary> {
    stop();
    let over = take_over()?;
    let path = path.to_owned();
    let flush = move || over.flush(|over| replace(&path, |file| over.write(file)));
    errand::run(flush).unwrap_or_else(|| Err(of_parent()))
}

/// Writes what is in the buffer into a file, while recording goes on: events that ended in the last so much
/// time, or all.
///
/// # Errors
/// There is no local recording, or the file cannot be written.
pub fn snapshot_to_file(path: &Path, last: Option<Duration>) -> io::Result<Summary> {
    let directory = startup::with_local(|directory| directory.map(Path::to_owned));
    let directory = directory.ok_or_else(|| io::Error::other("there is no local recording"))?;
    let path = path.to_owned();
    errand::run(move || snapshot(&directory, &path, last)).unwrap_or_else(|| Err(of_parent()))
}

fn snapshot(directory: &Path, path: &Path, last: Option<Duration>) -> io::Result<Summary> {
    let now = ticks::now();
    let mut whole = tempfile::tempfile()?;
    let stats = own::write(directory, BUFFER, false, &mut Bounded::new(&whole)).map_err(io::Error::other)?;
    whole.rewind()?;
    let mut tail = Tail { now, last, ..Tail::default() };
    tail.note_begins(&whole).map_err(io::Error::other)?;
    whole.rewind()?;
    replace(path, |file| {
        let copied = tail.copy(&whole, file).map_err(|error| io::Error::other(problem(&error)))?;
        if let Some(error) = copied.stopped {
            return Err(io::Error::other(problem(&error)));
        }
        let is_program = |covered: &&trace_reader::tail::Coverage| covered.provider.0 == stats.id;
        let events = copied.coverage.iter().filter(is_program).map(|covered| covered.events).sum();
        Ok(Summary { events, dropped: dropped(&stats) })
    })
}

/// Writes what is left in a directory into a file.
pub(crate) fn save(left: &Left, path: &Path) -> io::Result<Summary> {
    let Left { directory, is_quiet, .. } = left;
    replace(path, |file| write(directory.path(), BUFFER, *is_quiet, file))
}

/// A snapshot that is taken when it is requested.
struct Prepared {
    path: PathBuf,
    last: Option<Duration>,
}

static PREPARED: Mutex<Option<Prepared>> = Mutex::new(None);
/// How many snapshots were requested, and up to which request they are served.
static REQUESTED: AtomicU64 = AtomicU64::new(0);
static SERVED: AtomicU64 = AtomicU64::new(0);
/// Threads of providers, which serve requests. There is hardly ever more than one.
static DISPATCHERS: [OnceLock<Commands>; 8] = [const { OnceLock::new() }; 8];

/// Says what [`request_snapshot`] writes: a file, and how much of the past. Each request replaces the file.
pub fn prepare_snapshot(path: &Path, last: Option<Duration>) {
    let prepared = Prepared { path: path.to_owned(), last };
    engine::without_forks(|| *PREPARED.lock() = Some(prepared));
}

/// Has the provider's thread write the snapshot that was prepared. This function may be called from a handler
/// of a signal or of a panic. It does not wait: see [`wait_for_snapshot`]. Without a provider, nothing
/// happens.
pub fn request_snapshot() {
    REQUESTED.fetch_add(1, Ordering::SeqCst);
    DISPATCHERS.iter().filter_map(OnceLock::get).for_each(Commands::wake);
}

/// Waits until all requests so far were served, which writes the snapshot or prints on stderr why that is not
/// possible; false if they were not in time. Not for handlers of signals.
pub fn wait_for_snapshot(timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    let wanted = REQUESTED.load(Ordering::SeqCst);
    while SERVED.load(Ordering::SeqCst) < wanted {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    true
}

/// A provider's thread serves requests from now on.
pub(crate) fn serve_with(commands: &Commands) {
    let _ = DISPATCHERS.iter().find(|place| place.set(commands.clone()).is_ok());
}

/// Takes the snapshot that was requested. On the provider's thread.
pub(crate) fn serve_request() {
    // One that comes from here on, while the snapshot is written, has another one written.
    let requested = REQUESTED.load(Ordering::SeqCst);
    if SERVED.load(Ordering::SeqCst) >= requested {
        return;
    }
    let prepared = engine::without_forks(|| {
        PREPARED.lock().as_ref().map(|prepared| (prepared.path.clone(), prepared.last))
    });
    if let Some((path, last)) = prepared
        && let Err(error) = snapshot_to_file(&path, last)
    {
        let text = format!("trace: no snapshot in {}: {error}", Shown(&path.display().to_string()));
        debuglog::write_for_process(&text);
    }
    // Another provider's thread may have served a later one.
    SERVED.fetch_max(requested, Ordering::SeqCst);
}

/// Records that found no room, and those that were written over.
fn dropped(stats: &ProviderStats) -> Option<u64> {
    stats.records_dropped.map(|dropped| {
        let lost = stats.losses.iter().map(|lost| lost.records).fold(0, u64::saturating_add);
        dropped.max(lost)
    })
}

impl Over {
    fn write(&self, out: &mut impl Write) -> io::Result<Summary> {
        write(self.directory.path(), self.file, self.is_quiet, out)
    }

    /// Has it written, and deletes its buffer, or else keeps it.
    fn flush(self, write: impl FnOnce(&Self) -> io::Result<Summary>) -> io::Result<Summary> {
        let written = write(&self);
        match &written {
            Ok(_) => self.delete(),
            Err(_) => put(self),
        }
        written
    }

    fn delete(&self) {
        self.directory.delete();
    }
}

fn write(directory: &Path, file: &str, is_quiet: bool, out: &mut impl Write) -> io::Result<Summary> {
    let stats = own::write(directory, file, is_quiet, out).map_err(io::Error::other)?;
    match stats.problem.as_str() {
        "" => Ok(Summary { events: stats.events_archived.unwrap_or(0), dropped: dropped(&stats) }),
        problem => Err(io::Error::other(problem.to_owned())),
    }
}

/// Has a file written beside its place, and then puts it there, unless what has no event would replace a file
/// that is not empty.
//= docs/recording.md#files
fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<Bounded<&mut File>>) -> io::Result<Summary>,
) -> io::Result<Summary> {
    let failed = |error: OutputError| io::Error::new(error.source.kind(), problem(&error));
    let of_path = |source| failed(OutputError { path: path.to_owned(), source });
    // Of names that select a format, an archive has none but its own.
    if let Some(ending) = path.extension().filter(|ending| !ending.eq_ignore_ascii_case("fxt")) {
        let why =
            format!(".{} is no ending of archives; end the name in .fxt", Shown(&ending.to_string_lossy()));
        return Err(of_path(io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    let mut output = OutputFile::create(path).map_err(failed)?;
    let mut writer = BufWriter::with_capacity(CHUNK_BYTES, Bounded::new(output.file()));
    let summary = write(&mut writer).and_then(|summary| writer.flush().map(|()| summary)).map_err(of_path)?;
    drop(writer);
    if summary.events > 0 || !output.would_replace() {
        output.finish().map_err(failed)?;
    }
    Ok(summary)
}

/// Cuts an archive into pieces.
struct Chunks<'a, 'b> {
    deliver: &'a mut Deliver<'b>,
    bytes: Vec<u8>,
}

impl Chunks<'_, '_> {
    fn deliver(&mut self, is_last: bool) -> io::Result<()> {
        let is_taken = (self.deliver)(&self.bytes, is_last);
        self.bytes.clear();
        if is_taken { Ok(()) } else { Err(io::Error::other("the rest of the archive is not wanted")) }
    }

    fn finish(mut self) -> io::Result<()> {
        self.deliver(true)
    }
}

impl Write for Chunks<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full piece waits for more: the last one is marked.
        if self.bytes.len() == CHUNK_BYTES {
            self.deliver(false)?;
        }
        let taken = bytes.len().min(CHUNK_BYTES - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_files_are_replaced_and_links_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let write_of = |events: u64, path: &Path| {
            let written = replace(path, |file| {
                file.write_all(b"new")?;
                Ok(Summary { events, dropped: None })
            });
            written.map_err(|error| error.to_string())
        };
        let write = |path: &Path| write_of(1, path);
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        std::fs::write(path("file"), "old").unwrap();
        for (link, target) in [("to file", "file"), ("to fifo", "fifo")] {
            std::os::unix::fs::symlink(path(target), path(link)).unwrap();
        }
        for name in ["fifo", "to fifo"] {
            let why = format!("cannot write {}: it is not a regular file", path(name).display());
            assert_eq!(write(&path(name)).unwrap_err(), why);
        }
        assert!(write(&path(".")).unwrap_err().ends_with(": it is a directory"));
        for name in ["a.json", "a.xyz"] {
            assert!(
                write(&path(name)).unwrap_err().ends_with(" is no ending of archives; end the name in .fxt")
            );
            assert!(!path(name).exists());
        }
        std::os::unix::fs::symlink(path("missing"), path("to nothing")).unwrap();
        for name in ["to nothing", "to file", "new"] {
            write(&path(name)).unwrap();
        }
        assert!(path("to file").is_symlink() && path("to nothing").is_symlink());
        for name in ["file", "new", "missing"] {
            assert_eq!(std::fs::read(path(name)).unwrap(), b"new", "{name}");
        }
        // What has no event replaces nothing.
        std::fs::write(path("file"), "precious").unwrap();
        write_of(0, &path("file")).unwrap();
        write_of(0, &path("empty.fxt")).unwrap();
        assert_eq!(
            ["file", "empty.fxt"].map(|name| std::fs::read(path(name)).unwrap()),
            [&b"precious"[..], b"new"]
        );
        assert_eq!(path("new").metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn an_archive_comes_in_pieces_and_the_last_is_marked() {
        for bytes in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
            let mut pieces = Vec::new();
            let mut deliver = |piece: &[u8], is_last| {
                pieces.push((piece.len(), is_last));
                true
            };
            let mut chunks = Chunks { deliver: &mut deliver, bytes: Vec::new() };
            chunks.write_all(&vec![7; bytes]).unwrap();
            chunks.finish().unwrap();
            assert_eq!(pieces.iter().map(|(length, _)| length).sum::<usize>(), bytes);
            assert!(pieces.iter().all(|(length, _)| *length <= CHUNK_BYTES));
            assert_eq!(pieces.iter().filter(|(_, is_last)| *is_last).count(), 1);
            assert!(pieces.last().unwrap().1);
        }
    }
}
