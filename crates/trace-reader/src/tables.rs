//! What providers have defined: strings, threads and the rate of their clock.
//!
//! All of it is the provider's own: index 5 of one has nothing to do with index 5 of another, and still
//! holds when its records go on after those of another. Memory is bounded by a budget; what it has no room
//! for is not remembered.

use crate::item::Thread;
use std::collections::{HashMap, HashSet};
use trace_format::units::{ProviderId, StringIndex, ThreadIndex, Ticks, TicksPerSecond};

/// Bytes that tables may still take.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub const fn new(bytes: usize) -> Self {
        Self { left: bytes }
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
#[derive(Debug)]
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

/// One provider's definitions.
#[derive(Debug)]
pub(crate) struct Provider {
    pub id: ProviderId,
    pub name: Box<[u8]>,
    pub rate: TicksPerSecond,
    /// An initialization record has set the rate.
    pub is_initialized: bool,
    /// It was warned of times before that record.
    pub is_without_rate: bool,
    last_time: Ticks,
    strings: Table<Box<[u8]>>,
    threads: Table<Thread>,
    /// What the tables have taken of the budget.
    taken: usize,
}

impl Provider {
    fn new(id: ProviderId, name: &[u8]) -> Self {
        Self {
            id,
            name: name.into(),
            rate: TicksPerSecond::NANOSECONDS,
            is_initialized: false,
            is_without_rate: false,
            last_time: last_time(TicksPerSecond::NANOSECONDS),
            strings: Table::new(),
            threads: Table::new(),
            taken: 0,
        }
    }

    pub fn set_rate(&mut self, rate: TicksPerSecond) {
        self.rate = rate;
        self.is_initialized = true;
        self.last_time = last_time(rate);
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
        if old.is_some_and(|old| **old == *value) {
            return Defined::Same;
        }
        let is_new = old.is_none();
        let (old, new) = (old.map_or(0, |old| old.len() + ENTRY_BYTES), value.len() + ENTRY_BYTES);
        if !budget.replace(old, new) {
            // What the index meant before would be wrong.
            self.strings.insert(index, (*b"<unknown>").into());
            return Defined::Full;
        }
        self.taken = self.taken + new - old;
        self.strings.insert(index, value.into());
        if is_new { Defined::New } else { Defined::Changed }
    }

    #[inline]
    pub fn string(&self, index: StringIndex) -> Option<&[u8]> {
        self.strings.find(index.get()).map(|text| &**text)
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
#[derive(Debug)]
pub(crate) struct Providers {
    current: Provider,
    others: HashMap<ProviderId, Provider>,
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
        let current = Provider::new(ProviderId(0), b"");
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
        if let Some(mut old) = self.others.remove(&id) {
            old.forget(&mut self.budget);
            self.budget.replace(PROVIDER_BYTES, 0);
        }
        self.replace(Provider::new(id, name))
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
        (is_known, self.replace(known.unwrap_or_else(|| Provider::new(id, b""))))
    }

    fn replace(&mut self, current: Provider) -> bool {
        let mut previous = std::mem::replace(&mut self.current, current);
        if previous.id == self.current.id {
            previous.forget(&mut self.budget);
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
            previous.forget(&mut self.budget);
        }
        is_kept
    }

    #[inline]
    pub const fn current(&self) -> &Provider {
        &self.current
    }

    #[inline]
    pub const fn current_mut(&mut self) -> (&mut Provider, &mut Budget) {
        (&mut self.current, &mut self.budget)
    }
}

#[cfg(test)]
mod tests;
