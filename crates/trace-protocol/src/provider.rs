//! Provider: the manager starts and stops one provider.
//!
//! A provider answers Start and Stop with packets of [`fifo`](crate::fifo), and Terminate by closing buffer
//! and FIFO.

use crate::buffering::{BufferDisposition, BufferingMode};
use crate::categories::KnownCategories;
use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_REASON_BYTES, MAX_TICK_SOURCE_BYTES, cut};
use crate::memory::MemoryDumpLevel;
use crate::message::{Encoded, Header, Message, Method, Txid, decode_header, decode_header_any_version};
use crate::table::{Field, ListLimits, Table, TableWriter};

const INITIALIZE: Method = Method::one_way("Initialize", 0x0201);
const START: Method = Method::one_way("Start", 0x0202);
const STOP: Method = Method::one_way("Stop", 0x0203);
const TERMINATE: Method = Method::one_way("Terminate", 0x0204);
const FLUSH: Method = Method::one_way("Flush", 0x0207);
const DUMP_MEMORY: Method = Method::one_way("DumpMemory", 0x0208);
const USE_PID_NAMESPACE: Method = Method::one_way("UsePidNamespace", 0x0209);
const DUMPED_MEMORY: Method = Method::one_way("DumpedMemory", 0x020a);
const HAND_OVER: Method = Method::one_way("HandOver", 0x020b);
const KNOWN_CATEGORIES: Method = Method::two_way("GetKnownCategories", 0x0205);
const REFUSED: Method = Method::one_way("Refused", 0x0206);

const MODE: Field = Field::new(1, "buffering_mode");
const CATEGORIES: Field = Field::new(2, "categories");
const BUFFER_HEADER_VERSION: Field = Field::new(3, "buffer_header_version");
const TICK_SOURCE: Field = Field::new(4, "tick source bytes");
const TICKS_PER_SECOND: Field = Field::new(5, "ticks_per_second");
const PROCESS_KOID: Field = Field::new(6, "process_koid");
const THREAD_TIME: Field = Field::new(7, "thread_time");
const TAKES_STARTUP: Field = Field::new(8, "takes_startup");
const MIRROR_MARKERS: Field = Field::new(9, "mirror_markers");
const PRIVACY: Field = Field::new(10, "privacy");
const SCOPE_BYTES: Field = Field::new(11, "scope_bytes");
const TAKES_SCOPES: Field = Field::new(12, "takes_scopes");

const DISPOSITION: Field = Field::new(1, "buffer_disposition");
const ADDITIONAL_CATEGORIES: Field = Field::new(2, "additional_categories");

const DUMP: Field = Field::new(1, "dump");
const LEVEL: Field = Field::new(2, "level");
const ANSWERS: Field = Field::new(3, "answers");
const IS_WRITTEN: Field = Field::new(2, "is_written");

pub(crate) const REASON: Field = Field::new(1, "reason bytes");

/// Manager → provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderRequest<H> {
    /// Prepare to record into a buffer. Handles: buffer, FIFO.
    Initialize {
        /// Where and what to record.
        config: ProviderConfig<H>,
    },
    /// Record; answered by the packet STARTED.
    Start {
        /// How the buffer's previous content is treated.
        buffer_disposition: BufferDisposition,
        /// Categories added to those of Initialize for this run, at most 5000 of 100 bytes.
        additional_categories: Vec<String>,
    },
    /// Cease recording; answered by the packet STOPPED.
    Stop,
    /// Release buffer and FIFO.
    Terminate,
    /// Hand over what was recorded so far, while streaming.
    Flush,
    /// Write down what memory is used for. Only for providers that have reported support for it.
    DumpMemory {
        /// Number of the dump.
        dump: u64,
        /// The dump's level of detail.
        level: MemoryDumpLevel,
        /// The provider answers with [`ProviderResponse::DumpedMemory`]. Only for providers that have
        /// reported support for that.
        answers: bool,
    },
    /// Number threads as the manager's pid namespace does. Only for providers in another namespace that have
    /// reported support for it. Comes before Initialize. Handle: the namespace.
    UsePidNamespace {
        /// The namespace.
        namespace: H,
    },
    /// Queries the categories that the provider knows; answered by [`ProviderResponse::KnownCategories`].
    GetKnownCategories,
    /// The provider cannot be served, in one sentence; the channel closes next. Decoded whatever its version.
    Refused {
        /// What was expected and what was found; cut at 1000 bytes.
        reason: String,
    },
}

