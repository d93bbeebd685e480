//! The layout's arithmetic and every way a header can be wrong.

use super::*;
use crate::slab::LossReason;
use std::string::ToString;

fn bytes(words: [u64; HEADER_BYTES / 8]) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

//= docs/buffer.md#layout
#[test]
fn layouts_of_some_sizes() {
    let of = |total, mode| Layout::new(total, mode).unwrap();
    let small = of(4096, BufferMode::Oneshot);
    assert_eq!((small.durable_bytes, small.slab_bytes, small.slabs_per_half), (256, 256, 10));
    let split = of(4096, BufferMode::Circular);
    assert_eq!((split.durable_bytes, split.slab_bytes, split.slabs_per_half), (256, 256, 5));
    let usual = of(4 << 20, BufferMode::Oneshot);
    assert_eq!((usual.durable_bytes, usual.slab_bytes, usual.slabs_per_half), (262_144, 4096, 948));
    assert_eq!((usual.ledger, usual.slab_words, usual.rolling), (4096, 8192, (4 << 20) - 948 * 4096));
    let streaming = of(4 << 20, BufferMode::Streaming);
    assert_eq!((streaming.slab_bytes, streaming.slabs_per_half), (4096, 474));
}

//= docs/buffer.md#memory
#[test]
fn a_buffer_begins_with_its_control_area_and_a_part_of_each_region() {
    for mode in [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming] {
        for total in (12..=32).map(|bits| 1 << bits).chain([4096 * 1021, 4096 * 12_345]) {
            let layout = Layout::new(total, mode).unwrap();
            let [control, beginnings] = layout.first_parts();
            let is_in = |offset: u64| control.contains(&offset) || beginnings.contains(&offset);
            assert_eq!(control.start, 0);
            for half in 0..u64::from(mode.halves()) {
                let begin = layout.rolling + half * layout.rolling_bytes;
                let least = layout.rolling_bytes.min(CHUNK_BYTES);
                assert!((begin..begin + least).step_by(256).all(is_in), "{mode:?} {total}");
                let behind = begin + 2 * CHUNK_BYTES;
                let next = layout.rolling + (half + 1) * layout.rolling_bytes;
                assert!(behind >= next / CHUNK_BYTES * CHUNK_BYTES || !is_in(behind), "{mode:?} {total}");
            }
            assert!(beginnings.start <= control.end || beginnings.start % CHUNK_BYTES == 0);
            for end in [control.end, beginnings.end] {
                assert!(end == total || end < total && end % CHUNK_BYTES == 0, "{mode:?} {total}: {end}");
            }
        }
    }
    let parts = Layout::new(4 << 20, BufferMode::Circular).unwrap().first_parts();
    assert_eq!(parts.map(|part| part.start >> 10..part.end >> 10), [0..384, 2176..2304]);
    let parts = Layout::new(4 << 20, BufferMode::Oneshot).unwrap().first_parts();
    assert_eq!(parts.map(|part| part.start >> 10..part.end >> 10), [0..384, 256..384]);
}

#[test]
fn regions_never_overlap_and_slabs_are_aligned() {
    for pages in (1..3000).chain([4096, 65_536, 1 << 20]) {
        for mode in [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming] {
            let layout = Layout::new(pages * PAGE_BYTES, mode).unwrap();
            let slabs = u64::from(layout.slab_count());
            assert!(layout.ledger >= HEADER_BYTES as u64, "{layout:?}");
            assert!(layout.slab_words >= layout.ledger + LEDGER_ENTRIES * LOSS_ENTRY_BYTES, "{layout:?}");
            assert_eq!(layout.tallies, layout.slab_words + 8 * slabs);
            assert_eq!(layout.durable, layout.tallies + TALLY_BYTES * slabs);
            assert!(layout.durable + layout.durable_bytes <= layout.rolling, "{layout:?}");
            assert_eq!(layout.rolling + layout.rolling_bytes * u64::from(mode.halves()), layout.total_bytes);
            assert!(layout.rolling.is_multiple_of(layout.slab_bytes), "{layout:?}");
            assert!(layout.slabs_per_half >= 2, "{layout:?}");
            assert!(layout.max_record_bytes() >= layout.slab_bytes, "{layout:?}");
            // What is left over is less than another slab for each half.
            assert!(layout.rolling - layout.durable - layout.durable_bytes < 2 * (4096 + 40), "{layout:?}");
        }
    }
}

//= docs/buffer.md#layout
//= docs/buffer.md#header
#[test]
fn buffers_have_this_header_and_these_places() {
    let layout = Layout::new(65_536, BufferMode::Streaming).unwrap();
    let sizes = [0x2_0001, 65_536, 4096, 26_112];
    let places = [256 | 102 << 32, 640 | 2272 << 32, 128 | 8800 << 32, 13_312];
    let header = [&[BUFFER_MAGIC][..], &sizes, &[0; 5], &[END_TS_NONE], &places, &[0]].concat();
    assert_eq!(BufferHeader::initial_words(&layout)[..], header);
    assert_eq!(layout.slab_count(), 204);
    assert_eq!([layout.slab(3), layout.slab_word(3), layout.tally(3)], [13_312 + 768, 640 + 24, 2272 + 96]);
    assert_eq!(layout.loss_entry(LossReason::DurableFull), 128 + 4 * 32);
    assert_eq!((layout.gap_count(), layout.max_record_bytes()), (0, 13_056));
    let large = Layout::new(1 << 20, BufferMode::Circular).unwrap();
    assert_eq!((large.ledger, large.gap_count(), large.gap(2)), (4096, 112, 4096 + 18 * 32));
    assert_eq!(Layout::new((1 << 20) - 4096, BufferMode::Circular).unwrap().gap_count(), 0);
    let huge = Layout::new(1 << 32, BufferMode::Oneshot).unwrap();
    assert_eq!((huge.durable_bytes, huge.max_record_bytes()), (1 << 20, 256 << 10));
    let modes = [0, 1, 2, 3].map(BufferMode::from_bits);
    let all = [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming].map(Some);
    assert_eq!(modes, [all[0], all[1], all[2], None]);
}

