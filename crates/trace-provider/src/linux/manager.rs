//! Finds a manager and registers with it.

use crate::linux::dispatcher::Progress;
use rustix::fs::{CWD, Mode, OFlags};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use trace_engine::engine;
use trace_format::shown::Shown;
use trace_protocol::limits::{MAX_PROVIDER_COMMAND_LINE_BYTES, cut};
use trace_protocol::names::{MANAGER_FD_VARIABLE, REGISTRY, RUNTIME_NAME, RUNTIME_VARIABLE};
use trace_protocol::registry::{
    GAVE_UP_PREFIX, RECORDING_OF_ALL, Registration, RegistryRequest, RegistryResponse, RegistryStatus,
    recording_of,
};
use trace_protocol::{Message, Txid, VersionRange};
use zx_sim::environment::variable;
use zx_sim::guest::Quiet;
use zx_sim::runtime_dir::open_private;
use zx_sim::{Channel, Error, Handle, RuntimeDir, debuglog, ticks};

/// The manager's line to this provider.
pub(crate) struct Line {
    pub channel: Channel,
    /// Where the manager answers a synchronous registration.
    pub answer: Option<Channel>,
}

/// The connection with the manager that this program has inherited, if there is one that works.
//= docs/protocol.md#shared-connections
pub(crate) fn inherited() -> Option<Channel> {
    let text = variable(MANAGER_FD_VARIABLE).filter(|value| !value.is_empty())?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    let channel = number.and_then(|number| Channel::inherited(number).ok()).filter(may_be_trusted);
    if channel.is_none() {
        let text = text.to_string_lossy();
        let text =
            format!("{MANAGER_FD_VARIABLE} is \"{text}\", which is no connection with a trace manager");
        debuglog::write_for_process(&format!("trace: {}", Shown(&text)));
    }
    channel
}

/// Where a manager may be.
pub(crate) fn directories() -> Vec<PathBuf> {
    RuntimeDir::candidates(RUNTIME_VARIABLE, RUNTIME_NAME)
}

/// Where a manager may be, for a program that is about to watch these directories. The program makes the
/// usual one, as all processes do: otherwise it would have to watch all of `/dev/shm`.
//= docs/protocol.md#where-processes-meet
pub(crate) fn places() -> Vec<PathBuf> {
    let directories = directories();
    if let [usual, _, ..] = &directories[..] {
        let _ = RuntimeDir::open_or_create(usual);
    }
    directories
}

/// Whether a manager in one of the directories has announced that this user's programs are being recorded. A
/// manager that was killed may have left its announcement.
pub(crate) fn is_recording() -> bool {
    directories().iter().any(|directory| is_announced(directory))
}

/// Whether every manager that has announced a recording is stopped, as by a debugger: then it gives no sign.
pub(crate) fn is_stopped() -> bool {
    let mut is_any = false;
    for file in directories().iter().flat_map(|directory| announcements(directory)) {
        if !is_announcer_stopped(&file).unwrap_or(false) {
            return false;
        }
        is_any = true;
    }
    is_any
}

/// Whether the process that has made an announcement is stopped. None where that cannot be found out.
fn is_announcer_stopped(file: &Path) -> Option<bool> {
    // In a directory that is another user's, anything may have its name.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(file, flags, Mode::empty()).ok()?);
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    let manager: u32 = text.trim().parse().ok()?;
    zx_sim::process::is_stopped(manager.into())
}

/// Whether the manager of a directory has announced that this user's programs are being recorded.
fn is_announced(directory: &Path) -> bool {
    announcements(directory).next().is_some()
}

/// The files in a directory that announce a recording of this user's programs.
//= docs/protocol.md#a-recording-is-announced
fn announcements(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let own = recording_of(rustix::process::geteuid().as_raw());
    let paths = [RECORDING_OF_ALL, &own].map(|name| directory.join(name));
    paths.into_iter().filter(|path| path.symlink_metadata().is_ok())
}

/// Leaves a note that this program has waited in vain, for a manager that does not know of it yet. Where none
/// can be made, as in a directory of root's, only the program's own message says so.
//= docs/protocol.md#programs-of-which-something-is-missing
pub(crate) fn leave_note(name: &str) {
    let note = format!("{GAVE_UP_PREFIX}{}", std::process::id());
    // An existing note is of an earlier process with this pid.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let _quiet = Quiet::new();
    for directory in directories().iter().filter(|directory| is_announced(directory)) {
        if let Ok(file) = open_private(CWD, &directory.join(&note), flags) {
            let _ = rustix::io::write(&file, name.as_bytes());
            return;
        }
    }
}

/// The result of a registration.
pub(crate) enum Found {
    /// It was sent.
    Manager(Line),
    /// A manager listens, but its queue of connections is full.
    Busy,
    /// No manager listens.
    NoManager,
}

/// Registers with the first manager that listens, and does not wait for its answer. There is one if that is
/// wanted, and where the manager has announced a recording.
pub(crate) fn register(directories: &[PathBuf], name: &str, is_answer_wanted: bool) -> Found {
    for directory in directories {
        let registry = match Channel::connect(&directory.join(REGISTRY)) {
            Err(Error::ShouldWait) => return Found::Busy,
            registry => registry.ok().filter(may_be_trusted),
        };
        let register = |registry| {
            // Checked after a manager was found: a manager that ends removes its announcement.
            register_with(registry, name, is_answer_wanted || is_announced(directory))
        };
        if let Some(line) = registry.and_then(register) {
            return Found::Manager(line);
        }
    }
    Found::NoManager
}

