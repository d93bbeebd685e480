use super::session::session_directories;
use super::*;
use crate::framing;
use crate::manifest::{BufferInfo, OutputFile, PartInfo, SessionInfo};
use crate::missing::Missing;
use crate::program_info::{self, ProviderEnd};
use crate::testing::{DEFINITIONS, Image, RATE, bytes, event};
use crate::transfer::{Part, Progress, ProviderBuffer, SoFar, Transfer};
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, UNIX_EPOCH};
use trace_format::buffer::{BufferMode, Layout, field};
use trace_format::loss::LedgerRecord;
use trace_format::units::{Koid, ProviderId, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::ProviderDisposition;
use zx_sim::Vmo;

/// No process has this number.
const NO_PID: u64 = 4_000_000_000;

fn begin(runtime: &Path, name: &str, is_startup: bool) -> (PathBuf, Writer) {
    let mut info = SessionInfo::new(BufferMode::Oneshot, 1, 1, Vec::new());
    info.is_startup = is_startup;
    begin_with(runtime, name, info)
}

fn begin_with(runtime: &Path, name: &str, info: SessionInfo) -> (PathBuf, Writer) {
    let directory = runtime.join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    let mut writer = Writer::open(&directory).unwrap();
    writer.append(&Entry::Session(info)).unwrap();
    (directory, writer)
}

fn provider(id: u32, origin: Option<(u64, u64)>) -> Entry {
    Entry::Provider(BufferInfo { id, origin, ..app() })
}

/// Program 1.
fn app() -> BufferInfo {
    let (name, bytes) = ("app".to_owned(), 64 << 10);
    let (parent, command_line, registered, origin, mode) = (None, None, None, None, None);
    BufferInfo { id: 1, name, pid: NO_PID, bytes, parent, command_line, registered, origin, mode }
}

/// Program 1, which was refused.
fn missing() -> Missing {
    let BufferInfo { id, name, pid, .. } = app();
    let (disposition, problem) = ("refused".to_owned(), String::new());
    Missing { id, name, pid, reason: None, at: 0, disposition, problem }
}

const STARTED: Entry = Entry::Started { provider: 1, retains: false };

/// A session of one program.
struct One {
    runtime: tempfile::TempDir,
    directory: PathBuf,
    writer: Writer,
}

impl One {
    /// A session whose program left this buffer. Its manifest has these entries behind the session's line.
    fn new(buffer: &[u8], entries: &[Entry]) -> Self {
        Self::with(SessionInfo::new(BufferMode::Oneshot, RATE, 1, Vec::new()), buffer, entries)
    }

    fn with(info: SessionInfo, buffer: &[u8], entries: &[Entry]) -> Self {
        let runtime = tempfile::tempdir().unwrap();
        let (directory, writer) = begin_with(runtime.path(), "session-1", info);
        std::fs::write(directory.join("provider-1"), buffer).unwrap();
        let mut one = Self { runtime, directory, writer };
        entries.iter().for_each(|entry| one.note(entry));
        one
    }

    fn note(&mut self, entry: &Entry) {
        self.writer.append(entry).unwrap();
    }

    /// The client has written this.
    fn note_output(&mut self, contents: &[u8]) -> PathBuf {
        let path = self.runtime.path().join("trace.fxt");
        std::fs::write(&path, contents).unwrap();
        let found = std::fs::metadata(&path).unwrap();
        let (device, inode, uid) = (found.dev(), found.ino(), found.uid());
        self.note(&Entry::Output(OutputFile { path: path.display().to_string(), device, inode, uid }));
        path
    }

    fn buffer(&self) -> PathBuf {
        self.directory.join("provider-1")
    }

    fn session(&self) -> Session {
        Session::read(&self.directory).unwrap()
    }

    fn leftover(&self) -> Leftover {
        Leftover::open(&self.directory).unwrap()
    }

    /// The archive, the state of the client's file, and the program's result.
    fn recover(&self) -> (Vec<u8>, ClientFile, Recovered) {
        let (mut out, mut all) = (Vec::new(), Vec::new());
        let client = self.leftover().recover(&mut out, |recovered| all.push(recovered.clone())).unwrap();
        assert_eq!(all.len(), 1);
        (out, client, all.remove(0))
    }
}

fn started() -> [Entry; 2] {
    [provider(1, None), STARTED]
}

/// The manager was killed after it had made the buffer part of its session, and before it could delete
/// the program's own file.
//= docs/protocol.md#what-was-recorded-before
#[test]
fn a_buffer_that_a_session_has_taken_over_is_recovered_once() {
    let runtime = tempfile::tempdir().unwrap();
    let (own, mut writer) = begin(runtime.path(), "session-1", true);
    std::fs::write(own.join("provider-1"), [0; 4096]).unwrap();
    let file = std::fs::metadata(own.join("provider-1")).unwrap();
    writer.append(&provider(1, None)).unwrap();
    writer.append(&Entry::Started { provider: 1, retains: false }).unwrap();
    writer.append(&Entry::Ended).unwrap();
    let is_waiting = || Session::read(&own).unwrap().is_waiting();
    assert!(is_waiting());
    let (_, mut writer) = begin(runtime.path(), "session-2", false);
    writer.append(&provider(3, Some((file.dev(), file.ino() + 1)))).unwrap();
    writer.append(&Entry::Started { provider: 3, retains: false }).unwrap();
    writer.append(&provider(4, Some((file.dev(), file.ino())))).unwrap();
    assert!(is_waiting(), "it is not part of the session yet");
    writer.append(&Entry::Started { provider: 4, retains: false }).unwrap();
    assert!(!is_waiting());
    // When the session is recovered, it is gone, too.
    Leftover::open(&runtime.path().join("session-2")).unwrap().delete().unwrap();
    assert!(!own.exists() && std::fs::read_dir(runtime.path()).unwrap().next().is_none());
}

mod join;

#[test]
fn sessions_are_directories_with_their_prefix() {
    let runtime = tempfile::tempdir().unwrap();
    let of = |name: &str| session_directories(&runtime.path().join(name));
    assert_eq!(of("none").unwrap(), Vec::<PathBuf>::new());
    std::fs::write(runtime.path().join("session-file"), "").unwrap();
    std::fs::create_dir(runtime.path().join("other")).unwrap();
    let (directory, _) = begin(runtime.path(), "session-1", false);
    assert_eq!(of("").unwrap(), [directory]);
    assert!(of("session-file").is_err());
}

#[test]
fn a_buffer_that_was_taken_over_is_deleted_if_it_is_still_that_file() {
    let one = One::new(&[0; 4096], &started());
    let identity = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).unwrap();
    let delete = |path: &Path, (device, inode)| delete_startup_buffer(path, (device, inode));
    let (device, inode) = identity(&one.buffer());
    let refused = delete(&one.buffer(), (device, inode + 1)).unwrap_err();
    assert_eq!(refused.to_string(), "it is another file");
    let other = one.directory.join("other");
    std::fs::write(&other, "").unwrap();
    delete(&one.buffer(), (device, inode)).unwrap();
    assert!(!one.buffer().exists() && other.exists() && one.directory.join(MANIFEST_FILE).exists());
    // With the last buffer, the directory goes.
    delete(&other, identity(&other)).unwrap();
    assert!(!one.directory.exists());
    let outside = one.runtime.path().join("provider-1");
    std::fs::write(&outside, "").unwrap();
    assert!(delete(&outside, identity(&outside)).is_err() && outside.exists());
}