/// The configuration that a provider needs to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig<H> {
    /// How the buffer is used.
    pub buffering_mode: BufferingMode,
    /// The buffer, a VMO of fixed size.
    pub buffer: H,
    /// The provider's end of the FIFO.
    pub fifo: H,
    /// Enabled categories, at most 5000 of 100 bytes; none means all.
    pub categories: Vec<String>,
    /// Version of the buffer header to write.
    pub buffer_header_version: u16,
    /// Name of the clock that all timestamps of the archive come from, at most 32 bytes.
    pub tick_source: String,
    /// Rate of that clock, not zero.
    pub ticks_per_second: u64,
    /// The provider's process as the manager numbers it; in another pid namespace this differs from its own
    /// number.
    pub process_koid: Option<u64>,
    /// Whether events are to have the processor time of their thread as arguments. Default false.
    pub thread_time: bool,
    /// Whether the manager takes what the provider has recorded before it got this buffer, by
    /// [`ProviderResponse::HandOver`]. Managers of older releases do not report it.
    pub takes_startup: bool,
    /// Whether the provider writes a mark of each event into the kernel's trace. Default false.
    pub mirror_markers: bool,
    /// Whether the provider records only texts that its call sites mark as literals. Default false.
    pub privacy: bool,
    /// Bytes at the end of the VMO that are pages for open scopes, and no part of the buffer; 0 without them.
    //= docs/buffer.md#open-scopes
    pub scope_bytes: u64,
    /// Whether the manager takes a buffer with such pages by [`ProviderResponse::HandOver`]. Managers of
    /// older releases do not report it.
    pub takes_scopes: bool,
}

/// Provider → manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderResponse<H> {
    /// Answer to [`ProviderRequest::GetKnownCategories`].
    KnownCategories(KnownCategories),
    /// A memory dump was taken, if the request asked for an answer.
    DumpedMemory {
        /// Its number.
        dump: u64,
        /// The program has values to write, and its trace wants them.
        is_written: bool,
    },
    /// What the program has recorded into a buffer of its own before this recording, which goes on in the
    /// manager's buffer. Comes before the packet STARTED, once, and only if the manager takes it. Handle: the
    /// buffer.
    HandOver {
        /// The buffer, which is complete.
        buffer: H,
        /// How it was used: oneshot or circular.
        buffering_mode: BufferingMode,
    },
}

