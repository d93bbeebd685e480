//! The code of one process: mappings of files, and unwinding of its stacks.

use super::code::{Code, Files, VDSO};
use super::sample::Sample;
use super::unwind::{Cache, Unwinder, Unwound};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use trace_format::profiler::{FLAG_EXECUTABLE, FLAG_READABLE, MAX_MODULE_BYTES, ProfilerKind};
use trace_linux::KERNEL_START;

/// The name of the kernel's module.
const KERNEL_MODULE: &[u8] = b"[kernel.kallsyms]";

/// A part of a file that is mapped to be executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// Its size in bytes.
    pub length: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// The file's number in its file system.
    pub inode: u64,
    /// The file.
    pub file: Vec<u8>,
}

/// Maximum number of mappings that wait for a sample; further ones are ignored.
const MAX_PENDING: usize = 1 << 16;

/// Modules and mappings, and the number of both that were written.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    /// Mappings whose files are read when the process is sampled: most processes never are.
    pending: Vec<Mapping>,
    modules: Vec<Module>,
    mappings: Vec<(u16, Mapping)>,
    /// The current mappings, by their first address: end, module, and linked address of the beginning.
    places: BTreeMap<u64, (u64, u16, u64)>,
    unwinder: Unwinder,
    has_kernel: bool,
    written_modules: usize,
    written_mappings: usize,
}

#[derive(Clone, Debug)]
struct Module {
    file: Vec<u8>,
    inode: u64,
    code: Arc<Code>,
}

/// State shared by all processes.
#[derive(Default)]
pub struct Shared {
    /// Files with code.
    pub files: Files,
    /// Rules for unwinding.
    pub cache: Cache,
}

impl Modules {
    /// The current mappings of a process.
    pub fn of_process(process: u32) -> Self {
        let mut modules = Self::default();
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        maps.lines().filter_map(parse).for_each(|mapping| modules.add(mapping));
        modules
    }

    /// Adds a mapping. Memory without a file is no module, except the one that the kernel maps.
    pub fn add(&mut self, mapping: Mapping) {
        let is_file = mapping.file.first() == Some(&b'/') && !mapping.file.starts_with(b"//");
        if (is_file || mapping.file == VDSO) && self.pending.len() < MAX_PENDING {
            self.pending.push(mapping);
        }
    }

    /// Reads the files of new mappings. The kernel's half of the addresses is a module, too, as soon as a
    /// thread was sampled there.
    pub fn load(&mut self, process: u32, is_in_kernel: bool, shared: &mut Shared) {
        for mapping in std::mem::take(&mut self.pending) {
            self.place(process, mapping, shared);
        }
        if is_in_kernel && !self.has_kernel {
            self.add_kernel(shared);
        }
    }

    fn place(&mut self, process: u32, mapping: Mapping, shared: &mut Shared) {
        let is_it = |module: &Module| module.file == mapping.file && module.inode == mapping.inode;
        let index = self.modules.iter().position(is_it).unwrap_or_else(|| {
            let code = shared.files.code(process, &mapping);
            self.modules.push(Module { file: mapping.file.clone(), inode: mapping.inode, code });
            self.modules.len() - 1
        });
        let Ok(number) = u16::try_from(index) else {
            return;
        };
        let code = &self.modules[index].code;
        let (start, end) = (mapping.start, mapping.start.saturating_add(mapping.length));
        let linked_at = code.linked_at(mapping.offset);
        if self.places.get(&start) == Some(&(end, number, linked_at)) {
            return;
        }
        // Earlier mappings of these addresses are gone.
        let overlapped = self.places.range(..end).rev().take_while(|(_, (other, ..))| *other > start);
        for start in overlapped.map(|(start, _)| *start).collect::<Vec<_>>() {
            self.places.remove(&start);
            self.unwinder.remove(start, &mut shared.cache);
        }
        if let Some(tables) = &code.tables {
            self.unwinder.add(start..end, linked_at, tables, &mut shared.cache);
        }
        self.places.insert(start, (end, number, linked_at));
        self.mappings.push((number, mapping));
    }

    fn add_kernel(&mut self, shared: &mut Shared) {
        let Ok(number) = u16::try_from(self.modules.len()) else {
            return;
        };
        self.has_kernel = true;
        let file = KERNEL_MODULE.to_vec();
        let length = u64::MAX - KERNEL_START;
        let mapping =
            Mapping { start: KERNEL_START, length, offset: KERNEL_START, inode: 0, file: file.clone() };
        self.modules.push(Module { file, inode: 0, code: shared.files.kernel() });
        self.mappings.push((number, mapping));
    }

    /// The mappings of a forked child: the same, none of them written.
    pub fn inherited(&self) -> Self {
        Self { written_modules: 0, written_mappings: 0, ..self.clone() }
    }

    /// Unwinds a sample; none if it has no registers.
    pub fn unwind(&self, sample: &Sample, cache: &mut Cache) -> Option<Unwound> {
        self.unwinder.unwind(sample, cache)
    }

