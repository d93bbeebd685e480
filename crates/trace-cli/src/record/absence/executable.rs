//! What an executable says of itself: whether it links the trace library, and its language.

use object::read::{Object, ObjectSection, ReadCache};
use object::{File, ReadRef};
use rustix::fs::{Mode, OFlags};
use std::io::Read;
use std::path::Path;

/// The section with the sites of a program that links the provider.
const SITES: &str = "trace_sites_1";
/// The C library, as the ends of paths and as programs name what they need.
pub const LIBRARY: &str = "libtrace.so";
/// A function of the C library, as a name in a program that has it in itself.
const C_FUNCTION: &[u8] = b"\0trace_provider_start\0";
/// Where compilers leave their names.
const COMMENT: &str = ".comment";
const RUSTC: &[u8] = b"rustc";

/// The languages for which there is a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    Rust,
    C,
}

impl Language {
    /// What makes a provider.
    pub fn call(self, name: &str) -> String {
        match self {
            Self::Rust => format!("call trace_provider::TraceProvider::new({name:?}) first thing in main"),
            Self::C => format!("link libtrace, and call trace_provider_start({name:?}) first thing in main"),
        }
    }
}

/// What was found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executable {
    /// It has a provider, for programs in this language.
    pub provider: Option<Language>,
    /// What its own code is written in; Rust where that is not known.
    pub language: Language,
    pub is_script: bool,
}

impl Executable {
    /// Of a file that cannot be read, nothing is known.
    pub fn read(path: &Path) -> Self {
        // Another user may have chosen the path: a FIFO or a device is not waited for.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty()).map(std::fs::File::from);
        let is_file = |file: &std::fs::File| file.metadata().is_ok_and(|found| found.is_file());
        let Some(mut file) = opened.ok().filter(is_file) else {
            return Self::default();
        };
        let mut begin = [0; 2];
        if file.read_exact(&mut begin).is_ok() && &begin == b"#!" {
            return Self { is_script: true, ..Self::default() };
        }
        let cache = ReadCache::new(file);
        File::parse(&cache).map_or_else(|_| Self::default(), |file| Self::of(&file))
    }

    fn of<'a, R: ReadRef<'a>>(file: &File<'a, R>) -> Self {
        let data = |name: &str| file.section_by_name(name).and_then(|section| section.data().ok());
        let has = |name: &str, text: &[u8]| {
            data(name).is_some_and(|data| data.windows(text.len()).any(|window| window == text))
        };
        let is_rust = has(COMMENT, RUSTC);
        let needs_library = has(".dynstr", LIBRARY.as_bytes());
        let is_c = needs_library || has(".strtab", C_FUNCTION) || has(".dynstr", C_FUNCTION);
        let provider = match file.section_by_name(SITES).is_some() || needs_library {
            true if is_c => Some(Language::C),
            true => Some(Language::Rust),
            false => None,
        };
        let language = if is_rust { Language::Rust } else { Language::C };
        Self { provider, language, is_script: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_one_and_others_have_none() {
        let own = Executable::read(Path::new("/proc/self/exe"));
        assert_eq!(
            (own.provider, own.language, own.is_script),
            (Some(Language::Rust), Language::Rust, false)
        );
        assert_eq!(Executable::read(Path::new("/bin/ls")).provider, None);
        assert_eq!(Executable::read(Path::new("/bin/ls")).language, Language::C);
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert!(Executable::read(script.path()).is_script);
        std::fs::write(script.path(), "\u{7f}ELF and nothing more").unwrap();
        assert_eq!(Executable::read(script.path()), Executable::default());
        assert_eq!(Executable::read(Path::new("/does/not/exist")), Executable::default());
        // It would be waited for.
        let fifo = script.path().with_extension("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR).unwrap();
        assert_eq!(Executable::read(&fifo), Executable::default());
        std::fs::remove_file(fifo).unwrap();
    }
}
