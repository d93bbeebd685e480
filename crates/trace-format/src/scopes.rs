//! The open scopes of a program, in pages behind its buffer: what each thread has begun and not ended.
//!
//! ```text
//! | header 4096 | slot 512 | slot 512 | … |      slot: | owner | word | entry 16 | entry 16 | … |
//! ```
//!
//! A thread that begins scopes has a slot, and only that thread writes into it. Entries are taken from the
//! last one down; the word says how many bytes of them are left. Scopes of tracks are in slots that all
//! threads share, each for itself.

use crate::argument::{Argument, ArgumentValue};
use crate::event::{Event, EventKind};
use crate::refs::StringRef;

/// First word of the pages; in memory the bytes `73 63 6f 70 65 73 ee 66`.
pub const SCOPES_MAGIC: u64 = 0x66ee_7365_706f_6373;
/// Version of the header and of the slots.
pub const SCOPES_VERSION: u64 = 1;
/// Size of the header.
pub const HEADER_BYTES: u64 = 4096;
/// How many threads at a time have a slot.
pub const SLOTS: u64 = 256;
/// Size of a slot.
pub const SLOT_BYTES: u64 = 512;
/// Size of all of it.
pub const SCOPES_BYTES: u64 = HEADER_BYTES + SLOTS * SLOT_BYTES;
/// Scopes of a thread that are distinguished: the outermost.
pub const ENTRIES: usize = 31;

/// Word numbers of the header.
pub mod field {
    /// [`super::SCOPES_MAGIC`]; it is written last.
    pub const MAGIC: usize = 0;
    /// [`super::SCOPES_VERSION`].
    pub const VERSION: usize = 1;
    /// The present run. Slots of other runs say nothing.
    pub const RUN: usize = 2;
    /// Koid of the process.
    pub const PROCESS: usize = 3;
    /// How often in this run a scope began for which there was no slot.
    pub const REFUSED: usize = 4;
}

/// Bits of a slot's word with the bytes of the entries that are left.
pub const ROOM: u64 = 0x1f0;
/// Size of an entry.
pub const ENTRY_BYTES: u64 = 16;
/// A scope that finds no entry, in the bits of a slot's word that count these.
pub const DEEPER: u64 = 1 << 16;
/// All those bits.
pub const DEEPER_MASK: u64 = 0xffff_0000;
/// A slot's owner has ended, with scopes that it had not.
pub const OWNER_ENDED: u64 = 1 << 62;

/// A scope of a thread has its processor time at the begin in the lower half of its references, in
/// microseconds, beside this bit.
pub const THREAD_TIME: u64 = 1 << 31;

/// The processor time of a thread as references have it; nothing if it is too long for them, which is from
/// 35 minutes on.
#[must_use]
pub const fn thread_time_bits(nanos: u64) -> u64 {
    let micros = nanos / 1000;
    if micros < THREAD_TIME { THREAD_TIME | micros } else { 0 }
}

/// The owner of a slot with scopes of tracks.
pub const OWNER_TRACKS: u64 = 1 << 61;
/// The time of a scope of a track that is just beginning.
pub const BEGINNING: u64 = 1;
/// What the koid of a track has above the lower half of the references of its scopes.
pub const TRACK: u64 = 1 << 63;

/// The argument of a begin without an end that says why it has none: see [`Ending`].
pub const END_ARGUMENT: &str = "end";
/// The argument with the time so far, in nanoseconds.
pub const LASTED_ARGUMENT: &str = "lasted_ns";
/// The argument with the processor time of the thread at the begin, in nanoseconds.
pub const THREAD_TIME_ARGUMENT: &str = "thread_ts";
/// The argument with the number of scopes inside that are only counted.
pub const DEEPER_ARGUMENT: &str = "deeper";

/// Why a scope has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ending {
    /// The recording was stopped.
    Stop,
    /// The process ended.
    Death,
    /// The recording goes on.
    Snapshot,
    /// The thread ended.
    ThreadEnd,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stop, Self::Death, Self::Snapshot, Self::ThreadEnd];

    /// As it stands in a trace.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Stop => "open at stop",
            Self::Death => "open at death",
            Self::Snapshot => "open at snapshot",
            Self::ThreadEnd => "open at thread end",
        }
    }

    /// The one with this text.
    #[must_use]
    pub fn of(text: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.text().as_bytes() == text)
    }
}

