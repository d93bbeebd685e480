//! The destination of an archive: a file that appears when it is complete, a pipe or connection, or anything
//! that can be written to; in one of several formats.
//!
//! During a recording, the archive is in a file of its own beside the output, with a name that marks it as
//! partial. If anything fails before the output is complete, that file stays. It is compressed as it arrives
//! if the output is an archive compressed with zstd.

use crate::error::{Error, Result};
use crate::format::{Compression, Format};
use crate::lending::Lending;
use crate::pipe::Pipe;
use crate::sink::{Out, Sink};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use trace_archive::output::{Bounded, OutputError, OutputFile, TemporaryFile, whereabouts};
use trace_protocol::controller::ArchiveFile;
use trace_reader::recordings::MANAGER;
use trace_reader::{FileKind, Item, Plain, Reader};

/// How the result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// The format of the result.
    pub format: Format,
    /// The compression of the result.
    pub compression: Compression,
    /// The level of zstd, if one was requested.
    pub level: Option<i32>,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A recording, which arrives over time: its archive has a name of its own until the output is complete.
    //= docs/recording.md#while-it-is-recorded
    Recording,
    /// What is there as a whole before it is written.
    Copy,
}

/// What an output is worth: an existing file may be worth more.
//= docs/recording.md#where-the-trace-goes
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// It has events.
    Events,
    /// It has none: an existing nonempty file stays as it is.
    NoEvents,
    /// It has not even a program: no file is made.
    NoPrograms,
}

/// The destination of an archive, and its format.
pub struct Destination {
    target: Target,
    manner: Manner,
    /// The archive as it arrives, if the result has another format.
    archive: Option<TemporaryFile>,
    /// Whether the manager writes the file.
    lending: Lending,
}

enum Target {
    File(OutputFile),
    Pipe(Pipe, String),
    Writer(Option<Box<dyn Write + Send>>),
}

/// A conversion that a destination needs.
pub struct Conversion<'a> {
    /// The archive's name, which may be another file's by now.
    pub archive: &'a Path,
    /// The archive.
    pub file: &'a File,
    /// What it becomes.
    pub manner: Manner,
    /// Where that goes.
    pub output: Written<'a>,
}

