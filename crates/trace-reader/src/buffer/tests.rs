use super::batches::BATCH_BYTES;
use super::*;
use crate::testing::bytes;
use proptest::prelude::*;
use std::cell::Cell;
use trace_format::buffer::END_TS_NONE;
use trace_format::error::DecodeError;
use trace_format::slab::LossReason;
use trace_format::units::Words;

const RATE: u64 = 1_000_000_000;
const INITIALIZATION: [u64; 2] = [0x21, RATE];
const STRING_1: [u64; 2] = [0x1_0001_0022, 0x61];
const THREAD_1: [u64; 3] = [0x1_0033, 5, 6];

/// An instant on thread 1 with string 1 for its name.
const fn event(timestamp: u64) -> [u64; 2] {
    [0x24 | (1 << 24) | (1 << 48), timestamp]
}

/// A buffer as a writer would leave it.
#[derive(Clone)]
struct Image {
    layout: Layout,
    bytes: Vec<u8>,
}

impl Image {
    /// A buffer of 64 KiB with nothing in it.
    fn empty() -> Self {
        Self::sized(64 << 10, BufferMode::Oneshot)
    }

    /// A buffer of 64 KiB that defines a rate, string 1 and thread 1.
    fn defined() -> Self {
        Self::empty().durable(0, &[&INITIALIZATION[..], &STRING_1, &THREAD_1].concat())
    }

    fn sized(total_bytes: u64, mode: BufferMode) -> Self {
        let layout = Layout::new(total_bytes, mode).unwrap();
        let image = Self { layout, bytes: vec![0; total_bytes as usize] };
        image.words(0, &BufferHeader::initial_words(&layout))
    }

    /// Stores words at an offset in bytes.
    fn words(mut self, offset: u64, words: &[u64]) -> Self {
        let start = offset as usize;
        self.bytes[start..start + words.len() * 8].copy_from_slice(&bytes(words));
        self
    }

    /// Stores words in the durable region, at an offset in words.
    fn durable(self, offset: u64, words: &[u64]) -> Self {
        let start = self.layout.durable + offset * 8;
        self.words(start, words)
    }

    /// Fills a slab.
    fn slab(self, slab: u32, word: SlabWord, words: &[u64]) -> Self {
        let (place, start) = (self.layout.slab_word(slab), self.layout.slab(slab));
        self.words(place, &[word.0]).words(start, words)
    }

    /// A slab of this sequence that its writer has left.
    fn closed(self, slab: u32, sequence: u64, words: &[u64]) -> Self {
        self.slab(slab, SlabWord::new(sequence, SlabState::Closed, 1), words)
    }

    fn header(self, word: usize, value: u64) -> Self {
        self.words(word as u64 * 8, &[value])
    }

    fn read(&self) -> (Vec<u64>, Findings) {
        read(&self.bytes[..], self, Activity::Quiet)
    }
}

fn open<S: Source>(source: S, image: &Image, activity: Activity) -> Result<BufferReader<S>, BufferError> {
    let rate = TicksPerSecond::new(RATE).unwrap();
    BufferReader::open(source, image.layout.total_bytes, image.layout.mode, rate, BufferPart::Rest(activity))
}

/// All words that are handed on.
fn read(source: impl Source, image: &Image, activity: Activity) -> (Vec<u64>, Findings) {
    let mut reader = open(source, image, activity).unwrap();
    let mut out = Vec::new();
    while reader.read_batch(&mut out).unwrap() {}
    let words: Vec<_> = out.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    assert_eq!(reader.findings().bytes, out.len() as u64);
    (words, reader.findings().clone())
}

fn definitions() -> Vec<u64> {
    [&INITIALIZATION[..], &STRING_1, &THREAD_1].concat()
}

fn with_definitions(records: &[&[u64]]) -> Vec<u64> {
    [definitions(), records.concat()].concat()
}

