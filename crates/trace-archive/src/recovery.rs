//! Leftovers of sessions whose manager or client has died, and archives that are recovered from them.
//!
//! A session's directory holds the buffers, the beginning of the archive, and a [manifest](crate::manifest).
//! The manager that runs the session holds a lock in it, and each program marks its buffer as in use. A
//! directory that no process holds is a leftover, and stays until its deletion is requested or it expires.
//! A program that records itself makes such a directory, too, and holds it as a manager does.

mod join;
mod retention;
mod startups;

use crate::files;
use crate::gave_up::{self, Note};
use crate::manifest::{Buffer, Entry, FILE as MANIFEST_FILE, Manifest, ManifestError, SessionInfo, Writer};
use crate::missing::Missing;
pub use join::ClientFile;
pub use retention::delete_expired;
pub use startups::recover_startups;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trace_protocol::controller::ProviderStats;
use zx_sim::{Lock, ProcessFd, RuntimeDir, Vmo};

/// Prefix of the names of session directories.
pub const SESSION_PREFIX: &str = "session";
/// The file with the head of the archive.
pub const HEAD_FILE: &str = "head.fxt";
/// Held by the manager that runs the session, or by the process that recovers it.
pub const LOCK_FILE: &str = "lock";
/// A process id has fewer digits.
const MAX_LOCK_BYTES: u64 = 16;
/// The unit of `stat`'s block counts.
const BLOCK_BYTES: u64 = 512;

/// A session, as described by its directory.
#[derive(Debug)]
pub struct Session {
    /// Its directory.
    pub directory: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
}

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

