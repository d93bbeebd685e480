//! Buffers of programs to test with.

use std::num::NonZeroU64;
use trace_format::buffer::{BufferHeader, BufferMode, Layout};
use trace_format::slab::{SlabState, SlabWord};
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{BufferPart, BufferReader};

/// Ticks per second.
pub const RATE: u64 = 1_000_000_000;
/// This rate, string 1 and thread 1.
pub const DEFINITIONS: [u64; 7] = [0x21, RATE, 0x1_0001_0022, 0x61, 0x1_0033, 5, 6];

/// An instant on thread 1 with string 1 for its name.
pub const fn event(timestamp: u64) -> [u64; 2] {
    [0x24 | (1 << 24) | (1 << 48), timestamp]
}

/// The bytes of words.
pub fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A buffer as a program leaves it.
#[derive(Clone)]
pub struct Image {
    pub layout: Layout,
    pub bytes: Vec<u8>,
}

impl Image {
    /// A buffer that has [`DEFINITIONS`].
    pub fn sized(total_bytes: u64, mode: BufferMode) -> Self {
        let layout = Layout::new(total_bytes, mode).unwrap();
        let image = Self { layout, bytes: vec![0; total_bytes as usize] };
        image.words(0, &BufferHeader::initial_words(&layout)).words(layout.durable, &DEFINITIONS)
    }

    /// Stores words at an offset in bytes.
    pub fn words(mut self, offset: u64, words: &[u64]) -> Self {
        let start = offset as usize;
        self.bytes[start..start + words.len() * 8].copy_from_slice(&bytes(words));
        self
    }

    /// A slab of this sequence with these events, which its thread has closed.
    pub fn closed(self, slab: u32, sequence: u64, timestamps: &[u64]) -> Self {
        let word = self.layout.slab_word(slab);
        let (tally, start) = (self.layout.tally(slab), self.layout.slab(slab));
        let events: Vec<u64> = timestamps.iter().copied().flat_map(event).collect();
        let closed = SlabWord::new(sequence, SlabState::Closed, 1);
        self.words(word, &[closed.0]).words(tally, &[timestamps.len() as u64]).words(start, &events)
    }

    pub fn reader(&self, part: BufferPart) -> BufferReader<&[u8]> {
        let rate = TicksPerSecond(NonZeroU64::new(RATE).unwrap());
        BufferReader::open(&self.bytes[..], self.layout.total_bytes, self.layout.mode, rate, part).unwrap()
    }
}
