//! A directory of files that appear when all of them are complete.

use super::resolve::{Found, ResolveError, ResolvedPath};
use super::unfinished::Unfinished;
use super::{Directory, TemporaryFile, caller};
use rustix::fs::{AtFlags, Mode, OFlags, chmodat, mkdirat, openat};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A new directory is accessible to its owner alone, as the files are.
const NEW_MODE: Mode = Mode::RWXU;
/// How often it is tried to create a directory whose parents disappear meanwhile.
const ATTEMPTS: u32 = 10;

/// Files that appear under their names when all of them are complete.
#[derive(Debug)]
pub struct Folder {
    // Declared before the directories that they are in: fields are dropped in that order.
    files: RefCell<Vec<(OsString, TemporaryFile)>>,
    directory: Directory,
    /// The directories that were made for it, the innermost first.
    made: Vec<Unfinished>,
}

impl Folder {
    /// Opens a directory; creates it and its parents if necessary.
    pub fn create(path: &Path) -> io::Result<Self> {
        // Another process that fails removes the directories that it has made, perhaps before they are used.
        for _ in 1..ATTEMPTS {
            match Self::create_once(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => return result,
            }
        }
        Self::create_once(path)
    }

    fn create_once(path: &Path) -> io::Result<Self> {
        let mut made = Vec::new();
        let mut last = None;
        let parents: Vec<_> = path.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
        for path in parents.iter().rev() {
            let mut place = ResolvedPath::of_any(path).map_err(other)?;
            let directory = &place.directory.descriptor;
            match place.found {
                Found::Directory => {}
                Found::Nothing => {
                    let make = || {
                        let _files = caller::files(place.directory.is_linked)?;
                        mkdirat(directory, &place.name, NEW_MODE)
                    };
                    match Unfinished::directory(directory, place.name.clone(), make) {
                        Ok(new) => {
                            made.insert(0, new);
                            // Whatever the umask; a file system without modes is as private as it can be.
                            let _files = caller::files(place.directory.is_linked)?;
                            let _ = chmodat(directory, &place.name, NEW_MODE, AtFlags::empty());
                        }
                        // Another process has made it meanwhile.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                            place = ResolvedPath::of_any(path).map_err(other)?;
                            if place.found != Found::Directory {
                                return Err(io::ErrorKind::NotADirectory.into());
                            }
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                Found::File | Found::Other => return Err(io::ErrorKind::NotADirectory.into()),
            }
            last = Some(place);
        }
        let place = last.ok_or_else(|| other(ResolveError::NoName))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat(&place.directory.descriptor, &place.name, flags, Mode::empty())?;
        let is_linked = place.directory.is_linked;
        let directory = Directory { descriptor: Arc::new(descriptor), path: place.path(), is_linked };
        Ok(Self { files: RefCell::default(), directory, made })
    }

    /// A new file in it, for this name.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let named = TemporaryFile::create(&self.directory, ".partial")?;
        let file = named.file.try_clone()?;
        self.files.borrow_mut().push((name.into(), named));
        Ok(file)
    }

    /// Gives the files their names; those that had them are replaced. Unless this is called, nothing is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.made.drain(..).for_each(Unfinished::keep);
        for (name, mut file) in self.files.take() {
            file.finish(&name)?;
        }
        Ok(())
    }
}

fn other(error: ResolveError) -> io::Error {
    io::Error::other(error)
}
