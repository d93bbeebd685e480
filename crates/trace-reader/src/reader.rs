//! Records with their strings, threads, providers and times resolved.
//!
//! Tables are per provider. Undefined references are shown as unknown and counted as warnings with their
//! position; a warning never stops the reader. Nothing is copied but definitions.

use crate::compressed::Plain;
use crate::input::{Input, Slice, Stream};
use crate::item::Resolved;
use crate::names::Names;
use crate::records::{Found, Gap, RawRecord, ReadError, Records};
use crate::unknown::Unknown;
use crate::warning::{WarningKind, Warnings};
use resolver::Resolver;
use std::io::Read;
use trace_format::error::DecodeError;
use trace_format::event;
use trace_format::large::LargeBlobStart;
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::units::Offset;

mod resolver;

#[cfg(test)]
mod tests;

/// Default limit of the memory for strings, threads and names.
pub const TABLE_BYTES: usize = 24 << 20;

/// Reads an archive record by record.
#[derive(Debug)]
pub struct Reader<I> {
    records: Records<I>,
    resolver: Resolver,
    /// A record that was found behind a damaged stretch, to be returned next.
    held: Option<Found>,
}

impl<R: Read> Reader<Stream<Plain<R>>> {
    /// Reads an archive, plain or compressed.
    ///
    /// # Errors
    ///
    /// The input is not an archive, or cannot be read.
    pub fn new(input: R) -> Result<Self, ReadError> {
        Records::archive(input).map(Self::of_records)
    }
}

impl<'a> Reader<Slice<'a>> {
    /// Reads an archive in memory, in place. It must not be compressed.
    ///
    /// # Errors
    ///
    /// The bytes are not an archive.
    pub fn of_slice(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let mut records = Records::of_slice(bytes);
        records.check_kind()?;
        Ok(Self::of_records(records))
    }
}

impl<I: Input> Reader<I> {
    fn of_records(records: Records<I>) -> Self {
        Self { records, resolver: Resolver::new(TABLE_BYTES), held: None }
    }

    /// Bounds the memory for strings, threads and names, in bytes; [`TABLE_BYTES`] if not set. Definitions
    /// beyond it are not remembered, and references to them are shown as unknown.
    #[must_use]
    pub fn with_table_bytes(mut self, bytes: usize) -> Self {
        let is_strict = self.resolver.is_strict;
        self.resolver = Resolver::new(bytes);
        self.resolver.is_strict = is_strict;
        self
    }

    /// Bounds the memory for one record, in bytes; 1 MiB if not set. Larger ones come in pieces.
    #[must_use]
    pub fn with_max_piece_bytes(mut self, bytes: usize) -> Self {
        self.records = self.records.with_max_piece_bytes(bytes);
        self
    }