fn bad(region: RegionName, offset: u64, fault: Fault) -> Vec<BadRecord> {
    vec![BadRecord { region, offset, fault }]
}

#[test]
fn an_empty_buffer_has_nothing() {
    let (words, findings) = Image::empty().read();
    assert_eq!((words, findings), (Vec::new(), Findings::default()));
}

//= docs/buffer.md#reading
#[test]
fn definitions_come_first_and_slabs_in_the_order_of_their_claims() {
    let image = Image::defined().closed(0, 9, &event(30)).closed(1, 7, &event(10)).closed(5, 8, &event(20));
    let (words, findings) = image.read();
    assert_eq!(words, with_definitions(&[&event(10), &event(20), &event(30)]));
    let expected = Findings {
        events: 3,
        records: 6,
        bytes: 56 + 48,
        rolling_bytes: 48,
        rolling_records: 3,
        ..Findings::default()
    };
    assert_eq!(findings, expected);
}

#[test]
fn a_walk_ends_at_a_zero_word() {
    let slab = [&event(1)[..], &[0], &event(2)].concat();
    let open = SlabWord::new(1, SlabState::Open, 1);
    let (words, findings) = Image::defined().slab(0, open, &slab).read();
    assert_eq!(words, with_definitions(&[&event(1)]));
    assert_eq!(findings.bad_records, 0);
}

#[test]
fn a_full_slab_is_walked_to_its_end() {
    let image = Image::defined();
    let count = image.layout.slab_bytes / 16;
    let slab: Vec<_> = (0..count).flat_map(event).collect();
    let (words, findings) = image.closed(3, 1, &slab).closed(4, 2, &event(count)).read();
    assert_eq!(words, with_definitions(&[&slab, &event(count)]));
    assert_eq!(findings.events, count + 1);
}

#[test]
fn slabs_that_are_empty_or_below_the_floor_do_not_exist() {
    let image = Image::defined()
        .slab(0, SlabWord::EMPTY, &event(1))
        .closed(1, 4, &event(2))
        .closed(2, 5, &event(3))
        .slab(3, SlabWord::new(6, SlabState::Continuation, 0), &event(4))
        .header(field::FLOOR_SEQUENCE, 5);
    assert_eq!(image.read().0, with_definitions(&[&event(3)]));
}

/// A blob record that takes so many bytes.
fn blob(size_bytes: u64) -> Vec<u64> {
    let mut words = vec![0xabcd; size_bytes as usize / 8];
    words[0] = 5 | (size_bytes / 8) << 4 | (size_bytes - 8) << 32 | 1 << 48;
    words
}

#[test]
fn a_run_is_read_only_if_it_is_whole() {
    let image = Image::defined();
    let slab = image.layout.slab_bytes;
    let record = blob(2 * slab + 8);
    let run = |length| SlabWord::new(1, SlabState::Closed, length);
    let continued = |sequence| SlabWord::continuation(sequence, false);
    let image = image.slab(2, run(3), &record);
    let word = |image: Image, slab, word: SlabWord| {
        let place = image.layout.slab_word(slab);
        image.words(place, &[word.0])
    };
    let whole = word(word(image.clone(), 3, continued(2)), 4, continued(3));
    let (words, findings) = whole.read();
    assert_eq!(words, with_definitions(&[&record]));
    assert_eq!((findings.events, findings.rolling_bytes), (0, 2 * slab + 8));
    // Its last slab belongs to another thread, whose record is read.
    let broken = word(image.clone(), 3, continued(2)).closed(4, 5, &event(1));
    let (words, findings) = broken.read();
    assert_eq!(words, with_definitions(&[&event(1)]));
    assert_eq!(findings.bad_records, 0);
    // Or it continues another run.
    let broken = word(word(image, 3, continued(2)), 4, continued(4));
    assert_eq!(broken.read().0, with_definitions(&[]));
}

