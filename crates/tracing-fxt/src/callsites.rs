//! The callsites of `tracing`, and what they are for the engine: found by the address of their metadata,
//! without a lock.

use crate::fields::{Field, FieldMap};
use crate::runs;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use trace_engine::Site;
use tracing_core::{Interest, Metadata};

/// Tables of callsites, each twice as large as the one before.
const TABLES: usize = 16;
/// Places of the first table.
const FIRST_SLOTS: usize = 1024;
/// Places that are tried in each table.
const TRIES: usize = 8;
/// Longest message that is used as a name, in bytes.
const MAX_NAME_BYTES: usize = 1000;

/// The argument of a counter.
const VALUE: &str = "value";

/// A callsite of `tracing`.
#[derive(Debug)]
pub struct Callsite {
    /// Its number: which table, and which slot there.
    pub number: u32,
    pub metadata: &'static Metadata<'static>,
    /// A span's duration; an event with a name of its own, or with its place as its name.
    pub site: &'static Site,
    /// What becomes of each field.
    pub fields: FieldMap,
    /// A span as an operation.
    operation: OnceLock<&'static Site>,
    /// One for each counter.
    pub counters: Vec<&'static Site>,
    /// Whether it is an event's that has no name but its message.
    pub is_named_by_message: bool,
    /// The only message so far, with a site of that name; none where it varies.
    message: OnceLock<Option<Message>>,
    has_varied: AtomicBool,
}

/// A message that is an event's name.
#[derive(Debug)]
pub struct Message {
    pub text: &'static str,
    pub site: &'static Site,
}

impl Callsite {
    fn new(number: u32, metadata: &'static Metadata<'static>) -> Self {
        let fields = FieldMap::new(metadata);
        let is_named_by_message =
            metadata.is_event() && fields.has_message() && metadata.name().starts_with("event ");
        // The default name of an event is its place: `event FILE:LINE`.
        let name = match metadata.name().strip_prefix("event ") {
            Some(place) if metadata.is_event() => place,
            _ => metadata.name(),
        };
        let site = Site::leaked_constants(metadata.target(), name, &fields.names());
        let counters = fields.counters.iter();
        let counters =
            counters.map(|name| Site::leaked_constants(metadata.target(), name, &[VALUE])).collect();
        Self {
            number,
            metadata,
            site,
            fields,
            operation: OnceLock::new(),
            counters,
            is_named_by_message,
            message: OnceLock::new(),
            has_varied: AtomicBool::new(false),
        }
    }

    /// Whether it is recorded now.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.site.is_on()
    }

    /// The message that the callsite had so far, if it was always the same.
    #[inline]
    pub fn only_message(&self) -> Option<&Message> {
        let message = self.message.get()?.as_ref()?;
        (!self.has_varied.load(Ordering::Relaxed)).then_some(message)
    }

    /// The message varies.
    pub fn set_varied(&self) {
        let _ = self.message.set(None);
        self.has_varied.store(true, Ordering::Relaxed);
    }

    /// Remembers the first message, which becomes the name of the events. None if another thread was first
    /// with another one, or if it is too long for a name.
    pub fn name_by(&self, text: &str) -> Option<&Message> {
        let make = || {
            (text.len() <= MAX_NAME_BYTES).then(|| {
                let text: &'static str = String::leak(text.to_owned());
                Message { text, site: Site::leaked(self.metadata.target(), text, &self.fields.names()) }
            })
        };
        let known = self.message.get_or_init(make).as_ref();
        if known.is_none_or(|known| known.text != text) {
            self.has_varied.store(true, Ordering::Relaxed);
        }
        self.only_message()
    }

    /// The site of a span as an operation.
    pub fn operation(&self) -> &'static Site {
        let make = || {
            let names = self.fields.names_of_operation();
            Site::leaked_constants(self.metadata.target(), self.metadata.name(), &names)
        };
        self.operation.get_or_init(make)
    }

    /// The number of a field, as it stands in the site's arguments.
    #[inline]
    pub fn field(&self, field: &tracing_core::Field) -> Field {
        self.fields.of(field.index())
    }
}