    /// Warns of everything that another reader may not accept, and not only of problems for this one.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.resolver.is_strict = true;
        self
    }

    /// The next record, resolved, or the next piece of a large one; None at the end, and after an error.
    ///
    /// # Errors
    ///
    /// Damage after which no record can be found, or an input that cannot be read.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<Resolved<'_>>, ReadError> {
        let found = match self.held.take() {
            Some(found) => found,
            None => {
                let (from, zero_words) = (self.records.position(), self.records.zero_words());
                let found = self.records.advance();
                if self.records.zero_words() != zero_words {
                    self.resolver.offset = from;
                    self.resolver.warn(WarningKind::ZeroWords(self.records.zero_words() - zero_words));
                    self.resolver.lose_arguments();
                }
                if let Some(gap) = self.records.take_gap() {
                    self.resolver.damage(gap);
                    self.held = found?;
                    return Ok(Some(self.resolver.damaged(gap)));
                }
                match found {
                    Ok(Some(found)) => found,
                    other => return self.end(other.err()),
                }
            }
        };
        let raw = self.records.record(found);
        self.resolver.offset = raw.offset;
        if self.resolver.is_at_start {
            self.resolver.start(raw.header());
        }
        if self.resolver.further.is_any() && !self.resolver.further.before(raw.header()) {
            self.resolver.warn(WarningKind::LostArguments);
        }
        // The most common record by far takes the shortest path.
        if let Some(event) = self.resolver.common_event(raw.bytes) {
            return Ok(Some(self.resolver.event::<true>(event, raw)));
        }
        if let Some(Ok(event)) = event::Event::of_record(raw.bytes)
            && event.words() == raw.size
        {
            return Ok(Some(self.resolver.event::<false>(event, raw)));
        }
        match Record::decode(raw.bytes) {
            Ok(record) if record.words() == raw.size && !is_unknown(&record) => {
                self.resolver.apply(&record);
                Ok(Some(self.resolver.known(record, raw)))
            }
            decoded => {
                let anomaly = Anomaly::of(decoded, raw, self.resolver.payload_left);
                if anomaly.is_suspicious()
                    && let Some(bytes) = self.records.leave_damaged(found)
                {
                    let gap = Gap { offset: Offset(raw.offset.0 + raw.earlier), bytes };
                    self.resolver.damage(gap);
                    return Ok(Some(self.resolver.damaged(gap)));
                }
                if let Anomaly::Longer(Record::Event(event)) = anomaly {
                    return Ok(Some(self.resolver.event::<false>(event, raw)));
                }
                self.resolver.apply_anomaly(&anomaly, raw);
                Ok(Some(self.resolver.anomaly(anomaly, raw)))
            }
        }
    }

    #[cold]
    fn end(&mut self, error: Option<ReadError>) -> Result<Option<Resolved<'_>>, ReadError> {
        self.resolver.lose_arguments();
        if let Some(leftover) = self.records.take_leftover() {
            self.resolver.offset = leftover.offset;
            self.resolver.warn(WarningKind::Truncated(leftover.bytes));
        }
        match error {
            Some(error) => {
                if let ReadError::NoSize { offset, .. } = error {
                    self.resolver.offset = offset;
                    self.resolver.warn(WarningKind::Lost);
                }
                Err(error)
            }
            None => Ok(None),
        }
    }

    /// Problems of the trace, as far as it was read.
    #[must_use]
    pub const fn warnings(&self) -> &Warnings {
        &self.resolver.warnings
    }

    /// Records that were skipped because they belong to a later version of the format.
    #[must_use]
    pub const fn unknown(&self) -> &Unknown {
        &self.resolver.unknown
    }

    /// Names of processes and threads, as far as the trace was read.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.resolver.names
    }

    /// The same, when reading has ended.
    #[must_use]
    pub fn into_names(self) -> Names {
        self.resolver.names
    }

    /// The position at which the next record is expected.
    #[must_use]
    pub const fn position(&self) -> Offset {
        self.records.position()
    }
}

/// Anything other than a known record of the known length.
enum Anomaly<'a> {
    /// A known record with additional words.
    Longer(Record<'a>),
    /// The first piece of a large blob.
    Start(LargeBlobStart<'a>),
    /// The next piece of one.
    Part(&'a [u8]),
    /// A record of a later version, or a piece of one.
    Unknown,
    /// A malformed record.
    Malformed(DecodeError),
}

impl<'a> Anomaly<'a> {
    fn of(decoded: Result<Record<'a>, DecodeError>, raw: RawRecord<'a>, payload_left: u64) -> Self {
        if raw.earlier > 0 {
            let left = usize::try_from(payload_left).unwrap_or(usize::MAX);
            return match left {
                0 => Self::Unknown,
                left => Self::Part(raw.bytes.get(..left).unwrap_or(raw.bytes)),
            };
        }
        if !raw.is_whole() {
            return match LargeBlobStart::decode(raw.bytes) {
                Ok(Some(start)) => Self::Start(start),
                Ok(None) => Self::Unknown,
                Err(error) => Self::Malformed(error),
            };
        }
        match decoded {
            Ok(record) if is_unknown(&record) => Self::Unknown,
            Ok(record) => Self::Longer(record),
            Err(error) => Self::Malformed(error),
        }
    }

    /// Whether damage may look like this.
    fn is_suspicious(&self) -> bool {
        !matches!(self, Self::Start(_) | Self::Part(_))
    }
}

/// Whether a record is of a later version.
#[inline]
fn is_unknown(record: &Record<'_>) -> bool {
    matches!(record, Record::Unknown { .. } | Record::Metadata(Metadata::Unknown))
}
