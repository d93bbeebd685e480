//! Checks the records of one provider before they are handed on.

use super::fast_path::{self, Common, Defined, STRING_WORDS};
use crate::resume;
use trace_format::argument::{ArgumentValue, Arguments};
use trace_format::error::DecodeError;
use trace_format::event::EventKind;
use trace_format::record::{Record, RecordType};
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::Scheduling;
use trace_format::units::TicksPerSecond;
use trace_format::userspace_object::ProcessRef;

/// The error in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The record does not end where its region does, or has no size.
    #[error("size of {words} words does not fit")]
    Size {
        /// Size in the header.
        words: u64,
    },
    /// The record's contents do not fit its kind.
    #[error(transparent)]
    Content(#[from] DecodeError),
    /// A kind of record that is not allowed in this place, such as metadata.
    #[error("record of type {record_type} is not allowed here")]
    Type {
        /// The type bits.
        record_type: u8,
    },
    /// A string index that was not defined before.
    #[error("string {index} is not defined")]
    String {
        /// The index.
        index: u16,
    },
    /// A thread index that was not defined before.
    #[error("thread {index} is not defined")]
    Thread {
        /// The index.
        index: u8,
    },
    /// A definition for an index that has one already.
    #[error("index {index} is defined twice")]
    Redefined {
        /// The index.
        index: u16,
    },
    /// Another clock rate than the one the provider was given.
    #[error("clock of {found} ticks per second, expected {expected}")]
    Rate {
        /// The record's rate.
        found: u64,
        /// The rate the provider was given.
        expected: u64,
    },
    /// A time further in the future than a program may be ahead.
    #[error("timestamp of {found} ticks, {latest} at most")]
    Future {
        /// The record's time.
        found: u64,
        /// The latest that it may have.
        latest: u64,
    },
    /// A record before the first initialization record.
    #[error("record before initialization")]
    Uninitialized,
    /// A record that is longer than what is known of it, and contains what could be taken for the beginning
    /// of another program's records.
    #[error("contents that could be taken for records of another program")]
    Ambiguous,
}

impl Fault {
    /// Whether the record would be sound if a definition came.
    pub(super) fn is_missing_definition(&self) -> bool {
        matches!(self, Self::String { .. } | Self::Thread { .. } | Self::Uninitialized)
    }
}

/// The definitions a provider has made so far.
pub(super) struct Validator {
    rate: TicksPerSecond,
    is_initialized: bool,
    /// With the empty string, 0.
    strings: Box<[u64; STRING_WORDS]>,
    threads: [u64; 4],
}

impl Validator {
    pub fn new(rate: TicksPerSecond) -> Self {
        let mut strings = Box::new([0; STRING_WORDS]);
        strings[0] = 1;
        Self { rate, is_initialized: false, strings, threads: [0; 4] }
    }

    /// Checks a record of the durable region and remembers its definition.
    pub fn check_durable(&mut self, record: &[u8]) -> Result<(), Fault> {
        match decode(record)? {
            Record::Initialization(initialization) => {
                let (found, expected) = (initialization.ticks_per_second.0.get(), self.rate.0.get());
                if found != expected {
                    return Err(Fault::Rate { found, expected });
                }
                self.is_initialized = true;
                Ok(())
            }
            Record::String(string) if string.index != 0 => define(&mut self.strings[..], string.index),
            Record::Thread(thread) if thread.index != 0 => define(&mut self.threads, thread.index.into()),
            Record::KernelObject(object) => self.check_named(&object.name, &object.arguments),
            // A definition of a newer program.
            Record::Unknown { header } if header.record_type().is_none() => Ok(()),
            _ => Err(not_allowed(record)),
        }
    }