#[test]
fn a_run_beyond_its_region_or_of_no_length_is_not_read() {
    let image = Image::sized(64 << 10, BufferMode::Circular);
    let last = image.layout.slabs_per_half - 1;
    let definitions = definitions();
    let image = image.durable(0, &definitions);
    let across = |run| SlabWord::new(1, SlabState::Closed, run);
    let next = image.layout.slab_word(last + 1);
    let continued = SlabWord::continuation(2, false).0;
    assert_eq!(
        image.clone().slab(last, across(2), &event(1)).words(next, &[continued]).read().0,
        definitions
    );
    assert_eq!(image.clone().slab(2 * last + 1, across(2), &event(1)).read().0, definitions);
    assert_eq!(image.clone().slab(0, across(0), &event(1)).read().0, definitions);
    assert_eq!(image.slab(last, across(1), &event(1)).read().1.events, 1);
}

#[test]
fn what_came_after_the_end_is_late() {
    let complete = [0x4_0034 | (1 << 24) | (1 << 48), 90, 101];
    let in_time = [0x4_0034 | (1 << 24) | (1 << 48), 90, 100];
    let log = [0x1_0000_0029, 101];
    let slab = [&event(100)[..], &event(101), &complete, &in_time, &log, &event(99)].concat();
    let image = Image::defined().closed(0, 1, &slab).header(field::END_TS, 100);
    let (words, findings) = image.read();
    assert_eq!(words, with_definitions(&[&event(100), &in_time, &event(99)]));
    assert_eq!((findings.events, findings.late_events, findings.bad_records), (3, 3, 0));
    let unlimited = image.header(field::END_TS, END_TS_NONE);
    assert_eq!(unlimited.read().1.late_events, 0);
}

#[test]
fn late_events_count_as_losses_of_a_full_buffer() {
    let image = Image::defined().closed(0, 1, &event(101)).header(field::END_TS, 100);
    let entry = image.layout.loss_entry(LossReason::Full);
    let large = image.layout.loss_entry(LossReason::TooLarge);
    let image = image.words(entry, &[2, !100, 150]).words(large, &[7, !1, 9]);
    let mut reader = open(&image.bytes[..], &image, Activity::Quiet).unwrap();
    while reader.read_batch(&mut Vec::new()).unwrap() {}
    let losses = reader.losses().unwrap();
    assert_eq!(losses[0], (LossReason::Full, Loss { count: 3, first: 100, last: 150 }));
    let (reason, loss) = losses[LossReason::TooLarge as usize];
    assert_eq!((reason, loss), (LossReason::TooLarge, Loss { count: 7, first: 1, last: 9 }));
}

//= docs/buffer.md#durable-region
#[test]
fn gaps_and_placeholders_of_the_durable_region_hide_nothing() {
    let placeholder = |words: u64| 5 | words << 4 | (words * 8 - 8) << 32 | 1 << 48;
    // The killed writer of the placeholder had begun its payload.
    let region =
        [&INITIALIZATION[..], &[0, 0], &STRING_1, &[placeholder(3), 0x33, 0], &[0], &THREAD_1].concat();
    let (words, findings) = Image::empty().durable(0, &region).closed(0, 1, &event(1)).read();
    assert_eq!(words, with_definitions(&[&event(1)]));
    assert_eq!(findings.bad_records, 0);
}

