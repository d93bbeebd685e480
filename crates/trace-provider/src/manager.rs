//! Finds a manager and registers with it.

use crate::dispatcher::Progress;
use std::path::{Path, PathBuf};
use trace_protocol::registry::{
    RECORDING_OF_ALL, Registration, RegistryRequest, RegistryResponse, RegistryStatus, recording_of,
};
use trace_protocol::{Message, Txid, VersionRange};
use zx_sim::environment::variable;
use zx_sim::{Channel, Error, Handle, RuntimeDir};

/// Names the directory of the manager to register with.
const RUNTIME_VARIABLE: &str = "TRACE_RUNTIME_DIR";
/// Last part of the runtime directories' names.
const RUNTIME_NAME: &str = "trace";
/// The manager's socket for providers.
const REGISTRY: &str = "registry";
/// The manager's line to this provider.
pub(crate) struct Line {
    pub channel: Channel,
    /// Where the manager answers a synchronous registration.
    pub answer: Option<Channel>,
}

/// Where a manager may be.
pub(crate) fn directories() -> Vec<PathBuf> {
    RuntimeDir::candidates(RUNTIME_VARIABLE, RUNTIME_NAME)
}

/// Whether a manager in one of the directories has announced that this user's programs are being recorded. A
/// manager that was killed may have left its announcement.
pub(crate) fn is_recording() -> bool {
    directories().iter().any(|directory| is_announced(directory))
}

/// Whether the manager of a directory has announced that this user's programs are being recorded.
//= docs/protocol.md#a-recording-is-announced
fn is_announced(directory: &Path) -> bool {
    let own = recording_of(rustix::process::geteuid().as_raw());
    let is_there = |name: &str| directory.join(name).symlink_metadata().is_ok();
    is_there(RECORDING_OF_ALL) || is_there(&own)
}

/// What became of a registration.
pub(crate) enum Found {
    /// It is on its way.
    Manager(Line),
    /// A manager listens, and has others to take in first.
    Busy,
    /// Nobody listens.
    Nobody,
}

/// Registers with the first manager that listens, and does not wait for its answer. There is one if that is
/// wanted, and where the manager has announced a recording.
pub(crate) fn register(directories: &[PathBuf], name: &str, synchronously: bool) -> Found {
    for directory in directories {
        let registry = match Channel::connect(&directory.join(REGISTRY)) {
            Err(Error::ShouldWait) => return Found::Busy,
            registry => registry.ok().filter(may_be_trusted),
        };
        let register = |registry| {
            // Looked at once a manager has been found: one that ends takes the announcement with it.
            register_with(registry, name, synchronously || is_announced(directory))
        };
        if let Some(line) = registry.and_then(register) {
            return Found::Manager(line);
        }
    }
    Found::Nobody
}

/// Set by `sudo` to the user who called it.
const SUDO_VARIABLE: &str = "SUDO_UID";

/// What this program records is for its own user, and for root; what root's program records that a user has
/// started with `sudo`, for that user.
//= docs/protocol.md#users
fn may_be_trusted(registry: &Channel) -> bool {
    let own = rustix::process::geteuid();
    let called_by = || variable(SUDO_VARIABLE)?.to_str()?.parse::<u32>().ok();
    registry.peer().is_ok_and(|manager| {
        manager.uid == own.as_raw() || manager.uid == 0 || (own.is_root() && called_by() == Some(manager.uid))
    })
}

fn register_with(registry: Channel, name: &str, synchronously: bool) -> Option<Line> {
    let (ours, theirs) = Channel::pair().ok()?;
    let registration = Registration {
        provider: theirs.into_handle(),
        pid: zx_sim::process_koid(),
        name: name.to_owned(),
        protocol: VersionRange::PROTOCOL,
        buffer_header: VersionRange::only(trace_engine::BUFFER_VERSION),
        tick_source: zx_sim::ticks::source_name().to_owned(),
        dumps_memory: true,
    };
    let (request, txid) = if synchronously {
        (RegistryRequest::RegisterProviderSynchronously(registration), Txid(1))
    } else {
        (RegistryRequest::RegisterProvider(registration), Txid::ONE_WAY)
    };
    let message = request.encode(txid).ok()?;
    registry.write(&message.bytes, message.handles).ok()?;
    Some(Line { channel: ours, answer: synchronously.then_some(registry) })
}

/// What a manager answers to a synchronous registration. None where it refuses, which it says with its reason
/// on the provider's own channel, or where it does not make sense.
pub(crate) fn read_answer(registry: &Channel) -> Option<Progress> {
    let message = registry.read().ok()?;
    let (_, response) =
        <RegistryResponse as Message<Handle>>::decode(&message.bytes, message.handles).ok()?;
    let is_registered = response.status == RegistryStatus::Ok;
    is_registered.then_some(Progress::Registered { already_started: response.started })
}