/// The directories of sessions in a runtime directory, newest last.
///
/// # Errors
/// The directory cannot be read; a missing one is no error.
pub fn session_directories(runtime: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(runtime) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let is_session = entry.file_name().to_string_lossy().starts_with(&format!("{SESSION_PREFIX}-"));
        if is_session && entry.file_type()?.is_dir() {
            found.push((entry.metadata()?.modified().unwrap_or(UNIX_EPOCH), entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
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
    let is_of_session = |name: &std::ffi::OsStr| [LOCK_FILE, MANIFEST_FILE].iter().any(|own| name == *own);
    let entries = || std::fs::read_dir(directory).into_iter().flatten().flatten();
    // A program that reads its recording itself has another name for the buffer there.
    if own && entries().all(|entry| is_of_session(&entry.file_name())) {
        entries().for_each(|entry| drop(std::fs::remove_file(entry.path())));
        let _ = std::fs::remove_dir(directory);
    }
}

impl Session {
    /// Reads a session's directory.
    ///
    /// # Errors
    /// It is not a session's directory.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        Ok(Self { directory: directory.to_owned(), manifest: read_manifest(directory)? })
    }

    /// Whether its manager is alive, as far as that can be determined without disturbing it.
    #[must_use]
    pub fn has_manager(&self) -> bool {
        if self.manifest.is_ended {
            return false;
        }
        let pid = self.manifest.session.manager_pid;
        let mut holder = String::new();
        let file = files::open(&self.directory.join(LOCK_FILE));
        let _ = file.and_then(|file| file.take(MAX_LOCK_BYTES).read_to_string(&mut holder));
        holder.trim() == pid.to_string() && ProcessFd::open(pid).is_ok_and(|process| !process.is_dead())
    }

    /// When the session began.
    #[must_use]
    pub fn began(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.manifest.session.wall_clock_ns)
    }

    /// Buffers with data that is in no archive.
    pub fn unsaved(&self) -> impl Iterator<Item = &Buffer> {
        let is_there = |buffer: &&Buffer| self.buffer_bytes(buffer).is_some();
        self.manifest
            .buffers
            .values()
            .filter(|buffer| buffer.is_started && !buffer.is_archived)
            .filter(is_there)
            .filter(|buffer| !self.is_taken_over(buffer))
    }

    /// Whether the buffer of a program that recorded itself is part of another session, whose manager was
    /// killed before it could delete the file here.
    fn is_taken_over(&self, buffer: &Buffer) -> bool {
        let Some(runtime) = self.directory.parent().filter(|_| self.manifest.session.is_startup) else {
            return false;
        };
        let file = files::open(&self.directory.join(buffer.provider.file_name()));
        let Ok(found) = file.and_then(|file| file.metadata()) else {
            return false;
        };
        let origin = Some((found.dev(), found.ino()));
        let others = session_directories(runtime).unwrap_or_default();
        others.iter().filter(|other| **other != self.directory).any(|other| {
            let has_it = |manifest: Manifest| {
                manifest.buffers.values().any(|buffer| buffer.is_started && buffer.provider.origin == origin)
            };
            Manifest::read(other).is_ok_and(has_it)
        })
    }

    /// The space that a buffer's file takes, if it exists.
    fn buffer_bytes(&self, buffer: &Buffer) -> Option<u64> {
        let file = files::open(&self.directory.join(buffer.provider.file_name())).ok()?;
        Some(file.metadata().ok()?.blocks() * BLOCK_BYTES)
    }

    /// The files with recorded data: that of the client, if it still exists, and the buffers.
    #[must_use]
    pub fn pieces(&self) -> Vec<Piece> {
        self.client_piece().into_iter().chain(self.buffer_pieces()).collect()
    }

    fn client_piece(&self) -> Option<Piece> {
        let output = self.manifest.output.as_ref()?;
        let bytes = join::open_output(output).ok()?.metadata().ok()?.len();
        Some(Piece { path: PathBuf::from(&output.path), bytes, provider: None })
    }

    fn buffer_pieces(&self) -> impl Iterator<Item = Piece> {
        let buffers = self.manifest.buffers.values().filter(|buffer| buffer.is_started);
        buffers.filter_map(|buffer| {
            let bytes = self.buffer_bytes(buffer)?;
            let path = self.directory.join(buffer.provider.file_name());
            Some(Piece { path, bytes, provider: Some(buffer.provider.id) })
        })
    }

    /// Whether an archive can be recovered from it.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        let has_file = || self.manifest.has_parts() && self.client_piece().is_some();
        let has_data = || self.unsaved().next().is_some() || has_file();
        let has_missing = || !self.manifest.missing.is_empty() || !self.notes().is_empty();
        !self.has_manager() && (has_data() || has_missing())
    }

    /// Whether an archive can be recovered, and none has been.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.manifest.recovered.is_empty() && self.is_recoverable()
    }

    /// Notes of programs that gave up while this was the last session that had begun, and that no manager has
    /// taken.
    fn notes(&self) -> Vec<Note> {
        let Some(directory) = self.directory.parent() else {
            return Vec::new();
        };
        let SessionInfo { runtime, programs, .. } = &self.manifest.session;
        let mut notes = gave_up::notes(runtime.as_deref().map_or(directory, Path::new), self.began());
        notes.retain(|note| programs.is_empty() || programs.contains(&note.name));
        if notes.is_empty() {
            return notes;
        }
        let others = session_directories(directory).unwrap_or_default();
        let others = others.iter().filter(|other| **other != self.directory);
        let others = others.filter_map(|other| Session::read(other).ok());
        // A program waits neither for a program that records itself, nor for a manager in another directory.
        let is_like = |other: &Session| {
            let session = &other.manifest.session;
            !session.is_startup && session.runtime == *runtime
        };
        let begins: Vec<SystemTime> = others.filter(is_like).map(|other| other.began()).collect();
        notes.retain(|note| !begins.iter().any(|begin| (self.began()..=note.at).contains(begin)));
        notes
    }

    /// The programs that have left these notes. A program with a buffer has joined late.
    //= docs/protocol.md#programs-of-which-something-is-missing
    fn gave_up(&self) -> Vec<Missing> {
        let Manifest { buffers, missing, .. } = &self.manifest;
        let last = buffers.keys().chain(missing.iter().map(|missing| &missing.id)).max();
        let next = last.map_or(1, |last| last.saturating_add(1));
        let notes = self.notes().into_iter();
        let new = notes.filter(|note| missing.iter().all(|missing| missing.pid != note.pid));
        let of = |(id, note): (u32, Note)| {
            let joined = buffers.values().find(|buffer| buffer.provider.pid == note.pid);
            match joined {
                Some(joined) => Missing::joined_late(joined.provider.id, note),
                None => Missing::gave_up(id, note),
            }
        };
        (next..).zip(new).map(of).collect()
    }

    /// A provider whose program is alive and has its buffer.
    fn live(&self) -> Option<&Buffer> {
        self.manifest.buffers.values().find(|buffer| {
            Vmo::open(&self.directory.join(buffer.provider.file_name()))
                .is_ok_and(|vmo| vmo.is_live().unwrap_or(true))
        })
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
