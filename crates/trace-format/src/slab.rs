//! Slab words, tallies and loss entries: the control area of the shared buffer.
//!
//! A *slab* is a piece of a rolling region that belongs to one thread while it is open. All information that
//! a reader needs about it is in one word of the control area, never beside the payload:
//!
//! ```text
//!  63                                   16 15 14 13             0
//! +---------------------------------------+-----+----------------+
//! |            sequence (48 bits)         |state|   run length   |
//! +---------------------------------------+-----+----------------+
//! ```

/// The state of a slab in its slab word.
//= docs/buffer.md#slab-words
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlabState {
    /// Nothing in the slab is valid.
    Empty = 0,
    /// A thread may be writing; a walk ends at the first zero word.
    Open = 1,
    /// The writer has left; a walk ends at the first zero word or at the end.
    Closed = 2,
    /// A later part of the run that an earlier slab begins.
    Continuation = 3,
}

/// One word of the slab table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabWord(pub u64);

impl SlabWord {
    /// The word of a slab that holds nothing.
    pub const EMPTY: Self = Self(0);
    /// Longest run, in slabs: the run length has 14 bits.
    pub const MAX_RUN: u32 = (1 << 14) - 1;
    /// Sequences have 48 bits.
    pub const MAX_SEQUENCE: u64 = (1 << 48) - 1;

    /// The word for a slab of this state; the run length of a single slab is 1.
    #[must_use]
    pub const fn new(sequence: u64, state: SlabState, run: u32) -> Self {
        Self(sequence << 16 | (state as u64) << 14 | (run & Self::MAX_RUN) as u64)
    }

    /// The word of a slab that a writer is about to use: empty for readers, in use for other writers.
    #[must_use]
    pub const fn being_taken(sequence: u64) -> Self {
        Self::new(sequence, SlabState::Empty, 1)
    }

    /// The word of a slab that was taken and is not used after all: empty, and as new as the claim.
    #[must_use]
    pub const fn given_back(sequence: u64) -> Self {
        Self::new(sequence, SlabState::Empty, 0)
    }

    /// The word of a later slab of a run, while the run is written or after.
    #[must_use]
    pub const fn continuation(sequence: u64, is_in_use: bool) -> Self {
        Self::new(sequence, SlabState::Continuation, is_in_use as u32)
    }

    /// Whether a writer has the slab, so that no other writer may take it.
    #[must_use]
    pub const fn is_in_use(self) -> bool {
        match self.state() {
            SlabState::Open => true,
            SlabState::Closed => false,
            SlabState::Empty | SlabState::Continuation => self.run() != 0,
        }
    }

    /// Number of this claim, unique within the buffer and growing with time.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.0 >> 16
    }

    /// The state bits.
    #[must_use]
    pub const fn state(self) -> SlabState {
        match self.0 >> 14 & 3 {
            0 => SlabState::Empty,
            1 => SlabState::Open,
            2 => SlabState::Closed,
            _ => SlabState::Continuation,
        }
    }

    /// Number of slabs in the run that begins here.
    #[must_use]
    pub const fn run(self) -> u32 {
        (self.0 & Self::MAX_RUN as u64) as u32
    }
}

/// Bytes of one tally.
pub const TALLY_BYTES: u64 = 32;

/// Facts about a slab's records, stored outside the slab: four words, each of which only the slab's owner
/// stores.
//= docs/buffer.md#tallies
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records that were ever written into the slab, in all its claims; without those of an open one, unless
    /// it is just being closed.
    pub total: u64,
    /// The same when the present claim began: this many records are gone.
    pub before: u64,
    /// Timestamp of the first record of the present claim.
    pub first: u64,
    /// Timestamp of the last: not before the last record, and not after the next one of the same thread.
    pub last: u64,
}

impl Tally {
    /// Offset of a field in the tally, in bytes.
    pub const TOTAL: u64 = 0;
    /// See [`Tally::before`].
    pub const BEFORE: u64 = 8;
    /// See [`Tally::first`].
    pub const FIRST: u64 = 16;
    /// See [`Tally::last`].
    pub const LAST: u64 = 24;

    /// Decodes its words.
    #[must_use]
    pub const fn from_words([total, before, first, last]: [u64; 4]) -> Self {
        Self { total, before, first, last }
    }

