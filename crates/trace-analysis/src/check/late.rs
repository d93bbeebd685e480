//! Begins and ends that wait until they can be sorted.

use super::found::EventPosition;
use std::io;
use trace_format::units::{Koid, Nanos, Offset, ProviderId};
use trace_model::OperationKey;
use trace_reader::sorter::{Sorter, words};
use trace_reader::{Text, Thread};

/// A begin or an end of a duration or an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub is_end: bool,
    /// The id of an operation; none of a duration.
    pub id: Option<u64>,
    pub at: Nanos,
    pub thread: Thread,
    pub place: EventPosition,
    /// Stands for the text.
    pub category: u64,
    pub name: Text<'a>,
    pub is_chosen: bool,
}

/// Bits of the first word.
const IS_END: u64 = 1;
const HAS_ID: u64 = 2;
const IS_CHOSEN: u64 = 4;

impl Part<'_> {
    /// The operation that it is a part of.
    pub fn operation(&self, id: u64) -> OperationKey {
        OperationKey { process: self.thread.process, category: self.category, id }
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let Self { is_end, id, at, thread, place, category, name, is_chosen } = *self;
        let bits = [(is_end, IS_END), (id.is_some(), HAS_ID), (is_chosen, IS_CHOSEN)];
        let flags = bits.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, bit)| flags | bit);
        let words = [
            flags,
            id.unwrap_or(0),
            at.0,
            thread.process.0,
            thread.thread.0,
            place.offset.0,
            place.provider.0.into(),
            category,
        ];
        to.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
        to.extend_from_slice(name.as_bytes());
    }
}

impl<'a> Part<'a> {
    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let ([flags, id, at, process, thread, offset, provider, category], name) = words(bytes).ok()?;
        Some(Self {
            is_end: flags & IS_END != 0,
            id: (flags & HAS_ID != 0).then_some(id),
            at: Nanos(at),
            thread: Thread { process: Koid(process), thread: Koid(thread) },
            place: EventPosition {
                offset: Offset(offset),
                provider: ProviderId(u32::try_from(provider).ok()?),
            },
            category,
            name: Text(name),
            is_chosen: flags & IS_CHOSEN != 0,
        })
    }
}

/// All of them; memory holds 48 MiB, a file the rest.
#[derive(Debug, Default)]
pub(super) struct LateParts {
    sorter: Option<Sorter>,
    encoded: Vec<u8>,
}

impl LateParts {
    #[cold]
    pub fn push(&mut self, part: &Part<'_>) {
        self.encoded.clear();
        part.encode(&mut self.encoded);
        self.sorter.get_or_insert_default().push(part.at.0, &self.encoded);
    }

    /// Passes all of them in the order of their times; those with equal times in the order of the file.
    pub fn finish(&mut self, mut take: impl FnMut(Part<'_>)) -> io::Result<()> {
        let Some(sorter) = self.sorter.take() else { return Ok(()) };
        sorter.finish(|bytes| {
            if let Some(part) = Part::decode(bytes) {
                take(part);
            }
            Ok(())
        })
    }
}
