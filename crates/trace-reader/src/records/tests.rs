use super::*;
use crate::testing::{COMPLETE, COMPLETE_STARTS, Trickle, bytes};
use proptest::prelude::*;
use std::io::ErrorKind;

/// Offset and size in bytes of every record, and how it ended.
fn split<I: Input>(mut records: Records<I>) -> (Vec<(u64, usize)>, Option<ReadError>, Records<I>) {
    let mut found = Vec::new();
    loop {
        match records.next_record() {
            Ok(Some(record)) if record.earlier > 0 => {}
            Ok(Some(record)) => found.push((record.offset.0, record.size.bytes())),
            Ok(None) => return (found, None, records),
            Err(error) => return (found, Some(error), records),
        }
    }
}

/// Offset and size of the records of [`COMPLETE`] that end within so many bytes.
fn complete_within(length: usize) -> Vec<(u64, usize)> {
    let ends = COMPLETE_STARTS.iter().skip(1).copied().chain([COMPLETE.len()]);
    let records = COMPLETE_STARTS.iter().zip(ends).filter(|(_, end)| end * 8 <= length);
    records.map(|(start, end)| (*start as u64 * 8, (end - start) * 8)).collect()
}

#[test]
fn a_cut_anywhere_leaves_the_records_before_it() {
    let trace = bytes(&COMPLETE);
    for cut in 0..=trace.len() {
        let (found, error, records) = split(Records::of_slice(&trace[..cut]));
        let expected = complete_within(cut);
        assert!(error.is_none());
        let end = expected.last().map_or(0, |(offset, size)| *offset as usize + size);
        assert_eq!(found, expected, "cut at {cut}");
        let leftover = Leftover { offset: Offset(end as u64), bytes: (cut - end) as u64 };
        assert_eq!(records.leftover(), (cut > end).then_some(leftover), "cut at {cut}");
        assert_eq!(records.leftover_bytes(), (cut - end) as u64);
    }
}

#[test]
fn records_come_with_their_words() {
    let trace = bytes(&COMPLETE);
    let mut records = Records::of_slice(&trace);
    let mut all = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        assert!(record.is_whole());
        assert_eq!(record.header().size(), record.size);
        all.extend_from_slice(record.bytes);
    }
    assert_eq!(all, trace);
    assert_eq!(records.position(), Offset(216));
    assert_eq!(records.next_record().unwrap(), None);
}

#[test]
fn a_source_of_single_bytes_changes_nothing() {
    let trace = bytes(&COMPLETE);
    for cut in [trace.len(), trace.len() - 1, 9, 0] {
        let (found, error, records) =
            split(Records::of_stream(Trickle { bytes: &trace[..cut], is_interrupted: false }));
        assert!(error.is_none());
        assert_eq!(found, complete_within(cut));
        assert_eq!(records.leftover(), split(Records::of_slice(&trace[..cut])).2.leftover());
    }
}

#[test]
fn zero_words_between_records_are_skipped_and_counted() {
    let trace = bytes(&[0, COMPLETE[0], 0, 0, 0x10_0011, 0]);
    let mut records = Records::of_slice(&trace);
    assert_eq!(records.next_record().unwrap().unwrap().offset, Offset(8));
    assert_eq!(records.zero_words(), 1);
    assert_eq!(records.next_record().unwrap().unwrap().offset, Offset(32));
    assert_eq!(records.zero_words(), 3);
    assert_eq!(records.next_record().unwrap(), None);
    assert_eq!(records.zero_words(), 4);
    assert_eq!(records.leftover(), None);
}

#[test]
//= docs/format.md#damage
fn without_a_place_to_resume_a_record_without_size_is_the_end() {
    // An initialization record behind it is no such place, and neither is a magic number in a string.
    let trace = bytes(&[COMPLETE[0], 0x1_0004, 0x21, 1000, 0x22 | 1 << 16 | 8 << 32, COMPLETE[0], 0x77]);
    for stream in [false, true] {
        let (found, error) = if stream {
            let (found, error, mut records) = split(Records::of_stream(&trace[..]));
            assert!(records.next_record().unwrap().is_none());
            (found, error)
        } else {
            let (found, error, _) = split(Records::of_slice(&trace));
            (found, error)
        };
        assert_eq!(found, [(0, 8)]);
        let header = RecordHeader(0x1_0004);
        assert!(
            matches!(error, Some(ReadError::NoSize { offset: Offset(8), header: found }) if found == header)
        );
        let text =
            "record at byte 8: expected a size of at least 1 word, found 0 in header 0x0000000000010004";
        assert_eq!(error.unwrap().to_string(), text);
    }
}

