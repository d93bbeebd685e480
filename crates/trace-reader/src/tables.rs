//! What providers have defined: strings, threads and the rate of their clock.
//!
//! All of it is the provider's own: index 5 of one has nothing to do with index 5 of another, and still
//! holds when its records go on after those of another. Memory is bounded by a budget; what it has no room
//! for is not remembered.

use crate::item::{KnownArgument, TextKey, Thread, Time};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trace_format::units::{ProviderId, Scale, StringIndex, ThreadIndex, Ticks, TicksPerSecond};

/// Bytes that tables may still take, and keys that texts have not got yet.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    left: usize,
    last_key: TextKey,
}

impl Budget {
    pub const fn new(bytes: usize) -> Self {
        Self { left: bytes, last_key: TextKey::EMPTY }
    }

    /// A key that no other text has; none if there are no more.
    const fn key(&mut self) -> TextKey {
        if let Some(next) = self.last_key.next() {
            self.last_key = next;
            return next;
        }
        TextKey::NONE
    }

    /// Gives back what an old entry takes and takes what a new one needs; false, and nothing changes, if
    /// there is not so much.
    pub const fn replace(&mut self, old: usize, new: usize) -> bool {
        match (self.left + old).checked_sub(new) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

/// What a definition did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defined {
    /// Index 0, which defines nothing.
    Nothing,
    /// The index was new.
    New,
    /// The index had the same meaning already.
    Same,
    /// The index had another meaning.
    Changed,
    /// There was no room.
    Full,
}

/// Entries by index. Those that follow each other closely stand in a list, for speed, the others in a map, so
/// that a single large index does not take the memory of all below it.
#[derive(Clone, Debug)]
struct Table<T> {
    list: Vec<Option<T>>,
    map: HashMap<u16, T>,
}

/// What an entry takes besides its contents.
const ENTRY_BYTES: usize = 64;

impl<T> Table<T> {
    fn new() -> Self {
        Self { list: Vec::new(), map: HashMap::new() }
    }

    /// How many places there are.
    fn places(&self) -> usize {
        self.list.len() + self.map.len()
    }

    #[inline]
    fn find(&self, index: u16) -> Option<&T> {
        match self.list.get(usize::from(index)) {
            Some(entry) => entry.as_ref(),
            None => self.map.get(&index),
        }
    }

    fn insert(&mut self, index: u16, value: T) {
        let place = usize::from(index);
        if place >= self.list.len() {
            if place > 2 * self.list.len() + 16 {
                self.map.insert(index, value);
                return;
            }
            let from = self.list.len();
            self.list.resize_with(place + 1, || None);
            if !self.map.is_empty() {
                for place in from..=place {
                    let moved = u16::try_from(place).ok().and_then(|index| self.map.remove(&index));
                    if let (Some(slot), Some(moved)) = (self.list.get_mut(place), moved) {
                        *slot = Some(moved);
                    }
                }
            }
        }
        if let Some(slot) = self.list.get_mut(place) {
            *slot = Some(value);
        }
    }
}

/// A defined text. Copies of the tables share it.
#[derive(Clone, Debug)]
struct Defining {
    text: Arc<[u8]>,
    key: TextKey,
}

/// Names of arguments may stand in the records of their events.
const INLINE: u8 = 1 << 7;

/// One provider's definitions.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    pub id: ProviderId,
    pub name: Arc<[u8]>,
    pub rate: TicksPerSecond,
    pub scale: Scale,
    /// An initialization record has set the rate.
    pub is_initialized: bool,
    /// It was warned of times before that record.
    pub is_without_rate: bool,
    last_time: Ticks,
    strings: Table<Defining>,
    threads: Table<Thread>,
    /// A bit for each [`KnownArgument`] whose name was registered, and [`INLINE`].
    known_arguments: u8,
    /// What the tables have taken of the budget.
    taken: usize,
}

