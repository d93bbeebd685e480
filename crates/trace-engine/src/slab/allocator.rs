//! Which thread gets which slab: tickets, and the words of the slabs they stand for.
//!
//! One atomic word counts the tickets that were given out and says whether claiming is over:
//!
//! ```text
//!  63        62     61     60..48   47..0
//! +---------+------+------+--------+--------------------------+
//! | STOPPED | FULL | LEFT |   0    | next ticket              |
//! +---------+------+------+--------+--------------------------+
//! ```
//!
//! Tickets count up for as long as the buffer exists and go round through its slabs: ticket *t* stands for
//! slab *t* mod the number of slabs, and for sequence *t* + 1. The modes differ in two things: how far
//! tickets may go, and which component gives slabs back.
//!
//! | mode | tickets end | a slab is taken again |
//! |---|---|---|
//! | oneshot | after one round | never |
//! | circular | never | when its word is not that of a slab in use |
//! | streaming | one round behind the last saved half | the same; all of a saved half, but for stragglers |
//!
//! A ticket alone does not give a slab: its word has to be changed from one that says "not in use", with a
//! sequence below that of the ticket, to one that says "being taken". So a thread that slept with its ticket
//! for a whole round takes nothing from anybody: neither a slab that is in use, nor what was written there
//! since.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use trace_format::buffer::BufferMode;
use trace_format::slab::SlabWord;

const STOPPED: u64 = 1 << 63;
const FULL: u64 = 1 << 62;
/// Beside `STOPPED`: the recording goes on in another buffer.
const LEFT: u64 = 1 << 61;
const TICKETS: u64 = SlabWord::MAX_SEQUENCE;

/// The words of all slabs, in the shared buffer.
pub(crate) trait SlabWords {
    /// The word of one slab.
    fn slab_word(&self, slab: u32) -> &AtomicU64;
}

/// Why there is no slab for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Recording was stopped: the record does not belong to the trace any more.
    Stopped,
    /// The recording goes on in another buffer, which the record came too early for.
    Left,
    /// The buffer is full, and recording has ended.
    Full,
    /// All slabs of a oneshot buffer were given out: recording ends, unless an idle thread has room left.
    AllClaimed,
    /// Threads that do not write hold every slab of a circular buffer.
    AllInUse,
    /// The other half was handed over, and has not come back.
    NotSaved,
    /// The other half waits to be handed over.
    NotRetired,
    /// There is no memory for the slabs that are free.
    NotBacked,
}

/// One or more slabs that are being taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The first slab.
    pub slab: u32,
    /// Its ticket.
    pub ticket: u64,
}

/// Which slabs are taken.
pub(crate) struct SlabAllocator {
    state: AtomicU64,
    /// Tickets from here on are not given out.
    limit: AtomicU64,
    /// Slabs with lower tickets were taken back from their threads.
    retired: AtomicU64,
    /// Halves with lower tickets were handed over.
    handed_over: AtomicU64,
    /// The first ticket since the buffer was cleared.
    base: AtomicU64,
    /// Not 0 while the dispatcher does not look at the stream until it is woken.
    is_unwatched: AtomicU32,
    /// By slab: not 0 if it was left with a thread when its half was handed over, so that it has to be saved
    /// later.
    left_behind: Box<[AtomicU32]>,
    mode: BufferMode,
    slabs_per_half: u32,
}

impl SlabAllocator {
    pub fn new(mode: BufferMode, slabs_per_half: u32) -> Self {
        let slab_count = slabs_per_half * mode.halves();
        let claims = Self {
            state: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            retired: AtomicU64::new(0),
            handed_over: AtomicU64::new(0),
            base: AtomicU64::new(0),
            is_unwatched: AtomicU32::new(0),
            left_behind: (0..slab_count).map(|_| AtomicU32::new(0)).collect(),
            mode,
            slabs_per_half,
        };
        claims.clear();
        claims
    }

    /// Begins a new round that has nothing of the one before. No thread may be claiming. Returns the
    /// lowest sequence there will be.
    pub fn clear(&self) -> u64 {
        let round = u64::from(self.slab_count());
        let base = self.ticket().next_multiple_of(round);
        for cell in [&self.base, &self.retired, &self.handed_over] {
            cell.store(base, Ordering::Relaxed);
        }
        self.left_behind.iter().for_each(|slab| slab.store(0, Ordering::Relaxed));
        let limit = match self.mode {
            BufferMode::Oneshot | BufferMode::Streaming => base + round,
            BufferMode::Circular => TICKETS,
        };
        self.limit.store(limit, Ordering::Relaxed);
        self.state.store(self.state.load(Ordering::Relaxed) & STOPPED | base, Ordering::SeqCst);
        base + 1
    }

    fn slab_count(&self) -> u32 {
        self.slabs_per_half * self.mode.halves()
    }