#[test]
fn a_manager_is_alive_if_its_process_is_and_holds_the_lock() {
    let has_manager = |pid: u32, holder: u32, entries: &[Entry]| {
        let mut info = SessionInfo::new(BufferMode::Oneshot, RATE, 1, Vec::new());
        info.manager_pid = pid;
        let one = One::with(info, &[0; 4096], &started());
        let mut writer = Writer::open(&one.directory).unwrap();
        entries.iter().for_each(|entry| writer.append(entry).unwrap());
        std::fs::write(one.directory.join(LOCK_FILE), holder.to_string()).unwrap();
        let session = one.session();
        assert_eq!(session.is_recoverable(), !session.has_manager());
        session.has_manager()
    };
    let own = std::process::id();
    let dead = NO_PID as u32;
    assert!(has_manager(own, own, &[]));
    assert!(!has_manager(own, dead, &[]) && !has_manager(dead, dead, &[]));
    assert!(!has_manager(own, own, &[Entry::Ended]));
    assert_eq!(One::new(&[], &[]).session().began(), UNIX_EPOCH + Duration::from_nanos(1));
}

/// Where no mark can be kept, a process is known by its number and its start.
//= docs/recovery.md#a-sessions-directory
#[test]
fn a_number_that_is_used_again_holds_nothing() {
    let own = std::process::id();
    let started_ns = zx_sim::process::start_time(own.into()).unwrap() * 10_000_000;
    let boot = zx_sim::ticks::boot_id();
    let namespace = zx_sim::pid_namespace::own_number();
    let in_namespace = |namespace, is_startup, boot_id: &str, boot_clock_ns| {
        let mut info = SessionInfo::new(BufferMode::Oneshot, RATE, 1, Vec::new());
        (info.is_startup, info.manager_pid, info.pid_namespace) = (is_startup, own, namespace);
        (info.boot_id, info.boot_clock_ns) = (boot_id.to_owned(), boot_clock_ns);
        let one = One::with(info, &[0; 4096], &started());
        std::fs::write(one.directory.join(LOCK_FILE), own.to_string()).unwrap();
        one.session().has_manager()
    };
    let has_manager = |is_startup, boot_id: &str, at| in_namespace(namespace, is_startup, boot_id, at);
    assert!(has_manager(true, &boot, started_ns) && has_manager(true, &boot, u64::MAX));
    assert!(in_namespace(0, true, &boot, u64::MAX) && !in_namespace(namespace + 1, true, &boot, u64::MAX));
    assert!(!has_manager(true, &boot, started_ns - 1));
    assert!(!has_manager(true, "another boot", u64::MAX));
    // An earlier release did not write it; and a manager has a lock.
    assert!(
        has_manager(true, "", 0) && has_manager(false, &boot, 0) && has_manager(false, "another boot", 0)
    );
}

