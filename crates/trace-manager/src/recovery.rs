//! What is left of sessions whose manager has died, and archives made of it.
//!
//! A session's directory holds the buffers, the beginning of the archive, and a [manifest]. The manager that
//! runs the session holds a lock in it, and each program marks its buffer as in use; so what nobody holds is
//! left over, and what is left over stays until somebody asks for it to be deleted.

pub mod manifest;

use crate::archive::transfer::{BufferOf, Progress, Transfer};
use crate::archive::{self, facts};
use crate::core::Part;
use manifest::{Buffer, Entry, Manifest, ManifestError, Writer};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trace_format::buffer::BufferMode;
use trace_format::units::{ProviderId, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::ProviderStats;
use trace_reader::buffer::Period;
use zx_sim::{Lock, ProcessFd, RuntimeDir, Vmo, ticks};

/// Directories of sessions begin with it.
pub(crate) const SESSION_PREFIX: &str = "session";
/// What the archive began with.
pub(crate) const HEAD_FILE: &str = "head.fxt";
/// Held by the manager that runs the session, or by whoever recovers it.
pub(crate) const LOCK_FILE: &str = "lock";

/// A session as its directory shows it.
#[derive(Debug)]
pub struct Session {
    /// Its directory.
    pub directory: PathBuf,
    /// What is known of it.
    pub manifest: Manifest,
}

/// A session that ended without its manager having seen to it.
#[derive(Debug)]
pub struct Leftover {
    session: Session,
    _lock: Lock,
}

/// Why a directory with a session's name is none that can be recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] zx_sim::Error),
    /// A manager runs the session, or somebody recovers it right now.
    #[error("{}: it is in use", directory.display())]
    InUse {
        /// The session's directory.
        directory: PathBuf,
    },
    /// It says too little of itself.
    #[error("{}: {error}", directory.display())]
    Manifest {
        /// The session's directory.
        directory: PathBuf,
        /// What is wrong.
        error: ManifestError,
    },
    /// The archive, or something of the session, cannot be read or written.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// What the operating system says.
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

/// What was made of one buffer.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Who it was, and what was found.
    pub stats: ProviderStats,
    /// The last half that the client's own file holds, and the last that it may hold.
    pub halves_before: (Option<u32>, Option<u32>),
}

/// The directories of sessions in a runtime directory, newest last.
///
/// # Errors
/// The directory cannot be read; that it is not there is no error.
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

impl Session {
    /// Looks at a session's directory.
    ///
    /// # Errors
    /// It is no session's.
    pub fn look(directory: &Path) -> Result<Self, Error> {
        Ok(Self { directory: directory.to_owned(), manifest: read_manifest(directory)? })
    }

    /// Its manager is alive, as far as that can be seen without getting in its way.
    #[must_use]
    pub fn has_manager(&self) -> bool {
        if self.manifest.is_ended {
            return false;
        }
        let pid = self.manifest.session.manager_pid;
        let holder = std::fs::read_to_string(self.directory.join(LOCK_FILE)).unwrap_or_default();
        holder.trim() == pid.to_string() && ProcessFd::open(pid).is_ok_and(|process| !process.is_dead())
    }

