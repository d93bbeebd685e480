//! The contents of an imported archive.

use trace_reader::Reader;
use trace_reader::dump::Line;

/// The records of an archive as text, without places, definitions and the head.
pub(super) fn lines(archive: &[u8]) -> Vec<String> {
    let mut reader = Reader::of_slice(archive).unwrap();
    let mut lines = Vec::new();
    while let Some(record) = reader.next_item().unwrap() {
        let line = Line(&record).to_string();
        let rest = line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
        lines.push(rest);
    }
    assert_eq!(reader.warnings().count(), 0, "{lines:?}");
    lines.retain(|line| {
        !["- magic", "- initialization", "- string", "- provider"].iter().any(|head| line.starts_with(head))
    });
    lines
}