    /// The definitions so far, for the common case; none before there is any record.
    #[inline]
    pub fn defined(&self) -> Option<Defined<'_>> {
        self.is_initialized.then_some(Defined { strings: &self.strings, threads: &self.threads })
    }

    /// The event at the beginning of some words, if it is of the common case and sound.
    #[inline(always)]
    pub fn common(&self, words: &[[u8; 8]]) -> Option<Common> {
        fast_path::common(words, self.defined()?)
    }

    /// Checks a record of a rolling region. Returns when an event was written: a complete duration at its
    /// end. Programs may be newer than their manager: of kinds that are not known, only what all kinds have
    /// is checked.
    //= docs/buffer.md#kinds-that-are-not-known
    pub fn check_rolling(&self, record: &[u8]) -> Result<Option<u64>, Fault> {
        let emitted_at = match decode(record)? {
            Record::Event(event) => {
                self.check_thread(event.thread)?;
                self.check_string(&event.category)?;
                self.check_named(&event.name, &event.arguments)?;
                Some(match event.kind {
                    EventKind::DurationComplete { end } => end.0,
                    _ => event.timestamp.0,
                })
            }
            Record::Blob(blob) => {
                self.check_string(&blob.name)?;
                None
            }
            Record::KernelObject(object) => {
                self.check_named(&object.name, &object.arguments)?;
                None
            }
            Record::Log(log) => {
                self.check_thread(log.thread)?;
                Some(log.timestamp.0)
            }
            Record::UserspaceObject(object) => {
                if let ProcessRef::Index(index) = object.process {
                    self.check_thread(ThreadRef::Index(index))?;
                }
                self.check_named(&object.name, &object.arguments)?;
                None
            }
            Record::Scheduling(scheduling) => {
                if let Scheduling::LegacyContextSwitch { outgoing, incoming, .. } = scheduling {
                    self.check_thread(outgoing)?;
                    self.check_thread(incoming)?;
                }
                self.check_named(&StringRef::Empty, &scheduling.arguments())?;
                Some(scheduling.timestamp().0)
            }
            Record::Profiler(profiler) => {
                self.check_thread(profiler.thread)?;
                Some(profiler.timestamp.0)
            }
            Record::Large(blob) => {
                self.check_string(&blob.category)?;
                self.check_string(&blob.name)?;
                match blob.event {
                    Some(event) => {
                        self.check_thread(event.thread)?;
                        self.check_named(&StringRef::Empty, &event.arguments)?;
                        Some(event.timestamp.0)
                    }
                    None => None,
                }
            }
            Record::Unknown { .. } => None,
            Record::Metadata(_) | Record::Initialization(_) | Record::String(_) | Record::Thread(_) => {
                return Err(not_allowed(record));
            }
        };
        if !self.is_initialized {
            return Err(Fault::Uninitialized);
        }
        Ok(emitted_at)
    }

    fn check_named(&self, name: &StringRef<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        self.check_string(name)?;
        for argument in arguments.iter() {
            let argument = argument?;
            self.check_string(&argument.name)?;
            if let ArgumentValue::String(value) = &argument.value {
                self.check_string(value)?;
            }
        }
        Ok(())
    }

    fn check_string(&self, string: &StringRef<'_>) -> Result<(), Fault> {
        match string {
            StringRef::Index(index) if !is_defined(&self.strings[..], index.get()) => {
                Err(Fault::String { index: index.get() })
            }
            _ => Ok(()),
        }
    }

    fn check_thread(&self, thread: ThreadRef) -> Result<(), Fault> {
        match thread {
            ThreadRef::Index(index) if !is_defined(&self.threads, index.get().into()) => {
                Err(Fault::Thread { index: index.get() })
            }
            _ => Ok(()),
        }
    }
}

/// Checks a record's times, given its emission time: for a complete duration also its begin.
//= docs/buffer.md#contents-that-are-checked
#[inline]
pub(super) fn check_time(record: &[u8], emitted_at: Option<u64>, latest: u64) -> Result<Option<u64>, Fault> {
    let begin = match record.as_chunks::<8>().0 {
        [header, begin, ..] if header[0] & 0xf == RecordType::Event as u8 => u64::from_le_bytes(*begin),
        _ => 0,
    };
    let found = emitted_at.unwrap_or(0).max(begin);
    if found <= latest { Ok(emitted_at) } else { Err(Fault::Future { found, latest }) }
}