    /// When the session began.
    #[must_use]
    pub fn began(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.manifest.session.wall_clock_ns)
    }

    /// Buffers that hold what is in no archive.
    pub fn unsaved(&self) -> impl Iterator<Item = &Buffer> {
        let is_there = |buffer: &&Buffer| self.directory.join(buffer.provider.file_name()).is_file();
        self.manifest
            .buffers
            .values()
            .filter(|buffer| buffer.is_started && !buffer.is_archived)
            .filter(is_there)
    }

    /// There is something in it that nobody has made an archive of.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.manifest.recovered.is_empty() && !self.has_manager() && self.unsaved().next().is_some()
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
    /// Takes a session's directory, so that nobody else does until this is dropped.
    ///
    /// # Errors
    /// It is no session's, or in use.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        // Before the lock: a manager that has just made the directory takes it first, and then writes.
        read_manifest(directory)?;
        let own = RuntimeDir::open_or_create(directory)?;
        let Some(lock) = own.lock(LOCK_FILE)? else {
            return Err(Error::InUse { directory: directory.to_owned() });
        };
        Ok(Self { session: Session::look(directory)?, _lock: lock })
    }

    /// What it is.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Writes an archive of everything that was committed into the session's buffers; each provider is
    /// reported when it is done. What is in the buffers stays there.
    ///
    /// # Errors
    /// The archive cannot be written. A buffer that cannot be read is told of in its statistics.
    //= docs/recovery.md#what-is-recovered
    pub fn recover(&self, out: &mut impl Write, mut report: impl FnMut(&Recovered)) -> Result<(), Error> {
        let failed = |error| Error::Io { what: "cannot write the archive".to_owned(), error };
        let mut bytes = Vec::new();
        archive::magic(&mut bytes);
        // Missing where it was killed before it could.
        if let Ok(head) = std::fs::read(self.session.directory.join(HEAD_FILE)) {
            bytes = head;
        }
        // Who recorded without metadata does not want it here either.
        let has_metadata = bytes.len() > 8;
        out.write_all(&bytes).map_err(failed)?;
        for buffer in self.session.manifest.buffers.values().filter(|buffer| buffer.is_started) {
            let stats = self.recover_buffer(buffer, out).map_err(failed)?;
            report(&Recovered { stats, halves_before: (buffer.saved, buffer.saving) });
        }
        bytes.clear();
        if has_metadata {
            facts::recovered(&mut bytes);
        }
        out.write_all(&bytes).map_err(failed)
    }

    fn recover_buffer(&self, buffer: &Buffer, out: &mut impl Write) -> io::Result<ProviderStats> {
        let facts = &buffer.provider;
        let who = |disposition: &str, stats: ProviderStats| ProviderStats {
            id: facts.id,
            name: facts.name.clone(),
            pid: facts.pid,
            disposition: disposition.to_owned(),
            ..stats
        };
        let vmo = match Vmo::open(&self.session.directory.join(facts.file_name())) {
            Ok(vmo) => vmo,
            Err(error) => {
                let stats =
                    ProviderStats { problem: crate::problem::problem(&error), ..ProviderStats::default() };
                return Ok(who(if buffer.is_archived { "archived" } else { "missing" }, stats));
            }
        };
        let is_live = vmo.is_live().unwrap_or(true);
        let session = &self.session.manifest.session;
        let mode = match session.mode() {
            Some(BufferMode::Circular) => BufferingMode::Circular,
            Some(BufferMode::Streaming) => BufferingMode::Streaming,
            Some(BufferMode::Oneshot) | None => BufferingMode::Oneshot,
        };
        let rate = TicksPerSecond(NonZeroU64::new(session.ticks_per_second).unwrap_or(NonZeroU64::MIN));
        let of = BufferOf {
            id: ProviderId(facts.id),
            name: facts.name.clone(),
            size: facts.bytes,
            mode,
            rate,
            // The halves before are in the recording's own file.
            is_accounted: mode != BufferingMode::Streaming,
            period: period_since(self.session.manifest.session.wall_clock_ns),
        };
        let part = Part::Rest { is_quiet: !is_live };
        let mut transfer = Transfer::new(of, Progress::default(), vmo, part);
        let mut batch = Vec::new();
        loop {
            let is_finished = transfer.poll(&mut batch);
            out.write_all(&batch)?;
            batch.clear();
            if is_finished {
                let disposition = if is_live { "still running" } else { "left" };
                return Ok(who(disposition, transfer.into_stats().0));
            }
        }
    }

    /// Remembers that an archive was made, so that nobody is reminded any more.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn note_recovered(&self, file: &Path) -> Result<(), Error> {
        let entry = Entry::Recovered { file: file.display().to_string() };
        let noted = Writer::open(&self.session.directory).and_then(|mut writer| writer.append(&entry));
        noted.map_err(|error| Error::Io { what: format!("{}", self.session.directory.display()), error })
    }

    /// Deletes the session's buffers and its directory.
    ///
    /// # Errors
    /// A program still has its buffer; or the files cannot be deleted.
    pub fn delete(self) -> Result<(), Error> {
        let Session { directory, .. } = &self.session;
        if let Some(Buffer { provider, .. }) = self.session.live() {
            let (name, pid) = (provider.name.clone(), provider.pid);
            return Err(Error::StillLive { directory: directory.clone(), name, pid });
        }
        let failed = |error| Error::Io { what: format!("cannot delete {}", directory.display()), error };
        std::fs::remove_dir_all(directory).map_err(failed)
    }
}

/// The time since the machine was started, if a session began later: else its ticks were another clock's.
fn period_since(session_wall_clock_ns: u64) -> Option<Period> {
    let duration = |clock| {
        let now = clock_gettime(clock);
        Some(Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?))
    };
    let started = duration(ClockId::Realtime)?.checked_sub(duration(ClockId::Boottime)?)?;
    (Duration::from_nanos(session_wall_clock_ns) > started).then(|| Period { made: 0, read: ticks::now() })
}
