//! Records of kinds that only later versions of the format have.

use super::*;
use trace_format::metadata::MAGIC_WORD;

//= docs/buffer.md#kinds-that-are-not-known
#[test]
fn kinds_that_are_not_known_are_handed_on() {
    let records = (11..=14).map(|kind| vec![kind | 3 << 4, 7, 8]);
    let scheduling = (4..=15).map(|kind| vec![8 | 2 << 4 | kind << 60, 7]);
    let profiler = (3..=15).map(|kind| vec![10 | 1 << 4 | kind << 16]);
    let large = (1..=15).map(|kind| vec![15 | 2 << 4 | kind << 36, 7]);
    let large_blobs = (2..=15).map(|format| vec![15 | 1 << 4 | format << 40]);
    let blobs = (0..=255).map(|kind| vec![5 | 1 << 4 | 1 << 16 | kind << 48]);
    let objects = (0..=255).map(|kind| vec![7 | 2 << 4 | kind << 16 | 1 << 24, 9]);
    let all = records.chain(scheduling).chain(profiler).chain(large).chain(large_blobs);
    for record in all.chain(blobs).chain(objects) {
        let slab = [&event(1)[..], &record, &event(2)].concat();
        let (words, findings) = Image::defined().closed(1, 1, &slab).read();
        assert_eq!(words, with_definitions(&[&slab]));
        assert_eq!((findings.bad_records, findings.events, findings.rolling_records), (0, 2, 3));
    }
}

/// Of an event of a kind that is not known, everything that all kinds have is checked.
#[test]
fn events_of_kinds_that_are_not_known_are_checked_as_events() {
    for kind in 11..=15 {
        let header = |thread: u64, category: u64, name: u64| {
            4 | 3 << 4 | kind << 16 | thread << 24 | category << 32 | name << 48
        };
        let good = [header(1, 1, 1), 30, 77];
        let bad = [
            ([header(2, 1, 1), 30, 77], Fault::Thread { index: 2 }),
            ([header(1, 2, 1), 30, 77], Fault::String { index: 2 }),
            ([header(1, 1, 2), 30, 77], Fault::String { index: 2 }),
        ];
        for (wrong, fault) in bad {
            let image = Image::defined().closed(1, 1, &[&good[..], &wrong, &event(2)].concat());
            let (words, findings) = image.read();
            assert_eq!(words, with_definitions(&[&good, &event(2)]));
            assert_eq!((findings.events, findings.rolling_records), (2, 2));
            assert_eq!(findings.first_bad[0].fault, fault);
        }
    }
}

/// A reader of the archive could take it for damage, and go on with the records that it contains.
//= docs/buffer.md#kinds-that-are-not-known
#[test]
fn a_record_that_contains_those_of_another_program_is_left_out() {
    let section = 2 << 20 | 0x2_0010;
    let of_another = [&[section][..], &event(5), &event(6), &event(7)].concat();
    // The first inner record continues behind the outer one; the second ends with it.
    let unfinished = [section, 5 | 9 << 4];
    for contents in [&of_another[..], &unfinished, &[section], &[MAGIC_WORD]] {
        let words = contents.len() as u64;
        let unknown = [&[12 | (1 + words) << 4][..], contents].concat();
        let longer = [&[event(1)[0] + (words << 4) + (2 << 16), 1][..], contents].concat();
        let blob = [&[5 | (1 + words) << 4 | 1 << 16 | (8 * words) << 32 | 1 << 48][..], contents].concat();
        for odd in [unknown, longer] {
            let image = Image::defined().closed(1, 1, &[&blob[..], &odd, &event(2)].concat());
            let (words, findings) = image.read();
            assert_eq!(words, with_definitions(&[&blob, &event(2)]));
            let place = image.layout.slab(1) + blob.len() as u64 * 8;
            assert_eq!(findings.first_bad, bad(RegionName::Rolling, place, Fault::Ambiguous));
        }
    }
    // An instant whose scope it is.
    let instant = [event(1)[0] + (1 << 4), 1, section];
    let (words, findings) = Image::defined().closed(1, 1, &[&instant[..], &event(2)].concat()).read();
    assert_eq!(words, with_definitions(&[&event(2)]));
    assert_eq!(findings.first_bad[0].fault, Fault::Ambiguous);
    // A time that looks like a section is followed by what is no record.
    let time = [12 | 3 << 4, section, 0];
    let (words, findings) = Image::defined().closed(1, 1, &time).read();
    assert_eq!((words, findings.bad_records), (with_definitions(&[&time]), 0));
}

//= docs/buffer.md#kinds-that-are-not-known
#[test]
fn a_definition_of_a_kind_that_is_not_known_is_handed_on() {
    let all: Vec<u64> = (11..=14).flat_map(|kind| [kind | 2 << 4, 7]).collect();
    let (words, findings) = Image::defined().durable(7, &all).read();
    assert_eq!(words, with_definitions(&[&all]));
    assert_eq!(findings.bad_records, 0);
}
