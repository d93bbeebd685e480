//! What providers have defined: strings, threads and the rate of their clock.
//!
//! All of it is the provider's own: index 5 of one has nothing to do with index 5 of another, and still
//! holds when its records go on after those of another.

use crate::reader::Text;
use std::collections::HashMap;
use std::rc::Rc;
use trace_format::units::{Koid, ProviderId, StringIndex, ThreadIndex, TicksPerSecond};

/// A process and one of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub process: Koid,
    pub thread: Koid,
}

/// One provider's definitions. The tables grow with the largest index.
#[derive(Debug)]
pub(crate) struct Provider {
    pub id: ProviderId,
    pub name: Rc<str>,
    pub rate: TicksPerSecond,
    strings: Vec<Option<Text>>,
    threads: Vec<Option<Thread>>,
}

impl Provider {
    fn new(id: ProviderId, name: &[u8]) -> Self {
        Self {
            id,
            name: String::from_utf8_lossy(name).into(),
            rate: TicksPerSecond::NANOSECONDS,
            strings: Vec::new(),
            threads: Vec::new(),
        }
    }

    /// Defines a string, or defines it anew; index 0 defines nothing.
    pub fn define_string(&mut self, index: u16, value: &Text) {
        if let Some(index) = StringIndex::new(index) {
            define(&mut self.strings, usize::from(index.get()), value.clone());
        }
    }

    #[inline]
    pub fn string(&self, index: StringIndex) -> Option<&Text> {
        self.strings.get(usize::from(index.get()))?.as_ref()
    }

    /// Defines a thread, or defines it anew; index 0 defines nothing.
    pub fn define_thread(&mut self, index: u8, thread: Thread) {
        if let Some(index) = ThreadIndex::new(index) {
            define(&mut self.threads, usize::from(index.get()), thread);
        }
    }

    #[inline]
    pub fn thread(&self, index: ThreadIndex) -> Option<Thread> {
        self.threads.get(usize::from(index.get())).copied().flatten()
    }
}

fn define<T: Clone>(table: &mut Vec<Option<T>>, place: usize, value: T) {
    if table.len() <= place {
        table.resize(place + 1, None);
    }
    if let Some(slot) = table.get_mut(place) {
        *slot = Some(value);
    }
}

/// All providers of an archive, and the current one.
#[derive(Debug)]
pub(crate) struct Providers {
    current: Provider,
    others: HashMap<ProviderId, Provider>,
}

impl Providers {
    /// Before any provider is introduced there is one without a name.
    pub fn new() -> Self {
        Self { current: Provider::new(ProviderId(0), b""), others: HashMap::new() }
    }

    /// Introduces a provider, with empty tables, and makes it current.
    pub fn introduce(&mut self, id: ProviderId, name: &[u8]) {
        self.others.remove(&id);
        self.replace(Provider::new(id, name));
    }

    /// Makes a provider current; false if it was not introduced and has no name.
    pub fn select(&mut self, id: ProviderId) -> bool {
        if id == self.current.id {
            return true;
        }
        let known = self.others.remove(&id);
        let is_known = known.is_some();
        self.replace(known.unwrap_or_else(|| Provider::new(id, b"")));
        is_known
    }

    fn replace(&mut self, current: Provider) {
        let previous = std::mem::replace(&mut self.current, current);
        if previous.id != self.current.id {
            self.others.insert(previous.id, previous);
        }
    }

    #[inline]
    pub const fn current(&self) -> &Provider {
        &self.current
    }

    #[inline]
    pub const fn current_mut(&mut self) -> &mut Provider {
        &mut self.current
    }

    pub const fn current_id(&self) -> ProviderId {
        self.current.id
    }
}
