//! What is known of a session by its directory, and by those beside it.

use super::{ANNOUNCED_FILE, Error, LOCK_FILE, Piece, SESSION_PREFIX, join, read_manifest};
use crate::files;
use crate::gave_up::{self, Note};
use crate::manifest::{Buffer, Manifest, SessionInfo};
use crate::missing::Missing;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trace_format::buffer::{BufferHeader, BufferMode, HEADER_BYTES, Layout, field};
use trace_format::scopes;
use zx_sim::{ProcessFd, Vmo, liveness, pid_namespace, process, ticks};

/// A process id has fewer digits.
const MAX_LOCK_BYTES: u64 = 16;
/// The identification of a boot, and a number.
const MAX_ANNOUNCED_BYTES: u64 = 80;
/// The unit of `stat`'s block counts.
const BLOCK_BYTES: u64 = 512;
/// Beginning of the names of buffers.
const BUFFER_PREFIX: &str = "provider-";
/// The unit of processes' start times: `USER_HZ` is 100 on all processors that Rust has a standard library
/// for.
const CLOCK_TICK_NS: u64 = 10_000_000;

/// The present, by two clocks: the wall clock, and the time since the machine was started.
#[derive(Clone, Debug)]
pub struct Now {
    pub(super) wall_clock: SystemTime,
    pub(super) boot_id: String,
    pub(super) boot_clock_ns: u64,
}

impl Now {
    /// Reads the clocks.
    #[must_use]
    pub fn read() -> Self {
        let (boot_id, boot_clock_ns) = (ticks::boot_id(), ticks::since_boot_ns());
        Self { wall_clock: SystemTime::now(), boot_id, boot_clock_ns }
    }

    /// How long ago something was, by both clocks if the boot is still the same one: the shorter time counts,
    /// so that a clock which was set forward, or runs in a time namespace, makes nothing older.
    pub(super) fn since(&self, wall_clock: SystemTime, boot_id: &str, boot_clock_ns: u64) -> Duration {
        let wall = self.wall_clock.duration_since(wall_clock).unwrap_or_default();
        if boot_id.is_empty() || boot_id != self.boot_id {
            return wall;
        }
        wall.min(Duration::from_nanos(self.boot_clock_ns.saturating_sub(boot_clock_ns)))
    }
}

/// Whether a buffer says itself that it has this layout: the manifest, from which that is, may be damaged.
fn is_of_layout(vmo: &Vmo, layout: &Layout) -> bool {
    let expected = BufferHeader::initial_words(layout);
    let mut bytes = [0; HEADER_BYTES];
    let has_header = vmo.read_at(0, &mut bytes).is_ok();
    let (words, _) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let is_fixed =
        |(index, _): &(usize, _)| matches!(*index, ..field::DURABLE_DATA_END | field::SLABS..field::FLAGS);
    let is_equal = words.zip(expected).enumerate().filter(is_fixed).all(|(_, (found, word))| found == word);
    // Without a header, nothing was ever written.
    let is_new = bytes == [0; HEADER_BYTES];
    let sizes = [layout.total_bytes, layout.total_bytes + scopes::SCOPES_BYTES];
    has_header && (is_equal || is_new) && vmo.size().is_ok_and(|size| sizes.contains(&size))
}

/// A session, as described by its directory.
#[derive(Debug)]
pub struct Session {
    /// The session's directory.
    pub directory: PathBuf,
    /// What the directory's manifest says.
    pub manifest: Manifest,
    /// Once something of them is asked for.
    beside: Arc<OnceLock<Beside>>,
}

/// What the sessions of a runtime directory say of each other.
#[derive(Debug, Default)]
struct Beside {
    /// Device and inode of programs' own buffers that are part of a manager's session.
    taken_over: HashMap<(u64, u64), PathBuf>,
    /// Sessions of managers: when each began, and in which directory its manager is found.
    begins: Vec<(PathBuf, SystemTime, Option<String>)>,
}

