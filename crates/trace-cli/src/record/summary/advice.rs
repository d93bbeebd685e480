//! Advice on losses: options with which a program that does the same again loses nothing, or, if no option
//! helps, the reason.
//!
//! Sizes come from the actual shortage, which the buffer counts: see docs/buffer.md, "What was short".

use std::collections::BTreeMap;
use trace_analysis::counted::Counted;
use trace_format::buffer::{BufferMode, Layout, MAX_BUFFERED_RECORD_BYTES};
use trace_format::loss::LossCode;
use trace_format::record::MAX_RECORD_WORDS;
use trace_format::shown::Shown;
use trace_format::slab::LossReason;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{Lost, ProviderDisposition, ProviderStats};

/// Larger buffers are not suggested.
const MOST_MIB: u64 = 1024;
/// Margin for differences between runs: the number of threads that have begun a slab, and the order in which
/// they come.
const MARGIN_PERCENT: u64 = 25;
/// A stream that has lost less than one record of so many was held up for a moment, which a larger buffer
/// outlasts.
const MOMENTARY: u64 = 50;

/// Whether wanted events are missing.
pub fn is_loss(lost: &Lost) -> bool {
    let [overwritten, cleared] = [LossReason::Overwritten, LossReason::Cleared].map(LossCode::from);
    let reason = LossCode(lost.reason);
    reason.has_count() && ![overwritten, cleared].contains(&reason)
}

/// Sentences about losses, each without an end of line: the options that would have avoided them, and losses
/// that no option avoids. Buffers have `room` mebibytes together, if that is known.
//= docs/recording.md#advice
pub fn lines(providers: &[ProviderStats], buffer_size: u32, room: Option<u64>) -> Vec<String> {
    let mut needs: Vec<_> = providers.iter().map(|provider| Need::of(provider, buffer_size)).collect();
    let mut lines = other_reasons(providers, &mut needs);
    let left: u64 = needs.iter().map(|need| need.left).fold(0, u64::saturating_add);
    if let Some((flags, mebibytes)) = flags(providers, &needs, buffer_size) {
        let flags = Shown(&flags);
        lines.push(match left {
            _ if room.is_some_and(|room| room < mebibytes) => format!(
                "nothing would have been lost with {flags}, but buffers have room for {} MiB only",
                room.unwrap_or_default()
            ),
            0 => format!("nothing would have been lost with: {flags}"),
            1 => format!("all but 1 of these records would have been kept with: {flags}"),
            left => format!("all but {left} of these records would have been kept with: {flags}"),
        });
    }
    lines.extend(needs.into_iter().flat_map(|need| need.notes));
    lines
}

/// What no larger buffer changes, for a file of a limited size, and beside a program that is too fast for
/// all.
fn other_reasons(providers: &[ProviderStats], needs: &mut [Need]) -> Vec<String> {
    let losses = providers.iter().flat_map(|provider| &provider.losses);
    let left_out = losses.filter(|lost| lost.reason == LossCode::LEFT_OUT.0);
    let left_out = left_out.map(|lost| lost.records).fold(0, u64::saturating_add);
    if left_out > 0 {
        needs.iter_mut().for_each(|need| need.size = None);
        let records = Counted(left_out, "records");
        return vec![format!(
            "--max-size left out {records}, whatever the buffers: a larger one keeps more of them"
        )];
    }
    let Some(fast) = needs.iter().position(|need| need.is_too_fast) else {
        return Vec::new();
    };
    let is_held_up = |(provider, need): &(&ProviderStats, &mut Need)| {
        provider.buffering_mode == Some(BufferingMode::Streaming) && !need.is_too_fast && need.size.is_some()
    };
    let held_up = providers.iter().zip(needs).filter(is_held_up).map(|(provider, need)| {
        need.size = None;
        let (name, fast) = (Shown(&provider.name), label(&providers[fast]));
        format!("{name} lost records because {fast} filled what can be written: record it alone with --program {name}")
    });
    held_up.collect()
}

/// Whether a buffer would have been large enough for something.
type IsEnough = Box<dyn Fn(&Layout) -> bool>;