#[test]
fn every_fault_of_a_rolling_record_is_reported() {
    let cases: [(&[u64], Fault); 9] = [
        (&[0x1_0004], Fault::Size { words: 0 }),
        (&[0xfff4], Fault::Size { words: 4095 }),
        (
            &[0x14],
            Fault::Content(DecodeError::PastEnd { what: "timestamp", expected: Words(1), found: Words(0) }),
        ),
        (&[0x11_0010], Fault::Type { record_type: 0 }),
        // Metadata of a later version.
        (&[0x7_0010], Fault::Type { record_type: 0 }),
        (&[0x21, RATE], Fault::Type { record_type: 1 }),
        (&[0x1_0003_0022, 0x62], Fault::Type { record_type: 2 }),
        (&[0x24 | (1 << 24) | (2 << 32), 1], Fault::String { index: 2 }),
        (&[0x24 | (255 << 24), 1], Fault::Thread { index: 255 }),
    ];
    for (record, fault) in cases {
        let slab = [&event(1)[..], record, &event(2)].concat();
        let image = Image::defined().closed(1, 1, &slab);
        let (words, findings) = image.read();
        // Behind a size that makes no sense nothing can be found.
        let is_lost = matches!(fault, Fault::Size { .. });
        let behind = event(2);
        let after: &[u64] = if is_lost { &[] } else { &behind };
        assert_eq!(words, with_definitions(&[&event(1), after]), "{fault}");
        assert_eq!(findings.bad_records, 1);
        assert_eq!(findings.first_bad, bad(RegionName::Rolling, image.layout.slab(1) + 16, fault));
    }
}

#[test]
fn records_of_every_kind_are_handed_on_if_their_references_hold() {
    // Indices 1 are defined, indices 2 are not.
    let cases: [(&[u64], &[u64], Fault); 8] = [
        (&[0x0101_0027, 7], &[0x0201_0027, 7], Fault::String { index: 2 }),
        (&[0x0101_0026, 7], &[0x0201_0026, 7], Fault::String { index: 2 }),
        (&[0x0101_0026, 7], &[0x0102_0026, 7], Fault::Thread { index: 2 }),
        (
            &[0x1000_0000_0001_0058, 1, 2, 3, 0x1_0011],
            &[0x1000_0000_0001_0058, 1, 2, 3, 0x2_0011],
            Fault::String { index: 2 },
        ),
        (&[0x10_1000_0028, 1], &[0x20_1000_0028, 1], Fault::Thread { index: 2 }),
        (&[0x12_002a, 1], &[0x22_002a, 1], Fault::Thread { index: 2 }),
        (&[0x4f, 0x10_0001_0001, 1, 0], &[0x4f, 0x20_0001_0001, 1, 0], Fault::Thread { index: 2 }),
        (&[0x0100_0000_003f, 0x1_0001, 0], &[0x0100_0000_003f, 0x2_0001, 0], Fault::String { index: 2 }),
    ];
    for (good, wrong, fault) in cases {
        let image = Image::defined().closed(1, 1, &[good, wrong, &event(2)].concat());
        let (words, findings) = image.read();
        assert_eq!(words, with_definitions(&[good, &event(2)]), "{good:x?}");
        let place = image.layout.slab(1) + good.len() as u64 * 8;
        assert_eq!(findings.first_bad, bad(RegionName::Rolling, place, fault));
    }
}

#[test]
fn strings_of_arguments_have_to_be_defined() {
    // Name 2 without value; name 1 with value 2; name 2 with value 1.
    for argument in [0x2_0010, 0x2_0001_0016, 0x1_0002_0016] {
        let slab = [0x10_0034 | (1 << 24), 1, argument];
        let (words, findings) = Image::defined().closed(0, 1, &slab).read();
        assert_eq!(words, definitions());
        assert_eq!(findings.first_bad.len(), 1);
        assert_eq!(findings.first_bad[0].fault, Fault::String { index: 2 });
    }
}

#[test]
fn every_fault_of_a_durable_record_is_reported() {
    let cases: [(&[u64], Fault); 8] = [
        // Kinds of later versions that are no definitions.
        (&[8 | 2 << 4 | 9 << 60, 7], Fault::Type { record_type: 8 }),
        (&[0x7_0010], Fault::Type { record_type: 0 }),
        (&STRING_1, Fault::Redefined { index: 1 }),
        (&THREAD_1, Fault::Redefined { index: 1 }),
        (&[0x21, 24_000_000], Fault::Rate { found: 24_000_000, expected: RATE }),
        (&[0x21, 0], Fault::Content(DecodeError::NoTicks)),
        (&event(1), Fault::Type { record_type: 4 }),
        (&[0x22, 0x61], Fault::Type { record_type: 2 }),
    ];
    for (record, fault) in cases {
        let image =
            Image::defined().durable(7, record).durable(7 + record.len() as u64, &[0x1_0002_0022, 0x62]);
        let (words, findings) = image.read();
        assert_eq!(words, with_definitions(&[&[0x1_0002_0022, 0x62]]), "{fault}");
        assert_eq!(findings.first_bad, bad(RegionName::Durable, image.layout.durable + 56, fault));
        assert_eq!(findings.bad_rolling_records, 0);
    }
}

