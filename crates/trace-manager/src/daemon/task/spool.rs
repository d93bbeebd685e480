//! Writes an archive into a file, in a thread of its own: a disk may take its time, and the manager waits for
//! nobody.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use zx_sim::{Error, Handle, Signals, Socket, wait_one};

const CHUNK_BYTES: usize = 256 << 10;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Spool {
    thread: JoinHandle<io::Result<()>>,
    /// Closed at the other end when the thread has ended.
    done: Socket,
    is_discarded: Arc<AtomicBool>,
}

impl Spool {
    /// Begins to write what comes through the socket into a file.
    pub fn start(file: Handle) -> Result<(Self, Socket), String> {
        if !file.is_file() {
            return Err("what was given to write into is no file".to_owned());
        }
        let failed = |error: Error| error.to_string();
        let (ours, theirs) = Socket::pair().map_err(failed)?;
        let (done, end) = Socket::pair().map_err(failed)?;
        let is_discarded = Arc::new(AtomicBool::new(false));
        let discarded = is_discarded.clone();
        let thread = std::thread::Builder::new().name("trace-spool".to_owned()).spawn(move || {
            // Closed here, too: the file system that it is of may take its time for everything.
            let result = copy(&theirs, File::from(file.into_fd()), &discarded);
            drop(end);
            result
        });
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok((Self { thread, done, is_discarded }, ours))
    }

    /// Readable when [`Spool::finish`] does not wait.
    pub fn done(&self) -> &Socket {
        &self.done
    }

    /// Nothing more is written.
    pub fn discard(&self) {
        self.is_discarded.store(true, Ordering::Relaxed);
    }

    /// Whether everything that came is on disk.
    pub fn finish(self) -> io::Result<()> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread has failed")))
    }
}

fn copy(input: &Socket, mut file: File, is_discarded: &AtomicBool) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match input.read(&mut chunk) {
            Ok(0) | Err(Error::PeerClosed) => break,
            Ok(_) if is_discarded.load(Ordering::Relaxed) => {}
            // On an error the socket closes, which the manager sees: what it has not sent stays in the
            // buffers.
            Ok(length) => file.write_all(&chunk[..length])?,
            Err(Error::ShouldWait) => {
                let _ = wait_one(input, Signals::READABLE | Signals::PEER_CLOSED, None);
            }
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    if is_discarded.load(Ordering::Relaxed) { Ok(()) } else { file.sync_all() }
}
