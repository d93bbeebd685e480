//! Strings that are written once and have a number from then on.

use super::Ending;
use super::messages::{InternedData, InternedName};
use super::track_event::flags;
use foldhash::HashMap;
use prost::Message;
use trace_reader::{Text, TextKey};

/// Maximum number of interned strings; beyond it, all are forgotten.
pub(super) const MAX_INTERNED: usize = if cfg!(test) { 30 } else { 50_000 };
/// The same for the sum of their bytes.
const MAX_INTERNED_BYTES: usize = 8 << 20;
/// Numbers of strings that are found by the keys of the texts.
const RECENT: usize = 1024;

/// Numbers of strings, by their use.
pub(super) struct Interned {
    categories: Numbers,
    names: Numbers,
    arguments: Numbers,
    /// Strings that the next packet has to define.
    new: InternedData,
    has_new: bool,
    /// The reader has to forget what it knows.
    is_fresh: bool,
}

impl Default for Interned {
    fn default() -> Self {
        let (categories, names, arguments) = <_>::default();
        Self { categories, names, arguments, new: InternedData::default(), has_new: false, is_fresh: true }
    }
}

/// Numbers of the strings of one use.
struct Numbers {
    known: HashMap<Box<[u8]>, u64>,
    /// The sum of the strings' lengths.
    bytes: usize,
    /// Those of some keys, each at a place of its own; key 0 is no key.
    recent: Box<[(u32, u32)]>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { known: HashMap::default(), bytes: 0, recent: vec![(0, 0); RECENT].into() }
    }
}

impl Numbers {
    /// The number of a string whose key was met before.
    #[inline]
    fn known(&self, key: TextKey) -> Option<u64> {
        let key = key.number();
        let (found, number) = self.recent[key as usize % RECENT];
        (found == key && key != 0).then_some(number.into())
    }

    /// The number of a string, and whether it is new.
    fn number(&mut self, text: Text<'_>, key: TextKey) -> (u64, bool) {
        let next = self.known.len() as u64 + 1;
        let (number, is_new) = match self.known.get(text.as_bytes()) {
            Some(number) => (*number, false),
            None => (next, true),
        };
        if is_new {
            self.bytes += text.as_bytes().len();
            self.known.insert(text.as_bytes().into(), number);
        }
        self.recent[key.number() as usize % RECENT] = (key.number(), number as u32);
        (number, is_new)
    }
}

/// The number of a string that is not known by its key, which is defined if it is new.
#[inline(never)]
fn number(
    numbers: &mut Numbers,
    (new, has_new): (&mut Vec<InternedName>, &mut bool),
    text: Text<'_>,
    key: TextKey,
) -> u64 {
    let (number, is_new) = numbers.number(text, key);
    if is_new {
        *has_new = true;
        new.push(InternedName { iid: Some(number), name: Some(text.to_str().into_owned()) });
    }
    number
}

impl Interned {
    #[inline]
    pub fn category(&mut self, text: Text<'_>, key: TextKey) -> u64 {
        let known = self.categories.known(key);
        let new = (&mut self.new.event_categories, &mut self.has_new);
        known.unwrap_or_else(|| number(&mut self.categories, new, text, key))
    }

    #[inline]
    pub fn name(&mut self, text: Text<'_>, key: TextKey) -> u64 {
        let known = self.names.known(key);
        let new = (&mut self.new.event_names, &mut self.has_new);
        known.unwrap_or_else(|| number(&mut self.names, new, text, key))
    }

    #[inline]
    pub fn argument(&mut self, text: Text<'_>, key: TextKey) -> u64 {
        let known = self.arguments.known(key);
        let new = (&mut self.new.debug_annotation_names, &mut self.has_new);
        known.unwrap_or_else(|| number(&mut self.arguments, new, text, key))
    }

    /// The flags of a packet that uses no string for the first time; none if it does.
    #[inline]
    pub fn flags_alone(&mut self) -> Option<u32> {
        (!self.has_new).then(|| flags(std::mem::take(&mut self.is_fresh)))
    }

    /// What a packet ends with that uses the strings since the one before.
    #[inline]
    pub fn ending(&mut self) -> Ending {
        let flags = flags(self.is_fresh);
        self.is_fresh = false;
        if !self.has_new {
            return Ending { interned: Vec::new(), flags };
        }
        let interned = self.take_new();
        if self.is_full() {
            *self = Self::default();
        }
        Ending { interned, flags }
    }

    /// The definitions of new strings, encoded.
    #[cold]
    fn take_new(&mut self) -> Vec<u8> {
        self.has_new = false;
        std::mem::take(&mut self.new).encode_to_vec()
    }

    /// Whether all will be forgotten at the end of a packet.
    pub fn is_full(&self) -> bool {
        let of_all = |part: fn(&Numbers) -> usize| -> usize {
            [&self.categories, &self.names, &self.arguments].into_iter().map(part).sum()
        };
        of_all(|numbers| numbers.known.len()) > MAX_INTERNED
            || of_all(|numbers| numbers.bytes) > MAX_INTERNED_BYTES
    }
}
