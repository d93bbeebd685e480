//! Splits bytes into records, in constant memory.
//!
//! The size in a record's header alone decides where the next one begins, regardless of its decoding. Words
//! that are all zero lie between records where a buffer was never written; they are skipped and counted. A
//! record that is cut off by the end of the input is never guessed at: its part is reported as leftover
//! bytes. After damage, reading continues at the next place that can be trusted.

use crate::compressed::Plain;
use crate::file_kind::{FileKind, SNIFFED_BYTES};
use crate::input::{Input, Slice, Stream};
use crate::resume::{self, JUDGED_BYTES, Search};
use std::cell::{Cell, LazyCell};
use std::io::{self, Read};
use trace_format::large::MAX_START_BYTES;
use trace_format::record::{MAX_RECORD_WORDS, RecordHeader};
use trace_format::units::{Offset, Words};

#[cfg(test)]
mod tests;

const HEADER_BYTES: usize = 8;
/// How many bytes of the input are available with each record, unless the input ends before.
const AHEAD_BYTES: usize = ORDINARY_BYTES + JUDGED_BYTES;
/// How far to search for damage that was not noticed at once.
const MAX_SEARCHED_BYTES: usize = 1 << 20;
/// How many places that are recognized by few bits are passed over in a search.
const MAX_PASSED_OVER: usize = 16;
/// Largest record of every type but the large one.
const ORDINARY_BYTES: usize = Words(MAX_RECORD_WORDS).bytes();

/// One record as it stands in the input, or a piece of one that is too large to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Where the record begins.
    pub offset: Offset,
    /// Its words, or those of this piece.
    pub bytes: &'a [u8],
    /// Size of the whole record.
    pub size: Words,
    /// Bytes of the record that came in earlier pieces.
    pub earlier: u64,
}

impl RawRecord<'_> {
    /// The first word; in a later piece it is no header.
    #[inline]
    #[must_use]
    pub fn header(&self) -> RecordHeader {
        RecordHeader(self.bytes.first_chunk::<HEADER_BYTES>().map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// All of it is there.
    #[inline]
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.bytes.len() == self.size.bytes()
    }
}

/// Why an input cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The input is something else.
    // prints: expected a Fuchsia trace, found a ZIP archive
    #[error("expected a Fuchsia trace, found {found}")]
    NoTrace {
        /// What its first bytes look like.
        found: FileKind,
    },
    /// A nonzero header has the size 0, so the next record cannot be found, and there is no later place where
    /// reading can be resumed.
    #[error("record at byte {offset}: expected a size of at least 1 word, found 0 in header {:#018x}", .header.0)]
    NoSize {
        /// Its position.
        offset: Offset,
        /// The header.
        header: RecordHeader,
    },
    /// The operating system refused, or compressed data is bad.
    #[error("cannot read at byte {offset}")]
    Io {
        /// Where reading stopped, in bytes of the trace itself.
        offset: Offset,
        /// What it says.
        source: io::Error,
    },
}

impl ReadError {
    /// The same error for another report. An error of the operating system keeps its kind and its text.
    #[must_use]
    pub fn repeated(&self) -> Self {
        match self {
            Self::NoTrace { found } => Self::NoTrace { found: *found },
            Self::NoSize { offset, header } => Self::NoSize { offset: *offset, header: *header },
            Self::Io { offset, source } => {
                Self::Io { offset: *offset, source: io::Error::new(source.kind(), source.to_string()) }
            }
        }
    }
}

/// What is left of a record that the end of the input cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where the record begins.
    pub offset: Offset,
    /// How many of its bytes are there.
    pub bytes: u64,
}

/// A damaged stretch that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where it begins.
    pub offset: Offset,
    /// How many bytes it has.
    pub bytes: u64,
}