    fn slab_of(&self, ticket: u64) -> u32 {
        (ticket % u64::from(self.slab_count())) as u32
    }

    /// The next ticket to be given out.
    pub fn ticket(&self) -> u64 {
        self.state.load(Ordering::SeqCst) & TICKETS
    }

    /// The first ticket of a half, counted since the buffer was cleared.
    pub fn half_start(&self, half: u64) -> u64 {
        self.base.load(Ordering::Relaxed) + half * u64::from(self.slabs_per_half)
    }

    /// The number of the half that a ticket belongs to, counted since the buffer was cleared.
    pub fn half_of(&self, ticket: u64) -> u64 {
        (ticket - self.base.load(Ordering::Relaxed)) / u64::from(self.slabs_per_half)
    }

    /// Refuses all further claims because the buffer is full.
    pub fn set_full(&self) {
        self.state.fetch_or(FULL, Ordering::SeqCst);
    }

    /// Refuses all further claims because the trace ends. Claims under way notice before they are used.
    pub fn stop(&self) {
        self.state.fetch_or(STOPPED, Ordering::SeqCst);
    }

    /// As [`SlabAllocator::stop`], for a recording that goes on in another buffer.
    pub fn leave(&self) {
        self.state.fetch_or(STOPPED | LEFT, Ordering::SeqCst);
    }

    /// Ends a stop.
    pub fn resume(&self) {
        self.state.fetch_and(!STOPPED, Ordering::SeqCst);
    }

    fn check(state: u64) -> Result<(), Refusal> {
        match state {
            state if state & LEFT != 0 => Err(Refusal::Left),
            state if state & STOPPED != 0 => Err(Refusal::Stopped),
            state if state & FULL != 0 => Err(Refusal::Full),
            _ => Ok(()),
        }
    }

    /// Takes a run of slabs of one half. `taken` is called with each, and the word it had: from there on
    /// the slab is the caller's alone.
    //= docs/buffer.md#claiming
    pub fn take(
        &self,
        words: &impl SlabWords,
        run: u32,
        mut taken: impl FnMut(u32, SlabWord),
    ) -> Result<Claim, Refusal> {
        for _ in 0..=self.slab_count() {
            let ticket = self.take_tickets(run)?;
            if self.take_slabs(words, ticket, run, &mut taken) {
                return Ok(Claim { slab: self.slab_of(ticket), ticket });
            }
        }
        Err(Refusal::AllInUse)
    }

