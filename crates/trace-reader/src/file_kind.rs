//! Recognizes a file's format by its first bytes, so that an unsupported one is refused by name.

use core::fmt;
use trace_format::metadata::MAGIC_WORD;
use trace_format::record::{RecordHeader, RecordType};
use trace_format::units::Words;

/// How many bytes are examined.
pub(crate) const SNIFFED_BYTES: usize = 64;

/// The kind of a file, judged by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A Fuchsia trace with its magic number, or the first bytes of one.
    Trace,
    /// A Fuchsia trace without magic number: an old archive, or the data of one provider.
    TraceWithoutMagic,
    /// A Fuchsia trace with the bytes of each word reversed, which no reader reads.
    ReversedTrace,
    /// Nothing at all.
    Empty,
    /// Compressed with gzip.
    Gzip,
    /// Compressed with zstd.
    Zstd,
    /// Compressed with xz.
    Xz,
    /// A ZIP archive.
    Zip,
    /// A program or library.
    Elf,
    /// Recorded with Linux perf.
    PerfData,
    /// A Perfetto trace.
    Perfetto,
    /// JSON, such as a Chromium or Catapult trace.
    Json,
    /// Text from the kernel's ftrace.
    FtraceText,
    /// A page of HTML or XML.
    Markup,
    /// Some other text.
    Text,
    /// None of these.
    Unknown {
        /// The first bytes, as many as there are.
        first: [u8; 8],
    },
}

impl FileKind {
    /// Examines the first bytes of a file, ideally 64.
    #[must_use]
    pub fn of(start: &[u8]) -> Self {
        const SIGNATURES: [(&[u8], FileKind); 8] = [
            (&MAGIC_WORD.to_be_bytes(), FileKind::ReversedTrace),
            (&[0x1f, 0x8b], FileKind::Gzip),
            (&[0x28, 0xb5, 0x2f, 0xfd], FileKind::Zstd),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], FileKind::Xz),
            (b"PK\x03\x04", FileKind::Zip),
            (b"\x7fELF", FileKind::Elf),
            (b"PERFILE2", FileKind::PerfData),
            (b"# tracer:", FileKind::FtraceText),
        ];

        if start.is_empty() {
            return Self::Empty;
        }
        let magic = MAGIC_WORD.to_le_bytes();
        if start.starts_with(&magic) || magic.starts_with(start) {
            return Self::Trace;
        }
        // A frame that is skipped may come first, as `pzstd` writes it.
        if matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
            return Self::Zstd;
        }
        if let Some((_, kind)) = SIGNATURES.iter().find(|(signature, _)| start.starts_with(signature)) {
            return *kind;
        }
        if let Some(kind) = text_kind(start) {
            return kind;
        }
        let first = start.first_chunk::<8>().copied();
        if first.is_some_and(|word| begins_a_trace(u64::from_le_bytes(word))) {
            return Self::TraceWithoutMagic;
        }
        // A sequence of packets, each with the tag of field 1, a message; its first field cannot be 0.
        if let [0x0a, length, ..] = start
            && *length > 1
        {
            return Self::Perfetto;
        }
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(start).for_each(|(to, from)| *to = *from);
        Self::Unknown { first: bytes }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trace => "a Fuchsia trace",
            Self::TraceWithoutMagic => "a Fuchsia trace without magic number",
            Self::ReversedTrace => "a Fuchsia trace in reversed byte order",
            Self::Empty => "an empty file",
            Self::Gzip => "gzip data",
            Self::Zstd => "zstd data",
            Self::Xz => "xz data",
            Self::Zip => "a ZIP archive",
            Self::Elf => "an ELF program or library",
            Self::PerfData => "a recording of Linux perf",
            Self::Perfetto => "what looks like a Perfetto trace",
            Self::Json => "what looks like JSON",
            Self::FtraceText => "ftrace text",
            Self::Markup => "what looks like HTML or XML",
            Self::Text => "text",
            Self::Unknown { first } => {
                f.write_str("unknown data that begins with")?;
                return first.iter().try_for_each(|byte| write!(f, " {byte:02x}"));
            }
        })
    }
}