/// Where a conversion writes.
pub enum Written<'a> {
    /// A file that holds nothing else, and can be written anew.
    File(&'a mut File),
    /// Anything else.
    Stream(&'a mut dyn Write),
}

/// The result.
pub struct Finished<S> {
    /// Where the result is, in words.
    pub place: String,
    /// Nothing was written: an existing file stays.
    pub is_unchanged: bool,
    /// The file's name, if it is in one.
    pub path: Option<PathBuf>,
    /// Its size in bytes, if it is known.
    pub bytes: Option<u64>,
    /// The format.
    pub format: Format,
    /// What the conversion has to say.
    pub conversion: Option<S>,
    /// The archive, for further commands.
    pub archive: Option<Archive>,
}

/// A result that was not made.
pub struct Unmade<E> {
    /// Why.
    pub error: E,
    /// What was recorded, if that is in a file.
    pub archive: Option<PathBuf>,
}

/// A file with an archive: the result itself, or what that was converted from, which is deleted when this is
/// dropped.
pub struct Archive {
    path: PathBuf,
    file: File,
    _temporary: Option<TemporaryFile>,
}

impl Archive {
    /// Its path, which may be another file's by now.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl From<OutputError> for Error {
    fn from(OutputError { path, source }: OutputError) -> Self {
        Self::Output { path, source }
    }
}

impl Destination {
    /// A file, which replaces one with its name; or which replaces none, and has the first of some other
    /// names that is unused if its own is taken meanwhile.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(path: &Path, others: Option<Vec<PathBuf>>, manner: Manner, content: Content) -> Result<Self> {
        if is_partial(path) {
            let why = "recordings that are not complete have such names; name another file";
            let source = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(Error::Output { path: path.to_owned(), source });
        }
        let is_recording = content == Content::Recording;
        let is_archive = manner.is_archive(content);
        let make = if is_archive && is_recording { OutputFile::create_partial } else { OutputFile::create };
        let mut file = make(path)?;
        if let Some(others) = others {
            file.replace_nothing(others);
        }
        let archive = match (is_archive, is_recording) {
            (true, _) => None,
            (false, true) => Some(TemporaryFile::partial_of(path)?),
            (false, false) => Some(TemporaryFile::beside(path, ".fxt")?),
        };
        Ok(Self { target: Target::File(file), manner, archive, lending: Lending::default() })
    }

    /// A pipe or a connection, with a name for people.
    ///
    /// # Errors
    /// There is no room for what is converted.
    pub fn pipe(pipe: Pipe, name: String, manner: Manner, content: Content) -> Result<Self> {
        let archive = (!manner.is_archive(content)).then(|| TemporaryFile::anywhere(".fxt")).transpose()?;
        Ok(Self { target: Target::Pipe(pipe, name), manner, archive, lending: Lending::default() })
    }

    /// Anything that can be written to.
    pub(crate) fn writer(writer: Box<dyn Write + Send>) -> Self {
        let (target, manner) = (Target::Writer(Some(writer)), Manner::default());
        Self { target, manner, archive: None, lending: Lending::default() }
    }

    /// What takes the archive as it arrives.
    ///
    /// # Errors
    /// The process is out of descriptors or threads.
    pub fn sink(&mut self) -> Result<Sink> {
        let cloned =
            |file: &TemporaryFile| file.file_ref().try_clone().map(|file| Out::File(Bounded::new(file)));
        let out = match (&self.archive, &mut self.target) {
            (Some(archive), _) => {
                return Ok(Sink::new(cloned(archive).map_err(Error::Write)?, None));
            }
            (None, Target::File(file)) => cloned(file.unfinished()),
            (None, Target::Pipe(pipe, _)) => pipe.try_clone().map(Out::Pipe),
            (None, Target::Writer(writer)) => {
                Ok(Out::Writer(writer.take().unwrap_or_else(|| Box::new(io::sink()))))
            }
        };
        let out = out.map_err(Error::Write)?;
        match self.manner.compression {
            Compression::None => Ok(Sink::new(out, Some(self.lending.clone()))),
            #[cfg(feature = "convert")]
            Compression::Gzip | Compression::Zstd => {
                let level = self.manner.level.unwrap_or(trace_convert::seekable::FAST_LEVEL);
                Sink::compressed(out, level).map_err(Error::Compress)
            }
            #[cfg(not(feature = "convert"))]
            Compression::Gzip | Compression::Zstd => Err(Error::Write(io::ErrorKind::Unsupported.into())),
        }
    }

    /// The file with the archive as it arrives; none if it does not go into a file.
    fn archive(&mut self) -> Option<&mut TemporaryFile> {
        match (&mut self.archive, &mut self.target) {
            (Some(archive), _) => Some(archive),
            (None, Target::File(file)) => Some(file.unfinished()),
            (None, Target::Pipe(..) | Target::Writer(_)) => None,
        }
    }

    /// The name of the result, if that is a file.
    #[must_use]
    pub fn place(&self) -> Option<&Path> {
        match &self.target {
            Target::File(file) => Some(file.place()),
            Target::Pipe(..) | Target::Writer(_) => None,
        }
    }

    /// The archive, if it is converted into another format.
    #[must_use]
    pub fn separate_archive(&self) -> Option<&Path> {
        self.archive.as_ref().map(TemporaryFile::path)
    }

    /// Name, device and inode of the archive's file. The manager keeps them, so that `trace recover` finds
    /// the file if this process dies.
    pub fn archive_file(&mut self) -> Option<ArchiveFile> {
        self.archive()?.named()
    }

    /// Whether the archive has an event of a program, as far as it can be read.
    pub fn has_events(&mut self) -> bool {
        self.archive().is_some_and(|archive| has_events(archive.file()))
    }

    /// From here on the archive is kept, even if something fails.
    pub fn keep_unless_finished(&mut self) {
        self.archive().into_iter().for_each(TemporaryFile::keep_unless_finished);
    }

    /// Keeps the archive of an incomplete recording, cut to whole records. Returns its name, if there is
    /// anything in it.
    ///
    /// # Errors
    /// The archive cannot be read. It stays.
    pub fn keep(self) -> Result<Option<PathBuf>> {
        let archive = match (self.archive, self.target) {
            (Some(archive), _) => Some(archive),
            (None, Target::File(file)) => Some(file.into_unfinished()),
            (None, Target::Pipe(..) | Target::Writer(_)) => None,
        };
        let Some(mut archive) = archive else {
            return Ok(None);
        };
        archive.keep_unless_finished();
        // It may have been moved, and another file may have its name.
        let path = whereabouts(archive.file_ref(), archive.path().to_owned());
        if self.lending.is_lent() {
            // The manager may be writing it yet. Readers leave out an incomplete record at the end.
            return Ok(Some(path));
        }
        match cut(archive.file()) {
            Ok(0) => {
                archive.discard();
                Ok(None)
            }
            Ok(_) => Ok(Some(path)),
            Err(source) => Err(Error::Unreadable { path, source }),
        }
    }

    /// Converts the archive if necessary, and gives it its name. If that fails, the archive stays.
    ///
    /// # Errors
    /// Those of the conversion, or the result cannot be written.
    pub fn finish<S, E: From<Error>>(
        mut self,
        worth: Worth,
        convert: impl FnOnce(Conversion<'_>) -> std::result::Result<Option<S>, E>,
    ) -> std::result::Result<Finished<S>, Unmade<E>> {
        let stays = match (&self.target, worth) {
            (Target::File(_), Worth::NoPrograms) => true,
            (Target::File(file), Worth::NoEvents) => file.would_replace(),
            _ => false,
        };
        if stays {
            return Ok(self.finish_without_file());
        }
        let archive =
            self.archive().map(|archive| (archive.file_ref().try_clone(), archive.path().to_owned()));
        self.make(convert).map_err(|error| {
            let place = archive.and_then(|(file, path)| Some(whereabouts(&file.ok()?, path)));
            Unmade { error, archive: place.filter(|path| path.exists()) }
        })
    }

    fn finish_without_file<S>(self) -> Finished<S> {
        let Self { target, manner, archive, .. } = self;
        let place = match target {
            Target::File(file) => {
                let place = file.place().display().to_string();
                file.into_unfinished().discard();
                place
            }
            Target::Pipe(_, name) => name,
            Target::Writer(_) => String::new(),
        };
        archive.into_iter().for_each(TemporaryFile::discard);
        let (path, bytes, conversion, archive) = (None, None, None, None);
        Finished { place, is_unchanged: true, path, bytes, format: manner.format, conversion, archive }
    }

    /// Deletes what was written, also if it was to be kept.
    pub fn discard(self) {
        if let Target::File(file) = self.target {
            file.into_unfinished().discard();
        }
        self.archive.into_iter().for_each(TemporaryFile::discard);
    }

    fn make<S, E: From<Error>>(
        self,
        convert: impl FnOnce(Conversion<'_>) -> std::result::Result<Option<S>, E>,
    ) -> std::result::Result<Finished<S>, E> {
        let Self { mut target, manner, archive, lending: _ } = self;
        let mut conversion = None;
        if let Some(archive) = &archive {
            let output = match &mut target {
                Target::File(file) => Written::File(file.file()),
                Target::Pipe(pipe, _) => Written::Stream(pipe),
                Target::Writer(_) => Written::Stream(&mut io::sink()),
            };
            let (archive, file) = (archive.path(), archive.file_ref());
            conversion = convert(Conversion { archive, file, manner, output })?;
            // A result that has nothing in it would replace one that has.
            if let Target::File(file) = &mut target
                && file.file().metadata().is_ok_and(|found| found.len() == 0)
            {
                return Err(Error::NothingConverted.into());
            }
        }
        let mut open = None;
        let (place, path) = match target {
            Target::File(mut file) => {
                open = file.file().try_clone().ok();
                let path = file.finish().map_err(Error::from)?;
                (path.display().to_string(), Some(path))
            }
            Target::Pipe(_, name) => (name, None),
            Target::Writer(_) => (String::new(), None),
        };
        let bytes = path.as_ref().and_then(|path| std::fs::metadata(path).ok());
        let bytes = bytes.map(|metadata| metadata.len());
        let result = path.clone().zip(open).map(|(path, file)| Archive { path, file, _temporary: None });
        let format = manner.format;
        let mut finished =
            Finished { place, is_unchanged: false, path, bytes, format, conversion, archive: result };
        if let Some(mut archive) = archive {
            archive.remove_when_dropped();
            let file = archive.file_ref().try_clone();
            let made = |file| Archive { path: archive.path().to_owned(), file, _temporary: Some(archive) };
            finished.archive = file.ok().map(made);
        }
        Ok(finished)
    }
}

impl Manner {
    /// What arrives is the result.
    fn is_archive(self, content: Content) -> bool {
        let is_compressed_here = content == Content::Recording && self.compression == Compression::Zstd;
        self.format == Format::Fxt && (self.compression == Compression::None || is_compressed_here)
    }
}

/// Whether a file has the name of an archive that is being recorded.
fn is_partial(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| [".partial.fxt", ".partial.fxt.zst"].iter().any(|end| name.ends_with(end)))
}

/// Cuts an archive to whole records, and returns their bytes. A compressed one was cut by what wrote it.
fn cut(file: &mut File) -> io::Result<u64> {
    file.rewind()?;
    match Plain::open(&*file)? {
        (archive, FileKind::Zstd) => trace_reader::complete_records(archive).map(|(bytes, _)| bytes),
        _ => {
            let bytes = trace_reader::complete_records_end(file)?;
            file.set_len(bytes).map(|()| bytes)
        }
    }
}

/// Whether an archive has an event of a program, as far as it can be read.
pub fn has_events(archive: &mut File) -> bool {
    let mut read = || {
        archive.rewind().ok()?;
        let mut reader = Reader::new(Plain::open(&*archive).ok()?.0).ok()?;
        while let Some(record) = reader.next_item().ok()? {
            if matches!(record.item, Item::Event(_)) && record.provider != MANAGER {
                return Some(());
            }
        }
        None
    };
    read().is_some()
}
