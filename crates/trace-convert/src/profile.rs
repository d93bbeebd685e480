//! Which functions the addresses of backtraces are in: from the files that the trace names, where the same
//! builds of them are still there.
//= docs/perfetto.md#profiles

use addr2line::Loader;
use foldhash::HashMap;
use object::read::{Object, ReadCache};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use trace_format::profiler::ProfilerKind;
use trace_format::units::Koid;

/// Functions that are remembered; then all are forgotten.
const MAX_KNOWN: usize = 1 << 18;

/// The code of all processes.
#[derive(Default)]
pub struct Profile {
    processes: HashMap<Koid, Process>,
    /// By name and build id, in the order in which they came.
    modules: Vec<Module>,
    known: HashMap<(usize, u64), Vec<String>>,
}

#[derive(Default)]
struct Process {
    modules: HashMap<u16, usize>,
    /// By their beginning; none overlap.
    mappings: BTreeMap<u64, Mapping>,
}

struct Mapping {
    length: u64,
    module: usize,
    linked_at: u64,
}

/// A file with code.
pub struct Module {
    /// Its name.
    pub name: Box<[u8]>,
    /// What tells this build of it from others; empty if nobody knows.
    pub build_id: Box<[u8]>,
    symbols: Symbols,
}

enum Symbols {
    Unread,
    Read(Box<Loader>),
    /// There is no such file any more, or another build of it.
    None,
}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The module, in [`Profile::module`].
    pub module: usize,
    /// As the module was linked.
    pub address: u64,
}

impl Profile {
    /// Takes what the trace says of modules and mappings; backtraces are for others.
    pub fn learn(&mut self, process: Koid, kind: &ProfilerKind<'_>) {
        match *kind {
            ProfilerKind::Module { id, name, build_id } => {
                let is_it = |module: &Module| *module.name == *name && *module.build_id == *build_id;
                let index = self.modules.iter().position(is_it).unwrap_or_else(|| {
                    let (name, build_id) = (name.into(), build_id.into());
                    self.modules.push(Module { name, build_id, symbols: Symbols::Unread });
                    self.modules.len() - 1
                });
                self.processes.entry(process).or_default().modules.insert(id, index);
            }
            ProfilerKind::Mmap { module, start, length, linked_at, .. } => {
                let process = self.processes.entry(process).or_default();
                if let Some(module) = process.modules.get(&module).copied() {
                    process.map(start, Mapping { length, module, linked_at });
                }
            }
            ProfilerKind::Backtrace { .. } => {}
        }
    }

    /// Where an address of a process is; none if nobody knows.
    pub fn place(&self, process: Koid, address: u64) -> Option<Place> {
        let (start, mapping) = self.processes.get(&process)?.mappings.range(..=address).next_back()?;
        let within = address - start;
        (within < mapping.length)
            .then(|| Place { module: mapping.module, address: mapping.linked_at.wrapping_add(within) })
    }

    /// A module of a place.
    pub fn module(&self, index: usize) -> &Module {
        &self.modules[index]
    }

    /// The functions at a place, the innermost of those that were inlined into each other first; at least
    /// one. Where nobody knows a name, it is the module's with the address.
    pub fn functions(&mut self, place: Place) -> &[String] {
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let module = &mut self.modules[place.module];
        self.known.entry((place.module, place.address)).or_insert_with(|| module.functions(place.address))
    }
}

impl Process {
    fn map(&mut self, start: u64, mapping: Mapping) {
        let end = start.saturating_add(mapping.length);
        // What was there before is gone.
        let overlapped: Vec<u64> = self
            .mappings
            .range(..end)
            .rev()
            .take_while(|(other, known)| other.saturating_add(known.length) > start)
            .map(|(other, _)| *other)
            .collect();
        overlapped.iter().for_each(|other| _ = self.mappings.remove(other));
        self.mappings.insert(start, mapping);
    }
}