/// The records of an input, one after the other.
#[derive(Debug)]
pub struct Records<I> {
    input: I,
    /// Place in the input of what is at hand.
    position: u64,
    /// Bytes of the record handed out last.
    taken: usize,
    max_piece_bytes: usize,
    /// A record of which there are pieces to come.
    large: Option<Large>,
    zero_words: u64,
    gap: Option<Gap>,
    leftover: Option<Leftover>,
    is_finished: bool,
    /// Up to this place of the input it is known that records follow each other.
    trusted_to: Cell<u64>,
    /// Reading goes on so many bytes behind the start of the record handed out last.
    resume_at: Cell<Option<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct Large {
    offset: Offset,
    size: Words,
    earlier: u64,
}

/// A record that was found; its bytes are at hand until the next one is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub offset: Offset,
    size: Words,
    earlier: u64,
    length: usize,
}

impl<'a> Records<Slice<'a>> {
    /// Splits bytes in memory, which are not copied.
    #[must_use]
    pub fn of_slice(bytes: &'a [u8]) -> Self {
        Self::of_input(Slice(bytes))
    }
}

/// Records of bytes in memory outlive the iteration. It ends at an error; see [`Records::next_record`].
impl<'a> Iterator for Records<Slice<'a>> {
    type Item = Result<RawRecord<'a>, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(Some(Found { offset, size, earlier, length })) => {
                let bytes = self.input.bytes().get(..length).unwrap_or_default();
                Some(Ok(RawRecord { offset, bytes, size, earlier }))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl<R: Read> Records<Stream<R>> {
    /// Splits a stream that begins with a record of any kind, such as the data of one provider.
    #[must_use]
    pub fn of_stream(input: R) -> Self {
        Self::of_input(Stream::new(input))
    }
}

impl<R: Read> Records<Stream<Plain<R>>> {
    /// Splits an archive, plain or compressed with gzip or zstd. Its magic number may be missing if a
    /// plausible record stands in its place.
    ///
    /// # Errors
    ///
    /// [`ReadError::NoTrace`], [`ReadError::Io`].
    pub fn archive(input: R) -> Result<Self, ReadError> {
        let open = Plain::open(input).map_err(|source| ReadError::Io { offset: Offset(0), source });
        let mut records = Self::of_input(Stream::new(open?.0));
        records.check_kind()?;
        Ok(records)
    }
}

impl<I: Input> Records<I> {
    fn of_input(input: I) -> Self {
        Self {
            input,
            position: 0,
            taken: 0,
            max_piece_bytes: MAX_START_BYTES,
            large: None,
            zero_words: 0,
            gap: None,
            leftover: None,
            is_finished: false,
            trusted_to: Cell::new(0),
            resume_at: Cell::new(None),
        }
    }

    /// Returns records of up to this many bytes whole and larger ones in pieces of this size, which bounds
    /// the memory; 1 MiB if not set. Ordinary records, up to 32 760 bytes, are always whole.
    #[must_use]
    pub fn with_max_piece_bytes(mut self, bytes: usize) -> Self {
        self.max_piece_bytes = (bytes & !7).max(ORDINARY_BYTES);
        self
    }

    /// Refuses input that is not a trace. Consumes nothing of it; call it before the first record.
    pub(crate) fn check_kind(&mut self) -> Result<(), ReadError> {
        self.input.fill(SNIFFED_BYTES);
        let start = self.input.at_hand();
        let found = FileKind::of(start.get(..SNIFFED_BYTES).unwrap_or(start));
        if matches!(found, FileKind::Trace | FileKind::TraceWithoutMagic) {
            return Ok(());
        }
        let offset = Offset(start.len() as u64);
        match self.input.take_error() {
            Some(source) => Err(ReadError::Io { offset, source }),
            None => Err(ReadError::NoTrace { found }),
        }
    }

    /// The next record, or the next piece of a large one; `None` at the end, and after an error.
    ///
    /// # Errors
    ///
    /// [`ReadError::NoSize`] if the next record cannot be found, [`ReadError::Io`].
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<RawRecord<'_>>, ReadError> {
        Ok(self.advance()?.map(|found| self.record(found)))
    }

