//! Counters and times that no writer can have left.

use super::*;
use trace_format::slab::{Gap, TALLY_BYTES};

/// A buffer that was made at tick 5000 and is read a microsecond later; a tick is a nanosecond.
const PERIOD: Period = Period { made: 5000, read: 6000 };
/// What was counted in a microsecond, at most.
const MOST: u64 = 16_000 + (1 << 20);
const HOUR: u64 = 3600 * RATE;
const LATEST: u64 = PERIOD.read + HOUR;

struct Owned(Vec<u8>);

impl Source for Owned {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, bytes)
    }
}

fn read_in(image: &Image) -> (BufferReader<Owned>, Vec<u64>) {
    let mut reader = open(Owned(image.bytes.clone()), image, Activity::Quiet).unwrap();
    reader.set_period(PERIOD);
    let mut out = Vec::new();
    while reader.read_batch(&mut out).unwrap() {}
    let words = out.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    (reader, words)
}

fn loss(image: Image, reason: LossReason, words: [u64; 3]) -> Image {
    let place = image.layout.loss_entry(reason);
    image.words(place, &words)
}

//= docs/buffer.md#contents-that-are-checked
#[test]
fn a_record_of_a_time_that_is_still_to_come_is_left_out() {
    let complete = |begin, end| [0x34 | 4 << 16 | (1 << 24) | (1 << 48), begin, end];
    let log = |at| [0x9 | 3 << 4 | 1 << 16 | 1 << 32, at, 0x61];
    // A kernel object has a number in the place of a time.
    let object = [0x0101_0027, u64::MAX];
    let sound = [&event(0)[..], &event(LATEST), &complete(1, LATEST), &log(LATEST), &object].concat();
    let ahead = [&event(LATEST + 1)[..], &complete(1, LATEST + 1), &complete(LATEST + 1, 1), &log(u64::MAX)];
    let image = Image::defined().closed(0, 1, &[&sound[..], &ahead.concat()].concat());
    let (reader, words) = read_in(&image);
    assert_eq!(words, with_definitions(&[&sound]));
    let findings = reader.findings();
    assert_eq!((findings.events, findings.bad_records, findings.bad_rolling_records), (4, 4, 4));
    let faults: Vec<Fault> = findings.first_bad.iter().map(|bad| bad.fault).collect();
    let future = |found| Fault::Future { found, latest: LATEST };
    assert_eq!(faults, [future(LATEST + 1), future(LATEST + 1), future(LATEST + 1), future(u64::MAX)]);
    // Where it is not known when it is read, any time may be.
    assert_eq!(image.read().1.bad_records, 0);
}

//= docs/buffer.md#contents-that-are-checked
#[test]
fn impossible_counters_are_damaged_and_count_as_nothing() {
    let honest = loss(Image::defined(), LossReason::Full, [MOST, !5500, LATEST]);
    let (reader, _) = read_in(&honest);
    let ledger = reader.ledger().unwrap();
    assert_eq!(ledger.damaged, 0);
    assert_eq!(ledger.losses[0], (LossReason::Full, Loss { count: MOST, first: 5500, last: LATEST }));
    assert!(!reader.usage(0).unwrap().is_damaged);

    let image = loss(honest, LossReason::TooLarge, [MOST + 1, !5500, 5600]);
    let image = loss(image, LossReason::NestedTooDeep, [1, !5500, LATEST + 1]);
    let image = loss(image, LossReason::KernelOverrun, [u64::MAX, 0, 0]);
    let (reader, _) = read_in(&image);
    let ledger = reader.ledger().unwrap();
    assert_eq!(ledger.damaged, 3);
    let counts: Vec<u64> = ledger.losses.iter().map(|(_, loss)| loss.count).collect();
    assert_eq!(counts[0], MOST);
    assert!(counts[1..].iter().all(|count| *count == 0), "{counts:?}");
    assert_eq!(ledger.counts[LossReason::TooLarge as usize], MOST + 1);
    let usage = reader.usage(0).unwrap();
    assert!(usage.is_damaged);
    assert_eq!(usage.refused, MOST);
}

