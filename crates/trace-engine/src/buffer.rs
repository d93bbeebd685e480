//! The shared buffer: its memory and header, records in it, definitions, and the ledger of losses.

pub(crate) mod backing;
pub(crate) mod definitions;
pub(crate) mod durable;
pub(crate) mod loss;
pub(crate) mod record_writer;
pub(crate) mod region;
pub(crate) mod strings;

use crate::buffer::backing::Backing;
use crate::buffer::record_writer::RecordWriter;
use crate::buffer::region::Region;
use crate::sync::{AtomicU64, Ordering, fence, process};
use trace_format::buffer::{BufferHeader, END_TS_NONE, FLAG_FINAL, HEADER_BYTES, Layout, WORD_BYTES, field};
use trace_format::slab::{SlabState, SlabWord, Tally};

/// The words of a header.
pub(crate) type HeaderWords = [u64; HEADER_BYTES / 8];

/// Slabs that were claimed of a half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfUsage {
    /// Number of the half, counted since the buffer was cleared.
    pub half: u64,
    /// How many of its slabs were claimed.
    pub claimed: u64,
}

/// Memory laid out as a buffer.
pub(crate) struct Buffer {
    region: Region,
    layout: Layout,
    /// The set of definitions in the durable region: differs from every other of the process; never 0.
    generation: AtomicU64,
    /// Bytes handed out of the durable region.
    durable_next: AtomicU64,
}

/// A number for a set of definitions.
fn next_generation() -> u64 {
    static GENERATION: process::AtomicU64 = process::AtomicU64::new(0);
    GENERATION.fetch_add(1, Ordering::Relaxed) + 1
}

impl Buffer {
    /// Writes the header.
    pub fn new(region: Region, layout: Layout) -> Self {
        let generation = AtomicU64::new(next_generation());
        let buffer = Self { region, layout, generation, durable_next: AtomicU64::new(0) };
        let words = BufferHeader::initial_words(&layout);
        for (index, word) in words.iter().enumerate().skip(1) {
            buffer.header(index).store(*word, Ordering::Relaxed);
        }
        // Release: a reader that finds the magic number finds the rest of the header.
        buffer.header(field::MAGIC).store(words[field::MAGIC], Ordering::Release);
        buffer.begin_gaps(2);
        buffer
    }

    /// Where everything is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The set of definitions in the durable region. Another one each time that they are cleared.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Which parts have memory; none if all of it has.
    pub fn backing(&self) -> Option<&Backing> {
        self.region.backing()
    }

    /// See [`Region::detach`].
    pub fn detach(&self) {
        self.region.detach();
    }

    /// A word of the header.
    fn header(&self, index: usize) -> &AtomicU64 {
        self.region.word(index as u64 * WORD_BYTES)
    }

    /// Records that were refused since the buffer was cleared.
    pub fn records_refused(&self) -> u64 {
        self.header(field::RECORDS_DROPPED).load(Ordering::Relaxed)
    }

    /// Recording begins: until it ends the header is not final.
    pub fn begin_run(&self) {
        self.header(field::FLAGS).store(0, Ordering::SeqCst);
    }

    /// Brings the header up to date after the last writer left.
    pub fn finalize(&self, wrapped: u64, halves: impl Iterator<Item = HalfUsage>) {
        self.set_durable_end(self.durable_bytes());
        self.set_wrapped_count(wrapped);
        halves.for_each(|half| self.set_data_end(half));
        // Release: final values first.
        self.header(field::FLAGS).store(FLAG_FINAL, Ordering::Release);
    }

    /// The words of the header as they would be if recording ended now.
    pub fn header_now(&self, wrapped: u64, halves: impl Iterator<Item = HalfUsage>) -> HeaderWords {
        let mut words: HeaderWords = core::array::from_fn(|index| self.header(index).load(Ordering::Relaxed));
        if words[field::FLAGS] & FLAG_FINAL == 0 {
            words[field::DURABLE_DATA_END] = self.durable_bytes();
            words[field::VERSION] = self.version_word(wrapped);
            for half in halves {
                let (index, bytes) = self.data_end(half);
                words[index] = bytes;
            }
        }
        words
    }

    fn version_word(&self, wrapped: u64) -> u64 {
        BufferHeader::initial_words(&self.layout)[field::VERSION] | wrapped << 32
    }

    /// The word of the header that says how much of a half was claimed, and what it has to say.
    fn data_end(&self, HalfUsage { half, claimed }: HalfUsage) -> (usize, u64) {
        let index = field::ROLLING_DATA_END + (half % u64::from(self.layout.mode.halves())) as usize;
        (index, claimed * self.layout.slab_bytes)
    }

    pub fn set_wrapped_count(&self, wrapped: u64) {
        self.header(field::VERSION).store(self.version_word(wrapped), Ordering::Relaxed);
    }

    /// Stores how much of a half was claimed.
    pub fn set_data_end(&self, half: HalfUsage) {
        let (index, bytes) = self.data_end(half);
        self.header(index).store(bytes, Ordering::Relaxed);
    }

    /// Stores how much of the durable region belongs to what is handed over.
    pub fn set_durable_end(&self, bytes: u64) {
        self.header(field::DURABLE_DATA_END).store(bytes, Ordering::Release);
    }

