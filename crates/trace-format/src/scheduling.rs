//! Scheduling records: which thread a CPU runs, and which becomes ready.
//!
//! ```text
//!  63  60 59                       40 39   36 35         20 19  16 15         4 3  0
//! +------+---------------------------+-------+-------------+------+------------+----+
//! |   1  |             0             | state |     CPU     | args | size words |  8 |  context switch
//! |   2  |             0             |   0   |     CPU     | args | size words |  8 |  wakeup
//! |   3  |             0             |   0   |      0      | args | size words |  8 |  fiber switch
//! +------+---------------------------+-------+-------------+------+------------+----+
//!  63  60 59     52 51     44 43     36 35     28 27   24 23     16 15         4 3  0
//! +------+---------+---------+---------+---------+-------+---------+------------+----+
//! |   0  | in prio | out prio| in ref  | out ref | state |   CPU   | size words |  8 |  legacy
//! +------+---------+---------+---------+---------+-------+---------+------------+----+
//! ```

use crate::argument::Arguments;
use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType, check_size};
use crate::refs::ThreadRef;
use crate::sink::Sink;
use crate::units::{Koid, ThreadKoid, Ticks, Words};

#[cfg(test)]
mod tests;

/// Name of the int32 argument of a context switch with the weight of the incoming thread.
pub const INCOMING_WEIGHT_ARGUMENT: &str = "incoming_weight";
/// Name of the int32 argument of a context switch with the weight of the outgoing thread.
pub const OUTGOING_WEIGHT_ARGUMENT: &str = "outgoing_weight";
/// Name of the int32 argument of a wakeup with the weight of the thread.
pub const WEIGHT_ARGUMENT: &str = "weight";
/// Name of the koid argument of a wakeup with the thread that caused it.
pub const WAKER_ARGUMENT: &str = "waker";
/// Weight of the thread that a CPU runs when it has nothing to do.
pub const IDLE_WEIGHT: i32 = i32::MIN;

const LEGACY_CONTEXT_SWITCH: u64 = 0;
const CONTEXT_SWITCH: u64 = 1;
const THREAD_WAKEUP: u64 = 2;
const FIBER_SWITCH: u64 = 3;
/// Largest thread state: its field has 4 bits.
const MAX_THREAD_STATE: u8 = 15;

/// The state of a thread, as the kernel numbers it.
//= docs/format.md#scheduling-record
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadState(pub u8);

impl ThreadState {
    /// Not started.
    pub const NEW: Self = Self(0);
    /// Running, or ready to: it was preempted.
    pub const RUNNING: Self = Self(1);
    /// Suspended.
    pub const SUSPENDED: Self = Self(2);
    /// Waiting.
    pub const BLOCKED: Self = Self(3);
    /// Ending.
    pub const DYING: Self = Self(4);
    /// Ended.
    pub const DEAD: Self = Self(5);

    /// A word for people; none for a state of a newer version.
    #[must_use]
    pub const fn text(self) -> Option<&'static str> {
        Some(match self {
            Self::NEW => "new",
            Self::RUNNING => "running",
            Self::SUSPENDED => "suspended",
            Self::BLOCKED => "blocked",
            Self::DYING => "dying",
            Self::DEAD => "dead",
            _ => return None,
        })
    }

    const fn check(self) -> Result<(), EncodeError> {
        if self.0 > MAX_THREAD_STATE {
            return Err(EncodeError::OutOfRange {
                what: "thread state",
                limit: MAX_THREAD_STATE as u64,
                found: self.0 as u64,
            });
        }
        Ok(())
    }
}

/// The header of a context switch of `size_words` words.
//= docs/format.md#scheduling-record
#[inline]
#[must_use]
pub const fn context_switch_header(
    size_words: u64,
    cpu: u16,
    state: ThreadState,
    argument_count: u64,
) -> u64 {
    let state = (state.0 as u64) << 36;
    header(size_words, argument_count, CONTEXT_SWITCH) | (cpu as u64) << 20 | state
}

