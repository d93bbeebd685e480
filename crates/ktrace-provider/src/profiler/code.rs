//! Files with code: their build identifiers, where they were linked, and how the callers of their functions
//! are found. Each file is read once for all processes.

use super::modules::Mapping;
use super::tables::{Bytes, Tables};
use crate::symbols::Functions;
use object::NativeEndian;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID, PF_X};
use object::read::elf::NoteIterator;
use object::read::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef};
use object::{SegmentFlags, SymbolKind};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace_format::profiler::MAX_MODULE_BYTES;

/// The kernel's code that is mapped into each program; it has no file.
pub const VDSO: &[u8] = b"[vdso]";
/// The vdso has few pages.
const MAX_VDSO_BYTES: u64 = 1 << 20;
/// Maximum number of bytes that are read of one file.
const MAX_READ_BYTES: u64 = 64 << 20;
/// Maximum size of the data kept of all files; further files have no tables for unwinding.
const MAX_KEPT_BYTES: u64 = 512 << 20;
/// Maximum number of remembered files; beyond it, all are forgotten.
const MAX_FILES: usize = 10_000;

/// The facts about a file with code.
#[derive(Debug, Default)]
pub struct Code {
    /// Identifies this build; empty if the file has no build identifier.
    pub build_id: Vec<u8>,
    /// The linked addresses of parts of the file: offset, length, address.
    parts: Vec<[u64; 3]>,
    /// For unwinding, if the file has them.
    pub tables: Option<Tables>,
    /// Functions, if there is no file to find them in later.
    pub functions: Option<Functions>,
}

/// The files of all processes.
#[derive(Debug, Default)]
pub struct Files {
    known: HashMap<(Vec<u8>, u64), Arc<Code>>,
    vdso: Option<Arc<Code>>,
    kernel: Option<Arc<Code>>,
    kept_bytes: u64,
}

impl Files {
    /// The code in a mapping of a process.
    pub fn code(&mut self, process: u32, mapping: &Mapping) -> Arc<Code> {
        if mapping.file == VDSO {
            return self.vdso.get_or_insert_with(|| Arc::new(Code::vdso().unwrap_or_default())).clone();
        }
        let key = (mapping.file.clone(), mapping.inode);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= MAX_FILES {
            self.known.clear();
        }
        let mut code = open(process, mapping).map(Code::read).unwrap_or_default();
        let bytes = code.tables.as_ref().map_or(0, Tables::len);
        if self.kept_bytes + bytes > MAX_KEPT_BYTES {
            code.tables = None;
        } else {
            self.kept_bytes += bytes;
        }
        let code = Arc::new(code);
        self.known.insert(key, code.clone());
        code
    }

    /// The running kernel.
    pub fn kernel(&mut self) -> Arc<Code> {
        let read = || {
            let build_id = fs::read("/sys/kernel/notes").ok().and_then(|notes| build_id(&notes));
            Arc::new(Code { build_id: build_id.unwrap_or_default(), ..Code::default() })
        };
        self.kernel.get_or_insert_with(read).clone()
    }
}

/// The build id among the notes of a file.
fn build_id(notes: &[u8]) -> Option<Vec<u8>> {
    let mut notes = NoteIterator::<FileHeader64<NativeEndian>>::new(NativeEndian, 4, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == ELF_NOTE_GNU && note.n_type(NativeEndian) == NT_GNU_BUILD_ID {
            return Some(note.desc().get(..note.desc().len().min(MAX_MODULE_BYTES))?.to_vec());
        }
    }
    None
}

/// The file of a mapping: the mapped one itself, or the one that stands at its path. Never blocks on a device
/// or a FIFO.
fn open(process: u32, mapping: &Mapping) -> Option<File> {
    let path = OsStr::from_bytes(&mapping.file);
    let end = mapping.start.checked_add(mapping.length)?;
    let mut inside = PathBuf::from(format!("/proc/{process}/root")).into_os_string();
    inside.push(path);
    let paths =
        [format!("/proc/{process}/map_files/{:x}-{end:x}", mapping.start).into(), inside, path.to_owned()];
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let open = |path: &Path| {
        let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((metadata.ino() == mapping.inode, file))
    };
    let mut found: Option<File> = None;
    for path in paths {
        match open(Path::new(&path)) {
            Some((true, file)) => return Some(file),
            // Layered file systems number inodes in more than one way.
            Some((false, file)) => found = found.or(Some(file)),
            None => {}
        }
    }
    found
}

impl Code {
    fn read(file: File) -> Self {
        let cache = ReadCache::new(file);
        let left = Cell::new(MAX_READ_BYTES);
        object::File::parse(Bounded { cache: &cache, left: &left })
            .map_or_else(|_| Self::default(), |object| Self::of(&object))
    }