    /// Recording of a oneshot buffer has ended, as events at this time were refused.
    //= docs/buffer.md#the-end-of-a-oneshot-buffer
    pub fn end_at(&self, timestamp: u64) {
        self.header(field::END_TS).fetch_min(timestamp, Ordering::Relaxed);
    }

    /// Slabs with a lower sequence do not exist any more: a reader finds none of them.
    pub fn set_floor(&self, sequence: u64) {
        self.header(field::FLOOR_SEQUENCE).store(sequence, Ordering::SeqCst);
    }

    /// Forgets what slabs hold. No thread may be inside an event.
    pub fn clear_slabs(&self) {
        for slab in 0..self.layout.slab_count() {
            self.slab_word(slab).store(SlabWord::EMPTY.0, Ordering::Relaxed);
        }
        self.header(field::END_TS).store(END_TS_NONE, Ordering::Relaxed);
        self.header(field::RECORDS_DROPPED).store(0, Ordering::Relaxed);
        (0..2).for_each(|half| self.header(field::ROLLING_DATA_END + half).store(0, Ordering::Relaxed));
        self.set_wrapped_count(0);
        self.begin_gaps(2);
    }

    /// The word of one slab.
    pub fn slab_word(&self, slab: u32) -> &AtomicU64 {
        self.region.word(self.layout.slab_word(slab))
    }

    /// What a slab's word says.
    pub fn word_of(&self, slab: u32) -> SlabWord {
        SlabWord(self.slab_word(slab).load(Ordering::Acquire))
    }

    /// Address of a slab.
    pub fn slab_address(&self, slab: u32) -> usize {
        self.region.address(self.layout.slab(slab))
    }

    /// Addresses of a slab.
    pub fn slab_space(&self, slab: u32) -> core::ops::Range<usize> {
        let start = self.slab_address(slab);
        start..start + self.layout.slab_bytes as usize
    }

    /// A writer for a record at the beginning of a run of slabs.
    pub fn record_in_run(&self, slab: u32, words: usize) -> RecordWriter<'_> {
        self.region.record(self.layout.slab(slab), words)
    }

    /// Invalidates, zeroes and opens a run of slabs. `bytes` of them will be written by one record if the
    /// run is longer than one slab: then only what must read as zero is zeroed.
    //= docs/buffer.md#claiming
    pub fn open_run(&self, slab: u32, sequence: u64, run: u32, bytes: u64, timestamp: u64) {
        let layout = &self.layout;
        let tally = layout.tally(slab);
        // The words say that the slabs are being taken; nothing of them changes before that.
        fence(Ordering::Release);
        let total = self.region.word(tally + Tally::TOTAL).load(Ordering::Relaxed);
        for (field, value) in [(Tally::BEFORE, total), (Tally::FIRST, timestamp), (Tally::LAST, timestamp)] {
            self.region.word(tally + field).store(value, Ordering::Relaxed);
        }
        let start = layout.slab(slab);
        let end = start + u64::from(run) * layout.slab_bytes;
        if run == 1 {
            self.region.zero(start..end);
        } else {
            self.region.zero(start..start + 8);
            self.region.zero(start + bytes..end);
        }
        // The slab is zero before its word says that it is open.
        fence(Ordering::Release);
        for number in 1..run {
            let word = SlabWord::continuation(sequence + u64::from(number), true);
            self.slab_word(slab + number).store(word.0, Ordering::Relaxed);
        }
        self.slab_word(slab).store(SlabWord::new(sequence, SlabState::Open, run).0, Ordering::Release);
    }

    /// Marks the run of a committed record as complete: its first slab before the others, which no thread may
    /// take while the first is in use, or the record would be cut.
    //= docs/buffer.md#late-threads
    pub fn close_run(&self, slab: u32) {
        let run = self.word_of(slab).run();
        self.close_slab(slab);
        for number in 1..run {
            let sequence = self.word_of(slab + number).sequence();
            let word = SlabWord::continuation(sequence, false);
            // Release: pairs with the Acquire of the next claim, which finds the record complete.
            self.slab_word(slab + number).store(word.0, Ordering::Release);
        }
    }

    /// Says that a slab's writer has left.
    pub fn close_slab(&self, slab: u32) {
        let word = self.word_of(slab);
        #[cfg(modelled)]
        assert!(word.is_in_use(), "slab {slab} is closed twice");
        let closed = SlabWord::new(word.sequence(), SlabState::Closed, word.run());
        // Release: what is in the slab, and its tally, come first.
        self.slab_word(slab).store(closed.0, Ordering::Release);
    }

    /// The count of a slab's records, and their times.
    pub fn tally(&self, slab: u32) -> Tally {
        let tally = self.layout.tally(slab);
        let fields = [Tally::TOTAL, Tally::BEFORE, Tally::FIRST, Tally::LAST];
        Tally::from_words(fields.map(|field| self.region.word(tally + field).load(Ordering::Relaxed)))
    }

    /// Adds to a slab's tally.
    pub fn add_to_tally(&self, slab: u32, events: u64, last: u64) {
        let tally = self.layout.tally(slab);
        let known = self.region.word(tally + Tally::TOTAL).load(Ordering::Relaxed);
        self.region.word(tally + Tally::TOTAL).store(known + events, Ordering::Relaxed);
        self.region.word(tally + Tally::LAST).store(last, Ordering::Relaxed);
    }
}