#[test]
fn events_need_an_initialization() {
    let image = Image::empty().durable(0, &[&STRING_1[..], &THREAD_1].concat()).closed(0, 1, &event(1));
    let (_, findings) = image.read();
    assert_eq!(findings.events, 0);
    assert_eq!(findings.first_bad, bad(RegionName::Rolling, image.layout.slab(0), Fault::Uninitialized));
}

#[test]
fn an_interrupted_read_is_repeated_and_no_other() {
    struct Failing<'a>(&'a Image, Cell<Option<io::ErrorKind>>);
    impl Source for Failing<'_> {
        fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
            self.1.take().map_or_else(|| self.0.bytes[..].read_at(offset, bytes), |kind| Err(kind.into()))
        }
    }
    let image = Image::defined();
    let open = |kind| open(Failing(&image, Cell::new(Some(kind))), &image, Activity::Quiet).err();
    assert!(open(io::ErrorKind::Interrupted).is_none());
    assert!(matches!(open(io::ErrorKind::PermissionDenied), Some(BufferError::Io { offset: 0, .. })));
}

#[test]
fn regions_have_names() {
    assert_eq!(
        [RegionName::Durable, RegionName::Rolling].map(|name| name.to_string()),
        ["durable", "rolling"]
    );
}

#[test]
fn only_the_first_bad_records_keep_their_place() {
    let slab = [0x24 | (9 << 24), 1].repeat(20);
    let (_, findings) =
        Image::sized(1 << 20, BufferMode::Oneshot).durable(0, &definitions()).closed(0, 1, &slab).read();
    assert_eq!((findings.bad_records, findings.first_bad.len()), (20, MAX_BAD_RECORDS));
}

#[test]
fn large_buffers_come_in_batches_without_a_gap() {
    let mut image = Image::sized(2 << 20, BufferMode::Oneshot).durable(0, &definitions());
    let slabs = image.layout.slab_count();
    let size = image.layout.slab_bytes;
    let for_each = size / 16;
    assert!(u64::from(slabs) * size > 4 * BATCH_BYTES as u64);
    for slab in 0..slabs {
        // Claimed from the last to the first.
        let sequence = u64::from(slabs - slab);
        let events: Vec<_> = (0..for_each).flat_map(|number| event(sequence * for_each + number)).collect();
        image = image.closed(slab, sequence, &events);
    }
    let mut reader = open(&image.bytes[..], &image, Activity::Quiet).unwrap();
    let (mut out, mut batches) = (Vec::new(), 1);
    while reader.read_batch(&mut out).unwrap() {
        batches += 1;
    }
    assert!(batches > 4);
    let count = u64::from(slabs) * for_each;
    let expected: Vec<_> = (0..count).flat_map(|number| event(for_each + number)).collect();
    assert!(out == bytes(&with_definitions(&[&expected])));
    assert_eq!(reader.findings().events, count);
}

/// A buffer that changes while it is read: from one read on it is another.
struct Changing<'a> {
    before: &'a Image,
    after: &'a Image,
    /// How many reads see the first one.
    reads: Cell<u32>,
}

impl Source for Changing<'_> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.reads.get();
        self.reads.set(left.saturating_sub(1));
        if left > 0 { &self.before.bytes[..] } else { &self.after.bytes[..] }.read_at(offset, bytes)
    }
}

