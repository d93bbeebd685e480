//! Leftovers of sessions whose manager or client has died, and archives that are recovered from them.
//!
//! A session's directory holds the buffers, the beginning of the archive, and a [manifest](crate::manifest).
//! The manager that runs the session holds a lock in it, and each program marks its buffer as in use. A
//! directory that no process holds is a leftover, and stays until its deletion is requested or it expires.
//! A program that records itself makes such a directory, too, and holds it as a manager does.

mod join;
mod retention;
mod session;
mod startups;

use crate::files;
use crate::manifest::{Entry, FILE as MANIFEST_FILE, Manifest, ManifestError, Writer};
pub use join::ClientFile;
pub use retention::{delete_blank, delete_expired};
use session::session_directories;
pub use session::{Now, Session, sessions, unreadable};
pub use startups::recover_startups;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace_protocol::controller::ProviderStats;
use zx_sim::{Lock, RuntimeDir};

/// Prefix of the names of session directories.
pub const SESSION_PREFIX: &str = "session";
/// The file with the head of the archive.
pub const HEAD_FILE: &str = "head.fxt";
/// Held by the manager that runs the session, or by the process that recovers it.
pub const LOCK_FILE: &str = "lock";
/// Says that users were asked to save the session, and when.
const ANNOUNCED_FILE: &str = "announced";

/// A session whose manager ended without finishing it.
#[derive(Debug)]
pub struct Leftover {
    session: Session,
    _lock: Lock,
}

/// Why a directory with a session's name cannot be recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] zx_sim::Error),
    /// A manager runs the session, or a process recovers it right now.
    #[error("{}: it is in use", directory.display())]
    InUse {
        /// The session's directory.
        directory: PathBuf,
    },
    /// Its manifest cannot be used.
    #[error("{}: {error}", directory.display())]
    Manifest {
        /// The session's directory.
        directory: PathBuf,
        /// The error of the manifest.
        error: ManifestError,
    },
    /// The archive, or a file of the session, cannot be read or written.
    #[error("{what}: {error}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The operating system's error.
        error: io::Error,
    },
    /// A program still records into a buffer, or may.
    #[error("{}: {} (pid {}) still has its buffer", directory.display(), name, pid)]
    StillLive {
        /// The session's directory.
        directory: PathBuf,
        /// The provider.
        name: String,
        /// Its process.
        pid: u64,
    },
}

/// The result of recovering one buffer.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The provider, and the findings in its buffer.
    pub stats: ProviderStats,
    /// The last half that the client's own file holds, and the last that it may hold.
    pub halves_before: (Option<u32>, Option<u32>),
    /// Why the buffer could not be read, or not all of it.
    pub unread: Option<String>,
}

/// A file that holds a part of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its name.
    pub path: PathBuf,
    /// The space that it takes on its file system, in bytes.
    pub bytes: u64,
    /// The buffer's provider; none if it is the file that the client was writing.
    pub provider: Option<u32>,
}

fn read_manifest(directory: &Path) -> Result<Manifest, Error> {
    Manifest::read(directory).map_err(|error| Error::Manifest { directory: directory.to_owned(), error })
}

/// Deletes the file of a buffer that a manager has taken over, if it is still that file, in the directory of
/// a session.
///
/// # Errors
/// It is another one, or cannot be deleted.
pub fn delete_startup_buffer(path: &Path, identity: (u64, u64)) -> io::Result<()> {
    let directory = path.parent().and_then(Path::file_name).unwrap_or_default();
    if !directory.to_string_lossy().starts_with(&format!("{SESSION_PREFIX}-")) {
        return Err(io::Error::other(format!("{} is in no session's directory", path.display())));
    }
    files::remove_if(path, |file| {
        let found = file.metadata()?;
        let is_it = (found.dev(), found.ino()) == identity;
        if is_it { Ok(()) } else { Err(io::Error::other("it is another file")) }
    })?;
    path.parent().into_iter().for_each(delete_empty_startup);
    Ok(())
}

