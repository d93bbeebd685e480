//! Problems of a trace that do not stop its reader.

use std::collections::BTreeMap;
use trace_format::error::DecodeError;
use trace_format::units::{Offset, ProviderId, Ticks, TicksPerSecond};

/// Warnings of a kind that are kept with their place; the rest is only counted.
pub const MAX_KEPT: usize = 20;

/// A problem that does not stop the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The record's place.
    pub offset: Offset,
    /// Its provider.
    pub provider: ProviderId,
    /// What is wrong.
    pub kind: WarningKind,
}

/// What is wrong.
//= docs/check.md#problems
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// The record is malformed and is skipped.
    #[error("malformed record: {0}")]
    Malformed(DecodeError),
    /// A stretch that could not be read; reading continues after it.
    #[error("{0} damaged bytes skipped")]
    Damaged(u64),
    /// The input ends inside a record.
    #[error("the input ends after {0} bytes of it")]
    Truncated(u64),
    /// Damage after which reading cannot be resumed anywhere.
    #[error("the rest cannot be read: a header without a size, and no place after it to resume at")]
    Lost,
    /// Words that are all zero, up to this place.
    #[error("{0} zero words")]
    ZeroWords(u64),
    /// The first record is not the magic number.
    #[error("expected the magic number")]
    NoMagic,
    /// A string index that was not defined.
    #[error("string {0} is not defined")]
    UndefinedString(u16),
    /// A thread index that was not defined.
    #[error("thread {0} is not defined")]
    UndefinedThread(u8),
    /// A string index that had another meaning before.
    #[error("string {0} is defined again, with another meaning")]
    RedefinedString(u16),
    /// A thread index that had another meaning before.
    #[error("thread {0} is defined again, with another meaning")]
    RedefinedThread(u8),
    /// A section of a provider that was not introduced.
    #[error("program {0} was not introduced")]
    UnknownProvider(ProviderId),
    /// There was no room to remember a definition.
    #[error("a definition was not remembered: the tables have reached their limit")]
    TablesFull,
    /// A time before the rate of the clock was set.
    #[error("a time before the program's initialization record; ticks are taken as nanoseconds")]
    NoRate,
    /// A rate that differs from the one before, in this provider or another.
    #[error("a clock of {found}, others have {expected}: their times do not agree")]
    RatesDiffer {
        /// The rate of this record.
        found: TicksPerSecond,
        /// The first rate in the trace.
        expected: TicksPerSecond,
    },
    /// A time that does not fit in 63 bits of nanoseconds.
    #[error("{0} do not fit into 63 bits of nanoseconds")]
    TimeOutOfRange(Ticks),
    /// A complete duration that ends before it begins.
    #[error("ends at {end}, before it begins at {begin}")]
    EndBeforeBegin {
        /// The begin.
        begin: Ticks,
        /// The end.
        end: Ticks,
    },
    /// Further arguments of an event before this place that are not whole, or have no event.
    #[error("arguments of an event are lost: they are damaged, or the event is")]
    LostArguments,
    /// A text that is not UTF-8.
    #[error("{0} is not UTF-8")]
    NotUtf8(&'static str),
}

impl WarningKind {
    /// A short name, for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::Damaged(_) => "damaged",
            Self::Truncated(_) => "truncated",
            Self::Lost => "lost",
            Self::ZeroWords(_) => "zero-words",
            Self::NoMagic => "no-magic",
            Self::UndefinedString(_) => "undefined-string",
            Self::UndefinedThread(_) => "undefined-thread",
            Self::RedefinedString(_) => "redefined-string",
            Self::RedefinedThread(_) => "redefined-thread",
            Self::UnknownProvider(_) => "unknown-provider",
            Self::TablesFull => "tables-full",
            Self::NoRate => "no-rate",
            Self::RatesDiffer { .. } => "rates-differ",
            Self::TimeOutOfRange(_) => "time-out-of-range",
            Self::EndBeforeBegin { .. } => "end-before-begin",
            Self::LostArguments => "lost-arguments",
            Self::NotUtf8(_) => "not-utf8",
        }
    }
}

/// The warnings of a trace: how many of each kind, and the first with their places.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    kinds: BTreeMap<&'static str, Kind>,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct Kind {
    count: u64,
    first: Vec<Warning>,
}

impl Warnings {
    #[cold]
    pub(crate) fn add(&mut self, warning: Warning) {
        self.count += 1;
        let kind = self.kinds.entry(warning.kind.name()).or_default();
        kind.count += 1;
        if kind.first.len() < MAX_KEPT {
            kind.first.push(warning);
        }
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The first of each kind, at most [`MAX_KEPT`], in the order of the file.
    #[must_use]
    pub fn first(&self) -> Vec<Warning> {
        let mut all: Vec<Warning> = self.kinds.values().flat_map(|kind| &kind.first).copied().collect();
        all.sort_by_key(|warning| warning.offset);
        all
    }

    /// Of each kind its name, how many there are, and the first.
    pub fn by_kind(&self) -> impl Iterator<Item = (&'static str, u64, &[Warning])> {
        self.kinds.iter().map(|(name, kind)| (*name, kind.count, &*kind.first))
    }
}
