//! How slabs get into the output.

use super::*;
use std::cell::RefCell;

/// A buffer that remembers how it was read.
struct Watched<'a, S: ?Sized> {
    source: &'a S,
    reads: RefCell<Vec<(u64, usize)>>,
}

impl<S: Source + ?Sized> Source for Watched<'_, S> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.reads.borrow_mut().push((offset, bytes.len()));
        self.source.read_at(offset, bytes)
    }
}

#[test]
fn slabs_that_are_side_by_side_are_read_at_once() {
    let mut image = Image::sized(1 << 20, BufferMode::Circular).durable(0, &definitions());
    let (slab_bytes, first) = (image.layout.slab_bytes as usize, image.layout.slab(0));
    // Claimed in the order 0, 1, 2, 5, 6, 3.
    for (sequence, slab) in (1..).zip([0, 1, 2, 5, 6, 3]) {
        image = image.closed(slab, sequence, &event(sequence));
    }
    let source = Watched { source: &image.bytes[..], reads: RefCell::default() };
    let mut reader = open(&source, &image, Activity::Quiet).unwrap();
    let mut out = vec![7; 5];
    assert!(!reader.read_batch(&mut out).unwrap());
    let events: Vec<_> = (1..=6).flat_map(event).collect();
    assert_eq!(out[..5], [7; 5]);
    assert_eq!(out[5..], bytes(&with_definitions(&[&events])));
    let mut reads = source.reads.take();
    reads.retain(|(offset, _)| *offset >= first);
    let slab = |slab: u32| image.layout.slab(slab);
    assert_eq!(reads, [(first, 3 * slab_bytes), (slab(5), 2 * slab_bytes), (slab(3), slab_bytes)]);
}

#[test]
fn what_is_left_out_leaves_no_gap() {
    let bad = [0x24 | (9 << 24), 1];
    let records: [&[[u64; 2]]; 4] =
        [&[event(1), bad, event(2)], &[bad], &[event(3), event(4)], &[bad, event(5)]];
    let mut image = Image::defined();
    for (slab, records) in (0..).zip(records) {
        image = image.closed(slab, u64::from(slab) + 1, records.as_flattened());
    }
    let (words, findings) = image.read();
    let events: Vec<_> = (1..=5).flat_map(event).collect();
    assert_eq!(words, with_definitions(&[&events]));
    assert_eq!((findings.bad_records, findings.rolling_records, findings.rolling_bytes), (3, 5, 80));
}

/// Definitions are many bytes, and slabs are many batches: they are read when a record needs one that is not
/// known, and at the end.
//= docs/buffer.md#reading
#[test]
fn definitions_of_a_live_buffer_are_read_where_they_are_missing() {
    const STRING_2: [u64; 2] = [0x1_0002_0022, 0x62];
    const STRING_3: [u64; 2] = [0x1_0003_0022, 0x63];
    let mut image = Image::sized(4 << 20, BufferMode::Oneshot).durable(0, &definitions());
    let slabs = 5 * (BATCH_BYTES as u64 / image.layout.slab_bytes);
    for number in 0..slabs {
        image = image.closed(number as u32, number + 1, &event(number));
    }
    // In the third batch a name is new; another is never used.
    let named = [0x24 | 1 << 24 | 2 << 48, slabs / 2];
    let image = image.closed(slabs as u32 / 2, slabs / 2 + 1, &named);
    let image = image.durable(7, &[STRING_2, STRING_3].concat());
    // The reader knows what was there when it read the first batch.
    let earlier = image.clone().durable(7, &[0; 4]);
    let source = Changing { before: &earlier, after: &image, reads: Cell::new(u32::MAX) };
    let watched = Watched { source: &source, reads: RefCell::default() };
    let mut reader = open(&watched, &image, Activity::Live).unwrap();
    let mut batches = Vec::new();
    for number in 0..6 {
        let mut out = vec![7; 3];
        let is_more = reader.read_batch(&mut out).unwrap();
        assert_eq!(out[..3], [7; 3]);
        source.reads.set(0);
        let durable = |(offset, length): &(u64, usize)| {
            *offset >= image.layout.durable && *offset < image.layout.rolling && *length > 8
        };
        let reads = watched.reads.take().iter().filter(|read| durable(read)).count();
        batches.push((out[3..].to_vec(), reads));
        if !is_more {
            assert_eq!(number, 4);
            break;
        }
    }
    let events = |batch: u64| {
        let numbers = batch * slabs / 5..(batch + 1) * slabs / 5;
        numbers.flat_map(|number| if number == slabs / 2 { named } else { event(number) }).collect::<Vec<_>>()
    };
    let with = |records: &[&[u64]]| bytes(&records.concat());
    assert_eq!(batches[0], (with(&[&definitions(), &events(0)]), 2));
    assert_eq!(batches[1], (with(&[&events(1)]), 0));
    assert_eq!(batches[2], (with(&[&STRING_2, &STRING_3, &events(2)]), 2));
    assert_eq!(batches[3], (with(&[&events(3)]), 0));
    assert_eq!(batches[4], (with(&[&events(4)]), 2));
    assert_eq!((reader.findings().bad_records, reader.findings().events), (0, slabs));
}

/// Slabs side by side are copied together, closed ones once. One that was claimed anew meanwhile is left out,
/// and its neighbours are not.
//= docs/buffer.md#reading
#[test]
fn live_slabs_side_by_side_are_copied_together() {
    let mut image = Image::sized(1 << 20, BufferMode::Circular).durable(0, &definitions());
    for slab in 0..20 {
        image = image.closed(slab, u64::from(slab) + 1, &event(u64::from(slab)));
    }
    let open_slab = SlabWord::new(19, SlabState::Open, 1);
    let image = image.slab(18, open_slab, &[event(18), event(118)].concat());
    let later = image.clone().closed(3, 100, &event(100)).closed(17, 101, &event(101));
    let slab_bytes = image.layout.slab_bytes as usize;
    // Header and words; then, of two groups, words, one copy and words; words, two copies and words.
    for (reads, missing) in [(3, vec![3, 17]), (4, vec![3, 17]), (5, vec![17]), (8, vec![17]), (9, vec![])] {
        let source = Changing { before: &image, after: &later, reads: Cell::new(reads) };
        let watched = Watched { source: &source, reads: RefCell::default() };
        let mut reader = open(&watched, &image, Activity::Live).unwrap();
        let mut out = Vec::new();
        assert!(!reader.read_batch(&mut out).unwrap());
        let expected = (0..20).filter(|slab| !missing.contains(slab));
        let expected = expected.flat_map(|slab| match slab {
            18 => [event(18), event(118)].concat(),
            slab => event(slab).to_vec(),
        });
        assert_eq!(out, bytes(&with_definitions(&[&expected.collect::<Vec<_>>()])), "{reads}");
        let lengths: Vec<usize> = watched.reads.take().into_iter().map(|(_, length)| length).collect();
        let groups = [128, 16 * slab_bytes, 128, 32, 4 * slab_bytes, 4 * slab_bytes, 32];
        assert_eq!(lengths[2..9], groups, "{reads}");
    }
}