#[test]
//= docs/format.md#damage
fn reading_is_resumed_behind_damage() {
    // A record without size, then bytes of any number, then a complete trace.
    for garbage in [0, 1, 8, 13, 5000, 700_000] {
        let mut trace = bytes(&COMPLETE);
        trace.extend(bytes(&[0x1_0004]));
        trace.extend((0..garbage).map(|byte| (byte % 251) as u8 | 1));
        let resumed = trace.len() as u64;
        trace.extend(bytes(&COMPLETE));
        let mut expected = complete_within(216);
        expected.extend(complete_within(216).into_iter().map(|(offset, size)| (offset + resumed, size)));
        let (found, error, mut records) = split(Records::of_slice(&trace));
        assert!(error.is_none());
        assert_eq!(found, expected, "{garbage} bytes of garbage");
        assert_eq!(records.take_gap(), Some(Gap { offset: Offset(216), bytes: resumed - 216 }));
        let (found, error, mut records) = split(Records::of_stream(&trace[..]));
        assert!(error.is_none());
        assert_eq!(found, expected, "{garbage} bytes of garbage");
        assert_eq!(records.take_gap(), Some(Gap { offset: Offset(216), bytes: resumed - 216 }));
    }
}

/// A large record of so many words, the magic number behind it.
fn large(size_words: u64) -> Vec<u8> {
    let mut words = vec![0; size_words as usize];
    words[0] = 0xf | (size_words << 4) | (1 << 40);
    words.push(COMPLETE[0]);
    bytes(&words)
}

#[test]
fn large_records_have_a_size_of_32_bits() {
    for words in [8, 4095, 4096, 4099] {
        let trace = large(words);
        let (found, error, _) = split(Records::of_slice(&trace));
        assert!(error.is_none());
        assert_eq!(found, [(0, words as usize * 8), (words * 8, 8)]);
    }
}

#[test]
fn a_record_too_large_to_be_held_comes_in_pieces() {
    fn check<I: Input>(mut records: Records<I>, trace: &[u8], words: usize, piece_bytes: usize) {
        let mut all = Vec::new();
        while all.len() < words * 8 {
            let record = records.next_record().unwrap().unwrap();
            assert_eq!((record.offset, record.size), (Offset(0), Words(words)));
            assert_eq!(record.earlier, all.len() as u64);
            assert_eq!(record.bytes.len(), piece_bytes.min(words * 8 - all.len()));
            assert_eq!(record.is_whole(), words * 8 <= piece_bytes);
            all.extend_from_slice(record.bytes);
        }
        assert_eq!(all, trace[..words * 8]);
        assert_eq!(records.next_record().unwrap().unwrap().offset, Offset(words as u64 * 8));
        assert!(records.next_record().unwrap().is_none());
        assert_eq!(records.leftover(), None);
    }
    let words = 300_000;
    let trace = large(words as u64);
    let mib = 1 << 20;
    check(Records::of_slice(&trace), &trace, words, mib);
    check(Records::of_stream(&trace[..]), &trace, words, mib);
    check(Records::of_stream(&trace[..]).with_max_piece_bytes(100_003), &trace, words, 100_000);
    check(Records::of_stream(&trace[..]).with_max_piece_bytes(0), &trace, words, 32_760);
    check(Records::of_stream(&trace[..]).with_max_piece_bytes(words * 8), &trace, words, words * 8);
    check(Records::of_stream(Trickle { bytes: &trace, is_interrupted: false }), &trace, words, mib);
}

#[test]
fn a_large_record_that_is_cut_off_takes_little_memory() {
    let mut trace = bytes(&[COMPLETE[0], 0xf | (0xffff_ffff << 4)]);
    trace.extend([0xab; 100]);
    let (found, error, records) = split(Records::of_stream(&trace[..]));
    assert!(error.is_none());
    assert_eq!(found, [(0, 8)]);
    assert_eq!(records.leftover(), Some(Leftover { offset: Offset(8), bytes: 108 }));
    // Of one that is really large the pieces are handed out, and the rest is left over.
    trace.resize(8 + (5 << 19), 0xab);
    let (found, error, records) = split(Records::of_stream(&trace[..]));
    assert!(error.is_none());
    assert_eq!(found, [(0, 8), (8, 0xffff_ffff * 8)]);
    assert_eq!(records.leftover(), Some(Leftover { offset: Offset(8), bytes: 5 << 19 }));
}

