//! Large blobs, whole and in pieces.

use super::*;

/// A large blob with these bytes, as an attachment without category and name.
fn attachment(payload: &[u8], size_words: u64) -> Vec<u8> {
    let mut blob = bytes(&[0xf | size_words << 4 | 1 << 40, 0, payload.len() as u64]);
    blob.extend_from_slice(payload);
    blob.resize(size_words as usize * 8, 0);
    blob
}

#[test]
//= docs/format.md#large-record
fn a_large_blob_comes_whole_or_in_pieces() {
    let payload: Vec<u8> = (0..3_000_001_u32).map(|byte| (byte % 253) as u8).collect();
    let size_words = 3 + payload.len().div_ceil(8) as u64;
    // Behind the payload there may be more words; they are not part of it.
    for surplus in [0, 200_000] {
        let mut trace = bytes(&[MAGIC]);
        trace.extend(attachment(&payload, size_words + surplus));
        trace.extend(bytes(&COMPLETE[1..]));
        for piece_bytes in [32_760, 1 << 20, 8 << 20] {
            let mut reader = Reader::new(&trace[..]).unwrap().with_max_piece_bytes(piece_bytes);
            let mut found = Vec::new();
            let mut rest = Vec::new();
            while let Some(record) = reader.next_item().unwrap() {
                match record.item {
                    Item::LargeBlob { event: None, payload, payload_bytes, .. } => {
                        assert_eq!(payload_bytes, 3_000_001);
                        found.extend_from_slice(payload);
                    }
                    Item::LargeBlobPart { payload } => {
                        assert_eq!(record.offset, Offset(8 + 24 + found.len() as u64));
                        found.extend_from_slice(payload);
                    }
                    Item::Unknown { .. } => assert!(surplus > 0),
                    _ => rest.push(Line(&record).to_string()),
                }
            }
            assert!(found == payload, "{piece_bytes}");
            assert_eq!(rest.len(), COMPLETE_STARTS.len(), "{surplus} {piece_bytes} {rest:?}");
            assert_eq!(reader.warnings().first(), []);
        }
    }
}

#[test]
//= docs/format.md#large-record
fn an_event_among_large_blobs_has_all_it_needs_in_its_first_piece() {
    // 15 arguments, each with a name and a value of 16 000 bytes: nearly half a MiB.
    let text = vec![0x61; 16_000];
    let mut words = vec![0, 15 << 32 | 0x8000 | 16_000, 0];
    words.splice(2.., text.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
    words.extend([1000, 5, 6]);
    for _ in 0..15 {
        words.push(6 | 4001 << 4 | (0x8000 | 16_000) << 16 | (0x8000 | 16_000) << 32);
        words.extend(text.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).cycle().take(4000));
    }
    let payload = 10 << 20;
    words.push(payload);
    let size_words = words.len() as u64 + payload / 8;
    words[0] = 0xf | size_words << 4;
    let mut trace = bytes(&[MAGIC]);
    trace.extend(bytes(&words));
    trace.resize(8 + size_words as usize * 8, 7);
    let mut reader = Reader::new(&trace[..]).unwrap();
    reader.next_item().unwrap();
    let first = reader.next_item().unwrap().unwrap();
    let Item::LargeBlob { category, event: Some((time, thread, arguments)), payload_bytes, .. } = first.item
    else {
        panic!("{first:?}")
    };
    assert_eq!((category.0.len(), time.ticks, thread.thread.0), (16_000, Ticks(1000), 6));
    assert_eq!((arguments.len(), payload_bytes), (15, 10 << 20));
    let mut parts = 0;
    while let Some(record) = reader.next_item().unwrap() {
        assert!(matches!(record.item, Item::LargeBlobPart { .. }), "{record:?}");
        parts += 1;
    }
    assert_eq!(parts, 10);
}

#[test]
//= docs/format.md#malformed-input
fn a_huge_record_that_is_not_there_is_left_over() {
    // 32 GiB are announced; the payload fits in them, but not in the file.
    let (items, warnings) = read(&[MAGIC, 0xf | 0xffff_ffff << 4 | 1 << 40, 0, 0xffff_ff00, 7]);
    assert_eq!(items.len(), 1);
    assert_eq!(warnings, [warning(8, 0, WarningKind::Truncated(32))]);
}