/// The header of a wakeup of `size_words` words.
//= docs/format.md#scheduling-record
#[inline]
#[must_use]
pub const fn thread_wakeup_header(size_words: u64, cpu: u16, argument_count: u64) -> u64 {
    header(size_words, argument_count, THREAD_WAKEUP) | (cpu as u64) << 20
}

const fn header(size_words: u64, argument_count: u64, event: u64) -> u64 {
    RecordType::Scheduling as u64 | size_words << 4 | argument_count << 16 | event << 60
}

/// An action of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduling<'a> {
    /// A CPU switches from one thread to another.
    ContextSwitch {
        /// Its time.
        timestamp: Ticks,
        /// The CPU.
        cpu: u16,
        /// The state of the outgoing thread from here on.
        outgoing_state: ThreadState,
        /// The thread that ran.
        outgoing: ThreadKoid,
        /// The thread that runs.
        incoming: ThreadKoid,
        /// [`INCOMING_WEIGHT_ARGUMENT`], [`OUTGOING_WEIGHT_ARGUMENT`] and others.
        arguments: Arguments<'a>,
    },
    /// A thread becomes ready to run.
    ThreadWakeup {
        /// Its time.
        timestamp: Ticks,
        /// The CPU it is queued on.
        cpu: u16,
        /// The thread.
        thread: ThreadKoid,
        /// [`WEIGHT_ARGUMENT`], [`WAKER_ARGUMENT`] and others.
        arguments: Arguments<'a>,
    },
    /// A context switch as older systems wrote it.
    LegacyContextSwitch {
        /// Its time.
        timestamp: Ticks,
        /// The CPU.
        cpu: u8,
        /// The state of the outgoing thread from here on.
        outgoing_state: ThreadState,
        /// The thread that ran.
        outgoing: ThreadRef,
        /// The thread that runs; a process koid 0 with priority 0 means none.
        incoming: ThreadRef,
        /// Priority of the thread that ran.
        outgoing_priority: u8,
        /// Priority of the thread that runs.
        incoming_priority: u8,
    },
    /// A thread switches from one fiber to another. Fuchsia never writes it; it is read only.
    FiberSwitch {
        /// Its time.
        timestamp: Ticks,
        /// The fiber that ran.
        outgoing: Koid,
        /// The fiber that runs.
        incoming: Koid,
        /// Further arguments.
        arguments: Arguments<'a>,
    },
}