/// Numbers of processes say nothing where the lock is marked: another pid namespace has the same ones.
//= docs/recovery.md#a-sessions-directory
#[test]
fn a_session_is_held_as_long_as_its_lock_is_marked() {
    let mut info = SessionInfo::new(BufferMode::Oneshot, RATE, 1, Vec::new());
    (info.is_marked, info.is_startup, info.manager_pid) = (true, true, NO_PID as u32);
    let one = One::with(info, &[0; 4096], &started());
    let own = RuntimeDir::open_or_create(&one.directory).unwrap();
    let mark = own.hold(LOCK_FILE).unwrap().unwrap();
    let session = one.session();
    // Not on overlays.
    assert_eq!(session.has_manager(), mark.is_lasting());
    if !mark.is_lasting() {
        return;
    }
    assert!(session.has_manager() && !session.is_recoverable() && session.is_certainly_over());
    assert!(matches!(Leftover::open(&one.directory), Err(Error::InUse { .. })));
    drop(mark);
    std::fs::write(one.directory.join(LOCK_FILE), std::process::id().to_string()).unwrap();
    assert!(!session.has_manager() && session.is_recoverable());
    let is_certain = |is_marked, is_startup, is_ended| {
        let mut session = one.session();
        (session.manifest.session.is_marked, session.manifest.session.is_startup) = (is_marked, is_startup);
        session.manifest.is_ended = is_ended;
        session.is_certainly_over()
    };
    // A manager's session has its lock, and what has ended says so itself.
    assert!(!is_certain(false, true, false));
    assert!(
        is_certain(true, true, false) && is_certain(false, false, false) && is_certain(false, true, true)
    );
    let is_elsewhere = |pid_namespace| {
        let mut session = one.session();
        session.manifest.session.pid_namespace = pid_namespace;
        session.is_elsewhere()
    };
    let own = zx_sim::pid_namespace::own_number();
    assert!(!is_elsewhere(own) && !is_elsewhere(0) && is_elsewhere(own + 1));
}