/// The events' timestamps, when a change happens after each possible number of reads.
fn read_changing(before: &Image, after: &Image) -> Vec<Vec<u64>> {
    let read = |reads| {
        let source = Changing { before, after, reads: Cell::new(reads) };
        let (words, findings) = read(source, before, Activity::Live);
        assert_eq!(findings.bad_records, 0, "after {reads} reads");
        words.get(7..).unwrap_or_default().chunks(2).map(|event| event[1]).collect()
    };
    (0..=8).map(read).collect()
}

#[test]
fn an_untouched_slab_is_read_live() {
    let image = Image::defined().slab(0, SlabWord::new(1, SlabState::Open, 1), &event(1));
    assert_eq!(read_changing(&image, &image), vec![vec![1]; 9]);
    let shared: std::rc::Rc<[u8]> = image.bytes.clone().into();
    assert_eq!(read(shared, &image, Activity::Live), image.read());
}

// Reads of a live buffer with one slab: header, slab words; then slab word, slab, slab, slab word; then the
// durable region twice. A closed slab is copied once.

#[test]
fn an_event_counts_from_the_first_copy_on() {
    let open = SlabWord::new(1, SlabState::Open, 1);
    let before = Image::defined().slab(0, open, &event(1));
    let after = before.clone().slab(0, open, &[&event(1)[..], &event(2)].concat());
    // Seen in the second copy alone it is not believed yet.
    let expected = [vec![vec![1, 2]; 4], vec![vec![1]; 5]].concat();
    assert_eq!(read_changing(&before, &after), expected);
}

#[test]
fn the_bytes_of_an_event_are_those_of_the_second_copy() {
    // In the first copy the payload is torn: its header is there, its timestamp is not.
    let open = SlabWord::new(1, SlabState::Open, 1);
    let before = Image::defined().slab(0, open, &[event(1)[0], 0]);
    let after = before.clone().slab(0, open, &event(1));
    let expected = [vec![vec![1]; 5], vec![vec![0]; 4]].concat();
    assert_eq!(read_changing(&before, &after), expected);
}

#[test]
fn a_slab_that_changes_hands_is_left_out() {
    let before = Image::defined().closed(0, 1, &event(1));
    let after = before.clone().closed(0, 2, &event(2));
    let expected = [vec![vec![2]; 2], vec![vec![]; 3], vec![vec![1]; 4]].concat();
    assert_eq!(read_changing(&before, &after), expected);
    let emptied = before.clone().slab(0, SlabWord::EMPTY, &event(2));
    let expected = [vec![vec![]; 5], vec![vec![1]; 4]].concat();
    assert_eq!(read_changing(&before, &emptied), expected);
}

#[test]
fn a_slab_may_be_closed_while_it_is_read() {
    let before = Image::defined().slab(0, SlabWord::new(1, SlabState::Open, 1), &event(1));
    let after = before.clone().closed(0, 1, &event(1));
    assert_eq!(read_changing(&before, &after), vec![vec![1]; 9]);
}

#[test]
fn a_definition_seen_in_the_second_copy_alone_comes_with_the_next_read() {
    let string_2 = [0x1_0002_0022, 0x62];
    let before = Image::defined();
    let placeholder = 5 | 2 << 4 | 8 << 32 | 1 << 48;
    for before in [before.clone(), before.durable(7, &[placeholder])] {
        let after = before.clone().durable(7, &string_2).durable(9, &[0x1_0003_0022, 0x63]);
        // Header, slab words, first copy of the durable region; then it changes.
        let source = Changing { before: &before, after: &after, reads: Cell::new(3) };
        let mut reader = open(source, &before, Activity::Live).unwrap();
        let mut out = Vec::new();
        assert!(!reader.read_batch(&mut out).unwrap());
        assert_eq!(out, bytes(&definitions()));
        out.clear();
        assert!(!reader.read_batch(&mut out).unwrap());
        assert_eq!(out, bytes(&[&string_2[..], &[0x1_0003_0022, 0x63]].concat()));
        assert_eq!(reader.findings().bad_records, 0);
    }
}

