//! How much of a buffer is in use, and what was counted of it.

use super::*;

fn reader(image: &Image) -> BufferReader<&[u8]> {
    open(&image.bytes[..], image, Activity::Quiet).unwrap()
}

/// A tally's counts, in all claims and before the present one.
fn tally(image: Image, slab: u32, total: u64, before: u64) -> Image {
    let place = image.layout.tally(slab);
    image.words(place, &[total, before])
}

#[test]
fn what_was_claimed_and_not_returned_is_in_use() {
    let of = |mode, saved| {
        let image = Image::sized(64 << 10, mode);
        let layout = image.layout;
        let loss = |image: Image, reason, count| image.words(layout.loss_entry(reason), &[count, !1, 2]);
        // The slab claimed last is the third of the second half, or of the buffer.
        let before = if mode == BufferMode::Oneshot { 0 } else { u64::from(layout.slabs_per_half) };
        let image = image.closed(0, 10, &[]).closed(1, 11 + before, &[]).closed(2, 12 + before, &[]);
        let image = tally(tally(image, 0, 4, 0), 5, 3, 3);
        let image = loss(loss(image, LossReason::Full, 4), LossReason::TooLarge, 2);
        let image = loss(loss(image, LossReason::Overwritten, 9), LossReason::Cleared, 8);
        let image = image.header(field::FLOOR_SEQUENCE, 10).header(field::DURABLE_DATA_END, 56);
        let in_use = 3 + before - saved * u64::from(layout.slabs_per_half);
        let expected = Usage {
            records: 7,
            refused: 6,
            claimed_bytes: (3 + before) * layout.slab_bytes,
            held_bytes: in_use * layout.slab_bytes + 56,
            rolling_percent: 100.0 * in_use as f32 / layout.slab_count() as f32,
            is_damaged: false,
        };
        assert_eq!(reader(&image).usage(saved).unwrap(), expected, "{mode:?}");
    };
    of(BufferMode::Oneshot, 0);
    of(BufferMode::Circular, 0);
    of(BufferMode::Streaming, 0);
    of(BufferMode::Streaming, 1);
}

#[test]
fn definitions_and_slabs_that_were_never_claimed_are_unused() {
    let image = Image::defined().closed(1, 1, &event(1)).slab(3, SlabWord::given_back(2), &[]);
    let layout = image.layout;
    let slabs = |begin, end| layout.slab(begin)..layout.slab(end);
    let end = layout.durable + layout.durable_bytes;
    let all = [layout.durable + 56..end, slabs(0, 1), slabs(2, 3), slabs(4, layout.slab_count())];
    assert_eq!(reader(&image).unused(56).unwrap(), all);
    assert_eq!(reader(&image).unused(u64::MAX).unwrap()[0], end..end);
}

//= docs/buffer.md#tallies
#[test]
fn records_of_an_open_slab_are_those_that_were_found_in_it() {
    let open_at = |sequence| SlabWord::new(sequence, SlabState::Open, 1);
    let image = Image::defined().header(field::FLOOR_SEQUENCE, 5);
    let image = tally(image.slab(0, open_at(6), &[event(1), event(2)].concat()), 0, 10, 10);
    // It is just being closed: its records are counted.
    let image = tally(image.slab(1, open_at(7), &event(3)), 1, 3, 2);
    // Of another run.
    let image = tally(image.slab(2, open_at(4), &[]), 2, 4, 4);
    let image = tally(image.closed(3, 8, &[]), 3, 1, 1);
    let mut reader = reader(&image);
    let written = |records| Written { records, open_slabs: 1, is_damaged: false };
    assert_eq!(reader.written().unwrap(), written(18));
    while reader.read_batch(&mut Vec::new()).unwrap() {}
    assert_eq!(reader.written().unwrap(), written(20));
}
