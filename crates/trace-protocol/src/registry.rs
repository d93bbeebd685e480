//! Registry: a provider announces itself to the manager.
//!
//! The connection may be dropped after the call: the registration lives as long as the provider's own
//! channel, whose other end is the message's handle. The messages of this protocol are the same in all
//! versions, so that two peers with no other version in common can still report that.

use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_PROVIDER_COMMAND_LINE_BYTES, MAX_PROVIDER_NAME_BYTES, MAX_TICK_SOURCE_BYTES};
use crate::message::{Encoded, Message, Method, Txid, decode_header_any_version};
use crate::strict_enum::strict_enum;
use crate::table::{Field, Table, TableWriter};
use crate::version::VersionRange;

const REGISTER: Method = Method::one_way("RegisterProvider", 0x0101);
const REGISTER_SYNCHRONOUSLY: Method = Method::two_way("RegisterProviderSynchronously", 0x0102);

const SHARE: Method = Method::two_way("ShareRegistry", 0x0103);
const REGISTER_THROUGH: Method = Method::two_way("RegisterProviderThrough", 0x0104);

const PID: Field = Field::new(1, "pid");
const NAME: Field = Field::new(2, "provider name bytes");
const PROTOCOL: Field = Field::new(3, "protocol versions");
const BUFFER_HEADER: Field = Field::new(4, "buffer header versions");
const TICK_SOURCE: Field = Field::new(5, "tick source bytes");
const DUMPS_MEMORY: Field = Field::new(6, "dumps_memory");
const PARENT: Field = Field::new(7, "parent");
const RECORDS_ALERTS: Field = Field::new(8, "records_alerts");
const NUMBERS_THREADS: Field = Field::new(9, "numbers_threads");
const ANSWERS_DUMPS: Field = Field::new(10, "answers_dumps");
const COMMAND_LINE: Field = Field::new(11, "command line bytes");
const BACKS_BUFFER: Field = Field::new(12, "backs_buffer");
const REDACTS: Field = Field::new(13, "redacts");
const HAS_SCOPES: Field = Field::new(14, "has_scopes");

const STATUS: Field = Field::new(1, "status");
const STARTED: Field = Field::new(2, "started");
const MANAGER_VERSION: Field = Field::new(3, "manager versions");

/// Provider → manager. Handles: the manager's end of the provider channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryRequest<H> {
    /// Registers a provider; there is no answer. A refusal arrives on the provider channel.
    RegisterProvider(Registration<H>),
    /// Registers a provider; answered by [`RegistryResponse`].
    RegisterProviderSynchronously(Registration<H>),
    /// The connection will be used by processes that get it as a descriptor, each for its own provider;
    /// answered by [`RegistryResponse`] when the manager identifies the sender of each further message.
    ShareRegistry,
    /// As [`RegistryRequest::RegisterProviderSynchronously`], on a connection that is shared. Handles: the
    /// manager's end of the provider channel; a channel that the answer is sent through.
    RegisterProviderThrough(Registration<H>, H),
}

/// A provider's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration<H> {
    /// The manager's end of the provider channel.
    pub provider: H,
    /// Process id as the provider knows it; the manager believes the channel's credentials instead.
    pub pid: u64,
    /// At most 100 bytes; several providers may carry the same name.
    pub name: String,
    /// Versions of the protocols it serves.
    pub protocol: VersionRange,
    /// Versions of the buffer header it writes.
    pub buffer_header: VersionRange,
    /// Name of the clock its timestamps come from, at most 32 bytes.
    pub tick_source: String,
    /// It supports [`ProviderRequest::DumpMemory`](crate::provider::ProviderRequest::DumpMemory). Providers
    /// of older releases do not report it.
    pub dumps_memory: bool,
    /// The process that a forked child was forked from, in the provider's pid namespace.
    pub parent: Option<u64>,
    /// It records its alerts itself. For providers of older releases, which do not report it, the manager
    /// does that.
    pub records_alerts: bool,
    /// It supports [`ProviderRequest::UsePidNamespace`](crate::provider::ProviderRequest::UsePidNamespace).
    /// Providers of older releases do not report it.
    pub numbers_threads: bool,
    /// It answers a [`ProviderRequest::DumpMemory`](crate::provider::ProviderRequest::DumpMemory) on request.
    /// Providers of older releases do not report it.
    pub answers_dumps: bool,
    /// Its arguments, from its name on, separated by spaces; at most 2000 bytes, longer ones are cut.
    /// Providers of older releases do not report it.
    pub command_line: Option<String>,
    /// It has the memory of its buffer allocated before it writes there. Providers of older releases, which
    /// do not report it, write into memory that the manager has allocated.
    //= docs/buffer.md#memory
    pub backs_buffer: bool,
    /// It can leave texts out of a private recording. Providers of older releases, which do not report it,
    /// are not recorded then.
    pub redacts: bool,
    /// It writes its open scopes into pages behind its buffer. Providers of older releases, which do not
    /// report it, would take these for a part of the buffer.
    pub has_scopes: bool,
}

