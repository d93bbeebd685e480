//! Recognizes recordings of other tools by their first bytes, so that an error says what they are and which
//! tool makes something readable of them.
//= docs/import.md#what-is-no-trace

/// A format that is not imported.
struct OtherFormat {
    /// What its files begin with.
    signature: &'static [u8],
    /// What it is, with the tool that converts or unpacks it.
    found: &'static str,
}

const fn other(signature: &'static [u8], found: &'static str) -> OtherFormat {
    OtherFormat { signature, found }
}

const OTHERS: [OtherFormat; 20] = [
    other(
        b"\x17\x08\x44tracing",
        "a recording of trace-cmd (trace.dat); `trace-cmd report` makes text of it that is read",
    ),
    other(b"PERFILE2", "a recording of Linux perf (perf.data), which `perf script` prints"),
    other(
        b"Nettrace",
        "a recording of .NET (.nettrace); `dotnet-trace convert --format Chromium` makes JSON of it",
    ),
    other(b"FLR\0", "a recording of Java's Flight Recorder (.jfr), which `jfr print` prints"),
    other(b"Ftrace!\0", "a recording of uftrace; `uftrace dump --chrome` makes JSON of it"),
    other(b"go 1.", "a trace of Go's runtime, which `go tool trace` shows"),
    other(b"\xc1\x1f\xfc\xc1", "a stream of the Common Trace Format (LTTng), which `babeltrace2` prints"),
    other(b"\x75\xd1\x1d\xc1", "metadata of the Common Trace Format (LTTng), which `babeltrace2` prints"),
    other(b"/* CTF 1.8", "metadata of the Common Trace Format (LTTng), which `babeltrace2` prints"),
    other(b"tr\xfdP", "a trace of Tracy; `tracy-csvexport` makes tables of it"),
    other(b"# callgrind format", "a profile of Callgrind, which `callgrind_annotate` prints"),
    other(b"SQLite format 3\0", "a database of SQLite"),
    other(b"\xd4\xc3\xb2\xa1", "a capture of network packets (pcap)"),
    other(b"\xa1\xb2\xc3\xd4", "a capture of network packets (pcap)"),
    other(b"\x0a\x0d\x0d\x0a", "a capture of network packets (pcapng)"),
    other(b"\xfd7zXZ\0", "xz data; `xz -d` unpacks it"),
    other(b"BZh", "bzip2 data; `bzip2 -d` unpacks it"),
    other(b"\x04\x22\x4d\x18", "lz4 data; `lz4 -d` unpacks it"),
    other(b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive; `7z x` unpacks it"),
    other(b"Rar!\x1a\x07", "a RAR archive; `unrar x` unpacks it"),
];

/// The name of a logger in a recording of Windows is behind these, in UTF-16.
const ETL_HEADER_BYTES: usize = 72;

/// What a file is that begins like this, if it is a known format that is not imported.
#[must_use]
pub fn other_format(start: &[u8]) -> Option<&'static str> {
    let known = OTHERS.iter().find(|other| start.starts_with(other.signature)).map(|other| other.found);
    known.or_else(|| {
        is_etl(start).then_some("a recording of Windows (.etl), which `tracerpt` and PerfView read")
    })
}

/// Recordings of Windows have no signature. They begin with the header of a buffer: the buffer's size, a
/// multiple of a KiB, and the used part of it. The header of a system event follows, whose marker has the
/// version 2 and two fixed bits.
fn is_etl(start: &[u8]) -> bool {
    let word = |at: usize| Some(u32::from_le_bytes(start.get(at..at + 4)?.try_into().ok()?));
    let (Some(size), Some(saved), Some(marker)) = (word(0), word(4), word(ETL_HEADER_BYTES)) else {
        return false;
    };
    let is_buffer = (1 << 10..=16 << 20).contains(&size) && size % (1 << 10) == 0;
    is_buffer
        && (ETL_HEADER_BYTES as u32..=size).contains(&saved)
        && marker >> 30 == 3
        && marker & 0xffff == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Format;

    //= docs/import.md#what-is-no-trace
    #[test]
    fn recordings_of_other_tools_are_named() {
        for other in &OTHERS {
            let file = [other.signature, &[0; 100]].concat();
            assert_eq!(other_format(&file), Some(other.found));
            assert_eq!(Format::of(&file, true), None, "{}", other.found);
        }
        for none in [&b""[..], b"go", b"[]", b"TRACE:\n", b"\x10\x00\x04\x46\x78\x54\x16\x00"] {
            assert_eq!(other_format(none), None, "{none:?}");
        }
        let mut etl = [0; 200];
        etl[..4].copy_from_slice(&0x1_0000_u32.to_le_bytes());
        etl[4..8].copy_from_slice(&0x1_0000_u32.to_le_bytes());
        etl[72..76].copy_from_slice(&0xc001_0002_u32.to_le_bytes());
        let found = "a recording of Windows (.etl), which `tracerpt` and PerfView read";
        assert_eq!(other_format(&etl), Some(found));
        etl[72] = 1;
        assert_eq!(other_format(&etl), None);
    }
}
