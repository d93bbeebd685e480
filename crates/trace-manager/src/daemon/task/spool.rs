//! Writes an archive into a file, in a thread of its own: a disk may be slow, and the manager must not block.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use trace_archive::confirm::{Confirmer, check_file, name_of};
use trace_protocol::controller::ArchiveFile;
use zx_sim::{Error, Handle, Signals, Socket, wait_one};

const CHUNK_BYTES: usize = 256 << 10;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Spool {
    thread: JoinHandle<io::Result<Option<PathBuf>>>,
    /// Closed at the other end when the thread has ended.
    done: Socket,
    is_discarded: Arc<AtomicBool>,
}

impl Spool {
    /// Starts writing the socket's data into a file, and returns the file's identity.
    pub fn start(file: Handle, path: String) -> Result<(Self, Socket, ArchiveFile), String> {
        let (device, inode) = file.file().ok_or("what was given to write into is no file")?;
        let archive = ArchiveFile { path: path.clone(), device, inode };
        let failed = |error: Error| error.to_string();
        let (ours, theirs) = Socket::pair().map_err(failed)?;
        let (done, end) = Socket::pair().map_err(failed)?;
        let is_discarded = Arc::new(AtomicBool::new(false));
        let discarded = is_discarded.clone();
        let thread = std::thread::Builder::new().name("trace-spool".to_owned()).spawn(move || {
            // Closed here, too: its file system may be slow for every operation.
            let result = copy(&theirs, File::from(file.into_fd()), Path::new(&path), &discarded);
            drop(end);
            result
        });
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok((Self { thread, done, is_discarded }, ours, archive))
    }

    /// Readable when [`Spool::finish`] does not wait.
    pub fn done(&self) -> &Socket {
        &self.done
    }

    /// Discards further data.
    pub fn discard(&self) {
        self.is_discarded.store(true, Ordering::Relaxed);
    }

    /// Whether all data is on disk, and the file's new name if it was renamed.
    pub fn finish(self) -> io::Result<Option<PathBuf>> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread has failed")))
    }
}

fn copy(
    input: &Socket,
    mut file: File,
    path: &Path,
    is_discarded: &AtomicBool,
) -> io::Result<Option<PathBuf>> {
    // The client that opened the file may see other names than this process.
    let is_named = name_of(&file).is_some_and(|name| name == path);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut confirmer = Confirmer::default();
    let mut taken = 0;
    let mut wanted = Signals::READABLE | Signals::PEER_CLOSED;
    loop {
        match input.read(&mut chunk) {
            Ok(0) | Err(Error::PeerClosed) => break,
            Ok(length) => {
                if !is_discarded.load(Ordering::Relaxed) {
                    // On an error the socket closes, which the manager sees: what was not confirmed stays in
                    // the buffers.
                    let written = check_file(&file, taken).and_then(|()| file.write_all(&chunk[..length]));
                    if written.is_err() {
                        // The file ends with a whole record, if that can be achieved.
                        let whole = trace_reader::complete_records_end(&mut file);
                        let _ = whole.and_then(|bytes| file.set_len(bytes));
                    }
                    written?;
                }
                taken += length as u64;
            }
            Err(Error::ShouldWait) => {
                let _ = wait_one(input, wanted, None);
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        wanted.set(Signals::WRITABLE, !confirmer.confirm(input, taken));
    }
    if is_discarded.load(Ordering::Relaxed) {
        return Ok(None);
    }
    file.sync_all()?;
    check_file(&file, taken)?;
    Ok(name_of(&file).filter(|name| is_named && name != path))
}
