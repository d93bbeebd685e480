//! The durable region: records that are kept whatever happens to the events.
//!
//! An allocation is announced by a placeholder of its full size before any payload, and its real header
//! comes last. So a thread that is killed half-way leaves zeros or a placeholder, and hides nothing that
//! follows.

use crate::buffer::record_writer::RecordWriter;
use crate::buffer::{Buffer, next_generation};
use crate::sync::{Ordering, fence};
use trace_format::blob;
#[cfg(not(modelled))]
use trace_format::record::{Record, RecordHeader, RecordType};
use trace_format::slab::LossReason;

/// The durable region has no room for another definition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DurableFull;

/// Blob type of raw data.
const BLOB_DATA: u8 = 1;

impl Buffer {
    /// Bytes of the durable region that were handed out.
    pub fn durable_bytes(&self) -> u64 {
        self.durable_next.load(Ordering::SeqCst)
    }

    /// Bytes of the durable region that are left.
    pub fn durable_room(&self) -> u64 {
        self.layout.durable_bytes.saturating_sub(self.durable_bytes())
    }

    /// Forgets all definitions. No thread may be inside an event.
    pub fn clear_durable(&self) {
        let used = self.durable_next.swap(0, Ordering::Relaxed).min(self.layout.durable_bytes);
        self.region.zero(self.layout.durable..self.layout.durable + used);
        self.set_durable_end(0);
        self.spare_word(LossReason::DurableFull).store(0, Ordering::Relaxed);
        self.generation.store(next_generation(), Ordering::SeqCst);
    }

    /// Writes one durable record of `words` words: `payload` stores all but the header. Returns its offset in
    /// the buffer. A record that is longer than what is left takes no room from shorter ones.
    //= docs/buffer.md#durable-region
    pub(crate) fn write_durable(
        &self,
        words: usize,
        header: u64,
        payload: impl FnOnce(&mut RecordWriter),
    ) -> Result<u64, DurableFull> {
        let bytes = words as u64 * 8;
        let offset = self
            .durable_next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                Some(next + bytes).filter(|end| *end <= self.layout.durable_bytes)
            })
            .map_err(|_| {
                self.add_short(LossReason::DurableFull, bytes);
                DurableFull
            })?;
        let start = self.layout.durable + offset;
        // The payload never precedes its placeholder.
        self.region.word(start).store(placeholder(words), Ordering::Relaxed);
        fence(Ordering::Release);
        let mut record = self.region.record(start, words);
        payload(&mut record);
        record.commit(header);
        Ok(start)
    }

    /// Calls a function with each definition that is complete.
    #[cfg(not(modelled))]
    pub(crate) fn for_each_definition(&self, mut call: impl FnMut(&Record<'_>)) {
        let word = |offset| self.region.word(self.layout.durable + offset).load(Ordering::Acquire);
        let end = self.durable_bytes().min(self.layout.durable_bytes);
        let mut at = 0;
        // The first of the zeros that were just met: of a thread that has taken its place and said nothing
        // yet.
        let mut zeros = None;
        let mut bytes = Vec::new();
        while at < end {
            let header = RecordHeader(word(at));
            if header.0 == 0 {
                zeros = zeros.or(Some(at));
                at += 8;
                continue;
            }
            if let Some(first) = zeros.take().filter(|first| word(*first) != 0) {
                // It has said it now: this word may be in the middle of its record.
                at = first;
                continue;
            }
            let size = (header.size().bytes() as u64).max(8);
            let next = (at + size).min(end);
            if matches!(header.record_type(), Some(RecordType::String | RecordType::Thread)) {
                bytes.clear();
                bytes.extend(header.0.to_le_bytes());
                (at + 8..next).step_by(8).for_each(|offset| bytes.extend(word(offset).to_le_bytes()));
                if let Ok(record) = Record::decode(&bytes) {
                    call(&record);
                }
            }
            at = next;
        }
    }

    /// Whether the bytes at an offset of the buffer are those of a text.
    pub(super) fn is_at(&self, text: &[u8], offset: u64) -> bool {
        let words = text.chunks(8).zip((offset..).step_by(8));
        words.into_iter().all(|(bytes, offset)| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.region.word(offset).load(Ordering::Relaxed) == u64::from_le_bytes(word)
        })
    }
}

/// An anonymous data blob, which readers step over: what stands in place of a header until its payload is
/// complete.
fn placeholder(words: usize) -> u64 {
    let payload_bytes = (words as u64 - 1) * 8;
    blob::header(words as u64, 0, payload_bytes as u16, BLOB_DATA)
}