    /// Whether the present claim's records are counted already, though its word may still be open: the tally
    /// is stored first.
    #[must_use]
    pub const fn has_present_claim(&self) -> bool {
        self.total != self.before
    }

    /// Records that were in the slab and no longer are, given its word.
    #[must_use]
    pub const fn gone(&self, word: SlabWord) -> u64 {
        match word.state() {
            SlabState::Open | SlabState::Closed => self.before,
            SlabState::Empty | SlabState::Continuation => self.total,
        }
    }
}

/// Why records are missing; the number is the index of the entry in the loss ledger.
//= docs/buffer.md#loss-ledger
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum LossReason {
    /// The buffer was full.
    Full = 0,
    /// A circular buffer wrapped and overwrote older records.
    Overwritten = 1,
    /// The other half had not been saved yet.
    NotSaved = 2,
    /// The other half had not been retired yet.
    NotRetired = 3,
    /// The durable region was full, which ended recording in buffers of earlier writers; now the missing
    /// space is counted.
    DurableFull = 4,
    /// The record was larger than the format or the buffer allows.
    TooLarge = 5,
    /// Signal handlers interrupted each other more deeply than a thread has slabs for.
    NestedTooDeep = 6,
    /// A start that cleared the buffer.
    Cleared = 7,
    /// The kernel had no room left in its own buffer.
    KernelOverrun = 8,
    /// The kernel was configured to keep the oldest events.
    KernelDropped = 9,
    /// Interrupts came faster than the kernel finished the events that they interrupted.
    KernelCommitOverrun = 10,
    /// A definition that cannot be inlined in the records that need it found no room.
    DefinitionRefused = 11,
    /// The thread left the event by a jump, before its record was complete or after.
    LeftByJump = 12,
    /// The file system had no memory left for the part of the buffer that was to be written next.
    NotBacked = 13,
    /// A forked child came to it in a handler of a signal, before it had joined the recording.
    NotJoined = 14,
}

impl LossReason {
    /// All reasons, in the order of their entries.
    pub const ALL: [Self; 15] = [
        Self::Full,
        Self::Overwritten,
        Self::NotSaved,
        Self::NotRetired,
        Self::DurableFull,
        Self::TooLarge,
        Self::NestedTooDeep,
        Self::Cleared,
        Self::KernelOverrun,
        Self::KernelDropped,
        Self::KernelCommitOverrun,
        Self::DefinitionRefused,
        Self::LeftByJump,
        Self::NotBacked,
        Self::NotJoined,
    ];

    /// A few words for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Full => "buffer full",
            Self::Overwritten => "overwritten",
            Self::NotSaved => "not saved in time",
            Self::NotRetired => "not retired in time",
            Self::DurableFull => "durable region full",
            Self::TooLarge => "record too large",
            Self::NestedTooDeep => "nested too deep",
            Self::Cleared => "cleared",
            Self::KernelOverrun => "kernel buffer overrun",
            Self::KernelDropped => "kernel buffer full",
            Self::KernelCommitOverrun => "kernel commit overrun",
            Self::DefinitionRefused => "no room for a definition",
            Self::LeftByJump => "left by a jump",
            Self::NotBacked => "no memory for the buffer",
            Self::NotJoined => "not joined yet",
        }
    }
}

/// Bytes of one entry of the loss ledger: a count, the *complement* of the first timestamp, the last
/// timestamp and a spare word. With the complement, zeroed memory means "none yet" and both bounds grow by an
/// atomic maximum.
pub const LOSS_ENTRY_BYTES: u64 = 32;

/// Set in the spare word of [`LossReason::TooLarge`] if a record was larger than the format allows, so that
/// no buffer would have had room for it.
//= docs/buffer.md#what-was-short
pub const TOO_LARGE_FOR_FORMAT: u64 = 1 << 63;

/// The gap of an entry after the ledger's reasons, stored in the entry's spare word.
//= docs/buffer.md#gaps
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Number of the half that writers could not have yet, counted since the buffer was cleared.
    pub half: u64,
    /// The reason.
    pub reason: LossReason,
}