impl Provider {
    fn new(id: ProviderId, name: &[u8]) -> Self {
        Self {
            id,
            name: name.into(),
            rate: TicksPerSecond::NANOSECONDS,
            scale: Scale::of(TicksPerSecond::NANOSECONDS),
            is_initialized: false,
            is_without_rate: false,
            last_time: last_time(TicksPerSecond::NANOSECONDS),
            strings: Table::new(),
            threads: Table::new(),
            known_arguments: 0,
            taken: 0,
        }
    }

    pub fn set_rate(&mut self, rate: TicksPerSecond) {
        (self.rate, self.scale) = (rate, Scale::of(rate));
        self.is_initialized = true;
        self.last_time = last_time(rate);
    }

    /// A moment on its clock.
    #[inline]
    pub const fn time(&self, ticks: Ticks) -> Time {
        Time { ticks, rate: self.rate, scale: self.scale }
    }

    /// The last moment that has a sensible number of nanoseconds.
    #[inline]
    pub const fn last_time(&self) -> Ticks {
        self.last_time
    }

    /// Defines a string, or defines it anew.
    pub fn define_string(&mut self, index: u16, value: &[u8], budget: &mut Budget) -> Defined {
        if StringIndex::new(index).is_none() {
            return Defined::Nothing;
        }
        let old = self.strings.find(index);
        if old.is_some_and(|old| *old.text == *value) {
            return Defined::Same;
        }
        let is_new = old.is_none();
        let known = KnownArgument::ALL.into_iter().filter(|known| known.name().as_bytes() == value);
        self.known_arguments |= known.fold(0, |bits, known| bits | 1 << known as u8);
        let (old, new) = (old.map_or(0, |old| old.text.len() + ENTRY_BYTES), value.len() + ENTRY_BYTES);
        if !budget.replace(old, new) {
            // What the index meant before would be wrong.
            self.strings.insert(index, Defining { text: (*b"<unknown>").into(), key: TextKey::NONE });
            return Defined::Full;
        }
        self.taken = self.taken + new - old;
        self.strings.insert(index, Defining { text: value.into(), key: budget.key() });
        if is_new { Defined::New } else { Defined::Changed }
    }

    /// Whether an event may have such an argument: a string is its name, or was so, or names stand in
    /// records.
    #[inline]
    pub const fn may_have(&self, known: KnownArgument) -> bool {
        self.known_arguments & (INLINE | 1 << known as u8) != 0
    }

    /// Whether the names of some arguments may have stood in the records of their events.
    pub const fn has_inline_names(&self) -> bool {
        self.known_arguments & INLINE != 0
    }

    #[cold]
    pub const fn note_inline_names(&mut self) {
        self.known_arguments |= INLINE;
    }

    #[inline]
    pub fn string(&self, index: StringIndex) -> Option<&[u8]> {
        self.strings.find(index.get()).map(|defined| &*defined.text)
    }

    /// As [`Provider::string`], with the text's key.
    #[inline]
    pub fn keyed_string(&self, index: StringIndex) -> Option<(&[u8], TextKey)> {
        self.strings.find(index.get()).map(|defined| (&*defined.text, defined.key))
    }

    /// How many entries a copy of the tables copies.
    pub fn entries(&self) -> usize {
        self.strings.places() + self.threads.places()
    }

    /// Defines a thread, or defines it anew.
    pub fn define_thread(&mut self, index: u8, thread: Thread, budget: &mut Budget) -> Defined {
        if ThreadIndex::new(index).is_none() {
            return Defined::Nothing;
        }
        let old = self.threads.find(index.into()).copied();
        match old {
            Some(old) if old == thread => return Defined::Same,
            None if !budget.replace(0, ENTRY_BYTES) => return Defined::Full,
            _ => {}
        }
        if old.is_none() {
            self.taken += ENTRY_BYTES;
        }
        self.threads.insert(index.into(), thread);
        if old.is_none() { Defined::New } else { Defined::Changed }
    }

