//! A context of the engine on a heap region, its threads, and what they have written.

use crate::buffer::region::{HeapWords, Region};
use crate::record::event_writer::{WriteError, write_inside};
use crate::session::config::Config;
use crate::session::context::Context;
use crate::site::Site;
use crate::slab::Slabs;
use crate::slab::streaming::WakeHandler;
use crate::sync::{Arc, AtomicU32, Ordering, assert_shared, guard};
use crate::thread::block::ThreadBlock;
use crate::thread::registry;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use trace_format::buffer::{BufferMode, HEADER_BYTES, Layout};
use trace_format::record::{MAX_RECORD_WORDS, RecordHeader};
use trace_format::slab::{LOSS_ENTRY_BYTES, LossReason, SlabState, TALLY_BYTES};

/// A deadline that no model comes to: it ends when all threads have done what they do.
pub fn never() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// A buffer that is smaller than those of the format: each of its words is looked at.
fn layout(mode: BufferMode, slabs_per_half: u32, slab_words: u64, durable_bytes: u64) -> Layout {
    let slab_count = u64::from(slabs_per_half * mode.halves());
    let ledger = HEADER_BYTES as u64;
    let slab_words_at = ledger + 16 * LOSS_ENTRY_BYTES;
    let tallies = slab_words_at + 8 * slab_count;
    let durable = tallies + TALLY_BYTES * slab_count;
    let rolling = durable + durable_bytes;
    let slab_bytes = 8 * slab_words;
    Layout {
        mode,
        total_bytes: rolling + slab_bytes * slab_count,
        ledger,
        slab_words: slab_words_at,
        tallies,
        durable,
        durable_bytes,
        rolling,
        // Records may be as large as all slabs together.
        rolling_bytes: 2 * slab_bytes * slab_count,
        slab_bytes,
        slabs_per_half,
    }
}

/// What the threads of a model share.
pub struct World {
    pub context: Context,
    pub site: Site,
    pub blocks: Vec<&'static ThreadBlock>,
    words: HeapWords,
    layout: Layout,
    /// Of a sparse buffer.
    pages: Option<Arc<Pages>>,
}

/// The header of a record of so many words.
pub fn header(thread: usize, number: u64, words: usize) -> u64 {
    (words as u64) << 4 | (thread as u64) << 32 | number << 48
}

/// A record: the thread that wrote it, and its number on that thread.
pub type Written = (u64, u64);

impl World {
    pub fn new(mode: BufferMode, slabs_per_half: u32, slab_words: u64, threads: usize) -> Self {
        Self::with(layout(mode, slabs_per_half, slab_words, 64), threads, WakeHandler::default())
    }

    /// A stream whose dispatcher is woken.
    pub fn woken(slabs_per_half: u32, slab_words: u64, threads: usize, wake: WakeHandler) -> Self {
        Self::with(layout(BufferMode::Streaming, slabs_per_half, slab_words, 64), threads, wake)
    }

    /// With room for definitions.
    pub fn with_definitions(threads: usize) -> Self {
        Self::with(layout(BufferMode::Oneshot, 2, 16, 128), threads, WakeHandler::default())
    }

    /// A buffer of one chunk, whose memory is refused so many times before it is allocated.
    pub fn sparse(
        mode: BufferMode,
        slabs_per_half: u32,
        slab_words: u64,
        threads: usize,
        refusals: u32,
    ) -> Self {
        let layout = layout(mode, slabs_per_half, slab_words, 64);
        let pages = Some(Arc::new(Pages::new(refusals)));
        Self::on_pages(layout, threads, WakeHandler::default(), pages)
    }

    fn with(layout: Layout, threads: usize, wake: WakeHandler) -> Self {
        Self::on_pages(layout, threads, wake, None)
    }

    fn on_pages(layout: Layout, threads: usize, wake: WakeHandler, pages: Option<Arc<Pages>>) -> Self {
        let (mut region, words) = Region::on_heap(layout.total_bytes as usize);
        if let Some(pages) = pages.clone() {
            region = region.with_backing(Box::new(move |_| pages.allocate()));
        }
        let config = Config { wake, ..Config::new(1, "", 1) };
        let context = Context::new(region, layout, config);
        context.begin_run(&[]);
        let blocks = registry::begin(threads);
        for (index, block) in blocks.iter().enumerate() {
            block.join(context.buffer().generation(), 1);
            block.set_thread_index(index as u8 + 1);
        }
        Self::of(context, blocks, words, layout, pages)
    }

    /// Another buffer for the same threads, which have not come to it yet.
    pub fn beside(other: &Self) -> Self {
        let layout = layout(BufferMode::Oneshot, 2, 4, 128);
        let (region, words) = Region::on_heap(layout.total_bytes as usize);
        let context = Context::new(region, layout, Config::new(1, "", 1));
        context.begin_run(&[]);
        Self::of(context, other.blocks.clone(), words, layout, None)
    }

    fn of(
        context: Context,
        blocks: Vec<&'static ThreadBlock>,
        words: HeapWords,
        layout: Layout,
        pages: Option<Arc<Pages>>,
    ) -> Self {
        guard((0..layout.slab_count()).map(|slab| context.buffer().slab_space(slab)));
        let site = Site::new("c", "n", &[]);
        site.switch_on();
        Self { context, site, blocks, words, layout, pages }
    }

