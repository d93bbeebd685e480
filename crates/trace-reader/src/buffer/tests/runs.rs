//! Records larger than a slab.

use super::*;
use trace_format::slab::{TALLY_BYTES, Tally};

impl Image {
    /// A slab's tally: records in all claims, and before the present one.
    fn tally(self, slab: u32, total: u64, before: u64) -> Self {
        let place = self.layout.tallies + u64::from(slab) * TALLY_BYTES;
        self.words(place + Tally::TOTAL, &[total]).words(place + Tally::BEFORE, &[before])
    }
}

/// A thread was killed when it had claimed the beginning of a run and not taken it, after another had taken
/// the end.
//= docs/buffer.md#late-threads
#[test]
fn a_run_whose_end_was_taken_is_gone() {
    let whole = Image::sized(64 << 10, BufferMode::Circular)
        .durable(0, &definitions())
        .slab(0, SlabWord::new(1, SlabState::Closed, 2), &event(10))
        .slab(1, SlabWord::continuation(2, false), &[])
        .tally(0, 1, 0);
    let account = |image: &Image| {
        let mut reader = open(&image.bytes[..], image, Activity::Quiet).unwrap();
        while reader.read_batch(&mut Vec::new()).unwrap() {}
        let gone = reader.losses().unwrap()[LossReason::Overwritten as usize].1.count;
        (reader.findings().events, gone, reader.written().unwrap().records)
    };
    assert_eq!(account(&whole), (1, 0, 1));
    let sequence = u64::from(whole.layout.slab_count()) + 2;
    let cut = whole.closed(1, sequence, &event(20)).tally(1, 1, 0);
    assert_eq!(account(&cut), (1, 1, 2), "the other record is there, and that of the run is gone");
}
