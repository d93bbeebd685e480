//! What a buffer would have needed.

use super::*;
use trace_format::slab::TOO_LARGE_FOR_FORMAT;

/// A buffer of 64 KiB with these spare words.
fn shortage(mode: BufferMode, spare: &[(LossReason, u64)]) -> (Layout, Shortage) {
    let layout = Layout::new(64 << 10, mode).unwrap();
    let image = Image::sized(64 << 10, mode).closed(0, 7, &event(10));
    let image = spare
        .iter()
        .fold(image, |image, (reason, word)| image.words(layout.loss_entry(*reason) + 24, &[*word]));
    (layout, open(&image.bytes[..], &image, Activity::Quiet).unwrap().shortage().unwrap())
}

//= docs/buffer.md#what-was-short
#[test]
fn what_was_short_is_added_to_what_there_is() {
    for mode in [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming] {
        // As buffers of earlier writers.
        assert_eq!(shortage(mode, &[]).1, Shortage::default());
    }
    let spare = [(LossReason::Full, 1000), (LossReason::DurableFull, 500), (LossReason::TooLarge, 40_000)];
    let (layout, found) = shortage(BufferMode::Oneshot, &spare);
    let expected = Shortage {
        rolling_bytes: Some(layout.rolling_bytes + 1000),
        durable_bytes: Some(layout.durable_bytes + 500),
        record_bytes: Some(40_000),
        is_beyond_format: false,
    };
    assert_eq!(found, expected);
    let (layout, found) = shortage(BufferMode::Circular, &spare);
    assert_eq!(found, Shortage { rolling_bytes: Some(2 * layout.rolling_bytes + 1000), ..expected });
    // Of a stream, all that was claimed: seven slabs.
    let late = [(LossReason::NotSaved, 1000), (LossReason::NotRetired, 100)];
    let (layout, found) = shortage(BufferMode::Streaming, &late);
    let expected = Shortage { rolling_bytes: Some(7 * layout.slab_bytes + 1100), ..Shortage::default() };
    assert_eq!(found, expected);
    let (_, found) = shortage(BufferMode::Oneshot, &[(LossReason::TooLarge, TOO_LARGE_FOR_FORMAT | 9)]);
    assert_eq!(found, Shortage { is_beyond_format: true, ..Shortage::default() });
    // Nonsense adds up to nonsense, and to nothing worse.
    let nonsense = LossReason::ALL.map(|reason| (reason, u64::MAX));
    assert_eq!(shortage(BufferMode::Streaming, &nonsense).1.rolling_bytes, Some(u64::MAX));
}