#[test]
fn a_live_buffer_that_becomes_full_has_late_events() {
    let before = Image::defined().closed(0, 1, &[event(50), event(150)].concat());
    let after = before.clone().header(field::END_TS, 100);
    let source = Changing { before: &before, after: &after, reads: Cell::new(2) };
    let (words, findings) = read(source, &before, Activity::Live);
    assert_eq!(words, with_definitions(&[&event(50)]));
    assert_eq!(findings.late_events, 1);
}

/// The layout follows from size and mode, so it hides nothing.
//= docs/buffer.md#contents-that-are-checked
#[test]
fn a_damaged_header_is_a_fault_and_what_is_behind_it_is_read() {
    let image = Image::defined().closed(0, 1, &event(50));
    let mut whole = open(&image.bytes[..], &image, Activity::Quiet).unwrap();
    let mut expected = Vec::new();
    while whole.read_batch(&mut expected).unwrap() {}
    assert_eq!(whole.header_fault(), None);
    for (word, value) in [
        (field::MAGIC, 1),
        (field::VERSION, 2),
        (field::VERSION, 1 | (1 << 16)),
        (field::TOTAL_SIZE, 32 << 10),
        (field::DURABLE_SIZE, 8),
        (field::ROLLING_SIZE, u64::MAX),
        (field::SLABS, 0),
        (field::CONTROL, 0),
        (field::LEDGER, 0),
        (field::ROLLING, 0),
        (field::DURABLE_DATA_END, !7),
    ] {
        let image = image.clone().header(word, value);
        let mut reader = open(&image.bytes[..], &image, Activity::Quiet).unwrap();
        assert!(reader.header_fault().is_some(), "word {word}");
        assert!(reader.usage(0).unwrap().is_damaged, "word {word}");
        assert!(reader.header().durable_data_end <= image.layout.durable_bytes, "word {word}");
        let mut found = Vec::new();
        while reader.read_batch(&mut found).unwrap() {}
        assert!(found == expected, "word {word}");
    }
    // Only who knows that it was written reads on.
    let blank = image.clone().header(field::MAGIC, 0);
    let error = open(&blank.bytes[..], &blank, Activity::Quiet).err();
    assert!(matches!(error, Some(BufferError::Header(HeaderError::Magic { found: 0 }))), "{error:?}");
    let (layout, part) = (blank.layout, BufferPart::Rest(Activity::Quiet));
    let rate = TicksPerSecond::new(RATE).unwrap();
    let written = BufferReader::open_written(&blank.bytes[..], layout.total_bytes, layout.mode, rate, part);
    let mut found = Vec::new();
    let mut written = written.unwrap();
    while written.read_batch(&mut found).unwrap() {}
    assert!(found == expected && written.header_fault().is_some());
    // No buffer has this size.
    let error = BufferReader::open(&image.bytes[..], 4095, layout.mode, rate, part).err();
    assert!(matches!(error, Some(BufferError::Header(_))), "{error:?}");
}

/// Whatever a header says, word by word: it is refused, or what is read is sound and comes from this buffer.
#[test]
fn every_word_of_the_header_may_say_anything() {
    for mode in [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming] {
        let image = Image::sized(64 << 10, mode).durable(0, &definitions()).closed(0, 1, &event(7));
        for word in 0..HEADER_BYTES / 8 {
            let original = u64::from_le_bytes(*image.bytes[word * 8..].first_chunk().unwrap());
            let around = [1, 8, 0x100, 1 << 32]
                .into_iter()
                .flat_map(|step| [original.wrapping_add(step), original.wrapping_sub(step), original ^ step]);
            let extremes = [0, 1, 7, 8, u64::MAX, u64::MAX - 7, 1 << 63, u64::from(u32::MAX), 64 << 10];
            let ones = (0..64).map(|bit| original ^ 1 << bit);
            for value in around.chain(extremes).chain(ones) {
                let changed = image.clone().header(word, value);
                for activity in [Activity::Quiet, Activity::Live] {
                    let Ok(mut reader) = open(&changed.bytes[..], &changed, activity) else { continue };
                    let mut out = Vec::new();
                    while let Ok(true) = reader.read_batch(&mut out) {}
                    let mut words = out.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
                    let all = with_definitions(&[&event(7)]);
                    assert!(words.all(|word| all.contains(&word)), "{mode:?}, word {word}: {value:#x}");
                    let _ = (reader.losses(), reader.gaps(), reader.written());
                }
            }
        }
    }
}

