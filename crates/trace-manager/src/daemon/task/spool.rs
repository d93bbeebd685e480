//! Writes the archive of a task into its file, on a thread of its own.

use crate::daemon::file_writer::{Discarder, FileWriter, Writing};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use trace_archive::confirm::{check_file, name_of};
use trace_protocol::controller::ArchiveFile;
use zx_sim::{Error, Handle, Socket};

/// Why no file can be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    #[error("what was given to write into is no file")]
    NoFile,
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    #[error(transparent)]
    System(#[from] Error),
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Spool {
    thread: JoinHandle<io::Result<Option<PathBuf>>>,
    /// Closed at the other end when the thread has ended.
    done: Socket,
    discarder: Discarder,
}

impl Spool {
    /// Starts writing into a file, and returns the file's identity.
    pub fn start(file: Handle, path: String) -> Result<(Self, FileWriter, ArchiveFile), SpoolError> {
        let (device, inode) = file.file().ok_or(SpoolError::NoFile)?;
        let archive = ArchiveFile { path: path.clone(), device, inode, owner: None };
        let (done, end) = Socket::pair()?;
        let (writer, mut writing) = FileWriter::new(file)?;
        let discarder = writing.discarder();
        let thread = std::thread::Builder::new().name("trace-spool".to_owned()).spawn(move || {
            let result = write(&mut writing, Path::new(&path));
            // Closed here, too: its file system may be slow for every operation.
            drop(writing);
            drop(end);
            result
        });
        let thread = thread.map_err(SpoolError::Thread)?;
        Ok((Self { thread, done, discarder }, writer, archive))
    }

    /// Readable when [`Spool::finish`] does not wait.
    pub fn done(&self) -> &Socket {
        &self.done
    }

    /// Discards further data.
    pub fn discard(&self) {
        self.discarder.discard();
    }

    /// Whether all data is on disk, and the file's new name if it was renamed.
    pub fn finish(self) -> io::Result<Option<PathBuf>> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread has failed")))
    }
}

fn write(writing: &mut Writing, path: &Path) -> io::Result<Option<PathBuf>> {
    // The client that opened the file may see other names than this process.
    let is_named = name_of(writing.file().0).is_some_and(|name| name == path);
    writing.run()?;
    if writing.is_discarded() {
        return Ok(None);
    }
    let (file, written) = writing.file();
    file.sync_all()?;
    check_file(file, written)?;
    Ok(name_of(file).filter(|name| is_named && name != path))
}