/// Name of a file that exists in the runtime directory while every program that may register there is being
/// recorded, or is about to be.
pub const RECORDING_OF_ALL: &str = "recording.all";

/// As [`RECORDING_OF_ALL`], for the programs of one user.
//= docs/protocol.md#a-recording-is-announced
#[must_use]
pub fn recording_of(uid: u32) -> String {
    format!("{RECORDING_PREFIX}{uid}")
}

/// Prefix of the names of these files.
pub const RECORDING_PREFIX: &str = "recording.";

/// Name of a file that holds, as a number of 64 bits, the tags of markers that are recorded now of the
/// programs of all users.
//= docs/protocol.md#markers-that-are-wanted
pub const MARKERS_OF_ALL: &str = "markers";

/// As [`MARKERS_OF_ALL`], for the programs of one user.
//= docs/protocol.md#markers-that-are-wanted
#[must_use]
pub fn markers_of(uid: u32) -> String {
    format!("{MARKERS_PREFIX}{uid}")
}

/// Prefix of the names of these files.
pub const MARKERS_PREFIX: &str = "markers.";

/// Prefix of the name of the file that a program leaves in its user's runtime directory when it has waited in
/// vain for a manager that had announced a recording; its pid follows. The file has the provider's name.
//= docs/protocol.md#programs-of-which-something-is-missing
pub const GAVE_UP_PREFIX: &str = "gave-up.";

strict_enum! {
    /// Outcome of a registration.
    RegistryStatus {
        /// Registered.
        Ok = 0,
        /// The protocol versions have nothing in common.
        ProtocolVersion = 1,
        /// The buffer header versions have nothing in common.
        BufferHeaderVersion = 2,
        /// The provider's timestamps come from another clock.
        TickSource = 3,
    }
}

/// Manager → provider, the answer to [`RegistryRequest::RegisterProviderSynchronously`] and the other
/// requests that have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistryResponse {
    /// Whether the provider is registered.
    pub status: RegistryStatus,
    /// Whether a session is starting or started, so that a Start is about to come.
    pub started: bool,
    /// Protocol versions the manager serves.
    pub manager_version: VersionRange,
}

impl<H> RegistryRequest<H> {
    /// The provider's description of itself, and the channel that the answer is sent through; none where the
    /// request is not for a provider.
    #[must_use]
    pub fn into_registration(self) -> Option<(Registration<H>, Option<H>)> {
        match self {
            RegistryRequest::RegisterProvider(registration)
            | RegistryRequest::RegisterProviderSynchronously(registration) => Some((registration, None)),
            RegistryRequest::RegisterProviderThrough(registration, answer) => {
                Some((registration, Some(answer)))
            }
            RegistryRequest::ShareRegistry => None,
        }
    }
}

