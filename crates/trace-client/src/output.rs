//! Where a program wants an archive: under a name, or in anything that can be written to.

use crate::destination::{Content, Conversion, Destination, Manner};
use crate::error::{Error, Result};
use crate::format::{Compression, Format, of_name, unknown_ending};
use crate::thread::writer_beside;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where an archive goes. A path makes one: the file has that name when it is complete, and replaces one with
/// that name; until then it has [another](crate::partial_name). The name's ending selects the format: `.fxt`
/// or none is Fuchsia's, others are for the feature `convert`.
pub struct Output(Target);

enum Target {
    File(PathBuf),
    Writer(Box<dyn Write + Send>),
}

impl Output {
    /// Anything that can be written to. What it has taken counts as written: programs do not keep it.
    pub fn writer(writer: impl Write + Send + 'static) -> Self {
        Self(Target::Writer(Box::new(writer)))
    }

    pub(crate) fn open(self, content: Content) -> Result<Destination> {
        match self.0 {
            // It is opened on a thread that has not the program's descriptors.
            Target::Writer(writer) => Ok(Destination::writer(writer_beside(writer))),
            Target::File(path) => {
                let refused = |why: String| {
                    let source = io::Error::new(io::ErrorKind::InvalidInput, why);
                    Error::Output { path: path.clone(), source }
                };
                if let Some(ending) = unknown_ending(&path) {
                    return Err(refused(format!("{ending} is no format of traces; end the name in .fxt")));
                }
                let (format, compression) = of_name(&path);
                let manner = Manner { format: format.unwrap_or_default(), compression, level: None };
                let is_plain = manner.format == Format::Fxt && compression == Compression::None;
                if !is_plain && !cfg!(feature = "convert") {
                    return Err(refused(
                        "its name asks for a conversion, and this library is built without the feature convert; \
                         end the name in .fxt"
                            .to_owned(),
                    ));
                }
                Destination::file(&path, None, manner, content)
            }
        }
    }
}

/// Converts an archive into what the name of its output asks for.
#[cfg(feature = "convert")]
pub(crate) fn convert(conversion: Conversion<'_>) -> Result<Option<()>> {
    use crate::convert::{Job, convert};
    use trace_archive::output::open_same;
    use trace_convert::ConvertError;

    let Conversion { archive, file, manner, output } = conversion;
    let unreadable = |source| Error::Unreadable { path: archive.to_owned(), source };
    let open = || open_same(archive, file).map(io::BufReader::new).map_err(unreadable);
    let job = Job { level: manner.level, ..Job::new(manner.format, manner.compression) };
    let converted = convert(job, output, open, Error::Convert)?;
    converted.stopped.map_or(Ok(None), |error| Err(Error::Convert(ConvertError::Read(error))))
}

/// Names that ask for it are refused.
#[cfg(not(feature = "convert"))]
pub(crate) fn convert(conversion: Conversion<'_>) -> Result<Option<()>> {
    let source = io::ErrorKind::Unsupported.into();
    Err(Error::Output { path: conversion.archive.to_owned(), source })
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::File(path) => f.debug_tuple("Output").field(path).finish(),
            Target::Writer(_) => f.debug_struct("Output").finish_non_exhaustive(),
        }
    }
}

impl<P: AsRef<Path>> From<P> for Output {
    fn from(path: P) -> Self {
        // The program may change its directory meanwhile.
        let path = path.as_ref();
        Self(Target::File(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::{Finished, Unmade, Worth};

    fn open(path: &Path) -> Result<Destination> {
        Output::from(path).open(Content::Recording)
    }

    fn why(path: &Path) -> String {
        crate::problem(&open(path).err().unwrap())
    }

    fn write(destination: &mut Destination, bytes: &[u8]) {
        destination.sink().unwrap().write_all(bytes).unwrap();
    }

    fn finish(destination: Destination, worth: Worth) -> std::result::Result<Finished<()>, Error> {
        destination.finish(worth, convert).map_err(|unmade: Unmade<Error>| unmade.error)
    }

    fn partial(destination: &mut Destination) -> PathBuf {
        destination.archive_file().unwrap().path.into()
    }

    #[test]
    fn a_file_has_its_name_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.fxt");
        std::fs::write(&path, "before").unwrap();
        let mut output = open(&path).unwrap();
        write(&mut output, b"archive");
        let mut other = open(&path).unwrap();
        assert_eq!(partial(&mut other), directory.path().join("a-1.partial.fxt"));
        other.discard();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(finish(output, Worth::Events).unwrap().path, Some(path.clone()));
        assert_eq!(std::fs::read(&path).unwrap(), b"archive");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        // What has no event does not replace it.
        let empty = finish(open(&path).unwrap(), Worth::NoEvents).unwrap();
        assert_eq!((empty.is_unchanged, empty.path), (true, None));
        assert_eq!(std::fs::read(&path).unwrap(), b"archive");

        // Links are followed, and nothing but a file is replaced.
        let (link, fifo) = (directory.path().join("link"), directory.path().join("fifo"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(why(&fifo), format!("cannot write {}: it is not a regular file", fifo.display()));
        assert!(why(directory.path()).ends_with(": it is a directory"), "{}", why(directory.path()));
        let mut output = open(&link).unwrap();
        assert_eq!(partial(&mut output), directory.path().join("a.partial.fxt"));
        finish(output, Worth::Events).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        // Another file has its name.
        let mut output = open(&path).unwrap();
        let partial = partial(&mut output);
        std::fs::remove_file(&partial).unwrap();
        std::fs::write(&partial, "another").unwrap();
        let error = finish(output, Worth::Events).err().unwrap();
        assert!(crate::problem(&error).contains("a.partial.fxt has been moved"), "{error:?}");
    }

    //= docs/client.md#a-library-that-records
    #[test]
    fn names_of_other_formats_are_for_a_feature_and_unknown_ones_for_none() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.json", "a.pftrace", "a.folded", "a.fxt.zst", "a.fxt.gz", "A.JSON"] {
            let opened = open(&directory.path().join(name));
            match cfg!(feature = "convert") {
                true => opened.unwrap().discard(),
                false => {
                    let why = crate::problem(&opened.err().unwrap());
                    assert!(
                        why.ends_with("end the name in .fxt") && why.contains("feature convert"),
                        "{why}"
                    );
                }
            }
        }
        for name in ["a.bin", "a.txt.gz"] {
            assert!(why(&directory.path().join(name)).contains(" is no format of traces; "), "{name}");
        }
        for name in ["a", "a.FXT"] {
            open(&directory.path().join(name)).unwrap().discard();
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