/// The buffer that one provider would have needed.
#[derive(Debug, Default)]
struct Need {
    /// Buffer size in MiB with which records would have been kept.
    size: Option<u64>,
    /// Records that would be lost with that size, too.
    left: u64,
    /// A stream that no buffer is large enough for.
    is_too_fast: bool,
    notes: Vec<String>,
}

impl Need {
    fn of(provider: &ProviderStats, buffer_size: u32) -> Self {
        let mode = provider.buffering_mode.map_or(BufferMode::Oneshot, BufferMode::from);
        let Ok(own) = Layout::new(own_bytes(provider, buffer_size), mode) else {
            return Self::default();
        };
        // A buffer of the program's own, which no option of a recording makes larger.
        if provider.disposition == ProviderDisposition::HandedOver {
            let has_lost = provider.losses.iter().any(is_loss);
            let note = format!(
                "{} recorded more before the recording than its own buffer had room for: TRACE_STARTUP_BUFFER_SIZE",
                label(provider)
            );
            return Self { notes: Vec::from_iter(has_lost.then_some(note)), ..Self::default() };
        }
        let count = |reasons: &[LossReason]| count(provider, reasons);
        let refused = count(&[LossReason::Full, LossReason::NotSaved, LossReason::NotRetired]);
        let definitions = count(&[LossReason::DefinitionRefused]);
        let too_large = count(&[LossReason::TooLarge]);
        // A larger buffer does not make room in an archive.
        let is_buffers = |lost: &&Lost| is_loss(lost) && lost.reason != LossCode::LEFT_OUT.0;
        let lost = provider.losses.iter().filter(is_buffers).map(|lost| lost.records);
        let mut need = Self { left: lost.fold(0, u64::saturating_add), ..Self::default() };
        // If several parts were short, the buffer has to be large enough for all of them.
        let mut is_enough: Vec<IsEnough> = Vec::new();
        let mut kept = 0;
        if refused > 0
            && let Some(bytes) = provider.needed_rolling_bytes
        {
            let with_margin = |bytes: u64| bytes.saturating_add(bytes / 100 * MARGIN_PERCENT);
            let everything = overload(provider, mode, refused).map(with_margin);
            let bytes = with_margin(bytes);
            let fits = move |layout: &Layout| match everything {
                Some(everything) => layout.rolling_bytes.saturating_mul(2) >= everything,
                None => rolling_bytes(layout) >= bytes,
            };
            if smallest(mode, &fits).is_some() {
                is_enough.push(Box::new(fits));
                kept += refused;
            } else {
                need.is_too_fast = mode == BufferMode::Streaming;
                need.notes.extend(too_fast(provider, bytes));
            }
        }
        if definitions > 0
            && let Some(bytes) = provider.needed_durable_bytes
        {
            let fits = move |layout: &Layout| layout.durable_bytes >= bytes;
            if smallest(mode, &fits).is_some() {
                is_enough.push(Box::new(fits));
                kept += definitions;
            } else {
                need.notes.push(format!(
                    "definitions of {} need {bytes} bytes; no buffer has more than 1048576 for them",
                    label(provider)
                ));
            }
        }
        if too_large > 0 {
            let label = label(provider);
            match provider.needed_record_bytes {
                None => {}
                Some(bytes) if bytes <= MAX_BUFFERED_RECORD_BYTES => {
                    let bytes_now = own.max_record_bytes();
                    need.notes.push(format!("{label}: the largest record that fits into its buffer has {bytes_now} bytes"));
                    is_enough.push(Box::new(move |layout| layout.max_record_bytes() >= bytes));
                    kept += too_large;
                }
                Some(_) => need.notes.push(format!(
                    "{label}: the largest record that fits has {} bytes, or {MAX_BUFFERED_RECORD_BYTES} as a large blob",
                    MAX_RECORD_WORDS * 8
                )),
            }
        }
        if count(&[LossReason::NotBacked]) > 0 {
            need.notes.push(format!(
                "{}: its buffer had no more memory: the file system of the manager's directory was full; remove \
                 files there, or record with a smaller --buffer-size",
                label(provider)
            ));
        }
        if count(&[LossReason::KernelOverrun]) > 0 {
            need.notes.push(format!(
                "{}: the kernel's own buffers were full: record fewer of its events, or provide them with larger \
                 ones: trace ktrace --kernel-buffer-size",
                label(provider)
            ));
        }
        if !is_enough.is_empty() {
            need.size = smallest(mode, &|layout| is_enough.iter().all(|is_enough| is_enough(layout)));
            need.left -= kept;
        }
        need
    }
}