/// Each manifest is read once, however many sessions there are: what they say of each other is known then.
#[test]
fn what_is_beside_a_session_is_not_read_again() {
    let runtime = tempfile::tempdir().unwrap();
    let directories: Vec<PathBuf> = (0..3)
        .map(|number| {
            let (directory, mut writer) = begin(runtime.path(), &format!("session-{number}"), number < 2);
            let buffer = directory.join("provider-1");
            std::fs::write(&buffer, [0; 4096]).unwrap();
            let file = std::fs::metadata(runtime.path().join("session-0/provider-1")).unwrap();
            let origin = (number == 2).then(|| (file.dev(), file.ino()));
            writer.append(&provider(1, origin)).unwrap();
            writer.append(&STARTED).unwrap();
            writer.append(&Entry::Ended).unwrap();
            directory
        })
        .collect();
    let all = sessions(runtime.path());
    directories.iter().for_each(|directory| std::fs::remove_file(directory.join(MANIFEST_FILE)).unwrap());
    let found = |directory: &PathBuf| {
        let session = all.iter().find(|session| session.directory == *directory).unwrap();
        session.is_recoverable()
    };
    assert_eq!(directories.iter().map(found).collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn a_program_without_an_event_leaves_nothing() {
    let blank = |buffer: &[u8], is_startup: bool| {
        let mut info = SessionInfo::new(BufferMode::Oneshot, RATE, 1, Vec::new());
        (info.is_marked, info.is_startup) = (true, is_startup);
        let one = One::with(info, buffer, &started());
        let is_blank = delete_blank(&one.session());
        assert_eq!(one.directory.exists(), !is_blank);
        is_blank
    };
    let nothing = Image::sized(64 << 10, BufferMode::Oneshot).bytes;
    assert!(blank(&nothing, true));
    // A manifest that is damaged: without its provider, or with another layout than the buffer's.
    let circular = Image::sized(64 << 10, BufferMode::Circular).bytes;
    let longer = [&nothing[..], &[0; 4096]].concat();
    assert!(!blank(&circular, true) && !blank(&longer, true) && blank(&[0; 64 << 10], true));
    let mut info = SessionInfo::new(BufferMode::Oneshot, RATE, 1, Vec::new());
    (info.is_marked, info.is_startup) = (true, true);
    let one = One::with(info, &nothing, &[]);
    assert!(!delete_blank(&one.session()) && one.buffer().exists());
    let found = |one: &One, at: &Path| unreadable(at, &sessions(one.runtime.path()));
    let directory = [one.directory.clone()];
    assert_eq!([found(&one, one.runtime.path()), found(&one, &one.directory)], [&directory, &directory]);
    std::fs::write(one.directory.join(MANIFEST_FILE), "{").unwrap();
    assert_eq!(found(&one, one.runtime.path()), directory);
    std::fs::remove_file(one.buffer()).unwrap();
    assert_eq!(found(&one, one.runtime.path()), Vec::<PathBuf>::new());
    // Whole ones; and of one that a manager had, a buffer may have been made and not yet noted, or be empty.
    let session = |is_startup, buffer: &[u8], entries: &[Entry]| {
        let mut info = SessionInfo::new(BufferMode::Oneshot, RATE, 1, Vec::new());
        info.is_startup = is_startup;
        let one = One::with(info, buffer, entries);
        found(&one, one.runtime.path()).len()
    };
    assert_eq!((session(true, &nothing, &started()), session(false, &nothing, &started())), (0, 0));
    assert_eq!((session(false, &nothing, &[]), session(true, &nothing, &[])), (0, 1));
    assert_eq!(session(true, &[], &[]), 0);
    let layout = Layout::new(64 << 10, BufferMode::Oneshot).unwrap();
    for (at, is_counted) in [
        (layout.slab_words, true),
        (layout.tallies - 8, true),
        (layout.ledger, true),
        (layout.tallies, false),
        (8 * field::RECORDS_DROPPED as u64, true),
        (8 * field::DURABLE_DATA_END as u64, false),
    ] {
        let mut buffer = nothing.clone();
        buffer[at as usize] = 1;
        assert_eq!(blank(&buffer, true), !is_counted, "{at}");
    }
}

//= docs/recovery.md#what-is-recovered
#[test]
fn data_that_is_in_no_archive_or_in_the_clients_file_is_recoverable() {
    let is_recoverable = |one: &One| {
        let session = one.session();
        assert_eq!(session.is_waiting(), session.is_recoverable());
        session.is_recoverable()
    };
    assert!(is_recoverable(&One::new(&[0; 4096], &started())));
    assert!(!is_recoverable(&One::new(&[0; 4096], &[provider(1, None)])));
    let mut one = One::new(&[0; 4096], &started());
    one.note(&Entry::Archived { provider: 1 });
    assert!(!is_recoverable(&one));
    let output = one.note_output(b"");
    assert!(!is_recoverable(&one), "none of it is in the file");
    one.note(&Entry::Part { provider: 1, part: PartInfo { half: None, begin: 8, left: Vec::new() } });
    assert!(is_recoverable(&one));
    std::fs::rename(&output, one.runtime.path().join("elsewhere")).unwrap();
    assert!(!is_recoverable(&one));
    std::fs::write(&output, b"").unwrap();
    assert!(!is_recoverable(&one), "it is another file");
    assert!(is_recoverable(&One::new(&[], &[Entry::Missing(missing())])));
}

#[test]
fn a_session_that_was_recovered_is_not_waiting() {
    let one = One::new(&[0; 4096], &[&started()[..], &[Entry::Ended]].concat());
    one.leftover().note_recovered(Path::new("a.fxt")).unwrap();
    let session = one.session();
    assert_eq!(session.manifest.recovered, ["a.fxt"]);
    assert!(session.is_recoverable() && !session.is_waiting());
}

#[test]
fn a_session_has_the_pieces_of_its_client_and_of_programs_that_were_started() {
    let mut one = One::new(&[1; 8192], &[provider(1, None)]);
    assert_eq!(one.session().pieces(), []);
    one.note(&STARTED);
    let path = one.note_output(b"four");
    let client = Piece { path, bytes: 4, provider: None };
    let bytes = std::fs::metadata(one.buffer()).unwrap().blocks() * 512;
    assert!(bytes >= 8192);
    assert_eq!(one.session().pieces(), [client, Piece { path: one.buffer(), bytes, provider: Some(1) }]);
}

#[test]
fn a_session_whose_program_lives_stays_and_is_one_processs_at_a_time() {
    let one = One::new(&[], &started());
    std::fs::remove_file(one.buffer()).unwrap();
    let live = Vmo::create_in(&one.directory, "provider-1", 4096).unwrap().marked().unwrap();
    let leftover = one.leftover();
    assert_eq!(leftover.live_program(), Some(("app", NO_PID)));
    assert!(matches!(Leftover::open(&one.directory), Err(Error::InUse { .. })));
    assert!(matches!(leftover.delete(), Err(Error::StillLive { pid: NO_PID, .. })) && one.buffer().exists());
    drop(live);
    let leftover = one.leftover();
    assert_eq!(leftover.live_program(), None);
    assert_eq!(leftover.session().directory, one.directory);
    leftover.delete().unwrap();
    assert!(!one.directory.exists());
}

#[test]
fn the_clients_file_is_deleted_unless_it_was_replaced() {
    let mut one = One::new(&[], &started());
    assert_eq!(one.leftover().delete_client_file().unwrap(), None);
    let path = one.note_output(b"four");
    let kept = one.runtime.path().join("kept");
    std::fs::rename(&path, &kept).unwrap();
    std::fs::write(&path, b"other").unwrap();
    assert_eq!(one.leftover().delete_client_file().unwrap(), None);
    std::fs::rename(&kept, &path).unwrap();
    assert_eq!(one.leftover().delete_client_file().unwrap(), Some(path.clone()));
    assert!(!path.exists());
}