#[test]
fn records_in_memory_outlive_the_iteration() {
    let trace = bytes(&COMPLETE);
    let all: Vec<_> = Records::of_slice(&trace).map(Result::unwrap).collect();
    assert_eq!(all.len(), COMPLETE_STARTS.len());
    for (record, start) in all.iter().zip(COMPLETE_STARTS) {
        assert_eq!(record.bytes.as_ptr(), trace[start * 8..].as_ptr());
    }
}

#[test]
fn records_across_the_ends_of_pieces_are_whole() {
    // Strings of the largest size, whose ends never meet those of a piece.
    let mut words = vec![0; 4095];
    words[0] = 2 | (4095 << 4) | (1 << 16);
    for (place, word) in words.iter_mut().enumerate().skip(1) {
        *word = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    let trace = bytes(&words).repeat(40);
    let mut records = Records::of_slice(&trace);
    for _ in 0..40 {
        assert_eq!(records.next_record().unwrap().unwrap().bytes, bytes(&words));
    }
    assert!(records.next_record().unwrap().is_none());
}

#[test]
fn failing_input_says_where() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(ErrorKind::PermissionDenied.into())
        }
    }
    let trace = bytes(&COMPLETE);
    let (found, error, mut records) = split(Records::of_stream(trace[..20].chain(Failing)));
    assert_eq!(found, [(0, 8)]);
    assert!(matches!(error, Some(ReadError::Io { offset: Offset(20), .. })));
    assert!(records.next_record().unwrap().is_none());
}

#[test]
fn only_archives_are_accepted_as_such() {
    assert!(Records::archive(&bytes(&COMPLETE)[..]).is_ok());
    assert!(Records::archive(&bytes(&COMPLETE[3..])[..]).is_ok());
    assert!(Records::archive(&bytes(&COMPLETE)[..5]).is_ok());
    for (input, found) in [
        (&b""[..], "an empty file"),
        (b"PK\x03\x04....", "a ZIP archive"),
        (b"{\"traceEvents\":[]}", "what looks like JSON"),
        (b"\x00\x16\x54\x78\x46\x04\x00\x10", "a Fuchsia trace in reversed byte order"),
    ] {
        let error = Records::archive(input).err().unwrap();
        assert_eq!(error.to_string(), format!("expected a Fuchsia trace, found {found}"));
    }
    let trace = bytes(&COMPLETE);
    let mut records = Records::archive(Trickle { bytes: &trace, is_interrupted: false }).unwrap();
    assert_eq!(records.next_record().unwrap().unwrap().offset, Offset(0));
}

proptest! {
    /// Whatever the input, every record begins where the one before ended or behind zero words, and
    /// nothing is lost.
    #[test]
    fn any_bytes_are_split_without_a_gap(trace in proptest::collection::vec(prop_oneof![3 => Just(0_u8), 1 => any::<u8>()], 0..4096)) {
        let mut records = Records::of_slice(&trace);
        let (mut accounted, mut position) = (0, 0);
        let error = loop {
            let next = records.next_record();
            let found = next.as_ref().ok().copied().flatten().map(|record| (record.offset.0, record.bytes.len()));
            let error = next.err();
            // By chance, bytes may look like a place to resume at.
            let gap = records.take_gap();
            if let Some(gap) = gap {
                prop_assert!(gap.offset.0 >= position);
                accounted += gap.bytes;
                position = gap.offset.0 + gap.bytes;
            }
            let Some((offset, length)) = found else { break error };
            prop_assert!(offset >= position && length >= 8);
            prop_assert!(trace[position as usize..offset as usize].iter().all(|byte| *byte == 0));
            accounted += length as u64;
            position = offset + length as u64;
        };
        prop_assert!(position <= trace.len() as u64);
        accounted += records.zero_words() * 8 + records.leftover_bytes();
        match error {
            None => prop_assert_eq!(accounted, trace.len() as u64),
            Some(ReadError::NoSize { offset, .. }) => prop_assert_eq!(accounted, offset.0),
            Some(error) => panic!("{error}"),
        }
    }

    /// Any cut of any stream gives a prefix of its records.
    #[test]
    fn any_cut_gives_a_prefix(sizes in proptest::collection::vec(1_u64..40, 1..30), cut in any::<prop::sample::Index>()) {
        let mut words = Vec::new();
        for size in &sizes {
            words.push(4 | (size << 4));
            words.extend((1..*size).map(|_| u64::MAX));
        }
        let trace = bytes(&words);
        let whole = split(Records::of_slice(&trace)).0;
        prop_assert_eq!(whole.len(), sizes.len());
        let (part, error, _) = split(Records::of_slice(&trace[..cut.index(trace.len() + 1)]));
        prop_assert!(error.is_none());
        prop_assert!(whole.starts_with(&part));
    }
}