impl Module {
    fn functions(&mut self, address: u64) -> Vec<String> {
        let mut functions = Vec::new();
        if let Symbols::Unread = self.symbols {
            self.symbols = self.load().map_or(Symbols::None, |loader| Symbols::Read(Box::new(loader)));
        }
        if let Symbols::Read(loader) = &self.symbols {
            if let Ok(mut frames) = loader.find_frames(address) {
                while let Ok(Some(frame)) = frames.next() {
                    let name = frame.function.as_ref().and_then(|function| function.demangle().ok());
                    functions.extend(name.map(std::borrow::Cow::into_owned));
                }
            }
            if functions.is_empty() {
                let symbol = loader.find_symbol(address);
                functions.extend(symbol.map(|name| addr2line::demangle_auto(name.into(), None).into_owned()));
            }
        }
        if functions.is_empty() {
            let name = self.name.rsplit(|byte| *byte == b'/').next().unwrap_or(&self.name);
            functions.push(format!("{}+{address:#x}", String::from_utf8_lossy(name)));
        }
        functions
    }

    /// The file, if it is still the same.
    fn load(&self) -> Option<Loader> {
        let name = std::str::from_utf8(&self.name).ok()?;
        // Who knows what a trace names: only what is a file is opened.
        let path = Path::new(name);
        if !path.is_absolute() || !path.metadata().is_ok_and(|found| found.is_file()) {
            return None;
        }
        if !self.build_id.is_empty() {
            let cache = ReadCache::new(File::open(path).ok()?);
            let object = object::File::parse(&cache).ok()?;
            object.build_id().ok().flatten().filter(|found| **found == *self.build_id)?;
        }
        Loader::new(path).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::profiler::FLAG_EXECUTABLE;

    const PROCESS: Koid = Koid(7);

    fn module(id: u16, name: &'static str) -> ProfilerKind<'static> {
        ProfilerKind::Module { id, name: name.as_bytes(), build_id: b"none of this" }
    }

    fn mmap(module: u16, start: u64, length: u64, linked_at: u64) -> ProfilerKind<'static> {
        ProfilerKind::Mmap { module, flags: FLAG_EXECUTABLE, start, length, linked_at }
    }

    //= docs/perfetto.md#profiles
    #[test]
    fn an_address_is_in_what_was_mapped_there_last() {
        let mut profile = Profile::default();
        for kind in [module(0, "/nowhere/a"), module(1, "/nowhere/b"), mmap(0, 0x1000, 0x3000, 0x40_0000)] {
            profile.learn(PROCESS, &kind);
        }
        let place = |profile: &Profile, address| profile.place(PROCESS, address);
        assert_eq!(place(&profile, 0x1fff), Some(Place { module: 0, address: 0x40_0fff }));
        assert_eq!(place(&profile, 0x4000), None);
        assert_eq!(place(&profile, 0xfff), None);
        assert_eq!(profile.place(Koid(8), 0x1fff), None);
        // Another file where the first was.
        profile.learn(PROCESS, &mmap(1, 0x2000, 0x1000, 0));
        assert_eq!(place(&profile, 0x2001), Some(Place { module: 1, address: 1 }));
        assert_eq!(place(&profile, 0x1fff), None);
        profile.learn(PROCESS, &mmap(5, 0x2000, 0x1000, 0));
        assert_eq!(place(&profile, 0x2001), Some(Place { module: 1, address: 1 }));
    }

    //= docs/perfetto.md#profiles
    #[test]
    fn functions_of_a_file_of_this_build_have_names() {
        let mut profile = Profile::default();
        let program = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&program).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let build_id = object.build_id().unwrap().unwrap_or_default();
        let symbol = object::Object::symbols(&object)
            .find(|symbol| {
                object::ObjectSymbol::name(symbol)
                    .is_ok_and(|name| name.contains("functions_of_a_file_of_this"))
            })
            .unwrap();
        let address = object::ObjectSymbol::address(&symbol);
        let name = program.to_str().unwrap().as_bytes();
        profile.learn(PROCESS, &ProfilerKind::Module { id: 0, name, build_id });
        profile.learn(PROCESS, &mmap(0, 0, u64::MAX, 0));
        let place = profile.place(PROCESS, address).unwrap();
        let functions = profile.functions(place).to_vec();
        assert!(
            functions.iter().any(|name| name.contains("functions_of_a_file_of_this_build")),
            "{functions:?}"
        );
        // Of another build the names would be wrong.
        profile.learn(PROCESS, &ProfilerKind::Module { id: 0, name, build_id: b"another" });
        profile.learn(PROCESS, &mmap(0, 0, u64::MAX, 0));
        let place = profile.place(PROCESS, 0x1234).unwrap();
        let file = program.file_name().unwrap().to_str().unwrap();
        assert_eq!(profile.functions(place), [format!("{file}+0x1234")]);
    }
}