    fn of<'a, R: ReadRef<'a>>(object: &object::File<'a, R>) -> Self {
        let mut build_id = object.build_id().ok().flatten().unwrap_or_default().to_vec();
        build_id.truncate(MAX_MODULE_BYTES);
        let parts = object
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
        let base = object.segments().map(|segment| segment.address() & !0xfff).min().unwrap_or(0);
        let place = |name: &str| {
            let section = object.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let data = |name: &str| {
            let data = object.section_by_name(name)?.data().ok()?;
            (!data.is_empty()).then(|| Bytes::from(data))
        };
        let tables = Tables::new(base, place, data);
        Self { build_id, parts, tables, functions: None }
    }

    /// This process's vdso, which is that of all programs of the same architecture.
    fn vdso() -> Option<Self> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let mapping = maps.lines().filter_map(super::modules::parse).find(|mapping| mapping.file == VDSO)?;
        let mut bytes = vec![0; usize::try_from(mapping.length.min(MAX_VDSO_BYTES)).ok()?];
        File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, mapping.start).ok()?;
        let object = object::File::parse(&*bytes).ok()?;
        let mut code = Self::of(&object);
        let functions = object.dynamic_symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        let functions = functions.filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.into())));
        let end = code.parts.iter().map(|[_, length, address]| address.saturating_add(*length)).max();
        code.functions = Some(Functions::new(functions.collect(), end?));
        Some(code)
    }

    /// Whether it has code at all.
    pub fn is_code(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The address that an offset in the file was linked at.
    pub fn linked_at(&self, offset: u64) -> u64 {
        // A mapping begins with a page, a part anywhere in one.
        let part = self.parts.iter().find(|[start, length, _]| {
            let page = start & !0xfff;
            (page..start.saturating_add(*length)).contains(&offset)
        });
        part.map_or(offset, |[start, _, address]| address.wrapping_add(offset).wrapping_sub(*start))
    }
}

/// A file of which only a limited part is read, whatever its headers announce.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    cache: &'a ReadCache<File>,
    left: &'a Cell<u64>,
}

impl<'a> ReadRef<'a> for Bounded<'a> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        self.cache.read_bytes_at(offset, size)
    }

    // Names of sections, which are short.
    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.cache.read_bytes_at_until(range, delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own_program() -> Vec<u8> {
        fs::read("/proc/self/exe").unwrap()
    }

    //= docs/kernel.md#profiles
    #[test]
    fn the_code_without_a_file_is_read_from_memory() {
        let code = Code::vdso().expect("this kernel has a vDSO");
        assert!(code.is_code() && code.tables.is_some() && !code.build_id.is_empty());
        let mut files = Files::default();
        let mapping = Mapping { file: VDSO.to_vec(), ..Mapping::default() };
        let shared = files.code(1, &mapping);
        assert!(Arc::ptr_eq(&shared, &files.code(2, &mapping)));
        // The vdso mostly provides clocks.
        let functions = shared.functions.as_ref().unwrap();
        let names: Vec<_> = (0..0x4000).filter_map(|at| functions.find(at)).map(|found| found.name).collect();
        assert!(names.iter().any(|name| name.ends_with("clock_gettime")), "{names:?}");
    }

    #[test]
    fn the_kernels_build_is_read() {
        // Of Xen; then a build id.
        let words: [u32; 10] = [4, 4, 6, 0x006e_6558, 1, 4, 8, 3, 0x0055_4e47, 0x0403_0201];
        let mut notes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        notes.extend([5, 6, 7, 8]);
        assert_eq!(build_id(&notes).map(|id| id.len()), Some(8));
        assert_eq!(build_id(&notes[..20]), None);
        assert!(Files::default().kernel().build_id.len() >= 16);
    }

    #[test]
    fn a_file_is_read_once_and_never_waited_for() {
        let directory = std::env::temp_dir().join(format!("code-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("program");
        fs::copy("/proc/self/exe", &path).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let file = path.as_os_str().as_bytes().to_vec();
        let mapping = Mapping { start: 0x1000, length: 0x1000, inode, file, ..Mapping::default() };
        let mut files = Files::default();
        let code = files.code(1, &mapping);
        // Linkers make the index.
        let has_index = code.tables.as_ref().is_some_and(|tables| tables.sections.eh_frame_hdr.is_some());
        assert!(code.is_code() && has_index);
        fs::remove_file(&path).unwrap();
        assert!(Arc::ptr_eq(&code, &files.code(2, &mapping)));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert!(!files.code(1, &Mapping { inode: inode + 1, ..mapping }).is_code());
        fs::remove_dir_all(directory).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        // Headers are corrupted, including the sizes of all parts.
        #[test]
        fn a_corrupted_file_does_no_harm(
            spoilt in proptest::collection::vec((0..4096_usize, any::<u8>()), 1..20),
            length in 0..100_000_u64,
        ) {
            let mut bytes = own_program();
            bytes.truncate(usize::try_from(length).unwrap().max(64));
            for (at, byte) in spoilt {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            let file = tempfile(&bytes);
            let code = Code::read(file);
            let tables = code.tables.as_ref().map_or(0, Tables::len);
            prop_assert!(tables <= MAX_READ_BYTES);
            code.linked_at(length);
        }
    }

    fn tempfile(bytes: &[u8]) -> File {
        let memory = rustix::fs::memfd_create("spoilt", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let file = File::from(memory);
        file.write_all_at(bytes, 0).unwrap();
        file
    }
}