    /// The code at an address, the first address of its mapping, and the linked address of that; none if it
    /// is not of a file.
    pub fn code(&self, address: u64) -> Option<(&Code, u64, u64)> {
        let (start, (end, module, linked_at)) = self.places.range(..=address).next_back()?;
        let code = &self.modules.get(usize::from(*module))?.code;
        (address < *end && code.is_code()).then_some((code, *start, *linked_at))
    }

    /// Passes on modules and mappings that were not written yet.
    pub fn write_new(&mut self, mut write: impl FnMut(ProfilerKind<'_>)) {
        for (id, module) in (0_u16..).zip(&self.modules).skip(self.written_modules) {
            let name = &module.file[..module.file.len().min(MAX_MODULE_BYTES)];
            write(ProfilerKind::Module { id, name, build_id: &module.code.build_id });
        }
        for (module, mapping) in &self.mappings[self.written_mappings..] {
            write(ProfilerKind::Mmap {
                module: *module,
                flags: FLAG_READABLE | FLAG_EXECUTABLE,
                start: mapping.start,
                length: mapping.length,
                linked_at: self.modules[usize::from(*module)].code.linked_at(mapping.offset),
            });
        }
        (self.written_modules, self.written_mappings) = (self.modules.len(), self.mappings.len());
    }
}

/// Parses `start-end perms offset device inode path` of an executable mapping.
pub(super) fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    words.next().filter(|flags| flags.contains('x'))?;
    let offset = number(words.next()?)?;
    let inode = words.nth(1)?.parse().ok()?;
    let file = words.next()?.trim_start().as_bytes().to_vec();
    Some(Mapping { start, length: end.checked_sub(start)?, offset, inode, file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashMap};

    //= docs/kernel.md#profiles
    #[test]
    fn this_programs_own_code_is_found() {
        let line = "55d0-55e0 r-xp 00001000 fe:00 1234                     /usr/bin/my app";
        let file = b"/usr/bin/my app".to_vec();
        let mapping = Mapping { start: 0x55d0, length: 0x10, offset: 0x1000, inode: 1234, file };
        assert_eq!(parse(line), Some(mapping));
        assert_eq!(parse("55d0-55e0 rw-p 00001000 fe:00 1234 /usr/bin/app"), None);

        let mut modules = Modules::of_process(std::process::id());
        modules.load(std::process::id(), false, &mut Shared::default());
        let here = this_programs_own_code_is_found as fn() as usize as u64;
        let (mut written, mut found) = (BTreeSet::new(), None);
        modules.write_new(|kind| match kind {
            ProfilerKind::Module { id, .. } => assert!(written.insert(id)),
            ProfilerKind::Mmap { module, start, length, linked_at, .. } => {
                assert!(written.contains(&module));
                if (start..start + length).contains(&here) {
                    found = Some(here - start + linked_at);
                }
            }
            ProfilerKind::Backtrace { .. } => panic!("no backtrace"),
        });
        // The address from the linker.
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let object = object::File::parse(&*file).unwrap();
        let symbols: HashMap<u64, &str> = object::Object::symbols(&object)
            .map(|symbol| {
                (object::ObjectSymbol::address(&symbol), object::ObjectSymbol::name(&symbol).unwrap_or(""))
            })
            .collect();
        let name = symbols.get(&found.expect("the code is mapped")).copied();
        assert!(name.is_some_and(|name| name.contains("this_programs_own_code")), "{name:?}");
        modules.write_new(|kind| panic!("written twice: {kind:?}"));
        let (_, start, linked_at) = modules.code(here).unwrap();
        assert_eq!(Some(here - start + linked_at), found);
    }

    //= docs/kernel.md#profiles
    #[test]
    fn code_is_replaced_by_what_is_mapped_over_it() {
        let (mut modules, mut shared) = (Modules::default(), Shared::default());
        let program = std::env::current_exe().unwrap().to_str().unwrap().as_bytes().to_vec();
        let mapping = |start, length| Mapping { start, length, file: program.clone(), ..Mapping::default() };
        modules.add(mapping(0x1000, 0x3000));
        modules.add(mapping(0x2000, 0x1000));
        modules.load(1, false, &mut shared);
        let found = |modules: &Modules, address| modules.code(address).map(|(_, start, _)| start);
        assert_eq!(
            [0x1fff, 0x2000, 0x2fff, 0x3000].map(|at| found(&modules, at)),
            [None, Some(0x2000), Some(0x2000), None]
        );
        // Memory without a file, and files without code.
        modules.add(Mapping { file: b"//anon".to_vec(), ..mapping(0x5000, 0x1000) });
        modules.add(Mapping { file: b"/dev/zero".to_vec(), ..mapping(0x6000, 0x1000) });
        modules.load(1, false, &mut shared);
        assert_eq!([0x5000, 0x6000].map(|at| found(&modules, at)), [None, None]);
    }
}
