//! The bytes of records that are encoded.

use trace_format::argument::{Argument, ArgumentValue, Arguments, MAX_ARGUMENTS};
use trace_format::event::Event;
use trace_format::further;
use trace_format::record::MAX_RECORD_WORDS;
use trace_format::refs::{MAX_STRING_BYTES, StringRef};
use trace_format::sink::Sink;
use trace_format::units::Words;
use trace_linux::inline;

/// Encoded records that are not written yet.
pub(crate) struct Bytes(pub Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

impl Bytes {
    /// Encodes an event with these arguments. Those for which its record has no room are in blobs before it,
    /// whose
    /// number is the result. None if the event is too large without any.
    //= docs/format.md#further-arguments
    #[inline]
    pub fn event<'a>(&mut self, event: Event<'a>, arguments: &[Argument<'a>]) -> Option<u64> {
        let start = self.0.len();
        let whole = Event { arguments: Arguments::from_slice(arguments), ..event };
        if whole.encode(self).is_ok() {
            return Some(0);
        }
        self.0.truncate(start);
        self.parted_event(event, arguments).or_else(|| {
            self.0.truncate(start);
            None
        })
    }

    #[cold]
    fn parted_event<'a>(&mut self, event: Event<'a>, arguments: &[Argument<'a>]) -> Option<u64> {
        let mut size = event.words();
        // Importers may add a word.
        let fits = arguments.iter().take(MAX_ARGUMENTS).take_while(|argument| {
            size = size.plus(argument.words());
            has_room(argument) && size < Words(MAX_RECORD_WORDS)
        });
        let (own, others) = arguments.split_at(fits.count());
        let mut pieces = Self(Vec::new());
        for argument in others {
            let name = if let StringRef::Inline(name) = argument.name { inline(name) } else { argument.name };
            further::write(&Argument { name, ..*argument }, &mut pieces);
        }
        let mut blobs = 0;
        let total = pieces.0.len() as u64;
        for (piece, number) in pieces.0.chunks(further::MAX_PIECE_BYTES).zip(0..) {
            let head = further::head(total, number * further::MAX_PIECE_BYTES as u64);
            let payload = [head.as_slice(), piece].concat();
            further::blob(&payload).encode(self).ok()?;
            blobs += 1;
        }
        Event { arguments: Arguments::from_slice(own), ..event }.encode(self).ok()?;
        Some(blobs)
    }
}

/// Whether a record can have an argument.
fn has_room(argument: &Argument<'_>) -> bool {
    let is_short =
        |text: &StringRef<'_>| !matches!(text, StringRef::Inline(text) if text.len() > MAX_STRING_BYTES);
    is_short(&argument.name)
        && match &argument.value {
            ArgumentValue::String(text) => is_short(text),
            _ => true,
        }
}

/// The first bytes of a record among encoded ones that is no blob: where an event with blobs before it
/// begins.
pub(crate) fn behind_blobs(mut records: &mut [u8]) -> &mut [u8] {
    use trace_format::record::{RecordHeader, RecordType};

    while let Some(header) = records.first_chunk().map(|word| RecordHeader(u64::from_le_bytes(*word))) {
        let length = header.size().bytes();
        if header.record_type() != Some(RecordType::Blob) || length == 0 || length >= records.len() {
            break;
        }
        records = &mut records[length..];
    }
    records
}
