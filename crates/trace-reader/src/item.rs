//! The contents of records, with strings, threads and times resolved. Everything is borrowed: from the
//! record, or from the tables of its provider.

pub use crate::known_argument::KnownArgument;
use crate::names::Names;
use crate::tables::Provider;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use trace_format::argument::ArgumentValue;
use trace_format::error::DecodeError;
use trace_format::kernel_object::{PROCESS_ARGUMENT, TYPE_CHANNEL};
use trace_format::program_info::{AT_ARGUMENT, OPEN_ARGUMENT, PROVIDER_ARGUMENT};
use trace_format::record::RecordHeader;
use trace_format::refs::StringRef;

pub use trace_format::event::{EventKind, Scope};
pub use trace_format::function::FunctionRecord;
pub use trace_format::further::FurtherArguments;
pub use trace_format::loss::{LedgerRecord, LossRecord};
pub use trace_format::profiler::ProfilerKind;
pub use trace_format::scheduling::ThreadState;
pub use trace_format::scopes::Ending;
use trace_format::scopes::LASTED_ARGUMENT;
pub use trace_format::units::{Koid, Nanos, Offset, ProviderId, Scale, Thread, Ticks, TicksPerSecond, Words};

/// The text for a string that was not defined.
pub(crate) const UNKNOWN: Text<'_> = Text(b"<unknown>");

/// Text of a trace: bytes that are UTF-8 by convention.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The bytes.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// For display: invalid UTF-8 is replaced.
    #[inline]
    #[must_use]
    pub fn to_str(self) -> Cow<'a, str> {
        // Valid text, which is nearly all, is checked several times as fast this way.
        match str::from_utf8(self.0) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.0),
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str(), f)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

/// Distinguishes the texts that an archive defines: of one reader, texts with one key are equal. It tells
/// without a look at the text that this one has been met before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TextKey(u32);

impl TextKey {
    /// That of texts that have none: they stand in their record, or were not defined.
    pub const NONE: Self = Self(0);
    /// That of the empty text.
    pub(crate) const EMPTY: Self = Self(1);

    /// A number, 0 for a text without a key. Numbers are given in order, as texts are defined.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The key after this one.
    pub(crate) const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }
}

/// A record's meaning and position.
#[derive(Clone, Copy, Debug)]
pub struct Resolved<'a> {
    /// Where the record begins.
    pub offset: Offset,
    /// The provider it belongs to.
    pub provider: ProviderId,
    /// Its name.
    pub provider_name: Text<'a>,
    /// The contents of the record.
    pub item: Item<'a>,
    /// The record's bytes in the input.
    pub bytes: &'a [u8],
    /// Names of processes and threads, as far as they were recorded up to here.
    pub names: &'a Names,
    /// What its provider has defined.
    pub(crate) definitions: &'a Arc<Provider>,
}