/// The bytes that a recording may fill before something is lost: all rolling regions; for a stream half of
/// them, as nothing may have been saved before they are full.
fn rolling_bytes(layout: &Layout) -> u64 {
    match layout.mode {
        BufferMode::Streaming | BufferMode::Oneshot => layout.rolling_bytes,
        BufferMode::Circular => layout.rolling_bytes * 2,
    }
}

/// The smallest sufficient buffer, in MiB. If one is sufficient, all larger ones are.
fn smallest(mode: BufferMode, is_enough: &dyn Fn(&Layout) -> bool) -> Option<u64> {
    (1..=MOST_MIB).find(|size| Layout::new(size << 20, mode).is_ok_and(|layout| is_enough(&layout)))
}

/// Bytes that a provider of a stream would have recorded in all, if it was faster than they could be written
/// and not just for a moment. However large the halves are, both are full sooner or later then, unless they
/// hold everything.
fn overload(provider: &ProviderStats, mode: BufferMode, refused: u64) -> Option<u64> {
    let generated = provider.records_generated.filter(|_| mode == BufferMode::Streaming)?;
    let is_momentary = refused.saturating_mul(MOMENTARY) <= generated;
    let kept = generated.saturating_sub(refused).max(1);
    let bytes = u128::from(provider.bytes_archived?) * u128::from(generated) / u128::from(kept);
    (!is_momentary).then(|| u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Advice for a provider that recorded more than any buffer holds.
fn too_fast(provider: &ProviderStats, needed_bytes: u64) -> Option<String> {
    let seconds = provider.recorded_ns.filter(|nanos| *nanos > 0)? as f64 / 1e9;
    let (written, generated) = (provider.bytes_archived?, provider.records_generated?);
    let refused = count(provider, &[LossReason::Full, LossReason::NotSaved, LossReason::NotRetired]);
    let kept = generated.saturating_sub(refused).max(1);
    let rate = |bytes: f64| bytes / seconds / 1e6;
    let recorded = rate(written as f64 * generated as f64 / kept as f64);
    let label = label(provider);
    Some(match provider.buffering_mode {
        Some(BufferingMode::Streaming) => format!(
            "{label} recorded {recorded:.0} MB/s, and {:.0} MB/s could be written: no buffer is large enough for that",
            rate(written as f64)
        ),
        _ => format!(
            "{label} would have needed a buffer of {} MiB; --buffering-mode streaming loses nothing if its \
             {recorded:.0} MB/s can be written as they come",
            needed_bytes.div_ceil(1 << 20)
        ),
    })
}

fn count(provider: &ProviderStats, reasons: &[LossReason]) -> u64 {
    let is_wanted = |lost: &&Lost| reasons.iter().any(|reason| LossCode::from(*reason).0 == lost.reason);
    provider.losses.iter().filter(is_wanted).map(|lost| lost.records).fold(0, u64::saturating_add)
}

fn own_bytes(provider: &ProviderStats, buffer_size: u32) -> u64 {
    provider.buffer_bytes.unwrap_or(u64::from(buffer_size) << 20)
}

fn label(provider: &ProviderStats) -> String {
    format!("{} (pid {})", Shown(&provider.name), provider.pid)
}

/// Options, if a larger buffer would have helped, and the mebibytes that all buffers have with them.
fn flags(providers: &[ProviderStats], needs: &[Need], buffer_size: u32) -> Option<(String, u64)> {
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for (provider, need) in providers.iter().zip(needs) {
        if let Some(size) = need.size {
            let known = sizes.entry(&provider.name).or_default();
            *known = (*known).max(size);
        }
    }
    let has_others = providers.iter().any(|provider| !sizes.contains_key(&*provider.name));
    if has_others && sizes.len() == 1 {
        let (name, size) = sizes.first_key_value()?;
        let of = |provider: &ProviderStats| {
            if provider.name == *name { *size } else { own_bytes(provider, buffer_size) >> 20 }
        };
        return Some((
            format!("--program-buffer-size {name}:{size}MiB"),
            providers.iter().map(of).fold(0, u64::saturating_add),
        ));
    }
    let size = sizes.values().max()?;
    Some((format!("--buffer-size {size}MiB"), size.saturating_mul(providers.len() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn provider(name: &str, losses: &[(LossReason, u64)]) -> ProviderStats {
        let lost: u64 = losses.iter().map(|(_, records)| records).sum();
        ProviderStats {
            name: name.into(),
            pid: 42,
            records_generated: Some(1000 + lost),
            bytes_archived: Some(100_000_000),
            recorded_ns: Some(2_000_000_000),
            losses: losses
                .iter()
                .map(|(reason, records)| Lost { reason: LossCode::from(*reason).0, records: *records })
                .collect(),
            buffer_bytes: Some(4 * MIB),
            ..ProviderStats::default()
        }
    }

    /// A provider that would have needed the given number of bytes of slabs.
    fn full(name: &str, reason: LossReason, needed: u64) -> ProviderStats {
        ProviderStats { needed_rolling_bytes: Some(needed), ..provider(name, &[(reason, 1000)]) }
    }

    fn lines_of(providers: &[ProviderStats]) -> Vec<String> {
        lines(providers, 4, None)
    }

    fn enough(flags: &str) -> Vec<String> {
        vec![format!("nothing would have been lost with: {flags}")]
    }

    //= docs/recording.md#advice
    #[test]
    fn a_buffer_is_as_large_as_what_was_short_asks_for() {
        assert_eq!(lines_of(&[provider("a", &[])]), [""; 0]);
        // Overwritten events are no loss.
        assert_eq!(lines_of(&[provider("a", &[(LossReason::Overwritten, 50_000)])]), [""; 0]);
        // A program of a version that does not report the shortage.
        assert_eq!(lines_of(&[provider("a", &[(LossReason::Full, 5)])]), [""; 0]);
        let a = full("a", LossReason::Full, 8 * MIB);
        // 10 MiB of slabs, their control area and the durable region.
        assert_eq!(lines_of(std::slice::from_ref(&a)), enough("--buffer-size 11MiB"));
        assert_eq!(lines_of(&[a.clone(), provider("b", &[])]), enough("--program-buffer-size a:11MiB"));
        let b = full("b", LossReason::Full, 16 * MIB);
        assert_eq!(lines_of(&[a, b]), enough("--buffer-size 22MiB"));
        // Each half holds all of it.
        assert_eq!(lines_of(&[stream(8 * MIB, 100_000_000, 20)]), enough("--buffer-size 22MiB"));
    }

    /// A stream that has lost so many of 1000 records more than it kept.
    fn stream(needed: u64, bytes_archived: u64, lost: u64) -> ProviderStats {
        ProviderStats {
            buffering_mode: Some(BufferingMode::Streaming),
            needed_rolling_bytes: Some(needed),
            bytes_archived: Some(bytes_archived),
            ..provider("s", &[(LossReason::NotSaved, lost)])
        }
    }

    /// A stream that is faster than what writes it needs a buffer for everything, whatever was short of a
    /// half.
    //= docs/recording.md#advice
    #[test]
    fn an_overloaded_stream_loses_nothing_only_if_everything_fits() {
        // 20 of 1020 are one in 51.
        assert_eq!(lines_of(&[stream(8 * MIB, 64 * MIB, 20)]), enough("--buffer-size 22MiB"));
        // 21 of 1021 are more than one in 50: 65.3 MiB, and a quarter more.
        assert_eq!(lines_of(&[stream(8 * MIB, 64 * MIB, 21)]), enough("--buffer-size 84MiB"));
        assert_eq!(lines_of(&[stream(8 * MIB, 64 * MIB, 1000)]), enough("--buffer-size 163MiB"));
        let rates =
            "s (pid 42) recorded 671 MB/s, and 336 MB/s could be written: no buffer is large enough for that";
        assert_eq!(lines_of(&[stream(8 * MIB, 640 * MIB, 1000)]), [rates]);
    }

    /// What a larger buffer does not change.
    //= docs/recording.md#advice
    #[test]
    fn a_limited_file_a_flood_and_full_memory_get_other_advice() {
        let mut limited = full("a", LossReason::Full, 8 * MIB);
        limited.losses.push(Lost { reason: LossCode::LEFT_OUT.0, records: 2 });
        let size = "--max-size left out 2 records, whatever the buffers: a larger one keeps more of them";
        assert_eq!(lines_of(&[limited]), [size]);
        let flood = ProviderStats { name: "flood".into(), ..stream(8 * MIB, 640 * MIB, 1000) };
        let alone = "s lost records because flood (pid 42) filled what can be written: record it alone with --program s";
        let rates = "flood (pid 42) recorded 671 MB/s, and 336 MB/s could be written: no buffer is large enough for that";
        assert_eq!(lines_of(&[stream(8 * MIB, 64 * MIB, 20), flood]), [alone, rates]);
        let a = full("a", LossReason::Full, 8 * MIB);
        let with_room = |room| lines(&[a.clone(), provider("b", &[])], 4, Some(room));
        assert_eq!(with_room(15), enough("--program-buffer-size a:11MiB"));
        let flags = "--program-buffer-size a:11MiB, but buffers have room for 14 MiB only";
        assert_eq!(with_room(14), [format!("nothing would have been lost with {flags}")]);
    }

    //= docs/recording.md#advice
    #[test]
    fn where_no_buffer_helps_the_rates_say_why() {
        let stream = ProviderStats { bytes_archived: Some(100_000_000), ..stream(1024 * MIB, 0, 1) };
        let rates =
            "s (pid 42) recorded 50 MB/s, and 50 MB/s could be written: no buffer is large enough for that";
        assert_eq!(lines_of(&[stream]), [rates]);
        let oneshot = full("a", LossReason::Full, 1600 * MIB);
        let size = "a (pid 42) would have needed a buffer of 2000 MiB; --buffering-mode streaming loses nothing \
                    if its 100 MB/s can be written as they come";
        assert_eq!(lines_of(&[oneshot]), [size]);
    }

    //= docs/recording.md#advice
    #[test]
    fn for_records_that_are_too_large_the_largest_that_fits_is_named() {
        let losses = [(LossReason::TooLarge, 5)];
        let beyond = ProviderStats { needed_record_bytes: Some(u64::MAX), ..provider("a", &losses) };
        let format = "a (pid 42): the largest record that fits has 32760 bytes, or 262144 as a large blob";
        assert_eq!(lines_of(&[beyond]), [format]);
        let small = ProviderStats {
            needed_record_bytes: Some(32_000),
            buffer_bytes: Some(64 << 10),
            ..provider("a", &losses)
        };
        let here = "a (pid 42): the largest record that fits into its buffer has 28160 bytes";
        let flag = "nothing would have been lost with: --buffer-size 1MiB";
        assert_eq!(lines_of(&[small]), [flag, here]);
    }

    //= docs/recording.md#advice
    #[test]
    fn what_is_lost_all_the_same_is_said() {
        let mut full = full("a", LossReason::Full, 8 * MIB);
        let nested = LossCode::from(LossReason::NestedTooDeep).0;
        full.losses.push(Lost { reason: nested, records: 3 });
        let expected = "all but 3 of these records would have been kept with: --buffer-size 11MiB";
        assert_eq!(lines_of(&[full]), [expected]);
        let definitions = |bytes| ProviderStats {
            needed_durable_bytes: Some(bytes),
            ..provider("a", &[(LossReason::DefinitionRefused, 7)])
        };
        assert_eq!(lines_of(&[definitions(500_000)]), enough("--buffer-size 8MiB"));
        let most = "definitions of a (pid 42) need 2000000 bytes; no buffer has more than 1048576 for them";
        assert_eq!(lines_of(&[definitions(2_000_000)]), [most]);
        let overrun = provider("ktrace_provider", &[(LossReason::KernelOverrun, 7)]);
        let larger = "ktrace_provider (pid 42): the kernel's own buffers were full: record fewer of its events, or \
                      provide them with larger ones: trace ktrace --kernel-buffer-size";
        assert_eq!(lines_of(&[overrun]), [larger]);
        let unbacked = provider("a", &[(LossReason::NotBacked, 7)]);
        let memory = "a (pid 42): its buffer had no more memory: the file system of the manager's directory was \
                      full; remove files there, or record with a smaller --buffer-size";
        assert_eq!(lines_of(&[unbacked]), [memory]);
    }
}
