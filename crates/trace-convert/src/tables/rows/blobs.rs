//! Rows of blobs: a large one comes in pieces.

use super::{Filler, Whose, integer};
use crate::tables::{Cell, Kind, Rows, blobs};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io;
use trace_format::blob::{TYPE_DATA, TYPE_LAST_BRANCH, TYPE_PERFETTO};
use trace_format::units::ProviderId;
use trace_reader::{Names, Text, Thread, Time};

/// Longest content that is kept, in bytes; of a longer one there is the size alone.
const MAX_CONTENT_BYTES: u64 = 32 << 20;

/// A large blob that is not complete.
pub struct Unfinished {
    event: Option<(u64, Thread)>,
    provider: ProviderId,
    category: String,
    name: String,
    size: u64,
    /// What there is of the content; none if it is not wanted or too long.
    content: Option<Vec<u8>>,
    missing: u64,
}

/// What is the same of all blobs.
struct Blob<'a> {
    event: Option<(u64, Thread)>,
    provider: ProviderId,
    category: Option<&'a str>,
    name: &'a str,
    blob_type: Cell<'a>,
    size: u64,
    content: Option<&'a [u8]>,
}

fn type_text(blob_type: u8) -> Cell<'static> {
    match blob_type {
        TYPE_DATA => Cell::Text("data"),
        TYPE_LAST_BRANCH => Cell::Text("last branch"),
        TYPE_PERFETTO => Cell::Text("perfetto"),
        _ => Cell::Null,
    }
}

impl<R: Rows> Filler<'_, R> {
    /// A blob of one record.
    //= docs/tables.md#blobs
    pub(super) fn blob(
        &mut self,
        provider: ProviderId,
        name: Text<'_>,
        blob_type: u8,
        payload: &[u8],
        names: &Names,
    ) -> io::Result<()> {
        let name = &*name.to_str();
        let (blob_type, size, content) = (type_text(blob_type), payload.len() as u64, Some(payload));
        let blob = Blob { event: None, provider, category: None, name, blob_type, size, content };
        self.blob_row(&blob, Some(names))
    }

    /// A large blob, or the first piece of one.
    pub(super) fn large_blob(
        &mut self,
        provider: ProviderId,
        [category, name]: [Text<'_>; 2],
        event: Option<(Time, Thread)>,
        payload: &[u8],
        size: u64,
        names: &Names,
    ) -> io::Result<()> {
        self.end_large_blob(Some(names))?;
        let has_content = self.wanted.has_column(Kind::Blobs, blobs::CONTENT) && size <= MAX_CONTENT_BYTES;
        let event = event.map(|(time, thread)| (time.nanos().0, thread));
        if let Some((_, thread)) = event {
            self.number(thread);
        }
        self.large = Some(Unfinished {
            event,
            provider,
            category: category.to_str().into_owned(),
            name: name.to_str().into_owned(),
            size,
            content: has_content.then(Vec::new),
            missing: size,
        });
        self.large_blob_part(payload, names)
    }

    /// The next piece of a large blob.
    pub(super) fn large_blob_part(&mut self, payload: &[u8], names: &Names) -> io::Result<()> {
        let Some(large) = &mut self.large else { return Ok(()) };
        large.missing = large.missing.saturating_sub(payload.len() as u64);
        if let Some(content) = &mut large.content {
            content.extend_from_slice(payload);
        }
        if large.missing == 0 { self.end_large_blob(Some(names)) } else { Ok(()) }
    }

    /// No further piece comes; at the end of the trace there are no names. The content of a blob that lacks
    /// some is not in its row.
    pub(super) fn end_large_blob(&mut self, names: Option<&Names>) -> io::Result<()> {
        let Some(large) = self.large.take() else { return Ok(()) };
        let Unfinished { event, provider, category, name, size, content, missing } = large;
        let content = content.as_deref().filter(|_| missing == 0);
        let (category, name) = (Some(&*category), &*name);
        let blob_type = Cell::Text("large");
        self.blob_row(&Blob { event, provider, category, name, blob_type, size, content }, names)
    }

    fn blob_row(&mut self, blob: &Blob<'_>, names: Option<&Names>) -> io::Result<()> {
        if !self.wanted.has(Kind::Blobs) {
            return Ok(());
        }
        let is_wanted = self.wanted.has_column(Kind::Blobs, blobs::CONTENT);
        let short = |content: &&[u8]| is_wanted && content.len() as u64 <= MAX_CONTENT_BYTES;
        let content = blob.content.filter(short).map(|content| STANDARD.encode(content));
        let whose = blob.event.map(|(_, thread)| match names {
            Some(names) => self.whose(Kind::Blobs, thread, names),
            None => Whose::unnamed(thread),
        });
        let [pid, tid, process, thread] = whose.as_ref().map_or([Cell::Null; 4], |whose| whose.cells());
        let at = blob.event.map(|(at, _)| at);
        let cells = [
            at.map_or(Cell::Null, integer),
            pid,
            tid,
            process,
            thread,
            Cell::Integer(blob.provider.0.into()),
            Cell::from(blob.category),
            Cell::Text(blob.name),
            blob.blob_type,
            integer(blob.size),
            Cell::from(content.as_deref()),
            at.map_or(Cell::Null, |at| self.utc(at)),
        ];
        self.rows.row(Kind::Blobs, &cells)
    }
}