#[test]
fn impossible_sizes_are_refused() {
    for size in [0, 1, 4095, 4097, 6000, MAX_BUFFER_BYTES + 4096] {
        assert_eq!(Layout::new(size, BufferMode::Oneshot), Err(BadBufferSize(size)));
    }
    assert!(Layout::new(MAX_BUFFER_BYTES, BufferMode::Streaming).is_ok());
    let text = "buffer of 1 bytes: expected a multiple of 4096 between 4096 and 4294967296";
    assert_eq!(BadBufferSize(1).to_string(), text);
}

//= docs/buffer.md#header
#[test]
fn a_fresh_header_is_read_back() {
    let layout = Layout::new(65_536, BufferMode::Oneshot).unwrap();
    let mut words = BufferHeader::initial_words(&layout);
    let read = |words| BufferHeader::decode_untrusted(&bytes(words), 65_536, BufferMode::Oneshot);
    let fresh = read(words).unwrap();
    assert_eq!((fresh.layout, fresh.end_ts, fresh.is_final), (layout, None, false));
    words[field::END_TS] = 77;
    words[field::FLAGS] = FLAG_FINAL;
    words[field::RECORDS_DROPPED] = 5;
    words[field::DURABLE_DATA_END] = layout.durable_bytes;
    words[field::VERSION] |= 9 << 32;
    let later = read(words).unwrap();
    assert_eq!((later.end_ts, later.is_final, later.records_dropped), (Some(77), true, 5));
    assert_eq!((later.wrapped_count, later.durable_data_end), (9, layout.durable_bytes));
}

#[test]
fn every_wrong_field_is_named() {
    let layout = Layout::new(65_536, BufferMode::Oneshot).unwrap();
    let good = BufferHeader::initial_words(&layout);
    let with = |word: usize, value| {
        let mut words = good;
        words[word] = value;
        BufferHeader::decode_untrusted(&bytes(words), 65_536, BufferMode::Oneshot).unwrap_err()
    };
    assert_eq!(with(field::MAGIC, 7), HeaderError::Magic { found: 7 });
    assert_eq!(with(field::VERSION, 0), HeaderError::Version { found: 0 });
    let mode = |found| HeaderError::Mode { found, expected: BufferMode::Oneshot };
    assert_eq!(with(field::VERSION, 1 | 1 << 16), mode(1));
    assert_eq!(with(field::VERSION, 1 | 3 << 16), mode(3));
    let size = |found| HeaderError::TotalSize { found, expected: 65_536 };
    assert_eq!(with(field::TOTAL_SIZE, 4096), size(4096));
    for word in [3, 4, 11, 12, 13, 14] {
        for wrong in [0, 1, good[word] + 8, good[word] - 8, u64::MAX] {
            let expected = good[word];
            assert_eq!(with(word, wrong), HeaderError::Layout { word, found: wrong, expected });
        }
    }
    for found in [layout.durable_bytes + 8, 12, u64::MAX] {
        let limit = layout.durable_bytes;
        assert_eq!(with(field::DURABLE_DATA_END, found), HeaderError::DurableDataEnd { found, limit });
    }
    assert_eq!(with(field::VERSION, 2).to_string(), "header version is 2, expected 1");
}

/// As far as the tallies, a buffer is blank until a slab is claimed, a reason has counted, or a record is
/// dropped.
#[test]
fn a_buffer_without_a_record_is_blank() {
    for total in [4096, 65_536, 4 << 20] {
        let layout = Layout::new(total, BufferMode::Circular).unwrap();
        let mut blank = std::vec![0; layout.tallies as usize];
        blank[..HEADER_BYTES].copy_from_slice(&bytes(BufferHeader::initial_words(&layout)));
        // What was short, and what defines, is no record.
        let spare = layout.loss_entry(LossReason::Full) as usize + 24;
        (blank[spare], blank[8 * field::DURABLE_DATA_END]) = (1, 8);
        assert!(layout.is_blank(&blank));
        assert!(!layout.is_blank(&blank[..blank.len() - 1]) && !layout.is_blank(&[]));
        let counts = LossReason::ALL.map(|reason| layout.loss_entry(reason) as usize);
        let slabs = [layout.slab_words as usize, layout.tallies as usize - 1];
        let dropped = 8 * field::RECORDS_DROPPED;
        for at in counts.into_iter().flat_map(|at| [at, at + 7]).chain(slabs).chain([dropped, dropped + 7]) {
            let mut other = blank.clone();
            other[at] = 1;
            assert!(!layout.is_blank(&other), "{at} of {total}");
        }
    }
}