    /// Takes so many tickets of one half.
    fn take_tickets(&self, run: u32) -> Result<u64, Refusal> {
        let half = u64::from(self.slabs_per_half);
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            Self::check(state)?;
            let next = state & TICKETS;
            let room = half - next % half;
            let ticket = if u64::from(run) <= room { next } else { next + room };
            let behind = ticket + u64::from(run);
            // Acquire: the dispatcher that raised the limit is done with the slabs below it.
            if behind > self.limit.load(Ordering::Acquire) {
                return Err(self.beyond_limit(ticket));
            }
            // SeqCst: one order with `stop` and the look at the state after the slab's end was set.
            match self.state.compare_exchange_weak(state, behind, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Ok(ticket),
                Err(now) => state = now,
            }
        }
    }

    fn beyond_limit(&self, ticket: u64) -> Refusal {
        if self.mode == BufferMode::Oneshot {
            return Refusal::AllClaimed;
        }
        let half = self.half_of(ticket).saturating_sub(1);
        if self.handed_over.load(Ordering::Relaxed) >= self.half_start(half) {
            Refusal::NotSaved
        } else {
            Refusal::NotRetired
        }
    }

    /// Takes all slabs of a run. If one of them is in use, or was claimed with a later ticket already, the
    /// others are given back empty: what they held must not outlive their tickets, or a later claim could
    /// take the end of a run whose beginning stays.
    fn take_slabs(
        &self,
        words: &impl SlabWords,
        ticket: u64,
        run: u32,
        taken: &mut impl FnMut(u32, SlabWord),
    ) -> bool {
        let mut is_whole = true;
        for ticket in ticket..ticket + u64::from(run) {
            let slab = self.slab_of(ticket);
            let word = words.slab_word(slab);
            let found = SlabWord(word.load(Ordering::Relaxed));
            let is_older = found.sequence() <= ticket;
            let is_left_behind = self.left_behind[slab as usize].load(Ordering::Relaxed) != 0;
            let is_free = is_older && !found.is_in_use() && !is_left_behind;
            let being_taken = SlabWord::being_taken(ticket + 1).0;
            // Acquire: pairs with the Release of the thread that left the slab.
            if is_free
                && word.compare_exchange(found.0, being_taken, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                taken(slab, found);
            } else {
                is_whole = false;
            }
        }
        if !is_whole {
            self.give_back(words, ticket, run);
        }
        is_whole
    }

    /// Gives back what was taken of a run and not used. The slabs keep their sequences: a thread that was
    /// held up with an earlier ticket does not take them for older than they are.
    //= docs/buffer.md#late-threads
    pub fn give_back(&self, words: &impl SlabWords, ticket: u64, run: u32) {
        for ticket in ticket..ticket + u64::from(run) {
            let word = words.slab_word(self.slab_of(ticket));
            let being_taken = SlabWord::being_taken(ticket + 1).0;
            let given_back = SlabWord::given_back(ticket + 1).0;
            // Fails for a slab that was not taken.
            let _ = word.compare_exchange(being_taken, given_back, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Whether a slab that a thread has just taken may be used; if not, the trace was stopped, or the slab's
    /// half was taken back, while the dispatcher could not see the thread with it. To be asked after a full
    /// fence that follows the store by which it can.
    pub fn recheck(&self, sequence: u64) -> Result<bool, Refusal> {
        let state = self.state.load(Ordering::SeqCst);
        if state & STOPPED != 0 {
            return Err(if state & LEFT != 0 { Refusal::Left } else { Refusal::Stopped });
        }
        Ok(sequence > self.retired.load(Ordering::SeqCst))
    }

    /// Whether a slab of this sequence was taken back.
    pub fn is_retired(&self, sequence: u64) -> bool {
        sequence <= self.retired.load(Ordering::SeqCst)
    }

    /// Takes all slabs of a half back; claims under way notice before they use them.
    pub fn retire_half(&self, half: u64) {
        self.retired.store(self.half_start(half + 1), Ordering::SeqCst);
    }

    /// A half has been handed over.
    pub fn hand_over_half(&self, half: u64) {
        self.handed_over.store(self.half_start(half + 1), Ordering::Relaxed);
    }

    /// The dispatcher is about to look at the stream for the last time before it sleeps: the first thread
    /// that finds a full half from here on wakes it.
    pub fn end_watch(&self) {
        // Release: pairs with the Acquire in `is_wake_due`.
        self.is_unwatched.store(1, Ordering::Release);
        // Either the look that follows sees that the half is full, or the thread that took the last ticket of
        // it sees this behind its own fence.
        fence(Ordering::SeqCst);
    }

    /// The dispatcher needs no wake.
    pub fn begin_watch(&self) {
        self.is_unwatched.store(0, Ordering::Relaxed);
    }

    /// Whether the calling thread, which has taken tickets, has to wake the dispatcher of a stream.
    //= docs/buffer.md#streaming
    pub fn is_wake_due(&self) -> bool {
        if self.mode != BufferMode::Streaming {
            return false;
        }
        fence(Ordering::SeqCst);
        // Acquire: of the half that was handed over before the dispatcher slept, its end is known.
        self.is_unwatched.load(Ordering::Acquire) != 0
            && self.ticket() >= self.handed_over.load(Ordering::Relaxed) + u64::from(self.slabs_per_half)
            && self.is_unwatched.swap(0, Ordering::Relaxed) != 0
    }

    /// A half was saved: its slabs are given out again.
    pub fn release_half(&self, half: u64) {
        // Release: pairs with the Acquire in `take_tickets`.
        self.limit.store(self.half_start(half + 3), Ordering::Release);
    }

    /// Ends a half early: nothing of it is given out any more. Returns how many of its slabs were claimed.
    pub fn skip_rest_of_half(&self, half: u64) -> u64 {
        let end = self.half_start(half + 1);
        let mut state = self.state.load(Ordering::Relaxed);
        while state & TICKETS < end {
            let skipped = state & !TICKETS | end;
            match self.state.compare_exchange_weak(state, skipped, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return (state & TICKETS).saturating_sub(self.half_start(half)),
                Err(now) => state = now,
            }
        }
        u64::from(self.slabs_per_half)
    }

    /// Slabs of a half that are still with a thread, of those that were claimed.
    pub fn in_use(&self, words: &impl SlabWords, half: u64) -> Vec<u32> {
        let tickets = self.half_start(half)..self.half_start(half + 1);
        tickets
            .map(|ticket| self.slab_of(ticket))
            .filter(|slab| SlabWord(words.slab_word(*slab).load(Ordering::Acquire)).is_in_use())
            .collect()
    }

    /// Keeps a slab from being given out, or no longer.
    pub fn set_left_behind(&self, slab: u32, is_left_behind: bool) {
        self.left_behind[slab as usize].store(u32::from(is_left_behind), Ordering::Release);
    }

    /// Slabs that were claimed in a half so far.
    pub fn claimed_in_half(&self, half: u64) -> u64 {
        let claimed = self.ticket().saturating_sub(self.half_start(half));
        claimed.min(u64::from(self.slabs_per_half))
    }
}