/// The contents of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// The magic number record.
    Magic,
    /// A provider is introduced and becomes current.
    ProviderInfo {
        /// Its name.
        name: Text<'a>,
    },
    /// A provider becomes current again.
    ProviderSection,
    /// A remark about a provider.
    ProviderEvent {
        /// The provider.
        about: ProviderId,
        /// 0: its buffer filled up.
        event: u8,
    },
    /// The rate of the current provider's clock.
    Initialization {
        /// The rate.
        rate: TicksPerSecond,
    },
    /// A string gets an index.
    String {
        /// The index.
        index: u16,
        /// The string.
        value: Text<'a>,
    },
    /// A thread gets an index.
    Thread {
        /// The index.
        index: u8,
        /// The thread.
        thread: Thread,
    },
    /// An event.
    Event(Event<'a>),
    /// Bytes with a name.
    Blob {
        /// The name.
        name: Text<'a>,
        /// Their type.
        blob_type: u8,
        /// The bytes.
        payload: &'a [u8],
    },
    /// A part of the arguments of the next event, which has all of them.
    FurtherArguments(&'a [u8]),
    /// A loss of a provider.
    Loss(LossRecord),
    /// How a provider's records add up.
    Ledger(LedgerRecord),
    /// The name of a function that is not in any file.
    Function(FunctionRecord<'a>),
    /// An object of a process.
    UserspaceObject {
        /// The process.
        process: Koid,
        /// Its address.
        address: u64,
        /// Its name.
        name: Text<'a>,
        /// Its properties.
        arguments: Arguments<'a>,
    },
    /// An object of the kernel and its name.
    KernelObject {
        /// 1 a process, 2 a thread.
        object_type: u8,
        /// The object.
        koid: Koid,
        /// Its name.
        name: Text<'a>,
        /// Its properties.
        arguments: Arguments<'a>,
    },
    /// A scheduler's action: a context switch, a wakeup or a switch of fibers.
    Scheduling {
        /// Its time.
        time: Time,
        /// The action.
        kind: Scheduling,
        /// Further arguments.
        arguments: Arguments<'a>,
    },
    /// A line of text.
    Log {
        /// Its time.
        time: Time,
        /// The thread that wrote it.
        thread: Thread,
        /// The line.
        message: Text<'a>,
    },
    /// A record for a profile.
    Profiler {
        /// Its time.
        time: Time,
        /// Its thread.
        thread: Thread,
        /// The kind of record, with its fields.
        kind: ProfilerKind<'a>,
    },
    /// A large blob, or the first piece of one.
    LargeBlob {
        /// The category that enables it.
        category: Text<'a>,
        /// Its name.
        name: Text<'a>,
        /// Its time, thread and arguments; none for an attachment.
        event: Option<(Time, Thread, Arguments<'a>)>,
        /// The bytes, or the first of them.
        payload: &'a [u8],
        /// The total number of bytes. If there are more than these, [`Item::LargeBlobPart`]s follow.
        payload_bytes: u64,
    },
    /// The next piece of a large blob.
    LargeBlobPart {
        /// The bytes.
        payload: &'a [u8],
    },
    /// A record of a newer version, or a further piece of one. It is skipped.
    Unknown {
        /// Its header.
        header: RecordHeader,
        /// Its size.
        size: Words,
    },
    /// A malformed record. It is skipped.
    Malformed {
        /// Its header.
        header: RecordHeader,
        /// The error in it.
        error: DecodeError,
    },
    /// A damaged stretch. Reading continues after it.
    Damage {
        /// Its length.
        bytes: u64,
    },
}

impl Item<'_> {
    /// Whether it is an event or a name: an archive with nothing but definitions is not worth keeping.
    #[inline]
    #[must_use]
    pub const fn is_content(&self) -> bool {
        !matches!(
            self,
            Self::Magic
                | Self::ProviderInfo { .. }
                | Self::ProviderSection
                | Self::Initialization { .. }
                | Self::String { .. }
                | Self::Thread { .. }
                | Self::FurtherArguments(_)
                | Self::Unknown { .. }
                | Self::Malformed { .. }
                | Self::Damage { .. }
        )
    }

    /// The manager's remark why spans of a process have no end. Returns `None` for every other record.
    //= docs/protocol.md#provider-descriptions
    #[must_use]
    pub fn parting(&self) -> Option<Parting> {
        let Self::KernelObject { object_type: TYPE_CHANNEL, arguments, .. } = self else { return None };
        let Value::String(reason) = arguments.find(OPEN_ARGUMENT)? else { return None };
        let Value::Koid(process) = arguments.find(PROCESS_ARGUMENT)? else { return None };
        let Value::Uint64(at) = arguments.find(AT_ARGUMENT)? else { return None };
        let provider = match arguments.find(PROVIDER_ARGUMENT) {
            Some(Value::Uint32(provider)) => Some(ProviderId(provider)),
            _ => None,
        };
        Some(Parting { process, provider, at: Ticks(at), ending: Ending::of(reason.as_bytes())? })
    }
}

/// Why spans of a process have no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The process.
    pub process: Koid,
    /// The provider of the process, if the remark names it.
    pub provider: Option<ProviderId>,
    /// The time up to which these spans have lasted, in ticks of the manager's clock.
    pub at: Ticks,
    /// The reason.
    pub ending: Ending,
}

/// A moment on a provider's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// The time on that clock.
    pub ticks: Ticks,
    /// The clock's rate.
    pub rate: TicksPerSecond,
    /// The scale of that rate.
    pub scale: Scale,
}

