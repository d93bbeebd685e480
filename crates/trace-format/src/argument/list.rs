//! The arguments of one record: given by a writer, or still encoded as a reader found them.

use super::{Argument, ArgumentHeader};
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::sink::Sink;
use crate::units::Words;

/// Most arguments of a record.
pub const MAX_ARGUMENTS: usize = 15;

/// The arguments of a record, in order.
///
/// A writer makes them from a slice. Decoding a record makes them from the record's bytes, checks every one
/// and copies none. Encoding decoded arguments copies them as they are, unknown types included.
#[derive(Clone, Copy, Default)]
pub struct Arguments<'a> {
    source: Source<'a>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Given(&'a [Argument<'a>]),
    /// Exactly the words of `count` arguments, each of which has been judged once.
    Encoded {
        bytes: &'a [u8],
        count: usize,
    },
}

impl Default for Source<'_> {
    fn default() -> Self {
        Self::Given(&[])
    }
}

impl<'a> Arguments<'a> {
    /// Arguments to be written. More than [`MAX_ARGUMENTS`] do not compile:
    ///
    /// ```compile_fail,E0080
    /// use trace_format::argument::{Argument, ArgumentValue, Arguments};
    /// use trace_format::refs::StringRef;
    ///
    /// let argument = Argument { name: StringRef::inline("n"), value: ArgumentValue::Null };
    /// let _ = Arguments::new(&[argument; 16]);
    /// ```
    ///
    /// ```
    /// # use trace_format::argument::{Argument, ArgumentValue, Arguments};
    /// # use trace_format::refs::StringRef;
    /// # let argument = Argument { name: StringRef::inline("n"), value: ArgumentValue::Null };
    /// assert_eq!(Arguments::new(&[argument; 15]).len(), 15);
    /// ```
    //= docs/format.md#limits
    #[inline]
    #[must_use]
    pub const fn new<const N: usize>(arguments: &'a [Argument<'a>; N]) -> Self {
        const { assert!(N <= MAX_ARGUMENTS, "a record has at most 15 arguments") }
        Self::from_slice(arguments)
    }

    /// Arguments to be written, of any number; encoding refuses more than [`MAX_ARGUMENTS`].
    #[inline]
    #[must_use]
    pub const fn from_slice(arguments: &'a [Argument<'a>]) -> Self {
        Self { source: Source::Given(arguments) }
    }

    /// The number of arguments.
    #[must_use]
    #[inline(always)]
    pub const fn len(&self) -> usize {
        match self.source {
            Source::Given(arguments) => arguments.len(),
            Source::Encoded { count, .. } => count,
        }
    }

    /// Whether there are no arguments.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of all arguments.
    #[must_use]
    #[inline(always)]
    pub const fn words(&self) -> Words {
        match self.source {
            Source::Given(mut arguments) => {
                let mut sum = Words(0);
                while let Some((first, rest)) = arguments.split_first() {
                    sum = sum.plus(first.words());
                    arguments = rest;
                }
                sum
            }
            Source::Encoded { bytes, .. } => Words::for_bytes(bytes.len()),
        }
    }

    /// The arguments one after the other. Those of a decoded record are all `Ok`.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> ArgumentsIter<'a> {
        ArgumentsIter {
            source: match self.source {
                Source::Given(arguments) => Rest::Given(arguments.iter()),
                Source::Encoded { bytes, count } => Rest::Encoded { cursor: Cursor::new(bytes), count },
            },
        }
    }

    /// The headers of the arguments, without their names and values.
    #[inline]
    pub fn headers(&self) -> impl Iterator<Item = ArgumentHeader> + use<'a> {
        let (mut given, mut encoded, count) = match self.source {
            Source::Given(arguments) => (arguments.iter(), &[][..], arguments.len()),
            Source::Encoded { bytes, count } => ([].iter(), bytes, count),
        };
        (0..count).map_while(move |_| {
            if let Some(argument) = given.next() {
                return Some(argument.header());
            }
            let header = ArgumentHeader(u64::from_le_bytes(*encoded.first_chunk()?));
            encoded = encoded.get(header.size().bytes()..)?;
            Some(header)
        })
    }

    /// Takes `count` arguments and decodes each to check it.
    //= docs/format.md#malformed-input
    #[inline]
    pub(crate) fn decode(count: u64, cursor: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let mut ahead = *cursor;
        for _ in 0..count {
            Argument::decode(&mut ahead)?;
        }
        let length = cursor.rest().len() - ahead.rest().len();
        let bytes = cursor.words(Words::for_bytes(length), "arguments")?;
        Ok(Self { source: Source::Encoded { bytes, count: count as usize } })
    }

    /// The first `count` arguments of these bytes, each of which is checked.
    ///
    /// # Errors
    ///
    /// Those of decoding a record with these arguments.
    pub fn of_bytes(bytes: &'a [u8], count: usize) -> Result<Self, DecodeError> {
        Self::decode(count as u64, &mut Cursor::new(bytes))
    }

    /// The arguments of a record whose bytes have been judged already.
    #[inline(always)]
    pub(crate) const fn encoded(bytes: &'a [u8], count: usize) -> Self {
        Self { source: Source::Encoded { bytes, count } }
    }

    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), EncodeError> {
        if self.len() > MAX_ARGUMENTS {
            return Err(EncodeError::TooManyArguments { limit: MAX_ARGUMENTS, found: self.len() });
        }
        match self.source {
            Source::Given(arguments) => arguments.iter().try_for_each(Argument::check),
            Source::Encoded { .. } => Ok(()),
        }
    }

    #[inline(always)]
    pub(crate) fn write(&self, sink: &mut impl Sink) {
        match self.source {
            Source::Given(arguments) => arguments.iter().for_each(|argument| argument.write(sink)),
            Source::Encoded { bytes, .. } => sink.bytes(bytes),
        }
    }
}