/// Why the slice that begins with an event has no end, if the one who has recorded it has said so.
#[must_use]
pub fn ending_of(event: &Event<'_>) -> Option<Ending> {
    let has_name = |argument: &Argument<'_>| argument.name == StringRef::Inline(END_ARGUMENT.as_bytes());
    let mut arguments = event.arguments.iter().map_while(Result::ok);
    match arguments.find(has_name).filter(|_| event.kind == EventKind::DurationBegin)?.value {
        ArgumentValue::String(StringRef::Inline(text)) => Ending::of(text),
        _ => None,
    }
}

impl OpenScope {
    const fn new(start: u64, references: u64) -> Self {
        let has_time = references & THREAD_TIME != 0;
        let micros = references & (THREAD_TIME - 1);
        let (category, name) = ((references >> 32) as u16, (references >> 48) as u16);
        Self { start, category, name, thread_micros: if has_time { Some(micros) } else { None } }
    }
}

/// A slot, as words: the owner, the word, and the entries.
pub type SlotWords = [u64; (SLOT_BYTES / 8) as usize];

/// The scopes that a thread had open.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    words: &'a SlotWords,
}

/// A scope that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenScope {
    /// When it began, in ticks.
    pub start: u64,
    /// Reference of the category; 0 if that has no index.
    pub category: u16,
    /// Reference of the name; 0 if that has no index.
    pub name: u16,
    /// Processor time of the thread at the begin, in microseconds, if it was recorded. Nothing of a track's.
    pub thread_micros: Option<u64>,
}

impl<'a> Slot<'a> {
    /// What a slot says in a run; none if nothing.
    #[must_use]
    pub fn new(words: &'a SlotWords, run: u64) -> Option<Self> {
        let slot = Self { words };
        let is_in_use = words[0] != 0 && run != 0 && words[1] >> 32 == run;
        let is_of_thread = words[0] & OWNER_TRACKS == 0 && slot.depth() > 0;
        (is_in_use && (slot.is_of_tracks() || is_of_thread)).then_some(slot)
    }

    /// Koid of the thread.
    #[must_use]
    pub const fn thread(&self) -> u64 {
        self.words[0] & !OWNER_ENDED
    }