#[test]
fn a_record_may_end_where_its_region_ends() {
    let mut image = Image::defined();
    let last = image.layout.slab_count() - 1;
    let words = image.layout.slab_bytes as usize / 8;
    let events: Vec<u64> = (0..words as u64 / 2).flat_map(event).collect();
    assert_eq!(
        image.layout.slab(last) + image.layout.slab_bytes,
        image.layout.rolling + image.layout.rolling_bytes
    );
    image = image.closed(last, u64::from(last) + 1, &events);
    assert_eq!(image.read().0, with_definitions(&[&events]));
    // And the last definition.
    let start = image.layout.durable_bytes / 8 - STRING_1.len() as u64;
    let other: Vec<u64> = [STRING_1[0] + (1 << 16), STRING_1[1]].to_vec();
    let image = Image::defined().durable(start, &other);
    assert_eq!(image.read().0, [definitions(), other].concat());
}

#[test]
fn a_file_that_ends_early_is_an_error_wherever_it_ends() {
    let image = Image::defined().closed(0, 1, &event(1));
    // The slab in use is the first of the rolling region; what follows it is never read.
    let needed = image.layout.slab(0) + image.layout.slab_bytes;
    for length in (0..image.bytes.len()).step_by(97).chain([needed as usize - 1, needed as usize]) {
        let source = &image.bytes[..length];
        let result =
            open(source, &image, Activity::Quiet).and_then(|mut reader| reader.read_batch(&mut Vec::new()));
        match result {
            Ok(_) => assert!(length as u64 >= needed, "{length}"),
            Err(BufferError::Short { offset, missing }) => {
                assert!((length as u64) < needed);
                assert!(offset >= length as u64);
                assert!(missing > 0);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

proptest! {
    /// Whatever stands behind the header, reading ends, and what it hands on are whole records.
    #[test]
    fn any_contents_are_read_to_the_end(
        seed in proptest::collection::vec((0_usize..4096, any::<u64>()), 0..600),
        live in any::<bool>(),
    ) {
        let mut image = Image::sized(32 << 10, BufferMode::Oneshot).durable(0, &definitions());
        for (place, value) in seed {
            if place >= HEADER_BYTES / 8 {
                // Small sizes and known types more often than chance would have them.
                let value = if value & 1 == 0 { value & 0xffff_ffff_ffff_00ff } else { value };
                image = image.words(place as u64 * 8, &[value]);
            }
        }
        let activity = if live { Activity::Live } else { Activity::Quiet };
        let (words, findings) = read(&image.bytes[..], &image, activity);
        // What is valid does not depend on how it is copied.
        let (quiet, _) = image.read();
        prop_assert_eq!(&words, &quiet);
        let out = bytes(&words);
        let mut records = crate::Records::of_slice(&out);
        let mut count = 0;
        while let Some(record) = records.next_record().unwrap() {
            prop_assert!(trace_format::record::Record::decode(record.bytes).is_ok());
            count += 1;
        }
        prop_assert_eq!(records.leftover_bytes(), 0);
        prop_assert_eq!(count, findings.records);
    }
}

mod accounts;
mod batches;
mod later_kinds;
mod parts;
mod plausible;
mod runs;
mod shortage;