//= docs/buffer.md#contents-that-are-checked
#[test]
fn impossible_slabs_and_records_are_not_counted() {
    let tally = |image: Image, slab: u32, total: u64| {
        let place = image.layout.tallies + u64::from(slab) * TALLY_BYTES;
        image.words(place, &[total, total, 0, 0])
    };
    let image = tally(Image::defined(), 0, MOST);
    let (reader, _) = read_in(&image);
    assert_eq!(reader.written().unwrap(), Written { records: MOST, ..Written::default() });
    assert_eq!(reader.usage(0).unwrap().records, MOST);
    let (reader, _) = read_in(&tally(image, 1, 1));
    assert_eq!(reader.written().unwrap(), Written { is_damaged: true, ..Written::default() });
    let usage = reader.usage(0).unwrap();
    assert_eq!((usage.records, usage.is_damaged), (0, true));

    let most = 1000 + 4 * u64::from(Image::defined().layout.slab_count());
    let (reader, _) = read_in(&Image::defined().closed(0, most, &[]));
    let usage = reader.usage(0).unwrap();
    assert_eq!((usage.claimed_bytes, usage.is_damaged), (most * Image::defined().layout.slab_bytes, false));
    let (reader, _) = read_in(&Image::defined().closed(0, most + 1, &[]));
    let usage = reader.usage(0).unwrap();
    assert_eq!((usage.claimed_bytes, usage.rolling_percent, usage.is_damaged), (0, 0.0, true));
}

//= docs/buffer.md#contents-that-are-checked
#[test]
fn a_circular_buffer_has_not_gone_over_more_than_could_be_written() {
    let image = Image::sized(64 << 10, BufferMode::Circular).durable(0, &definitions());
    let place = image.layout.tallies;
    let image = image.words(place, &[MOST + 1, MOST + 1, 0, 0]);
    let (reader, _) = read_in(&image);
    let ledger = reader.ledger().unwrap();
    assert_eq!(ledger.damaged, 1);
    assert_eq!(ledger.losses[LossReason::Overwritten as usize].1.count, 0);
}

//= docs/buffer.md#contents-that-are-checked
#[test]
fn impossible_gaps_are_damaged() {
    let image = Image::sized(1 << 20, BufferMode::Streaming).durable(0, &definitions());
    let gap = |half| Gap { half, reason: LossReason::NotSaved }.to_word();
    let (first, second, third) = (image.layout.gap(0), image.layout.gap(2), image.layout.gap(4));
    let image = image.words(first, &[MOST, !1, 2, gap(1)]);
    let image = image.words(second, &[MOST + 1, !1, 2, gap(2)]).words(third, &[1, !1, u64::MAX, gap(3)]);
    let (reader, _) = read_in(&image);
    let (gaps, damaged) = reader.gaps_and_damaged().unwrap();
    assert_eq!(gaps.iter().map(|gap| gap.gap.half).collect::<Vec<_>>(), [1]);
    assert_eq!(damaged, 2);
}

/// What the header counts is left out where no writer can have stored it, and is a fault.
//= docs/buffer.md#contents-that-are-checked
#[test]
fn impossible_values_of_the_header_are_left_out() {
    let image = Image::defined().closed(0, 5, &event(50));
    let fault = |word, value| {
        let image = image.clone().header(word, value);
        let mut reader = open(&image.bytes[..], &image, Activity::Quiet).unwrap();
        reader.set_period(PERIOD);
        let mut out = Vec::new();
        while reader.read_batch(&mut out).unwrap() {}
        (reader.findings().events, reader.header().records_dropped, reader.header_fault())
    };
    let limit = 5 + 4 * u64::from(image.layout.slab_count()) + 1;
    assert_eq!(fault(field::FLOOR_SEQUENCE, 5), (1, 0, None));
    // So many tickets may have been skipped: the slab does not exist any more.
    assert_eq!(fault(field::FLOOR_SEQUENCE, limit), (0, 0, None));
    let found = limit + 1;
    let expected = HeaderError::FloorSequence { found, limit };
    assert_eq!(fault(field::FLOOR_SEQUENCE, found), (1, 0, Some(expected)));
    assert_eq!(fault(field::END_TS, 0), (1, 0, Some(HeaderError::EndTimestamp { found: 0 })));
    assert_eq!(fault(field::END_TS, 1), (0, 0, None), "it is late");
    let found = u64::MAX - 1;
    assert_eq!(fault(field::END_TS, found), (1, 0, Some(HeaderError::EndTimestamp { found })));
    assert_eq!(fault(field::RECORDS_DROPPED, 7), (1, 7, None));
    let (events, dropped, fault) = fault(field::RECORDS_DROPPED, u64::MAX);
    assert_eq!((events, dropped), (1, 0));
    assert!(matches!(fault, Some(HeaderError::RecordsDropped { found: u64::MAX, .. })), "{fault:?}");
}
