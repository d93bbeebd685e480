//! An archive in memory, in the shape that assertions want.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use trace_format::units::ProviderId;
use trace_reader::{Item, Reader, ResolvedEvent, Value};

/// The id of the manager's own provider.
pub const MANAGER: ProviderId = ProviderId(0);

/// One event, with the provider it belongs to.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its provider.
    pub provider: ProviderId,
    /// Itself.
    pub event: ResolvedEvent,
}

/// Everything an archive holds.
#[derive(Debug, Default)]
pub struct Archive {
    /// Names of the providers, by id.
    pub providers: BTreeMap<ProviderId, String>,
    /// Events of all providers, in the order of the file, without the manager's own.
    pub events: Vec<Event>,
    /// Events of the manager's own provider.
    pub manager_events: Vec<ResolvedEvent>,
    /// Names of processes.
    pub processes: BTreeMap<u64, String>,
    /// Names of threads.
    pub threads: BTreeMap<u64, String>,
    /// Providers whose buffer filled up.
    pub filled_up: Vec<ProviderId>,
    /// Ticks per second, of each initialization record.
    pub rates: Vec<u64>,
}

impl Event {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.event.name.to_str().into_owned()
    }

    /// An unsigned argument.
    ///
    /// # Panics
    /// If there is none of this name and type.
    #[must_use]
    pub fn u64(&self, name: &str) -> u64 {
        match self.event.argument(name) {
            Some(Value::Uint64(value)) => *value,
            other => panic!("{name} is {other:?}"),
        }
    }
}

impl Archive {
    /// Reads an archive that must be without a flaw.
    ///
    /// # Panics
    /// If the file is no archive, or anything in it is wrong.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut reader = Reader::new(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut archive = Self::default();
        while let Some(record) = reader.next_item().expect("the archive can be read") {
            let provider = record.provider;
            match record.item {
                Item::ProviderInfo { name } => {
                    archive.providers.insert(provider, name.to_str().into_owned());
                }
                Item::Event(event) if provider == MANAGER => archive.manager_events.push(event),
                Item::Event(event) => archive.events.push(Event { provider, event }),
                Item::KernelObject { object_type: 1, koid, name, .. } => {
                    archive.processes.insert(koid.0, name.to_str().into_owned());
                }
                Item::KernelObject { object_type: 2, koid, name, .. } => {
                    archive.threads.insert(koid.0, name.to_str().into_owned());
                }
                Item::ProviderEvent { about, event: 0 } => archive.filled_up.push(about),
                Item::Initialization { rate } => archive.rates.push(rate.0.get()),
                Item::Unknown { .. } => panic!("unexpected {record:?}"),
                _ => {}
            }
        }
        assert_eq!(reader.warnings(), [], "the archive has flaws");
        archive
    }

    /// Events of a name, by thread, in the order of the file.
    #[must_use]
    pub fn by_thread(&self, name: &str) -> BTreeMap<u64, Vec<&Event>> {
        let mut threads: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.event.name.as_bytes() == name.as_bytes()) {
            threads.entry(event.event.thread.0).or_default().push(event);
        }
        threads
    }
}