    pub fn slabs(&self) -> &Slabs {
        self.context.slabs()
    }

    /// What a thread does inside an event.
    pub fn inside<R>(&self, thread: usize, event: impl FnOnce(&'static ThreadBlock) -> R) -> R {
        let block = self.blocks[thread];
        block.enter();
        let result = event(block);
        block.leave();
        result
    }

    /// A record of so many words on a thread; whether it is kept.
    pub fn write(&self, thread: usize, number: u64, words: usize) -> Result<(), WriteError> {
        self.inside(thread, |block| self.write_in(block, thread, number, words))
    }

    /// What [`World::write`] does inside the event.
    pub fn write_in(
        &self,
        block: &'static ThreadBlock,
        thread: usize,
        number: u64,
        words: usize,
    ) -> Result<(), WriteError> {
        let written = write_inside(&self.context, block, true, &self.site, 1, |writer| {
            let header = header(thread, number, words);
            writer.put(words, MAX_RECORD_WORDS, 1, header, |record| {
                self.pages.iter().for_each(|pages| pages.touch());
                (1..words).for_each(|_| record.word(header));
            })
        });
        written.unwrap_or(Err(WriteError::Ended))
    }

    /// As many records as there are numbers, of so many words; those that are kept.
    pub fn write_all(&self, thread: usize, numbers: core::ops::Range<u64>, words: usize) -> Vec<Written> {
        numbers
            .filter(|number| self.write(thread, *number, words).is_ok())
            .map(|number| (thread as u64, number))
            .collect()
    }

    /// What a stop does.
    pub fn stop(&self) {
        self.site.switch_off();
        self.slabs().stop();
        assert_eq!(self.slabs().retire_all(never()), 0, "no thread is stuck");
    }

    /// Records that were refused for a reason.
    pub fn losses(&self, reason: LossReason) -> u64 {
        self.read(self.layout.loss_entry(reason), 1)[0]
    }

    /// The bytes of the buffer, as words.
    pub fn read(&self, offset: u64, words: u64) -> Vec<u64> {
        let mut bytes = vec![0; 8 * words as usize];
        self.words.read_at(offset as usize, &mut bytes);
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// The records of a slab, or of the run that begins there. Each is whole.
    pub fn records(&self, slab: u32) -> Vec<Written> {
        let word = self.context.buffer().word_of(slab);
        if !matches!(word.state(), SlabState::Open | SlabState::Closed) {
            return Vec::new();
        }
        let run = u64::from(word.run());
        for number in 1..word.run() {
            let later = self.context.buffer().word_of(slab + number);
            assert_eq!(later.state(), SlabState::Continuation, "a run of {run}");
            assert_eq!(later.sequence(), word.sequence() + u64::from(number), "a run of {run}");
        }
        let start = self.context.buffer().slab_address(slab);
        assert_shared(&(start..start + (run * self.layout.slab_bytes) as usize));
        let words = self.read(self.layout.slab(slab), run * self.layout.slab_bytes / 8);
        let mut rest = words.as_slice();
        let mut found = Vec::new();
        while let Some(header) = rest.first().filter(|header| **header != 0) {
            let size = RecordHeader(*header).size().0;
            assert!(rest[..size].iter().all(|word| word == header), "a record that is not whole: {rest:x?}");
            found.push((header >> 32 & 0xffff, header >> 48));
            rest = &rest[size..];
        }
        found
    }

    /// All records that are there.
    pub fn all_records(&self) -> Vec<Written> {
        (0..self.layout.slab_count()).flat_map(|slab| self.records(slab)).collect()
    }

    /// After a stop: what is there, and what has been, is just what was kept. Of a circular buffer some may
    /// be overwritten, which the tallies have.
    pub fn assert_holds(&self, kept: &[Written]) {
        let found = self.all_records();
        let set: BTreeSet<_> = found.iter().collect();
        assert_eq!(set.len(), found.len(), "a record is there twice: {found:?}");
        assert!(set.iter().all(|record| kept.contains(record)), "{found:?} of {kept:?}");
        let mut ever = 0;
        for slab in 0..self.layout.slab_count() {
            assert!(!self.slabs().is_in_use(slab), "slab {slab} is not closed");
            ever += self.context.buffer().tally(slab).total;
        }
        assert_eq!(ever, kept.len() as u64, "records that were counted, of {kept:?}");
        if self.layout.mode != BufferMode::Circular {
            assert_eq!(found.len(), kept.len(), "{found:?} of {kept:?}");
        }
    }
}

/// What is allocated, and how often that is refused before.
struct Pages {
    is_there: AtomicU32,
    refusals: AtomicU32,
}

impl Pages {
    fn new(refusals: u32) -> Self {
        Self { is_there: AtomicU32::new(0), refusals: AtomicU32::new(refusals) }
    }

    fn allocate(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        let is_refused = self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if !is_refused {
            self.is_there.store(1, Ordering::Relaxed);
        }
        !is_refused
    }

    /// The calling thread touches it.
    fn touch(&self) {
        assert_eq!(self.is_there.load(Ordering::Relaxed), 1, "the program would be killed");
    }
}
