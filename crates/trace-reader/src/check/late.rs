//! Begins and ends of durations that wait until they can be sorted.

use super::spans::EventPosition;
use crate::item::{Text, Thread};
use crate::sorter::Sorter;
use std::io;
use trace_format::units::{Koid, Nanos, Offset, ProviderId};

const WORD_BYTES: usize = 8;

/// A begin or an end of a duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late<'a> {
    pub is_end: bool,
    pub at: Nanos,
    pub thread: Thread,
    pub place: EventPosition,
    pub name: Text<'a>,
}

impl Late<'_> {
    fn encode(&self, to: &mut Vec<u8>) {
        let Self { is_end, at, thread, place, name } = *self;
        let provider = u64::from(place.provider.0);
        for word in [u64::from(is_end), at.0, thread.process.0, thread.thread.0, place.offset.0, provider] {
            to.extend_from_slice(&word.to_le_bytes());
        }
        to.extend_from_slice(name.as_bytes());
    }
}

impl<'a> Late<'a> {
    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<WORD_BYTES>();
        let [is_end, at, process, thread, offset, provider] = words.first_chunk()?.map(u64::from_le_bytes);
        Some(Self {
            is_end: is_end != 0,
            at: Nanos(at),
            thread: Thread { process: Koid(process), thread: Koid(thread) },
            place: EventPosition {
                offset: Offset(offset),
                provider: ProviderId(u32::try_from(provider).ok()?),
            },
            name: Text(&bytes[6 * WORD_BYTES..]),
        })
    }
}

/// All of them; memory holds 48 MiB, a file the rest.
#[derive(Debug, Default)]
pub(super) struct LateDurations {
    sorter: Option<Sorter>,
    encoded: Vec<u8>,
}

impl LateDurations {
    pub fn push(&mut self, late: &Late<'_>) {
        self.encoded.clear();
        late.encode(&mut self.encoded);
        self.sorter.get_or_insert_default().push(late.at.0, &self.encoded);
    }

    /// Passes all of them in the order of their times; those with equal times in the order of the file.
    pub fn finish(&mut self, mut take: impl FnMut(Late<'_>)) -> io::Result<()> {
        let Some(sorter) = self.sorter.take() else { return Ok(()) };
        sorter.finish(|bytes| {
            if let Some(late) = Late::decode(bytes) {
                take(late);
            }
            Ok(())
        })
    }
}
