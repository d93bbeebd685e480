//! Finds the symbols and debug information of a module: in its file, or in separate files.
//= docs/perfetto.md#debug-files

use addr2line::gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use object::read::{Object, ObjectSection, ReadCache};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Environment variable with directories of debug files, separated by colons, that are searched before the
/// system's.
pub const DIRECTORIES_VARIABLE: &str = "TRACE_DEBUG_FILES";
/// The directory that distributions use.
const SYSTEM_DIRECTORY: &str = "/usr/lib/debug";
/// Larger files are not read for their checksum.
const MAX_CHECKED_BYTES: u64 = 4 << 30;

/// How many times its size in the file a compressed section may have, beyond what is always allowed: debug
/// information takes a tenth.
const MAX_RATIO: u64 = 64;
const MAX_SMALL_BYTES: u64 = 1 << 20;

/// The files of one module.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DebugFiles {
    /// The separate file with debug information, if there is one; and the file that it shares with others.
    pub debug: Option<(PathBuf, Option<PathBuf>)>,
    /// The module itself, if it still exists.
    pub own: Option<PathBuf>,
}

/// Directories of debug files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories(Vec<PathBuf>);

impl Directories {
    /// Those that the environment names, and the system's.
    pub fn from_environment() -> Self {
        let named = std::env::var_os(DIRECTORIES_VARIABLE).unwrap_or_default();
        let named = std::env::split_paths(&named).filter(|path| path.is_absolute()).collect::<Vec<_>>();
        Self(named.into_iter().chain([SYSTEM_DIRECTORY.into()]).collect())
    }

    /// Finds the files of a module by its name and build id, which is empty if it is not known.
    pub fn find(&self, name: &[u8], build_id: &[u8]) -> DebugFiles {
        let path = Path::new(OsStr::from_bytes(name));
        let own = Some(path).filter(|path| path.is_absolute() && is_build(path, build_id));
        let by_id = || self.by_build_id(build_id).find(|file| is_build(file, build_id));
        let debug = by_id().or_else(|| self.by_link(own?, build_id));
        let debug = debug.map(|file| {
            let shared = self.shared_by(&file);
            (file, shared)
        });
        DebugFiles { debug, own: own.map(Path::to_owned) }
    }

    /// `DIRECTORY/.build-id/xx/yyyy.debug`.
    fn by_build_id(&self, build_id: &[u8]) -> impl Iterator<Item = PathBuf> {
        let digits: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = digits.split_at_checked(2).filter(|(_, rest)| !rest.is_empty());
        let name = name.map(|(first, rest)| format!(".build-id/{first}/{rest}.debug"));
        self.0.iter().filter_map(move |directory| Some(directory.join(name.as_ref()?)))
    }

    /// The file that the section `.gnu_debuglink` names: beside the module, in `.debug` there, or at the
    /// module's path below one of the directories.
    fn by_link(&self, module: &Path, build_id: &[u8]) -> Option<PathBuf> {
        let (name, checksum) = with_object(module, |object| {
            object.gnu_debuglink().ok()?.map(|(name, checksum)| (name.to_vec(), checksum))
        })?;
        // A name without directories.
        let name = Path::new(Path::new(OsStr::from_bytes(&name)).file_name()?).to_owned();
        let directory = module.parent()?;
        let below = |root: &PathBuf| root.join(directory.strip_prefix("/").unwrap_or(directory)).join(&name);
        let beside = [directory.join(&name), directory.join(".debug").join(&name)];
        let mut candidates = beside.into_iter().chain(self.0.iter().map(below));
        candidates.find(|file| {
            file != module
                && is_build(file, build_id)
                && (!build_id.is_empty() || has_checksum(file, checksum))
        })
    }

    /// The file that the section `.gnu_debugaltlink` names, with data that several debug files share.
    fn shared_by(&self, debug: &Path) -> Option<PathBuf> {
        let (name, build_id) = with_object(debug, |object| {
            object.gnu_debugaltlink().ok()?.map(|(name, build_id)| (name.to_vec(), build_id.to_vec()))
        })?;
        let named = debug.parent()?.join(OsStr::from_bytes(&name));
        std::iter::once(named).chain(self.by_build_id(&build_id)).find(|file| is_build(file, &build_id))
    }
}