/// Registers with the manager at the other end of a connection that other processes use, too. There is always
/// an answer, which comes through a channel of its own: what is announced in a directory cannot be seen.
//= docs/protocol.md#shared-connections
pub(crate) fn register_through(registry: &Channel, name: &str) -> Found {
    let register = || {
        let (ours, theirs) = Channel::pair().ok()?;
        let (answer, their_answer) = Channel::pair().ok()?;
        let registration = registration(theirs.into_handle(), name);
        let request = RegistryRequest::RegisterProviderThrough(registration, their_answer.into_handle());
        let message = request.encode(Txid(1)).ok()?;
        Some((registry.write(&message.bytes, message.handles), Line { channel: ours, answer: Some(answer) }))
    };
    /// A program that goes on when its recording is over, and the connection with it, has nothing to report.
    static IS_EXPECTED: AtomicBool = AtomicBool::new(false);
    match register() {
        Some((Ok(()), line)) => {
            IS_EXPECTED.store(true, Ordering::Relaxed);
            Found::Manager(line)
        }
        Some((Err(Error::ShouldWait), _)) => Found::Busy,
        Some((Err(_), _)) => {
            if !IS_EXPECTED.swap(true, Ordering::Relaxed) {
                let text = "trace: the connection of TRACE_MANAGER_FD has ended: it is not recorded";
                debuglog::write_for_process(text);
            }
            Found::NoManager
        }
        None => Found::NoManager,
    }
}

/// Set by `sudo` to the user that called it.
const SUDO_VARIABLE: &str = "SUDO_UID";

/// Whether the user that has called `sudo` may record this process.
static IS_FOR_CALLER: AtomicBool = AtomicBool::new(false);

/// Lets the manager of the user who has called `sudo` record this process, which is root's. The user can cut
/// the memory that it maps then, which ends it: only for a program that does nothing but provide events.
//= docs/protocol.md#users
pub fn serve_caller_of_sudo() {
    IS_FOR_CALLER.store(true, Ordering::Relaxed);
}

/// What this program records is for its own user, and for root.
//= docs/protocol.md#users
fn may_be_trusted(registry: &Channel) -> bool {
    let own = rustix::process::geteuid();
    let called_by = || variable(SUDO_VARIABLE)?.to_str()?.parse::<u32>().ok();
    let is_callers =
        |user: u32| own.is_root() && IS_FOR_CALLER.load(Ordering::Relaxed) && called_by() == Some(user);
    // A process of root's may act as another user for a while.
    let is_own = |user: u32| user == own.as_raw() && (own.is_root() || !rustix::process::getuid().is_root());
    let is_trusted = |user: u32| is_own(user) || user == 0 || is_callers(user);
    registry.peer().is_ok_and(|manager| is_trusted(manager.uid))
}

fn register_with(registry: Channel, name: &str, is_answer_wanted: bool) -> Option<Line> {
    let (ours, theirs) = Channel::pair().ok()?;
    let registration = registration(theirs.into_handle(), name);
    let (request, txid) = if is_answer_wanted {
        (RegistryRequest::RegisterProviderSynchronously(registration), Txid(1))
    } else {
        (RegistryRequest::RegisterProvider(registration), Txid::ONE_WAY)
    };
    let message = request.encode(txid).ok()?;
    registry.write(&message.bytes, message.handles).ok()?;
    Some(Line { channel: ours, answer: is_answer_wanted.then_some(registry) })
}

/// What this program says of itself.
fn registration(provider: Handle, name: &str) -> Registration<Handle> {
    Registration {
        provider,
        pid: zx_sim::process_koid(),
        name: name.to_owned(),
        protocol: VersionRange::PROTOCOL,
        buffer_header: VersionRange::only(trace_engine::BUFFER_VERSION),
        tick_source: ticks::source_name().to_owned(),
        dumps_memory: true,
        answers_dumps: true,
        parent: zx_sim::guest::children::parent(),
        records_alerts: true,
        numbers_threads: true,
        command_line: command_line(),
        backs_buffer: engine::can_populate(),
        redacts: true,
        has_scopes: true,
    }
}

/// The arguments of this program, if it has any.
//= docs/protocol.md#provider-descriptions
pub(crate) fn command_line() -> Option<String> {
    let mut line = String::new();
    for argument in std::env::args_os() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&argument.to_string_lossy());
        if line.len() > MAX_PROVIDER_COMMAND_LINE_BYTES {
            break;
        }
    }
    let line = cut(&line, MAX_PROVIDER_COMMAND_LINE_BYTES);
    (!line.is_empty()).then(|| line.to_owned())
}

/// What a manager answers to a synchronous registration. None where it refuses, which it reports with its
/// reason on the provider's own channel, or where it does not make sense.
pub(crate) fn read_answer(registry: &Channel) -> Option<Progress> {
    let message = registry.read().ok()?;
    let (_, response) =
        <RegistryResponse as Message<Handle>>::decode(&message.bytes, message.handles).ok()?;
    let is_registered = response.status == RegistryStatus::Ok;
    is_registered.then_some(Progress::Registered { already_started: response.started })
}