impl Time {
    /// In nanoseconds, rounded down.
    #[inline]
    #[must_use]
    pub const fn nanos(self) -> Nanos {
        self.ticks.to_nanos_scaled(self.rate, self.scale)
    }
}

/// An event, resolved. Keys make no difference between events.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Its time.
    pub time: Time,
    /// Its thread.
    pub thread: Thread,
    /// The category that enables it.
    pub category: Text<'a>,
    /// Its name.
    pub name: Text<'a>,
    /// Its kind.
    pub kind: EventKind,
    /// Its arguments, in order.
    pub arguments: Arguments<'a>,
    /// The keys of category and name.
    pub keys: (TextKey, TextKey),
}

impl Event<'_> {
    /// Why a slice that begins here has no end, if its recorder has said so, and how long it had lasted by
    /// then in nanoseconds, if that is known.
    //= docs/format.md#open-scopes
    #[inline]
    #[must_use]
    pub fn ending(&self) -> Option<(Ending, Option<u64>)> {
        if self.kind != EventKind::DurationBegin || self.arguments.is_empty() {
            return None;
        }
        let Some(Value::String(text)) = self.arguments.find_known(KnownArgument::End) else { return None };
        let lasted = match self.arguments.find(LASTED_ARGUMENT) {
            Some(Value::Uint64(lasted)) => Some(lasted),
            _ => None,
        };
        Some((Ending::of(text.as_bytes())?, lasted))
    }
}

impl PartialEq for Event<'_> {
    fn eq(&self, other: &Event<'_>) -> bool {
        self.time == other.time
            && self.thread == other.thread
            && self.category == other.category
            && self.name == other.name
            && self.kind == other.kind
            && self.arguments == other.arguments
    }
}

/// An action of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// A CPU switches from one thread to another.
    ContextSwitch {
        /// The CPU.
        cpu: u16,
        /// The state of the outgoing thread from here on.
        outgoing_state: ThreadState,
        /// The thread that ran.
        outgoing: Koid,
        /// The thread that runs.
        incoming: Koid,
    },
    /// A thread becomes ready to run.
    ThreadWakeup {
        /// The CPU it is queued on.
        cpu: u16,
        /// The thread.
        thread: Koid,
    },
    /// A context switch as older systems wrote it.
    LegacyContextSwitch {
        /// The CPU.
        cpu: u8,
        /// The state of the outgoing thread from here on.
        outgoing_state: ThreadState,
        /// The thread that ran.
        outgoing: Thread,
        /// The thread that runs.
        incoming: Thread,
        /// Priority of the thread that ran.
        outgoing_priority: u8,
        /// Priority of the thread that runs.
        incoming_priority: u8,
    },
    /// A thread switches from one fiber to another.
    FiberSwitch {
        /// The fiber that ran.
        outgoing: Koid,
        /// The fiber that runs.
        incoming: Koid,
    },
}

/// A value of a resolved argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// Signed, 32 bits.
    Int32(i32),
    /// Unsigned, 32 bits.
    Uint32(u32),
    /// Signed, 64 bits.
    Int64(i64),
    /// Unsigned, 64 bits.
    Uint64(u64),
    /// Floating point.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// An address.
    Pointer(u64),
    /// A kernel object.
    Koid(Koid),
    /// Bytes.
    Blob(&'a [u8]),
    /// An unknown type.
    Unknown,
}

/// The arguments of a record. They are resolved during iteration.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    pub(crate) encoded: trace_format::argument::Arguments<'a>,
    /// Those that have no room in the record.
    pub(crate) further: FurtherArguments<'a>,
    pub(crate) provider: &'a Provider,
}