/// Opens an object file and queries it; none if it has no code. Only regular files are opened.
fn with_object<T>(path: &Path, ask: impl FnOnce(&ObjectFile<'_>) -> Option<T>) -> Option<T> {
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let cache = ReadCache::new(File::open(path).ok()?);
    ask(&object::File::parse(&cache).ok()?)
}

/// Whether a file is of this build; any file is if the build is not known.
fn is_build(path: &Path, build_id: &[u8]) -> bool {
    let found = with_object(path, |object| {
        let found = object.build_id().ok().flatten();
        let is_it = build_id.is_empty() || found == Some(build_id);
        let is_sound = is_it
            && has_plausible_sections(object)
            && parts(path, object).is_some_and(|parts| parts.iter().all(|part| is_plausible_part(part)));
        is_sound.then_some(())
    });
    found.is_some()
}

type ObjectFile<'a> = object::File<'a, &'a ReadCache<File>>;

/// Whether all sections can be what they say: who reads them allocates that much, and a small file may say
/// anything.
fn has_plausible_sections(object: &ObjectFile<'_>) -> bool {
    object.sections().all(|section| {
        section.compressed_file_range().is_ok_and(|range| {
            let most = range.compressed_size.saturating_mul(MAX_RATIO).saturating_add(MAX_SMALL_BYTES);
            range.uncompressed_size <= most
        })
    })
}

/// Nothing else is opened that is not a regular file; one that is no object is not read.
fn is_plausible_part(path: &Path) -> bool {
    path.metadata().is_err()
        || path.is_file() && with_object(path, |object| Some(has_plausible_sections(object))).unwrap_or(true)
}

/// The files that `addr2line` opens with this one: its package beside it, and files of single units. None if
/// its debug information is damaged.
fn parts(path: &Path, object: &ObjectFile<'_>) -> Option<Vec<PathBuf>> {
    let mut ending = path.extension().map_or_else(OsString::new, |extension| {
        let mut extension = extension.to_owned();
        extension.push(".");
        extension
    });
    ending.push("dwp");
    let mut parts = vec![path.with_extension(ending)];
    // Units in files of their own have their addresses here.
    if object.section_by_name(".debug_addr").is_some() {
        parts.extend(units(object).ok()?);
    }
    Some(parts)
}

/// The files of units that are not in the object.
fn units(object: &ObjectFile<'_>) -> Result<Vec<PathBuf>, Box<dyn std::error::Error>> {
    let sections = DwarfSections::load(|id| match object.section_by_name(id.name()) {
        Some(section) => section.uncompressed_data(),
        None => Ok(Cow::Borrowed(&[][..])),
    })?;
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let mut all = dwarf.units();
    let mut files = Vec::new();
    while let Some(header) = all.next()? {
        let unit = dwarf.unit(header)?;
        if let Some(name) = unit.dwo_name()? {
            let name = dwarf.attr_string(&unit, name)?;
            let directory = unit.comp_dir.map_or(&[][..], |directory| directory.slice());
            files.push(Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(name.slice())));
        }
    }
    Ok(files)
}

