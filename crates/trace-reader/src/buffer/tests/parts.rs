//! Buffers that are read in several parts.

use super::*;
use trace_format::slab::Gap;

/// A circular layout of few slabs, with definitions.
fn streaming() -> Image {
    Image::sized(64 << 10, BufferMode::Streaming).durable(0, &definitions())
}

fn definitions_bytes() -> u64 {
    definitions().len() as u64 * 8
}

fn half(wrapped_count: u32) -> BufferPart {
    BufferPart::Half { wrapped_count, durable_bytes: definitions_bytes() }
}

/// Reads parts one after the other, each from an image of its own, and returns the words of each.
fn read_parts(parts: &[(&Image, BufferPart)]) -> Vec<Vec<u64>> {
    struct Changing<'a>(std::cell::Cell<&'a [u8]>);
    impl Source for &Changing<'_> {
        fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
            self.0.get().read_at(offset, bytes)
        }
    }
    let source = Changing(std::cell::Cell::new(&parts[0].0.bytes));
    let layout = parts[0].0.layout;
    let rate = TicksPerSecond::new(RATE).unwrap();
    let mut reader = BufferReader::open(&source, layout.total_bytes, layout.mode, rate, parts[0].1).unwrap();
    let mut all = Vec::new();
    for (index, (image, part)) in parts.iter().enumerate() {
        source.0.set(&image.bytes);
        if index > 0 {
            reader.begin(*part).unwrap();
        }
        let mut out = Vec::new();
        while reader.read_batch(&mut out).unwrap() {}
        all.push(out.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect());
    }
    all
}

//= docs/buffer.md#streaming
#[test]
fn a_half_is_read_once_and_without_what_is_still_written() {
    let image = streaming();
    let n = image.layout.slabs_per_half;
    // Half 0: a slab that was left, one that is still a thread's. Half 1 has begun.
    let first = image
        .closed(0, 1, &event(1))
        .slab(1, SlabWord::new(2, SlabState::Open, 1), &event(2))
        .closed(n, u64::from(n) + 1, &event(3));
    // Later the thread has left its slab, and half 1 is full.
    let second = first.clone().closed(1, 2, &[event(2), event(4)].concat());
    // In the end slab 0 has been taken again, as part of half 2.
    let third = second.clone().slab(0, SlabWord::new(2 * u64::from(n) + 1, SlabState::Open, 1), &event(5));
    let parts =
        read_parts(&[(&first, half(0)), (&second, half(1)), (&third, BufferPart::Rest(Activity::Quiet))]);
    assert_eq!(parts[0], with_definitions(&[&event(1)]));
    assert_eq!(parts[1], [event(2), event(4), event(3)].concat());
    assert_eq!(parts[2], event(5));
}

//= docs/recovery.md#what-is-recovered
#[test]
fn another_reader_continues_behind_what_was_read() {
    let image = streaming();
    let n = u64::from(image.layout.slabs_per_half);
    // A slab of the first half is still a thread's.
    let first = image
        .closed(0, 1, &event(1))
        .slab(1, SlabWord::new(2, SlabState::Open, 1), &event(2))
        .closed(2, n, &event(3));
    let (rate, layout) = (TicksPerSecond::new(RATE).unwrap(), first.layout);
    let read = |reader: &mut BufferReader<&[u8]>| {
        let mut out = Vec::new();
        while reader.read_batch(&mut out).unwrap() {}
        out
    };
    let mut reader =
        BufferReader::open(&first.bytes[..], layout.total_bytes, layout.mode, rate, half(0)).unwrap();
    assert_eq!(read(&mut reader), bytes(&with_definitions(&[&event(1), &event(3)])));
    assert_eq!((reader.left(), reader.durable_bytes()), (&[2][..], definitions_bytes()));
    let before = Before { halves: 1, left: reader.left().to_vec(), durable_bytes: reader.durable_bytes() };
    let second = first.clone().closed(1, 2, &[event(2), event(4)].concat()).closed(3, n + 1, &event(5));
    let mut reader = open(&second.bytes[..], &second, Activity::Quiet).unwrap();
    reader.resume(before).unwrap();
    assert_eq!(read(&mut reader), bytes(&[event(2), event(4), event(5)].concat()));
    assert_eq!(reader.findings().events, 3);
    reader.forget_findings();
    assert_eq!(reader.findings(), &Findings::default());
}

#[test]
fn an_open_slab_is_read_on_where_the_reading_ended() {
    let image = streaming().slab(0, SlabWord::new(1, SlabState::Open, 1), &event(1));
    let later = image.clone().closed(0, 1, &[event(1), event(2)].concat());
    let live = BufferPart::Rest(Activity::Live);
    let parts = read_parts(&[(&image, live), (&image, live), (&later, BufferPart::Rest(Activity::Quiet))]);
    assert_eq!(parts[0], with_definitions(&[&event(1)]));
    assert_eq!(parts[1], [0; 0]);
    assert_eq!(parts[2], event(2));
}