impl<H> Message<H> for RegistryRequest<H> {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let method = match &self {
            RegistryRequest::RegisterProvider(_) => REGISTER,
            RegistryRequest::RegisterProviderSynchronously(_) => REGISTER_SYNCHRONOUSLY,
            RegistryRequest::RegisterProviderThrough(..) => REGISTER_THROUGH,
            RegistryRequest::ShareRegistry => SHARE,
        };
        let Some((registration, answer)) = self.into_registration() else {
            return method.encode(txid, TableWriter::new(method.name).finish(), Vec::new());
        };
        check_limit(NAME.name, MAX_PROVIDER_NAME_BYTES, registration.name.len())?;
        check_limit(TICK_SOURCE.name, MAX_TICK_SOURCE_BYTES, registration.tick_source.len())?;
        let command_line = registration.command_line.as_deref().unwrap_or_default();
        check_limit(COMMAND_LINE.name, MAX_PROVIDER_COMMAND_LINE_BYTES, command_line.len())?;
        let mut table = TableWriter::new(method.name);
        table.put(PID, &registration.pid);
        table.put(NAME, &registration.name);
        put_range(&mut table, PROTOCOL, registration.protocol)?;
        put_range(&mut table, BUFFER_HEADER, registration.buffer_header)?;
        table.put(TICK_SOURCE, &registration.tick_source);
        if registration.dumps_memory {
            table.put(DUMPS_MEMORY, &true);
        }
        table.put_some(PARENT, registration.parent.as_ref());
        if registration.records_alerts {
            table.put(RECORDS_ALERTS, &true);
        }
        if registration.numbers_threads {
            table.put(NUMBERS_THREADS, &true);
        }
        table.put_some(ANSWERS_DUMPS, registration.answers_dumps.then_some(&true));
        table.put_some(COMMAND_LINE, registration.command_line.as_ref());
        table.put_some(BACKS_BUFFER, registration.backs_buffer.then_some(&true));
        table.put_some(REDACTS, registration.redacts.then_some(&true));
        table.put_some(HAS_SCOPES, registration.has_scopes.then_some(&true));
        method.encode(txid, table.finish(), [registration.provider].into_iter().chain(answer).collect())
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        let methods = [REGISTER, REGISTER_SYNCHRONOUSLY, SHARE, REGISTER_THROUGH];
        let (txid, method, body) = decode_header_any_version(bytes, "registry request", &methods)?;
        if method.ordinal == SHARE.ordinal {
            let [] = method.take_handles(handles)?;
            Table::decode(method.name, body)?;
            return Ok((txid, RegistryRequest::ShareRegistry));
        }
        let (provider, answer) = if method.ordinal == REGISTER_THROUGH.ordinal {
            let [provider, answer] = method.take_handles(handles)?;
            (provider, Some(answer))
        } else {
            let [provider] = method.take_handles(handles)?;
            (provider, None)
        };
        let table = Table::decode(method.name, body)?;
        let registration = Registration {
            provider,
            pid: table.require(PID)?,
            name: table.require_string(NAME, MAX_PROVIDER_NAME_BYTES)?,
            protocol: require_range(&table, PROTOCOL)?,
            buffer_header: require_range(&table, BUFFER_HEADER)?,
            tick_source: table.require_string(TICK_SOURCE, MAX_TICK_SOURCE_BYTES)?,
            dumps_memory: table.find(DUMPS_MEMORY)?.unwrap_or(false),
            parent: table.find(PARENT)?,
            records_alerts: table.find(RECORDS_ALERTS)?.unwrap_or(false),
            numbers_threads: table.find(NUMBERS_THREADS)?.unwrap_or(false),
            answers_dumps: table.find(ANSWERS_DUMPS)?.unwrap_or(false),
            command_line: table.string(COMMAND_LINE, MAX_PROVIDER_COMMAND_LINE_BYTES)?,
            backs_buffer: table.find(BACKS_BUFFER)?.unwrap_or(false),
            redacts: table.find(REDACTS)?.unwrap_or(false),
            has_scopes: table.find(HAS_SCOPES)?.unwrap_or(false),
        };
        let request = match answer {
            Some(answer) => RegistryRequest::RegisterProviderThrough(registration, answer),
            None if method.ordinal == REGISTER.ordinal => RegistryRequest::RegisterProvider(registration),
            None => RegistryRequest::RegisterProviderSynchronously(registration),
        };
        Ok((txid, request))
    }
}

impl<H> Message<H> for RegistryResponse {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let mut table = TableWriter::new(REGISTER_SYNCHRONOUSLY.name);
        table.put(STATUS, &self.status.value());
        table.put(STARTED, &self.started);
        put_range(&mut table, MANAGER_VERSION, self.manager_version)?;
        REGISTER_SYNCHRONOUSLY.encode(txid, table.finish(), Vec::new())
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        let (txid, method, body) =
            decode_header_any_version(bytes, "registry response", &[REGISTER_SYNCHRONOUSLY])?;
        let [] = method.take_handles(handles)?;
        let table = Table::decode(method.name, body)?;
        let response = RegistryResponse {
            status: RegistryStatus::from_value(table.require(STATUS)?)?,
            started: table.find(STARTED)?.unwrap_or(false),
            manager_version: require_range(&table, MANAGER_VERSION)?,
        };
        Ok((txid, response))
    }
}

pub(crate) fn put_range(
    table: &mut TableWriter,
    field: Field,
    range: VersionRange,
) -> Result<(), ProtocolError> {
    let range = VersionRange::new(range.min..=range.max)?;
    table.put(field, &(range.min, range.max));
    Ok(())
}

pub(crate) fn require_range(table: &Table<'_>, field: Field) -> Result<VersionRange, ProtocolError> {
    let (min, max): (u16, u16) = table.require(field)?;
    VersionRange::new(min..=max)
}