impl<H> Message<H> for ProviderRequest<H> {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let (method, table, handles) = match self {
            ProviderRequest::Initialize { config } => config.encode()?,
            ProviderRequest::Start { buffer_disposition, additional_categories } => {
                let mut table = TableWriter::new(START.name);
                table.put(DISPOSITION, &buffer_disposition.value());
                table.put_strings(ADDITIONAL_CATEGORIES, &additional_categories, ListLimits::CATEGORIES)?;
                (START, table, Vec::new())
            }
            ProviderRequest::Stop => (STOP, TableWriter::new(STOP.name), Vec::new()),
            ProviderRequest::Terminate => (TERMINATE, TableWriter::new(TERMINATE.name), Vec::new()),
            ProviderRequest::Flush => (FLUSH, TableWriter::new(FLUSH.name), Vec::new()),
            ProviderRequest::DumpMemory { dump, level, answers } => {
                let mut table = TableWriter::new(DUMP_MEMORY.name);
                table.put(DUMP, &dump);
                table.put(LEVEL, &level.value());
                table.put_some(ANSWERS, answers.then_some(&true));
                (DUMP_MEMORY, table, Vec::new())
            }
            ProviderRequest::UsePidNamespace { namespace } => {
                (USE_PID_NAMESPACE, TableWriter::new(USE_PID_NAMESPACE.name), vec![namespace])
            }
            ProviderRequest::GetKnownCategories => {
                (KNOWN_CATEGORIES, TableWriter::new(KNOWN_CATEGORIES.name), Vec::new())
            }
            ProviderRequest::Refused { reason } => (REFUSED, refusal(&reason)?, Vec::new()),
        };
        method.encode(txid, table.finish(), handles)
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        const PROTOCOL: &str = "provider request";
        let (header, _) = Header::decode(bytes)?;
        if header.ordinal == REFUSED.ordinal {
            let (txid, method, body) = decode_header_any_version(bytes, PROTOCOL, &[REFUSED])?;
            let [] = method.take_handles(handles)?;
            let reason = decode_refusal(body)?;
            return Ok((txid, ProviderRequest::Refused { reason }));
        }
        let methods =
            [INITIALIZE, START, STOP, TERMINATE, KNOWN_CATEGORIES, FLUSH, DUMP_MEMORY, USE_PID_NAMESPACE];
        let (txid, method, body) = decode_header(bytes, PROTOCOL, &methods)?;
        let table = Table::decode(method.name, body)?;
        if method.ordinal == INITIALIZE.ordinal {
            let config = ProviderConfig::decode(&table, method.take_handles(handles)?)?;
            return Ok((txid, ProviderRequest::Initialize { config }));
        }
        if method.ordinal == USE_PID_NAMESPACE.ordinal {
            let [namespace] = method.take_handles(handles)?;
            return Ok((txid, ProviderRequest::UsePidNamespace { namespace }));
        }
        let [] = method.take_handles(handles)?;
        let request = if method.ordinal == START.ordinal {
            ProviderRequest::Start {
                buffer_disposition: BufferDisposition::from_value(table.require(DISPOSITION)?)?,
                additional_categories: table.strings(ADDITIONAL_CATEGORIES, ListLimits::CATEGORIES)?,
            }
        } else if method.ordinal == STOP.ordinal {
            ProviderRequest::Stop
        } else if method.ordinal == TERMINATE.ordinal {
            ProviderRequest::Terminate
        } else if method.ordinal == FLUSH.ordinal {
            ProviderRequest::Flush
        } else if method.ordinal == DUMP_MEMORY.ordinal {
            ProviderRequest::DumpMemory {
                dump: table.require(DUMP)?,
                level: MemoryDumpLevel::from_value(table.require(LEVEL)?)?,
                answers: table.find(ANSWERS)?.unwrap_or(false),
            }
        } else {
            ProviderRequest::GetKnownCategories
        };
        Ok((txid, request))
    }
}

impl<H> ProviderConfig<H> {
    fn encode(self) -> Result<(Method, TableWriter, Vec<H>), ProtocolError> {
        check_limit(TICK_SOURCE.name, MAX_TICK_SOURCE_BYTES, self.tick_source.len())?;
        check_rate(self.ticks_per_second)?;
        let mut table = TableWriter::new(INITIALIZE.name);
        table.put(MODE, &self.buffering_mode.value());
        table.put_strings(CATEGORIES, &self.categories, ListLimits::CATEGORIES)?;
        table.put(BUFFER_HEADER_VERSION, &self.buffer_header_version);
        table.put(TICK_SOURCE, &self.tick_source);
        table.put(TICKS_PER_SECOND, &self.ticks_per_second);
        if let Some(koid) = self.process_koid {
            table.put(PROCESS_KOID, &koid);
        }
        table.put_some(THREAD_TIME, self.thread_time.then_some(&true));
        table.put_some(TAKES_STARTUP, self.takes_startup.then_some(&true));
        table.put_some(MIRROR_MARKERS, self.mirror_markers.then_some(&true));
        table.put_some(PRIVACY, self.privacy.then_some(&true));
        table.put_some(SCOPE_BYTES, (self.scope_bytes > 0).then_some(&self.scope_bytes));
        table.put_some(TAKES_SCOPES, self.takes_scopes.then_some(&true));
        Ok((INITIALIZE, table, vec![self.buffer, self.fifo]))
    }