fn text_kind(start: &[u8]) -> Option<FileKind> {
    // The last character may be cut.
    let text = match core::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            core::str::from_utf8(start.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    if text.chars().any(|char| char.is_control() && !char.is_ascii_whitespace()) {
        return None;
    }
    Some(match text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).chars().next() {
        Some('{' | '[') => FileKind::Json,
        Some('<') => FileKind::Markup,
        _ => FileKind::Text,
    })
}

/// Whether the word is the header of a record that provider data or an old archive begins with, with zeros in
/// all reserved bits.
fn begins_a_trace(word: u64) -> bool {
    let header = RecordHeader(word);
    let size = header.size();
    let stream = |bytes: u64| Words::for_bytes(bytes as usize).plus(Words(1));
    match header.record_type() {
        Some(RecordType::Metadata) => match (word >> 16) & 0xf {
            1 => word >> 60 == 0 && size == stream((word >> 52) & 0xff),
            2 => word >> 52 == 0 && size == Words(1),
            _ => false,
        },
        Some(RecordType::Initialization) => word >> 16 == 0 && (2..=4).contains(&size.0),
        Some(RecordType::String) => {
            let (index, length) = ((word >> 16) & 0xffff, word >> 32);
            (1..=0x7fff).contains(&index) && length <= 0x7fff && size == stream(length)
        }
        Some(RecordType::Thread) => size == Words(3) && (1..=0xff).contains(&(word >> 16)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_distinguished() {
        let kinds: [(&[u8], FileKind); 23] = [
            (b"", FileKind::Empty),
            (&[0x10], FileKind::Trace),
            (&[0x10, 0, 4, 0x46, 0x78, 0x54, 0x16], FileKind::Trace),
            (&[0x10, 0, 4, 0x46, 0x78, 0x54, 0x16, 0, 1, 2], FileKind::Trace),
            (&[0, 0x16, 0x54, 0x78, 0x46, 4, 0, 0x10], FileKind::ReversedTrace),
            (&[0x1f, 0x8b, 8, 0], FileKind::Gzip),
            (&[0x28, 0xb5, 0x2f, 0xfd, 4], FileKind::Zstd),
            (&[0x5f, 0x2a, 0x4d, 0x18, 4], FileKind::Zstd),
            (b"\xfd7zXZ\0\0", FileKind::Xz),
            (b"PK\x03\x04rest", FileKind::Zip),
            (b"\x7fELF\x02\x01", FileKind::Elf),
            (b"PERFILE2\x68", FileKind::PerfData),
            (b"# tracer: nop\n#", FileKind::FtraceText),
            (b" \n[{\"ph\":\"X\"", FileKind::Json),
            (b"{\"traceEvents\":[]}", FileKind::Json),
            (b"<!doctype html>", FileKind::Markup),
            (b"hello\n", FileKind::Text),
            ("gr\u{fc}n \u{20ac}".as_bytes().split_last().unwrap().1, FileKind::Text),
            (&[0x0a, 0x4c, 0x08, 0x01, 0x80, 0x80, 0, 0], FileKind::Perfetto),
            (&[0x21, 0, 0, 0, 0, 0, 0, 0], FileKind::TraceWithoutMagic),
            (&[0x33, 0, 1, 0, 0, 0, 0, 0], FileKind::TraceWithoutMagic),
            (&[0x20, 0, 0x11, 0, 0, 0, 0x40, 0], FileKind::TraceWithoutMagic),
            (&[1, 2, 3, 0xff], FileKind::Unknown { first: [1, 2, 3, 0xff, 0, 0, 0, 0] }),
        ];
        for (bytes, kind) in kinds {
            assert_eq!(FileKind::of(bytes), kind, "{bytes:02x?}");
        }
    }

    #[test]
    fn headers_with_stray_bits_begin_no_trace() {
        for word in [0x21_0001_0000_0021, 0x0000_0000_0000_0011, 0x1000_0000_0011_0020, 0x0000_0000_0000_0033]
        {
            assert!(!begins_a_trace(word), "{word:#x}");
        }
    }

    #[test]
    fn display_names_the_bytes() {
        let kind = FileKind::of(&[1, 2, 3, 0xff]);
        assert_eq!(kind.to_string(), "unknown data that begins with 01 02 03 ff 00 00 00 00");
    }
}