/// Decodes a record. One that is not known whole must not look like damage to the readers of the archive.
//= docs/buffer.md#kinds-that-are-not-known
fn decode(record: &[u8]) -> Result<Record<'_>, Fault> {
    let decoded = Record::decode(record)?;
    let is_whole = !matches!(decoded, Record::Unknown { .. }) && decoded.words().bytes() == record.len();
    if is_whole || !resume::may_be_inside(record) { Ok(decoded) } else { Err(Fault::Ambiguous) }
}

fn not_allowed(record: &[u8]) -> Fault {
    Fault::Type { record_type: record.first().map_or(0, |byte| byte & 0xf) }
}

#[inline(always)]
pub(super) fn is_defined(bits: &[u64], index: u16) -> bool {
    bits.get(usize::from(index / 64)).is_some_and(|word| word & 1 << (index % 64) != 0)
}

fn define(bits: &mut [u64], index: u16) -> Result<(), Fault> {
    if is_defined(bits, index) {
        return Err(Fault::Redefined { index });
    }
    if let Some(word) = bits.get_mut(usize::from(index / 64)) {
        *word |= 1 << (index % 64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// With strings 1 to 7 and threads 1 to 3.
    fn validator() -> Validator {
        let mut validator = Validator::new(TicksPerSecond(core::num::NonZeroU64::MIN));
        validator.is_initialized = true;
        validator.strings[0] = 0xff;
        validator.threads[0] = 0xe;
        validator
    }

    /// Words that look like an event: mostly sound, sometimes not.
    fn event() -> impl Strategy<Value = Vec<u64>> {
        let reference = || prop_oneof![6 => 0..8_u64, 1 => 8..16_u64, 1 => 0x8000..0x8020_u64];
        let argument =
            (prop_oneof![8 => 0..10_u64, 1 => 10..16_u64], reference(), reference(), 0..4_u64, any::<u64>());
        let arguments = proptest::collection::vec(argument, 0..4);
        let head = (0..12_u64, 0..5_u64, reference(), reference(), 0..3_usize);
        let faults = (0..8_u64, 0..8_u64);
        (head, arguments, faults).prop_map(|((kind, thread, category, name, tail), arguments, faults)| {
            let mut words = vec![0, 77];
            for &(raw, name, value, more, upper) in &arguments {
                let inline = if value > 0x8000 { (value - 0x8000).div_ceil(8) } else { 0 };
                let words_behind = match raw {
                    3 | 4 | 5 | 7 | 8 => 1,
                    6 => inline,
                    _ => 0,
                };
                let size = 1 + words_behind + u64::from(more == 3);
                let upper = if raw == 6 { value } else { upper & 0xffff_ffff };
                words.push(raw | size << 4 | name << 16 | upper << 32);
                words.extend((1..size).map(|word| word * 1000));
            }
            words.extend((0..tail as u64).map(|word| 5000 + word));
            let count = arguments.len() as u64 + u64::from(faults.0 == 7);
            let size = words.len() as u64 + u64::from(faults.1 == 7);
            words[0] = 4 | size << 4 | kind << 16 | count << 20 | thread << 24 | category << 32 | name << 48;
            words
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn what_needs_no_closer_look_is_what_that_would_say(words in event()) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let validator = validator();
            // What follows it in a slab is another record.
            let behind: Vec<[u8; 8]> = bytes.as_chunks::<8>().0.iter().copied().chain([[0x24; 8]]).collect();
            if let Some(common) = validator.common(&behind) {
                let record = &behind.as_flattened()[..8 * common.words];
                let checked = validator.check_rolling(record);
                prop_assert_eq!(&checked, &Ok(Some(common.emitted_at)));
                let latest = common.timestamp.max(common.emitted_at);
                prop_assert_eq!(check_time(record, Some(common.emitted_at), latest), checked);
                let late = Fault::Future { found: latest, latest: latest - 1 };
                prop_assert_eq!(check_time(record, Some(common.emitted_at), latest - 1), Err(late));
            }
        }
    }

    #[test]
    fn ordinary_events_need_no_closer_look() {
        let validator = validator();
        let emitted_at = |words: &[u64]| {
            let words: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
            let common = validator.common(&words)?;
            assert_eq!((common.words, common.timestamp), (words.len(), 77));
            Some(common.emitted_at)
        };
        let header = |kind: u64, size: u64, arguments: u64| {
            4 | size << 4 | kind << 16 | arguments << 20 | 1 << 24 | 2 << 32 | 3 << 48
        };
        assert_eq!(emitted_at(&[header(0, 2, 0), 77]), Some(77));
        assert_eq!(emitted_at(&[header(4, 3, 0), 77, 99]), Some(99));
        assert_eq!(emitted_at(&[header(1, 5, 1), 77, 4 | 2 << 4 | 5 << 16, 123, 9]), Some(77));
        assert_eq!(emitted_at(&[header(2, 5, 1), 77, 6 | 3 << 4 | 5 << 16 | 0x8009 << 32, 1, 2]), Some(77));
        // Similar to the engine's most common records, but different.
        assert_eq!(emitted_at(&[header(4, 2, 0), 77]), None);
        assert_eq!(emitted_at(&[header(11, 2, 0), 77]), None);
        // A text, a name or a thread that is not defined.
        assert_eq!(emitted_at(&[header(0, 3, 1), 77, 6 | 1 << 4 | 5 << 16 | 9 << 32]), None);
        assert_eq!(emitted_at(&[header(0, 3, 1), 77, 1 << 4 | 9 << 16]), None);
        assert_eq!(emitted_at(&[header(0, 2, 0) + (4 << 24), 77]), None);
        assert_eq!(emitted_at(&[]), None);
    }

    #[test]
    fn indices_are_defined_one_by_one_and_once() {
        let mut bits = [0; STRING_WORDS];
        for index in [1, 63, 64, 100, 0x7fff] {
            assert!(!is_defined(&bits, index));
            assert_eq!(define(&mut bits, index), Ok(()));
            assert_eq!(define(&mut bits, index), Err(Fault::Redefined { index }));
        }
        let defined = (0..=u16::MAX).filter(|index| is_defined(&bits, *index));
        assert!(defined.eq([1, 63, 64, 100, 0x7fff]));
        // There are no bits for inline strings.
        assert_eq!(define(&mut bits, 0x8000), Ok(()));
        assert!(!is_defined(&bits, 0x8000));
    }

    #[test]
    fn some_faults_are_mended_by_a_definition() {
        for fault in [Fault::String { index: 1 }, Fault::Thread { index: 1 }, Fault::Uninitialized] {
            assert!(fault.is_missing_definition());
        }
        assert!(!Fault::Size { words: 0 }.is_missing_definition());
    }

    //= docs/buffer.md#contents-that-are-checked
    #[test]
    fn definitions_have_an_index_and_objects_their_names() {
        let check = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            validator().check_durable(&bytes)
        };
        assert_eq!(check(&[0x1_0008_0022, 0x61]), Ok(()));
        assert_eq!(check(&[0x1_0000_0022, 0x61]), Err(Fault::Type { record_type: 2 }));
        assert_eq!(check(&[0x4_0033, 5, 6]), Ok(()));
        assert_eq!(check(&[0x33, 5, 6]), Err(Fault::Type { record_type: 3 }));
        let object = |name: u64| [0x27 | 1 << 16 | name << 24, 9];
        assert_eq!(check(&object(1)), Ok(()));
        assert_eq!(check(&object(9)), Err(Fault::String { index: 9 }));
    }
}