    fn decode(table: &Table<'_>, [buffer, fifo]: [H; 2]) -> Result<Self, ProtocolError> {
        let ticks_per_second = table.require(TICKS_PER_SECOND)?;
        check_rate(ticks_per_second)?;
        Ok(ProviderConfig {
            buffering_mode: BufferingMode::from_value(table.require(MODE)?)?,
            buffer,
            fifo,
            categories: table.strings(CATEGORIES, ListLimits::CATEGORIES)?,
            buffer_header_version: table.require(BUFFER_HEADER_VERSION)?,
            tick_source: table.require_string(TICK_SOURCE, MAX_TICK_SOURCE_BYTES)?,
            ticks_per_second,
            process_koid: table.find(PROCESS_KOID)?,
            thread_time: table.find(THREAD_TIME)?.unwrap_or(false),
            takes_startup: table.find(TAKES_STARTUP)?.unwrap_or(false),
            mirror_markers: table.find(MIRROR_MARKERS)?.unwrap_or(false),
            privacy: table.find(PRIVACY)?.unwrap_or(false),
            scope_bytes: table.find(SCOPE_BYTES)?.unwrap_or(0),
            takes_scopes: table.find(TAKES_SCOPES)?.unwrap_or(false),
        })
    }
}

impl<H> Message<H> for ProviderResponse<H> {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let (method, table, handles) = match self {
            ProviderResponse::KnownCategories(categories) => {
                let mut table = TableWriter::new(KNOWN_CATEGORIES.name);
                categories.put(&mut table)?;
                (KNOWN_CATEGORIES, table, Vec::new())
            }
            ProviderResponse::DumpedMemory { dump, is_written } => {
                let mut table = TableWriter::new(DUMPED_MEMORY.name);
                table.put(DUMP, &dump);
                table.put(IS_WRITTEN, &is_written);
                (DUMPED_MEMORY, table, Vec::new())
            }
            ProviderResponse::HandOver { buffer, buffering_mode } => {
                let mut table = TableWriter::new(HAND_OVER.name);
                table.put(MODE, &buffering_mode.value());
                (HAND_OVER, table, vec![buffer])
            }
        };
        method.encode(txid, table.finish(), handles)
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        let methods = [KNOWN_CATEGORIES, DUMPED_MEMORY, HAND_OVER];
        let (txid, method, body) = decode_header(bytes, "provider response", &methods)?;
        let table = Table::decode(method.name, body)?;
        if method.ordinal == HAND_OVER.ordinal {
            let [buffer] = method.take_handles(handles)?;
            let buffering_mode = BufferingMode::from_value(table.require(MODE)?)?;
            return Ok((txid, ProviderResponse::HandOver { buffer, buffering_mode }));
        }
        let [] = method.take_handles(handles)?;
        let response = if method.ordinal == DUMPED_MEMORY.ordinal {
            ProviderResponse::DumpedMemory {
                dump: table.require(DUMP)?,
                is_written: table.require(IS_WRITTEN)?,
            }
        } else {
            ProviderResponse::KnownCategories(KnownCategories::find(&table)?)
        };
        Ok((txid, response))
    }
}

/// The table of a refusal; its sentence is cut to the limit, since it may quote untrusted input.
pub(crate) fn refusal(reason: &str) -> Result<TableWriter, ProtocolError> {
    let mut table = TableWriter::new("Refused");
    table.put(REASON, cut(reason, MAX_REASON_BYTES));
    Ok(table)
}

/// The sentence of a refusal.
pub(crate) fn decode_refusal(body: &[u8]) -> Result<String, ProtocolError> {
    Table::decode("Refused", body)?.require_string(REASON, MAX_REASON_BYTES)
}

fn check_rate(ticks_per_second: u64) -> Result<(), ProtocolError> {
    if ticks_per_second == 0 {
        return Err(ProtocolError::InvalidValue {
            field: TICKS_PER_SECOND.name,
            expected: "1 or more",
            found: 0,
        });
    }
    Ok(())
}
