//! The code of one process: which files are mapped where, and what tells these builds of them from others.

use super::Mapping;
use object::SegmentFlags;
use object::elf::PF_X;
use object::read::{Object, ObjectSegment, ReadCache};
use std::fs::{self, File};
use trace_format::profiler::{FLAG_EXECUTABLE, FLAG_READABLE, MAX_MODULE_BYTES, ProfilerKind};

/// Modules and mappings, and how many of both were told.
#[derive(Debug, Default)]
pub struct Modules {
    modules: Vec<Module>,
    mappings: Vec<(u16, Mapping)>,
    told_modules: usize,
    told_mappings: usize,
}

#[derive(Clone, Debug)]
struct Module {
    file: Vec<u8>,
    build_id: Vec<u8>,
    /// Where parts of the file were linked at: offset, length, address.
    parts: Vec<[u64; 3]>,
}

impl Module {
    fn read(file: &[u8]) -> Self {
        let mut module = Self { file: file.to_vec(), build_id: Vec::new(), parts: Vec::new() };
        let path = String::from_utf8_lossy(file).into_owned();
        if let Ok(file) = File::open(path) {
            let cache = ReadCache::new(file);
            if let Ok(object) = object::File::parse(&cache) {
                module.build_id = object.build_id().ok().flatten().unwrap_or_default().to_vec();
                module.build_id.truncate(MAX_MODULE_BYTES);
                module.parts = object
                    .segments()
                    // Two parts may share a page of the file, of which only one is code.
                    .filter(|segment| {
                        matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags & PF_X == PF_X)
                    })
                    .map(|segment| {
                        let (offset, length) = segment.file_range();
                        [offset, length, segment.address()]
                    })
                    .collect();
            }
        }
        module
    }

    /// The address that an offset in the file was linked at.
    fn linked_at(&self, offset: u64) -> u64 {
        // A mapping begins with a page, a part anywhere in it.
        let part = self.parts.iter().find(|[start, length, _]| {
            let page = start & !0xfff;
            (page..start + length).contains(&offset)
        });
        part.map_or(offset, |[start, _, address]| address.wrapping_add(offset).wrapping_sub(*start))
    }
}

impl Modules {
    /// What a process has mapped by now.
    pub fn of_process(process: u32) -> Self {
        let mut modules = Self::default();
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        maps.lines().filter_map(parse).for_each(|mapping| modules.add(mapping));
        modules
    }

    /// Something more is mapped. What has no file has no names either.
    pub fn add(&mut self, mapping: Mapping) {
        if mapping.file.first() != Some(&b'/') || self.mappings.iter().any(|(_, known)| *known == mapping) {
            return;
        }
        let known = self.modules.iter().position(|module| module.file == mapping.file);
        let module = known.unwrap_or_else(|| {
            self.modules.push(Module::read(&mapping.file));
            self.modules.len() - 1
        });
        if let Ok(module) = u16::try_from(module) {
            self.mappings.push((module, mapping));
        }
    }

    /// What a forked child has: the same, of which nothing was told.
    pub fn inherited(&self) -> Self {
        Self { modules: self.modules.clone(), mappings: self.mappings.clone(), ..Self::default() }
    }

    /// Tells what was not told yet.
    pub fn tell_new(&mut self, mut tell: impl FnMut(ProfilerKind<'_>)) {
        for (id, module) in (0_u16..).zip(&self.modules).skip(self.told_modules) {
            let name = &module.file[..module.file.len().min(MAX_MODULE_BYTES)];
            tell(ProfilerKind::Module { id, name, build_id: &module.build_id });
        }
        for (module, mapping) in &self.mappings[self.told_mappings..] {
            tell(ProfilerKind::Mmap {
                module: *module,
                flags: FLAG_READABLE | FLAG_EXECUTABLE,
                start: mapping.start,
                length: mapping.length,
                linked_at: self.modules[usize::from(*module)].linked_at(mapping.offset),
            });
        }
        (self.told_modules, self.told_mappings) = (self.modules.len(), self.mappings.len());
    }
}

/// `start-end perms offset device inode path`, of what can be executed.
fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    words.next().filter(|flags| flags.contains('x'))?;
    let offset = number(words.next()?)?;
    let file = words.nth(2)?.trim_start().as_bytes().to_vec();
    Some(Mapping { start, length: end.checked_sub(start)?, offset, file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashMap};

    //= docs/kernel.md#profiles
    #[test]
    fn this_programs_own_code_is_found() {
        let line = "55d0-55e0 r-xp 00001000 fe:00 1234                     /usr/bin/my app";
        let mapping =
            Mapping { start: 0x55d0, length: 0x10, offset: 0x1000, file: b"/usr/bin/my app".to_vec() };
        assert_eq!(parse(line), Some(mapping));
        assert_eq!(parse("55d0-55e0 rw-p 00001000 fe:00 1234 /usr/bin/app"), None);

        let mut modules = Modules::of_process(std::process::id());
        let here = this_programs_own_code_is_found as fn() as usize as u64;
        let (mut told, mut found) = (BTreeSet::new(), None);
        modules.tell_new(|kind| match kind {
            ProfilerKind::Module { id, .. } => assert!(told.insert(id)),
            ProfilerKind::Mmap { module, start, length, linked_at, .. } => {
                assert!(told.contains(&module));
                if (start..start + length).contains(&here) {
                    found = Some(here - start + linked_at);
                }
            }
            ProfilerKind::Backtrace { .. } => panic!("no backtrace"),
        });
        // Where the linker has put it.
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let object = object::File::parse(&*file).unwrap();
        let symbols: HashMap<u64, &str> = object::Object::symbols(&object)
            .map(|symbol| {
                (object::ObjectSymbol::address(&symbol), object::ObjectSymbol::name(&symbol).unwrap_or(""))
            })
            .collect();
        let name = symbols.get(&found.expect("the code is mapped")).copied();
        assert!(name.is_some_and(|name| name.contains("this_programs_own_code")), "{name:?}");
        modules.tell_new(|kind| panic!("told twice: {kind:?}"));
    }
}