impl<'a> Arguments<'a> {
    /// The number of arguments.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.encoded.len() + self.further.count()
    }

    /// Whether there are no arguments.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.encoded.len() == 0 && self.further.is_empty()
    }

    /// Those that have no room in the record.
    #[inline]
    #[must_use]
    pub const fn further(&self) -> FurtherArguments<'a> {
        self.further
    }

    /// The arguments of a record that has none.
    #[must_use]
    pub fn none(self) -> Self {
        Self { encoded: Default::default(), further: FurtherArguments::default(), ..self }
    }

    /// Names and values, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Text<'a>, Value<'a>)> + use<'a> {
        self.keyed().map(|(name, value, _)| (name, value))
    }

    /// Names and values, in order, and the keys of the name and of a value that is text.
    #[inline]
    pub fn keyed(&self) -> impl Iterator<Item = (Text<'a>, Value<'a>, [TextKey; 2])> + use<'a> {
        let provider = self.provider;
        // All of them were checked when the record was decoded. In this form they are read fastest.
        self.encoded.iter().map_while(Result::ok).chain(self.further).map(
            #[inline(always)]
            move |argument| {
                let (name, name_key) = resolve_keyed(provider, argument.name);
                let mut value_key = TextKey::NONE;
                let value = match argument.value {
                    ArgumentValue::Null => Value::Null,
                    ArgumentValue::Bool(value) => Value::Bool(value),
                    ArgumentValue::Int32(value) => Value::Int32(value),
                    ArgumentValue::Uint32(value) => Value::Uint32(value),
                    ArgumentValue::Int64(value) => Value::Int64(value),
                    ArgumentValue::Uint64(value) => Value::Uint64(value),
                    ArgumentValue::Double(value) => Value::Double(value),
                    ArgumentValue::String(value) => {
                        let (text, key) = resolve_keyed(provider, value);
                        value_key = key;
                        Value::String(text)
                    }
                    ArgumentValue::Pointer(value) => Value::Pointer(value),
                    ArgumentValue::Koid(koid) => Value::Koid(koid),
                    ArgumentValue::Blob(bytes) => Value::Blob(bytes),
                    ArgumentValue::Unknown { .. } => Value::Unknown,
                };
                (name, value, [name_key, value_key])
            },
        )
    }

    /// The first argument with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Value<'a>> {
        // Most have no such argument, which their headers say at a tenth of the cost.
        let is_of = |index| self.provider.string(index).is_none_or(|text| text == name.as_bytes());
        if self.further.is_empty()
            && !self.encoded.headers().any(|header| header.name_index().is_none_or(is_of))
        {
            return None;
        }
        self.iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// As [`Arguments::find`], faster where no event of the program has had such an argument.
    #[inline]
    #[must_use]
    pub fn find_known(&self, known: KnownArgument) -> Option<Value<'a>> {
        if self.provider.may_have(known) { self.find(known.name()) } else { None }
    }

    /// The first argument with this name, if it is a whole number that has room in 64 bits with a sign.
    #[must_use]
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.find(name)?.integer()
    }
}

impl PartialEq for Arguments<'_> {
    fn eq(&self, other: &Arguments<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The text of a reference, with its key; its index, if that was not defined.
#[inline]
pub(crate) fn find<'a>(provider: &'a Provider, string: StringRef<'a>) -> Result<(Text<'a>, TextKey), u16> {
    match string {
        StringRef::Empty => Ok((Text(b""), TextKey::EMPTY)),
        StringRef::Inline(bytes) => Ok((Text(bytes), TextKey::NONE)),
        StringRef::Index(index) => {
            provider.keyed_string(index).map(|(text, key)| (Text(text), key)).ok_or(index.get())
        }
    }
}

/// The text of a reference, with its key; an undefined one is shown as unknown.
#[inline]
pub(crate) fn resolve_keyed<'a>(provider: &'a Provider, string: StringRef<'a>) -> (Text<'a>, TextKey) {
    find(provider, string).unwrap_or((UNKNOWN, TextKey::NONE))
}

/// The text of a reference; an undefined one is shown as unknown.
#[inline]
pub(crate) fn resolve<'a>(provider: &'a Provider, string: StringRef<'a>) -> Text<'a> {
    resolve_keyed(provider, string).0
}