impl Beside {
    fn of<'a>(sessions: impl Iterator<Item = (&'a Path, &'a Manifest)>) -> Self {
        let mut beside = Self::default();
        for (directory, manifest) in sessions.filter(|(_, manifest)| !manifest.session.is_startup) {
            let buffers = manifest.buffers.values().filter(|buffer| buffer.is_started);
            let origins = buffers.filter_map(|buffer| buffer.provider.origin);
            beside.taken_over.extend(origins.map(|origin| (origin, directory.to_owned())));
            let SessionInfo { runtime, .. } = &manifest.session;
            beside.begins.push((directory.to_owned(), began(manifest), runtime.clone()));
        }
        beside
    }

    /// Of a directory that is read for this.
    fn read(runtime: Option<&Path>) -> Self {
        let directories = runtime.map_or(Ok(Vec::new()), session_directories).unwrap_or_default();
        let read = |directory: PathBuf| Some((Manifest::read(&directory).ok()?, directory));
        let all: Vec<_> = directories.into_iter().filter_map(read).collect();
        Self::of(all.iter().map(|(manifest, directory)| (directory.as_path(), manifest)))
    }
}

fn began(manifest: &Manifest) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(manifest.session.wall_clock_ns)
}

/// The directories of sessions in a runtime directory, newest last.
pub(super) fn session_directories(runtime: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(runtime) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let is_session = entry.file_name().to_string_lossy().starts_with(&format!("{SESSION_PREFIX}-"));
        if is_session && entry.file_type()?.is_dir() {
            // One that is deleted meanwhile is none.
            let modified = entry.metadata().and_then(|found| found.modified());
            found.extend(modified.ok().map(|modified| (modified, entry.path())));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The sessions in a runtime directory, newest last: those whose manifests can be read. Each directory is
/// read once.
#[must_use]
pub fn sessions(runtime: &Path) -> Vec<Session> {
    let beside = Arc::new(OnceLock::new());
    let directories = session_directories(runtime).unwrap_or_default().into_iter();
    let read = |directory: PathBuf| {
        let manifest = Manifest::read(&directory).ok()?;
        Some(Session { directory, manifest, beside: Arc::clone(&beside) })
    };
    let all: Vec<Session> = directories.filter_map(read).collect();
    let _ =
        beside.set(Beside::of(all.iter().map(|session| (session.directory.as_path(), &session.manifest))));
    all
}

/// The directories of sessions, or the session's that is named, of which no manifest says what is in their
/// buffers: it was damaged. They are kept like others. `known` are the sessions there.
#[must_use]
pub fn unreadable(directory: &Path, known: &[Session]) -> Vec<PathBuf> {
    let mut all = session_directories(directory).unwrap_or_default();
    all.push(directory.to_owned());
    let is_whole =
        |session: &&Session| !session.manifest.session.is_startup || !session.manifest.buffers.is_empty();
    let whole = known.iter().filter(is_whole).map(|session| session.directory.as_path());
    let whole: HashSet<&Path> = whole.collect();
    let has_buffer = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let is_buffer = |entry: &std::fs::DirEntry| {
            entry.file_name().to_string_lossy().starts_with(BUFFER_PREFIX)
                && entry.metadata().is_ok_and(|found| found.blocks() > 0)
        };
        entries.into_iter().any(|entry| is_buffer(&entry))
    };
    all.retain(|directory| !whole.contains(directory.as_path()) && has_buffer(directory));
    all
}

impl Session {
    /// Reads a session's directory.
    ///
    /// # Errors
    /// It is not a session's directory.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let manifest = read_manifest(directory)?;
        Ok(Self { directory: directory.to_owned(), manifest, beside: Arc::default() })
    }

    fn beside(&self) -> &Beside {
        self.beside.get_or_init(|| Beside::read(self.directory.parent()))
    }

    /// Whether its manager, or the program that records itself, is alive, as far as that can be determined
    /// without disturbing it.
    //= docs/recovery.md#a-sessions-directory
    #[must_use]
    pub fn has_manager(&self) -> bool {
        if self.manifest.is_ended {
            return false;
        }
        let lock = files::open(&self.directory.join(LOCK_FILE));
        if self.manifest.session.is_marked {
            return lock.is_ok_and(|lock| liveness::is_marked(&lock).unwrap_or(true));
        }
        let pid = self.manifest.session.manager_pid;
        let mut holder = String::new();
        let _ = lock.and_then(|lock| lock.take(MAX_LOCK_BYTES).read_to_string(&mut holder));
        holder.trim() == pid.to_string()
            && ProcessFd::open(pid).is_ok_and(|process| !process.is_dead())
            && !(self.manifest.session.is_startup && self.is_of_another(pid))
    }

    /// Whether the process that has this number now is not the one that began to record itself: that was in
    /// another pid namespace, or the number was used again.
    fn is_of_another(&self, pid: u32) -> bool {
        let SessionInfo { boot_id, boot_clock_ns, .. } = &self.manifest.session;
        // An earlier release has not written it.
        if boot_id.is_empty() {
            return false;
        }
        let started_ns = process::start_time(pid.into()).map(|ticks| ticks.saturating_mul(CLOCK_TICK_NS));
        self.is_elsewhere()
            || *boot_id != ticks::boot_id()
            || started_ns.is_some_and(|started| started > *boot_clock_ns)
    }

    /// Whether no process of another pid namespace, whose numbers mean nothing here, can still record: where
    /// an earlier release wrote the number of a process that records itself, there may be one.
    #[must_use]
    pub fn is_certainly_over(&self) -> bool {
        let SessionInfo { is_marked, is_startup, .. } = self.manifest.session;
        is_marked || !is_startup || self.manifest.is_ended
    }

    /// Whether its processes belong to another pid namespace, so that their numbers mean nothing here.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        let namespace = self.manifest.session.pid_namespace;
        namespace != 0 && namespace != pid_namespace::own_number()
    }

    /// When the session began.
    #[must_use]
    pub fn began(&self) -> SystemTime {
        began(&self.manifest)
    }

    /// How long ago it began. A clock that was set forward since then does not make it older.
    #[must_use]
    pub fn age(&self, now: &Now) -> Duration {
        let SessionInfo { boot_id, boot_clock_ns, .. } = &self.manifest.session;
        now.since(self.began(), boot_id, *boot_clock_ns)
    }

    /// Notes that users were asked to save the session, unless that is known.
    pub fn announce(&self) {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        if let Ok(mut file) = options.open(self.directory.join(ANNOUNCED_FILE)) {
            // If this fails, the file's own time says when.
            let _ = file.write_all(format!("{} {}", ticks::boot_id(), ticks::since_boot_ns()).as_bytes());
        }
    }

    /// How long ago users were asked to save it; none if they were not.
    pub(super) fn announced(&self, now: &Now) -> Option<Duration> {
        let file = files::open(&self.directory.join(ANNOUNCED_FILE)).ok()?;
        let modified = file.metadata().and_then(|found| found.modified()).ok()?;
        let mut text = String::new();
        let _ = file.take(MAX_ANNOUNCED_BYTES).read_to_string(&mut text);
        let (boot_id, at) = text.split_once(' ').unwrap_or_default();
        Some(now.since(modified, boot_id, at.parse().unwrap_or(0)))
    }

    /// Whether a program has recorded itself, and ended without an event: its user need not hear of that.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let session = &self.manifest.session;
        let is_blank = |buffer: &Buffer| {
            let layout = Layout::new(buffer.provider.bytes, session.mode().unwrap_or(BufferMode::Oneshot));
            let vmo = Vmo::open(&self.directory.join(buffer.provider.file_name())).ok();
            let (Ok(layout), Some(vmo)) = (layout, vmo) else { return false };
            if !is_of_layout(&vmo, &layout) {
                return false;
            }
            // A thread that has begun a scope has the first slot.
            let mut owner = [0; 8];
            if vmo.read_at(layout.total_bytes + scopes::HEADER_BYTES, &mut owner).is_err() || owner != [0; 8]
            {
                return false;
            }
            // Most have events, which begin in the first slabs.
            let mut first = [0; 64];
            if vmo.read_at(layout.slab_words, &mut first).is_err() || first != [0; 64] {
                return false;
            }
            let beginning = usize::try_from(layout.tallies).ok().and_then(|bytes| vmo.to_bytes(bytes).ok());
            beginning.is_some_and(|beginning| layout.is_blank(&beginning)) && !vmo.is_live().unwrap_or(true)
        };
        session.is_startup
            && session.is_marked
            // Without one, the manifest is damaged.
            && !self.manifest.buffers.is_empty()
            && self.manifest.buffers.values().all(is_blank)
            && !self.has_manager()
    }

    /// Buffers with data that is in no archive.
    pub fn unsaved(&self) -> impl Iterator<Item = &Buffer> {
        let is_left = |buffer: &&Buffer| {
            let found = self.buffer(buffer).and_then(|file| file.metadata());
            found.is_ok_and(|found| !self.is_taken_over((found.dev(), found.ino())))
        };
        let started = self.manifest.buffers.values().filter(|buffer| buffer.is_started);
        started.filter(|buffer| !buffer.is_archived).filter(is_left)
    }

    /// Whether the buffer of a program that recorded itself is part of another session, whose manager was
    /// killed before it could delete the file here.
    fn is_taken_over(&self, identity: (u64, u64)) -> bool {
        self.manifest.session.is_startup
            && self.beside().taken_over.get(&identity).is_some_and(|by| *by != self.directory)
    }

    fn buffer(&self, buffer: &Buffer) -> io::Result<File> {
        files::open(&self.directory.join(buffer.provider.file_name()))
    }

    /// The files with recorded data: the client's file, if it still exists, and the buffers.
    #[must_use]
    pub fn pieces(&self) -> Vec<Piece> {
        self.client_piece().into_iter().chain(self.buffer_pieces()).collect()
    }

    fn client_piece(&self) -> Option<Piece> {
        let output = self.manifest.output.as_ref()?;
        let bytes = join::open_output(output).ok()?.metadata().ok()?.len();
        Some(Piece { path: PathBuf::from(&output.path), bytes, provider: None })
    }

    pub(super) fn buffer_pieces(&self) -> impl Iterator<Item = Piece> {
        let buffers = self.manifest.buffers.values().filter(|buffer| buffer.is_started);
        buffers.filter_map(|buffer| {
            let bytes = self.buffer(buffer).and_then(|file| file.metadata()).ok()?.blocks() * BLOCK_BYTES;
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
    /// taken. A program waits neither for a program that records itself, nor for a manager in another
    /// directory.
    pub(super) fn notes(&self) -> Vec<Note> {
        let SessionInfo { runtime, programs, is_startup, .. } = &self.manifest.session;
        let Some(directory) = self.directory.parent().filter(|_| !is_startup) else {
            return Vec::new();
        };
        let mut notes = gave_up::notes(runtime.as_deref().map_or(directory, Path::new), self.began());
        notes.retain(|note| programs.is_empty() || programs.contains(&note.name));
        if notes.is_empty() {
            return notes;
        }
        let others = self.beside().begins.iter().filter(|(directory, _, _)| *directory != self.directory);
        let begins: Vec<SystemTime> =
            others.filter(|(_, _, other)| other == runtime).map(|(_, begin, _)| *begin).collect();
        notes.retain(|note| !begins.iter().any(|begin| (self.began()..=note.at).contains(begin)));
        notes
    }

    /// The programs that have left these notes. A program with a buffer has joined late.
    //= docs/protocol.md#programs-of-which-something-is-missing
    pub(super) fn gave_up(&self) -> Vec<Missing> {
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
    pub(super) fn live(&self) -> Option<&Buffer> {
        self.manifest.buffers.values().find(|buffer| {
            Vmo::open(&self.directory.join(buffer.provider.file_name()))
                .is_ok_and(|vmo| vmo.is_live().unwrap_or(true))
        })
    }
}