    /// Whether the thread has ended.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.words[0] & OWNER_ENDED != 0
    }

    /// Whether it has scopes of tracks.
    #[must_use]
    pub const fn is_of_tracks(&self) -> bool {
        self.words[0] == OWNER_TRACKS
    }

    /// The scopes of tracks, each with the koid of its track.
    pub fn scopes_of_tracks(&self) -> impl Iterator<Item = (u64, OpenScope)> + use<'a> {
        let words = self.words;
        let count = if self.is_of_tracks() { ENTRIES } else { 0 };
        let entries = (0..count).map(move |entry| [words[2 + 2 * entry], words[3 + 2 * entry]]);
        let begun = entries.filter(|[start, _]| *start > BEGINNING);
        begun.map(|[start, references]| {
            let id = references & u64::from(u32::MAX);
            (TRACK | id, OpenScope::new(start, references & !u64::from(u32::MAX)))
        })
    }

    /// How many scopes inside of the others are only counted.
    #[must_use]
    pub const fn deeper(&self) -> u64 {
        (self.words[1] & DEEPER_MASK) / DEEPER
    }

    /// Entries that are taken.
    const fn depth(&self) -> usize {
        ENTRIES - (self.words[1] & ROOM) as usize / ENTRY_BYTES as usize
    }

    /// The scopes, the outermost first. One that was just beginning is left out, and so is what stands behind
    /// one with an earlier begin: no program writes that.
    pub fn scopes(&self) -> impl Iterator<Item = OpenScope> + use<'a> {
        let words = self.words;
        let depth = if self.is_of_tracks() { 0 } else { self.depth() };
        let mut places = (0..depth).map(move |depth| {
            let place = 2 + (ENTRIES - 1 - depth) * 2;
            [words[place], words[place + 1]]
        });
        let mut latest = 0;
        core::iter::from_fn(move || {
            loop {
                let [start, references] = places.next()?;
                if start == 0 {
                    continue;
                }
                if start <= latest {
                    return None;
                }
                latest = start;
                return Some(OpenScope::new(start, references));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn slot(run: u64, entries: &[[u64; 2]]) -> SlotWords {
        let mut words = [0; 64];
        words[0] = 77;
        words[1] = (run << 32) | ((ENTRIES - entries.len()) as u64 * ENTRY_BYTES);
        for (depth, entry) in entries.iter().enumerate() {
            words[62 - depth * 2..64 - depth * 2].copy_from_slice(entry);
        }
        words
    }

    fn starts(words: &SlotWords) -> Vec<u64> {
        Slot::new(words, 9).unwrap().scopes().map(|scope| scope.start).collect()
    }

    #[test]
    fn a_slot_has_the_scopes_of_its_thread_from_the_outermost_on() {
        let timed = thread_time_bits(4_999_999) | 7 << 32;
        let words = slot(9, &[[5, 3 | 7 << 32 | 8 << 48], [6, timed]]);
        let slot = Slot::new(&words, 9).unwrap();
        assert_eq!((slot.thread(), slot.is_ended(), slot.deeper()), (77, false, 0));
        let scope = |start, category, name, thread_micros| OpenScope { start, category, name, thread_micros };
        let expected = [scope(5, 7, 8, None), scope(6, 7, 0, Some(4999))];
        assert_eq!(slot.scopes().collect::<Vec<_>>(), expected);
        let longest = (THREAD_TIME - 1) * 1000;
        assert_eq!(thread_time_bits(longest), 2 * THREAD_TIME - 1);
        assert_eq!(thread_time_bits(longest + 1000), 0);
        assert_eq!(SCOPES_BYTES, 135_168);
    }

    #[test]
    fn what_is_of_another_run_or_of_no_thread_says_nothing() {
        let words = slot(9, &[[5, 3]]);
        assert!(Slot::new(&words, 8).is_none() && Slot::new(&words, 0).is_none());
        assert!(Slot::new(&slot(0, &[[5, 3]]), 0).is_none());
        assert!(Slot::new(&slot(9, &[]), 9).is_none());
        assert!(Slot::new(&[0; 64], 0).is_none());
        let mut unowned = words;
        unowned[0] = 0;
        assert!(Slot::new(&unowned, 9).is_none());
    }

    #[test]
    fn scopes_that_are_about_to_begin_and_what_no_program_writes_are_left_out() {
        assert_eq!(starts(&slot(9, &[[5, 3], [0, 3], [7, 3]])), [5, 7]);
        assert_eq!(starts(&slot(9, &[[5, 3], [4, 3], [7, 3]])), [5]);
        assert_eq!(starts(&slot(9, &[[5, 3], [5, 3]])), [5]);
    }

    #[test]
    fn a_slot_of_tracks_has_scopes_of_several_each_for_itself() {
        let mut words = slot(9, &[[50, 5 | 7 << 32 | 8 << 48], [0, 9], [BEGINNING, 9], [40, 6 | 7 << 32]]);
        words[0] = OWNER_TRACKS;
        let slot = Slot::new(&words, 9).unwrap();
        assert_eq!(slot.scopes().count(), 0);
        let found: Vec<_> =
            slot.scopes_of_tracks().map(|(track, open)| (track, open.start, open.name)).collect();
        assert_eq!(found, [(TRACK | 6, 40, 0), (TRACK | 5, 50, 8)]);
        // One that is being made has none yet.
        words[0] |= 1;
        assert!(Slot::new(&words, 9).is_none());
    }

    /// Numbers of a hostile program.
    #[test]
    fn no_slot_is_read_behind_its_end() {
        for word in [9 << 32, (9 << 32) | u64::from(u32::MAX), (9 << 32) | 0x10f] {
            let mut words = slot(9, &[]);
            words[1] = word;
            words[2..].fill(u64::MAX);
            if let Some(slot) = Slot::new(&words, word >> 32) {
                assert!(slot.scopes().count() <= ENTRIES);
            }
        }
        let mut ended = slot(9, &[[5, 3]]);
        ended[0] |= OWNER_ENDED;
        ended[1] |= 3 * DEEPER;
        let slot = Slot::new(&ended, 9).unwrap();
        assert_eq!((slot.thread(), slot.is_ended(), slot.deeper()), (77, true, 3));
    }
}