impl Gap {
    /// The word; never 0.
    #[must_use]
    pub const fn to_word(self) -> u64 {
        (self.half + 1) << 8 | self.reason as u64
    }

    /// The meaning of an untrusted word.
    #[must_use]
    pub fn from_word(word: u64) -> Option<Self> {
        let reason = LossReason::ALL.get((word & 0xff) as usize)?;
        Some(Self { half: (word >> 8).checked_sub(1)?, reason: *reason })
    }
}

/// One entry of the ledger, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Records refused or lost for this reason.
    pub count: u64,
    /// Timestamp of the first of them, in ticks; meaningless while `count` is 0.
    pub first: u64,
    /// Timestamp of the last of them, in ticks.
    pub last: u64,
}

impl Loss {
    /// Reads an entry from its words as they stand in the buffer.
    #[must_use]
    pub const fn from_words(words: [u64; 3]) -> Self {
        Self { count: words[0], first: !words[1], last: words[2] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/buffer.md#slab-words
    #[test]
    fn slab_word_has_the_documented_bits() {
        let word = SlabWord::new(0x1234_5678_9abc, SlabState::Open, 3);
        assert_eq!(word.0, 0x1234_5678_9abc_4003);
        assert_eq!(word.sequence(), 0x1234_5678_9abc);
        assert_eq!(word.state(), SlabState::Open);
        assert_eq!(word.run(), 3);
        assert_eq!(SlabWord::new(SlabWord::MAX_SEQUENCE, SlabState::Continuation, 0x3fff).0, u64::MAX);
        assert_eq!(SlabWord(0).state(), SlabState::Empty);
        assert_eq!(SlabWord::new(1, SlabState::Closed, 1).0, 0x1_8001);
    }

    //= docs/buffer.md#tallies
    #[test]
    fn what_is_gone_from_a_slab_follows_from_its_word() {
        let tally = Tally::from_words([10, 7, 100, 200]);
        assert_eq!(tally, Tally { total: 10, before: 7, first: 100, last: 200 });
        assert_eq!(tally.gone(SlabWord::new(5, SlabState::Closed, 1)), 7);
        assert_eq!(tally.gone(SlabWord::new(5, SlabState::Open, 1)), 7);
        assert_eq!(tally.gone(SlabWord::being_taken(5)), 10);
        assert_eq!(tally.gone(SlabWord::EMPTY), 10);
        assert_eq!(tally.gone(SlabWord::continuation(5, true)), 10);
        assert!(tally.has_present_claim() && !Tally { before: 10, ..tally }.has_present_claim());
    }

    //= docs/buffer.md#gaps
    #[test]
    fn a_gap_says_which_half_it_is_in_front_of() {
        let gap = Gap { half: 5, reason: LossReason::NotRetired };
        assert_eq!(gap.to_word(), 0x603);
        assert_eq!(Gap::from_word(0x603), Some(gap));
        assert_eq!(Gap::from_word(0), None);
        assert_eq!(Gap::from_word(0x6ff), None);
    }

    //= docs/buffer.md#slab-words
    #[test]
    fn words_say_whether_a_writer_has_the_slab() {
        assert!(!SlabWord::EMPTY.is_in_use());
        assert!(SlabWord::being_taken(5).is_in_use());
        assert_eq!(SlabWord::being_taken(5).state(), SlabState::Empty);
        assert!(!SlabWord::given_back(5).is_in_use());
        assert_eq!(SlabWord::given_back(5).state(), SlabState::Empty);
        assert_eq!(SlabWord::given_back(5).sequence(), 5);
        assert!(SlabWord::new(5, SlabState::Open, 1).is_in_use());
        assert!(!SlabWord::new(5, SlabState::Closed, 3).is_in_use());
        assert!(SlabWord::continuation(6, true).is_in_use());
        assert!(!SlabWord::continuation(6, false).is_in_use());
        assert_eq!(SlabWord::continuation(6, false).sequence(), 6);
    }

    //= docs/buffer.md#loss-ledger
    #[test]
    fn a_loss_entry_keeps_the_complement_of_its_first_timestamp() {
        let loss = Loss::from_words([2, !100, 250]);
        assert_eq!(loss, Loss { count: 2, first: 100, last: 250 });
        for (index, reason) in LossReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