impl<'a> Scheduling<'a> {
    /// None for an event of a newer version.
    //= docs/format.md#scheduling-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Option<Self>, DecodeError> {
        let event = field(header.0, 60, 4);
        if event > FIBER_SWITCH {
            return Ok(None);
        }
        let timestamp = Ticks(cursor.word("timestamp")?);
        let count = field(header.0, 16, 4);
        let cpu = field(header.0, 20, 16) as u16;
        Ok(Some(match event {
            LEGACY_CONTEXT_SWITCH => Self::LegacyContextSwitch {
                timestamp,
                cpu: field(header.0, 16, 8) as u8,
                outgoing_state: ThreadState(field(header.0, 24, 4) as u8),
                outgoing: cursor.thread(field(header.0, 28, 8) as u8)?,
                incoming: cursor.thread(field(header.0, 36, 8) as u8)?,
                outgoing_priority: field(header.0, 44, 8) as u8,
                incoming_priority: field(header.0, 52, 8) as u8,
            },
            CONTEXT_SWITCH => Self::ContextSwitch {
                timestamp,
                cpu,
                outgoing_state: ThreadState(field(header.0, 36, 4) as u8),
                outgoing: ThreadKoid(Koid(cursor.word("outgoing thread")?)),
                incoming: ThreadKoid(Koid(cursor.word("incoming thread")?)),
                arguments: Arguments::decode(count, &mut cursor)?,
            },
            THREAD_WAKEUP => Self::ThreadWakeup {
                timestamp,
                cpu,
                thread: ThreadKoid(Koid(cursor.word("thread koid")?)),
                arguments: Arguments::decode(count, &mut cursor)?,
            },
            _ => Self::FiberSwitch {
                timestamp,
                outgoing: Koid(cursor.word("outgoing fiber")?),
                incoming: Koid(cursor.word("incoming fiber")?),
                arguments: Arguments::decode(count, &mut cursor)?,
            },
        }))
    }

    /// The time of the action.
    #[inline]
    #[must_use]
    pub const fn timestamp(&self) -> Ticks {
        match *self {
            Self::ContextSwitch { timestamp, .. }
            | Self::ThreadWakeup { timestamp, .. }
            | Self::LegacyContextSwitch { timestamp, .. }
            | Self::FiberSwitch { timestamp, .. } => timestamp,
        }
    }

    /// The arguments; a legacy record has none.
    #[inline]
    #[must_use]
    pub const fn arguments(&self) -> Arguments<'a> {
        match *self {
            Self::ContextSwitch { arguments, .. }
            | Self::ThreadWakeup { arguments, .. }
            | Self::FiberSwitch { arguments, .. } => arguments,
            Self::LegacyContextSwitch { .. } => Arguments::new(&[]),
        }
    }

    /// Size of the record.
    #[must_use]
    #[inline(always)]
    pub const fn words(&self) -> Words {
        match self {
            Self::LegacyContextSwitch { outgoing, incoming, .. } => {
                Words(2).plus(outgoing.words()).plus(incoming.words())
            }
            Self::ThreadWakeup { arguments, .. } => Words(3).plus(arguments.words()),
            Self::ContextSwitch { arguments, .. } | Self::FiberSwitch { arguments, .. } => {
                Words(4).plus(arguments.words())
            }
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// [`EncodeError::OutOfRange`] for a state above 15, [`EncodeError::ReadOnly`] for a fiber switch,
    /// [`EncodeError::TooLong`], [`EncodeError::TooManyArguments`] and [`EncodeError::UnknownType`] for
    /// arguments, [`EncodeError::TooLarge`].
    //= docs/format.md#scheduling-record
    #[inline(always)]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        let arguments = self.arguments();
        arguments.check()?;
        let size_words = check_size(self.words())?;
        let count = arguments.len() as u64;
        match *self {
            Self::ContextSwitch { timestamp, cpu, outgoing_state, outgoing, incoming, .. } => {
                outgoing_state.check()?;
                sink.word(context_switch_header(size_words, cpu, outgoing_state, count));
                sink.word(timestamp.0);
                sink.word(outgoing.0.0);
                sink.word(incoming.0.0);
            }
            Self::ThreadWakeup { timestamp, cpu, thread, .. } => {
                sink.word(thread_wakeup_header(size_words, cpu, count));
                sink.word(timestamp.0);
                sink.word(thread.0.0);
            }
            Self::LegacyContextSwitch {
                timestamp,
                cpu,
                outgoing_state,
                outgoing,
                incoming,
                outgoing_priority,
                incoming_priority,
            } => {
                outgoing_state.check()?;
                sink.word(
                    header(size_words, 0, LEGACY_CONTEXT_SWITCH)
                        | u64::from(cpu) << 16
                        | u64::from(outgoing_state.0) << 24
                        | u64::from(outgoing.bits()) << 28
                        | u64::from(incoming.bits()) << 36
                        | u64::from(outgoing_priority) << 44
                        | u64::from(incoming_priority) << 52,
                );
                sink.word(timestamp.0);
                outgoing.write(sink);
                incoming.write(sink);
            }
            Self::FiberSwitch { .. } => return Err(EncodeError::ReadOnly { what: "fiber switch" }),
        }
        arguments.write(sink);
        Ok(())
    }
}