    /// The bytes of the record found last.
    #[inline]
    pub(crate) fn record(&self, found: Found) -> RawRecord<'_> {
        let Found { offset, size, earlier, length } = found;
        RawRecord { offset, bytes: self.input.at_hand().get(..length).unwrap_or_default(), size, earlier }
    }

    /// Looks for the next record; [`Records::record`] then has it. Apart, so that a caller can do
    /// something in between that a borrowed record would forbid.
    //= docs/format.md#malformed-input
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<Found>, ReadError> {
        if let Some(distance) = self.resume_at.take() {
            self.taken = distance;
            self.large = None;
        }
        self.input.take(self.taken);
        self.position += self.taken as u64;
        self.taken = 0;
        if self.large.is_some() {
            return self.next_piece();
        }
        loop {
            self.input.fill(AHEAD_BYTES);
            let at_hand = self.input.at_hand();
            let Some(word) = at_hand.first_chunk::<HEADER_BYTES>() else {
                return self.end();
            };
            let header = RecordHeader(u64::from_le_bytes(*word));
            let size = header.size();
            let length = size.bytes();
            if length.wrapping_sub(1) < at_hand.len() && length <= ORDINARY_BYTES {
                self.taken = length;
                return Ok(Some(Found { offset: Offset(self.position), size, earlier: 0, length }));
            }
            if header.0 == 0 {
                self.skip(HEADER_BYTES);
                self.zero_words += 1;
                continue;
            }
            match self.unusual(header)? {
                Unusual::Record(found) => return Ok(Some(found)),
                Unusual::Resumed => {}
                Unusual::End => return Ok(None),
            }
        }
    }

    /// A record that is large, that the end cuts off, or that has no size.
    #[cold]
    fn unusual(&mut self, header: RecordHeader) -> Result<Unusual, ReadError> {
        let (offset, size) = (Offset(self.position), header.size());
        let length = size.bytes();
        if length > 0 {
            let wanted = length.min(self.max_piece_bytes);
            self.input.fill(wanted + AHEAD_BYTES);
            if self.input.at_hand().len() >= wanted {
                self.taken = wanted;
                if length > wanted {
                    self.large = Some(Large { offset, size, earlier: wanted as u64 });
                }
                return Ok(Unusual::Record(Found { offset, size, earlier: 0, length: wanted }));
            }
        }
        if self.is_finished {
            return Ok(Unusual::End);
        }
        if self.resume() {
            self.gap = Some(Gap { offset, bytes: self.position - offset.0 });
            return Ok(Unusual::Resumed);
        }
        self.is_finished = true;
        if let Some(source) = self.input.take_error() {
            return Err(ReadError::Io { offset: Offset(self.position), source });
        }
        if length == 0 {
            return Err(ReadError::NoSize { offset, header });
        }
        self.leftover = Some(Leftover { offset, bytes: self.position - offset.0 });
        Ok(Unusual::End)
    }

    /// Goes to the next place where reading can be resumed; to the end if there is none.
    fn resume(&mut self) -> bool {
        let mut from = HEADER_BYTES;
        loop {
            self.input.fill(from + JUDGED_BYTES);
            let is_end = self.input.is_at_end();
            match resume::search(self.input.at_hand(), from, is_end) {
                Search::Found(place) => {
                    self.skip(place);
                    return true;
                }
                Search::Unknown(place) if is_end => {
                    self.skip(self.input.at_hand().len().max(place));
                    return false;
                }
                Search::Unknown(place) => {
                    // Whole words, so that what stood at the start of a word still does.
                    let whole = place & !7;
                    self.skip(whole);
                    from = place - whole;
                }
            }
        }
    }

    /// The next piece of a record that is larger than a piece.
    #[cold]
    fn next_piece(&mut self) -> Result<Option<Found>, ReadError> {
        let Some(Large { offset, size, earlier }) = self.large else { return Ok(None) };
        let left = size.bytes() as u64 - earlier;
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(self.max_piece_bytes);
        self.input.fill(wanted + AHEAD_BYTES);
        let length = self.input.at_hand().len().min(wanted);
        if length < wanted {
            self.skip(length);
            self.large = None;
            self.is_finished = true;
            if let Some(source) = self.input.take_error() {
                return Err(ReadError::Io { offset: Offset(self.position), source });
            }
            self.leftover = Some(Leftover { offset, bytes: earlier + length as u64 });
            return Ok(None);
        }
        self.taken = length;
        let next = Large { offset, size, earlier: earlier + length as u64 };
        self.large = (left > length as u64).then_some(next);
        Ok(Some(Found { offset, size, earlier, length }))
    }

    #[cold]
    fn end(&mut self) -> Result<Option<Found>, ReadError> {
        if std::mem::replace(&mut self.is_finished, true) {
            return Ok(None);
        }
        let bytes = self.input.at_hand().len();
        let offset = Offset(self.position);
        self.skip(bytes);
        if let Some(source) = self.input.take_error() {
            return Err(ReadError::Io { offset: Offset(self.position), source });
        }
        self.leftover = (bytes > 0).then_some(Leftover { offset, bytes: bytes as u64 });
        Ok(None)
    }

    #[inline]
    fn skip(&mut self, bytes: usize) {
        self.input.take(bytes);
        self.position += bytes as u64;
    }

    /// Whether a record that looks wrong is damage after which the position is lost. It is if a place where
    /// reading could be resumed follows, and going from record to record from here leads past it. The next
    /// record is then the one at that place; the result says how many bytes are skipped. What only looks like
    /// a place, such as a timestamp inside a record, is passed over if sound records follow from here.
    //= docs/format.md#damage
    pub(crate) fn leave_damaged(&self, found: Found) -> Option<u64> {
        let place = found.offset.0 + found.earlier;
        if place + found.length as u64 <= self.trusted_to.get() {
            return None;
        }
        let from = if found.earlier > 0 { 0 } else { HEADER_BYTES };
        let at_hand = self.input.at_hand();
        let window = at_hand.get(..MAX_SEARCHED_BYTES).unwrap_or(at_hand);
        let is_end = self.input.is_at_end() && window.len() == at_hand.len();
        let rest = usize::try_from(found.size.bytes() as u64 - found.earlier).unwrap_or(usize::MAX);
        let goes_on = LazyCell::new(|| resume::goes_on(window, rest, is_end));
        // The places so far that were passed over.
        let (mut first, mut count) = (None, 0);
        let mut from = from;
        let end = loop {
            match resume::search(window, from, is_end) {
                Search::Found(distance) if resume::leads_to(window, rest, distance) => break distance,
                Search::Found(distance)
                    if (distance >= rest || !distance.is_multiple_of(HEADER_BYTES)) && *goes_on =>
                {
                    first.get_or_insert(distance);
                    (from, count) = (distance + 1, count + 1);
                    if count == MAX_PASSED_OVER {
                        break distance;
                    }
                }
                Search::Found(distance) => {
                    self.resume_at.set(Some(distance));
                    return Some(distance as u64);
                }
                Search::Unknown(distance) => break distance,
            }
        };
        // A wrong record behind a place that was passed over is looked at anew.
        self.trusted_to.set(place + first.unwrap_or(end) as u64);
        None
    }
}

enum Unusual {
    Record(Found),
    Resumed,
    End,
}

impl<I> Records<I> {
    /// The stretch that was skipped for damage before the record handed out last, once.
    pub fn take_gap(&mut self) -> Option<Gap> {
        self.gap.take()
    }

    /// As [`Records::leftover`], once.
    pub(crate) fn take_leftover(&mut self) -> Option<Leftover> {
        self.leftover.take()
    }

    /// Behind the record handed out last.
    #[must_use]
    pub const fn position(&self) -> Offset {
        Offset(self.position + self.taken as u64)
    }

    /// Zero words skipped so far.
    #[must_use]
    pub const fn zero_words(&self) -> u64 {
        self.zero_words
    }

    /// Bytes behind the last whole record.
    #[must_use]
    pub fn leftover_bytes(&self) -> u64 {
        self.leftover.map_or(0, |leftover| leftover.bytes)
    }

    /// At the end: what is left of a record that is cut off.
    #[must_use]
    pub const fn leftover(&self) -> Option<Leftover> {
        self.leftover
    }
}
