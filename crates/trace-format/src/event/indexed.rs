//! The common case of decoding: an event whose thread and strings are indices, as a program writes nearly all
//! of its events.
//!
//! One look at each word shows that the record is whole and exactly as long as its parts. All other records
//! are left to [`Event::of_record`].

use super::{Event, EventKind, Scope};
use crate::argument::Arguments;
use crate::record::{RecordHeader, RecordType};
use crate::refs::{INLINE, StringRef, ThreadRef};
use crate::units::{StringIndex, ThreadIndex, Ticks};

#[inline(always)]
fn string(bits: u64) -> Option<StringRef<'static>> {
    match bits as u16 {
        0 => Some(StringRef::Empty),
        // None for an inline one.
        bits => StringIndex::new(bits).map(StringRef::Index),
    }
}

/// None if there is less than a word.
fn first_word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

impl<'a> Event<'a> {
    /// Decodes a record in the common case: a whole event of a known type without anything behind it, whose
    /// thread is an index, as category, name, and the names of arguments are, and all of whose arguments are
    /// well-formed and refer to strings that are defined. None for anything else.
    //= docs/format.md#event-record
    #[inline]
    pub fn of_common_record(bytes: &'a [u8], is_defined: impl Fn(StringIndex) -> bool) -> Option<Self> {
        let header = first_word(bytes)?;
        let timestamp = first_word(&bytes[8..])?;
        let behind = &bytes[16..];
        let size = RecordHeader(header).size().0;
        if header & 0xf != RecordType::Event as u64 || size * 8 != bytes.len() {
            return None;
        }
        let thread = ThreadRef::Index(ThreadIndex::new((header >> 24) as u8)?);
        let (category, name) = (string(header >> 32)?, string(header >> 48)?);
        let count = (header >> 20 & 0xf) as usize;
        let mut rest = behind;
        let has_string = |bits: u64| match string(bits) {
            Some(StringRef::Index(index)) => is_defined(index),
            other => other.is_some(),
        };
        for _ in 0..count {
            let argument = first_word(rest)?;
            let expected = match argument & 0xf {
                // Null, 32 bits and booleans are in the header.
                0 | 1 | 2 | 9 => 1,
                // 64 bits, doubles, pointers and koids.
                3 | 4 | 5 | 7 | 8 => 2,
                6 => match argument >> 32 & 0xffff {
                    inline if inline > INLINE.into() => 1 + (inline - u64::from(INLINE)).div_ceil(8),
                    reference if has_string(reference) => 1,
                    _ => return None,
                },
                _ => return None,
            };
            if argument >> 4 & 0xfff != expected || !has_string(argument >> 16) {
                return None;
            }
            rest = rest.get(8 * expected as usize..)?;
        }
        let (arguments, rest) = behind.split_at(behind.len() - rest.len());
        let last = first_word(rest);
        if rest.len() > 8 {
            return None;
        }
        let kind = match (header >> 16 & 0xf, last) {
            (0, None) => EventKind::Instant { scope: Scope::Thread },
            (0, Some(scope)) => match Scope::from_raw(scope) {
                // Writers omit it.
                Scope::Thread => return None,
                scope => EventKind::Instant { scope },
            },
            (1, Some(id)) => EventKind::Counter { id },
            (2, None) => EventKind::DurationBegin,
            (3, None) => EventKind::DurationEnd,
            (4, Some(end)) => EventKind::DurationComplete { end: Ticks(end) },
            (5, Some(id)) => EventKind::AsyncBegin { id },
            (6, Some(id)) => EventKind::AsyncInstant { id },
            (7, Some(id)) => EventKind::AsyncEnd { id },
            (8, Some(id)) => EventKind::FlowBegin { id },
            (9, Some(id)) => EventKind::FlowStep { id },
            (10, Some(id)) => EventKind::FlowEnd { id },
            _ => return None,
        };
        let arguments = Arguments::encoded(arguments, count);
        Some(Self { timestamp: Ticks(timestamp), thread, category, name, kind, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument::{Argument, ArgumentValue};
    use crate::record::Record;
    use crate::refs::MAX_STRING_BYTES;
    use crate::testing::{bytes as of_words, encode};
    use crate::units::{Koid, ProcessKoid, ThreadKoid};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::vec::Vec;
    use std::{format, vec};

    /// Only these are defined.
    fn is_defined(index: StringIndex) -> bool {
        index.get() < 100
    }

    /// Words that are an event in many cases, and nearly one in the others.
    fn words() -> impl Strategy<Value = Vec<u64>> {
        let strings = || prop_oneof![5 => 0..100_u64, 1 => Just(100), 1 => 0x7ffe..0x8012_u64];
        let argument = (0..12_u64, 0..4_u64, strings(), strings(), any::<u64>(), any::<[u64; 2]>());
        let argument = argument.prop_map(|(of, size, name, value, upper, behind)| {
            let natural = match of {
                0 | 1 | 2 | 9 => 1,
                3 | 4 | 5 | 7 | 8 => 2,
                6 if value > 0x8000 => 1 + (value - 0x8000).div_ceil(8),
                _ => 1,
            };
            // Most have the size that they should have.
            let size = if upper % 9 == 0 { size } else { natural };
            let upper = if of == 6 { value } else { upper & 0xffff_ffff };
            let mut words = vec![of | size << 4 | name << 16 | upper << 32];
            words.extend(behind.iter().cycle().take(natural.saturating_sub(1) as usize));
            words
        });
        let behind = prop_oneof![3 => vec(any::<u64>(), 1), 2 => Just(Vec::new()), 1 => vec(0..3_u64, 0..3)];
        let parts = (0..12_u64, 0..4_u64, strings(), strings(), vec(argument, 0..4), behind, 0..20_u64);
        parts.prop_map(|(of, thread, category, name, arguments, behind, odd)| {
            let count = if odd == 1 { 5 } else { arguments.len() as u64 };
            let mut words = vec![0, 0x1234_5678];
            words.extend(arguments.into_iter().flatten().chain(behind));
            let size = if odd == 2 { 3 } else { words.len() as u64 };
            let kind = if odd == 3 { 5 } else { 4 };
            words[0] = kind | size << 4 | of << 16 | count << 20 | thread << 24 | category << 32 | name << 48;
            words
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        /// What it takes, the close look decodes to the same event of the same size.
        #[test]
        fn the_common_case_is_what_the_close_look_finds(words in words()) {
            let bytes = of_words(&words);
            if let Some(event) = Event::of_common_record(&bytes, is_defined) {
                // As text, because NaN is not equal to itself.
                prop_assert_eq!(format!("{:?}", Event::of_record(&bytes)), format!("{:?}", Some(Ok::<_, ()>(event))));
                prop_assert_eq!(event.words().bytes(), bytes.len());
                let indices = event.arguments.headers().flat_map(|at| [at.name_index(), at.value_index()]);
                prop_assert!(indices.flatten().all(is_defined));
                prop_assert!(event.arguments.headers().all(|at| at.argument_type().is_some()));
            }
        }
    }

    #[test]
    fn what_programs_write_is_the_common_case() {
        let string = |index| StringRef::Index(StringIndex::new(index).unwrap());
        let of = |value| Argument { name: string(7), value };
        let text = "x".repeat(MAX_STRING_BYTES);
        let values = [
            ArgumentValue::Null,
            ArgumentValue::Bool(true),
            ArgumentValue::Int32(-1),
            ArgumentValue::Uint32(1),
            ArgumentValue::Int64(-1),
            ArgumentValue::Uint64(1),
            ArgumentValue::Double(0.5),
            ArgumentValue::String(string(8)),
            ArgumentValue::String(StringRef::Empty),
            ArgumentValue::String(StringRef::inline("inline, and longer")),
            ArgumentValue::String(StringRef::inline(&text[..15_000])),
            ArgumentValue::Pointer(1),
            ArgumentValue::Koid(Koid(1)),
        ]
        .map(of);
        let mut event = Event {
            timestamp: Ticks(77),
            thread: ThreadRef::Index(ThreadIndex::new(3).unwrap()),
            category: StringRef::Empty,
            name: string(9),
            kind: EventKind::DurationBegin,
            arguments: Arguments::from_slice(&values),
        };
        let id = 1 << 40;
        for kind in [
            EventKind::Instant { scope: Scope::Thread },
            EventKind::Instant { scope: Scope::Global },
            EventKind::Counter { id },
            EventKind::DurationBegin,
            EventKind::DurationEnd,
            EventKind::DurationComplete { end: Ticks(78) },
            EventKind::AsyncBegin { id },
            EventKind::AsyncInstant { id },
            EventKind::AsyncEnd { id },
            EventKind::FlowBegin { id },
            EventKind::FlowStep { id },
            EventKind::FlowEnd { id },
        ] {
            event.kind = kind;
            let bytes = of_words(&encode(&Record::Event(event)).unwrap());
            assert_eq!(Event::of_common_record(&bytes, is_defined), Some(event));
            assert_eq!(Event::of_common_record(&bytes, |index| index.get() != 7), None);
            assert_eq!(Event::of_common_record(&bytes, |index| index.get() != 8), None);
            assert_eq!(Event::of_common_record(&bytes[..bytes.len() - 8], is_defined), None);
        }
        let inline = ThreadRef::Inline { process: ProcessKoid(Koid(1)), thread: ThreadKoid(Koid(2)) };
        let bytes = of_words(&encode(&Record::Event(Event { thread: inline, ..event })).unwrap());
        assert_eq!(Event::of_common_record(&bytes, is_defined), None);
    }
}