/// Deletes the directory of a program's own recording that has no buffer any more, if it is this user's.
fn delete_empty_startup(directory: &Path) {
    let own =
        std::fs::metadata(directory).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
    let is_of_session =
        |name: &std::ffi::OsStr| [LOCK_FILE, MANIFEST_FILE, ANNOUNCED_FILE].iter().any(|own| name == *own);
    let entries = || std::fs::read_dir(directory).into_iter().flatten().flatten();
    // A program that reads its recording itself has another name for the buffer there.
    if own && entries().all(|entry| is_of_session(&entry.file_name())) {
        entries().for_each(|entry| drop(std::fs::remove_file(entry.path())));
        let _ = std::fs::remove_dir(directory);
    }
}

impl Leftover {
    /// Locks a session's directory for this process, until this is dropped.
    ///
    /// # Errors
    /// It is not a session's directory, or in use.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        // Before the lock: a manager that has just made the directory takes it first, and then writes.
        read_manifest(directory)?;
        let own = RuntimeDir::open_or_create(directory)?;
        let Some(lock) = own.lock(LOCK_FILE)? else {
            return Err(Error::InUse { directory: directory.to_owned() });
        };
        Ok(Self { session: Session::read(directory)?, _lock: lock })
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Records that an archive was recovered, so that users are no longer reminded.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn note_recovered(&self, file: &Path) -> Result<(), Error> {
        let entry = Entry::Recovered { file: file.display().to_string() };
        let noted = Writer::open(&self.session.directory).and_then(|mut writer| writer.append(&entry));
        noted.map_err(|error| Error::Io { what: format!("{}", self.session.directory.display()), error })
    }

    /// A program that still has its buffer, and may write into it.
    #[must_use]
    pub fn live_program(&self) -> Option<(&str, u64)> {
        self.session.live().map(|buffer| (buffer.provider.name.as_str(), buffer.provider.pid))
    }

    /// Deletes the session's buffers and its directory.
    ///
    /// # Errors
    /// A program still has its buffer; or the files cannot be deleted.
    pub fn delete(self) -> Result<(), Error> {
        let Session { directory, .. } = &self.session;
        if let Some((name, pid)) = self.live_program() {
            let (directory, name) = (directory.clone(), name.to_owned());
            return Err(Error::StillLive { directory, name, pid });
        }
        for note in self.session.notes() {
            let _ = note.delete();
        }
        // First, or else they would be taken for what no session has.
        self.delete_origins();
        let failed = |error| Error::Io { what: format!("cannot delete {}", directory.display()), error };
        std::fs::remove_dir_all(directory).map_err(failed)
    }

    /// Deletes buffers of programs' own that this session has taken over, where its manager was killed before
    /// it could do so.
    fn delete_origins(&self) {
        let buffers = self.session.manifest.buffers.values().filter(|buffer| buffer.is_started);
        let origins: Vec<_> = buffers.filter_map(|buffer| buffer.provider.origin).collect();
        let runtime = self.session.directory.parent().filter(|_| !origins.is_empty());
        let others = runtime.and_then(|runtime| session_directories(runtime).ok()).unwrap_or_default();
        for other in others.iter().filter(|other| **other != self.session.directory) {
            let Ok(manifest) = Manifest::read(other) else { continue };
            for buffer in manifest.buffers.values().filter(|_| manifest.session.is_startup) {
                let path = other.join(buffer.provider.file_name());
                for origin in &origins {
                    let _ = delete_startup_buffer(&path, *origin);
                }
            }
        }
    }

    /// Deletes the file that the client was writing, if it has not been replaced, and returns its name.
    ///
    /// # Errors
    /// It cannot be deleted.
    pub fn delete_client_file(&self) -> Result<Option<PathBuf>, Error> {
        let Some(output) = &self.session.manifest.output else {
            return Ok(None);
        };
        let path = PathBuf::from(&output.path);
        if join::open_output(output).is_err() {
            return Ok(None);
        }
        let failed = |error| Error::Io { what: format!("cannot delete {}", path.display()), error };
        files::remove_if(&path, |file| join::is_output(output, file)).map_err(failed)?;
        Ok(Some(path))
    }
}

#[cfg(test)]
mod tests;
