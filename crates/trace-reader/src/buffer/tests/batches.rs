//! How slabs get into the output.

use super::*;
use std::cell::RefCell;

/// A buffer that remembers how it was read.
struct Watched<'a> {
    bytes: &'a [u8],
    reads: RefCell<Vec<(u64, usize)>>,
}

impl Source for Watched<'_> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.reads.borrow_mut().push((offset, bytes.len()));
        self.bytes.read_at(offset, bytes)
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
    let source = Watched { bytes: &image.bytes, reads: RefCell::default() };
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