fn has_checksum(path: &Path, checksum: u32) -> bool {
    let read = || {
        let metadata = path.metadata().ok()?;
        let file =
            File::open(path).ok().filter(|_| metadata.is_file() && metadata.len() <= MAX_CHECKED_BYTES)?;
        let mut sum = flate2::CrcReader::new(file);
        std::io::copy(&mut sum, &mut std::io::sink()).ok()?;
        Some(sum.crc().sum())
    };
    read() == Some(checksum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::CompressionFormat;
    use std::fs;
    use std::process::Command;

    /// A directory of its own; a program in it that was split from its debug information; its build id.
    fn split(name: &str, flags: &[&str]) -> Option<(tempfile::TempDir, PathBuf, Vec<u8>)> {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        let source = directory.path().join("program.c");
        fs::write(&source, "int named(void) { return 1; } int main(void) { return named(); }").unwrap();
        let run = |tool: &str, arguments: &[&str]| {
            let status = Command::new(tool).args(arguments).current_dir(directory.path()).status();
            status.is_ok_and(|status| status.success())
        };
        let is_split = run("gcc", &[&["-g", "program.c", "-o", "program"], flags].concat())
            && run("objcopy", &["--only-keep-debug", "program", name])
            && run("strip", &["--strip-all", "program"])
            && run("objcopy", &["--add-gnu-debuglink", name, "program"]);
        let build_id =
            with_object(&program, |object| Some(object.build_id().ok()?.unwrap_or_default().to_vec()));
        // A machine without these tools has scenarios that report it.
        is_split.then(|| (directory, program, build_id.unwrap()))
    }

    fn find(directories: &Directories, program: &Path, build_id: &[u8]) -> DebugFiles {
        directories.find(program.as_os_str().as_bytes(), build_id)
    }

    //= docs/perfetto.md#debug-files
    #[test]
    fn debug_files_are_found_by_their_link() {
        let Some((directory, program, build_id)) = split("program.debug", &["-Wl,--build-id"]) else {
            return;
        };
        let none = Directories(Vec::new());
        let beside = directory.path().join("program.debug");
        let found = find(&none, &program, &build_id);
        assert_eq!(found, DebugFiles { debug: Some((beside.clone(), None)), own: Some(program.clone()) });
        // In `.debug`, and below a directory.
        let apart = directory.path().join(".debug");
        fs::create_dir(&apart).unwrap();
        fs::rename(&beside, apart.join("program.debug")).unwrap();
        assert_eq!(find(&none, &program, &build_id).debug.unwrap().0, apart.join("program.debug"));
        let root = tempfile::tempdir().unwrap();
        let below = root.path().join(directory.path().strip_prefix("/").unwrap());
        fs::create_dir_all(&below).unwrap();
        fs::rename(apart.join("program.debug"), below.join("program.debug")).unwrap();
        assert_eq!(find(&none, &program, &build_id).debug, None);
        let directories = Directories(vec![root.path().to_owned()]);
        assert_eq!(find(&directories, &program, &build_id).debug.unwrap().0, below.join("program.debug"));
        // Of another build.
        assert_eq!(find(&directories, &program, b"another"), DebugFiles::default());
    }

    /// Has a compressed section of a file say that it has 2 GiB.
    fn say_size(file: &Path) {
        let place = with_object(file, |object| {
            let compressed = |section: &object::Section<'_, '_, _>| {
                section.compressed_file_range().is_ok_and(|range| range.format != CompressionFormat::None)
            };
            object.sections().find(compressed)?.file_range()
        });
        // Behind the kind of compression.
        let place = place.expect("a compressed section").0 + 8;
        let file = fs::OpenOptions::new().write(true).open(file).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &(2_u64 << 30).to_le_bytes(), place).unwrap();
    }

    /// Who reads it would allocate so much.
    //= docs/perfetto.md#debug-files
    #[test]
    fn a_compressed_section_is_not_believed_whatever_size_it_says() {
        let flags = ["-Wl,--build-id", "-Wl,--compress-debug-sections=zlib"];
        let Some((directory, program, build_id)) = split("program.debug", &flags) else { return };
        let none = Directories(Vec::new());
        let file = directory.path().join("program.debug");
        assert_eq!(find(&none, &program, &build_id).debug.unwrap().0, file);
        say_size(&file);
        assert_eq!(find(&none, &program, &build_id).debug, None);
    }

    /// Units in files of their own, and in a package of these.
    //= docs/perfetto.md#debug-files
    #[test]
    fn files_that_a_debug_file_names_are_not_believed_either() {
        for flags in [&["-gsplit-dwarf"][..], &["-gsplit-dwarf", "-gdwarf-4"]] {
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name);
            // So much that it is compressed.
            let functions =
                (0..500).map(|number| format!("int named{number}(void) {{ return {number}; }}\n"));
            let source = functions.chain(["int main(void) { return 0; }\n".to_owned()]).collect::<String>();
            fs::write(path("program.c"), source).unwrap();
            let gcc = |arguments: &[&str]| {
                let status = Command::new("gcc").args(arguments).current_dir(directory.path()).status();
                status.is_ok_and(|status| status.success())
            };
            if !gcc(&[flags, &["-g", "-gz=zlib", "-c", "program.c"]].concat()) {
                return;
            }
            assert!(gcc(&["program.o", "-o", "program"]));
            let (program, unit) = (path("program"), path("program.dwo"));
            let found = || find(&Directories(Vec::new()), &program, b"").own;
            assert_eq!(with_object(&program, |object| units(object).ok()), Some(vec![unit.clone()]));
            assert_eq!(found(), Some(program.clone()));
            let package = path("program.dwp");
            fs::copy(&unit, &package).unwrap();
            assert_eq!(found(), Some(program.clone()));
            for part in [&package, &unit] {
                say_size(part);
                assert_eq!(found(), None);
                fs::write(part, "no object file").unwrap();
                assert_eq!(found(), Some(program.clone()));
                // It would be waited for.
                fs::remove_file(part).unwrap();
                assert!(Command::new("mkfifo").arg(part).status().unwrap().success());
                assert_eq!(found(), None);
                fs::remove_file(part).unwrap();
                assert_eq!(found(), Some(program.clone()));
            }
        }
    }

    //= docs/perfetto.md#debug-files
    #[test]
    fn a_debug_file_stands_in_for_a_program_that_is_gone() {
        let Some((directory, program, build_id)) = split("apart", &["-Wl,--build-id"]) else { return };
        let root = tempfile::tempdir().unwrap();
        let digits: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let place = root.path().join(".build-id").join(&digits[..2]);
        fs::create_dir_all(&place).unwrap();
        let file = place.join(format!("{}.debug", &digits[2..]));
        fs::rename(directory.path().join("apart"), &file).unwrap();
        fs::remove_file(&program).unwrap();
        let directories = Directories(vec![root.path().to_owned()]);
        let found = find(&directories, &program, &build_id);
        assert_eq!(found, DebugFiles { debug: Some((file.clone(), None)), own: None });
        // A file of another build at that place.
        fs::copy("/proc/self/exe", &file).unwrap();
        assert_eq!(find(&directories, &program, &build_id), DebugFiles::default());
    }

    //= docs/perfetto.md#debug-files
    #[test]
    fn a_link_without_a_build_id_is_checked_by_its_sum() {
        let Some((directory, program, build_id)) = split("apart", &["-Wl,--build-id=none"]) else { return };
        assert_eq!(build_id, b"");
        let none = Directories(Vec::new());
        let apart = directory.path().join("apart");
        assert_eq!(find(&none, &program, b"").debug, Some((apart.clone(), None)));
        let mut bytes = fs::read(&apart).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&apart, bytes).unwrap();
        assert_eq!(find(&none, &program, b"").debug, None);
    }
}