impl<'a> From<&'a [Argument<'a>]> for Arguments<'a> {
    #[inline]
    fn from(arguments: &'a [Argument<'a>]) -> Self {
        Self::from_slice(arguments)
    }
}

/// Arguments are equal if they decode to the same names and values.
impl PartialEq for Arguments<'_> {
    fn eq(&self, other: &Arguments<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl core::fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter().flatten()).finish()
    }
}

impl<'a> IntoIterator for Arguments<'a> {
    type Item = Result<Argument<'a>, DecodeError>;
    type IntoIter = ArgumentsIter<'a>;

    #[inline]
    fn into_iter(self) -> ArgumentsIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Arguments<'a> {
    type Item = Result<Argument<'a>, DecodeError>;
    type IntoIter = ArgumentsIter<'a>;

    #[inline]
    fn into_iter(self) -> ArgumentsIter<'a> {
        self.iter()
    }
}

/// Iterates over [`Arguments`]; ends after an error.
#[derive(Clone, Debug)]
pub struct ArgumentsIter<'a> {
    source: Rest<'a>,
}

#[derive(Clone, Debug)]
enum Rest<'a> {
    Given(core::slice::Iter<'a, Argument<'a>>),
    Encoded { cursor: Cursor<'a>, count: usize },
}

impl<'a> Iterator for ArgumentsIter<'a> {
    type Item = Result<Argument<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Rest::Given(arguments) => arguments.next().map(|argument| Ok(*argument)),
            Rest::Encoded { cursor, count } => {
                *count = count.checked_sub(1)?;
                if let Some((argument, rest)) = Argument::of_common(cursor.rest()) {
                    *cursor = Cursor::new(rest);
                    return Some(Ok(argument));
                }
                let argument = Argument::decode(cursor);
                if argument.is_err() {
                    *count = 0;
                }
                Some(argument)
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.source {
            Rest::Given(arguments) => arguments.len(),
            Rest::Encoded { count, .. } => *count,
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for ArgumentsIter<'_> {}

impl core::iter::FusedIterator for ArgumentsIter<'_> {}
