//! What providers have defined: strings, threads and the rate of their clock.

use std::collections::HashMap;
use std::rc::Rc;
use trace_format::units::{Koid, ProviderId, TicksPerSecond};

/// A process and one of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub process: Koid,
    pub thread: Koid,
}

/// One provider's definitions.
#[derive(Debug)]
pub(crate) struct Provider {
    pub name: Rc<str>,
    pub rate: TicksPerSecond,
    strings: HashMap<u16, Rc<[u8]>>,
    threads: HashMap<u8, Thread>,
}

impl Provider {
    pub fn new(name: &[u8]) -> Self {
        Self {
            name: String::from_utf8_lossy(name).into(),
            rate: TicksPerSecond::NANOSECONDS,
            strings: HashMap::new(),
            threads: HashMap::new(),
        }
    }

    /// Defines a string, or defines it anew.
    pub fn define_string(&mut self, index: u16, value: &[u8]) {
        if index != 0 {
            self.strings.insert(index, value.into());
        }
    }

    pub fn string(&self, index: u16) -> Option<Rc<[u8]>> {
        self.strings.get(&index).cloned()
    }

    /// Defines a thread, or defines it anew.
    pub fn define_thread(&mut self, index: u8, thread: Thread) {
        if index != 0 {
            self.threads.insert(index, thread);
        }
    }

    pub fn thread(&self, index: u8) -> Option<Thread> {
        self.threads.get(&index).copied()
    }
}

/// All providers of an archive, and the current one.
#[derive(Debug)]
pub(crate) struct Providers {
    providers: HashMap<ProviderId, Provider>,
    current: ProviderId,
}

impl Providers {
    /// Before any provider is introduced there is one without a name.
    pub fn new() -> Self {
        let current = ProviderId(0);
        Self { providers: HashMap::from([(current, Provider::new(b""))]), current }
    }

    /// Introduces a provider, with empty tables, and makes it current.
    pub fn introduce(&mut self, id: ProviderId, name: &[u8]) {
        self.providers.insert(id, Provider::new(name));
        self.current = id;
    }

    /// Makes a provider current; false if it was not introduced and has no name.
    pub fn select(&mut self, id: ProviderId) -> bool {
        self.current = id;
        let is_known = self.providers.contains_key(&id);
        self.providers.entry(id).or_insert_with(|| Provider::new(b""));
        is_known
    }

    pub fn current_id(&self) -> ProviderId {
        self.current
    }

    pub fn current(&mut self) -> &mut Provider {
        self.providers.entry(self.current).or_insert_with(|| Provider::new(b""))
    }
}
