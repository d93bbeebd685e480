//! The functions at the addresses of backtraces: from the names in the trace, and from the files that it
//! names, if the same builds of them still exist.
//= docs/perfetto.md#profiles

mod debug_files;

use addr2line::Loader;
use debug_files::Directories;
use foldhash::HashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use trace_format::profiler::ProfilerKind;
use trace_format::units::Koid;
use trace_linux::KERNEL_START;
use trace_reader::Names;

/// Maximum number of remembered functions; beyond it, all are forgotten.
const MAX_KNOWN: usize = 1 << 18;

/// Whether functions have names from the trace alone.
static READS_NOTHING: AtomicBool = AtomicBool::new(false);

/// From now on, this process reads no files that traces name: functions have the names that are in the trace.
pub fn read_no_files() {
    READS_NOTHING.store(true, Ordering::Relaxed);
}

/// Whether an address is the kernel's.
#[must_use]
pub const fn is_of_kernel(address: u64) -> bool {
    address >= KERNEL_START
}

/// The code of all processes.
pub struct Profile {
    directories: Directories,
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
    /// Identifies this build of the file; empty if unknown.
    pub build_id: Box<[u8]>,
    symbols: Symbols,
}

enum Symbols {
    Unread,
    /// Loaders of the file with debug information, and of the module's own. Both are missing if the files are
    /// gone, or of another build.
    Read(Vec<Loader>),
}

/// The position of an address in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLocation {
    /// The module, in [`Profile::module`].
    pub module: usize,
    /// The address as linked.
    pub address: u64,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            directories: Directories::from_environment(),
            processes: HashMap::default(),
            modules: Vec::new(),
            known: HashMap::default(),
        }
    }
}

impl Profile {
    /// Processes modules and mappings of the trace; backtraces are processed elsewhere.
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

    /// The code at an address of a process; none if unknown.
    pub fn place(&self, process: Koid, address: u64) -> Option<CodeLocation> {
        let (start, mapping) = self.processes.get(&process)?.mappings.range(..=address).next_back()?;
        let within = address - start;
        (within < mapping.length)
            .then(|| CodeLocation { module: mapping.module, address: mapping.linked_at.wrapping_add(within) })
    }

    /// A module of a place.
    pub fn module(&self, index: usize) -> &Module {
        &self.modules[index]
    }

    /// The functions at an address, the innermost of inlined ones first; at least one. A name in the trace
    /// takes precedence; without any name it is the module's with the address.
    pub fn functions(&mut self, process: Koid, address: u64, names: &Names) -> Vec<String> {
        if let Some(name) = names.function(process, address) {
            return vec![demangled(name.to_str())];
        }
        let Some(place) = self.place(process, address) else {
            return vec![format!("{address:#x}")];
        };
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let (module, directories) = (&mut self.modules[place.module], &self.directories);
        let known = self.known.entry((place.module, place.address));
        known.or_insert_with(|| module.functions(place.address, directories)).clone()
    }
}

impl Process {
    fn map(&mut self, start: u64, mapping: Mapping) {
        let end = start.saturating_add(mapping.length);
        // Earlier mappings of these addresses are gone.
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
    fn functions(&mut self, address: u64, directories: &Directories) -> Vec<String> {
        if let Symbols::Unread = self.symbols {
            self.symbols = Symbols::Read(self.load(directories));
        }
        let loaders = match &self.symbols {
            Symbols::Unread => &[][..],
            Symbols::Read(loaders) => loaders,
        };
        let mut functions = loaders.iter().map(|loader| inlined(loader, address));
        if let Some(functions) = functions.find(|functions| !functions.is_empty()) {
            return functions;
        }
        if let Some(symbol) = loaders.iter().find_map(|loader| loader.find_symbol(address)) {
            return vec![demangled(symbol.into())];
        }
        let name = self.name.rsplit(|byte| *byte == b'/').next().unwrap_or(&self.name);
        vec![format!("{}+{address:#x}", String::from_utf8_lossy(name))]
    }

    fn load(&self, directories: &Directories) -> Vec<Loader> {
        if READS_NOTHING.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let files = directories.find(&self.name, &self.build_id);
        let debug = files.debug.and_then(|(file, shared)| Loader::new_with_sup(file, shared).ok());
        let own = files.own.and_then(|file| Loader::new(file).ok());
        debug.into_iter().chain(own).collect()
    }
}

/// The name of a function in its language. Names of C are what they are: a function `f` is no `float`.
fn demangled(name: Cow<'_, str>) -> String {
    let is_mangled = ["_Z", "__Z", "_R", "__R"].iter().any(|start| name.starts_with(start));
    if is_mangled { addr2line::demangle_auto(name, None).into_owned() } else { name.into_owned() }
}

/// The functions at an address by debug information, the innermost first.
fn inlined(loader: &Loader, address: u64) -> Vec<String> {
    let mut functions = Vec::new();
    if let Ok(mut frames) = loader.find_frames(address) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            functions.extend(name.map(demangled));
        }
    }
    functions
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
        assert_eq!(place(&profile, 0x1fff), Some(CodeLocation { module: 0, address: 0x40_0fff }));
        assert_eq!(place(&profile, 0x4000), None);
        assert_eq!(place(&profile, 0xfff), None);
        assert_eq!(profile.place(Koid(8), 0x1fff), None);
        // Another file at the addresses of the first.
        profile.learn(PROCESS, &mmap(1, 0x2000, 0x1000, 0));
        assert_eq!(place(&profile, 0x2001), Some(CodeLocation { module: 1, address: 1 }));
        assert_eq!(place(&profile, 0x1fff), None);
        profile.learn(PROCESS, &mmap(5, 0x2000, 0x1000, 0));
        assert_eq!(place(&profile, 0x2001), Some(CodeLocation { module: 1, address: 1 }));
    }

    /// A function that no optimization puts into another: it has a symbol in every build.
    #[inline(never)]
    fn stands_for_itself(times: u64) -> u64 {
        std::hint::black_box(times) + 1
    }

    //= docs/perfetto.md#profiles
    #[test]
    fn functions_of_a_file_of_this_build_have_names() {
        assert_eq!(stands_for_itself(std::hint::black_box(1)), 2);
        let mut profile = Profile::default();
        let program = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&program).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let build_id = object::Object::build_id(&object).unwrap().unwrap_or_default();
        let symbol = object::Object::symbols(&object)
            .find(|symbol| {
                object::ObjectSymbol::name(symbol).is_ok_and(|name| name.contains("stands_for_itself"))
            })
            .unwrap();
        let address = object::ObjectSymbol::address(&symbol);
        let name = program.to_str().unwrap().as_bytes();
        profile.learn(PROCESS, &ProfilerKind::Module { id: 0, name, build_id });
        profile.learn(PROCESS, &mmap(0, 0, u64::MAX, 0));
        let functions = profile.functions(PROCESS, address, &Names::default());
        assert!(functions.iter().any(|name| name.contains("stands_for_itself")), "{functions:?}");
        // A file of another build would give wrong names.
        profile.learn(PROCESS, &ProfilerKind::Module { id: 0, name, build_id: b"another" });
        profile.learn(PROCESS, &mmap(0, 0, u64::MAX, 0));
        let file = program.file_name().unwrap().to_str().unwrap();
        let functions = profile.functions(PROCESS, 0x1234, &Names::default());
        assert_eq!(functions, [format!("{file}+0x1234")]);
        assert_eq!(profile.functions(Koid(8), 0x1234, &Names::default()), ["0x1234"]);
    }
}