#[derive(Debug, Default)]
struct Slot {
    /// Address of the metadata; 0 in a free slot.
    key: AtomicUsize,
    callsite: OnceLock<Callsite>,
}

static CALLSITES: [OnceLock<Box<[Slot]>>; TABLES] = [const { OnceLock::new() }; TABLES];
/// Held while a callsite is added.
static ADDING: Mutex<()> = Mutex::new(());
/// Some callsite has found no slot.
static IS_FULL: AtomicBool = AtomicBool::new(false);

fn key_of(metadata: &'static Metadata<'static>) -> usize {
    core::ptr::from_ref(metadata).addr()
}

/// The slots of a table in which a key may be.
#[inline]
fn slots(table: &[Slot], key: usize) -> impl Iterator<Item = (usize, &Slot)> {
    // Fibonacci hashing: the upper bits are those that all bits of the key went into.
    let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let first = hash as usize;
    (first..first + TRIES).map(move |slot| {
        let slot = slot & (table.len() - 1);
        (slot, &table[slot])
    })
}

/// A callsite that is known.
#[inline]
pub fn find(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    let key = key_of(metadata);
    // Most are in the first slot that is tried.
    let table = CALLSITES[0].get()?;
    let (_, slot) = slots(table, key).next()?;
    // Acquire: pairs with the Release in `add`.
    if slot.key.load(Ordering::Acquire) == key {
        return slot.callsite.get();
    }
    find_elsewhere(key)
}

#[cold]
fn find_elsewhere(key: usize) -> Option<&'static Callsite> {
    for table in CALLSITES.iter().map_while(OnceLock::get) {
        for (_, slot) in slots(table, key) {
            // Acquire: pairs with the Release in `add`.
            match slot.key.load(Ordering::Acquire) {
                0 => break,
                found if found == key => return slot.callsite.get(),
                _ => {}
            }
        }
    }
    None
}

/// A callsite, added if it is not known yet: while one thread registers it, `tracing` lets the events of
/// others through without waiting for that.
#[inline]
pub fn find_or_add(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    find(metadata).or_else(|| add_late(metadata))
}

#[cold]
#[inline(never)]
fn add_late(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    if IS_FULL.load(Ordering::Relaxed) { None } else { add(metadata) }
}

/// A callsite by its number.
#[inline]
pub fn by_number(number: u32) -> Option<&'static Callsite> {
    let table = CALLSITES.get((number >> 26) as usize)?.get()?;
    table.get(number as usize & 0x3ff_ffff)?.callsite.get()
}

/// What is wanted of a callsite, for `tracing` to store.
pub fn interest(metadata: &'static Metadata<'static>) -> Interest {
    let is_known = find(metadata).is_some();
    match add(metadata) {
        None => Interest::never(),
        Some(callsite) if callsite.is_on() => Interest::always(),
        // See `runs`.
        Some(_) if is_known && !runs::is_asking() => Interest::sometimes(),
        Some(_) => Interest::never(),
    }
}

/// A callsite, known from now on. None if there are too many.
pub fn add(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    if let Some(known) = find(metadata) {
        return Some(known);
    }
    let _adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = find(metadata) {
        return Some(known);
    }
    let key = key_of(metadata);
    for (number, table) in CALLSITES.iter().enumerate() {
        let table = table.get_or_init(|| (0..FIRST_SLOTS << number).map(|_| Slot::default()).collect());
        let free = slots(table, key).find(|(_, slot)| slot.key.load(Ordering::Relaxed) == 0);
        if let Some((index, slot)) = free {
            let number = (number << 26 | index) as u32;
            let callsite = slot.callsite.get_or_init(|| Callsite::new(number, metadata));
            slot.key.store(key, Ordering::Release);
            return Some(callsite);
        }
    }
    IS_FULL.store(true, Ordering::Relaxed);
    None
}