#[test]
fn of_the_durable_region_a_half_gets_what_its_request_names() {
    // Only the first of the definitions, then all.
    let image = streaming();
    let initialization = BufferPart::Half { wrapped_count: 0, durable_bytes: 16 };
    let parts = read_parts(&[(&image, initialization), (&image, half(1))]);
    assert_eq!(parts[0], INITIALIZATION);
    assert_eq!(parts[1], definitions()[2..]);
    // More than the region has is not read.
    let beyond = BufferPart::Half { wrapped_count: u32::MAX, durable_bytes: !7 };
    assert_eq!(read_parts(&[(&image, beyond)])[0], definitions());
}

#[test]
fn a_definition_that_was_under_way_comes_with_a_later_part() {
    let whole = streaming();
    let header = whole.layout.durable as usize + 16;
    let placeholder = 5 | 2 << 4 | 8 << 32 | 1_u64 << 48;
    let mut early = whole.clone();
    early.bytes[header..header + 8].copy_from_slice(&placeholder.to_le_bytes());
    let parts = read_parts(&[(&early, half(0)), (&whole, half(1)), (&whole, half(2))]);
    assert_eq!(parts[0], [&INITIALIZATION[..], &THREAD_1].concat());
    assert_eq!(parts[1], STRING_1);
    assert_eq!(parts[2], [0; 0]);
}

//= docs/buffer.md#gaps
#[test]
fn gaps_come_in_order_with_their_reason() {
    let image = Image::sized(1 << 20, BufferMode::Streaming);
    let (early, late) =
        (Gap { half: 2, reason: LossReason::NotRetired }, Gap { half: 7, reason: LossReason::NotSaved });
    let (first, second) = (image.layout.gap(3), image.layout.gap(0));
    let image = image
        .words(first, &[10, !100, 200, late.to_word()])
        .words(second, &[3, !50, 60, early.to_word()])
        // Prepared, and no write was refused.
        .words(image_gap(5), &[0, 0, 0, Gap { half: 8, reason: LossReason::NotSaved }.to_word()]);
    let reader = open(&image.bytes[..], &image, Activity::Quiet).unwrap();
    let found: Vec<_> = reader.gaps().unwrap().iter().map(|gap| (gap.gap, gap.loss)).collect();
    assert_eq!(
        found,
        [(early, Loss { count: 3, first: 50, last: 60 }), (late, Loss { count: 10, first: 100, last: 200 }),]
    );
}

fn image_gap(index: u32) -> u64 {
    Layout::new(1 << 20, BufferMode::Streaming).unwrap().gap(index)
}

/// Nothing comes twice, and what was closed and read is not even looked at again.
//= docs/protocol.md#observers
#[test]
fn a_buffer_is_read_again_and_again_while_it_is_written() {
    let image = Image::sized(64 << 10, BufferMode::Circular).durable(0, &definitions());
    let open = |sequence| SlabWord::new(sequence, SlabState::Open, 1);
    let first = image.clone().closed(0, 1, &event(1)).slab(1, open(2), &event(2));
    // The thread goes on in its slab, and another slab is claimed.
    let second = first.clone().slab(1, open(2), &[event(2), event(3)].concat()).slab(2, open(3), &event(4));
    // A slab that was closed has more than it can have; another one was claimed again.
    let third = second.clone().closed(0, 1, &[event(1), event(9)].concat()).closed(2, 100, &event(5));
    let live = BufferPart::Rest(Activity::Live);
    let parts = read_parts(&[(&first, live), (&first, live), (&second, live), (&third, live)]);
    assert_eq!(parts[0], with_definitions(&[&event(1), &event(2)]));
    assert_eq!(parts[1], [0; 0]);
    assert_eq!(parts[2], [event(3), event(4)].concat());
    assert_eq!(parts[3], event(5));
}

//= docs/protocol.md#observers
#[test]
fn of_too_much_the_newest_is_read_and_the_rest_never() {
    let image = Image::sized(64 << 10, BufferMode::Circular).durable(0, &definitions());
    let slab_bytes = image.layout.slab_bytes;
    let image =
        (0..4).fold(image, |image, slab| image.closed(slab, u64::from(slab) + 1, &event(u64::from(slab))));
    let mut reader = open(&image.bytes[..], &image, Activity::Live).unwrap();
    let read = |reader: &mut BufferReader<&[u8]>| {
        let mut out = Vec::new();
        while reader.read_batch(&mut out).unwrap() {}
        (out.len() as u64, reader.findings().rolling_records)
    };
    reader.skip_to_newest(2 * slab_bytes);
    assert_eq!(read(&mut reader), (definitions_bytes() + 2 * 8 * event(1).len() as u64, 2));
    reader.begin(BufferPart::Rest(Activity::Live)).unwrap();
    assert_eq!(read(&mut reader), (0, 2));
    // One slab at least is read, however large it is.
    let mut reader = open(&image.bytes[..], &image, Activity::Live).unwrap();
    reader.skip_to_newest(1);
    assert_eq!(read(&mut reader).1, 1);
}