    #[inline]
    pub fn thread(&self, index: ThreadIndex) -> Option<Thread> {
        self.threads.find(index.get().into()).copied()
    }

    /// Nothing is known of it.
    fn is_unknown_provider(&self) -> bool {
        self.taken == 0 && self.name.is_empty() && !self.is_initialized
    }

    /// Forgets strings and threads: definitions may have been missed.
    pub fn forget(&mut self, budget: &mut Budget) {
        self.strings = Table::new();
        self.threads = Table::new();
        budget.replace(std::mem::take(&mut self.taken), 0);
    }
}

/// The last moment that fits in 63 bits of nanoseconds: ticks · 10⁹ / rate < 2⁶³.
//= docs/format.md#time
fn last_time(rate: TicksPerSecond) -> Ticks {
    let ticks = ((u128::from(rate.0.get()) << 63) - 1) / 1_000_000_000;
    Ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
}

/// All providers of an archive, and the current one.
///
/// Each is copied before it changes if another thread holds it.
#[derive(Debug)]
pub(crate) struct Providers {
    current: Arc<Provider>,
    others: HashMap<ProviderId, Arc<Provider>>,
    /// Those that were never introduced and have defined nothing, of which there is nothing else to know.
    unknown_providers: HashSet<ProviderId>,
    pub budget: Budget,
}

/// What a provider takes besides its tables.
const PROVIDER_BYTES: usize = 512;
/// What a provider takes of which nothing is known.
const UNKNOWN_PROVIDER_BYTES: usize = 16;

impl Providers {
    /// Before any provider is introduced there is one without a name.
    pub fn new(budget_bytes: usize) -> Self {
        let current = Arc::new(Provider::new(ProviderId(0), b""));
        Self {
            current,
            others: HashMap::new(),
            unknown_providers: HashSet::new(),
            budget: Budget::new(budget_bytes),
        }
    }

    /// Introduces a provider, with empty tables, and makes it current. False if there is no room to remember
    /// the one before.
    pub fn introduce(&mut self, id: ProviderId, name: &[u8]) -> bool {
        if let Some(old) = self.others.remove(&id) {
            self.budget.replace(old.taken, 0);
            self.budget.replace(PROVIDER_BYTES, 0);
        }
        self.replace(Arc::new(Provider::new(id, name)))
    }

    /// Makes a provider current: whether it was introduced, or has no name, and whether there was room to
    /// remember the one before.
    pub fn select(&mut self, id: ProviderId) -> (bool, bool) {
        if id == self.current.id {
            return (true, true);
        }
        let known = self.others.remove(&id);
        if known.is_some() {
            self.budget.replace(PROVIDER_BYTES, 0);
        }
        let is_known = known.is_some() || self.unknown_providers.contains(&id);
        (is_known, self.replace(known.unwrap_or_else(|| Arc::new(Provider::new(id, b"")))))
    }

    fn replace(&mut self, current: Arc<Provider>) -> bool {
        let previous = std::mem::replace(&mut self.current, current);
        if previous.id == self.current.id {
            self.budget.replace(previous.taken, 0);
            return true;
        }
        if previous.is_unknown_provider() {
            return self.unknown_providers.contains(&previous.id)
                || self.budget.replace(0, UNKNOWN_PROVIDER_BYTES)
                    && self.unknown_providers.insert(previous.id);
        }
        let is_kept = self.budget.replace(0, PROVIDER_BYTES);
        if is_kept {
            self.others.insert(previous.id, previous);
        } else {
            self.budget.replace(previous.taken, 0);
        }
        is_kept
    }

    #[inline]
    pub const fn current(&self) -> &Arc<Provider> {
        &self.current
    }

    #[inline]
    pub fn current_mut(&mut self) -> (&mut Provider, &mut Budget) {
        (Arc::make_mut(&mut self.current), &mut self.budget)
    }
}

#[cfg(test)]
mod tests;
